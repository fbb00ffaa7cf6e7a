//! A logical cluster: a name, the resources it serves, and who may do what in it. All clusters share one store, one clock, one chance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_store::{Entry, Key, ListOptions, Revision, Store, Topic};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::aggregation::Aggregation;
use crate::audit::Audit;
use crate::authn::Authenticator;
use crate::authz::{Attributes as AuthzAttributes, Authorizer, Decision};
use crate::component_status::Components;
use crate::crd::shapes::Shapes;
use crate::definition::{Admission, Definition, Kept, Lister, Version, Which};
use crate::egress::Egress;
use crate::elsewhere::Elsewhere;
use crate::flow_control::{FlowControl, Seats};
use crate::impersonation::LastModes;
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::object::{self, Head};
use crate::policies::Policies;
use crate::reviews;
use crate::user::UserInfo;
use crate::watch_end::WatchEnd;
use crate::webhooks::Webhooks;

/// What all logical clusters of a server share.
#[derive(Clone)]
pub struct Shared {
    /// Where objects are.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Clock,
    /// Uids and generated names.
    pub chance: Chance,
}

/// A set of resources, found by group and plural name.
#[derive(Default)]
pub struct ResourceSet {
    /// All, by group and plural name.
    all: Vec<Arc<Definition>>,
    /// Those of each plural name, which few groups share: every request asks for one, and most rules for some more.
    by_plural: HashMap<String, Vec<Arc<Definition>>>,
}

impl ResourceSet {
    /// A set of these definitions. Of two with one name, the later counts.
    pub fn new(definitions: impl IntoIterator<Item = Arc<Definition>>) -> Self {
        let named = definitions.into_iter();
        let named = named.map(|definition| ((definition.group.clone(), definition.plural.clone()), definition));
        let all: Vec<_> = named.collect::<BTreeMap<_, _>>().into_values().collect();
        let mut by_plural: HashMap<String, Vec<Arc<Definition>>> = HashMap::new();
        for definition in &all {
            let same = by_plural.entry(definition.plural.clone()).or_default();
            same.push(Arc::clone(definition));
        }
        Self { all, by_plural }
    }

    /// The same resources, but for versions that are not to be served: `serves` is asked with a group, a version and a resource.
    #[must_use]
    pub fn only(&self, serves: impl Fn(&str, &str, &str) -> bool) -> Self {
        let narrowed = self.iter().map(|definition| {
            let served =
                |version: &Version| version.served && serves(&definition.group, &version.name, &definition.plural);
            if definition
                .versions
                .iter()
                .all(|version| served(version) == version.served)
            {
                return Arc::clone(definition);
            }
            let mut narrowed = Definition::clone(definition);
            for version in &mut narrowed.versions {
                version.served = served(version);
            }
            Arc::new(narrowed)
        });
        Self::new(narrowed)
    }

    /// The definition of a resource.
    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Definition>> {
        let mut same = self.named(plural).iter();
        same.find(|definition| definition.group == group)
    }

    /// The resources of a name, by group.
    pub fn named(&self, plural: &str) -> &[Arc<Definition>] {
        self.by_plural.get(plural).map_or(&[], Vec::as_slice)
    }

    /// All definitions, by group and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.all.iter()
    }
}

/// How a logical cluster is set up.
pub struct ClusterConfig {
    /// Resources built in; shared between clusters of one kind.
    pub resources: Arc<ResourceSet>,
    /// Whether CustomResourceDefinitions of this cluster are served.
    pub custom_resources: bool,
    /// Admission plugins in order.
    pub admission: Vec<Arc<dyn Admission>>,
    /// Who a caller from outside is.
    pub authenticator: Arc<Authenticator>,
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// What `/version` answers as `gitVersion`, e.g. `v1.36.0`.
    pub git_version: String,
    /// Extra OpenAPI components by group version path (`apis/core.gardener.cloud/v1beta1`).
    pub openapi: Arc<crate::openapi::Documents>,
    /// Kinds that another server serves and that are read here; a cluster with them is served behind an aggregator, and has nothing of its own
    /// besides its resources: no reviews, no tokens.
    pub elsewhere: Option<Arc<Elsewhere>>,
    /// The shortest life of a watch whose client sets no limit; it may be up to twice as long, so that not all clients come back at once.
    pub watch_timeout: Duration,
    /// Ports of nodes that services get.
    pub node_ports: RangeInclusive<u16>,
    /// What it has for requests from outside that priority and fairness divides among them.
    pub seats: Seats,
    /// Places for requests where there is no priority and fairness.
    pub in_flight: Option<Arc<InFlight>>,
    /// Whether containers may do what their node may.
    pub allows_privileged: bool,
    /// Whether servers behind it may not send clients elsewhere.
    pub rejects_redirects: bool,
    /// What is told of requests, if anything.
    pub audit: Option<Arc<Audit>>,
    /// By which ways it reaches other servers.
    pub egress: Arc<Egress>,
    /// What `/flagz` tells: the flags of the server's command line, and their values. It is not served without.
    pub flags: Option<Arc<BTreeMap<String, String>>>,
    /// Where its kube-controller-manager and kube-scheduler run.
    pub components: Components,
}

