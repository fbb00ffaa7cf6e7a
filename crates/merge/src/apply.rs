//! Server-side apply and the tracking of ownership: what becomes of an object and of the sets of its managers.
//!
//! Sets are taken to be of the version that is written, but for those of managers for whom a change is shown in another ([`Across`]).

use gardener_apimachinery::type_meta::is_no_group_version;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::meta::go_kind;
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::Schema;
use gardener_schema::json::same;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause;
use serde_json::{Map, Value};

use crate::Operation;
use crate::fieldset::Set;
use crate::managed::{Fields, Identity, Managed, Ownership};
use crate::typed::{self, Comparison};

/// The annotation that client-side `kubectl apply` keeps its configuration in.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager of what an object without managers had before it was first applied to.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager for which the annotation of client-side apply counts.
const KUBECTL: &str = "kubectl";
/// The largest annotation that is kept, in bytes.
const MAX_ANNOTATION: usize = 256 * 1024;

/// Fields that nobody owns.
static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});
static NO_FIELDS: LazyLock<Set> = LazyLock::new(Set::new);
static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// Who writes, how, and in which version.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// By apply or otherwise.
    pub operation: Operation,
    /// The group and version of the object as written: `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

impl Manager<'_> {
    fn identity(&self) -> Identity {
        let name = if self.name.is_empty() { "unknown" } else { self.name };
        Identity::new(name, self.operation, self.api_version, self.subresource)
    }
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner as messages tell it: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field: `.spec.replicas`.
    pub field: String,
}

/// Why a configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that the configuration sets otherwise; sorted by manager, then by field.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration has entries of its own.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsSent,
    /// The configuration does not fit the schema.
    #[error("failed to create typed patch object ({subject}): {}", detail(.found))]
    Malformed {
        /// Which object: `default/a; apps/v1, Kind=Deployment`.
        subject: String,
        /// What does not fit, each as `<path>: <why>`.
        found: Vec<String>,
    },
    /// The live object, which has no entries, does not fit the schema, so that nobody can be noted as the owner of what it has.
    #[error("failed to create manager for existing fields: failed to convert new object ({subject}) to smd typed: {}", detail(.found))]
    LiveMalformed {
        /// Which object.
        subject: String,
        /// What does not fit, each as `<path>: <why>`.
        found: Vec<String>,
    },
    /// What was merged is no object of its Go type.
    #[error(
        "failed to convert new object{}: unable to convert unstructured object to {kind}: {why}",
        subject.as_ref().map(|subject| format!(" ({subject}) to proper version")).unwrap_or_default()
    )]
    NoSuchType {
        /// Which object, unless that was found where it was made the object of another version.
        subject: Option<String>,
        /// The version and kind: `apps/v1, Kind=Deployment`.
        kind: String,
        /// What does not fit.
        why: String,
    },
}

/// What of a stored object is not as the schema has it, in upstream's words. Its lists may have an element twice.
pub fn unreadable(object: &Value, schema: &Schema) -> Option<String> {
    let found = misfits(object, schema);
    (!found.is_empty()).then(|| detail(&found))
}

/// Merges a configuration into an object without regard to who owns what.
///
/// # Errors
/// Either does not fit the schema, or the configuration has lists or maps that it would replace as a whole.
pub fn overlay(object: &Value, config: &Value, schema: &Schema) -> Result<Value, String> {
    typed::check(config, schema)
        .map_err(|found| format!("failed to convert patch object to typed object: {}", detail(&found)))?;
    let atomics = typed::atomics(config, schema);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    if let Some(why) = unreadable(object, schema) {
        return Err(format!("failed to convert original object to typed object: {why}"));
    }
    Ok(typed::merge(object, config, schema))
}

fn misfits(object: &Value, schema: &Schema) -> Vec<String> {
    let mut found = typed::check(object, schema).err().unwrap_or_default();
    found.retain(|why| !why.contains(typed::TWICE));
    found
}

fn detail(found: &[String]) -> String {
    match found {
        [one] => one.clone(),
        many => format!(
            "errors:\n{}",
            many.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n")
        ),
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.manager, one.field
        );
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.into_iter().map(|conflict| StatusCause {
                    reason: Some("FieldManagerConflict".to_owned()),
                    message: Some(format!("conflict with {}", conflict.manager)),
                    field: Some(conflict.field),
                });
                Self::new(409, "Conflict", message).with_causes(causes.collect())
            }
            ApplyError::ManagedFieldsSent => Self::bad_request(message),
            ApplyError::Malformed { .. } | ApplyError::LiveMalformed { .. } | ApplyError::NoSuchType { .. } => {
                Self::unclassified(message)
            }
        }
    }
}

