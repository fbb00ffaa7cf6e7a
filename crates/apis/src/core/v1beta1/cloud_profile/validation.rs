//! Validation of cloud profiles, [VAL-CP1] – [VAL-CP18].
//!
//! In parts: what profiles list as versions, images, machines and capabilities.

mod capabilities;
mod images;
mod machines;
mod stages;

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::constants::ARCHITECTURES;
use crate::validation::{ca_bundle, go_json, go_members, object_meta, object_meta_update, seed_selector};
use crate::versions;
use stages::{Supported, expirable_version};

pub use images::{
    validate_additional_image, validate_additional_image_version, validate_image_details, validate_machine_images,
};
pub(in crate::core::v1beta1) use machines::{validate_machine_types, validate_volume_types};

const ARCHITECTURE: &str = "architecture";
const UNDEFINED: &str = "must not provide capabilities without global definition";

/// What the rules for profiles depend on beside the profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileRules {
    /// The present: versions come into other stages.
    pub now: Timestamp,
    /// Whether versions may have lifecycles, [VER-12].
    pub lifecycles: bool,
    /// Whether profiles may define capabilities.
    pub capabilities: bool,
}

/// Checks a cloud profile that is to be created or stored again.
pub fn validate_cloud_profile(profile: &CloudProfile, rules: ProfileRules) -> ErrorList {
    let mut errors = object_meta(&profile.metadata, false, names::dns_subdomain);
    errors.extend(validate_cloud_profile_spec(&profile.spec, rules, &Path::new("spec")));
    errors
}

/// Checks the content of a cloud profile.
pub fn validate_cloud_profile_spec(spec: &CloudProfileSpec, rules: ProfileRules, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.r#type.is_empty() {
        errors.push(Error::required(&path.child("type"), "must provide a provider type"));
    }
    let defined = spec.capabilities();
    errors.extend(capabilities::definitions(
        &spec.machine_capabilities,
        rules,
        &path.child("machineCapabilities"),
    ));
    errors.extend(kubernetes_settings(&spec.kubernetes, rules, &path.child("kubernetes")));
    errors.extend(images::whole_profiles_images(
        &spec.machine_images,
        &defined,
        rules,
        &path.child("machineImages"),
    ));
    errors.extend(machines::whole_profiles_types(
        &spec.machine_types,
        &defined,
        &path.child("machineTypes"),
    ));
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
    errors.extend(regions(&spec.regions, &path.child("regions")));
    errors.extend(bastion(spec, &defined, rules.now, &path.child("bastion")));
    errors.extend(validate_limits(spec.limits.as_ref(), &path.child("limits")));
    if let Some(selector) = &spec.seed_selector {
        errors.extend(seed_selector(selector, &path.child("seedSelector")));
    }
    if let Some(bundle) = &spec.ca_bundle {
        errors.extend(ca_bundle(bundle, &path.child("caBundle")));
    }
    errors
}

