//! Embedded Kubernetes clusters in memory.

use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::{Authenticator, Settings};
use gardener_apiserver::authz::{Node, Union};
use gardener_apiserver::kubernetes;
use gardener_apiserver::openapi::Documents;
use gardener_apiserver::rbac::Rbac;
use gardener_apiserver::tokens::SigningKey;
use gardener_apiserver::user::MASTERS;
use gardener_apiserver::{ALL_CLUSTERS, ClusterConfig, ResourceSet, Server, Shared, UserInfo, object};
use gardener_store::MemoryStore;
use k8s_openapi::jiff::Timestamp;

/// Who issues the clusters' service account tokens, and whom they are for.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// A server whose clusters are in memory. Its time starts at the epoch of 2026 and follows the paused runtime.
pub struct MemoryClusters {
    /// The server, with [`ALL_CLUSTERS`] open.
    pub server: Server,
    resources: Arc<ResourceSet>,
    documents: Arc<Documents>,
    authenticator: Arc<Authenticator>,
}

impl MemoryClusters {
    /// A server without clusters but [`ALL_CLUSTERS`].
    #[allow(clippy::unwrap_used)] // the recordings are part of the program, and keys can be made
    pub fn new() -> Self {
        let (resources, documents) = kubernetes::resources().unwrap();
        let store = MemoryStore::new(object::FORM, gardener_store::Options::all_old());
        let server = Server::new(Shared {
            store: Arc::new(store),
            clock: Clock::starting_at("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()),
            chance: Chance::seeded(1),
        });
        let clusters = Self {
            server,
            resources: Arc::new(resources),
            documents: Arc::new(documents),
            authenticator: Arc::new(Authenticator::new(Settings {
                signer: Some(Arc::new(
                    SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap(),
                )),
                issuer: ISSUER.to_owned(),
                audiences: vec![ISSUER.to_owned()],
                bootstrap_tokens: true,
                ..Settings::default()
            })),
        };
        clusters.server.open(ALL_CLUSTERS, clusters.config());
        clusters
    }

    fn config(&self) -> ClusterConfig {
        ClusterConfig {
            admission: kubernetes::admission_plugins(
                kubernetes::ServiceAccountPlugin { mounts_tokens: true },
                kubernetes::DefaultTolerationSeconds::default(),
            ),
            ..ClusterConfig::new(
                (Arc::clone(&self.resources), Arc::clone(&self.documents)),
                Arc::clone(&self.authenticator),
                Arc::new(Union(vec![Arc::new(Node), Arc::new(Rbac)])),
                "v1.36.0",
            )
        }
    }

    /// Opens a cluster with what a fresh cluster has, and gives an administrator's client into it.
    #[allow(clippy::unwrap_used)] // memory does not refuse
    pub async fn open(&self, name: &str) -> kube::Client {
        let cluster = self.server.open(name, self.config());
        kubernetes::bootstrap(&cluster).await.unwrap();
        self.client(name, "admin", &[MASTERS])
    }

    /// A client of one user.
    pub fn client(&self, cluster: &str, user: &str, groups: &[&str]) -> kube::Client {
        self.server.client(cluster, UserInfo::new(user, groups))
    }
}

impl Default for MemoryClusters {
    fn default() -> Self {
        Self::new()
    }
}
