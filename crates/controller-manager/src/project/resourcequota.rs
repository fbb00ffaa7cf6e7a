//! Quotas of projects' namespaces, whoever made them, have room for what Gardener puts there for each shoot [GCM-5]. How much is decided in
//! `rules::projects::quota`.

use gardener_apis::core::v1beta1::{Project, Shoot};
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::projects::quota;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::BY_NAMESPACE;
use crate::Manager;
use crate::manager::{ReconcileError, or_gone};

pub(super) async fn run(manager: &Manager, projects: &Informer<Project>) {
    let quotas = manager.informer::<ResourceQuota>();
    let queue: Queue<ObjectRef> = Queue::new();
    quotas.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec || old.metadata.annotations != new.metadata.annotations
            }
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |quota| Some(ObjectRef::of(quota)),
    );
    // a quota may be seen before its project has told its namespace
    let known = quotas.clone();
    projects.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old, new } => old.as_ref().is_none_or(|old| old.spec.namespace != new.spec.namespace),
            Change::Deleted(_) => false,
        },
        move |project| -> Vec<ObjectRef> {
            let namespace = project.spec.namespace.iter();
            let quotas = namespace.flat_map(|namespace| known.list_namespace(namespace));
            quotas.map(|quota| ObjectRef::of(&*quota)).collect()
        },
    );
    tokio::join!(projects.synced(), quotas.synced());
    let own = (manager.clone(), projects.clone());
    let syncs = manager.config.controllers.project.concurrent_syncs;
    let controller = manager.controller("project-resourcequota", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let (manager, projects) = own.clone();
        async move {
            if projects.by_index(BY_NAMESPACE, &key.namespace).is_empty() {
                return Ok(Action::Done);
            }
            reconcile(&manager, &key).await
        }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<ResourceQuota> = manager.within(&key.namespace);
    let found = api
        .read_opt(&key.name)
        .await?
        .filter(|own| own.metadata.deletion_timestamp.is_none());
    let limits = found.as_ref().and_then(|own| own.spec.as_ref()?.hard.clone());
    let (Some(found), Some(mut limits)) = (found, limits) else {
        return Ok(Action::Done);
    };
    let shoots = match quota::allowed_shoots(&limits) {
        Some(allowed) => allowed,
        None => {
            let shoots = manager
                .within::<Shoot>(&key.namespace)
                .list_metadata(&ListParams::default())
                .await?;
            i64::try_from(shoots.items.len()).unwrap_or(i64::MAX)
        }
    };
    let mut annotations = found.metadata.annotations.clone().unwrap_or_default();
    quota::grow(&mut limits, &mut annotations, shoots).map_err(|why| {
        let (name, namespace) = (&key.name, &key.namespace);
        ReconcileError::Blocked(format!(
            "error aligning resource quota {name:?} in namespace {namespace:?}: {why}"
        ))
    })?;
    // limit and annotation change together, or it would grow twice
    let written = apply::patch_locked(&api, &found, |own| {
        *own.annotations_mut() = annotations;
        own.spec.get_or_insert_default().hard = Some(limits);
    });
    or_gone(written.await)?;
    Ok(Action::Done)
}
