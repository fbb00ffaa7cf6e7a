//! Garbage collection by owner references: in the background, in the foreground, and orphaning.

use std::sync::Arc;

use gardener_apiserver::LogicalCluster;
use gardener_apiserver::definition::{Definition, Lister};
use gardener_controller::{Action, Queue};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use parking_lot::Mutex;
use serde_json::json;

use super::any;
use crate::Role;
use crate::environment::Environment;
use crate::error::Error;
use crate::topics::{Ownership, Place, Told, ownership};

mod decide;
mod graph;

use decide::{Decision, FOREGROUND, ORPHAN, Owner, decide};
use graph::Graph;

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<Place> = Queue::new();
    let graph: Arc<Mutex<Graph>> = Arc::default();
    let participants = environment.config.participants.clone();
    {
        let (graph, queue) = (Arc::clone(&graph), queue.clone());
        environment.topics.on_change(move |told| {
            let mut graph = graph.lock();
            let affected = match told {
                Told::Listed(topic, listed) => graph.replace(topic, listed),
                Told::Applied(place, ownership) => graph.apply(place, ownership),
                Told::Deleted(place, ownership) => graph.delete(place, ownership),
            };
            let takes_part = |place: &Place| participants.has(&place.cluster, Role::ControllerManager);
            affected
                .into_iter()
                .filter(takes_part)
                .for_each(|place| queue.add(place));
        });
    }
    {
        let (graph, queue) = (Arc::clone(&graph), queue.clone());
        environment.config.participants.on_join(move |cluster, role| {
            if role == Role::ControllerManager {
                graph
                    .lock()
                    .of_cluster(cluster)
                    .into_iter()
                    .for_each(|place| queue.add(place));
            }
        });
    }
    environment.reconcile(
        "garbage-collector",
        Role::ControllerManager,
        8,
        queue,
        move |environment, place| reconcile(environment, Arc::clone(&graph), place),
    );
}

fn read(environment: &Environment, place: &Place) -> Option<Ownership> {
    let path = if place.namespace.is_empty() {
        format!("{}/{}", place.cluster, place.name)
    } else {
        format!("{}/{}/{}", place.cluster, place.namespace, place.name)
    };
    let key = gardener_store::Key::new(place.topic.clone(), path);
    environment
        .config
        .server
        .shared()
        .store
        .get(&key)
        .as_deref()
        .and_then(ownership)
}

/// The resource of an owner reference, if the cluster serves it.
fn definition_of(cluster: &LogicalCluster, owner: &OwnerReference) -> Option<Arc<Definition>> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    cluster.definitions().into_iter().find(|definition| {
        definition.group == group
            && definition
                .versions
                .iter()
                .any(|own| own.name == version && own.kind == owner.kind)
    })
}

fn look_up(cluster: &LogicalCluster, place: &Place, reference: &OwnerReference) -> Owner {
    let Some(definition) = definition_of(cluster, reference) else {
        // its kind is not served now: nobody can say that it is gone
        return Owner::Solid;
    };
    if definition.namespaced && place.namespace.is_empty() {
        return Owner::Solid;
    }
    let namespace = if definition.namespaced {
        place.namespace.as_ref()
    } else {
        ""
    };
    let found = cluster.get(&definition.group, &definition.plural, namespace, &reference.name);
    let Some(metadata) = found.as_ref().and_then(|owner| owner.get("metadata")) else {
        return Owner::Absent;
    };
    if metadata.get("uid").and_then(|uid| uid.as_str()) != Some(&reference.uid) {
        return Owner::Absent;
    }
    let foreground = metadata
        .get("finalizers")
        .and_then(|list| list.as_array())
        .is_some_and(|list| list.iter().any(|one| one == FOREGROUND));
    if metadata.get("deletionTimestamp").is_some() && foreground {
        Owner::WaitsForDependents
    } else {
        Owner::Solid
    }
}

