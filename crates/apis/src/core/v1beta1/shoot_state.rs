//! Types of `core.gardener.cloud`: the `ShootState` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `ShootState` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootState {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ShootState>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ShootState>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ShootStateSpec,
}

crate::resource!(ShootState, "core.gardener.cloud", "v1beta1", "shootstates", Namespaced);

/// `ExtensionResourceState`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionResourceState {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<NamedResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<serde_json::Value>,
}

/// `GardenerResourceData`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenerResourceData {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub data: serde_json::Value,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `ResourceData`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceData {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub data: serde_json::Value,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `ShootStateSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootStateSpec {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extensions: Vec<ExtensionResourceState>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub gardener: Vec<GardenerResourceData>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<ResourceData>,
}
