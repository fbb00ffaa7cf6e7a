//! Draining a node before its machine goes [MCH-100]–[MCH-107].

use std::time::Duration;

use futures::future::join_all;
use gardener_apimachinery::meta::is_true;
use gardener_apis::machine::v1alpha1::Machine;
use gardener_controller::Read;
use gardener_controller::apply;
use gardener_controller::wait::{Patience, wait_deleted};
use gardener_rules::machines::health::{default, seconds};
use gardener_rules::machines::key;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, EvictParams, ListParams};
use kube::{Api, ResourceExt};

use crate::{Error, Shared};

/// How long an eviction that was refused waits.
const RETRY: Duration = Duration::from_secs(20);
/// Seconds after which an ill node is not waited for.
const ILL_SECONDS: i64 = 5 * 60;
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What came of a drain.
pub(crate) enum Outcome {
    /// Nothing is left to drain.
    Done {
        /// Whether pods were deleted without asking.
        forced: bool,
    },
    /// Something could not be drained.
    Failed {
        /// Whether that does not matter.
        forced: bool,
        /// What it was.
        why: String,
    },
}

/// Whether pods are deleted instead of evicted [MCH-101].
fn is_forced(machine: &Machine, node: &Node, now: Timestamp) -> bool {
    let label = machine.labels().get(key::FORCE_DELETION);
    if label.is_some_and(|value| is_true(value)) {
        return true;
    }
    let timeout = seconds(machine.spec.drain_timeout, default::DRAIN_TIMEOUT);
    let since = |time: Option<Timestamp>| time.map_or(0, |time| now.duration_since(time).as_secs());
    if since(machine.metadata.deletion_timestamp.as_ref().map(|time| time.0)) > timeout {
        return true;
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        let ill = match condition.type_.as_str() {
            "Ready" => condition.status != "True",
            "ReadonlyFilesystem" => condition.status != "False",
            _ => false,
        };
        ill && since(condition.last_transition_time.as_ref().map(|time| time.0)) > ILL_SECONDS
    })
}

/// How often an eviction is tried [MCH-100].
fn evict_retries(machine: &Machine) -> i64 {
    let timeout = seconds(machine.spec.drain_timeout, default::DRAIN_TIMEOUT);
    let own = machine.spec.max_evict_retries.unwrap_or(default::MAX_EVICT_RETRIES);
    i64::from(own).min(timeout / i64::try_from(RETRY.as_secs()).unwrap_or(20))
}

/// Whether a pod is drained: not one that the node itself or a DaemonSet brings back [MCH-103].
fn is_drained(pod: &Pod) -> bool {
    !pod.annotations().contains_key(MIRROR) && !pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet")
}

fn has_claim(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes
        .into_iter()
        .flatten()
        .any(|volume| volume.persistent_volume_claim.is_some())
}

/// The budget that will never allow a pod of these labels to go, if there is one [MCH-106].
fn hopeless<'a>(pod: &Pod, budgets: &'a [PodDisruptionBudget]) -> Option<&'a PodDisruptionBudget> {
    budgets.iter().find(|budget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let wanted = selector.and_then(|selector| selector.match_labels.as_ref());
        let selected =
            wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| pod.labels().get(key) == Some(value)));
        budget.namespace() == pod.namespace()
            && selected
            && budget.status.as_ref().is_some_and(|status| {
                status.observed_generation == budget.metadata.generation
                    && status.expected_pods > Some(0)
                    && status.current_healthy >= status.expected_pods
                    && status.disrupted_pods.as_ref().is_none_or(|pods| pods.is_empty())
                    && status.disruptions_allowed.unwrap_or_default() == 0
            })
    })
}

/// Why a machine goes, as its node tells it: reason and message [MCH-102].
pub(crate) type Because = (&'static str, &'static str);
/// It failed. Only known as its deletion begins; what its node says stays.
pub(crate) const FAILED: Because = ("Unhealthy", "Machine Controller is terminating failed machine");
const NOT_NEEDED: Because = ("ScaleDown", "Machine Controller is scaling down machine");

