//! The controllers of kube-controller-manager, one module each.

use std::sync::Arc;

use crate::environment::Environment;

pub use node_ranges::pod_network;

mod account_tokens;
mod admission_policies;
mod any;
mod certificates;
mod cluster_roles;
mod daemon_sets;
mod deployments;
mod disruption_budgets;
mod endpoints;
mod expiry;
mod garbage_collector;
mod jobs;
mod namespaces;
mod node_ranges;
mod nodes;
mod replica_sets;
mod replicas;
mod resource_quotas;
mod revisions;
mod service_accounts;
mod service_ranges;
mod stateful_sets;
mod unused_tokens;
mod volumes;

/// Starts all of them.
pub(crate) fn start(environment: &Arc<Environment>) {
    account_tokens::start(environment);
    admission_policies::start(environment);
    certificates::start(environment);
    cluster_roles::start(environment);
    daemon_sets::start(environment);
    deployments::start(environment);
    disruption_budgets::start(environment);
    endpoints::start(environment);
    expiry::start(environment);
    garbage_collector::start(environment);
    jobs::start(environment);
    namespaces::start(environment);
    node_ranges::start(environment);
    nodes::start(environment);
    replica_sets::start(environment);
    resource_quotas::start(environment);
    service_accounts::start(environment);
    service_ranges::start(environment);
    stateful_sets::start(environment);
    unused_tokens::start(environment);
    volumes::start(environment);
    let topics = environment.topics.clone();
    environment
        .config
        .participants
        .on_join(move |cluster, _| topics.add_cluster(cluster));
    environment.topics.start();
    for cluster in environment.config.participants.names(crate::Role::ControllerManager) {
        environment.topics.add_cluster(&cluster);
    }
}
