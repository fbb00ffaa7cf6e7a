//! The verbs on stored objects, free of HTTP: what a write does to an object, step by step, and what a read finds.
//!
//! Every write is a read-decide-commit loop: the commit carries the revision the decision was made on, and is made anew when another
//! write came first.

mod accept;
mod companions;
mod create;
mod delete;
mod empties;
mod found;
mod numbers;
mod ownership;
mod patch;
mod read;
mod update;

pub(crate) use accept::{UNVERSIONED, core_named, subject, unrecognized};
pub use delete::{DeleteOptions, Deleted, Preconditions};
pub use empties::Empties;
pub(crate) use found::Beside;
pub(crate) use ownership::owned_by_server;
pub use patch::PatchKind;
pub(crate) use patch::{by_operations, not_an_object, not_of_this_type, shown_patched};
pub use read::{ListQuery, Page};
pub(crate) use read::{parse_revision, read_error, sent_revision};

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use gardener_store::{Change, CommitError, Committed, Entry, Expect, Key};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use self::found::Found;
use crate::accept::{Accept, Encoding, Shape};
use crate::audit::Audited;
use crate::cluster::LogicalCluster;
use crate::definition::{Attributes, Context, Definition, Draft, Operation, Version, Warnings};
use crate::metrics::admission::Step;
use crate::unread::Unread;
use crate::user::UserInfo;
use crate::webhooks::{Reinvocation, conversion};
use crate::{meta, object, protobuf, table};

/// How often a write without a resourceVersion is decided anew, because others changed the object meanwhile, before the client is told to try
/// again. As upstream, whoever waits long enough gets through: the time that a request may take ends it earlier.
const RETRIES: usize = 10_000;

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// What a write's query string says.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Decide, but do not store.
    pub dry_run: bool,
    /// Who owns the fields written.
    pub field_manager: String,
    /// The query parameters `fieldManager` and `fieldValidation` as they came.
    pub asked: AskedOptions,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// Take over fields that others own (server-side apply only).
    pub force: bool,
    /// Who owns what is told in the object's managedFields: another one, its scale, was written, and this follows.
    pub owned: bool,
}

/// What a client said of its own accord, as admission shows it.
#[derive(Clone, Debug, Default)]
pub struct AskedOptions {
    /// `fieldManager`; empty: not given.
    pub field_manager: String,
    /// `fieldValidation`; empty: not given.
    pub field_validation: String,
}

impl WriteOptions {
    /// `CreateOptions` or `UpdateOptions`, as admission shows them.
    pub(crate) fn object(&self, kind: &str) -> Value {
        let mut options = serde_json::Map::new();
        options.insert("kind".into(), kind.into());
        options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        if self.dry_run {
            options.insert("dryRun".into(), serde_json::json!(["All"]));
        }
        for (key, value) in [
            ("fieldManager", &self.asked.field_manager),
            ("fieldValidation", &self.asked.field_validation),
        ] {
            if !value.is_empty() {
                options.insert(key.into(), value.clone().into());
            }
        }
        options.into()
    }
}

/// One resource of one cluster, as one request addresses it.
#[derive(Clone)]
pub struct Scope {
    /// The cluster.
    pub cluster: Arc<LogicalCluster>,
    /// The resource.
    pub definition: Arc<Definition>,
    /// Version of the request.
    pub version: String,
    /// Namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// What the request asks for, as authorization names it; empty for what the server does by itself.
    pub verb: &'static str,
    /// The caller.
    pub user: Arc<UserInfo>,
    /// Whether plugins do not look at what is done: it is part of something that they looked at.
    pub admitted: bool,
    /// Whether the object is deleted with its collection.
    pub with_collection: bool,
    /// Sentences for `Warning` headers of a request that is refused.
    pub refused_with: Arc<Warnings>,
    /// What the body tells empty.
    pub empties: Arc<Empties>,
    /// What is told of the request.
    pub audited: Audited,
    /// Until when the caller waits for the answer.
    pub until: Option<Instant>,
    /// The version in which objects are stored, where it is another than the definition says: see [`Scope::in_requested`].
    pub(crate) stored_as: Option<String>,
    /// The resource that what is posted to the subresource was posted to in its place, which is the one that admission sees.
    pub(crate) posted_to: Option<Arc<Definition>>,
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The object in the request's version.
    pub object: Draft,
    /// The entry that was written, if one was.
    pub(crate) entry: Option<Arc<Entry>>,
    /// Whether it did not exist before.
    pub created: bool,
    /// Sentences for `Warning` headers.
    pub warnings: Vec<String>,
}

