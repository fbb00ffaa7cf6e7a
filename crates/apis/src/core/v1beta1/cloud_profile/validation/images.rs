//! Rules for machine images, [VAL-CP7] – [VAL-CP9].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::*;
use crate::validation::shown;

/// Checks the machine images of a profile that stands for itself.
pub(super) fn whole_profiles_images(
    images: &[MachineImage],
    defined: &Capabilities,
    rules: ProfileRules,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if images.is_empty() {
        errors.push(Error::required(path, "must provide at least one machine image"));
    }
    errors.extend(validate_machine_images(images, defined, false, path));
    for (i, image) in images.iter().enumerate() {
        let at = path.index(i);
        if image.update_strategy.is_none() {
            errors.push(Error::required(
                &at.child("updateStrategy"),
                "must provide an update strategy",
            ));
        }
        errors.extend(validate_image_details(image, defined, rules, &at));
    }
    errors
}

/// Checks what a list of machine images says. `partial`: it may name images without versions.
pub fn validate_machine_images(
    images: &[MachineImage],
    defined: &Capabilities,
    partial: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let bad = images.iter().find_map(|image| {
        let mut versions = image.versions.iter().map(|own| &own.version);
        versions.find_map(|version| Some((&image.name, version, versions::read(version).err()?)))
    });
    if let Some((name, version, why)) = bad {
        errors.push(Error::invalid(
            path,
            Value::Null,
            format!(
                "failed to determine latest machine image version for image '{name}': error while parsing expirable version '{version}': {why}"
            ),
        ));
    }
    let mut keys = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (i, image) in images.iter().enumerate() {
        let at = path.index(i);
        if !seen.insert(&image.name) {
            errors.push(Error::duplicate(&at, image.name.as_str()));
        }
        errors.extend(machine_image(image, defined, partial, &mut keys, &at));
    }
    errors
}

/// Checks an image that a namespaced profile adds.
pub fn validate_additional_image(image: &MachineImage, defined: &Capabilities, path: &Path) -> ErrorList {
    machine_image(image, defined, false, &mut BTreeSet::new(), path)
}

/// Checks a version that a namespaced profile adds to an image of its parent.
pub fn validate_additional_image_version(
    image: &MachineImage,
    version: &MachineImageVersion,
    defined: &Capabilities,
    path: &Path,
) -> ErrorList {
    image_version(image, version, defined, &mut BTreeSet::new(), path)
}

fn machine_image(
    image: &MachineImage,
    defined: &Capabilities,
    partial: bool,
    keys: &mut BTreeSet<String>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = &image.name;
    if name.is_empty() {
        errors.push(Error::required(
            &path.child("name"),
            "machine image name must not be empty",
        ));
    } else {
        errors.extend(unprefixed_name("machine image name", name, &path.child("name")));
    }
    if image.versions.is_empty() && !partial {
        errors.push(Error::required(
            &path.child("versions"),
            format!("must provide at least one version for the machine image '{name}'"),
        ));
    }
    if let Some(strategy) = &image.update_strategy
        && !matches!(strategy.as_str(), "patch" | "minor" | "major")
    {
        errors.push(Error::not_supported(
            &path.child("updateStrategy"),
            strategy.as_str(),
            &["major", "minor", "patch"],
        ));
    }
    for (i, version) in image.versions.iter().enumerate() {
        let at = path.child("versions").index(i);
        errors.extend(image_version(image, version, defined, keys, &at));
    }
    errors
}

fn image_version(
    image: &MachineImage,
    version: &MachineImageVersion,
    defined: &Capabilities,
    keys: &mut BTreeSet<String>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let key = format!("{}-{}", image.name, version.version);
    if keys.contains(&key) {
        errors.push(Error::duplicate(path, key.as_str()));
    }
    keys.insert(key);
    let at = path.child("version");
    if version.version.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    if versions::parse(&version.version).is_none() {
        errors.push(Error::invalid(
            &at,
            version.version.as_str(),
            "could not parse version. Use a semantic version. In case there is no semantic version for this image use the extensibility provider (define mapping in the CloudProfile) to map to the actual non semantic version",
        ));
    }
    let least = version.in_place_updates.as_ref();
    if let Some(least) = least.and_then(|updates| updates.min_version_for_update.as_ref())
        && versions::parse(least).is_none()
    {
        errors.push(Error::invalid(
            &path.child("minVersionForInPlaceUpdate"),
            least.as_str(),
            "could not parse version. Use a semantic version.",
        ));
    }
    errors.extend(flavors(version, defined, path));
    if let Some(constraint) = &version.kubelet_version_constraint
        && let Err(why) = versions::Constraint::parse(constraint)
    {
        errors.push(Error::literal(
            &path.child("kubeletVersionConstraint"),
            go_json(constraint),
            format!("cannot parse the kubeletVersionConstraint: {why}"),
        ));
    }
    errors
}

