//! ObjectMeta on JSON values: names, labels, times, owner references, and the rules for changing them.

use std::collections::BTreeMap;

use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::definition::Strategy;
use crate::options;

/// A text inside an object by JSON pointer; empty when absent.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A list inside an object by JSON pointer; empty when absent.
pub fn elements<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
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

/// Puts a condition in the place of the one of its type, or behind the others. What it was before keeps its time.
pub fn set_condition(object: &mut Value, condition: &Value) {
    let Some(members) = object.as_object_mut() else { return };
    let status = members.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let Some(status) = status.as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let own = conditions
        .iter_mut()
        .find(|own| own.get("type") == condition.get("type"));
    let Some(own) = own else {
        conditions.push(condition.clone());
        return;
    };
    let since = own.get("lastTransitionTime").cloned();
    let is_same = own.get("status") == condition.get("status");
    *own = condition.clone();
    if let (true, Some(since), Some(members)) = (is_same, since, own.as_object_mut()) {
        members.insert("lastTransitionTime".to_owned(), since);
    }
}

/// Whether deletion was asked for.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> Vec<String> {
    object
        .at("/metadata/finalizers")
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

/// Takes the managedFields out of an object.
pub fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
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

/// Finds what is wrong with the metadata of an object of a kind.
pub fn validate_of_kind(object: &Value, strategy: &dyn Strategy) -> ErrorList {
    let check_name = |name: &str| strategy.validate_name(object, name);
    validate_with(object, check_name, strategy.validates_name_prefix())
}

/// Finds what is wrong with an object's metadata.
pub fn validate(object: &Value, check_name: impl Fn(&str) -> Vec<String>) -> ErrorList {
    validate_with(object, check_name, true)
}

fn validate_with(object: &Value, check_name: impl Fn(&str) -> Vec<String>, checks_prefix: bool) -> ErrorList {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    let name = name(object);
    let generate_name = text(object, "/metadata/generateName");
    if checks_prefix && !generate_name.is_empty() {
        let at = path.child("generateName");
        let wrong = check_name(&without_trailing_dash(generate_name)).into_iter();
        errors.extend(wrong.map(|error| Error::invalid(&at, generate_name, error)));
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "name or generateName is required"));
    } else {
        let at = path.child("name");
        let wrong = check_name(name).into_iter();
        errors.extend(wrong.map(|error| Error::invalid(&at, name, error)));
    }
    let generation = object.at("/metadata/generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child("generation"), generation, why));
    }
    validate_maps(object, &path, &mut errors);
    errors.extend(validate_owners(object, &path));
    errors.extend(gardener_apimachinery::meta::validate_finalizers(
        &finalizers(object),
        &path.child("finalizers"),
    ));
    validate_managed_fields(object, &path, &mut errors);
    errors
}

/// A prefix of names may end in a dash: something follows.
fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => {
            let mut stem = stem.to_owned();
            stem.pop();
            stem + "a"
        }
        _ => prefix.to_owned(),
    }
}

fn validate_maps(object: &Value, path: &Path, errors: &mut ErrorList) {
    let members = |key: &str| object.get("metadata")?.get(key)?.as_object();
    let at = path.child("labels");
    for (key, value) in members("labels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let wrong = qualified_name(key).into_iter();
        errors.extend(wrong.map(|error| Error::invalid(&at, key.as_str(), error)));
        errors.extend(
            label_value(value)
                .into_iter()
                .map(|error| Error::invalid(&at, value, error)),
        );
    }
    let at = path.child("annotations");
    let mut total = 0;
    for (key, value) in members("annotations").into_iter().flatten() {
        let wrong = qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|error| Error::invalid(&at, key.as_str(), error)));
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > ANNOTATIONS_LIMIT {
        errors.push(Error::too_long(&at, ANNOTATIONS_LIMIT));
    }
}

fn validate_owners(object: &Value, path: &Path) -> ErrorList {
    let owners: Vec<OwnerReference> = elements(object, "/metadata/ownerReferences")
        .iter()
        .filter_map(|owner| OwnerReference::deserialize(owner).ok())
        .collect();
    gardener_apimachinery::meta::validate_owners(&owners, &path.child("ownerReferences"))
}

fn validate_managed_fields(object: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("managedFields");
    for (index, entry) in elements(object, "/metadata/managedFields").iter().enumerate() {
        // every object has some of these, and hardly one is ever wrong: where they stand is made up only then
        let at = |key: &str| at.index(index).child(key);
        let member = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = member("operation");
        if !matches!(operation, "Apply" | "Update") {
            let why = "must be `Apply` or `Update`";
            errors.push(Error::invalid(&at("operation"), operation, why));
        }
        let fields_type = member("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            let why = "must be `FieldsV1`";
            errors.push(Error::invalid(&at("fieldsType"), fields_type, why));
        }
        errors.extend(options::wrong_manager(member("manager"), || at("manager")));
        if member("subresource").len() > 256 {
            errors.push(Error::too_long(&at("subresource"), 256));
        }
    }
}

/// Finds what is wrong with a change of metadata. Fields that clients cannot change at all were already put back by the registry.
pub fn validate_update(object: &Value, old: &Value) -> ErrorList {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    if is_deleting(old) {
        let before = finalizers(old);
        let mut added: Vec<String> = finalizers(object)
            .into_iter()
            .filter(|finalizer| !before.contains(finalizer))
            .map(|finalizer| field::go_quote(&finalizer))
            .collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(Error::forbidden(&path.child("finalizers"), why));
        }
    }
    for key in [
        "name",
        "namespace",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        fn of<'o>(object: &'o Value, key: &str) -> Option<&'o Value> {
            object.get("metadata")?.get(key)
        }
        let new = of(object, key);
        if new != of(old, key) {
            let new = new.cloned().unwrap_or_default();
            errors.push(Error::invalid(&path.child(key), new, "field is immutable"));
        }
    }
    validate_maps(object, &path, &mut errors);
    errors.extend(validate_owners(object, &path));
    validate_managed_fields(object, &path, &mut errors);
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
        let new =
            json!({"metadata": {"name": "a", "finalizers": ["x/y"], "deletionTimestamp": "2020-01-01T00:00:00Z"}});
        assert_eq!(validate_update(&new, &old).len(), 1);
    }
}
