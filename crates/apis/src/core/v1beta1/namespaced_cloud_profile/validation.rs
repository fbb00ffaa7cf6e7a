//! Validation of namespaced cloud profiles, [VAL-NC1] – [VAL-NC3].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::core::v1beta1::cloud_profile::{
    limits_update, validate_limits, validate_machine_images, validate_machine_types, validate_volume_types,
};
use crate::validation::{ca_bundle, immutable, object_meta, object_meta_update};

/// Checks a namespaced cloud profile that is to be created or stored again.
pub fn validate_namespaced_cloud_profile(profile: &NamespacedCloudProfile) -> ErrorList {
    let mut errors = object_meta(&profile.metadata, true, gardener_apimachinery::names::dns_subdomain);
    let spec = &profile.spec;
    let path = Path::new("spec");
    if spec.parent.kind != "CloudProfile" {
        errors.push(Error::not_supported(
            &path.child("parent.kind"),
            spec.parent.kind.as_str(),
            &["CloudProfile"],
        ));
    }
    if spec.parent.name.is_empty() {
        errors.push(Error::required(
            &path.child("parent.name"),
            "must provide a parent name",
        ));
    }
    if let Some(kubernetes) = &spec.kubernetes {
        for (i, version) in kubernetes.versions.iter().enumerate() {
            let at = path.child("kubernetes.versions").index(i);
            if kubernetes
                .versions
                .iter()
                .take(i)
                .any(|earlier| earlier.version == version.version)
            {
                errors.push(Error::duplicate(&at.child("version"), version.version.as_str()));
            }
            if version.classification.is_some() {
                errors.push(Error::forbidden(
                    &at.child("classification"),
                    "must not provide a classification to a Kubernetes version in NamespacedCloudProfile",
                ));
            }
            if semver::Version::parse(&version.version).is_err() {
                errors.push(Error::invalid(
                    &at,
                    version.version.as_str(),
                    "all Kubernetes versions must match the regex ^([0-9]+\\.){2}[0-9]+$",
                ));
            }
        }
    }
    errors.extend(validate_machine_images(
        &spec.machine_images,
        false,
        true,
        &path.child("machineImages"),
    ));
    errors.extend(validate_machine_types(
        &spec.machine_types,
        false,
        &path.child("machineTypes"),
    ));
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
    if let Some(bundle) = &spec.ca_bundle {
        errors.extend(ca_bundle(bundle, &path.child("caBundle")));
    }
    errors.extend(validate_limits(spec.limits.as_ref(), &path.child("limits")));
    errors
}

/// Checks a change of a namespaced cloud profile.
pub fn validate_namespaced_cloud_profile_update(
    new: &NamespacedCloudProfile,
    old: &NamespacedCloudProfile,
) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(immutable(&new.spec.parent, &old.spec.parent, &Path::new("spec.parent")));
    errors.extend(limits_update(new.spec.limits.as_ref(), old.spec.limits.as_ref()));
    errors.extend(validate_namespaced_cloud_profile(new));
    errors
}
