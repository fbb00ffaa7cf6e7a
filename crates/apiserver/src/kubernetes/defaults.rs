//! Defaults of Kubernetes' kinds, as a real kube-apiserver fills them (recorded in `recorded/defaults.json`).

use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity;
use serde_json::{Map, Value, json};

use super::services::is_reached_from_outside;
use super::{autoscaling, images, pods};
use crate::meta;

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

/// A pod's own spec; templates have the same but for host ports and requests from limits.
pub(super) fn pod(pod: &mut Value) {
    if let Some(status) = object(pod, "/status") {
        for list in [
            "containerStatuses",
            "initContainerStatuses",
            "ephemeralContainerStatuses",
        ] {
            for container in each(status, list) {
                amounts(container, &["allocatedResources"]);
                asked(container);
            }
        }
        amounts(status, &["allocatedResources"]);
        asked(status);
    }
    let Some(spec) = object(pod, "/spec") else { return };
    pod_spec(spec);
    set(spec, "enableServiceLinks", json!(true));
    // in pods, not in templates
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        spec.insert("terminationGracePeriodSeconds".into(), json!(1));
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            if let Some(resources) = member(container, "resources") {
                let limits = resources
                    .get("limits")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                if !limits.is_empty() {
                    let requests = resources.entry("requests").or_insert_with(|| json!({}));
                    if let Some(requests) = requests.as_object_mut() {
                        for (key, value) in limits {
                            requests.entry(key).or_insert(value);
                        }
                    }
                }
            }
            if host_network {
                for port in each(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        set(port, "hostPort", number);
                    }
                }
            }
        }
    }
    pods::resources::default_pod(spec);
}

fn pod_spec(spec: &mut Object) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in each(spec, list) {
            self::container(container);
        }
    }
    for volume in each(spec, "volumes") {
        self::volume(volume);
    }
    amounts(spec, &["overhead"]);
    asked(spec);
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "securityContext", json!({}));
    set(spec, "schedulerName", json!("default-scheduler"));
    // one account under two names, of which the newer one counts
    let account = |key: &str| {
        let name = spec.get(key).and_then(Value::as_str).unwrap_or_default();
        (!name.is_empty()).then(|| name.to_owned())
    };
    if let Some(account) = account("serviceAccountName").or_else(|| account("serviceAccount")) {
        for key in ["serviceAccountName", "serviceAccount"] {
            spec.insert(key.into(), account.as_str().into());
        }
    }
}

