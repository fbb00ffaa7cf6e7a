//! The `scale` subresource: desired and observed counts of any kind that tells where it keeps them.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::definition::Scale;
use crate::handle::Call;
use crate::registry::{PatchKind, Scope};
use crate::respond::{self, Body};
use crate::table::json_path;
use crate::{meta, object};

/// Serves `get`, `update` and `patch` of an object's scale.
pub(crate) async fn call(call: &Call, scope: &Scope, verb: &str) -> Result<Response<Body>, ApiError> {
    let paths = scope.spec()?.scale.clone().ok_or_else(ApiError::no_such_path)?;
    let accept = call.accept_one_shape()?;
    for _ in 0..5 {
        let entry = scope.entry()?;
        let mut parent = object::value_of(&entry);
        scope.to_requested(&mut parent)?;
        let current = scale_of(&parent, &paths);
        let wanted = match verb {
            "get" => return Ok(respond::value(StatusCode::OK, &current, accept)),
            "update" => call.decoded()?.value,
            "patch" => {
                let patch = crate::decode::decode(&call.body, crate::decode::Format::Yaml)?.value;
                match call.patch_kind()? {
                    PatchKind::Json => gardener_merge::json_patch(&current, &patch).map_err(ApiError::from)?,
                    // a scale has no lists: the three merging patches do the same to it
                    PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply => {
                        gardener_merge::merge_patch(&current, &patch).map_err(ApiError::from)?
                    }
                }
            }
            other => {
                return Err(ApiError::method_not_supported(
                    &scope.definition.group,
                    &format!("{}/scale", scope.definition.plural),
                    other,
                ));
            }
        };
        let asked_revision = meta::resource_version(&wanted).to_owned();
        let unchanged = asked_revision.is_empty() || asked_revision == entry.mod_revision.to_string();
        if !unchanged {
            return Err(ApiError::conflict(
                &scope.definition.group,
                &scope.definition.plural,
                &scope.name,
                "the object has been modified; please apply your changes to the latest version and try again",
            ));
        }
        let options = call.write_options()?;
        let context = scope.context(call.cluster.clock().now(), options.dry_run);
        let mut warnings = Vec::new();
        let mut wanted = wanted;
        meta::set(
            &mut wanted,
            "resourceVersion",
            Some(entry.mod_revision.to_string().into()),
        );
        let wanted = scope
            .admit_body(&context, &options, wanted, Some(&current), &mut warnings)
            .await?;
        let replicas = wanted.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(0));
        let number = replicas.as_i64().ok_or_else(|| {
            ApiError::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: spec.replicas: expected a number, got {replicas}"
            ))
        })?;
        if number < 0 {
            let error = Error::invalid(
                &Path::new("spec.replicas"),
                number,
                "must be greater than or equal to 0",
            );
            return Err(ApiError::invalid("autoscaling", "Scale", &scope.name, &[error]));
        }
        set_path(&mut parent, &paths.spec_replicas, json!(number));
        let main = Scope {
            subresource: String::new(),
            admitted: true,
            ..scope.clone()
        };
        match main.update(parent, &[], &options).await {
            Ok(written) => {
                let mut response = respond::value(StatusCode::OK, &scale_of(&written.object, &paths), accept);
                respond::warn(&mut response, &warnings);
                return Ok(response);
            }
            Err(error) if error.reason() == "Conflict" && asked_revision.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    Err(ApiError::conflict(
        &scope.definition.group,
        &scope.definition.plural,
        &scope.name,
        "the object changes too often; try again",
    ))
}

fn scale_of(object: &Value, paths: &Scale) -> Value {
    let number = |path: &str| json_path(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = paths
        .selector
        .as_deref()
        .and_then(|path| json_path(object, path))
        .map(selector_text);
    if let (Value::Object(status), Some(selector)) = (&mut status, selector) {
        status.insert("selector".into(), selector.into());
    }
    let mut metadata = serde_json::Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{key}")) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let spec = match number(&paths.spec_replicas) {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// A selector as text, from either of its forms.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector
        .get("matchLabels")
        .or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    let mut parts: Vec<String> = meta::string_map(labels)
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match expression.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for step in path.trim_start_matches('.').split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(members) = at else { return };
        at = members.entry(step).or_insert(Value::Null);
    }
    *at = value;
}
