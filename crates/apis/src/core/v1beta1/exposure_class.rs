//! Types of `core.gardener.cloud`: the `ExposureClass` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::*;

mod validation;

pub use validation::*;

/// The `ExposureClass` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExposureClass {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<ExposureClass>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<ExposureClass>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub handler: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<ExposureClassScheduling>,
}

crate::resource!(
    ExposureClass,
    "core.gardener.cloud",
    "v1beta1",
    "exposureclasses",
    Cluster
);

/// `ExposureClassScheduling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExposureClassScheduling {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_selector: Option<SeedSelector>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<Toleration>,
}
