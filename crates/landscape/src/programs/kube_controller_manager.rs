//! kube-controller-manager and kube-scheduler: one set of controllers serves all clusters; a cluster takes part while a replica runs.

use std::time::Duration;

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use gardener_cluster::{Role, pod_network};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::files::{FileError, Files};
use super::{ControllerConfig, Replicas, Surroundings, namespace};

/// How soon a start that failed is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// kube-controller-manager.
pub struct KubeControllerManager {
    surroundings: Surroundings,
    replicas: Replicas,
}

impl KubeControllerManager {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            replicas: Replicas::default(),
        }
    }

    async fn config(&self, invocation: &Invocation) -> Result<ControllerConfig, FileError> {
        let files = Files::new(
            self.surroundings.node_client(invocation),
            &invocation.pod,
            &invocation.container,
        );
        Ok(ControllerConfig {
            root: files.file_of("root-ca-file").await?,
            signing: (
                files.file_of("cluster-signing-kube-apiserver-client-cert-file").await?,
                files.file_of("cluster-signing-kube-apiserver-client-key-file").await?,
            ),
            pod_networks: pod_networks(&files),
        })
    }
}

/// What `--allocate-node-cidrs`, `--cluster-cidr` and `--node-cidr-mask-size` say. What is no network is left out.
fn pod_networks(files: &Files<'_>) -> Vec<(IpNet, u8)> {
    if files.argument("allocate-node-cidrs") != Some("true") {
        return Vec::new();
    }
    let length = |name: &str| files.argument(name).and_then(|text| text.parse().ok());
    let networks = files.argument("cluster-cidr").unwrap_or_default().split(',');
    networks
        .filter_map(|text| {
            let of_family = if text.contains(':') {
                length("node-cidr-mask-size-ipv6")
            } else {
                length("node-cidr-mask-size-ipv4")
            };
            pod_network(text, of_family.or_else(|| length("node-cidr-mask-size"))).ok()
        })
        .collect()
}

#[async_trait]
impl Program for KubeControllerManager {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "kube-controller-manager"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let name = namespace(&invocation.pod);
        let config = loop {
            match self.config(&invocation).await {
                Ok(config) => break config,
                Err(error) => tracing::debug!(cluster = name, %error, "kube-controller-manager cannot start yet"),
            }
            tokio::select! {
                biased;
                () = invocation.stop.cancelled() => return 0,
                () = tokio::time::sleep(RETRY) => {}
            }
        };
        self.surroundings.controller_configs.set(&name, config);
        self.replicas.enter(&name);
        self.surroundings.participants.join(&name, Role::ControllerManager);
        let _ = invocation.ready.send(true);
        invocation.stop.cancelled().await;
        if self.replicas.leave(&name) {
            self.surroundings.participants.leave(&name, Role::ControllerManager);
        }
        0
    }
}

/// kube-scheduler.
pub struct KubeScheduler {
    surroundings: Surroundings,
    replicas: Replicas,
}

impl KubeScheduler {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            replicas: Replicas::default(),
        }
    }
}

#[async_trait]
impl Program for KubeScheduler {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "kube-scheduler"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let name = namespace(&invocation.pod);
        self.replicas.enter(&name);
        self.surroundings.participants.join(&name, Role::Scheduler);
        let _ = invocation.ready.send(true);
        invocation.stop.cancelled().await;
        if self.replicas.leave(&name) {
            self.surroundings.participants.leave(&name, Role::Scheduler);
        }
        0
    }
}
