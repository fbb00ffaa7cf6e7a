//! Types of `core.gardener.cloud`: the `Shoot` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use super::*;
use crate::Duration;

mod defaults;
mod helpers;
pub(crate) mod validation;
pub(crate) use validation::{ACCEPTED_ISSUERS, keeps_accepted_issuers};
mod warnings;

pub use defaults::*;
pub use helpers::*;
pub use validation::{
    maintenance_time, supports_admission_plugin, supports_feature_gate, validate_shoot, validate_shoot_creation,
    validate_shoot_spec, validate_shoot_spec_update, validate_shoot_status_update, validate_shoot_update,
};
pub use warnings::{shoot_warnings, spec_warnings};

/// The `Shoot` kind of `core.gardener.cloud/v1beta1`. Its parts are boxed, for they are large and shoots are passed around by value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shoot {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Shoot>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Shoot>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: Box<ShootSpec>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: Box<ShootStatus>,
}

crate::resource!(Shoot, "core.gardener.cloud", "v1beta1", "shoots", Namespaced);

/// `APIServerLogging`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct APIServerLogging {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_access_verbosity: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
}

/// `APIServerRequests`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct APIServerRequests {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mutating_inflight: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_non_mutating_inflight: Option<i32>,
}

/// `AccessRestrictionWithOptions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessRestrictionWithOptions {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub options: BTreeMap<String, String>,
}

/// `Addons`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Addons {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_dashboard: Option<KubernetesDashboard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nginx_ingress: Option<NginxIngress>,
}

/// `AdmissionPlugin`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionPlugin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_name: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `Alerting`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alerting {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub email_receivers: Vec<String>,
}

/// `AuditConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_policy: Option<AuditPolicy>,
}

/// `AuditPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
}

/// `AuthorizerKubeconfigReference`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerKubeconfigReference {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub authorizer_name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub secret_name: String,
}

/// `CARotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CARotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_triggered_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_finished_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub phase: String,
}

/// `ClusterAutoscaler`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAutoscaler {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<ControlPlaneAutoscaling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emit_per_node_group_metrics: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expander: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_daemonsets_utilization: Option<bool>,
    /// An empty list counts as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_taints: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_node_group_backoff_duration: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_binpacking_time: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_drain_parallelism: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_empty_bulk_delete: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_graceful_termination_seconds: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_node_group_backoff_duration: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_node_provision_time: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_scale_down_parallelism: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_pod_scale_up_delay: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_group_backoff_reset_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_after_add: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_after_delete: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_after_failure: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_unneeded_time: Option<Duration>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub scale_down_utilization_threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_interval: Option<Duration>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub startup_taints: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub status_taints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
}

/// `ClusterAutoscalerOptions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAutoscalerOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_node_provision_time: Option<Duration>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub scale_down_gpu_utilization_threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_unneeded_time: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down_unready_time: Option<Duration>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub scale_down_utilization_threshold: Option<f64>,
}

/// `ControlPlane`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_availability: Option<HighAvailability>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<String>,
}

/// `ControlPlaneAutoscaling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneAutoscaling {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub min_allowed: BTreeMap<String, Quantity>,
}

/// `CoreDNS`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNS {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<CoreDNSAutoscaling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewriting: Option<CoreDNSRewriting>,
}

/// `CoreDNSAutoscaling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNSAutoscaling {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub mode: String,
}

/// `CoreDNSRewriting`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNSRewriting {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub common_suffixes: Vec<String>,
}

/// `DNS`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DNS {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub providers: Vec<DNSProvider>,
}

/// `DNSExposure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DNSExposure {}

/// `DNSIncludeExclude`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DNSIncludeExclude {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub exclude: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub include: Vec<String>,
}

/// `DNSProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DNSProvider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<k8s_openapi::api::autoscaling::v1::CrossVersionObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<DNSIncludeExclude>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<DNSIncludeExclude>,
}

/// `DataVolume`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataVolume {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub size: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// `ETCD`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ETCD {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<ETCDConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<ETCDConfig>,
}

/// `ETCDConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ETCDConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<ControlPlaneAutoscaling>,
}

/// `ETCDEncryptionKeyRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ETCDEncryptionKeyRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_complete_after_prepared: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_triggered_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_finished_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub phase: String,
}

/// `EncryptionAtRest`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionAtRest {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: EncryptionProviderStatus,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<String>,
}

/// `EncryptionConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionConfig {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: EncryptionProvider,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<String>,
}

