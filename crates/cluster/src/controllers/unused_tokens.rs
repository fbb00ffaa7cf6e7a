//! Tokens in Secrets that were made for an account by itself, as Kubernetes did before 1.24, and that nobody used for a year: they are marked as invalid,
//! and deleted a year later. Who misses one takes the mark away. From pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go of Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::authz::refers_to_secret;
use gardener_apiserver::legacy_tokens::{
    ACCOUNT, ACCOUNT_UID, INVALID_SINCE, LAST_USED, SINCE, TRACKING, day_at, day_of,
};
use gardener_controller::{Action, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::{SignedDuration, Timestamp, ToSpan};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

/// How long a token is kept that nobody uses, and as long again once it is marked; as upstream.
const KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How often tokens are looked at; as upstream.
const LOOK: Duration = Duration::from_secs(24 * 3600);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informer = &environment.informers.token_secrets;
    environment.feed(informer, &queue, Role::ControllerManager, |secret| vec![key_of(secret)]);
    environment.reconcile(
        "legacy-serviceaccount-token-cleaner",
        Role::ControllerManager,
        1,
        queue,
        reconcile,
    );
}

/// What is due for a token, as far as it can be told from its Secret.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Mark,
    Delete,
}

/// What is due for a token that pods do not use, when uses are noted since a date. Without a note it was not used since.
fn due(secret: &Secret, tracked_since: Date, now: Timestamp) -> Due {
    let Ok(kept_since) = now.checked_sub(KEPT) else {
        return Due::Nothing;
    };
    // a use on that very date may not be noted
    let tracks_long_enough = tracked_since
        .checked_add(1.day())
        .is_ok_and(|tracked| tracked <= day_at(kept_since));
    let created = secret.metadata.creation_timestamp.as_ref();
    let is_old = created.is_some_and(|created| created.0 < kept_since);
    if !tracks_long_enough || !is_old || secret.metadata.deletion_timestamp.is_some() {
        return Due::Nothing;
    }
    let label = |key: &str| secret.labels().get(key);
    let unused = match label(LAST_USED).map(|text| day_of(text)) {
        None => true,
        Some(Some(used)) => used < day_at(kept_since),
        // nobody knows
        Some(None) => false,
    };
    if !unused {
        return Due::Nothing;
    }
    match label(INVALID_SINCE).and_then(|text| day_of(text)) {
        None => Due::Mark,
        Some(since) if since < day_at(kept_since) => Due::Delete,
        Some(_) => Due::Nothing,
    }
}

/// Whether a token was made for an account by itself: the account tells of it.
fn is_made_by_itself(secret: &Secret, account: &ServiceAccount) -> bool {
    let uid = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    let name = Some(secret.name_any());
    let mut told = account.secrets.iter().flatten();
    uid.is_none_or(|uid| account.uid().as_ref() == Some(uid)) && told.any(|reference| reference.name == name)
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.token_secrets.get(&key) else {
        return Ok(Action::Done);
    };
    let secret = &found.object;
    let now = environment.clock().now();
    let again = Ok(Action::RequeueAfter(LOOK));
    // most tokens are young, or were made by somebody; nothing needs to be asked for these
    let account = secret.annotations().get(ACCOUNT).and_then(|name| {
        let place = ObjectRef {
            name: name.as_str().into(),
            ..key.clone()
        };
        environment.informers.service_accounts.get(&place)
    });
    let is_made_by_itself = account.is_some_and(|account| is_made_by_itself(secret, &account.object));
    if !is_made_by_itself || due(secret, Date::MIN, now) == Due::Nothing {
        return again;
    }
    let system = ObjectRef {
        namespace: "kube-system".into(),
        ..key.clone()
    };
    let tracking = environment.api::<ConfigMap>(&system).read_opt(TRACKING).await?;
    let since = tracking.as_ref().and_then(|map| map.data.as_ref()?.get(SINCE));
    let Some(since) = since.and_then(|text| day_of(text)) else {
        return again;
    };
    let due = due(secret, since, now);
    if due == Due::Nothing || is_mounted(&environment, &key).await? {
        return again;
    }
    let api: Api<Secret> = environment.api(&key);
    if due == Due::Delete {
        tracing::info!(secret = %key, "a token is deleted that was made by itself and that nobody uses");
        apply::delete_locked(&api, secret).await?;
        return Ok(Action::Done);
    }
    tracing::info!(secret = %key, "a token is marked as invalid that was made by itself and that nobody uses");
    apply::patch_locked(&api, secret, |secret| {
        secret
            .labels_mut()
            .insert(INVALID_SINCE.to_owned(), day_at(now).to_string());
    })
    .await?;
    again
}

/// Whether a pod of the Secret's namespace refers to it.
async fn is_mounted(environment: &Environment, key: &ObjectRef) -> Result<bool, Error> {
    let pods: Api<Pod> = environment.api(key);
    for pod in pods.read_list(&ListParams::default()).await? {
        if refers_to_secret(&serde_json::to_value(pod)?, &key.name) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2030-06-15T12:00:00Z";

    #[track_caller]
    fn told(created: &str, labels: serde_json::Value, tracked: &str) -> Due {
        let secret = json!({"metadata": {"name": "s", "creationTimestamp": created, "labels": labels}});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        due(&secret, tracked.parse().unwrap(), NOW.parse().unwrap())
    }

    #[test]
    fn tokens_are_marked_after_a_year_without_use_and_deleted_after_another() {
        let old = "2025-01-01T00:00:00Z";
        for (labels, expected) in [
            (json!({}), Due::Mark),
            (json!({LAST_USED: "2029-06-14"}), Due::Mark),
            (json!({LAST_USED: "2029-06-15"}), Due::Nothing),
            (json!({LAST_USED: "2029-06"}), Due::Nothing),
            (json!({LAST_USED: "never"}), Due::Nothing),
            (json!({INVALID_SINCE: "2029-06-14"}), Due::Delete),
            (json!({INVALID_SINCE: "2029-06-15"}), Due::Nothing),
            (json!({INVALID_SINCE: "someday"}), Due::Mark),
            (
                json!({INVALID_SINCE: "2028-01-01", LAST_USED: "2030-06-01"}),
                Due::Nothing,
            ),
        ] {
            assert_eq!(told(old, labels.clone(), "2026-01-01"), expected, "{labels}");
        }
    }

    #[test]
    fn nothing_is_due_for_young_tokens_or_before_uses_were_noted_for_a_year() {
        assert_eq!(told("2029-06-15T12:00:00Z", json!({}), "2026-01-01"), Due::Nothing);
        assert_eq!(told("2029-06-15T11:59:59Z", json!({}), "2026-01-01"), Due::Mark);
        assert_eq!(told("2025-01-01T00:00:00Z", json!({}), "2029-06-14"), Due::Mark);
        assert_eq!(told("2025-01-01T00:00:00Z", json!({}), "2029-06-15"), Due::Nothing);
    }

    #[test]
    fn who_tells_of_a_token_made_it() {
        let secret = |uid: &str| -> Secret {
            let metadata = json!({"name": "s", "annotations": {ACCOUNT: "a", ACCOUNT_UID: uid}});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let account = |told: &str| -> ServiceAccount {
            let account = json!({"metadata": {"name": "a", "uid": "1"}, "secrets": [{"name": told}]});
            serde_json::from_value(account).unwrap()
        };
        for (uid, told, expected) in [
            ("1", "s", true),
            ("", "s", true),
            ("2", "s", false),
            ("1", "other", false),
        ] {
            assert_eq!(
                is_made_by_itself(&secret(uid), &account(told)),
                expected,
                "{uid} {told}"
            );
        }
    }
}
