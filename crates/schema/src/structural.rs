//! Whether a definition's schema is structural: every node of values says its type outside of `allOf`, `anyOf`, `oneOf` and `not`, which only
//! narrow what stands outside. Messages are apiextensions'.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_cel::regexp;
use serde_json::{Value, json};

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Finds what keeps a schema from being structural.
pub fn validate(schema: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    node(schema, Level::Root, path, &mut errors);
    values_complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_key(Error::to_string);
    errors
}

pub(crate) fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// A member that is a schema.
pub(crate) fn child<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).filter(|child| child.is_object())
}

/// Members of `properties`, by name.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

pub(crate) fn branches<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn has_additional(schema: &Value) -> bool {
    schema
        .get("additionalProperties")
        .is_some_and(|additional| !additional.is_null())
}

fn node(schema: &Value, level: Level, path: &Path, errors: &mut ErrorList) {
    let kind = text(schema, "type");
    if kind == "array" && child(schema, "items").is_none() {
        errors.push(Error::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = child(schema, "items") {
        node(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in properties(schema) {
        node(property, Level::Field, &path.child("properties").key(name), errors);
    }
    if has_additional(schema) {
        if level == Level::Root {
            errors.push(Error::forbidden(
                &path.child("additionalProperties"),
                "must not be used at the root",
            ));
        }
        if let Some(additional) = child(schema, "additionalProperties") {
            node(additional, Level::Field, &path.child("additionalProperties"), errors);
        }
    }
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if int_or_string {
        for (set, key) in [
            (preserves, "x-kubernetes-preserve-unknown-fields"),
            (embedded, "x-kubernetes-embedded-resource"),
        ] {
            if set {
                let why = "must be false if x-kubernetes-int-or-string is true";
                errors.push(Error::invalid(&path.child(key), true, why));
            }
        }
    }
    validations(
        schema,
        is_int_or_string(schema),
        first_is_int_or_string(schema),
        path,
        errors,
    );
    let type_path = path.child("type");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind.is_empty() {
            true => Error::required(&type_path, why),
            false => Error::invalid(&type_path, kind, why),
        });
    } else if kind.is_empty() && !int_or_string && !preserves {
        errors.push(Error::required(
            &type_path,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if embedded && has_additional(schema) {
        errors.push(Error::forbidden(
            &path.child("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(Error::invalid(&type_path, kind, "must be object at the root"));
    }
    metadata(schema, level, embedded, path, errors);
    if embedded && !preserves && properties(schema).next().is_none() {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(&path.child("properties"), why));
    }
}

/// What a schema may say of kind, version and metadata, which are known.
fn metadata(schema: &Value, level: Level, embedded: bool, path: &Path, errors: &mut ErrorList) {
    let checked = level == Level::Root || embedded;
    let property = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
    for name in ["kind", "apiVersion"] {
        if let Some(own) = property(name).filter(|own| checked && text(own, "type") != "string") {
            let path = path.child("properties").key(name).child("type");
            errors.push(Error::invalid(&path, text(own, "type"), "must be string"));
        }
    }
    let Some(own) = property("metadata") else { return };
    let path = path.child("properties").key("metadata");
    if checked && text(own, "type") != "object" {
        errors.push(Error::invalid(&path.child("type"), text(own, "type"), "must be object"));
    }
    if level == Level::Root {
        let names: Vec<&str> = properties(own).map(|(name, _)| name.as_str()).collect();
        let only_names = names.iter().all(|name| matches!(*name, "name" | "generateName"));
        let plain = |key: &String| matches!(key.as_str(), "type" | "properties" | "default");
        let says_more = own
            .as_object()
            .into_iter()
            .flatten()
            .any(|(key, value)| !plain(key) && !value.is_null());
        if !only_names || says_more {
            let why =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(Error::forbidden(&path, why));
        }
    }
}

/// The two types of an int-or-string, as alternatives.
pub(crate) fn int_or_string() -> Value {
    json!([{"type": "integer"}, {"type": "string"}])
}

/// Whether the alternatives of a schema are those of an int-or-string.
pub(crate) fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&int_or_string())
}

/// Whether the first of what a schema demands at once are the alternatives of an int-or-string.
pub(crate) fn first_is_int_or_string(schema: &Value) -> bool {
    branches(schema, "allOf").next().is_some_and(is_int_or_string)
}

/// Checks what narrows values at a node.
fn validations(schema: &Value, skip_any: bool, skip_first_any: bool, path: &Path, errors: &mut ErrorList) {
    if !skip_any {
        for (at, branch) in branches(schema, "anyOf").enumerate() {
            nested(branch, false, false, &path.child("anyOf").index(at), errors);
        }
    }
    for (at, branch) in branches(schema, "allOf").enumerate() {
        nested(
            branch,
            skip_first_any && at == 0,
            false,
            &path.child("allOf").index(at),
            errors,
        );
    }
    for (at, branch) in branches(schema, "oneOf").enumerate() {
        nested(branch, false, false, &path.child("oneOf").index(at), errors);
    }
    if let Some(not) = child(schema, "not") {
        nested(not, false, false, &path.child("not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = regexp::check(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(Error::invalid(&path.child("pattern"), pattern, why));
    }
}

/// Checks what stands in a branch: it may narrow values, and say nothing of what they are.
fn nested(schema: &Value, skip_any: bool, skip_first_any: bool, path: &Path, errors: &mut ErrorList) {
    validations(schema, skip_any, skip_first_any, path, errors);
    if let Some(items) = child(schema, "items") {
        nested(items, false, false, &path.child("items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, false, false, &path.child("properties").key(name), errors);
    }
    let set = |key: &str| match schema.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    for (key, why) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let defined = match key {
            "default" => schema.get(key).is_some_and(|value| !value.is_null()),
            "additionalProperties" => has_additional(schema),
            key => set(key),
        };
        if defined {
            errors.push(Error::forbidden(&path.child(key), why));
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        let path = path.child("properties").key("metadata");
        errors.push(Error::forbidden(&path, "must not be specified in a nested context"));
    }
}

/// Checks that what branches narrow is there outside of them.
fn values_complete(branching: &Value, own: Option<&Value>, at: &Path, from: &Path, errors: &mut ErrorList) {
    if let Some(not) = child(branching, "not") {
        complete(not, own, at, &from.child("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (place, branch) in branches(branching, key).enumerate() {
            complete(branch, own, at, &from.child(key).index(place), errors);
        }
    }
}

fn complete(branch: &Value, own: Option<&Value>, at: &Path, from: &Path, errors: &mut ErrorList) {
    let Some(own) = own else {
        let why = format!("because it is defined in {}", from.as_str());
        errors.push(Error::required(at, why));
        return;
    };
    values_complete(branch, Some(own), at, from, errors);
    if let Some(items) = child(branch, "items") {
        complete(
            items,
            child(own, "items"),
            &at.child("items"),
            &from.child("items"),
            errors,
        );
    }
    for (name, property) in properties(branch) {
        let counterpart = own.get("properties").and_then(|properties| properties.get(name));
        let (at, from) = (at.child("properties").key(name), from.child("properties").key(name));
        complete(property, counterpart, &at, &from, errors);
    }
}