impl ClusterConfig {
    /// A cluster with these kinds and custom resources, without admission plugins; the rest is as upstream has it where no flag says otherwise.
    pub fn new(
        (resources, openapi): (Arc<ResourceSet>, Arc<crate::openapi::Documents>),
        authenticator: Arc<Authenticator>,
        authorizer: Arc<dyn Authorizer>,
        git_version: impl Into<String>,
    ) -> Self {
        Self {
            resources,
            custom_resources: true,
            admission: Vec::new(),
            authenticator,
            authorizer,
            git_version: git_version.into(),
            openapi,
            elsewhere: None,
            watch_timeout: WATCH_TIMEOUT,
            node_ports: NODE_PORTS,
            seats: Seats::default(),
            in_flight: None,
            allows_privileged: true,
            rejects_redirects: true,
            audit: None,
            egress: Arc::default(),
            flags: None,
            components: Components::default(),
        }
    }

    /// Major and minor number of the version that is served.
    pub(crate) fn release(&self) -> (&str, &str) {
        let mut numbers = self.git_version.trim_start_matches('v').split('.');
        (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
    }
}

/// Upstream's [`ClusterConfig::node_ports`].
pub const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;

/// Upstream's [`ClusterConfig::watch_timeout`].
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(1800);

/// A logical cluster, open for requests.
pub struct LogicalCluster {
    /// What shares this cluster, for work that outlives a reference.
    itself: Weak<LogicalCluster>,
    name: String,
    opened: Timestamp,
    shared: Shared,
    config: ClusterConfig,
    custom: ArcSwap<ResourceSet>,
    shapes: Shapes,
    /// Up to which revision custom resources follow their definitions.
    reloading: Mutex<Revision>,
    terminating: Mutex<BTreeSet<String>>,
    closed: CancellationToken,
    watch_end: Arc<WatchEnd>,
    /// Whether it is about to be closed.
    ending: AtomicBool,
    /// Host and port under which others reach its server, if somebody told.
    address: OnceLock<String>,
    /// Values taken by requests that may still be running, and when.
    reserved: Mutex<BTreeMap<String, Timestamp>>,
    metrics: Metrics,
    webhooks: Webhooks,
    policies: Policies,
    last_modes: LastModes,
    aggregation: Aggregation,
    /// Made when somebody outside asks for the first time: of most clusters in one process nobody does.
    flow_control: OnceLock<Option<Arc<FlowControl>>>,
}

/// How long a value stays taken by a request: longer than any takes from its allocation to the store.
const RESERVATION: SignedDuration = SignedDuration::from_secs(10);

impl LogicalCluster {
    pub(crate) fn new(name: &str, shared: Shared, config: ClusterConfig) -> Arc<Self> {
        let closed = CancellationToken::new();
        let cluster = Arc::new_cyclic(|itself| Self {
            itself: itself.clone(),
            name: name.to_owned(),
            opened: shared.clock.now(),
            shared,
            config,
            custom: ArcSwap::default(),
            shapes: Shapes::default(),
            reloading: Mutex::default(),
            terminating: Mutex::default(),
            watch_end: Arc::new(WatchEnd::of(&closed)),
            closed,
            ending: AtomicBool::new(false),
            address: OnceLock::new(),
            reserved: Mutex::default(),
            metrics: Metrics::default(),
            webhooks: Webhooks::default(),
            policies: Policies::default(),
            last_modes: LastModes::default(),
            aggregation: Aggregation::default(),
            flow_control: OnceLock::new(),
        });
        cluster.reload_custom_resources();
        cluster
    }

