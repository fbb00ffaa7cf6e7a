//! DaemonSets: one pod on every node that wants it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::taints::tolerated_by_daemons;
use gardener_controller::{Action, Change, Clustered, ObjectRef, Queue, apply};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration,
};
use kube::{Api, ResourceExt};

use super::deployments::scaled;
use super::replicas::{self, Owned};
use super::revisions;
use crate::Role;
use crate::environment::{BY_OWNER, Environment, OUTDATED, key_of, owner_key};
use crate::error::Error;
use crate::expectations::EXPIRY;
use crate::pods::{self, REVISION_HASH};
use crate::scheduler::{node_selected, untolerated};

const KIND: &str = "DaemonSet";
const COMPONENT: &str = "daemonset-controller";
const GENERATION: &str = "pod-template-generation";

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.daemon_sets, &queue, role, |set| vec![key_of(set)]);
    environment.feed(&informers.pods, &queue, role, |pod| owner_key(pod, KIND));
    let sets = informers.daemon_sets.clone();
    let matters = |change: &Change<Clustered<Node>>| match change {
        Change::Applied { old: Some(old), new } => {
            old.object.metadata.labels != new.object.metadata.labels || old.object.spec != new.object.spec
        }
        _ => true,
    };
    environment.feed_if(&informers.nodes, &queue, role, matters, move |node| {
        sets.list_cluster(&node.cluster)
            .iter()
            .map(|set| key_of(set.as_ref()))
            .collect()
    });
    environment.reconcile("daemonset", role, 16, queue, reconcile);
}

/// The tolerations that every pod of a DaemonSet has.
fn tolerations(host_network: bool) -> Vec<Toleration> {
    tolerated_by_daemons(host_network)
        .iter()
        .map(|&(key, effect)| Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        })
        .collect()
}

fn new_pod(set: &DaemonSet, namespace: &str, name: String, hash: &str) -> Pod {
    let reference = pods::controller_reference(set);
    let mut pod = pods::from_template(Some(&set.spec.template), namespace, name, reference);
    pod.labels_mut().insert(REVISION_HASH.to_owned(), hash.to_owned());
    let generation = set
        .annotations()
        .get("deprecated.daemonset.template.generation")
        .cloned();
    pod.labels_mut()
        .insert(GENERATION.to_owned(), generation.unwrap_or_else(|| "1".to_owned()));
    let spec = pod.spec.get_or_insert_default();
    let own = spec.tolerations.get_or_insert_default();
    for toleration in tolerations(spec.host_network.unwrap_or(false)) {
        if !own.contains(&toleration) {
            own.push(toleration);
        }
    }
    pod
}

/// Ties a pod to a node by its name; what the template wants of nodes was checked already.
fn pin(pod: &mut Pod, node: &str) {
    let affinity: &mut Affinity = pod.spec.get_or_insert_default().affinity.get_or_insert_default();
    let nodes: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    nodes.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![requirement]),
            match_expressions: None,
        }],
    });
}

/// The node that a pod is on or tied to.
fn node_of(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if let Some(name) = spec.node_name.clone().filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.first()?.match_fields.as_ref()?;
    fields.first()?.values.as_ref()?.first().cloned()
}

/// Whether a pod of the set is to be started on a node, and whether one that is there may stay.
fn wants(pod: &Pod, node: &Node) -> (bool, bool) {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    if !node_selected(pod, &node.name_any(), &labels) {
        return (false, false);
    }
    let mut taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    // a node that just registered gets its pods as soon as it can run them
    taints.retain(|taint| taint.key != "node.kubernetes.io/not-ready");
    let starts = untolerated(pod, &taints).is_none();
    taints.retain(|taint| taint.effect == "NoExecute");
    (starts, untolerated(pod, &taints).is_none())
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.daemon_sets.get(&key) else {
        return Ok(Action::Done);
    };
    let set = &found.object;
    let asking = replicas::asking(KIND, &key);
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Action::Done);
    }
    if !environment.expectations.are_met(&asking) {
        return Ok(Action::RequeueAfter(EXPIRY));
    }
    if replicas::adopt_pods(&environment, &key, set, Some(&set.spec.selector)).await? {
        return Ok(Action::RequeueAfter(OUTDATED));
    }
    let history = revisions::ensure(&environment, &key, set, &set.spec.template, str::to_owned).await?;
    let hash = revisions::hash_of(&history.update);
    let nodes = environment.informers.nodes.list_cluster(&key.cluster);
    let owned = environment
        .informers
        .pods
        .by_index(BY_OWNER, &set.uid().unwrap_or_default());
    let pods_of: Vec<&Pod> = owned.iter().map(|pod| &pod.object).collect();
    let now = environment.clock().now();
    let model = new_pod(set, &key.namespace, String::new(), &hash);
    let plan = plan(set, &model, nodes.iter().map(|node| &node.object), &pods_of, &hash, now);
    let hands = Owned {
        environment: &environment,
        component: COMPONENT,
        key: &key,
        asking: &asking,
    };
    for node in &plan.create {
        let name = replicas::generated_name(&environment, &key.name);
        let mut pod = new_pod(set, &key.namespace, name, &hash);
        pin(&mut pod, node);
        hands.create(set, pod).await?;
    }
    for pod in &plan.delete {
        hands.delete(set, pod).await?;
    }
    let api: Api<DaemonSet> = environment.api(&key);
    let conditions = set.status.as_ref().and_then(|status| status.conditions.clone());
    let status = DaemonSetStatus {
        conditions,
        ..plan.status
    };
    apply::patch_status_locked(&api, set, |set| set.status = Some(status)).await?;
    let keep: Vec<String> = pods_of
        .iter()
        .filter_map(|pod| pod.labels().get(REVISION_HASH))
        .map(|hash| format!("{}-{hash}", key.name))
        .collect();
    let keep: Vec<&str> = keep.iter().map(String::as_str).collect();
    revisions::clean_up(&environment, &key, &history, &keep, set.spec.revision_history_limit).await?;
    let next = pods::next_available(pods_of, set.spec.min_ready_seconds.unwrap_or(0), now);
    Ok(next.map_or(Action::Done, Action::RequeueAfter))
}

