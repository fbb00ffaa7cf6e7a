//! Kinds of another API server. A server behind an aggregator serves its own kinds only, but admission asks for Namespaces, Secrets, webhooks and more:
//! those are followed where they are served, and read here as if they were the cluster's. Nobody is served them, and nothing is written there.
//!
//! The copy lags behind a little. What is not in it is asked for where it is served, so that nothing is refused because of what was made just now.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use gardener_store::{Change, Expect, Form, Key, ListOptions, MemoryStore, Store};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::core::Selector;
use kube::discovery::Scope;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::cluster::ResourceSet;
use crate::definition::Definition;
use crate::{blocking, meta, object};

/// How long an object that the copy lacks is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A copy of another server's objects.
pub struct Elsewhere {
    cluster: String,
    resources: ResourceSet,
    store: Arc<dyn Store>,
    client: Client,
    /// Kinds that were not read yet.
    waiting: Mutex<BTreeSet<String>>,
    /// Kinds that are not followed, as the other server told of them.
    found: Mutex<Vec<(ApiResource, bool)>>,
    changed: Notify,
}

impl Elsewhere {
    /// An empty copy, for the logical cluster of this name, of those kinds that `client` reads. [`Elsewhere::follow`] fills it.
    pub fn new(cluster: &str, resources: ResourceSet, client: Client) -> Self {
        let waiting = resources.iter().map(|definition| name_of(definition)).collect();
        // objects keep the versions that the other server gave them
        let form = Form {
            stamp: |value, _| value.clone(),
            ..object::FORM
        };
        Self {
            cluster: cluster.to_owned(),
            resources,
            store: Arc::new(MemoryStore::new(form, gardener_store::Options::default())),
            client,
            waiting: Mutex::new(waiting),
            found: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// The definition of a kind that is read here.
    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<&Arc<Definition>> {
        self.resources.get(group, plural)
    }

    /// The definitions of all kinds that are read here.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.resources.iter()
    }

    /// Where the copy is.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The kinds that were not read yet.
    pub fn waiting(&self) -> Vec<String> {
        self.waiting.lock().iter().cloned().collect()
    }

    /// Waits until every kind was read once.
    pub async fn complete(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.waiting.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Follows all kinds. Does not end.
    pub async fn follow(&self) {
        futures::future::join_all(self.resources.iter().map(|definition| self.follow_one(definition))).await;
    }

    async fn follow_one(&self, definition: &Definition) {
        let Some(resource) = resource_of(definition) else {
            return;
        };
        let name = name_of(definition);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut seen = BTreeSet::new();
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Apply(found))) => self.put(definition, &resource, &found).await,
                Ok(Some(watcher::Event::Delete(found))) => self.delete(self.key(definition, &found)).await,
                Ok(Some(watcher::Event::Init)) => seen.clear(),
                Ok(Some(watcher::Event::InitApply(found))) => {
                    seen.insert(self.key(definition, &found));
                    self.put(definition, &resource, &found).await;
                }
                Ok(Some(watcher::Event::InitDone)) => {
                    let there = self.store.list(&definition.topic, "", &ListOptions::default());
                    let gone = there.map(|listing| listing.entries).unwrap_or_default();
                    for entry in gone.iter().filter(|entry| !seen.contains(&entry.key)) {
                        self.delete(entry.key.clone()).await;
                    }
                    seen.clear();
                    self.waiting.lock().remove(&name);
                    self.changed.notify_waiters();
                }
                Ok(None) => return,
                Err(error) => tracing::warn!(resource = name, %error, "cannot be followed; will be tried again"),
            }
        }
    }

    fn key(&self, definition: &Definition, found: &DynamicObject) -> Key {
        let own = &found.metadata;
        let name = own.name.as_deref().unwrap_or_default();
        let path = match own.namespace.as_deref().filter(|_| definition.namespaced) {
            Some(namespace) => format!("{}/{namespace}/{name}", self.cluster),
            None => format!("{}/{name}", self.cluster),
        };
        Key::new(definition.topic.clone(), path)
    }

    async fn put(&self, definition: &Definition, resource: &ApiResource, found: &DynamicObject) {
        let change = Change::Put {
            key: self.key(definition, found),
            expect: Expect::Any,
            value: object::encode(&value_of(resource, found)),
        };
        if let Err(error) = self.store.commit(change).await {
            tracing::warn!(resource = resource.plural, %error, "an object cannot be kept");
        }
    }

    async fn delete(&self, key: Key) {
        let expect = Expect::Any;
        // what is not there need not go
        let _ = self.store.commit(Change::Delete { key, expect }).await;
    }

    fn api(&self, definition: &Definition, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        match definition.namespaced {
            true => Api::namespaced_with(self.client.clone(), namespace, resource),
            false => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Asks the other server whether it would create an object.
    ///
    /// # Errors
    /// What it says.
    pub(crate) async fn try_to_create(
        &self,
        definition: &Definition,
        namespace: &str,
        object: &Value,
    ) -> Result<(), String> {
        let resource = resource_of(definition).ok_or("the other server's kind has no version")?;
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        let parameters = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let asked = self.api(definition, &resource, namespace);
        match tokio::time::timeout(PATIENCE, asked.create(&parameters, &object)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the other server did not answer within {PATIENCE:?}")),
        }
    }

    /// Asks the other server for a kind that is not followed here. Answers whether its objects live in namespaces, too.
    pub(crate) async fn discover(&self, group: &str, version: &str, kind: &str) -> Option<(ApiResource, bool)> {
        let is_meant = |own: &ApiResource| own.group == group && own.version == version && own.kind == kind;
        let known = self.found.lock().iter().find(|(own, _)| is_meant(own)).cloned();
        if known.is_some() {
            return known;
        }
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let asked = kube::discovery::pinned_kind(&self.client, &wanted);
        let (resource, capabilities) = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
        let found = (resource, capabilities.scope == Scope::Namespaced);
        self.found.lock().push(found.clone());
        Some(found)
    }

    /// Asks the other server for objects of a kind that is not followed here: for the one of a name, or those that a selector selects.
    ///
    /// # Errors
    /// What it says, or that it says nothing.
    pub(crate) async fn read(
        &self,
        (resource, namespaced): &(ApiResource, bool),
        namespace: &str,
        which: Result<&str, Selector>,
    ) -> Result<Vec<Value>, String> {
        let api: Api<DynamicObject> = match namespaced {
            true => Api::namespaced_with(self.client.clone(), namespace, resource),
            false => Api::all_with(self.client.clone(), resource),
        };
        let reading = async {
            Ok(match which {
                Ok(name) => api.get_opt(name).await?.into_iter().collect(),
                Err(selector) => api.list(&ListParams::default().labels_from(&selector)).await?.items,
            })
        };
        let read: Result<Vec<DynamicObject>, kube::Error> = match tokio::time::timeout(PATIENCE, reading).await {
            Ok(read) => read,
            Err(_) => return Err(format!("the other server did not answer within {PATIENCE:?}")),
        };
        let found = read.map_err(|error| error.to_string())?;
        Ok(found.iter().map(|own| value_of(resource, own)).collect())
    }

    /// Asks the other server for one object. Blocks the thread, as its callers are not asynchronous.
    pub(crate) fn fetch(&self, definition: &Definition, namespace: &str, name: &str) -> Option<Value> {
        let resource = resource_of(definition)?;
        if name.is_empty() || (definition.namespaced && namespace.is_empty()) {
            return None;
        }
        let api = self.api(definition, &resource, namespace);
        let answered = blocking::wait(PATIENCE, api.get_opt(name))?;
        match answered {
            Ok(found) => found.map(|found| value_of(&resource, &found)),
            Err(error) => {
                tracing::warn!(resource = resource.plural, namespace, name, %error, "cannot be read");
                None
            }
        }
    }
}

fn name_of(definition: &Definition) -> String {
    match definition.group.as_str() {
        "" => definition.plural.clone(),
        group => format!("{}.{group}", definition.plural),
    }
}

fn resource_of(definition: &Definition) -> Option<ApiResource> {
    let version = definition.stored_version()?;
    Some(ApiResource {
        group: definition.group.clone(),
        version: version.name.clone(),
        api_version: definition.api_version(&version.name),
        kind: version.kind.clone(),
        plural: definition.plural.clone(),
    })
}

/// An object as it would be stored here. Who owns which field is of no interest, and a good part of small objects.
fn value_of(resource: &ApiResource, found: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(found).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".into(), resource.api_version.clone().into());
        members.insert("kind".into(), resource.kind.clone().into());
    }
    meta::set(&mut value, "managedFields", None);
    value
}
