//! Validation of backup buckets, [VAL-BB1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::*;
use crate::validation::{
    Credentials, credentials_ref, go_struct, immutable, immutable_as, object_meta, object_meta_update,
};

/// Checks a backup bucket that is to be created or stored again.
pub fn validate_backup_bucket(bucket: &BackupBucket) -> ErrorList {
    let mut errors = object_meta(&bucket.metadata, false, gardener_apimachinery::names::dns_label);
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
    errors.extend(seed_or_shoot(
        spec.seed_name.as_deref(),
        spec.shoot_ref.as_ref(),
        None,
        &path,
    ));
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

/// The one owner of a bucket or entry: a seed or a self-hosted shoot, which is in the entry's own namespace.
pub(in crate::core::v1beta1) fn seed_or_shoot(
    seed: Option<&str>,
    shoot: Option<&ObjectReference>,
    own: Option<&str>,
    path: &Path,
) -> ErrorList {
    let at = path.child("seedName");
    let shoot = match (seed, shoot) {
        (None, Some(shoot)) => shoot,
        (None, None) => {
            return vec![Error::invalid(
                &at,
                Value::Null,
                "either .spec.seedName or .spec.shootRef must be set",
            )];
        }
        (Some(seed), Some(_)) => {
            let why = "not both .spec.seedName and .spec.shootRef can be set at the same time";
            return vec![Error::invalid(&at, seed, why)];
        }
        (Some(""), None) => return vec![Error::invalid(&at, "", "seed must not be empty")],
        (Some(_), None) => return ErrorList::new(),
    };
    let mut errors = ErrorList::new();
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
    if shoot.name.as_deref().unwrap_or_default().is_empty() {
        errors.push(Error::invalid(&at.child("name"), "", "name must not be empty"));
    }
    let namespace = shoot.namespace.as_deref().unwrap_or_default();
    let at = at.child("namespace");
    if namespace.is_empty() {
        errors.push(Error::invalid(&at, "", "namespace must not be empty"));
    } else if own.is_some_and(|own| own != namespace) {
        errors.push(Error::forbidden(&at, "cannot reference a Shoot from another namespace"));
    }
    errors
}

/// Checks a change of a backup bucket.
pub fn validate_backup_bucket_update(new: &BackupBucket, old: &BackupBucket) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    errors.extend(immutable_as(
        &new.spec.provider,
        &old.spec.provider,
        &path.child("provider"),
        |provider| {
            go_struct(&[
                ("Type", provider.r#type.as_str().into()),
                ("Region", provider.region.as_str().into()),
            ])
        },
    ));
    errors.extend(immutable(
        &new.spec.seed_name,
        &old.spec.seed_name,
        &path.child("seedName"),
    ));
    errors.extend(validate_backup_bucket(new));
    errors
}