/// A manager as messages tell it to another one.
fn shown(identity: &Identity) -> String {
    let mut text = go_quote(&identity.manager);
    if !identity.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", go_quote(&identity.subresource)));
    }
    if identity.operation == Operation::Update {
        text.push_str(&format!(" using {}", identity.api_version));
    }
    text
}

/// Applies a configuration to the live object, if there is one, and answers the merged object with its `managedFields`.
/// `now` is RFC 3339 in whole seconds. `reset_fields` are fields that this manager cannot own on this endpoint.
///
/// Fields that the manager applied last time and does not apply now are removed where nobody else owns them. Times stay
/// when nothing else changes.
///
/// # Errors
/// Conflicts with other managers unless `force`; a configuration that does not fit the schema.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    schema: &Schema,
    manager: &Manager<'_>,
    force: bool,
    now: &str,
    reset_fields: &Set,
) -> Result<Value, ApplyError> {
    let terms = Terms {
        force,
        reset_fields,
        across: Across::default(),
    };
    apply_across(live, config, schema, manager, now, &terms)
}

/// How a configuration is applied.
pub struct Terms<'a> {
    /// Whether fields that others own are taken over.
    pub force: bool,
    /// Fields that the manager cannot own on this endpoint.
    pub reset_fields: &'a Set,
    /// The versions besides that of the configuration.
    pub across: Across<'a>,
}

/// The versions in which others than the manager may own fields.
#[derive(Clone, Copy, Default)]
pub struct Across<'a> {
    /// The change as other versions show it: who owns fields there is asked by what changes there.
    pub others: &'a [InVersion<'a>],
    /// All versions that the kind has, with their group, where those are all that an object can be shown in: who owns fields in another is
    /// forgotten.
    pub known: Option<&'a [String]>,
}

impl Across<'_> {
    /// Whether the fields of a version can be told.
    fn knows(&self, api_version: &str) -> bool {
        self.known
            .is_none_or(|known| known.iter().any(|version| version == api_version))
    }

    /// Whether no stored entry is of a version whose fields cannot be told.
    fn knows_all(&self, entries: &Value) -> bool {
        let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
        self.known.is_none() || entries.iter().all(|entry| self.knows(api_version_of(entry)))
    }

    fn forget_unknown(&self, managed: &mut Managed<'_>) {
        if self.known.is_some() {
            managed.entries.retain(|_, owned| self.knows(&owned.api_version));
        }
    }
}