/// An object as a write left it.
struct Stored {
    object: Draft,
    /// The entry that was written, if one was.
    entry: Option<Arc<Entry>>,
}

impl From<Draft> for Stored {
    /// An object that was not written.
    fn from(object: Draft) -> Self {
        Self { object, entry: None }
    }
}

impl Stored {
    /// `object` as the commit stored it.
    fn by(committed: Committed, mut object: Draft) -> Self {
        let revision = committed.entry.mod_revision.to_string();
        meta::set(object.read_part_mut(), "resourceVersion", Some(revision.into()));
        Self {
            object,
            entry: Some(committed.entry),
        }
    }

    fn answered(self, created: bool, warnings: Vec<String>) -> Written {
        let Self { object, entry } = self;
        Written {
            object,
            entry,
            created,
            warnings,
        }
    }
}

/// Names a place below the status as upstream does where the status is looked at by itself.
fn by_status(error: &mut Error) {
    let below = match error.detail.strip_prefix("status") {
        Some(rest) if rest.starts_with('.') => rest.get(1..),
        Some(rest) if rest.starts_with(" in body") => Some(rest),
        _ => None,
    };
    if let Some(below) = below.map(str::to_owned) {
        error.detail = below;
    }
}

impl Scope {
    pub(crate) fn spec(&self) -> Result<&Version, ApiError> {
        self.definition
            .version(&self.version)
            .ok_or_else(ApiError::no_such_path)
    }

    fn stored(&self) -> Result<&Version, ApiError> {
        self.definition.stored_version().ok_or_else(ApiError::no_such_path)
    }

