//! Conditions of a seed that tell of others: its extensions `[GCM-21]` and its backup buckets `[GCM-22]`.

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{BackupBucket, ControllerInstallation, Seed};
use gardener_controller::{Informer, apply, conditions};
use kube::{Api, ResourceExt};

use crate::{Config, ReconcileError};

const EXTENSIONS_READY: &str = "ExtensionsReady";
const BACKUP_BUCKETS_READY: &str = "BackupBucketsReady";

/// Status, reason and message of a condition.
type Finding = (&'static str, &'static str, String);

/// What the installations of a seed say.
fn judge_extensions(installations: &[&ControllerInstallation]) -> Finding {
    let (mut invalid, mut missing, mut unhealthy, mut progressing) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for installation in installations {
        let name = installation.spec.registration_ref.name.clone().unwrap_or_default();
        let own = &installation.status.conditions;
        if own.is_empty() {
            missing.insert(name, "extension was not yet installed".to_owned());
            continue;
        }
        let required = ["Valid", "Installed", "Healthy", "Progressing"];
        if !required.iter().all(|kind| conditions::get(own, kind).is_some()) {
            unhealthy.insert(
                name,
                "not all required conditions found in ControllerInstallation".to_owned(),
            );
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
            format!("The following BackupBuckets have issues: {}", errors.join(", ")),
        )
    }
}

async fn tell(config: &Config, seed: &Seed, kind: &str, finding: Finding) -> Result<(), ReconcileError> {
    let (status, reason, message) = finding;
    let now = config.clock.time();
    let api: Api<Seed> = Api::all(config.garden.clone());
    apply::patch_status(&api, seed, |seed| {
        let old = conditions::get_or_init(&seed.status.conditions, kind, &now);
        let new = conditions::with(&old, status, reason, &message, &now);
        seed.status.conditions = conditions::merge(std::mem::take(&mut seed.status.conditions), [new]);
    })
    .await?;
    Ok(())
}

async fn seed(config: &Config, name: &str) -> Result<Option<Seed>, ReconcileError> {
    let api: Api<Seed> = Api::all(config.garden.clone());
    Ok(api.get_opt(name).await?)
}

pub(super) async fn extensions(
    config: &Config,
    installations: &Informer<ControllerInstallation>,
    name: &str,
) -> Result<(), ReconcileError> {
    let Some(seed) = seed(config, name).await? else {
        return Ok(());
    };
    let all = installations.list();
    let own: Vec<&ControllerInstallation> = all
        .iter()
        .map(AsRef::as_ref)
        .filter(|own| own.spec.seed_ref.as_ref().and_then(|own| own.name.as_deref()) == Some(name))
        .collect();
    tell(config, &seed, EXTENSIONS_READY, judge_extensions(&own)).await
}

pub(super) async fn backup_buckets(
    config: &Config,
    buckets: &Informer<BackupBucket>,
    name: &str,
) -> Result<(), ReconcileError> {
    let Some(seed) = seed(config, name).await?.filter(|seed| seed.spec.backup.is_some()) else {
        return Ok(());
    };
    let all = buckets.list();
    let own: Vec<&BackupBucket> = all
        .iter()
        .map(AsRef::as_ref)
        .filter(|own| own.spec.seed_name.as_deref() == Some(name))
        .collect();
    tell(config, &seed, BACKUP_BUCKETS_READY, judge_buckets(&own)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_apis::core::v1beta1::{Condition, LastError};

    fn installation(statuses: &[(&str, &str)]) -> ControllerInstallation {
        let mut installation = ControllerInstallation::default();
        installation.spec.registration_ref.name = Some("x".into());
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
        assert_eq!(judge_buckets(&[&bucket]).1, "BackupBucketsError");
    }
}
