//! Garbage collection by owner references: in the background, in the foreground, and orphaning.

use std::sync::Arc;

use gardener_apiserver::LogicalCluster;
use gardener_apiserver::definition::Definition;
use gardener_controller::{Action, Queue};
use gardener_store::{Entry, Key};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::any;
use crate::Role;
use crate::environment::Environment;
use crate::error::Error;
use crate::topics::{Ownership, Place, Told, ownership};

mod decide;
mod graph;

use decide::{Decision, FOREGROUND, ORPHAN, Owner, decide, unblocked};
use graph::{Dependent, Graph};

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

/// What is stored there; none, if nothing is.
fn stored(environment: &Environment, place: &Place) -> Option<Arc<Entry>> {
    let path = if place.namespace.is_empty() {
        format!("{}/{}", place.cluster, place.name)
    } else {
        format!("{}/{}/{}", place.cluster, place.namespace, place.name)
    };
    let key = Key::new(place.topic.clone(), path);
    environment.config.server.shared().store.get(&key)
}

fn read(environment: &Environment, place: &Place) -> Option<Ownership> {
    stored(environment, place).as_deref().and_then(ownership)
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

fn look_up(environment: &Environment, cluster: &LogicalCluster, place: &Place, reference: &OwnerReference) -> Owner {
    let Some(definition) = definition_of(cluster, reference) else {
        return Owner::Unknown;
    };
    if definition.namespaced && place.namespace.is_empty() {
        return Owner::Unknown;
    }
    let owner = Place {
        cluster: Arc::clone(&place.cluster),
        topic: definition.topic.clone(),
        namespace: match definition.namespaced {
            true => Arc::clone(&place.namespace),
            false => "".into(),
        },
        name: reference.name.as_str().into(),
    };
    let Some(entry) = stored(environment, &owner) else {
        return Owner::Absent;
    };
    let Some(found) = ownership(&entry) else {
        return Owner::Unknown;
    };
    if found.uid != reference.uid {
        return Owner::Absent;
    }
    let foreground = found.finalizers.iter().any(|one| one == FOREGROUND);
    if found.deletion_timestamp.is_some() && foreground {
        Owner::WaitsForDependents
    } else {
        Owner::Solid
    }
}

/// An object as it is now, and what is known of it.
struct Live {
    place: Place,
    object: Ownership,
    definition: Arc<Definition>,
    dependents: Vec<Dependent>,
}

impl Live {
    fn of(
        environment: &Environment,
        graph: &Mutex<Graph>,
        cluster: &Arc<LogicalCluster>,
        place: &Place,
    ) -> Option<Self> {
        let (group, resource) = place.resource();
        let (object, definition) = (read(environment, place)?, cluster.find(group, resource)?);
        let dependents = graph.lock().dependents(&place.cluster, &object.uid);
        Some(Self {
            place: place.clone(),
            object,
            definition,
            dependents,
        })
    }

    fn decide(&self, environment: &Environment, cluster: &LogicalCluster) -> Decision {
        let references = self.object.owner_references.iter();
        let owners: Vec<Owner> = references
            .map(|reference| look_up(environment, cluster, &self.place, reference))
            .collect();
        decide(&self.object, &owners, &self.dependents)
    }

    /// Deletes the object or takes owners from it, if that is decided.
    async fn collect(&self, environment: &Environment, decision: Decision) -> Result<(), Error> {
        match decision {
            Decision::Delete { policy } => self.delete(environment, policy).await,
            Decision::SetOwners(owners) => self.set_owners(environment, &owners).await,
            Decision::DeleteWithDependents => {
                let in_circle = self.dependents.iter().any(|dependent| {
                    let live = read(environment, &dependent.place);
                    live.is_some_and(|live| {
                        live.deletion_timestamp.is_some() && live.finalizers.iter().any(|own| own == FOREGROUND)
                    })
                });
                match unblocked(&self.object.owner_references).filter(|_| in_circle) {
                    // the change brings it back here
                    Some(owners) => self.set_owners(environment, &owners).await,
                    None => self.delete(environment, "Foreground").await,
                }
            }
            Decision::Nothing | Decision::DeleteDependents | Decision::Orphan | Decision::DropForeground => Ok(()),
        }
    }

    /// Deletes the object, if its owners are still those of which was decided.
    async fn delete(&self, environment: &Environment, policy: &str) -> Result<(), Error> {
        let Self { place, object, .. } = self;
        let send = async |preconditions: Value| {
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy, "preconditions": preconditions,
            });
            let (cluster, namespace, name) = (&place.cluster, &place.namespace, &place.name);
            any::delete(environment, cluster, &self.definition, namespace, name, &options).await
        };
        let of_revision = json!({"uid": object.uid, "resourceVersion": object.resource_version});
        let deleted = match send(of_revision).await {
            // other changes do not keep it
            Err(error) if error.is_outdated() => match read(environment, place) {
                Some(live) if live.uid == object.uid && live.owner_references == object.owner_references => {
                    send(json!({"uid": object.uid})).await
                }
                Some(live) if live.uid == object.uid => Err(error),
                _ => Ok(()),
            },
            other => other,
        };
        match deleted {
            Err(error) if error.is_outdated() && read(environment, place).is_none() => Ok(()),
            other => other,
        }
    }

    async fn set_owners(&self, environment: &Environment, owners: &[OwnerReference]) -> Result<(), Error> {
        let owners = if owners.is_empty() { json!(null) } else { json!(owners) };
        self.merge(environment, "ownerReferences", owners).await
    }

    async fn drop_finalizer(&self, environment: &Environment, finalizer: &str) -> Result<(), Error> {
        let own = self.object.finalizers.iter();
        let left: Vec<&String> = own.filter(|own| *own != finalizer).collect();
        let left = if left.is_empty() { json!(null) } else { json!(left) };
        self.merge(environment, "finalizers", left).await
    }

    /// Sets a list of the metadata, if the object is still as it was.
    async fn merge(&self, environment: &Environment, list: &str, value: Value) -> Result<(), Error> {
        let Self { place, object, .. } = self;
        let patch = json!({"metadata": {
            "uid": object.uid, "resourceVersion": object.resource_version, list: value,
        }});
        let (cluster, namespace, name) = (&place.cluster, &place.namespace, &place.name);
        any::merge(environment, cluster, &self.definition, namespace, name, &patch).await
    }
}

