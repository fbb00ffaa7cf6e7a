//! The autoscaler of pods' requests in a shoot, if its owner wants it [CP-F39]: three controllers in the control plane. The definition of its kind comes
//! with whoever uses it.

use serde_json::{Value, json};

use super::workload::{Container, KUBECONFIG_VOLUME, Workload, container, deployment, kubeconfig_volume};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The names of its Deployments.
pub const NAMES: [&str; 3] = ["vpa-admission-controller", "vpa-recommender", "vpa-updater"];
/// The ManagedResource with what it is allowed in the shoot.
pub const RESOURCE: &str = "shoot-core-vpa";

/// Whether the owner wants it.
pub fn is_wanted(cluster: &Cluster<'_>) -> bool {
    let own = cluster.shoot.spec.kubernetes.vertical_pod_autoscaler.as_ref();
    !cluster.is_workerless() && own.is_some_and(|own| own.enabled)
}

/// The access Secret and the Deployment of one of its controllers.
pub fn manifests(cluster: &Cluster<'_>, name: &'static str, replicas: i32) -> Vec<Value> {
    let controller = container(Container {
        name,
        image: format!("{name}:1.5.1"),
        command: vec![format!("./{}", name.trim_start_matches("vpa-"))],
        args: vec![
            "--v=3".to_owned(),
            "--stderrthreshold=info".to_owned(),
            format!("--kubeconfig={SHOOT_KUBECONFIG}"),
        ],
        mounts: vec![KUBECONFIG_VOLUME],
        ports: &[("metrics", 8944)],
        requests: ("10m", "40Mi"),
    });
    vec![
        access::component(cluster.namespace, name),
        deployment(Workload {
            namespace: cluster.namespace,
            name,
            selector: &[("app", name)],
            replicas: Some(replicas),
            priority_class: "gardener-system-200",
            containers: vec![controller],
            volumes: vec![kubeconfig_volume(
                &cluster.secret("generic-token-kubeconfig"),
                &access::name(name),
            )],
            ..Workload::default()
        }),
    ]
}

/// What it may do in the shoot.
pub fn shoot_objects() -> Vec<Value> {
    let role = "gardener.cloud:vpa:target";
    let rbac = "rbac.authorization.k8s.io";
    let subjects = NAMES.map(|name| json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}));
    let accounts = NAMES.map(|name| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}, "automountServiceAccountToken": false})
    });
    let read = ["get", "list", "watch"];
    let mut objects = accounts.to_vec();
    objects.push(json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": role},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "nodes", "limitranges", "namespaces", "configmaps", "replicationcontrollers"], "verbs": read},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "list", "watch", "create"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"], "verbs": read},
            {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": read},
            {"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": ["autoscaling.k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch", "patch", "create", "delete", "update"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update", "list", "watch"]},
        ],
    }));
    objects.push(json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": role},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": subjects,
    }));
    objects
}
