//! Why the spec of an object in deletion may not change [VAL-U1]. What was to change is told as upstream tells it: by Go's names of fields, the
//! new value before the old one, ten changes at most. Upstream's order of fields and what it shows of whole structs, pointers among it, are not
//! repeated.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::shown;

/// How many changes are told.
const MOST: usize = 10;
/// First words of fields that Go writes in capitals.
const INITIALISMS: [&str; 15] = [
    "api", "ca", "cpu", "cri", "dns", "etcd", "http", "id", "ip", "oidc", "pid", "ssh", "tls", "uid", "url",
];
/// Fields whose names in Go do not follow from their names in JSON: as the last parts of their places.
const IRREGULAR: [(&[&str], &str); 5] = [
    (
        &["KubeControllerManager", "horizontalPodAutoscaler"],
        "HorizontalPodAutoscalerConfig",
    ),
    (&["machineControllerManager"], "MachineControllerManagerSettings"),
    (&["podPidsLimit"], "PodPIDsLimit"),
    (&["Volume", "size"], "VolumeSize"),
    (&["inPlaceUpdateTimeout"], "MachineInPlaceUpdateTimeout"),
];

/// Why the spec of an object in deletion may not change; tells what was to change.
pub fn requested_changes<S: Serialize>(kind: &str, old: &S, new: &S) -> String {
    let mut found = Vec::new();
    compare(&shown(new), &shown(old), &mut Vec::new(), &mut found);
    let changes = found.join(",");
    format!("cannot update {kind} spec if deletion timestamp is set. Requested changes: {changes}")
}

/// Finds the places where two values differ.
fn compare(new: &Value, old: &Value, at: &mut Vec<String>, found: &mut Vec<String>) {
    if found.len() >= MOST || new == old {
        return;
    }
    let mut tell = |new: &str, old: &str| found.push(format!("{}: {new} != {old}", at.join(".")));
    match (new, old) {
        (Value::Null, Value::Array(_)) => tell("<nil slice>", &go_value(old)),
        (Value::Array(_), Value::Null) => tell(&go_value(new), "<nil slice>"),
        (Value::Null, _) => tell("<nil pointer>", &go_type(old, at)),
        (_, Value::Null) => tell(&go_type(new, at), "<nil pointer>"),
        (Value::Object(after), Value::Object(before)) => {
            let keys: BTreeSet<&String> = after.keys().chain(before.keys()).collect();
            for key in keys {
                let none = Value::Null;
                let name = go_name(key, at);
                at.push(name);
                compare(
                    after.get(key).unwrap_or(&none),
                    before.get(key).unwrap_or(&none),
                    at,
                    found,
                );
                at.pop();
            }
        }
        (Value::Array(after), Value::Array(before)) => {
            for place in 0..after.len().max(before.len()) {
                at.push(format!("slice[{place}]"));
                match (after.get(place), before.get(place)) {
                    (Some(new), Some(old)) => compare(new, old, at, found),
                    (new, old) if found.len() < MOST => {
                        let text = |value: Option<&Value>| value.map_or("<no value>".to_owned(), go_value);
                        found.push(format!("{}: {} != {}", at.join("."), text(new), text(old)));
                    }
                    _ => {}
                }
                at.pop();
            }
        }
        _ => tell(&go_value(new), &go_value(old)),
    }
}

/// The name that a field has in Go.
fn go_name(field: &str, at: &[String]) -> String {
    let irregular = IRREGULAR.iter().find(|(place, _)| match place {
        [parents @ .., own] => *own == field && at.iter().map(String::as_str).collect::<Vec<_>>().ends_with(parents),
        [] => false,
    });
    if let Some((_, name)) = irregular {
        return (*name).to_owned();
    }
    let end = field
        .find(|letter: char| !letter.is_ascii_lowercase())
        .unwrap_or(field.len());
    let (first, rest) = field.split_at(end);
    if INITIALISMS.contains(&first) {
        return format!("{}{rest}", first.to_uppercase());
    }
    let mut letters = first.chars();
    let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
    capital.into_iter().chain(letters).chain(rest.chars()).collect()
}

/// The type of what a pointer leads to. Structs are mostly called as the fields that hold them.
fn go_type(value: &Value, at: &[String]) -> String {
    match value {
        Value::String(_) => "string".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "int32".to_owned(),
        _ => format!("core.{}", at.last().map_or("", String::as_str)),
    }
}

/// A value as Go prints it.
fn go_value(value: &Value) -> String {
    let joined = |members: Vec<String>| members.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(elements) => format!("[{}]", joined(elements.iter().map(go_value).collect())),
        Value::Object(members) => format!("{{{}}}", joined(members.values().map(go_value).collect())),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn val_u1_changes_are_told_by_gos_names() {
        let table = [
            (json!({"region": "b"}), json!({"region": "a"}), "Region: b != a"),
            (
                json!({"dns": {"domain": "b"}, "purpose": null}),
                json!({"dns": {"domain": "a"}, "purpose": "production"}),
                "DNS.Domain: b != a,Purpose: <nil pointer> != string",
            ),
            (
                json!({"provider": {"workers": [{"maximum": 3, "cri": {"name": "b"}, "volume": {"size": "2Gi"}}, {"name": "x"}]}}),
                json!({"provider": {"workers": [{"maximum": 2, "cri": {"name": "a"}, "volume": {"size": "1Gi"}}]}}),
                "Provider.Workers.slice[0].CRI.Name: b != a,Provider.Workers.slice[0].Maximum: 3 != 2,\
                 Provider.Workers.slice[0].Volume.VolumeSize: 2Gi != 1Gi,Provider.Workers.slice[1]: {x} != <no value>",
            ),
            (
                json!({"hibernation": {"enabled": true}, "tolerations": ["a", "b"]}),
                json!({}),
                "Hibernation: core.Hibernation != <nil pointer>,Tolerations: [a b] != <nil slice>",
            ),
            (
                json!({"kubernetes": {"kubelet": {"podPidsLimit": 5, "cpuCFSQuota": true}}}),
                json!({"kubernetes": {"kubelet": {"podPidsLimit": 6, "cpuCFSQuota": false}}}),
                "Kubernetes.Kubelet.CPUCFSQuota: true != false,Kubernetes.Kubelet.PodPIDsLimit: 5 != 6",
            ),
        ];
        for (new, old, expected) in table {
            let told = requested_changes("shoot", &old, &new);
            let changes =
                told.strip_prefix("cannot update shoot spec if deletion timestamp is set. Requested changes: ");
            assert_eq!(changes, Some(expected));
        }
        let many = |value: i64| json!({"list": (0..20).map(|_| value).collect::<Vec<_>>()});
        assert_eq!(
            requested_changes("shoot", &many(1), &many(2)).matches("!=").count(),
            MOST
        );
    }
}
