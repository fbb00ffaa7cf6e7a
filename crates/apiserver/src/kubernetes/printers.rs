//! Rows of `kubectl get` for Kubernetes' kinds, one function per kind, by group. Columns are recorded; cells are made here.

pub(super) mod apps;
pub(super) mod autoscaling;
pub(super) mod core;
pub(super) mod extensions;
pub(super) mod networking;
pub(super) mod rbac;
pub(super) mod storage;

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::meta;
pub(super) use crate::table::{age, since};

/// The name of an object, as first cell.
pub(super) fn name(object: &Value) -> Value {
    meta::name(object).into()
}

/// A text, or a placeholder for the empty one.
pub(super) fn or<'a>(text: &'a str, placeholder: &'a str) -> &'a str {
    if text.is_empty() { placeholder } else { text }
}

/// A number; 0 when absent.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.at(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// A list's elements.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.at(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Texts joined by commas, or `<none>`.
pub(super) fn joined<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let list: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
    if list.is_empty() {
        "<none>".into()
    } else {
        list.join(",")
    }
}

/// Labels as `a=b,c=d`, or `<none>`.
pub(super) fn labels(value: Option<&Value>) -> String {
    joined(
        meta::string_map(value)
            .into_iter()
            .map(|(key, value)| format!("{key}={value}")),
    )
}

/// A selector object as text, or `<none>`.
pub(super) fn selector(value: Option<&Value>) -> String {
    let Some(value) = value else { return "<none>".into() };
    let mut parts: Vec<String> = meta::string_map(value.get("matchLabels"))
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    for expression in items(value, "/matchExpressions") {
        let key = meta::text(expression, "/key");
        let values = joined(items(expression, "/values").filter_map(Value::as_str));
        parts.push(match meta::text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    joined(parts)
}

/// Names and images of a pod spec's containers.
pub(super) fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    let list: Vec<&Value> = items(object, pointer).collect();
    [
        list.iter()
            .map(|container| meta::text(container, "/name"))
            .collect::<Vec<_>>()
            .join(",")
            .into(),
        list.iter()
            .map(|container| meta::text(container, "/image"))
            .collect::<Vec<_>>()
            .join(",")
            .into(),
    ]
}

/// A number of members as text.
pub(super) fn count(object: &Value, pointer: &str) -> Value {
    let count = match object.at(pointer) {
        Some(Value::Array(list)) => list.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    };
    json!(count)
}

/// Creation time as it is, for columns of type `date`.
pub(super) fn created(object: &Value) -> Value {
    meta::text(object, "/metadata/creationTimestamp").into()
}

/// Name and age, for kinds that show no more.
pub(super) fn name_and_age(now: Timestamp, object: &Value) -> Vec<Value> {
    vec![name(object), age(now, object).into()]
}