async fn reconcile(environment: Arc<Environment>, graph: Arc<Mutex<Graph>>, place: Place) -> Result<Action, Error> {
    let Some((cluster, _)) = environment.config.server.cluster(&place.cluster) else {
        return Ok(Action::Done);
    };
    let (group, resource) = place.resource();
    let (Some(object), Some(definition)) = (read(&environment, &place), cluster.find(group, resource)) else {
        return Ok(Action::Done);
    };
    let owners: Vec<Owner> = object
        .owner_references
        .iter()
        .map(|reference| look_up(&cluster, &place, reference))
        .collect();
    let dependents = graph.lock().dependents(&place.cluster, &object.uid);
    match decide(&object, &owners, &dependents) {
        Decision::Nothing => {}
        Decision::Delete { policy } => {
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
                "preconditions": {"uid": object.uid},
            });
            let (namespace, name) = (&place.namespace, &place.name);
            any::delete(&environment, &place.cluster, &definition, namespace, name, &options).await?;
        }
        Decision::SetOwners(owners) => {
            set_owners(&environment, &place, &definition, &object, &owners).await?;
        }
        Decision::DeleteDependents => {
            for dependent in dependents {
                collect_blocking(&environment, &cluster, &dependent.place, &object.uid).await?;
            }
        }
        Decision::Orphan => {
            for dependent in dependents {
                let (group, resource) = dependent.place.resource();
                let (Some(live), Some(definition)) =
                    (read(&environment, &dependent.place), cluster.find(group, resource))
                else {
                    continue;
                };
                let mut owners = live.owner_references.clone();
                owners.retain(|owner| owner.uid != object.uid);
                if owners.len() != live.owner_references.len() {
                    set_owners(&environment, &dependent.place, &definition, &live, &owners).await?;
                }
            }
            drop_finalizer(&environment, &place, &definition, &object, ORPHAN).await?;
        }
        Decision::DropForeground => {
            drop_finalizer(&environment, &place, &definition, &object, FOREGROUND).await?;
        }
    }
    Ok(Action::Done)
}

/// Deletes a dependent that keeps its owner from going.
async fn collect_blocking(
    environment: &Environment,
    cluster: &LogicalCluster,
    place: &Place,
    owner: &str,
) -> Result<(), Error> {
    let (group, resource) = place.resource();
    let (Some(live), Some(definition)) = (read(environment, place), cluster.find(group, resource)) else {
        return Ok(());
    };
    if live.deletion_timestamp.is_some() || !live.owner_references.iter().any(|own| own.uid == owner) {
        return Ok(());
    }
    let others: Vec<OwnerReference> = live
        .owner_references
        .iter()
        .filter(|reference| reference.uid != owner)
        .cloned()
        .collect();
    if others
        .iter()
        .any(|reference| look_up(cluster, place, reference) == Owner::Solid)
    {
        return set_owners(environment, place, &definition, &live, &others).await;
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
        "preconditions": {"uid": live.uid},
    });
    match any::delete(
        environment,
        &place.cluster,
        &definition,
        &place.namespace,
        &place.name,
        &options,
    )
    .await
    {
        Err(error) if error.is_outdated() => Ok(()),
        other => other,
    }
}

async fn set_owners(
    environment: &Environment,
    place: &Place,
    definition: &Arc<Definition>,
    object: &Ownership,
    owners: &[OwnerReference],
) -> Result<(), Error> {
    let owners = if owners.is_empty() { json!(null) } else { json!(owners) };
    let patch = json!({"metadata": {
        "uid": object.uid, "resourceVersion": object.resource_version, "ownerReferences": owners,
    }});
    any::merge(
        environment,
        &place.cluster,
        definition,
        &place.namespace,
        &place.name,
        &patch,
    )
    .await
}

async fn drop_finalizer(
    environment: &Environment,
    place: &Place,
    definition: &Arc<Definition>,
    object: &Ownership,
    finalizer: &str,
) -> Result<(), Error> {
    let left: Vec<&String> = object.finalizers.iter().filter(|own| *own != finalizer).collect();
    let left = if left.is_empty() { json!(null) } else { json!(left) };
    let patch = json!({"metadata": {
        "uid": object.uid, "resourceVersion": object.resource_version, "finalizers": left,
    }});
    any::merge(
        environment,
        &place.cluster,
        definition,
        &place.namespace,
        &place.name,
        &patch,
    )
    .await
}
