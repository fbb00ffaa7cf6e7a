//! Types of `machine.sapcloud.io`: the `MachineClass` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The `MachineClass` kind of `machine.sapcloud.io/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineClass {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<MachineClass>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<MachineClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<k8s_openapi::api::core::v1::SecretReference>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_template: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default)]
    pub provider_spec: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<k8s_openapi::api::core::v1::SecretReference>,
}

crate::resource!(
    MachineClass,
    "machine.sapcloud.io",
    "v1alpha1",
    "machineclasses",
    Namespaced
);
