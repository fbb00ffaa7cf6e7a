//! Strategic merge patch: a merge patch that merges lists by the merge keys of the schema and knows directives.
//!
//! `$patch: replace|delete|merge` in maps and list elements, `$retainKeys`, `$setElementOrder/<field>` and
//! `$deleteFromPrimitiveList/<field>`. Where the schema is silent, maps are merged and lists replaced.

use gardener_apimachinery::go_json::type_of;
use gardener_schema::Schema;
use gardener_schema::json::go_type;
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
    let nothing = Object::new();
    let patch = match patch {
        Value::Object(patch) => patch,
        // Go makes a map of it that has nothing
        Value::Null => &nothing,
        other => {
            return Err(PatchError::Format(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                type_of(other)
            )));
        }
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
        // what replaces or is new is taken as it is: directives deeper in it become fields that nobody knows
        Some(Value::String(directive)) if directive == "replace" => {
            let mut patch = patch.clone();
            patch.remove(PATCH);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Object::new()),
        Some(other) => return Err(unknown_directive(other, patch)),
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut original, patch, keys)?;
    }
    let mut ordered = Vec::new();
    for (name, order) in patch {
        let Some(field) = name.strip_prefix(ELEMENT_ORDER) else {
            continue;
        };
        let order = list_of(order)?;
        let live = original.get(field).map(list_of).transpose()?;
        let change = patch.get(field).map(list_of).transpose()?;
        let key = field_of(schema, field).and_then(Schema::patch_merge_key);
        check_order(change.unwrap_or_default(), order, key)?;
        let list = match (live, change) {
            (Some(live), Some(change)) => merge_list(live, change, field_of(schema, field))?,
            (Some(live), None) => live.to_vec(),
            (None, Some(change)) => elements_without_directives(change),
            (None, None) => continue,
        };
        let list = in_order(list, order, live.unwrap_or_default(), key);
        original.insert(field.to_owned(), Value::Array(list));
        ordered.push(field);
    }
    for (name, change) in patch {
        if name == RETAIN_KEYS || name.starts_with(ELEMENT_ORDER) || ordered.contains(&name.as_str()) {
            continue;
        }
        if let Some(field) = name.strip_prefix(DELETE_FROM_LIST) {
            match (original.get_mut(field), change) {
                (_, Value::Null) => drop(original.remove(field)),
                (Some(Value::Array(list)), Value::Array(gone)) => {
                    check_types(list, gone)?;
                    list.retain(|value| !gone.contains(value));
                }
                // what is no list has nothing to delete from
                _ => {}
            }
            continue;
        }
        if change.is_null() {
            original.remove(name);
            continue;
        }
        let field = field_of(schema, name);
        let is_merged = matches!(
            (original.get(name), change),
            (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_))
        );
        if is_merged && schema.is_some_and(is_raw) {
            return Err(PatchError::Unstructured(name.clone()));
        }
        let merged = match (original.remove(name), change) {
            (Some(Value::Object(live)), Value::Object(change)) => {
                Some(if field.is_some_and(|field| field.has_patch_strategy("replace")) {
                    Value::Object(change.clone())
                } else {
                    Value::Object(merge_map(live, change, field)?)
                })
            }
            (Some(Value::Array(live)), Value::Array(change)) => Some(Value::Array(merge_list(&live, change, field)?)),
            (_, change) => without_directives(change),
        };
        if let Some(merged) = merged {
            original.insert(name.clone(), merged);
        }
    }
    Ok(original)
}

/// Whether Go keeps what the schema describes as it came, and so knows no fields of it.
fn is_raw(schema: &Schema) -> bool {
    let name = schema.definition_name();
    name.is_some_and(|name| name.ends_with(".pkg.runtime.RawExtension"))
}

fn field_of<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.child(name))
}

fn unknown_directive(directive: &Value, patch: &Object) -> PatchError {
    let patch = go_map(&Value::Object(patch.clone()));
    PatchError::Directive(format!("unknown patch type: {} in map: {patch}", go_map(directive)))
}

/// A list, where nothing else may be.
fn list_of(value: &Value) -> Result<&[Value], PatchError> {
    let found = match value {
        Value::Array(elements) => return Ok(elements),
        Value::Null => "%!s(<nil>)",
        other => go_type(other),
    };
    Err(PatchError::Directive(format!(
        "expected a []interface {{}}, but received a {found}"
    )))
}

