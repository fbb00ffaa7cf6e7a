//! `patch`: JSON, merge, strategic merge, and server-side apply.

use gardener_apimachinery::type_meta::is_no_group_version;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::meta::go_kind;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::type_meta::unreadable;
use gardener_merge::{Across, InVersion, JsonPatch, Manager, PatchError, Terms, patched_text};
use gardener_schema::Schema;
use serde_json::{Map, Value};

use super::accept::{Misfit, core_named, missing_kind, single_owners};
use super::create::AskedBy;
use super::found::Found;
use super::ownership::InOtherVersion;
use super::update::{Attempt, Wanted};
use super::{FieldValidation, RETRIES, Scope, WriteOptions, Written};
use crate::decode::{self, Decoded, Format, Source, Unknown};
use crate::definition::Context;
use crate::protobuf::GoOrder;
use crate::unread::Unread;
use crate::webhooks::conversion;
use crate::{go_text, meta, yaml};

/// The kinds of patch, by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/apply-patch+yaml`.
    Apply,
}

impl PatchKind {
    /// The content types of patches, as errors list them.
    pub const TYPES: [&'static str; 4] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];

    /// The content types of patches of custom resources, as errors list them.
    pub const OF_CUSTOM_RESOURCES: [&'static str; 3] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];

    /// The kind of a content type.
    pub fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// Whether nothing but members that a write to the status reads is named by a patch.
fn changes_status_alone(kind: PatchKind, patch: &Value) -> bool {
    let mut members = patch.as_object().into_iter().flatten();
    let is_read = |(name, _): (&String, &Value)| Unread::READ.contains(&name.as_str());
    matches!(kind, PatchKind::Merge | PatchKind::Strategic) && patch.is_object() && members.all(is_read)
}

impl Scope {
    /// Changes an object, or its status, by a patch. Apply creates what does not exist.
    ///
    /// # Errors
    /// 400 for a patch that cannot be read, 404, 409 for conflicts, 415 for kinds that have no such patch, 422 for invalid results.
    pub async fn patch(&self, kind: PatchKind, body: &Bytes, options: &WriteOptions) -> Result<Written, ApiError> {
        let now = self.cluster.clock().now();
        let context = self.context(now, options.dry_run);
        // what is not there is missed before a patch is read, unless that makes it
        if kind != PatchKind::Apply && self.cluster.store().get(&self.key(&self.name)).is_none() {
            return Err(self.not_found());
        }
        let decoded = decode_patch(kind, body, options)?;
        let findings = match kind {
            PatchKind::Json => Source::telling(found_in_operations(&decoded, options)?, &decoded.source),
            PatchKind::Apply => Source::merged(),
            PatchKind::Merge | PatchKind::Strategic => Source::default(),
        };
        if kind == PatchKind::Apply {
            self.check_applied(&decoded.value)?;
        }
        let mut reads_little = self.reads_status_alone() && changes_status_alone(kind, &decoded.value);
        for _ in 0..RETRIES {
            let mut warnings = Vec::new();
            let Some(entry) = self.cluster.store().get(&self.key(&self.name)) else {
                let strategy = &self.definition.strategy;
                let makes = self.subresource.is_empty()
                    || strategy.owns_all_sent()
                    || strategy.allow_create_on_update() && self.is_of_object_or_status();
                if kind != PatchKind::Apply || !makes {
                    return Err(self.not_found());
                }
                return self.apply_new(decoded, &context, options).await;
            };
            let found = match reads_little.then(|| self.found_apart(&entry)).flatten() {
                Some(found) => found,
                None => self.found_in(&entry).await?,
            };
            let current = match found.unread() {
                Some(_) => Cow::Borrowed(found.object.read_part()),
                None => self.requested(&found).await?,
            };
            let mut patched = match kind {
                PatchKind::Apply => {
                    self.check_owners(&current).await?;
                    self.applied_across(&current, &decoded.value, options, &context).await?
                }
                PatchKind::Strategic => {
                    let schema = self.strategic_schema()?;
                    let patched = gardener_merge::strategic(&current, &decoded.value, &schema);
                    let mut patched = patched.map_err(ApiError::from)?;
                    // it is read as the kind that it was, whatever it says of that
                    if let (Value::Object(patched), Some(current)) = (&mut patched, current.as_object()) {
                        for key in ["apiVersion", "kind"] {
                            let is_text = patched.get(key).is_none_or(|own| own.is_string() || own.is_null());
                            if let Some(own) = current.get(key).filter(|_| is_text) {
                                patched.insert(key.to_owned(), own.clone());
                            }
                        }
                    }
                    patched
                }
                PatchKind::Merge => gardener_merge::merge_patch(&current, &decoded.value).map_err(ApiError::from)?,
                PatchKind::Json => by_operations(&current, &decoded.value, options)?,
            };
            if let (PatchKind::Json | PatchKind::Merge, Some(why)) = (kind, unreadable(&patched)) {
                let shown = self.shown_patched(kind, &current, &decoded.value);
                return Err(not_an_object(shown, why));
            }
            if self.is_kindless(&patched) {
                let shown = patched.to_string();
                let why = missing_kind(shown.as_bytes());
                return Err(not_an_object(shown, why));
            }
            if let (PatchKind::Strategic, Some(_)) = (kind, unreadable(&patched)) {
                let converted = self.strategic_schema()?.convert(&patched);
                let why = converted.map_or_else(|why| why.to_string(), |()| String::new());
                return Err(not_an_object(self.shown_patched(kind, &current, &decoded.value), why));
            }
            if matches!(kind, PatchKind::Json | PatchKind::Merge) {
                let findings = if kind == PatchKind::Json {
                    &findings
                } else {
                    &decoded.source
                };
                self.check_version_told(&patched, findings, options)
                    .map_err(|why| match why {
                        Versionless::Unknown(why) => {
                            not_an_object(self.shown_patched(kind, &current, &decoded.value), why)
                        }
                        Versionless::Nameless => self.no_name(),
                    })?;
            }
            if !self.definition.is_go_type() && meta::text(&patched, "/apiVersion").is_empty() {
                return Err(ApiError::internal(
                    "Object 'apiVersion' is missing in 'object has no apiVersion field'",
                ));
            }
            let managed = match kind {
                PatchKind::Apply => patched.at("/metadata/managedFields").cloned(),
                _ => None,
            };
            let source = match kind {
                PatchKind::Json => &findings,
                PatchKind::Apply => {
                    given_twice(&decoded.source, options, &mut warnings)?;
                    &findings
                }
                PatchKind::Merge | PatchKind::Strategic => &decoded.source,
            };
            let unnamed = self.take_unnamed(kind, &decoded.value, &found, &mut patched);
            // upstream looks at a patched object's owners when it has been through admission
            let said_twice = single_owners(&mut patched, " after mutating admission happens");
            let accepted = match kind {
                PatchKind::Apply | PatchKind::Strategic => {
                    self.accept_converted(&context, &mut patched, options, source, &mut warnings)
                }
                PatchKind::Json | PatchKind::Merge => {
                    self.accept(&context, &mut patched, options, source, &mut warnings)
                }
            };
            if let Value::Object(members) = &mut patched {
                members.extend(unnamed);
            }
            match accepted {
                // what does not fit is told with all of the object
                Err(Misfit::Fields { .. }) if reads_little => {
                    reads_little = false;
                    continue;
                }
                Err(Misfit::Fields { why, .. }) if kind != PatchKind::Apply => {
                    let shown = self.shown_patched(kind, &current, &decoded.value);
                    // objects are made of strategic patches by another way than the decoder's, which has its own words
                    let converted = match (&self.spec()?.schema, kind) {
                        (Some(schema), PatchKind::Strategic) => schema.convert(&patched),
                        _ => Ok(()),
                    };
                    let why = converted.map_or_else(|other| other.to_string(), |()| why);
                    return Err(not_an_object(shown, why));
                }
                // what an object embeds is read where it becomes the kind's internal form: the decoder makes that at once, others afterwards
                Err(Misfit::Embedded { why, .. }) => {
                    return Err(match kind {
                        PatchKind::Json | PatchKind::Merge => {
                            not_an_object(self.shown_patched(kind, &current, &decoded.value), why)
                        }
                        PatchKind::Strategic => ApiError::unclassified(why),
                        PatchKind::Apply => {
                            let subject = gardener_merge::subject(&decoded.value);
                            ApiError::unclassified(format!("failed to convert to unversioned ({subject}): {why}"))
                        }
                    });
                }
                other => other?,
            }
            warnings.extend(said_twice);
            if kind == PatchKind::Apply {
                meta::set(&mut patched, "managedFields", managed);
            }
            if let Err(error) = self.place(&mut patched).and_then(|()| self.check_name(&patched)) {
                self.refused_with.extend(warnings);
                return Err(error);
            }
            let wanted = match kind {
                PatchKind::Apply => meta::resource_version(&decoded.value),
                _ => meta::resource_version(&patched),
            };
            let wanted = wanted.to_owned();
            self.to_stored(&mut patched).await?;
            let track_fields = kind != PatchKind::Apply;
            let wanted = match Wanted::told(&wanted) {
                // an applied configuration goes without, the object that it makes does not
                Wanted::Untold if kind == PatchKind::Apply => Wanted::Any,
                wanted => wanted,
            };
            match self
                .replace(found, patched, &context, options, &mut warnings, (wanted, track_fields))
                .await
            {
                Ok(stored) => return Ok(stored.answered(false, warnings)),
                Err(Attempt::Raced) => {}
                Err(Attempt::Refused(error)) => {
                    self.refused_with.extend(warnings);
                    return Err(error);
                }
            }
        }
        Err(self.modified())
    }

    /// Takes out of a patched status' object what the patch does not name: it is as it is stored, so that it fits and has its defaults.
    fn take_unnamed(&self, kind: PatchKind, patch: &Value, found: &Found, patched: &mut Value) -> Map<String, Value> {
        let mut unnamed = Map::new();
        let fits = found.unread().is_some()
            || found.is_plain && self.keeps_all_but_status() && self.definition.strategy.decodes_status_alone();
        let (Value::Object(members), Value::Object(patch)) = (patched, patch) else {
            return unnamed;
        };
        let has_directives = patch.keys().any(|key| key.starts_with('$'));
        if !fits || has_directives || !matches!(kind, PatchKind::Merge | PatchKind::Strategic) {
            return unnamed;
        }
        // which revision is changed is often all that is said of the metadata
        let tells_revision = |metadata: &Value| {
            let metadata = metadata.as_object();
            metadata.is_some_and(|metadata| {
                metadata
                    .iter()
                    .all(|(key, own)| key == "resourceVersion" && own.is_string())
            })
        };
        members.retain(|key, value| {
            let is_unnamed = match key.as_str() {
                "apiVersion" | "kind" => false,
                "metadata" => patch.get(key).is_none_or(tells_revision),
                _ => !patch.contains_key(key),
            };
            if is_unnamed {
                unnamed.insert(key.clone(), value.take());
            }
            !is_unnamed
        });
        unnamed
    }

    /// As [`Self::accept`], of an object that upstream makes without Go's decoder: numbers that are too large for their fields are cut to their
    /// size.
    fn accept_converted(
        &self,
        context: &Context<'_>,
        object: &mut Value,
        options: &WriteOptions,
        source: &Source,
        warnings: &mut Vec<String>,
    ) -> Result<(), Misfit> {
        let accepted = self.accept(context, object, options, source, warnings);
        let schema = self.spec().ok().and_then(|version| version.schema.as_ref());
        let schema = schema.filter(|_| self.definition.is_go_type() && matches!(accepted, Err(Misfit::Fields { .. })));
        match schema.is_some_and(|schema| schema.cut_numbers(object)) {
            true => self.accept(context, object, options, source, warnings),
            false => accepted,
        }
    }

    /// An object of a built-in kind that tells no version is read as the internal type, whose fields have other names.
    fn check_version_told(&self, patched: &Value, source: &Source, options: &WriteOptions) -> Result<(), Versionless> {
        let is_told = !self.definition.is_go_type() || !meta::text(patched, "/apiVersion").is_empty();
        let Some(members) = patched.as_object().filter(|_| !is_told) else {
            return Ok(());
        };
        let unknown = members
            .keys()
            .filter(|key| !matches!(key.as_str(), "apiVersion" | "kind"));
        let unknown = Unknown::OnTheWay(unknown.cloned().collect());
        let mut warnings = Vec::new();
        source
            .judge(unknown, options.field_validation, &mut warnings)
            .map_err(Versionless::Unknown)?;
        self.refused_with.extend(warnings);
        Err(Versionless::Nameless)
    }

    /// What is shown of a patched object that is none of its kind.
    fn shown_patched(&self, kind: PatchKind, current: &Value, patch: &Value) -> String {
        let is_go_type = self.definition.is_go_type();
        let go_kind = || {
            let version = self.definition.version(&self.version)?;
            GoOrder::of_kind(&self.definition.group, &self.version, &version.kind)
        };
        shown_patched(kind, current, patch, is_go_type.then(go_kind).flatten())
    }

    /// The schema by which strategic merge patches go; custom resources have no such patch.
    pub(crate) fn strategic_schema(&self) -> Result<Arc<Schema>, ApiError> {
        let version = self.spec()?;
        let schema = version.schema.clone();
        schema
            .filter(|_| version.prunes && self.definition.is_go_type())
            .ok_or_else(|| ApiError::unsupported_media_type(&PatchKind::OF_CUSTOM_RESOURCES))
    }

    fn check_name(&self, object: &Value) -> Result<(), ApiError> {
        match meta::name(object) {
            "" => Err(self.no_name()),
            name if name != self.name => Err(self.other_name(name)),
            _ => Ok(()),
        }
    }

    fn check_applied(&self, config: &Value) -> Result<(), ApiError> {
        let version = self.spec()?;
        let api_version = self.definition.api_version(&self.version);
        let own = (
            core_named(meta::text(config, "/apiVersion")),
            meta::text(config, "/kind"),
        );
        if own.0.is_empty() || own.1.is_empty() {
            return Err(not_of_this_type(own.0, own.1));
        }
        if own.1 != version.kind {
            return Err(not_of_this_type(own.0, own.1));
        }
        if own.0 != api_version {
            // what upstream does not know in this version is no such object at all
            let (group, own_version) = own.0.rsplit_once('/').unwrap_or(("", own.0));
            let known =
                group == self.definition.group && self.definition.versions.iter().any(|v| v.name == own_version);
            if is_no_group_version(own.0) || !known && self.definition.is_go_type() {
                return Err(not_of_this_type(own.0, own.1));
            }
            return Err(ApiError::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {}, expected: {api_version}",
                own.0
            )));
        }
        if config
            .at("/metadata/managedFields")
            .is_some_and(|managed| managed.as_array().is_none_or(|list| !list.is_empty()) && !managed.is_null())
        {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        Ok(())
    }

    /// What an applied configuration makes of the live object. Who owns fields in another version owns them by that version's names, which
    /// conversion may have changed: then the merged object is seen there before anybody is asked whose its fields are.
    async fn applied_across(
        &self,
        live: &Value,
        config: &Value,
        options: &WriteOptions,
        context: &Context<'_>,
    ) -> Result<Value, ApiError> {
        let definition = &self.definition;
        // versions of custom resources without a webhook differ by their name alone
        let is_told_otherwise = match definition.is_go_type() {
            true => definition.versions.len() > 1,
            false => definition.strategy.conversion_webhook().is_some(),
        };
        if !is_told_otherwise {
            return self.applied(Some(live), config, options, context, &[]);
        }
        let forced = WriteOptions {
            force: true,
            ..options.clone()
        };
        let Ok(merged) = self.applied(Some(live), config, &forced, context, &[]) else {
            // who owns what is asked before it is looked at what comes out
            return self.applied(Some(live), config, options, context, &[]);
        };
        let others = self.owners_elsewhere(Some(live), &merged, &self.version).await;
        let others: Vec<InVersion<'_>> = others.iter().map(InOtherVersion::shown).collect();
        self.applied(Some(live), config, options, context, &others)
    }

    fn applied(
        &self,
        live: Option<&Value>,
        config: &Value,
        options: &WriteOptions,
        context: &Context<'_>,
        others: &[InVersion<'_>],
    ) -> Result<Value, ApiError> {
        let schema = self
            .spec()?
            .schema
            .clone()
            .ok_or_else(|| ApiError::unsupported_media_type(&PatchKind::TYPES[..2]))?;
        let manager = Manager {
            name: &options.field_manager,
            operation: gardener_merge::Operation::Apply,
            api_version: &self.definition.api_version(&self.version),
            subresource: &self.subresource,
        };
        let time = meta::rfc3339(context.now);
        let known = self.known_versions();
        let terms = Terms {
            force: options.force,
            reset_fields: &self.reset_fields(),
            across: Across {
                others,
                known: known.as_deref(),
            },
        };
        gardener_merge::apply_across(live, config, &schema, &manager, &time, &terms).map_err(ApiError::from)
    }

    /// Upstream converts custom resources into every version in which somebody owns fields, and fails where there is none any more, or where
    /// the object then has what that version does not know.
    async fn check_owners(&self, live: &Value) -> Result<(), ApiError> {
        if self.definition.is_go_type() {
            return Ok(());
        }
        let owners = live.at("/metadata/managedFields").and_then(Value::as_array);
        let owned = owners
            .into_iter()
            .flatten()
            .map(|owner| meta::text(owner, "/apiVersion"));
        let own = self.definition.api_version(&self.version);
        let others: BTreeSet<&str> = owned.filter(|owned| *owned != own).collect();
        for owned in others {
            let mut versions = self.definition.versions.iter();
            let version = versions.find(|version| self.definition.api_version(&version.name) == owned);
            let version = version.ok_or_else(|| {
                ApiError::unclassified(format!("request to convert CR to an invalid group/version: {owned}"))
            })?;
            let Some(schema) = &version.schema else { continue };
            let mut there = live.clone();
            conversion::convert(
                &self.cluster,
                &self.definition,
                &mut [&mut there],
                &self.version,
                &version.name,
            )
            .await?;
            if let Some(why) = gardener_merge::unreadable(&there, schema) {
                return Err(ApiError::unclassified(why));
            }
        }
        Ok(())
    }

    async fn apply_new(
        &self,
        decoded: Decoded,
        context: &Context<'_>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let config = &decoded.value;
        let mut warnings = Vec::new();
        let mut object = self.applied(None, config, options, context, &[])?;
        given_twice(&decoded.source, options, &mut warnings)?;
        let managed = object.at("/metadata/managedFields").cloned();
        let ignoring = WriteOptions {
            field_validation: FieldValidation::Ignore,
            ..options.clone()
        };
        self.accept_converted(context, &mut object, &ignoring, &Source::merged(), &mut warnings)?;
        let uid = meta::text(config, "/metadata/uid");
        if !uid.is_empty() {
            return Err(self.conflict(&format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            )));
        }
        self.place(&mut object)?;
        self.check_name(&object)?;
        meta::set(&mut object, "resourceVersion", None);
        meta::set(&mut object, "managedFields", managed);
        self.to_stored(&mut object).await?;
        self.create_owned(object, context, options, warnings, AskedBy::Apply)
            .await
    }
}

/// What is wrong with an object that tells no version.
enum Versionless {
    /// It has fields that the internal type has not.
    Unknown(String),
    /// Nothing was read of it.
    Nameless,
}

/// Refuses, or warns of, keys that an applied configuration has twice.
fn given_twice(source: &Source, options: &WriteOptions, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    let repeated = source.repeated();
    match options.field_validation {
        FieldValidation::Strict if !repeated.is_empty() => {
            let why = yaml::refused(repeated);
            return Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {why}"
            )));
        }
        FieldValidation::Warn => warnings.extend_from_slice(repeated),
        _ => {}
    }
    Ok(())
}

