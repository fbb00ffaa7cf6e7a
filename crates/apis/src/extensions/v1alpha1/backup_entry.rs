//! Types of `extensions.gardener.cloud`: the `BackupEntry` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `BackupEntry` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntry {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<BackupEntry>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<BackupEntry>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: BackupEntrySpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: BackupEntryStatus,
}

crate::resource!(
    BackupEntry,
    "extensions.gardener.cloud",
    "v1alpha1",
    "backupentries",
    Cluster
);

/// `BackupEntrySpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntrySpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_bucket_provider_status: Option<serde_json::Value>,
    #[serde(default)]
    pub bucket_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub secret_ref: k8s_openapi::api::core::v1::SecretReference,
    #[serde(default)]
    pub r#type: String,
}

/// `BackupEntryStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntryStatus {
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
