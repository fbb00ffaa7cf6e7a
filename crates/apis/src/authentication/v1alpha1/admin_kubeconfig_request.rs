//! Types of `authentication.gardener.cloud`: the `AdminKubeconfigRequest` kind and what only it uses.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

/// The `AdminKubeconfigRequest` kind of `authentication.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminKubeconfigRequest {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<AdminKubeconfigRequest>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<AdminKubeconfigRequest>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: AdminKubeconfigRequestSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: AdminKubeconfigRequestStatus,
}

crate::resource!(
    AdminKubeconfigRequest,
    "authentication.gardener.cloud",
    "v1alpha1",
    "adminkubeconfigrequests",
    Namespaced
);

/// `AdminKubeconfigRequestSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminKubeconfigRequestSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
}

/// `AdminKubeconfigRequestStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminKubeconfigRequestStatus {
    #[serde(default)]
    pub expiration_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubeconfig: ByteString,
}
