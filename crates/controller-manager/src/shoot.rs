//! Controllers of shoots `[GCM-40]`–`[GCM-46]`: maintenance, hibernation by schedules, quotas' lifetimes, retries, the status label, conditions of
//! shoots that are seeds, and whether a shoot can move.

mod conditions;
mod hibernation;
mod maintenance;
mod migration;
mod quota;
mod retry;
mod statuslabel;

use crate::Manager;

pub(crate) async fn run(manager: &Manager) {
    tokio::join!(
        statuslabel::run(manager),
        maintenance::run(manager),
        hibernation::run(manager),
        quota::run(manager),
        retry::run(manager),
        conditions::run(manager),
        migration::run(manager),
    );
}

pub(crate) async fn run_maintenance(manager: &Manager) {
    maintenance::run(manager).await;
}

/// What changes shoots because time passes.
pub(crate) async fn run_by_time(manager: &Manager) {
    tokio::join!(
        maintenance::run(manager),
        hibernation::run(manager),
        quota::run(manager)
    );
}
