//! Types of `seedmanagement.gardener.cloud`: the `Gardenlet` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `Gardenlet` kind of `seedmanagement.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gardenlet {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Gardenlet>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Gardenlet>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: GardenletSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: GardenletStatus,
}

crate::resource!(
    Gardenlet,
    "seedmanagement.gardener.cloud",
    "v1alpha1",
    "gardenlets",
    Namespaced
);

/// `GardenletHelm`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletHelm {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub oci_repository: crate::core::v1::OCIRepository,
}

/// `GardenletSelfDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletSelfDeployment {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_volume_mounts: Vec<k8s_openapi::api::core::v1::VolumeMount>,
    /// `Volume`s as Go writes them: nothing here looks into them.
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_volumes: Vec<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_image_vector_overwrite: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_health_probes: Option<bool>,
    /// `EnvVar`s as Go writes them: nothing here looks into them.
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub env: Vec<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub helm: GardenletHelm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_vector_overwrite: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub pod_annotations: BTreeMap<String, String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub pod_labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_count: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<k8s_openapi::api::core::v1::ResourceRequirements>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
}

/// `GardenletSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub deployment: GardenletSelfDeployment,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::local_reference"
    )]
    pub kubeconfig_secret_ref: Option<k8s_openapi::api::core::v1::LocalObjectReference>,
}

/// `GardenletStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
