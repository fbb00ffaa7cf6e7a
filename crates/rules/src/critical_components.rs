//! Whether the critical components of a node run, so that other pods may come `[GRM-45]`.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::taints::tolerated_by_daemons;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use crate::node_placement::{selects_node, tolerates};

/// The label of critical components, with the value `true`; DaemonSets carry it themselves and in their template.
pub const LABEL: &str = "node.gardener.cloud/critical-component";
/// The prefix of pods' annotations whose values are CSI drivers that must be registered at the node.
pub const WAIT_FOR_CSI_PREFIX: &str = "node.gardener.cloud/wait-for-csi-node-";

/// What a node waits for. Names are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// DaemonSets that have no pod on the node yet.
    DaemonSets(Vec<String>),
    /// Pods on the node that are not ready.
    Pods(Vec<String>),
    /// CSI drivers that are not registered at the node.
    Drivers(Vec<String>),
}

impl Missing {
    /// The reason of the event that tells it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::DaemonSets(_) => "UnscheduledNodeCriticalDaemonSets",
            Self::Pods(_) => "UnreadyNodeCriticalPods",
            Self::Drivers(_) => "UnreadyRequiredCSIDrivers",
        }
    }

    /// The message of the event that tells it.
    pub fn message(&self) -> String {
        match self {
            Self::DaemonSets(names) => format!(
                "Node-critical DaemonSets that have no Pod on the Node yet: {}",
                names.join(", ")
            ),
            Self::Pods(names) => format!(
                "Node-critical Pods on the Node that are not ready yet: {}",
                names.join(", ")
            ),
            Self::Drivers(names) => format!(
                "Required CSI drivers that are not registered at the Node yet: {}",
                names.join(", ")
            ),
        }
    }
}

/// Whether labels tell a critical component.
pub fn is_critical(labels: Option<&BTreeMap<String, String>>) -> bool {
    labels.is_some_and(|labels| labels.get(LABEL).is_some_and(|value| value == "true"))
}

/// The CSI drivers that pods ask to be registered at their node.
pub fn required_drivers(pods: &[&Pod]) -> BTreeSet<String> {
    pods.iter()
        .flat_map(|pod| pod.metadata.annotations.iter().flatten())
        .filter(|(key, _)| key.starts_with(WAIT_FOR_CSI_PREFIX))
        .map(|(_, driver)| driver.clone())
        .collect()
}

/// What keeps other pods from a node; none when all of its critical components run.
///
/// `daemon_sets` and `pods` are those of the namespace of system components; `drivers` are the CSI drivers registered at the node.
pub fn missing(node: &Node, daemon_sets: &[&DaemonSet], pods: &[&Pod], drivers: &BTreeSet<String>) -> Option<Missing> {
    let name = node.metadata.name.as_deref();
    let here: Vec<&Pod> = pods
        .iter()
        .copied()
        .filter(|pod| is_critical(pod.metadata.labels.as_ref()))
        .filter(|pod| name.is_some() && pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == name)
        .collect();
    let unscheduled = daemon_sets
        .iter()
        .copied()
        .filter(|set| is_critical_daemon(set) && belongs_on(set, node) && !here.iter().any(|pod| owns(set, pod)));
    let unscheduled = names(unscheduled.filter_map(|set| set.metadata.name.clone()));
    if !unscheduled.is_empty() {
        return Some(Missing::DaemonSets(unscheduled));
    }
    let unready = here.iter().filter(|pod| !is_ready(pod));
    let unready = names(unready.filter_map(|pod| pod.metadata.name.clone()));
    if !unready.is_empty() {
        return Some(Missing::Pods(unready));
    }
    let unregistered: Vec<String> = required_drivers(&here).difference(drivers).cloned().collect();
    (!unregistered.is_empty()).then_some(Missing::Drivers(unregistered))
}

