//! Nodes keep the status they register with.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use super::addresses::{self, Range};
use super::checks::{amount, annotation, is_true, list, map, syntax, text};
use super::strategy::Kind;
use super::{defaults, json_text, resource_names};
use crate::meta;
use crate::selectable::Selectable;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.keeps_status = true;
    kind.default = |node| {
        defaults::node(node);
        let cidr = node.at("/spec/podCIDR").and_then(Value::as_str).map(str::to_owned);
        let cidr = cidr.filter(|cidr| !cidr.is_empty());
        if let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) {
            let first = spec
                .get("podCIDRs")
                .and_then(|all| all.get(0))
                .and_then(Value::as_str)
                .map(str::to_owned);
            match (cidr, first) {
                // who knows only the one field decides
                (Some(cidr), first) if first.as_ref() != Some(&cidr) => {
                    spec.insert("podCIDRs".into(), json!([cidr]));
                }
                (None, Some(first)) => {
                    spec.insert("podCIDR".into(), first.into());
                }
                _ => {}
            }
        }
        // what is not reserved can be given to pods
        if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut)
            && status.get("allocatable").is_none_or(Value::is_null)
            && let Some(capacity) = status.get("capacity").cloned().filter(Value::is_object)
        {
            status.insert("allocatable".into(), capacity);
        }
    };
    // a node that registers is not ready until its controller says so
    kind.prepare_create = |_, node| {
        let Some(members) = node.as_object_mut() else {
            return Ok(());
        };
        let spec = members.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("configSource");
            taint_as_not_ready(spec);
        }
        Ok(())
    };
    kind.prepare_update = |_, node, old| {
        // nodes are no longer configured through the API
        let had = old.at("/spec/configSource").is_some();
        if let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut).filter(|_| !had) {
            spec.remove("configSource");
        }
        Ok(())
    };
    kind.whole_first = true;
    kind.validate = |node| {
        let mut errors = ErrorList::new();
        validate_annotations(node, &mut errors);
        validate_taints(meta::elements(node, "/spec/taints"), &taints(), &mut errors);
        validate_amounts(node, &mut errors);
        errors.extend(wrong_swap(node));
        validate_features(node, &mut errors);
        validate_ranges(node, &mut errors);
        errors
    };
    kind.validate_update = validate_update;
    kind.validate_status = |node, old| {
        let mut errors = ErrorList::new();
        validate_annotations(node, &mut errors);
        validate_taints(meta::elements(node, "/spec/taints"), &taints(), &mut errors);
        errors.extend(validate_update(node, old));
        errors
    };
    kind.warnings = |node, _| {
        let mut warnings = Vec::new();
        if node.at("/spec/configSource").is_some() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !meta::text(node, "/spec/externalID").is_empty() {
            warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        let ranges = meta::elements(node, "/spec/podCIDRs").iter().filter_map(Value::as_str);
        for (index, range) in ranges.enumerate() {
            let at = Path::new("spec").child("podCIDRs").index(index);
            warnings.extend(addresses::unusual_range(range, &at));
        }
        warnings
    };
    kind.prepare_status = |_, node, old| {
        // nodes are no longer configured through the API
        let had = old.at("/status/config").is_some();
        if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut).filter(|_| !had) {
            status.remove("config");
        }
    };
    kind.fields = const { &[Selectable::flag("spec.unschedulable", "/spec/unschedulable")] };
    kind
}

/// Keeps pods away from a new node, whatever else its taint for that does.
fn taint_as_not_ready(spec: &mut Map<String, Value>) {
    let (key, effect) = ("node.kubernetes.io/not-ready", "NoSchedule");
    let is_own = |taint: &Value| text(taint, "key") == key && text(taint, "effect") == effect;
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut().filter(|taints| !taints.iter().any(is_own)) {
        taints.push(json!({"key": key, "effect": effect}));
    }
}

/// A taint as upstream shows it.
fn taint_text(taint: &Value) -> String {
    let member = |key: &str| Value::from(text(taint, key));
    format!(
        "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
        member("key"),
        member("value"),
        member("effect"),
        taint.get("timeAdded").unwrap_or(&Value::Null)
    )
}

