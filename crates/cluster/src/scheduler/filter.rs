//! Which nodes a pod fits on, and how it is told that it fits on none.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::selector::{LabelSelector, Requirement};
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodAffinityTerm, Taint, Toleration,
};

use super::resources::{self, Requests};

/// A node, with what is on it.
pub(super) struct NodeInfo {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    unschedulable: bool,
    pub allocatable: Requests,
    pub requested: Requests,
    pub pods: Vec<OnNode>,
}

/// What counts of a pod on a node.
pub(super) struct OnNode {
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    ports: BTreeSet<(String, i32)>,
    avoids: Vec<PodAffinityTerm>,
}

impl NodeInfo {
    pub fn new(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            unschedulable: spec.unschedulable.unwrap_or(false),
            allocatable: resources::amounts(status.allocatable.as_ref()),
            requested: Requests::new(),
            pods: Vec::new(),
        }
    }

    /// Puts a pod on the node.
    pub fn add(&mut self, pod: &Pod) {
        resources::add(&mut self.requested, &resources::of_pod(pod));
        self.pods.push(OnNode {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            ports: host_ports(pod),
            avoids: anti_affinity(pod),
        });
    }
}

fn host_ports(pod: &Pod) -> BTreeSet<(String, i32)> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            Some((
                port.protocol.clone().unwrap_or_else(|| "TCP".into()),
                port.host_port.filter(|p| *p > 0)?,
            ))
        })
        .collect()
}

fn anti_affinity(pod: &Pod) -> Vec<PodAffinityTerm> {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    anti.and_then(|anti| anti.required_during_scheduling_ignored_during_execution.clone())
        .unwrap_or_default()
}

/// A pod that waits for a node.
pub(super) struct Candidate<'a> {
    pub pod: &'a Pod,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub requests: Requests,
    ports: BTreeSet<(String, i32)>,
    together: Vec<PodAffinityTerm>,
    apart: Vec<PodAffinityTerm>,
}

impl<'a> Candidate<'a> {
    pub fn new(pod: &'a Pod) -> Self {
        let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
        let together = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        Self {
            pod,
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            requests: resources::of_pod(pod),
            ports: host_ports(pod),
            together: together
                .and_then(|own| own.required_during_scheduling_ignored_during_execution.clone())
                .unwrap_or_default(),
            apart: anti_affinity(pod),
        }
    }
}

/// Whether a toleration tolerates a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    (effect.is_empty() || effect == taint.effect)
        && (key.is_empty() || key == taint.key)
        && match toleration.operator.as_deref() {
            Some("Exists") => true,
            _ => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        }
}

fn requirement(own: &NodeSelectorRequirement) -> Requirement {
    let (key, values) = (own.key.clone(), own.values.clone().unwrap_or_default());
    let number = || values.first().and_then(|value| value.parse().ok());
    match (own.operator.as_str(), number()) {
        ("In", _) => Requirement::In(key, values),
        ("NotIn", _) => Requirement::NotIn(key, values),
        ("Exists", _) => Requirement::Exists(key),
        ("DoesNotExist", _) => Requirement::NotExists(key),
        ("Gt", Some(number)) => Requirement::GreaterThan(key, number),
        ("Lt", Some(number)) => Requirement::LessThan(key, number),
        _ => Requirement::In(key, Vec::new()),
    }
}

fn term_selects(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let (expressions, fields) = (term.match_expressions.as_deref(), term.match_fields.as_deref());
    if expressions.unwrap_or_default().is_empty() && fields.unwrap_or_default().is_empty() {
        return false;
    }
    let all = |list: Option<&[NodeSelectorRequirement]>, of: &BTreeMap<String, String>| {
        list.unwrap_or_default().iter().all(|own| holds(&requirement(own), of))
    };
    let own: BTreeMap<String, String> = [("metadata.name".to_owned(), name.to_owned())].into();
    all(expressions, labels) && all(fields, &own)
}

fn holds(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    match requirement {
        Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
        Requirement::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        Requirement::Exists(key) => labels.contains_key(key),
        Requirement::NotExists(key) => !labels.contains_key(key),
        Requirement::GreaterThan(key, bound) => labels
            .get(key)
            .and_then(|value| value.parse::<i64>().ok())
            .is_some_and(|value| value > *bound),
        Requirement::LessThan(key, bound) => labels
            .get(key)
            .and_then(|value| value.parse::<i64>().ok())
            .is_some_and(|value| value < *bound),
    }
}

