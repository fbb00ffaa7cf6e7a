//! Types of `extensions.gardener.cloud`: the `Cluster` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `Cluster` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Cluster>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Cluster>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ClusterSpec,
}

crate::resource!(Cluster, "extensions.gardener.cloud", "v1alpha1", "clusters", Cluster);

/// `ClusterSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    #[serde(default)]
    pub cloud_profile: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<serde_json::Value>,
    #[serde(default)]
    pub shoot: serde_json::Value,
}
