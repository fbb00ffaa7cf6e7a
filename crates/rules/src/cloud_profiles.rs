//! Cloud profiles as a whole: what a namespaced one makes of its parent [VER-36], and who uses which version of one [VER-33].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apis::core::v1beta1::{
    CloudProfileSpec, CloudProfileStatus, ExpirableVersionStatus, KubernetesSettings, KubernetesStatus, MachineImage,
    MachineImageFlavor, MachineImageStatus, MachineImageVersion, NamespacedCloudProfile, NamespacedCloudProfileSpec,
    Shoot,
};
use k8s_openapi::jiff::Timestamp;

const ARCHITECTURE: &str = "architecture";
const AMD64: &str = "amd64";

/// What a cloud profile's status tells: the stage of every version [GCM-14].
pub fn status(spec: &CloudProfileSpec, now: Timestamp) -> CloudProfileStatus {
    let told = |version: &str, stage: &str| ExpirableVersionStatus {
        classification: stage.to_owned(),
        version: version.to_owned(),
    };
    let versions = &spec.kubernetes.versions;
    let kubernetes = (!versions.is_empty()).then(|| KubernetesStatus {
        versions: versions
            .iter()
            .map(|own| told(&own.version, own.stage(now).as_str()))
            .collect(),
    });
    let image = |image: &MachineImage| MachineImageStatus {
        name: image.name.clone(),
        versions: image
            .versions
            .iter()
            .map(|own| told(&own.version, own.stage(now).as_str()))
            .collect(),
    };
    CloudProfileStatus {
        kubernetes,
        machine_images: spec.machine_images.iter().map(image).collect(),
    }
}

/// When next a version of a cloud profile comes into another stage; none, if none does [GCM-14].
pub fn next_transition(spec: &CloudProfileSpec, now: Timestamp) -> Option<Timestamp> {
    let kubernetes = spec.kubernetes.versions.iter().flat_map(|own| own.turns());
    let images = spec.machine_images.iter().flat_map(|image| &image.versions);
    let turns = kubernetes.chain(images.flat_map(|own| own.turns()));
    turns.filter(|turn| *turn > now).min()
}

/// What a namespaced profile makes together with its parent [GCM-15]. Of versions that the parent has, only the end of life is the child's, unless the
/// child tells more of it; what else the child has is added. The parent's provider config stays: what to do about a child's is known to the
/// provider's extension alone.
pub fn merged(parent: &CloudProfileSpec, child: &NamespacedCloudProfileSpec) -> CloudProfileSpec {
    let mut spec = parent.clone();
    let child = &in_form_of(parent, child);
    if let Some(kubernetes) = &child.kubernetes {
        override_kubernetes(&mut spec.kubernetes, kubernetes);
    }
    for own in &child.machine_images {
        match spec.machine_images.iter_mut().find(|known| known.name == own.name) {
            Some(known) => override_image(known, own),
            None => spec.machine_images.push(own.clone()),
        }
    }
    for own in &child.machine_types {
        match spec.machine_types.iter_mut().find(|known| known.name == own.name) {
            Some(known) => known.clone_from(own),
            None => spec.machine_types.push(own.clone()),
        }
    }
    for own in &child.volume_types {
        match spec.volume_types.iter_mut().find(|known| known.name == own.name) {
            Some(known) => known.clone_from(own),
            None => spec.volume_types.push(own.clone()),
        }
    }
    if let Some(own) = &child.ca_bundle {
        spec.ca_bundle = Some(match &spec.ca_bundle {
            Some(parent) => format!("{parent}{own}"),
            None => own.clone(),
        });
    }
    if let Some(own) = &child.limits {
        let limits = spec.limits.get_or_insert_default();
        if let Some(max_nodes_total) = own.max_nodes_total.filter(|own| *own > 0) {
            limits.max_nodes_total = Some(max_nodes_total);
        }
    }
    default_architectures(&mut spec);
    spec
}

