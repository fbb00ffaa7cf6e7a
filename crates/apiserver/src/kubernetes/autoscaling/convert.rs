//! The two versions of autoscalers: what the first has no fields for stands in annotations, as JSON in the order of Go's fields.

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use crate::kubernetes::checks::{amount, list, text};
use crate::meta;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// In these, upstream once kept tolerances.
const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
/// Annotations that only conversion writes, and that no object keeps.
pub(super) const MADE: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    SCALE_DOWN_TOLERANCE,
    SCALE_UP_TOLERANCE,
];
/// What upstream scales by when nothing is told: a share of the CPU that is asked for.
const CPU_SHARE: i64 = 80;

/// Members in the order of Go's fields, of all types that stand in annotations.
const ORDER: [&str; 39] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "kind",
    "name",
    "apiVersion",
    "target",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "targetValue",
    "targetAverageValue",
    "currentAverageUtilization",
    "currentValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

fn write(value: &Value, is_map: bool, out: &mut String) {
    match value {
        Value::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, false, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let place = |key: &str| ORDER.iter().position(|own| *own == key).unwrap_or(ORDER.len());
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            if !is_map {
                members.sort_by_key(|(key, _)| place(key));
            }
            out.push('{');
            for (at, (key, member)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(member, key == "matchLabels", out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn in_order(value: &Value) -> String {
    let mut out = String::new();
    write(value, false, &mut out);
    out
}

/// Members that are set, under other names; `(from, to)` with the former as JSON pointer.
fn picked(source: &Value, members: &[(&str, &str)]) -> Map<String, Value> {
    let found = members.iter().filter_map(|(from, to)| {
        let value = source.at(from).filter(|value| !value.is_null())?;
        Some(((*to).to_owned(), value.clone()))
    });
    found.collect()
}

/// Amounts that the first version cannot leave out.
fn with_zero(mut members: Map<String, Value>, key: &str) -> Value {
    members.entry(key).or_insert_with(|| json!("0"));
    Value::Object(members)
}

/// A metric of the first version, of a specification (`target`) or a status (`current`).
fn metric_to_first(metric: &Value, what: &str) -> Value {
    let is_status = what == "current";
    let prefixed = |name: &str| format!("{what}{name}");
    let (value, average, share) = (
        prefixed("Value"),
        prefixed("AverageValue"),
        prefixed("AverageUtilization"),
    );
    let from = |name: &str| format!("/{what}/{name}");
    let (from_value, from_average, from_share) = (from("value"), from("averageValue"), from("averageUtilization"));
    let name = ("/metric/name", "metricName");
    let mut out = picked(metric, &[("/type", "type")]);
    for key in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(source) = metric.get(key) else { continue };
        let converted = match key {
            "object" => {
                let members = [
                    ("/describedObject", "target"),
                    name,
                    (from_value.as_str(), value.as_str()),
                    ("/metric/selector", "selector"),
                    (from_average.as_str(), "averageValue"),
                ];
                with_zero(picked(source, &members), &value)
            }
            "pods" => {
                let members = [
                    name,
                    (from_average.as_str(), average.as_str()),
                    ("/metric/selector", "selector"),
                ];
                with_zero(picked(source, &members), &average)
            }
            "external" => {
                let members = [
                    name,
                    ("/metric/selector", "metricSelector"),
                    (from_value.as_str(), value.as_str()),
                    (from_average.as_str(), average.as_str()),
                ];
                let members = picked(source, &members);
                if is_status {
                    with_zero(members, &value)
                } else {
                    Value::Object(members)
                }
            }
            _ => {
                let members = [
                    ("/name", "name"),
                    (from_share.as_str(), share.as_str()),
                    (from_average.as_str(), average.as_str()),
                    ("/container", "container"),
                ];
                let members = picked(source, &members);
                if is_status {
                    with_zero(members, &average)
                } else {
                    Value::Object(members)
                }
            }
        };
        out.insert(key.to_owned(), converted);
    }
    Value::Object(out)
}

fn is_zero(value: Option<&Value>) -> bool {
    value.and_then(amount).is_none_or(|amount| amount.is_zero())
}

/// A metric of the second version.
fn metric_to_second(metric: &Value, what: &str) -> Value {
    let is_status = what == "current";
    let prefixed = |name: &str| format!("/{what}{name}");
    let (value, average, share) = (
        prefixed("Value"),
        prefixed("AverageValue"),
        prefixed("AverageUtilization"),
    );
    let identified = |source: &Value, selector: &str| {
        let mut metric = picked(source, &[("/metricName", "name"), (selector, "selector")]);
        metric.entry("name").or_insert_with(|| json!(""));
        Value::Object(metric)
    };
    let mut out = picked(metric, &[("/type", "type")]);
    for key in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(source) = metric.get(key) else { continue };
        let mut converted = picked(source, &[("/name", "name"), ("/container", "container")]);
        let average_at = if key == "object" {
            "/averageValue"
        } else {
            average.as_str()
        };
        let mut target = picked(
            source,
            &[
                (share.as_str(), "averageUtilization"),
                (average_at, "averageValue"),
                (value.as_str(), "value"),
            ],
        );
        let has = |target: &Map<String, Value>, key: &str| target.contains_key(key);
        let kind = match key {
            "pods" => "AverageValue",
            "object" if has(&target, "averageValue") => "AverageValue",
            "external" if !has(&target, "value") => "AverageValue",
            "object" | "external" => "Value",
            _ if has(&target, "averageUtilization") => "Utilization",
            _ => "AverageValue",
        };
        match key {
            "object" if is_status || kind == "Value" => {
                target.entry("value").or_insert_with(|| json!("0"));
            }
            "object" if is_zero(target.get("value")) => {
                target.remove("value");
            }
            "pods" => {
                target.entry("averageValue").or_insert_with(|| json!("0"));
            }
            "external" if is_status => {
                target.entry("value").or_insert_with(|| json!("0"));
            }
            "resource" | "containerResource" if is_status => {
                target.entry("averageValue").or_insert_with(|| json!("0"));
            }
            _ => {}
        }
        if !is_status {
            target.insert("type".to_owned(), kind.into());
        }
        match key {
            "object" => {
                let object = source
                    .get("target")
                    .cloned()
                    .unwrap_or_else(|| json!({"kind": "", "name": ""}));
                converted.insert("describedObject".to_owned(), object);
                converted.insert("metric".to_owned(), identified(source, "/selector"));
            }
            "pods" => {
                converted.insert("metric".to_owned(), identified(source, "/selector"));
            }
            "external" => {
                converted.insert("metric".to_owned(), identified(source, "/metricSelector"));
            }
            _ => {}
        }
        converted.insert(what.to_owned(), Value::Object(target));
        out.insert(key.to_owned(), Value::Object(converted));
    }
    Value::Object(out)
}

/// Rules of scaling as Go writes its internal type: all members, by the names of the fields.
fn behavior_to_first(behavior: &Value) -> Value {
    let rules = |key: &str| {
        let Some(rules) = behavior.get(key).filter(|rules| !rules.is_null()) else {
            return Value::Null;
        };
        let member = |key: &str| rules.get(key).cloned().unwrap_or(Value::Null);
        let policies: Vec<Value> = list(rules, "policies")
            .iter()
            .map(|policy| {
                let member = |key: &str| policy.get(key).cloned().unwrap_or(Value::Null);
                json!({"Type": member("type"), "Value": member("value"), "PeriodSeconds": member("periodSeconds")})
            })
            .collect();
        let policies = if rules.get("policies").is_some() {
            Value::from(policies)
        } else {
            Value::Null
        };
        json!({
            "StabilizationWindowSeconds": member("stabilizationWindowSeconds"),
            "SelectPolicy": member("selectPolicy"),
            "Policies": policies,
            "Tolerance": member("tolerance"),
        })
    };
    json!({"ScaleUp": rules("scaleUp"), "ScaleDown": rules("scaleDown")})
}

fn behavior_to_second(behavior: &Value) -> Option<Value> {
    let rules = |key: &str| -> Option<Value> {
        let rules = behavior.get(key).filter(|rules| rules.is_object())?;
        let mut out = picked(
            rules,
            &[
                ("/StabilizationWindowSeconds", "stabilizationWindowSeconds"),
                ("/SelectPolicy", "selectPolicy"),
                ("/Tolerance", "tolerance"),
            ],
        );
        if rules.get("Policies").is_some_and(Value::is_array) {
            let policies = list(rules, "Policies").iter().map(|policy| {
                let members = [
                    ("/Type", "type"),
                    ("/Value", "value"),
                    ("/PeriodSeconds", "periodSeconds"),
                ];
                Value::Object(picked(policy, &members))
            });
            out.insert("policies".to_owned(), policies.collect());
        }
        Some(Value::Object(out))
    };
    let (up, down) = (rules("ScaleUp"), rules("ScaleDown"));
    if up.is_none() && down.is_none() {
        return None;
    }
    let mut out = Map::new();
    out.extend(up.map(|rules| ("scaleUp".to_owned(), rules)));
    out.extend(down.map(|rules| ("scaleDown".to_owned(), rules)));
    Some(Value::Object(out))
}

fn is_cpu(metric: &Value) -> bool {
    text(metric, "type") == "Resource" && metric.at("/resource/name") == Some(&json!("cpu"))
}

fn spec_mut<'v>(object: &'v mut Value, key: &str) -> Option<&'v mut Map<String, Value>> {
    object.get_mut(key)?.as_object_mut()
}

