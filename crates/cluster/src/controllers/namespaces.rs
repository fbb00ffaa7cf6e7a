//! Namespace termination: deletes all that is in a namespace and then lets it go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::LogicalCluster;
use gardener_apiserver::definition::Definition;
use gardener_controller::apply;
use gardener_controller::{Action, ObjectRef, Queue};
use gardener_store::ListOptions;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::any;
use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;
use crate::topics::{Told, ownership};

/// The finalizer that this controller takes away.
const FINALIZER: &str = "kubernetes";
/// How soon to look again when nothing tells of a change.
const AGAIN: Duration = Duration::from_secs(15);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed_if(
        &environment.informers.namespaces,
        &queue,
        Role::ControllerManager,
        |change| change.object().object.metadata.deletion_timestamp.is_some(),
        |namespace| vec![key_of(namespace)],
    );
    let (namespaces, added) = (environment.informers.namespaces.clone(), queue.clone());
    environment.topics.on_change(move |told| {
        let Told::Deleted(place, _) = told else { return };
        if place.namespace.is_empty() {
            return;
        }
        let key = ObjectRef::cluster_scoped(place.namespace.as_ref()).in_cluster(place.cluster.as_ref());
        let ends = |namespace: Arc<gardener_controller::Clustered<Namespace>>| {
            namespace.object.metadata.deletion_timestamp.is_some()
        };
        if namespaces.get(&key).is_some_and(ends) {
            added.add(key);
        }
    });
    environment.reconcile("namespace", Role::ControllerManager, 8, queue, reconcile);
}

/// What is still in a namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Remaining {
    /// How many objects, by `<resource>.<group>`.
    resources: BTreeMap<String, usize>,
    /// How many objects, by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// What could not be deleted, and why.
    failures: Vec<String>,
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let api: Api<Namespace> = environment.cluster_api(&key.cluster);
    let Some((cluster, _)) = environment.config.server.cluster(&key.cluster) else {
        return Ok(Action::Done);
    };
    let Some(namespace) = api.get_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let finalizers = namespace
        .spec
        .as_ref()
        .and_then(|spec| spec.finalizers.clone())
        .unwrap_or_default();
    if namespace.metadata.deletion_timestamp.is_none() || !finalizers.iter().any(|own| own == FINALIZER) {
        return Ok(Action::Done);
    }
    let remaining = delete_content(&environment, &cluster, &key.name).await;
    if remaining == Remaining::default() {
        let mut namespace = namespace;
        let left: Vec<String> = finalizers.into_iter().filter(|own| own != FINALIZER).collect();
        namespace.spec.get_or_insert_default().finalizers = Some(left);
        let _: Namespace = api
            .replace_subresource("finalize", &key.name, &PostParams::default(), &namespace)
            .await?;
        return Ok(Action::Done);
    }
    let wanted = conditions(&remaining);
    let now = environment.clock().time();
    apply::patch_status(&api, &namespace, |namespace| {
        let status = namespace.status.get_or_insert_default();
        status.conditions = Some(merged(status.conditions.take().unwrap_or_default(), &wanted, &now));
    })
    .await?;
    Ok(Action::RequeueAfter(AGAIN))
}

fn deletable(cluster: &LogicalCluster) -> Vec<Arc<Definition>> {
    let mut topics = BTreeSet::new();
    let mut definitions = cluster.definitions();
    definitions.retain(|definition| {
        definition.namespaced && definition.verbs.contains(&"delete") && topics.insert(definition.topic.clone())
    });
    definitions
}