/// A namespaced profile in the form of its parent: with capabilities where the parent defines some, with architectures where it does not.
pub fn in_form_of(parent: &CloudProfileSpec, child: &NamespacedCloudProfileSpec) -> NamespacedCloudProfileSpec {
    let mut spec = child.clone();
    let has_capabilities = !parent.machine_capabilities.is_empty();
    let of_architecture = |name: &str| BTreeMap::from([(ARCHITECTURE.to_owned(), vec![name.to_owned()])]);
    for version in spec.machine_images.iter_mut().flat_map(|image| &mut image.versions) {
        if !has_capabilities {
            if version.architectures.is_empty() {
                let told = version.capability_flavors.iter();
                let told = told.filter_map(|flavor| flavor.capabilities.get(ARCHITECTURE));
                let told: BTreeSet<&String> = told.flatten().collect();
                version.architectures = told.into_iter().cloned().collect();
            }
            version.capability_flavors.clear();
        } else if version.capability_flavors.is_empty() {
            let told = version.architectures.iter();
            version.capability_flavors = told
                .map(|name| MachineImageFlavor {
                    capabilities: of_architecture(name),
                })
                .collect();
        }
    }
    let defined = parent.machine_capabilities.iter().find(|own| own.name == ARCHITECTURE);
    let only = defined.and_then(|own| match own.values.as_slice() {
        [only] => Some(only.as_str()),
        _ => None,
    });
    for own in &mut spec.machine_types {
        if !has_capabilities {
            if own.architecture.is_none() {
                own.architecture = own
                    .capabilities
                    .get(ARCHITECTURE)
                    .and_then(|told| told.first().cloned());
            }
            own.capabilities.clear();
        } else if own.capabilities.is_empty() {
            let told = only.or(own.architecture.as_deref()).unwrap_or(AMD64);
            own.capabilities = of_architecture(told);
        }
    }
    spec
}

/// What has no architecture has that of its capabilities, else amd64.
fn default_architectures(spec: &mut CloudProfileSpec) {
    let defined = spec.machine_capabilities.iter().find(|own| own.name == ARCHITECTURE);
    let defined = defined.map(|own| own.values.clone()).unwrap_or_default();
    let or_default = |mut found: Vec<String>| {
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            found.push(AMD64.to_owned());
        }
        found
    };
    for own in spec.machine_types.iter_mut().filter(|own| own.architecture.is_none()) {
        let told = own.capabilities.get(ARCHITECTURE).cloned();
        let found = or_default(told.unwrap_or_else(|| defined.clone()));
        own.architecture = found.into_iter().next();
    }
    let versions = spec.machine_images.iter_mut().flat_map(|image| &mut image.versions);
    for own in versions.filter(|own| own.architectures.is_empty()) {
        let told = own.capability_flavors.iter().flat_map(|flavor| {
            let told = flavor.capabilities.get(ARCHITECTURE);
            told.cloned().unwrap_or_else(|| defined.clone())
        });
        let told: Vec<String> = told.collect();
        own.architectures = or_default(if told.is_empty() { defined.clone() } else { told });
    }
}

/// Where each version stands in a list. With it a child of m versions is merged into a parent of n in (n + m) log n.
fn places<'v>(versions: impl Iterator<Item = &'v String>) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (place, version) in versions.enumerate() {
        // of two the first counts
        places.entry(version.clone()).or_insert(place);
    }
    places
}

fn override_kubernetes(parent: &mut KubernetesSettings, child: &KubernetesSettings) {
    let places = places(parent.versions.iter().map(|known| &known.version));
    for own in &child.versions {
        let place = places.get(&own.version);
        if let Some(known) = place.and_then(|place| parent.versions.get_mut(*place)) {
            // also by none: nothing else of a version is the child's to tell
            known.expiration_date.clone_from(&own.expiration_date);
        }
    }
}

/// Whether a child's version is one of its own, which the parent came to have later.
fn says_more_than_its_end(own: &MachineImageVersion) -> bool {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    !own.architectures.is_empty()
        || !own.capability_flavors.is_empty()
        || !own.cri.is_empty()
        || is_set(&own.kubelet_version_constraint)
        || is_set(&own.classification)
}

fn override_image(parent: &mut MachineImage, child: &MachineImage) {
    if child.update_strategy.is_some() {
        parent.update_strategy.clone_from(&child.update_strategy);
    }
    let mut places = places(parent.versions.iter().map(|known| &known.version));
    for own in &child.versions {
        let place = *places.entry(own.version.clone()).or_insert(parent.versions.len());
        match parent.versions.get_mut(place) {
            Some(known) if says_more_than_its_end(own) => known.clone_from(own),
            Some(known) => known.expiration_date.clone_from(&own.expiration_date),
            None => parent.versions.push(own.clone()),
        }
    }
}