/// Elements that a patch sets must be in the order that it names, without those that it deletes.
fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() || change.is_empty() {
        return Ok(());
    }
    let mut left = change.iter().filter(|value| value.get(PATCH).is_none()).peekable();
    for named in order {
        let Some(next) = left.peek() else { return Ok(()) };
        let same = match key {
            Some(key) => key_of(next, key)? == key_of(named, key)?,
            None => *next == named,
        };
        if same {
            left.next();
        }
    }
    match left.peek() {
        None => Ok(()),
        Some(_) => Err(PatchError::Directive(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            go_map(&change.to_vec().into()),
            go_map(&order.to_vec().into())
        ))),
    }
}

/// `$retainKeys` names all keys that may be left; the patch may set no other.
fn retain_keys(original: &mut Object, patch: &Object, keys: &Value) -> Result<(), PatchError> {
    let malformed = || PatchError::Format("invalid patch format of retainKeys".into());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let sets = |(name, value): &(&String, &Value)| !name.starts_with('$') && !value.is_null();
    if patch.iter().filter(sets).any(|(name, _)| !kept(name)) {
        return Err(malformed());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

fn key_of(value: &Value, key: &str) -> Result<Value, PatchError> {
    value.get(key).cloned().ok_or_else(|| {
        PatchError::Directive(format!(
            "map: {} does not contain declared merge key: {key}",
            go_map(value)
        ))
    })
}

/// Elements that are to be merged, or deleted, must be of one type, which is no list.
fn check_types(live: &[Value], change: &[Value]) -> Result<(), PatchError> {
    let mut types = live.iter().chain(change).map(go_type);
    let Some(first) = types.next() else { return Ok(()) };
    if first == go_type(&Value::Array(Vec::new())) {
        return Err(PatchError::DoesNotApply("lists of lists are not supported".into()));
    }
    if types.all(|own| own == first) {
        return Ok(());
    }
    let shown = go_map(&Value::from(vec![Value::from(live), Value::from(change)]));
    Err(PatchError::Directive(format!(
        "list element types are not identical: {shown}"
    )))
}

/// Merges a list by the field's strategy; the patch's elements come in its order.
fn merge_list(live: &[Value], change: &[Value], field: Option<&Schema>) -> Result<Vec<Value>, PatchError> {
    if !field.is_some_and(|field| field.has_patch_strategy("merge")) {
        return Ok(change.to_vec());
    }
    check_types(live, change)?;
    if !live.iter().chain(change).next().is_some_and(Value::is_object) {
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
    let mut merged = live.to_vec();
    let mut changes = Vec::with_capacity(change.len());
    let mut replace = false;
    for value in change {
        let directive = value.get(PATCH);
        match directive.map(|directive| directive.as_str().unwrap_or_default()) {
            None => changes.push(value),
            Some("delete") => {
                let gone = key_of(value, key)?;
                merged.retain(|value| value.get(key) != Some(&gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::Directive(
                    "merging lists cannot yet be specified in the patch".into(),
                ));
            }
            Some(_) => {
                let (directive, patch) = (directive.cloned().unwrap_or_default(), value.as_object().cloned());
                return Err(unknown_directive(&directive, &patch.unwrap_or_default()));
            }
        }
    }
    if replace {
        return Ok(changes.into_iter().cloned().collect());
    }
    let items = field.and_then(Schema::items);
    for value in &changes {
        let wanted = key_of(value, key)?;
        match (merged.iter_mut().find(|known| known.get(key) == Some(&wanted)), value) {
            (Some(Value::Object(known)), Value::Object(change)) => {
                *known = merge_map(std::mem::take(known), change, items)?;
            }
            _ => merged.push((*value).clone()),
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

/// A value of a patch where the original has none: without nulls, and without the maps that `$patch` is in.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let members = members.filter_map(|(name, value)| Some((name.clone(), without_directives(value)?)));
            Some(Value::Object(members.collect()))
        }
        Value::Array(elements) => Some(Value::Array(elements_without_directives(elements))),
        other => Some(other.clone()),
    }
}

fn elements_without_directives(elements: &[Value]) -> Vec<Value> {
    elements.iter().filter_map(without_directives).collect()
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
                "nulls of new parts are dropped; of directives only `$patch` is known there",
                json!({}),
                json!({"spec": {"paused": null, "replicas": 1, "strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
                json!({"spec": {"replicas": 1, "strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
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
            (json!([]), "json: cannot unmarshal array"),
            (
                json!({"spec": {"$patch": "twist"}}),
                "unknown patch type: twist in map: map[$patch:twist]",
            ),
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
                "invalid patch format of retainKeys",
            ),
            (
                pod(json!({"$setElementOrder/containers": 1})),
                "expected a []interface {}, but received a int64",
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
            let _ = crate::JsonPatch::of(&patch).and_then(|patch| patch.apply(&original));
        }
    }
}