/// Where upstream finds wrong taints.
fn taints() -> Path {
    Path::new("metadata").child("taints")
}

/// Annotations that the scheduler once read.
fn validate_annotations(node: &Value, errors: &mut ErrorList) {
    const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
    const AVOID: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    let path = Path::new("metadata").child("annotations");
    if let Some(told) = annotation(node, TAINTS).filter(|told| !told.is_empty()) {
        match json_text::elements(told, "[]core.Taint") {
            Ok(taints) => validate_taints(&taints, &path.child(TAINTS), errors),
            Err(why) => errors.push(Error::invalid(&path, TAINTS, why)),
        }
    }
    let Some(told) = annotation(node, AVOID).filter(|told| !told.is_empty()) else {
        return;
    };
    let avoided = match json_text::value(told) {
        Ok(avoided) if avoided.is_object() || avoided.is_null() => avoided,
        other => {
            let why = other.map_or_else(|why| why, |found| json_text::cannot(&found, "v1.AvoidPods"));
            errors.push(Error::invalid(&path.child("AvoidPods"), AVOID, why));
            return;
        }
    };
    for (index, entry) in list(&avoided, "preferAvoidPods").iter().enumerate() {
        let at = path.child(AVOID).index(index).child("PodSignature");
        match entry.at("/podSignature/podController") {
            None | Some(Value::Null) => errors.push(Error::required(&at, "")),
            Some(owner) if !is_true(owner, "controller") => {
                let at = at.child("PodController").child("Controller");
                errors.push(Error::invalid(&at, false, "must point to a controller"));
            }
            Some(_) => {}
        }
    }
}

fn validate_taints(taints: &[Value], path: &Path, errors: &mut ErrorList) {
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        syntax(meta::qualified_name(key), key, &path.child("key"), errors);
        let wrong = meta::label_value(value);
        if !wrong.is_empty() {
            errors.push(Error::invalid(&path.child("value"), value, wrong.join(";")));
        }
        match effect {
            "" => errors.push(Error::required(&path.child("effect"), "")),
            effect if !effects.contains(&effect) => {
                errors.push(Error::not_supported(&path.child("effect"), effect, &effects));
            }
            _ => {}
        }
        if seen.contains(&(effect, key)) {
            let mut error = Error::duplicate(&path, "");
            error.show_as(taint_text(taint));
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        } else {
            seen.push((effect, key));
        }
    }
}

fn validate_amounts(node: &Value, errors: &mut ErrorList) {
    let status = node.get("status").unwrap_or(&Value::Null);
    for key in ["capacity", "allocatable"] {
        for (name, value) in map(status, key) {
            let at = Path::new("status").child(key).child(name);
            let Some(amount) = amount(value) else {
                continue;
            };
            if amount.is_negative() {
                let why = "must be greater than or equal to 0";
                errors.push(Error::invalid(&at, amount.to_string(), why));
            }
            if resource_names::is_whole(name) && amount.milli_value() % 1000 != 0 {
                errors.push(Error::invalid(&at, amount.to_string(), "must be an integer"));
            }
        }
    }
}

/// What is wrong with how much a node can swap. Upstream finds it in the metadata.
fn wrong_swap(node: &Value) -> Option<Error> {
    let capacity = node.at("/status/nodeInfo/swap/capacity").and_then(Value::as_i64)?;
    let at = Path::new("metadata").child("nodeSwapStatus").child("capacity");
    (capacity <= 0).then(|| Error::invalid(&at, capacity, "must be greater than 0"))
}

/// What a node says that it can: names in order, each once.
fn validate_features(node: &Value, errors: &mut ErrorList) {
    let path = Path::new("status").child("declaredFeatures");
    let features = meta::elements(node, "/status/declaredFeatures");
    let features: Vec<&str> = features.iter().filter_map(Value::as_str).collect();
    for (index, feature) in features.iter().enumerate() {
        if !is_feature(feature) {
            let why = format!(
                "invalid feature name {}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                go_quote(feature)
            );
            errors.push(Error::invalid(&path.index(index), *feature, why));
        }
        let Some(next) = features.get(index + 1) else { continue };
        match feature.cmp(next) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => errors.push(Error::duplicate(&path.index(index + 1), *next)),
            std::cmp::Ordering::Greater => {
                let why = "list must be sorted alphabetically";
                errors.push(Error::invalid(&path.index(index + 1), *next, why));
            }
        }
    }
}

