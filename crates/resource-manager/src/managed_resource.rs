//! The ManagedResource controller: applies what the secrets carry, deletes what they no longer carry `[EXT-142]`–`[EXT-170]`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::Condition;
use gardener_apis::resources::v1alpha1::{ManagedResource, ManagedResourceStatusResource as Reference};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, Read, apply, conditions};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::followed::Followed;
use crate::mapper::Mapper;
use crate::merge;
use crate::target::{self, Gone, Known, Target, TargetError};
use crate::{Config, FINALIZER, health, order, source};
use gardener_apimachinery::meta::is_true;

/// How many ManagedResources are worked on at once.
const CONCURRENCY: usize = 5;
/// How soon a deletion under way is looked at again, if nothing is heard of it before.
const PENDING_INTERVAL: Duration = Duration::from_secs(5);

/// Condition types.
pub(crate) const APPLIED: &str = "ResourcesApplied";
pub(crate) const HEALTHY: &str = "ResourcesHealthy";
pub(crate) const PROGRESSING: &str = "ResourcesProgressing";

pub(crate) const IGNORE: &str = "resources.gardener.cloud/ignore";

/// Why a run failed; the condition already tells.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The source refused.
    #[error(transparent)]
    Source(#[from] apply::ApplyError),
    /// The source refused.
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    /// The target is not as it should be.
    #[error(transparent)]
    Target(#[from] TargetError),
}

pub(crate) struct Reconciler {
    pub(crate) config: Config,
    pub(crate) target: Target,
    pub(crate) resources: Informer<ManagedResource>,
}

/// Runs this controller and the one that tells health.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let resources_api: Api<ManagedResource> = api(&config);
    let secrets_api: Api<Secret> = api(&config);
    let resources = Informer::start(resources_api, watcher::Config::default(), &stop);
    resources.add_index("secrets", |resource: &ManagedResource| {
        let namespace = resource.namespace().unwrap_or_default();
        resource
            .spec
            .secret_refs
            .iter()
            .filter_map(|own| Some(format!("{namespace}/{}", own.name.as_ref()?)))
            .collect()
    });
    let queue: Queue<ObjectRef> = Queue::new();
    let health: Queue<ObjectRef> = Queue::new();
    let own = config.clone();
    let mine = move |change: &Change<ManagedResource>| wants_reconcile(change) && is_concerned(&own, change);
    resources.feed_gathered(&queue, mine, |resource| [ObjectRef::of(resource)]);
    resources.feed_gathered(&health, wants_health, |resource| [ObjectRef::of(resource)]);
    // all that is asked of secrets here is whether their data has changed
    let secrets = Informer::start_tidied(secrets_api, watcher::Config::default(), &stop, keep_checksums);
    {
        let (resources, queue) = (resources.clone(), queue.clone());
        secrets.on_change(move |change| {
            if let Change::Applied { old: Some(old), new } = change {
                if old.data == new.data {
                    return;
                }
                let key = format!("{}/{}", new.namespace().unwrap_or_default(), new.name_any());
                for resource in resources.by_index("secrets", &key) {
                    queue.add(ObjectRef::of(resource.as_ref()));
                }
            }
        });
    }
    let target = Target {
        client: config.target.clone(),
        mapper: Mapper::new(config.target.clone()),
        followed: Followed::new(&config, health.clone(), queue.clone(), stop.clone()),
        clock: config.clock.clone(),
    };
    let reconciler = Arc::new(Reconciler {
        config,
        target,
        resources: resources.clone(),
    });
    resources.synced().await;
    let (for_health, for_apply) = (reconciler.clone(), reconciler);
    let healthy = Controller::new("managedresource-health", CONCURRENCY, health).run(stop.clone(), move |key| {
        let reconciler = for_health.clone();
        async move { health::reconcile(&reconciler, &key).await }
    });
    let applied = Controller::new("managedresource", CONCURRENCY, queue).run(stop, move |key| {
        let reconciler = for_apply.clone();
        async move { reconciler.reconcile(&key).await }
    });
    tokio::join!(healthy, applied);
}

pub(crate) fn api<K>(config: &Config) -> Api<K>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    match &config.namespace {
        Some(namespace) => Api::namespaced(config.source.clone(), namespace),
        None => Api::all(config.source.clone()),
    }
}

