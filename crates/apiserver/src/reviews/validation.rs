//! What is wrong with questions about access.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::{ApiError, names};
use serde_json::Value;

use crate::{go_text, meta};

/// Whose access a review asks about, as its kind has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// The caller's.
    Oneself,
    /// That of a user or of groups.
    Others,
    /// The same, in the namespace of the request.
    OthersHere,
}

/// Refuses a wrong question.
///
/// # Errors
/// 422; upstream names no kind.
pub(super) fn check(review: &Value, asks: Asks) -> Result<(), ApiError> {
    let errors = errors(review, asks);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(ApiError::invalid("authorization.k8s.io", "", "", &errors)),
    }
}

fn errors(review: &Value, asks: Asks) -> ErrorList {
    let mut errors = ErrorList::new();
    let part = |pointer: &str| review.at(pointer).filter(|value| value.is_object());
    let (resource, path) = (part("/spec/resourceAttributes"), part("/spec/nonResourceAttributes"));
    let of_path = Path::new("spec.nonResourceAttributes");
    let shown = |path: &Value| {
        let text = |pointer: &str| Value::from(meta::text(path, pointer));
        format!("{{\"Path\":{},\"Verb\":{}}}", text("/path"), text("/verb"))
    };
    match (resource, path) {
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            errors.push(Error::literal(&of_path, shown(path), why));
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(Error::invalid(&Path::new("spec.resourceAttributes"), Value::Null, why));
        }
        _ => {}
    }
    if asks != Asks::Oneself
        && meta::text(review, "/spec/user").is_empty()
        && meta::elements(review, "/spec/groups").is_empty()
    {
        let why = "at least one of user or group must be specified";
        errors.push(Error::invalid(&Path::new("spec.user"), "", why));
    }
    for which in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = resource.and_then(|own| own.get(which)).filter(|own| own.is_object()) {
            check_selector(selector, which, &mut errors);
        }
    }
    check_metadata(review, asks, &mut errors);
    if asks == Asks::OthersHere {
        let namespace = resource.map(|resource| meta::text(resource, "/namespace"));
        if let Some(other) = namespace.filter(|namespace| *namespace != meta::namespace(review)) {
            let at = Path::new("spec.resourceAttributes.namespace");
            errors.push(Error::invalid(&at, other, "must match metadata.namespace"));
        }
        if let Some(path) = path {
            let why = "disallowed on this kind of request";
            errors.push(Error::literal(&of_path, shown(path), why));
        }
    }
    errors
}

/// A question has no metadata but its author's note.
fn check_metadata(review: &Value, asks: Asks, errors: &mut ErrorList) {
    let Some(Value::Object(metadata)) = review.get("metadata") else {
        return;
    };
    let is_local = asks == Asks::OthersHere;
    let mut others = metadata
        .keys()
        .filter(|key| *key != "managedFields" && !(is_local && *key == "namespace"));
    if others.next().is_some() {
        let why = match is_local {
            true => "must be empty except for namespace",
            false => "must be empty",
        };
        let shown = go_text::of_metadata(metadata);
        errors.push(Error::literal(&Path::new("metadata"), shown, why));
    }
}

fn check_selector(selector: &Value, which: &str, errors: &mut ErrorList) {
    let path = Path::new("spec.resourceAttributes").child(which);
    let (raw, requirements) = (
        meta::text(selector, "/rawSelector"),
        meta::elements(selector, "/requirements"),
    );
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(Error::invalid(&path.child("rawSelector"), raw, why));
    }
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(Error::required(&path.child("requirements"), why));
    }
    for (at, requirement) in requirements.iter().enumerate() {
        let path = path.child("requirements").index(at);
        let (key, values) = (meta::text(requirement, "/key"), meta::elements(requirement, "/values"));
        let of_fields = which == "fieldSelector";
        if of_fields && key.is_empty() {
            errors.push(Error::required(&path.child("key"), "must be specified"));
        }
        // operators of newer clients are let through
        match meta::text(requirement, "/operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(Error::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(Error::forbidden(&path.child("values"), why));
            }
            _ => {}
        }
        if of_fields {
            continue;
        }
        let wrong_key = names::qualified_name(key).into_iter();
        errors.extend(wrong_key.map(|why| Error::invalid(&path.child("key"), key, why)));
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let path = path.child("values").index(at);
            let wrong = names::label_value(value).into_iter();
            errors.extend(wrong.map(|why| Error::invalid(&path, value, why)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_questions() {
        let resource = json!({"namespace": "a", "verb": "get", "resource": "pods"});
        for (review, asks, expected) in [
            (json!({"spec": {"resourceAttributes": resource}}), Asks::Oneself, ""),
            (
                json!({"metadata": {"name": "x", "managedFields": []}, "spec": {"resourceAttributes": resource}}),
                Asks::Oneself,
                "metadata: Invalid value: {\"name\":\"x\",\"managedFields\":[]}: must be empty",
            ),
            (
                json!({"metadata": {"namespace": "a"}, "spec": {"user": "u", "resourceAttributes": resource}}),
                Asks::OthersHere,
                "",
            ),
            (
                json!({"metadata": {"namespace": "b"}, "spec": {"groups": ["g"], "resourceAttributes": resource}}),
                Asks::OthersHere,
                "spec.resourceAttributes.namespace: Invalid value: \"a\": must match metadata.namespace",
            ),
            (
                json!({"spec": {"resourceAttributes": {"fieldSelector": {}, "labelSelector": {"rawSelector": "a", "requirements": [{"key": "-", "operator": "In"}, {"key": "a", "operator": "New", "values": ["ok"]}]}}}}),
                Asks::Others,
                "spec.user: Invalid value: \"\": at least one of user or group must be specified\n\
                 spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required\n\
                 spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a\": may not specified at the same time as requirements\n\
                 spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'\n\
                 spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ] {
            let found: Vec<String> = errors(&review, asks).iter().map(ToString::to_string).collect();
            assert_eq!(found.join("\n"), expected, "{review}");
        }
    }
}
