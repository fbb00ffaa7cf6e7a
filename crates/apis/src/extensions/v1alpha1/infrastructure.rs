//! Types of `extensions.gardener.cloud`: the `Infrastructure` kind and what only it uses.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `Infrastructure` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Infrastructure {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Infrastructure>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Infrastructure>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: InfrastructureSpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: InfrastructureStatus,
}

crate::resource!(
    Infrastructure,
    "extensions.gardener.cloud",
    "v1alpha1",
    "infrastructures",
    Namespaced
);

/// `InfrastructureSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub secret_ref: k8s_openapi::api::core::v1::SecretReference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<ByteString>,
    #[serde(default)]
    pub r#type: String,
}

/// `InfrastructureStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(
        rename = "egressCIDRs",
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub egress_cidrs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<crate::core::v1beta1::LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<crate::core::v1beta1::LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<InfrastructureStatusNetworking>,
    #[serde(rename = "nodesCIDR", default, skip_serializing_if = "Option::is_none")]
    pub nodes_cidr: Option<String>,
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

/// `InfrastructureStatusNetworking`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatusNetworking {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub nodes: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pods: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub services: Vec<String>,
}
