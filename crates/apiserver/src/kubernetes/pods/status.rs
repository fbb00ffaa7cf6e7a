//! What must hold of a pod's status and of changes of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::annotations;
use crate::kubernetes::addresses;
use crate::kubernetes::checks::{list, number, syntax, text};
use crate::meta;

/// Kinds of conditions that Kubernetes itself writes.
const OWN_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
/// Lists of what is told of containers, and of which containers.
const STATUSES: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];
const MESSAGE_MAX: usize = 1024;
const HIGHEST_ID: i64 = i32::MAX as i64;
const NEGATIVE: &str = "must be a non-negative integer";

fn status_of(pod: &Value) -> &Value {
    pod.get("status").unwrap_or(&Value::Null)
}

fn generation(object: &Value) -> i64 {
    number(object, "observedGeneration").unwrap_or(0)
}

/// Brings the addresses of a pod and the first of them, which stands alone, too, into agreement: the one that stands alone counts.
pub(super) fn agree_on_addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let first = |status: &serde_json::Map<String, Value>| {
        let all = status.get("podIPs").and_then(Value::as_array);
        all.and_then(|all| all.first()).map(|own| text(own, "ip").to_owned())
    };
    let alone = status
        .get("podIP")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match first(status) {
        Some(first) if alone.is_empty() && !first.is_empty() => {
            status.insert("podIP".to_owned(), first.into());
        }
        first if !alone.is_empty() && first.as_ref() != Some(&alone) => {
            status.insert("podIPs".to_owned(), json!([{"ip": alone}]));
        }
        _ => {}
    }
}

/// Takes away what belongs to features that are off and was not there before.
fn strip(status: &mut Value, before: &Value) {
    const CLAIMS: &str = "nodeAllocatableResourceClaimStatuses";
    if before.get(CLAIMS).is_none()
        && let Some(members) = status.as_object_mut()
    {
        members.remove(CLAIMS);
    }
    let mounts = STATUSES
        .iter()
        .flat_map(|(key, _)| list(before, key))
        .flat_map(|own| list(own, "volumeMounts"));
    let mut mounts = mounts.filter(|mount| mount.get("volumeStatus").is_some());
    if mounts.next().is_some() {
        return;
    }
    for (key, _) in STATUSES {
        let containers = status.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container.get_mut("volumeMounts").and_then(Value::as_array_mut);
            for mount in mounts.into_iter().flatten().filter_map(Value::as_object_mut) {
                mount.remove("volumeStatus");
            }
        }
    }
}

/// Fills in a new status what who writes it does not know or may not forget.
pub(super) fn prepare(pod: &mut Value, old: &Value) {
    // kubelets say when a pod was deleted, and may be wrong
    meta::set(pod, "deletionTimestamp", old.at("/metadata/deletionTimestamp").cloned());
    let before = status_of(old);
    let Some(members) = pod.as_object_mut() else { return };
    let status = members.entry("status").or_insert_with(|| json!({}));
    strip(status, before);
    let Some(status) = status.as_object_mut() else { return };
    if status
        .get("qosClass")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
        && let Some(class) = before.get("qosClass")
    {
        status.insert("qosClass".to_owned(), class.clone());
    }
    if status.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0) == 0 && generation(before) != 0 {
        status.insert("observedGeneration".to_owned(), json!(generation(before)));
    }
    let mut known: Vec<&Value> = list(before, "conditions").iter().collect();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let kind = text(condition, "type").to_owned();
        let Some(at) = known.iter().position(|own| text(own, "type") == kind) else {
            continue;
        };
        let seen = generation(known.remove(at));
        if generation(condition) == 0
            && seen != 0
            && let Some(members) = condition.as_object_mut()
        {
            members.insert("observedGeneration".to_owned(), json!(seen));
        }
    }
}

