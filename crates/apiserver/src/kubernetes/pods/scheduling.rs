//! What must hold of where a pod may run: affinity, spread, gates and tolerations.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use crate::kubernetes::checks::{
    label_selector, list, map, number, one_of_if_set, requirement_of_selector, syntax, text,
};
use crate::meta;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn weight(term: &Value, path: &Path, errors: &mut ErrorList) {
    let weight = number(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(Error::invalid(
            &path.child("weight"),
            weight,
            "must be in the range 1-100",
        ));
    }
}

pub(super) fn validate_affinity(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(affinity) = spec.get("affinity") else { return };
    if let Some(nodes) = affinity.get("nodeAffinity") {
        let at = path.child("nodeAffinity");
        if let Some(selector) = nodes.get(REQUIRED) {
            validate_node_selector(selector, &at.child(REQUIRED), errors);
        }
        for (index, term) in list(nodes, PREFERRED).iter().enumerate() {
            let at = at.child(PREFERRED).index(index);
            weight(term, &at, errors);
            let preference = term.get("preference").unwrap_or(&Value::Null);
            validate_node_term(preference, false, &at.child("preference"), errors);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(kind) else { continue };
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            validate_pod_term(term, &path.child(kind).child(REQUIRED).index(index), errors);
        }
        for (index, term) in list(pods, PREFERRED).iter().enumerate() {
            let at = path.child(kind).child(PREFERRED).index(index);
            weight(term, &at, errors);
            let term = term.get("podAffinityTerm").unwrap_or(&Value::Null);
            validate_pod_term(term, &at.child("podAffinityTerm"), errors);
        }
    }
}

/// Checks a selector of nodes, also that of a volume.
pub(in crate::kubernetes) fn validate_node_selector(selector: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(Error::required(&at, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        validate_node_term(term, true, &at.index(index), errors);
    }
}

fn validate_node_term(term: &Value, with_values: bool, path: &Path, errors: &mut ErrorList) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let at = path.child("matchExpressions").index(index);
        let values = list(requirement, "values");
        match text(requirement, "operator") {
            "Gt" | "Lt" => {
                if values.len() != 1 {
                    let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    errors.push(Error::required(&at.child("values"), why));
                }
                let key = text(requirement, "key");
                syntax(meta::qualified_name(key), key, &at.child("key"), errors);
            }
            _ => requirement_of_selector(requirement, &at, errors),
        }
        for (index, value) in values
            .iter()
            .filter_map(Value::as_str)
            .enumerate()
            .filter(|_| with_values)
        {
            syntax(
                meta::label_value(value),
                value,
                &at.child("values").index(index),
                errors,
            );
        }
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        let at = path.child("matchFields").index(index);
        match text(requirement, "operator") {
            "In" | "NotIn" => {
                if list(requirement, "values").len() != 1 {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    errors.push(Error::required(&at.child("values"), why));
                }
            }
            other => errors.push(Error::invalid(
                &at.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text(requirement, "key");
        if key != "metadata.name" {
            errors.push(Error::invalid(&at.child("key"), key, "not a valid field selector key"));
            continue;
        }
        for (index, value) in list(requirement, "values").iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            let wrong = meta::dns1123_subdomain(value);
            syntax(wrong, value, &at.child("values").index(index), errors);
        }
    }
}

fn validate_pod_term(term: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.get(key) {
            label_selector(selector, &path.child(key), errors);
        }
    }
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        syntax(meta::dns1123_label(name), name, &path.child("namespace"), errors);
    }
    validate_label_keys(term, path, errors);
    let (key, at) = (text(term, "topologyKey"), path.child("topologyKey"));
    if key.is_empty() {
        errors.push(Error::required(&at, "can not be empty"));
    }
    syntax(meta::qualified_name(key), key, &at, errors);
}

/// Keys of the pod's labels whose values are, or are not, to be those of the pods that a term or constraint counts.
fn validate_label_keys(own: &Value, path: &Path, errors: &mut ErrorList) {
    let selector = own.get("labelSelector");
    let keys = |key: &str| -> Vec<&str> {
        let all = list(own, key).iter();
        all.map(|key| key.as_str().unwrap_or_default()).collect()
    };
    let (same, different) = (keys("matchLabelKeys"), keys("mismatchLabelKeys"));
    for (name, keys) in [("matchLabelKeys", &same), ("mismatchLabelKeys", &different)] {
        let at = path.child(name);
        if selector.is_none() && !keys.is_empty() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(Error::forbidden(&at, why));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            syntax(meta::qualified_name(key), key, &at.index(index), errors);
        }
    }
    if let Some(selector) = selector {
        let mut seen: Vec<&str> = map(selector, "matchLabels").map(|(key, _)| key.as_str()).collect();
        for requirement in list(selector, "matchExpressions") {
            // the selector has a requirement for each key already, so that the second one is the user's
            let key = text(requirement, "key");
            if let Some(index) = same.iter().rposition(|own| *own == key).filter(|_| seen.contains(&key)) {
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.push(Error::invalid(&path.index(index), key, why));
            }
            seen.push(key);
        }
    }
    for (index, key) in same.iter().enumerate().filter(|(_, key)| different.contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(Error::invalid(&path.child("matchLabelKeys").index(index), *key, why));
    }
}