/// The capabilities that the flavors of a version name, [VAL-CP16].
fn flavors(version: &MachineImageVersion, defined: &Capabilities, path: &Path) -> ErrorList {
    let mut errors = architectures(version, defined, path);
    if !defined.is_empty() {
        for (i, flavor) in version.capability_flavors.iter().enumerate() {
            let at = path.child("capabilityFlavors").index(i);
            errors.extend(capabilities::known(&flavor.capabilities, defined, &at));
        }
    }
    errors
}

/// The architectures of a version and those of its flavors, [VER-30].
fn architectures(version: &MachineImageVersion, defined: &Capabilities, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut supported: Vec<String> = ARCHITECTURES.map(String::from).to_vec();
    if !defined.is_empty() {
        supported = defined.get(ARCHITECTURE).cloned().unwrap_or_default();
        let flavors = path.child("capabilityFlavors");
        if supported.len() > 1 && version.capability_flavors.is_empty() {
            errors.push(Error::required(
                &flavors,
                "must provide at least one image flavor when multiple architectures are defined in spec.machineCapabilities",
            ));
            return errors;
        }
        for (i, flavor) in version.capability_flavors.iter().enumerate() {
            let at = flavors.index(i).child(ARCHITECTURE);
            let own = flavor.capabilities.get(ARCHITECTURE).map_or(&[][..], Vec::as_slice);
            if own.is_empty() && supported.len() > 1 {
                errors.push(Error::required(
                    &at,
                    "must specify one architecture explicitly as multiple architectures are defined in spec.machineCapabilities",
                ));
            } else if own.len() > 1 {
                errors.push(Error::invalid(
                    &at,
                    shown(&own),
                    "must not define more than one architecture within an image flavor",
                ));
            }
        }
        let mut of_flavors = architectures_of_flavors(&version.capability_flavors);
        if of_flavors.is_empty() && supported.len() == 1 {
            of_flavors.clone_from(&supported);
        }
        if version.architectures.iter().any(|own| !of_flavors.contains(own)) {
            errors.push(Error::invalid(
                &path.child("architectures"),
                shown(&version.architectures),
                format!(
                    "architecture field values set ({}) conflict with the capability architectures ({})",
                    version.architectures.join(","),
                    of_flavors.join(",")
                ),
            ));
        }
    }
    for (i, own) in version.architectures.iter().enumerate() {
        if !supported.contains(own) {
            let at = path.child("architectures").index(i);
            errors.push(Error::not_supported(&at, own.as_str(), &supported));
        }
    }
    errors
}

/// Checks what the versions of a whole image have to say beyond what additions to one have.
pub fn validate_image_details(
    image: &MachineImage,
    defined: &Capabilities,
    rules: ProfileRules,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let all = image.expirable_versions();
    let supported = Supported::of(&all);
    for ((i, version), own) in image.versions.iter().enumerate().zip(&all) {
        let at = path.child("versions").index(i);
        errors.extend(container_runtimes(&version.cri, &at.child("cri")));
        errors.extend(supported.once(own, rules.now, &at));
        errors.extend(expirable_version(own, rules, &at));
        if defined.is_empty() {
            if version.architectures.is_empty() {
                errors.push(Error::required(
                    &at.child("architectures"),
                    "must provide at least one architecture",
                ));
            }
            if !version.capability_flavors.is_empty() {
                errors.push(Error::forbidden(&at.child("capabilityFlavors"), UNDEFINED));
            }
        }
    }
    errors
}

/// [VAL-CP8].
fn container_runtimes(list: &[CRI], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if list.is_empty() {
        errors.push(Error::required(
            path,
            "must provide at least one supported container runtime",
        ));
    }
    let mut seen = BTreeSet::new();
    for (i, cri) in list.iter().enumerate() {
        let at = path.index(i);
        if !seen.insert(&cri.name) {
            errors.push(Error::duplicate(&at, cri.name.as_str()));
        }
        if cri.name != "containerd" {
            errors.push(Error::not_supported(
                &at.child("name"),
                cri.name.as_str(),
                &["containerd"],
            ));
        }
        let runtimes = &cri.container_runtimes;
        let mut types = BTreeSet::new();
        for (j, runtime) in runtimes.iter().enumerate() {
            let at = at.child("containerRuntimes").index(j).child("type");
            errors.extend(unprefixed_name("container runtime type", &runtime.r#type, &at));
            if !types.insert(&runtime.r#type) {
                errors.push(Error::duplicate(&at, runtime.r#type.as_str()));
            }
        }
    }
    errors
}
