//! Defaults and validation of managed seeds, [DEF-45], [VAL-MS1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::constants::operation;
use crate::validation::{immutable, object_meta, object_meta_update, operation_annotation};

const OPERATIONS: [&str; 2] = [operation::RECONCILE, "renew-kubeconfig"];
const BOOTSTRAPS: [&str; 3] = ["BootstrapToken", "None", "ServiceAccount"];

/// Fills in what the user left out.
pub fn default_managed_seed(seed: &mut ManagedSeed) {
    default_gardenlet_deployment(seed.spec.gardenlet.deployment.get_or_insert_default());
    let gardenlet = &mut seed.spec.gardenlet;
    gardenlet.bootstrap.get_or_insert_with(|| "BootstrapToken".into());
    gardenlet.merge_with_parent.get_or_insert(true);
    if let Some(config) = &mut gardenlet.config {
        default_gardenlet_config(config, true);
    }
}

/// Checks a managed seed that is to be created or stored again.
pub fn validate_managed_seed(seed: &ManagedSeed) -> ErrorList {
    let mut errors = object_meta(&seed.metadata, true);
    errors.extend(operation_annotation(&seed.metadata, None, &OPERATIONS));
    let path = Path::new("spec");
    match &seed.spec.shoot {
        None => errors.push(Error::required(&path.child("shoot"), "shoot is required")),
        Some(shoot) if shoot.name.is_empty() => {
            errors.push(Error::required(&path.child("shoot.name"), "shoot name is required"));
        }
        Some(_) => {}
    }
    errors.extend(validate_managed_seed_gardenlet(
        &seed.spec.gardenlet,
        &path.child("gardenlet"),
    ));
    errors
}

/// Checks the gardenlet section of a managed seed.
pub(in crate::seedmanagement::v1alpha1) fn validate_managed_seed_gardenlet(
    gardenlet: &GardenletConfig,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(deployment) = &gardenlet.deployment {
        errors.extend(validate_gardenlet_deployment(
            deployment.replica_count,
            deployment.revision_history_limit,
            deployment.image.as_ref(),
            &path.child("deployment"),
        ));
    }
    if let Some(config) = &gardenlet.config {
        errors.extend(validate_gardenlet_config(config, true, &path.child("config")));
        let kubeconfig = config
            .pointer("/gardenClientConnection/kubeconfig")
            .and_then(serde_json::Value::as_str)
            .is_some_and(|text| !text.is_empty());
        let bootstraps = !matches!(gardenlet.bootstrap.as_deref(), None | Some("None"));
        let at = path.child("config.gardenClientConnection.kubeconfig");
        if kubeconfig && bootstraps {
            errors.push(Error::forbidden(
                &at,
                "kubeconfig is forbidden if bootstrap is specified",
            ));
        } else if !kubeconfig && !bootstraps && gardenlet.merge_with_parent == Some(false) {
            errors.push(Error::required(
                &at,
                "kubeconfig is required if bootstrap is not specified and merging with the parent is disabled",
            ));
        }
    }
    if let Some(bootstrap) = &gardenlet.bootstrap
        && !BOOTSTRAPS.contains(&bootstrap.as_str())
    {
        errors.push(Error::not_supported(
            &path.child("bootstrap"),
            bootstrap.as_str(),
            &BOOTSTRAPS,
        ));
    }
    errors
}

/// Checks a change of a managed seed.
pub fn validate_managed_seed_update(new: &ManagedSeed, old: &ManagedSeed) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(
        operation_annotation(&new.metadata, Some(&old.metadata), &OPERATIONS)
            .into_iter()
            .filter(|error| error.detail.starts_with("must not overwrite")),
    );
    let path = Path::new("spec");
    errors.extend(immutable(&new.spec.shoot, &old.spec.shoot, &path.child("shoot")));
    let (now, before) = (&new.spec.gardenlet, &old.spec.gardenlet);
    errors.extend(immutable(
        &now.bootstrap,
        &before.bootstrap,
        &path.child("gardenlet.bootstrap"),
    ));
    errors.extend(immutable(
        &now.merge_with_parent,
        &before.merge_with_parent,
        &path.child("gardenlet.mergeWithParent"),
    ));
    errors.extend(validate_managed_seed(new));
    errors
}
