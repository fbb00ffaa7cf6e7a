//! Strategic merge patch: a merge patch that merges lists by the merge keys of the schema and knows directives.
//!
//! `$patch: replace|delete|merge` in maps and list elements, `$retainKeys`, `$setElementOrder/<field>` and
//! `$deleteFromPrimitiveList/<field>`. Where the schema is silent, maps are merged and lists replaced.

use gardener_schema::Schema;
use gardener_schema::json::type_of;
use serde_json::{Map, Value};

use crate::patch::PatchError;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in kind.
///
/// # Errors
/// When the patch is no object or uses a directive wrongly.
pub fn strategic(original: &Value, patch: &Value, schema: &Schema) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            type_of(patch)
        )));
    };
    let original = match original {
        Value::Object(members) => members.clone(),
        _ => Object::new(),
    };
    merge_map(original, patch, Some(schema)).map(Value::Object)
}

fn merge_map(mut original: Object, patch: &Object, schema: Option<&Schema>) -> Result<Object, PatchError> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            let mut patch = patch.clone();
            patch.remove(PATCH);
            return Ok(without_directives(&patch));
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Object::new()),
        Some(Value::String(directive)) if directive == "merge" => {}
        Some(other) => {
            return Err(PatchError::DoesNotApply(format!(
                "unknown patch type {other} in {PATCH}"
            )));
        }
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut original, patch, keys)?;
    }
    let mut ordered = Vec::new();
    for (name, order) in patch {
        let Some(field) = name.strip_prefix(ELEMENT_ORDER) else {
            continue;
        };
        let Value::Array(order) = order else {
            return Err(PatchError::Directive(
                "invalid patch format of setElementOrder list".into(),
            ));
        };
        let list = match (original.get(field), patch.get(field)) {
            (Some(Value::Array(live)), Some(Value::Array(change))) => {
                merge_list(live, change, field_of(schema, field))?
            }
            (Some(Value::Array(live)), None) => live.clone(),
            (None, Some(Value::Array(change))) => elements_without_directives(change),
            _ => continue,
        };
        let live = original
            .get(field)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let key = field_of(schema, field).and_then(Schema::patch_merge_key);
        original.insert(field.to_owned(), Value::Array(in_order(list, order, &live, key)));
        ordered.push(field);
    }
    for (name, change) in patch {
        if name == PATCH || name == RETAIN_KEYS || name.starts_with(ELEMENT_ORDER) || ordered.contains(&name.as_str()) {
            continue;
        }
        if let Some(field) = name.strip_prefix(DELETE_FROM_LIST) {
            let Value::Array(gone) = change else {
                return Err(PatchError::Directive("invalid patch format of primitive list".into()));
            };
            if let Some(Value::Array(list)) = original.get_mut(field) {
                list.retain(|value| !gone.contains(value));
            }
            continue;
        }
        if change.is_null() {
            original.remove(name);
            continue;
        }
        let field = field_of(schema, name);
        let merged = match (original.remove(name), change) {
            (Some(Value::Object(live)), Value::Object(change)) => {
                if field.is_some_and(|field| field.has_patch_strategy("replace")) {
                    Value::Object(without_directives(change))
                } else {
                    Value::Object(merge_map(live, change, field)?)
                }
            }
            (Some(Value::Array(live)), Value::Array(change)) => Value::Array(merge_list(&live, change, field)?),
            (_, change) => cleaned(change),
        };
        original.insert(name.clone(), merged);
    }
    Ok(original)
}

fn field_of<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.child(name))
}

