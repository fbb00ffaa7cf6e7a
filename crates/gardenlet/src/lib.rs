//! gardenlet: runs the seed, and the control planes of the shoots in it.
//!
//! One folder per controller, named as in Gardener. Talks to garden, seed and shoots by their APIs only; what is deployed is rendered in
//! [`components`], what is decided is in `gardener-rules`.
#![forbid(unsafe_code)]

mod apply;
mod backup;
pub mod bootstrap;
mod care;
mod checksum;
pub mod components;
mod config;
mod controller_installation;
mod extension;
mod failed;
mod health;
mod identity;
mod managed_resource;
mod seed;
mod shoot;

pub use config::{BackupEntrySettings, CareSettings, Config, Ingress, Settings, ShootClients, ShootSettings};

use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_controller::Informer;
use kube::Api;
use kube::runtime::watcher;
use tokio_util::sync::CancellationToken;

/// Runs a gardenlet until `stop`: its seed, and the control planes of the shoots in it.
pub async fn run(config: Config, stop: CancellationToken) {
    while let Err(error) = seed::register(&config).await {
        tracing::warn!(%error, "cannot register the seed");
        let pause = tokio::time::sleep(std::time::Duration::from_secs(2));
        if stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
    let name = format!("metadata.name={}", config.seed_name);
    let seeds: Informer<Seed> = Informer::start(
        Api::all(config.garden.clone()),
        watcher::Config::default().fields(&name),
        &stop,
    );
    let own = watcher::Config::default().labels(&config.seed_label());
    let shoots: Informer<Shoot> = Informer::start(Api::all(config.garden.clone()), own, &stop);
    let resources = managed_resource::informer(&config.seed, components::seed_system::NAMESPACE, &stop);
    tokio::join!(
        backup::bucket::run(config.clone(), stop.clone()),
        backup::entry::run(config.clone(), stop.clone()),
        controller_installation::run(config.clone(), resources.clone(), stop.clone()),
        seed::renew_lease(config.clone(), seeds.clone(), stop.clone()),
        seed::run(config.clone(), seeds.clone(), stop.clone()),
        seed::care::run(config.clone(), seeds.clone(), resources, stop.clone()),
        shoot::run(config.clone(), shoots.clone(), seeds, stop.clone()),
        care::run(config.clone(), shoots, stop.clone()),
    );
}
