//! Conditions of a seed that tell of others: its extensions `[GCM-21]` and its backup buckets `[GCM-22]`.

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{BackupBucket, Condition, ControllerInstallation, Seed};
use gardener_controller::{Action, Change, Queue, Read, apply, conditions};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::configuration::SeedCheck;
use crate::manager::{ReconcileError, or_gone};

const EXTENSIONS_READY: &str = "ExtensionsReady";
const BACKUP_BUCKETS_READY: &str = "BackupBucketsReady";

/// Conditions of installations that count.
const RELEVANT: [&str; 4] = ["Valid", "Installed", "Healthy", "Progressing"];

/// Status, reason and message of a condition.
type Finding = (&'static str, &'static str, String);

/// What the installations of a seed say.
fn judge_extensions(installations: &[&ControllerInstallation]) -> Finding {
    let (mut invalid, mut missing, mut unhealthy, mut progressing) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for installation in installations {
        let name = installation.name_any();
        let own = &installation.status.conditions;
        if own.is_empty() {
            missing.insert(name, "extension was not yet installed".to_owned());
            continue;
        }
        for (kind, group, wrong) in [
            ("Valid", &mut invalid, "True"),
            ("Installed", &mut missing, "True"),
            ("Healthy", &mut unhealthy, "True"),
            ("Progressing", &mut progressing, "False"),
        ] {
            if let Some(condition) = conditions::get(own, kind).filter(|condition| condition.status != wrong) {
                group.insert(name.clone(), condition.message.clone());
            }
        }
        let missing = RELEVANT.iter().any(|kind| conditions::get(own, kind).is_none());
        if missing && !unhealthy.contains_key(&name) {
            let message = "not all required conditions found in ControllerInstallation";
            unhealthy.insert(name, message.to_owned());
        }
    }
    let words = |map: &BTreeMap<String, String>| {
        map.iter()
            .map(|(name, message)| format!("{name}:{message}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (group, reason, what) in [
        (&invalid, "NotAllExtensionsValid", "valid"),
        (&missing, "NotAllExtensionsInstalled", "installed"),
        (&unhealthy, "NotAllExtensionsHealthy", "healthy"),
    ] {
        if !group.is_empty() {
            return (
                "False",
                reason,
                format!("Some extensions are not {what}: map[{}]", words(group)),
            );
        }
    }
    if !progressing.is_empty() {
        return (
            "False",
            "SomeExtensionsProgressing",
            format!("Some extensions are progressing: map[{}]", words(&progressing)),
        );
    }
    (
        "True",
        "AllExtensionsReady",
        "All extensions installed into the seed cluster are ready and healthy.".into(),
    )
}

fn judge_buckets(buckets: &[&BackupBucket]) -> Finding {
    if buckets.is_empty() {
        return ("Unknown", "BackupBucketsGone", "Backup buckets are gone.".into());
    }
    let errors: Vec<String> = buckets
        .iter()
        .filter_map(|bucket| {
            bucket
                .status
                .last_error
                .as_ref()
                .map(|error| format!("Name: {}, Error: {}", bucket.name_any(), error.description))
        })
        .collect();
    if errors.is_empty() {
        ("True", "BackupBucketsAvailable", "Backup Buckets are available.".into())
    } else {
        (
            "False",
            "BackupBucketsError",
            format!("The following BackupBuckets have issues:\n* {}", errors.join("\n* ")),
        )
    }
}

/// The status of a condition that was found to be `found`: what was true is on its way to anything else for as long as the threshold says.
fn status<'a>(old: &Condition, found: &'a str, threshold: SignedDuration, now: Timestamp) -> &'a str {
    let since = old.last_transition_time.as_ref().map_or(now, |time| time.0);
    let on_its_way = match old.status.as_str() {
        _ if found == "True" || threshold.is_zero() => false,
        "True" => true,
        "Progressing" => now.duration_since(since) <= threshold,
        _ => false,
    };
    if on_its_way { "Progressing" } else { found }
}

async fn tell(
    manager: &Manager,
    seed: &Seed,
    kind: &str,
    settings: &SeedCheck,
    finding: Finding,
) -> Result<Action, ReconcileError> {
    let (found, reason, message) = finding;
    let now = manager.config.clock.time();
    let threshold = SignedDuration::from_nanos(settings.threshold(kind).as_nanos());
    let api: Api<Seed> = manager.all();
    let written = apply::patch_status(&api, seed, |seed| {
        let old = conditions::get_or_init(&seed.status.conditions, kind, &now);
        let status = status(&old, found, threshold, now.0);
        let new = conditions::with(&old, status, reason, &message, &now);
        seed.status.conditions = conditions::merge(std::mem::take(&mut seed.status.conditions), [new]);
    });
    or_gone(written.await)?;
    Ok(Action::RequeueAfter(settings.sync_period.to_std()))
}

