//! Cloud profiles keep what is used, [ADM-55], [VER-33].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::Attributes;
use gardener_rules::cloud_profiles::uses;

use super::namespaced_cloud_profiles::keeps_what_is_used;
use super::{errors_occurred, typed, typed_old};
use crate::lookup;

/// Checks a change of a profile, as a part of ResourceReferenceManager. Who goes says nothing any more.
pub(super) fn check(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    if let (Some(new), Some(old)) = (
        typed::<NamespacedCloudProfile>(attributes),
        typed_old::<NamespacedCloudProfile>(attributes),
    ) {
        return match new.metadata.deletion_timestamp {
            Some(_) => Ok(()),
            None => keeps_what_is_used(attributes, &new, &old),
        };
    }
    let (Some(new), Some(old)) = (typed::<CloudProfile>(attributes), typed_old::<CloudProfile>(attributes)) else {
        return Ok(());
    };
    if new.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let mut removed = Removed::of(&new.spec, &old.spec);
    let added = added_images(&new.spec, &old.spec);
    let limits = (new.spec.limits != old.spec.limits)
        .then_some(new.spec.limits.as_ref())
        .flatten();
    if removed.is_nothing() && added.is_empty() && limits.is_none() {
        return Ok(());
    }
    let lister = attributes.context.lister;
    let name = attributes.name;
    let mut children = lookup::list::<NamespacedCloudProfile>(lister, None);
    children.retain(|child| child.spec.parent.name == name && child.metadata.deletion_timestamp.is_none());
    // a profile may go back to architectures alone, whatever else of capabilities goes
    if children
        .iter()
        .flat_map(capabilities)
        .all(|(name, _)| name == "architecture")
    {
        removed.capabilities.clear();
    }
    let mut users = lookup::list::<Shoot>(lister, None);
    let made_of_it: Vec<&NamespacedCloudProfile> = children.iter().collect();
    users.retain(|shoot| !shoot.in_deletion() && uses(shoot, name, &made_of_it));
    let mut found: Vec<String> = users.iter().flat_map(|shoot| removed.by_shoot(shoot, name)).collect();
    found.extend(users.iter().filter_map(|shoot| over_limit(shoot, limits)));
    for child in &children {
        found.extend(removed.by_child(child, name));
        let own = child
            .spec
            .machine_images
            .iter()
            .filter(|image| added.contains(&image.name.as_str()));
        found.extend(own.map(|image| {
                format!(
                    "unable to add MachineImage {:?} to CloudProfile {name:?} - MachineImage is already defined by NamespacedCloudProfile {:?}",
                    image.name,
                    named(child)
                )
            }));
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(&errors_occurred(&found))),
    }
}

/// The images of which the old profile had no version.
fn added_images<'a>(new: &'a CloudProfileSpec, old: &CloudProfileSpec) -> Vec<&'a str> {
    let known = |image: &&MachineImage| old.machine_images.iter().any(|own| own.name == image.name);
    let added = new.machine_images.iter().filter(|image| !known(image));
    added.map(|image| image.name.as_str()).collect()
}

/// What is said of a shoot that needs more nodes than limits allow [ADM-55].
pub(super) fn over_limit(shoot: &Shoot, limits: Option<&Limits>) -> Option<String> {
    let limit = limits?.max_nodes_total?;
    let workers = shoot.spec.provider.workers.iter();
    let least: i64 = workers.map(|worker| i64::from(worker.minimum)).sum();
    (least > i64::from(limit)).then(|| {
        format!(
            "the total minimum node count of all worker pools of shoot \"{}/{}\" must not exceed the limit of {limit} total nodes configured in the cloud profile",
            shoot.project_namespace(),
            shoot.own_name()
        )
    })
}

/// The values of capabilities that a change takes away, by name.
fn removed_capabilities(new: &CloudProfileSpec, old: &CloudProfileSpec) -> BTreeMap<String, BTreeSet<String>> {
    let defined = |spec: &CloudProfileSpec| -> BTreeMap<String, BTreeSet<String>> {
        let definitions = spec.machine_capabilities.iter();
        definitions
            .map(|own| (own.name.clone(), own.values.iter().cloned().collect()))
            .collect()
    };
    let kept = defined(new);
    let mut removed = defined(old);
    removed.retain(|name, values| {
        let Some(kept) = kept.get(name) else { return true };
        values.retain(|value| !kept.contains(value));
        !values.is_empty()
    });
    removed
}

fn named(child: &NamespacedCloudProfile) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    format!("{}/{}", text(&child.metadata.namespace), text(&child.metadata.name))
}

