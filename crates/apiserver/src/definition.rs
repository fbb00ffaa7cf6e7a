//! What a resource is to the machinery: its names, versions and schema ([`Definition`]), what it adds to the verbs ([`Strategy`]),
//! what may refuse or change a write ([`Admission`]), and subresources of its own ([`Subresource`]).
//!
//! No kind is defined here: Kubernetes' are in [`crate::kubernetes`], the garden's in `garden-apiserver`, custom ones in [`crate::crd`].

mod admission;
mod subresource;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::ErrorList;
use gardener_schema::Schema;
use gardener_store::Topic;
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::cluster::LogicalCluster;
pub use crate::draft::Draft;
pub use crate::object::Kept;
pub use admission::{Admission, Attributes, Warnings};
pub use subresource::{Effect, Removal, Subresource};

use crate::selectable::Selectable;
use crate::unread::Unread;
use crate::user::UserInfo;
use crate::webhooks::ConversionWebhook;

/// One resource of an API: all its versions, stored together under one topic.
#[derive(Clone)]
pub struct Definition {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, lower-case name in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names for `kubectl`.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where objects are stored. Two definitions that show the same objects (`events` of two groups) share a topic, and
    /// have one plural name.
    pub topic: Topic,
    /// Versions, preferred first.
    pub versions: Vec<Version>,
    /// Verbs served, as discovery tells them.
    pub verbs: Vec<&'static str>,
    /// What the kind adds.
    pub strategy: Arc<dyn Strategy>,
    /// Subresources besides `status` and `scale`, by name.
    pub subresources: BTreeMap<&'static str, Arc<dyn Subresource>>,
}

/// One version of a resource.
#[derive(Clone)]
pub struct Version {
    /// `v1`, `v1beta1`.
    pub name: String,
    /// Kind of an object.
    pub kind: String,
    /// Kind of a list.
    pub list_kind: String,
    /// Schema of an object, where one is known. Without one everything is accepted.
    pub schema: Option<Arc<Schema>>,
    /// Whether unknown fields are dropped, as typed decoding does; without it they are kept.
    pub prunes: bool,
    /// Whether the schema tells members that are always there (Go's zero values), so that they are filled in.
    pub completes: bool,
    /// Whether clients may use it.
    pub served: bool,
    /// Whether objects are stored in it. Exactly one version is.
    pub stored: bool,
    /// Whether there is a `status` subresource: then the main resource leaves the status alone, and the other way round.
    pub status: bool,
    /// Where `scale` finds its numbers, when there is such a subresource.
    pub scale: Option<Scale>,
    /// Table columns.
    pub columns: Columns,
}

/// JSON paths of the scale subresource, without the leading dot.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Path of the desired count, e.g. `spec.replicas`.
    pub spec_replicas: String,
    /// Path of the observed count.
    pub status_replicas: String,
    /// Path of the label selector: either a string or a selector object.
    pub selector: Option<String>,
    /// Whether the scale of an object that is not there is missed, and not the object.
    pub is_missed: bool,
    /// Whether a count is judged as that of a scale, before it is one of the object.
    pub is_judged: bool,
}

/// A table column as `kubectl get` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub type_: String,
    /// `name` for the first column, else mostly empty.
    pub format: String,
    /// What the column tells.
    pub description: String,
    /// 0: always shown; 1: with `-o wide`.
    pub priority: i32,
}

/// The columns of a version, and where their cells come from.
#[derive(Clone, Debug)]
pub enum Columns {
    /// The kind's [`Strategy::row`] tells the cells.
    Row(Vec<Column>),
    /// Behind the name, cells are found by JSON path.
    Paths(Vec<PathColumn>),
}

/// A column of a custom resource.
#[derive(Clone, Debug)]
pub struct PathColumn {
    /// Heading, type and priority.
    pub column: Column,
    /// JSON path of the cell.
    pub path: String,
}

/// Upstream's Go package of a group's internal types: the first part of its name.
pub(crate) fn go_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}

