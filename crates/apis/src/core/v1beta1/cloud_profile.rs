//! Types of `core.gardener.cloud`: the `CloudProfile` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::*;
use crate::Duration;

mod capabilities;
mod defaults;
mod stage;
mod validation;

pub use capabilities::*;
pub use defaults::*;
pub use stage::Stage;
pub use validation::*;

/// The `CloudProfile` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfile {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<CloudProfile>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<CloudProfile>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: CloudProfileSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: CloudProfileStatus,
}

crate::resource!(CloudProfile, "core.gardener.cloud", "v1beta1", "cloudprofiles", Cluster);

/// `AvailabilityZone`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AvailabilityZone {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unavailable_machine_types: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unavailable_volume_types: Vec<String>,
}

/// `Bastion`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bastion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_image: Option<BastionMachineImage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_type: Option<BastionMachineType>,
}

/// `BastionMachineImage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BastionMachineImage {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `BastionMachineType`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BastionMachineType {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `CapabilityDefinition`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityDefinition {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub values: Vec<String>,
}

/// `CloudProfileControlPlane`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileControlPlane {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_zone_pinning: Option<bool>,
}

/// `CloudProfileMachineControllerManagerSettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileMachineControllerManagerSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_creation_timeout: Option<Duration>,
}

/// `CloudProfileSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<CloudProfileControlPlane>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubernetes: KubernetesSettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub machine_capabilities: Vec<CapabilityDefinition>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        serialize_with = "crate::wire::empty_as_null"
    )]
    pub machine_images: Vec<MachineImage>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        serialize_with = "crate::wire::empty_as_null"
    )]
    pub machine_types: Vec<MachineType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        serialize_with = "crate::wire::empty_as_null"
    )]
    pub regions: Vec<Region>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_selector: Option<SeedSelector>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub volume_types: Vec<VolumeType>,
}

/// `CloudProfileStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesStatus>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub machine_images: Vec<MachineImageStatus>,
}

/// `ExpirableVersion`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpirableVersion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_date: Option<Time>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub lifecycle: Vec<LifecycleStage>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub version: String,
}

/// `ExpirableVersionStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpirableVersionStatus {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub classification: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub version: String,
}

/// `InPlaceUpdates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdates {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_version_for_update: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub supported: bool,
}

/// `KubernetesSettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesSettings {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub versions: Vec<ExpirableVersion>,
}

/// `KubernetesStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub versions: Vec<ExpirableVersionStatus>,
}

/// `LifecycleStage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStage {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub classification: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
}

/// `Limits`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes_total: Option<i32>,
}

/// `MachineImage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineImage {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub versions: Vec<MachineImageVersion>,
}

/// `MachineImageFlavor`: an object whose members are the capabilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineImageFlavor {
    #[serde(deserialize_with = "crate::wire::texts_by_name")]
    pub capabilities: BTreeMap<String, Vec<String>>,
}

/// `MachineImageStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineImageStatus {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub versions: Vec<ExpirableVersionStatus>,
}

/// `MachineImageVersion`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineImageVersion {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub architectures: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub capability_flavors: Vec<MachineImageFlavor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cri: Vec<CRI>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_date: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_updates: Option<InPlaceUpdates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_version_constraint: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub lifecycle: Vec<LifecycleStage>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub version: String,
}

/// `MachineType`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineType {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::texts_by_name",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub capabilities: BTreeMap<String, Vec<String>>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub cpu: Quantity,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub gpu: Quantity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_controller_manager: Option<CloudProfileMachineControllerManagerSettings>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub memory: Quantity,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<MachineTypeStorage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<bool>,
}

/// `MachineTypeStorage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineTypeStorage {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_size: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `Region`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub access_restrictions: Vec<AccessRestriction>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<AvailabilityZone>,
}

/// `VolumeType`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeType {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_size: Option<Quantity>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<bool>,
}
