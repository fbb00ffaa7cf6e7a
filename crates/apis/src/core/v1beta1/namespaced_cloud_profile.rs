//! Types of `core.gardener.cloud`: the `NamespacedCloudProfile` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod defaults;
mod validation;

pub use defaults::*;
pub use validation::*;

/// The `NamespacedCloudProfile` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedCloudProfile {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<NamespacedCloudProfile>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<NamespacedCloudProfile>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: NamespacedCloudProfileSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: NamespacedCloudProfileStatus,
}

crate::resource!(
    NamespacedCloudProfile,
    "core.gardener.cloud",
    "v1beta1",
    "namespacedcloudprofiles",
    Namespaced
);

/// `NamespacedCloudProfileSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedCloudProfileSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub machine_images: Vec<MachineImage>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub machine_types: Vec<MachineType>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub parent: CloudProfileReference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub volume_types: Vec<VolumeType>,
}

/// `NamespacedCloudProfileStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedCloudProfileStatus {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub cloud_profile_spec: CloudProfileSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