/// Checks a new status of a pod.
pub(super) fn validate(pod: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    annotations::validate_changes(pod, old, &mut errors);
    let (status, before, path) = (status_of(pod), status_of(old), Path::new("status"));
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let at = path.child("conditions").index(index);
        let seen = generation(condition);
        if seen < 0 {
            errors.push(Error::invalid(&at.child("observedGeneration"), seen, NEGATIVE));
        }
        let kind = text(condition, "type");
        if !OWN_CONDITIONS.contains(&kind) {
            syntax(meta::qualified_name(kind), kind, &at.child("Type"), &mut errors);
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if !nominated.is_empty() && nominated != text(before, "nominatedNodeName") {
        let at = path.child("nominatedNodeName");
        syntax(meta::dns1123_subdomain(nominated), nominated, &at, &mut errors);
        if !meta::text(old, "/spec/nodeName").is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(Error::forbidden(&at, why));
        }
    }
    if generation(status) < 0 {
        let at = path.child("observedGeneration");
        errors.push(Error::invalid(&at, generation(status), NEGATIVE));
    }
    if text(status, "qosClass") != text(before, "qosClass") {
        let at = path.child("qosClass");
        errors.push(Error::invalid(&at, text(status, "qosClass"), "field is immutable"));
    }
    for (key, containers) in STATUSES {
        validate_transitions(status, old, key, containers, &mut errors);
    }
    validate_claims(status, pod, &path.child("resourceClaimStatuses"), &mut errors);
    validate_extended(status, pod, &path.child("extendedResourceClaimStatus"), &mut errors);
    validate_addresses(status, before, "podIPs", &mut errors);
    let first = list(status, "hostIPs").first().map(|own| text(own, "ip"));
    if let Some(first) = first.filter(|first| *first != text(status, "hostIP")) {
        let at = path.child("hostIPs").index(0).child("ip");
        errors.push(Error::invalid(&at, first, "must be equal to `hostIP`"));
    }
    validate_addresses(status, before, "hostIPs", &mut errors);
    for (key, _) in STATUSES {
        validate_users(status, pod, key, &mut errors);
    }
    for (key, containers) in STATUSES {
        for (index, own) in list(status, key).iter().enumerate() {
            let at = path.child(key).index(index).child("allocatedResourcesStatus");
            let allocated = list(own, "allocatedResourcesStatus");
            if key == "ephemeralContainerStatuses" && !allocated.is_empty() {
                errors.push(Error::forbidden(&at, "must not be specified in container status"));
                continue;
            }
            let spec = pod.get("spec").unwrap_or(&Value::Null);
            let container = list(spec, containers)
                .iter()
                .find(|container| text(container, "name") == text(own, "name"));
            validate_allocated(allocated, container, &at, &mut errors);
        }
    }
    errors
}

/// Whether a container may begin anew after it ended with a code.
fn may_begin_anew(container: &Value, of_pod: &str, code: i64) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => code != 0,
        policy => policy != "Never",
    };
    let Some(policy) = container.get("restartPolicy").and_then(Value::as_str) else {
        return by_policy(of_pod);
    };
    let is_meant = |rule: &&Value| {
        let codes = rule.get("exitCodes").unwrap_or(&Value::Null);
        let is_listed = list(codes, "values").iter().any(|own| own.as_i64() == Some(code));
        match text(codes, "operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    };
    let rule = list(container, "restartPolicyRules").iter().find(is_meant);
    let restarts = |rule: &Value| matches!(text(rule, "action"), "Restart" | "RestartAllContainers");
    rule.is_some_and(restarts) || by_policy(policy)
}

/// What has ended does not begin anew where it is not to be restarted.
fn validate_transitions(status: &Value, old: &Value, key: &str, containers: &str, errors: &mut ErrorList) {
    let spec = old.get("spec").unwrap_or(&Value::Null);
    let of_pod = text(spec, "restartPolicy");
    let restarts_all = ["initContainers", "containers"]
        .iter()
        .flat_map(|key| list(spec, key))
        .flat_map(|container| list(container, "restartPolicyRules"))
        .any(|rule| text(rule, "action") == "RestartAllContainers");
    let is_ephemeral = containers == "ephemeralContainers";
    if restarts_all && !is_ephemeral {
        return;
    }
    for (index, before) in list(status_of(old), key).iter().enumerate() {
        let Some(ended) = before.at("/state/terminated") else {
            continue;
        };
        let name = text(before, "name");
        let goes_on = |own: &&Value| text(own, "name") == name && own.at("/state/terminated").is_none();
        let found = list(status, key).iter().filter(goes_on).count();
        let container = list(spec, containers).iter().find(|own| text(own, "name") == name);
        let may = || {
            let code = number(ended, "exitCode").unwrap_or(0);
            !is_ephemeral && container.is_some_and(|container| may_begin_anew(container, of_pod, code))
        };
        // each ephemeral one is told of, of the others one
        let times = if is_ephemeral { found } else { found.min(1) };
        if times == 0 || may() {
            continue;
        }
        let at = Path::new("status").child(key).index(index).child("state");
        for _ in 0..times {
            errors.push(Error::forbidden(&at, "may not be transitioned to non-terminated state"));
        }
    }
}

fn validate_claims(status: &Value, pod: &Value, path: &Path, errors: &mut ErrorList) {
    let claims = meta::elements(pod, "/spec/resourceClaims");
    let mut names = BTreeSet::new();
    for (index, own) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let (at, name) = (path.index(index), text(own, "name"));
        if !claims.iter().any(|claim| text(claim, "name") == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(Error::invalid(&at.child("name"), name, why));
        }
        if !names.insert(name) {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        if let Some(claim) = own.get("resourceClaimName").and_then(Value::as_str) {
            syntax(
                meta::dns1123_subdomain(claim),
                claim,
                &at.child("resourceClaimName"),
                errors,
            );
        }
    }
}

/// The claim that stands for extended resources, and which of its requests are for which container.
fn validate_extended(status: &Value, pod: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(own) = status.get("extendedResourceClaimStatus") else {
        return;
    };
    let mappings = list(own, "requestMappings");
    let at = path.child("requestMappings");
    if mappings.is_empty() {
        errors.push(Error::required(&at, "at least one request mapping is required"));
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let container = |name: &str| {
        // of a container and an init container of one name the first counts
        let mut all = ["containers", "initContainers"].iter().flat_map(|key| list(spec, key));
        all.find(|container| text(container, "name") == name)
    };
    let mut seen = BTreeSet::new();
    for (index, mapping) in mappings.iter().enumerate() {
        let at = at.index(index);
        let [name, resource, request] = ["containerName", "resourceName", "requestName"].map(|key| text(mapping, key));
        match container(name).map(|own| own.at("/resources/requests").and_then(|all| all.get(resource))) {
            Some(Some(_)) => {}
            Some(None) => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(Error::invalid(&at.child("resourceName"), resource, why));
            }
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(Error::invalid(&at.child("containerName"), name, why));
            }
        }
        syntax(
            meta::dns1123_label(request),
            request,
            &path.child("requestName"),
            errors,
        );
        if !seen.insert((name, resource, request)) {
            for (key, value) in [
                ("containerName", name),
                ("resourceName", resource),
                ("requestName", request),
            ] {
                errors.push(Error::duplicate(&at.child(key), value));
            }
        }
    }
    let (claim, at) = (text(own, "resourceClaimName"), path.child("resourceClaimName"));
    match claim {
        "" => errors.push(Error::required(&at, "")),
        claim => syntax(meta::dns1123_subdomain(claim), claim, &at, errors),
    }
}