/// Takes the annotations of conversion away; answers them.
fn take_annotations(object: &mut Value) -> [Option<Value>; 4] {
    let Some(annotations) = object.at_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return Default::default();
    };
    let [metrics, current, conditions, behavior, ..] = MADE.map(|key| annotations.remove(key));
    if annotations.is_empty() {
        meta::set(object, "annotations", None);
    }
    [metrics, current, conditions, behavior].map(|text| serde_json::from_str(text?.as_str()?).ok())
}

/// The second version has fields for all that stands in annotations: it has none of them.
pub(in crate::kubernetes) fn drop_made_annotations(object: &mut Value) {
    take_annotations(object);
}

/// Makes an autoscaler of the first version of one of the second.
pub(in crate::kubernetes) fn to_first(object: &mut Value) {
    take_annotations(object);
    let mut annotations = Map::new();
    let mut note = |key: &str, value: &Value| {
        annotations.insert(key.to_owned(), in_order(value).into());
    };
    if let Some(spec) = spec_mut(object, "spec") {
        let metrics = spec.remove("metrics").unwrap_or(Value::Null);
        let metrics = metrics.as_array().cloned().unwrap_or_default();
        let share = |metric: &Value| metric.at("/resource/target/averageUtilization").cloned();
        let (of_cpu, others): (Vec<Value>, Vec<Value>) = metrics
            .into_iter()
            .partition(|metric| is_cpu(metric) && share(metric).is_some());
        if let Some(share) = of_cpu.first().and_then(share) {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), share);
        }
        if !others.is_empty() {
            note(
                METRICS,
                &others.iter().map(|metric| metric_to_first(metric, "target")).collect(),
            );
        }
        if let Some(behavior) = spec.remove("behavior") {
            note(BEHAVIOR, &behavior_to_first(&behavior));
        }
    }
    if let Some(status) = spec_mut(object, "status") {
        let metrics = status.remove("currentMetrics").unwrap_or(Value::Null);
        let metrics = metrics.as_array().cloned().unwrap_or_default();
        // the last one counts
        let mut of_cpu = metrics.iter().rev().filter(|metric| is_cpu(metric));
        let share = |metric: &Value| metric.at("/resource/current/averageUtilization").cloned();
        if let Some(share) = of_cpu.find_map(share) {
            status.insert("currentCPUUtilizationPercentage".to_owned(), share);
        }
        if !metrics.is_empty() {
            note(
                CURRENT_METRICS,
                &metrics
                    .iter()
                    .map(|metric| metric_to_first(metric, "current"))
                    .collect(),
            );
        }
        if let Some(conditions) = status
            .remove("conditions")
            .filter(|all| all.as_array().is_some_and(|all| !all.is_empty()))
        {
            note(CONDITIONS, &conditions);
        }
        // the first version always tells both
        for key in ["currentReplicas", "desiredReplicas"] {
            status.entry(key).or_insert_with(|| json!(0));
        }
    }
    if annotations.is_empty() {
        return;
    }
    let own = meta::metadata_mut(object)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.extend(annotations);
    }
}

