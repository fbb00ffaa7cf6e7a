//! Writing objects so that a write that would change nothing is not sent.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::difference::merge_diff;
use crate::raw::Raw;

mod difference;

/// What an API holds: any kind, typed or dynamic, or the metadata of one.
pub trait Stored: Resource + Clone + DeserializeOwned + Serialize + Debug {}

impl<K: Resource + Clone + DeserializeOwned + Serialize + Debug> Stored for K {}

/// What can be written: any kind, typed or dynamic.
pub trait Writable: Stored + PartialEq {}

impl<K: Stored + PartialEq> Writable for K {}

/// Why an object could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API refused.
    #[error("{}", crate::api_error(.0))]
    Api(#[from] kube::Error),
    /// The object has no JSON form, or what the API has is no such object.
    #[error("the object cannot be written as JSON, or read from it: {0}")]
    Json(#[from] serde_json::Error),
}

impl ApplyError {
    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(error) if is_not_found(error))
    }

    /// Whether somebody else changed the object meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.is_conflict())
    }

    /// Whether the change is one that the API does not take, however often it is made.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422))
    }
}

/// Whether the API said that the object is not there, or that there is no such API: that is told without a `Status`,
/// so that the code alone counts.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The object was not there.
    Created,
    /// The object was changed.
    Updated,
    /// The object was already as wanted; nothing was sent.
    Unchanged,
}

/// Whether two objects are written otherwise.
///
/// # Errors
/// When one of them has no JSON form.
pub fn differ(one: &impl Serialize, other: &impl Serialize) -> Result<bool, serde_json::Error> {
    Ok(merge_diff(one, other)?.is_some())
}

/// Which part of an object is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    Status,
}

/// How often a write is repeated when somebody else was faster.
const ATTEMPTS: usize = 5;

/// Whether a merge patch replaces a list: then it would undo what somebody else wrote into the same list meanwhile.
fn replaces_a_list(patch: &Value) -> bool {
    match patch {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(replaces_a_list),
        _ => false,
    }
}

/// Sends what `mutate` changes; guarded by the object's version if it is told to be `locked` or a list would be replaced.
async fn send<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl FnOnce(&mut K),
    part: Part,
    locked: bool,
) -> Result<(K, Outcome), ApplyError> {
    let mut wanted = current.clone();
    mutate(&mut wanted);
    if wanted == *current {
        return Ok((wanted, Outcome::Unchanged));
    }
    send_difference(api, current, wanted, part, locked).await
}

/// As [`send`], when it is known what is wanted.
async fn send_difference<K: Stored>(
    api: &Api<K>,
    current: &K,
    wanted: K,
    part: Part,
    locked: bool,
) -> Result<(K, Outcome), ApplyError> {
    let Some(mut patch) = merge_diff(current, &wanted)? else {
        return Ok((wanted, Outcome::Unchanged));
    };
    if locked || replaces_a_list(&patch) {
        let version = json!({"metadata": {"resourceVersion": current.resource_version()}});
        json_patch_merge(&mut patch, version);
    }
    let (name, parameters) = (current.name_any(), PatchParams::default());
    let patch = Patch::Merge(patch);
    let raw = Raw::api(api.clone());
    let written = match part {
        Part::Main => raw.patch(&name, &parameters, &patch).await?,
        Part::Status => raw.patch_status(&name, &parameters, &patch).await?,
    };
    let written: K = written.read()?;
    // the last finalizer of an object that goes is the end of it, not a change
    let stays = current.meta().deletion_timestamp.is_none();
    if stays && written.resource_version() == current.resource_version() {
        // whoever sends this does not write objects as the API stores them, and will send it again
        tracing::debug!(resource = api.resource_url(), name, "a patch changed nothing");
    }
    Ok((written, Outcome::Updated))
}

/// As [`send`] without a lock; what conflicts is changed anew on the object's newest version.
async fn send_until_written<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl Fn(&mut K),
    part: Part,
) -> Result<(K, Outcome), ApplyError> {
    let mut sent = send(api, current, &mutate, part, false).await;
    for _ in 1..ATTEMPTS {
        match sent {
            Err(error) if error.is_conflict() => {
                let newest: K = Raw::api(api.clone()).get(&current.name_any()).await?.read()?;
                if newest.uid() != current.uid() {
                    return Err(error);
                }
                sent = send(api, &newest, &mutate, part, false).await;
            }
            ended => return ended,
        }
    }
    sent
}

fn json_patch_merge(target: &mut Value, addition: Value) {
    match (target, addition) {
        (Value::Object(target), Value::Object(addition)) => {
            for (key, value) in addition {
                json_patch_merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, addition) => *target = addition,
    }
}

/// Changes an object by a JSON merge patch of what `mutate` changes. Such a patch writes lists as a whole: if one changes and somebody
/// else has changed the object since `current`, `mutate` is asked again with the newest object, so that nobody's entries are lost. What it
/// makes must therefore follow from the object it is given, not from `current`; what was decided on `current` goes by [`patch_locked`].
///
/// # Errors
/// What the API says.
pub async fn patch<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    send_until_written(api, current, mutate, Part::Main).await
}

/// As [`patch`], but refused with a conflict if the object is no longer at the version of `current`.
///
/// # Errors
/// What the API says.
pub async fn patch_locked<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl FnOnce(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    send(api, current, mutate, Part::Main, true).await
}

/// As [`patch`], of the `status` subresource.
///
/// # Errors
/// What the API says.
pub async fn patch_status<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    send_until_written(api, current, mutate, Part::Status).await
}

