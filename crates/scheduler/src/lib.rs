//! gardener-scheduler: finds a seed for every shoot that has none. The choice is `rules::scheduling`; here inputs are gathered and the answer is
//! applied.
#![forbid(unsafe_code)]

mod shoot;

use gardener_apimachinery::clock::Clock;
use gardener_rules::scheduling::Strategy;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// How the scheduler runs `[SCH-1]`.
#[derive(Clone)]
pub struct Config {
    /// The garden.
    pub garden: Client,
    /// What time it is.
    pub clock: Clock,
    /// How candidates are chosen.
    pub strategy: Strategy,
    /// Shoots worked on at once.
    pub concurrency: usize,
}

/// Runs the scheduler until `stop`.
pub async fn run(config: Config, stop: CancellationToken) {
    shoot::run(config, stop).await;
}
