//! Shoots that failed because the infrastructure took no more requests are tried again [GCM-43], [ST-147], [UPD-30].

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// `controllers.shootRetry.retryPeriod`.
const PERIOD: SignedDuration = SignedDuration::from_mins(10);
/// `controllers.shootRetry.retryJitterPeriod`.
const JITTER: SignedDuration = SignedDuration::from_mins(5);
const RATE_LIMITED: &str = "ERR_INFRA_RATE_LIMITS_EXCEEDED";

/// When a shoot is to be tried again; none, if it is not.
fn due(shoot: &Shoot) -> Option<Timestamp> {
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
    (observed && limited).then(|| since.saturating_add(PERIOD).unwrap_or(since))
}

pub(super) async fn run(config: Config, shoots: Informer<Shoot>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => due(new).is_some() && due(old).is_none(),
            Change::Applied { old: None, new } => due(new).is_some(),
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    let config = Arc::new(config);
    Controller::new("shoot-retry", CONCURRENCY, queue)
        .run(stop, move |key| {
            let config = config.clone();
            async move { reconcile(&config, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(shoot) = api.get_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let Some(due) = due(&shoot) else {
        return Ok(Action::Done);
    };
    let now = config.clock.now();
    if now <= due {
        let wait = due.duration_since(now) + JITTER.mul_f64(config.chance.fraction());
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
        assert_eq!(due(&shoot("Failed", RATE_LIMITED, 2)), at);
        assert_eq!(due(&shoot("Error", RATE_LIMITED, 2)), None);
        assert_eq!(due(&shoot("Failed", "ERR_INFRA_UNAUTHORIZED", 2)), None);
        assert_eq!(due(&shoot("Failed", RATE_LIMITED, 1)), None);
    }
}