/// [GCM-21].
pub(super) async fn extensions(manager: &Manager) {
    let (seeds, installations) = (manager.informer::<Seed>(), manager.informer::<ControllerInstallation>());
    let queue: Queue<String> = Queue::new();
    seeds.feed_if(&queue, is_new, |seed| [seed.name_any()]);
    installations.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => RELEVANT.iter().any(|kind| {
                let of = |own: &ControllerInstallation| {
                    let condition = conditions::get(&own.status.conditions, kind);
                    condition.map(|own| (own.status.clone(), own.message.clone()))
                };
                of(old) != of(new)
            }),
            _ => true,
        },
        |installation| installation.spec.seed_ref.as_ref().and_then(|own| own.name.clone()),
    );
    tokio::join!(seeds.synced(), installations.synced());
    let own = (manager.clone(), installations);
    let syncs = manager.config.controllers.seed_extensions_check.concurrent_syncs;
    let controller = manager.controller("seed-extensions-check", syncs, queue);
    let reconcile = move |name: String| {
        let (manager, installations) = own.clone();
        async move {
            let Some(seed) = manager.all::<Seed>().read_opt(&name).await? else {
                return Ok(Action::Done);
            };
            let all = installations.list();
            let own = all.iter().map(AsRef::as_ref);
            let own = own.filter(|own| own.spec.seed_ref.as_ref().and_then(|own| own.name.as_ref()) == Some(&name));
            let finding = judge_extensions(&own.collect::<Vec<_>>());
            let settings = &manager.config.controllers.seed_extensions_check;
            tell(&manager, &seed, EXTENSIONS_READY, settings, finding).await
        }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

/// [GCM-22].
pub(super) async fn backup_buckets(manager: &Manager) {
    let (seeds, buckets) = (manager.informer::<Seed>(), manager.informer::<BackupBucket>());
    let queue: Queue<String> = Queue::new();
    seeds.feed_if(&queue, is_new, |seed| [seed.name_any()]);
    buckets.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                let of = |own: &BackupBucket| own.status.last_error.as_ref().map(|own| own.description.clone());
                of(old) != of(new)
            }
            _ => true,
        },
        |bucket| bucket.spec.seed_name.clone(),
    );
    tokio::join!(seeds.synced(), buckets.synced());
    let own = (manager.clone(), buckets);
    let syncs = manager.config.controllers.seed_backup_buckets_check.concurrent_syncs;
    let controller = manager.controller("seed-backupbuckets-check", syncs, queue);
    let reconcile = move |name: String| {
        let (manager, buckets) = own.clone();
        async move {
            let settings = &manager.config.controllers.seed_backup_buckets_check;
            let Some(seed) = manager.all::<Seed>().read_opt(&name).await? else {
                return Ok(Action::Done);
            };
            if seed.spec.backup.is_none() {
                return Ok(Action::RequeueAfter(settings.sync_period.to_std()));
            }
            let all = buckets.list();
            let own = all.iter().map(AsRef::as_ref);
            let own = own.filter(|own| own.spec.seed_name.as_ref() == Some(&name));
            let finding = judge_buckets(&own.collect::<Vec<_>>());
            tell(&manager, &seed, BACKUP_BUCKETS_READY, settings, finding).await
        }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn is_new(change: &Change<Seed>) -> bool {
    matches!(change, Change::Applied { old: None, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_apis::core::v1beta1::LastError;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn installation(statuses: &[(&str, &str)]) -> ControllerInstallation {
        let mut installation = ControllerInstallation::default();
        installation.metadata.name = Some("x".into());
        installation.status.conditions = statuses
            .iter()
            .map(|(kind, status)| Condition {
                r#type: (*kind).into(),
                status: (*status).into(),
                message: "m".into(),
                ..Condition::default()
            })
            .collect();
        installation
    }

    #[test]
    fn gcm_21_the_first_group_decides() {
        let well = [
            ("Valid", "True"),
            ("Installed", "True"),
            ("Healthy", "True"),
            ("Progressing", "False"),
        ];
        assert_eq!(judge_extensions(&[&installation(&well)]).1, "AllExtensionsReady");
        assert_eq!(
            judge_extensions(&[&installation(&[])]),
            (
                "False",
                "NotAllExtensionsInstalled",
                "Some extensions are not installed: map[x:extension was not yet installed]".into()
            )
        );
        let mut ill = well;
        ill[2].1 = "False";
        ill[3].1 = "True";
        assert_eq!(judge_extensions(&[&installation(&ill)]).1, "NotAllExtensionsHealthy");
        assert_eq!(
            judge_extensions(&[&installation(&well[..3])]).1,
            "NotAllExtensionsHealthy"
        );
        assert_eq!(judge_extensions(&[]).1, "AllExtensionsReady");
    }

    #[test]
    fn gcm_22_buckets() {
        let mut bucket = BackupBucket::default();
        assert_eq!(judge_buckets(&[]).1, "BackupBucketsGone");
        assert_eq!(judge_buckets(&[&bucket]).1, "BackupBucketsAvailable");
        bucket.status.last_error = Some(LastError::default());
        bucket.metadata.name = Some("a".into());
        let expected = "The following BackupBuckets have issues:\n* Name: a, Error: ";
        assert_eq!(
            judge_buckets(&[&bucket]),
            ("False", "BackupBucketsError", expected.into())
        );
    }

    #[test]
    fn gcm_21_what_was_true_is_on_its_way_for_a_time() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        for (old, threshold, seconds_ago, found, expected) in [
            ("True", 0, 0, "False", "False"),
            ("True", 60, 0, "False", "Progressing"),
            ("True", 60, 0, "True", "True"),
            ("Progressing", 60, 60, "False", "Progressing"),
            ("Progressing", 60, 61, "False", "False"),
            ("Progressing", 0, 1, "Unknown", "Unknown"),
            ("False", 60, 1, "False", "False"),
            ("Unknown", 60, 1, "False", "False"),
        ] {
            let since = now.saturating_sub(SignedDuration::from_secs(seconds_ago)).unwrap();
            let old = Condition {
                status: old.into(),
                last_transition_time: Some(Time(since)),
                ..Condition::default()
            };
            let found = status(&old, found, SignedDuration::from_secs(threshold), now);
            assert_eq!(found, expected, "{old:?} {threshold}");
        }
    }
}
