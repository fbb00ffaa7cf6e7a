//! Cloud profiles as a whole: what a namespaced one makes of its parent [VER-36], and who uses which version of one [VER-33].

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{
    CloudProfileSpec, KubernetesSettings, LifecycleStage, Limits, MachineImage, NamespacedCloudProfile,
    NamespacedCloudProfileSpec, Shoot,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What a namespaced profile makes together with its parent. Of versions that the parent has, only the end of life is the child's; what else
/// the child has is added. The parent's provider config stays: what to do about a child's is known to the provider's extension alone.
pub fn merged(parent: &CloudProfileSpec, child: &NamespacedCloudProfileSpec) -> CloudProfileSpec {
    let mut spec = parent.clone();
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
        if !spec.machine_types.iter().any(|known| known.name == own.name) {
            let mut own = own.clone();
            if spec.machine_capabilities.is_empty() {
                own.architecture.get_or_insert_with(|| "amd64".to_owned());
            }
            spec.machine_types.push(own);
        }
    }
    for own in &child.volume_types {
        if !spec.volume_types.iter().any(|known| known.name == own.name) {
            spec.volume_types.push(own.clone());
        }
    }
    if let Some(own) = &child.ca_bundle {
        spec.ca_bundle = Some(match &spec.ca_bundle {
            Some(parent) => format!("{parent}\n{own}"),
            None => own.clone(),
        });
    }
    if let Some(max_nodes_total) = child.limits.as_ref().and_then(|own| own.max_nodes_total) {
        spec.limits = Some(Limits {
            max_nodes_total: Some(max_nodes_total),
        });
    }
    spec
}

fn override_kubernetes(parent: &mut KubernetesSettings, child: &KubernetesSettings) {
    for own in &child.versions {
        if let Some(known) = parent.versions.iter_mut().find(|known| known.version == own.version) {
            override_end(
                (&mut known.expiration_date, &mut known.lifecycle),
                (&own.expiration_date, &own.lifecycle),
            );
        }
    }
}

/// The child's lifecycle replaces the parent's; an expiration date replaces the parent's date, or the end of its lifecycle.
fn override_end(
    (date, lifecycle): (&mut Option<Time>, &mut Vec<LifecycleStage>),
    (own_date, own_lifecycle): (&Option<Time>, &[LifecycleStage]),
) {
    if !own_lifecycle.is_empty() {
        *lifecycle = own_lifecycle.to_vec();
        return;
    }
    if own_date.is_none() {
        return;
    }
    if lifecycle.is_empty() {
        date.clone_from(own_date);
        return;
    }
    lifecycle.retain(|stage| stage.classification != "expired");
    lifecycle.push(LifecycleStage {
        classification: "expired".to_owned(),
        start_time: own_date.clone(),
    });
}

fn override_image(parent: &mut MachineImage, child: &MachineImage) {
    if child.update_strategy.is_some() {
        parent.update_strategy.clone_from(&child.update_strategy);
    }
    for own in &child.versions {
        match parent.versions.iter_mut().find(|known| known.version == own.version) {
            Some(known) => override_end(
                (&mut known.expiration_date, &mut known.lifecycle),
                (&own.expiration_date, &own.lifecycle),
            ),
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
        assert_eq!(spec["caBundle"], "a\nb");
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
        assert_eq!(types, [(&json!("small"), &json!("1")), (&json!("large"), &json!("8"))]);
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