/// Checks what a namespaced profile and its parent make together.
pub fn validate_merged_cloud_profile(spec: &CloudProfileSpec, rules: ProfileRules, path: &Path) -> ErrorList {
    let defined = spec.capabilities();
    let mut errors = kubernetes_settings(&spec.kubernetes, rules, &path.child("kubernetes"));
    if !spec.machine_images.is_empty() {
        let path = path.child("machineImages");
        errors.extend(images::whole_profiles_images(
            &spec.machine_images,
            &defined,
            rules,
            &path,
        ));
    }
    if !spec.machine_types.is_empty() {
        let path = path.child("machineTypes");
        errors.extend(machines::whole_profiles_types(&spec.machine_types, &defined, &path));
    }
    errors.extend(validate_volume_types(&spec.volume_types, &path.child("volumeTypes")));
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

/// A version as upstream's internal type is shown.
fn shown_version(version: &ExpirableVersion) -> String {
    let stage = |stage: &LifecycleStage| {
        go_members(&[
            ("Classification", go_json(&stage.classification)),
            ("StartTime", go_json(&stage.start_time)),
        ])
    };
    let stages: Vec<String> = version.lifecycle.iter().map(stage).collect();
    let stages = match stages.is_empty() {
        true => "null".to_owned(),
        false => format!("[{}]", stages.join(",")),
    };
    go_members(&[
        ("Version", go_json(&version.version)),
        ("ExpirationDate", go_json(&version.expiration_date)),
        ("Classification", go_json(&version.classification)),
        ("Lifecycle", stages),
    ])
}

/// The latest of some versions; none if one of them is no version, or there is none.
fn latest(list: &[ExpirableVersion]) -> Option<&ExpirableVersion> {
    let mut latest: Option<(semver::Version, &ExpirableVersion)> = None;
    for own in list {
        let version = versions::parse(&own.version)?;
        if latest
            .as_ref()
            .is_none_or(|(before, _)| version.cmp_precedence(before).is_gt())
        {
            latest = Some((version, own));
        }
    }
    latest.map(|(_, own)| own)
}

/// [VAL-CP2] – [VAL-CP6], [VER-20], [VER-23], [VER-24].
fn kubernetes_settings(settings: &KubernetesSettings, rules: ProfileRules, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("versions");
    let list = &settings.versions;
    if list.is_empty() {
        errors.push(Error::required(&at, "must provide at least one Kubernetes version"));
    }
    match latest(list) {
        None => errors.push(Error::invalid(
            &at,
            "",
            "failed to determine the latest kubernetes version from the cloud profile",
        )),
        Some(latest) => {
            let at = at.key("");
            let version = &latest.version;
            if latest.expiration_date.is_some() {
                errors.push(Error::invalid(
                    &at.child("expirationDate"),
                    crate::validation::shown(&latest.expiration_date),
                    format!("expiration date of latest kubernetes version ('{version}') must not be set"),
                ));
            }
            if latest
                .lifecycle
                .last()
                .is_some_and(|last| last.classification == "expired")
            {
                errors.push(Error::invalid(
                    &at.child("lifecycle"),
                    // upstream shows the date, which a version with a lifecycle does not have
                    crate::validation::shown(&latest.expiration_date),
                    format!("classification expired of latest kubernetes version ('{version}') must not be set"),
                ));
            }
        }
    }
    errors.extend(validate_kubernetes_versions(list, rules, path));
    let supported = Supported::of(list);
    for (i, version) in list.iter().enumerate() {
        errors.extend(supported.once(version, rules.now, &at.index(i)));
    }
    errors
}

/// Checks a list of Kubernetes versions, each on its own, [VER-21].
pub(in crate::core::v1beta1) fn validate_kubernetes_versions(
    list: &[ExpirableVersion],
    rules: ProfileRules,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, version) in list.iter().enumerate() {
        let at = path.child("versions").index(i);
        let repeated = !seen.insert(&version.version);
        if !is_kubernetes_version(&version.version) {
            errors.push(Error::literal(
                &at,
                shown_version(version),
                "all Kubernetes versions must match the regex ^([0-9]+\\.){2}[0-9]+$",
            ));
        } else if repeated {
            errors.push(Error::duplicate(&at.child("version"), version.version.as_str()));
        }
        errors.extend(expirable_version(version, rules, &at));
    }
    errors
}

/// What is wrong with a qualified name without prefix.
fn unprefixed(name: &str) -> Vec<String> {
    let found = names::qualified_name(name);
    if found.is_empty() && name.contains('/') {
        return vec![format!("name '{name}' must not contain a prefix")];
    }
    found
}

/// A finding when a name is not qualified, or has a prefix; `what` it names.
fn unprefixed_name(what: &str, name: &str, path: &Path) -> Option<Error> {
    let found = unprefixed(name);
    (!found.is_empty()).then(|| {
        let found = found.join(" ");
        Error::invalid(path, name, format!("{what} must be a qualified name: [{found}]"))
    })
}

/// [VAL-CP12].
fn regions(regions: &[Region], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if regions.is_empty() {
        errors.push(Error::required(path, "must provide at least one region"));
    }
    let mut seen = BTreeSet::new();
    for (i, region) in regions.iter().enumerate() {
        let at = path.index(i);
        if region.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a region name"));
        } else if !seen.insert(&region.name) {
            errors.push(Error::duplicate(&at.child("name"), region.name.as_str()));
        }
        let mut zones = BTreeSet::new();
        for (j, zone) in region.zones.iter().enumerate() {
            let at = at.child("zones").index(j).child("name");
            if zone.name.is_empty() {
                errors.push(Error::required(&at, "zone name cannot be empty"));
            } else if !zones.insert(&zone.name) {
                errors.push(Error::duplicate(&at, zone.name.as_str()));
            }
        }
        errors.extend(meta::validate_labels(&region.labels, &at.child("labels")));
    }
    errors
}