fn container(container: &mut Object) {
    set(container, "resources", json!({}));
    asked(container);
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    let latest = images::is_latest(container.get("image").and_then(Value::as_str).unwrap_or_default());
    set(
        container,
        "imagePullPolicy",
        json!(if latest { "Always" } else { "IfNotPresent" }),
    );
    for port in each(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for variable in each(container, "env") {
        if let Some(reference) = member(variable, "valueFrom").and_then(|from| member(from, "fieldRef")) {
            set(reference, "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = member(container, probe) {
            set(probe, "timeoutSeconds", json!(1));
            set(probe, "periodSeconds", json!(10));
            set(probe, "successThreshold", json!(1));
            set(probe, "failureThreshold", json!(3));
            if let Some(http) = member(probe, "httpGet") {
                set(http, "path", json!("/"));
                set(http, "scheme", json!("HTTP"));
            }
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(http) = member(container, "lifecycle")
            .and_then(|own| member(own, hook))
            .and_then(|own| member(own, "httpGet"))
        {
            set(http, "path", json!("/"));
            set(http, "scheme", json!("HTTP"));
        }
    }
}

/// Members of sources that volumes of pods and persistent volumes have in common.
fn volume_source(volume: &mut Object) {
    for (source, defaults) in [
        ("iscsi", &[("iscsiInterface", "default")][..]),
        (
            "rbd",
            &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")],
        ),
        (
            "azureDisk",
            &[("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4")],
        ),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ] {
        let Some(members) = member(volume, source) else {
            continue;
        };
        for (key, value) in defaults {
            set(members, key, json!(value));
        }
        if source == "azureDisk" {
            set(members, "readOnly", json!(false));
        }
    }
}

fn downward_items(source: &mut Object) {
    for item in each(source, "items") {
        if let Some(reference) = member(item, "fieldRef") {
            set(reference, "apiVersion", json!("v1"));
        }
    }
}

fn volume(volume: &mut Object) {
    const SOURCELESS: [&str; 1] = ["name"];
    if volume.keys().all(|key| SOURCELESS.contains(&key.as_str())) {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["configMap", "secret"] {
        if let Some(source) = member(volume, source) {
            set(source, "defaultMode", json!(420));
        }
    }
    if let Some(source) = member(volume, "downwardAPI") {
        set(source, "defaultMode", json!(420));
        downward_items(source);
    }
    volume_source(volume);
    if let Some(image) = member(volume, "image") {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = if images::is_latest(reference) {
            "Always"
        } else {
            "IfNotPresent"
        };
        set(image, "pullPolicy", json!(policy));
    }
    if let Some(path) = member(volume, "hostPath") {
        path.entry("type").or_insert_with(|| json!(""));
    }
    if let Some(projected) = member(volume, "projected") {
        set(projected, "defaultMode", json!(420));
        for source in each(projected, "sources") {
            if let Some(token) = member(source, "serviceAccountToken") {
                set(token, "expirationSeconds", json!(3600));
            }
            if let Some(downward) = member(source, "downwardAPI") {
                downward_items(downward);
            }
        }
    }
    if let Some(template) = member(volume, "ephemeral").and_then(|own| member(own, "volumeClaimTemplate")) {
        // Go always writes it, so that who writes the volume owns it
        set(template, "metadata", json!({}));
        if let Some(spec) = member(template, "spec") {
            claim_spec(spec);
        }
    }
}

fn template(value: &mut Value, pointer: &str) {
    if let Some(spec) = object(value, pointer) {
        pod_spec(spec);
    }
}

pub(super) fn pod_template(value: &mut Value) {
    template(value, "/template/spec");
}

pub(super) fn deployment(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    set(spec, "strategy", json!({}));
    if let Some(strategy) = member(spec, "strategy") {
        set(strategy, "type", json!("RollingUpdate"));
        if strategy.get("type") == Some(&json!("RollingUpdate")) {
            set(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = member(strategy, "rollingUpdate") {
                set(rolling, "maxUnavailable", json!("25%"));
                set(rolling, "maxSurge", json!("25%"));
            }
        }
    }
}

pub(super) fn replica_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    if let Some(spec) = object(value, "/spec") {
        set(spec, "replicas", json!(1));
    }
}

pub(super) fn replication_controller(value: &mut Value) {
    template(value, "/spec/template/spec");
    labels_from_template(value);
    if let Some(spec) = object(value, "/spec") {
        set(spec, "replicas", json!(1));
    }
}

/// A set without labels or selector takes its template's labels.
fn labels_from_template(value: &mut Value) {
    let Some(labels) = value
        .at("/spec/template/metadata/labels")
        .filter(|labels| labels.as_object().is_some_and(|map| !map.is_empty()))
        .cloned()
    else {
        return;
    };
    if let Some(spec) = object(value, "/spec") {
        set(spec, "selector", labels.clone());
    }
    if value
        .at("/metadata/labels")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty)
    {
        meta::set(value, "labels", Some(labels));
    }
}

pub(super) fn stateful_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "replicas", json!(1));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    if let Some(strategy) = member(spec, "updateStrategy") {
        let kind = strategy.get("type").and_then(Value::as_str).unwrap_or_default();
        // who names the kind of update gets no more of it
        if kind.is_empty() {
            set(strategy, "type", json!("RollingUpdate"));
            set(strategy, "rollingUpdate", json!({}));
        }
        if strategy.get("type") == Some(&json!("RollingUpdate"))
            && let Some(rolling) = member(strategy, "rollingUpdate")
        {
            set(rolling, "partition", json!(0));
        }
    }
    set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    if let Some(policy) = member(spec, "persistentVolumeClaimRetentionPolicy") {
        set(policy, "whenDeleted", json!("Retain"));
        set(policy, "whenScaled", json!("Retain"));
    }
    for claim in each(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), json!("v1"));
        claim.insert("kind".into(), json!("PersistentVolumeClaim"));
        set(claim, "status", json!({}));
        if let Some(status) = member(claim, "status") {
            set(status, "phase", json!("Pending"));
            amounts(status, &CLAIMED);
        }
        if let Some(spec) = member(claim, "spec") {
            claim_spec(spec);
        }
    }
}

pub(super) fn daemon_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    if let Some(strategy) = member(spec, "updateStrategy") {
        set(strategy, "type", json!("RollingUpdate"));
        let is_rolling = strategy.get("type") == Some(&json!("RollingUpdate"));
        if is_rolling {
            set(strategy, "rollingUpdate", json!({}));
        }
        if let Some(rolling) = member(strategy, "rollingUpdate") {
            // the internal type always has both
            set(rolling, "maxUnavailable", json!(i32::from(is_rolling)));
            set(rolling, "maxSurge", json!(0));
        }
    }
}

fn job_spec(spec: &mut Object) {
    // a struct that Go always has, so that it gets its defaults where nobody tells it
    set(spec, "template", json!({}));
    if let Some(template) = member(spec, "template") {
        set(template, "spec", json!({}));
    }
    if let Some(template) = member(spec, "template").and_then(|own| member(own, "spec")) {
        let policy = template.contains_key("restartPolicy");
        pod_spec(template);
        if !policy {
            template.insert("restartPolicy".into(), json!("Always"));
        }
    }
    if let Some(policy) = member(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                set(pattern, "status", json!("True"));
            }
        }
    }
}

