//! The seed care controller: whether what every seed has runs [ST-190]. Not its installation.

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{Condition, Seed};
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::apply as patching;
use gardener_controller::conditions::{self, status};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_rules::care::{Finding, managed_resources};
use gardener_rules::shoot_operation::EMERGENCY_STOP;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::system;
use crate::components::seed_system;
use crate::failed::Failed;
use crate::{Config, care, health, managed_resource};

const SYSTEM: &str = "SeedSystemComponentsHealthy";
const EMERGENCY: &str = "EmergencyStopShootReconciliations";

/// What is looked at: the seed's own namespace, and that of the entrance to its shoots.
struct Care {
    config: Config,
    deployments: Informer<Deployment>,
    resources: Informer<ManagedResource>,
    of_entrance: Informer<ManagedResource>,
}

/// The namespace of the entrance to a seed's shoots.
const ENTRANCE: &str = "istio-system";

/// Runs the controller until `stop`. `resources` are the ManagedResources of the seed's own namespace.
pub(crate) async fn run(
    config: Config,
    seeds: Informer<Seed>,
    resources: Informer<ManagedResource>,
    stop: CancellationToken,
) {
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: config.settings.seed_care_sync_period,
    });
    let api = Api::namespaced(config.seed.clone(), seed_system::NAMESPACE);
    let deployments = Informer::start(api, watcher::Config::default(), &stop);
    let seed = ObjectRef::cluster_scoped(&config.seed_name);
    seeds.feed_if(&queue, asks_for_care, |seed| [ObjectRef::of(seed)]);
    let own = seed.clone();
    deployments.feed_gathered(&queue, |_| true, move |_| [own.clone()]);
    let of_entrance = managed_resource::informer(&config.seed, ENTRANCE, &stop);
    let own = seed.clone();
    of_entrance.feed_gathered(&queue, |_| true, move |_| [own.clone()]);
    resources.feed_gathered(&queue, |_| true, move |_| [seed.clone()]);
    let care = Arc::new(Care {
        config,
        deployments,
        resources,
        of_entrance,
    });
    Controller::new("seed-care", 1, queue)
        .run(stop, move |key| {
            let care = Arc::clone(&care);
            async move { care.reconcile(&key).await }
        })
        .await;
}

/// New seeds, seeds whose installation ended, and seeds whose reconciliations are to stop.
fn asks_for_care(change: &Change<Seed>) -> bool {
    match change {
        Change::Deleted(_) => false,
        Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            let state = |seed: &Seed| seed.status.last_operation.as_ref().map(|last| last.state.clone());
            state(old) != state(new) || old.annotations() != new.annotations()
        }
    }
}

impl Care {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, Failed> {
        let api: Api<Seed> = Api::all(self.config.garden.clone());
        let Some(seed) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        self.deployments.synced().await;
        self.resources.synced().await;
        self.of_entrance.synced().await;
        let system = self.system(&seed);
        let emergency = emergency_stop(&seed, &self.config);
        patching::patch_status(&api, &seed, |seed| {
            let mut list = std::mem::take(&mut seed.status.conditions);
            if emergency.is_none() {
                list.retain(|condition| condition.r#type != EMERGENCY);
            }
            seed.status.conditions =
                conditions::merge(list, [Some(system.clone()), emergency.clone()].into_iter().flatten());
        })
        .await?;
        Ok(Action::RequeueAfter(self.config.settings.seed_care_sync_period))
    }

    fn system(&self, seed: &Seed) -> Condition {
        let now = self.config.clock.time();
        let old = conditions::get_or_init(&seed.status.conditions, SYSTEM, &now);
        let Err(finding) = self.check(now.0) else {
            let message = "All system components are healthy.";
            return conditions::with(&old, status::TRUE, "SystemComponentsRunning", message, &now);
        };
        let threshold = care::threshold_of(&self.config.settings.seed_care_condition_thresholds, SYSTEM);
        care::failing(&old, &finding, threshold, None, &now)
    }

    /// The Deployments that a seed cannot do without, and what is kept for it by ManagedResources [ST-62].
    fn check(&self, now: Timestamp) -> Result<(), Finding> {
        for name in system::DEPLOYMENTS {
            let namespace = seed_system::NAMESPACE;
            let Some(found) = self.deployments.get(&ObjectRef::new(namespace, name)) else {
                let text = format!("Deployment \"{namespace}/{name}\" is missing");
                return Err(Finding::new("DeploymentMissing", text));
            };
            health::deployment(&found).map_err(|why| {
                let text = format!("Deployment \"{namespace}/{name}\" is unhealthy: {why}");
                Finding::new("DeploymentUnhealthy", text)
            })?;
        }
        let (resources, of_entrance) = (self.resources.list(), self.of_entrance.list());
        resources
            .iter()
            .chain(&of_entrance)
            .filter(|resource| resource.spec.class.is_some())
            .try_for_each(|resource| managed_resources::check(resource, None, now))
    }
}

fn emergency_stop(seed: &Seed, config: &Config) -> Option<Condition> {
    let asked = seed.annotations().get(EMERGENCY_STOP)?;
    (asked == "true").then(|| {
        let now = config.clock.time();
        let old = conditions::get_or_init(&seed.status.conditions, EMERGENCY, &now);
        let message = "Reconciliations of Shoots managed by this Seed cluster are currently disabled by annotation.";
        conditions::with(&old, status::TRUE, EMERGENCY, message, &now)
    })
}
