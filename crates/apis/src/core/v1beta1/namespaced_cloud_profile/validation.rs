//! Validation of namespaced cloud profiles, [VAL-NC1] – [VAL-NC3].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::core::v1beta1::cloud_profile::{
    Capabilities, ProfileRules, validate_kubernetes_versions, validate_limits, validate_machine_images,
    validate_machine_types, validate_volume_types,
};
use crate::validation::{IMMUTABLE, ca_bundle, go_json, go_members, object_meta, object_meta_update};

/// Checks a namespaced cloud profile that is to be created or stored again.
pub fn validate_namespaced_cloud_profile(profile: &NamespacedCloudProfile, rules: ProfileRules) -> ErrorList {
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
            if version.classification.is_some() {
                errors.push(Error::forbidden(
                    &path.child("kubernetes.versions").index(i).child("classification"),
                    "must not provide a classification to a Kubernetes version in NamespacedCloudProfile",
                ));
            }
        }
        errors.extend(validate_kubernetes_versions(
            &kubernetes.versions,
            rules,
            &path.child("kubernetes"),
        ));
    }
    // what the parent defines is looked at when the two are merged
    let defined = Capabilities::new();
    errors.extend(validate_machine_images(
        &spec.machine_images,
        &defined,
        true,
        &path.child("machineImages"),
    ));
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
    errors.extend(validate_machine_types(
        &spec.machine_types,
        &defined,
        &path.child("machineTypes"),
    ));
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
    rules: ProfileRules,
) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let parent = &new.spec.parent;
    if *parent != old.spec.parent {
        let shown = go_members(&[("Kind", go_json(&parent.kind)), ("Name", go_json(&parent.name))]);
        errors.push(Error::literal(&Path::new("spec.parent"), shown, IMMUTABLE));
    }
    errors.extend(validate_limits(new.spec.limits.as_ref(), &Path::new("spec.limits")));
    errors.extend(validate_namespaced_cloud_profile(new, rules));
    errors
}
