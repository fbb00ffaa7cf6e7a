//! How healthy managed objects of the target are, known without asking: each kind is followed from when one of its objects is first asked for.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_controller::queue::GATHERING;
use gardener_controller::{Change, Informer, ObjectRef, Queue};
use gardener_rules::health;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::mapper::Mapping;
use crate::merge::{MANAGED_BY, MANAGED_BY_VALUE, ORIGIN, annotation};

/// Objects with this annotation count as healthy when they are there.
const SKIP: &str = "resources.gardener.cloud/skip-health-check";

/// What counts of an object that is there `[EXT-172]` `[EXT-173]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// Why it is ill.
    pub(crate) unhealthy: Option<String>,
    /// Why it is still rolling out.
    pub(crate) progressing: Option<String>,
}

impl Health {
    pub(crate) fn of(resource: &ApiResource, object: &Value) -> Self {
        if annotation(object, SKIP) == "true" {
            return Self::default();
        }
        let (group, kind) = (&resource.group, &resource.kind);
        Self {
            unhealthy: health::check(group, kind, object).err(),
            progressing: health::progressing(group, kind, object),
        }
    }
}

/// A managed object: its health is all that is kept of specification and status.
#[derive(Clone, Debug, Deserialize)]
struct Managed {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
    #[serde(skip)]
    health: Health,
}

impl Managed {
    fn judge(&mut self, resource: &ApiResource) {
        let metadata = json!({
            "name": self.metadata.name,
            "generation": self.metadata.generation,
            "annotations": self.metadata.annotations,
        });
        let object = json!({"metadata": metadata, "spec": self.spec.take(), "status": self.status.take()});
        self.health = Health::of(resource, &object);
    }

    /// The ManagedResource that it belongs to, in the same cluster or another one `[EXT-151]`.
    fn origin(&self) -> Option<ObjectRef> {
        let origin = self.annotations().get(ORIGIN)?;
        let place = origin.rsplit(':').next()?;
        let (namespace, name) = place.split_once('/')?;
        Some(ObjectRef::new(namespace, name))
    }
}

impl Resource for Managed {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Versions of objects that this manager wrote and that the informer of their kind may not show yet.
type Written = Arc<Mutex<BTreeMap<ObjectRef, u64>>>;

/// A kind that is followed.
#[derive(Clone)]
struct Kind {
    objects: Informer<Managed>,
    written: Written,
}

/// The managed objects of a target. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Followed {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    stop: CancellationToken,
    /// The namespace of the ManagedResources whose health is told; all of them when absent.
    namespace: Option<String>,
    /// ManagedResources with an object that came, went, or whose health changed.
    changed: Queue<ObjectRef>,
    /// ManagedResources that wait for deletions, when an object of theirs went.
    gone: Queue<ObjectRef>,
    /// Who waits for deletions.
    waiting: Mutex<BTreeSet<ObjectRef>>,
    kinds: Mutex<BTreeMap<String, Kind>>,
}

impl Shared {
    /// Tells who is to look at a managed object's change.
    fn tell(&self, change: &Change<Managed>) {
        let Some(origin) = change.object().origin() else {
            return;
        };
        if self.namespace.as_ref().is_some_and(|own| *own != origin.namespace) {
            return;
        }
        if matches!(change, Change::Deleted(_)) && self.waiting.lock().contains(&origin) {
            self.gone.add_after(origin.clone(), GATHERING);
        }
        if matters(change) {
            self.changed.add_after(origin, GATHERING);
        }
    }
}

/// A resource version as a number, by which versions of an object are ordered.
fn version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

impl Followed {
    /// Follows nothing yet; puts into `changed` whose health is to be looked at again, and into `gone` whose deletions are.
    pub(crate) fn new(
        config: &Config,
        changed: Queue<ObjectRef>,
        gone: Queue<ObjectRef>,
        stop: CancellationToken,
    ) -> Self {
        let shared = Shared {
            client: config.target.clone(),
            stop,
            namespace: config.namespace.clone(),
            changed,
            gone,
            waiting: Mutex::default(),
            kinds: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// How healthy an object is; `None` when its kind is not followed yet, or when what is known may be older than what this manager wrote, or
    /// when there is no such object with the label of managed ones.
    pub(crate) fn health(&self, mapping: &Mapping, place: &ObjectRef) -> Option<Health> {
        let kind = self.kind(mapping);
        let object = kind.objects.get(place)?;
        let outdated = kind.written.lock().contains_key(place);
        (!outdated).then(|| object.health.clone())
    }

    /// Takes note of a write, so that what was there before it does not count any more.
    pub(crate) fn wrote(&self, mapping: &Mapping, place: ObjectRef, written: &ObjectMeta) {
        let kinds = self.shared.kinds.lock();
        let Some(kind) = kinds.get(&path(mapping)) else { return };
        let Some(new) = version(written.resource_version.as_deref()) else {
            return;
        };
        let mut notes = kind.written.lock();
        let known = kind.objects.get(&place);
        if known.is_none_or(|known| version(known.metadata.resource_version.as_deref()) < Some(new)) {
            notes.insert(place, new);
        }
    }

    /// From here on a ManagedResource is worked on again when an object of its is gone. To be called before the objects are asked for.
    pub(crate) fn wait_for_deletions(&self, resource: ObjectRef) {
        self.shared.waiting.lock().insert(resource);
    }

    /// What a ManagedResource waited for is gone.
    pub(crate) fn deletions_are_over(&self, resource: &ObjectRef) {
        self.shared.waiting.lock().remove(resource);
    }

    fn kind(&self, mapping: &Mapping) -> Kind {
        let mut kinds = self.shared.kinds.lock();
        kinds
            .entry(path(mapping))
            .or_insert_with(|| self.follow(&mapping.resource))
            .clone()
    }

    fn follow(&self, resource: &ApiResource) -> Kind {
        let api: Api<Managed> = Api::all_with(self.shared.client.clone(), resource);
        let selector = watcher::Config::default().labels(&format!("{MANAGED_BY}={MANAGED_BY_VALUE}"));
        let judged = resource.clone();
        let objects = Informer::start_tidied(api, selector, &self.shared.stop, move |object: &mut Managed| {
            object.judge(&judged);
        });
        let written = Written::default();
        // the informer must not keep alive what keeps it
        let (notes, shared) = (Arc::clone(&written), Arc::downgrade(&self.shared));
        objects.on_change(move |change| {
            let place = ObjectRef::new(
                change.object().namespace().unwrap_or_default(),
                change.object().name_any(),
            );
            forget_written(&notes, &place, change);
            if let Some(shared) = shared.upgrade() {
                shared.tell(change);
            }
        });
        Kind { objects, written }
    }
}

/// A write is seen when the informer has it or something newer.
fn forget_written(notes: &Written, place: &ObjectRef, change: &Change<Managed>) {
    let mut notes = notes.lock();
    let seen = match change {
        Change::Applied { new, .. } => {
            let noted = notes.get(place).copied();
            noted.is_some_and(|noted| version(new.metadata.resource_version.as_deref()) >= Some(noted))
        }
        Change::Deleted(_) => true,
    };
    if seen {
        notes.remove(place);
    }
}

/// Whether a change may be one of a ManagedResource's health `[GRM-25]`.
fn matters(change: &Change<Managed>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => old.health != new.health,
        Change::Applied { old: None, .. } | Change::Deleted(_) => true,
    }
}

/// What tells kinds apart: where their objects are.
fn path(mapping: &Mapping) -> String {
    format!("{}/{}", mapping.resource.api_version, mapping.resource.plural)
}

#[cfg(test)]
mod tests;
