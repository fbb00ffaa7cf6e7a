//! Whether a pod may be on a node for what both say: node selector, required node affinity, taints and tolerations. Resources, ports and other pods do
//! not count here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

/// Whether a toleration tolerates a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => {
            !key.is_empty()
                && toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        _ => false,
    }
}

/// Whether node name, node selector and required node affinity of a pod select a node.
pub fn selects_node(spec: &PodSpec, node: &Node) -> bool {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let labels = node.metadata.labels.as_ref().unwrap_or(&NONE);
    let named = spec.node_name.as_deref().unwrap_or_default();
    if !named.is_empty() && named != name {
        return false;
    }
    let mut wanted = spec.node_selector.iter().flatten();
    if !wanted.all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let affinity = spec.affinity.as_ref().and_then(|own| own.node_affinity.as_ref());
    let required = affinity.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|own| own.node_selector_terms.iter().any(|term| holds(term, name, labels)))
}

/// A term without requirements selects nothing.
fn holds(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    (!expressions.is_empty() || !fields.is_empty())
        && expressions
            .iter()
            .all(|own| meets(own, labels.get(&own.key).map(String::as_str)))
        && fields
            .iter()
            .all(|own| meets(own, (own.key == "metadata.name").then_some(name)))
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|own| own == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().map(String::as_str));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound).is_some_and(|(value, bound)| value > bound),
        "Lt" => number(value).zip(bound).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node() -> Node {
        serde_json::from_value(json!({"metadata": {"name": "a", "labels": {"zone": "1", "size": "8"}}})).unwrap()
    }

    #[test]
    fn pods_select_nodes() {
        let affinity = |term: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}});
        let expression = |key: &str, operator: &str, values: &[&str]| {
            affinity(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        let cases = [
            (json!({}), true),
            (json!({"nodeName": "a"}), true),
            (json!({"nodeName": "b"}), false),
            (json!({"nodeSelector": {"zone": "1"}}), true),
            (json!({"nodeSelector": {"zone": "2"}}), false),
            (expression("zone", "In", &["1", "2"]), true),
            (expression("zone", "NotIn", &["1", "2"]), false),
            (expression("other", "NotIn", &["1"]), true),
            (expression("zone", "Exists", &[]), true),
            (expression("zone", "DoesNotExist", &[]), false),
            (expression("size", "Gt", &["7"]), true),
            (expression("size", "Gt", &["8"]), false),
            (expression("size", "Lt", &["9"]), true),
            (expression("zone", "Unknown", &["1"]), false),
            (affinity(json!({})), false),
            (
                affinity(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]})),
                true,
            ),
            (
                affinity(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]})),
                false,
            ),
        ];
        for (spec, wanted) in cases {
            let mut full = spec.clone();
            full["containers"] = json!([]);
            let parsed: PodSpec = serde_json::from_value(full).unwrap();
            assert_eq!(selects_node(&parsed, &node()), wanted, "{spec}");
        }
    }

    #[test]
    fn tolerations_tolerate_taints() {
        let taint = Taint {
            key: "k".into(),
            value: Some("v".into()),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        let cases = [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "k", "operator": "Exists"}), true),
            (json!({"key": "k", "value": "v"}), true),
            (json!({"key": "k", "operator": "Equal", "value": "w"}), false),
            (json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "l", "operator": "Exists"}), false),
            (json!({"value": "v"}), false),
        ];
        for (toleration, wanted) in cases {
            let parsed: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(tolerates(&parsed, &taint), wanted, "{toleration}");
        }
    }
}