/// As [`patch_status`], but refused with a conflict if the object is no longer at the version of `current`.
///
/// # Errors
/// What the API says.
pub async fn patch_status_locked<K: Writable>(
    api: &Api<K>,
    current: &K,
    mutate: impl FnOnce(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    send(api, current, mutate, Part::Status, true).await
}

/// Makes an object be as `mutate` makes it: creates `initial` after `mutate`, or patches what is there. `initial` carries name
/// and namespace, and whatever only a creation sets.
///
/// # Errors
/// What the API says.
pub async fn create_or_patch<K: Writable>(
    api: &Api<K>,
    initial: K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    let current = Raw::api(api.clone()).get_opt(&initial.name_any()).await?;
    let current = current.map(|current| current.read()).transpose()?;
    create_or_patch_from(api, current, initial, mutate).await
}

/// As [`create_or_patch`], when it was just read what is there.
///
/// # Errors
/// What the API says.
pub async fn create_or_patch_from<K: Writable>(
    api: &Api<K>,
    current: Option<K>,
    initial: K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    match current {
        Some(current) => patch(api, &current, mutate).await,
        None => {
            let mut wanted = initial;
            mutate(&mut wanted);
            let created = api.create(&PostParams::default(), &wanted).await?;
            Ok((created, Outcome::Created))
        }
    }
}

/// As [`create_or_patch`], but what is there is replaced at the version that was read, so that nobody's change is lost.
///
/// # Errors
/// What the API says; a conflict if the object changed meanwhile.
pub async fn create_or_update<K: Writable>(
    api: &Api<K>,
    initial: K,
    mutate: impl FnOnce(&mut K),
) -> Result<(K, Outcome), ApplyError> {
    let name = initial.name_any();
    let parameters = PostParams::default();
    match api.get_opt(&name).await? {
        Some(current) => {
            let mut wanted = current.clone();
            mutate(&mut wanted);
            if wanted == current || !differ(&current, &wanted)? {
                return Ok((wanted, Outcome::Unchanged));
            }
            let updated = api.replace(&name, &parameters, &wanted).await?;
            Ok((updated, Outcome::Updated))
        }
        None => {
            let mut wanted = initial;
            mutate(&mut wanted);
            let created = api.create(&parameters, &wanted).await?;
            Ok((created, Outcome::Created))
        }
    }
}

/// Makes an object be as told, by server-side apply: what others own stays, what `manager` no longer tells goes. Conflicts are taken
/// over.
///
/// # Errors
/// What the API says.
pub async fn apply<K: Stored>(api: &Api<K>, manager: &str, object: &K) -> Result<K, ApplyError> {
    let applied = apply_named(api, manager, &object.name_any(), object).await?;
    Ok(applied.read()?)
}

/// As [`apply`], of an object of any form, whose name is told. What is made of it is read by whoever wants to know.
///
/// # Errors
/// What the API says.
pub async fn apply_named<K: Resource + Clone>(
    api: &Api<K>,
    manager: &str,
    name: &str,
    object: &(impl Serialize + Debug),
) -> Result<Raw, kube::Error> {
    let parameters = PatchParams::apply(manager).force();
    let raw = Raw::api(api.clone());
    raw.patch(name, &parameters, &Patch::Apply(object)).await
}

/// Whether an object has a finalizer.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|one| one == finalizer)
}

/// Adds a finalizer, guarded by the object's version; sends nothing if it is there.
///
/// # Errors
/// What the API says; a conflict if the object changed meanwhile.
pub async fn add_finalizer<K: Stored>(api: &Api<K>, object: &K, finalizer: &str) -> Result<(K, Outcome), ApplyError> {
    let mut wanted = object.clone();
    if has_finalizer(object, finalizer) {
        return Ok((wanted, Outcome::Unchanged));
    }
    wanted.finalizers_mut().push(finalizer.to_owned());
    send_difference(api, object, wanted, Part::Main, true).await
}

/// Removes a finalizer, guarded by the object's version; sends nothing if it is not there. An object that is gone is fine.
///
/// # Errors
/// What the API says; a conflict if the object changed meanwhile.
pub async fn remove_finalizer<K: Stored>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Outcome, ApplyError> {
    if !has_finalizer(object, finalizer) {
        return Ok(Outcome::Unchanged);
    }
    let mut wanted = object.clone();
    wanted.finalizers_mut().retain(|one| one != finalizer);
    match send_difference(api, object, wanted, Part::Main, true).await {
        Ok((_, outcome)) => Ok(outcome),
        Err(error) if error.is_not_found() => Ok(Outcome::Unchanged),
        Err(error) => Err(error),
    }
}

/// Deletes an object; one that is gone is fine. Returns whether there was one.
///
/// # Errors
/// What the API says.
pub async fn delete<K: Stored>(api: &Api<K>, name: &str) -> Result<bool, kube::Error> {
    delete_with(api, name, &DeleteParams::default()).await
}

/// As [`delete`], but refused with a conflict if the object is no longer at the version of `current`.
///
/// # Errors
/// What the API says.
pub async fn delete_locked<K: Stored>(api: &Api<K>, current: &K) -> Result<bool, kube::Error> {
    let parameters = DeleteParams::default().preconditions(Preconditions {
        uid: current.uid(),
        resource_version: current.resource_version(),
    });
    delete_with(api, &current.name_any(), &parameters).await
}

/// As [`delete`], with parameters.
///
/// # Errors
/// What the API says.
pub async fn delete_with<K: Stored>(api: &Api<K>, name: &str, parameters: &DeleteParams) -> Result<bool, kube::Error> {
    match api.delete(name, parameters).await {
        Ok(_) => Ok(true),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
