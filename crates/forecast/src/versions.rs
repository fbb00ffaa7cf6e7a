//! Which versions cloud profiles list, where those stand in their lives, and how many shoots use each.

use gardener_apis::core::v1beta1::{CloudProfileSpec, LifecycleStage, Shoot};
use gardener_rules::cloud_profiles::{kubernetes_versions, machine_images, uses, uses_namespaced};
use gardener_rules::versions::compare_normalised;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::Inventory;

/// A stage that a version comes into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// `preview`, `supported`, `deprecated`, `expired`.
    pub classification: String,
    /// Since when, or from when.
    pub from: Timestamp,
}

/// A version that a profile lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `Kubernetes`, or the name of the machine image.
    pub of: String,
    /// The version.
    pub version: String,
    /// Where it stands now: `unavailable`, `preview`, `supported`, `deprecated` or `expired`.
    pub classification: String,
    /// When it expires, or expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The stages that are still to come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Stage>,
    /// How many shoots use it; those in deletion do not count.
    pub shoots: usize,
}

/// A cloud profile and its versions, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// `CloudProfile` or `NamespacedCloudProfile`.
    pub kind: String,
    /// Namespace of a NamespacedCloudProfile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// Kubernetes versions, then those of each machine image.
    pub versions: Vec<Version>,
}

/// Lists all profiles of an inventory. A CloudProfile's versions are also used by the shoots of NamespacedCloudProfiles that are made of it, as
/// they could not be taken away.
pub fn list(inventory: &Inventory, now: Timestamp) -> Vec<Profile> {
    let children: Vec<_> = inventory.namespaced_cloud_profiles.iter().collect();
    let alive = || inventory.shoots.iter().filter(|shoot| !shoot.in_deletion());
    let mut profiles = Vec::new();
    for own in &inventory.cloud_profiles {
        let name = own.metadata.name.clone().unwrap_or_default();
        let users: Vec<&Shoot> = alive().filter(|shoot| uses(shoot, &name, &children)).collect();
        profiles.push(Profile {
            kind: "CloudProfile".to_owned(),
            namespace: None,
            versions: versions(&own.spec, &users, now),
            name,
        });
    }
    for own in &inventory.namespaced_cloud_profiles {
        let users: Vec<&Shoot> = alive().filter(|shoot| uses_namespaced(shoot, own)).collect();
        profiles.push(Profile {
            kind: "NamespacedCloudProfile".to_owned(),
            namespace: own.metadata.namespace.clone(),
            name: own.metadata.name.clone().unwrap_or_default(),
            versions: versions(&own.status.cloud_profile_spec, &users, now),
        });
    }
    profiles
}

fn versions(spec: &CloudProfileSpec, users: &[&Shoot], now: Timestamp) -> Vec<Version> {
    let count = |uses: &dyn Fn(&Shoot) -> bool| users.iter().filter(|shoot| uses(shoot)).count();
    let kubernetes = spec.kubernetes.versions.iter().map(|own| {
        let life = life(&own.expiration_date, &own.lifecycle, now);
        Version {
            of: "Kubernetes".to_owned(),
            version: own.version.clone(),
            classification: own.stage(now).as_str().to_owned(),
            expires: life.0,
            next: life.1,
            shoots: count(&|shoot| kubernetes_versions(shoot).contains(&*own.version)),
        }
    });
    let mut found = newest_first(kubernetes.collect());
    for image in &spec.machine_images {
        let versions = image.versions.iter().map(|own| {
            let life = life(&own.expiration_date, &own.lifecycle, now);
            Version {
                of: image.name.clone(),
                version: own.version.clone(),
                classification: own.stage(now).as_str().to_owned(),
                expires: life.0,
                next: life.1,
                shoots: count(&|shoot| machine_images(shoot).contains(&(&*image.name, &*own.version))),
            }
        });
        found.extend(newest_first(versions.collect()));
    }
    found
}

fn newest_first(mut versions: Vec<Version>) -> Vec<Version> {
    versions.sort_by(|one, other| {
        let newer = compare_normalised(&other.version, &one.version);
        newer.unwrap_or_else(|| other.version.cmp(&one.version))
    });
    versions
}

/// When a version expires, and the stages that are to come.
fn life(date: &Option<Time>, lifecycle: &[LifecycleStage], now: Timestamp) -> (Option<Timestamp>, Vec<Stage>) {
    let stage = |classification: &str, from: Timestamp| Stage {
        classification: classification.to_owned(),
        from,
    };
    let stages: Vec<Stage> = match lifecycle.is_empty() {
        true => date.iter().map(|date| stage("expired", date.0)).collect(),
        false => lifecycle
            .iter()
            .filter_map(|own| Some(stage(&own.classification, own.start_time.as_ref()?.0)))
            .collect(),
    };
    let end = stages.iter().find(|stage| stage.classification == "expired");
    let end = end.map(|stage| stage.from);
    (end, stages.into_iter().filter(|stage| stage.from > now).collect())
}
