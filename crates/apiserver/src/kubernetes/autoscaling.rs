//! Autoscalers: what must hold of them. How one version becomes the other is in `autoscaling/convert.rs`.

mod convert;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use serde_json::Value;

use super::checks::{self, list, nonnegative, number, spec_of, syntax, text};
use super::defaults;
use super::pods::resources;
use super::strategy::Kind;
use crate::meta;

#[cfg(test)]
pub(super) use convert::to_first;
pub(super) use convert::{drop_made_annotations, to_second};

/// The longest period of a policy and the longest window, in seconds.
const PERIOD_MAX: i64 = 1800;
const WINDOW_MAX: i64 = 3600;
/// Kinds of metrics with the members that describe them, in the order in which upstream looks at them.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// What an API version says of its group; an error where it is none.
fn group(api_version: &str) -> Result<&str, String> {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [_] => Ok(""),
        [group, _] => Ok(*group),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

/// What a reference's version may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    /// One that names its group.
    Grouped,
    /// The core group's, too, which has no name.
    AlsoCore,
    /// Anything.
    Any,
}

impl Versions {
    fn check(self, reference: &Value) -> Result<(), String> {
        if self == Self::Any {
            return Ok(());
        }
        match group(text(reference, "apiVersion"))? {
            "" if self == Self::Grouped => Err("apiVersion must specify API group".to_owned()),
            _ => Ok(()),
        }
    }
}

fn validate_reference(reference: &Value, versions: Versions, at: &Path, errors: &mut ErrorList) {
    for key in ["kind", "name"] {
        let check = gardener_apimachinery::names::path_segment;
        checks::required_syntax(text(reference, key), check, &at.child(key), errors);
    }
    if let Err(why) = versions.check(reference) {
        let version = text(reference, "apiVersion");
        errors.push(Error::invalid(&at.child("apiVersion"), version, why));
    }
}

/// A target that stays the kind that it was may be of any version.
fn versions_of_target(target: &Value, old: Option<&Value>) -> Versions {
    let is_same = |old: &Value| {
        let before = spec_of(old).get("scaleTargetRef").unwrap_or(&Value::Null);
        ["apiVersion", "kind"]
            .iter()
            .all(|key| text(before, key) == text(target, key))
    };
    match text(target, "kind") {
        _ if old.is_some_and(is_same) => Versions::Any,
        "ReplicationController" => Versions::AlsoCore,
        _ => Versions::Grouped,
    }
}

/// Where one object that metrics describe had a wrong version, all may have.
fn versions_of_metrics(old: Option<&Value>) -> Versions {
    let metrics = old.map_or(&[][..], |old| list(spec_of(old), "metrics"));
    let described = |metric: &Value| {
        let is_object = text(metric, "type") == "Object";
        metric
            .get("object")
            .filter(|_| is_object)?
            .get("describedObject")
            .cloned()
    };
    let mut objects = metrics.iter().filter_map(described);
    match objects.any(|object| Versions::AlsoCore.check(&object).is_err()) {
        true => Versions::Any,
        false => Versions::AlsoCore,
    }
}

fn validate_metric_name(source: &Value, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let (metric, at) = (source.get("metric").unwrap_or(&none), path.child("metric"));
    match text(metric, "name") {
        "" => errors.push(Error::required(&at.child("name"), "must specify a metric name")),
        name => syntax(
            gardener_apimachinery::names::path_segment(name),
            name,
            &at.child("name"),
            errors,
        ),
    }
}

fn amount(value: &Value) -> Option<Amount> {
    value.as_str()?.parse().ok()
}

