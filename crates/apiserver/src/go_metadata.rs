//! Metadata as Go's encoder writes it: its members in the order of the struct's fields. Refusals show it so.

use serde_json::{Map, Value};

const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

const ENTRY: [&str; 7] = [
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// An object's metadata as JSON.
pub(crate) fn text(metadata: &Map<String, Value>) -> String {
    in_order(metadata, &METADATA, member)
}

/// An object's metadata as a patch leaves them that changed them: sorted, but for what it left alone in the lists of structs.
pub(crate) fn patched_text(metadata: &Map<String, Value>, before: &Map<String, Value>) -> String {
    let keys: Vec<&str> = metadata.keys().map(String::as_str).collect();
    in_order(metadata, &keys, |key, value| match before.get(key) == Some(value) {
        true => member(key, value),
        false => value.to_string(),
    })
}

fn member(key: &str, value: &Value) -> String {
    match key {
        "managedFields" => list(value, &ENTRY),
        "ownerReferences" => list(value, &OWNER),
        _ => value.to_string(),
    }
}

/// Members in this order, each shown by a function; others are left out.
pub(crate) fn in_order(members: &Map<String, Value>, order: &[&str], shown: impl Fn(&str, &Value) -> String) -> String {
    let known = order.iter().filter_map(|key| members.get_key_value(*key));
    let parts: Vec<String> = known
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), shown(key, value)))
        .collect();
    format!("{{{}}}", parts.join(","))
}

fn list(elements: &Value, order: &[&str]) -> String {
    let Some(elements) = elements.as_array() else {
        return elements.to_string();
    };
    let element = |element: &Value| match element {
        Value::Object(members) => in_order(members, order, |_, value| value.to_string()),
        other => other.to_string(),
    };
    format!("[{}]", elements.iter().map(element).collect::<Vec<_>>().join(","))
}
