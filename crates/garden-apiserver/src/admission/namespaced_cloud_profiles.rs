//! Namespaced cloud profiles say only what they may of their parent, make a whole profile with it, and keep what is used, [ADM-55], [ADM-57],
//! [VER-36].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::{Admission, Attributes};
use gardener_rules::cloud_profiles::{in_form_of, merged, uses_namespaced};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{errors_occurred, typed, typed_old};
use crate::features::Features;
use crate::lookup;

/// [ADM-57].
pub(super) struct NamespacedCloudProfileValidator {
    /// What is switched on.
    pub(super) features: Features,
}

#[async_trait]
impl Admission for NamespacedCloudProfileValidator {
    fn name(&self) -> &'static str {
        "NamespacedCloudProfileValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(profile) = typed::<NamespacedCloudProfile>(attributes) else {
            return Ok(());
        };
        let old = typed_old::<NamespacedCloudProfile>(attributes);
        if let Some(old) = &old
            && profile.spec == old.spec
            && (profile.metadata == old.metadata || profile.metadata.deletion_timestamp.is_some())
        {
            return Ok(());
        }
        let parent = lookup::get::<CloudProfile>(attributes.context.lister, "", &profile.spec.parent.name)
            .ok_or_else(|| ApiError::bad_request("parent CloudProfile could not be found"))?;
        // as the controller will make it of what is written here
        let in_parents_form = |profile: &NamespacedCloudProfile| NamespacedCloudProfile {
            spec: in_form_of(&parent.spec, &profile.spec),
            ..profile.clone()
        };
        let profile = in_parents_form(&profile);
        let old = old.as_deref().map(in_parents_form);
        let check = Check {
            profile: &profile,
            old: old.as_ref(),
            parent: &parent.spec,
            rules: self.features.profile_rules(attributes.context.now),
        };
        check.kubernetes().map_err(ApiError::unclassified)?;
        let errors = check.images();
        if !errors.is_empty() {
            return Err(ApiError::unclassified(field::aggregate(&errors)));
        }
        let whole = merged(&parent.spec, &profile.spec);
        let errors = validate_merged_cloud_profile(&whole, check.rules, &Path::new("status.cloudProfileSpec"));
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::unclassified(format!(
            "error while validating merged NamespacedCloudProfile: {}",
            field::listed(&errors)
        )))
    }
}

/// A profile beside its parent, and what it was before.
struct Check<'a> {
    profile: &'a NamespacedCloudProfile,
    old: Option<&'a NamespacedCloudProfile>,
    parent: &'a CloudProfileSpec,
    rules: ProfileRules,
}

fn image<'i>(images: &'i [MachineImage], name: &str) -> Option<&'i MachineImage> {
    images.iter().find(|image| image.name == name)
}

fn image_version<'i>(images: &'i [MachineImage], name: &str, version: &str) -> Option<&'i MachineImageVersion> {
    image(images, name)?.versions.iter().find(|own| own.version == version)
}