    /// What shares this cluster; none once nobody does.
    pub(crate) fn itself(&self) -> Option<Arc<Self>> {
        self.itself.upgrade()
    }

    /// Works on the cluster while it is open, apart from whoever waits for an answer. Without a runtime nothing is done.
    pub(crate) fn aside<F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if tokio::runtime::Handle::try_current().is_ok() {
            let (closed, work) = (self.closed.clone(), work(Arc::clone(self)));
            tokio::spawn(async move { closed.run_until_cancelled(work).await });
        }
    }

    /// The cluster's name; `*` stands for all clusters and is never one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Since when it is served.
    pub(crate) fn opened(&self) -> Timestamp {
        self.opened
    }

    /// Where objects are.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// What time it is.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Uids and generated names.
    pub fn chance(&self) -> &Chance {
        &self.shared.chance
    }

    /// The cluster's setup.
    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// In which way its users impersonated others last.
    pub(crate) fn last_modes(&self) -> &LastModes {
        &self.last_modes
    }

    /// What the cluster's API counts of itself.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What bounds requests from outside by the flows that they belong to; none, where there is no priority and fairness.
    pub(crate) fn flow_control(&self) -> Option<&Arc<FlowControl>> {
        let make = || match self.config.in_flight {
            Some(_) => None,
            None => FlowControl::of(self),
        };
        self.flow_control.get_or_init(make).as_ref()
    }

    /// The same, if somebody from outside has asked by now.
    pub(crate) fn used_flow_control(&self) -> Option<&Arc<FlowControl>> {
        self.flow_control.get()?.as_ref()
    }

    /// The cluster's admission and conversion webhooks, and the way to them.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// The cluster's admission policies.
    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The servers behind the cluster.
    pub fn aggregation(&self) -> &Aggregation {
        &self.aggregation
    }

    pub(crate) fn admission(&self) -> &[Arc<dyn Admission>] {
        &self.config.admission
    }

    /// Where the store has an object.
    pub fn key(&self, definition: &Definition, namespace: &str, name: &str) -> Key {
        Key {
            topic: definition.topic.clone(),
            path: self.path(namespace, name).into(),
        }
    }

