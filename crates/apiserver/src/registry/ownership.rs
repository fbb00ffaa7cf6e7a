//! Who owns fields after a write that is no apply: what a request's scope tells `gardener_merge`, and how a change looks in other versions.
//! Conflicts and the merge itself are `gardener_merge`'s.

use std::sync::Arc;

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use gardener_merge::Across;
use gardener_merge::fieldset::Set;
use gardener_schema::Schema;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Scope, WriteOptions};
use crate::definition::{Definition, Version};
use crate::meta;
use crate::user::KUBE_APISERVER;
use crate::webhooks::conversion;

/// A change as another version shows it.
pub(super) struct InOtherVersion {
    api_version: String,
    old: Value,
    new: Value,
    schema: Arc<Schema>,
}

impl InOtherVersion {
    /// Whether the version does not know all of the object. Then nobody can tell who owns what, and upstream forgets it. What comes out of Go's
    /// types is known.
    fn is_unreadable(&self) -> bool {
        let mut both = [&self.old, &self.new].into_iter();
        self.schema.definition_name().is_none()
            && both.any(|object| gardener_merge::unreadable(object, &self.schema).is_some())
    }

    pub(super) fn shown(&self) -> gardener_merge::InVersion<'_> {
        gardener_merge::InVersion {
            api_version: &self.api_version,
            live: &self.old,
            new: &self.new,
            schema: &self.schema,
        }
    }
}

/// The `managedFields` of a new object that the server itself made: it owns what `object` has, which needs no apiVersion and kind.
pub(crate) fn owned_by_server(
    definition: &Definition,
    version: &Version,
    mut object: Value,
    time: &str,
) -> Option<Value> {
    let schema = version.schema.as_ref()?;
    let api_version = definition.api_version(&version.name);
    let members = object.as_object_mut()?;
    members.insert("apiVersion".to_owned(), api_version.as_str().into());
    members.insert("kind".to_owned(), version.kind.as_str().into());
    let manager = gardener_merge::Manager {
        name: KUBE_APISERVER,
        operation: gardener_merge::Operation::Update,
        api_version: &api_version,
        subresource: "",
    };
    gardener_merge::update(None, &mut object, schema, &manager, time, &Set::default());
    object.at("/metadata/managedFields").cloned()
}

impl Scope {
    /// Notes in managedFields who owns what was written, by the names of the version in which it was written. `shown_elsewhere`: the object as
    /// owners in other versions see it, if that is not how it will be stored.
    pub(super) async fn own_fields(
        &self,
        old: Option<&Value>,
        object: &mut Value,
        shown_elsewhere: Option<Value>,
        options: &WriteOptions,
        now: Timestamp,
    ) {
        let Some(stored) = self.definition.stored_version() else {
            return;
        };
        let is_plain = stored.name == self.version;
        let version = match self.spec() {
            Ok(version) if !is_plain => version,
            _ => stored,
        };
        let Some(schema) = version.schema.as_ref() else { return };
        let manager = gardener_merge::Manager {
            name: &options.field_manager,
            operation: gardener_merge::Operation::Update,
            api_version: &self.definition.api_version(&self.version),
            subresource: &self.subresource,
        };
        let time = meta::rfc3339(now);
        let reset = self.reset_fields();
        let known = self.known_versions();
        let across = |others| Across {
            others,
            known: known.as_deref(),
        };
        if is_plain {
            let shown = shown_elsewhere.as_ref().unwrap_or(object);
            let others = self.owners_elsewhere(old, shown, &version.name).await;
            if others.iter().any(InOtherVersion::is_unreadable) {
                meta::set(object, "managedFields", None);
                return;
            }
            let others: Vec<gardener_merge::InVersion<'_>> = others.iter().map(InOtherVersion::shown).collect();
            gardener_merge::update_across(old, object, schema, &manager, &time, &reset, across(&others));
            return;
        }
        let (mut old, mut new, mut shown) = (old.cloned(), object.clone(), shown_elsewhere);
        let mut all: Vec<&mut Value> = old.iter_mut().chain([&mut new]).chain(&mut shown).collect();
        // a conversion that fails leaves the objects as they are stored
        let _ = conversion::convert(&self.cluster, &self.definition, &mut all, &stored.name, &version.name).await;
        let shown = shown.as_ref().unwrap_or(&new);
        let others = self.owners_elsewhere(old.as_ref(), shown, &version.name).await;
        if others.iter().any(InOtherVersion::is_unreadable) {
            meta::set(object, "managedFields", None);
            return;
        }
        let others: Vec<gardener_merge::InVersion<'_>> = others.iter().map(InOtherVersion::shown).collect();
        gardener_merge::update_across(old.as_ref(), &mut new, schema, &manager, &time, &reset, across(&others));
        let managed = new.at("/metadata/managedFields").cloned();
        meta::set(object, "managedFields", managed);
    }

