//! `update`, of the object, its status, and what subresources store.

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_store::{CommitError, Entry, Expect, Revision};
use serde_json::{Map, Value, json};

use super::create::AskedBy;
use super::found::{Beside, Found};
use super::read::sent_revision;
use super::{RETRIES, Scope, Stored, TooLarge, WriteOptions, Written, commit_failed};
use crate::decode::Source;
use crate::definition::{Context, Definition, Draft, Operation};
use crate::kubernetes::layout::place_of;
use crate::meta;

impl Scope {
    /// Replaces an object, or its status. `beside`: what [`Self::found_beside`] found a moment ago, if `body` goes without what is there.
    ///
    /// # Errors
    /// 404 when there is none and the kind is not created on update, 409 when it changed meanwhile, 422 for invalid fields, whatever
    /// admission says.
    pub(crate) async fn update(
        &self,
        body: Value,
        source: &Source,
        options: &WriteOptions,
        beside: Option<Beside>,
    ) -> Result<Written, ApiError> {
        let now = self.cluster.clock().now();
        let context = self.context(now, options.dry_run);
        let mut warnings = Vec::new();
        let mut body = body;
        let beside = match beside {
            None if self.keeps_all_but_status() && self.definition.is_go_type() => {
                let found = self.found().await;
                found.map(|found| Beside::set_apart(found, &mut body))
            }
            beside => beside,
        };
        let (found, sent_back) = match beside {
            Some(Beside { found, sent_back }) => (Some(found), sent_back),
            None => (None, Map::new()),
        };
        let accepted = self.accept(&context, &mut body, options, source, &mut warnings);
        // what is to say of the body is said in any case
        accepted.inspect_err(|_| self.refused_with.extend_if_none(warnings.clone()))?;
        if let Value::Object(members) = &mut body {
            members.extend(sent_back);
        }
        let of_body = warnings.clone();
        let updated = self.update_accepted(body, found, &context, options, warnings);
        updated.await.inspect_err(|_| self.refused_with.extend_if_none(of_body))
    }

    /// The rest of an update, by a body that is an object of the kind. `found`: what was stored a moment ago, if somebody looked already.
    async fn update_accepted(
        &self,
        mut body: Value,
        mut found: Option<Found>,
        context: &Context<'_>,
        options: &WriteOptions,
        mut warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        self.place(&mut body)?;
        let own_name = meta::name(&body).to_owned();
        if own_name.is_empty() {
            return Err(self.no_name());
        }
        if own_name != self.name {
            return Err(self.other_name(&own_name));
        }
        let wanted = match meta::resource_version(&body) {
            "0" => String::new(),
            text => text.to_owned(),
        };
        let check_wanted = || match wanted.is_empty() {
            true => Ok(()),
            false => sent_revision(&wanted).map(drop),
        };
        for _ in 0..RETRIES {
            let Some(entry) = self.cluster.store().get(&self.key(&self.name)) else {
                if !self.definition.strategy.allow_create_on_update() || !self.is_of_object_or_status() {
                    return Err(self.not_found());
                }
                let mut object = body.clone();
                // who tells a uid means an object that is there
                self.check_uid(&object, &Value::Null, options.dry_run)?;
                check_wanted()?;
                // storing gives it another one, without looking at this
                if !options.dry_run {
                    meta::set(&mut object, "resourceVersion", None);
                }
                self.to_stored(&mut object).await?;
                let asked_by = AskedBy::Update;
                return self.create_accepted(object, context, options, warnings, asked_by).await;
            };
            let found = match found.take().filter(|found| found.revision == entry.mod_revision) {
                Some(found) => found,
                None => self.found_in(&entry).await?,
            };
            self.check_uid(&body, found.object.read_part(), options.dry_run)?;
            // who names a revision has one attempt
            let mut object = match wanted.is_empty() {
                true => body.clone(),
                false => std::mem::take(&mut body),
            };
            self.to_stored(&mut object).await?;
            match self
                .replace(
                    found,
                    object,
                    context,
                    options,
                    &mut warnings,
                    (Wanted::told(&wanted), !options.owned),
                )
                .await
            {
                Err(Attempt::Raced) if wanted.is_empty() => {}
                Err(Attempt::Raced) => return Err(self.modified()),
                Err(Attempt::Refused(error)) => {
                    self.refused_with.extend(warnings);
                    return Err(error);
                }
                Ok(stored) => return Ok(stored.answered(false, warnings)),
            }
        }
        Err(self.modified())
    }