/// Whether a pod's node selector and required node affinity select a node.
pub(crate) fn node_selected(pod: &Pod, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let Some(spec) = &pod.spec else { return true };
    let by_label = spec
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_ref());
    by_label
        && required.is_none_or(|own| {
            own.node_selector_terms
                .iter()
                .any(|term| term_selects(term, name, labels))
        })
}

/// The first taint that keeps a pod away.
pub(crate) fn untolerated<'a>(pod: &Pod, taints: &'a [Taint]) -> Option<&'a Taint> {
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    taints
        .iter()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .find(|taint| !tolerations.iter().any(|own| tolerates(own, taint)))
}

fn term_matches(
    term: &PodAffinityTerm,
    own_namespace: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let named = term.namespaces.as_deref().unwrap_or_default();
    let anywhere = term.namespace_selector.is_some();
    let here = if named.is_empty() {
        namespace == own_namespace
    } else {
        named.iter().any(|own| own == namespace)
    };
    (here || anywhere)
        && term
            .label_selector
            .as_ref()
            .is_some_and(|own| LabelSelector::from(own).matches(labels))
}

/// Whether a pod that the term matches is in the node's topology domain.
fn domain_has(term: &PodAffinityTerm, namespace: &str, node: &NodeInfo, all: &[NodeInfo]) -> bool {
    let Some(domain) = node.labels.get(&term.topology_key) else {
        return false;
    };
    all.iter()
        .filter(|other| other.labels.get(&term.topology_key) == Some(domain))
        .flat_map(|other| &other.pods)
        .any(|pod| term_matches(term, namespace, &pod.namespace, &pod.labels))
}

fn spread_violated(candidate: &Candidate<'_>, node: &NodeInfo, all: &[NodeInfo]) -> bool {
    let constraints = candidate
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.topology_spread_constraints.as_ref());
    constraints
        .into_iter()
        .flatten()
        .filter(|own| own.when_unsatisfiable == "DoNotSchedule")
        .any(|constraint| {
            let Some(domain) = node.labels.get(&constraint.topology_key) else {
                return true;
            };
            let mut counts: BTreeMap<&String, i32> = BTreeMap::new();
            let eligible = all
                .iter()
                .filter(|other| node_selected(candidate.pod, &other.name, &other.labels));
            for other in eligible {
                let Some(own) = other.labels.get(&constraint.topology_key) else {
                    continue;
                };
                let count = counts.entry(own).or_default();
                for pod in &other.pods {
                    let selected = constraint
                        .label_selector
                        .as_ref()
                        .is_some_and(|own| LabelSelector::from(own).matches(&pod.labels));
                    *count += i32::from(selected && pod.namespace == candidate.namespace);
                }
            }
            let least = counts.values().min().copied().unwrap_or(0);
            counts.get(domain).copied().unwrap_or(0) + 1 - least > constraint.max_skew
        })
}

/// Why a pod does not fit on a node; nothing if it does.
pub(super) fn reasons(candidate: &Candidate<'_>, node: &NodeInfo, all: &[NodeInfo]) -> Vec<String> {
    let one = |text: &str| vec![text.to_owned()];
    if node.unschedulable {
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        if untolerated(candidate.pod, &[taint]).is_some() {
            return one("node(s) were unschedulable");
        }
    }
    if let Some(taint) = untolerated(candidate.pod, &node.taints) {
        let value = taint.value.as_deref().unwrap_or_default();
        return vec![format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)];
    }
    if !node_selected(candidate.pod, &node.name, &node.labels) {
        return one("node(s) didn't match Pod's node affinity/selector");
    }
    if node.pods.iter().any(|own| !own.ports.is_disjoint(&candidate.ports)) {
        return one("node(s) didn't have free ports for the requested pod ports");
    }
    let mut lacking = Vec::new();
    let allowed = node.allocatable.get("pods").copied().unwrap_or(110);
    if i64::try_from(node.pods.len()).unwrap_or(i64::MAX) + 1 > allowed {
        lacking.push("Too many pods".to_owned());
    }
    for (name, amount) in candidate.requests.iter().filter(|(_, amount)| **amount > 0) {
        let free = node.allocatable.get(name).copied().unwrap_or(0) - node.requested.get(name).copied().unwrap_or(0);
        if *amount > free {
            lacking.push(format!("Insufficient {name}"));
        }
    }
    if !lacking.is_empty() {
        return lacking;
    }
    if spread_violated(candidate, node, all) {
        return one("node(s) didn't match pod topology spread constraints");
    }
    let first_of_its_kind = |term: &PodAffinityTerm| {
        term_matches(term, &candidate.namespace, &candidate.namespace, &candidate.labels)
            && !all
                .iter()
                .flat_map(|other| &other.pods)
                .any(|pod| term_matches(term, &candidate.namespace, &pod.namespace, &pod.labels))
    };
    if candidate
        .together
        .iter()
        .any(|term| !domain_has(term, &candidate.namespace, node, all) && !first_of_its_kind(term))
    {
        return one("node(s) didn't match pod affinity rules");
    }
    if candidate
        .apart
        .iter()
        .any(|term| domain_has(term, &candidate.namespace, node, all))
    {
        return one("node(s) didn't match pod anti-affinity rules");
    }
    let avoided = all.iter().any(|other| {
        other.pods.iter().any(|pod| {
            pod.avoids.iter().any(|term| {
                let domain = node.labels.get(&term.topology_key);
                domain.is_some()
                    && other.labels.get(&term.topology_key) == domain
                    && term_matches(term, &pod.namespace, &candidate.namespace, &candidate.labels)
            })
        })
    });
    if avoided {
        return one("node(s) didn't satisfy existing pods anti-affinity rules");
    }
    Vec::new()
}

