//! The observability components of a control plane [CP-40].

use serde_json::{Value, json};

use super::workload::{
    Container, KUBECONFIG_VOLUME, Workload, container, deployment, kubeconfig_volume, service, stateful_set,
};
use super::{Cluster, access};

const ROLE: (&str, &str) = ("gardener.cloud/role", "monitoring");

fn one(cluster: &Cluster<'_>, name: &str, image: &str, port: u16, replicas: i32, set: bool) -> Vec<Value> {
    let selector = [("app", name)];
    let wants_access = matches!(name, "prometheus-shoot" | "kube-state-metrics");
    let server = container(Container {
        name,
        image: image.to_owned(),
        ports: &[("http", port)],
        mounts: if wants_access {
            vec![KUBECONFIG_VOLUME]
        } else {
            Vec::new()
        },
        requests: ("5m", "20Mi"),
        ..Container::default()
    });
    let generic = cluster.secret("generic-token-kubeconfig");
    let workload = Workload {
        namespace: cluster.namespace,
        name,
        selector: &selector,
        labels: &[ROLE],
        replicas: Some(replicas),
        priority_class: "gardener-system-100",
        containers: vec![server],
        volumes: if wants_access {
            vec![kubeconfig_volume(&generic, &access::name(name))]
        } else {
            Vec::new()
        },
        ..Workload::default()
    };
    let mut manifests = Vec::new();
    if wants_access {
        manifests.push(access::component(cluster.namespace, name));
    }
    manifests.push(service(cluster.namespace, name, &selector, &[("http", port, port)]));
    manifests.push(if set {
        stateful_set(workload)
    } else {
        deployment(workload)
    });
    manifests
}

/// All of them. `testing` clusters have none.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    if cluster.shoot.spec.purpose.as_deref() == Some("testing") {
        return Vec::new();
    }
    let mut all = one(cluster, "prometheus-shoot", "prometheus:v3.5.0", 9090, replicas, true);
    all.extend(one(cluster, "plutono", "plutono:v7.5.40", 3000, replicas, false));
    all.extend(one(
        cluster,
        "blackbox-exporter",
        "blackbox-exporter:v0.27.0",
        9115,
        replicas,
        false,
    ));
    if !cluster.is_workerless() {
        all.extend(one(
            cluster,
            "kube-state-metrics",
            "kube-state-metrics:v2.17.0",
            8080,
            replicas,
            false,
        ));
    }
    let alerting = cluster
        .shoot
        .spec
        .monitoring
        .as_ref()
        .and_then(|one| one.alerting.as_ref());
    if alerting.is_some_and(|alerting| !alerting.email_receivers.is_empty()) {
        all.extend(one(
            cluster,
            "alertmanager-shoot",
            "alertmanager:v0.28.1",
            9093,
            replicas,
            true,
        ));
    }
    all
}

/// What the shoot holds for them.
pub fn shoot_objects() -> Vec<Value> {
    ["prometheus-shoot", "kube-state-metrics"]
        .into_iter()
        .flat_map(|name| {
            let reader = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("gardener.cloud:monitoring:{name}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:monitoring:reader"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}],
            });
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}, "automountServiceAccountToken": false});
            [account, reader]
        })
        .chain([json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gardener.cloud:monitoring:reader"},
            "rules": [{"apiGroups": ["", "apps", "batch", "autoscaling", "policy", "storage.k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        })])
        .collect()
}