/// Makes an autoscaler of the second version of one of the first.
pub(in crate::kubernetes) fn to_second(object: &mut Value) {
    let [metrics, current, conditions, behavior] = take_annotations(object);
    let of_cpu = |share: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}});
    let converted = |metrics: Option<Value>, what: &str| -> Option<Vec<Value>> {
        let Some(Value::Array(metrics)) = metrics else {
            return None;
        };
        Some(metrics.iter().map(|metric| metric_to_second(metric, what)).collect())
    };
    if let Some(spec) = spec_mut(object, "spec") {
        let mut all = converted(metrics, "target").unwrap_or_default();
        all.extend(
            spec.remove("targetCPUUtilizationPercentage")
                .filter(|share| !share.is_null())
                .map(of_cpu),
        );
        if all.is_empty() {
            all.push(of_cpu(CPU_SHARE.into()));
        }
        spec.insert("metrics".to_owned(), all.into());
        if let Some(behavior) = behavior.as_ref().and_then(behavior_to_second) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = spec_mut(object, "status") {
        let share = status
            .remove("currentCPUUtilizationPercentage")
            .filter(|share| !share.is_null());
        let of_share = |share: Value| {
            vec![json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": share}}})]
        };
        status.remove("currentMetrics");
        if let Some(current) = converted(current, "current").or_else(|| share.map(of_share)) {
            status.insert("currentMetrics".to_owned(), current.into());
        }
        if let Some(Value::Array(conditions)) = conditions {
            status.insert("conditions".to_owned(), conditions.into());
        }
        // the second version leaves one of both out where it is none
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
        status.entry("currentMetrics").or_insert(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_version_has_no_fields_for_survives_in_annotations() {
        let mut second = json!({
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
                ],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]}},
            },
            "status": {"currentReplicas": 1, "desiredReplicas": 2},
        });
        let mut object = second.clone();
        to_first(&mut object);
        assert_eq!(
            object["spec"],
            json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 60})
        );
        assert_eq!(
            object["metadata"]["annotations"],
            json!({
                METRICS: r#"[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"1k"}}]"#,
                BEHAVIOR: r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":30}],"Tolerance":null}}"#,
            })
        );
        to_second(&mut object);
        second["status"]["currentMetrics"] = Value::Null;
        assert_eq!(object, second);
    }
}