    /// One attempt to store `object` (stored version) in place of what was found. Answers the object in the request's version.
    pub(super) async fn replace(
        &self,
        found: Found,
        mut object: Value,
        context: &Context<'_>,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
        (wanted, track_fields): (Wanted<'_>, bool),
    ) -> Result<Stored, Attempt> {
        let too_large = match track_fields {
            true => TooLarge::LosesManagedFields,
            false => TooLarge::IsRefused,
        };
        let strategy = &self.definition.strategy;
        let old = &found.object;
        let has_status = self.definition.stored_version().is_some_and(|version| version.status);
        let status_update = self.subresource == "status";
        let options_object = options.object("UpdateOptions");
        // webhooks and policies see the object as it came, also the parts that it does not change
        let as_sent = self.is_judged().then(|| object.clone());
        let is_view = self.is_view();
        let keep = |object: &mut Value, old: &Value| {
            keep_server_metadata(object, old);
            if status_update {
                keep_all_but_status(object, old, strategy.metadata_of_status());
                if let Some(kept) = strategy.status_update_keeps() {
                    let before = old.get("metadata").and_then(|metadata| metadata.get(kept));
                    meta::set(object, kept, before.cloned());
                }
            } else if has_status && !is_view && !strategy.update_keeps_sent_status() {
                copy_member(object, old, "status");
            }
        };
        let track_fields = track_fields && self.spec().is_ok_and(|version| version.schema.is_some());
        let is_untold = track_fields && self.is_unreadable_where_dropped(&object, Some(old.read_part()));
        // who owns the status in another version loses what is sent of it, though it is not stored
        let is_seen_elsewhere = track_fields
            && !self.definition.is_go_type()
            && self.definition.versions.len() > 1
            && self.subresource.is_empty()
            && object.get("status") != old.read_part().get("status");
        let shown_elsewhere = is_seen_elsewhere.then(|| object.clone());
        // what is not read is as it is stored
        match strategy.owns_all_sent() && old.unread().is_none() {
            true => keep_server_metadata(&mut object, old.read_part()),
            false => keep(&mut object, old.read_part()),
        }
        if is_untold {
            meta::set(&mut object, "managedFields", None);
        } else if track_fields {
            // what the type always has is owned by who sets it to nothing by leaving it out
            self.definition.complete_written(&mut object, &self.subresource);
            let before = Some(old.read_part());
            self.own_fields(before, &mut object, shown_elsewhere, options, context.now)
                .await;
        }
        if let Some(mut as_sent) = as_sent {
            let managed = meta::take_managed_fields(&mut object);
            meta::set(&mut as_sent, "managedFields", managed);
            object = as_sent;
        }
        let mut holder = Some(match old.unread() {
            Some(unread) => Draft::apart(object, Arc::clone(unread)),
            None => Draft::from(object),
        });
        self.admit(
            context,
            Operation::Update,
            &options_object,
            &mut holder,
            Some(old),
            warnings,
        )
        .await?;
        // as upstream, which looks at the revision of what admission made of the object
        self.check_revision(wanted, found.revision)?;
        let mut object = holder.unwrap_or_default();
        match object.unread() {
            Some(_) => keep(object.read_part_mut(), old.read_part()),
            None => keep(&mut object, old),
        }
        if is_untold {
            meta::set(object.read_part_mut(), "managedFields", None);
        }
        let revision = found.revision.to_string();
        meta::set(object.read_part_mut(), "resourceVersion", Some(revision.into()));
        let of_metadata = |object: &Draft| {
            let mut errors = meta::validate(object.read_part(), meta::path_segment);
            let of_change = meta::validate_update(object.read_part(), old.read_part());
            // as upstream, which looks twice
            if !self.definition.is_go_type() {
                errors.extend_from_slice(&of_change);
            }
            errors.extend(of_change);
            errors
        };
        let mut of_part = ErrorList::new();
        // what the strategy makes of a status is not looked at again
        let mut checked = None;
        if status_update {
            checked = strategy.stores_made_labels().then(|| of_metadata(&object));
            of_part = strategy.update_status(context, &mut object, old)?;
        } else {
            strategy.drop_disabled(&mut object, Some(old));
            // what is stored has what its type always has: where the new object does not tell it, nothing changes
            self.definition.complete(&mut object);
            let bumps = strategy.has_generation();
            let sent_empty = strategy.counts_empty() && self.empties.is_any_told();
            if bumps && !is_view {
                bump_generation(&mut object, old, has_status, sent_empty);
            }
            match is_view {
                true => of_part = strategy.update_view(&self.subresource, context, &mut object, old)?,
                false => strategy.prepare_for_update(context, &mut object, old)?,
            }
            // what a view does not change is as it was only now
            if bumps && is_view {
                bump_generation(&mut object, old, has_status, false);
            }
        }
        let of_metadata = checked.unwrap_or_else(|| of_metadata(&object));
        let mut errors = self.validate_schema(of_metadata, (&object, Some(old)), warnings);
        errors.extend(if status_update || is_view {
            of_part
        } else {
            let found = strategy.validate_update(context, &object, old);
            let again = |whole| strategy.validate_update(context, &Draft::from(whole), old);
            self.empties.changes_shown(found, object.read_part(), again)
        });
        if !errors.is_empty() {
            return Err(self.invalid(&self.name, errors).into());
        }
        if status_update {
            self.definition.complete(&mut object);
        } else {
            if !is_view {
                warnings.extend(strategy.warnings(context, &object, Some(old)));
            }
            self.definition.canonicalize(&mut object);
        }
        let object = self
            .admit_final(
                context,
                Operation::Update,
                &options_object,
                Some(object),
                Some(old),
                warnings,
            )
            .await?
            .unwrap_or_default();
        self.store_change(found, object, options.dry_run, too_large).await
    }

    /// Commits a decided change: nothing when it changes nothing, a removal when it took the last finalizer of an object in deletion.
    pub(super) async fn store_change(
        &self,
        found: Found,
        object: Draft,
        dry_run: bool,
        too_large: TooLarge,
    ) -> Result<Stored, Attempt> {
        let Found {
            revision,
            object: old,
            is_stale,
            ..
        } = found;
        let is_apart = old.unread().is_some() && object.unread().is_some();
        let parts = |draft: Draft| match is_apart {
            true => draft.into_parts(),
            false => (draft.into_json(), None),
        };
        let ((mut old, _), (mut object, unread)) = (parts(old), parts(object));
        let whole = |object: Value| match &unread {
            Some(unread) => Draft::apart(object, Arc::clone(unread)),
            None => Draft::from(object),
        };
        meta::set(&mut object, "resourceVersion", None);
        let expect = Expect::Revision(revision);
        let mut stored = if dry_run {
            object = self.as_stored(&object).await?.unwrap_or(object);
            meta::set(&mut object, "resourceVersion", Some(revision.to_string().into()));
            Stored::from(whole(object))
        } else if meta::is_deleting(&old) && goes_away(&object) {
            self.commit_delete(&self.name, expect, &old)
                .await
                .map_err(Attempt::from_commit)?;
            self.cluster.written(&self.definition);
            // the object as it was when nothing held it any more
            meta::set(&mut object, "resourceVersion", Some(revision.to_string().into()));
            Stored::from(whole(object))
        } else {
            meta::set(&mut old, "resourceVersion", None);
            let unchanged = same_but_for_times(&old, &object);
            if unchanged && !is_stale {
                // as upstream, which makes what it would store before it sees that this is what it has
                self.as_stored(&old).await?;
                meta::set(&mut old, "resourceVersion", Some(revision.to_string().into()));
                Stored::from(whole(old))
            } else {
                if unchanged {
                    object.clone_from(&old);
                }
                object = self.as_stored(&object).await?.unwrap_or(object);
                let place = (self.name.as_str(), expect);
                let done = self.commit_fitting(place, &mut object, unread.as_deref(), Some(&old), too_large);
                let done = done.await.map_err(Attempt::from_commit)?;
                self.cluster.written(&self.definition);
                Stored::by(done, whole(object))
            }
        };
        if !self.is_shown_as_stored() {
            self.all_to_requested(&mut [&mut stored.object]).await?;
        }
        Ok(stored)
    }

    /// Stores what a subresource made of its parent: its own body went through admission, not the parent. `None` when another write came first.
    pub(crate) async fn store_by_subresource(
        &self,
        entry: &Arc<Entry>,
        mut object: Value,
        context: &Context<'_>,
        options: &WriteOptions,
        validate: bool,
    ) -> Result<Option<Value>, ApiError> {
        let found = Found::of(entry, self);
        let old = &found.object;
        let strategy = &self.definition.strategy;
        let wanted = meta::resource_version(&object);
        if !wanted.is_empty() && wanted != entry.mod_revision.to_string() {
            return Err(self.modified());
        }
        keep_server_metadata(&mut object, old);
        // who posts something, such as a binding, owns that, not what it does to the object
        let posted = !matches!(self.subresource.as_str(), "" | "status");
        if !posted {
            self.own_fields(Some(old), &mut object, None, options, context.now)
                .await;
        }
        let mut object = Draft::from(object);
        strategy.drop_disabled(&mut object, Some(old));
        if strategy.has_generation() && !posted {
            let has_status = self.definition.stored_version().is_some_and(|version| version.status);
            bump_generation(&mut object, old, has_status, false);
        }
        if validate {
            strategy.prepare_for_update(context, &mut object, old)?;
            let mut errors = meta::validate_update(&object, old);
            errors.extend(strategy.validate_update(context, &object, old));
            if !errors.is_empty() {
                return Err(self.invalid(&self.name, errors));
            }
            self.definition.canonicalize(&mut object);
        }
        match self
            .store_change(found, object, options.dry_run, TooLarge::IsRefused)
            .await
        {
            Ok(stored) => Ok(Some(stored.object.into_json())),
            Err(Attempt::Raced) => Ok(None),
            Err(Attempt::Refused(error)) => Err(error),
        }
    }

    /// Whether this is about an object as such or its status. Upstream has one answer for both to whether a change makes what is not there.
    pub(super) fn is_of_object_or_status(&self) -> bool {
        matches!(self.subresource.as_str(), "" | "status")
    }

    /// Whether a change makes the object, for there is none.
    pub(super) fn is_to_be_made(&self) -> bool {
        self.definition.strategy.allow_create_on_update() && self.is_of_object_or_status() && self.entry().is_err()
    }

    /// The body has no name.
    pub(crate) fn no_name(&self) -> ApiError {
        ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            self.name
        ))
    }

    /// The body is that of another object than the path's.
    pub(crate) fn other_name(&self, name: &str) -> ApiError {
        ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            self.name
        ))
    }

    /// Refuses a change that is for another revision than the stored one.
    fn check_revision(&self, wanted: Wanted<'_>, stored: Revision) -> Result<(), ApiError> {
        match wanted {
            Wanted::Any => Ok(()),
            Wanted::Untold => self.may_be_unconditional(),
            Wanted::Told(text) if text == stored.to_string() => Ok(()),
            Wanted::Told(text) => sent_revision(text).and_then(|_| Err(self.modified())),
        }
    }

    /// Refuses a change that names no revision, of a kind of which each must.
    pub(crate) fn may_be_unconditional(&self) -> Result<(), ApiError> {
        if self.definition.strategy.allow_unconditional_update() {
            return Ok(());
        }
        let at = Path::new("metadata").child("resourceVersion");
        let error = Error::invalid(&at, json!(0), "must be specified for an update");
        // upstream names the resource here where others name the kind
        let Definition { group, plural, .. } = &*self.definition;
        Err(ApiError::invalid(group, plural, &self.name, &[error]))
    }

    /// The object's key in the etcd of a kube-apiserver, which some messages tell; what is only tried does not get as far as the prefix.
    fn registry_path(&self, dry_run: bool) -> String {
        let Definition { group, plural, .. } = &*self.definition;
        let own_prefix = self.definition.strategy.registry();
        let place = match self.definition.is_go_type() && own_prefix.is_none() {
            true => place_of(group, plural),
            false => format!("{group}/{plural}"),
        };
        let prefix = if dry_run { "" } else { own_prefix.unwrap_or("/registry") };
        let parts = [&*place, &self.namespace, &self.name];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.fold(prefix.to_owned(), |path, part| format!("{path}/{part}"))
    }

    pub(crate) fn check_uid(&self, object: &Value, old: &Value, dry_run: bool) -> Result<(), ApiError> {
        let (new_uid, old_uid) = (meta::text(object, "/metadata/uid"), meta::text(old, "/metadata/uid"));
        if new_uid.is_empty() || new_uid == old_uid {
            return Ok(());
        }
        Err(self.conflict(&format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {new_uid}, UID in object meta: {old_uid}",
            self.registry_path(dry_run)
        )))
    }
}

