//! Validation of cloud profiles, [VAL-CP1] – [VAL-CP18].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::validation::{
    ca_bundle, invalid_each, non_negative_quantity, object_meta, object_meta_update, repeats, seed_selector,
};
use crate::versions;

const CLASSIFICATIONS: [&str; 4] = ["deprecated", "expired", "preview", "supported"];
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Checks a cloud profile that is to be created or stored again.
pub fn validate_cloud_profile(profile: &CloudProfile) -> ErrorList {
    let mut errors = object_meta(&profile.metadata, false, gardener_apimachinery::names::dns_subdomain);
    errors.extend(validate_cloud_profile_spec(&profile.spec, &Path::new("spec")));
    errors
}

/// Checks the content of a cloud profile.
pub fn validate_cloud_profile_spec(spec: &CloudProfileSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.r#type.is_empty() {
        errors.push(Error::required(&path.child("type"), "must provide a provider type"));
    }
    errors.extend(capabilities(spec, path));
    errors.extend(kubernetes_versions(
        &spec.kubernetes,
        &path.child("kubernetes.versions"),
    ));
    errors.extend(validate_machine_images(
        &spec.machine_images,
        true,
        !spec.machine_capabilities.is_empty(),
        &path.child("machineImages"),
    ));
    if spec.machine_types.is_empty() {
        errors.push(Error::required(
            &path.child("machineTypes"),
            "must provide at least one machine type",
        ));
    }
    errors.extend(validate_machine_types(
        &spec.machine_types,
        spec.machine_capabilities.is_empty(),
        &path.child("machineTypes"),
    ));
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
    errors.extend(regions(&spec.regions, &path.child("regions")));
    if let Some(selector) = &spec.seed_selector {
        errors.extend(seed_selector(selector, &path.child("seedSelector")));
    }
    if let Some(bundle) = &spec.ca_bundle {
        errors.extend(ca_bundle(bundle, &path.child("caBundle")));
    }
    errors.extend(bastion(spec, &path.child("bastion")));
    errors.extend(validate_limits(spec.limits.as_ref(), &path.child("limits")));
    errors
}

/// Whether a text is three numbers with dots, [VAL-CP2].
fn is_kubernetes_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
}

/// A version as upstream's internal type prints it.
fn shown_version(version: &ExpirableVersion) -> Value {
    json!({
        "Version": version.version,
        "ExpirationDate": version.expiration_date,
        "Classification": version.classification,
        "Lifecycle": if version.lifecycle.is_empty() { Value::Null } else { crate::validation::shown(&version.lifecycle) },
    })
}

/// [VAL-CP2] – [VAL-CP6].
fn kubernetes_versions(settings: &KubernetesSettings, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let list = &settings.versions;
    if list.is_empty() {
        errors.push(Error::required(path, "must provide at least one Kubernetes version"));
        errors.push(Error::invalid(
            path,
            "",
            "failed to determine the latest kubernetes version from the cloud profile",
        ));
        return errors;
    }
    let latest = list
        .iter()
        .filter(|version| is_kubernetes_version(&version.version))
        .max_by(|one, other| versions::compare(&one.version, &other.version));
    if let Some(latest) = latest
        && latest.expiration_date.is_some()
    {
        errors.push(Error::invalid(
            &path.key("").child("expirationDate"),
            crate::validation::shown(&latest.expiration_date),
            format!(
                "expiration date of latest kubernetes version ('{}') must not be set",
                latest.version
            ),
        ));
    }
    let repeated = repeats(list.iter().map(|version| &version.version));
    for ((i, version), repeated) in list.iter().enumerate().zip(repeated) {
        let at = path.index(i);
        if !is_kubernetes_version(&version.version) {
            errors.push(Error::invalid(
                &at,
                shown_version(version),
                "all Kubernetes versions must match the regex ^([0-9]+\\.){2}[0-9]+$",
            ));
        }
        if repeated {
            errors.push(Error::duplicate(&at.child("version"), version.version.as_str()));
        }
        errors.extend(classification(version.classification.as_deref(), &at));
        errors.extend(lifecycle(&version.lifecycle, &at));
    }
    errors
}

