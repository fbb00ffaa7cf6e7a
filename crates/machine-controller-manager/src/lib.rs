//! machine-controller-manager: keeps as many machines as machine deployments say, replaces what fails, rolls what changes.
//!
//! Decisions are in `rules::machines`. How a machine is made is a [`driver::Driver`]'s business.
#![forbid(unsafe_code)]

mod deployment;
mod drain;
pub mod driver;
mod machine;
mod node_template;
mod owned;
mod set;

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::machine::v1alpha1::{Machine, MachineDeployment, MachineSet};
use gardener_controller::apply::ApplyError;
use gardener_controller::{Change, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_rules::machines::key;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use driver::Driver;

/// How a manager runs.
#[derive(Clone)]
pub struct Config {
    /// The cluster with the machine objects.
    pub client: Client,
    /// The cluster whose nodes the machines are.
    pub target: Client,
    /// The namespace with the machine objects.
    pub namespace: String,
    /// Makes machines.
    pub driver: Arc<dyn Driver>,
    /// What time it is.
    pub clock: Clock,
    /// Names and tokens.
    pub chance: Chance,
}

/// What all controllers use.
struct Shared {
    config: Config,
    nodes: Informer<Node>,
}

/// Why something comes again.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The API refused.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The API refused.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// An object is not as it must be.
    #[error("{0}")]
    Invalid(String),
}

impl Shared {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.config.client.clone(), &self.config.namespace)
    }

    /// All machines, as the API knows them now: a copy that lags behind would make machines twice.
    async fn machines(&self) -> Result<Vec<Machine>, kube::Error> {
        self.api::<Machine>().read_list(&Default::default()).await
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&ObjectRef::cluster_scoped(name))
    }
}

/// Whether more than the status changed.
fn is_news<K: Resource>(change: &Change<K>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => {
            let (old, new) = (old.meta(), new.meta());
            old.uid != new.uid
                || old.generation != new.generation
                || old.annotations != new.annotations
                || old.labels != new.labels
                || old.deletion_timestamp != new.deletion_timestamp
        }
        _ => true,
    }
}

/// The owner of a kind, in the same namespace.
fn owner<K: Resource>(object: &K, kind: &str) -> Option<ObjectRef> {
    let owner = object.owner_references().iter().find(|owner| owner.kind == kind)?;
    Some(ObjectRef::new(
        object.namespace().unwrap_or_default(),
        owner.name.clone(),
    ))
}

/// Runs the controllers until `stop`.
pub async fn run(config: Config, stop: CancellationToken) {
    // a fast retry is cheap, and a machine that waits 16 minutes is not what anybody wants
    let limit = RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(30),
    };
    let (deployments, sets, machines) = (
        Queue::<ObjectRef>::with_limit(limit),
        Queue::<ObjectRef>::with_limit(limit),
        Queue::<ObjectRef>::with_limit(limit),
    );
    let nodes: Informer<Node> = Informer::start(Api::all(config.target.clone()), watcher::Config::default(), &stop);
    let shared = Arc::new(Shared {
        config,
        nodes: nodes.clone(),
    });
    let deployment_objects: Informer<MachineDeployment> =
        Informer::start(shared.api(), watcher::Config::default(), &stop);
    let set_objects: Informer<MachineSet> = Informer::start(shared.api(), watcher::Config::default(), &stop);
    let machine_objects: Informer<Machine> = Informer::start(shared.api(), watcher::Config::default(), &stop);
    deployment_objects.feed_gathered(&deployments, is_news, |one| [ObjectRef::of(one)]);
    set_objects.feed_gathered(&sets, is_news, |one| [ObjectRef::of(one)]);
    set_objects.feed_gathered(&deployments, |_| true, |one| owner(one, "MachineDeployment"));
    machine_objects.feed_gathered(&machines, is_news, |one| [ObjectRef::of(one)]);
    machine_objects.feed_gathered(&sets, |_| true, |one| owner(one, "MachineSet"));
    machine_objects.add_index("node", |machine: &Machine| {
        machine.labels().get(key::NODE).cloned().into_iter().collect()
    });
    {
        let (queue, known) = (machines.clone(), machine_objects.clone());
        nodes.on_change(move |change| {
            for machine in known.by_index("node", &change.object().name_any()) {
                queue.add(ObjectRef::of(machine.as_ref()));
            }
        });
    }
    let (one, two, three) = (Arc::clone(&shared), Arc::clone(&shared), shared);
    tokio::join!(
        Controller::new("machinedeployment", 2, deployments).run(stop.clone(), move |key| {
            let shared = Arc::clone(&one);
            async move { deployment::reconcile(&shared, &key).await }
        }),
        Controller::new("machineset", 5, sets).run(stop.clone(), move |key| {
            let shared = Arc::clone(&two);
            async move { set::reconcile(&shared, &key).await }
        }),
        Controller::new("machine", 20, machines).run(stop, move |key| {
            let shared = Arc::clone(&three);
            async move { machine::reconcile(&shared, &key).await }
        }),
    );
}

#[cfg(test)]
mod tests;
