//! Types of `core.gardener.cloud`: the `BackupEntry` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `BackupEntry` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntry {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<BackupEntry>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<BackupEntry>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: BackupEntrySpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: BackupEntryStatus,
}

crate::resource!(
    BackupEntry,
    "core.gardener.cloud",
    "v1beta1",
    "backupentries",
    Namespaced
);

/// `BackupEntrySpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntrySpec {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub bucket_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shoot_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
}

/// `BackupEntryStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntryStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_start_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
}
