//! Defaults of Kubernetes' kinds, as a real kube-apiserver fills them (recorded in `recorded/defaults.json`). Those of what has pods have files
//! of their own.

use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity;
use serde_json::{Map, Value, json};

use super::autoscaling;
use super::services::is_reached_from_outside;
use crate::meta;

mod pods;
#[cfg(test)]
mod tests;
mod workloads;

pub(super) use pods::{pod, pod_template};
pub(super) use workloads::{cron_job, daemon_set, deployment, job, replica_set, replication_controller, stateful_set};

type Object = Map<String, Value>;

fn object<'a>(value: &'a mut Value, pointer: &str) -> Option<&'a mut Object> {
    value.at_mut(pointer).and_then(Value::as_object_mut)
}

/// Sets a member unless it is there. A text without a letter is there: where Go does not tell it from none, it was dropped before.
fn set(object: &mut Object, key: &str, value: Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}

/// Sets a text that Go always writes unless it has a letter.
fn set_text(object: &mut Object, key: &str, value: &str) {
    if object.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
        object.insert(key.to_owned(), value.into());
    }
}

fn each<'a>(object: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    object
        .get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn member<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

/// Amounts are told to the thousandth, what is finer is rounded up.
fn amounts(owner: &mut Object, lists: &[&str]) {
    for list in lists {
        for amount in member(owner, list).into_iter().flat_map(Map::values_mut) {
            if let Some(rounded) = amount.as_str().and_then(quantity::rounded_to_milli) {
                *amount = rounded.into();
            }
        }
    }
}

/// What a container or a claim asks for, and may have.
fn asked(owner: &mut Object) {
    if let Some(resources) = member(owner, "resources") {
        amounts(resources, &["limits", "requests"]);
    }
}

pub(super) fn horizontal_pod_autoscaler(value: &mut Value) {
    // the first version has no metrics and no behavior
    if meta::text(value, "/apiVersion").ends_with("/v2") {
        autoscaling::drop_made_annotations(value);
        second_autoscaler(value);
    } else if let Some(spec) = object(value, "/spec") {
        set(spec, "minReplicas", json!(1));
    }
}

/// An autoscaler of autoscaling/v2.
pub(super) fn second_autoscaler(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "minReplicas", json!(1));
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("metrics".into(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]));
    }
    if let Some(behavior) = member(spec, "behavior") {
        set(behavior, "scaleUp", json!({}));
        set(behavior, "scaleDown", json!({}));
        if let Some(up) = member(behavior, "scaleUp") {
            set(up, "stabilizationWindowSeconds", json!(0));
            set(up, "selectPolicy", json!("Max"));
            set(
                up,
                "policies",
                json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]),
            );
        }
        if let Some(down) = member(behavior, "scaleDown") {
            set(down, "selectPolicy", json!("Max"));
            set(
                down,
                "policies",
                json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
            );
        }
    }
}

pub(super) fn service(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "sessionAffinity", json!("None"));
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        Some("ClientIP") => {
            let config = spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.at("/clientIP/timeoutSeconds"));
            if config.is_none_or(Value::is_null) {
                spec.insert(
                    "sessionAffinityConfig".into(),
                    json!({"clientIP": {"timeoutSeconds": 10_800}}),
                );
            }
        }
        _ => {}
    }
    set(spec, "type", json!("ClusterIP"));
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or(Value::Null);
        if port
            .get("targetPort")
            .is_none_or(|target| target == &json!(0) || target == &json!(""))
        {
            port.insert("targetPort".into(), number);
        }
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
        let told = value
            .at_mut("/status/loadBalancer/ingress")
            .and_then(Value::as_array_mut);
        for told in told.into_iter().flatten().filter_map(Value::as_object_mut) {
            if told.get("ip").and_then(Value::as_str).is_some_and(|ip| !ip.is_empty()) {
                set(told, "ipMode", json!("VIP"));
            }
        }
    }
    if is_reached_from_outside(value)
        && let Some(spec) = object(value, "/spec")
    {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    load_balancer_status(value);
}

/// A status that says that no address was given yet.
pub(super) fn load_balancer_status(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        let status = members.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.entry("loadBalancer").or_insert_with(|| json!({}));
        }
    }
}

pub(super) fn endpoints(value: &mut Value) {
    for subset in value
        .get_mut("subsets")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        for port in each(subset, "ports") {
            set(port, "protocol", json!("TCP"));
        }
    }
}

pub(super) fn endpoint_slice(value: &mut Value) {
    let Some(slice) = value.as_object_mut() else { return };
    for endpoint in each(slice, "endpoints") {
        set(endpoint, "conditions", json!({}));
    }
    for port in each(slice, "ports") {
        port.entry("name").or_insert_with(|| json!(""));
        set(port, "protocol", json!("TCP"));
    }
}

pub(super) fn network_policy(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.entry("spec").or_insert_with(|| json!({}));
    }
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "podSelector", json!({}));
    for direction in ["ingress", "egress"] {
        for rule in each(spec, direction) {
            for port in each(rule, "ports") {
                set(port, "protocol", json!("TCP"));
            }
        }
    }
    if spec
        .get("policyTypes")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        let egress = spec
            .get("egress")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
        spec.insert(
            "policyTypes".into(),
            if egress {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            },
        );
    }
}

/// What a claim was given.
const CLAIMED: [&str; 2] = ["capacity", "allocatedResources"];

