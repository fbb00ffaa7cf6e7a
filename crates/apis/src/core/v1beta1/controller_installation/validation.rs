//! Validation of controller installations, [VAL-CI1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use k8s_openapi::api::core::v1::ObjectReference;

use super::*;
use crate::validation::{
    immutable, immutable_as, object_meta, object_meta_update, reference_in_order, requested_changes,
};

fn name(reference: &ObjectReference) -> &str {
    reference.name.as_deref().unwrap_or_default()
}

/// Checks a controller installation that is to be created or stored again.
pub fn validate_controller_installation(installation: &ControllerInstallation) -> ErrorList {
    let mut errors = object_meta(&installation.metadata, false, gardener_apimachinery::names::dns_label);
    let spec = &installation.spec;
    let path = Path::new("spec");
    if name(&spec.registration_ref).is_empty() {
        errors.push(Error::required(
            &path.child("registrationRef.name"),
            "field is required",
        ));
    }
    if spec.seed_ref.is_none() && spec.shoot_ref.is_none() {
        errors.push(Error::forbidden(
            &path.child("seedRef"),
            "either seedRef or shootRef must be set",
        ));
    }
    if spec
        .seed_ref
        .as_ref()
        .is_some_and(|reference| name(reference).is_empty())
    {
        errors.push(Error::required(&path.child("seedRef.name"), "field is required"));
    }
    if let Some(shoot) = &spec.shoot_ref {
        if name(shoot).is_empty() {
            errors.push(Error::required(&path.child("shootRef.name"), "field is required"));
        }
        if shoot.namespace.as_deref().unwrap_or_default().is_empty() {
            errors.push(Error::required(&path.child("shootRef.namespace"), "field is required"));
        }
    }
    errors
}

/// Checks a change of a controller installation.
pub fn validate_controller_installation_update(
    new: &ControllerInstallation,
    old: &ControllerInstallation,
) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    if new.metadata.deletion_timestamp.is_some() && new.spec != old.spec {
        let why = requested_changes("controller installation", &old.spec, &new.spec);
        errors.push(Error::forbidden(&path, why));
        errors.extend(validate_controller_installation(new));
        return errors;
    }
    errors.extend(immutable(
        &name(&new.spec.registration_ref),
        &name(&old.spec.registration_ref),
        &path.child("registrationRef.name"),
    ));
    // a seed that is a self-hosted shoot sees the shoot's installations as long as it needs them
    if let (Some(seed), Some(before)) = (&new.spec.seed_ref, &old.spec.seed_ref) {
        errors.extend(immutable(&name(seed), &name(before), &path.child("seedRef.name")));
    }
    let at = path.child("shootRef");
    match (&new.spec.shoot_ref, &old.spec.shoot_ref) {
        (Some(shoot), Some(before)) => {
            errors.extend(immutable(&name(shoot), &name(before), &at.child("name")));
            let namespace = |own: &ObjectReference| own.namespace.clone().unwrap_or_default();
            errors.extend(immutable(&namespace(shoot), &namespace(before), &at.child("namespace")));
        }
        (shoot, before) => errors.extend(immutable_as(shoot, before, &at, |reference| {
            reference.as_ref().map_or_else(|| "null".to_owned(), reference_in_order)
        })),
    }
    errors.extend(validate_controller_installation(new));
    errors
}
