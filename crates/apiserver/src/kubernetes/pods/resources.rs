//! What pods and their containers ask for and may take: what must hold of it, how it adds up, and the class of service that follows.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity::Amount;
use serde_json::{Map, Value};

use crate::kubernetes::checks::{amount, list, map, syntax, text};
use crate::kubernetes::resource_names::{self, is_extended, is_huge, is_native, is_whole};
use crate::meta;

/// What a container takes of the node.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What a whole pod may ask for; the last stands for large pages of any size.
const OF_PODS: [&str; 3] = ["cpu", "hugepages-", "memory"];

/// Whether more may be asked for than there is.
fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge(name)
}

/// The name of a resource: one of Kubernetes' own, or one with a domain.
pub(in crate::kubernetes) fn validate_name(name: &str, at: &Path, errors: &mut ErrorList) {
    let wrong = meta::qualified_name(name);
    let is_qualified = wrong.is_empty();
    syntax(wrong, name, at, errors);
    if is_qualified && !name.contains('/') && !resource_names::is_standard(name) {
        let why = "must be a standard resource type or fully qualified";
        errors.push(Error::invalid(at, name, why));
    }
}

/// The name of a resource of containers.
pub(in crate::kubernetes) fn validate_name_of_container(name: &str, at: &Path, errors: &mut ErrorList) {
    validate_name(name, at, errors);
    let why = if !name.contains('/') {
        if OF_CONTAINERS.contains(&name) || is_huge(name) {
            return;
        }
        "must be a standard resource for containers"
    } else if is_native(name) || is_extended(name) {
        return;
    } else {
        "doesn't follow extended resource name standard"
    };
    errors.push(Error::invalid(at, name, why));
}

/// The name of a resource of whole pods.
fn validate_name_of_pod(name: &str, at: &Path, errors: &mut ErrorList) {
    let before = errors.len();
    validate_name(name, at, errors);
    if errors.len() == before && !is_of_pods(name) {
        errors.push(Error::not_supported(at, name, &OF_PODS));
    }
}

/// Whether an amount of large pages is a number of whole ones.
fn is_whole_pages(name: &str, asked: Amount) -> bool {
    let size = name
        .strip_prefix("hugepages-")
        .and_then(|size| size.parse::<Amount>().ok());
    let size = size.map_or(0, Amount::value);
    size > 0 && asked.value() > 0 && asked.value() % size == 0
}

fn validate_amount(name: &str, value: &Value, at: &Path, errors: &mut ErrorList) {
    let Some(asked) = amount(value) else { return };
    if asked.is_negative() {
        let why = "must be greater than or equal to 0";
        errors.push(Error::invalid(at, value.clone(), why));
    }
    if is_whole(name) && asked.milli_value() % 1000 != 0 {
        errors.push(Error::invalid(at, value.clone(), "must be an integer"));
    }
}

fn validate_pages(name: &str, value: &Value, at: &Path, errors: &mut ErrorList) {
    let Some(asked) = amount(value).filter(|asked| is_huge(name) && !is_whole_pages(name, *asked)) else {
        return;
    };
    let why = format!("{asked} is not positive integer multiple of {name}");
    errors.push(Error::invalid(at, asked.to_string(), why));
}

/// Amounts of resources of containers by name: neither negative nor, where they count things, fractions.
pub(in crate::kubernetes) fn validate_amounts(amounts: &Value, path: &Path, errors: &mut ErrorList) {
    for (name, value) in amounts.as_object().into_iter().flatten() {
        let at = path.key(name);
        validate_name_of_container(name, &at, errors);
        validate_amount(name, value, &at, errors);
        validate_pages(name, value, &at, errors);
    }
}

