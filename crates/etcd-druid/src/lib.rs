//! etcd-druid: keeps the objects that run an etcd cluster as an `Etcd` says, and tells in its status how the members are.
//!
//! The kinds of the objects are Kubernetes' own; who runs the pods is not known here. What an `Etcd` needs is said by [`components`],
//! what its status tells by [`status`]: both are pure.
#![forbid(unsafe_code)]

pub mod components;
mod controller;
pub mod status;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// The finalizer on an `Etcd` that has objects.
pub const FINALIZER: &str = "druid.gardener.cloud/etcd-druid";

/// How etcd-druid runs.
#[derive(Clone)]
pub struct Config {
    /// The cluster with the `Etcd` objects.
    pub client: Client,
    /// The namespace that is watched; all of them when absent.
    pub namespace: Option<String>,
    /// What time it is.
    pub clock: Clock,
    /// Ids of operations.
    pub chance: Chance,
}

/// Runs the controller until `stop`.
pub async fn run(config: Config, stop: CancellationToken) {
    controller::run(config, stop).await;
}
