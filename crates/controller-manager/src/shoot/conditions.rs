//! Shoots that are seeds have the conditions of their seeds, too [GCM-45].

use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::seedmanagement::v1alpha1::ManagedSeed;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::shoot_conditions::with_those_of_the_seed;
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};

pub(super) async fn run(manager: &Manager) {
    let (shoots, seeds) = (manager.informer::<Shoot>(), manager.informer::<Seed>());
    let managed_seeds: Informer<ManagedSeed> = manager.informer();
    let queue: Queue<ObjectRef> = Queue::new();
    let is_new = |change: &Change<Shoot>| matches!(change, Change::Applied { old: None, .. });
    shoots.feed_if(&queue, is_new, |shoot| [ObjectRef::of(shoot)]);
    let known = managed_seeds.clone();
    let of_seed = move |seed: &Seed| {
        let managed_seed = known.get(&ObjectRef::new(GARDEN_NAMESPACE, seed.name_any()))?;
        shoot_of(&managed_seed)
    };
    seeds.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => old.status.conditions != new.status.conditions,
            _ => true,
        },
        of_seed,
    );
    // which seed a shoot is may come to be known after both
    managed_seeds.feed_if(
        &queue,
        |change| !matches!(change, Change::Applied { old: Some(old), new } if old.spec.shoot == new.spec.shoot),
        shoot_of,
    );
    tokio::join!(shoots.synced(), seeds.synced(), managed_seeds.synced());
    let own = (manager.clone(), managed_seeds);
    let syncs = manager.config.controllers.shoot_conditions.concurrent_syncs;
    let controller = manager.controller("shoot-conditions", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let (manager, managed_seeds) = own.clone();
        async move { reconcile(&manager, &managed_seeds, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn shoot_of(managed_seed: &ManagedSeed) -> Option<ObjectRef> {
    let shoot = managed_seed.spec.shoot.as_ref()?;
    Some(ObjectRef::new(
        managed_seed.namespace().unwrap_or_default(),
        &shoot.name,
    ))
}

async fn reconcile(
    manager: &Manager,
    managed_seeds: &Informer<ManagedSeed>,
    key: &ObjectRef,
) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = manager.within(&key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let all = managed_seeds.list_namespace(&key.namespace);
    let seed = match all.iter().find(|own| shoot_of(own).as_ref() == Some(key)) {
        Some(managed_seed) => manager.all::<Seed>().read_opt(&managed_seed.name_any()).await?,
        None => None,
    };
    let of_seed = seed.as_ref().map(|seed| &seed.status.conditions[..]);
    // conditions change quickly: what was decided on this shoot is written to this shoot or decided anew
    let written = apply::patch_status_locked(&api, &shoot, |shoot| {
        shoot.status.conditions = with_those_of_the_seed(&shoot.status.conditions, of_seed);
    });
    or_gone(written.await)?;
    Ok(Action::Done)
}