/// [VAL-CP14].
fn bastion(spec: &CloudProfileSpec, defined: &Capabilities, now: Timestamp, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(bastion) = &spec.bastion else { return errors };
    if bastion.machine_image.is_none() && bastion.machine_type.is_none() {
        errors.push(Error::literal(
            path,
            go_members(&[("MachineImage", "null".into()), ("MachineType", "null".into())]),
            "bastion section needs a machine type or machine image",
        ));
    }
    let mut architecture = None;
    if let Some(own) = &bastion.machine_type {
        match spec.machine_types.iter().find(|known| known.name == own.name) {
            Some(machine) => architecture = Some(machine.architecture_of(&spec.machine_capabilities)),
            None => errors.push(Error::invalid(
                &path.child("machineType.name"),
                own.name.as_str(),
                "machine type not found in spec.machineTypes",
            )),
        }
    }
    if let Some(image) = &bastion.machine_image {
        let path = path.child("machineImage");
        errors.extend(bastion_image(spec, image, defined, architecture.as_deref(), now, &path));
    }
    errors
}

fn bastion_image(
    spec: &CloudProfileSpec,
    image: &BastionMachineImage,
    defined: &Capabilities,
    architecture: Option<&str>,
    now: Timestamp,
    path: &Path,
) -> Option<Error> {
    let Some(known) = spec.machine_images.iter().find(|known| known.name == image.name) else {
        let why = "image name not found in spec.machineImages";
        return Some(Error::invalid(&path.child("name"), image.name.as_str(), why));
    };
    let (candidates, path): (Vec<&MachineImageVersion>, Path) = match &image.version {
        None => (known.versions.iter().collect(), path.child("name")),
        Some(version) => {
            let path = path.child("version");
            match known.versions.iter().find(|known| known.version == *version) {
                Some(known) => (vec![known], path),
                None => {
                    let why = "image version not found in spec.machineImages";
                    return Some(Error::invalid(&path, version.as_str(), why));
                }
            }
        }
    };
    let fits = |version: &&MachineImageVersion| {
        architecture.is_none_or(|architecture| version.supports_architecture(defined, architecture))
            && stages::is_classified_supported(&version.expirable(), now)
    };
    if candidates.iter().any(fits) {
        return None;
    }
    let architecture = architecture.unwrap_or("<nil>");
    let why = format!("no image with classification supported and arch {architecture:?} found");
    Some(Error::invalid(&path, image.name.as_str(), why))
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

/// Checks a change of a cloud profile.
pub fn validate_cloud_profile_update(new: &CloudProfile, old: &CloudProfile, rules: ProfileRules) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_cloud_profile(new, rules));
    let (spec, before) = (&new.spec, &old.spec);
    errors.extend(limits_update(spec.limits.as_ref(), before.limits.as_ref()));
    let path = Path::new("spec");
    errors.extend(stages::none_turned_unavailable(
        &spec.kubernetes.versions,
        &before.kubernetes.versions,
        rules.now,
        &path.child("kubernetes.versions"),
    ));
    for (i, image) in spec.machine_images.iter().enumerate() {
        let before = before.machine_images.iter().rfind(|before| before.name == image.name);
        if let Some(before) = before {
            let path = path.child("machineImages").index(i).child("versions");
            let (new, old) = (image.expirable_versions(), before.expirable_versions());
            errors.extend(stages::none_turned_unavailable(&new, &old, rules.now, &path));
        }
    }
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