#[derive(Default)]
struct Plan<'a> {
    /// Nodes that get a pod.
    create: Vec<String>,
    /// Pods that go.
    delete: Vec<&'a Pod>,
    status: DaemonSetStatus,
}

fn plan<'a, 'n>(
    set: &DaemonSet,
    model: &Pod,
    nodes: impl Iterator<Item = &'n Node>,
    pods_of: &[&'a Pod],
    hash: &str,
    now: k8s_openapi::jiff::Timestamp,
) -> Plan<'a> {
    let mut by_node: BTreeMap<String, Vec<&Pod>> = BTreeMap::new();
    for pod in pods_of {
        by_node.entry(node_of(pod).unwrap_or_default()).or_default().push(pod);
    }
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let mut plan = Plan::default();
    let mut old: Vec<&Pod> = Vec::new();
    let (mut desired, mut scheduled, mut ready, mut available, mut updated, mut misscheduled) = (0, 0, 0, 0, 0, 0);
    for node in nodes {
        let (starts, stays) = wants(model, node);
        let mut here = by_node.remove(&node.name_any()).unwrap_or_default();
        here.sort_by_key(|pod| (pods::created_at(&pod.metadata), pod.name_any()));
        let running = !here.is_empty();
        if starts {
            desired += 1;
        }
        if !starts && running {
            misscheduled += 1;
        }
        for failed in here
            .iter()
            .filter(|pod| pods::has_ended(pod) && !pods::is_deleting(pod))
        {
            plan.delete.push(failed);
        }
        if !starts && !stays {
            plan.delete.extend(here.iter().filter(|pod| pods::is_active(pod)));
            continue;
        }
        if starts && here.is_empty() {
            plan.create.push(node.name_any());
        }
        let active: Vec<&&Pod> = here.iter().filter(|pod| pods::is_active(pod)).collect();
        if let Some((first, more)) = active.split_first() {
            plan.delete.extend(more.iter().copied().copied());
            if starts {
                scheduled += 1;
                ready += i32::from(pods::is_ready(first));
                available += i32::from(pods::is_available(first, min_ready, now));
                let own = first.labels().get(REVISION_HASH).map(String::as_str) == Some(hash);
                updated += i32::from(own);
                if !own {
                    old.push(first);
                }
            }
        }
    }
    let strategy = set.spec.update_strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete") {
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let allowed = scaled(
            rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
            desired,
            true,
            1,
        )
        .max(1);
        let mut room = allowed - (desired - available);
        // what is not available anyway costs nothing
        for pod in old {
            if !pods::is_available(pod, min_ready, now) {
                plan.delete.push(pod);
            } else if room > 0 {
                room -= 1;
                plan.delete.push(pod);
            }
        }
    }
    let some = |number: i32| (number > 0).then_some(number);
    plan.status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        desired_number_scheduled: desired,
        current_number_scheduled: scheduled,
        number_misscheduled: misscheduled,
        number_ready: ready,
        number_available: some(available),
        number_unavailable: some(desired - available),
        updated_number_scheduled: some(updated),
        ..DaemonSetStatus::default()
    };
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    fn set() -> DaemonSet {
        serde_json::from_value(
            json!({"metadata": {"name": "agent"}, "spec": {"selector": {}, "template": {
            "spec": {"containers": [], "nodeSelector": {"role": "worker"}}}}}),
        )
        .unwrap()
    }

    fn node(name: &str, role: &str, taints: serde_json::Value) -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": name, "labels": {"role": role}}, "spec": {"taints": taints}}),
        )
        .unwrap()
    }

    fn pod(name: &str, node: &str, hash: &str, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {REVISION_HASH: hash}}, "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    #[test]
    fn every_fitting_node_gets_one_pod_and_updates_keep_most_available() {
        let set = set();
        let cordoned = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
        let foreign = json!([{"key": "x", "effect": "NoExecute"}]);
        let nodes = [
            node("a", "worker", json!([])),
            node("b", "worker", cordoned),
            node("c", "other", json!([])),
            node("d", "worker", foreign),
        ];
        let model = new_pod(&set, "n", String::new(), "new");
        let made = plan(&set, &model, nodes.iter(), &[], "new", Timestamp::UNIX_EPOCH);
        assert_eq!(made.create, ["a", "b"]);
        let there = [
            pod("1", "a", "old", true),
            pod("2", "b", "old", true),
            pod("3", "c", "old", true),
            pod("4", "d", "old", true),
        ];
        let all: Vec<&Pod> = there.iter().collect();
        let made = plan(&set, &model, nodes.iter(), &all, "new", Timestamp::UNIX_EPOCH);
        let gone: Vec<String> = made.delete.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(gone, ["3", "4", "1"]);
        assert_eq!(
            (made.status.desired_number_scheduled, made.status.number_misscheduled),
            (2, 2)
        );
        let mut pinned = model.clone();
        pin(&mut pinned, "b");
        assert_eq!(node_of(&pinned).as_deref(), Some("b"));
    }
}