/// Addresses, at most one of each family. Malformed ones that were there may stay.
fn validate_addresses(status: &Value, before: &Value, key: &str, errors: &mut ErrorList) {
    let path = Path::new("status").child(key);
    let addresses: Vec<&str> = list(status, key).iter().map(|own| text(own, "ip")).collect();
    for (index, address) in addresses.iter().enumerate() {
        if !list(before, key).iter().any(|own| text(own, "ip") == *address) {
            addresses::address(address, &path.index(index), errors);
        }
    }
    if addresses.len() < 2 {
        return;
    }
    let parsed: Result<Vec<IpAddr>, usize> = addresses
        .iter()
        .enumerate()
        .map(|(index, own)| own.parse().map_err(|_| index))
        .collect();
    let shown = || Value::Array(list(status, key).to_vec());
    let refuse = |errors: &mut ErrorList| {
        let why = "may specify no more than one IP for each IP family";
        let text: Vec<String> = addresses
            .iter()
            .map(|own| format!("{{\"IP\":{}}}", Value::from(*own)))
            .collect();
        let mut error = Error::invalid(&path, shown(), why);
        error.show_as(format!("[{}]", text.join(",")));
        errors.push(error);
    };
    match parsed {
        Ok(all) => {
            let families = (all.iter().any(IpAddr::is_ipv4), all.iter().any(IpAddr::is_ipv6));
            if families != (true, true) || all.len() > 2 {
                refuse(errors);
            }
        }
        Err(index) => {
            let wrong = addresses.get(index).copied().unwrap_or_default();
            let why = format!("failed to check for dual stack with error:invalid IP[{index}]: {wrong}");
            errors.push(Error::internal(&path, why));
            refuse(errors);
        }
    }
}

/// Users as which containers run.
fn validate_users(status: &Value, pod: &Value, key: &str, errors: &mut ErrorList) {
    let system = pod.at("/spec/os/name").and_then(Value::as_str).unwrap_or("linux");
    for (index, own) in list(status, key).iter().enumerate() {
        let Some(user) = own.at("/user/linux") else {
            continue;
        };
        let at = Path::new("status").child(key).index(index).child("user").child("linux");
        if system == "windows" {
            errors.push(Error::forbidden(&at, "cannot be set for a windows pod"));
            continue;
        }
        let groups = list(user, "supplementalGroups").iter().enumerate();
        let ids = [("uid", number(user, "uid")), ("gid", number(user, "gid"))];
        let ids = ids.into_iter().map(|(key, id)| (at.child(key), id));
        let groups = groups.map(|(index, id)| (at.child("supplementalGroups").index(index), id.as_i64()));
        for (at, id) in ids.chain(groups) {
            if let Some(id) = id.filter(|id| !(0..=HIGHEST_ID).contains(id)) {
                errors.push(Error::invalid(&at, id, "must be between 0 and 2147483647, inclusive"));
            }
        }
    }
}

