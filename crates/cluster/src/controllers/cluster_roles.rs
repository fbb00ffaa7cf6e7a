//! ClusterRoles that are put together from others by label.

use std::sync::Arc;

use gardener_apimachinery::selector::LabelSelector;
use gardener_controller::{Action, ObjectRef, Queue, apply};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let roles = environment.informers.cluster_roles.clone();
    environment.feed(
        &environment.informers.cluster_roles,
        &queue,
        Role::ControllerManager,
        move |role| {
            let all = roles.list_cluster(&role.cluster);
            let selecting = all
                .iter()
                .filter(|own| own.name_any() == role.name_any() || selects(&own.object, &role.object));
            selecting.map(|own| key_of(own.as_ref())).collect()
        },
    );
    environment.reconcile("clusterrole-aggregation", Role::ControllerManager, 4, queue, reconcile);
}

fn selects(aggregate: &ClusterRole, role: &ClusterRole) -> bool {
    let selectors = aggregate
        .aggregation_rule
        .as_ref()
        .and_then(|rule| rule.cluster_role_selectors.as_ref());
    aggregate.name_any() != role.name_any()
        && selectors
            .into_iter()
            .flatten()
            .any(|own| LabelSelector::from(own).matches(role.labels()))
}

/// The rules of all roles that are selected, each once, by the roles' names.
fn rules<'a>(aggregate: &ClusterRole, all: impl Iterator<Item = &'a ClusterRole>) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for rule in all
        .filter(|role| selects(aggregate, role))
        .flat_map(|role| role.rules.iter().flatten())
    {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let aggregates = |role: &ClusterRole| role.aggregation_rule.is_some();
    let known = environment.informers.cluster_roles.get(&key);
    if !known.is_some_and(|known| aggregates(&known.object)) {
        return Ok(Action::Done);
    }
    // The informer keeps no rules: there are many of them, and only these few roles ask for them.
    let api: Api<ClusterRole> = environment.cluster_api(&key.cluster);
    let all = api.list(&ListParams::default()).await?.items;
    let Some(found) = all.iter().find(|role| role.name_any() == key.name && aggregates(role)) else {
        return Ok(Action::Done);
    };
    let wanted = rules(found, all.iter());
    let known = found.rules.clone().unwrap_or_default();
    // the order of what was recorded at the start need not be this one
    if known.len() == wanted.len() && wanted.iter().all(|rule| known.contains(rule)) {
        return Ok(Action::Done);
    }
    apply::patch_locked(&api, found, |role| role.rules = Some(wanted)).await?;
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_of_selected_roles_are_put_together() {
        let role = |name: &str, label: &str, verb: &str| -> ClusterRole {
            serde_json::from_value(
                json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": [{"verbs": [verb]}]}),
            )
            .unwrap()
        };
        let aggregate: ClusterRole = serde_json::from_value(json!({"metadata": {"name": "view"}, "aggregationRule": {
            "clusterRoleSelectors": [{"matchLabels": {"to": "view"}}]}}))
        .unwrap();
        let all = [
            role("a", "view", "get"),
            role("b", "edit", "update"),
            role("c", "view", "get"),
            role("d", "view", "list"),
        ];
        let verbs: Vec<String> = rules(&aggregate, all.iter())
            .into_iter()
            .flat_map(|rule| rule.verbs)
            .collect();
        assert_eq!(verbs, ["get", "list"]);
    }
}
