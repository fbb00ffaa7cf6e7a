//! Types of `core.gardener.cloud`: the `ControllerRegistration` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::Duration;

mod defaults;
mod validation;

pub use defaults::*;
pub use validation::*;

/// The `ControllerRegistration` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRegistration {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ControllerRegistration>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ControllerRegistration>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ControllerRegistrationSpec,
}

crate::resource!(
    ControllerRegistration,
    "core.gardener.cloud",
    "v1beta1",
    "controllerregistrations",
    Cluster
);

/// `ControllerRegistrationDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRegistrationDeployment {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub deployment_refs: Vec<DeploymentRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_selector: Option<LabelSelector>,
}

/// `ControllerRegistrationSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRegistrationSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<ControllerRegistrationDeployment>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<ControllerResource>,
}

/// `ControllerResource`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerResource {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub auto_enable: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_compatibility: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuous_endpoint_update: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<ControllerResourceLifecycle>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workerless_supported: Option<bool>,
}

/// `ControllerResourceLifecycle`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerResourceLifecycle {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<String>,
}

/// `DeploymentRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentRef {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}