/// The capabilities that a namespaced profile gives its images and machines.
fn capabilities(child: &NamespacedCloudProfile) -> impl Iterator<Item = (&String, &Vec<String>)> {
    let versions = child.spec.machine_images.iter().flat_map(|image| &image.versions);
    let flavors = versions.flat_map(|version| &version.capability_flavors);
    let of_images = flavors.flat_map(|flavor| &flavor.capabilities);
    let of_machines = child
        .spec
        .machine_types
        .iter()
        .flat_map(|machine| &machine.capabilities);
    of_images.chain(of_machines)
}

/// What a change takes away: Kubernetes versions, images, versions of images, and values of capabilities.
struct Removed {
    kubernetes: BTreeSet<String>,
    images: BTreeSet<String>,
    versions: BTreeSet<(String, String)>,
    capabilities: BTreeMap<String, BTreeSet<String>>,
}

impl Removed {
    fn of(new: &CloudProfileSpec, old: &CloudProfileSpec) -> Self {
        let kubernetes = |spec: &CloudProfileSpec| -> BTreeSet<String> {
            let versions = spec.kubernetes.versions.iter();
            versions.map(|version| version.version.clone()).collect()
        };
        let images = |spec: &CloudProfileSpec| -> BTreeSet<(String, String)> {
            let versions = |image: &MachineImage| -> Vec<(String, String)> {
                let versions = image.versions.iter();
                versions
                    .map(|version| (image.name.clone(), version.version.clone()))
                    .collect()
            };
            spec.machine_images.iter().flat_map(versions).collect()
        };
        let names = |spec: &CloudProfileSpec| -> BTreeSet<String> {
            spec.machine_images.iter().map(|image| image.name.clone()).collect()
        };
        Self {
            kubernetes: &kubernetes(old) - &kubernetes(new),
            images: &names(old) - &names(new),
            versions: &images(old) - &images(new),
            capabilities: removed_capabilities(new, old),
        }
    }

    fn is_nothing(&self) -> bool {
        self.kubernetes.is_empty() && self.images.is_empty() && self.versions.is_empty() && self.capabilities.is_empty()
    }

    fn kubernetes_is_used(&self, version: &str, profile: &str, by: &str) -> Option<String> {
        self.kubernetes.contains(version).then(|| {
            format!(
                "unable to delete Kubernetes version {version:?} from CloudProfile {profile:?} - version is still in use by {by}"
            )
        })
    }

    fn image_is_used(&self, name: &str, version: &str, profile: &str, what: &str, by: &str) -> Option<String> {
        let removed = self.versions.contains(&(name.to_owned(), version.to_owned()));
        removed.then(|| {
            format!(
                "unable to delete {what} version '{name}/{version}' from CloudProfile {profile:?} - version is still in use by {by}"
            )
        })
    }

    /// What a shoot needs of it. Pools' own Kubernetes versions count, too.
    fn by_shoot(&self, shoot: &Shoot, profile: &str) -> Vec<String> {
        let by = format!("shoot '{}/{}'", shoot.project_namespace(), shoot.own_name());
        let mut found = Vec::new();
        found.extend(self.kubernetes_is_used(shoot.spec.kubernetes_version(), profile, &by));
        for worker in &shoot.spec.provider.workers {
            let by = format!("{by} by worker {:?}", worker.name);
            if let Some(own) = worker.kubernetes.as_ref().and_then(|own| own.version.as_deref()) {
                found.extend(self.kubernetes_is_used(own, profile, &by));
            }
            if let Some(image) = &worker.machine.image {
                let version = image.version.as_deref().unwrap_or_default();
                found.extend(self.image_is_used(&image.name, version, profile, "Machine image", &by));
            }
        }
        found
    }

