//! Admission plugin that gives pods what their runtime class says: its overhead, and where its nodes are.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value};

use super::checks::{list, map, text};
use crate::definition::{Admission, Attributes};
use crate::meta;

/// Gives pods overhead, node selector and tolerations of their runtime class, which must exist.
pub struct RuntimeClass;

/// What is wrong with a name that is asked for by a client.
pub(super) fn unaskable(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("resource name may not be empty".to_owned());
    }
    let wrong = meta::path_segment(name);
    (!wrong.is_empty()).then(|| format!("invalid resource name {}: [{}]", go_quote(name), wrong.join(" ")))
}

/// Whether one toleration tolerates all that another one does.
fn includes(own: &Value, other: &Value) -> bool {
    if own == other {
        return true;
    }
    let exists = text(own, "operator") == "Exists";
    let is_any_key = text(own, "key").is_empty() && exists;
    let (effect, seconds) = (text(own, "effect"), "tolerationSeconds");
    if text(own, "key") != text(other, "key") && !is_any_key || !effect.is_empty() && effect != text(other, "effect") {
        return false;
    }
    let longest = own
        .get(seconds)
        .and_then(Value::as_i64)
        .filter(|_| effect == "NoExecute");
    if let Some(longest) = longest
        && other
            .get(seconds)
            .and_then(Value::as_i64)
            .is_none_or(|own| own > longest)
    {
        return false;
    }
    match text(own, "operator") {
        "" | "Equal" => text(other, "operator") == "Equal" && text(own, "value") == text(other, "value"),
        _ => exists,
    }
}

/// Tolerations of both lists without those that others include.
fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut kept: Vec<Value> = Vec::new();
    for (index, own) in all.iter().enumerate() {
        let is_in_kept = kept.iter().any(|other| includes(other, own));
        let is_in_later = all
            .iter()
            .skip(index + 1)
            .any(|other| other != own && includes(other, own));
        if !is_in_kept && !is_in_later {
            kept.push((*own).clone());
        }
    }
    kept
}

/// Brings a pod's spec into agreement with its class; what stands against that.
fn apply(spec: &mut Map<String, Value>, class: &Value) -> Result<(), String> {
    if let Some(overhead) = class.get("overhead") {
        let fixed = overhead.get("podFixed").and_then(Value::as_object);
        let fixed = fixed.filter(|fixed| !fixed.is_empty());
        let own = spec.get("overhead").and_then(Value::as_object);
        if own.is_some_and(|own| !own.is_empty() && Some(own) != fixed) {
            return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned());
        }
        match fixed {
            Some(fixed) => spec.insert("overhead".to_owned(), fixed.clone().into()),
            None => spec.remove("overhead"),
        };
    }
    let Some(scheduling) = class.get("scheduling") else {
        return Ok(());
    };
    let mut selector = match spec.get("nodeSelector") {
        Some(Value::Object(own)) => own.clone(),
        _ => Map::new(),
    };
    for (key, value) in map(scheduling, "nodeSelector") {
        if let Some(own) = selector.get(key).filter(|own| *own != value) {
            let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                shown(value),
                shown(own)
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    if !selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), selector.into());
    }
    let own = spec
        .get("tolerations")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let tolerations = merged(&own, list(scheduling, "tolerations"));
    if !tolerations.is_empty() {
        spec.insert("tolerations".to_owned(), tolerations.into());
    }
    Ok(())
}

#[async_trait]
impl Admission for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.creates("", "pods") {
            return Ok(());
        }
        let name = attributes.object.as_ref().and_then(|pod| {
            let name = pod.at("/spec/runtimeClassName")?.as_str()?;
            Some(name.to_owned())
        });
        let Some(name) = name else { return Ok(()) };
        let found = attributes
            .context
            .lister
            .get("node.k8s.io", "runtimeclasses", "", &name);
        let Some(class) = found else {
            if let Some(wrong) = unaskable(&name) {
                return Err(ApiError::unclassified(wrong));
            }
            let why = format!("pod rejected: RuntimeClass {} not found", go_quote(&name));
            return Err(attributes.forbidden(&why));
        };
        let spec = attributes.object.as_mut().and_then(|pod| pod.get_mut("spec"));
        match spec.and_then(Value::as_object_mut).map(|spec| apply(spec, &class)) {
            Some(Err(why)) => Err(attributes.forbidden(&why)),
            _ => Ok(()),
        }
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.creates("", "pods") {
            return Ok(());
        }
        let Some(spec) = attributes.object.as_ref().and_then(|pod| pod.get("spec")) else {
            return Ok(());
        };
        let class = match text(spec, "runtimeClassName") {
            "" => None,
            name => attributes.context.lister.get("node.k8s.io", "runtimeclasses", "", name),
        };
        let own = spec.get("overhead");
        match class.as_ref().and_then(|class| class.get("overhead")) {
            Some(overhead) => {
                let none = Value::Object(Map::new());
                let fixed = overhead.get("podFixed").unwrap_or(&none);
                if fixed == own.unwrap_or(&none) {
                    return Ok(());
                }
                Err(attributes.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
            }
            None if own.is_some() => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(attributes.forbidden(why))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_get_what_their_class_says() {
        let class = json!({
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
        });
        for (spec, expected) in [
            (
                json!({}),
                Ok(
                    json!({"overhead": {"cpu": "1"}, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}),
                ),
            ),
            (
                json!({"nodeSelector": {"c": "d"}, "tolerations": [{"key": "k", "operator": "Equal", "value": "v"}, {"key": "x", "operator": "Exists"}]}),
                Ok(
                    json!({"overhead": {"cpu": "1"}, "nodeSelector": {"a": "b", "c": "d"}, "tolerations": [{"key": "x", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]}),
                ),
            ),
            (
                json!({"nodeSelector": {"a": "c"}}),
                Err("conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c".to_owned()),
            ),
            (
                json!({"overhead": {"cpu": "2"}}),
                Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned()),
            ),
        ] {
            let mut own = spec.as_object().cloned().unwrap_or_default();
            let found = apply(&mut own, &class).map(|()| Value::Object(own));
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn what_includes_what() {
        let all = json!({"operator": "Exists"});
        let some = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        for (own, other, expected) in [
            (&all, json!({"key": "k", "operator": "Equal", "value": "v"}), true),
            (
                &some,
                json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (
                &some,
                json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}),
                true,
            ),
            (
                &some,
                json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}),
                false,
            ),
        ] {
            assert_eq!(includes(own, &other), expected, "{own} {other}");
        }
    }
}
