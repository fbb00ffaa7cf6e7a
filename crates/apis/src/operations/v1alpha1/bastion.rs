//! Types of `operations.gardener.cloud`: the `Bastion` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

mod ssh_key;
mod validation;

pub use validation::*;

/// The `Bastion` kind of `operations.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bastion {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Bastion>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Bastion>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: BastionSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: BastionStatus,
}

crate::resource!(Bastion, "operations.gardener.cloud", "v1alpha1", "bastions", Namespaced);

/// `BastionIngressPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BastionIngressPolicy {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub ip_block: k8s_openapi::api::networking::v1::IPBlock,
}

/// `BastionSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BastionSpec {
    /// From where the bastion may be reached. A list without elements is told otherwise than none.
    #[serde(default)]
    pub ingress: Option<Vec<BastionIngressPolicy>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub shoot_ref: k8s_openapi::api::core::v1::LocalObjectReference,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub ssh_public_key: String,
}

/// `BastionStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BastionStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<k8s_openapi::api::core::v1::LoadBalancerIngress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
