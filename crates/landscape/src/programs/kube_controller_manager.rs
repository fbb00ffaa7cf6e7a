//! kube-controller-manager and kube-scheduler: one set of controllers serves all clusters; a cluster takes part while a replica runs.

use std::time::Duration;

use async_trait::async_trait;
use gardener_cluster::Role;
use gardener_cluster::kubelet::{Invocation, Program};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::files::{FileError, Files};
use super::{Authority, Replicas, Surroundings, namespace};

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

    async fn authority(&self, invocation: &Invocation) -> Result<Authority, FileError> {
        let files = Files::new(
            self.surroundings.node_client(invocation),
            &invocation.pod,
            &invocation.container,
        );
        Ok(Authority {
            root: files.file_of("root-ca-file").await?,
            signing: (
                files.file_of("cluster-signing-kube-apiserver-client-cert-file").await?,
                files.file_of("cluster-signing-kube-apiserver-client-key-file").await?,
            ),
        })
    }
}

#[async_trait]
impl Program for KubeControllerManager {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "kube-controller-manager"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let name = namespace(&invocation.pod);
        let authority = loop {
            match self.authority(&invocation).await {
                Ok(authority) => break authority,
                Err(error) => tracing::debug!(cluster = name, %error, "kube-controller-manager cannot start yet"),
            }
            tokio::select! {
                biased;
                () = invocation.stop.cancelled() => return 0,
                () = tokio::time::sleep(RETRY) => {}
            }
        };
        self.surroundings.authorities.set(&name, authority);
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
