//! The controller of one kind: takes calls, runs the actuator, writes the status, in the order of the protocol [EXT-18].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::extensions::v1alpha1::Cluster;
use gardener_controller::apply::{self, ApplyError};
use gardener_controller::operation::{self as annotation, value};
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, Read};
use kube::Api;
use kube::runtime::watcher;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::operation::{OperationType, SUCCEEDED, is_call, is_migrated, operation_type, waits};
use crate::{Actuator, ActuatorError, Context, ExtensionKind, Outcome, cluster, status};

/// How the controller of a kind runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The types it is responsible for.
    pub types: Vec<String>,
    /// The classes it is responsible for.
    pub classes: Vec<String>,
    /// How many objects are worked on at once.
    pub concurrency: usize,
    /// The finalizer, where it is not the kind's own.
    pub finalizer: Option<String>,
}

impl Options {
    /// The controller for types of class `shoot`.
    pub fn for_types(types: &[&str]) -> Self {
        Self {
            types: types.iter().map(|one| (*one).to_owned()).collect(),
            classes: vec!["shoot".to_owned()],
            concurrency: 5,
            finalizer: None,
        }
    }

    fn is_responsible<K: ExtensionKind>(&self, object: &K) -> bool {
        let class = object.class().unwrap_or("shoot");
        self.types.iter().any(|one| one == object.extension_type()) && self.classes.iter().any(|one| one == class)
    }
}

/// Why an object comes again; its status already tells.
#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Actuator(#[from] ActuatorError),
}

struct Reconciler<K, A> {
    context: Context,
    options: Options,
    actuator: A,
    /// Objects whose actuator wants to see them again unasked.
    unasked: Mutex<BTreeSet<ObjectRef>>,
    kind: std::marker::PhantomData<fn() -> K>,
}

/// Runs the controller of a kind until `stop`.
pub async fn run<K: ExtensionKind, A: Actuator<K>>(
    context: Context,
    options: Options,
    actuator: A,
    stop: CancellationToken,
) {
    let queue: Queue<ObjectRef> = Queue::new();
    let objects: Informer<K> = Informer::start(Api::all(context.client.clone()), watcher::Config::default(), &stop);
    let responsible = options.clone();
    objects.feed_if(
        &queue,
        move |change| responsible.is_responsible(change.object().as_ref()) && is_call(change),
        |object| [ObjectRef::of(object)],
    );
    let name = format!("extension-{}", K::kind(&()).to_lowercase());
    let concurrency = options.concurrency;
    let reconciler = Arc::new(Reconciler {
        context,
        options,
        actuator,
        unasked: Mutex::default(),
        kind: std::marker::PhantomData,
    });
    Controller::new(name, concurrency, queue)
        .run(stop, move |key| {
            let reconciler = Arc::clone(&reconciler);
            async move { reconciler.reconcile(&key).await }
        })
        .await;
}

/// Takes a request out of the annotations, if it is this one.
fn take_away<K: ExtensionKind>(object: &mut K, asked: &str) {
    if annotation::operation(object) == Some(asked) {
        annotation::clear(object.annotations_mut());
    }
}

