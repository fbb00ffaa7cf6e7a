//! What must hold of where a pod may run: affinity, spread, gates and tolerations.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::kubernetes::checks::{label_selector, list, number, requirement_of_selector, syntax, text};
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
    let (key, at) = (text(term, "topologyKey"), path.child("topologyKey"));
    if key.is_empty() {
        errors.push(Error::required(&at, "can not be empty"));
    }
    syntax(meta::qualified_name(key), key, &at, errors);
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
    for (index, name) in gates.iter().enumerate() {
        let at = path.child("schedulingGates").index(index);
        syntax(meta::qualified_name(name), name, &at, errors);
        if gates.iter().take(index).any(|other| other == name) {
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
            let policy = text(constraint, key);
            if !matches!(policy, "" | "Honor" | "Ignore") {
                errors.push(Error::not_supported(&at.child(key), policy, &["Honor", "Ignore"]));
            }
        }
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