pub(super) fn job(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        set(members, "spec", json!({}));
    }
    let of_template = value.at("/spec/template/metadata/labels").cloned();
    let own = value.at("/metadata/labels").and_then(Value::as_object);
    if of_template.is_some() && own.is_none_or(Map::is_empty) {
        meta::set(value, "labels", of_template);
    }
    let Some(spec) = object(value, "/spec") else { return };
    job_spec(spec);
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
        spec.insert("parallelism".into(), json!(1));
    }
    set(spec, "parallelism", json!(1));
    // where each index has a limit of its own, the job has none
    let is_per_index = spec.get("backoffLimitPerIndex").is_some_and(|limit| !limit.is_null());
    set(spec, "backoffLimit", json!(if is_per_index { i32::MAX } else { 6 }));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    set(spec, "manualSelector", json!(false));
    set(
        spec,
        "podReplacementPolicy",
        json!(if spec.contains_key("podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        }),
    );
}

pub(super) fn cron_job(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(template) = member(spec, "jobTemplate") {
        set(template, "metadata", json!({}));
        if let Some(spec) = member(template, "spec") {
            if let Some(template) = member(spec, "template") {
                set(template, "metadata", json!({}));
            }
            job_spec(spec);
        }
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
    volume_source(spec);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Columns;
    use crate::kubernetes::{resources, strategy};

    /// What admission and stores add, and what differs each time.
    fn reduce(object: &mut Value) {
        if let Some(members) = object.as_object_mut() {
            members.remove("status");
        }
        for key in ["generation", "finalizers", "annotations", "labels"] {
            meta::set(object, key, None);
        }
        if let Some(spec) = super::object(object, "/spec") {
            for key in [
                "priority",
                "preemptionPolicy",
                "tolerations",
                "clusterIP",
                "clusterIPs",
                "ipFamilies",
                "ipFamilyPolicy",
                "finalizers",
                "taints",
                "selector",
            ] {
                spec.remove(key);
            }
            for port in each(spec, "ports") {
                port.remove("nodePort");
            }
            if spec.get("template").is_some() {
                spec.remove("template");
            }
            if spec.is_empty() {
                object.as_object_mut().map(|members| members.remove("spec"));
            }
        }
    }

    #[test]
    fn defaults_are_those_recorded() {
        let pairs: Vec<Value> = serde_json::from_str(include_str!("../../recorded/defaults.json")).unwrap();
        let (all, _) = resources().unwrap();
        let mut compared = 0;
        for pair in pairs {
            let (mut input, mut output) = (pair["in"].clone(), pair["out"].clone());
            let api_version = meta::text(&input, "/apiVersion").to_owned();
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let kind = meta::text(&input, "/kind").to_owned();
            let definition = all
                .iter()
                .find(|d| d.group == group && d.versions.iter().any(|v| v.name == version && v.kind == kind))
                .unwrap();
            assert!(matches!(definition.version(version).unwrap().columns, Columns::Row(_)));
            let own = strategy::of(group, &definition.plural);
            let user = crate::UserInfo::default();
            let context = crate::definition::Context {
                user: &user,
                cluster: "c",
                now: k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
                chance: 0,
                dry_run: false,
                verb: "",
                lister: &Nothing,
            };
            let schema = definition.version(version).unwrap().schema.clone().unwrap();
            schema.canonicalize(&mut input);
            schema.canonicalize(&mut output);
            own.default(&context, &mut input);
            schema.canonicalize(&mut input);
            reduce(&mut input);
            reduce(&mut output);
            // quantities are compared by their own rules elsewhere
            if matches!(kind.as_str(), "ResourceQuota") {
                continue;
            }
            assert_eq!(input, output, "{kind}");
            compared += 1;
        }
        assert!(compared > 40);
    }

    struct Nothing;

    impl crate::definition::Lister for Nothing {
        fn release(&self, _: &str) {}

        fn reserve(&self, _: &str, _: jiff::Timestamp) -> bool {
            true
        }
        fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Option<std::sync::Arc<Value>> {
            None
        }
        fn list(&self, _: &str, _: &str, _: Option<&str>) -> Vec<std::sync::Arc<Value>> {
            Vec::new()
        }
        fn field_values(&self, _: &str, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn with_field(&self, _: &str, _: &str, _: &str, _: &str) -> Vec<std::sync::Arc<Value>> {
            Vec::new()
        }
        fn allowed(&self, _: &crate::UserInfo, _: &str, _: &str, _: &str, _: &str, _: &str) -> bool {
            false
        }
        fn rules_for(
            &self,
            _: &crate::UserInfo,
            _: &str,
        ) -> (
            Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
            Vec<k8s_openapi::api::rbac::v1::RoleRef>,
        ) {
            Default::default()
        }
        fn token_settings(&self) -> crate::authn::Settings {
            crate::authn::Settings::default()
        }
    }
}
