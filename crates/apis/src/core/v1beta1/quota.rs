//! Types of `core.gardener.cloud`: the `Quota` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod validation;

pub use validation::*;

/// The `Quota` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Quota>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Quota>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: QuotaSpec,
}

crate::resource!(Quota, "core.gardener.cloud", "v1beta1", "quotas", Namespaced);

/// `QuotaSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_lifetime_days: Option<i32>,
    /// Written as `null` where nobody told any.
    #[serde(default)]
    pub metrics: Option<BTreeMap<String, Quantity>>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub scope: k8s_openapi::api::core::v1::ObjectReference,
}
