//! A local copy of all objects of one kind, kept by list and watch, that tells handlers what changed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::SetOnce;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::queue::{GATHERING, RateLimit};
use crate::raw::Raw;
use crate::{ObjectRef, Queue};

mod clustered;
pub use clustered::Clustered;

/// What a copy can hold.
pub trait Kept: Resource + ResourceExt + Clone + Debug + Send + Sync + 'static {}

impl<K: Resource + Clone + Debug + Send + Sync + 'static> Kept for K {}

/// What can be informed about: any kind, typed or dynamic.
pub trait Watched: Kept + DeserializeOwned {}

impl<K: Kept + DeserializeOwned> Watched for K {}

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// It is there, new or with another resource version.
    Applied {
        /// What it was before; none if it is new to this informer.
        old: Option<Arc<K>>,
        /// What it is.
        new: Arc<K>,
    },
    /// It is gone; this is what was last known of it.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The newest known state of the object.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(last) => last,
        }
    }
}

type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;
type IndexBy<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// A kind's local copy. Clones are handles on the same copy; it stops when the last handle is dropped.
pub struct Informer<K> {
    shared: Arc<Shared<K>>,
    _stop: Arc<DropGuard>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            _stop: Arc::clone(&self._stop),
        }
    }
}

/// Makes what is kept of an object as it came.
type Read<K> = Box<dyn Fn(&Raw) -> Result<K, serde_json::Error> + Send + Sync>;

struct Shared<K> {
    read: Read<K>,
    copy: RwLock<Copy<K>>,
    /// Held while changes are told, so that a new handler misses none and sees none twice.
    handlers: Mutex<Vec<Handler<K>>>,
    synced: SetOnce<()>,
}

struct Copy<K> {
    objects: BTreeMap<ObjectRef, Arc<K>>,
    indexes: BTreeMap<&'static str, Index<K>>,
}

struct Index<K> {
    by: IndexBy<K>,
    found: BTreeMap<String, BTreeMap<ObjectRef, Arc<K>>>,
}

impl<K> Index<K> {
    fn insert(&mut self, place: &ObjectRef, object: &Arc<K>) {
        for value in (self.by)(object) {
            let found = self.found.entry(value).or_default();
            found.insert(place.clone(), Arc::clone(object));
        }
    }

    fn remove(&mut self, place: &ObjectRef, object: &K) {
        for value in (self.by)(object) {
            if let Some(places) = self.found.get_mut(&value) {
                places.remove(place);
                if places.is_empty() {
                    self.found.remove(&value);
                }
            }
        }
    }
}

impl<K> Copy<K> {
    fn insert(&mut self, place: ObjectRef, object: Arc<K>) -> Option<Arc<K>> {
        let old = self.remove(&place);
        for index in self.indexes.values_mut() {
            index.insert(&place, &object);
        }
        self.objects.insert(place, object);
        old
    }

    fn remove(&mut self, place: &ObjectRef) -> Option<Arc<K>> {
        let old = self.objects.remove(place)?;
        for index in self.indexes.values_mut() {
            index.remove(place, &old);
        }
        Some(old)
    }
}

impl<K: Watched> Informer<K> {
    /// Starts to list and watch what `api` and the selectors in `config` describe, until `cancel` is called.
    pub fn start(api: Api<K>, config: watcher::Config, cancel: &CancellationToken) -> Self {
        Self::start_tidied(api, config, cancel, |_| {})
    }

    /// As [`Informer::start`], but keeps what `tidy` leaves of each object; for kinds of which there are many and only parts are needed.
    pub fn start_tidied(
        api: Api<K>,
        config: watcher::Config,
        cancel: &CancellationToken,
        tidy: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        let read = move |raw: &Raw| {
            let mut object = raw.read()?;
            tidy(&mut object);
            Ok(object)
        };
        Self::start_with(api, config, cancel, Box::new(read))
    }
}

impl<K: Kept> Informer<K> {
    fn start_with(api: Api<K>, config: watcher::Config, cancel: &CancellationToken, read: Read<K>) -> Self {
        let shared = Arc::new(Shared {
            read,
            copy: RwLock::new(Copy {
                objects: BTreeMap::new(),
                indexes: BTreeMap::new(),
            }),
            handlers: Mutex::default(),
            synced: SetOnce::new(),
        });
        let cancel = cancel.child_token();
        let following = Arc::clone(&shared);
        let until = cancel.clone();
        let api = Raw::api(api);
        tokio::spawn(async move {
            until.run_until_cancelled(follow(api, config, following)).await;
        });
        Self {
            shared,
            _stop: Arc::new(cancel.drop_guard()),
        }
    }

