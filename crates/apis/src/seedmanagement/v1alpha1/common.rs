//! Types of `seedmanagement.gardener.cloud` that several kinds share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `GardenletConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<GardenletDeployment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_with_parent: Option<bool>,
}

/// `GardenletDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenletDeployment {
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
    pub enable_health_probes: Option<bool>,
    /// `EnvVar`s as Go writes them: nothing here looks into them.
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub env: Vec<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
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

/// `Image`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// `ManagedSeedSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSeedSpec {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub gardenlet: GardenletConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shoot: Option<Shoot>,
}

/// `Shoot`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shoot {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

mod gardenlet_config;

pub use gardenlet_config::*;
