//! Namespace termination: deletes all that is in a namespace and then lets it go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::LogicalCluster;
use gardener_apiserver::definition::Definition;
use gardener_controller::apply;
use gardener_controller::{Action, ObjectRef, Queue, Read};
use gardener_store::ListOptions;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::PostParams;
use serde::Deserialize;
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
    /// Why something could not be deleted.
    failures: Vec<String>,
    /// Whether pods are still there: nothing else goes before them, and nobody counts it.
    waits_for_pods: bool,
}

impl Remaining {
    fn is_nothing(&self) -> bool {
        self.resources.is_empty() && self.failures.is_empty() && !self.waits_for_pods
    }
}

/// What of a pod decides how long it may take to end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ending {
    spec: EndingSpec,
    status: EndingStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EndingSpec {
    termination_grace_period_seconds: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndingStatus {
    phase: String,
}

/// How long the pods of a namespace may still take to end.
fn grace_of<'p>(pods: impl IntoIterator<Item = &'p Ending>, ends_since: Duration) -> Duration {
    let running = pods
        .into_iter()
        .filter(|pod| !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed"));
    let seconds = running.map(|pod| pod.spec.termination_grace_period_seconds).max();
    let grace = Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0));
    if ends_since < grace { grace } else { Duration::ZERO }
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let api: Api<Namespace> = environment.cluster_api(&key.cluster);
    let Some((cluster, _)) = environment.config.server.cluster(&key.cluster) else {
        return Ok(Action::Done);
    };
    let Some(namespace) = api.read_opt(&key.name).await? else {
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
    let remaining = delete_content(&environment, &cluster, &namespace, &key.name).await;
    let wanted = conditions(&remaining);
    let now = environment.clock().time();
    // also where nothing remains: others may hold the namespace, and it was told before what did
    let (told, _) = apply::patch_status(&api, &namespace, |namespace| {
        let status = namespace.status.get_or_insert_default();
        status.conditions = Some(merged(status.conditions.take().unwrap_or_default(), &wanted, &now));
    })
    .await?;
    if remaining.is_nothing() {
        let mut namespace = told;
        let left: Vec<String> = finalizers.into_iter().filter(|own| own != FINALIZER).collect();
        namespace.spec.get_or_insert_default().finalizers = Some(left);
        let _: Namespace = api
            .replace_subresource("finalize", &key.name, &PostParams::default(), &namespace)
            .await?;
        return Ok(Action::Done);
    }
    Ok(Action::RequeueAfter(AGAIN))
}

fn is_of_pods(definition: &Definition) -> bool {
    definition.group.is_empty() && definition.plural == "pods"
}

fn deletable(cluster: &LogicalCluster) -> Vec<Arc<Definition>> {
    let mut topics = BTreeSet::new();
    let mut definitions = cluster.definitions();
    definitions.retain(|definition| {
        definition.namespaced && definition.verbs.contains(&"delete") && topics.insert(definition.topic.clone())
    });
    definitions
}

/// Deletes what is not being deleted yet, pods before all else, and tells what is left.
async fn delete_content(
    environment: &Environment,
    cluster: &Arc<LogicalCluster>,
    namespace: &Namespace,
    name: &str,
) -> Remaining {
    let (mut pods, mut others) = (Remaining::default(), Remaining::default());
    let since = namespace.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let since = since.map(|since| environment.clock().now().duration_since(since));
    let since = since
        .and_then(|since| Duration::try_from(since).ok())
        .unwrap_or_default();
    let (of_pods, of_others): (Vec<_>, Vec<_>) = deletable(cluster)
        .into_iter()
        .partition(|definition| is_of_pods(definition));
    for definition in &of_pods {
        delete_all(environment, cluster, definition, name, since, &mut pods).await;
    }
    if !pods.resources.is_empty() {
        return Remaining {
            failures: pods.failures,
            waits_for_pods: true,
            ..Remaining::default()
        };
    }
    others.failures = pods.failures;
    for definition in &of_others {
        delete_all(environment, cluster, definition, name, since, &mut others).await;
    }
    others
}

/// Deletes what is there of a resource, and adds what stays to `remaining`. `ends_since`: how long the namespace is in deletion.
async fn delete_all(
    environment: &Environment,
    cluster: &Arc<LogicalCluster>,
    definition: &Arc<Definition>,
    namespace: &str,
    ends_since: Duration,
    remaining: &mut Remaining,
) {
    let prefix = format!("{}/{namespace}/", cluster.name());
    let store = &environment.config.server.shared().store;
    if store.count(&definition.topic, &prefix) == 0 {
        return;
    }
    let Ok(listing) = store.list(&definition.topic, &prefix, &ListOptions::default()) else {
        return;
    };
    let grace = match is_of_pods(definition) {
        true => {
            let pods = listing.entries.iter();
            let pods: Vec<Ending> = pods
                .map(|entry| serde_json::from_slice(&entry.value()).unwrap_or_default())
                .collect();
            grace_of(&pods, ends_since)
        }
        false => Duration::ZERO,
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
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    let failed = remaining.failures.len();
    for name in asked {
        let deleted = any::delete(environment, cluster.name(), definition, namespace, name, &options).await;
        if let Err(error) = deleted
            && !error.is_outdated()
        {
            remaining.failures.push(error.told());
        }
    }
    let Ok(listing) = store.list(&definition.topic, &prefix, &ListOptions::default()) else {
        return;
    };
    if listing.entries.is_empty() {
        return;
    }
    let resource = format!("{}.{}", definition.plural, definition.group);
    remaining.resources.insert(resource, listing.entries.len());
    let mut is_held = false;
    let entries = listing.entries.iter();
    for finalizer in entries
        .filter_map(|entry| ownership(entry))
        .flat_map(|own| own.finalizers)
    {
        is_held = true;
        *remaining.finalizers.entry(finalizer).or_default() += 1;
    }
    if !is_held && grace.is_zero() && failed == remaining.failures.len() {
        let version = definition.stored_version().map_or("", |version| version.name.as_str());
        remaining.failures.push(format!(
            "unexpected items still remain in namespace: {namespace} for gvr: {}/{version}, Resource={}",
            definition.group, definition.plural
        ));
    }
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
                sorted(&remaining.failures).join(", ")
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

fn sorted(texts: &[String]) -> Vec<&str> {
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.sort_unstable();
    texts
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
            ..Remaining::default()
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
        let failed = Remaining {
            failures: vec!["b".to_owned(), "a".to_owned()],
            ..Remaining::default()
        };
        let told = conditions(&failed);
        assert_eq!(told[2].3, "Failed to delete all resource types, 2 remaining: a, b");
        // what is there besides pods is told when they are gone
        let waiting = Remaining {
            waits_for_pods: true,
            ..Remaining::default()
        };
        assert!(!waiting.is_nothing() && conditions(&waiting).iter().all(|(_, holds, _, _)| !holds));
    }

    #[test]
    fn pods_have_their_time_to_end() {
        let pod = |seconds: i64, phase: &str| Ending {
            spec: EndingSpec {
                termination_grace_period_seconds: seconds,
            },
            status: EndingStatus {
                phase: phase.to_owned(),
            },
        };
        let pods = [pod(30, "Running"), pod(60, "Failed"), pod(-1, "Pending")];
        let after = |seconds| grace_of(&pods, Duration::from_secs(seconds));
        assert_eq!(
            (after(0), after(29), after(30)),
            (Duration::from_secs(30), Duration::from_secs(30), Duration::ZERO)
        );
        assert_eq!(grace_of(&[], Duration::ZERO), Duration::ZERO);
    }
}