    /// Calls `handler` with every object known and then with every change, in order. It must not block, and may read this
    /// informer but not add handlers.
    pub fn on_change(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut handlers = self.shared.handlers.lock();
        for new in self.list() {
            handler(&Change::Applied { old: None, new });
        }
        handlers.push(Box::new(handler));
    }

    /// Puts the keys that `keys` gives for a changed object into a queue: of its old and of its new state.
    pub fn feed<Q, I>(&self, queue: &Queue<Q>, keys: impl Fn(&K) -> I + Send + Sync + 'static)
    where
        Q: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = Q>,
    {
        self.feed_if(queue, |_| true, keys);
    }

    /// As [`Informer::feed`], for the changes that `wanted` lets through.
    pub fn feed_if<Q, I>(
        &self,
        queue: &Queue<Q>,
        wanted: impl Fn(&Change<K>) -> bool + Send + Sync + 'static,
        keys: impl Fn(&K) -> I + Send + Sync + 'static,
    ) where
        Q: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = Q>,
    {
        self.feed_after(Duration::ZERO, queue, wanted, keys);
    }

    /// As [`Informer::feed_if`], but the keys wait for [`GATHERING`], so that changes within that time are one reason for work.
    pub fn feed_gathered<Q, I>(
        &self,
        queue: &Queue<Q>,
        wanted: impl Fn(&Change<K>) -> bool + Send + Sync + 'static,
        keys: impl Fn(&K) -> I + Send + Sync + 'static,
    ) where
        Q: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = Q>,
    {
        self.feed_after(GATHERING, queue, wanted, keys);
    }

    fn feed_after<Q, I>(
        &self,
        delay: Duration,
        queue: &Queue<Q>,
        wanted: impl Fn(&Change<K>) -> bool + Send + Sync + 'static,
        keys: impl Fn(&K) -> I + Send + Sync + 'static,
    ) where
        Q: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = Q>,
    {
        let queue = queue.clone();
        self.on_change(move |change| {
            if !wanted(change) {
                return;
            }
            if let Change::Applied { old: Some(old), .. } = change {
                keys(old).into_iter().for_each(|key| queue.add_after(key, delay));
            }
            keys(change.object())
                .into_iter()
                .for_each(|key| queue.add_after(key, delay));
        });
    }

    /// Waits until the first list is complete and told to the handlers.
    pub async fn synced(&self) {
        self.shared.synced.wait().await;
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.shared.synced.initialized()
    }

    /// The object at a place.
    pub fn get(&self, place: &ObjectRef) -> Option<Arc<K>> {
        self.shared.copy.read().objects.get(place).cloned()
    }

    /// All objects, ordered by place.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.shared.copy.read().objects.values().cloned().collect()
    }

    /// The objects of a namespace, ordered by name.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let copy = self.shared.copy.read();
        let objects = copy.objects.iter();
        objects
            .filter(|(place, _)| place.namespace == namespace)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The objects of a logical cluster, ordered by place.
    pub fn list_cluster(&self, cluster: &str) -> Vec<Arc<K>> {
        let first = ObjectRef::default().in_cluster(cluster);
        self.list_from(first, |place| place.cluster == cluster)
    }

    /// The objects of a namespace of a logical cluster, ordered by name.
    pub fn list_cluster_namespace(&self, cluster: &str, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectRef::new(namespace, "").in_cluster(cluster);
        self.list_from(first, |place| place.cluster == cluster && place.namespace == namespace)
    }

