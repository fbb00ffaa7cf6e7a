//! The shoot controller: makes, keeps and removes the control planes of this seed's shoots [CP-10..18].

mod botanist;
mod flow;
mod operation;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{finalizer, label};
use gardener_apis::core::v1beta1::{Project, Seed, Shoot};
use gardener_controller::apply::{has_finalizer, remove_finalizer};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_rules::shoot_operation::{self, Decision, OperationType, Policy};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::SignedDuration;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::failed::Failed;

const NAME: &str = "shoot";
/// How long a shoot waits for its seed [CP-14].
const SEED_RETRY: Duration = Duration::from_secs(15);

struct Reconciler {
    config: Config,
    /// The shoots of this seed.
    shoots: Informer<Shoot>,
    recorder: Recorder,
    /// Shoots that wait for their seed.
    waiting: Mutex<BTreeSet<ObjectRef>>,
    stop: CancellationToken,
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Whether only the nodes' network was filled in, which gardenlet does itself while it works [EXT-30].
fn only_learned_nodes(old: &Shoot, new: &Shoot) -> bool {
    let nodes = |shoot: &Shoot| shoot.spec.networking.as_ref().and_then(|one| one.nodes.clone());
    if nodes(old).is_some() || nodes(new).is_none() {
        return false;
    }
    let mut without = new.spec.clone();
    if let Some(networking) = &mut without.networking {
        networking.nodes = None;
    }
    without == old.spec && old.metadata.annotations == new.metadata.annotations
}

/// Whether a change asks for work: the spec changed, the shoot came here, or it is to go.
fn asks_for_work(change: &Change<Shoot>) -> bool {
    match change {
        Change::Deleted(_) | Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            old.metadata.generation != new.metadata.generation && !only_learned_nodes(old, new)
                || old.metadata.deletion_timestamp.is_none() && new.metadata.deletion_timestamp.is_some()
                || old.spec.seed_name != new.spec.seed_name
        }
    }
}

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, shoots: Informer<Shoot>, seeds: Informer<Seed>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(300),
    });
    let seed = config.seed_name.clone();
    let reconciler = Arc::new(Reconciler {
        recorder: Recorder::new(config.garden.clone(), config.clock.clone(), "gardenlet"),
        config,
        shoots: shoots.clone(),
        waiting: Mutex::default(),
        stop: stop.clone(),
    });
    {
        let (queue, reconciler) = (queue.clone(), Arc::clone(&reconciler));
        shoots.on_change(move |change| {
            if !asks_for_work(change) || !shoot_operation::is_responsible(change.object(), &seed) {
                return;
            }
            let key = ObjectRef::of(change.object().as_ref());
            // what failed before, perhaps for another shoot of this name, does not count for what is new
            queue.forget(&key);
            match change {
                Change::Applied { old: None, new } => {
                    let now = reconciler.config.clock.now();
                    let share = reconciler.config.chance.fraction();
                    let delay = shoot_operation::delay_at_start(new, &reconciler.policy(), now, share);
                    queue.add_after(key, delay.unsigned_abs());
                }
                _ => queue.add(key),
            }
        });
    }
    {
        // Shoots that wait for their seed go on as soon as it is ready: each once, however often the seed changes then.
        let (queue, reconciler) = (queue.clone(), Arc::clone(&reconciler));
        seeds.on_change(move |change| {
            if shoot_operation::seed_gate(change.object(), &reconciler.config.identity).is_err() {
                return;
            }
            let waiting = std::mem::take(&mut *reconciler.waiting.lock());
            waiting.into_iter().for_each(|shoot| queue.add(shoot));
        });
    }
    let concurrency = reconciler.config.settings.shoot.concurrent_syncs;
    Controller::new(NAME, concurrency, queue)
        .run(stop, move |key| {
            let reconciler = Arc::clone(&reconciler);
            async move { reconciler.reconcile(&key).await }
        })
        .await;
}

/// A shoot as it is now; none, if it is gone from this seed. That is known without asking: of what is gone a garden says only that it is no
/// business of this gardenlet's.
pub(crate) async fn live(config: &Config, shoots: &Informer<Shoot>, key: &ObjectRef) -> kube::Result<Option<Shoot>> {
    if shoots.get(key).is_none() {
        return Ok(None);
    }
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    api.read_opt(&key.name).await
}

/// The project of a namespace, which its label names.
pub(crate) async fn project_of(config: &Config, namespace: &str) -> Result<Project, Failed> {
    let namespaces: Api<Namespace> = Api::all(config.garden.clone());
    let found = namespaces.read(namespace).await?;
    let name = found.labels().get(label::PROJECT_NAME).cloned();
    let name =
        name.ok_or_else(|| Failed::Because(format!("namespace {namespace:?} has no label {}", label::PROJECT_NAME)))?;
    let projects: Api<Project> = Api::all(config.garden.clone());
    Ok(projects.read(&name).await?)
}