/// Puts checksums in the place of a secret's data.
fn keep_checksums(secret: &mut Secret) {
    for value in secret.data.iter_mut().flat_map(BTreeMap::values_mut) {
        value.0 = Sha256::digest(&value.0).to_vec();
    }
}

fn status_of<'a>(resource: &'a ManagedResource, kind: &str) -> &'a str {
    conditions::get(&resource.status.conditions, kind).map_or("", |condition| &condition.status)
}

fn is_ignored(resource: &ManagedResource) -> bool {
    resource.annotations().get(IGNORE).is_some_and(|text| is_true(text))
}

/// A new generation, an operation, a sudden illness, ignoring switched, deletion `[EXT-142]`.
fn wants_reconcile(change: &Change<ManagedResource>) -> bool {
    match change {
        Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            old.metadata.generation != new.metadata.generation
                || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                || is_ignored(old) != is_ignored(new)
                || (gardener_controller::operation::operation(new.as_ref()) == Some("reconcile")
                    && gardener_controller::operation::operation(old.as_ref()) != Some("reconcile"))
                || (status_of(old, HEALTHY) == "True" && status_of(new, HEALTHY) == "False")
        }
        Change::Deleted { .. } => false,
    }
}

/// Whether a manager has something to do with a ManagedResource: it is responsible for it, or has been `[EXT-146]`.
fn is_concerned(config: &Config, change: &Change<ManagedResource>) -> bool {
    let resource = change.object();
    config.is_responsible(resource.spec.class.as_deref())
        || apply::has_finalizer(resource.as_ref(), &config.finalizer())
}

/// When what is applied has changed. Also when it is told how healthy it is: a run before that was heard may have found something else, and
/// kept silent because it was what had been told before.
fn wants_health(change: &Change<ManagedResource>) -> bool {
    match change {
        Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            let differs = |kind| status_of(old, kind) != status_of(new, kind);
            [APPLIED, HEALTHY, PROGRESSING].into_iter().any(differs) || old.status.resources != new.status.resources
        }
        Change::Deleted { .. } => false,
    }
}