impl Definition {
    /// Whether upstream serves the kind from Go types. (Kinds whose schema is enforced are custom resources, which it has as JSON only.)
    pub fn is_go_type(&self) -> bool {
        !self.strategy.validates_schema()
    }

    /// Upstream's Go package of the kind's internal type.
    pub(crate) fn go_package(&self) -> &str {
        go_package(&self.group)
    }

    /// The version of this name, when served.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.served && version.name == name)
    }

    /// The version objects are stored in.
    pub fn stored_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.stored)
    }

    /// Rewrites an object of one version of this resource into another. Objects of a resource that shares this one's topic become this
    /// one's.
    ///
    /// # Errors
    /// Tells why it cannot be converted.
    pub fn convert(&self, object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        let own = crate::meta::text(object, "/apiVersion") == self.api_version(from);
        // what a webhook converts is converted where it can be waited for
        if from == to && own || self.strategy.conversion_webhook().is_some() {
            return Ok(());
        }
        self.check_known_version(object)?;
        self.strategy.convert(object, from, to)?;
        if let (Value::Object(members), Some(version)) = (&mut *object, self.versions.iter().find(|v| v.name == to)) {
            members.insert("apiVersion".into(), self.api_version(to).into());
            members.insert("kind".into(), version.kind.clone().into());
        }
        Ok(())
    }

    /// Whether the objects are kept as those of another API, and shown in a form of their own.
    pub(crate) fn shows_anothers(&self) -> bool {
        self.topic != Topic::new(&self.group, &self.plural)
    }

    /// Refuses to convert a custom resource that is stored in a version which the definition does not have any more.
    ///
    /// # Errors
    /// Names the version.
    pub(crate) fn check_known_version(&self, object: &Value) -> Result<(), ApiError> {
        let own = crate::meta::text(object, "/apiVersion");
        let mut versions = self.versions.iter();
        match self.is_go_type() || versions.any(|version| self.api_version(&version.name) == own) {
            true => Ok(()),
            false => Err(ApiError::unclassified(format!(
                "request to convert CR from an invalid group/version: {own}"
            ))),
        }
    }

    /// Drops what the version that a custom resource has become does not know.
    pub(crate) fn prune_as(&self, object: &mut Value, version: &str) {
        let mut versions = self.versions.iter();
        let version = versions
            .find(|own| own.name == version)
            .filter(|version| version.prunes && !self.is_go_type());
        if let Some(schema) = version.and_then(|version| version.schema.as_ref()) {
            schema.prune(object);
        }
    }

    /// What reading makes of a stored custom resource: the schema of its version may have changed since it was written.
    pub(crate) fn restore(&self, object: &mut Value) {
        if self.is_go_type() {
            return;
        }
        let own = crate::meta::text(object, "/apiVersion");
        let own = own.rsplit_once('/').map_or(own, |(_, version)| version);
        let version = self.versions.iter().find(|version| version.name == own);
        if let Some((version, schema)) = version.and_then(|version| Some((version, version.schema.as_ref()?))) {
            if version.prunes {
                schema.prune(object);
            }
            schema.apply_defaults(object);
        }
    }

    /// Brings an object of the stored version into the form in which it is stored.
    pub(crate) fn canonicalize(&self, object: &mut Draft) {
        self.strategy.canonicalize(object);
        self.complete(object);
    }

    /// Gives an object of the stored version what the schema says that each has.
    pub(crate) fn complete(&self, object: &mut Draft) {
        if let Some(version) = self.stored_version().filter(|version| version.completes)
            && let Some(schema) = &version.schema
        {
            match object.is_apart() {
                // the rest is as it was stored, with all that it has
                true => schema.complete_members(object.read_part_mut(), &Unread::READ),
                false => schema.complete(object),
            }
        }
    }

    /// As [`Self::complete`], of what a write to the object or to its status changes.
    pub(crate) fn complete_written(&self, object: &mut Value, subresource: &str) {
        let version = self.stored_version().filter(|version| version.completes);
        let Some(schema) = version.and_then(|version| version.schema.as_ref()) else {
            return;
        };
        match subresource {
            "status" => {
                let (Some(of_status), Value::Object(members)) = (schema.field("status"), object) else {
                    return;
                };
                if !members.contains_key("status")
                    && let Some((name, zero)) = schema.zero_fields().find(|(name, _)| *name == "status")
                {
                    members.insert(name.to_owned(), zero.clone());
                }
                if let Some(status) = members.get_mut("status") {
                    of_status.complete_scalars(status);
                }
            }
            _ => schema.complete_scalars(object),
        }
    }

    /// `<group>/<version>`, or `<version>` for the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// Whether JSON that begins as we write it (`{"apiVersion":…`), or the head of such, is of this version.
    pub fn is_written_in(&self, version: &str, json: &[u8]) -> bool {
        let within = || -> Option<bool> {
            let rest = json.strip_prefix(b"{\"apiVersion\":\"")?;
            let rest = match self.group.as_str() {
                "" => rest,
                group => rest.strip_prefix(group.as_bytes())?.strip_prefix(b"/")?,
            };
            Some(rest.strip_prefix(version.as_bytes())?.starts_with(b"\""))
        };
        within().unwrap_or(false)
    }
}

