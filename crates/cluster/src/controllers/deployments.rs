//! Deployments: a ReplicaSet per revision of the template, replaced by rolling or at once.

use std::sync::Arc;
use std::time::Duration;

use gardener_controller::events::Severity;
use gardener_controller::{Action, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::PostParams;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{BY_OWNER, Environment, OUTDATED, key_of, owner_key};
use crate::error::Error;
use crate::pods;

mod decide;
mod replica_sets;
mod status;

pub(super) use decide::scaled;
use decide::{Step, decide};

const COMPONENT: &str = "deployment-controller";

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.deployments, &queue, role, |deployment| {
        vec![key_of(deployment)]
    });
    environment.feed(&informers.replica_sets, &queue, role, |set| {
        owner_key(set, "Deployment")
    });
    // a deployment that recreates waits for the last pod to go
    let sets = informers.replica_sets.clone();
    environment.feed_if(
        &informers.pods,
        &queue,
        role,
        |change| matches!(change, gardener_controller::Change::Deleted(_)),
        move |pod| {
            owner_key(pod, "ReplicaSet")
                .iter()
                .filter_map(|key| sets.get(key))
                .flat_map(|set| owner_key(&set, "Deployment"))
                .collect()
        },
    );
    environment.reconcile("deployment", role, 16, queue, reconcile);
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.deployments.get(&key) else {
        return Ok(Action::Done);
    };
    let deployment = &found.object;
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(Action::Done);
    }
    if adopt(&environment, &key, deployment).await? {
        return Ok(Action::RequeueAfter(OUTDATED));
    }
    let uid = deployment.uid().unwrap_or_default();
    let sets: Vec<ReplicaSet> = environment
        .informers
        .replica_sets
        .by_index(BY_OWNER, &uid)
        .into_iter()
        .map(|set| set.object.clone())
        .collect();
    let old_pods_left = |sets: &[&ReplicaSet]| {
        sets.iter().any(|set| {
            let owned = environment
                .informers
                .pods
                .by_index(BY_OWNER, &set.uid().unwrap_or_default());
            owned.iter().any(|pod| !pods::has_ended(&pod.object))
        })
    };
    let steps = decide(deployment, &sets, &old_pods_left);
    let mut written = None;
    for step in &steps {
        if let Some(newer) = apply_step(&environment, &key, deployment, &sets, step).await? {
            written = Some(newer);
        }
    }
    let deployment = written.as_ref().unwrap_or(deployment);
    let now = environment.clock().now();
    let wanted = status::status(deployment, &sets, now);
    let again = status::until_deadline(deployment, &wanted, now);
    let api: Api<Deployment> = environment.api(&key);
    apply::patch_status_locked(&api, deployment, |deployment| deployment.status = Some(wanted)).await?;
    Ok(again.map_or(Action::Done, Action::RequeueAfter))
}

/// Makes a deployment the controller of replica sets that it selects and that have none.
async fn adopt(environment: &Environment, key: &ObjectRef, deployment: &Deployment) -> Result<bool, Error> {
    let mut changed = false;
    let selector = Some(&deployment.spec.selector);
    for set in environment
        .informers
        .replica_sets
        .list_cluster_namespace(&key.cluster, &key.namespace)
    {
        let set = &set.object;
        let free = pods::controller_of(&set.metadata).is_none() && set.metadata.deletion_timestamp.is_none();
        if free && pods::selects(selector, &set.metadata) {
            let reference = pods::controller_reference(deployment);
            let api: Api<ReplicaSet> = environment.api(key);
            apply::patch_locked(&api, set, |set| set.owner_references_mut().push(reference)).await?;
            changed = true;
        }
    }
    Ok(changed)
}

/// Makes one write; answers with the Deployment if that is what was written.
async fn apply_step(
    environment: &Environment,
    key: &ObjectRef,
    deployment: &Deployment,
    sets: &[ReplicaSet],
    step: &Step,
) -> Result<Option<Deployment>, Error> {
    let api: Api<ReplicaSet> = environment.api(key);
    let tell = async |reason: &str, message: &str| {
        environment
            .event(COMPONENT, &key.cluster, deployment, Severity::Normal, reason, message)
            .await;
    };
    match step {
        Step::Create(set) => {
            let replicas = set.spec.replicas.unwrap_or(0);
            let name = set.name_any();
            match api.create(&PostParams::default(), set).await {
                Ok(_) if replicas > 0 => {
                    let message = format!("Scaled up replica set {name} from 0 to {replicas}");
                    tell("ScalingReplicaSet", &message).await;
                }
                Ok(_) => {}
                Err(error) => {
                    let error = Error::from(error);
                    if error.is_outdated() {
                        resolve_collision(environment, key, deployment, &api, &name).await?;
                    }
                    return Err(error);
                }
            }
        }
        Step::Update {
            name,
            replicas,
            annotations,
        } => {
            let Some(set) = sets.iter().find(|set| set.name_any() == *name) else {
                return Ok(None);
            };
            let before = replica_sets::wanted(set);
            let min_ready = deployment.spec.min_ready_seconds;
            apply::patch_locked(&api, set, |set| {
                set.annotations_mut().extend(annotations.clone());
                set.spec.replicas = Some(*replicas);
                set.spec.min_ready_seconds = min_ready.filter(|seconds| *seconds > 0);
            })
            .await?;
            if before != *replicas {
                let direction = if *replicas > before { "up" } else { "down" };
                let message = format!("Scaled {direction} replica set {name} from {before} to {replicas}");
                tell("ScalingReplicaSet", &message).await;
            }
        }
        Step::SetRevision(revision) => {
            let api: Api<Deployment> = environment.api(key);
            let set = |deployment: &mut Deployment| {
                let annotations = deployment.annotations_mut();
                annotations.insert(replica_sets::REVISION.to_owned(), revision.to_string());
            };
            let (written, _) = apply::patch(&api, deployment, set).await?;
            return Ok(Some(written));
        }
        Step::Delete(name) => {
            apply::delete(&api, name).await?;
        }
    }
    Ok(None)
}

/// A replica set of the name exists: if it is of another template, the next name is made with another salt.
async fn resolve_collision(
    environment: &Environment,
    key: &ObjectRef,
    deployment: &Deployment,
    api: &Api<ReplicaSet>,
    name: &str,
) -> Result<(), Error> {
    let Some(existing) = api.read_opt(name).await? else {
        return Ok(());
    };
    let own =
        pods::controller_of(&existing.metadata).is_some_and(|owner| Some(&owner.uid) == deployment.uid().as_ref());
    if own && replica_sets::has_template_of(&existing, deployment) {
        return Ok(());
    }
    let api: Api<Deployment> = environment.api(key);
    apply::patch_status_locked(&api, deployment, |deployment| {
        let status = deployment.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
    })
    .await?;
    Ok(())
}

/// How long after the deadline a deployment is looked at again.
const AFTER_DEADLINE: Duration = Duration::from_secs(1);
