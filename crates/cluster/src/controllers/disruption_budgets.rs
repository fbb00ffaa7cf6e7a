//! PodDisruptionBudgets: how many pods may be evicted now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_controller::{Action, Change, Clustered, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Api;
use kube::ResourceExt;

use super::deployments::scaled;
use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;
use crate::pods;

const ALLOWED: &str = "DisruptionAllowed";
/// How long a pod that was evicted may still be there before it counts again.
const UNTIL_GONE: Duration = Duration::from_secs(120);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.budgets, &queue, role, |budget| vec![key_of(budget)]);
    let budgets = informers.budgets.clone();
    environment.feed_if(&informers.pods, &queue, role, matters, move |pod| {
        let namespace = pod.object.namespace().unwrap_or_default();
        let around = budgets.list_cluster_namespace(&pod.cluster, &namespace);
        around
            .iter()
            .filter(|budget| selects(&budget.object, &pod.object))
            .map(|budget| key_of(budget.as_ref()))
            .collect()
    });
    environment.reconcile("disruption", role, 8, queue, reconcile);
}

fn matters(change: &Change<Clustered<Pod>>) -> bool {
    let Change::Applied { old: Some(old), new } = change else {
        return true;
    };
    let view = |pod: &Pod| (pods::is_ready(pod), pods::is_active(pod), pod.metadata.labels.clone());
    view(&old.object) != view(&new.object)
}

fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    pods::selects(
        budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()),
        &pod.metadata,
    )
}

/// How many pods their controllers want: of each controller as many as it says, and every pod without one.
fn expected(environment: &Environment, key: &ObjectRef, selected: &[Arc<Clustered<Pod>>]) -> i32 {
    let informers = &environment.informers;
    let mut owners = BTreeMap::new();
    let mut sum = 0;
    for pod in selected {
        let Some(owner) = pods::controller_of(&pod.object.metadata) else {
            sum += 1;
            continue;
        };
        let place = ObjectRef {
            name: owner.name.clone(),
            ..key.clone()
        };
        let replicas = match owner.kind.as_str() {
            "ReplicaSet" => informers.replica_sets.get(&place).map(|set| {
                // during an update the Deployment tells how many there are to be
                let of = pods::controller_of(&set.object.metadata).filter(|own| own.kind == "Deployment");
                let deployment = of.and_then(|own| {
                    informers.deployments.get(&ObjectRef {
                        name: own.name.clone(),
                        ..key.clone()
                    })
                });
                match deployment {
                    Some(deployment) => (deployment.object.uid(), deployment.object.spec.replicas.unwrap_or(1)),
                    None => (set.object.uid(), set.object.spec.replicas.unwrap_or(1)),
                }
            }),
            "StatefulSet" => informers
                .stateful_sets
                .get(&place)
                .map(|set| (set.object.uid(), set.object.spec.replicas.unwrap_or(1))),
            _ => None,
        };
        match replicas {
            Some((uid, replicas)) => {
                owners.insert(uid, replicas);
            }
            None => sum += 1,
        }
    }
    sum + owners.values().sum::<i32>()
}

