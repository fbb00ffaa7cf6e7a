//! Follows the objects of every kind of every cluster at once, by what their metadata says about owners and deletion.
//!
//! Reads the store and not the API: kinds come and go with CustomResourceDefinitions, and of most objects nothing but a few members is of
//! interest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::skim;
use gardener_apiserver::{ALL_CLUSTERS, Server};
use gardener_store::{Entry, EventKind, ListOptions, Topic};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::environment::InCluster;

/// How long to wait when the store cannot be read.
const PAUSE: Duration = Duration::from_secs(1);
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Where an object of any kind is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub cluster: Arc<str>,
    /// `<group>/<resource>`.
    pub topic: Topic,
    /// Empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Place {
    fn of(entry: &Entry) -> Option<Self> {
        let mut parts = entry.key.path.split('/');
        let (cluster, second, third) = (parts.next()?, parts.next()?, parts.next());
        let (namespace, name) = third.map_or(("", second), |name| (second, name));
        Some(Self {
            cluster: cluster.into(),
            topic: entry.key.topic.clone(),
            namespace: namespace.into(),
            name: name.into(),
        })
    }

    /// Group and plural name of the resource.
    pub fn resource(&self) -> (&str, &str) {
        self.topic.as_str().split_once('/').unwrap_or(("", self.topic.as_str()))
    }
}

impl InCluster for Place {
    fn cluster(&self) -> &str {
        &self.cluster
    }
}

/// What metadata says about an object's ownership and end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ownership {
    pub uid: String,
    pub owner_references: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    pub deletion_timestamp: Option<String>,
    pub resource_version: String,
}

/// The ownership of a stored object. None, if it cannot be read: then nothing may be concluded from it.
pub(crate) fn ownership(entry: &Entry) -> Option<Ownership> {
    let mut ownership = Ownership::default();
    let mut is_read = true;
    // most of the metadata is who owns which fields: it is not read
    skim::pick(&entry.head(), &OWNERSHIP, &mut |pointer, value| {
        is_read &= match pointer {
            UID => read(value, &mut ownership.uid),
            OWNERS => read(value, &mut ownership.owner_references),
            FINALIZERS => read(value, &mut ownership.finalizers),
            DELETION => read(value, &mut ownership.deletion_timestamp),
            _ => read(value, &mut ownership.resource_version),
        };
    })?;
    is_read.then_some(ownership)
}

const UID: &str = "/metadata/uid";
const OWNERS: &str = "/metadata/ownerReferences";
const FINALIZERS: &str = "/metadata/finalizers";
const DELETION: &str = "/metadata/deletionTimestamp";
const OWNERSHIP: [&str; 5] = [UID, OWNERS, FINALIZERS, DELETION, "/metadata/resourceVersion"];

/// Reads a member's value; false, if it is no such thing. Null is as if it were not there.
fn read<T: DeserializeOwned>(value: &[u8], member: &mut T) -> bool {
    let read = serde_json::from_slice::<Option<T>>(value);
    read.map(|read| read.into_iter().for_each(|read| *member = read))
        .is_ok()
}

/// What happened to an object.
pub(crate) enum Told<'a> {
    /// All objects of a topic, after events may have been missed; objects not in it are gone.
    Listed(&'a Topic, &'a [(Place, Ownership)]),
    /// An object is there, new or changed.
    Applied(&'a Place, &'a Ownership),
    /// An object is gone; this was its last state.
    Deleted(&'a Place, &'a Ownership),
}

type Handler = Box<dyn Fn(&Told<'_>) + Send + Sync>;

struct Shared {
    server: Server,
    stop: CancellationToken,
    tasks: TaskTracker,
    followed: Mutex<BTreeSet<Topic>>,
    handlers: RwLock<Vec<Handler>>,
}

/// Follows all topics. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Topics {
    shared: Arc<Shared>,
}

impl Topics {
    pub fn new(server: Server, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self {
            shared: Arc::new(Shared {
                server,
                stop,
                tasks,
                followed: Mutex::default(),
                handlers: RwLock::default(),
            }),
        }
    }

