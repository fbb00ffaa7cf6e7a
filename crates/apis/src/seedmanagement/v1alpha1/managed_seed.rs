//! Types of `seedmanagement.gardener.cloud`: the `ManagedSeed` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `ManagedSeed` kind of `seedmanagement.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSeed {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ManagedSeed>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ManagedSeed>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ManagedSeedSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: ManagedSeedStatus,
}

crate::resource!(
    ManagedSeed,
    "seedmanagement.gardener.cloud",
    "v1alpha1",
    "managedseeds",
    Namespaced
);

/// `ManagedSeedStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSeedStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
