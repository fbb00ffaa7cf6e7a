//! Types of `security.gardener.cloud`: the `WorkloadIdentity` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod validation;

pub use validation::*;

/// The `WorkloadIdentity` kind of `security.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadIdentity {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<WorkloadIdentity>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<WorkloadIdentity>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: WorkloadIdentitySpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: WorkloadIdentityStatus,
}

crate::resource!(
    WorkloadIdentity,
    "security.gardener.cloud",
    "v1alpha1",
    "workloadidentities",
    Namespaced
);

/// `TargetSystem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetSystem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `WorkloadIdentitySpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadIdentitySpec {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub audiences: Vec<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub target_system: TargetSystem,
}

/// `WorkloadIdentityStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadIdentityStatus {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub sub: String,
}