async fn reconcile(environment: Arc<Environment>, graph: Arc<Mutex<Graph>>, place: Place) -> Result<Action, Error> {
    let Some((cluster, _)) = environment.config.server.cluster(&place.cluster) else {
        return Ok(Action::Done);
    };
    let Some(live) = Live::of(&environment, &graph, &cluster, &place) else {
        return Ok(Action::Done);
    };
    match live.decide(&environment, &cluster) {
        Decision::DeleteDependents => {
            for dependent in &live.dependents {
                // what is in deletion is looked at by itself
                let dependent = Live::of(&environment, &graph, &cluster, &dependent.place);
                if let Some(dependent) = dependent.filter(|one| one.object.deletion_timestamp.is_none()) {
                    let decision = dependent.decide(&environment, &cluster);
                    dependent.collect(&environment, decision).await?;
                }
            }
        }
        Decision::Orphan => {
            for dependent in &live.dependents {
                let Some(dependent) = Live::of(&environment, &graph, &cluster, &dependent.place) else {
                    continue;
                };
                let mut owners = dependent.object.owner_references.clone();
                owners.retain(|owner| owner.uid != live.object.uid);
                if owners.len() != dependent.object.owner_references.len() {
                    dependent.set_owners(&environment, &owners).await?;
                }
            }
            live.drop_finalizer(&environment, ORPHAN).await?;
        }
        Decision::DropForeground => live.drop_finalizer(&environment, FOREGROUND).await?,
        decision => live.collect(&environment, decision).await?,
    }
    Ok(Action::Done)
}
