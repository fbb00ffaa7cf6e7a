//! What installations refer to stays while they do `[GCM-32]` `[EXT-92]`: registrations, seeds and shoots.

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::{ControllerInstallation, ControllerRegistration, Seed, Shoot};
use gardener_controller::apply::Writable;
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply};
use kube::api::ListParams;
use kube::{Api, Resource};

use super::CONCURRENT_SYNCS;
use crate::Manager;
use crate::manager::ReconcileError;

/// A kind that installations refer to.
trait Kept: Watched + Writable + Resource<DynamicType = ()> {
    /// The controller's name.
    const CONTROLLER: &'static str;

    /// The object at a place.
    fn api(manager: &Manager, key: &ObjectRef) -> Api<Self>;

    /// What an installation refers to of this kind.
    fn referred(installation: &ControllerInstallation) -> Option<ObjectRef>;

    /// Selects the installations that refer to an object.
    fn selector(key: &ObjectRef) -> String;

    /// The error that says why an object cannot go yet, where there is one; else it waits.
    fn refusal(_name: &str, _installations: &[String]) -> Option<String> {
        None
    }
}

impl Kept for ControllerRegistration {
    const CONTROLLER: &'static str = "controllerregistration-controllerregistration-finalizer";

    fn api(manager: &Manager, _: &ObjectRef) -> Api<Self> {
        manager.all()
    }

    fn referred(installation: &ControllerInstallation) -> Option<ObjectRef> {
        installation
            .spec
            .registration_ref
            .name
            .as_ref()
            .map(ObjectRef::cluster_scoped)
    }

    fn selector(key: &ObjectRef) -> String {
        format!("spec.registrationRef.name={}", key.name)
    }

    fn refusal(name: &str, installations: &[String]) -> Option<String> {
        let installations = installations.join(",");
        Some(format!(
            "cannot remove finalizer of ControllerRegistration {name:?} because still found ControllerInstallations: {installations}"
        ))
    }
}

impl Kept for Seed {
    const CONTROLLER: &'static str = "controllerregistration-cluster-finalizer-seed";

    fn api(manager: &Manager, _: &ObjectRef) -> Api<Self> {
        manager.all()
    }

    fn referred(installation: &ControllerInstallation) -> Option<ObjectRef> {
        let seed = installation.spec.seed_ref.as_ref()?;
        seed.name.as_ref().map(ObjectRef::cluster_scoped)
    }

    fn selector(key: &ObjectRef) -> String {
        format!("spec.seedRef.name={}", key.name)
    }
}

impl Kept for Shoot {
    const CONTROLLER: &'static str = "controllerregistration-cluster-finalizer-shoot";

    fn api(manager: &Manager, key: &ObjectRef) -> Api<Self> {
        manager.within(&key.namespace)
    }

    fn referred(installation: &ControllerInstallation) -> Option<ObjectRef> {
        let shoot = installation.spec.shoot_ref.as_ref()?;
        Some(ObjectRef::new(shoot.namespace.clone()?, shoot.name.clone()?))
    }

    fn selector(key: &ObjectRef) -> String {
        format!(
            "spec.shootRef.name={},spec.shootRef.namespace={}",
            key.name, key.namespace
        )
    }
}

pub(super) async fn run(manager: &Manager) {
    tokio::join!(
        follow::<ControllerRegistration>(manager),
        follow::<Seed>(manager),
        follow::<Shoot>(manager),
    );
}

async fn follow<K: Kept>(manager: &Manager) {
    let (objects, installations) = (manager.informer::<K>(), manager.informer::<ControllerInstallation>());
    let queue: Queue<ObjectRef> = Queue::new();
    objects.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.meta().deletion_timestamp != new.meta().deletion_timestamp
                    || !(new.meta().deletion_timestamp.is_some() || has_finalizer(new.as_ref()))
            }
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |object| [ObjectRef::of(object)],
    );
    installations.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => K::referred(old) != K::referred(new),
            Change::Applied { old: None, .. } => false,
            Change::Deleted(_) => true,
        },
        K::referred,
    );
    tokio::join!(objects.synced(), installations.synced());
    let own = manager.clone();
    let controller = manager.controller(K::CONTROLLER, CONCURRENT_SYNCS, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile::<K>(&own, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn has_finalizer<K: Resource>(object: &K) -> bool {
    apply::has_finalizer(object, finalizer::CONTROLLER_REGISTRATION)
}

async fn reconcile<K: Kept>(manager: &Manager, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api = K::api(manager, key);
    let Some(object) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if object.meta().deletion_timestamp.is_none() {
        apply::add_finalizer(&api, &object, finalizer::CONTROLLER_REGISTRATION).await?;
        return Ok(Action::Done);
    }
    if !has_finalizer(&object) {
        return Ok(Action::Done);
    }
    // as they are now: one that an informer has not seen would lose what it refers to
    let referring = ListParams::default().fields(&K::selector(key));
    let installations = manager
        .all::<ControllerInstallation>()
        .list_metadata(&referring)
        .await?
        .items;
    if installations.is_empty() {
        apply::remove_finalizer(&api, &object, finalizer::CONTROLLER_REGISTRATION).await?;
        return Ok(Action::Done);
    }
    let names: Vec<String> = installations.iter().map(kube::ResourceExt::name_any).collect();
    // comes again when one of them goes
    K::refusal(&key.name, &names).map_or(Ok(Action::Done), |why| Err(ReconcileError::Blocked(why)))
}
