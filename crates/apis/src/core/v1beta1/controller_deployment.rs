//! Types of `core.gardener.cloud`: the `ControllerDeployment` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `ControllerDeployment` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerDeployment {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ControllerDeployment>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ControllerDeployment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inject_garden_kubeconfig: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider_config: serde_json::Value,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

crate::resource!(
    ControllerDeployment,
    "core.gardener.cloud",
    "v1beta1",
    "controllerdeployments",
    Cluster
);