impl Check<'_> {
    /// Whether a date is over that was not there before. Creation drops such entries [GAPI-39].
    fn moves_back(&self, stage: Stage, date: Option<&Time>, before: Option<Option<&Time>>) -> bool {
        self.old.is_some() && stage == Stage::Expired && before != Some(date)
    }

    /// Kubernetes versions: only the end of those that the parent has.
    fn kubernetes(&self) -> Result<(), String> {
        for own in self.profile.spec.kubernetes.iter().flat_map(|own| &own.versions) {
            let version = &own.version;
            let is_there = |known: &ExpirableVersion| known.version == *version;
            if !self.parent.kubernetes.versions.iter().any(is_there) {
                return Err(format!(
                    "invalid kubernetes version specified: '{version}' does not exist in parent CloudProfile and thus cannot be overridden"
                ));
            }
            if own.expiration_date.is_none() {
                return Err(format!("specified version '{version}' does not set expiration date"));
            }
            let before = self
                .old
                .map(|old| old.status.cloud_profile_spec.kubernetes.versions.as_slice());
            let before = before.unwrap_or_default().iter().find(|known| is_there(known));
            let before = before.map(|known| known.expiration_date.as_ref());
            if self.moves_back(own.stage(self.rules.now), own.expiration_date.as_ref(), before) {
                return Err(format!("expiration date for version {version:?} is in the past"));
            }
        }
        Ok(())
    }

    /// Machine images: only the end of versions that the parent has; own ones as a whole.
    fn images(&self) -> ErrorList {
        let defined = self.parent.capabilities();
        let mut errors = ErrorList::new();
        for (i, own) in self.profile.spec.machine_images.iter().enumerate() {
            let path = Path::new("spec.machineImages").index(i);
            let of_parent = image(&self.parent.machine_images, &own.name);
            let before = self.old.and_then(|old| image(&old.spec.machine_images, &own.name));
            if of_parent.is_some() && before.is_some_and(|before| before.update_strategy != own.update_strategy) {
                errors.push(Error::forbidden(
                    &path.child("updateStrategy"),
                    format!(
                        "cannot update the machine image update strategy of {:?}, as this version has been added to the parent CloudProfile by now",
                        own.name
                    ),
                ));
            }
            if of_parent.is_none() {
                errors.extend(validate_additional_image(own, &defined, &path));
                errors.extend(validate_image_details(own, &defined, self.rules, &path));
                continue;
            }
            for (j, version) in own.versions.iter().enumerate() {
                let path = path.child("versions").index(j);
                match image_version(&self.parent.machine_images, &own.name, &version.version) {
                    Some(_) => errors.extend(self.overridden(&own.name, version, &path)),
                    None => errors.extend(validate_additional_image_version(own, version, &defined, &path)),
                }
            }
        }
        errors
    }

    /// A version that the parent has, too.
    fn overridden(&self, name: &str, version: &MachineImageVersion, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let date = path.child("expirationDate");
        let before = self
            .old
            .and_then(|old| image_version(&old.spec.machine_images, name, &version.version));
        match before {
            // it was the profile's own before the parent had it
            Some(before) => {
                let lasting = |version: &MachineImageVersion| MachineImageVersion {
                    expiration_date: None,
                    ..version.clone()
                };
                if lasting(before) != lasting(version) {
                    errors.push(Error::forbidden(
                        path,
                        format!(
                            "cannot update the machine image version spec (except for the expiration date) of \"{name}@{}\", as this version has been added to the parent CloudProfile by now",
                            version.version
                        ),
                    ));
                }
            }
            None => {
                errors.extend(only_the_end(version, path));
                if version.expiration_date.is_none() {
                    let why = format!("expiration date for version {:?} must be set", version.version);
                    errors.push(Error::invalid(&date, serde_json::Value::Null, why));
                }
            }
        }
        let status = self
            .old
            .map(|old| old.status.cloud_profile_spec.machine_images.as_slice());
        let merged = image_version(status.unwrap_or_default(), name, &version.version);
        let merged = merged.map(|known| known.expiration_date.as_ref());
        if self.moves_back(version.stage(self.rules.now), version.expiration_date.as_ref(), merged) {
            let shown = gardener_apis::validation::shown(&version.expiration_date);
            let why = format!("expiration date for version {:?} is in the past", version.version);
            errors.push(Error::invalid(&date, shown, why));
        }
        errors
    }
}

/// What must not be said of a version that the parent describes.
fn only_the_end(version: &MachineImageVersion, path: &Path) -> ErrorList {
    let set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let found = [
        (set(&version.classification), "classification", "a classification"),
        (!version.cri.is_empty(), "cri", "a cri"),
        (!version.architectures.is_empty(), "architectures", "an architecture"),
        (
            !version.capability_flavors.is_empty(),
            "capabilityFlavors",
            "capabilities",
        ),
        (
            set(&version.kubelet_version_constraint),
            "kubeletVersionConstraint",
            "a kubelet version constraint",
        ),
        (version.in_place_updates.is_some(), "inPlaceUpdates", "inPlaceUpdates"),
    ];
    let found = found.into_iter().filter(|(is_set, _, _)| *is_set);
    found
        .map(|(_, name, what)| {
            let why = format!("must not provide {what} to an extended machine image in NamespacedCloudProfile");
            Error::forbidden(&path.child(name), why)
        })
        .collect()
}

