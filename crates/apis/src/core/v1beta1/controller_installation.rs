//! Types of `core.gardener.cloud`: the `ControllerInstallation` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `ControllerInstallation` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerInstallation {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ControllerInstallation>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ControllerInstallation>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ControllerInstallationSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: ControllerInstallationStatus,
}

crate::resource!(
    ControllerInstallation,
    "core.gardener.cloud",
    "v1beta1",
    "controllerinstallations",
    Cluster
);

/// `ControllerInstallationSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerInstallationSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub registration_ref: k8s_openapi::api::core::v1::ObjectReference,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_refs: Vec<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shoot_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
}

/// `ControllerInstallationStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerInstallationStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<serde_json::Value>,
}