/// How the devices are that a container was given.
fn validate_allocated(allocated: &[Value], container: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    for (index, own) in allocated.iter().enumerate() {
        let (at, name) = (path.index(index), text(own, "name"));
        if let Some(container) = container {
            let resources = container.get("resources").unwrap_or(&Value::Null);
            let (is_known, why) = match name.strip_prefix("claim:") {
                Some(name) => {
                    let is_same = |claim: &Value| match (text(claim, "name"), text(claim, "request")) {
                        (claim, "") => claim == name,
                        (claim, request) => format!("{claim}/{request}") == name,
                    };
                    let why = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
                    (list(resources, "claims").iter().any(is_same), why)
                }
                None => {
                    let is_known = resources.get("requests").is_some_and(|all| all.get(name).is_some());
                    (is_known, "must match one of the container's resource requests")
                }
            };
            if !is_known {
                errors.push(Error::invalid(&at.child("name"), name, why));
            }
        }
        let mut seen = BTreeSet::new();
        for (index, resource) in list(own, "resources").iter().enumerate() {
            let at = at.child("resources").index(index);
            let health = text(resource, "health");
            if !HEALTH.contains(&health) {
                errors.push(Error::not_supported(&at.child("health"), health, &HEALTH));
            }
            match resource.get("message").and_then(Value::as_str) {
                Some("") => errors.push(Error::required(&at.child("message"), "must be non-empty if specified")),
                Some(message) if message.len() > MESSAGE_MAX => {
                    errors.push(Error::too_long(&at.child("message"), MESSAGE_MAX));
                }
                _ => {}
            }
            let id = text(resource, "resourceID");
            if !seen.insert(id) {
                errors.push(Error::duplicate(&at.child("resourceID"), id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: Value, status: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec, "status": status})
    }

    #[test]
    fn what_has_ended_begins_anew_only_where_it_may() {
        let ended = json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]});
        let running = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
        let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]);
        for (spec, may) in [
            (json!({"restartPolicy": "Always", "containers": [{"name": "c"}]}), true),
            (
                json!({"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}),
                true,
            ),
            (json!({"restartPolicy": "Never", "containers": [{"name": "c"}]}), false),
            (
                json!({"restartPolicy": "Always", "containers": [{"name": "c", "restartPolicy": "Never"}]}),
                false,
            ),
            (
                json!({"restartPolicy": "Never", "containers": [{"name": "c", "restartPolicy": "Never", "restartPolicyRules": rules}]}),
                true,
            ),
            (json!({"restartPolicy": "Always", "containers": [{"name": "d"}]}), false),
        ] {
            let errors = validate(&pod(spec.clone(), running.clone()), &pod(spec.clone(), ended.clone()));
            assert_eq!(errors.is_empty(), may, "{spec}");
        }
    }

    #[test]
    fn one_address_of_each_family() {
        let none = pod(json!({}), json!({}));
        for (addresses, expected) in [
            (json!([{"ip": "10.0.0.1"}, {"ip": "::1"}]), vec![]),
            (
                json!([{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]),
                vec![
                    r#"status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family"#,
                ],
            ),
        ] {
            let errors = validate(&pod(json!({}), json!({"podIPs": addresses})), &none);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_was_observed_stays_known() {
        let old = pod(
            json!({}),
            json!({"qosClass": "Burstable", "observedGeneration": 3, "conditions": [{"type": "A", "observedGeneration": 2}]}),
        );
        let mut new = pod(json!({}), json!({"conditions": [{"type": "A"}, {"type": "B"}]}));
        prepare(&mut new, &old);
        assert_eq!(
            new["status"],
            json!({"qosClass": "Burstable", "observedGeneration": 3, "conditions": [{"type": "A", "observedGeneration": 2}, {"type": "B"}]})
        );
    }

    #[test]
    fn the_address_that_stands_alone_counts() {
        for (status, expected) in [
            (json!({"podIP": "a"}), json!({"podIP": "a", "podIPs": [{"ip": "a"}]})),
            (
                json!({"podIPs": [{"ip": "a"}, {"ip": "b"}]}),
                json!({"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "b"}]}),
            ),
            (
                json!({"podIP": "c", "podIPs": [{"ip": "a"}, {"ip": "b"}]}),
                json!({"podIP": "c", "podIPs": [{"ip": "c"}]}),
            ),
            (json!({}), json!({})),
        ] {
            let mut own = pod(json!({}), status);
            agree_on_addresses(&mut own);
            assert_eq!(own["status"], expected);
        }
    }
}
