//! Types of `security.gardener.cloud` that several kinds share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

/// `ContextObject`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextObject {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub api_version: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub uid: String,
}

/// `TokenRequest`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: TokenRequestSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: TokenRequestStatus,
}

/// `TokenRequestSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequestSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_object: Option<ContextObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
}

/// `TokenRequestStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequestStatus {
    #[serde(default)]
    pub expiration_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub token: String,
}
