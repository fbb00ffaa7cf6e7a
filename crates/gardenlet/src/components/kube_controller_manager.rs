//! kube-controller-manager.

use serde_json::{Value, json};

use super::workload::{
    Container, KUBECONFIG_VOLUME, RESTART, Workload, container, deployment, disruption_budget, kubeconfig_volume,
    secret_volume, service,
};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "kube-controller-manager";
const SELECTOR: [(&str, &str); 2] = [("app", "kubernetes"), ("role", "controller-manager")];

/// The command line.
pub fn command(cluster: &Cluster<'_>) -> Vec<String> {
    let config = cluster
        .shoot
        .spec
        .kubernetes
        .kube_controller_manager
        .clone()
        .unwrap_or_default();
    let mut command = vec!["/usr/local/bin/kube-controller-manager".to_owned()];
    let mut flag = |name: &str, value: &str| command.push(format!("--{name}={value}"));
    flag("authentication-kubeconfig", SHOOT_KUBECONFIG);
    flag("authorization-kubeconfig", SHOOT_KUBECONFIG);
    flag("kubeconfig", SHOOT_KUBECONFIG);
    flag("cluster-name", cluster.namespace);
    flag("bind-address", "0.0.0.0");
    flag("secure-port", "10257");
    if cluster.is_workerless() {
        flag(
            "controllers",
            "*,tokencleaner,-nodeipam,-nodelifecycle,-attachdetach,-persistentvolume-binder",
        );
    } else {
        flag("controllers", "*,bootstrapsigner,tokencleaner");
        flag("allocate-node-cidrs", "true");
        flag("attach-detach-reconcile-sync-period", "1m0s");
        flag("cluster-cidr", &cluster.pod_cidrs().join(","));
        flag(
            "node-cidr-mask-size",
            &config.node_cidr_mask_size.unwrap_or(24).to_string(),
        );
        let grace = config
            .node_monitor_grace_period
            .map_or_else(|| "40s".to_owned(), |grace| grace.to_string());
        flag("node-monitor-grace-period", &grace);
        flag(
            "cluster-signing-kubelet-serving-cert-file",
            "/srv/kubernetes/ca-kubelet/ca.crt",
        );
        flag(
            "cluster-signing-kubelet-serving-key-file",
            "/srv/kubernetes/ca-kubelet/ca.key",
        );
        flag(
            "cluster-signing-kubelet-client-cert-file",
            "/srv/kubernetes/ca-client/ca.crt",
        );
        flag(
            "cluster-signing-kubelet-client-key-file",
            "/srv/kubernetes/ca-client/ca.key",
        );
    }
    flag(
        "cluster-signing-kube-apiserver-client-cert-file",
        "/srv/kubernetes/ca-client/ca.crt",
    );
    flag(
        "cluster-signing-kube-apiserver-client-key-file",
        "/srv/kubernetes/ca-client/ca.key",
    );
    flag("cluster-signing-duration", "720h");
    flag("concurrent-deployment-syncs", "50");
    flag("concurrent-namespace-syncs", "50");
    if !config.feature_gates.is_empty() {
        let gates: Vec<String> = config
            .feature_gates
            .iter()
            .map(|(name, on)| format!("{name}={on}"))
            .collect();
        flag("feature-gates", &gates.join(","));
    }
    flag("leader-elect", "true");
    flag("profiling", "false");
    flag("root-ca-file", "/srv/kubernetes/ca/bundle.crt");
    flag(
        "service-account-private-key-file",
        "/srv/kubernetes/service-account-key/id_rsa",
    );
    flag("service-cluster-ip-range", &cluster.service_cidrs().join(","));
    flag("tls-cert-file", "/var/lib/kube-controller-manager-server/tls.crt");
    flag(
        "tls-private-key-file",
        "/var/lib/kube-controller-manager-server/tls.key",
    );
    flag("use-service-account-credentials", "true");
    flag("v", "2");
    command
}

/// Its access Secret, Service, PodDisruptionBudget and Deployment.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    let mut mounts = vec![
        KUBECONFIG_VOLUME,
        ("ca", "/srv/kubernetes/ca"),
        ("ca-client", "/srv/kubernetes/ca-client"),
        ("service-account-key", "/srv/kubernetes/service-account-key"),
        ("server", "/var/lib/kube-controller-manager-server"),
    ];
    let secret = |volume: &str, config: &str| secret_volume(volume, &cluster.secret(config));
    let mut volumes = vec![
        kubeconfig_volume(&cluster.secret("generic-token-kubeconfig"), &access::name(NAME)),
        secret("ca", "ca-bundle"),
        secret("ca-client", "ca-client"),
        secret("service-account-key", "service-account-key"),
        secret("server", "kube-controller-manager-server"),
    ];
    if !cluster.is_workerless() {
        mounts.push(("ca-kubelet", "/srv/kubernetes/ca-kubelet"));
        volumes.push(secret("ca-kubelet", "ca-kubelet"));
    }
    let server = container(Container {
        name: NAME,
        image: format!("kube-controller-manager:v{}", cluster.version()),
        command: command(cluster),
        mounts,
        ports: &[("metrics", 10257)],
        requests: ("20m", "64Mi"),
        ..Container::default()
    });
    vec![
        access::component(cluster.namespace, NAME),
        service(cluster.namespace, NAME, &SELECTOR, &[("metrics", 10257, 10257)]),
        disruption_budget(cluster.namespace, NAME, &SELECTOR),
        deployment(Workload {
            namespace: cluster.namespace,
            name: NAME,
            selector: &SELECTOR,
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            containers: vec![server],
            volumes,
            pod_labels: &[RESTART],
            ..Workload::default()
        }),
    ]
}

/// What the shoot holds for it: its service account is recognized as the user that Kubernetes' roles are bound to.
pub fn shoot_objects(component: &str) -> Vec<Value> {
    let binding = |kind: &str, name: &str, role: &str, namespace: Option<&str>| {
        let mut metadata = json!({"name": name});
        if let (Some(namespace), Some(fields)) = (namespace, metadata.as_object_mut()) {
            fields.insert("namespace".to_owned(), namespace.into());
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": component, "namespace": "kube-system"}],
        })
    };
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": component, "namespace": "kube-system"}, "automountServiceAccountToken": false}),
        binding(
            "ClusterRoleBinding",
            &format!("gardener.cloud:target:{component}"),
            &format!("system:{component}"),
            None,
        ),
        binding(
            "ClusterRoleBinding",
            &format!("gardener.cloud:target:{component}:auth-delegator"),
            "system:auth-delegator",
            None,
        ),
    ]
}