    /// All objects of a resource, for one whom plugins look at and who has no name.
    pub(crate) fn of_all(cluster: &Arc<LogicalCluster>, definition: Arc<Definition>, version: &str) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            definition,
            version: version.to_owned(),
            namespace: String::new(),
            name: String::new(),
            subresource: String::new(),
            verb: "",
            user: Arc::default(),
            admitted: false,
            with_collection: false,
            refused_with: Arc::default(),
            empties: Arc::default(),
            audited: Audited::default(),
            until: None,
            stored_as: None,
            posted_to: None,
        }
    }

    /// The same resource, one object of it.
    #[must_use]
    pub fn at(&self, namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        self.cluster.key(&self.definition, &self.namespace, name)
    }

    /// The subresource that was asked for.
    pub(crate) fn posted_subresource(&self) -> &str {
        match self.posted_to {
            Some(_) => "",
            None => &self.subresource,
        }
    }

    /// Whether this is the object itself under another name.
    pub(crate) fn is_view(&self) -> bool {
        self.definition.strategy.views().contains(&self.subresource.as_str())
    }

    /// Nothing has this name, or nothing can.
    pub(crate) fn not_found(&self) -> ApiError {
        if let Some(why) = meta::path_segment(&self.name).first() {
            return ApiError::bad_request(format!("Name parameter invalid: {}: {why}", go_quote(&self.name)));
        }
        ApiError::not_found(&self.definition.group, &self.definition.plural, &self.name)
    }

    fn conflict(&self, why: &str) -> ApiError {
        ApiError::conflict(&self.definition.group, &self.definition.plural, &self.name, why)
    }

    pub(crate) fn modified(&self) -> ApiError {
        self.conflict("the object has been modified; please apply your changes to the latest version and try again")
    }

    fn invalid(&self, name: &str, errors: ErrorList) -> ApiError {
        let kind = self
            .definition
            .version(&self.version)
            .map_or("", |version| version.kind.as_str());
        let group = self.definition.strategy.group_in_refusals(&self.definition.group);
        ApiError::invalid(group, kind, name, &self.empties.shown_in(errors))
    }

    pub(crate) fn context<'c>(&'c self, now: Timestamp, dry_run: bool) -> Context<'c> {
        Context {
            user: &self.user,
            cluster: self.cluster.name(),
            now,
            chance: self.cluster.chance().number(),
            dry_run,
            verb: self.verb,
            lister: self.cluster.as_ref(),
        }
    }

    /// The stored entry.
    pub(crate) fn entry(&self) -> Result<Arc<Entry>, ApiError> {
        self.cluster
            .store()
            .get(&self.key(&self.name))
            .ok_or_else(|| self.not_found())
    }

    /// The scope in which a custom resource is written: as upstream, all that is decided of it is decided in the request's version, and it
    /// becomes the stored one only where it is stored. So the definition there is one that stores the request's version.
    #[must_use]
    pub(crate) fn in_requested(self) -> Self {
        let stored = self.definition.stored_version().map(|stored| stored.name.clone());
        let Some(stored) = stored.filter(|stored| !self.definition.is_go_type() && *stored != self.version) else {
            return self;
        };
        let mut definition = Definition::clone(&self.definition);
        for version in &mut definition.versions {
            version.stored = version.name == self.version;
        }
        Self {
            definition: Arc::new(definition),
            stored_as: Some(stored),
            ..self
        }
    }

    /// A decided object as it is stored; none if that is the same.
    async fn as_stored(&self, object: &Value) -> Result<Option<Value>, ApiError> {
        let Some(stored) = &self.stored_as else { return Ok(None) };
        let mut object = object.clone();
        conversion::convert(
            &self.cluster,
            &self.definition,
            &mut [&mut object],
            &self.version,
            stored,
        )
        .await?;
        self.definition.restore(&mut object);
        Ok(Some(object))
    }

    /// Rewrites an object of the request's version into the stored one.
    async fn to_stored(&self, object: &mut Value) -> Result<(), ApiError> {
        let stored = self.stored()?.name.clone();
        conversion::convert(&self.cluster, &self.definition, &mut [object], &self.version, &stored).await?;
        if stored != self.version {
            self.definition.restore(object);
        }
        Ok(())
    }

    /// Rewrites a stored object into the request's version.
    pub(crate) async fn to_requested(&self, object: &mut Value) -> Result<(), ApiError> {
        let stored = self.stored()?.name.clone();
        self.definition.restore(object);
        let objects = &mut [object];
        conversion::convert(&self.cluster, &self.definition, objects, &stored, &self.version).await?;
        self.prune_requested(objects, &stored);
        Ok(())
    }

    /// Rewrites stored objects into the request's version, all at once, for one who lists, watches or has written them.
    pub(crate) async fn all_to_requested(&self, objects: &mut [&mut Value]) -> Result<(), ApiError> {
        let stored = self.stored()?.name.clone();
        objects.iter_mut().for_each(|object| self.definition.restore(object));
        conversion::convert_known(&self.cluster, &self.definition, objects, &stored, &self.version).await?;
        self.prune_requested(objects, &stored);
        Ok(())
    }

    /// Whether what is decided in the request's version is stored, and shown, as it is.
    fn is_shown_as_stored(&self) -> bool {
        self.stored_as.is_none() && self.is_stored_version()
    }

    /// Drops what the request's version does not know of objects that were in the stored one.
    fn prune_requested(&self, objects: &mut [&mut Value], stored: &str) {
        if stored != self.version || self.stored_as.is_some() {
            let objects = objects.iter_mut();
            objects.for_each(|object| self.definition.prune_as(object, &self.version));
        }
    }

    /// Brings an object that was stored in another version into the one that is stored today.
    async fn to_stored_today(&self, object: &mut Value) -> Result<(), ApiError> {
        if self.definition.is_go_type() {
            return Ok(());
        }
        self.definition.restore(object);
        let stored = self.stored()?.name.clone();
        let own = meta::text(object, "/apiVersion");
        let own = own.rsplit_once('/').map_or(own, |(_, version)| version).to_owned();
        conversion::convert_known(&self.cluster, &self.definition, &mut [object], &own, &stored).await?;
        if own != stored {
            self.definition.prune_as(object, &stored);
        }
        Ok(())
    }

    /// A stored object in the request's version; the same one if that is how it is stored.
    async fn requested<'f>(&self, found: &'f Found) -> Result<Cow<'f, Value>, ApiError> {
        if found.is_plain {
            return Ok(Cow::Borrowed(&found.object));
        }
        let mut object = Value::clone(&found.object);
        self.to_requested(&mut object).await?;
        Ok(Cow::Owned(object))
    }

    /// Whether stored bytes are what the request's version shows: objects that were stored before the definition changed may not be.
    pub(crate) fn is_current(&self, entry: &Entry) -> bool {
        self.definition.is_go_type()
            || (self.is_of_today(entry) && self.definition.is_written_in(&self.version, &entry.head()))
    }

    /// Whether an object was stored since its definition last changed.
    fn is_of_today(&self, entry: &Entry) -> bool {
        let written = self.definition.strategy.schema_written();
        written.is_none_or(|written| entry.mod_revision > written)
    }

    /// The stored bytes, where they are what `accept` wants.
    pub(crate) fn plain(&self, entry: &Entry, accept: Accept) -> Option<Bytes> {
        let plain = accept.is_plain_json() && self.is_stored_version() && self.is_current(entry);
        plain.then(|| entry.bytes())
    }

    /// Whether stored bytes can be sent as they are.
    pub(crate) fn is_stored_version(&self) -> bool {
        self.definition
            .stored_version()
            .is_some_and(|version| version.name == self.version)
            && self.definition.topic.as_str() == format!("{}/{}", self.definition.group, self.definition.plural)
    }

    /// The protobuf kind of what `accept` shows of an object, when it is to be protobuf.
    pub(crate) fn protobuf_kind(&self, accept: Accept) -> Option<protobuf::Kind> {
        match (accept.encoding, accept.shape) {
            (Encoding::Protobuf, Shape::Object) => {
                let api_version = self.definition.api_version(&self.version);
                protobuf::Kind::of(&api_version, &self.spec().ok()?.kind)
            }
            (Encoding::Protobuf, Shape::Metadata) => protobuf::Kind::of(accept.meta_version(), table::PARTIAL),
            _ => None,
        }
    }

    /// What was found wrong before, and what a schema finds wrong then; `warnings` takes what was wrong before and may stay.
    fn validate_schema(
        &self,
        before: ErrorList,
        (object, old): (&Draft, Option<&Draft>),
        warnings: &mut Vec<String>,
    ) -> ErrorList {
        let version = self.spec().ok().filter(|_| self.definition.strategy.validates_schema());
        let Some((version, schema)) = version.and_then(|version| Some((version, version.schema.as_ref()?))) else {
            return before;
        };
        let is_status = self.subresource == "status";
        // where all must be looked at, all has been read
        let (object, old) = (object.read_part(), old.map(Draft::read_part));
        let of_scale = || {
            let scale = version.scale.as_ref();
            scale.map_or_else(Vec::new, |scale| crate::crd::scale::validate(object, scale, !is_status))
        };
        let found = match is_status {
            true => {
                let mut found = schema.validate_status(before, (object, old), of_scale);
                found.errors.iter_mut().for_each(by_status);
                found
            }
            false => schema.validate_with(before, (object, old), &Path::root(), || {
                let mut errors = of_scale();
                errors.extend(crate::crd::embedded::validate(schema, object));
                errors
            }),
        };
        warnings.extend(found.still_broken.iter().map(ToString::to_string));
        found.errors
    }

    /// Runs every plugin's `admit`, and once more when a webhook changed the object after plugins had seen it.
    async fn admit(
        &self,
        context: &Context<'_>,
        operation: Operation,
        options: &Value,
        object: &mut Option<Draft>,
        old: Option<&Draft>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if self.admitted {
            return Ok(());
        }
        // only rules that people write may leave an object in a form that it must not have
        let changed_by_rules = object.is_some() && self.is_changed_by_rules();
        let managed = object.as_ref().filter(|_| changed_by_rules).map(Draft::read_part);
        let managed = managed.and_then(|object| object.at("/metadata/managedFields").cloned());
        let mut attributes = self.attributes(context, operation, options, object.take(), old);
        let begun = Instant::now();
        let admitted = self.admit_rounds(&mut attributes).await;
        self.count_admission("admit", operation, admitted.is_err(), begun);
        *object = attributes.object.take();
        warnings.extend(attributes.warnings.into_vec());
        if changed_by_rules
            && admitted.is_ok()
            && let Some(object) = object
        {
            warnings.extend(ownership::mended(object, managed));
            warnings.extend(accept::single_owners(object, " after mutating admission happens"));
        }
        admitted.inspect_err(|_| self.refused_with.extend(warnings.drain(..)))
    }

    async fn admit_rounds(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        loop {
            for plugin in self.cluster.admission() {
                plugin.admit(attributes).await?;
            }
            if !attributes.reinvocation.begin() {
                return Ok(());
            }
        }
    }

    /// Runs all plugins on the body of a subresource with a kind of its own: on one that is posted, or on a change of `old`. `prepare`
    /// completes it after plugins changed it, and before they judge it.
    pub(crate) async fn admit_body(
        &self,
        context: &Context<'_>,
        options: &WriteOptions,
        body: Value,
        old: Option<&Draft>,
        prepare: impl FnOnce(&mut Value) -> Result<(), ApiError>,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let (operation, kind) = match old {
            Some(_) => (Operation::Update, "UpdateOptions"),
            None => (Operation::Create, "CreateOptions"),
        };
        let options = options.object(kind);
        let mut body = Some(Draft::from(body));
        self.admit(context, operation, &options, &mut body, old, warnings)
            .await?;
        let mut body = body.map(Draft::into_json).unwrap_or_default();
        prepare(&mut body)?;
        let body = Some(Draft::from(body));
        let body = self.admit_final(context, operation, &options, body, old, warnings);
        Ok(body.await?.map(Draft::into_json).unwrap_or_default())
    }

    /// Runs all plugins on a call that connects to something, with its options.
    pub(crate) async fn admit_connection(&self, context: &Context<'_>, options: Value) -> Result<(), ApiError> {
        let (operation, none, mut warnings) = (Operation::Connect, Value::Null, Vec::new());
        let mut options = Some(Draft::from(options));
        self.admit(context, operation, &none, &mut options, None, &mut warnings)
            .await?;
        self.admit_final(context, operation, &none, options, None, &mut warnings)
            .await?;
        // what connects answers by itself
        self.refused_with.extend(warnings);
        Ok(())
    }

    async fn admit_final(
        &self,
        context: &Context<'_>,
        operation: Operation,
        options: &Value,
        object: Option<Draft>,
        old: Option<&Draft>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Draft>, ApiError> {
        let mut object = object;
        // who is asked for the last time sees the object as it is stored
        if let Some(object) = object.as_mut().filter(|_| !self.definition.is_go_type()) {
            numbers::write(object.read_part_mut());
        }
        if self.admitted {
            return Ok(object);
        }
        let attributes = self.attributes(context, operation, options, object, old);
        let (mut validated, begun) = (Ok(()), Instant::now());
        for plugin in self.cluster.admission() {
            validated = plugin.validate(&attributes).await;
            if validated.is_err() {
                break;
            }
        }
        self.count_admission("validate", operation, validated.is_err(), begun);
        warnings.extend(attributes.warnings.into_vec());
        validated.inspect_err(|_| self.refused_with.extend(warnings.drain(..)))?;
        let mut object = attributes.object;
        if let Some(object) = &mut object {
            self.prune_changed(object);
        }
        Ok(object)
    }

    fn count_admission(&self, step: &'static str, operation: Operation, rejected: bool, begun: Instant) {
        let step = Step {
            step,
            operation,
            rejected,
        };
        self.cluster.metrics().admission.count(step, begun.elapsed());
    }

    /// Whether webhooks or policies may change what is sent.
    fn is_changed_by_rules(&self) -> bool {
        self.cluster.mutates_by_rules(&self.definition, &self.subresource)
    }

    /// Whether webhooks or policies may look at what is sent.
    fn is_judged(&self) -> bool {
        self.cluster.has_judges(&self.definition, &self.subresource)
    }

    /// Drops what webhooks added to a custom resource that its schema does not know.
    fn prune_changed(&self, object: &mut Draft) {
        let custom = self.definition.strategy.validates_schema() && self.subresource != "scale";
        if custom
            && self.is_changed_by_rules()
            && let Some(version) = self.definition.stored_version().filter(|version| version.prunes)
            && let Some(schema) = &version.schema
        {
            schema.prune(object);
        }
    }

    fn attributes<'c>(
        &'c self,
        context: &'c Context<'c>,
        operation: Operation,
        options: &'c Value,
        object: Option<Draft>,
        old: Option<&'c Draft>,
    ) -> Attributes<'c> {
        let definition = self.posted_to.as_ref().unwrap_or(&self.definition);
        Attributes {
            operation,
            definition,
            version: &self.version,
            subresource: self.posted_subresource(),
            namespace: &self.namespace,
            name: &self.name,
            object,
            old,
            context,
            options,
            empties: Arc::clone(&self.empties),
            audited: self.audited.clone(),
            until: self.until,
            with_collection: self.with_collection,
            warnings: Warnings::default(),
            reinvocation: Reinvocation::default(),
        }
    }

    /// Turns an object of an API that shows another one's objects (`events.k8s.io`) into the form of the other one, or back.
    fn turn(&self, object: &mut Value) -> Result<(), ApiError> {
        if !self.definition.shows_anothers() {
            return Ok(());
        }
        let version = &self.stored()?.name;
        self.definition.strategy.convert(object, version, version)
    }

    /// Stores an object under a name, for the first time or in place of `old`.
    async fn commit_put(
        &self,
        name: &str,
        expect: Expect,
        object: &Value,
        unread: Option<&Unread>,
        old: Option<&Value>,
    ) -> Result<Committed, CommitError> {
        let mut turned = Cow::Borrowed(object);
        if self.definition.shows_anothers() {
            self.turn(turned.to_mut()).map_err(|error| CommitError::Refused {
                reason: error.message().into(),
            })?;
        }
        let object = &*turned;
        let change = Change::Put {
            key: self.key(name),
            expect,
            value: object::encode_with(object, unread),
        };
        self.commit_with_companions(change, old, Some(object)).await
    }

    /// As [`Scope::commit_put`], if need be without the object's managedFields.
    async fn commit_fitting(
        &self,
        (name, expect): (&str, Expect),
        object: &mut Value,
        unread: Option<&Unread>,
        old: Option<&Value>,
        too_large: TooLarge,
    ) -> Result<Committed, CommitError> {
        match self.commit_put(name, expect, object, unread, old).await {
            Err(CommitError::TooLarge { .. })
                if too_large == TooLarge::LosesManagedFields && meta::take_managed_fields(object).is_some() =>
            {
                self.commit_put(name, expect, object, unread, old).await
            }
            done => done,
        }
    }

    async fn commit_delete(&self, name: &str, expect: Expect, old: &Value) -> Result<Committed, CommitError> {
        let change = Change::Delete {
            key: self.key(name),
            expect,
        };
        self.commit_with_companions(change, Some(old), None).await
    }
}

