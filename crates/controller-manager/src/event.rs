//! Events about anything but shoots are kept for some time [GCM-50].

use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::events::deleted_at;
use k8s_openapi::api::events::v1::Event;
use kube::Api;

use crate::Manager;
use crate::manager::{ReconcileError, until};

pub(crate) async fn run(manager: &Manager) {
    let Some(settings) = manager.config.controllers.event.clone() else {
        return;
    };
    let events: Informer<Event> = manager.informer();
    let queue: Queue<ObjectRef> = Queue::new();
    // one that is told anew is seen when its time has come
    let is_new = |change: &Change<Event>| matches!(change, Change::Applied { old: None, .. });
    events.feed_if(&queue, is_new, |event| [ObjectRef::of(event)]);
    events.synced().await;
    let (own, ttl) = (manager.clone(), settings.ttl_non_shoot_events.to_std());
    let controller = manager.controller("event", settings.concurrent_syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move {
            let api: Api<Event> = own.within(&key.namespace);
            let event = api.read_opt(&key.name).await?;
            let now = own.config.clock.now();
            match event.and_then(|event| deleted_at(&event, ttl)) {
                Some(due) if due > now => Ok(Action::RequeueAfter(until(due, now))),
                Some(_) => {
                    apply::delete(&api, &key.name).await?;
                    Ok::<_, ReconcileError>(Action::Done)
                }
                None => Ok(Action::Done),
            }
        }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}
