//! Shoots that failed because the infrastructure took no more requests are tried again [GCM-43], [ST-147], [UPD-30].

use std::time::Duration;

use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;

use crate::Manager;
use crate::manager::ReconcileError;

const RATE_LIMITED: &str = "ERR_INFRA_RATE_LIMITS_EXCEEDED";

/// When a shoot is to be tried again that waits so long; none, if it is not.
fn due(shoot: &Shoot, period: SignedDuration) -> Option<Timestamp> {
    let last = shoot
        .status
        .last_operation
        .as_ref()
        .filter(|last| last.state == "Failed")?;
    let observed = shoot.status.observed_generation == shoot.metadata.generation;
    let limited = shoot
        .status
        .last_errors
        .iter()
        .flat_map(|error| &error.codes)
        .any(|code| code == RATE_LIMITED);
    let since = last.last_update_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
    (observed && limited).then(|| since.saturating_add(period).unwrap_or(since))
}

pub(super) async fn run(manager: &Manager) {
    let shoots = manager.informer::<Shoot>();
    let settings = &manager.config.controllers.shoot_retry;
    let period = SignedDuration::from_nanos(settings.retry_period.as_nanos());
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        move |change| match change {
            Change::Applied { old: Some(old), new } => due(new, period).is_some() && due(old, period).is_none(),
            Change::Applied { old: None, new } => due(new, period).is_some(),
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    shoots.synced().await;
    let own = manager.clone();
    let controller = manager.controller("shoot-retry", settings.concurrent_syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own, period, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, period: SignedDuration, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let (api, config): (Api<Shoot>, _) = (manager.within(&key.namespace), &manager.config);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let Some(due) = due(&shoot, period) else {
        return Ok(Action::Done);
    };
    let now = config.clock.now();
    if now <= due {
        let jitter = SignedDuration::from_nanos(config.controllers.shoot_retry.retry_jitter_period.as_nanos());
        let wait = due.duration_since(now) + jitter.mul_f64(config.chance.fraction());
        return Ok(Action::RequeueAfter(Duration::try_from(wait).unwrap_or_default()));
    }
    apply::patch_locked(&api, &shoot, |shoot| {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::OPERATION.to_owned(), operation::RETRY.to_owned());
    })
    .await?;
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn st_147_who_is_tried_again() {
        let shoot = |state: &str, code: &str, observed: i64| -> Shoot {
            serde_json::from_value(json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": observed, "lastErrors": [{"description": "no", "codes": [code]}],
                    "lastOperation": {"type": "Create", "state": state, "lastUpdateTime": "2026-01-01T00:00:00Z"}},
            }))
            .unwrap()
        };
        let at = "2026-01-01T00:10:00Z".parse().ok();
        for (state, code, observed, expected) in [
            ("Failed", RATE_LIMITED, 2, at),
            ("Error", RATE_LIMITED, 2, None),
            ("Failed", "ERR_INFRA_UNAUTHORIZED", 2, None),
            ("Failed", RATE_LIMITED, 1, None),
        ] {
            let found = due(&shoot(state, code, observed), SignedDuration::from_mins(10));
            assert_eq!(found, expected, "{state} {code} {observed}");
        }
    }
}