/// The node of a machine, if it has one.
async fn node_of(shared: &Shared, machine: &Machine) -> Result<Option<Node>, Error> {
    let nodes: Api<Node> = Api::all(shared.config.target.clone());
    match machine.labels().get(key::NODE) {
        Some(name) => Ok(nodes.read_opt(name).await?),
        None => Ok(None),
    }
}

/// Has the node of a machine say why it goes, unless it says so already.
pub(crate) async fn tell(shared: &Shared, machine: &Machine, because: Because) -> Result<(), Error> {
    match node_of(shared, machine).await? {
        Some(node) => tell_by(shared, &node, because).await,
        None => Ok(()),
    }
}

async fn tell_by(shared: &Shared, node: &Node, (reason, message): Because) -> Result<(), Error> {
    let api: Api<Node> = Api::all(shared.config.target.clone());
    let now = shared.config.clock.time();
    apply::patch_status(&api, node, |node| {
        let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
        if conditions.iter().any(|condition| condition.type_ == "Terminating") {
            return;
        }
        conditions.push(NodeCondition {
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: Some(now.clone()),
            message: Some(message.to_owned()),
            reason: Some(reason.to_owned()),
            status: "True".to_owned(),
            type_: "Terminating".to_owned(),
        });
    })
    .await?;
    Ok(())
}

/// Cordons a node; no pod is to come any more.
async fn cordon(shared: &Shared, node: &Node) -> Result<(), Error> {
    let api: Api<Node> = Api::all(shared.config.target.clone());
    apply::patch(&api, node, |node| {
        node.spec.get_or_insert_default().unschedulable = Some(true);
    })
    .await?;
    Ok(())
}

pub(crate) async fn drain(shared: &Shared, machine: &Machine) -> Result<Outcome, Error> {
    let Some(node) = node_of(shared, machine).await? else {
        return Ok(Outcome::Done { forced: false });
    };
    let forced = is_forced(machine, &node, shared.config.clock.now());
    tell_by(shared, &node, NOT_NEEDED).await?;
    cordon(shared, &node).await?;
    let all: Api<Pod> = Api::all(shared.config.target.clone());
    let listed = all
        .read_list(&ListParams::default().fields(&format!("spec.nodeName={}", node.name_any())))
        .await?;
    let pods: Vec<Pod> = listed.into_iter().filter(is_drained).collect();
    let results = if forced {
        join_all(pods.iter().map(|pod| delete_now(shared, pod))).await
    } else {
        let budgets: Api<PodDisruptionBudget> = Api::all(shared.config.target.clone());
        let budgets = budgets.read_list(&Default::default()).await?;
        let (mut with_claim, without): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| has_claim(pod));
        with_claim.sort_by_key(|pod| std::cmp::Reverse(pod.spec.as_ref().and_then(|spec| spec.priority)));
        let serial = async {
            let mut results = Vec::new();
            for pod in with_claim {
                results.push(evict(shared, machine, pod, &budgets).await);
            }
            results
        };
        let parallel = join_all(without.into_iter().map(|pod| evict(shared, machine, pod, &budgets)));
        let (mut one, two) = tokio::join!(serial, parallel);
        one.extend(two);
        one
    };
    let why: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    Ok(if why.is_empty() {
        Outcome::Done { forced }
    } else {
        Outcome::Failed {
            forced,
            why: why.join(", "),
        }
    })
}

fn pods_of(shared: &Shared, pod: &Pod) -> Api<Pod> {
    Api::namespaced(shared.config.target.clone(), &pod.namespace().unwrap_or_default())
}

async fn delete_now(shared: &Shared, pod: &Pod) -> Result<(), String> {
    let parameters = DeleteParams::default().grace_period(0);
    let deleted = apply::delete_with(&pods_of(shared, pod), &pod.name_any(), &parameters).await;
    deleted
        .map(|_| ())
        .map_err(|error| format!("pod {:?} cannot be deleted: {error}", pod.name_any()))
}

