//! What machines say about their nodes: labels, annotations and taints [MCH-51], [MCH-60].

use std::collections::BTreeMap;

use gardener_apis::machine::v1alpha1::{Machine, MachineSet};
use gardener_controller::apply;
use gardener_rules::machines::key;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{Api, Resource, ResourceExt};
use serde::{Deserialize, Serialize};

use crate::{Error, Shared};

/// What of a node template was applied, as it stands in the node's annotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Applied {
    #[serde(default)]
    metadata: AppliedMeta,
    #[serde(default)]
    spec: AppliedSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct AppliedMeta {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct AppliedSpec {
    #[serde(default)]
    taints: Vec<Taint>,
}

fn merge(there: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>, before: &BTreeMap<String, String>) {
    there.retain(|key, _| wanted.contains_key(key) || !before.contains_key(key));
    there.extend(wanted.clone());
}

fn same_taint(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

/// Makes a node be as its machine says; what others put there stays [MCH-60].
fn applied_to(node: &mut Node, machine: &Machine) {
    let template = machine.spec.node_template.clone().unwrap_or_default();
    let wanted = Applied {
        metadata: AppliedMeta {
            annotations: template.metadata.annotations.unwrap_or_default(),
            labels: template.metadata.labels.unwrap_or_default(),
        },
        spec: AppliedSpec {
            taints: template.spec.map(|spec| spec.taints).unwrap_or_default(),
        },
    };
    let before: Applied = node
        .annotations()
        .get(key::LAST_APPLIED)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    merge(node.labels_mut(), &wanted.metadata.labels, &before.metadata.labels);
    merge(
        node.annotations_mut(),
        &wanted.metadata.annotations,
        &before.metadata.annotations,
    );
    let gone = |taint: &Taint| {
        before.spec.taints.iter().any(|old| same_taint(old, taint))
            && !wanted.spec.taints.iter().any(|new| same_taint(new, taint))
    };
    if !wanted.spec.taints.is_empty() || !before.spec.taints.is_empty() {
        let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
        taints.retain(|taint| !gone(taint));
        for taint in &wanted.spec.taints {
            match taints.iter_mut().find(|there| same_taint(there, taint)) {
                Some(there) => there.value = taint.value.clone(),
                None => taints.push(taint.clone()),
            }
        }
    }
    node.labels_mut().insert(key::MACHINE_NAME.into(), machine.name_any());
    if let Ok(text) = serde_json::to_string(&wanted) {
        node.annotations_mut().insert(key::LAST_APPLIED.into(), text);
    }
}

/// Makes a node be as its machine says.
pub(crate) async fn apply(shared: &Shared, node: &Node, machine: &Machine) -> Result<(), Error> {
    let api: Api<Node> = Api::all(shared.config.target.clone());
    apply::patch(&api, node, |node| applied_to(node, machine)).await?;
    Ok(())
}

fn prefer_no_schedule() -> Taint {
    Taint {
        key: key::PREFER_NO_SCHEDULE.to_owned(),
        value: Some("True".to_owned()),
        effect: "PreferNoSchedule".to_owned(),
        time_added: None,
    }
}

/// Old nodes are tainted, so that pods do not move onto what goes next; nodes of a set that is new again are not [MCH-51].
pub(crate) async fn prefer_new(shared: &Shared, new: &MachineSet, old: &[MachineSet]) -> Result<(), Error> {
    let has = |set: &MachineSet| set.annotations().contains_key(key::PREFER_NO_SCHEDULE);
    let to_taint = old
        .iter()
        .filter(|set| set.spec.replicas.unwrap_or_default() > 0 && !has(set));
    let to_clear = std::iter::once(new).filter(|set| has(set));
    let changes: Vec<(&MachineSet, bool)> = to_taint
        .map(|set| (set, true))
        .chain(to_clear.map(|set| (set, false)))
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(shared.config.target.clone());
    let machines = shared.machines().await?;
    for (set, tainted) in changes {
        let uid = set.meta().uid.as_deref();
        let own = machines.iter().filter(|machine| {
            machine
                .owner_references()
                .iter()
                .any(|owner| Some(owner.uid.as_str()) == uid)
        });
        for machine in own {
            let Some(node) = machine.labels().get(key::NODE).and_then(|name| shared.node(name)) else {
                continue;
            };
            let written = apply::patch(&nodes, node.as_ref(), |node| {
                let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
                taints.retain(|taint| taint.key != key::PREFER_NO_SCHEDULE);
                if tainted {
                    taints.push(prefer_no_schedule());
                }
            })
            .await;
            match written {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        apply::patch(&shared.api::<MachineSet>(), set, |set| {
            if tainted {
                set.annotations_mut()
                    .insert(key::PREFER_NO_SCHEDULE.into(), "True".into());
            } else {
                set.annotations_mut().remove(key::PREFER_NO_SCHEDULE);
            }
        })
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mch_60_what_others_put_on_a_node_stays() {
        let machine = |labels: serde_json::Value, taints: serde_json::Value| -> Machine {
            serde_json::from_value(json!({
                "metadata": {"name": "m"},
                "spec": {"nodeTemplate": {"metadata": {"labels": labels}, "spec": {"taints": taints}}},
            }))
            .unwrap()
        };
        let mut node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"own": "1", "a": "0"}},
            "spec": {"taints": [{"key": "foreign", "effect": "NoSchedule"}]},
        }))
        .unwrap();
        let taint = json!([{"key": "mine", "effect": "NoExecute", "value": "x"}]);
        applied_to(&mut node, &machine(json!({"a": "1", "b": "2"}), taint));
        assert_eq!(
            (&*node.labels()["a"], &*node.labels()["b"], &*node.labels()["own"]),
            ("1", "2", "1")
        );
        assert_eq!(node.spec.as_ref().unwrap().taints.as_ref().unwrap().len(), 2);
        applied_to(&mut node, &machine(json!({"a": "1"}), json!([])));
        assert!(!node.labels().contains_key("b") && node.labels().contains_key("own"));
        let taints = node.spec.as_ref().unwrap().taints.as_ref().unwrap();
        assert_eq!(taints.iter().map(|taint| &*taint.key).collect::<Vec<_>>(), ["foreign"]);
    }
}
