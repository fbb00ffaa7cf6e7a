//! Types of `extensions.gardener.cloud`: the `ControlPlane` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `ControlPlane` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ControlPlane>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ControlPlane>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ControlPlaneSpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: ControlPlaneStatus,
}

crate::resource!(
    ControlPlane,
    "extensions.gardener.cloud",
    "v1alpha1",
    "controlplanes",
    Namespaced
);

/// `ControlPlaneSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provider_status: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub secret_ref: k8s_openapi::api::core::v1::SecretReference,
    #[serde(default)]
    pub r#type: String,
}

/// `ControlPlaneStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<crate::core::v1beta1::LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<crate::core::v1beta1::LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<serde_json::Value>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<crate::core::v1beta1::NamedResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<serde_json::Value>,
}
