//! cluster-autoscaler: adds and removes nodes within the pools' bounds.

use gardener_apis::extensions::v1alpha1::WorkerStatusMachineDeployment;
use serde_json::Value;

use super::workload::{Container, KUBECONFIG_VOLUME, Workload, container, deployment, kubeconfig_volume};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "cluster-autoscaler";

/// Whether a pool can grow or shrink.
pub fn is_wanted(cluster: &Cluster<'_>) -> bool {
    cluster
        .shoot
        .spec
        .provider
        .workers
        .iter()
        .any(|pool| pool.maximum > pool.minimum)
}

/// Its access Secret and its Deployment.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32, deployments: &[WorkerStatusMachineDeployment]) -> Vec<Value> {
    let mut command = vec![
        "./cluster-autoscaler".to_owned(),
        "--address=:8085".to_owned(),
        format!("--kubeconfig={SHOOT_KUBECONFIG}"),
        "--cloud-provider=mcm".to_owned(),
        "--stderrthreshold=info".to_owned(),
        "--skip-nodes-with-system-pods=false".to_owned(),
        "--skip-nodes-with-local-storage=false".to_owned(),
    ];
    let settings = cluster
        .shoot
        .spec
        .kubernetes
        .cluster_autoscaler
        .clone()
        .unwrap_or_default();
    let expander = settings.expander.unwrap_or_else(|| "least-waste".to_owned());
    command.push(format!("--expander={expander}"));
    for (flag, value) in [
        ("scale-down-delay-after-add", settings.scale_down_delay_after_add),
        ("scale-down-delay-after-delete", settings.scale_down_delay_after_delete),
        ("scale-down-unneeded-time", settings.scale_down_unneeded_time),
        ("scan-interval", settings.scan_interval),
        ("max-node-provision-time", settings.max_node_provision_time),
    ] {
        if let Some(value) = value {
            command.push(format!("--{flag}={value}"));
        }
    }
    for one in deployments {
        command.push(format!(
            "--nodes={}:{}:{}.{}",
            one.minimum, one.maximum, cluster.namespace, one.name
        ));
    }
    let server = container(Container {
        name: NAME,
        image: format!("cluster-autoscaler:v{}", cluster.version()),
        command,
        mounts: vec![KUBECONFIG_VOLUME],
        ports: &[("metrics", 8085)],
        requests: ("10m", "30Mi"),
        ..Container::default()
    });
    vec![
        access::component(cluster.namespace, NAME),
        deployment(Workload {
            namespace: cluster.namespace,
            name: NAME,
            selector: &[("app", "kubernetes"), ("role", NAME)],
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            containers: vec![server],
            volumes: vec![kubeconfig_volume(
                &cluster.secret("generic-token-kubeconfig"),
                &access::name(NAME),
            )],
            ..Workload::default()
        }),
    ]
}