impl Reconciler {
    pub(crate) fn resource_api(&self, namespace: &str) -> Api<ManagedResource> {
        Api::namespaced(self.config.source.clone(), namespace)
    }

    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        // the informer may lag behind our own last write
        let Some(resource) = self.resource_api(&key.namespace).read_opt(&key.name).await? else {
            self.target.followed.deletions_are_over(key);
            return Ok(Action::Done);
        };
        let finalizer = self.config.finalizer();
        let responsible = self.config.is_responsible(resource.spec.class.as_deref());
        let mine = apply::has_finalizer(&resource, &finalizer);
        if resource.metadata.deletion_timestamp.is_some() || (!responsible && mine) {
            return if mine {
                self.delete(&resource).await
            } else {
                Ok(Action::Done)
            };
        }
        if !responsible
            || resource
                .finalizers()
                .iter()
                .any(|own| own.starts_with(FINALIZER) && *own != finalizer)
        {
            return Ok(Action::Done);
        }
        if is_ignored(&resource) {
            return self.tell_ignored(&resource).await;
        }
        let (resource, _) = apply::add_finalizer(&self.resource_api(&key.namespace), &resource, &finalizer).await?;
        self.apply(&resource).await
    }

    async fn tell_ignored(&self, resource: &ManagedResource) -> Result<Action, ReconcileError> {
        const REASON: &str = "ManagedResourceIgnored";
        const MESSAGE: &str = "ManagedResource is marked to be ignored.";
        self.tell(
            resource,
            &[
                (APPLIED, "True", REASON, MESSAGE),
                (HEALTHY, "True", REASON, MESSAGE),
                (PROGRESSING, "False", REASON, MESSAGE),
            ],
        )
        .await?;
        Ok(Action::Done)
    }

    /// Writes conditions, if they say something new.
    pub(crate) async fn tell(
        &self,
        resource: &ManagedResource,
        news: &[(&str, &str, &str, &str)],
    ) -> Result<ManagedResource, ReconcileError> {
        let now = self.config.clock.time();
        let api = self.resource_api(&resource.namespace().unwrap_or_default());
        let (written, _) = apply::patch_status(&api, resource, |resource| {
            let news: Vec<Condition> = news
                .iter()
                .map(|(kind, status, reason, message)| {
                    let old = conditions::get_or_init(&resource.status.conditions, kind, &now);
                    conditions::with(&old, status, reason, message, &now)
                })
                .collect();
            resource.status.conditions = conditions::merge(std::mem::take(&mut resource.status.conditions), news);
        })
        .await?;
        Ok(written)
    }

    async fn apply(&self, resource: &ManagedResource) -> Result<Action, ReconcileError> {
        let namespace = resource.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.config.source.clone(), &namespace);
        let mut data: Vec<(String, BTreeMap<String, k8s_openapi::ByteString>)> = Vec::new();
        for reference in &resource.spec.secret_refs {
            let name = reference.name.clone().unwrap_or_default();
            match secrets.read(&name).await {
                Ok(secret) => data.push((name, secret.data.unwrap_or_default())),
                Err(error) => {
                    let message = format!(
                        "Could not read secret {name:?}: {}",
                        gardener_controller::api_error(&error)
                    );
                    self.tell(resource, &[(APPLIED, "False", "CannotReadSecret", &message)])
                        .await?;
                    return Err(error.into());
                }
            }
        }
        let documents = source::read(data.iter().map(|(name, data)| (name.as_str(), data)));
        let checksum = source::checksum(data.iter().map(|(_, data)| data));
        let origin = format!("{namespace}/{}", resource.name_any());
        let mut objects = Vec::new();
        let mut released = BTreeSet::new();
        for mut object in documents.objects {
            self.target.place(&mut object).await;
            if target::is_excluded(&object) {
                released.insert(key_of(&target::reference_of(&object)));
            } else {
                objects.push(object);
            }
        }
        objects.sort_by(|a, b| order::compare((kind_of(a), name_of(a)), (kind_of(b), name_of(b))));
        let references: Vec<Reference> = objects.iter().map(target::reference_of).collect();
        let resource = self.announce(resource, &references, &checksum).await?;
        if let Some(action) = self.clean(&resource, &references, &released, &origin).await? {
            return Ok(action);
        }
        let before: BTreeMap<String, &Reference> = resource
            .status
            .resources
            .iter()
            .map(|reference| (key_of(reference), reference))
            .collect();
        for object in &objects {
            let earlier = before.get(&key_of(&target::reference_of(object)));
            let known = if earlier.is_some() { Known::Applied } else { Known::Not };
            let options = merge::Options {
                origin: origin.clone(),
                inject_labels: resource.spec.inject_labels.clone(),
                force_labels: resource.spec.force_overwrite_labels.unwrap_or(false),
                force_annotations: resource.spec.force_overwrite_annotations.unwrap_or(false),
                applied_labels: earlier.map(|own| own.labels.clone()).unwrap_or_default(),
                applied_annotations: earlier.map(|own| own.annotations.clone()).unwrap_or_default(),
                scaled_by_autoscaler: false,
            };
            if let Err(error) = self.target.apply(object, &options, known).await {
                let message = format!(
                    "Could not apply all new resources: {}/{}/{}: {error}",
                    kind_of(object),
                    namespace_of(object),
                    name_of(object)
                );
                self.tell(&resource, &[(APPLIED, "False", "ApplyFailed", &message)])
                    .await?;
                return Err(error.into());
            }
        }
        self.finish(&resource, references, checksum, &documents.errors).await
    }

    /// Says that something new is coming, when it is `[EXT-170]`.
    async fn announce(
        &self,
        resource: &ManagedResource,
        references: &[Reference],
        checksum: &str,
    ) -> Result<ManagedResource, ReconcileError> {
        let same = resource.status.secrets_data_checksum.as_deref() == Some(checksum)
            && keys(&resource.status.resources) == keys(references);
        if same {
            return Ok(resource.clone());
        }
        let mut news = vec![
            (
                HEALTHY,
                "Unknown",
                "ChecksPending",
                "The health checks have not yet been executed for the current set of resources.",
            ),
            (
                PROGRESSING,
                "Unknown",
                "ChecksPending",
                "Checks have not yet been executed for the current set of resources.",
            ),
        ];
        let earlier = conditions::get(&resource.status.conditions, APPLIED)
            .map(|condition| (condition.reason.clone(), condition.message.clone()));
        let (reason, message) = match &earlier {
            Some((reason, message))
                if matches!(reason.as_str(), "ApplyFailed" | "DeletionFailed" | "DeletionPending") =>
            {
                (reason.as_str(), message.as_str())
            }
            _ => ("ApplyProgressing", "The resources are currently being reconciled."),
        };
        news.push((APPLIED, "Progressing", reason, message));
        self.tell(resource, &news).await
    }

    /// Deletes what is no longer wanted. Answers when to come again while something is still there.
    async fn clean(
        &self,
        resource: &ManagedResource,
        wanted: &[Reference],
        released: &BTreeSet<String>,
        origin: &str,
    ) -> Result<Option<Action>, ReconcileError> {
        let kept: BTreeSet<String> = wanted
            .iter()
            .map(|reference| equivalent_key(resource, reference))
            .collect();
        let unwanted = resource.status.resources.iter().rev();
        let unwanted: Vec<&Reference> = unwanted
            .filter(|reference| !kept.contains(&equivalent_key(resource, reference)))
            .collect();
        let place = ObjectRef::of(resource);
        if !unwanted.is_empty() {
            self.target.followed.wait_for_deletions(place.clone());
        }
        let mut pending = Vec::new();
        for reference in unwanted {
            if released.contains(&key_of(reference)) {
                self.target.release(reference, origin).await?;
                continue;
            }
            match self
                .target
                .delete(
                    reference,
                    resource.spec.delete_persistent_volume_claims.unwrap_or(false),
                )
                .await
            {
                Ok(Gone::Yes) => {}
                Ok(Gone::NotYet(key)) => pending.push(format!("deletion of old resource {key:?} is still pending")),
                Err(error) => {
                    let message = format!("Could not clean all old resources: {error}");
                    self.tell(resource, &[(APPLIED, "False", "DeletionFailed", &message)])
                        .await?;
                    return Err(error.into());
                }
            }
        }
        if pending.is_empty() {
            self.target.followed.deletions_are_over(&place);
            return Ok(None);
        }
        let message = format!("Could not clean all old resources: {}", pending.join(", "));
        self.tell(resource, &[(APPLIED, "Progressing", "DeletionPending", &message)])
            .await?;
        Ok(Some(Action::RequeueAfter(PENDING_INTERVAL)))
    }

    async fn finish(
        &self,
        resource: &ManagedResource,
        references: Vec<Reference>,
        checksum: String,
        errors: &[String],
    ) -> Result<Action, ReconcileError> {
        let now = self.config.clock.time();
        let api = self.resource_api(&resource.namespace().unwrap_or_default());
        let generation = resource.metadata.generation;
        apply::patch_status(&api, resource, |resource| {
            let old = conditions::get_or_init(&resource.status.conditions, APPLIED, &now);
            let applied = if errors.is_empty() {
                conditions::with(&old, "True", "ApplySucceeded", "All resources are applied.", &now)
            } else {
                let message = format!("Could not decode all new resources: {}", errors.join("; "));
                conditions::with(&old, "False", "DecodingFailed", &message, &now)
            };
            resource.status.conditions = conditions::merge(std::mem::take(&mut resource.status.conditions), [applied]);
            resource.status.resources = references.clone();
            resource.status.secrets_data_checksum = Some(checksum.clone());
            resource.status.observed_generation = generation;
        })
        .await?;
        if gardener_controller::operation::operation(resource) == Some("reconcile") {
            apply::patch(&api, resource, |resource| {
                if let Some(annotations) = &mut resource.metadata.annotations {
                    gardener_controller::operation::clear(annotations);
                }
            })
            .await?;
        }
        Ok(Action::RequeueAfter(self.config.sync_period))
    }

    /// The ManagedResource goes, or leaves this manager's class `[EXT-146]` `[GRM-21]`.
    async fn delete(&self, resource: &ManagedResource) -> Result<Action, ReconcileError> {
        const MESSAGE: &str = "The resources are currently being deleted.";
        let api = self.resource_api(&resource.namespace().unwrap_or_default());
        let mut resource = Cow::Borrowed(resource);
        if !resource.spec.keep_objects.unwrap_or(false) {
            let told = self
                .tell(
                    &resource,
                    &[
                        (HEALTHY, "False", "DeletionPending", MESSAGE),
                        (PROGRESSING, "True", "DeletionPending", MESSAGE),
                    ],
                )
                .await?;
            let origin = format!("{}/{}", told.namespace().unwrap_or_default(), told.name_any());
            if let Some(action) = self.clean(&told, &[], &BTreeSet::new(), &origin).await? {
                return Ok(action);
            }
            resource = Cow::Owned(told);
        }
        apply::remove_finalizer(&api, resource.as_ref(), &self.config.finalizer()).await?;
        Ok(Action::Done)
    }
}