fn validate_target(target: &Value, at: &Path, errors: &mut ErrorList) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.push(Error::required(&at.child("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(Error::invalid(&at.child("type"), kind, why));
    }
    let mut positive = |key: &str| {
        if let Some(amount) = target
            .get(key)
            .and_then(amount)
            .filter(|amount| amount.is_negative() || amount.is_zero())
        {
            errors.push(Error::invalid(&at.child(key), amount.to_string(), "must be positive"));
        }
    };
    positive("value");
    positive("averageValue");
    if let Some(share) = number(target, "averageUtilization").filter(|share| *share < 1) {
        errors.push(Error::invalid(
            &at.child("averageUtilization"),
            share,
            "must be greater than 0",
        ));
    }
}

fn validate_source(key: &str, source: &Value, versions: Versions, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let (target, at) = (source.get("target").unwrap_or(&none), path.child("target"));
    let has = |key: &str| target.get(key).is_some();
    match key {
        "object" => {
            let object = source.get("describedObject").unwrap_or(&none);
            validate_reference(object, versions, &path.child("describedObject"), errors);
            validate_metric_name(source, path, errors);
            validate_target(target, &at, errors);
            if !has("value") && !has("averageValue") {
                let why = "must set either a target value or averageValue";
                errors.push(Error::required(&at.child("averageValue"), why));
            }
        }
        "external" => {
            validate_metric_name(source, path, errors);
            validate_target(target, &at, errors);
            match (has("value"), has("averageValue")) {
                (false, false) => {
                    let why = "must set either a target value for metric or a per-pod target";
                    errors.push(Error::required(&at.child("averageValue"), why));
                }
                (true, true) => {
                    let why = "may not set both a target value for metric and a per-pod target";
                    errors.push(Error::forbidden(&at.child("value"), why));
                }
                _ => {}
            }
        }
        "pods" => {
            validate_metric_name(source, path, errors);
            validate_target(target, &at, errors);
            if !has("averageValue") {
                let why = "must specify a positive target averageValue";
                errors.push(Error::required(&at.child("averageValue"), why));
            }
        }
        _ => {
            let name = text(source, "name");
            let of_container = key == "containerResource";
            if name.is_empty() {
                errors.push(Error::required(&path.child("name"), "must specify a resource name"));
            } else if of_container {
                resources::validate_name_of_container(name, &path.child("name"), errors);
            }
            if of_container {
                match text(source, "container") {
                    "" => errors.push(Error::required(&path.child("container"), "must specify a container")),
                    name => syntax(meta::dns1123_label(name), name, &path.child("container"), errors),
                }
            }
            validate_target(target, &at, errors);
            match (has("averageUtilization"), has("averageValue")) {
                (false, false) => {
                    let why = "must set either a target raw value or a target utilization";
                    errors.push(Error::required(&at.child("averageUtilization"), why));
                }
                (true, true) => {
                    let why = "may not set both a target raw value and a target utilization";
                    errors.push(Error::forbidden(&at.child("averageValue"), why));
                }
                _ => {}
            }
        }
    }
}

fn validate_metric(metric: &Value, versions: Versions, path: &Path, errors: &mut ErrorList) {
    let kind = text(metric, "type");
    let at = path.child("type");
    if kind.is_empty() {
        errors.push(Error::required(&at, "must specify a metric source type"));
    }
    if !TYPES.contains(&kind) {
        errors.push(Error::not_supported(&at, kind, &TYPES));
    }
    let present: Vec<(&str, &Value)> = SOURCES
        .iter()
        .filter_map(|(_, key)| Some((*key, metric.get(*key)?)))
        .collect();
    if let Some((key, source)) = present.first() {
        validate_source(key, source, versions, &path.child(key), errors);
    }
    let expected = SOURCES.iter().find(|(own, _)| *own == kind).map_or("", |(_, key)| *key);
    if expected.is_empty() {
        // upstream tells it once more
        errors.push(Error::not_supported(&at, kind, &TYPES));
    } else if metric.get(expected).is_none() {
        let why = "must populate information for the given metric source";
        errors.push(Error::required(&path.child(expected), why));
    }
    if present.len() != 1 {
        for (key, _) in present.iter().filter(|(key, _)| *key != expected) {
            errors.push(Error::forbidden(
                &path.child(key),
                "must populate the given metric source only",
            ));
        }
    }
}

fn validate_rules(rules: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("stabilizationWindowSeconds");
    match number(rules, "stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            errors.push(Error::invalid(&at, window, "must be greater than or equal to zero"));
        }
        Some(window) if window > WINDOW_MAX => {
            let why = format!("must be less than or equal to {WINDOW_MAX}");
            errors.push(Error::invalid(&at, window, why));
        }
        _ => {}
    }
    let policies = ["Disabled", "Max", "Min"];
    if let Some(policy) = rules.get("selectPolicy").and_then(Value::as_str)
        && !policies.contains(&policy)
    {
        errors.push(Error::not_supported(&path.child("selectPolicy"), policy, &policies));
    }
    let at = path.child("policies");
    if list(rules, "policies").is_empty() {
        errors.push(Error::required(&at, "must specify at least one Policy"));
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let at = at.index(index);
        let kinds = ["Percent", "Pods"];
        if !kinds.contains(&text(policy, "type")) {
            errors.push(Error::not_supported(&at.child("type"), text(policy, "type"), &kinds));
        }
        for key in ["value", "periodSeconds"] {
            let own = number(policy, key).unwrap_or(0);
            if own <= 0 {
                errors.push(Error::invalid(&at.child(key), own, "must be greater than zero"));
            }
        }
        if let Some(period) = number(policy, "periodSeconds").filter(|period| *period > PERIOD_MAX) {
            let why = format!("must be less than or equal to {PERIOD_MAX}");
            errors.push(Error::invalid(&at.child("periodSeconds"), period, why));
        }
    }
    if let Some(tolerance) = rules
        .get("tolerance")
        .and_then(amount)
        .filter(|amount| amount.is_negative())
    {
        let why = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child("tolerance"), tolerance.to_string(), why));
    }
}

