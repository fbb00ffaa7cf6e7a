//! kube-scheduler.

use serde_json::{Value, json};

use super::workload::{
    Container, KUBECONFIG_VOLUME, Workload, config_map, config_volume, container, deployment, disruption_budget,
    kubeconfig_volume, secret_volume,
};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "kube-scheduler";
const SELECTOR: [(&str, &str); 2] = [("app", "kubernetes"), ("role", "scheduler")];

/// Its access Secret, configuration, PodDisruptionBudget and Deployment.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    let settings = cluster.shoot.spec.kubernetes.kube_scheduler.clone().unwrap_or_default();
    let mut configuration = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": SHOOT_KUBECONFIG},
        "leaderElection": {"leaderElect": true},
    });
    if let (Some("bin-packing"), Some(fields)) = (settings.profile.as_deref(), configuration.as_object_mut()) {
        let scoring = json!({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]});
        fields.insert(
            "profiles".to_owned(),
            json!([{"schedulerName": "bin-packing-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}]}]),
        );
    }
    let mut command = vec![
        "/usr/local/bin/kube-scheduler".to_owned(),
        "--config=/var/lib/kube-scheduler-config/config.yaml".to_owned(),
        "--secure-port=10259".to_owned(),
        "--tls-cert-file=/var/lib/kube-scheduler-server/tls.crt".to_owned(),
        "--tls-private-key-file=/var/lib/kube-scheduler-server/tls.key".to_owned(),
        "--v=2".to_owned(),
    ];
    if !settings.feature_gates.is_empty() {
        let gates: Vec<String> = settings
            .feature_gates
            .iter()
            .map(|(name, on)| format!("{name}={on}"))
            .collect();
        command.push(format!("--feature-gates={}", gates.join(",")));
    }
    let server = container(Container {
        name: NAME,
        image: format!("kube-scheduler:v{}", cluster.version()),
        command,
        mounts: vec![
            KUBECONFIG_VOLUME,
            ("kube-scheduler-config", "/var/lib/kube-scheduler-config"),
            ("server", "/var/lib/kube-scheduler-server"),
        ],
        ports: &[("metrics", 10259)],
        requests: ("10m", "32Mi"),
        ..Container::default()
    });
    vec![
        access::component(cluster.namespace, NAME),
        config_map(
            cluster.namespace,
            "kube-scheduler-config",
            &[("config.yaml", configuration.to_string())],
        ),
        disruption_budget(cluster.namespace, NAME, &SELECTOR),
        deployment(Workload {
            namespace: cluster.namespace,
            name: NAME,
            selector: &SELECTOR,
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            containers: vec![server],
            volumes: vec![
                kubeconfig_volume(&cluster.secret("generic-token-kubeconfig"), &access::name(NAME)),
                config_volume("kube-scheduler-config", "kube-scheduler-config"),
                secret_volume("server", &cluster.secret("kube-scheduler-server")),
            ],
            pod_annotations: vec![(
                "checksum/configmap-config".to_owned(),
                crate::checksum::short(&configuration.to_string()),
            )],
            ..Workload::default()
        }),
    ]
}