/// `EncryptionProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionProvider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// `EncryptionProviderStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionProviderStatus {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `Exposure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exposure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<DNSExposure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionExposure>,
}

/// `ExtensionExposure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionExposure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// `FailureTolerance`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureTolerance {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `Hibernation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hibernation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub schedules: Vec<HibernationSchedule>,
}

/// `HibernationSchedule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HibernationSchedule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// `HighAvailability`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HighAvailability {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub failure_tolerance: FailureTolerance,
}

/// `HorizontalPodAutoscalerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_initialization_period: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downscale_stabilization: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_readiness_delay: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<Duration>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub tolerance: Option<f64>,
}

/// `InPlaceUpdatesStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdatesStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_worker_updates: Option<PendingWorkerUpdates>,
}

/// `KubeAPIServerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeAPIServerConfig {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub admission_plugins: Vec<AdmissionPlugin>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub api_audiences: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_config: Option<AuditConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<ControlPlaneAutoscaling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_not_ready_toleration_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_unreachable_toleration_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_anonymous_authentication: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_config: Option<EncryptionConfig>,
    #[serde(rename = "eventTTL", default, skip_serializing_if = "Option::is_none")]
    pub event_ttl: Option<Duration>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<APIServerLogging>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<APIServerRequests>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub runtime_config: BTreeMap<String, bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_config: Option<ServiceAccountConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_authentication: Option<StructuredAuthentication>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_authorization: Option<StructuredAuthorization>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_min_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_cache_sizes: Option<WatchCacheSizes>,
}

/// `KubeControllerManagerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeControllerManagerConfig {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizontal_pod_autoscaler: Option<HorizontalPodAutoscalerConfig>,
    #[serde(rename = "nodeCIDRMaskSize", default, skip_serializing_if = "Option::is_none")]
    pub node_cidr_mask_size: Option<i32>,
    #[serde(rename = "nodeCIDRMaskSizeIPv6", default, skip_serializing_if = "Option::is_none")]
    pub node_cidr_mask_size_i_pv6: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_monitor_grace_period: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_eviction_timeout: Option<Duration>,
}

/// `KubeProxyConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxyConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// `KubeSchedulerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeSchedulerConfig {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(rename = "kubeMaxPDVols", default, skip_serializing_if = "Option::is_none")]
    pub kube_max_pd_vols: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// `KubeletConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_log_max_files: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_log_max_size: Option<Quantity>,
    #[serde(rename = "cpuCFSQuota", default, skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_manager_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_hard: Option<KubeletConfigEviction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_minimum_reclaim: Option<KubeletConfigEvictionMinimumReclaim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_pressure_transition_period: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_soft: Option<KubeletConfigEviction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_soft_grace_period: Option<KubeletConfigEvictionSoftGracePeriod>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(
        rename = "imageGCHighThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_high_threshold_percent: Option<i32>,
    #[serde(
        rename = "imageGCLowThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_low_threshold_percent: Option<i32>,
    #[serde(rename = "imageMaximumGCAge", default, skip_serializing_if = "Option::is_none")]
    pub image_maximum_gc_age: Option<Duration>,
    #[serde(rename = "imageMinimumGCAge", default, skip_serializing_if = "Option::is_none")]
    pub image_minimum_gc_age: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_credentials_verification_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_reserved: Option<KubeletConfigReserved>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel_image_pulls: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_swap: Option<MemorySwapConfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_pids_limit: Option<i64>,
    /// An empty list is another than none until the object is stored: it may only be set where one with elements may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preloaded_images_verification_allowlist: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protect_kernel_defaults: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_burst: Option<i32>,
    #[serde(rename = "registryPullQPS", default, skip_serializing_if = "Option::is_none")]
    pub registry_pull_qps: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp_default: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialize_image_pulls: Option<bool>,
    #[serde(rename = "singleProcessOOMKill", default, skip_serializing_if = "Option::is_none")]
    pub single_process_oom_kill: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming_connection_idle_timeout: Option<Duration>,
}

/// `KubeletConfigEviction`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfigEviction {
    #[serde(rename = "imageFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_available: Option<String>,
    #[serde(rename = "imageFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_inodes_free: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<String>,
    #[serde(rename = "nodeFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_available: Option<String>,
    #[serde(rename = "nodeFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_inodes_free: Option<String>,
}

/// `KubeletConfigEvictionMinimumReclaim`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfigEvictionMinimumReclaim {
    #[serde(rename = "imageFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_available: Option<Quantity>,
    #[serde(rename = "imageFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_inodes_free: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<Quantity>,
    #[serde(rename = "nodeFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_available: Option<Quantity>,
    #[serde(rename = "nodeFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_inodes_free: Option<Quantity>,
}

