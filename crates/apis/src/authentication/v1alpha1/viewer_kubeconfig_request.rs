//! Types of `authentication.gardener.cloud`: the `ViewerKubeconfigRequest` kind and what only it uses.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

/// The `ViewerKubeconfigRequest` kind of `authentication.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewerKubeconfigRequest {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ViewerKubeconfigRequest>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ViewerKubeconfigRequest>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ViewerKubeconfigRequestSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: ViewerKubeconfigRequestStatus,
}

crate::resource!(
    ViewerKubeconfigRequest,
    "authentication.gardener.cloud",
    "v1alpha1",
    "viewerkubeconfigrequests",
    Namespaced
);

/// `ViewerKubeconfigRequestSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewerKubeconfigRequestSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
}

/// `ViewerKubeconfigRequestStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewerKubeconfigRequestStatus {
    #[serde(default)]
    pub expiration_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubeconfig: ByteString,
}