/// Checks what something asks for and may take. `claims` are the names of the pod's claims of devices.
pub(super) fn validate(
    resources: &Value,
    validate_name: fn(&str, &Path, &mut ErrorList),
    claims: &BTreeSet<&str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, value) in map(resources, "limits") {
        let at = limits.key(name);
        validate_name(name, &at, errors);
        validate_amount(name, value, &at, errors);
        validate_pages(name, value, &at, errors);
    }
    for (name, value) in map(resources, "requests") {
        let at = requests.key(name);
        validate_name(name, &at, errors);
        validate_amount(name, value, &at, errors);
        let limit = resources.get("limits").and_then(|limits| limits.get(name));
        match limit {
            None if !is_overcommitted(name) => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(Error::required(&limits, why));
            }
            None => {}
            Some(limit) => {
                if let (Some(asked), Some(most)) = (amount(value), amount(limit))
                    && asked != most
                    && (asked > most || !is_overcommitted(name))
                {
                    let how = if is_overcommitted(name) {
                        "must be less than or equal to"
                    } else {
                        "must be equal to"
                    };
                    let why = format!("{how} {name} limit of {most}");
                    errors.push(Error::invalid(&requests, value.clone(), why));
                }
            }
        }
        validate_pages(name, value, &at, errors);
    }
    let names = || {
        ["limits", "requests"]
            .into_iter()
            .flat_map(|key| map(resources, key))
            .map(|(name, _)| name.as_str())
    };
    if names().any(is_huge) && !names().any(|name| matches!(name, "cpu" | "memory")) {
        errors.push(Error::forbidden(path, "HugePages require cpu or memory"));
    }
    validate_claims(resources, claims, &path.child("claims"), errors);
}

/// References to the pod's claims of devices, each to a whole claim or to a request of it.
fn validate_claims(resources: &Value, claims: &BTreeSet<&str>, path: &Path, errors: &mut ErrorList) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in list(resources, "claims").iter().enumerate() {
        let at = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(Error::duplicate(&at, name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                syntax(meta::dns1123_label(request), request, &at.child("request"), errors);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.push(Error::duplicate(&at, key.as_str()));
            } else if request.is_empty() {
                let parts = seen
                    .iter()
                    .filter(|own| own.split_once('/').is_some_and(|(own, _)| own == name));
                errors.extend(parts.map(|_| Error::duplicate(&at, name)));
            }
            seen.insert(key);
        }
        if !claims.contains(name) {
            let mut error = Error::not_found(&at, name);
            let known: Vec<&str> = claims.iter().copied().collect();
            error.detail = match known.as_slice() {
                [] => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
                known => format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    known.join(", ")
                ),
            };
            errors.push(error);
        }
    }
}

type Amounts<'v> = BTreeMap<&'v str, Amount>;

fn amounts<'v>(resources: &'v Value, kind: &str) -> Amounts<'v> {
    map(resources, kind)
        .filter_map(|(name, value)| Some((name.as_str(), amount(value)?)))
        .collect()
}

fn add<'v>(sum: &mut Amounts<'v>, more: &Amounts<'v>) {
    for (name, more) in more {
        sum.entry(name).and_modify(|own| *own = *own + *more).or_insert(*more);
    }
}

fn at_least<'v>(most: &mut Amounts<'v>, other: &Amounts<'v>) {
    for (name, other) in other {
        let own = most.entry(name).or_insert(*other);
        if *other > *own {
            *own = *other;
        }
    }
}

/// What the containers of a spec ask for (`requests`) or may take (`limits`) together: init containers run one after the other, beside those
/// that go on.
fn of_containers<'v>(containers: &'v [Value], init: &'v [Value], kind: &str) -> Amounts<'v> {
    let none = &Value::Null;
    let own = |container: &'v Value| amounts(container.get("resources").unwrap_or(none), kind);
    let mut sum = Amounts::new();
    for container in containers {
        add(&mut sum, &own(container));
    }
    let (mut going_on, mut beginning) = (Amounts::new(), Amounts::new());
    for container in init {
        let mut own = own(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut going_on, &own);
            own = going_on.clone();
        } else {
            add(&mut own, &going_on);
        }
        at_least(&mut beginning, &own);
    }
    at_least(&mut sum, &beginning);
    sum
}