fn names(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_critical_daemon(set: &DaemonSet) -> bool {
    let template = set.spec.template.metadata.as_ref();
    is_critical(set.metadata.labels.as_ref()) && is_critical(template.and_then(|own| own.labels.as_ref()))
}

/// Whether a DaemonSet puts a pod on a node. The taint of waiting nodes counts as any other: who does not tolerate it cannot be waited for.
fn belongs_on(set: &DaemonSet, node: &Node) -> bool {
    let Some(pod) = set.spec.template.spec.as_ref() else {
        return false;
    };
    let host_network = pod.host_network == Some(true);
    let known = tolerated_by_daemons(host_network);
    let is_tolerated = |taint: &Taint| {
        let own = pod.tolerations.as_deref().unwrap_or_default();
        // a node that just registered gets its pods whatever the effect
        taint.key == "node.kubernetes.io/not-ready"
            || known
                .iter()
                .any(|(key, effect)| taint.key == *key && taint.effect == *effect)
            || own.iter().any(|toleration| tolerates(toleration, taint))
    };
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    selects_node(pod, node)
        && taints
            .unwrap_or_default()
            .iter()
            .filter(|taint| taint.effect != "PreferNoSchedule")
            .all(is_tolerated)
}

fn owns(set: &DaemonSet, pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    set.metadata.uid.is_some()
        && owners
            .iter()
            .any(|owner| Some(owner.uid.as_str()) == set.metadata.uid.as_deref())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TAINT: &str = gardener_apis::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY;

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"zone": "1"}},
            "spec": {"taints": [
                {"key": TAINT, "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ]},
        }))
        .unwrap()
    }

    fn set(change: impl FnOnce(&mut Value)) -> DaemonSet {
        let mut value = json!({
            "metadata": {"name": "d", "uid": "u", "labels": {LABEL: "true"}},
            "spec": {"selector": {}, "template": {
                "metadata": {"labels": {LABEL: "true"}},
                "spec": {"containers": [], "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]},
            }},
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    fn pod(change: impl FnOnce(&mut Value)) -> Pod {
        let mut value = json!({
            "metadata": {
                "name": "p",
                "labels": {LABEL: "true"},
                "annotations": {},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}],
            },
            "spec": {"nodeName": "a", "containers": []},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn grm_45_nodes_wait_for_critical_components() {
        let waits = || Some(Missing::DaemonSets(vec!["d".into()]));
        let driver = format!("{WAIT_FOR_CSI_PREFIX}x");
        type Case<'a> = (&'a str, DaemonSet, Option<Pod>, &'a [&'a str], Option<Missing>);
        let cases: Vec<Case<'_>> = vec![
            ("all run", set(|_| {}), Some(pod(|_| {})), &[], None),
            ("no pod", set(|_| {}), None, &[], waits()),
            (
                "pod on another node",
                set(|_| {}),
                Some(pod(|pod| pod["spec"]["nodeName"] = "b".into())),
                &[],
                waits(),
            ),
            (
                "pod of another set",
                set(|_| {}),
                Some(pod(|pod| pod["metadata"]["ownerReferences"][0]["uid"] = "v".into())),
                &[],
                waits(),
            ),
            (
                "pod without label",
                set(|_| {}),
                Some(pod(|pod| pod["metadata"]["labels"] = json!({}))),
                &[],
                waits(),
            ),
            (
                "label not on the set",
                set(|set| set["metadata"]["labels"] = json!({})),
                None,
                &[],
                None,
            ),
            (
                "label not in the template",
                set(|set| set["spec"]["template"]["metadata"]["labels"] = json!({})),
                None,
                &[],
                None,
            ),
            (
                "set for other nodes",
                set(|set| set["spec"]["template"]["spec"]["nodeSelector"] = json!({"zone": "2"})),
                None,
                &[],
                None,
            ),
            (
                "set that does not tolerate the taint",
                set(|set| set["spec"]["template"]["spec"]["tolerations"] = json!([])),
                None,
                &[],
                None,
            ),
            (
                "pod not ready",
                set(|_| {}),
                Some(pod(|pod| pod["status"]["conditions"][0]["status"] = "False".into())),
                &[],
                Some(Missing::Pods(vec!["p".into()])),
            ),
            (
                "driver missing",
                set(|_| {}),
                Some(pod(|pod| pod["metadata"]["annotations"][&driver] = "csi.local".into())),
                &["other"],
                Some(Missing::Drivers(vec!["csi.local".into()])),
            ),
            (
                "driver there",
                set(|_| {}),
                Some(pod(|pod| pod["metadata"]["annotations"][&driver] = "csi.local".into())),
                &["csi.local"],
                None,
            ),
        ];
        for (case, set, pod, drivers, wanted) in cases {
            let drivers = drivers.iter().map(|name| (*name).to_owned()).collect();
            let pods: Vec<&Pod> = pod.iter().collect();
            assert_eq!(missing(&node(), &[&set], &pods, &drivers), wanted, "{case}");
        }
    }

    #[test]
    fn grm_45_sets_belong_on_nodes_under_pressure() {
        let mut pressed = node();
        let taints = pressed.spec.get_or_insert_default().taints.get_or_insert_default();
        for (key, effect) in tolerated_by_daemons(true) {
            taints.push(Taint {
                key: (*key).into(),
                effect: (*effect).into(),
                ..Taint::default()
            });
        }
        let narrow = |host_network: bool| {
            set(|set| {
                set["spec"]["template"]["spec"]["tolerations"] = json!([{"key": TAINT, "operator": "Exists"}]);
                set["spec"]["template"]["spec"]["hostNetwork"] = host_network.into();
            })
        };
        assert!(belongs_on(&narrow(true), &pressed));
        assert!(!belongs_on(&narrow(false), &pressed), "the network is unavailable");
    }
}