/// The revision that a change is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'w> {
    /// That which is told, and no other.
    Told(&'w str),
    /// None is told: only some kinds are changed without.
    Untold,
    /// None needs to be told.
    Any,
}

impl<'w> Wanted<'w> {
    /// That of an object: a zero tells none.
    pub(super) fn told(text: &'w str) -> Self {
        match text {
            "" | "0" => Self::Untold,
            text => Self::Told(text),
        }
    }
}

/// Why an attempt to write did not store anything.
pub(super) enum Attempt {
    /// Another write came first.
    Raced,
    /// The write is refused.
    Refused(ApiError),
}

impl Attempt {
    pub(super) fn from_commit(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::Raced,
            other => Self::Refused(commit_failed(&other)),
        }
    }
}

impl From<ApiError> for Attempt {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

fn copy_member(object: &mut Value, old: &Value, key: &str) {
    let Value::Object(members) = object else { return };
    match old.get(key) {
        Some(value) if members.get(key) == Some(value) => {}
        Some(value) => drop(members.insert(key.to_owned(), value.clone())),
        None => drop(members.remove(key)),
    }
}

/// Whether nothing differs but when managers wrote what they wrote already: that is no change.
fn same_but_for_times(old: &Value, new: &Value) -> bool {
    fn timeless(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let members = entry.as_object().into_iter().flatten();
        members.filter(|(key, _)| *key != "time")
    }
    let same_entries = |one: &Value, other: &Value| match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| timeless(one).eq(timeless(other)))
        }
        _ => one == other,
    };
    let same_members = |one: &Value, other: &Value, apart: &str, same: &dyn Fn(&Value, &Value) -> bool| {
        let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
            return one == other;
        };
        // from the last: what most writes change is the status, and it comes after a specification that they do not change
        one.len() == other.len()
            && one.iter().rev().all(|(key, value)| match other.get(key) {
                Some(own) if key == apart => same(value, own),
                own => own == Some(value),
            })
    };
    same_members(old, new, "metadata", &|old, new| {
        same_members(old, new, "managedFields", &same_entries)
    })
}