/// Evicts a pod, again and again while its budget does not allow it, and waits until it is gone [MCH-104].
async fn evict(shared: &Shared, machine: &Machine, pod: &Pod, budgets: &[PodDisruptionBudget]) -> Result<(), String> {
    let (api, name) = (pods_of(shared, pod), pod.name_any());
    let mut tries = evict_retries(machine);
    loop {
        let evicted = match api.evict(&name, &EvictParams::default()).await {
            Ok(_) => break,
            Err(kube::Error::Api(status)) => status,
            Err(error) => return Err(format!("error while evicting pod {name:?}: {error}")),
        };
        match evicted.code {
            404 => return Ok(()),
            429 => {
                if let Some(budget) = hopeless(pod, budgets) {
                    return Err(format!(
                        "error while evicting pod {name:?}: pod disruption budget {}/{} is misconfigured and requires zero voluntary evictions",
                        budget.namespace().unwrap_or_default(),
                        budget.name_any()
                    ));
                }
                tries -= 1;
                if tries <= 0 {
                    apply::delete(&api, &name)
                        .await
                        .map_err(|error| format!("pod {name:?} cannot be deleted: {error}"))?;
                    break;
                }
                tokio::time::sleep(RETRY).await;
            }
            _ => return Err(format!("error while evicting pod {name:?}: {}", evicted.message)),
        }
    }
    let grace = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.termination_grace_period_seconds)
        .unwrap_or(30);
    let limit = grace.min(seconds(machine.spec.drain_timeout, default::DRAIN_TIMEOUT)) + 30;
    let patience = Patience {
        recheck: Duration::from_secs(60),
        timeout: Duration::from_secs(u64::try_from(limit).unwrap_or(60)),
    };
    let gone = wait_deleted(&api, &name, patience).await;
    gone.map_err(|error| format!("error while waiting for pod {name:?} to go: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(spec: serde_json::Value, labels: serde_json::Value) -> Machine {
        serde_json::from_value(json!({
            "metadata": {"name": "m", "labels": labels, "deletionTimestamp": "2026-01-01T10:00:00Z"}, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn mch_c20_retries_fit_the_timeout() {
        let spec = json!({"drainTimeout": "1m", "maxEvictRetries": 10});
        assert_eq!(evict_retries(&machine(spec, json!({}))), 3);
        assert_eq!(evict_retries(&machine(json!({}), json!({}))), 10);
    }

    #[test]
    fn mch_101_when_a_drain_is_forced() {
        let node = |kind: &str, status: &str, since: &str| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"conditions": [
                {"type": kind, "status": status, "lastTransitionTime": since},
            ]}}))
            .unwrap()
        };
        let fine = node("Ready", "True", "2026-01-01T09:00:00Z");
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let plain = machine(json!({"drainTimeout": "10m"}), json!({}));
        let labelled = machine(json!({}), json!({"force-deletion": "True"}));
        assert!(!is_forced(&plain, &fine, at("2026-01-01T10:05:00Z")));
        assert!(is_forced(&plain, &fine, at("2026-01-01T10:11:00Z")));
        assert!(is_forced(&labelled, &fine, at("2026-01-01T10:00:00Z")));
        let ill = node("Ready", "Unknown", "2026-01-01T09:54:00Z");
        assert!(is_forced(&plain, &ill, at("2026-01-01T10:00:00Z")));
        let readonly = node("ReadonlyFilesystem", "True", "2026-01-01T09:58:00Z");
        assert!(!is_forced(&plain, &readonly, at("2026-01-01T10:00:00Z")));
    }

    #[test]
    fn mch_c19_a_budget_that_never_allows() {
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "x", "labels": {"a": "b"}}})).unwrap();
        let budget = |healthy: i32| -> PodDisruptionBudget {
            serde_json::from_value(json!({
                "metadata": {"name": "b", "namespace": "x", "generation": 1},
                "spec": {"selector": {"matchLabels": {"a": "b"}}},
                "status": {"observedGeneration": 1, "expectedPods": 1, "currentHealthy": healthy, "desiredHealthy": 1, "disruptionsAllowed": 0},
            }))
            .unwrap()
        };
        assert!(hopeless(&pod, &[budget(1)]).is_some());
        assert!(hopeless(&pod, &[budget(0)]).is_none());
    }
}