fn claim_spec(spec: &mut Object) {
    set(spec, "volumeMode", json!("Filesystem"));
    asked(spec);
}

pub(super) fn persistent_volume_claim(value: &mut Value) {
    if let Some(spec) = object(value, "/spec") {
        claim_spec(spec);
    }
    phase(value, "Pending");
    if let Some(status) = object(value, "/status") {
        amounts(status, &CLAIMED);
    }
}

/// The phase in which an object is of which nobody says another.
pub(super) fn phase(value: &mut Value, told: &str) {
    let status = value
        .as_object_mut()
        .map(|members| members.entry("status").or_insert_with(|| json!({})));
    if let Some(status) = status.and_then(Value::as_object_mut) {
        set(status, "phase", told.into());
    }
}

pub(super) fn persistent_volume(value: &mut Value) {
    phase(value, "Pending");
    let Some(spec) = object(value, "/spec") else { return };
    amounts(spec, &["capacity"]);
    set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    set(spec, "volumeMode", json!("Filesystem"));
    persistent_volume_source(spec);
}

/// The source of a persistent volume, or of one that is told where it is attached.
fn persistent_volume_source(spec: &mut Object) {
    pods::volume_source(spec);
    if let Some(path) = member(spec, "hostPath") {
        path.entry("type").or_insert_with(|| json!(""));
    }
}

pub(super) fn resource_quota(value: &mut Value) {
    for (part, lists) in [("/spec", &["hard"][..]), ("/status", &["hard", "used"])] {
        if let Some(part) = object(value, part) {
            amounts(part, lists);
        }
    }
}

pub(super) fn node(value: &mut Value) {
    if let Some(status) = object(value, "/status") {
        amounts(status, &["capacity", "allocatable"]);
    }
}

pub(super) fn limit_range(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    for limit in each(spec, "limits") {
        amounts(
            limit,
            &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"],
        );
        if limit.get("type") != Some(&json!("Container")) {
            continue;
        }
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let values = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            if values.is_empty() {
                continue;
            }
            let target = limit.entry(to).or_insert_with(|| json!({}));
            if let Some(target) = target.as_object_mut() {
                for (key, value) in values {
                    target.entry(key).or_insert(value);
                }
            }
        }
    }
}

pub(super) fn storage_class(value: &mut Value) {
    if let Some(class) = value.as_object_mut() {
        set(class, "reclaimPolicy", json!("Delete"));
        set(class, "volumeBindingMode", json!("Immediate"));
    }
}

pub(super) fn csi_driver(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "attachRequired", json!(true));
    set(spec, "podInfoOnMount", json!(false));
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    set(spec, "storageCapacity", json!(false));
    set(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
    set(spec, "requiresRepublish", json!(false));
    set(spec, "seLinuxMount", json!(false));
}

pub(super) fn volume_attachment(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        set(members, "status", json!({"attached": false}));
    }
    if let Some(inline) = object(value, "/spec/source/inlineVolumeSpec") {
        persistent_volume_source(inline);
    }
}

pub(super) fn priority_class(value: &mut Value) {
    if let Some(class) = value.as_object_mut() {
        set(class, "preemptionPolicy", json!("PreemptLowerPriority"));
    }
}

pub(super) fn role_binding(value: &mut Value) {
    let Some(binding) = value.as_object_mut() else { return };
    for subject in each(binding, "subjects") {
        let kind = subject
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if matches!(kind.as_str(), "User" | "Group") {
            set(subject, "apiGroup", json!(crate::rbac::GROUP));
        }
    }
    let role = binding.entry("roleRef").or_insert_with(|| json!({}));
    if let Some(role) = role.as_object_mut() {
        set_text(role, "apiGroup", crate::rbac::GROUP);
    }
}

/// A service that a server calls, such as a webhook's.
pub(super) fn called_service(service: &mut Object) {
    set(service, "port", json!(443));
}

pub(super) fn api_service(value: &mut Value) {
    if let Some(service) = object(value, "/spec/service") {
        called_service(service);
    }
}

pub(super) fn webhook_configuration(value: &mut Value) {
    let mutating = meta::text(value, "/kind").starts_with("Mutating");
    let Some(configuration) = value.as_object_mut() else {
        return;
    };
    for webhook in each(configuration, "webhooks") {
        set(webhook, "failurePolicy", json!("Fail"));
        set(webhook, "matchPolicy", json!("Equivalent"));
        set(webhook, "namespaceSelector", json!({}));
        set(webhook, "objectSelector", json!({}));
        set(webhook, "timeoutSeconds", json!(10));
        if mutating {
            set(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in each(webhook, "rules") {
            set(rule, "scope", json!("*"));
        }
        if let Some(service) = member(webhook, "clientConfig").and_then(|config| member(config, "service")) {
            called_service(service);
        }
    }
}

pub(super) fn admission_policy(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "failurePolicy", json!("Fail"));
    if let Some(constraints) = member(spec, "matchConstraints") {
        match_resources(constraints);
    }
}

pub(super) fn admission_policy_binding(value: &mut Value) {
    if let Some(resources) = object(value, "/spec").and_then(|spec| member(spec, "matchResources")) {
        match_resources(resources);
    }
}

fn match_resources(resources: &mut Object) {
    set(resources, "namespaceSelector", json!({}));
    set(resources, "objectSelector", json!({}));
    set(resources, "matchPolicy", json!("Equivalent"));
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in each(resources, rules) {
            set(rule, "scope", json!("*"));
        }
    }
}
