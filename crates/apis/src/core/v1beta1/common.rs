//! Types of `core.gardener.cloud` that several kinds share.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::*;

/// `AccessRestriction`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessRestriction {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `Backup`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// `CRI`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CRI {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub container_runtimes: Vec<ContainerRuntime>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `CloudProfileReference`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileReference {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `Condition`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub codes: Vec<String>,
    #[serde(default)]
    pub last_transition_time: Option<Time>,
    #[serde(default)]
    pub last_update_time: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub message: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub reason: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `ContainerRuntime`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRuntime {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `Extension`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extension {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `Gardener`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gardener {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub id: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub version: String,
}

/// `LastError`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub codes: Vec<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    #[serde(rename = "taskID", default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// `LastOperation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub description: String,
    #[serde(default)]
    pub last_update_time: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub progress: i32,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub state: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `NamedResourceReference`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedResourceReference {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub resource_ref: k8s_openapi::api::autoscaling::v1::CrossVersionObjectReference,
}

/// `SeedSelector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSelector {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub match_expressions: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub match_labels: BTreeMap<String, String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub provider_types: Vec<String>,
}

/// `ShootTemplate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootTemplate {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: ShootSpec,
}

/// `Toleration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Keeps the labels `name.seed.gardener.cloud/<seed>=true` that name an object's seeds, [GAPI-38].
pub fn maintain_seed_labels(meta: &mut ObjectMeta, seeds: &[Option<&str>]) {
    use crate::constants::label::SEED_NAME_PREFIX;
    let labels = meta.labels.get_or_insert_default();
    labels.retain(|key, _| !key.starts_with(SEED_NAME_PREFIX));
    for seed in seeds.iter().flatten().filter(|seed| !seed.is_empty()) {
        labels.insert(format!("{SEED_NAME_PREFIX}{seed}"), "true".into());
    }
    if labels.is_empty() {
        meta.labels = None;
    }
}