/// Adds requirements to a pod's selectors for the labels of the pod whose keys stand beside them.
pub(super) fn merge_label_keys(pod: &mut Value) {
    let labels = meta::string_map(pod.at("/metadata/labels"));
    let merge = |own: &mut Value| {
        let added: Vec<Value> = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
            .iter()
            .flat_map(|(keys, operator)| list(own, keys).iter().map(move |key| (key, operator)))
            .filter_map(|(key, operator)| {
                let value = labels.get(key.as_str()?)?;
                Some(json!({"key": key, "operator": operator, "values": [value]}))
            })
            .collect();
        let Some(selector) = own.get_mut("labelSelector").and_then(Value::as_object_mut) else {
            return;
        };
        if added.is_empty() {
            return;
        }
        let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.extend(added);
        }
    };
    let Some(spec) = pod.get_mut("spec") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|own| own.get_mut(kind)) else {
            continue;
        };
        for (key, within) in [(PREFERRED, Some("podAffinityTerm")), (REQUIRED, None)] {
            let terms = affinity.get_mut(key).and_then(Value::as_array_mut);
            for term in terms.into_iter().flatten() {
                match within {
                    Some(within) => term.get_mut(within).into_iter().for_each(merge),
                    None => merge(term),
                }
            }
        }
    }
    let constraints = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut);
    constraints.into_iter().flatten().for_each(merge);
}

pub(super) fn validate_gates(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let at = path.child("readinessGates").index(index).child("conditionType");
        syntax(meta::qualified_name(kind), kind, &at, errors);
    }
    let gates: Vec<&str> = list(spec, "schedulingGates")
        .iter()
        .map(|gate| text(gate, "name"))
        .collect();
    let mut seen = BTreeSet::new();
    for (index, name) in gates.iter().enumerate() {
        let at = path.child("schedulingGates").index(index);
        syntax(meta::qualified_name(name), name, &at, errors);
        if !seen.insert(name) {
            errors.push(Error::duplicate(&at, *name));
        }
    }
}

pub(super) fn validate_spread(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let constraints = list(spec, "topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let at = path.index(index);
        let skew = number(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.push(Error::invalid(&at.child("maxSkew"), skew, "must be greater than zero"));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(Error::required(&at.child("topologyKey"), "can not be empty"));
        }
        let action = text(constraint, "whenUnsatisfiable");
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&action) {
            errors.push(Error::not_supported(&at.child("whenUnsatisfiable"), action, &known));
        }
        let pair = |other: &Value| {
            (
                text(other, "topologyKey").to_owned(),
                text(other, "whenUnsatisfiable").to_owned(),
            )
        };
        if constraints
            .iter()
            .skip(index + 1)
            .any(|other| pair(other) == pair(constraint))
        {
            let at = at.child("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&at, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = number(constraint, "minDomains") {
            let at = at.child("minDomains");
            if domains <= 0 {
                errors.push(Error::invalid(&at, domains, "must be greater than zero"));
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(Error::invalid(&at, domains, why));
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of_if_set(constraint, key, &["Honor", "Ignore"], &at, errors);
        }
        validate_label_keys(constraint, &at, errors);
        if let Some(selector) = constraint.get("labelSelector") {
            label_selector(selector, &at.child("labelSelector"), errors);
        }
    }
}

/// Tolerations of a spec; the path is that of their list.
pub(in crate::kubernetes) fn validate_tolerations(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let at = path.index(index);
        let member = |key: &str| text(toleration, key);
        let (key, operator, value, effect) = (member("key"), member("operator"), member("value"), member("effect"));
        if !key.is_empty() {
            syntax(meta::qualified_name(key), key, &at.child("key"), errors);
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(Error::invalid(&at.child("operator"), operator, why));
        }
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(Error::invalid(&at.child("effect"), effect, why));
        }
        match operator {
            "" | "Equal" => {
                let wrong = meta::label_value(value);
                if !wrong.is_empty() {
                    errors.push(Error::invalid(&at.child("operator"), value, wrong.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(Error::invalid(&at.child("operator"), value, why));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(Error::not_supported(&at.child("operator"), operator, &known));
            }
            other => errors.push(Error::not_supported(&at.child("operator"), other, &["Equal", "Exists"])),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.push(Error::not_supported(&at.child("effect"), effect, &EFFECTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_pod_come_into_its_selectors() {
        let mut pod = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {
            "topologySpreadConstraints": [
                {"labelSelector": {}, "matchLabelKeys": ["a", "absent"]},
                {"matchLabelKeys": ["a"]},
            ],
            "affinity": {"podAffinity": {PREFERRED: [{"podAffinityTerm": {
                "labelSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
                "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"],
            }}]}},
        }});
        merge_label_keys(&mut pod);
        let constraints = &pod["spec"]["topologySpreadConstraints"];
        let of_a = json!({"key": "a", "operator": "In", "values": ["1"]});
        assert_eq!(constraints[0]["labelSelector"], json!({"matchExpressions": [of_a]}));
        assert_eq!(constraints[1], json!({"matchLabelKeys": ["a"]}));
        let term = &pod["spec"]["affinity"]["podAffinity"][PREFERRED][0]["podAffinityTerm"];
        assert_eq!(
            term["labelSelector"]["matchExpressions"],
            json!([{"key": "c", "operator": "Exists"}, of_a, {"key": "b", "operator": "NotIn", "values": ["2"]}])
        );
    }

    #[test]
    fn a_key_stands_in_the_selector_once() {
        let mut errors = Vec::new();
        let of_a = json!({"key": "a", "operator": "In", "values": ["1"]});
        let own = json!({"labelSelector": {"matchLabels": {"a": "1"}, "matchExpressions": [of_a]}, "matchLabelKeys": ["x", "a"], "mismatchLabelKeys": ["x"]});
        validate_label_keys(&own, &Path::new("t"), &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "t[1]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector",
                "t.matchLabelKeys[0]: Invalid value: \"x\": exists in both matchLabelKeys and mismatchLabelKeys"
            ]
        );
    }
}
