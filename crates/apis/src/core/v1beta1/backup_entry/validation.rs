//! Validation of backup entries, [VAL-BE1], and their canonical labels, [GAPI-38].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::core::v1beta1::backup_bucket::seed_or_shoot;
use crate::validation::{object_meta, object_meta_update};

/// Checks a backup entry that is to be created or stored again.
pub fn validate_backup_entry(entry: &BackupEntry) -> ErrorList {
    let mut errors = object_meta(&entry.metadata, true, gardener_apimachinery::names::path_segment);
    let spec = &entry.spec;
    let path = Path::new("spec");
    if spec.bucket_name.is_empty() {
        errors.push(Error::invalid(
            &path.child("bucketName"),
            "",
            "bucketName must not be empty",
        ));
    }
    errors.extend(seed_or_shoot(
        spec.seed_name.as_deref(),
        spec.shoot_ref.as_ref(),
        Some(entry.metadata.namespace.as_deref().unwrap_or_default()),
        &path,
    ));
    errors
}

/// Checks a change of a backup entry.
pub fn validate_backup_entry_update(new: &BackupEntry, old: &BackupEntry) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_backup_entry(new));
    errors
}

/// The form in which a backup entry is stored, after validation.
pub fn canonicalize_backup_entry(entry: &mut BackupEntry) {
    let seeds = [entry.spec.seed_name.as_deref(), entry.status.seed_name.as_deref()];
    maintain_seed_labels(&mut entry.metadata, &seeds);
}
