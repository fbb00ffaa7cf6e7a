//! Deployments and StatefulSets of a control plane, and what their pods have in common [CP-40].

use serde_json::{Map, Value, json};

/// A workload of a control plane.
#[derive(Clone, Debug, Default)]
pub struct Workload<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What its pods are selected by.
    pub selector: &'a [(&'a str, &'a str)],
    /// Further labels of object and pods.
    pub labels: &'a [(&'a str, &'a str)],
    /// Desired replicas; none leaves them to whoever scales it.
    pub replicas: Option<i32>,
    /// The PriorityClass [CP-40].
    pub priority_class: &'a str,
    /// The ServiceAccount.
    pub service_account: Option<&'a str>,
    /// Containers.
    pub containers: Vec<Value>,
    /// Volumes.
    pub volumes: Vec<Value>,
    /// Further labels of the pods.
    pub pod_labels: &'a [(&'a str, &'a str)],
    /// Annotations of the pods; a change rolls them.
    pub pod_annotations: Vec<(String, String)>,
}

fn map<'a>(pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Map<String, Value> {
    let pairs = pairs.into_iter();
    pairs.map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
}

/// The label of pods that maintenance may restart [CP-F71].
pub const RESTART: (&str, &str) = ("maintenance.gardener.cloud/restart", "true");
const ROLE: (&str, &str) = ("gardener.cloud/role", "controlplane");
const MUTABLE: (&str, &str) = (
    "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook",
    "true",
);

fn render(workload: Workload<'_>, kind: &str, extra: Value) -> Value {
    let has_role = workload.labels.iter().any(|(key, _)| *key == ROLE.0);
    let mut labels = map(workload.selector.iter().chain(workload.labels));
    if !has_role {
        labels.insert(ROLE.0.to_owned(), ROLE.1.into());
    }
    labels.insert(MUTABLE.0.to_owned(), MUTABLE.1.into());
    let annotations: Map<String, Value> = workload
        .pod_annotations
        .into_iter()
        .map(|(key, value)| (key, value.into()))
        .collect();
    let mut pod = json!({
        "priorityClassName": workload.priority_class,
        "automountServiceAccountToken": workload.service_account.is_some(),
        "containers": workload.containers,
    });
    let mut object_labels = labels.clone();
    object_labels.insert(
        "high-availability-config.resources.gardener.cloud/type".to_owned(),
        if workload.priority_class == "gardener-system-500" {
            "server"
        } else {
            "controller"
        }
        .into(),
    );
    if let Some(pod) = pod.as_object_mut() {
        if !workload.volumes.is_empty() {
            pod.insert("volumes".to_owned(), workload.volumes.into());
        }
        if let Some(account) = workload.service_account {
            pod.insert("serviceAccountName".to_owned(), account.into());
        }
    }
    labels.append(&mut map(workload.pod_labels));
    let mut spec = json!({
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": map(workload.selector)},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    });
    if let (Some(spec), Value::Object(extra)) = (spec.as_object_mut(), extra) {
        spec.extend(extra);
        if let Some(replicas) = workload.replicas {
            spec.insert("replicas".to_owned(), replicas.into());
        }
    }
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": workload.name, "namespace": workload.namespace, "labels": object_labels},
        "spec": spec,
    })
}

/// A Deployment.
pub fn deployment(workload: Workload<'_>) -> Value {
    let strategy =
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}});
    render(workload, "Deployment", strategy)
}

/// A StatefulSet without volumes of its own.
pub fn stateful_set(workload: Workload<'_>) -> Value {
    let name = workload.name.to_owned();
    render(workload, "StatefulSet", json!({"serviceName": name}))
}

/// A container.
#[derive(Clone, Debug, Default)]
pub struct Container<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its image.
    pub image: String,
    /// What runs.
    pub command: Vec<String>,
    /// With which arguments.
    pub args: Vec<String>,
    /// Mounts: volume and path.
    pub mounts: Vec<(&'a str, &'a str)>,
    /// Ports: name and number.
    pub ports: &'a [(&'a str, u16)],
    /// Requested CPU and memory.
    pub requests: (&'a str, &'a str),
}

/// A container's manifest.
pub fn container(container: Container<'_>) -> Value {
    let mounts: Vec<Value> = container
        .mounts
        .iter()
        .map(|(volume, path)| json!({"name": volume, "mountPath": path}))
        .collect();
    let ports: Vec<Value> = container
        .ports
        .iter()
        .map(|(name, port)| json!({"name": name, "containerPort": port, "protocol": "TCP"}))
        .collect();
    let mut manifest = json!({
        "name": container.name,
        "image": container.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": container.requests.0, "memory": container.requests.1}},
    });
    if let Some(fields) = manifest.as_object_mut() {
        let mut set = |key: &str, values: Vec<Value>| {
            if !values.is_empty() {
                fields.insert(key.to_owned(), values.into());
            }
        };
        set("command", container.command.into_iter().map(Value::from).collect());
        set("args", container.args.into_iter().map(Value::from).collect());
        set("volumeMounts", mounts);
        set("ports", ports);
    }
    manifest
}

/// A volume with a Secret.
pub fn secret_volume(name: &str, secret: &str) -> Value {
    json!({"name": name, "secret": {"secretName": secret, "defaultMode": 416}})
}

/// A volume with a ConfigMap.
pub fn config_volume(name: &str, config_map: &str) -> Value {
    json!({"name": name, "configMap": {"name": config_map, "defaultMode": 420}})
}

/// The name of the volume of [`kubeconfig_volume`].
pub const KUBECONFIG_VOLUME: (&str, &str) = ("kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig");

/// The volume with kubeconfig and token for the shoot's API [CP-101].
pub fn kubeconfig_volume(generic: &str, access: &str) -> Value {
    json!({"name": KUBECONFIG_VOLUME.0, "projected": {"defaultMode": 420, "sources": [
        {"secret": {"name": generic, "optional": false, "items": [{"key": "kubeconfig", "path": "kubeconfig"}]}},
        {"secret": {"name": access, "optional": false, "items": [{"key": "token", "path": "token"}]}},
    ]}})
}

/// A PodDisruptionBudget that lets one pod go at a time.
pub fn disruption_budget(namespace: &str, name: &str, selector: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "labels": map(selector)},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": map(selector)}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    })
}

/// A Service in front of pods.
pub fn service(namespace: &str, name: &str, selector: &[(&str, &str)], ports: &[(&str, u16, u16)]) -> Value {
    let ports: Vec<Value> = ports
        .iter()
        .map(|(name, port, target)| json!({"name": name, "port": port, "targetPort": target, "protocol": "TCP"}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": map(selector)},
        "spec": {"type": "ClusterIP", "selector": map(selector), "ports": ports},
    })
}

/// A ConfigMap.
pub fn config_map(namespace: &str, name: &str, data: &[(&str, String)]) -> Value {
    let data: Map<String, Value> = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone().into()))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data})
}
