//! Quotas, limit ranges, classes of priority and of runtimes: what bounds pods.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use super::checks::{self, amount, list, map, number, spec_of, syntax, text};
use super::pods::{resources, scheduling, warnings};
use super::resource_names;
use super::strategy::Kind;
use crate::definition::Nameless;
use crate::meta;

/// Resources of running pods.
const COMPUTE: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const EXCLUSIVE: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
const UNSUPPORTED: &str = "unsupported scope";
const UNSUPPORTED_FOR: &str = "unsupported scope applied to resource";

/// Amounts of a quota by resource.
fn validate_amounts(amounts: &Value, path: &Path, errors: &mut ErrorList) {
    for (name, value) in amounts.as_object().into_iter().flatten() {
        let at = path.key(name);
        resources::validate_name(name, &at, errors);
        if !name.contains('/') && !resource_names::is_of_quotas(name) {
            errors.push(Error::invalid(
                &at,
                name.as_str(),
                "must be a standard resource for quota",
            ));
        }
        let Some(own) = amount(value) else { continue };
        if own.is_negative() {
            let why = "must be greater than or equal to 0";
            errors.push(Error::invalid(&at, own.to_string(), why));
        }
        if resource_names::is_whole(name) && own.milli_value() % 1000 != 0 {
            errors.push(Error::invalid(&at, own.to_string(), "must be an integer"));
        }
    }
}

/// Whether a scope says something about a resource.
fn fits(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods" || COMPUTE.contains(&resource)
        }
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// The resources of a quota that a scope says nothing about.
fn unfit<'s>(spec: &'s Value, scope: &'s str) -> impl Iterator<Item = &'s String> {
    map(spec, "hard")
        .map(|(name, _)| name)
        .filter(move |name| resource_names::is_of_quotas(name) && !fits(scope, name))
}

fn validate_scopes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let scopes: Vec<&str> = list(spec, "scopes").iter().filter_map(Value::as_str).collect();
    let at = path.child("scopes");
    let mut invalid = |why: &str| errors.push(Error::invalid(&at, list(spec, "scopes").to_vec(), why));
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            invalid(UNSUPPORTED);
        }
        unfit(spec, scope).for_each(|_| invalid(UNSUPPORTED_FOR));
    }
    for pair in EXCLUSIVE {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            invalid("conflicting scopes");
        }
    }
}

/// A selector of scopes as upstream shows it.
fn scope_selector_text(selector: &Value) -> String {
    let shown: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|one| {
            format!(
                "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
                Value::from(text(one, "scopeName")),
                Value::from(text(one, "operator")),
                one.get("values").unwrap_or(&Value::Null)
            )
        })
        .collect();
    format!("{{\"MatchExpressions\":[{}]}}", shown.join(","))
}