/// Checks what a pod asks for as a whole, beside what its containers ask for.
pub(super) fn validate_pod(spec: &Value, claims: &BTreeSet<&str>, path: &Path, errors: &mut ErrorList) {
    let Some(resources) = spec.get("resources") else { return };
    let path = path.child("resources");
    if spec.at("/os/name").and_then(Value::as_str) == Some("windows") {
        errors.push(Error::forbidden(&path, "may not be set for a windows pod"));
        return;
    }
    if resources.get("claims").is_some() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(Error::forbidden(&path.child("claims"), why));
    }
    validate(resources, validate_name_of_pod, claims, &path, errors);
    let (containers, init) = (list(spec, "containers"), list(spec, "initContainers"));
    for kind in ["requests", "limits"] {
        let own = amounts(resources, kind);
        for (name, all) in of_containers(containers, init, kind) {
            let Some(own) = own.get(name).filter(|own| all > **own) else {
                continue;
            };
            if kind == "requests" || is_huge(name) {
                let why = format!("must be greater than or equal to aggregate container {kind} of {all}");
                errors.push(Error::invalid(&path.child(kind).key(name), own.to_string(), why));
            }
        }
    }
    let own = amounts(resources, "limits");
    for (index, container) in containers.iter().enumerate() {
        let limits = amounts(container.get("resources").unwrap_or(&Value::Null), "limits");
        for (name, limit) in limits {
            let Some(most) = own.get(name).filter(|own| limit > **own) else {
                continue;
            };
            let why = format!("must be less than or equal to pod limits of {most}");
            let at = path.child("containers").index(index).key(name).child("limits");
            errors.push(Error::invalid(&at, limit.to_string(), why));
        }
    }
}

