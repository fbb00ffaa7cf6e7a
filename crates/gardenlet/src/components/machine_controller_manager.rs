//! machine-controller-manager. The provider's extension adds a container with its driver [EXT-61].

use serde_json::{Value, json};

use super::workload::{
    Container, KUBECONFIG_VOLUME, Workload, container, deployment, disruption_budget, kubeconfig_volume,
};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "machine-controller-manager";
const SELECTOR: [(&str, &str); 2] = [("app", "kubernetes"), ("role", NAME)];

/// Its account in the seed, access Secret, PodDisruptionBudget and Deployment.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    let namespace = cluster.namespace;
    let server = container(Container {
        name: NAME,
        image: "machine-controller-manager:v0.60.0".to_owned(),
        command: vec![
            "./machine-controller-manager".to_owned(),
            "--control-kubeconfig=inClusterConfig".to_owned(),
            "--machine-safety-overshooting-period=1m".to_owned(),
            format!("--namespace={namespace}"),
            "--port=10258".to_owned(),
            "--safety-down=1".to_owned(),
            "--safety-up=2".to_owned(),
            format!("--target-kubeconfig={SHOOT_KUBECONFIG}"),
            "--v=3".to_owned(),
        ],
        mounts: vec![KUBECONFIG_VOLUME],
        ports: &[("metrics", 10258)],
        requests: ("5m", "20Mi"),
        ..Container::default()
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": NAME, "namespace": namespace},
        "rules": [
            {"apiGroups": ["machine.sapcloud.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps", "secrets", "endpoints", "events", "pods"], "verbs": ["*"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]},
        ],
    });
    vec![
        access::component(namespace, NAME),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}),
        role,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": NAME, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        }),
        disruption_budget(namespace, NAME, &SELECTOR),
        deployment(Workload {
            namespace,
            name: NAME,
            selector: &SELECTOR,
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            service_account: Some(NAME),
            containers: vec![server],
            volumes: vec![kubeconfig_volume(
                &cluster.secret("generic-token-kubeconfig"),
                &access::name(NAME),
            )],
            ..Workload::default()
        }),
    ]
}

/// What the shoot holds for it.
pub fn shoot_objects() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": "kube-system"}, "automountServiceAccountToken": false}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "gardener.cloud:target:machine-controller-manager"},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes", "nodes/status", "endpoints", "replicationcontrollers", "pods", "persistentvolumes", "persistentvolumeclaims"], "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]},
                {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
                {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets", "daemonsets", "deployments"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["delete", "get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["secrets", "events"], "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:target:machine-controller-manager"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:target:machine-controller-manager"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}],
        }),
    ]
}
