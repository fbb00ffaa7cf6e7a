//! gardener-controller-manager: keeps the garden's own objects in order. One folder or file per controller, named as upstream's.
#![forbid(unsafe_code)]

mod controllerregistration;
mod namespacedcloudprofile;
mod project;
mod references;
mod seed;
mod shoot;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_controller::apply;
use gardener_controller::leader::{Election, End, lead};
use gardener_rules::maintenance::Settings;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// How many objects each controller works on at once.
pub(crate) const CONCURRENCY: usize = 5;

/// How the controller-manager runs.
#[derive(Clone)]
pub struct Config {
    /// The garden.
    pub garden: Client,
    /// What time it is.
    pub clock: Clock,
    /// Where in a window or a jitter something happens.
    pub chance: Chance,
    /// `controllers.shootMaintenance`.
    pub maintenance: Settings,
    /// Whether to find out what controllers that are at work will do, in a garden that is a copy of theirs: maintenance then does not begin with
    /// its start, and leaves out windows in which it would repeat what it did.
    pub foretells: bool,
    /// By which lease one of several processes is chosen to work; without one this process works.
    pub election: Option<Election>,
}

/// Why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The garden refused.
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    /// The garden refused.
    #[error(transparent)]
    Apply(#[from] apply::ApplyError),
    /// Something else stands in the way; the words tell what.
    #[error("{0}")]
    Blocked(String),
}

/// Runs all controllers until `stop`, while this process leads.
pub async fn run(config: Config, stop: CancellationToken) {
    let Some(election) = config.election.clone() else {
        return work(config, stop).await;
    };
    let (client, clock) = (config.garden.clone(), config.clock.clone());
    while lead(client.clone(), &clock, &election, &stop, |stop| {
        work(config.clone(), stop)
    })
    .await
        == End::Lost
    {}
}

async fn work(config: Config, stop: CancellationToken) {
    tokio::join!(
        project::run(config.clone(), stop.clone()),
        controllerregistration::run(config.clone(), stop.clone()),
        namespacedcloudprofile::run(config.clone(), stop.clone()),
        references::run(config.clone(), stop.clone()),
        seed::run(config.clone(), stop.clone()),
        shoot::run(config, stop),
    );
}

/// Runs the maintenance of shoots until `stop`, and nothing else. It has no timers of its own besides those of shoots, so that a paused runtime passes
/// months without work.
pub async fn run_maintenance(config: Config, stop: CancellationToken) {
    shoot::run_maintenance(config, stop).await;
}