/// Fills what a pod asks for as a whole where it says in part what it may take.
pub(in crate::kubernetes) fn default_pod(spec: &mut Map<String, Value>) {
    let Some(Value::Object(resources)) = spec.get("resources") else {
        return;
    };
    let empty = Vec::new();
    let part = |key: &str| spec.get(key).and_then(Value::as_array).unwrap_or(&empty).as_slice();
    let (containers, init) = (part("containers"), part("initContainers"));
    let members = |kind: &str| {
        resources
            .get(kind)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (mut limits, mut requests) = (members("limits"), members("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, all) in of_containers(containers, init, "limits") {
        if is_huge(name) && !requests.contains_key(name) && !limits.contains_key(name) {
            limits.insert(name.to_owned(), all.to_string().into());
        }
    }
    if !limits.is_empty() {
        for (name, all) in of_containers(containers, init, "requests") {
            if is_of_pods(name) && is_overcommitted(name) && !requests.contains_key(name) {
                requests.insert(name.to_owned(), all.to_string().into());
            }
        }
        for (name, limit) in &limits {
            if is_of_pods(name) && !requests.contains_key(name) {
                requests.insert(name.clone(), limit.clone());
            }
        }
    }
    let Some(Value::Object(resources)) = spec.get_mut("resources") else {
        return;
    };
    for (kind, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.insert(kind.to_owned(), amounts.into());
        }
    }
}

/// `Guaranteed` when cpu and memory of all are limited to what is asked for, `BestEffort` when nothing is told of either, else `Burstable`. What
/// is told of the whole pod counts in place of what is told of its containers.
pub(in crate::kubernetes) fn quality_of_service(pod: &Value) -> &'static str {
    let none = &Value::Null;
    let spec = pod.get("spec").unwrap_or(none);
    let of_containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|key| list(spec, key))
            .map(|container| container.get("resources").unwrap_or(none))
    };
    let all: Vec<&Value> = match spec.get("resources") {
        Some(resources) => vec![resources],
        None => of_containers().collect(),
    };
    let of_pod = spec.get("resources").is_some();
    let told = |resources: &'_ Value, kind: &str| -> BTreeMap<String, Amount> {
        let own = amounts(resources, kind).into_iter();
        own.filter(|(name, amount)| matches!(*name, "cpu" | "memory") && !amount.is_zero() && !amount.is_negative())
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    };
    let mut requests: BTreeMap<String, Amount> = BTreeMap::new();
    let mut limits: BTreeMap<String, Amount> = BTreeMap::new();
    let mut guaranteed = true;
    for resources in all {
        let own = told(resources, "limits");
        // a pod that limits nothing as a whole is judged by what it asks for
        if own.len() < 2 && !(of_pod && map(resources, "limits").next().is_none()) {
            guaranteed = false;
        }
        for (sum, more) in [(&mut requests, told(resources, "requests")), (&mut limits, own)] {
            for (name, more) in more {
                sum.entry(name).and_modify(|own| *own = *own + more).or_insert(more);
            }
        }
    }
    match (
        requests.is_empty() && limits.is_empty(),
        guaranteed && requests == limits,
    ) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(requests: Value, limits: Value) -> Value {
        json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn classes_of_service() {
        let full = json!({"cpu": "1", "memory": "1Gi"});
        for (spec, expected) in [
            (json!({"containers": [{"name": "c"}]}), "BestEffort"),
            (
                json!({"containers": [container(json!({"cpu": "0"}), json!({}))]}),
                "BestEffort",
            ),
            (
                json!({"containers": [container(full.clone(), full.clone())]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [container(full.clone(), json!({"cpu": "1000m", "memory": "1024Mi"}))]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [container(full.clone(), full.clone()), {"name": "d"}]}),
                "Burstable",
            ),
            (
                json!({"containers": [container(full.clone(), full.clone())], "resources": {}}),
                "BestEffort",
            ),
            (
                json!({"containers": [{"name": "c"}], "resources": {"requests": full, "limits": full}}),
                "Guaranteed",
            ),
            (
                json!({"containers": [{"name": "c"}], "resources": {"requests": full}}),
                "Burstable",
            ),
        ] {
            assert_eq!(quality_of_service(&json!({"spec": spec})), expected, "{spec}");
        }
    }

    #[test]
    fn init_containers_count_beside_those_that_go_on() {
        let with = |cpu: &str, policy: Option<&str>| {
            let mut own = container(json!({"cpu": cpu}), json!({}));
            if let Some(policy) = policy {
                own["restartPolicy"] = policy.into();
            }
            own
        };
        let containers = [with("1", None)];
        for (init, expected) in [
            (vec![], "1"),
            (vec![with("3", None)], "3"),
            (vec![with("1", Some("Always")), with("3", None)], "4"),
            (vec![with("3", None), with("1", Some("Always"))], "3"),
            (vec![with("2", Some("Always"))], "3"),
        ] {
            let sum = of_containers(&containers, &init, "requests");
            assert_eq!(
                sum.get("cpu").map(ToString::to_string).as_deref(),
                Some(expected),
                "{init:?}"
            );
        }
    }

    #[test]
    fn a_pod_asks_for_what_its_containers_ask_for() {
        for (resources, expected) in [
            (
                json!({"limits": {"memory": "2Gi", "cpu": "3"}}),
                json!({"limits": {"memory": "2Gi", "cpu": "3"}, "requests": {"memory": "2Gi", "cpu": "1"}}),
            ),
            (json!({"requests": {"cpu": "3"}}), json!({"requests": {"cpu": "3"}})),
            (json!({}), json!({})),
        ] {
            let mut spec = json!({"containers": [container(json!({"cpu": "1"}), json!({}))], "resources": resources});
            if let Some(spec) = spec.as_object_mut() {
                default_pod(spec);
            }
            assert_eq!(spec["resources"], expected);
        }
    }

    #[test]
    fn what_may_not_be_asked_for() {
        let none = BTreeSet::new();
        for (resources, expected) in [
            (json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}), vec![]),
            (
                json!({"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}),
                vec!["r.requests: Invalid value: \"3\": must be less than or equal to cpu limit of 2"],
            ),
            (
                json!({"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}),
                vec![
                    "r.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                ],
            ),
            (
                json!({"requests": {"example.com/gpu": "1"}}),
                vec!["r.limits: Required value: Limit must be set for non overcommitable resources"],
            ),
            (
                json!({"claims": [{"name": "a"}]}),
                vec![
                    "r.claims[0]: Not found: \"a\": must be one of the names in pod.spec.resourceClaims which is empty",
                ],
            ),
        ] {
            let mut errors = Vec::new();
            validate(
                &resources,
                validate_name_of_container,
                &none,
                &Path::new("r"),
                &mut errors,
            );
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{resources}");
        }
    }
}
