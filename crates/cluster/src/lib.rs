//! The embedded cluster: what kube-controller-manager, kube-scheduler and kubelets do, for many logical clusters at once.
//!
//! One set of controllers ([`run`]) watches all logical clusters of a server and acts in those that take part ([`Participants`]). One engine
//! ([`kubelet::Kubelets`]) is the kubelet of every embedded node: containers that have a [`kubelet::Program`] run it, all others are simulated.
//! No kind of Gardener is known here.
#![forbid(unsafe_code)]

mod controllers;
mod environment;
mod error;
mod expectations;
pub mod kubelet;
mod participants;
mod pods;
mod scheduler;
mod tidy;
mod topics;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use controllers::pod_network;
pub use environment::Config;
pub use participants::{Participants, Role};

use environment::Environment;

/// Runs all controllers and the scheduler until `stop` is cancelled. The server must have [`gardener_apiserver::ALL_CLUSTERS`] open.
pub async fn run(config: Config, stop: CancellationToken) {
    let environment = Arc::new(Environment::new(config, stop.clone()));
    environment.informers.synced().await;
    controllers::start(&environment);
    scheduler::start(&environment);
    stop.cancelled().await;
    environment.tasks.close();
    environment.tasks.wait().await;
}
