//! ControllerRevisions: the history of the templates of StatefulSets and DaemonSets.

use std::sync::Arc;

use gardener_apimachinery::pointer::Pointed;
use gardener_controller::{Clustered, ObjectRef, apply};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::environment::{BY_OWNER, Environment};
use crate::error::Error;
use crate::pods::{self, REVISION_HASH};

/// The revision of an owner's template now, and all that are known.
pub(super) struct History {
    /// The revision of the template as it is.
    pub update: ControllerRevision,
    /// All, oldest first.
    pub all: Vec<Arc<Clustered<ControllerRevision>>>,
}

fn data(template: &PodTemplateSpec) -> Result<Value, Error> {
    let mut template = serde_json::to_value(template)?;
    if let Value::Object(members) = &mut template {
        members.insert("$patch".to_owned(), "replace".into());
    }
    Ok(json!({"spec": {"template": template}}))
}

/// The template that a revision holds.
pub(super) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.at("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The hash by which a revision's pods are labeled.
pub(super) fn hash_of(revision: &ControllerRevision) -> String {
    revision.labels().get(REVISION_HASH).cloned().unwrap_or_default()
}

/// Makes sure that the owner's template has a revision, and that it is the newest.
///
/// # Errors
/// What the API says.
pub(super) async fn ensure<K: Resource<DynamicType = ()>>(
    environment: &Environment,
    key: &ObjectRef,
    owner: &K,
    template: &PodTemplateSpec,
    label: impl Fn(&str) -> String,
) -> Result<History, Error> {
    let uid = owner.meta().uid.clone().unwrap_or_default();
    let mut all = environment.informers.revisions.by_index(BY_OWNER, &uid);
    all.sort_by_key(|own| (own.object.revision, own.object.name_any()));
    let wanted = data(template)?;
    let newest = all.last().and_then(|own| own.object.revision).unwrap_or(0);
    let api: Api<ControllerRevision> = environment.api(key);
    if let Some(known) = all.iter().rev().find(|own| own.object.data.0 == wanted) {
        let mut update = known.object.clone();
        if update.revision.unwrap_or(0) < newest {
            update = apply::patch_locked(&api, &update, |own| own.revision = Some(newest + 1))
                .await?
                .0;
        }
        return Ok(History { update, all });
    }
    let hash = pods::hash(template, None);
    let mut labels = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    labels.insert(REVISION_HASH.to_owned(), label(&hash));
    let revision = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", key.name)),
            namespace: Some(key.namespace.clone()),
            labels: Some(labels),
            owner_references: Some(vec![pods::controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        data: RawExtension(wanted),
        revision: Some(newest + 1),
    };
    let update = api.create(&PostParams::default(), &revision).await?;
    Ok(History { update, all })
}

/// Deletes the oldest revisions beyond `limit` that no pod has and that are not `keep`.
///
/// # Errors
/// What the API says.
pub(super) async fn clean_up(
    environment: &Environment,
    key: &ObjectRef,
    history: &History,
    keep: &[&str],
    limit: Option<i32>,
) -> Result<(), Error> {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
    let old: Vec<String> = history
        .all
        .iter()
        .map(|own| own.object.name_any())
        .filter(|name| *name != history.update.name_any() && !keep.contains(&name.as_str()))
        .collect();
    let api: Api<ControllerRevision> = environment.api(key);
    for name in old.iter().take(old.len().saturating_sub(limit)) {
        apply::delete(&api, name).await?;
    }
    Ok(())
}