/// Deletes what is not being deleted yet, and tells what is left.
async fn delete_content(environment: &Environment, cluster: &Arc<LogicalCluster>, namespace: &str) -> Remaining {
    let mut remaining = Remaining::default();
    let prefix = format!("{}/{namespace}/", cluster.name());
    let store = &environment.config.server.shared().store;
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    for definition in deletable(cluster) {
        if store.count(&definition.topic, &prefix) == 0 {
            continue;
        }
        let Ok(listing) = store.list(&definition.topic, &prefix, &ListOptions::default()) else {
            continue;
        };
        let entries = listing.entries.iter();
        let staying = entries.filter(|entry| ownership(entry).is_some_and(|own| own.deletion_timestamp.is_none()));
        let names: Vec<&str> = staying.filter_map(|entry| entry.key.path.rsplit('/').next()).collect();
        // the collection goes at once, where the kind has that
        let asked = if names.len() > 1 && definition.verbs.contains(&"deletecollection") {
            vec![""]
        } else {
            names
        };
        for name in asked {
            let deleted = any::delete(environment, cluster.name(), &definition, namespace, name, &options).await;
            if let Err(error) = deleted
                && !error.is_outdated()
            {
                let what = format!("{} {name}", definition.plural);
                remaining.failures.push(format!("{}: {error}", what.trim_end()));
            }
        }
        let Ok(listing) = store.list(&definition.topic, &prefix, &ListOptions::default()) else {
            continue;
        };
        if listing.entries.is_empty() {
            continue;
        }
        let resource = format!("{}.{}", definition.plural, definition.group);
        remaining.resources.insert(resource, listing.entries.len());
        for finalizer in listing
            .entries
            .iter()
            .filter_map(|entry| ownership(entry))
            .flat_map(|own| own.finalizers)
        {
            *remaining.finalizers.entry(finalizer).or_default() += 1;
        }
    }
    remaining
}

fn conditions(remaining: &Remaining) -> Vec<(&'static str, bool, &'static str, String)> {
    let list = |counts: &BTreeMap<String, usize>, what: &dyn Fn(&String, usize) -> String| {
        counts
            .iter()
            .map(|(name, count)| what(name, *count))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let resources = list(&remaining.resources, &|name, count| {
        format!("{name} has {count} resource instances")
    });
    let finalizers = list(&remaining.finalizers, &|name, count| {
        format!("{name} in {count} resource instances")
    });
    vec![
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        if remaining.failures.is_empty() {
            (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".into(),
            )
        } else {
            let failures = format!(
                "Failed to delete all resource types, {} remaining: {}",
                remaining.failures.len(),
                remaining.failures.join(", ")
            );
            (
                "NamespaceDeletionContentFailure",
                true,
                "ContentDeletionFailed",
                failures,
            )
        },
        if remaining.resources.is_empty() {
            (
                "NamespaceContentRemaining",
                false,
                "ContentRemoved",
                "All content successfully removed".into(),
            )
        } else {
            let text = format!("Some resources are remaining: {resources}");
            ("NamespaceContentRemaining", true, "SomeResourcesRemain", text)
        },
        if remaining.finalizers.is_empty() {
            (
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".into(),
            )
        } else {
            let text = format!("Some content in the namespace has finalizers remaining: {finalizers}");
            ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", text)
        },
    ]
}

fn merged(
    mut list: Vec<NamespaceCondition>,
    wanted: &[(&'static str, bool, &'static str, String)],
    now: &Time,
) -> Vec<NamespaceCondition> {
    for (type_, holds, reason, message) in wanted {
        let status = if *holds { "True" } else { "False" };
        let before = list.iter().find(|own| own.type_ == *type_);
        let since = before
            .filter(|own| own.status == status)
            .and_then(|own| own.last_transition_time.clone());
        let condition = NamespaceCondition {
            type_: (*type_).to_owned(),
            status: status.to_owned(),
            reason: Some((*reason).to_owned()),
            message: Some(message.clone()),
            last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
        };
        match list.iter_mut().find(|own| own.type_ == *type_) {
            Some(own) => *own = condition,
            None => list.push(condition),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_tell_what_remains() {
        let remaining = Remaining {
            resources: [("pods.".to_owned(), 2)].into(),
            finalizers: [("example.com/keep".to_owned(), 1)].into(),
            failures: Vec::new(),
        };
        let told = conditions(&remaining);
        let holds: Vec<bool> = told.iter().map(|(_, holds, _, _)| *holds).collect();
        assert_eq!(holds, [false, false, false, true, true]);
        assert_eq!(
            told[3].3,
            "Some resources are remaining: pods. has 2 resource instances"
        );
        assert!(told[4].3.ends_with("example.com/keep in 1 resource instances"));
        assert!(conditions(&Remaining::default()).iter().all(|(_, holds, _, _)| !holds));
    }
}