/// [VAL-CP5].
fn classification(value: Option<&str>, path: &Path) -> ErrorList {
    match value {
        Some("expired") => {
            vec![Error::forbidden(
                &path.child("classification"),
                "cannot specify `classification` expired",
            )]
        }
        Some(value) if !CLASSIFICATIONS.contains(&value) => {
            vec![Error::not_supported(
                &path.child("classification"),
                value,
                &CLASSIFICATIONS,
            )]
        }
        _ => ErrorList::new(),
    }
}

/// [VAL-CP6] with the feature off.
fn lifecycle(stages: &[LifecycleStage], path: &Path) -> ErrorList {
    if stages.is_empty() {
        ErrorList::new()
    } else {
        vec![Error::forbidden(
            &path.child("lifecycle"),
            "lifecycles are not allowed with disabled VersionClassificationLifecycle feature gate",
        )]
    }
}

/// Checks machine images, [VAL-CP7] – [VAL-CP9]. `complete`: they are a whole profile's, not additions to one.
pub(in crate::core::v1beta1) fn validate_machine_images(
    images: &[MachineImage],
    complete: bool,
    capabilities: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if complete && images.is_empty() {
        errors.push(Error::required(path, "must provide at least one machine image"));
    }
    if complete {
        for image in images {
            if let Some(bad) = image
                .versions
                .iter()
                .find(|version| versions::parse(&version.version).is_none())
            {
                errors.push(Error::invalid(
                    path,
                    Value::Null,
                    format!(
                        "failed to determine latest machine image version for image '{}': error while parsing expirable version '{}': invalid semantic version",
                        image.name, bad.version
                    ),
                ));
                break;
            }
        }
    }
    let repeated = repeats(images.iter().map(|image| &image.name));
    for ((i, image), repeated) in images.iter().enumerate().zip(repeated) {
        let at = path.index(i);
        if repeated {
            errors.push(Error::duplicate(&at, image.name.as_str()));
        }
        if image.name.is_empty() {
            errors.push(Error::required(
                &at.child("name"),
                "machine image name must not be empty",
            ));
        } else {
            errors.extend(unprefixed(&image.name, &at.child("name")));
        }
        if complete && image.versions.is_empty() {
            errors.push(Error::required(
                &at.child("versions"),
                format!(
                    "must provide at least one version for the machine image '{}'",
                    image.name
                ),
            ));
        }
        match image.update_strategy.as_deref() {
            None if complete => {
                errors.push(Error::required(
                    &at.child("updateStrategy"),
                    "must provide an update strategy",
                ));
            }
            Some(strategy) if !matches!(strategy, "patch" | "minor" | "major") => {
                errors.push(Error::not_supported(
                    &at.child("updateStrategy"),
                    strategy,
                    &["major", "minor", "patch"],
                ));
            }
            _ => {}
        }
        let repeated = repeats(image.versions.iter().map(|version| &version.version));
        for ((j, version), repeated) in image.versions.iter().enumerate().zip(repeated) {
            let at = at.child("versions").index(j);
            if repeated {
                errors.push(Error::duplicate(&at, format!("{}@{}", image.name, version.version)));
            }
            errors.extend(image_version(version, complete, capabilities, &at));
        }
    }
    errors
}

/// Checks a version that a profile lists by itself: it says all that nodes need.
pub fn validate_whole_image_version(version: &MachineImageVersion, capabilities: bool, path: &Path) -> ErrorList {
    image_version(version, true, capabilities, path)
}

/// Checks what a namespaced profile and its parent make together.
pub fn validate_merged_cloud_profile(spec: &CloudProfileSpec, path: &Path) -> ErrorList {
    let capabilities = !spec.machine_capabilities.is_empty();
    let mut errors = kubernetes_versions(&spec.kubernetes, &path.child("kubernetes.versions"));
    if !spec.machine_images.is_empty() {
        let path = path.child("machineImages");
        errors.extend(validate_machine_images(&spec.machine_images, true, capabilities, &path));
    }
    if !spec.machine_types.is_empty() {
        let path = path.child("machineTypes");
        errors.extend(validate_machine_types(&spec.machine_types, !capabilities, &path));
    }
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
    errors
}

