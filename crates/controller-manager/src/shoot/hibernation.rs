//! Hibernation of shoots by their schedules [GCM-40], [ST-171]–[ST-173]. What is done is decided in `rules::hibernation`.

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::VERSION;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply};
use gardener_rules::hibernation::{Turn, decide};
use k8s_openapi::jiff::SignedDuration;
use kube::Api;

use crate::Manager;
use crate::manager::ReconcileError;

fn has_schedules(shoot: &Shoot) -> bool {
    shoot
        .spec
        .hibernation
        .as_ref()
        .is_some_and(|own| !own.schedules.is_empty())
}

pub(super) async fn run(manager: &Manager) {
    let shoots = manager.informer::<Shoot>();
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                let schedules = |shoot: &Shoot| shoot.spec.hibernation.as_ref().map(|own| own.schedules.clone());
                has_schedules(new) && schedules(old) != schedules(new)
            }
            Change::Applied { old: None, new } => has_schedules(new),
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    shoots.synced().await;
    let shared = Arc::new((manager.clone(), manager.recorder("shoot-hibernation")));
    let syncs = manager.config.controllers.shoot_hibernation.concurrent_syncs;
    let controller = manager.controller("shoot-hibernation", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let shared = shared.clone();
        async move { reconcile(&shared.0, &shared.1, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, recorder: &Recorder, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = manager.within(&key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let deadline = manager.config.controllers.shoot_hibernation.trigger_deadline_duration;
    let deadline = SignedDuration::from_nanos(deadline.as_nanos());
    let now = manager.config.clock.now();
    // in a copy nobody upgrades anything
    let version = match manager.config.foretells {
        true => &shoot.status.gardener.version,
        false => VERSION,
    };
    let Some(decision) = decide(&shoot, Some(deadline), version, now) else {
        return Ok(Action::Done);
    };
    if let Some(turn) = decision.turn {
        match follow(manager, recorder, &api, &shoot, turn).await {
            // nobody lifts in a copy what stands in the way there
            Err(error) if manager.config.foretells && error.is_refusal() => {}
            other => other?,
        }
    }
    Ok(match decision.wait {
        Some(wait) => Action::RequeueAfter(Duration::try_from(wait).unwrap_or_default()),
        None => Action::Done,
    })
}

async fn follow(
    manager: &Manager,
    recorder: &Recorder,
    api: &Api<Shoot>,
    shoot: &Shoot,
    turn: Turn,
) -> Result<(), apply::ApplyError> {
    let (shoot, _) = apply::patch(api, shoot, |shoot| {
        shoot.spec.hibernation.get_or_insert_default().enabled = Some(turn.enables());
    })
    .await?;
    // nobody reads events in a copy
    if !manager.config.foretells {
        let (reason, message) = turn.event();
        let about = object_reference(&shoot, &());
        recorder.publish(&about, Severity::Normal, reason, message).await;
    }
    let now = manager.config.clock.time();
    apply::patch_status(api, &shoot, |shoot| {
        shoot.status.last_hibernation_trigger_time = Some(now.clone());
    })
    .await?;
    Ok(())
}