/// `$retainKeys` names all keys that may be left; the patch may set no other.
fn retain_keys(original: &mut Object, patch: &Object, keys: &Value) -> Result<(), PatchError> {
    let Some(keys) = keys.as_array() else {
        return Err(PatchError::Directive("invalid patch format of retainKeys".into()));
    };
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    for (name, value) in patch {
        let sets = !name.starts_with('$') && !value.is_null();
        if sets && !kept(name) {
            return Err(PatchError::DoesNotApply(
                "patch content doesn't match retainKeys list".into(),
            ));
        }
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Merges a list by the field's strategy; the patch's elements come in its order.
fn merge_list(live: &[Value], change: &[Value], field: Option<&Schema>) -> Result<Vec<Value>, PatchError> {
    if !field.is_some_and(|field| field.has_patch_strategy("merge")) {
        return Ok(elements_without_directives(change));
    }
    let of_objects = live.iter().chain(change).next().is_some_and(Value::is_object);
    if live
        .iter()
        .chain(change)
        .any(|value| value.is_object() != of_objects || value.is_array())
    {
        return Err(PatchError::DoesNotApply("list element types are not identical".into()));
    }
    if !of_objects {
        let mut merged = Vec::with_capacity(live.len() + change.len());
        for value in live.iter().chain(change) {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return Ok(in_order(merged, change, live, None));
    }
    let Some(key) = field.and_then(Schema::patch_merge_key) else {
        return Err(PatchError::Directive("cannot merge lists without merge key".into()));
    };
    let key_of = |value: &Value| {
        value.get(key).cloned().ok_or_else(|| {
            PatchError::Directive(format!(
                "map: {} does not contain declared merge key: {key}",
                go_map(value)
            ))
        })
    };
    let mut merged = live.to_vec();
    let mut changes = Vec::with_capacity(change.len());
    let mut replace = false;
    for value in change {
        match value.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
            None => changes.push(value),
            Some("delete") => {
                let gone = key_of(value)?;
                merged.retain(|value| value.get(key) != Some(&gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::DoesNotApply(
                    "merging lists cannot yet be specified in the patch".into(),
                ));
            }
            Some(other) => {
                return Err(PatchError::DoesNotApply(format!(
                    "unknown patch type {other} in {PATCH}"
                )));
            }
        }
    }
    if replace {
        return Ok(changes.into_iter().map(cleaned).collect());
    }
    let items = field.and_then(Schema::items);
    for value in &changes {
        let wanted = key_of(value)?;
        match (merged.iter_mut().find(|known| known.get(key) == Some(&wanted)), value) {
            (Some(Value::Object(known)), Value::Object(change)) => {
                *known = merge_map(std::mem::take(known), change, items)?;
            }
            _ => merged.push(cleaned(value)),
        }
    }
    let order: Vec<Value> = changes.into_iter().cloned().collect();
    Ok(in_order(merged, &order, live, Some(key)))
}

/// Elements that `order` names come in that order; the others stay where they were relative to those that they stood
/// before in `live`.
fn in_order(list: Vec<Value>, order: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let same = |a: &Value, b: &Value| match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    };
    let position = |list: &[Value], value: &Value| list.iter().position(|other| same(other, value));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|value| position(order, value).is_some());
    named.sort_by_key(|value| position(order, value));
    others.sort_by_key(|value| position(live, value).unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (Some(other), Some(name)) => match (position(live, other), position(live, name)) {
                (Some(other), Some(name)) => other < name,
                _ => false,
            },
            (Some(_), None) => true,
            (None, _) => false,
        };
        match if other_first { others.next() } else { named.next() } {
            Some(value) => out.push(value),
            None => return out,
        }
    }
}

/// A value of a patch where the original has none: without directives and nulls.
fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_directives(members)),
        Value::Array(elements) => Value::Array(elements_without_directives(elements)),
        other => other.clone(),
    }
}

fn without_directives(members: &Object) -> Object {
    if members.get(PATCH).and_then(Value::as_str) == Some("delete") {
        return Object::new();
    }
    members
        .iter()
        .filter(|(name, value)| {
            let directive = *name == PATCH
                || *name == RETAIN_KEYS
                || name.starts_with(ELEMENT_ORDER)
                || name.starts_with(DELETE_FROM_LIST);
            !directive && !value.is_null()
        })
        .map(|(name, value)| (name.clone(), cleaned(value)))
        .collect()
}

/// List elements without directives; one that only says what to delete or to replace goes.
fn elements_without_directives(elements: &[Value]) -> Vec<Value> {
    elements
        .iter()
        .filter(|value| value.get(PATCH).is_none())
        .map(cleaned)
        .collect()
}