/// The body is of another type than the path's; as upstream tells it, of none if its version cannot be read.
pub(crate) fn not_of_this_type(api_version: &str, kind: &str) -> ApiError {
    let told = match is_no_group_version(api_version) {
        false => go_kind(api_version, kind),
        true => go_kind("", ""),
    };
    ApiError::bad_request(format!("invalid object type: {told}"))
}

/// Changes an object by a client's JSON patch.
pub(crate) fn by_operations(current: &Value, patch: &Value, options: &WriteOptions) -> Result<Value, ApiError> {
    let patch = operations(patch, options)?.limited();
    Ok(patch.and_then(|patch| patch.apply(current))?)
}

fn operations<'p>(patch: &'p Value, options: &WriteOptions) -> Result<JsonPatch<'p>, ApiError> {
    Ok(match options.field_validation {
        FieldValidation::Ignore => JsonPatch::of(patch)?,
        FieldValidation::Strict | FieldValidation::Warn => JsonPatch::checked(patch)?,
    })
}

/// What strict decoding finds in a client's JSON patch.
fn found_in_operations(decoded: &Decoded, options: &WriteOptions) -> Result<Vec<String>, ApiError> {
    let unknown = operations(&decoded.value, options)?.unknown_fields();
    let findings = decoded.source.findings(Unknown::OnTheWay(unknown)).into_iter();
    Ok(findings.map(|finding| format!("json patch {finding}")).collect())
}