    /// What a namespaced profile says about it.
    fn by_child(&self, child: &NamespacedCloudProfile, profile: &str) -> Vec<String> {
        let by = format!("NamespacedCloudProfile '{}'", named(child));
        let mut found = Vec::new();
        for version in child.spec.kubernetes.iter().flat_map(|own| &own.versions) {
            found.extend(self.kubernetes_is_used(&version.version, profile, &by));
        }
        for image in &child.spec.machine_images {
            if self.images.contains(&image.name) {
                found.push(format!(
                    "unable to delete MachineImage {:?} from CloudProfile {profile:?} - MachineImage is still in use by NamespacedCloudProfile {:?}",
                    image.name,
                    named(child)
                ));
            }
            for version in &image.versions {
                found.extend(self.image_is_used(&image.name, &version.version, profile, "MachineImage", &by));
            }
        }
        for (name, values) in &self.capabilities {
            let used: BTreeSet<&String> = capabilities(child)
                .filter(|(own, _)| *own == name)
                .flat_map(|(_, used)| used)
                .filter(|value| values.contains(*value))
                .collect();
            if !used.is_empty() {
                let used: Vec<&str> = used.into_iter().map(String::as_str).collect();
                found.push(format!(
                    "unable to delete MachineCapability {name:?} with values [{}] from CloudProfile {profile:?} - capability values are still in use by {by}",
                    used.join(" ")
                ));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn ver_33_what_is_used_stays() {
        let spec = |versions: &[&str], images: &[&str]| -> CloudProfileSpec {
            let listed = |list: &[&str]| -> Vec<_> { list.iter().map(|version| json!({"version": version})).collect() };
            serde_json::from_value(json!({
                "kubernetes": {"versions": listed(versions)},
                "machineImages": [{"name": "os", "versions": listed(images)}],
            }))
            .unwrap()
        };
        let old = spec(&["1.33.5", "1.33.4", "1.32.1"], &["1.0.0", "2.0.0"]);
        let removed = Removed::of(&spec(&["1.33.4"], &["2.0.0"]), &old);
        let shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "one", "namespace": "garden-dev"},
            "spec": {"cloudProfileName": "cp", "kubernetes": {"version": "1.33.5"}, "provider": {"type": "x", "workers": [
                {"name": "w", "kubernetes": {"version": "1.32.1"}, "machine": {"type": "m", "image": {"name": "os", "version": "1.0.0"}}},
            ]}},
        }))
        .unwrap();
        let start = |what: &str| {
            format!(
                "unable to delete {what} from CloudProfile \"cp\" - version is still in use by shoot 'garden-dev/one'"
            )
        };
        assert_eq!(
            removed.by_shoot(&shoot, "cp"),
            [
                start("Kubernetes version \"1.33.5\""),
                format!("{} by worker \"w\"", start("Kubernetes version \"1.32.1\"")),
                format!("{} by worker \"w\"", start("Machine image version 'os/1.0.0'")),
            ]
        );
        assert!(Removed::of(&old, &old).is_nothing());
    }

    #[test]
    fn what_children_use_stays() {
        let profile = |images: Value, capabilities: Value| -> CloudProfileSpec {
            serde_json::from_value(json!({"machineImages": images, "machineCapabilities": capabilities})).unwrap()
        };
        let image = |name: &str, versions: &[&str]| {
            let versions: Vec<Value> = versions.iter().map(|version| json!({"version": version})).collect();
            json!({"name": name, "versions": versions})
        };
        let capability = |name: &str, values: &[&str]| json!({"name": name, "values": values});
        let old = profile(
            json!([image("os", &["1.0.0", "2.0.0"]), image("flat", &["11.9.0"])]),
            json!([
                capability("architecture", &["amd64", "arm64"]),
                capability("gpu", &["none", "two", "four"])
            ]),
        );
        let new = profile(
            json!([image("os", &["2.0.0"])]),
            json!([capability("architecture", &["amd64"]), capability("gpu", &["none"])]),
        );
        let child: NamespacedCloudProfile = serde_json::from_value(json!({
            "metadata": {"name": "own", "namespace": "garden-dev"},
            "spec": {"parent": {"kind": "CloudProfile", "name": "cp"},
                "machineImages": [image("flat", &["11.9.0"]), {"name": "os", "versions": [
                    {"version": "1.0.0", "capabilityFlavors": [{"gpu": ["four", "none"]}]},
                ]}],
                "machineTypes": [{"name": "m", "capabilities": {"gpu": ["two"], "architecture": ["amd64"]}}]},
        }))
        .unwrap();
        let why = "is still in use by NamespacedCloudProfile";
        assert_eq!(
            Removed::of(&new, &old).by_child(&child, "cp"),
            [
                format!("unable to delete MachineImage \"flat\" from CloudProfile \"cp\" - MachineImage {why} \"garden-dev/own\""),
                format!("unable to delete MachineImage version 'flat/11.9.0' from CloudProfile \"cp\" - version {why} 'garden-dev/own'"),
                format!("unable to delete MachineImage version 'os/1.0.0' from CloudProfile \"cp\" - version {why} 'garden-dev/own'"),
                "unable to delete MachineCapability \"gpu\" with values [four two] from CloudProfile \"cp\" - capability values are still in use by NamespacedCloudProfile 'garden-dev/own'".to_owned(),
            ]
        );
    }
}
