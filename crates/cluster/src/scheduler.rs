//! The pod scheduler: gives pods that wait for a node the best one, highest priority first.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_controller::events::Severity;
use gardener_controller::{Action, Change, Clustered, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition};
use kube::Api;
use kube::ResourceExt;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use parking_lot::Mutex;

use crate::environment::Environment;
use crate::error::Error;
use crate::{Role, pods};

mod filter;
mod resources;
mod score;

use filter::{Candidate, NodeInfo, explain};
pub(crate) use filter::{node_selected, tolerates, untolerated};

const COMPONENT: &str = "default-scheduler";
const SCHEDULER: &str = "default-scheduler";

/// Bindings that the informer does not show yet, by pod uid.
type Assumed = Arc<Mutex<BTreeMap<String, String>>>;

pub(crate) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::Scheduler;
    let whole_cluster = |cluster: &str| vec![ObjectRef::default().in_cluster(cluster)];
    environment.feed_if(&informers.pods, &queue, role, pod_matters, move |pod| {
        whole_cluster(&pod.cluster)
    });
    environment.feed_if(&informers.nodes, &queue, role, node_matters, move |node| {
        whole_cluster(&node.cluster)
    });
    environment.feed_if(
        &informers.claims,
        &queue,
        role,
        |change| matches!(change, Change::Applied { old: None, .. }),
        move |claim| whole_cluster(&claim.cluster),
    );
    let assumed: Assumed = Arc::default();
    let forget = Arc::clone(&assumed);
    informers.pods.on_change(move |change| {
        let pod = &change.object().object;
        let bound = node_of(pod).is_some() || matches!(change, Change::Deleted(_));
        if let (true, Some(uid)) = (bound, &pod.metadata.uid) {
            forget.lock().remove(uid);
        }
    });
    environment.reconcile("scheduler", role, 4, queue, move |environment, key| {
        schedule_all(environment, Arc::clone(&assumed), key)
    });
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .filter(|name| !name.is_empty())
}

/// Whether a pod is this scheduler's to place.
fn waits(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    node_of(pod).is_none()
        && pods::is_active(pod)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
        && spec.scheduler_name.as_deref().is_none_or(|name| name == SCHEDULER)
}

/// A change of a pod that makes pods wait, or makes room.
fn pod_matters(change: &Change<Clustered<Pod>>) -> bool {
    match change {
        Change::Deleted(_) => true,
        Change::Applied { old: None, new } => waits(&new.object),
        Change::Applied { old: Some(old), new } => {
            let ended = pods::has_ended(&new.object) && !pods::has_ended(&old.object);
            let labels = old.object.metadata.labels != new.object.metadata.labels;
            ended
                || (labels && node_of(&new.object).is_some())
                || (waits(&new.object) && old.object.spec != new.object.spec)
        }
    }
}

/// A change of a node beyond its heartbeat.
fn node_matters(change: &Change<Clustered<Node>>) -> bool {
    let Change::Applied { old: Some(old), new } = change else {
        return true;
    };
    let (old, new) = (&old.object, &new.object);
    let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    old.metadata.labels != new.metadata.labels || old.spec != new.spec || allocatable(old) != allocatable(new)
}