/// Whether a shoot uses a CloudProfile, by itself or through one of `children` that is made of it.
pub fn uses(shoot: &Shoot, profile: &str, children: &[&NamespacedCloudProfile]) -> bool {
    let Some(reference) = shoot.spec.cloud_profile_reference() else {
        return false;
    };
    if reference.kind != "NamespacedCloudProfile" {
        return reference.name == profile;
    }
    children
        .iter()
        .any(|child| child.spec.parent.name == profile && uses_namespaced(shoot, child))
}

/// Whether a shoot uses a NamespacedCloudProfile.
pub fn uses_namespaced(shoot: &Shoot, profile: &NamespacedCloudProfile) -> bool {
    shoot.spec.cloud_profile_reference().is_some_and(|reference| {
        reference.kind == "NamespacedCloudProfile"
            && profile.metadata.name.as_deref() == Some(&*reference.name)
            && profile.metadata.namespace.as_deref() == Some(shoot.project_namespace())
    })
}

/// The Kubernetes versions that a shoot uses, of its control plane and of pools.
pub fn kubernetes_versions(shoot: &Shoot) -> BTreeSet<&str> {
    let workers = shoot.spec.provider.workers.iter();
    let pinned = workers.filter_map(|worker| worker.kubernetes.as_ref()?.version.as_deref());
    pinned.chain([shoot.spec.kubernetes_version()]).collect()
}