/// Which write an admission plugin looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A new object, or a body posted to a subresource that creates something.
    Create,
    /// A change of an object.
    Update,
    /// A deletion.
    Delete,
    /// A call that stores nothing itself.
    Connect,
}

/// Who asks, when, and where to look for other objects.
pub struct Context<'a> {
    /// The caller.
    pub user: &'a UserInfo,
    /// The logical cluster.
    pub cluster: &'a str,
    /// Time of the request.
    pub now: Timestamp,
    /// One random number for this request.
    pub chance: u64,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// What the request asks for, as authorization names it; empty for what the server does by itself.
    pub verb: &'a str,
    /// Other objects of the same cluster.
    pub lister: &'a dyn Lister,
}

/// A cluster-scoped object of another kind that is there as long as one is: see [`Strategy::companions`].
pub struct Companion {
    /// Its API group.
    pub group: &'static str,
    /// Its resource.
    pub resource: &'static str,
    /// What is said of it: its name, labels and spec.
    pub object: Value,
}

/// Which objects of a kind.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// All of the cluster.
    All,
    /// The one of a namespace (empty: of none) and name.
    Named(&'a str, &'a str),
    /// Those in which a selectable field has a value.
    With(&'a str, &'a str),
}

/// Reads objects of one logical cluster as they are now, in their stored version.
pub trait Lister: Send + Sync {
    /// One object; `namespace` is empty for cluster-scoped resources.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All objects, or those of one namespace.
    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;
    /// How many objects a namespace has; cheaper than reading them, but linear in their number.
    fn count(&self, group: &str, resource: &str, namespace: &str) -> usize {
        self.list(group, resource, Some(namespace)).len()
    }
    /// The values of one selectable field in all objects; cheaper than reading the objects.
    fn field_values(&self, group: &str, resource: &str, field: &str) -> Vec<String>;
    /// The objects in which a selectable field has this value; cheaper than reading all.
    fn with_field(&self, group: &str, resource: &str, field: &str, value: &str) -> Vec<Arc<Value>>;
    /// Objects as `make` makes a type of each, which is kept with the object until that changes: for kinds that many requests ask for, and of
    /// which there are few. All callers for one kind make the same; what cannot be made is left out.
    fn kept(&self, group: &str, resource: &str, which: Which<'_>, make: fn(&Value) -> Option<Kept>) -> Vec<Kept> {
        let objects = match which {
            Which::All => self.list(group, resource, None),
            Which::Named(namespace, name) => self.get(group, resource, namespace, name).into_iter().collect(),
            Which::With(field, value) => self.with_field(group, resource, field, value),
        };
        objects.iter().filter_map(|object| make(object)).collect()
    }
    /// A namespace, which many requests ask for: it is read once until it changes. Who owns its fields is not told.
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        let make = |namespace: &Value| -> Option<Kept> {
            let mut namespace = namespace.clone();
            crate::meta::set(&mut namespace, "managedFields", None);
            Some(Arc::new(namespace))
        };
        let kept = self.kept("", "namespaces", Which::Named("", name), make);
        kept.into_iter().next()?.downcast().ok()
    }
    /// Whether `user` may do `verb`; asks the cluster's authorizer.
    fn allowed(&self, user: &UserInfo, verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> bool;
    /// The rules of roles that apply to a user in a namespace and everywhere, and which of those roles are not there.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<RoleRef>);
    /// Takes a value that must be unique, such as an address, until the object that has it is stored or some seconds passed. False if a request
    /// that is still running took it.
    fn reserve(&self, value: &str, now: Timestamp) -> bool;
    /// Gives back a value that was taken: the object that has it is stored, or is not going to be.
    fn release(&self, value: &str);
    /// How the cluster makes tokens for service accounts.
    fn token_settings(&self) -> crate::authn::Settings;
    /// Ports of nodes that services get.
    fn node_ports(&self) -> RangeInclusive<u16> {
        crate::cluster::NODE_PORTS
    }
    /// The logical cluster itself, for plugins that call out of it; `None` where there is only a set of objects.
    fn cluster(&self) -> Option<&LogicalCluster> {
        None
    }
}