fn image_version(version: &MachineImageVersion, complete: bool, capabilities: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if version.version.is_empty() {
        errors.push(Error::required(
            &path.child("version"),
            "machine image version must not be empty",
        ));
    } else if versions::parse(&version.version).is_none() {
        errors.push(Error::invalid(
            &path.child("version"),
            version.version.as_str(),
            "could not parse version. Use a semantic version. In case there is no semantic version for this image use the extensibility provider (define mapping in the CloudProfile) to map to the actual non semantic version",
        ));
    }
    errors.extend(classification(version.classification.as_deref(), path));
    errors.extend(lifecycle(&version.lifecycle, path));
    if complete && version.cri.is_empty() {
        errors.push(Error::required(
            &path.child("cri"),
            "must provide at least one supported container runtime",
        ));
    }
    for (k, cri) in version.cri.iter().enumerate() {
        let at = path.child("cri").index(k);
        if cri.name != "containerd" {
            errors.push(Error::not_supported(
                &at.child("name"),
                cri.name.as_str(),
                &["containerd"],
            ));
        }
        if version.cri.iter().take(k).any(|earlier| earlier.name == cri.name) {
            errors.push(Error::duplicate(&at, cri.name.as_str()));
        }
        for (l, runtime) in cri.container_runtimes.iter().enumerate() {
            let at = at.child("containerRuntimes").index(l);
            errors.extend(unprefixed(&runtime.r#type, &at.child("type")));
            if cri
                .container_runtimes
                .iter()
                .take(l)
                .any(|earlier| earlier.r#type == runtime.r#type)
            {
                errors.push(Error::duplicate(&at.child("type"), runtime.r#type.as_str()));
            }
        }
    }
    if complete && !capabilities && version.architectures.is_empty() {
        errors.push(Error::required(
            &path.child("architectures"),
            "must provide at least one architecture",
        ));
    }
    for (k, architecture) in version.architectures.iter().enumerate() {
        if !ARCHITECTURES.contains(&architecture.as_str()) {
            errors.push(Error::not_supported(
                &path.child("architectures").index(k),
                architecture.as_str(),
                &ARCHITECTURES,
            ));
        }
    }
    if let Some(constraint) = &version.kubelet_version_constraint
        && let Err(why) = versions::Constraint::parse(constraint)
    {
        errors.push(Error::invalid(
            &path.child("kubeletVersionConstraint"),
            constraint.as_str(),
            format!("cannot parse the kubeletVersionConstraint: {why}"),
        ));
    }
    if let Some(least) = version
        .in_place_updates
        .as_ref()
        .and_then(|updates| updates.min_version_for_update.as_ref())
        && versions::parse(least).is_none()
    {
        errors.push(Error::invalid(
            &path.child("inPlaceUpdates.minVersionForInPlaceUpdate"),
            least.as_str(),
            "could not parse version. Use a semantic version.",
        ));
    }
    errors
}

/// A qualified name without prefix.
fn unprefixed(name: &str, path: &Path) -> ErrorList {
    let mut errors = invalid_each(path, name, names::qualified_name(name));
    if name.contains('/') {
        errors.push(Error::invalid(path, name, "must not contain a prefix"));
    }
    errors
}

/// Checks machine types, [VAL-CP10].
pub(in crate::core::v1beta1) fn validate_machine_types(
    types: &[MachineType],
    architecture: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, machine) in types.iter().enumerate() {
        let at = path.index(i);
        if machine.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a name"));
        } else {
            errors.extend(unprefixed(&machine.name, &at.child("name")));
        }
        if types.iter().take(i).any(|earlier| earlier.name == machine.name) {
            errors.push(Error::duplicate(&at.child("name"), machine.name.as_str()));
        }
        errors.extend(non_negative_quantity(&machine.cpu, &at.child("cpu")));
        errors.extend(non_negative_quantity(&machine.gpu, &at.child("gpu")));
        errors.extend(non_negative_quantity(&machine.memory, &at.child("memory")));
        match machine.architecture.as_deref() {
            None if architecture => {
                errors.push(Error::required(
                    &at.child("architecture"),
                    "must provide an architecture",
                ));
            }
            Some(value) if !ARCHITECTURES.contains(&value) => {
                errors.push(Error::not_supported(&at.child("architecture"), value, &ARCHITECTURES));
            }
            _ => {}
        }
        if let Some(storage) = &machine.storage {
            let at = at.child("storage");
            match (&storage.size, &storage.min_size) {
                (None, None) => errors.push(Error::invalid(
                    &at,
                    Value::Null,
                    "must either configure \"size\" or \"minSize\"",
                )),
                (Some(_), Some(_)) => errors.push(Error::invalid(
                    &at,
                    Value::Null,
                    "not allowed to configure both \"size\" and \"minSize\"",
                )),
                (Some(size), None) => errors.extend(non_negative_quantity(size, &at.child("size"))),
                (None, Some(size)) => errors.extend(non_negative_quantity(size, &at.child("minSize"))),
            }
        }
    }
    errors
}

/// Checks volume types, [VAL-CP11].
pub(in crate::core::v1beta1) fn validate_volume_types(types: &[VolumeType], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, volume) in types.iter().enumerate() {
        let at = path.index(i);
        for (field, value, what) in [("name", &volume.name, "a name"), ("class", &volume.class, "a class")] {
            let at = at.child(field);
            if value.is_empty() {
                errors.push(Error::required(&at, format!("must provide {what}")));
            } else {
                errors.extend(unprefixed(value, &at));
            }
        }
        if !volume.name.is_empty() && types.iter().take(i).any(|earlier| earlier.name == volume.name) {
            errors.push(Error::duplicate(&at.child("name"), volume.name.as_str()));
        }
        if let Some(size) = &volume.min_size {
            errors.extend(non_negative_quantity(size, &at.child("minSize")));
        }
    }
    errors
}

/// [VAL-CP12].
fn regions(regions: &[Region], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if regions.is_empty() {
        errors.push(Error::required(path, "must provide at least one region"));
    }
    for (i, region) in regions.iter().enumerate() {
        let at = path.index(i);
        if region.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a region name"));
        } else if regions.iter().take(i).any(|earlier| earlier.name == region.name) {
            errors.push(Error::duplicate(&at.child("name"), region.name.as_str()));
        }
        for (j, zone) in region.zones.iter().enumerate() {
            let at = at.child("zones").index(j).child("name");
            if zone.name.is_empty() {
                errors.push(Error::required(&at, "zone name cannot be empty"));
            } else if region.zones.iter().take(j).any(|earlier| earlier.name == zone.name) {
                errors.push(Error::duplicate(&at, zone.name.as_str()));
            }
        }
        errors.extend(meta::validate_labels(&region.labels, &at.child("labels")));
    }
    errors
}

/// [VAL-CP14].
fn bastion(spec: &CloudProfileSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(bastion) = &spec.bastion else { return errors };
    if bastion.machine_image.is_none() && bastion.machine_type.is_none() {
        errors.push(Error::invalid(
            path,
            Value::Null,
            "bastion section needs a machine type or machine image",
        ));
    }
    if let Some(machine) = &bastion.machine_type
        && !spec.machine_types.iter().any(|known| known.name == machine.name)
    {
        errors.push(Error::invalid(
            &path.child("machineType.name"),
            machine.name.as_str(),
            "machine type not found in spec.machineTypes",
        ));
    }
    if let Some(image) = &bastion.machine_image {
        match spec.machine_images.iter().find(|known| known.name == image.name) {
            None => errors.push(Error::invalid(
                &path.child("machineImage.name"),
                image.name.as_str(),
                "image name not found in spec.machineImages",
            )),
            Some(known) => {
                if let Some(version) = &image.version
                    && !known.versions.iter().any(|known| known.version == *version)
                {
                    errors.push(Error::invalid(
                        &path.child("machineImage.version"),
                        version.as_str(),
                        "image version not found in spec.machineImages",
                    ));
                }
            }
        }
    }
    errors
}

/// [VAL-CP15].
pub(in crate::core::v1beta1) fn validate_limits(limits: Option<&Limits>, path: &Path) -> ErrorList {
    match limits.and_then(|limits| limits.max_nodes_total) {
        Some(total) if total <= 0 => {
            vec![Error::invalid(
                &path.child("maxNodesTotal"),
                total,
                "maxNodesTotal must be greater than 0",
            )]
        }
        _ => ErrorList::new(),
    }
}

/// [VAL-CP16]: capabilities need a definition, which names the architectures.
fn capabilities(spec: &CloudProfileSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("machineCapabilities");
    let defined = &spec.machine_capabilities;
    if defined.is_empty() {
        for (i, machine) in spec.machine_types.iter().enumerate() {
            if !machine.capabilities.is_empty() {
                errors.push(Error::forbidden(
                    &path.child("machineTypes").index(i).child("capabilities"),
                    "must not provide capabilities without global definition",
                ));
            }
        }
        for (i, image) in spec.machine_images.iter().enumerate() {
            for (j, version) in image.versions.iter().enumerate() {
                if !version.capability_flavors.is_empty() {
                    errors.push(Error::forbidden(
                        &path
                            .child("machineImages")
                            .index(i)
                            .child("versions")
                            .index(j)
                            .child("capabilityFlavors"),
                        "must not provide capabilities without global definition",
                    ));
                }
            }
        }
        return errors;
    }
    for (i, capability) in defined.iter().enumerate() {
        let at = at.index(i);
        if defined.iter().take(i).any(|earlier| earlier.name == capability.name) {
            errors.push(Error::duplicate(&at.child("name"), capability.name.as_str()));
        }
        if capability.name.starts_with("gardener-") {
            errors.push(Error::forbidden(
                &at.child("name"),
                "the \"gardener-\" prefix is reserved for Gardener-core capabilities",
            ));
        }
        errors.extend(unprefixed(&capability.name, &at.child("name")));
        if capability.values.is_empty() {
            errors.push(Error::required(&at.child("values"), "must provide at least one value"));
        }
        for (j, value) in capability.values.iter().enumerate() {
            errors.extend(unprefixed(value, &at.child("values").index(j)));
            if capability.name == "architecture" && !ARCHITECTURES.contains(&value.as_str()) {
                errors.push(Error::not_supported(
                    &at.child("values").index(j),
                    value.as_str(),
                    &ARCHITECTURES,
                ));
            }
        }
    }
    if !defined.iter().any(|capability| capability.name == "architecture") {
        errors.push(Error::required(&at, "architecture capability is required"));
    }
    for (i, machine) in spec.machine_types.iter().enumerate() {
        for (key, values) in &machine.capabilities {
            let at = path.child("machineTypes").index(i).child("capabilities").child(key);
            match defined.iter().find(|capability| capability.name == *key) {
                None => {
                    let known: Vec<&str> = defined.iter().map(|capability| capability.name.as_str()).collect();
                    errors.push(Error::not_supported(&at, key.as_str(), &known));
                }
                Some(capability) => {
                    for value in values.iter().filter(|value| !capability.values.contains(value)) {
                        errors.push(Error::not_supported(&at, value.as_str(), &capability.values));
                    }
                }
            }
        }
    }
    errors
}

/// Checks a change of a cloud profile.
pub fn validate_cloud_profile_update(new: &CloudProfile, old: &CloudProfile) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_cloud_profile(new));
    errors.extend(limits_update(new.spec.limits.as_ref(), old.spec.limits.as_ref()));
    errors
}