async fn schedule_all(environment: Arc<Environment>, assumed: Assumed, key: ObjectRef) -> Result<Action, Error> {
    let informers = &environment.informers;
    let all = informers.pods.list_cluster(&key.cluster);
    let known = assumed.lock().clone();
    let is_assumed = |pod: &Pod| pod.metadata.uid.as_ref().and_then(|uid| known.get(uid)).cloned();
    let mut waiting: Vec<&Pod> = all
        .iter()
        .map(|pod| &pod.object)
        .filter(|pod| waits(pod) && is_assumed(pod).is_none())
        .collect();
    if waiting.is_empty() {
        return Ok(Action::Done);
    }
    waiting.sort_by_key(|pod| {
        let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
        (
            std::cmp::Reverse(priority),
            pods::created_at(&pod.metadata),
            pod.namespace(),
            pod.name_any(),
        )
    });
    let nodes = informers.nodes.list_cluster(&key.cluster);
    let mut infos: Vec<NodeInfo> = nodes.iter().map(|node| NodeInfo::new(&node.object)).collect();
    for pod in all.iter().map(|pod| &pod.object) {
        let place = node_of(pod).map(str::to_owned).or_else(|| is_assumed(pod));
        if let (Some(place), false) = (place, pods::has_ended(pod))
            && let Some(info) = infos.iter_mut().find(|info| info.name == place)
        {
            info.add(pod);
        }
    }
    for pod in waiting {
        let candidate = Candidate::new(pod);
        if let Some(claim) = missing_claim(&environment, &key.cluster, pod) {
            let total = infos.len();
            let why = format!("0/{total} nodes are available: persistentvolumeclaim \"{claim}\" not found.");
            unschedulable(&environment, &key.cluster, pod, &why).await?;
            continue;
        }
        let reasons: Vec<Vec<String>> = infos
            .iter()
            .map(|info| filter::reasons(&candidate, info, &infos))
            .collect();
        let fitting = infos
            .iter()
            .zip(&reasons)
            .filter(|(_, reasons)| reasons.is_empty())
            .map(|(info, _)| info);
        let best = fitting.max_by_key(|info| {
            (
                score::score(&candidate, info, &infos),
                std::cmp::Reverse(info.name.clone()),
            )
        });
        let Some(name) = best.map(|info| info.name.clone()) else {
            unschedulable(&environment, &key.cluster, pod, &explain(&reasons)).await?;
            continue;
        };
        if bind(&environment, &key.cluster, pod, &name, &assumed).await?
            && let Some(info) = infos.iter_mut().find(|info| info.name == name)
        {
            info.add(pod);
        }
    }
    Ok(Action::Done)
}

/// A claim that the pod uses and that does not exist.
fn missing_claim(environment: &Environment, cluster: &str, pod: &Pod) -> Option<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(|claim| claim.claim_name.clone())
        .find(|name| {
            let place = ObjectRef::new(namespace.clone(), name.clone()).in_cluster(cluster);
            environment.informers.claims.get(&place).is_none()
        })
}

async fn bind(
    environment: &Environment,
    cluster: &str,
    pod: &Pod,
    node: &str,
    assumed: &Assumed,
) -> Result<bool, Error> {
    let place = ObjectRef::of(pod).in_cluster(cluster);
    let api: Api<Pod> = environment.api(&place);
    let uid = pod.uid().unwrap_or_default();
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(place.name.clone()),
            namespace: Some(place.namespace.clone()),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    assumed.lock().insert(uid.clone(), node.to_owned());
    let bound: Result<serde_json::Value, kube::Error> = api
        .create_subresource("binding", &place.name, &PostParams::default(), &binding)
        .await;
    if let Err(error) = bound {
        assumed.lock().remove(&uid);
        let error = Error::from(error);
        return if error.is_outdated() { Ok(false) } else { Err(error) };
    }
    let message = format!("Successfully assigned {}/{} to {node}", place.namespace, place.name);
    environment
        .event(COMPONENT, cluster, pod, Severity::Normal, "Scheduled", &message)
        .await;
    Ok(true)
}

/// Tells that no node fits, unless that was told already.
async fn unschedulable(environment: &Environment, cluster: &str, pod: &Pod, why: &str) -> Result<(), Error> {
    let told = pods::condition(pod, "PodScheduled");
    if told.is_some_and(|own| own.status == "False" && own.message.as_deref() == Some(why)) {
        return Ok(());
    }
    let since = told
        .filter(|own| own.status == "False")
        .and_then(|own| own.last_transition_time.clone());
    let condition = PodCondition {
        type_: "PodScheduled".into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        message: Some(why.to_owned()),
        last_transition_time: Some(since.unwrap_or_else(|| environment.clock().time())),
        ..PodCondition::default()
    };
    let api: Api<Pod> = environment.api(&ObjectRef::of(pod).in_cluster(cluster));
    let patched = apply::patch_status_locked(&api, pod, |pod| {
        let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|own| own.type_ != "PodScheduled");
        conditions.push(condition);
    })
    .await;
    match patched.map_err(Error::from) {
        Err(error) if error.is_outdated() => return Ok(()),
        other => other?,
    };
    environment
        .event(COMPONENT, cluster, pod, Severity::Warning, "FailedScheduling", why)
        .await;
    Ok(())
}
