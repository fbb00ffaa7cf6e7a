//! Types of `core.gardener.cloud`: the `Project` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::*;

mod defaults;
mod validation;

pub use defaults::*;
pub use validation::*;

/// The `Project` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Project>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Project>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ProjectSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: ProjectStatus,
}

crate::resource!(Project, "core.gardener.cloud", "v1beta1", "projects", Cluster);

/// `DualApprovalForDeletion`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DualApprovalForDeletion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_service_accounts: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub resource: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub selector: LabelSelector,
}

/// `ProjectMember`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectMember {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub role: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub roles: Vec<String>,
}

/// `ProjectSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<k8s_openapi::api::rbac::v1::Subject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub dual_approval_for_deletion: Vec<DualApprovalForDeletion>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub members: Vec<ProjectMember>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<k8s_openapi::api::rbac::v1::Subject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<ProjectTolerations>,
}

/// `ProjectStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_auto_delete_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since_timestamp: Option<Time>,
}

/// `ProjectTolerations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectTolerations {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub defaults: Vec<Toleration>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub whitelist: Vec<Toleration>,
}
