//! Node lifecycle: whether nodes still beat, the taints that follow from their conditions, eviction, and pods whose node is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_controller::events::Severity;
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Role;
use crate::environment::{BY_NODE, Environment, key_of};
use crate::error::Error;
use crate::pods;

mod decide;

use decide::{eviction_after, evicts, lost_conditions, wanted_taints};

const COMPONENT: &str = "node-controller";
/// A node that did not beat for so long is not known any more.
const GRACE: Duration = Duration::from_secs(40);
/// Pods stay for so long after their node is gone. Shorter than upstream's 40 s: the objects here are never that old, and whoever removes a
/// machine waits for its pods.
const QUARANTINE: Duration = Duration::from_secs(5);

/// What was seen of a node.
#[derive(Default)]
struct Seen {
    /// The last beat's own time and when it was seen.
    beats: BTreeMap<ObjectRef, (String, Instant)>,
    /// Since when a node with pods is missing.
    missing: BTreeMap<ObjectRef, Instant>,
}

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.nodes, &queue, role, |node| vec![key_of(node)]);
    environment.feed(&informers.node_leases, &queue, role, |lease| {
        vec![ObjectRef::cluster_scoped(lease.object.name_any()).in_cluster(&lease.cluster)]
    });
    let moved = |change: &Change<gardener_controller::Clustered<Pod>>| match change {
        Change::Applied { old, new } => old.as_ref().and_then(|old| node_of(&old.object)) != node_of(&new.object),
        Change::Deleted(_) => false,
    };
    environment.feed_if(&informers.pods, &queue, role, moved, |pod| {
        let node = node_of(&pod.object);
        node.map(|node| ObjectRef::cluster_scoped(node).in_cluster(&pod.cluster))
            .into_iter()
            .collect()
    });
    let seen: Arc<Mutex<Seen>> = Arc::default();
    environment.reconcile("node-lifecycle", role, 8, queue, move |environment, key| {
        reconcile(environment, Arc::clone(&seen), key)
    });
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.node_name.clone())
        .filter(|name| !name.is_empty())
}

fn pods_on(environment: &Environment, key: &ObjectRef) -> Vec<Arc<gardener_controller::Clustered<Pod>>> {
    environment
        .informers
        .pods
        .by_index(BY_NODE, &format!("{}/{}", key.cluster, key.name))
}

async fn reconcile(environment: Arc<Environment>, seen: Arc<Mutex<Seen>>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.nodes.get(&key) else {
        return collect_orphans(&environment, &seen, &key).await;
    };
    seen.lock().missing.remove(&key);
    let node = &found.object;
    let silent = silence(&environment, &seen, &key, node);
    let api: Api<Node> = environment.cluster_api(&key.cluster);
    let mut current = node.clone();
    if silent >= GRACE {
        let was_ready = decide::ready(node) == Some("True");
        let now = environment.clock().time();
        let conditions = lost_conditions(node, &now);
        let (patched, outcome) = apply::patch_status_locked(&api, node, |node| {
            node.status.get_or_insert_default().conditions = Some(conditions);
        })
        .await?;
        current = patched;
        if outcome == apply::Outcome::Updated && was_ready {
            let message = format!("Node {} status is now: NodeNotReady", key.name);
            environment
                .event(
                    COMPONENT,
                    &key.cluster,
                    node,
                    Severity::Normal,
                    "NodeNotReady",
                    &message,
                )
                .await;
        }
    }
    if decide::ready(&current) != Some("True") {
        mark_pods_not_ready(&environment, &key).await?;
    }
    let now = environment.clock().time();
    let taints = wanted_taints(&current, &now);
    apply::patch_locked(&api, &current, |node| {
        node.spec.get_or_insert_default().taints = (!taints.is_empty()).then(|| taints.clone());
    })
    .await?;
    let mut next = if silent >= GRACE { None } else { Some(GRACE - silent) };
    // a node has many pods, and most nodes bear no such taint
    let pods = match taints.iter().any(evicts) {
        true => pods_on(&environment, &key),
        false => Vec::new(),
    };
    for pod in pods {
        let pod = &pod.object;
        if pods::is_deleting(pod) || pods::has_ended(pod) {
            continue;
        }
        match eviction_after(pod, &taints, environment.clock().now()) {
            Some(wait) if wait.is_zero() => {
                let message = format!(
                    "Marking for deletion Pod {}/{}",
                    pod.namespace().unwrap_or_default(),
                    pod.name_any()
                );
                environment
                    .event(
                        "taint-eviction-controller",
                        &key.cluster,
                        pod,
                        Severity::Normal,
                        "TaintManagerEviction",
                        &message,
                    )
                    .await;
                let pods: Api<Pod> = environment.api(&ObjectRef::of(pod).in_cluster(&key.cluster));
                apply::delete(&pods, &pod.name_any()).await?;
            }
            Some(wait) => next = Some(next.map_or(wait, |next| next.min(wait))),
            None => {}
        }
    }
    Ok(next.map_or(Action::Done, Action::RequeueAfter))
}

