//! What ends by itself: bootstrap tokens and events.

use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::kubernetes::EVENT_TIME_TO_LIVE;
use gardener_controller::{Action, ObjectRef, Queue, apply};
use gardener_store::{Expect, ListOptions, Topic};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use serde::Deserialize;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

/// How often old events are looked for.
const SWEEP: Duration = Duration::from_secs(300);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed(
        &environment.informers.bootstrap_tokens,
        &queue,
        Role::ControllerManager,
        |token| vec![key_of(token)],
    );
    environment.reconcile("tokencleaner", Role::ControllerManager, 2, queue, clean_token);
    let (own, stop) = (Arc::clone(environment), environment.stop.clone());
    environment.tasks.spawn(async move {
        stop.run_until_cancelled(async {
            loop {
                tokio::time::sleep(SWEEP).await;
                sweep(&own).await;
            }
        })
        .await;
    });
}

async fn clean_token(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.bootstrap_tokens.get(&key) else {
        return Ok(Action::Done);
    };
    let text = found.object.data.as_ref().and_then(|data| data.get("expiration"));
    let Some(expiration) = text.and_then(|text| std::str::from_utf8(&text.0).ok()?.parse::<Timestamp>().ok()) else {
        return Ok(Action::Done);
    };
    let left = expiration.duration_since(environment.clock().now());
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Ok(Action::RequeueAfter(left)),
        _ => {
            let api: Api<Secret> = environment.api(&key);
            apply::delete(&api, &key.name).await?;
            Ok(Action::Done)
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Told {
    metadata: Created,
    last_timestamp: Option<Timestamp>,
    event_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Created {
    creation_timestamp: Option<Timestamp>,
}

/// When an event was told last.
fn told_last(value: &[u8]) -> Option<Timestamp> {
    let told: Told = serde_json::from_slice(value).ok()?;
    [told.last_timestamp, told.event_time, told.metadata.creation_timestamp]
        .into_iter()
        .flatten()
        .max()
}

/// Deletes the events of all clusters that were told longer ago than events live. An API server does that by itself, whether or not a
/// controller manager runs.
async fn sweep(environment: &Environment) {
    let store = &environment.config.server.shared().store;
    let lives = SignedDuration::try_from(EVENT_TIME_TO_LIVE).unwrap_or(SignedDuration::MAX);
    let now = environment.clock().now();
    let Ok(listing) = store.list(&Topic::new("", "events"), "", &ListOptions::default()) else {
        return;
    };
    for entry in listing.entries {
        if told_last(&entry.value()).is_some_and(|told| now.duration_since(told) >= lives) {
            let expect = Expect::Revision(entry.mod_revision);
            let change = gardener_store::Change::Delete {
                key: entry.key.clone(),
                expect,
            };
            // one that was told again meanwhile lives on
            if let Err(error) = store.commit(change).await {
                tracing::debug!(key = %entry.key, %error, "an old event stays");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_from_when_they_were_told_last() {
        let told = told_last(br#"{"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "lastTimestamp": "2026-01-01T01:00:00Z", "eventTime": null}"#);
        assert_eq!(told.unwrap().to_string(), "2026-01-01T01:00:00Z");
        assert_eq!(told_last(b"{}"), None);
    }
}