/// The machine images that a shoot uses: name and version.
pub fn machine_images(shoot: &Shoot) -> BTreeSet<(&str, &str)> {
    let workers = shoot.spec.provider.workers.iter();
    let images = workers.filter_map(|worker| worker.machine.image.as_ref());
    images
        .map(|image| (image.name.as_str(), image.version.as_deref().unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_child_takes_the_form_of_its_parent() {
        let parent = |capabilities: serde_json::Value| -> CloudProfileSpec {
            serde_json::from_value(json!({"machineCapabilities": capabilities})).unwrap()
        };
        let child = |version: serde_json::Value, machine: serde_json::Value| -> NamespacedCloudProfileSpec {
            serde_json::from_value(json!({"parent": {"name": "p", "kind": "CloudProfile"},
                "machineImages": [{"name": "os", "versions": [version]}], "machineTypes": [machine]}))
            .unwrap()
        };
        let with = parent(json!([{"name": "architecture", "values": ["amd64", "arm64"]}]));
        let without = parent(json!([]));
        let old = child(
            json!({"version": "1.0.0", "architectures": ["arm64"]}),
            json!({"name": "m", "cpu": "1", "architecture": "arm64"}),
        );
        let new = child(
            json!({"version": "1.0.0", "capabilityFlavors": [{"architecture": ["arm64"], "x": ["y"]}]}),
            json!({"name": "m", "cpu": "1", "capabilities": {"architecture": ["arm64"]}}),
        );
        let told = |spec: &NamespacedCloudProfileSpec| {
            let spec = serde_json::to_value(spec).unwrap();
            let version = &spec["machineImages"][0]["versions"][0];
            let machine = &spec["machineTypes"][0];
            json!([
                version["architectures"],
                version["capabilityFlavors"],
                machine["architecture"],
                machine["capabilities"]
            ])
        };
        let of_arm = json!({"architecture": ["arm64"]});
        assert_eq!(
            told(&in_form_of(&with, &old)),
            json!([["arm64"], [of_arm], "arm64", of_arm])
        );
        assert_eq!(
            told(&in_form_of(&without, &new)),
            json!([["arm64"], null, "arm64", null])
        );
        assert_eq!(in_form_of(&without, &old), old);
        assert_eq!(in_form_of(&with, &new), new);
    }

    #[test]
    fn ver_36_a_child_adds_and_moves_ends_of_life() {
        let parent: CloudProfileSpec = serde_json::from_value(json!({
            "caBundle": "a", "limits": {"maxNodesTotal": 5},
            "kubernetes": {"versions": [{"version": "1.33.1", "classification": "deprecated", "expirationDate": "2026-01-01T00:00:00Z"},
                {"version": "1.34.0"}]},
            "machineImages": [{"name": "os", "updateStrategy": "major", "versions": [{"version": "1.0.0"}]}],
            "machineTypes": [{"name": "small", "cpu": "1"}],
        }))
        .unwrap();
        let child: NamespacedCloudProfileSpec = serde_json::from_value(json!({
            "caBundle": "b", "limits": {"maxNodesTotal": 3},
            "kubernetes": {"versions": [{"version": "1.33.1", "expirationDate": "2026-02-01T00:00:00Z"}]},
            "machineImages": [
                {"name": "os", "updateStrategy": "patch", "versions": [{"version": "1.0.0", "expirationDate": "2026-03-01T00:00:00Z"}, {"version": "1.1.0"}]},
                {"name": "own", "versions": [{"version": "9.0.0"}]},
            ],
            "machineTypes": [{"name": "small", "cpu": "64"}, {"name": "large", "cpu": "8"}],
        }))
        .unwrap();
        let spec = serde_json::to_value(merged(&parent, &child)).unwrap();
        assert_eq!(spec["caBundle"], "ab");
        assert_eq!(spec["limits"]["maxNodesTotal"], 3);
        assert_eq!(
            spec["kubernetes"]["versions"][0],
            json!({"version": "1.33.1", "classification": "deprecated", "expirationDate": "2026-02-01T00:00:00Z"})
        );
        assert_eq!(spec["kubernetes"]["versions"][1], json!({"version": "1.34.0"}));
        let images = &spec["machineImages"];
        assert_eq!(images[0]["updateStrategy"], "patch");
        assert_eq!(images[0]["versions"][0]["expirationDate"], "2026-03-01T00:00:00Z");
        assert_eq!(images[0]["versions"][1]["version"], "1.1.0");
        assert_eq!(images[1]["name"], "own");
        let types = spec["machineTypes"].as_array().unwrap();
        let types: Vec<_> = types.iter().map(|own| (&own["name"], &own["cpu"])).collect();
        assert_eq!(types, [(&json!("small"), &json!("64")), (&json!("large"), &json!("8"))]);
        assert_eq!(spec["machineTypes"][1]["architecture"], "amd64");
        assert_eq!(images[1]["versions"][0]["architectures"], json!(["amd64"]));
    }

    #[test]
    fn ver_36_a_child_tells_nothing_but_the_date_of_its_parents_versions() {
        let parent: CloudProfileSpec = serde_json::from_value(json!({
            "kubernetes": {"versions": [{"version": "1.33.1", "expirationDate": "2026-01-01T00:00:00Z"}]},
            "machineImages": [{"name": "os", "versions": [{"version": "1.0.0", "expirationDate": "2026-01-01T00:00:00Z"}]}],
        }))
        .unwrap();
        let lifecycle = json!([{"classification": "supported"}]);
        let child: NamespacedCloudProfileSpec = serde_json::from_value(json!({
            "kubernetes": {"versions": [{"version": "1.33.1", "lifecycle": lifecycle}, {"version": "1.99.0"}]},
            "machineImages": [{"name": "os", "versions": [{"version": "1.0.0", "lifecycle": lifecycle}]}],
        }))
        .unwrap();
        let spec = serde_json::to_value(merged(&parent, &child)).unwrap();
        assert_eq!(spec["kubernetes"]["versions"], json!([{"version": "1.33.1"}]));
        let image = &spec["machineImages"][0]["versions"][0];
        assert_eq!(
            (&image["lifecycle"], &image["expirationDate"]),
            (&json!(null), &json!(null))
        );
    }

    #[test]
    fn gcm_15_what_a_child_tells_of_a_version_is_its_own() {
        let parent: CloudProfileSpec = serde_json::from_value(json!({
            "limits": {"maxNodesTotal": 5}, "machineCapabilities": [{"name": "architecture", "values": ["amd64", "arm64"]}],
            "machineImages": [{"name": "os", "versions": [
                {"version": "1.0.0", "architectures": ["amd64"], "classification": "supported"},
                {"version": "2.0.0", "capabilityFlavors": [{"architecture": ["arm64"]}]},
            ]}],
            "machineTypes": [{"name": "arm", "capabilities": {"architecture": ["arm64"]}}],
        }))
        .unwrap();
        let child: NamespacedCloudProfileSpec = serde_json::from_value(json!({
            "limits": {"maxNodesTotal": 0},
            "machineImages": [{"name": "os", "versions": [{"version": "1.0.0", "architectures": ["arm64"]}]}],
        }))
        .unwrap();
        let spec = merged(&parent, &child);
        assert_eq!(spec.limits.unwrap().max_nodes_total, Some(5));
        let versions = &spec.machine_images[0].versions;
        assert_eq!(versions[0].architectures, ["arm64"]);
        assert_eq!(versions[0].classification, None);
        assert_eq!(versions[1].architectures, ["arm64"]);
        assert_eq!(spec.machine_types[0].architecture.as_deref(), Some("arm64"));
    }

    #[test]
    fn gcm_14_stages_and_their_next_change() {
        let spec: CloudProfileSpec = serde_json::from_value(json!({
            "kubernetes": {"versions": [
                {"version": "1.34.0"},
                {"version": "1.33.0", "classification": "deprecated", "expirationDate": "2026-03-01T00:00:00Z"},
                {"version": "1.32.0", "expirationDate": "2026-01-01T00:00:00Z"},
                {"version": "1.35.0", "lifecycle": [
                    {"classification": "preview", "startTime": "2026-02-15T00:00:00Z"},
                    {"classification": "supported", "startTime": "2026-04-01T00:00:00Z"}]},
            ]},
            "machineImages": [{"name": "os", "versions": [
                {"version": "1.0.0", "classification": "preview", "expirationDate": "2026-02-10T00:00:00Z"}]}],
        }))
        .unwrap();
        let told = |now: &str| {
            let status = status(&spec, now.parse().unwrap());
            let kubernetes = status.kubernetes.unwrap().versions.into_iter();
            let images = status.machine_images.into_iter().flat_map(|image| image.versions);
            kubernetes
                .chain(images)
                .map(|own| own.classification)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let next = |now: &str| next_transition(&spec, now.parse().unwrap()).map(|time| time.to_string());
        for (now, expected, turn) in [
            (
                "2026-02-01T00:00:00Z",
                "supported deprecated expired unavailable preview",
                Some("2026-02-10T00:00:00Z"),
            ),
            (
                "2026-02-10T00:00:00Z",
                "supported deprecated expired unavailable expired",
                Some("2026-02-15T00:00:00Z"),
            ),
            (
                "2026-02-20T00:00:00Z",
                "supported deprecated expired preview expired",
                Some("2026-03-01T00:00:00Z"),
            ),
            (
                "2026-03-10T00:00:00Z",
                "supported expired expired preview expired",
                Some("2026-04-01T00:00:00Z"),
            ),
            (
                "2026-05-01T00:00:00Z",
                "supported expired expired supported expired",
                None,
            ),
        ] {
            assert_eq!((told(now).as_str(), next(now).as_deref()), (expected, turn), "{now}");
        }
        assert_eq!(
            status(&CloudProfileSpec::default(), Timestamp::UNIX_EPOCH),
            CloudProfileStatus::default()
        );
    }

    #[test]
    fn ver_33_who_uses_a_profile() {
        let shoot = |reference: serde_json::Value| -> Shoot {
            serde_json::from_value(json!({
                "metadata": {"name": "one", "namespace": "garden-dev"}, "spec": {"cloudProfile": reference},
            }))
            .unwrap()
        };
        let child: NamespacedCloudProfile = serde_json::from_value(json!({
            "metadata": {"name": "own", "namespace": "garden-dev"}, "spec": {"parent": {"kind": "CloudProfile", "name": "cp"}},
        }))
        .unwrap();
        for (kind, name, expected) in [
            ("CloudProfile", "cp", true),
            ("NamespacedCloudProfile", "own", true),
            ("NamespacedCloudProfile", "other", false),
            ("CloudProfile", "other", false),
        ] {
            let shoot = shoot(json!({"kind": kind, "name": name}));
            assert_eq!(uses(&shoot, "cp", &[&child]), expected, "{kind} {name}");
        }
    }
}
