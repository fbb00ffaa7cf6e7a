//! When jobs fail or succeed before all their pods are done: pod failure policies and success policies.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::indexes;
use crate::kubernetes::checks::{list, nonnegative, number, syntax, text};
use crate::kubernetes::internal;
use crate::meta;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
/// Most rules of a policy, and patterns of a rule.
const MAX_RULES: usize = 20;
/// Most exit codes of a rule.
const MAX_CODES: usize = 255;
/// Longest list of indexes.
const MAX_INDEXES: usize = 64 * 1024;

/// A required text that is one of a few.
fn choice(value: &str, known: &[&str], at: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        let quoted: Vec<String> = known.iter().map(|own| format!("\"{own}\"")).collect();
        errors.push(Error::required(at, format!("valid values: [{}]", quoted.join(" "))));
    } else if !known.contains(&value) {
        errors.push(Error::not_supported(at, value, known));
    }
}

/// The policies of a job's spec.
pub(super) fn validate(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let on_failure = spec.get("podFailurePolicy");
    if let Some(policy) = on_failure {
        let at = path.child("podFailurePolicy").child("rules");
        let rules = list(policy, "rules");
        if rules.len() > MAX_RULES {
            errors.push(Error::too_many(&at, rules.len(), MAX_RULES));
        }
        for (index, rule) in rules.iter().enumerate() {
            failure_rule(rule, spec, &at.index(index), errors);
        }
    }
    if let Some(policy) = spec.get("successPolicy") {
        let at = path.child("successPolicy");
        if text(spec, "completionMode") == "Indexed" {
            success(
                policy,
                number(spec, "completions").unwrap_or(0),
                &at.child("rules"),
                errors,
            );
        } else {
            let shown = internal::text("batch.SuccessPolicy", policy);
            errors.push(Error::literal(&at, shown, "requires indexed completion mode"));
        }
    }
    let known: &[&str] = match on_failure {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    if let Some(own) = spec.get("podReplacementPolicy").and_then(Value::as_str)
        && !known.contains(&own)
    {
        errors.push(Error::not_supported(&path.child("podReplacementPolicy"), own, known));
    }
}

fn failure_rule(rule: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (action, at) = (text(rule, "action"), path.child("action"));
    match action {
        "FailIndex" if spec.get("backoffLimitPerIndex").is_none() => {
            errors.push(Error::invalid(
                &at,
                action,
                "requires the backoffLimitPerIndex to be set",
            ));
        }
        action => choice(action, &ACTIONS, &at, errors),
    }
    let (codes, conditions) = (rule.get("onExitCodes"), list(rule, "onPodConditions"));
    if let Some(codes) = codes {
        exit_codes(codes, spec, &path.child("onExitCodes"), errors);
    }
    let at = path.child("onPodConditions");
    if conditions.len() > MAX_RULES {
        errors.push(Error::too_many(&at, conditions.len(), MAX_RULES));
    }
    for (index, pattern) in conditions.iter().enumerate() {
        let at = at.index(index);
        let kind = text(pattern, "type");
        syntax(meta::qualified_name(kind), kind, &at.child("type"), errors);
        choice(text(pattern, "status"), &STATUSES, &at.child("status"), errors);
    }
    match (codes, conditions) {
        (Some(_), [_, ..]) => {
            let why = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.push(Error::invalid_part(path, why));
        }
        (None, []) => {
            let why = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.push(Error::invalid_part(path, why));
        }
        _ => {}
    }
}

fn exit_codes(requirement: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let operator = text(requirement, "operator");
    choice(operator, &OPERATORS, &path.child("operator"), errors);
    let template = spec.at("/template/spec").unwrap_or(&Value::Null);
    let mut containers = ["containers", "initContainers"]
        .iter()
        .flat_map(|key| list(template, key));
    if let Some(name) = requirement.get("containerName").and_then(Value::as_str)
        && !containers.any(|own| text(own, "name") == name)
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(Error::invalid(&path.child("containerName"), name, why));
    }
    let (values, at) = (list(requirement, "values"), path.child("values"));
    if values.is_empty() {
        let shown = requirement.get("values").cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&at, shown, "at least one value is required"));
    } else if values.len() > MAX_CODES {
        errors.push(Error::too_many(&at, values.len(), MAX_CODES));
    }
    let mut seen = BTreeSet::new();
    for (index, code) in values.iter().enumerate() {
        let at = at.index(index);
        if operator == "In" && code.as_i64() == Some(0) {
            errors.push(Error::invalid(&at, code.clone(), "must not be 0 for the In operator"));
        }
        if !seen.insert(code.as_i64()) {
            errors.push(Error::duplicate(&at, code.clone()));
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        errors.push(Error::invalid(&at, values.to_vec(), "must be ordered"));
    }
}

fn success(policy: &Value, completions: i64, path: &Path, errors: &mut ErrorList) {
    let rules = list(policy, "rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(Error::required(path, why));
    }
    if rules.len() > MAX_RULES {
        errors.push(Error::too_many(path, rules.len(), MAX_RULES));
    }
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &path.index(index), errors);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &Path, errors: &mut ErrorList) {
    let named = rule.get("succeededIndexes").and_then(Value::as_str);
    let count = number(rule, "succeededCount");
    if named.is_none() && count.is_none() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(Error::required(path, why));
    }
    let mut total = None;
    if let Some(named) = named {
        let at = path.child("succeededIndexes");
        if named.len() > MAX_INDEXES {
            errors.push(Error::too_long(&at, MAX_INDEXES));
        }
        total = Some(indexes::count(named, completions).unwrap_or_else(|why| {
            errors.push(Error::invalid(
                &at,
                named,
                format!("error parsing succeededIndexes: {why}"),
            ));
            0
        }));
    }
    let Some(count) = count else { return };
    let at = path.child("succeededCount");
    nonnegative(rule, "succeededCount", path, errors);
    if count > completions {
        let why = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(Error::invalid(&at, count, why));
    }
    if let Some(total) = total.filter(|total| count > *total) {
        let why = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(Error::invalid(&at, count, why));
    }
}
