//! Types of `core.gardener.cloud`: the `ControllerDeployment` kind and what only it uses.

use crate::core::v1beta1::NamedResourceReference;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod conversion;
mod validation;

pub use conversion::*;
pub use validation::*;

/// The `ControllerDeployment` kind of `core.gardener.cloud/v1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerDeployment {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ControllerDeployment>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ControllerDeployment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmControllerDeployment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inject_garden_kubeconfig: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<NamedResourceReference>,
}

crate::resource!(
    ControllerDeployment,
    "core.gardener.cloud",
    "v1",
    "controllerdeployments",
    Cluster
);

/// `HelmControllerDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelmControllerDeployment {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_repository: Option<OCIRepository>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_chart: Option<ByteString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<serde_json::Value>,
}

/// `OCIRepository`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepository {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::local_reference"
    )]
    pub ca_bundle_secret_ref: Option<k8s_openapi::api::core::v1::LocalObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::local_reference"
    )]
    pub pull_secret_ref: Option<k8s_openapi::api::core::v1::LocalObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl OCIRepository {
    /// The whole reference of the artifact, without the scheme; a digest counts more than a tag.
    pub fn url(&self) -> String {
        let repository = self.repository.as_deref().unwrap_or_default();
        let whole = match (&self.ref_, &self.digest, &self.tag) {
            (Some(whole), _, _) => whole.clone(),
            (None, Some(digest), _) => format!("{repository}@{digest}"),
            (None, None, Some(tag)) => format!("{repository}:{tag}"),
            (None, None, None) => String::new(),
        };
        whole.strip_prefix("oci://").map_or(whole.clone(), str::to_owned)
    }
}
