//! What a seed has once [CP-41], [CP-140].

use serde_json::{Value, json};

use super::workload::{Container, Workload, container, deployment};

/// The namespace of everything that a seed has once.
pub const NAMESPACE: &str = "garden";

/// The namespaces of a seed.
pub fn namespaces(zones: &[String]) -> Vec<Value> {
    ["garden", "istio-system", "istio-ingress"]
        .into_iter()
        .map(|name| {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name,
                "labels": {
                    "gardener.cloud/role": if name == NAMESPACE { "garden" } else { name },
                    "high-availability-config.resources.gardener.cloud/consider": "true",
                },
                "annotations": {"high-availability-config.resources.gardener.cloud/zones": zones.join(",")},
            }})
        })
        .collect()
}

/// The PriorityClasses of a seed [CP-41].
pub fn priority_classes() -> Vec<Value> {
    let named = (1..=9i64).map(|hundreds| {
        let name = format!("gardener-system-{}", hundreds * 100);
        (name, 999_998_000 + hundreds * 100)
    });
    let special = [
        ("gardener-system-critical".to_owned(), 999_998_950),
        ("gardener-reserve-excess-capacity".to_owned(), -5),
    ];
    named
        .chain(special)
        .map(|(name, value)| {
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value, "globalDefault": false,
                "description": "PriorityClass for Seed and control plane components",
            })
        })
        .collect()
}

/// The seed's identity.
pub fn cluster_identity(identity: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {"name": "cluster-identity", "namespace": "kube-system"},
        "data": {"cluster-identity": identity, "origin": "seed"},
    })
}

/// etcd-druid: its account and Deployment.
pub fn etcd_druid() -> Vec<Value> {
    let name = "etcd-druid";
    let server = container(Container {
        name,
        image: "etcd-druid:v0.30.0".to_owned(),
        command: vec!["/etcd-druid".to_owned()],
        args: vec![
            "--enable-leader-election=true".to_owned(),
            "--etcd-workers=50".to_owned(),
        ],
        ports: &[("metrics", 8080)],
        requests: ("50m", "64Mi"),
        ..Container::default()
    });
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gardener.cloud:system:etcd-druid"},
            "rules": [
                {"apiGroups": ["druid.gardener.cloud"], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": ["", "apps", "batch", "policy", "coordination.k8s.io", "rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "gardener.cloud:system:etcd-druid"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:system:etcd-druid"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        }),
        deployment(Workload {
            namespace: NAMESPACE,
            name,
            selector: &[("gardener.cloud/component", "etcd-druid")],
            labels: &[("gardener.cloud/role", "seed-system-component")],
            replicas: Some(1),
            priority_class: "gardener-system-800",
            service_account: Some(name),
            containers: vec![server],
            ..Workload::default()
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_41_priorities() {
        let found: Vec<(String, i64)> = priority_classes()
            .iter()
            .map(|one| {
                (
                    one["metadata"]["name"].as_str().unwrap().to_owned(),
                    one["value"].as_i64().unwrap(),
                )
            })
            .collect();
        for (name, value) in [
            ("gardener-system-900", 999_998_900),
            ("gardener-system-100", 999_998_100),
            ("gardener-system-critical", 999_998_950),
        ] {
            assert!(found.contains(&(name.to_owned(), value)), "{name}");
        }
    }
}
