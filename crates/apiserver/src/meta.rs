//! ObjectMeta on JSON values: names, labels, times, owner references, and the rules for changing them.

use std::collections::BTreeMap;

use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

/// A text inside an object by JSON pointer; empty when absent.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A list inside an object by JSON pointer; empty when absent.
pub fn elements<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.resourceVersion`.
pub fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Whether deletion was asked for.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> Vec<String> {
    object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The metadata of an object, created when absent or of a wrong type.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(members) = object else {
        unreachable!("made an object above")
    };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let Value::Object(metadata) = metadata else {
        unreachable!("made an object above")
    };
    metadata
}

/// Sets or removes a member of the metadata.
pub fn set(object: &mut Value, key: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => {
            metadata.insert(key.to_owned(), value);
        }
        None => {
            metadata.remove(key);
        }
    }
}

/// A map of texts; members of other types are left out.
pub fn string_map(value: Option<&Value>) -> BTreeMap<String, String> {
    value
        .and_then(Value::as_object)
        .map(|map| {
            map.iter()
                .filter_map(|(k, v)| v.as_str().map(|v| (k.clone(), v.to_owned())))
                .collect()
        })
        .unwrap_or_default()
}

/// A time as `metav1.Time` writes it: whole seconds, UTC.
pub fn rfc3339(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// A time from its text.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// A time some seconds later.
pub fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

pub use gardener_apimachinery::names::{
    dns_label as dns1123_label, dns_subdomain as dns1123_subdomain, dns1035_label, label_value, path_segment,
    qualified_name,
};

const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Finds what is wrong with an object's metadata.
pub fn validate(object: &Value, check_name: impl Fn(&str) -> Vec<String>) -> ErrorList {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    let name = name(object);
    let generate_name = text(object, "/metadata/generateName");
    if !generate_name.is_empty() {
        let stem = generate_name
            .strip_suffix('-')
            .map_or_else(|| generate_name.to_owned(), |stem| format!("{stem}a"));
        for error in check_name(&stem) {
            errors.push(Error::invalid(&path.child("generateName"), generate_name, error));
        }
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "name or generateName is required"));
    } else {
        for error in check_name(name) {
            errors.push(Error::invalid(&path.child("name"), name, error));
        }
    }
    for (key, value) in string_map(object.pointer("/metadata/labels")) {
        for error in qualified_name(&key) {
            errors.push(Error::invalid(&path.child("labels"), key.as_str(), error));
        }
        for error in label_value(&value) {
            errors.push(Error::invalid(&path.child("labels"), value.as_str(), error));
        }
    }
    let mut total = 0;
    for (key, value) in string_map(object.pointer("/metadata/annotations")) {
        for error in qualified_name(&key.to_lowercase()) {
            errors.push(Error::invalid(&path.child("annotations"), key.as_str(), error));
        }
        total += key.len() + value.len();
    }
    if total > ANNOTATIONS_LIMIT {
        errors.push(Error::too_long(&path.child("annotations"), ANNOTATIONS_LIMIT));
    }
    for finalizer in &finalizers(object) {
        for error in qualified_name(finalizer) {
            errors.push(Error::invalid(&path.child("finalizers"), finalizer.as_str(), error));
        }
    }
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut controllers: Vec<&str> = Vec::new();
    for owner in &owners {
        let at = path.child("ownerReferences");
        let required = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (key, detail) in required {
            if owner.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                errors.push(Error::invalid(
                    &at.child(key),
                    owner.get(key).cloned().unwrap_or_else(|| json!("")),
                    detail,
                ));
            }
        }
        let of_event = owner.get("kind").and_then(Value::as_str) == Some("Event");
        if of_event && owner.get("apiVersion").and_then(Value::as_str) == Some("v1") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(Error::invalid(&at, owner.clone(), why));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            controllers.push(owner.get("kind").and_then(Value::as_str).unwrap_or_default());
        }
    }
    if controllers.len() > 1 {
        errors.push(Error::invalid(
            &path.child("ownerReferences"),
            Value::Array(owners.clone()),
            format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                controllers[0], controllers[1]
            ),
        ));
    }
    errors
}

/// Finds what is wrong with a change of metadata. Fields that clients cannot change at all were already put back by the registry.
pub fn validate_update(object: &Value, old: &Value) -> ErrorList {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    for key in ["name", "namespace", "uid"] {
        let pointer = format!("/metadata/{key}");
        if text(object, &pointer) != text(old, &pointer) {
            errors.push(Error::invalid(
                &path.child(key),
                text(object, &pointer),
                "field is immutable",
            ));
        }
    }
    if is_deleting(old) {
        let before = finalizers(old);
        let added: Vec<String> = finalizers(object)
            .into_iter()
            .filter(|finalizer| !before.contains(finalizer))
            .collect();
        if !added.is_empty() {
            errors.push(Error::forbidden(
                &path.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.iter().map(|finalizer| field::go_quote(finalizer)).collect::<Vec<_>>().join(", ")
                ),
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(dns1123_subdomain("a.b-c").is_empty());
        assert!(
            !dns1123_subdomain("A").is_empty()
                && !dns1123_subdomain("a..b").is_empty()
                && !dns1123_subdomain("").is_empty()
        );
        assert!(
            qualified_name("example.com/My_Name").is_empty()
                && !qualified_name("/x").is_empty()
                && !qualified_name("a/b/c").is_empty()
        );
        assert!(!dns1035_label("1a").is_empty());
        assert!(path_segment("system:node").is_empty() && !path_segment("a/b").is_empty());
    }

    #[test]
    fn metadata_is_checked() {
        let bad = json!({"metadata": {"name": "A", "labels": {"a b": "-"}, "finalizers": ["gardener", "x y"]}});
        let fields: Vec<String> = validate(&bad, dns1123_subdomain)
            .iter()
            .map(|e| e.path.to_string())
            .collect();
        assert_eq!(
            fields,
            [
                "metadata.name",
                "metadata.labels",
                "metadata.labels",
                "metadata.finalizers"
            ]
        );
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z"}});
        let new = json!({"metadata": {"name": "a", "finalizers": ["x/y"]}});
        assert_eq!(validate_update(&new, &old).len(), 1);
    }
}