/// For how long nothing was heard of a node. What was never heard of counts from when it was seen first.
fn silence(environment: &Environment, seen: &Mutex<Seen>, key: &ObjectRef, node: &Node) -> Duration {
    let place = ObjectRef::new(crate::environment::NODE_LEASES, key.name.clone()).in_cluster(&key.cluster);
    let lease = environment.informers.node_leases.get(&place);
    let renewed = lease
        .as_ref()
        .and_then(|lease| lease.object.spec.as_ref()?.renew_time.as_ref())
        .map(|time| time.0);
    let beat = decide::heartbeat(node);
    let beat = format!("{renewed:?} {beat:?}");
    let now = Instant::now();
    let mut seen = seen.lock();
    let known = seen.beats.entry(key.clone()).or_insert_with(|| (beat.clone(), now));
    if known.0 != beat {
        *known = (beat, now);
    }
    now.duration_since(known.1)
}

/// Pods of a node that is not reached do not serve.
async fn mark_pods_not_ready(environment: &Environment, key: &ObjectRef) -> Result<(), Error> {
    let now = environment.clock().time();
    for pod in pods_on(environment, key) {
        let pod = &pod.object;
        if !pods::is_ready(pod) {
            continue;
        }
        let api: Api<Pod> = environment.api(&ObjectRef::of(pod).in_cluster(&key.cluster));
        let (now, patched) = (now.clone(), pod.clone());
        apply::patch_status_locked(&api, &patched, |pod| {
            let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
            for condition in conditions.iter_mut().filter(|own| own.type_ == "Ready") {
                condition.status = "False".into();
                condition.last_transition_time = Some(now.clone());
            }
        })
        .await?;
    }
    Ok(())
}

/// Deletes the pods of a node that has been gone for a while.
async fn collect_orphans(environment: &Environment, seen: &Mutex<Seen>, key: &ObjectRef) -> Result<Action, Error> {
    let orphans = pods_on(environment, key);
    let since = {
        let mut seen = seen.lock();
        seen.beats.remove(key);
        if orphans.is_empty() {
            seen.missing.remove(key);
            return Ok(Action::Done);
        }
        *seen.missing.entry(key.clone()).or_insert_with(Instant::now)
    };
    let waited = since.elapsed();
    if waited < QUARANTINE {
        return Ok(Action::RequeueAfter(QUARANTINE - waited));
    }
    // the informer may not know the node yet
    let nodes: Api<Node> = environment.cluster_api(&key.cluster);
    if nodes.read_opt(&key.name).await?.is_some() {
        return Ok(Action::RequeueAfter(QUARANTINE));
    }
    for pod in orphans {
        let pod = &pod.object;
        let api: Api<Pod> = environment.api(&ObjectRef::of(pod).in_cluster(&key.cluster));
        if !pods::has_ended(pod) {
            let marked = apply::patch_status(&api, pod, |pod| {
                pod.status.get_or_insert_default().phase = Some("Failed".into());
            })
            .await;
            match marked {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        apply::delete_with(&api, &pod.name_any(), &parameters).await?;
    }
    Ok(Action::Done)
}
