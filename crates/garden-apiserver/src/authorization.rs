//! The authorizer of seeds' and self-hosted shoots' gardenlets and of their extensions, in front of roles [AUTH-1] [AUTH-40]. What is decided, and
//! by what, is in `garden-authorizer`; here the graph follows the cluster's own objects.
//!
//! Before a question is answered, what was written since the last one is read from the store's watches, which are polled: so an answer knows
//! everything that was acknowledged before the question, and nothing runs beside it. All is read once before the cluster is served [AUTH-6], and
//! anew if changes were missed.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use gardener_apiserver::LogicalCluster;
use gardener_apiserver::authz::{Attributes, Authorizer, Decision};
use gardener_apiserver::definition::Lister;
use gardener_garden_authorizer::identity;
use gardener_garden_authorizer::names::KUBE_SYSTEM;
use gardener_garden_authorizer::{Answer, Belongings, Object, Request, Source, seeds, self_hosted};
use gardener_store::{Entry, EventKind, ListOptions, ReadError, Watch};
use parking_lot::Mutex;

/// The authorizer of one garden.
#[derive(Default)]
pub struct GardenletAuthorizer(Mutex<Followed>);

/// The graphs, and what tells of changes.
struct Followed {
    belongings: Belongings,
    watches: Vec<(Source, Watch)>,
}

impl Default for Followed {
    fn default() -> Self {
        Self {
            belongings: Belongings::of_seeds(),
            watches: Vec::new(),
        }
    }
}

impl Followed {
    /// Has everything that is stored now. What belongs to self-hosted shoots is followed once somebody asked who acts for one.
    fn catch_up(&mut self, cluster: &LogicalCluster, for_shoot: bool) {
        let shoots = for_shoot || self.belongings.follows_shoots();
        let lacks = shoots && !self.belongings.follows_shoots();
        if lacks || self.watches.is_empty() || self.changes(cluster).is_err() {
            self.watches.clear();
            self.belongings = if shoots {
                Belongings::new()
            } else {
                Belongings::of_seeds()
            };
            // what is not followed is read again for the next question
            if !Source::ALL.iter().all(|source| self.begin(cluster, *source).is_ok()) {
                self.watches.clear();
            }
        }
        self.belongings.at(cluster.clock().now());
    }

    fn begin(&mut self, cluster: &LogicalCluster, source: Source) -> Result<(), ReadError> {
        let (group, resource) = source.resource();
        let Some(definition) = cluster.find(group, resource) else {
            return Ok(());
        };
        let (store, prefix) = (cluster.store(), cluster.path("", ""));
        let listing = store.list(&definition.topic, &prefix, &ListOptions::default())?;
        for (entry, object) in listing.entries.iter().zip(read_all(source, &listing.entries)) {
            self.put(cluster, source, entry, object);
        }
        let watch = store.watch(&definition.topic, &prefix, listing.revision)?;
        self.watches.push((source, watch));
        Ok(())
    }

    fn changes(&mut self, cluster: &LogicalCluster) -> Result<(), ReadError> {
        let mut watches = std::mem::take(&mut self.watches);
        for (source, watch) in &mut watches {
            while let Some(event) = watch.try_next()? {
                let there = event.kind != EventKind::Deleted;
                let object = there.then(|| source.read(&event.entry.value())).flatten();
                self.put(cluster, *source, &event.entry, object);
            }
        }
        self.watches = watches;
        Ok(())
    }

    fn put(&mut self, cluster: &LogicalCluster, source: Source, entry: &Entry, object: Option<Object>) {
        let own = entry.key.path.strip_prefix(cluster.name());
        let Some(path) = own.and_then(|path| path.strip_prefix('/')) else {
            return;
        };
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        self.belongings.put(source, namespace, name, object);
    }
}

/// Below so many objects, threads take longer to start than to read them.
const FEW: usize = 500;

/// Objects of one kind, on as many threads as there are processors: nobody is served before all are read.
fn read_all(source: Source, entries: &[Arc<Entry>]) -> Vec<Option<Object>> {
    let read = |entries: &[Arc<Entry>]| -> Vec<_> { entries.iter().map(|entry| source.read(&entry.value())).collect() };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    if threads == 1 || entries.len() < FEW {
        return read(entries);
    }
    thread::scope(|scope| {
        let parts = entries.chunks(entries.len().div_ceil(threads));
        let readers: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let all = readers.into_iter().map(thread::ScopedJoinHandle::join);
        all.flat_map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

impl Authorizer for GardenletAuthorizer {
    fn prepare(&self, cluster: &LogicalCluster) {
        self.0.lock().catch_up(cluster, false);
    }

    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let user = attributes.user;
        let seed = identity::of_seed(&user.name, &user.groups);
        let shoot = identity::of_shoot(&user.name, &user.groups);
        if !attributes.is_resource || seed.is_none() && shoot.is_none() {
            return Decision::NoOpinion(String::new());
        }
        let request = Request {
            verb: attributes.verb,
            group: attributes.group,
            resource: attributes.resource,
            subresource: attributes.subresource,
            namespace: attributes.namespace,
            name: attributes.name,
            field_selector: attributes.field_selector,
            label_selector: attributes.label_selector,
        };
        let mut followed = self.0.lock();
        followed.catch_up(cluster, shoot.is_some());
        let mut reasons = Vec::new();
        let for_seed = seed.map(|seed| seeds::authorize(&followed.belongings, seed, &request));
        let description = |name: &str| token_description(cluster, name);
        let for_shoot =
            || shoot.map(|shoot| self_hosted::authorize(&followed.belongings, shoot, &request, &description));
        for answer in for_seed.into_iter().chain(for_shoot()) {
            match answer {
                Answer::Allow => return Decision::Allow,
                Answer::NoOpinion(reason) if reason.is_empty() => {}
                Answer::NoOpinion(reason) => reasons.push(reason),
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }
}

/// The description of the bootstrap token in a Secret.
fn token_description(cluster: &dyn Lister, secret: &str) -> Option<String> {
    let secret = cluster.get("", "secrets", KUBE_SYSTEM, secret)?;
    let bytes = crate::lookup::secret_data(&secret, "description").unwrap_or_default();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