/// `KubeletConfigEvictionSoftGracePeriod`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfigEvictionSoftGracePeriod {
    #[serde(rename = "imageFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_available: Option<Duration>,
    #[serde(rename = "imageFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub image_fs_inodes_free: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<Duration>,
    #[serde(rename = "nodeFSAvailable", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_available: Option<Duration>,
    #[serde(rename = "nodeFSInodesFree", default, skip_serializing_if = "Option::is_none")]
    pub node_fs_inodes_free: Option<Duration>,
}

/// `KubeletConfigReserved`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfigReserved {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<Quantity>,
}

/// `Kubernetes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubernetes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_autoscaler: Option<ClusterAutoscaler>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<ETCD>,
    #[serde(rename = "kubeAPIServer", default, skip_serializing_if = "Option::is_none")]
    pub kube_api_server: Option<KubeAPIServerConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_controller_manager: Option<KubeControllerManagerConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxyConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_scheduler: Option<KubeSchedulerConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertical_pod_autoscaler: Option<VerticalPodAutoscaler>,
}

/// `KubernetesDashboard`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesDashboard {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_mode: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `LastMaintenance`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastMaintenance {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub state: String,
    #[serde(default)]
    pub triggered_time: Option<Time>,
}

/// `LiveMigration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveMigration {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
}

/// `Machine`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ShootMachineImage>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `MachineControllerManagerSettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineControllerManagerSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_preserve_failed_machine_max: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_health_timeout: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_update_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_creation_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_drain_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_preserve_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_evict_retries: Option<i32>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub node_conditions: Vec<String>,
}

/// `Maintenance`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_rotation: Option<MaintenanceAutoRotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_update: Option<MaintenanceAutoUpdate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confine_spec_update_rollout: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_window: Option<MaintenanceTimeWindow>,
}

/// `MaintenanceAutoRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceAutoRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<MaintenanceCredentialsAutoRotation>,
}

/// `MaintenanceAutoUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceAutoUpdate {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubernetes_version: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_image_version: Option<bool>,
}

/// `MaintenanceCredentialsAutoRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceCredentialsAutoRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_encryption_key: Option<MaintenanceRotationConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observability: Option<MaintenanceRotationConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_keypair: Option<MaintenanceRotationConfig>,
}

/// `MaintenanceRotationConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceRotationConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_period: Option<Duration>,
}

/// `MaintenanceTimeWindow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceTimeWindow {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub begin: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub end: String,
}

/// `ManualWorkerPoolRollout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManualWorkerPoolRollout {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
}

/// `MemorySwapConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemorySwapConfiguration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_behavior: Option<String>,
}

/// `Monitoring`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Monitoring {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerting: Option<Alerting>,
}

/// `Networking`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ip_families: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// `NetworkingStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkingStatus {
    #[serde(
        rename = "egressCIDRs",
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub egress_cidrs: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub nodes: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pods: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub services: Vec<String>,
}

/// `NginxIngress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NginxIngress {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub config: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancer_source_ranges: Vec<String>,
}

/// `NodeLocalDNS`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeLocalDNS {
    #[serde(
        rename = "disableForwardToUpstreamDNS",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub disable_forward_to_upstream_dns: Option<bool>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
    #[serde(rename = "forceTCPToClusterDNS", default, skip_serializing_if = "Option::is_none")]
    pub force_tcp_to_cluster_dns: Option<bool>,
    #[serde(rename = "forceTCPToUpstreamDNS", default, skip_serializing_if = "Option::is_none")]
    pub force_tcp_to_upstream_dns: Option<bool>,
}

/// `ObservabilityRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservabilityRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
}

/// `PendingWorkerUpdates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkerUpdates {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub auto_in_place_update: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub manual_in_place_update: Vec<String>,
}

/// `PendingWorkersRollout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkersRollout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
}

/// `Provider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub workers: Vec<Worker>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_settings: Option<WorkersSettings>,
}

/// `ResourceWatchCacheSize`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceWatchCacheSize {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub resource: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub size: i32,
}

/// `SSHAccess`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SSHAccess {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `ServiceAccountConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountConfig {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub accepted_issuers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_token_expiration: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_token_expiration: Option<Duration>,
}

/// `ServiceAccountKeyRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountKeyRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_triggered_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_finished_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub phase: String,
}