    /// Path of an object, or with an empty name the prefix of a collection, within a topic.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        if self.name == crate::server::ALL_CLUSTERS {
            return String::new();
        }
        if namespace.is_empty() {
            format!("{}/{name}", self.name)
        } else {
            format!("{}/{namespace}/{name}", self.name)
        }
    }

    /// The definition of a resource, built in or custom.
    pub fn find(&self, group: &str, plural: &str) -> Option<Arc<Definition>> {
        self.config
            .resources
            .get(group, plural)
            .cloned()
            .or_else(|| self.custom.load().get(group, plural).cloned())
    }

    /// The definition of a resource that may be read, and where its objects are: here, or where another server's are copied to.
    pub(crate) fn readable(&self, group: &str, plural: &str) -> Option<(Arc<Definition>, &Arc<dyn Store>)> {
        if let Some(definition) = self.find(group, plural) {
            return Some((definition, self.store()));
        }
        let elsewhere = self.config.elsewhere.as_ref()?;
        Some((Arc::clone(elsewhere.find(group, plural)?), elsewhere.store()))
    }

    /// The definition of a kind that may be read, whose version of this name is served.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Definition>> {
        let is_meant = |definition: &&Arc<Definition>| {
            definition.group == group && definition.version(version).is_some_and(|own| own.kind == kind)
        };
        let custom = self.custom.load();
        let own = self.config.resources.iter().chain(custom.iter()).find(is_meant);
        let elsewhere = || self.config.elsewhere.as_ref()?.definitions().find(is_meant);
        own.or_else(elsewhere).cloned()
    }

    /// All definitions, built in first.
    pub fn definitions(&self) -> Vec<Arc<Definition>> {
        self.config
            .resources
            .iter()
            .cloned()
            .chain(self.custom.load().iter().cloned())
            .collect()
    }

    /// Whether the group has resources that no CustomResourceDefinition defines.
    pub(crate) fn is_built_in(&self, group: &str) -> bool {
        let mut own = self.built_in(group);
        own.any(|definition| definition.versions.iter().any(|version| version.served))
            || reviews::of(self).iter().any(|review| review.group == group)
    }

    /// The resources of a group that no CustomResourceDefinition defines.
    fn built_in<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Arc<Definition>> {
        self.config.resources.iter().filter(move |own| own.group == group)
    }

    /// Names of all groups that are served.
    pub fn groups(&self) -> BTreeSet<String> {
        self.definitions()
            .iter()
            .map(|definition| definition.group.clone())
            .collect()
    }

    /// Called after every write, so that what is derived from objects (custom resources) follows at once.
    pub(crate) fn written(&self, definition: &Definition) {
        if self.defines_custom_resources(definition) {
            self.reload_custom_resources();
        }
        if crate::flow_schemas::follows_from(definition)
            && let Some(cluster) = self.itself.upgrade()
        {
            if let Some(flow_control) = self.used_flow_control() {
                flow_control.refresh(&cluster);
            }
            crate::flow_schemas::look(&cluster);
        }
    }

    /// Whether objects of this kind define custom resources of the cluster.
    pub(crate) fn defines_custom_resources(&self, definition: &Definition) -> bool {
        self.config.custom_resources && definition.group == crate::crd::GROUP && definition.plural == crate::crd::PLURAL
    }

    /// As what custom resources are served.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Names of the CustomResourceDefinitions that are being ended.
    pub(crate) fn terminating(&self) -> &Mutex<BTreeSet<String>> {
        &self.terminating
    }

    /// Cancelled when the cluster is closed.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Follows the CustomResourceDefinitions that others write into the store: serves them, settles their names if nobody has, and goes on with their
    /// deletion. Does not end.
    pub async fn follow_custom_resources(self: &Arc<Self>) {
        let Some(definition) = self.find(crate::crd::GROUP, crate::crd::PLURAL) else {
            return std::future::pending().await;
        };
        let prefix = self.path("", "");
        loop {
            let start = self.store().revision_of(&definition.topic);
            self.reload_custom_resources();
            // a revision of just now is always there to watch from
            let Ok(mut watch) = self.store().watch(&definition.topic, &prefix, start) else {
                tokio::task::yield_now().await;
                continue;
            };
            while let Ok(event) = watch.next().await {
                let mut newest = event.revision;
                // what came meanwhile is read at once with it
                while let Ok(Some(event)) = watch.try_next() {
                    newest = event.revision;
                }
                // what was written here is known by now
                if newest > *self.reloading.lock() {
                    self.reload_custom_resources();
                }
                crate::crd::termination::resume(self);
            }
        }
    }

    /// The end of its watches.
    pub(crate) fn watch_end(&self) -> &Arc<WatchEnd> {
        &self.watch_end
    }

    /// Tells those who ask whether the cluster is ready that it soon will not be.
    pub fn end_soon(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Whether the cluster will be closed soon.
    /// Tells under which host and port others reach the server. What was told first stays.
    pub fn announce(&self, address: String) {
        self.address.get_or_init(|| address);
    }

    /// Host and port under which others reach the server; empty if nobody told.
    pub(crate) fn address(&self) -> &str {
        self.address.get().map_or("", String::as_str)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    fn reload_custom_resources(&self) {
        if !self.config.custom_resources {
            return;
        }
        // Held while definitions are read and set, so that of two writers the later one's reading stays.
        let mut reloaded = self.reloading.lock();
        let topic = Topic::new(crate::crd::GROUP, crate::crd::PLURAL);
        *reloaded = self.store().revision_of(&topic);
        // Each is read once until it changes: schemas are large, and whoever installs many would wait for all of them with each.
        let definitions = self.kept(crate::crd::GROUP, crate::crd::PLURAL, Which::All, |crd| {
            let definition: Kept = Arc::new(crate::crd::definition(crd)?);
            Some(definition)
        });
        let custom = definitions
            .into_iter()
            .filter_map(|definition| definition.downcast().ok());
        // who serves a version of a built-in group does not look for others' resources there
        let is_free = |group: &str, version: &str| self.built_in(group).all(|own| own.version(version).is_none());
        let custom = ResourceSet::new(custom).only(|group, version, _| is_free(group, version));
        let custom = Arc::new(custom);
        self.custom.store(Arc::clone(&custom));
        self.shapes.renew(custom.iter());
    }

    /// The CustomResourceDefinitions of a group.
    pub(crate) fn custom_resource_definitions(&self, group: &str) -> Vec<Arc<Entry>> {
        let Some((definition, store)) = self.readable(crate::crd::GROUP, crate::crd::PLURAL) else {
            return Vec::new();
        };
        // their names are their plurals, a dot and their groups
        let is_of_group = |entry: &Arc<Entry>| {
            let name = entry.key.path.rsplit('/').next().unwrap_or_default();
            name.split_once('.').is_some_and(|(_, own)| own == group)
        };
        let mut entries = self.entries_in(store, &definition, "");
        entries.retain(is_of_group);
        entries
    }

    /// All stored objects of a kind, or those of one namespace.
    pub(crate) fn entries(&self, definition: &Definition, namespace: &str) -> Vec<Arc<Entry>> {
        self.entries_in(self.store(), definition, namespace)
    }

    fn entries_in(&self, store: &Arc<dyn Store>, definition: &Definition, namespace: &str) -> Vec<Arc<Entry>> {
        let prefix = self.path(namespace, "");
        let listed = store.list(&definition.topic, &prefix, &ListOptions::default());
        listed.map(|listing| listing.entries).unwrap_or_default()
    }
}

impl Lister for LogicalCluster {
    fn reserve(&self, value: &str, now: Timestamp) -> bool {
        let mut reserved = self.reserved.lock();
        reserved.retain(|_, since| now.duration_since(*since) < RESERVATION);
        if reserved.contains_key(value) {
            return false;
        }
        reserved.insert(value.to_owned(), now);
        true
    }

    fn release(&self, value: &str) {
        self.reserved.lock().remove(value);
    }

    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let (definition, store) = self.readable(group, resource)?;
        if let Some(entry) = store.get(&self.key(&definition, namespace, name)) {
            return Some(Arc::new(object::value_of(&entry)));
        }
        let elsewhere = self.config.elsewhere.as_ref()?;
        elsewhere.find(group, resource)?;
        elsewhere.fetch(&definition, namespace, name).map(Arc::new)
    }

    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let Some((definition, store)) = self.readable(group, resource) else {
            return Vec::new();
        };
        let entries = self.entries_in(store, &definition, namespace.unwrap_or_default());
        entries.iter().map(|entry| Arc::new(object::value_of(entry))).collect()
    }

    fn count(&self, group: &str, resource: &str, namespace: &str) -> usize {
        let found = self.readable(group, resource);
        found.map_or(0, |(definition, store)| {
            store.count(&definition.topic, &self.path(namespace, ""))
        })
    }

    fn field_values(&self, group: &str, resource: &str, field: &str) -> Vec<String> {
        let Some((definition, store)) = self.readable(group, resource) else {
            return Vec::new();
        };
        self.entries_in(store, &definition, "")
            .iter()
            .filter_map(|entry| Head::of(entry, &definition).field(field).map(str::to_owned))
            .collect()
    }

    fn with_field(&self, group: &str, resource: &str, field: &str, value: &str) -> Vec<Arc<Value>> {
        let Some(definition) = self.find(group, resource) else {
            return Vec::new();
        };
        self.entries(&definition, "")
            .iter()
            .filter(|entry| Head::of(entry, &definition).field(field) == Some(value))
            .map(|entry| Arc::new(object::value_of(entry)))
            .collect()
    }

    fn kept(&self, group: &str, resource: &str, which: Which<'_>, make: fn(&Value) -> Option<Kept>) -> Vec<Kept> {
        let Some((definition, store)) = self.readable(group, resource) else {
            return Vec::new();
        };
        let of_entry = |entry: &Arc<Entry>| {
            let kept = Head::of(entry, &definition).derive(|| make(&object::value_of(entry)));
            Option::clone(&kept)
        };
        let entries = match which {
            Which::All | Which::With(..) => self.entries_in(store, &definition, ""),
            Which::Named(namespace, name) => match store.get(&self.key(&definition, namespace, name)) {
                Some(entry) => vec![entry],
                // it may have to be fetched from another server
                None => {
                    let fetched = self.get(group, resource, namespace, name);
                    return fetched.and_then(|object| make(&object)).into_iter().collect();
                }
            },
        };
        let wanted = entries.iter().filter(|entry| match which {
            Which::With(field, value) => Head::of(entry, &definition).field(field) == Some(value),
            _ => true,
        });
        wanted.filter_map(of_entry).collect()
    }

    fn allowed(&self, user: &UserInfo, verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let attributes = AuthzAttributes::of_resource(user, verb, group, resource, namespace, name);
        matches!(self.config.authorizer.authorize(self, &attributes), Decision::Allow)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<RoleRef>) {
        let mut rules = Vec::new();
        let visited = crate::rbac::visit_rules(self, user, namespace, &mut |rule| {
            rules.push(rule.clone());
            false
        });
        (rules, visited.absent)
    }

    fn token_settings(&self) -> crate::authn::Settings {
        self.config.authenticator.settings()
    }

    fn node_ports(&self) -> RangeInclusive<u16> {
        self.config.node_ports.clone()
    }

    fn cluster(&self) -> Option<&LogicalCluster> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use gardener_store::{Change, Expect, MemoryStore, Options};
    use serde_json::json;

    use super::*;
    use crate::authn::Settings;
    use crate::authz::Node;
    use crate::{Server, kubernetes};

    impl LogicalCluster {
        /// A cluster for unit tests, with the built-in kinds and no objects.
        pub(crate) fn in_memory() -> Arc<Self> {
            Self::in_memory_with(Options::default())
        }

        /// As [`Self::in_memory`], with a store of these options.
        pub(crate) fn in_memory_with(options: Options) -> Arc<Self> {
            let (resources, documents) = kubernetes::resources().unwrap();
            let server = Server::new(Shared {
                store: Arc::new(MemoryStore::new(object::FORM, options)),
                clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
                chance: Chance::seeded(1),
            });
            let config = ClusterConfig::new(
                (Arc::new(resources), Arc::new(documents)),
                Arc::new(Authenticator::new(Settings::default())),
                Arc::new(Node),
                "v1.36.0",
            );
            server.open("c", config)
        }
    }

    async fn define(cluster: &LogicalCluster, plural: &str, group: &str) {
        let definition = cluster.find(crate::crd::GROUP, crate::crd::PLURAL).unwrap();
        let name = format!("{plural}.{group}");
        let crd = json!({
            "metadata": {"name": name},
            "spec": {"group": group, "scope": "Namespaced", "versions": [{"name": "v1", "served": true, "storage": true}]},
            "status": {
                "acceptedNames": {"plural": plural, "kind": plural},
                "conditions": [{"type": "NamesAccepted", "status": "True"}],
            },
        });
        let put = Change::Put {
            key: cluster.key(&definition, "", &name),
            expect: Expect::Any,
            value: object::encode(&crd),
        };
        cluster.store().commit(put).await.unwrap();
        cluster.written(&definition);
    }

    #[tokio::test]
    async fn a_definition_is_read_once_until_it_changes() {
        let cluster = LogicalCluster::in_memory();
        define(&cluster, "ones", "a.example.com").await;
        let first = cluster.find("a.example.com", "ones").unwrap();
        define(&cluster, "twos", "example.com").await;
        assert!(cluster.find("example.com", "twos").is_some());
        let again = cluster.find("a.example.com", "ones").unwrap();
        assert!(Arc::ptr_eq(&first, &again), "another definition does not count");
        define(&cluster, "ones", "a.example.com").await;
        let changed = cluster.find("a.example.com", "ones").unwrap();
        assert!(!Arc::ptr_eq(&first, &changed), "it was written anew");
    }

    #[tokio::test]
    async fn definitions_are_found_by_their_group() {
        let cluster = LogicalCluster::in_memory();
        for (plural, group) in [
            ("ones", "example.com"),
            ("twos", "a.example.com"),
            ("threes", "example.com"),
        ] {
            define(&cluster, plural, group).await;
        }
        let found = cluster.custom_resource_definitions("example.com");
        let paths: Vec<_> = found.iter().map(|crd| crd.key.path.rsplit('/').next()).collect();
        assert_eq!(paths, [Some("ones.example.com"), Some("threes.example.com")]);
    }
}