/// [ADM-55] of a namespaced profile: what shoots need of it stays, and limits hold for those that are there.
pub(super) fn keeps_what_is_used(
    attributes: &Attributes<'_>,
    new: &NamespacedCloudProfile,
    old: &NamespacedCloudProfile,
) -> Result<(), ApiError> {
    let versions = |profile: &NamespacedCloudProfile| -> Vec<String> {
        let own = profile.spec.kubernetes.iter().flat_map(|own| &own.versions);
        own.map(|version| version.version.clone()).collect()
    };
    let images = |profile: &NamespacedCloudProfile| -> Vec<(String, String)> {
        let versions = |image: &MachineImage| -> Vec<(String, String)> {
            let own = image.versions.iter();
            own.map(|version| (image.name.clone(), version.version.clone()))
                .collect()
        };
        profile.spec.machine_images.iter().flat_map(versions).collect()
    };
    let (kept_versions, kept_images) = (versions(new), images(new));
    let mut lost_versions = versions(old);
    lost_versions.retain(|version| !kept_versions.contains(version));
    let mut lost_images = images(old);
    lost_images.retain(|version| !kept_images.contains(version));
    let limits = (new.spec.limits != old.spec.limits)
        .then_some(new.spec.limits.as_ref())
        .flatten();
    if lost_versions.is_empty() && lost_images.is_empty() && limits.is_none() {
        return Ok(());
    }
    let (lister, now) = (attributes.context.lister, attributes.context.now);
    let parent = lookup::get::<CloudProfile>(lister, "", &new.spec.parent.name).ok_or_else(|| {
        ApiError::internal(format!(
            "could not get parent CloudProfile: cloudprofile.core.gardener.cloud {:?} not found",
            new.spec.parent.name
        ))
    })?;
    // what lives on in the parent is not lost
    lost_versions.retain(|version| {
        let mut known = parent.spec.kubernetes.versions.iter();
        known.any(|known| known.version == *version && known.stage(now) == Stage::Expired)
    });
    lost_images.retain(|(name, version)| {
        let known = image_version(&parent.spec.machine_images, name, version);
        known.is_none_or(|known| known.stage(now) == Stage::Expired)
    });
    let own = format!("{}/{}", attributes.namespace, attributes.name);
    let mut found = Vec::new();
    for shoot in lookup::list::<Shoot>(lister, Some(attributes.namespace)) {
        if shoot.in_deletion() || !uses_namespaced(&shoot, new) {
            continue;
        }
        let by = format!("shoot '{}/{}'", shoot.project_namespace(), shoot.own_name());
        let version = shoot.spec.kubernetes_version();
        if lost_versions.iter().any(|lost| lost == version) {
            found.push(format!(
                "unable to delete Kubernetes version {version:?} from NamespacedCloudProfile '{own}' - version with extended expiration date is still in use by {by}"
            ));
        }
        for worker in &shoot.spec.provider.workers {
            let Some(image) = &worker.machine.image else { continue };
            let used = (image.name.clone(), image.version.clone().unwrap_or_default());
            if lost_images.contains(&used) {
                found.push(format!(
                    "unable to delete Machine image version '{}/{}' from NamespacedCloudProfile '{own}' - version is still in use by {by} by worker {:?}",
                    used.0, used.1, worker.name
                ));
            }
        }
        found.extend(super::cloud_profiles::over_limit(&shoot, limits));
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(&errors_occurred(&found))),
    }
}
