//! Defaults of pods and of the templates of pods.

use serde_json::{Value, json};

use super::{Object, amounts, asked, claim_spec, each, member, object, set};
use crate::kubernetes::{images, pods};

/// A pod's own spec; templates have the same but for host ports and requests from limits.
pub(in crate::kubernetes) fn pod(pod: &mut Value) {
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

pub(super) fn pod_spec(spec: &mut Object) {
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
pub(super) fn volume_source(volume: &mut Object) {
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

pub(super) fn template(value: &mut Value, pointer: &str) {
    if let Some(spec) = object(value, pointer) {
        pod_spec(spec);
    }
}

pub(in crate::kubernetes) fn pod_template(value: &mut Value) {
    template(value, "/template/spec");
}
