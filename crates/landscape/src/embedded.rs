//! Opens embedded Kubernetes clusters: resources, admission and authorization that every one of them has.

use std::sync::Arc;

use gardener_apiserver::authn::{Authenticator, Settings};
use gardener_apiserver::authz::{Authorizer, Node, Union};
use gardener_apiserver::kubernetes::{self, BootstrapError, RecordedError};
use gardener_apiserver::openapi::Documents;
use gardener_apiserver::rbac::Rbac;
use gardener_apiserver::{ClusterConfig, Components, LogicalCluster, ResourceSet, Server, UserInfo};

use crate::token_tracking;

/// Kubernetes' kinds, read once for all embedded clusters.
#[derive(Clone)]
pub struct EmbeddedKubernetes {
    resources: Arc<ResourceSet>,
    openapi: Arc<Documents>,
}

impl EmbeddedKubernetes {
    /// Reads the recorded kinds.
    ///
    /// # Errors
    /// When the recordings in the program are damaged.
    pub fn load() -> Result<Self, RecordedError> {
        let (resources, documents) = kubernetes::resources()?;
        Ok(Self {
            resources: Arc::new(resources),
            openapi: Arc::new(documents),
        })
    }

    /// The kinds.
    pub fn resources(&self) -> &Arc<ResourceSet> {
        &self.resources
    }

    /// Opens a cluster and makes sure that it has what a fresh cluster has.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn open(
        &self,
        server: &Server,
        name: &str,
        version: &str,
        settings: Settings,
    ) -> Result<Arc<LogicalCluster>, BootstrapError> {
        let cluster = server.open(name, self.config(version, settings));
        set_up(server, &cluster).await?;
        Ok(cluster)
    }

    /// The setup of a cluster of this Kubernetes version (`1.36.0`).
    pub fn config(&self, version: &str, settings: Settings) -> ClusterConfig {
        let authorizer: Arc<dyn Authorizer> = Arc::new(Union(vec![Arc::new(Node), Arc::new(Rbac)]));
        ClusterConfig {
            admission: kubernetes::admission_plugins(
                kubernetes::ServiceAccountPlugin::default(),
                kubernetes::DefaultTolerationSeconds::default(),
            ),
            components: Components::Within,
            ..ClusterConfig::new(
                (self.resources.clone(), self.openapi.clone()),
                Arc::new(Authenticator::new(settings)),
                authorizer,
                format!("v{}", version.trim_start_matches('v')),
            )
        }
    }
}

/// Makes sure that a cluster has what a fresh one has.
///
/// # Errors
/// When the store refuses.
pub(crate) async fn set_up(server: &Server, cluster: &LogicalCluster) -> Result<(), BootstrapError> {
    kubernetes::bootstrap(cluster).await?;
    let client = server.client(cluster.name(), UserInfo::apiserver());
    token_tracking::provide(&client, cluster.clock()).await;
    Ok(())
}
