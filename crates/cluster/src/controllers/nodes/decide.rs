//! Conditions of lost nodes, taints by condition, and when a taint evicts a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::scheduler::tolerates;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";
/// Conditions that a kubelet tells, and the taints of those that are bad when true.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

fn conditions(node: &Node) -> &[NodeCondition] {
    node.status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

fn status<'a>(node: &'a Node, type_: &str) -> Option<&'a str> {
    conditions(node)
        .iter()
        .find(|own| own.type_ == type_)
        .map(|own| own.status.as_str())
}

/// The status of the condition `Ready`.
pub(super) fn ready(node: &Node) -> Option<&str> {
    status(node, "Ready")
}

/// When the kubelet told the condition `Ready` last.
pub(super) fn heartbeat(node: &Node) -> Option<Timestamp> {
    let ready = conditions(node).iter().find(|own| own.type_ == "Ready")?;
    ready.last_heartbeat_time.as_ref().map(|time| time.0)
}

/// The conditions of a node that does not beat: what its kubelet told is unknown now.
pub(super) fn lost_conditions(node: &Node, now: &Time) -> Vec<NodeCondition> {
    let mut list = conditions(node).to_vec();
    for type_ in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        match list.iter_mut().find(|own| own.type_ == type_) {
            Some(own) if own.status != "Unknown" => {
                own.status = "Unknown".into();
                own.reason = Some("NodeStatusUnknown".into());
                own.message = Some("Kubelet stopped posting node status.".into());
                own.last_transition_time = Some(now.clone());
            }
            Some(_) => {}
            None => list.push(NodeCondition {
                type_: type_.to_owned(),
                status: "Unknown".into(),
                reason: Some("NodeStatusNeverUpdated".into()),
                message: Some("Kubelet never posted node status.".into()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(now.clone()),
            }),
        }
    }
    list
}

/// The taints of a node: foreign ones stay, those that follow from its conditions come and go.
pub(super) fn wanted_taints(node: &Node, now: &Time) -> Vec<Taint> {
    let spec = node.spec.as_ref();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    match ready(node) {
        Some("True") => {}
        Some("Unknown") => wanted.extend([(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]),
        Some(_) => wanted.extend([(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]),
        None => wanted.push((NOT_READY, NO_SCHEDULE)),
    }
    for (type_, taint) in PRESSURES {
        if status(node, type_) == Some("True") {
            wanted.push((taint, NO_SCHEDULE));
        }
    }
    if spec.and_then(|spec| spec.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    let own = |key: &str| {
        [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key) || PRESSURES.iter().any(|(_, taint)| *taint == key)
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let mut taints: Vec<Taint> = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
    taints.retain(|taint| !own(&taint.key) || is_wanted(taint));
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(now.clone()),
                value: None,
            });
        }
    }
    taints
}

/// Whether a taint evicts pods that do not tolerate it.
pub(super) fn evicts(taint: &Taint) -> bool {
    taint.effect == NO_EXECUTE
}

/// How long until taints evict a pod: none if they do not.
pub(super) fn eviction_after(pod: &Pod, taints: &[Taint], now: Timestamp) -> Option<Duration> {
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    let mut soonest: Option<Duration> = None;
    for taint in taints.iter().filter(|taint| evicts(taint)) {
        let fitting: Vec<_> = tolerations.iter().filter(|own| tolerates(own, taint)).collect();
        if fitting.is_empty() {
            return Some(Duration::ZERO);
        }
        // the shortest toleration counts; one without an end tolerates for ever
        let Some(seconds) = fitting.iter().filter_map(|own| own.toleration_seconds).min() else {
            continue;
        };
        let since = taint.time_added.as_ref().map_or(now, |time| time.0);
        let passed = now.duration_since(since).as_secs();
        let left = Duration::from_secs(u64::try_from(seconds - passed).unwrap_or(0));
        soonest = Some(soonest.map_or(left, |own| own.min(left)));
    }
    soonest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn node(ready: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"unschedulable": true, "taints": [{"key": "mine", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}, {"type": "DiskPressure", "status": "True"}]},
        }))
        .unwrap()
    }

    #[test]
    fn taints_follow_conditions() {
        let keys = |ready: &str| -> Vec<String> {
            let taints = wanted_taints(&node(ready), &time(1));
            taints
                .iter()
                .map(|taint| format!("{}:{}", taint.key.rsplit('/').next().unwrap(), taint.effect))
                .collect()
        };
        assert_eq!(
            keys("True"),
            [
                "mine:NoSchedule",
                "disk-pressure:NoSchedule",
                "unschedulable:NoSchedule"
            ]
        );
        assert_eq!(keys("False")[..2], ["mine:NoSchedule", "not-ready:NoSchedule"]);
        assert!(keys("False").contains(&"not-ready:NoExecute".into()));
        assert!(keys("Unknown").contains(&"unreachable:NoExecute".into()));
    }

    #[test]
    fn lost_nodes_are_unknown() {
        let lost = lost_conditions(&node("True"), &time(9));
        assert!(lost.iter().all(|own| own.status == "Unknown"));
        assert_eq!(lost.len(), 4);
    }

    #[test]
    fn pods_are_evicted_when_their_toleration_ends() {
        let pod = |tolerations: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [], "tolerations": tolerations}}))
                .unwrap()
        };
        let taints = [Taint {
            key: NOT_READY.into(),
            effect: NO_EXECUTE.into(),
            time_added: Some(time(100)),
            value: None,
        }];
        let now = Timestamp::from_second(160).unwrap();
        assert_eq!(eviction_after(&pod(json!([])), &taints, now), Some(Duration::ZERO));
        let some = json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
        assert_eq!(eviction_after(&pod(some), &taints, now), Some(Duration::from_secs(240)));
        assert_eq!(
            eviction_after(&pod(json!([{"operator": "Exists"}])), &taints, now),
            None
        );
    }
}
