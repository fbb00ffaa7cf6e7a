//! One embedded cluster in memory with the custom resources of a seed. Nothing runs in it but the API.

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::{Authenticator, Settings};
use gardener_apiserver::kubernetes::{self, NamespaceLifecycle};
use gardener_apiserver::rbac::Rbac;
use gardener_apiserver::user::MASTERS;
use gardener_apiserver::{ClusterConfig, Server, Shared, UserInfo, object};
use gardener_store::{MemoryStore, Options};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};

/// A cluster with a seed's kinds. Its time starts with 2026 and follows the paused runtime.
pub struct Seed {
    /// The server.
    pub server: Server,
    /// An administrator's client.
    pub client: Client,
    /// The server's time.
    pub clock: Clock,
    /// The server's chance.
    pub chance: Chance,
}

impl Seed {
    /// A cluster with the custom resources whose group is in `groups`.
    #[allow(clippy::unwrap_used)] // memory does not refuse, and the recordings are part of the program
    pub async fn with_groups(groups: &[&str]) -> Self {
        let (resources, documents) = kubernetes::resources().unwrap();
        let shared = Shared {
            store: Arc::new(MemoryStore::new(object::FORM, Options::all_old())),
            clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()),
            chance: Chance::seeded(1),
        };
        let server = Server::new(shared.clone());
        let cluster = server.open(
            "seed",
            ClusterConfig {
                admission: vec![Arc::new(NamespaceLifecycle)],
                ..ClusterConfig::new(
                    (Arc::new(resources), Arc::new(documents)),
                    Arc::new(Authenticator::new(Settings::default())),
                    Arc::new(Rbac),
                    "v1.36.0",
                )
            },
        );
        kubernetes::bootstrap(&cluster).await.unwrap();
        let client = server.client("seed", UserInfo::new("admin", &[MASTERS]));
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for (name, text) in gardener_apis::crds::ALL {
            if groups.iter().any(|group| name.ends_with(&format!(".{group}"))) {
                let definition: CustomResourceDefinition = serde_saphyr::from_str(text).unwrap();
                definitions.create(&PostParams::default(), &definition).await.unwrap();
            }
        }
        Self {
            server,
            client,
            clock: shared.clock,
            chance: shared.chance,
        }
    }

    /// Creates a namespace.
    #[allow(clippy::unwrap_used)] // memory does not refuse
    pub async fn namespace(&self, name: &str) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &namespace).await.unwrap();
    }

    /// An API of a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Lets everything that runs come to rest: time moves on by `seconds`.
pub async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Lets time move on until an object is as wanted; fails after 10 minutes of virtual time.
///
/// # Panics
/// When it never is.
#[allow(clippy::panic)] // it is an assertion
pub async fn eventually<K>(api: &Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    for _ in 0..2400 {
        let found = api.get_opt(name).await.ok().flatten();
        if wanted(found.as_ref()) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!(
        "{name} never became as wanted, it is {:#?}",
        api.get_opt(name).await.ok().flatten()
    )
}