/// How many pods are to be healthy, of how many.
fn desired(spec: &PodDisruptionBudgetSpec, expected: i32, selected: i32) -> (i32, i32) {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => ((expected - scaled(Some(most), expected, true, 0)).max(0), expected),
        (None, Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(least))) => (*least, selected),
        (None, least) => (scaled(least.as_ref(), expected, true, 0), expected),
    }
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.budgets.get(&key) else {
        return Ok(Action::Done);
    };
    let budget = &found.object;
    let around = environment
        .informers
        .pods
        .list_cluster_namespace(&key.cluster, &key.namespace);
    let selected: Vec<Arc<Clustered<Pod>>> = around
        .into_iter()
        .filter(|pod| selects(budget, &pod.object) && !pods::has_ended(&pod.object))
        .collect();
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        i32::try_from(selected.iter().filter(|pod| wanted(&pod.object)).count()).unwrap_or(i32::MAX)
    };
    let now = environment.clock().time();
    let noted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
    let evicted = going(noted, &selected, &now);
    let is_going = |pod: &Pod| pods::is_deleting(pod) || evicted.contains_key(&pod.name_any());
    let healthy = count(&|pod| pods::is_ready(pod) && !is_going(pod));
    let spec = budget.spec.clone().unwrap_or_default();
    let (desired, expected) = desired(&spec, expected(&environment, &key, &selected), count(&|_| true));
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let waits = !evicted.is_empty();
    let api: Api<PodDisruptionBudget> = environment.api(&key);
    apply::patch_status_locked(&api, budget, |budget| {
        let generation = budget.metadata.generation;
        let before = budget.status.take().unwrap_or_default();
        let (status, reason) = if allowed > 0 {
            ("True", "SufficientPods")
        } else {
            ("False", "InsufficientPods")
        };
        let mut conditions = before.conditions.unwrap_or_default();
        let known = conditions
            .iter()
            .find(|own| own.type_ == ALLOWED && own.status == status);
        let since = known.map_or(now, |own| own.last_transition_time.clone());
        conditions.retain(|own| own.type_ != ALLOWED);
        conditions.push(Condition {
            type_: ALLOWED.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition_time: since,
            observed_generation: generation,
        });
        budget.status = Some(PodDisruptionBudgetStatus {
            observed_generation: generation,
            current_healthy: Some(healthy),
            desired_healthy: Some(desired),
            expected_pods: Some(expected),
            disruptions_allowed: Some(allowed),
            disrupted_pods: (!evicted.is_empty()).then(|| evicted.clone()),
            conditions: Some(conditions),
        });
    })
    .await?;
    Ok(if waits {
        Action::RequeueAfter(UNTIL_GONE)
    } else {
        Action::Done
    })
}

/// Pods that an eviction has taken note of, that are not gone yet, and that may still go because of it.
fn going(
    noted: Option<&BTreeMap<String, Time>>,
    selected: &[Arc<Clustered<Pod>>],
    now: &Time,
) -> BTreeMap<String, Time> {
    let is_there = |name: &String| {
        let mut pods = selected.iter().map(|pod| &pod.object);
        pods.any(|pod| pod.name_any() == *name && !pods::is_deleting(pod))
    };
    let is_young = |since: &Time| now.0.duration_since(since.0).unsigned_abs() < UNTIL_GONE;
    let noted = noted.into_iter().flatten();
    let going = noted.filter(|(name, since)| is_there(name) && is_young(since));
    going.map(|(name, since)| (name.clone(), since.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn budgets_count_from_either_side() {
        let spec = |value: serde_json::Value| -> PodDisruptionBudgetSpec { serde_json::from_value(value).unwrap() };
        assert_eq!(desired(&spec(json!({"maxUnavailable": 1})), 3, 2), (2, 3));
        assert_eq!(desired(&spec(json!({"maxUnavailable": "50%"})), 3, 3), (1, 3));
        assert_eq!(desired(&spec(json!({"minAvailable": 2})), 3, 2), (2, 2));
        assert_eq!(desired(&spec(json!({"minAvailable": "50%"})), 3, 3), (2, 3));
    }

    #[test]
    fn evicted_pods_do_not_count_until_they_are_gone() {
        let at = |seconds: i64| Time(k8s_openapi::jiff::Timestamp::from_second(seconds).unwrap());
        let pod = |value: serde_json::Value| {
            let object: Pod = serde_json::from_value(value).unwrap();
            Arc::new(Clustered {
                cluster: "c".into(),
                object,
            })
        };
        let selected = [
            pod(json!({"metadata": {"name": "new"}})),
            pod(json!({"metadata": {"name": "old"}})),
            pod(json!({"metadata": {"name": "gone", "deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        ];
        let noted: BTreeMap<String, Time> = ["new", "gone", "absent"]
            .into_iter()
            .map(|name| (name.to_owned(), at(1000)))
            .chain([("old".to_owned(), at(800))])
            .collect();
        let going = going(Some(&noted), &selected, &at(1010));
        assert_eq!(going.keys().collect::<Vec<_>>(), ["new"]);
    }
}