    /// Whether a write sends something that it does not change, such as the status to the object's own path, and that is not as the schema
    /// has it. Upstream looks at who owns what before it drops that, and forgets all owners of an object that it cannot read.
    pub(super) fn is_unreadable_where_dropped(&self, sent: &Value, old: Option<&Value>) -> bool {
        let Value::Object(sent) = sent else { return false };
        // what comes in another version is in the stored one by now
        if self.definition.is_go_type() && !self.is_stored_version() {
            return false;
        }
        let Some(schema) = self.spec().ok().and_then(|version| version.schema.as_ref()) else {
            return false;
        };
        let has_status = self.definition.stored_version().is_some_and(|version| version.status);
        let is_dropped = |name: &str| match self.subresource.as_str() {
            "" => has_status && name == "status",
            "status" => !matches!(name, "apiVersion" | "kind" | "metadata" | "status"),
            _ => false,
        };
        let dropped: Map<String, Value> = sent
            .iter()
            .filter(|(name, value)| is_dropped(name) && old.and_then(|old| old.get(*name)) != Some(*value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if dropped.is_empty() {
            return false;
        }
        let mut dropped = Value::Object(dropped);
        if self.definition.is_go_type() {
            schema.complete(&mut dropped);
        }
        gardener_merge::unreadable(&dropped, schema).is_some()
    }

    /// A change as those versions show it in which somebody owns fields, but for the request's, which the change comes in. (As upstream,
    /// what the request's version cannot tell is lost on both sides, and so is no change.)
    pub(super) async fn owners_elsewhere(&self, old: Option<&Value>, new: &Value, own: &str) -> Vec<InOtherVersion> {
        let mut found = Vec::new();
        let Some(old) = old.filter(|_| self.definition.versions.len() > 1) else {
            return found;
        };
        let owners = old.at("/metadata/managedFields").and_then(Value::as_array);
        for version in self.definition.versions.iter().filter(|version| version.name != own) {
            let api_version = self.definition.api_version(&version.name);
            let mut owned = owners
                .into_iter()
                .flatten()
                .map(|owner| meta::text(owner, "/apiVersion"));
            let Some(schema) = version
                .schema
                .clone()
                .filter(|_| owned.any(|owned| owned == api_version))
            else {
                continue;
            };
            let (mut old, mut new) = (old.clone(), new.clone());
            let mut both = [&mut old, &mut new];
            let converted = conversion::convert(&self.cluster, &self.definition, &mut both, own, &version.name);
            if converted.await.is_ok() {
                found.push(InOtherVersion {
                    api_version,
                    old,
                    new,
                    schema,
                });
            }
        }
        found
    }

    /// The versions in which it can be told who owns fields of a Go type: upstream forgets owners in versions that the API's group does not
    /// have, such as those that a group had once, or those of the other group that Events have. None of custom resources, which are
    /// converted.
    pub(super) fn known_versions(&self) -> Option<Vec<String>> {
        let versions = self.definition.versions.iter();
        let known = || versions.map(|version| self.definition.api_version(&version.name));
        self.definition.is_go_type().then(|| known().collect())
    }

    /// Fields that a write to this (sub)resource does not change, and so does not own.
    pub(super) fn reset_fields(&self) -> Set {
        let has_status = self.definition.stored_version().is_some_and(|version| version.status);
        let strategy = &self.definition.strategy;
        let of_all: &[&str] = match self.subresource.as_str() {
            _ if strategy.owns_all_sent() => &[],
            "status" if !self.definition.is_go_type() => &["spec", "metadata"],
            "status" => &["spec"],
            "" if has_status => &["status"],
            _ => &[],
        };
        Set::of_fields(&[of_all, strategy.left_alone(&self.subresource)].concat())
    }
}

/// Gives an object back the entries of managedFields that it had before plugins changed it, if nobody can read those that it has now. The
/// sentence for a `Warning` header, if so.
pub(super) fn mended(object: &mut Value, before: Option<Value>) -> Option<String> {
    // what the server wrote can be read
    if object.at("/metadata/managedFields") == before.as_ref() {
        return None;
    }
    let entries = meta::elements(object, "/metadata/managedFields");
    let why = entries
        .iter()
        .enumerate()
        .find_map(|(at, entry)| unreadable(at, entry))?;
    meta::set(object, "managedFields", before);
    Some(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
    ))
}

/// Why an entry of managedFields cannot be read, in upstream's words.
fn unreadable(at: usize, entry: &Value) -> Option<String> {
    let text = |pointer: &str| meta::text(entry, pointer);
    if !matches!(text("/operation"), "Apply" | "Update") {
        return Some("operation must be `Apply` or `Update`".to_owned());
    }
    if text("/apiVersion").is_empty() {
        return Some("apiVersion must not be empty".to_owned());
    }
    match text("/fieldsType") {
        "FieldsV1" => {}
        "" => return Some(format!("missing fieldsType in managed fields entry {at}")),
        other => {
            return Some(format!(
                "invalid fieldsType {} in managed fields entry {at}",
                go_quote(other)
            ));
        }
    }
    let fields = entry.get("fieldsV1").filter(|fields| !fields.is_null())?;
    let why = Set::from_fields_v1(fields).err()?;
    let time = match text("/time") {
        "" => "<nil>".to_owned(),
        time => time.replace('T', " ").replace('Z', " +0000 UTC"),
    };
    let told = format!(
        "{{{} {} {} {time} FieldsV1 {fields} {}}}",
        text("/manager"),
        text("/operation"),
        text("/apiVersion"),
        text("/subresource")
    );
    Some(format!(
        "error decoding versioned set from {told}: error decoding set: {why}"
    ))
}
