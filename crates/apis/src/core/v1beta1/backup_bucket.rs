//! Types of `core.gardener.cloud`: the `BackupBucket` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `BackupBucket` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucket {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<BackupBucket>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<BackupBucket>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: BackupBucketSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: BackupBucketStatus,
}

crate::resource!(BackupBucket, "core.gardener.cloud", "v1beta1", "backupbuckets", Cluster);

/// `BackupBucketProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketProvider {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub region: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `BackupBucketSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: BackupBucketProvider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shoot_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
}

/// `BackupBucketStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated_secret_ref: Option<k8s_openapi::api::core::v1::SecretReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<serde_json::Value>,
}
