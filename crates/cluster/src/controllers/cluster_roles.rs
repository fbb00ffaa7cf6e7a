//! ClusterRoles that are put together from others by label.
//!
//! A fresh cluster has dozens of ClusterRoles, of which a few are put together, once. So nothing is kept of them here: any change of one is a
//! reason to look at all of its cluster.

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::selector::LabelSelector;
use gardener_controller::{Action, Queue, Read, apply};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, Whole};
use crate::error::Error;
use crate::topics::{Place, Told};

const RESOURCE: (&str, &str) = ("rbac.authorization.k8s.io", "clusterroles");
/// How long changes are gathered: whoever installs something makes many roles, one after the other.
const GATHERING: Duration = Duration::from_millis(100);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<Whole> = Queue::new();
    let (changed, joined) = (queue.clone(), queue.clone());
    environment.topics.on_change(move |told| {
        let add = |place: &Place| changed.add_after(Whole(Arc::clone(&place.cluster)), GATHERING);
        match told {
            Told::Listed(_, listed) => {
                let roles = listed.iter().map(|(place, _)| place);
                roles.filter(|place| place.resource() == RESOURCE).for_each(add);
            }
            Told::Applied(place, _) | Told::Deleted(place, _) if place.resource() == RESOURCE => add(place),
            Told::Applied(..) | Told::Deleted(..) => {}
        }
    });
    environment.config.participants.on_join(move |cluster, role| {
        if role == Role::ControllerManager {
            joined.add(Whole(cluster.into()));
        }
    });
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

async fn reconcile(environment: Arc<Environment>, cluster: Whole) -> Result<Action, Error> {
    let api: Api<ClusterRole> = environment.cluster_api(&cluster.0);
    let all = api.read_list(&ListParams::default()).await?;
    for aggregate in all.iter().filter(|role| role.aggregation_rule.is_some()) {
        let wanted = rules(aggregate, all.iter());
        let known = aggregate.rules.as_deref().unwrap_or_default();
        // the order of what was recorded at the start need not be this one
        if known.len() != wanted.len() || !wanted.iter().all(|rule| known.contains(rule)) {
            apply::patch_locked(&api, aggregate, |role| role.rules = Some(wanted)).await?;
        }
    }
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
