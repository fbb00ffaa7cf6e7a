//! The label that sums up how a shoot is [GCM-44]. What it says is decided in `rules::status_label`.

use std::collections::BTreeMap;

use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, apply};
use gardener_rules::status_label;
use kube::Api;

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};

/// Whether the label is not what it should be.
fn is_wrong(shoot: &Shoot) -> bool {
    let labels = shoot.metadata.labels.as_ref();
    labels.and_then(|own| own.get(label::SHOOT_STATUS)).map(String::as_str) != Some(status_label::of(shoot).as_str())
}

pub(super) async fn run(manager: &Manager) {
    let shoots = manager.informer::<Shoot>();
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| matches!(change, Change::Applied { new, .. } if is_wrong(new)),
        |shoot| [ObjectRef::of(shoot)],
    );
    shoots.synced().await;
    let own = (manager.clone(), shoots);
    let syncs = manager.config.controllers.shoot_status_label.concurrent_syncs;
    let controller = manager.controller("shoot-statuslabel", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let (manager, shoots) = own.clone();
        async move { reconcile(&manager, &shoots, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, shoots: &Informer<Shoot>, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let Some(shoot) = shoots.get(key) else {
        return Ok(Action::Done);
    };
    let api: Api<Shoot> = manager.within(&key.namespace);
    let status = status_label::of(&shoot);
    let patched = apply::patch(&api, shoot.as_ref(), |shoot| {
        let labels = shoot.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.insert(label::SHOOT_STATUS.to_owned(), status.as_str().to_owned());
    });
    or_gone(patched.await)?;
    Ok(Action::Done)
}
