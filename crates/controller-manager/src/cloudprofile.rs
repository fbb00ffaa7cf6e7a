//! CloudProfiles stay while they are used, and tell the stage of each of their versions [GCM-14].

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::{CloudProfile, NamespacedCloudProfile, Shoot};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::{Action, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::cloud_profiles::{next_transition, status, uses};
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::manager::{ReconcileError, until};
use crate::references::{Refusal, guard, retry_on_deletion, shoots};

struct Reconciler {
    manager: Manager,
    children: Informer<NamespacedCloudProfile>,
    shoots: Informer<Shoot>,
    recorder: Recorder,
}

pub(crate) async fn run(manager: &Manager) {
    let profiles = manager.informer::<CloudProfile>();
    let (children, users) = (
        manager.informer::<NamespacedCloudProfile>(),
        manager.informer::<Shoot>(),
    );
    let queue: Queue<ObjectRef> = Queue::new();
    profiles.feed(&queue, |profile| [ObjectRef::of(profile)]);
    retry_on_deletion(&profiles, &queue, &children);
    retry_on_deletion(&profiles, &queue, &users);
    tokio::join!(profiles.synced(), children.synced(), users.synced());
    let own = std::sync::Arc::new(Reconciler {
        manager: manager.clone(),
        children,
        shoots: users,
        recorder: manager.recorder("cloudprofile"),
    });
    let syncs = manager.config.controllers.cloud_profile.concurrent_syncs;
    let controller = manager.controller("cloudprofile", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { own.reconcile(&key.name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

impl Reconciler {
    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let api: Api<CloudProfile> = self.manager.all();
        let Some(profile) = api.read_opt(name).await? else {
            return Ok(Action::Done);
        };
        let refusal = |profile: &CloudProfile| self.refusal(&profile.name_any());
        let guarded = guard(&api, profile, finalizer::GARDENER, &self.recorder, refusal).await?;
        let Some(profile) = guarded else {
            return Ok(Action::Done);
        };
        let now = self.manager.config.clock.now();
        let (profile, _) = apply::patch_status(&api, &profile, |profile| {
            profile.status = status(&profile.spec, now);
        })
        .await?;
        let next = next_transition(&profile.spec, now);
        Ok(next.map_or(Action::Done, |next| Action::RequeueAfter(until(next, now))))
    }

    fn refusal(&self, name: &str) -> Option<Refusal> {
        let told = |who: &str, using: Vec<String>| {
            let using = using.join(" ");
            let message =
                format!("Cannot delete CloudProfile, because the following {who} are still referencing it: [{using}]");
            Some(Refusal::told(Severity::Normal, message))
        };
        let children = self.children.list();
        let own = children.iter().filter(|own| own.spec.parent.name == name);
        let children: Vec<String> = own.map(|own| ObjectRef::of(own.as_ref()).to_string()).collect();
        if !children.is_empty() {
            return told("NamespacedCloudProfiles", children);
        }
        let shoots = shoots(&self.shoots, |shoot| uses(shoot, name, &[]));
        if shoots.is_empty() {
            None
        } else {
            told("Shoots", shoots)
        }
    }
}