/// `ShootAdvertisedAddress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootAdvertisedAddress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub url: String,
}

/// `ShootCredentials`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootCredentials {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_at_rest: Option<EncryptionAtRest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<ShootCredentialsRotation>,
}

/// `ShootCredentialsRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootCredentialsRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_authorities: Option<CARotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_encryption_key: Option<ETCDEncryptionKeyRotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observability: Option<ObservabilityRotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_key: Option<ServiceAccountKeyRotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_keypair: Option<ShootSSHKeypairRotation>,
}

/// `ShootMachineImage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootMachineImage {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `ShootSSHKeypairRotation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootSSHKeypairRotation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_initiation_time: Option<Time>,
}

/// `ShootSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootSpec {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub access_restrictions: Vec<AccessRestrictionWithOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addons: Option<Addons>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_profile: Option<CloudProfileReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_profile_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_binding_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<DNS>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure_class_name: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extensions: Vec<Extension>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernation>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubernetes: Kubernetes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Monitoring>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: Provider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub region: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<NamedResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_binding_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_selector: Option<SeedSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_components: Option<SystemComponents>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<Toleration>,
}

/// `ShootStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub advertised_addresses: Vec<ShootAdvertisedAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_identity: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub constraints: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ShootCredentials>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub gardener: Gardener,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub hibernated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_updates: Option<InPlaceUpdatesStatus>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub last_errors: Vec<LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_hibernation_trigger_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_maintenance: Option<LastMaintenance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_migration: Option<LiveMigration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual_worker_pool_rollout: Option<ManualWorkerPoolRollout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_start_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<NetworkingStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_cycle_start_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_name: Option<String>,
    #[serde(rename = "technicalID", default, deserialize_with = "crate::wire::null_as_default")]
    pub technical_id: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub uid: String,
}

/// `StructuredAuthentication`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StructuredAuthentication {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub config_map_name: String,
}

/// `StructuredAuthorization`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StructuredAuthorization {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub config_map_name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kubeconfigs: Vec<AuthorizerKubeconfigReference>,
}

/// `SystemComponents`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemComponents {
    #[serde(rename = "coreDNS", default, skip_serializing_if = "Option::is_none")]
    pub core_dns: Option<CoreDNS>,
    #[serde(rename = "nodeLocalDNS", default, skip_serializing_if = "Option::is_none")]
    pub node_local_dns: Option<NodeLocalDNS>,
}

/// `VerticalPodAutoscaler`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscaler {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_histogram_decay_half_life: Option<Duration>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
    #[serde(rename = "evictAfterOOMThreshold", default, skip_serializing_if = "Option::is_none")]
    pub evict_after_oom_threshold: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_rate_burst: Option<i32>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub eviction_rate_limit: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub eviction_tolerance: Option<f64>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub max_allowed: BTreeMap<String, Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_aggregation_interval: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_aggregation_interval_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_histogram_decay_half_life: Option<Duration>,
    #[serde(
        rename = "recommendationLowerBoundCPUPercentile",
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub recommendation_lower_bound_cpu_percentile: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub recommendation_lower_bound_memory_percentile: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub recommendation_margin_fraction: Option<f64>,
    #[serde(
        rename = "recommendationUpperBoundCPUPercentile",
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub recommendation_upper_bound_cpu_percentile: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub recommendation_upper_bound_memory_percentile: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommender_interval: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommender_update_worker_count: Option<i64>,
    #[serde(
        rename = "targetCPUPercentile",
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub target_cpu_percentile: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::wire::go_float"
    )]
    pub target_memory_percentile: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updater_interval: Option<Duration>,
}

/// `Volume`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub size: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// `WatchCacheSizes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchCacheSizes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<i32>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<ResourceWatchCacheSize>,
}

/// `Worker`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_autoscaler: Option<ClusterAutoscalerOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<WorkerControlPlane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cri: Option<CRI>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub data_volumes: Vec<DataVolume>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_data_volume_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<WorkerKubernetes>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub machine: Machine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_controller_manager: Option<MachineControllerManagerSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub maximum: i32,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub minimum: i32,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub sysctls: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_components: Option<WorkerSystemComponents>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub taints: Vec<k8s_openapi::api::core::v1::Taint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<String>,
}

/// `WorkerControlPlane`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerControlPlane {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
}

/// `WorkerKubernetes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerKubernetes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `WorkerSystemComponents`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSystemComponents {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub allow: bool,
}

/// `WorkersSettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkersSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_access: Option<SSHAccess>,
}