/// Puts back the metadata that only the server writes.
fn keep_server_metadata(object: &mut Value, old: &Value) {
    let Some(before) = old.get("metadata").and_then(Value::as_object) else {
        return;
    };
    for key in ["creationTimestamp", "generation", "name", "namespace"] {
        meta::set(object, key, before.get(key).cloned());
    }
    if let Some(time) = before.get("deletionTimestamp") {
        meta::set(object, "deletionTimestamp", Some(time.clone()));
    }
    // what a client may not change is compared later
    for key in ["uid", "deletionGracePeriodSeconds"] {
        let own = object.get("metadata").and_then(|metadata| metadata.get(key));
        if own.is_none_or(|own| own.as_str() == Some("")) {
            meta::set(object, key, before.get(key).cloned());
        }
    }
    meta::set(object, "selfLink", None);
}

fn keep_all_but_status(object: &mut Value, old: &Value, metadata_sent: Option<&[&str]>) {
    let Value::Object(before) = old else { return };
    if let Value::Object(members) = object {
        members.retain(|key, _| key == "status" || key == "metadata" || before.contains_key(key));
    }
    for key in before
        .keys()
        .filter(|key| !matches!(key.as_str(), "status" | "metadata"))
    {
        copy_member(object, old, key);
    }
    if let Some(counted) = metadata_sent {
        let mut sent = Map::new();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let counted = counted.iter().chain(&["managedFields"]);
            sent.extend(counted.filter_map(|key| metadata.remove_entry(*key)));
        }
        copy_member(object, old, "metadata");
        // who owns fields is told by what is sent alone: where it tells nobody, the last who did has given them up
        meta::set(object, "managedFields", None);
        for (key, value) in sent {
            meta::set(object, &key, Some(value));
        }
    }
}

/// One more generation when anything outside metadata and status changed, and in any case if it is known that something did.
fn bump_generation(object: &mut Value, old: &Value, has_status: bool, is_known: bool) {
    let changed = |key: &str| object.get(key) != old.get(key);
    let (Value::Object(new), Value::Object(before)) = (&*object, old) else {
        return;
    };
    let mut keys = new.keys().chain(before.keys()).filter(|key| match key.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !has_status,
        _ => true,
    });
    if is_known || keys.any(|key| changed(key)) {
        let generation = old.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        meta::set(object, "generation", Some(json!(generation + 1)));
    }
}

/// Whether nothing keeps an object in deletion any more.
pub(super) fn goes_away(object: &Value) -> bool {
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && object
            .at("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
        && object
            .at("/spec/finalizers")
            .and_then(Value::as_array)
            .is_none_or(|list| list.is_empty() || object.get("kind") != Some(&json!("Namespace")))
}
