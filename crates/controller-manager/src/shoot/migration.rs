//! Whether the seed that a shoot is to move to can take it [GCM-46]: constraint `ReadyForMigration`.

use std::time::Duration;

use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply, conditions};
use gardener_rules::shoot_migration::{Destination, READY_FOR_MIGRATION, destination, is_to_be_prepared};
use kube::Api;

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};

/// How soon a seed that is not ready is looked at again.
const INTERVAL: Duration = Duration::from_secs(5);

/// Whether the constraint is told although it is not asked for any longer.
fn is_told_in_vain(shoot: &Shoot) -> bool {
    let migrates = shoot
        .status
        .last_operation
        .as_ref()
        .is_some_and(|last| last.r#type == "Migrate");
    !migrates && conditions::get(&shoot.status.constraints, READY_FOR_MIGRATION).is_some()
}

pub(super) async fn run(manager: &Manager) {
    let shoots = manager.informer::<Shoot>();
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => old.spec.seed_name != new.spec.seed_name || is_told_in_vain(new),
            Change::Applied { old: None, new } => is_to_be_prepared(new) || is_told_in_vain(new),
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    shoots.synced().await;
    let own = manager.clone();
    let syncs = manager.config.controllers.shoot_migration.concurrent_syncs;
    let controller = manager.controller("shoot-migration", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = manager.within(&key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if !is_to_be_prepared(&shoot) {
        let written = apply::patch_status(&api, &shoot, |shoot| {
            shoot.status.constraints.retain(|own| own.r#type != READY_FOR_MIGRATION);
        });
        or_gone(written.await)?;
        return Ok(Action::Done);
    }
    let (source, wanted) = tokio::try_join!(
        seed(manager, "source", shoot.status.seed_name.as_deref()),
        seed(manager, "destination", shoot.spec.seed_name.as_deref()),
    )?;
    let found = destination(&source, &wanted);
    let (status, reason, message) = found.told();
    let now = manager.config.clock.time();
    let written = apply::patch_status(&api, &shoot, |shoot| {
        let old = conditions::get_or_init(&shoot.status.constraints, READY_FOR_MIGRATION, &now);
        let new = conditions::with(&old, status, reason, message, &now);
        shoot.status.constraints = conditions::merge(std::mem::take(&mut shoot.status.constraints), [new]);
    });
    or_gone(written.await)?;
    Ok(match found {
        // a seed that is ready may cease to be so before the shoot has left
        Destination::Unready(_) | Destination::Ready => Action::RequeueAfter(INTERVAL),
        Destination::InDeletion => Action::Done,
    })
}

async fn seed(manager: &Manager, which: &str, name: Option<&str>) -> Result<Seed, ReconcileError> {
    let name = name.unwrap_or_default();
    let missing = || ReconcileError::Blocked(format!("failed reading {which} seed {name}: it is not there"));
    manager.all::<Seed>().read_opt(name).await?.ok_or_else(missing)
}
