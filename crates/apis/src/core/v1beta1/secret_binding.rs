//! Types of `core.gardener.cloud`: the `SecretBinding` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod validation;

pub use validation::*;

/// The `SecretBinding` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretBinding {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<SecretBinding>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<SecretBinding>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SecretBindingProvider>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub quotas: Vec<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub secret_ref: k8s_openapi::api::core::v1::SecretReference,
}

crate::resource!(
    SecretBinding,
    "core.gardener.cloud",
    "v1beta1",
    "secretbindings",
    Namespaced
);

/// `SecretBindingProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretBindingProvider {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}
