//! Types of `extensions.gardener.cloud`: the `SelfHostedShootExposure` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `SelfHostedShootExposure` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposure {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<SelfHostedShootExposure>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<SelfHostedShootExposure>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: SelfHostedShootExposureSpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: SelfHostedShootExposureStatus,
}

crate::resource!(
    SelfHostedShootExposure,
    "extensions.gardener.cloud",
    "v1alpha1",
    "selfhostedshootexposures",
    Namespaced
);

/// `SelfHostedShootExposureSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<SelfHostedShootExposureCredentialsRef>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub endpoints: Vec<SelfHostedShootExposureEndpoint>,
    #[serde(default)]
    pub port: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default)]
    pub r#type: String,
}

/// `SelfHostedShootExposureCredentialsRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureCredentialsRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// `SelfHostedShootExposureEndpoint`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureEndpoint {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub addresses: Vec<SelfHostedShootExposureEndpointAddresse>,
    #[serde(default)]
    pub node_name: String,
}

/// `SelfHostedShootExposureEndpointAddresse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureEndpointAddresse {
    #[serde(default)]
    pub address: String,
    #[serde(default)]
    pub r#type: String,
}

/// `SelfHostedShootExposureStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ingress: Vec<SelfHostedShootExposureStatusIngre>,
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

/// `SelfHostedShootExposureStatusIngre`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureStatusIngre {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_mode: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ports: Vec<SelfHostedShootExposureStatusIngrePort>,
}

/// `SelfHostedShootExposureStatusIngrePort`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureStatusIngrePort {
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub port: i32,
    #[serde(default)]
    pub protocol: String,
}
