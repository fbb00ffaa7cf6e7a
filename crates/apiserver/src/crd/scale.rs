//! What must hold of the fields that the `scale` subresource of a custom resource shows, whatever the schema says of them.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_schema::json::{go_text, go_type};
use serde_json::{Value, json};

use crate::definition::Scale;

/// What is wrong with the fields; `of_spec`: also with those of the specification, which updates of the status do not change.
pub(crate) fn validate(object: &Value, scale: &Scale, of_spec: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if of_spec {
        errors.extend(check_replicas(object, &scale.spec_replicas));
    }
    errors.extend(check_replicas(object, &scale.status_replicas));
    if let Some(path) = &scale.selector
        && let Err(why) = find(object, path, "string", Value::is_string)
    {
        errors.push(Error::invalid(&shown(path), json!(""), why));
    }
    errors
}

fn check_replicas(object: &Value, path: &str) -> Option<Error> {
    let is_integer = |value: &Value| value.is_i64() || value.is_u64();
    let replicas = match find(object, path, "int64", is_integer) {
        Err(why) => return Some(Error::invalid(&shown(path), json!(0), why)),
        Ok(found) => found.and_then(Value::as_i64).unwrap_or(0),
    };
    let why = match replicas {
        ..0 => "should be a non-negative integer".to_owned(),
        _ if replicas > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        _ => return None,
    };
    Some(Error::invalid(&shown(path), json!(replicas), why))
}

/// The path as definitions write it, with a dot in front.
fn shown(path: &str) -> Path {
    Path::new(&format!(".{}", path.trim_start_matches('.')))
}

/// The value at a path.
///
/// # Errors
/// Tells, as Go's accessors do, where something of another type is.
fn find<'a>(
    object: &'a Value,
    path: &str,
    expected: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let path = path.trim_start_matches('.');
    let unfit = |end: usize, value: &Value, expected: &str| {
        let (at, found) = (path.get(..end).unwrap_or(path), go_type(value));
        let value = go_text(value);
        Err(format!(
            ".{at} accessor error: {value} is of the type {found}, expected {expected}"
        ))
    };
    let mut current = object;
    let mut end = 0;
    for name in path.split('.') {
        end += name.len() + usize::from(end > 0);
        match current {
            Value::Object(members) => match members.get(name) {
                Some(next) => current = next,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return unfit(end, other, "map[string]interface{}"),
        }
    }
    match fits(current) {
        true => Ok(Some(current)),
        false => unfit(path.len(), current, expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_small_and_whole_and_selectors_are_texts() {
        let scale = Scale {
            spec_replicas: "spec.replicas".into(),
            status_replicas: "status.replicas".into(),
            selector: Some("status.selector".into()),
            is_missed: false,
            is_judged: false,
        };
        let found = |object: Value, of_spec: bool| -> Vec<String> {
            let errors = validate(&object, &scale, of_spec);
            errors.iter().map(ToString::to_string).collect()
        };
        assert_eq!(found(json!({}), true), [""; 0]);
        assert_eq!(
            found(
                json!({"spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=b"}}),
                true
            ),
            [""; 0]
        );
        assert_eq!(
            found(
                json!({"spec": {"replicas": -1}, "status": {"replicas": 1_i64 << 31}}),
                true
            ),
            [
                ".spec.replicas: Invalid value: -1: should be a non-negative integer",
                ".status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ]
        );
        assert_eq!(found(json!({"spec": {"replicas": -1}}), false), [""; 0]);
        assert_eq!(
            found(json!({"spec": {"replicas": "x"}, "status": {"selector": 5}}), true),
            [
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, expected string",
            ]
        );
        assert_eq!(
            found(json!({"spec": "x"}), true),
            [
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected map[string]interface{}"
            ]
        );
    }
}