fn api_version_of(entry: &Value) -> &str {
    entry.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// As [`apply`], of a kind whose versions may have other names for the same.
///
/// # Errors
/// As [`apply`].
pub fn apply_across(
    live: Option<&Value>,
    config: &Value,
    schema: &Schema,
    manager: &Manager<'_>,
    now: &str,
    terms: &Terms<'_>,
) -> Result<Value, ApplyError> {
    let Terms {
        force,
        reset_fields,
        across,
    } = *terms;
    if config.at("/metadata/managedFields").is_some_and(|sent| !sent.is_null()) {
        return Err(ApplyError::ManagedFieldsSent);
    }
    typed::check(config, schema).map_err(|found| ApplyError::Malformed {
        subject: subject(config),
        found,
    })?;
    let mut managed = Managed::of_stored(live.and_then(entries_of).map(Cow::Borrowed));
    let mut versions = managed.entries.values().map(|owned| owned.api_version.as_str());
    let is_owned_elsewhere = versions.any(|version| version != manager.api_version && across.knows(version));
    if let (true, Some(live)) = (managed.entries.is_empty(), live) {
        let found = misfits(live, schema);
        if !found.is_empty() {
            let subject = subject(live);
            return Err(ApplyError::LiveMalformed { subject, found });
        }
        let before = Manager {
            name: BEFORE_FIRST_APPLY,
            operation: Operation::Update,
            ..*manager
        };
        let had = changes(&NOTHING, live, schema, reset_fields);
        take(&mut managed, had, &before, now);
    }
    let task = Task {
        live: live.unwrap_or(&NOTHING),
        is_new: live.is_none(),
        config,
        schema,
        manager,
        now,
        reset_fields,
        across,
    };
    let again = (manager.name == KUBECTL).then(|| managed.clone());
    let (mut object, managed) = match (task.run(managed, force), again) {
        (Ok(done), _) => done,
        (Err(conflicts), Some(managed)) => {
            // What client-side apply set and nobody changed since may be taken over.
            let allowed = task.last_applied();
            let rest: Vec<(Identity, Set)> = conflicts
                .into_iter()
                .map(|(identity, fields)| (identity, fields.difference(&allowed)))
                .filter(|(_, fields)| !fields.is_empty())
                .collect();
            if !rest.is_empty() {
                return Err(refuse(rest));
            }
            task.run(managed, true).map_err(refuse)?
        }
        (Err(conflicts), None) => return Err(refuse(conflicts)),
    };
    if schema.definition_name().is_some() {
        schema.convert(&object).map_err(|why| ApplyError::NoSuchType {
            subject: (!is_owned_elsewhere).then(|| subject(config)),
            kind: kind_of(config),
            why: why.to_string(),
        })?;
    }
    if manager.name == KUBECTL {
        sync_last_applied(live, config, &mut object);
    }
    store_entries(&mut object, managed);
    Ok(object)
}

fn refuse(conflicts: Vec<(Identity, Set)>) -> ApplyError {
    let list = conflicts.iter().flat_map(|(identity, fields)| {
        fields.paths().into_iter().map(move |field| Conflict {
            manager: shown(identity),
            field,
        })
    });
    ApplyError::Conflicts(list.collect())
}

/// Which object a configuration is about, as messages tell it: `default/a; apps/v1, Kind=Deployment`.
pub fn subject(config: &Value) -> String {
    let text = |pointer: &str| config.at(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {}", kind_of(config))
}

fn kind_of(object: &Value) -> String {
    let text = |pointer: &str| object.at(pointer).and_then(Value::as_str).unwrap_or_default();
    go_kind(text("/apiVersion"), text("/kind"))
}

struct Task<'a> {
    live: &'a Value,
    /// Whether there is no live object.
    is_new: bool,
    config: &'a Value,
    schema: &'a Schema,
    manager: &'a Manager<'a>,
    now: &'a str,
    reset_fields: &'a Set,
    across: Across<'a>,
}

impl<'a> Task<'a> {
    /// The merged object and its entries, or who owns which fields otherwise.
    fn run(&self, mut managed: Managed<'a>, force: bool) -> Result<(Value, Managed<'a>), Vec<(Identity, Set)>> {
        let identity = self.manager.identity();
        self.across.forget_unknown(&mut managed);
        let mut fields = typed::to_fieldset(self.config, self.schema);
        fields.subtract_recursively(self.reset_fields);
        let mut object = typed::merge(self.live, self.config, self.schema);
        let last = managed.entries.remove(&identity);
        if let Some(last) = &last {
            self.prune(&mut object, &managed, &fields, &last.fields.set());
        }
        let compare = |reset: &Set| changes_by(self.live, &object, self.schema, reset, true);
        let comparison = compare(self.reset_fields);
        // what will be reset, and what nobody owns, counts as a change, too
        let changed = self.is_new || !same(self.live, &object);
        let others = match self.reset_fields.is_empty() || resets_in_all_versions(self.schema, self.manager) {
            true => BTreeSet::new(),
            false => managed.versions_but(self.manager.api_version),
        };
        let reset_elsewhere = reset_elsewhere(self.schema, self.manager, self.reset_fields);
        let across = self.across.others.iter().map(|other| {
            let comparison = changes_by(other.live, other.new, other.schema, reset_elsewhere, true);
            (other.api_version, comparison)
        });
        let others: Vec<(&str, Comparison)> = across
            .chain(others.iter().map(|version| (version.as_str(), compare(&Set::new()))))
            .collect();
        let conflicts = release(&mut managed, &comparison, &others);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        fields.subtract(&STRIPPED);
        if !fields.is_empty() {
            let same = last.as_ref().is_some_and(|last| {
                !changed && *last.fields.set() == fields && last.api_version == self.manager.api_version
            });
            let time = match last {
                Some(last) if same => last.time,
                // who applies what is there already writes nothing, so that no time is known
                last if !changed => last.and_then(|last| last.time),
                _ => Some(self.now.to_owned()),
            };
            managed.entries.insert(
                identity,
                Ownership {
                    api_version: self.manager.api_version.to_owned(),
                    time,
                    fields: Fields::Read(fields),
                },
            );
        }
        Ok((object, managed))
    }

    /// Removes what the manager applied last time, does not apply now and nobody else owns.
    fn prune(&self, object: &mut Value, others: &Managed<'_>, fields: &Set, last: &Set) {
        if last.difference(fields).is_empty() {
            return;
        }
        let named = |set: &Set| typed::with_named_fields(set, self.schema);
        let merged = named(&typed::to_fieldset(object, self.schema));
        let last = named(last);
        let mut owned = fields.clone();
        for ownership in others.entries.values() {
            owned.extend(ownership.fields.set().into_owned());
        }
        // First all that was applied last time goes, then what is owned comes back, then what was not applied last time.
        let mut pruned = merged.clone();
        pruned.subtract_recursively(&last);
        let mut removal = merged.difference(&pruned);
        removal.subtract(&named(&owned));
        let mut pruned = merged.clone();
        pruned.subtract_recursively(&removal);
        let removal = merged.difference(&pruned).intersection(&last);
        typed::remove(object, &removal, self.schema);
    }

    /// Fields that client-side apply set and that still have that value.
    fn last_applied(&self) -> Set {
        let Some(applied) = annotation(self.live).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            return Set::new();
        };
        let comparison = typed::compare(&applied, self.live, self.schema);
        let mut fields = typed::to_fieldset(&applied, self.schema);
        fields.subtract(&comparison.modified);
        fields.subtract(&comparison.added);
        fields.subtract(&comparison.removed);
        fields
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()
}

/// Where client-side apply was used before, its annotation follows.
fn sync_last_applied(live: Option<&Value>, config: &Value, object: &mut Value) {
    if live.and_then(annotation).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.at_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{config}\n");
    if let Some(Value::Object(annotations)) = object.at_mut("/metadata/annotations") {
        if text.len() > MAX_ANNOTATION {
            annotations.remove(LAST_APPLIED);
        } else {
            annotations.insert(LAST_APPLIED.to_owned(), Value::String(text));
        }
    }
}

/// An object before and after a change as another version shows it: who owns fields in that version owns them by its names.
pub struct InVersion<'a> {
    /// The version, with its group.
    pub api_version: &'a str,
    /// The object before.
    pub live: &'a Value,
    /// The object after.
    pub new: &'a Value,
    /// The version's schema.
    pub schema: &'a Schema,
}