impl<K: ExtensionKind, A: Actuator<K>> Reconciler<K, A> {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api = K::api(self.context.client.clone(), &key.namespace);
        let Some(object) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        if waits(&object) || is_migrated(&object) {
            return Ok(Action::Done);
        }
        let cluster = cluster::get(&self.context.client, &key.namespace).await?;
        if cluster.as_ref().is_some_and(cluster::is_failed) {
            return Ok(Action::Done);
        }
        let operation = operation_type(&object);
        let unasked = self.unasked.lock().remove(key);
        // a change that called may already be answered: the one before was under way when it came
        let answered = operation == OperationType::Reconcile
            && annotation::operation(&object) != Some(value::RECONCILE)
            && object.last_operation().is_some_and(|last| last.state == SUCCEEDED);
        if answered && !unasked {
            return Ok(Action::Done);
        }
        match operation {
            OperationType::Migrate => self.migrate(&api, object, cluster.as_ref()).await,
            OperationType::Delete => self.delete(&api, object, cluster.as_ref()).await,
            OperationType::Restore => self.restore(&api, object, cluster.as_ref()).await,
            OperationType::Create | OperationType::Reconcile => {
                self.apply(&api, object, cluster.as_ref(), operation).await
            }
        }
    }

    fn finalizer(&self) -> &str {
        self.options.finalizer.as_deref().unwrap_or(K::FINALIZER)
    }

    /// Takes the request away, if it is this one.
    async fn picked_up(&self, api: &Api<K>, object: K, asked: &str) -> Result<K, ReconcileError> {
        let (object, _) = apply::patch(api, &object, |object| take_away(object, asked)).await?;
        Ok(object)
    }

    /// Tells a failure in the status, and hands it on so that the object comes again.
    async fn told<T>(
        &self,
        api: &Api<K>,
        object: &K,
        operation: OperationType,
        result: Result<T, ActuatorError>,
    ) -> Result<T, ReconcileError> {
        match result {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                status::failed(api, object, operation, &error, &self.context.clock).await?;
                Err(error.into())
            }
        }
    }

    async fn apply(
        &self,
        api: &Api<K>,
        object: K,
        cluster: Option<&Cluster>,
        operation: OperationType,
    ) -> Result<Action, ReconcileError> {
        let request = annotation::timestamp(&object);
        let (object, _) = apply::add_finalizer(api, &object, self.finalizer()).await?;
        // Under way before the request is gone: an object without one, with an answer of the same second to the request before, is taken
        // for ready [EXT-20].
        let object = status::started(api, &object, operation, &self.context.clock).await?;
        if annotation::timestamp(&object) != request {
            // asked anew, maybe for what the cluster read before does not tell; that change calls again
            return Ok(Action::Done);
        }
        // before the work, so that a request that comes meanwhile is not lost [EXT-10]
        let taken = apply::patch_locked(api, &object, |object| take_away(object, value::RECONCILE)).await;
        let object = match taken {
            Err(error) if error.is_conflict() => return Ok(Action::RequeueAfter(Duration::ZERO)),
            taken => taken?.0,
        };
        let outcome = self.actuator.reconcile(&self.context, &object, cluster).await;
        let outcome = self.told(api, &object, operation, outcome).await?;
        self.finished(api, &object, operation, outcome).await
    }

    async fn finished(
        &self,
        api: &Api<K>,
        object: &K,
        operation: OperationType,
        outcome: Outcome,
    ) -> Result<Action, ReconcileError> {
        status::succeeded(api, object, operation, outcome.status, &self.context.clock).await?;
        let Some(after) = outcome.requeue_after else {
            return Ok(Action::Done);
        };
        self.unasked.lock().insert(ObjectRef::of(object));
        Ok(Action::RequeueAfter(after))
    }

    async fn restore(&self, api: &Api<K>, object: K, cluster: Option<&Cluster>) -> Result<Action, ReconcileError> {
        let operation = OperationType::Restore;
        let (object, _) = apply::add_finalizer(api, &object, self.finalizer()).await?;
        let object = status::started(api, &object, operation, &self.context.clock).await?;
        let outcome = self.actuator.restore(&self.context, &object, cluster).await;
        let outcome = self.told(api, &object, operation, outcome).await?;
        let object = self.picked_up(api, object, value::RESTORE).await?;
        self.finished(api, &object, operation, outcome).await
    }

    async fn migrate(&self, api: &Api<K>, object: K, cluster: Option<&Cluster>) -> Result<Action, ReconcileError> {
        let operation = OperationType::Migrate;
        let object = status::started(api, &object, operation, &self.context.clock).await?;
        let outcome = self.actuator.migrate(&self.context, &object, cluster).await;
        self.told(api, &object, operation, outcome).await?;
        let object = status::succeeded(api, &object, operation, serde_json::Value::Null, &self.context.clock).await?;
        apply::remove_finalizer(api, &object, self.finalizer()).await?;
        if let Some(object) = api.read_opt(&object.name_any()).await? {
            self.picked_up(api, object, value::MIGRATE).await?;
        }
        Ok(Action::Done)
    }

    async fn delete(&self, api: &Api<K>, object: K, cluster: Option<&Cluster>) -> Result<Action, ReconcileError> {
        if !apply::has_finalizer(&object, self.finalizer()) {
            return Ok(Action::Done);
        }
        let operation = OperationType::Delete;
        let object = status::started(api, &object, operation, &self.context.clock).await?;
        let outcome = if cluster.is_some_and(cluster::is_force_deleted) {
            self.actuator.force_delete(&self.context, &object, cluster).await
        } else {
            self.actuator.delete(&self.context, &object, cluster).await
        };
        self.told(api, &object, operation, outcome).await?;
        let object = status::succeeded(api, &object, operation, serde_json::Value::Null, &self.context.clock).await?;
        apply::remove_finalizer(api, &object, self.finalizer()).await?;
        Ok(Action::Done)
    }
}

#[cfg(test)]
mod tests;