fn is_feature(name: &str) -> bool {
    let begins_large = name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic()) && segment.chars().all(|c| c.is_ascii_alphanumeric())
    };
    begins_large && name.split('/').all(is_segment)
}

fn validate_ranges(node: &Value, errors: &mut ErrorList) {
    let at = Path::new("spec").child("podCIDRs");
    let ranges: Vec<&str> = meta::elements(node, "/spec/podCIDRs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for (index, range) in ranges.iter().enumerate() {
        addresses::range(range, &at.index(index), errors);
    }
    if ranges.len() < 2 {
        return;
    }
    let families: Option<Vec<bool>> = ranges
        .iter()
        .map(|range| Some(Range::lenient(range)?.is_ipv4()))
        .collect();
    let mut unreadable = ranges
        .iter()
        .enumerate()
        .filter(|(_, range)| Range::lenient(range).is_none());
    if let Some((index, range)) = unreadable.next() {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {range})"
        );
        errors.push(Error::internal(&at, why));
    }
    let is_pair = matches!(families.as_deref(), Some([first, second]) if first != second);
    if !is_pair {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(Error::invalid(&at, json!(ranges), why));
    }
}

fn validate_update(node: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_annotations(node, &mut errors);
    validate_amounts(node, &mut errors);
    validate_features(node, &mut errors);
    let addresses = meta::elements(node, "/status/addresses");
    let mut seen = BTreeSet::new();
    for (index, address) in addresses.iter().enumerate() {
        let own = [text(address, "type"), text(address, "address")];
        if !seen.insert(own) {
            let mut error = Error::duplicate(&Path::new("status").child("addresses").index(index), "");
            error.show_as(format!(
                "{{\"Type\":{},\"Address\":{}}}",
                Value::from(text(address, "type")),
                Value::from(text(address, "address"))
            ));
            errors.push(error);
        }
    }
    let spec = Path::new("spec");
    let (new_spec, old_spec) = (
        node.get("spec").unwrap_or(&Value::Null),
        old.get("spec").unwrap_or(&Value::Null),
    );
    let (own, before) = (list(new_spec, "podCIDRs"), list(old_spec, "podCIDRs"));
    let changes = match own.len() == before.len() {
        true => own.iter().zip(before).filter(|(own, before)| own != before).count(),
        false => usize::from(!before.is_empty()),
    };
    for _ in 0..changes {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(Error::forbidden(&spec.child("podCIDRs"), why));
    }
    let provider = text(old_spec, "providerID");
    if !provider.is_empty() && provider != text(new_spec, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(Error::forbidden(&spec.child("providerID"), why));
    }
    validate_taints(meta::elements(node, "/spec/taints"), &taints(), &mut errors);
    if text(new_spec, "externalID") != text(old_spec, "externalID") {
        errors.push(Error::forbidden(&spec.child("externalID"), "may not be updated"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_swap_have_something_to_swap_to() {
        for (swap, expected) in [
            (json!({}), None),
            (json!({"capacity": 1}), None),
            (
                json!({"capacity": 0}),
                Some("metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than 0"),
            ),
        ] {
            let wrong = wrong_swap(&json!({"status": {"nodeInfo": {"swap": swap}}}));
            assert_eq!(wrong.map(|error| error.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn new_nodes_keep_pods_away() {
        let effects = |effects: &[&str]| -> Vec<Value> {
            let taint = |effect: &&str| json!({"key": "node.kubernetes.io/not-ready", "effect": effect});
            effects.iter().map(taint).collect()
        };
        for (before, after) in [
            (&[][..], &["NoSchedule"][..]),
            (&["NoSchedule"], &["NoSchedule"]),
            (&["NoExecute"], &["NoExecute", "NoSchedule"]),
        ] {
            let mut spec = json!({"taints": effects(before)})
                .as_object()
                .cloned()
                .unwrap_or_default();
            taint_as_not_ready(&mut spec);
            assert_eq!(spec.get("taints"), Some(&effects(after).into()));
        }
    }
}