/// Checks that no version is added that is over already, [VER-32].
pub fn validate_added_versions(new: &CloudProfileSpec, old: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |new: &Versions<'_>, old: &Versions<'_>, path: &Path| {
        let old: std::collections::BTreeSet<&str> = old.iter().map(|(text, ..)| *text).collect();
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
    use serde_json::{Value, json};

    use super::*;

    fn rules() -> ProfileRules {
        ProfileRules {
            now: "2026-06-01T00:00:00Z".parse().unwrap(),
            lifecycles: false,
            capabilities: true,
        }
    }

    fn found(value: serde_json::Value, rules: ProfileRules) -> Vec<String> {
        let mut profile: CloudProfile = serde_json::from_value(value).unwrap();
        default_cloud_profile(&mut profile);
        let errors = validate_cloud_profile(&profile, rules);
        errors.iter().map(ToString::to_string).collect()
    }

    fn texts(value: serde_json::Value) -> Vec<String> {
        found(value, rules())
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
        assert_eq!(validate_added_versions(&spec, &spec, rules().now), []);
        let found = validate_cloud_profile_spec(&spec, rules(), &Path::new("spec"));
        let of_versions = |error: &Error| {
            error.detail.starts_with("unable to add version") || error.to_string().contains("Duplicate")
        };
        assert!(!found.iter().any(of_versions));
    }

    #[test]
    fn ver_24_32_supported_once_and_none_that_is_over() {
        let spec = |kubernetes: Value, images: Value| -> CloudProfileSpec {
            serde_json::from_value(json!({"kubernetes": {"versions": kubernetes},
                "machineImages": [{"name": "os", "versions": images}]}))
            .unwrap()
        };
        let now = rules().now;
        let validate_supported_versions = |spec: &CloudProfileSpec| -> ErrorList {
            let errors = validate_cloud_profile_spec(spec, rules(), &Path::new("spec"));
            let is_it = |error: &Error| error.detail.starts_with("unable to add version");
            errors.into_iter().filter(is_it).collect()
        };
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
            fields(validate_supported_versions(&both)),
            ["spec.kubernetes.versions[0]", "spec.kubernetes.versions[1]"],
            "VA-16"
        );
        let with_dead = spec(
            json!([supported("1.31.1"), over]),
            json!([supported("1.0.0"), supported("1.0.1")]),
        );
        assert_eq!(
            fields(validate_supported_versions(&with_dead)),
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
            "spec.kubernetes.versions[0]: Invalid value: {\"Version\":\"1.36\",\"ExpirationDate\":null,\"Classification\":null,\"Lifecycle\":null}: all",
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

    /// A profile that is right, with some members laid over it.
    fn profile(members: serde_json::Value) -> serde_json::Value {
        let mut profile = json!({"metadata": {"name": "a"}, "spec": {"type": "local",
            "kubernetes": {"versions": [{"version": "1.36.0"}]},
            "machineImages": [{"name": "os", "versions": [{"version": "1.0.0"}]}],
            "machineTypes": [{"name": "m", "cpu": "1", "gpu": "0", "memory": "1Gi"}],
            "regions": [{"name": "r"}]}});
        for (name, value) in members.as_object().unwrap() {
            profile["spec"][name] = value.clone();
        }
        profile
    }

    #[test]
    fn val_cp_words_of_upstream() {
        let two = json!([{"name": "architecture", "values": ["amd64", "arm64"]}, {"name": "foo", "values": ["bar"]}]);
        let image = |version: serde_json::Value| json!([{"name": "os", "versions": [version]}]);
        let machine = |members: serde_json::Value| {
            let mut machine = json!({"name": "m", "cpu": "1", "gpu": "0", "memory": "1Gi"});
            machine
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            json!([machine])
        };
        let flavored = json!({"version": "1.0.0", "capabilityFlavors": [{"architecture": ["amd64"]}]});
        let at = "spec.machineImages[0].versions[0]";
        let cases: Vec<(&str, serde_json::Value, Vec<String>)> = vec![
            ("VER-26", json!({"machineImages": image(json!({"version": ""}))}), vec![
                "spec.machineImages: Invalid value: null: failed to determine latest machine image version for image 'os': error while parsing expirable version '': invalid semantic version".into(),
                format!("{at}.version: Required value"),
                format!("{at}.version: Invalid value: \"\": could not parse version. Use a semantic version. In case there is no semantic version for this image use the extensibility provider (define mapping in the CloudProfile) to map to the actual non semantic version"),
            ]),
            ("VER-26", json!({"machineImages": [{"name": "os", "versions": [{"version": "1.0.0"}, {"version": "1.0.0"}]}]}),
                vec!["spec.machineImages[0].versions[1]: Duplicate value: \"os-1.0.0\"".into()]),
            ("VER-28", json!({"machineImages": image(json!({"version": "1.0.0", "kubeletVersionConstraint": "invalid-version"}))}),
                vec![format!("{at}.kubeletVersionConstraint: Invalid value: \"invalid-version\": cannot parse the kubeletVersionConstraint: improper constraint: \"invalid-version\"")]),
            ("VER-29", json!({"machineImages": image(json!({"version": "1.0.0", "inPlaceUpdates": {"minVersionForUpdate": "x"}}))}),
                vec![format!("{at}.minVersionForInPlaceUpdate: Invalid value: \"x\": could not parse version. Use a semantic version.")]),
            ("VER-30", json!({"machineImages": image(json!({"version": "1.0.0", "capabilityFlavors": [{"foo": ["bar"]}]}))}),
                vec![format!("{at}.capabilityFlavors: Forbidden: must not provide capabilities without global definition")]),
            ("VER-30", json!({"machineCapabilities": two}),
                vec![format!("{at}.capabilityFlavors: Required value: must provide at least one image flavor when multiple architectures are defined in spec.machineCapabilities")]),
            ("VER-30", json!({"machineCapabilities": two, "machineImages": image(json!({"version": "1.0.0", "architectures": ["arm64"],
                "capabilityFlavors": [{"foo": ["bar", "baz"]}, {"architecture": ["amd64"], "qux": ["x"]}]}))}), vec![
                format!("{at}.capabilityFlavors[0].architecture: Required value: must specify one architecture explicitly as multiple architectures are defined in spec.machineCapabilities"),
                format!("{at}.architectures: Invalid value: [\"arm64\"]: architecture field values set (arm64) conflict with the capability architectures (amd64)"),
                format!("{at}.capabilityFlavors[0].foo[1]: Unsupported value: \"baz\": supported values: \"bar\""),
                format!("{at}.capabilityFlavors[1]: Unsupported value: \"qux\": supported values: \"architecture\", \"foo\""),
            ]),
            ("VER-30", json!({"machineCapabilities": two, "machineImages": image(flavored.clone()),
                "machineTypes": machine(json!({"architecture": "arm64", "capabilities": {"architecture": ["amd64"], "foo": ["x"]}}))}), vec![
                "spec.machineTypes[0].architecture: Invalid value: \"amd64\": machine type architecture (arm64) conflicts with the capability architecture (amd64)".into(),
                "spec.machineTypes[0].capabilities.foo[0]: Unsupported value: \"x\": supported values: \"bar\"".into(),
            ]),
            ("VAL-CP16", json!({"machineCapabilities": [{"name": "", "values": []}]}), vec![
                "spec.machineCapabilities.architecture: Required value: architecture capability is required".into(),
                "spec.machineCapabilities: Required value: capability keys must not be empty".into(),
                "spec.machineCapabilities[]: Required value: capability values must not be empty".into(),
            ]),
            ("VAL-CP16", json!({"machineCapabilities": [{"name": "architecture", "values": ["mips"]}]}),
                vec!["spec.machineCapabilities.architecture: Invalid value: \"mips\": allowed architectures are: amd64, arm64".into()]),
            ("VAL-CP10", json!({"machineTypes": machine(json!({"storage": {"class": "a<b"}}))}),
                vec!["spec.machineTypes[0].storage: Invalid value: {\"Class\":\"a\\u003cb\",\"StorageSize\":null,\"Type\":\"\",\"MinSize\":null}: must either configure \"size\" or \"minSize\"".into()]),
            ("VAL-CP11", json!({"volumeTypes": [{"name": "x/y", "class": "c"}]}),
                vec!["spec.volumeTypes[0].name: Invalid value: \"x/y\": volume type name must be a qualified name: [name 'x/y' must not contain a prefix]".into()]),
            ("VAL-CP14", json!({"bastion": {}}),
                vec!["spec.bastion: Invalid value: {\"MachineImage\":null,\"MachineType\":null}: bastion section needs a machine type or machine image".into()]),
            ("VAL-CP14", json!({"bastion": {"machineImage": {"name": "os"}, "machineType": {"name": "m"}}}),
                vec!["spec.bastion.machineImage.name: Invalid value: \"os\": no image with classification supported and arch \"amd64\" found".into()]),
        ];
        for (rule, members, expected) in cases {
            assert_eq!(texts(profile(members.clone())), expected, "{rule} {members}");
        }
    }

    #[test]
    fn ver_31_lifecycles() {
        let on = ProfileRules {
            lifecycles: true,
            ..rules()
        };
        let with = |lifecycle: serde_json::Value| {
            profile(
                json!({"kubernetes": {"versions": [{"version": "1.36.0"}, {"version": "1.35.0", "lifecycle": lifecycle}]}}),
            )
        };
        let at = "spec.kubernetes.versions[1].lifecycle";
        assert_eq!(
            found(with(json!([{"classification": "supported"}])), rules()),
            [format!(
                "{at}: Forbidden: lifecycles are not allowed with disabled VersionClassificationLifecycle feature gate"
            )]
        );
        let lifecycle = json!([{"classification": "supported", "startTime": "2026-01-02T00:00:00Z"},
            {"classification": "preview", "startTime": "2026-01-01T00:00:00Z"}, {"classification": "supported"}, {"classification": "x", "startTime": "2026-01-01T00:00:00Z"}]);
        let order = "lifecycle classifications not in expected order (preview, supported, deprecated, expired)";
        assert_eq!(
            found(with(lifecycle), on),
            [
                format!(
                    "{at}[3].classification: Unsupported value: \"x\": supported values: \"deprecated\", \"expired\", \"preview\", \"supported\""
                ),
                format!("{at}[2].classification: Duplicate value: \"supported\""),
                format!(
                    "{at}[1].classification: Invalid value: \"preview\": {order}: preview must be before supported"
                ),
                format!("{at}[3].classification: Invalid value: \"x\": {order}: x must be before supported"),
                format!(
                    "{at}[1]: Invalid value: \"2026-01-01 00:00:00 +0000 UTC\": lifecycle start times must be monotonically increasing"
                ),
                format!(
                    "{at}[2]: Required value: only the leading lifecycle elements can have the start time optional"
                ),
            ]
        );
        let versions = |classification: &str, start: &str| -> CloudProfile {
            let lifecycle = json!([{"classification": classification, "startTime": start}]);
            serde_json::from_value(with(lifecycle)).unwrap()
        };
        let (past, future) = ("2026-01-01T00:00:00Z", "2090-01-01T00:00:00Z");
        let update = validate_cloud_profile_update(&versions("preview", future), &versions("preview", past), on);
        assert!(
            update
                .iter()
                .any(|error| error.detail.starts_with("a version cannot be turned unavailable")),
            "VER-31"
        );
    }

    #[test]
    fn val_cp16_architectures_follow_capabilities() {
        let of = |members: serde_json::Value| -> CloudProfileSpec {
            serde_json::from_value::<CloudProfile>(profile(members)).unwrap().spec
        };
        let two = json!([{"name": "architecture", "values": ["arm64", "amd64"]}]);
        let mut begun = of(json!({"machineCapabilities": two}));
        sync_architectures(&mut begun, Some(&of(json!({}))));
        let flavors = json!(begun.machine_images[0].versions[0].capability_flavors);
        assert_eq!(flavors, json!([{"architecture": ["amd64"]}]));
        assert_eq!(begun.machine_images[0].versions[0].architectures, ["amd64"]);
        assert_eq!(begun.machine_types[0].architecture.as_deref(), Some("amd64"));
        let mut later = of(json!({"machineCapabilities": two}));
        sync_architectures(&mut later, Some(&begun));
        assert!(later.machine_images[0].versions[0].capability_flavors.is_empty());
        assert_eq!(later.machine_images[0].versions[0].architectures, ["amd64", "arm64"]);
        assert_eq!(later.machine_types[0].architecture, None);
        let mut ended = begun.clone();
        ended.machine_capabilities.clear();
        sync_architectures(&mut ended, Some(&begun));
        assert!(ended.machine_images[0].versions[0].capability_flavors.is_empty());
        assert!(ended.machine_types[0].capabilities.is_empty());
    }
}
