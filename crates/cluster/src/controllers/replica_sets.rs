//! ReplicaSets: as many pods as wanted.

use std::sync::Arc;

use gardener_controller::events::Severity;
use gardener_controller::{Action, ObjectRef, Queue, apply};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::ResourceExt;

use super::replicas::{self, Owned};
use crate::Role;
use crate::environment::{BY_OWNER, Environment, OUTDATED, key_of, owner_key};
use crate::error::Error;
use crate::expectations::EXPIRY;
use crate::pods;

const KIND: &str = "ReplicaSet";
const COMPONENT: &str = "replicaset-controller";
/// How many pods are created or deleted at once.
const BURST: usize = 500;
const FAILURE: &str = "ReplicaFailure";

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.replica_sets, &queue, role, |set| vec![key_of(set)]);
    environment.feed(&informers.pods, &queue, role, |pod| owner_key(pod, KIND));
    environment.reconcile("replicaset", role, 16, queue, reconcile);
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(set) = environment.informers.replica_sets.get(&key) else {
        return Ok(Action::Done);
    };
    let set = &set.object;
    let asking = replicas::asking(KIND, &key);
    if !environment.expectations.are_met(&asking) {
        return Ok(Action::RequeueAfter(EXPIRY));
    }
    let uid = set.uid().unwrap_or_default();
    let spec = &set.spec;
    if set.metadata.deletion_timestamp.is_none() {
        let selector = Some(&spec.selector);
        if replicas::adopt_pods(&environment, &key, set, selector).await? {
            return Ok(Action::RequeueAfter(OUTDATED));
        }
    }
    let owned = environment.informers.pods.by_index(BY_OWNER, &uid);
    let active: Vec<&Pod> = owned
        .iter()
        .map(|pod| &pod.object)
        .filter(|pod| pods::is_active(pod))
        .collect();
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let mut failure = None;
    if set.metadata.deletion_timestamp.is_none() {
        let owned = Owned {
            environment: &environment,
            component: COMPONENT,
            key: &key,
            asking: &asking,
        };
        if active.len() < wanted {
            let missing = (wanted - active.len()).min(BURST);
            for _ in 0..missing {
                let name = replicas::generated_name(&environment, &key.name);
                let reference = pods::controller_reference(set);
                let pod = pods::from_template(spec.template.as_ref(), &key.namespace, name, reference);
                if let Err(error) = owned.create(set, pod).await {
                    failure = Some(("FailedCreate", error));
                    break;
                }
            }
        } else if active.len() > wanted {
            let now = environment.clock().now();
            let excess = (active.len() - wanted).min(BURST);
            for pod in replicas::first_to_go(&active, now).into_iter().take(excess) {
                if let Err(error) = owned.delete(set, pod).await {
                    failure = Some(("FailedDelete", error));
                    break;
                }
            }
        }
    }
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    update_status(&environment, &key, set, &active, min_ready, failure.as_ref()).await?;
    if let Some((_, error)) = failure {
        return Err(error);
    }
    let next = pods::next_available(active, min_ready, environment.clock().now());
    Ok(next.map_or(Action::Done, Action::RequeueAfter))
}

async fn update_status(
    environment: &Environment,
    key: &ObjectRef,
    set: &ReplicaSet,
    active: &[&Pod],
    min_ready: i32,
    failure: Option<&(&str, Error)>,
) -> Result<(), Error> {
    let now = environment.clock().now();
    let template_labels = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref())
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        i32::try_from(active.iter().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
    };
    let labeled = count(&|pod| {
        template_labels
            .iter()
            .all(|(name, value)| pod.labels().get(name) == Some(value))
    });
    let ready = count(&|pod| pods::is_ready(pod));
    let available = count(&|pod| pods::is_available(pod, min_ready, now));
    let time = environment.clock().time();
    let api: Api<ReplicaSet> = environment.api(key);
    let some = |number: i32| (number > 0).then_some(number);
    apply::patch_status_locked(&api, set, |set| {
        let generation = set.metadata.generation;
        let status = set.status.get_or_insert_default();
        status.replicas = count(&|_| true);
        status.fully_labeled_replicas = some(labeled);
        status.ready_replicas = some(ready);
        status.available_replicas = some(available);
        status.observed_generation = generation;
        let mut conditions = status.conditions.take().unwrap_or_default();
        match failure {
            Some((reason, error)) if !conditions.iter().any(|own| own.type_.as_deref() == Some(FAILURE)) => {
                conditions.push(ReplicaSetCondition {
                    type_: Some(FAILURE.to_owned()),
                    status: Some("True".to_owned()),
                    reason: Some((*reason).to_owned()),
                    message: Some(replicas::message_of(error)),
                    last_transition_time: Some(time),
                });
            }
            Some(_) => {}
            None => conditions.retain(|own| own.type_.as_deref() != Some(FAILURE)),
        }
        status.conditions = (!conditions.is_empty()).then_some(conditions);
    })
    .await?;
    Ok(())
}

/// What a failed creation or deletion is told as.
pub(super) const fn severity(failed: bool) -> Severity {
    if failed { Severity::Warning } else { Severity::Normal }
}
