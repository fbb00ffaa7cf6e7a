//! gardener-controller-manager: keeps the garden's own objects in order. One folder or file per controller, named as upstream's.
#![forbid(unsafe_code)]

mod bastion;
mod certificatesigningrequest;
mod cloudprofile;
pub mod configuration;
mod controllerregistration;
mod event;
mod managedseedset;
mod manager;
mod namespacedcloudprofile;
pub mod program;
mod project;
mod reference;
mod references;
mod seed;
mod shoot;
mod shootstate;

use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_controller::Monitor;
use gardener_controller::leader::{Election, End, lead};
use gardener_rules::maintenance::Settings;
use kube::Client;
use kube::runtime::watcher;
use tokio_util::sync::CancellationToken;

use configuration::Controllers;
use manager::Manager;

/// How the controller-manager runs.
#[derive(Clone)]
pub struct Config {
    /// The garden.
    pub garden: Client,
    /// What time it is.
    pub clock: Clock,
    /// Where in a window or a jitter something happens.
    pub chance: Chance,
    /// The controllers' configuration, but for what [`Config::maintenance`] says.
    pub controllers: Arc<Controllers>,
    /// What maintenance does.
    pub maintenance: Settings,
    /// Whether to find out what controllers that are at work will do, in a garden that is a copy of theirs: maintenance then does not begin with
    /// its start, and leaves out windows in which it would repeat what it did.
    pub foretells: bool,
    /// By which lease one of several processes is chosen to work; without one this process works.
    pub election: Option<Election>,
    /// What tells how the controllers are.
    pub monitor: Monitor,
}

impl Config {
    /// A configuration in which all is as by default, and this process alone works.
    pub fn new(garden: Client, clock: Clock, chance: Chance) -> Self {
        Self {
            garden,
            clock,
            chance,
            controllers: Arc::default(),
            maintenance: Settings::default(),
            foretells: false,
            election: None,
            monitor: Monitor::default(),
        }
    }
}

/// Runs all controllers until `stop`, while this process leads.
pub async fn run(config: Config, stop: CancellationToken) {
    let Some(election) = config.election.clone() else {
        return work(config, stop).await;
    };
    let (client, clock, monitor) = (config.garden.clone(), config.clock.clone(), config.monitor.clone());
    monitor.leads(&election.name, false);
    loop {
        let end = lead(client.clone(), &clock, &election, &stop, |stop| {
            config.monitor.leads(&election.name, true);
            work(config.clone(), stop)
        });
        let end = end.await;
        monitor.leads(&election.name, false);
        monitor.follows(None);
        if end != End::Lost {
            return;
        }
    }
}

async fn work(config: Config, stop: CancellationToken) {
    let manager = Manager::new(config, watcher::Config::default(), stop);
    tokio::join!(
        bastion::run(&manager),
        certificatesigningrequest::run(&manager),
        cloudprofile::run(&manager),
        controllerregistration::run(&manager),
        event::run(&manager),
        managedseedset::run(&manager),
        namespacedcloudprofile::run(&manager),
        project::run(&manager),
        reference::run(&manager),
        references::run(&manager),
        seed::run(&manager),
        shoot::run(&manager),
        shootstate::run(&manager),
    );
}

/// Runs the maintenance of shoots until `stop`, and nothing else. It has no timers of its own besides those of shoots, so that a paused runtime passes
/// months without work.
pub async fn run_maintenance(config: Config, stop: CancellationToken) {
    shoot::run_maintenance(&manager_for_years(config, stop)).await;
}

/// Runs all that changes shoots because time passes until `stop`: maintenance, hibernation by schedules, and the end of lifetimes. Nothing but shoots have
/// timers, as with [`run_maintenance`].
pub async fn run_by_time(config: Config, stop: CancellationToken) {
    shoot::run_by_time(&manager_for_years(config, stop)).await;
}

fn manager_for_years(config: Config, stop: CancellationToken) -> Manager {
    // nobody is to look after watches in years of virtual time
    let watching = watcher::Config::default().timeout(u32::MAX).disable_bookmarks();
    Manager::new(config, watching, stop)
}
