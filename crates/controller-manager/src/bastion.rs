//! Bastions end when nobody needs them any more [GCM-51]. When is decided in `rules::bastions`.

use gardener_apis::core::v1beta1::Shoot;
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::bastions::{Fate, fate};
use kube::Api;

use crate::Manager;
use crate::manager::{ReconcileError, until};

/// Bastions by the name of their shoot.
const BY_SHOOT: &str = "shoot";

/// Whether a bastion's fate may be another one now.
fn concerns_bastions(change: &Change<Shoot>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => new.in_deletion() || old.spec.seed_name != new.spec.seed_name,
        Change::Applied { old: None, new } => new.in_deletion(),
        Change::Deleted(_) => true,
    }
}

pub(crate) async fn run(manager: &Manager) {
    let (bastions, shoots) = (manager.informer::<Bastion>(), manager.informer::<Shoot>());
    bastions.add_index(BY_SHOOT, |bastion| vec![bastion.spec.shoot_ref.name.clone()]);
    let queue: Queue<ObjectRef> = Queue::new();
    bastions.feed_if(
        &queue,
        // a heartbeat changes nothing but the status: it is seen when the time has come
        |change| match change {
            Change::Applied { old: Some(old), new } => old.spec != new.spec,
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |bastion| [ObjectRef::of(bastion)],
    );
    let known: Informer<Bastion> = bastions.clone();
    shoots.feed_if(&queue, concerns_bastions, move |shoot| {
        let all = known.by_index(BY_SHOOT, shoot.own_name());
        let own = all.iter().map(|bastion| ObjectRef::of(bastion.as_ref()));
        own.filter(|bastion| bastion.namespace == shoot.project_namespace())
            .collect::<Vec<_>>()
    });
    tokio::join!(bastions.synced(), shoots.synced());
    let own = manager.clone();
    let syncs = manager.config.controllers.bastion.concurrent_syncs;
    let controller = manager.controller("bastion", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Bastion> = manager.within(&key.namespace);
    let bastion = api.read_opt(&key.name).await?;
    let Some(bastion) = bastion.filter(|own| own.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::Done);
    };
    let shoot = manager
        .within::<Shoot>(&key.namespace)
        .read_opt(&bastion.spec.shoot_ref.name)
        .await?;
    let max_lifetime = manager.config.controllers.bastion.max_lifetime.to_std();
    let now = manager.config.clock.now();
    match fate(&bastion, shoot.as_ref(), max_lifetime, now) {
        Fate::Goes(why) => {
            tracing::info!(bastion = %key, why, "deleting a bastion");
            apply::delete(&api, &key.name).await?;
            Ok(Action::Done)
        }
        Fate::StaysUntil(time) => Ok(Action::RequeueAfter(until(time, now))),
    }
}