/// `old` may keep what upstream did not look at before.
fn validate(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (spec_of(object), Path::new("spec"));
    let least = number(spec, "minReplicas");
    let most = number(spec, "maxReplicas").unwrap_or(0);
    let was_zero = old.is_some_and(|old| number(spec_of(old), "minReplicas") == Some(0));
    let bound = i64::from(!was_zero);
    if let Some(least) = least.filter(|least| *least < bound) {
        let why = format!("must be greater than or equal to {bound}");
        errors.push(Error::invalid(&path.child("minReplicas"), least, why));
    }
    let at = path.child("maxReplicas");
    match most {
        0 => errors.push(Error::required(&at, "must be set and greater than 0")),
        few if few < 0 => errors.push(Error::invalid(&at, few, "must be greater than or equal to 1")),
        _ => {}
    }
    if least.is_some_and(|least| least > most) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(Error::invalid(&at, most, why));
    }
    let target = spec.get("scaleTargetRef").unwrap_or(&none);
    let versions = versions_of_target(target, old);
    validate_reference(target, versions, &path.child("scaleTargetRef"), &mut errors);
    let versions = versions_of_metrics(old);
    let metrics = list(spec, "metrics");
    for (index, metric) in metrics.iter().enumerate() {
        validate_metric(metric, versions, &path.child("metrics").index(index), &mut errors);
    }
    let scales = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !metrics.iter().any(scales) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(Error::forbidden(&path.child("metrics"), why));
    }
    let behavior = spec.get("behavior").unwrap_or(&none);
    for key in ["scaleUp", "scaleDown"] {
        if let Some(rules) = behavior.get(key) {
            validate_rules(rules, &path.child("behavior").child(key), &mut errors);
        }
    }
    errors
}

pub(super) fn autoscalers(mut kind: Kind) -> Kind {
    kind.made_annotations = &convert::MADE;
    kind.lists_kept_empty = &["/spec/behavior/scaleUp/policies", "/spec/behavior/scaleDown/policies"];
    kind.validate_create = |object| validate(object, None);
    kind.validate_update = |object, old| validate(object, Some(old));
    kind.validate_status = |object, _| {
        let mut errors = ErrorList::new();
        let (status, path) = (object.get("status").unwrap_or(&Value::Null), Path::new("status"));
        nonnegative(status, "currentReplicas", &path, &mut errors);
        nonnegative(status, "desiredReplicas", &path, &mut errors);
        errors
    };
    kind.convert = |object, from, to| {
        match (from, to) {
            ("v1", "v2") => {
                convert::to_second(object);
                // rules that came in an annotation
                defaults::second_autoscaler(object);
            }
            ("v2", "v1") => convert::to_first(object),
            _ => {}
        }
        Ok(())
    };
    kind
}