fn kind_of(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn name_of(object: &Value) -> &str {
    object.at("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn namespace_of(object: &Value) -> &str {
    object
        .at("/metadata/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn group_of(reference: &Reference) -> &str {
    reference
        .api_version
        .as_deref()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group)
}

fn key_of(reference: &Reference) -> String {
    let text = |own: &Option<String>| own.clone().unwrap_or_default();
    format!(
        "{}/{}/{}/{}",
        group_of(reference),
        text(&reference.kind),
        text(&reference.namespace),
        text(&reference.name)
    )
}

fn keys(references: &[Reference]) -> BTreeSet<String> {
    references
        .iter()
        .map(|reference| {
            format!(
                "{}|{}",
                reference.api_version.as_deref().unwrap_or_default(),
                key_of(reference)
            )
        })
        .collect()
}

/// The key with the group and kind that stand for all equivalent ones `[EXT-163]` `[GRM-17]`.
fn equivalent_key(resource: &ManagedResource, reference: &Reference) -> String {
    let (group, kind) = (group_of(reference), reference.kind.as_deref().unwrap_or_default());
    let successor = match (group, kind) {
        ("extensions", "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet") => Some("apps"),
        ("extensions", "Ingress" | "NetworkPolicy") => Some("networking.k8s.io"),
        _ => None,
    };
    let (mut group, mut kind) = (successor.unwrap_or(group).to_owned(), kind.to_owned());
    for list in &resource.spec.equivalences {
        if list.iter().any(|own| own.group == group && own.kind == kind)
            && let Some(first) = list.first()
        {
            (group, kind) = (first.group.clone(), first.kind.clone());
        }
    }
    format!(
        "{group}/{kind}/{}/{}",
        reference.namespace.as_deref().unwrap_or_default(),
        reference.name.as_deref().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was told may have been old when it was told: that it is there now is a reason to look.
    #[test]
    fn grm_25_health_that_was_told_is_looked_at_again() {
        let told = |kind: &str, status: &str, time: &str| -> Arc<ManagedResource> {
            let condition = serde_json::json!({
                "type": kind, "status": status, "reason": "a", "message": "b", "lastTransitionTime": time, "lastUpdateTime": time,
            });
            let resource = serde_json::json!({"metadata": {"name": "a"}, "status": {"conditions": [condition]}});
            Arc::new(serde_json::from_value(resource).unwrap())
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
        for (old, new, expected) in [
            (told(HEALTHY, "True", early), told(HEALTHY, "False", late), true),
            (told(HEALTHY, "False", early), told(HEALTHY, "True", late), true),
            (told(PROGRESSING, "True", early), told(PROGRESSING, "False", late), true),
            (told(APPLIED, "False", early), told(APPLIED, "True", late), true),
            // else each look would be a reason for the next one
            (told(HEALTHY, "True", early), told(HEALTHY, "True", late), false),
        ] {
            let change = Change::Applied { old: Some(old), new };
            assert_eq!(wants_health(&change), expected, "{change:?}");
        }
    }

    #[test]
    fn ext_163_equivalent_kinds_have_one_key() {
        let resource = ManagedResource::default();
        let reference = |version: &str| Reference {
            api_version: Some(version.into()),
            kind: Some("Deployment".into()),
            name: Some("a".into()),
            namespace: Some("b".into()),
            ..Reference::default()
        };
        assert_eq!(
            equivalent_key(&resource, &reference("extensions/v1beta1")),
            equivalent_key(&resource, &reference("apps/v1"))
        );
        assert_ne!(key_of(&reference("extensions/v1beta1")), key_of(&reference("apps/v1")));
    }
}