/// What name an object is given that comes without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nameless {
    /// None: it is refused.
    Refused,
    /// As if the beginning of its name were empty.
    Suffix,
    /// That of a uid.
    Uid,
}

/// What a kind adds to the verbs. Objects are JSON objects that are decoded, free of unknown fields and defaulted by schema.
#[allow(unused_variables)]
pub trait Strategy: Send + Sync + 'static {
    /// Whether what an object of this version embeds, and is of other kinds, can be read. The fields of the object itself are looked at before.
    ///
    /// # Errors
    /// What Go says of it while it makes the kind's internal form of the object.
    fn decode_embedded(&self, version: &str, object: &Value) -> Result<(), String> {
        Ok(())
    }

    /// Fills unset fields; runs whenever an object is decoded from a request.
    fn default(&self, context: &Context<'_>, object: &mut Value) {}

    /// Fills unset fields of an object that another server has stored: kube-apiserver fills some only when it reads.
    fn default_stored(&self, object: &mut Value) {}

    /// Takes away fields of features that are off, but for those that the object had, before it is looked at whether anything changed.
    fn drop_disabled(&self, object: &mut Draft, old: Option<&Draft>) {}

    /// Prepares a new object: drops what clients may not set, first generation. The status is already removed when the kind has the subresource.
    ///
    /// # Errors
    /// Refuses what cannot be prepared.
    fn prepare_for_create(&self, context: &Context<'_>, object: &mut Draft) -> Result<(), ApiError> {
        Ok(())
    }

    /// Gives a new object what the objects of a cluster share, such as addresses and ports. An object that a write of the status makes gets none.
    ///
    /// # Errors
    /// Refuses what is not free.
    fn reserve(&self, context: &Context<'_>, object: &mut Draft) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether there may be [`Strategy::companions`].
    fn has_companions(&self) -> bool {
        false
    }

    /// The objects of other kinds that are there as long as this one is, as it is stored. They come, change and go with it.
    fn companions(&self, object: &Value) -> Vec<Companion> {
        Vec::new()
    }

    /// Finds what of a new object is told even before what is wrong with its metadata.
    fn judged_before_metadata(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        Vec::new()
    }

    /// Whether what is wrong with a new object's metadata is told only if nothing else is wrong.
    fn judges_metadata_last(&self) -> bool {
        false
    }

    /// Finds what is wrong with a new object.
    fn validate(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        Vec::new()
    }

    /// Prepares a change of the main resource. The status is already the old one when the kind has the subresource.
    ///
    /// # Errors
    /// Refuses what cannot be prepared.
    fn prepare_for_update(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<(), ApiError> {
        Ok(())
    }

    /// Subresources besides the status that are the object itself: read and written as it is, but for [`Self::update_view`].
    fn views(&self) -> &'static [&'static str] {
        &[]
    }

    /// What can be done with one of [`Self::views`].
    fn view_verbs(&self) -> &'static [&'static str] {
        &["get", "patch", "update"]
    }

    /// Prepares a change that comes through one of [`Self::views`], and finds what is wrong with it, in place of [`Self::prepare_for_update`]
    /// and [`Self::validate_update`]. The status is as it was sent.
    ///
    /// # Errors
    /// Refuses what cannot be prepared.
    fn update_view(
        &self,
        view: &str,
        context: &Context<'_>,
        object: &mut Draft,
        old: &Draft,
    ) -> Result<ErrorList, ApiError> {
        self.prepare_for_update(context, object, old)?;
        Ok(self.validate_update(context, object, old))
    }

    /// Finds what is wrong with a change of the main resource.
    fn validate_update(&self, context: &Context<'_>, object: &Draft, old: &Draft) -> ErrorList {
        Vec::new()
    }

    /// Prepares a change of the status, finds what is wrong with it, and brings it into the form in which it is stored. Spec and the metadata
    /// that a status change may not touch are already the old ones.
    ///
    /// # Errors
    /// Refuses what cannot be prepared.
    fn update_status(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<ErrorList, ApiError> {
        Ok(Vec::new())
    }

    /// Whether [`Self::update_status`] makes labels of what the status tells, which nobody then checks.
    fn stores_made_labels(&self) -> bool {
        false
    }

    /// Whether [`Self::update_status`] is content with what [`Draft::read_part`] and [`Draft::read_with`] tell of the objects. Then the rest of
    /// them need not be read.
    fn reads_status_alone(&self) -> bool {
        false
    }

    /// Whether a status is decoded, and given its defaults, without a look at the object's other members.
    fn decodes_status_alone(&self) -> bool {
        false
    }

    /// Whether the specification fills what is unset elsewhere, such as an object's labels by those of its template, or what a definition's status
    /// tells of stored versions.
    fn defaults_by_spec(&self) -> bool {
        false
    }

    /// Brings a valid object, but for a change of its status, into the form in which it is stored.
    fn canonicalize(&self, object: &mut Draft) {}

    /// Sentences for `Warning` headers.
    fn warnings(&self, context: &Context<'_>, object: &Draft, old: Option<&Draft>) -> Vec<String> {
        Vec::new()
    }

    /// Whether the kind has `metadata.generation`: 1 when created, one more when anything outside metadata and status changes.
    /// Kinds with other rules return false and write the generation themselves.
    fn has_generation(&self) -> bool {
        true
    }

    /// Whether objects are validated by their schema as custom resources are. Kinds with validation of their own are not.
    fn validates_schema(&self) -> bool {
        false
    }

    /// Whether a new object keeps the status its creator gives it, as nodes do.
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Of which members of the metadata it counts what is sent with a status; the others stay as they are. None: of all. What may not change is
    /// compared later.
    fn metadata_of_status(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// The member of the metadata that a change of the status leaves alone, if there is one.
    fn status_update_keeps(&self) -> Option<&'static str> {
        None
    }

    /// Whether a change of the object changes its status, too, though that is a resource of its own.
    fn update_keeps_sent_status(&self) -> bool {
        false
    }

    /// Whether who writes owns all that was sent, and plugins see it, also what the write then leaves alone: the status sent to the object's own
    /// path, and the rest sent to the status. Then what is applied to a subresource makes the object, too, if there is none.
    fn owns_all_sent(&self) -> bool {
        false
    }

    /// Below what upstream's server keeps objects in etcd, by groups, if that is not kube-apiserver; some messages tell it.
    fn registry(&self) -> Option<&'static str> {
        None
    }

    /// Whether what a subresource answers can be shown as a table.
    fn has_tables_of(&self, _subresource: &str) -> bool {
        true
    }

    /// Fields that writes to the object (no name) or to a subresource leave alone, besides what is another endpoint's for all kinds.
    fn left_alone(&self, _subresource: &str) -> &'static [&'static str] {
        &[]
    }

    /// What clients of a version that is to go are told.
    fn deprecation(&self, version: &str) -> Option<&str> {
        None
    }

    /// The group that refusals name as the kind's.
    fn group_in_refusals<'g>(&self, group: &'g str) -> &'g str {
        group
    }

    /// Whether `PUT` on a name that does not exist creates.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether `PUT` without a resourceVersion overwrites whatever is there.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Seconds an object stays after its deletion was asked for, so that its owner can end it; `None`: it goes at once.
    /// `asked` is the client's wish.
    fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Why no object may be created now.
    fn refuses_creation(&self) -> Option<&'static str> {
        None
    }

    /// Marks an object whose deletion is asked for first, in place of what is done to others; `false`: it is one of those others.
    fn marks_for_deletion(&self, object: &mut Value, now: Timestamp) -> bool {
        false
    }

    /// Whether a deletion answers the deleted object where others answer a plain success.
    fn answers_deleted_object(&self) -> bool {
        false
    }

    /// Whether a deletion does nothing about dependents, whatever it says.
    fn ignores_dependents(&self) -> bool {
        false
    }

    /// Whether dependents outlive a deletion that does not say what becomes of them.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// What a client is told whose deletion does not say what becomes of dependents.
    fn warning_of_default_propagation(&self) -> Option<&'static str> {
        None
    }

    /// What field selectors may select besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[Selectable] {
        &[]
    }

    /// By what else the same stored objects are selected as another kind: events of both groups are the same objects.
    fn other_fields(&self) -> &[Selectable] {
        &[]
    }

    /// What is wrong with a name that an object has, or would have, if anything.
    fn validate_name(&self, object: &Value, name: &str) -> Vec<String> {
        crate::meta::dns1123_subdomain(name)
    }

    /// Cells of an object's row, one per column.
    fn row(&self, now: Timestamp, object: &Value) -> Vec<Value> {
        crate::table::default_row(now, object)
    }

    /// What the rows of a table are ordered by, where it is not their objects' names.
    fn row_order(&self) -> Option<fn(&Value) -> i64> {
        None
    }

    /// Annotations in which a version tells what it has no fields for: who asks for a table or for metadata alone is not told them.
    fn made_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether what may be no name may not be the beginning of one either.
    fn validates_name_prefix(&self) -> bool {
        true
    }

    /// Whether the beginning of a name is not the whole name.
    fn completes_name_prefix(&self) -> bool {
        true
    }

    /// What name an object is given that comes without one, and without the beginning of one.
    fn nameless(&self) -> Nameless {
        Nameless::Refused
    }

    /// Whether a list or map without an element is a change of an object that does not tell it, though both are stored alike: upstream compares
    /// some kinds by Go's `reflect.DeepEqual`. Each such write makes another generation.
    fn counts_empty(&self) -> bool {
        false
    }

    /// Lists, by their JSON pointers, that are something else when they are empty than when they are absent; `*` stands for any element of a list.
    fn lists_kept_empty(&self) -> &'static [&'static str] {
        &[]
    }

    /// Rewrites an object of one version of this resource into another. `apiVersion` and `kind` are set by the caller.
    ///
    /// # Errors
    /// Tells why it cannot be converted.
    fn convert(&self, object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        Ok(())
    }

    /// The revision of the store at which the kind's schema was last written; objects of later ones need no second look when they are read.
    fn schema_written(&self) -> Option<u64> {
        None
    }

    /// A number that is another one once objects are served as something else; none where that does not happen while the server runs.
    fn shape(&self) -> Option<u64> {
        None
    }

    /// The webhook that converts objects in place of [`Strategy::convert`].
    fn conversion_webhook(&self) -> Option<&ConversionWebhook> {
        None
    }

    /// How long objects live after they were last written; `None`: until deleted.
    fn time_to_live(&self) -> Option<Duration> {
        None
    }
}

/// The strategy of kinds that add nothing.
pub struct PlainStrategy;

impl Strategy for PlainStrategy {}