/// The versions of one list: text, classification, and whether it is over.
type Versions<'a> = Vec<(&'a str, Option<&'a str>, bool)>;

fn kubernetes_list(spec: &CloudProfileSpec, now: Timestamp) -> Versions<'_> {
    let of = |own: &'_ ExpirableVersion| own.stage(now) == Stage::Expired;
    let list = spec.kubernetes.versions.iter();
    list.map(|own| (own.version.as_str(), own.classification.as_deref(), of(own)))
        .collect()
}

fn image_list(image: &MachineImage, now: Timestamp) -> Versions<'_> {
    let of = |own: &'_ MachineImageVersion| own.stage(now) == Stage::Expired;
    let list = image.versions.iter();
    list.map(|own| (own.version.as_str(), own.classification.as_deref(), of(own)))
        .collect()
}

/// Checks that of every minor version only one is supported, [VAL-CP4], [VER-24]. Costs n log n for n versions of a list.
pub fn validate_supported_versions(spec: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |list: &Versions<'_>, path: &Path| {
        let supported = |class: &Option<&str>| *class == Some("supported");
        let parsed: Vec<_> = list
            .iter()
            .map(|(text, class, _)| supported(class).then(|| versions::parse(text)).flatten())
            .collect();
        // the first of each minor version, and whether there is another one than that
        let mut minors = BTreeMap::new();
        for own in parsed.iter().flatten() {
            let (first, others) = minors.entry((own.major, own.minor)).or_insert((own, false));
            *others |= *first != own;
        }
        for (i, ((text, _, over), own)) in list.iter().zip(&parsed).enumerate() {
            let rivals = own.as_ref().and_then(|own| minors.get(&(own.major, own.minor)));
            if !over && rivals.is_some_and(|(_, others)| *others) {
                errors.push(Error::forbidden(
                    &path.index(i),
                    format!(
                        "unable to add version {text:?} with classification \"supported\". Only one \"supported\" version is allowed per minor version"
                    ),
                ));
            }
        }
    };
    let path = Path::new("spec");
    check(&kubernetes_list(spec, now), &path.child("kubernetes.versions"));
    for (i, image) in spec.machine_images.iter().enumerate() {
        let path = path.child("machineImages").index(i).child("versions");
        check(&image_list(image, now), &path);
    }
    errors
}