/// Reads a patch; what is wrong with it is told as its kind's reader tells it.
fn decode_patch(kind: PatchKind, body: &Bytes, options: &WriteOptions) -> Result<Decoded, ApiError> {
    let ignores = options.field_validation == FieldValidation::Ignore;
    let (format, prefix) = match kind {
        PatchKind::Apply => (Format::Yaml, "error decoding YAML: error converting YAML to JSON: "),
        PatchKind::Strategic => (Format::Json, ""),
        PatchKind::Json if ignores => (Format::Json, ""),
        PatchKind::Json | PatchKind::Merge => (Format::Json, "error decoding patch: "),
    };
    let mut decoded = decode::decode(body, format).map_err(|error| match kind {
        PatchKind::Merge if ignores => PatchError::Nothing.into(),
        _ => ApiError::bad_request(format!("{prefix}{}", error.message())),
    })?;
    if kind == PatchKind::Apply && !decoded.value.is_object() && !decoded.value.is_null() {
        let found = type_of(&decoded.value);
        return Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    }
    // the operations of a JSON patch are read in their order
    if kind != PatchKind::Json {
        decoded.source.forget_order();
    }
    Ok(decoded)
}

/// A patched object that is none of its kind. `patched` is what upstream shows of it.
pub(crate) fn not_an_object(patched: String, why: String) -> ApiError {
    let error = Error::invalid(&Path::new("patch"), patched, why);
    ApiError::invalid("", "", "", &[error])
}

/// What is shown of a patched object that is none of its kind: strategic merge patches are shown themselves, of others what they made.
/// `order`: that of the object's Go type, if it has one.
pub(crate) fn shown_patched(kind: PatchKind, current: &Value, patch: &Value, order: Option<GoOrder>) -> String {
    // objects without a Go type are written with their members sorted
    let before = || match order {
        Some(order) => go_text::text(current, order),
        None => current.to_string(),
    };
    match kind {
        PatchKind::Json => JsonPatch::of(patch).map_or_else(|_| String::new(), |patch| patch.patched_text(&before())),
        PatchKind::Merge => patched_text::merged(&before(), patch),
        PatchKind::Strategic | PatchKind::Apply => gardener_schema::json::go_text(patch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_patches_are_told_by_their_types() {
        for kind in PatchKind::TYPES {
            assert!(PatchKind::of(kind).is_some(), "{kind}");
        }
        assert_eq!(
            PatchKind::of("application/apply-patch+yaml; charset=utf-8"),
            Some(PatchKind::Apply)
        );
        // an apply is YAML, of which JSON is a part
        for none in ["application/apply-patch+json", "application/json", ""] {
            assert_eq!(PatchKind::of(none), None, "{none}");
        }
    }
}
