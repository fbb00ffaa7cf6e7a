//! Validation of backup buckets, [VAL-BB1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::json;

use super::*;
use crate::validation::{Credentials, IMMUTABLE, credentials_ref, immutable, object_meta, object_meta_update};

/// Checks a backup bucket that is to be created or stored again.
pub fn validate_backup_bucket(bucket: &BackupBucket) -> ErrorList {
    let mut errors = object_meta(&bucket.metadata, false);
    let spec = &bucket.spec;
    let path = Path::new("spec");
    if spec.provider.r#type.is_empty() {
        errors.push(Error::invalid(
            &path.child("provider.type"),
            "",
            "type name must not be empty",
        ));
    }
    if spec.provider.region.is_empty() {
        errors.push(Error::invalid(
            &path.child("provider.region"),
            "",
            "region must not be empty",
        ));
    }
    errors.extend(seed_or_shoot(spec.seed_name.as_deref(), spec.shoot_ref.as_ref(), &path));
    match &spec.credentials_ref {
        None => errors.push(Error::required(
            &path.child("credentialsRef"),
            "must be set and refer a Secret or WorkloadIdentity",
        )),
        Some(reference) => errors.extend(credentials_ref(
            reference,
            Credentials::AnySecretOrWorkloadIdentity,
            true,
            &path.child("credentialsRef"),
        )),
    }
    errors
}

/// The one owner of a bucket or entry: a seed or a self-hosted shoot.
pub(in crate::core::v1beta1) fn seed_or_shoot(
    seed: Option<&str>,
    shoot: Option<&ObjectReference>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("seedName");
    let seed = seed.filter(|seed| !seed.is_empty());
    match (seed, shoot) {
        (None, None) => {
            errors.push(Error::invalid(
                &at,
                "",
                "either .spec.seedName or .spec.shootRef must be set",
            ));
        }
        (Some(seed), Some(_)) => {
            errors.push(Error::invalid(
                &at,
                seed,
                "not both .spec.seedName and .spec.shootRef can be set",
            ));
        }
        _ => {}
    }
    if let Some(shoot) = shoot {
        let at = path.child("shootRef");
        if shoot.api_version.as_deref() != Some("core.gardener.cloud/v1beta1") {
            errors.push(Error::forbidden(
                &at.child("apiVersion"),
                "must be core.gardener.cloud/v1beta1",
            ));
        }
        if shoot.kind.as_deref() != Some("Shoot") {
            errors.push(Error::forbidden(&at.child("kind"), "must be Shoot"));
        }
    }
    errors
}

/// Checks a change of a backup bucket.
pub fn validate_backup_bucket_update(new: &BackupBucket, old: &BackupBucket) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    let (provider, earlier) = (&new.spec.provider, &old.spec.provider);
    if provider != earlier {
        let value = json!({"Type": provider.r#type, "Region": provider.region});
        errors.push(Error::invalid(&path.child("provider"), value, IMMUTABLE));
    }
    errors.extend(immutable(
        &new.spec.seed_name,
        &old.spec.seed_name,
        &path.child("seedName"),
    ));
    errors.extend(validate_backup_bucket(new));
    errors
}