impl Reconciler {
    fn policy(&self) -> Policy<'_> {
        let settings = &self.config.settings.shoot;
        Policy {
            sync_period: signed(settings.sync_period),
            respect_sync_period_overwrite: settings.respect_sync_period_overwrite,
            reconcile_in_maintenance_only: settings.reconcile_in_maintenance_only,
            version: &self.config.identity.version,
        }
    }

    fn later(&self, shoot: &Shoot) -> Action {
        let (now, share) = (self.config.clock.now(), self.config.chance.fraction());
        match shoot_operation::next_sync(shoot, &self.policy(), now, share) {
            Some(wait) => Action::RequeueAfter(wait.unsigned_abs()),
            None => Action::Done,
        }
    }

    async fn event(&self, shoot: &Shoot, severity: Severity, reason: &str, message: &str) {
        self.recorder
            .publish(&object_reference(shoot, &()), severity, reason, message)
            .await;
    }

    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, Failed> {
        let Some(shoot) = live(&self.config, &self.shoots, key).await? else {
            return Ok(Action::Done);
        };
        if !shoot_operation::is_responsible(&shoot, &self.config.seed_name) {
            return Ok(Action::Done);
        }
        let seeds: Api<Seed> = Api::all(self.config.garden.clone());
        let seed = seeds.read(&self.config.seed_name).await?;
        match shoot_operation::decide(&shoot, &seed, &self.policy(), self.config.clock.now()) {
            Decision::Reconcile => {}
            Decision::OnlySyncCluster => {
                if shoot.status.last_operation.is_none() {
                    operation::mark_pending(&self.config, &shoot).await?;
                }
                if !shoot.status.technical_id.is_empty() {
                    botanist::sync_cluster_of(&self.config, &shoot, &seed).await?;
                }
                return Ok(Action::Done);
            }
            Decision::NotNow(reason) => {
                tracing::debug!(shoot = %key, reason, "not now");
                if shoot.status.last_operation.is_none() {
                    operation::mark_pending(&self.config, &shoot).await?;
                }
                return Ok(self.later(&shoot));
            }
        }
        let kind = match shoot.in_deletion() {
            // who goes need not go elsewhere first [ST-121]
            true => OperationType::Delete,
            false => shoot_operation::operation_type(&shoot),
        };
        if kind == OperationType::Delete && shoot.status.uid.is_empty() {
            // nothing was ever made of it [DEL-1]
            let api: Api<Shoot> = Api::namespaced(self.config.garden.clone(), &key.namespace);
            remove_finalizer(&api, &shoot, finalizer::GARDENER).await?;
            return Ok(Action::Done);
        }
        if let Err(why) = shoot_operation::seed_gate(&seed, &self.config.identity) {
            self.waiting.lock().insert(key.clone());
            operation::mark_blocked(&self.config, &shoot, kind, &why).await?;
            return Ok(Action::RequeueAfter(SEED_RETRY));
        }
        if kind == OperationType::Migrate {
            return Err(Failed::Because(
                "this gardenlet cannot prepare shoots for migration".to_owned(),
            ));
        }
        if kind == OperationType::Delete && !has_finalizer(&shoot, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        let project = project_of(&self.config, &key.namespace).await?;
        let operation::Started { shoot, unsupported } = operation::start(&self.config, shoot, &project, kind).await?;
        for own in unsupported {
            let message = format!("Operation {own:?} is not supported by this gardenlet, and was not begun");
            self.event(&shoot, Severity::Warning, "OperationNotSupported", &message)
                .await;
        }
        let (started, done, failed) = match kind {
            OperationType::Delete => ("Deleting", "Deleted", "DeleteError"),
            _ => ("Reconciling", "Reconciled", "ReconcileError"),
        };
        // a restoration has the reasons of a reconciliation
        let (doing, did) = match kind {
            OperationType::Restore => ("Restoring", "Restored"),
            _ => (started, done),
        };
        let message = format!("{doing} Shoot cluster");
        self.event(&shoot, Severity::Normal, started, &message).await;
        let ran = operation::run(&self.config, shoot.clone(), project, seed, kind, &self.stop).await;
        match ran {
            Ok(finished) => {
                let message = format!("{did} Shoot cluster");
                self.event(&shoot, Severity::Normal, done, &message).await;
                Ok(finished.map_or(Action::Done, |shoot| self.later(&shoot)))
            }
            Err(error) => {
                self.event(&shoot, Severity::Warning, failed, &error.to_string()).await;
                Err(error)
            }
        }
    }
}