    /// Calls `handler` for everything from [`Topics::start`] on. It must not block.
    pub fn on_change(&self, handler: impl Fn(&Told<'_>) + Send + Sync + 'static) {
        self.shared.handlers.write().push(Box::new(handler));
    }

    /// Begins to follow.
    pub fn start(&self) {
        self.ensure(&Topic::new("apiextensions.k8s.io", "customresourcedefinitions"));
        self.add_cluster(ALL_CLUSTERS);
        for topic in self.shared.server.shared().store.topics() {
            self.ensure(&topic);
        }
    }

    /// Follows also the kinds that a cluster serves.
    pub fn add_cluster(&self, cluster: &str) {
        if let Some((cluster, _)) = self.shared.server.cluster(cluster) {
            for definition in cluster.definitions() {
                self.ensure(&definition.topic);
            }
        }
    }

    fn ensure(&self, topic: &Topic) {
        // events have no owners, and no object is made of tokens and reviews
        if topic.as_str() == "/events" || !self.shared.followed.lock().insert(topic.clone()) {
            return;
        }
        let (own, topic) = (self.clone(), topic.clone());
        let stop = self.shared.stop.clone();
        self.shared.tasks.spawn(async move {
            stop.run_until_cancelled(own.follow(topic)).await;
        });
    }

    async fn follow(self, topic: Topic) {
        let store = Arc::clone(&self.shared.server.shared().store);
        loop {
            let Ok(listing) = store.list(&topic, "", &ListOptions::default()) else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let listed: Vec<(Place, Ownership)> = listing.entries.iter().filter_map(|entry| self.read(entry)).collect();
            self.tell(&Told::Listed(&topic, &listed));
            let Ok(mut watch) = store.watch(&topic, "", listing.revision) else {
                continue;
            };
            while let Ok(event) = watch.next().await {
                let Some((place, ownership)) = self.read(&event.entry) else {
                    continue;
                };
                self.tell(&match event.kind {
                    EventKind::Deleted => Told::Deleted(&place, &ownership),
                    EventKind::Created | EventKind::Updated => Told::Applied(&place, &ownership),
                });
            }
        }
    }

    fn tell(&self, told: &Told<'_>) {
        self.shared.handlers.read().iter().for_each(|handler| handler(told));
    }

    fn read(&self, entry: &Entry) -> Option<(Place, Ownership)> {
        let place = Place::of(entry)?;
        // definitions are named after what they define
        if entry.key.topic.as_str() == DEFINITIONS
            && let Some((plural, group)) = place.name.split_once('.')
        {
            self.ensure(&Topic::new(group, plural));
        }
        Some((place, ownership(entry)?))
    }
}

#[cfg(test)]
mod tests {
    use gardener_apiserver::object;
    use gardener_store::{Change, Expect, Key, MemoryStore, Options, Store};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn ownership_is_read_of_what_nobody_changed_for_long() {
        let owners = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o", "blockOwnerDeletion": true}]);
        let cases = [
            (json!({}), Ownership::default()),
            (
                json!({"ownerReferences": owners, "finalizers": ["a/b"], "deletionTimestamp": "now"}),
                Ownership {
                    owner_references: serde_json::from_value(owners.clone()).unwrap(),
                    finalizers: vec!["a/b".into()],
                    deletion_timestamp: Some("now".into()),
                    ..Ownership::default()
                },
            ),
            (json!({"finalizers": null}), Ownership::default()),
        ];
        let topic = Topic::new("", "configmaps");
        for (metadata, wanted) in cases {
            let mut metadata = metadata;
            metadata["uid"] = json!("u");
            metadata["annotations"] = json!({"text": "again and ".repeat(40)});
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "over ".repeat(60)},
            });
            for options in [Options::default(), Options::all_old()] {
                let store = MemoryStore::new(object::FORM, options);
                let key = Key::new(topic.clone(), "c/n/x");
                let put = Change::Put {
                    key: key.clone(),
                    value: object::encode(&object),
                    expect: Expect::Any,
                };
                store.commit(put).await.unwrap();
                let entry = store.get(&key).unwrap();
                let wanted = Ownership {
                    uid: "u".into(),
                    resource_version: "1".into(),
                    ..wanted.clone()
                };
                assert_eq!(ownership(&entry), Some(wanted), "{object}");
            }
        }
    }
}