/// Tracks ownership for create, update and patches other than apply: rewrites `metadata.managedFields` of `new`.
///
/// Entries that the client sends replace the stored ones, but not through a subresource; none or an empty list leave the
/// stored ones; one empty entry (`[{}]`) drops them all. An object that exists without entries stays without them, and one whose fields
/// cannot be told apart loses them. Who takes fields gets the time `now`.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    schema: &Schema,
    manager: &Manager<'_>,
    now: &str,
    reset_fields: &Set,
) {
    update_across(live, new, schema, manager, now, reset_fields, Across::default());
}

/// As [`update`], where others own fields in other versions than the manager's.
pub fn update_across(
    live: Option<&Value>,
    new: &mut Value,
    schema: &Schema,
    manager: &Manager<'_>,
    now: &str,
    reset_fields: &Set,
    across: Across<'_>,
) {
    let sent = match new.get_mut("metadata") {
        Some(Value::Object(metadata)) => metadata.remove("managedFields"),
        _ => None,
    };
    let stored = live.and_then(entries_of);
    // what is sent back as it is stored need not be copied
    let (sent_back, sent) = match sent.as_ref() == stored {
        true => (sent, None),
        false => (None, sent),
    };
    let sent = sent.filter(|sent| manager.subresource.is_empty() && !sent.is_null());
    if live.is_some() && sent.as_ref().is_some_and(is_reset) {
        return;
    }
    let stored = sent_back.map(Cow::Owned).or_else(|| stored.map(Cow::Borrowed));
    if live.is_some_and(|live| !typed::stays_tracked(live, schema)) || !typed::is_tracked(new, live, schema) {
        return;
    }
    let comparison = changes(live.unwrap_or(&NOTHING), new, schema, reset_fields);
    if comparison.is_empty() && sent.is_none() && stored.as_ref().is_none_or(|stored| across.knows_all(stored)) {
        if let (Some(stored), Some(Value::Object(metadata))) = (stored, new.get_mut("metadata")) {
            metadata.insert("managedFields".to_owned(), stored.into_owned());
        }
        return;
    }
    let given = sent
        .and_then(|sent| Managed::decode(Some(&sent)).ok())
        .filter(|given| !given.entries.is_empty());
    let mut managed = given.unwrap_or_else(|| Managed::of_stored(stored));
    if managed.entries.is_empty() && live.is_some() {
        return;
    }
    // what is no version at all cannot even be asked for
    let mut versions = managed.entries.values().map(|owned| &owned.api_version);
    if across.known.is_some() && versions.any(|version| is_no_group_version(version)) {
        return;
    }
    across.forget_unknown(&mut managed);
    let reset_elsewhere = reset_elsewhere(schema, manager, reset_fields);
    let others: Vec<(&str, Comparison)> = across
        .others
        .iter()
        .map(|other| {
            (
                other.api_version,
                changes(other.live, other.new, other.schema, reset_elsewhere),
            )
        })
        .collect();
    release(&mut managed, &comparison, &others);
    take(&mut managed, comparison, manager, now);
    managed.cap();
    store_entries(new, managed);
}