/// What a pod that fits on no node is told.
pub(super) fn explain(reasons: &[Vec<String>]) -> String {
    if reasons.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for reason in reasons.iter().flatten() {
        *counts.entry(reason).or_default() += 1;
    }
    let mut parts: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    parts.sort();
    format!("0/{} nodes are available: {}.", reasons.len(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(name: &str, spec: Value, cpu: &str) -> NodeInfo {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"zone": name, "number": "5"}}, "spec": spec,
            "status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "2"}},
        }))
        .unwrap();
        NodeInfo::new(&node)
    }

    fn pod(spec: Value) -> Pod {
        let mut spec = spec;
        spec["containers"] = spec.get("containers").cloned().unwrap_or_else(|| json!([]));
        serde_json::from_value(
            json!({"metadata": {"name": "p", "namespace": "n", "labels": {"app": "x"}}, "spec": spec}),
        )
        .unwrap()
    }

    fn told(pod: &Pod, nodes: &[NodeInfo]) -> String {
        let candidate = Candidate::new(pod);
        let reasons: Vec<_> = nodes.iter().map(|node| reasons(&candidate, node, nodes)).collect();
        explain(&reasons)
    }

    #[test]
    fn reasons_are_counted() {
        let taint = json!({"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]});
        let mut full = node("c", json!({}), "1");
        full.add(&pod(
            json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "600m"}}}]}),
        ));
        let nodes = [
            node("a", taint, "1"),
            node("b", json!({"unschedulable": true}), "1"),
            full,
            node("d", json!({}), "100m"),
        ];
        let asks = pod(json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]}));
        assert_eq!(
            told(&asks, &nodes),
            "0/4 nodes are available: 1 node(s) had untolerated taint {dedicated: infra}, 1 node(s) were unschedulable, 2 Insufficient cpu."
        );
        assert_eq!(told(&asks, &[]), "no nodes available to schedule pods");
    }

    #[test]
    fn affinity_selects_nodes_and_keeps_pods_apart() {
        let term = |key: &str, operator: &str, value: &str| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}]}}}})
        };
        let nodes = [node("a", json!({}), "1")];
        for (own, fits) in [
            (term("zone", "In", "a"), true),
            (term("zone", "NotIn", "a"), false),
            (term("number", "Gt", "4"), true),
            (term("number", "Lt", "4"), false),
            (json!({"nodeSelector": {"zone": "b"}}), false),
        ] {
            let pod = pod(own.clone());
            assert_eq!(
                reasons(&Candidate::new(&pod), &nodes[0], &nodes).is_empty(),
                fits,
                "{own}"
            );
        }
        let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]}}});
        let mut nodes = [node("a", json!({}), "1"), node("b", json!({}), "1")];
        nodes[0].add(&pod(apart.clone()));
        let next = pod(apart);
        let candidate = Candidate::new(&next);
        assert_eq!(
            reasons(&candidate, &nodes[0], &nodes),
            ["node(s) didn't match pod anti-affinity rules"]
        );
        assert!(reasons(&candidate, &nodes[1], &nodes).is_empty());
        let plain = pod(json!({}));
        let plain = reasons(&Candidate::new(&plain), &nodes[0], &nodes);
        assert_eq!(plain, ["node(s) didn't satisfy existing pods anti-affinity rules"]);
    }
}
