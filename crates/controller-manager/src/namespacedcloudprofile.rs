//! NamespacedCloudProfiles tell what they make together with their parents [VER-36]: `status.cloudProfileSpec`, which shoots are judged by. Anew when
//! either of both changes.

use gardener_apis::core::v1beta1::{CloudProfile, NamespacedCloudProfile};
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, apply};
use gardener_rules::cloud_profiles::merged;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

const BY_PARENT: &str = "parent";

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let all = watcher::Config::default;
    let parents: Informer<CloudProfile> = Informer::start(Api::all(config.garden.clone()), all(), &stop);
    let children: Informer<NamespacedCloudProfile> = Informer::start(Api::all(config.garden.clone()), all(), &stop);
    children.add_index(BY_PARENT, |child| vec![child.spec.parent.name.clone()]);
    let queue: Queue<ObjectRef> = Queue::new();
    children.feed(&queue, |child| [ObjectRef::of(child)]);
    {
        let children = children.clone();
        parents.feed(&queue, move |parent| {
            let made_of_it = children.by_index(BY_PARENT, &parent.name_any());
            made_of_it
                .iter()
                .map(|child| ObjectRef::of(child.as_ref()))
                .collect::<Vec<_>>()
        });
    }
    tokio::join!(parents.synced(), children.synced());
    Controller::new("namespacedcloudprofile", CONCURRENCY, queue)
        .run(stop, move |key| {
            let (config, parents, children) = (config.clone(), parents.clone(), children.clone());
            async move { reconcile(&config, &parents, &children, &key).await }
        })
        .await;
}

async fn reconcile(
    config: &Config,
    parents: &Informer<CloudProfile>,
    children: &Informer<NamespacedCloudProfile>,
    key: &ObjectRef,
) -> Result<Action, ReconcileError> {
    let Some(child) = children
        .get(key)
        .filter(|child| child.metadata.deletion_timestamp.is_none())
    else {
        return Ok(Action::Done);
    };
    // comes again when the parent does
    let Some(parent) = parents.get(&ObjectRef::cluster_scoped(&child.spec.parent.name)) else {
        return Ok(Action::Done);
    };
    let spec = merged(&parent.spec, &child.spec);
    let api: Api<NamespacedCloudProfile> = Api::namespaced(config.garden.clone(), &key.namespace);
    let written = apply::patch_status(&api, child.as_ref(), |child| {
        child.status.cloud_profile_spec = spec.clone();
        child.status.observed_generation = child.metadata.generation;
    })
    .await;
    match written {
        Err(error) if error.is_not_found() => Ok(Action::Done),
        other => other.map(|_| Action::Done).map_err(ReconcileError::from),
    }
}
