//! How well a node suits a pod: free resources, and few pods of the same kind.

use std::collections::BTreeMap;

use gardener_apimachinery::selector::LabelSelector;

use super::filter::{Candidate, NodeInfo};

/// The most points for one view.
const MOST: i64 = 100;

/// The share of cpu and memory that would be free with the pod, in points.
fn free(candidate: &Candidate<'_>, node: &NodeInfo) -> i64 {
    let share = |name: &str| {
        let total = node.allocatable.get(name).copied().unwrap_or(0);
        if total <= 0 {
            return 0;
        }
        let of = |list: &super::resources::Requests| list.get(name).copied().unwrap_or(0);
        let left = (total - of(&node.requested) - of(&candidate.requests)).max(0);
        left.saturating_mul(MOST) / total
    };
    (share("cpu") + share("memory")) / 2
}

/// A pod's labels but for those that it gets with its node.
fn own(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    let of_node = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
    labels.iter().filter(move |(key, _)| !of_node.contains(&key.as_str()))
}

/// How many pods of the same owner kind (by labels and spread constraints) are in the node's domains; fewer is better.
fn alike(candidate: &Candidate<'_>, node: &NodeInfo, all: &[NodeInfo]) -> i64 {
    let same = |other: &NodeInfo| {
        let alike = other
            .pods
            .iter()
            .filter(|pod| pod.namespace == candidate.namespace && own(&pod.labels).eq(own(&candidate.labels)));
        i64::try_from(alike.count()).unwrap_or(i64::MAX)
    };
    let mut count = same(node);
    let constraints = candidate
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.topology_spread_constraints.as_ref());
    for constraint in constraints.into_iter().flatten() {
        let domain = node.labels.get(&constraint.topology_key);
        let selector = constraint.label_selector.as_ref().map(LabelSelector::from);
        let in_domain = all
            .iter()
            .filter(|other| domain.is_some() && other.labels.get(&constraint.topology_key) == domain)
            .flat_map(|other| &other.pods)
            .filter(|pod| {
                pod.namespace == candidate.namespace && selector.as_ref().is_some_and(|own| own.matches(&pod.labels))
            });
        count += i64::try_from(in_domain.count()).unwrap_or(i64::MAX);
    }
    count
}

/// Points of a node for a pod; more is better.
pub(super) fn score(candidate: &Candidate<'_>, node: &NodeInfo, all: &[NodeInfo]) -> i64 {
    free(candidate, node) - alike(candidate, node, all).saturating_mul(MOST)
}
