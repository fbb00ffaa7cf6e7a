//! Types of `security.gardener.cloud`: the `CredentialsBinding` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod validation;

pub use validation::*;

/// The `CredentialsBinding` kind of `security.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsBinding {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<CredentialsBinding>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<CredentialsBinding>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub credentials_ref: k8s_openapi::api::core::v1::ObjectReference,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: CredentialsBindingProvider,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub quotas: Vec<k8s_openapi::api::core::v1::ObjectReference>,
}

crate::resource!(
    CredentialsBinding,
    "security.gardener.cloud",
    "v1alpha1",
    "credentialsbindings",
    Namespaced
);

/// `CredentialsBindingProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsBindingProvider {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}