    fn list_from(&self, first: ObjectRef, still: impl Fn(&ObjectRef) -> bool) -> Vec<Arc<K>> {
        let copy = self.shared.copy.read();
        let objects = copy.objects.range(first..);
        objects
            .take_while(|(place, _)| still(place))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// Adds an index by the values that `by` gives for an object.
    pub fn add_index(&self, name: &'static str, by: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) {
        let mut copy = self.shared.copy.write();
        let mut index = Index {
            by: Box::new(by),
            found: BTreeMap::new(),
        };
        for (place, object) in &copy.objects {
            index.insert(place, object);
        }
        copy.indexes.insert(name, index);
    }

    /// The objects that have a value in an index, ordered by place; none if there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        let copy = self.shared.copy.read();
        let found = copy.indexes.get(name).and_then(|index| index.found.get(value));
        found.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}

impl<K: Watched> Informer<Clustered<K>> {
    /// As [`Informer::start_tidied`] with a client of all logical clusters: places carry the cluster.
    pub fn start_clustered(
        api: Api<Clustered<K>>,
        config: watcher::Config,
        cancel: &CancellationToken,
        tidy: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        let read = move |raw: &Raw| {
            let mut object = raw.read()?;
            tidy(&mut object);
            let cluster = raw.cluster.clone();
            Ok(Clustered { cluster, object })
        };
        Self::start_with(api, config, cancel, Box::new(read))
    }
}

/// How long to wait before watching again. Short at first: most often the kind, or the right to read it, is about to come.
const PAUSES: RateLimit = RateLimit {
    base: Duration::from_millis(50),
    max: Duration::from_secs(30),
};

/// What takes the objects that are followed.
trait Copying: Send + Sync {
    /// Makes a complete list the copy, and tells what differs.
    fn replace(&self, listed: BTreeMap<ObjectRef, Raw>);
    /// Takes an object, new or changed.
    fn apply(&self, object: &Raw);
    /// Drops an object; this is its last state.
    fn delete(&self, object: &Raw);
}

async fn follow(api: Api<Raw>, config: watcher::Config, copy: Arc<dyn Copying>) {
    let resource = api.resource_url().to_owned();
    let mut events = pin!(watcher(api, config));
    let mut listed = BTreeMap::new();
    let mut failures = 0;
    while let Some(event) = events.next().await {
        match event {
            // it only says that a list is tried
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => drop(listed.insert(place(&object), object)),
            Ok(Event::InitDone) => copy.replace(std::mem::take(&mut listed)),
            Ok(Event::Apply(object)) => copy.apply(&object),
            Ok(Event::Delete(object)) => copy.delete(&object),
            Err(error) => {
                let again = PAUSES.delay(failures);
                tracing::debug!(resource, %error, ?again, "watching failed");
                failures += 1;
                sleep(again).await;
                continue;
            }
        }
        failures = 0;
    }
}

fn place(object: &Raw) -> ObjectRef {
    ObjectRef::of(object).in_cluster(&object.cluster)
}

impl<K: Kept> Copying for Shared<K> {
    fn replace(&self, listed: BTreeMap<ObjectRef, Raw>) {
        let gone: Vec<ObjectRef> = {
            let copy = self.copy.read();
            let known = copy.objects.keys();
            known.filter(|place| !listed.contains_key(place)).cloned().collect()
        };
        for place in gone {
            self.forget(&place, None);
        }
        for object in listed.into_values() {
            self.apply(&object);
        }
        // A list that is read anew finds it set.
        let _ = self.synced.set(());
    }

    fn apply(&self, object: &Raw) {
        let place = place(object);
        let handlers = self.handlers.lock();
        let is_known = {
            let copy = self.copy.read();
            let known = copy.objects.get(&place);
            known.is_some_and(|known| same_version(known.as_ref(), object))
        };
        if is_known {
            return;
        }
        let Some(new) = self.read(object).map(Arc::new) else {
            return;
        };
        let old = self.copy.write().insert(place, Arc::clone(&new));
        let change = Change::Applied { old, new };
        handlers.iter().for_each(|handler| handler(&change));
    }

    fn delete(&self, object: &Raw) {
        self.forget(&place(object), self.read(object));
    }
}

impl<K: Kept> Shared<K> {
    /// An object of the kind; one that is none is told and left out, so that others of its kind are not kept from being seen.
    fn read(&self, object: &Raw) -> Option<K> {
        match (self.read)(object) {
            Ok(object) => Some(object),
            Err(error) => {
                let kind = std::any::type_name::<K>();
                tracing::error!(object = %place(object), kind, %error, "an object cannot be read and is left out");
                None
            }
        }
    }

    fn forget(&self, place: &ObjectRef, last: Option<K>) {
        let handlers = self.handlers.lock();
        let Some(old) = self.copy.write().remove(place) else {
            return;
        };
        let change = Change::Deleted(last.map_or(old, Arc::new));
        handlers.iter().for_each(|handler| handler(&change));
    }
}

fn same_version(one: &impl ResourceExt, other: &impl ResourceExt) -> bool {
    one.resource_version().is_some() && one.resource_version() == other.resource_version() && one.uid() == other.uid()
}

#[cfg(test)]
mod tests;