/// Checks that no version is added that is over already, [VER-32].
pub fn validate_added_versions(new: &CloudProfileSpec, old: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |new: &Versions<'_>, old: &Versions<'_>, path: &Path| {
        let old: BTreeSet<&str> = old.iter().map(|(text, ..)| *text).collect();
        for (i, (text, _, over)) in new.iter().enumerate() {
            if *over && !old.contains(text) {
                errors.push(Error::forbidden(
                    &path.index(i),
                    format!(
                        "unable to create version {text:?}. Creating a version with expiration date in the past is not allowed"
                    ),
                ));
            }
        }
    };
    let path = Path::new("spec");
    let kubernetes = path.child("kubernetes.versions");
    check(&kubernetes_list(new, now), &kubernetes_list(old, now), &kubernetes);
    for (i, image) in new.machine_images.iter().enumerate() {
        let before = old.machine_images.iter().find(|before| before.name == image.name);
        let before = before.map(|before| image_list(before, now)).unwrap_or_default();
        let path = path.child("machineImages").index(i).child("versions");
        check(&image_list(image, now), &before, &path);
    }
    errors
}

/// [VAL-CP15] on updates.
pub(in crate::core::v1beta1) fn limits_update(new: Option<&Limits>, old: Option<&Limits>) -> ErrorList {
    let total = |limits: Option<&Limits>| limits.and_then(|limits| limits.max_nodes_total);
    match (total(new), total(old)) {
        (Some(new), Some(old)) if new < old => vec![Error::invalid(
            &Path::new("spec.limits.maxNodesTotal"),
            new,
            "maxNodesTotal cannot be decreased",
        )],
        _ => ErrorList::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(value: serde_json::Value) -> Vec<String> {
        let mut profile: CloudProfile = serde_json::from_value(value).unwrap();
        default_cloud_profile(&mut profile);
        validate_cloud_profile(&profile)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// With rules that compare each version with each other this takes minutes.
    #[test]
    fn val_cp4_lists_may_be_long() {
        let versions: Vec<Value> = (0..20_000)
            .map(|minor| json!({"version": format!("1.{minor}.0"), "classification": "supported"}))
            .collect();
        let spec: CloudProfileSpec = serde_json::from_value(json!({"kubernetes": {"versions": versions},
            "machineImages": [{"name": "os", "versions": versions}]}))
        .unwrap();
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        assert_eq!(validate_supported_versions(&spec, now), []);
        assert_eq!(validate_added_versions(&spec, &spec, now), []);
        let found = validate_cloud_profile_spec(&spec, &Path::new("spec"));
        assert!(!found.iter().any(|error| error.to_string().contains("Duplicate")));
    }

    #[test]
    fn ver_24_32_supported_once_and_none_that_is_over() {
        let spec = |kubernetes: Value, images: Value| -> CloudProfileSpec {
            serde_json::from_value(json!({"kubernetes": {"versions": kubernetes},
                "machineImages": [{"name": "os", "versions": images}]}))
            .unwrap()
        };
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let supported = |version: &str| json!({"version": version, "classification": "supported"});
        let mut over = supported("1.31.3");
        over["expirationDate"] = json!("2026-01-01T00:00:00Z");
        let fields = |errors: ErrorList| -> Vec<String> {
            errors
                .iter()
                .map(|error| error.to_string().split(": F").next().unwrap_or_default().to_owned())
                .collect()
        };
        let both = spec(
            json!([supported("1.31.1"), supported("1.31.2"), {"version": "1.31.0"}, supported("1.32.0")]),
            json!([]),
        );
        assert_eq!(
            fields(validate_supported_versions(&both, now)),
            ["spec.kubernetes.versions[0]", "spec.kubernetes.versions[1]"],
            "VA-16"
        );
        let with_dead = spec(
            json!([supported("1.31.1"), over]),
            json!([supported("1.0.0"), supported("1.0.1")]),
        );
        assert_eq!(
            fields(validate_supported_versions(&with_dead, now)),
            [
                "spec.kubernetes.versions[0]",
                "spec.machineImages[0].versions[0]",
                "spec.machineImages[0].versions[1]"
            ]
        );
        let old = spec(json!([{"version": "1.31.1"}]), json!([{"version": "1.0.0"}]));
        let dead = |version: &str| json!({"version": version, "expirationDate": "2026-01-01T00:00:00Z"});
        let new = spec(
            json!([dead("1.31.1"), dead("1.30.1")]),
            json!([dead("1.0.0"), dead("0.9.0")]),
        );
        assert_eq!(
            fields(validate_added_versions(&new, &old, now)),
            ["spec.kubernetes.versions[1]", "spec.machineImages[0].versions[1]"]
        );
    }

    #[test]
    fn val_cp_recorded_refusals() {
        assert_eq!(
            texts(json!({"metadata": {"name": "empty"}})),
            [
                "spec.type: Required value: must provide a provider type",
                "spec.kubernetes.versions: Required value: must provide at least one Kubernetes version",
                "spec.kubernetes.versions: Invalid value: \"\": failed to determine the latest kubernetes version from the cloud profile",
                "spec.machineImages: Required value: must provide at least one machine image",
                "spec.machineTypes: Required value: must provide at least one machine type",
                "spec.regions: Required value: must provide at least one region",
            ]
        );
        let found = texts(json!({"metadata": {"name": "bad"}, "spec": {"type": "local",
            "kubernetes": {"versions": [{"version": "1.36"}, {"version": "1.35.1", "classification": "ancient"}]},
            "machineImages": [{"name": "i", "versions": [{"version": "one", "architectures": ["mips"]}]}, {"name": "i", "versions": []}],
            "machineTypes": [{"name": "m", "cpu": "-1", "gpu": "0", "memory": "1Gi"}],
            "volumeTypes": [{"name": "", "class": ""}], "regions": [{"name": ""}]}}));
        let heads = [
            "spec.kubernetes.versions[0]: Invalid value: {",
            "spec.kubernetes.versions[1].classification: Unsupported value: \"ancient\": supported values: \"deprecated\", \"expired\", \"preview\", \"supported\"",
            "spec.machineImages: Invalid value: null: failed to determine latest machine image version for image 'i': error while parsing expirable version 'one': invalid semantic version",
            "spec.machineImages[0].versions[0].version: Invalid value: \"one\": could not parse version. Use a semantic version.",
            "spec.machineImages[0].versions[0].architectures[0]: Unsupported value: \"mips\": supported values: \"amd64\", \"arm64\"",
            "spec.machineImages[1]: Duplicate value: \"i\"",
            "spec.machineImages[1].versions: Required value: must provide at least one version for the machine image 'i'",
            "spec.machineTypes[0].cpu: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.volumeTypes[0].name: Required value: must provide a name",
            "spec.volumeTypes[0].class: Required value: must provide a class",
            "spec.regions[0].name: Required value: must provide a region name",
        ];
        assert_eq!(found.len(), heads.len(), "{found:#?}");
        for (text, head) in found.iter().zip(heads) {
            assert!(text.starts_with(head), "{text} / {head}");
        }
    }

    #[test]
    fn val_cp3_the_latest_version_does_not_expire() {
        let found = texts(json!({"metadata": {"name": "a"}, "spec": {"kubernetes": {"versions": [
            {"version": "1.36.0"}, {"version": "1.36.1", "expirationDate": "2090-01-01T00:00:00Z"}]}}}));
        let expected = "spec.kubernetes.versions[].expirationDate";
        assert!(found.iter().any(|text| text.starts_with(expected)), "{found:#?}");
    }
}
