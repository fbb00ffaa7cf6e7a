//! Defaults and validation of managed seeds, [DEF-45], [VAL-MS1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::constants::operation;
use crate::validation::{
    go_pointer, go_struct, immutable, immutable_as, object_meta, object_meta_update, operation_annotation,
};

const OPERATIONS: [&str; 2] = [operation::RECONCILE, "renew-kubeconfig"];
const BOOTSTRAPS: [&str; 3] = ["ServiceAccount", "BootstrapToken", "None"];

/// Fills in what the user left out.
pub fn default_managed_seed(seed: &mut ManagedSeed) {
    default_gardenlet_deployment(seed.spec.gardenlet.deployment.get_or_insert_default());
    let gardenlet = &mut seed.spec.gardenlet;
    gardenlet.bootstrap.get_or_insert_with(|| "BootstrapToken".into());
    gardenlet.merge_with_parent.get_or_insert(true);
    default_gardenlet_config(&mut gardenlet.config, true);
}

/// Checks a managed seed that is to be created or stored again.
pub fn validate_managed_seed(seed: &ManagedSeed) -> ErrorList {
    let mut errors = object_meta(&seed.metadata, true, gardener_apimachinery::names::dns_label);
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
            deployment.service_account_name.as_deref(),
            deployment.image.as_ref(),
            (&deployment.pod_labels, &deployment.pod_annotations),
            &path.child("deployment"),
        ));
    }
    if let Some(config) = &gardenlet.config {
        let bootstrap = gardenlet.bootstrap.as_deref().unwrap_or("None");
        let merges = gardenlet.merge_with_parent == Some(true);
        errors.extend(validate_gardenlet_config(
            config,
            bootstrap,
            merges,
            &path.child("config"),
        ));
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
    errors.extend(validate_managed_seed_spec_update(
        &new.spec,
        &old.spec,
        &Path::new("spec"),
    ));
    errors.extend(validate_managed_seed(new));
    errors
}

/// Checks a change of a managed seed's status.
pub fn validate_managed_seed_status_update(new: &ManagedSeed) -> ErrorList {
    observed_generation(new.status.observed_generation)
}

/// Checks a change of a managed seed's spec, of its own or of a template's.
pub fn validate_managed_seed_spec_update(new: &ManagedSeedSpec, old: &ManagedSeedSpec, path: &Path) -> ErrorList {
    let shown = |shoot: &Shoot| go_struct(&[("Name", shoot.name.as_str().into())]);
    let at = path.child("shoot");
    let mut errors = immutable_as(&new.shoot, &old.shoot, &at, |own| go_pointer(own.as_ref(), shown));
    let (now, before) = (&new.gardenlet, &old.gardenlet);
    errors.extend(validate_gardenlet_config_update(
        now.config.as_ref(),
        before.config.as_ref(),
        &path.child("gardenlet.config"),
    ));
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
    errors
}