/// A value as Go prints one of its maps, which some messages show.
fn go_map(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_map(value)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(go_map).collect();
            format!("[{}]", elements.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn pod(spec: Value) -> Value {
        json!({"spec": {"template": {"spec": spec}}})
    }

    #[test]
    fn patches() {
        let schema = fixtures::deployment();
        for (name, original, patch, expected) in [
            (
                "a new container comes before those that the patch does not name",
                pod(json!({"containers": [{"name": "nginx", "image": "a"}]})),
                pod(json!({"containers": [{"name": "redis", "image": "b"}]})),
                pod(json!({"containers": [{"name": "redis", "image": "b"}, {"name": "nginx", "image": "a"}]})),
            ),
            (
                "containers are merged by name, lists without strategy replaced, nulls delete",
                pod(
                    json!({"containers": [{"name": "a", "image": "1", "command": ["x", "y"], "tty": true}, {"name": "b"}]}),
                ),
                pod(json!({"containers": [{"name": "a", "image": "2", "command": ["z"], "tty": null}]})),
                pod(json!({"containers": [{"name": "a", "image": "2", "command": ["z"]}, {"name": "b"}]})),
            ),
            (
                "an element is deleted",
                pod(json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]})),
                pod(json!({"containers": [{"name": "b", "$patch": "delete"}]})),
                pod(json!({"containers": [{"name": "a"}, {"name": "c"}]})),
            ),
            (
                "a list is replaced",
                pod(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
                pod(json!({"containers": [{"name": "c"}, {"$patch": "replace"}]})),
                pod(json!({"containers": [{"name": "c"}]})),
            ),
            (
                "a map is replaced",
                pod(json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}})),
                pod(json!({"securityContext": {"fsGroup": 3, "$patch": "replace"}})),
                pod(json!({"securityContext": {"fsGroup": 3}})),
            ),
            (
                "a map is emptied",
                pod(json!({"securityContext": {"runAsUser": 1}})),
                pod(json!({"securityContext": {"$patch": "delete"}})),
                pod(json!({"securityContext": {}})),
            ),
            (
                "keys are retained",
                json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
                json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
                json!({"spec": {"strategy": {"type": "Recreate"}}}),
            ),
            (
                "elements are ordered",
                pod(json!({"containers": [{"name": "a"}, {"name": "server"}, {"name": "b"}]})),
                pod(
                    json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
                    "containers": [{"name": "c", "image": "x"}]}),
                ),
                pod(
                    json!({"containers": [{"name": "server"}, {"name": "b"}, {"name": "c", "image": "x"}, {"name": "a"}]}),
                ),
            ),
            (
                "finalizers are a list of texts that are merged",
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"finalizers": ["b", "c"]}}),
                json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
            ),
            (
                "texts are deleted from a list",
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}}),
                json!({"metadata": {"finalizers": ["b"]}}),
            ),
            (
                "nulls of new parts are dropped",
                json!({}),
                json!({"spec": {"paused": null, "replicas": 1, "strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
                json!({"spec": {"replicas": 1, "strategy": {"type": "Recreate"}}}),
            ),
            (
                "ports are merged by container port only",
                pod(
                    json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "x"}]}]}),
                ),
                pod(json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "y"}]}]})),
                pod(
                    json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "y"}]}]}),
                ),
            ),
        ] {
            let found = strategic(&original, &patch, &schema).unwrap();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn wrong_directives_are_refused() {
        let schema = fixtures::deployment();
        let original = json!({"spec": {
            "strategy": {"type": "RollingUpdate"}, "template": {"spec": {"containers": [{"name": "a"}]}}}});
        for (patch, expected) in [
            (json!([]), "error decoding patch: json: cannot unmarshal array"),
            (json!({"spec": {"$patch": "twist"}}), "unknown patch type \"twist\""),
            (
                pod(json!({"containers": [{"image": "x"}]})),
                "does not contain declared merge key: name",
            ),
            (
                pod(json!({"containers": ["x"]})),
                "list element types are not identical",
            ),
            (
                json!({"spec": {"strategy": {"$retainKeys": ["a"], "type": "b"}}}),
                "patch content doesn't match retainKeys list",
            ),
            (
                pod(json!({"$setElementOrder/containers": 1})),
                "invalid patch format of setElementOrder list",
            ),
        ] {
            let why = strategic(&original, &patch, &schema).unwrap_err().to_string();
            assert!(why.contains(expected), "{patch}: {why}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_input_panics(original in fixtures::any_json(), patch in fixtures::any_json()) {
            let _ = strategic(&original, &patch, &fixtures::DEPLOYMENT);
            let _ = crate::merge_patch(&original, &patch);
            let _ = crate::json_patch(&original, &patch);
        }
    }
}
