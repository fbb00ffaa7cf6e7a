//! Rows of autoscalers, which tell their metrics as the second version has them.

use std::borrow::Cow;

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, items, name, number};
use crate::kubernetes::autoscaling;
use crate::meta;

/// How many metrics a row tells; of the others it tells their number.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// A quantity as Go prints it behind a pointer.
fn quantity<'v>(values: &'v Value, key: &str) -> &'v str {
    values.get(key).and_then(Value::as_str).unwrap_or("<nil>")
}

fn percentage(values: &Value) -> Option<String> {
    let share = values.get("averageUtilization").and_then(Value::as_i64)?;
    Some(format!("{share}%"))
}

/// A metric that is compared with amounts: by the average if the target tells one.
fn amounts(target: &Value, current: Option<&Value>, only_average: bool) -> String {
    if only_average {
        let current = current.map_or(UNKNOWN, |current| quantity(current, "averageValue"));
        return format!("{current}/{}", quantity(target, "averageValue"));
    }
    if target.get("averageValue").is_some() {
        let current = current.filter(|current| current.get("averageValue").is_some());
        let current = current.map_or(UNKNOWN, |current| quantity(current, "averageValue"));
        return format!("{current}/{} (avg)", quantity(target, "averageValue"));
    }
    let current = current.map_or(UNKNOWN, |current| quantity(current, "value"));
    format!("{current}/{}", quantity(target, "value"))
}

/// A metric of a resource: an amount, or a share of what is asked for.
fn resource(source: &Value, target: &Value, current: Option<&Value>) -> String {
    let name = meta::text(source, "/name");
    if target.get("averageValue").is_some() {
        let current = current.map_or(UNKNOWN, |current| quantity(current, "averageValue"));
        return format!("{name}: {current}/{}", quantity(target, "averageValue"));
    }
    let current = current.and_then(percentage).unwrap_or_else(|| UNKNOWN.to_owned());
    let target = percentage(target).unwrap_or_else(|| "<auto>".to_owned());
    format!("{name}: {current}/{target}")
}

/// A metric and what was last measured of it: the status tells that at the same place.
fn metric(metric: &Value, status: Option<&Value>) -> String {
    let member = match meta::text(metric, "/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let none = Value::Null;
    let source = metric.get(member).unwrap_or(&none);
    let target = source.get("target").unwrap_or(&none);
    let measured = status.and_then(|status| status.get(member));
    let current = measured.map(|measured| measured.get("current").unwrap_or(&none));
    match member {
        "external" | "object" => amounts(target, current, false),
        "pods" => amounts(target, current, true),
        _ => resource(source, target, current),
    }
}

fn targets(autoscaler: &Value) -> String {
    let statuses: Vec<&Value> = items(autoscaler, "/status/currentMetrics").collect();
    let all: Vec<&Value> = items(autoscaler, "/spec/metrics").collect();
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let shown = all.iter().take(SHOWN).enumerate();
    let shown: Vec<String> = shown.map(|(at, own)| metric(own, statuses.get(at).copied())).collect();
    let shown = shown.join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

pub(in crate::kubernetes) fn horizontal_pod_autoscaler(now: Timestamp, autoscaler: &Value) -> Vec<Value> {
    let mut autoscaler = Cow::Borrowed(autoscaler);
    if meta::text(&autoscaler, "/apiVersion").ends_with("/v1") {
        autoscaling::to_second(autoscaler.to_mut());
    }
    let reference = format!(
        "{}/{}",
        meta::text(&autoscaler, "/spec/scaleTargetRef/kind"),
        meta::text(&autoscaler, "/spec/scaleTargetRef/name")
    );
    let minimum = autoscaler.at("/spec/minReplicas").and_then(Value::as_i64);
    vec![
        name(&autoscaler),
        reference.into(),
        targets(&autoscaler).into(),
        minimum
            .map_or_else(|| "<unset>".to_owned(), |count| count.to_string())
            .into(),
        json!(number(&autoscaler, "/spec/maxReplicas")),
        json!(number(&autoscaler, "/status/currentReplicas")),
        age(now, &autoscaler).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_is_told_with_what_was_measured() {
        let external =
            |target: Value| json!({"type": "External", "external": {"metric": {"name": "e"}, "target": target}});
        let current = |kind: &str, member: &str, current: Value| json!({"type": kind, member: {"current": current}});
        let share = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 60}}});
        let amount = json!({"type": "ContainerResource", "containerResource": {"name": "memory", "target": {"averageValue": "1Gi"}}});
        let cases = [
            (json!([]), json!([]), "<none>"),
            (json!([share]), json!(null), "cpu: <unknown>/60%"),
            (
                json!([share]),
                json!([current("Resource", "resource", json!({"averageUtilization": 7}))]),
                "cpu: 7%/60%",
            ),
            (
                json!([share]),
                json!([current("Pods", "pods", json!({"averageValue": "1"}))]),
                "cpu: <unknown>/60%",
            ),
            (
                json!([{"type": "Resource", "resource": {"name": "cpu", "target": {}}}]),
                json!([]),
                "cpu: <unknown>/<auto>",
            ),
            (
                json!([amount]),
                json!([current(
                    "ContainerResource",
                    "containerResource",
                    json!({"averageUtilization": 3})
                )]),
                "memory: <nil>/1Gi",
            ),
            (json!([external(json!({"value": "5"}))]), json!([]), "<unknown>/5"),
            (
                json!([external(json!({"value": "5"}))]),
                json!([current("External", "external", json!({"value": "3"}))]),
                "3/5",
            ),
            (
                json!([external(json!({"averageValue": "5"}))]),
                json!([current("External", "external", json!({"value": "3"}))]),
                "<unknown>/5 (avg)",
            ),
            (
                json!([{"type": "Object", "object": {"target": {"averageValue": "5"}}}]),
                json!([current("Object", "object", json!({"averageValue": "4"}))]),
                "4/5 (avg)",
            ),
            (
                json!([{"type": "Pods", "pods": {"target": {"averageValue": "1k"}}}]),
                json!([current("Pods", "pods", json!({"averageValue": "900"}))]),
                "900/1k",
            ),
            (
                json!([{"type": "Odd"}, share]),
                json!([]),
                "<unknown type>, cpu: <unknown>/60%",
            ),
            (
                json!([share, amount, share, share]),
                json!([]),
                "cpu: <unknown>/60%, memory: <unknown>/1Gi + 2 more...",
            ),
        ];
        for (metrics, statuses, expected) in cases {
            let autoscaler = json!({"spec": {"metrics": metrics}, "status": {"currentMetrics": statuses}});
            assert_eq!(targets(&autoscaler), expected, "{autoscaler}");
        }
    }

    #[test]
    fn the_first_version_tells_the_same() {
        let mut autoscaler = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
            ]},
            "status": {"currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "q"}, "current": {"averageValue": "2"}}}]},
        });
        let expected = horizontal_pod_autoscaler(Timestamp::UNIX_EPOCH, &autoscaler);
        autoscaling::to_first(&mut autoscaler);
        autoscaler["apiVersion"] = json!("autoscaling/v1");
        assert_eq!(horizontal_pod_autoscaler(Timestamp::UNIX_EPOCH, &autoscaler), expected);
        assert_eq!(expected[2], json!("2/1k"));
    }
}
