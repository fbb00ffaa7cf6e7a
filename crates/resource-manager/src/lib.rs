//! gardener-resource-manager: keeps objects in a target cluster as `ManagedResource`s in a source cluster say, tells how healthy they are, and
//! keeps tokens for service accounts of the target, and removes what nothing names any more. In shoots it approves the certificates of nodes and opens nodes whose critical components run. In seeds it
//! judges extension objects ([`webhooks`]).
//!
//! Source and target are clients; which clusters they lead to is not known here. Decisions are in [`source`], [`merge`], [`order`] and `rules`
//! (`health`, `csr_approval`, `critical_components`); the controllers gather, decide and apply.
#![forbid(unsafe_code)]

mod csr_approver;
mod followed;
mod garbage_collector;
mod health;
mod managed_resource;
mod mapper;
pub mod merge;
mod node_critical_components;
pub mod order;
pub mod source;
mod target;
mod token_requestor;
pub mod webhooks;

use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// The class of shoots' managers; ManagedResources without a class belong to it.
pub const DEFAULT_CLASS: &str = "resources";
/// The class of a seed's own manager.
pub const SEED_CLASS: &str = "seed";
/// The class that takes every ManagedResource.
pub const ALL_CLASSES: &str = "*";

/// How a manager runs.
#[derive(Clone)]
pub struct Config {
    /// The cluster with the ManagedResources and token secrets.
    pub source: Client,
    /// The cluster with the managed objects.
    pub target: Client,
    /// The namespace of the source that is watched; all of them when absent.
    pub namespace: Option<String>,
    /// The class of this manager.
    pub class: String,
    /// The value of `resources.gardener.cloud/class` on token secrets of this manager, e.g. `shoot`; without one no tokens are made.
    pub token_class: Option<String>,
    /// The certificate authority (PEM) of the target, for kubeconfigs that ask for it.
    pub target_ca: Option<String>,
    /// What time it is.
    pub clock: Clock,
    /// Jitter.
    pub chance: Chance,
    /// How often everything is reconciled without a reason.
    pub sync_period: Duration,
}

impl Config {
    /// Whether this manager is responsible for a ManagedResource of a class `[GRM-6]`.
    pub fn is_responsible(&self, class: Option<&str>) -> bool {
        let class = class.unwrap_or_default();
        self.class == ALL_CLASSES || class == self.class || (class.is_empty() && self.class == DEFAULT_CLASS)
    }

    /// The finalizer of this manager `[GRM-6]`.
    pub fn finalizer(&self) -> String {
        if self.class == DEFAULT_CLASS || self.class == ALL_CLASSES {
            FINALIZER.to_owned()
        } else {
            format!("{FINALIZER}-{}", self.class)
        }
    }
}

/// The stem of all managers' finalizers.
pub(crate) const FINALIZER: &str = "resources.gardener.cloud/gardener-resource-manager";

/// Runs the controllers until `stop`.
pub async fn run(config: Config, stop: CancellationToken) {
    let tokens = token_requestor::run(config.clone(), stop.clone());
    let requests = csr_approver::run(config.clone(), stop.clone());
    let nodes = node_critical_components::run(config.clone(), stop.clone());
    let garbage = garbage_collector::run(config.clone(), stop.clone());
    let resources = managed_resource::run(config, stop);
    tokio::join!(tokens, requests, nodes, garbage, resources);
}

#[cfg(test)]
mod fixtures {
    use gardener_testkit::cluster::MemoryClusters;
    use gardener_testkit::seed::Seed;

    use super::*;

    /// The technical namespace of the shoot in tests.
    pub(crate) const NAMESPACE: &str = "shoot--local--a";

    /// A seed, a shoot `shoot` with an administrator's client, and a manager between them.
    pub(crate) async fn world() -> (Seed, MemoryClusters, Config) {
        let seed = Seed::with_groups(&["machine.sapcloud.io", "resources.gardener.cloud"]).await;
        seed.namespace(NAMESPACE).await;
        let clusters = MemoryClusters::new();
        let config = Config {
            source: seed.client.clone(),
            target: clusters.open("shoot").await,
            namespace: Some(NAMESPACE.to_owned()),
            class: DEFAULT_CLASS.to_owned(),
            token_class: Some("shoot".to_owned()),
            target_ca: None,
            clock: seed.clock.clone(),
            chance: seed.chance.clone(),
            sync_period: Duration::from_secs(60),
        };
        (seed, clusters, config)
    }
}