/// The entries of an object.
fn entries_of(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Whether a client asks to drop all entries: one entry that is empty.
fn is_reset(sent: &Value) -> bool {
    matches!(sent.as_array().map(Vec::as_slice), Some([Value::Object(only)]) if only.is_empty())
}

fn store_entries(object: &mut Value, managed: Managed<'_>) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        if managed.entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), managed.encode());
        }
    }
}

/// How objects differ in fields that can be owned here.
fn changes(old: &Value, new: &Value, schema: &Schema, reset_fields: &Set) -> Comparison {
    changes_by(old, new, schema, reset_fields, false)
}

/// As [`changes`], of an object with what somebody `sent`.
fn changes_by(old: &Value, new: &Value, schema: &Schema, reset_fields: &Set, sent: bool) -> Comparison {
    let mut comparison = typed::compare_but(reset_fields, old, new, schema, sent);
    if !comparison.is_empty() {
        for set in [&mut comparison.added, &mut comparison.removed, &mut comparison.modified] {
            set.subtract(&STRIPPED);
        }
    }
    comparison
}

/// Whether what a write cannot change is left out of the change also for those who own fields in other versions. Upstream knows only the
/// written version's such fields where a custom resource itself is written: owners in other versions lose what was sent, though it is not
/// stored.
fn resets_in_all_versions(schema: &Schema, manager: &Manager<'_>) -> bool {
    schema.definition_name().is_some() || !manager.subresource.is_empty()
}

/// What a write cannot change for those who own fields in other versions.
fn reset_elsewhere<'r>(schema: &Schema, manager: &Manager<'_>, reset_fields: &'r Set) -> &'r Set {
    match resets_in_all_versions(schema, manager) {
        true => reset_fields,
        false => &NO_FIELDS,
    }
}

/// Takes changed fields from all managers and answers from whom which were taken because they were given another value. Who owns fields
/// in one of the `others`' versions loses what changed there.
fn release(managed: &mut Managed<'_>, comparison: &Comparison, others: &[(&str, Comparison)]) -> Vec<(Identity, Set)> {
    let mut conflicts = Vec::new();
    if managed.entries.is_empty() {
        return conflicts;
    }
    let set = comparison.modified.union(&comparison.added);
    managed.entries.retain(|identity, ownership| {
        let other = others.iter().find(|(version, _)| *version == ownership.api_version);
        let comparison = other.map_or(comparison, |(_, other)| other);
        let set = match other {
            Some((_, other)) => &other.modified.union(&other.added),
            None => &set,
        };
        let is_set = ownership.fields.touches(set);
        if is_set || ownership.fields.touches(&comparison.removed) {
            let fields = ownership.fields.set_mut();
            let conflict = fields.intersection(set);
            fields.subtract(&comparison.removed);
            fields.subtract(&conflict);
            if is_set {
                conflicts.push((identity.clone(), conflict));
            }
        }
        !ownership.is_empty()
    });
    conflicts
}

/// Gives the changed fields to a manager.
fn take(managed: &mut Managed<'_>, comparison: Comparison, manager: &Manager<'_>, now: &str) {
    let mut taken = comparison.modified;
    taken.extend(comparison.added);
    if taken.is_empty() {
        return;
    }
    let ownership = managed.entries.entry(manager.identity()).or_insert_with(|| Ownership {
        api_version: manager.api_version.to_owned(),
        time: None,
        fields: Fields::Read(Set::new()),
    });
    ownership.fields.set_mut().extend(taken);
    ownership.time = Some(now.to_owned());
}

#[cfg(test)]
mod tests;