#[cfg(test)]
impl Scope {
    /// The objects of a built-in kind in the namespace `default`, for one whom nobody looks at.
    pub(crate) fn of_kind(cluster: Arc<LogicalCluster>, group: &str, resource: &str) -> Self {
        let definition = cluster.find(group, resource).unwrap();
        Self {
            namespace: "default".into(),
            admitted: true,
            ..Self::of_all(&cluster, definition, "v1")
        }
    }
}

/// What becomes of an object that is too large to be stored; as upstream, it depends on how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TooLarge {
    /// It is stored without its managedFields, if that helps: nobody has asked for these.
    LosesManagedFields,
    /// It is refused: to own fields is what an apply is for, and other writes do not touch them.
    IsRefused,
}

/// The largest request that upstream sends to etcd.
const LARGEST_SENT: usize = 2 << 20;

/// Refuses an object that the store does not take, in etcd's words, which clients know from upstream.
fn too_large(size: usize) -> ApiError {
    match size > LARGEST_SENT {
        true => ApiError::unclassified(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {LARGEST_SENT})"
        )),
        false => ApiError::unclassified("etcdserver: request is too large"),
    }
}

/// A commit failure that is no conflict, as an API error.
pub(crate) fn commit_failed(error: &CommitError) -> ApiError {
    match error {
        CommitError::TooLarge { size, .. } => too_large(*size),
        CommitError::Conflict { .. } => ApiError::new(409, "Conflict", error.to_string()),
        CommitError::Unavailable { .. } | CommitError::Closed | CommitError::Unreachable { .. } => {
            ApiError::unavailable(error.to_string())
        }
        CommitError::Unknown { .. } => ApiError::new(504, "Timeout", error.to_string()),
        CommitError::Repeated { .. } | CommitError::Refused { .. } | CommitError::Cipher { .. } => {
            ApiError::unclassified(error.to_string())
        }
    }
}
