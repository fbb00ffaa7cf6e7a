//! ShootStates stay until what they tell of is restored [GCM-16].

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::{Shoot, ShootState};
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::shoot_migration::keeps_state;
use kube::Api;

use crate::Manager;
use crate::manager::ReconcileError;

/// Whether a shoot's step in its migration is another one.
fn is_a_step(change: &Change<Shoot>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => keeps_state(old).ok() != keeps_state(new).ok(),
        _ => false,
    }
}

pub(crate) async fn run(manager: &Manager) {
    let shoots: Informer<Shoot> = manager.informer();
    // states are large: what matters of them is read when it is needed
    let states: Informer<kube::core::PartialObjectMeta<ShootState>> = manager.informers.of();
    let queue: Queue<ObjectRef> = Queue::new();
    let is_there = |change: &Change<_>| matches!(change, Change::Applied { .. });
    states.feed_if(&queue, is_there, |state| [ObjectRef::of(state)]);
    shoots.feed_if(&queue, is_a_step, |shoot| [ObjectRef::of(shoot)]);
    tokio::join!(shoots.synced(), states.synced());
    let own = manager.clone();
    let syncs = manager.config.controllers.shoot_state.concurrent_syncs;
    let controller = manager.controller("shootstate-finalizer", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<ShootState> = manager.within(&key.namespace);
    let Some(state) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let shoots: Api<Shoot> = manager.within(&key.namespace);
    let shoot = shoots.read(&key.name).await?;
    match keeps_state(&shoot).map_err(ReconcileError::Blocked)? {
        Some(true) => drop(apply::add_finalizer(&api, &state, finalizer::SHOOT_STATE).await?),
        Some(false) => drop(apply::remove_finalizer(&api, &state, finalizer::SHOOT_STATE).await?),
        None => {}
    }
    Ok(Action::Done)
}
