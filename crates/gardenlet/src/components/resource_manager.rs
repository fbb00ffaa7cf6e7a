//! gardener-resource-manager: one per control plane, one for the seed.

mod webhooks;

use serde_json::{Value, json};

pub use webhooks::validating_webhooks;

use super::workload::{
    Container, KUBECONFIG_VOLUME, Workload, config_map, config_volume, container, deployment, disruption_budget,
    kubeconfig_volume, secret_volume, service,
};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "gardener-resource-manager";
const SELECTOR: [(&str, &str); 1] = [("app", NAME)];

fn configuration(namespace: Option<&str>, class: &str, kubeconfig: Option<&str>, cluster_id: Option<&str>) -> String {
    let mut configuration = json!({
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration",
        "sourceClientConnection": {"namespaces": namespace.map(|one| vec![one]).unwrap_or_default()},
        "leaderElection": {"leaderElect": true, "resourceName": NAME, "resourceNamespace": namespace.unwrap_or("garden")},
        "logLevel": "info", "logFormat": "json",
        "server": {"healthProbes": {"port": 8081}, "metrics": {"port": 8080}, "webhooks": {"port": 10250}},
        "controllers": {
            "resourceClass": class,
            "clusterID": cluster_id.unwrap_or_default(),
            "managedResource": {"concurrentSyncs": 20, "syncPeriod": "1m", "managedByLabelValue": "gardener"},
            "health": {"concurrentSyncs": 10, "syncPeriod": "1m"},
            "garbageCollector": {"enabled": true, "syncPeriod": "12h"},
            "tokenRequestor": {"enabled": kubeconfig.is_some(), "concurrentSyncs": 5},
        },
    });
    if let (Some(kubeconfig), Some(fields)) = (kubeconfig, configuration.as_object_mut()) {
        fields.insert("targetClientConnection".to_owned(), json!({"kubeconfig": kubeconfig}));
    }
    configuration.to_string()
}

fn account(namespace: &str, cluster_wide: bool) -> Vec<Value> {
    let rules = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let own_rules = json!([
        {"apiGroups": ["resources.gardener.cloud"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "configmaps", "events"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machines"], "verbs": ["get", "list", "watch"]},
    ]);
    let (role, binding, rules) = if cluster_wide {
        ("ClusterRole", "ClusterRoleBinding", rules)
    } else {
        ("Role", "RoleBinding", own_rules)
    };
    let mut metadata = json!({"name": NAME});
    if let (false, Some(fields)) = (cluster_wide, metadata.as_object_mut()) {
        fields.insert("namespace".to_owned(), namespace.into());
    }
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": role, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        }),
    ]
}

fn server(target: bool) -> Value {
    let mut mounts = vec![
        ("config", "/etc/gardener-resource-manager/config"),
        ("certs", "/etc/gardener-resource-manager/certs"),
    ];
    if target {
        mounts.push(KUBECONFIG_VOLUME);
    }
    container(Container {
        name: NAME,
        image: "gardener-resource-manager:v1.130.0".to_owned(),
        args: vec!["--config=/etc/gardener-resource-manager/config/config.yaml".to_owned()],
        mounts,
        ports: &[("metrics", 8080), ("health", 8081)],
        requests: ("23m", "47Mi"),
        ..Container::default()
    })
}

/// The one of a control plane: applies ManagedResources without class into the shoot, and requests tokens there.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    let namespace = cluster.namespace;
    let config = configuration(Some(namespace), "resources", Some(SHOOT_KUBECONFIG), None);
    let mut manifests = account(namespace, false);
    manifests.extend([
        access::component(namespace, NAME),
        config_map(namespace, NAME, &[("config.yaml", config.clone())]),
        service(
            namespace,
            NAME,
            &SELECTOR,
            &[("metrics", 8080, 8080), ("server", 443, 10250)],
        ),
        disruption_budget(namespace, NAME, &SELECTOR),
        deployment(Workload {
            namespace,
            name: NAME,
            selector: &SELECTOR,
            replicas: Some(replicas),
            priority_class: "gardener-system-400",
            service_account: Some(NAME),
            containers: vec![server(true)],
            volumes: vec![
                config_volume("config", NAME),
                kubeconfig_volume(&cluster.secret("generic-token-kubeconfig"), &access::name(NAME)),
                secret_volume("certs", &cluster.secret("gardener-resource-manager-server")),
            ],
            pod_annotations: vec![("checksum/config".to_owned(), crate::checksum::short(&config))],
            ..Workload::default()
        }),
    ]);
    manifests
}

/// What the shoot holds for it.
pub fn shoot_objects() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": "kube-system"}, "automountServiceAccountToken": false}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:target:resource-manager"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}],
        }),
    ]
}

/// The one of a seed: applies ManagedResources of class `seed` from all namespaces, and judges extension objects with the certificate of the
/// Secret `certificate`.
pub fn seed_manifests(namespace: &str, cluster_id: &str, certificate: &str) -> Vec<Value> {
    let config = configuration(None, "seed", None, Some(cluster_id));
    let mut manifests = account(namespace, true);
    manifests.extend([
        config_map(namespace, NAME, &[("config.yaml", config.clone())]),
        service(
            namespace,
            NAME,
            &SELECTOR,
            &[("metrics", 8080, 8080), ("server", 443, 10250)],
        ),
        deployment(Workload {
            namespace,
            name: NAME,
            selector: &SELECTOR,
            labels: &[("gardener.cloud/role", "seed-system-component")],
            replicas: Some(1),
            priority_class: "gardener-system-critical",
            service_account: Some(NAME),
            containers: vec![server(false)],
            volumes: vec![config_volume("config", NAME), secret_volume("certs", certificate)],
            pod_annotations: vec![("checksum/config".to_owned(), crate::checksum::short(&config))],
            ..Workload::default()
        }),
    ]);
    manifests
}
