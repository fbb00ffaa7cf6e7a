//! Types of `extensions.gardener.cloud`: the `OperatingSystemConfig` kind and what only it uses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

/// The `OperatingSystemConfig` kind of `extensions.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfig {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<OperatingSystemConfig>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<OperatingSystemConfig>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: OperatingSystemConfigSpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: OperatingSystemConfigStatus,
}

crate::resource!(
    OperatingSystemConfig,
    "extensions.gardener.cloud",
    "v1alpha1",
    "operatingsystemconfigs",
    Namespaced
);

/// `OperatingSystemConfigSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cri_config: Option<OperatingSystemConfigCriConfig>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub files: Vec<OperatingSystemConfigFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_updates: Option<OperatingSystemConfigInPlaceUpdates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default)]
    pub purpose: String,
    #[serde(default)]
    pub r#type: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub units: Vec<OperatingSystemConfigUnit>,
}

/// `OperatingSystemConfigCriConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigCriConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_driver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd: Option<OperatingSystemConfigCriConfigContainerd>,
    #[serde(default)]
    pub name: String,
}

/// `OperatingSystemConfigCriConfigContainerd`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigCriConfigContainerd {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub plugins: Vec<OperatingSystemConfigCriConfigContainerdPlugin>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub registries: Vec<OperatingSystemConfigCriConfigContainerdRegistry>,
    #[serde(default)]
    pub sandbox_image: String,
}

/// `OperatingSystemConfigCriConfigContainerdPlugin`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigCriConfigContainerdPlugin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub path: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<serde_json::Value>,
}

/// `OperatingSystemConfigCriConfigContainerdRegistry`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigCriConfigContainerdRegistry {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hosts: Vec<OperatingSystemConfigCriConfigContainerdRegistryHost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default)]
    pub upstream: String,
}

/// `OperatingSystemConfigCriConfigContainerdRegistryHost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigCriConfigContainerdRegistryHost {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ca_certs: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_path: Option<bool>,
    #[serde(default)]
    pub url: String,
}

/// `OperatingSystemConfigFile`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigFile {
    #[serde(default)]
    pub content: OperatingSystemConfigFileContent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    #[serde(default)]
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<i32>,
}

/// `OperatingSystemConfigFileContent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigFileContent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_ref: Option<OperatingSystemConfigFileContentImageRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<OperatingSystemConfigFileContentInline>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<OperatingSystemConfigFileContentSecretRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_unencoded: Option<bool>,
}

/// `OperatingSystemConfigFileContentSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigFileContentSecretRef {
    #[serde(default)]
    pub data_key: String,
    #[serde(default)]
    pub name: String,
}

/// `OperatingSystemConfigFileContentImageRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigFileContentImageRef {
    #[serde(default)]
    pub file_path_in_image: String,
    #[serde(default)]
    pub image: String,
}

/// `OperatingSystemConfigFileContentInline`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigFileContentInline {
    #[serde(default)]
    pub data: String,
    #[serde(default)]
    pub encoding: String,
}

/// `OperatingSystemConfigInPlaceUpdates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigInPlaceUpdates {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_rotation: Option<OperatingSystemConfigInPlaceUpdatesCredentialsRotation>,
    #[serde(default)]
    pub kubelet: String,
    #[serde(default)]
    pub operating_system_version: String,
}

/// `OperatingSystemConfigInPlaceUpdatesCredentialsRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigInPlaceUpdatesCredentialsRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_authorities: Option<OperatingSystemConfigInPlaceUpdatesCredentialsRotationCertificateAuthorities>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_key: Option<OperatingSystemConfigInPlaceUpdatesCredentialsRotationServiceAccountKey>,
}

/// `OperatingSystemConfigInPlaceUpdatesCredentialsRotationCertificateAuthorities`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigInPlaceUpdatesCredentialsRotationCertificateAuthorities {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
}

/// `OperatingSystemConfigInPlaceUpdatesCredentialsRotationServiceAccountKey`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigInPlaceUpdatesCredentialsRotationServiceAccountKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
}

/// `OperatingSystemConfigUnit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigUnit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub drop_ins: Vec<OperatingSystemConfigUnitDropIn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub file_paths: Vec<String>,
    #[serde(default)]
    pub name: String,
}

/// `OperatingSystemConfigUnitDropIn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigUnitDropIn {
    #[serde(default)]
    pub content: String,
    #[serde(default)]
    pub name: String,
}

/// `OperatingSystemConfigStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_config: Option<OperatingSystemConfigStatusCloudConfig>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<crate::core::v1beta1::Condition>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extension_files: Vec<OperatingSystemConfigFile>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extension_units: Vec<OperatingSystemConfigUnit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_updates: Option<OperatingSystemConfigStatusInPlaceUpdates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<crate::core::v1beta1::LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<crate::core::v1beta1::LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<serde_json::Value>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<crate::core::v1beta1::NamedResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<serde_json::Value>,
}

/// `OperatingSystemConfigStatusCloudConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigStatusCloudConfig {
    #[serde(default)]
    pub secret_ref: k8s_openapi::api::core::v1::SecretReference,
}

/// `OperatingSystemConfigStatusInPlaceUpdates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigStatusInPlaceUpdates {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_update: Option<OperatingSystemConfigStatusInPlaceUpdatesOsUpdate>,
}

/// `OperatingSystemConfigStatusInPlaceUpdatesOsUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigStatusInPlaceUpdatesOsUpdate {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub args: Vec<String>,
    #[serde(default)]
    pub command: String,
}