fn validate_scope_selector(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(selector) = spec.get("scopeSelector") else {
        return;
    };
    let path = path.child("scopeSelector").child("matchExpressions");
    let requirements = list(selector, "matchExpressions");
    for requirement in requirements {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        if !SCOPES.contains(&scope) {
            errors.push(Error::invalid(&path.child("scopeName"), scope, UNSUPPORTED));
        }
        for _ in unfit(spec, scope) {
            errors.push(Error::literal(&path, scope_selector_text(selector), UNSUPPORTED_FOR));
        }
        let has_no_values = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope);
        if has_no_values && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(Error::invalid(&path.child("operator"), operator, why));
        }
        let values = list(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => errors.push(Error::required(
                &path.child("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(Error::invalid(
                &path.child("values"),
                values.to_vec(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(Error::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
    }
    for pair in EXCLUSIVE {
        let has = |scope: &&str| requirements.iter().any(|one| text(one, "scopeName") == *scope);
        if pair.iter().all(has) {
            let scopes = spec.get("scopes").cloned().unwrap_or(Value::Null);
            errors.push(Error::invalid(&path, scopes, "conflicting scopes"));
        }
    }
}

fn validate_quota_status(quota: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = quota.get("status").unwrap_or(&Value::Null);
    for key in ["hard", "used"] {
        let amounts = status.get(key).unwrap_or(&Value::Null);
        validate_amounts(amounts, &Path::new("status").child(key), &mut errors);
    }
    errors
}

pub(super) fn quotas(mut kind: Kind) -> Kind {
    kind.whole_first = true;
    kind.validate = |quota| {
        let mut errors = ErrorList::new();
        let (spec, path) = (spec_of(quota), Path::new("spec"));
        let none = Value::Null;
        validate_amounts(spec.get("hard").unwrap_or(&none), &path.child("hard"), &mut errors);
        validate_scopes(spec, &path, &mut errors);
        validate_scope_selector(spec, &path, &mut errors);
        errors
    };
    kind.validate_update = |quota, old| {
        let scopes = |quota: &Value| -> BTreeSet<String> {
            let all = list(spec_of(quota), "scopes").iter();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        match scopes(quota) == scopes(old) {
            true => Vec::new(),
            false => {
                let at = Path::new("spec").child("scopes");
                let shown = spec_of(quota).get("scopes").cloned().unwrap_or(Value::Null);
                vec![Error::invalid(&at, shown, "field is immutable")]
            }
        }
    };
    kind.validate_status = |quota, _| validate_quota_status(quota);
    kind.warnings = |quota, old| match old {
        None => warn_of_requests(quota),
        Some(_) => Vec::new(),
    };
    kind
}

/// Warns of a quota that lets more be asked for than be used.
fn warn_of_requests(quota: &Value) -> Vec<String> {
    let hard = spec_of(quota).get("hard").unwrap_or(&Value::Null);
    let told = |name: String| hard.get(&name).and_then(amount).map(|own| (name, own));
    let of = |resource: &str| {
        // of two resources the plain name tells it, too
        let plain = ["cpu", "memory"].contains(&resource).then(|| resource.to_owned());
        let (asked, request) = told(format!("requests.{resource}")).or_else(|| plain.and_then(told))?;
        let (limit, most) = told(format!("limits.{resource}"))?;
        (request > most).then(|| format!("ResourceQuota {asked} ({request}) should be less than {limit} ({most})"))
    };
    let resources = ["cpu", "memory", "storage", "ephemeral-storage"];
    resources.into_iter().filter_map(of).collect()
}

type Amounts<'v> = BTreeMap<&'v str, Amount>;

/// How many times as much as is asked for a limit may be: not more than the least and the most allow (if both are told).
fn validate_ratio(ratio: &Amount, bounds: Option<(&Amount, &Amount)>, at: &Path, errors: &mut ErrorList) {
    if *ratio < Amount::units(1) {
        errors.push(Error::invalid(
            at,
            ratio.to_string(),
            format!("ratio {ratio} is less than 1"),
        ));
    }
    let Some((least, most)) = bounds else { return };
    // thousandths are looked at where all of them can be told in them
    let in_thousandths = [ratio, least, most].iter().all(|own| own.value() < i64::MAX / 1000);
    let parts = |own: &Amount| match in_thousandths {
        true => own.milli_value(),
        false => own.value(),
    };
    #[allow(clippy::cast_precision_loss)] // upstream divides floating point numbers, too
    let possible = parts(most) as f64 / parts(least) as f64;
    #[allow(clippy::cast_precision_loss)]
    let asked = match in_thousandths {
        true => ratio.milli_value() as f64 / 1000.0,
        false => ratio.value() as f64,
    };
    if asked > possible {
        let why = format!("ratio {ratio} is greater than max/min = {possible:.6}");
        errors.push(Error::invalid(at, ratio.to_string(), why));
    }
}

/// One limit of a range: amounts that do not contradict each other.
fn validate_limit(limit: &Value, path: &Path, errors: &mut ErrorList) {
    let kind = text(limit, "type");
    let read = |key: &str, errors: &mut ErrorList| -> Amounts<'_> {
        let path = path.child(key);
        let mut found = Amounts::new();
        for (name, value) in map(limit, key) {
            match kind {
                "Pod" | "Container" => resources::validate_name_of_container(name, &path.key(name), errors),
                _ => resources::validate_name(name, &path.key(name), errors),
            }
            found.extend(amount(value).map(|amount| (name.as_str(), amount)));
        }
        found
    };
    let (most, least) = (read("max", errors), read("min", errors));
    let (mut defaults, mut requests) = (Amounts::new(), Amounts::new());
    if kind == "Pod" {
        for key in ["default", "defaultRequest"] {
            if map(limit, key).next().is_some() {
                let why = "may not be specified when `type` is 'Pod'";
                errors.push(Error::forbidden(&path.child(key), why));
            }
        }
    } else {
        defaults = read("default", errors);
        requests = read("defaultRequest", errors);
    }
    if kind == "PersistentVolumeClaim" && !most.contains_key("storage") && !least.contains_key("storage") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(Error::required(&path.child("limits"), why));
    }
    let ratios = read("maxLimitRequestRatio", errors);
    let names: BTreeSet<&str> = [&most, &least, &defaults, &requests, &ratios]
        .iter()
        .flat_map(|all| all.keys().copied())
        .collect();
    for name in names {
        let mut above =
            |key: &str, shown: Option<&Amount>, first: (&str, Option<&Amount>), second: (&str, Option<&Amount>)| {
                if let (Some(shown), (what, Some(one)), (limit, Some(other))) = (shown, first, second)
                    && one > other
                {
                    let why = format!("{what} value {one} is greater than {limit} value {other}");
                    errors.push(Error::invalid(&path.child(key).key(name), shown.to_string(), why));
                }
            };
        let (least, most) = (least.get(name), most.get(name));
        let (default, request) = (defaults.get(name), requests.get(name));
        above("min", least, ("min", least), ("max", most));
        above("defaultRequest", request, ("min", least), ("default request", request));
        above("defaultRequest", request, ("default request", request), ("max", most));
        above(
            "defaultRequest",
            request,
            ("default request", request),
            ("default limit", default),
        );
        above("default", least, ("min", least), ("default", default));
        above("default", most, ("default", default), ("max", most));
        if let Some(ratio) = ratios.get(name) {
            validate_ratio(
                ratio,
                least.zip(most),
                &path.child("maxLimitRequestRatio").key(name),
                errors,
            );
        }
        // what cannot be given twice is asked for as it is limited
        let may_differ = resource_names::is_native(name) && !resource_names::is_huge(name);
        if let (Some(default), Some(request), false) = (default, request, may_differ)
            && default != request
        {
            let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
            errors.push(Error::invalid(
                &path.child("defaultRequest").key(name),
                request.to_string(),
                why,
            ));
        }
    }
}

pub(super) fn limit_ranges(mut kind: Kind) -> Kind {
    kind.create_on_update = true;
    kind.nameless = Nameless::Uid;
    kind.validate = |range| {
        let mut errors = ErrorList::new();
        let mut types = BTreeSet::new();
        for (index, limit) in list(spec_of(range), "limits").iter().enumerate() {
            let path = Path::new("spec").child("limits").index(index);
            let (own, at) = (text(limit, "type"), path.child("type"));
            let wrong = meta::qualified_name(own);
            let is_known = own.contains('/') || ["Pod", "Container", "PersistentVolumeClaim"].contains(&own);
            if wrong.is_empty() && !is_known {
                let why = "must be a standard limit type or fully qualified";
                errors.push(Error::invalid(&at, own, why));
            }
            syntax(wrong, own, &at, &mut errors);
            if !types.insert(own) {
                errors.push(Error::duplicate(&at, own));
            }
            validate_limit(limit, &path, &mut errors);
        }
        errors
    };
    kind
}

/// The prefix of Kubernetes' own classes.
const SYSTEM: &str = "system-";
/// Kubernetes' own classes and their priorities.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];
const HIGHEST_OF_USERS: i64 = 1_000_000_000;

/// Whether Kubernetes itself made this class.
pub(super) fn is_system_class(name: &str) -> bool {
    SYSTEM_CLASSES.iter().any(|(own, _)| *own == name)
}

pub(super) fn priority_classes(mut kind: Kind) -> Kind {
    // upstream gives them a first generation and never another
    kind.prepare_create = |_, class| {
        meta::set(class, "generation", Some(json!(1)));
        Ok(())
    };
    kind.validate_create = |class| {
        let mut errors = ErrorList::new();
        let (name, value) = (meta::name(class), number(class, "value").unwrap_or(0));
        let known = SYSTEM_CLASSES.iter().find(|(own, _)| *own == name);
        let wrong = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, own)) if *own != value => Some(format!("value of {name} PriorityClass must be {own}")),
            Some(_) if checks::is_true(class, "globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong.filter(|_| name.starts_with(SYSTEM)) {
            let why =
                format!("priority class names with '{SYSTEM}' prefix are reserved for system use only. error: {wrong}");
            errors.push(Error::forbidden(&Path::new("metadata").child("name"), why));
        } else if !name.starts_with(SYSTEM) && value > HIGHEST_OF_USERS {
            let why = format!("maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}");
            errors.push(Error::forbidden(&Path::new("value"), why));
        }
        let policies = ["PreemptLowerPriority", "Never"];
        let own = text(class, "preemptionPolicy");
        let at = Path::new("preemptionPolicy");
        match class.get("preemptionPolicy") {
            Some(_) if own.is_empty() => errors.push(Error::required(&at, "")),
            Some(_) if !policies.contains(&own) => errors.push(Error::not_supported(&at, own, &policies)),
            _ => {}
        }
        errors
    };
    kind.validate_update = |class, old| {
        let mut errors = ErrorList::new();
        if number(class, "value").unwrap_or(0) != number(old, "value").unwrap_or(0) {
            errors.push(Error::forbidden(
                &Path::new("value"),
                "may not be changed in an update.",
            ));
        }
        if class.get("preemptionPolicy") != old.get("preemptionPolicy") {
            let shown = class.get("preemptionPolicy").cloned().unwrap_or(Value::Null);
            errors.push(Error::invalid(
                &Path::new("preemptionPolicy"),
                shown,
                "field is immutable",
            ));
        }
        errors
    };
    kind
}

/// A toleration as upstream shows it.
fn toleration_text(toleration: &Value) -> String {
    let member = |key: &str| Value::from(text(toleration, key));
    format!(
        "{{\"Key\":{},\"Operator\":{},\"Value\":{},\"Effect\":{},\"TolerationSeconds\":{}}}",
        member("key"),
        member("operator"),
        member("value"),
        member("effect"),
        toleration.get("tolerationSeconds").unwrap_or(&Value::Null)
    )
}

pub(super) fn runtime_classes(mut kind: Kind) -> Kind {
    kind.create_on_update = true;
    kind.whole_first = true;
    kind.validate = |class| {
        let mut errors = ErrorList::new();
        checks::required_syntax(
            text(class, "handler"),
            meta::dns1123_label,
            &Path::new("handler"),
            &mut errors,
        );
        if let Some(overhead) = class.get("overhead") {
            let none = Value::Null;
            let amounts = overhead.get("podFixed").unwrap_or(&none);
            resources::validate_amounts(amounts, &Path::new("overhead").child("limits"), &mut errors);
        }
        let Some(scheduling) = class.get("scheduling") else {
            return errors;
        };
        let path = Path::new("scheduling");
        checks::labels(scheduling, "nodeSelector", &path, &mut errors);
        let at = path.child("tolerations");
        scheduling::validate_tolerations(scheduling, &at, &mut errors);
        let mut seen = Vec::new();
        for (index, toleration) in list(scheduling, "tolerations").iter().enumerate() {
            let key = ["key", "operator", "value", "effect"].map(|key| text(toleration, key));
            if seen.contains(&key) {
                let mut error = Error::duplicate(&at.index(index), "");
                error.show_as(toleration_text(toleration));
                errors.push(error);
            } else {
                seen.push(key);
            }
        }
        errors
    };
    kind.warnings = |class, _| {
        let scheduling = class.get("scheduling").unwrap_or(&Value::Null);
        let found = map(scheduling, "nodeSelector").filter_map(|(key, _)| warnings::of_label(key));
        found.map(|why| format!("scheduling.nodeSelector: {why}")).collect()
    };
    kind.validate_update = |class, old| match text(class, "handler") == text(old, "handler") {
        true => Vec::new(),
        false => vec![Error::invalid(
            &Path::new("handler"),
            text(class, "handler"),
            "field is immutable",
        )],
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_that_let_more_be_asked_for_than_be_used_are_told() {
        for (hard, expected) in [
            (json!({"requests.cpu": "1", "limits.cpu": "1"}), vec![]),
            (
                json!({"cpu": "2", "limits.cpu": "1500m", "requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "1Gi"}),
                vec![
                    "ResourceQuota cpu (2) should be less than limits.cpu (1500m)",
                    "ResourceQuota requests.ephemeral-storage (2Gi) should be less than limits.ephemeral-storage (1Gi)",
                ],
            ),
            (json!({"requests.cpu": "1", "cpu": "3", "limits.cpu": "2"}), vec![]),
            (json!({"storage": "3", "limits.storage": "2"}), vec![]),
        ] {
            assert_eq!(warn_of_requests(&json!({"spec": {"hard": hard}})), expected, "{hard}");
        }
    }

    #[test]
    fn old_labels_of_nodes_are_told() {
        let (old, why) = (
            "beta.kubernetes.io/os",
            "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        );
        let requirement = json!({"key": old, "operator": "Exists"});
        for (group, resource, object, expected) in [
            (
                "node.k8s.io",
                "runtimeclasses",
                json!({"scheduling": {"nodeSelector": {old: "a"}}}),
                vec![format!("scheduling.nodeSelector: {why}")],
            ),
            (
                "storage.k8s.io",
                "storageclasses",
                json!({"allowedTopologies": [{"matchLabelExpressions": [{"key": "a"}, {"key": old}]}]}),
                vec![format!("allowedTopologies[0].matchLabelExpressions[1].key: {why}")],
            ),
            (
                "storage.k8s.io",
                "csistoragecapacities",
                json!({"nodeTopology": {"matchLabels": {old: "a"}, "matchExpressions": [requirement]}}),
                vec![
                    format!("nodeTopology.matchExpressions[0].key: {old} is {why}"),
                    format!("nodeTopology.matchLabels.{old}: {why}"),
                ],
            ),
        ] {
            let kind = crate::kubernetes::strategy::kind_of(group, resource);
            assert_eq!((kind.warnings)(&object, None), expected, "{resource}");
        }
    }
}
