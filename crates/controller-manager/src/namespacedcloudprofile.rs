//! NamespacedCloudProfiles stay while shoots use them, and tell what they make together with their parents [GCM-15] [VER-36]:
//! `status.cloudProfileSpec`, which shoots are judged by. Anew when either of both changes.

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::{CloudProfile, NamespacedCloudProfile, Shoot};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::{Action, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::cloud_profiles::{merged, uses_namespaced};
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};
use crate::references::{Refusal, guard, retry_on_deletion, shoots};

const BY_PARENT: &str = "parent";

struct Reconciler {
    manager: Manager,
    parents: Informer<CloudProfile>,
    shoots: Informer<Shoot>,
    recorder: Recorder,
}

pub(crate) async fn run(manager: &Manager) {
    let (parents, users) = (manager.informer::<CloudProfile>(), manager.informer::<Shoot>());
    let children = manager.informer::<NamespacedCloudProfile>();
    children.add_index(BY_PARENT, |child| vec![child.spec.parent.name.clone()]);
    let queue: Queue<ObjectRef> = Queue::new();
    children.feed(&queue, |child| [ObjectRef::of(child)]);
    retry_on_deletion(&children, &queue, &users);
    {
        let children = children.clone();
        parents.feed(&queue, move |parent| {
            let made_of_it = children.by_index(BY_PARENT, &parent.name_any());
            let keys = made_of_it.iter().map(|child| ObjectRef::of(child.as_ref()));
            keys.collect::<Vec<_>>()
        });
    }
    tokio::join!(parents.synced(), children.synced(), users.synced());
    let own = std::sync::Arc::new(Reconciler {
        manager: manager.clone(),
        parents,
        shoots: users,
        recorder: manager.recorder("namespacedcloudprofile"),
    });
    let syncs = manager.config.controllers.namespaced_cloud_profile.concurrent_syncs;
    let controller = manager.controller("namespacedcloudprofile", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { own.reconcile(&key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

impl Reconciler {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api: Api<NamespacedCloudProfile> = self.manager.within(&key.namespace);
        let Some(child) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        let refusal = |child: &NamespacedCloudProfile| {
            let using = shoots(&self.shoots, |shoot| uses_namespaced(shoot, child));
            let message = format!(
                "Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it: [{}]",
                using.join(" ")
            );
            (!using.is_empty()).then(|| Refusal::told(Severity::Normal, message))
        };
        let guarded = guard(&api, child, finalizer::GARDENER, &self.recorder, refusal).await?;
        let Some(child) = guarded else {
            return Ok(Action::Done);
        };
        // comes again when the parent does
        let Some(parent) = self.parents.get(&ObjectRef::cluster_scoped(&child.spec.parent.name)) else {
            return Ok(Action::Done);
        };
        let written = apply::patch_status(&api, &child, |child| {
            child.status.cloud_profile_spec = merged(&parent.spec, &child.spec);
            child.status.observed_generation = child.metadata.generation;
        });
        or_gone(written.await)?;
        Ok(Action::Done)
    }
}
