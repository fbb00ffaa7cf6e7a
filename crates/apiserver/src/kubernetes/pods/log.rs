//! `pods/log`. Pods of an embedded cluster are simulated: their log is what happened to them. What is wrong with a call is told as
//! kube-apiserver and a kubelet tell it.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use crate::connect;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;
use crate::request;

/// The subresource.
pub(in crate::kubernetes) struct Log;

#[async_trait]
impl Subresource for Log {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Pod")
    }

    fn verbs(&self) -> &'static [&'static str] {
        &["get"]
    }

    fn text_options(&self) -> Option<&'static [(&'static str, &'static str)]> {
        Some(&[
            ("container", "string"),
            ("follow", "boolean"),
            ("insecureSkipTLSVerifyBackend", "boolean"),
            ("limitBytes", "integer"),
            ("previous", "boolean"),
            ("sinceSeconds", "integer"),
            ("stream", "string"),
            ("tailLines", "integer"),
            ("timestamps", "boolean"),
        ])
    }

    fn examine(&self, _: &Context<'_>, name: &str, query: &mut Value) -> Result<(), ApiError> {
        let errors = check_options(query)?;
        match errors.is_empty() {
            true => Ok(()),
            false => Err(ApiError::invalid("", "PodLogOptions", name, &errors)),
        }
    }

    async fn call(&self, context: &Context<'_>, _: &str, pod: &Value, query: Value) -> Result<Effect, ApiError> {
        let own = meta::name(pod);
        let container = connect::chosen_container(pod, meta::text(&query, "/container"))?;
        if connect::node_of(context, pod)?.is_none() {
            return Ok(Effect::Nothing);
        }
        let status = [
            "/status/containerStatuses",
            "/status/initContainerStatuses",
            "/status/ephemeralContainerStatuses",
        ]
        .into_iter()
        .flat_map(|list| meta::elements(pod, list))
        .find(|status| meta::text(status, "/name") == container);
        if query
            .get("previous")
            .and_then(Value::as_str)
            .is_some_and(request::is_true)
        {
            return Err(ApiError::bad_request(format!(
                "previous terminated container {} in pod {} not found",
                go_quote(container),
                go_quote(own)
            )));
        }
        let started = status.and_then(|status| {
            let running = status.at("/state/running/startedAt");
            running.or_else(|| status.at("/state/terminated/startedAt"))
        });
        let Some(started) = started.and_then(Value::as_str) else {
            return Err(ApiError::bad_request(format!(
                "container {} in pod {} is waiting to start: ContainerCreating",
                go_quote(container),
                go_quote(own)
            )));
        };
        Ok(Effect::Text(format!(
            "{started} this container is simulated by the embedded cluster: it has a state, but no process and no output\n"
        )))
    }
}

/// What is wrong with the options of a call.
///
/// # Errors
/// 400: a number or time cannot be read.
fn check_options(query: &Value) -> Result<ErrorList, ApiError> {
    let number = |key: &str| match query.get(key).and_then(Value::as_str) {
        None | Some("") => Ok(None),
        Some(text) => request::integer::<i64>(text).map(Some),
    };
    let (tail, limit, since) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
    let mut errors = ErrorList::new();
    if let Some(tail) = tail.filter(|lines| *lines < 0) {
        let at = Path::new("tailLines");
        errors.push(Error::invalid(&at, json!(tail), "must be greater than or equal to 0"));
    }
    let positive = "must be greater than 0";
    if let Some(limit) = limit.filter(|bytes| *bytes < 1) {
        errors.push(Error::invalid(&Path::new("limitBytes"), json!(limit), positive));
    }
    match since {
        Some(_) if !meta::text(query, "/sinceTime").is_empty() => errors.push(Error::forbidden(
            // a path of nothing, as upstream's messages show it
            &Path::new("[]"),
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        )),
        Some(seconds) if seconds < 1 => {
            errors.push(Error::invalid(&Path::new("sinceSeconds"), json!(seconds), positive));
        }
        _ => {}
    }
    if query.get("stream").is_some() {
        errors.push(Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_wrong() {
        for (query, wanted) in [
            (json!({}), Ok(vec![])),
            (
                json!({"tailLines": "0", "limitBytes": "1", "sinceSeconds": "1"}),
                Ok(vec![]),
            ),
            (
                json!({"tailLines": "-1", "limitBytes": "0"}),
                Ok(vec!["tailLines", "limitBytes"]),
            ),
            (
                json!({"sinceSeconds": "5", "sinceTime": "2020-01-01T00:00:00Z"}),
                Ok(vec!["[]"]),
            ),
            (json!({"sinceSeconds": "0"}), Ok(vec!["sinceSeconds"])),
            (json!({"stream": "Stdout"}), Ok(vec!["stream"])),
            (
                json!({"tailLines": "many"}),
                Err("strconv.ParseInt: parsing \"many\": invalid syntax"),
            ),
        ] {
            let found = check_options(&query);
            let fields = found
                .as_ref()
                .map(|errors| errors.iter().map(|error| error.path.to_string()).collect::<Vec<_>>());
            let wanted = wanted.map(|fields| fields.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(fields.map_err(ApiError::message), wanted, "{query}");
        }
    }
}
