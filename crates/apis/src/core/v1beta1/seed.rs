//! Types of `core.gardener.cloud`: the `Seed` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::*;

mod defaults;
mod validation;

pub use defaults::*;
pub use validation::*;

/// The `Seed` kind of `core.gardener.cloud/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seed {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Seed>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Seed>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub spec: SeedSpec,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub status: SeedStatus,
}

crate::resource!(Seed, "core.gardener.cloud", "v1beta1", "seeds", Cluster);

/// `Ingress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub controller: IngressController,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub domain: String,
}

/// `IngressController`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressController {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
}

/// `LoadBalancerServicesProxyProtocol`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerServicesProxyProtocol {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub allowed: bool,
}

/// `SeedDNS`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNS {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub defaults: Vec<SeedDNSProviderConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal: Option<SeedDNSProviderConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SeedDNSProvider>,
}

/// `SeedDNSProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNSProvider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
}

/// `SeedDNSProviderConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNSProviderConfig {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub credentials_ref: k8s_openapi::api::core::v1::ObjectReference,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub domain: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// `SeedNetworks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedNetworks {
    #[serde(
        rename = "blockCIDRs",
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub block_cidrs: Vec<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ip_families: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub pods: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub services: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shoot_defaults: Option<ShootNetworks>,
}

/// `SeedProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedProvider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub region: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub r#type: String,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<String>,
}

/// `SeedSettingDependencyWatchdog`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingDependencyWatchdog {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober: Option<SeedSettingDependencyWatchdogProber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weeder: Option<SeedSettingDependencyWatchdogWeeder>,
}

/// `SeedSettingDependencyWatchdogProber`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingDependencyWatchdogProber {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `SeedSettingDependencyWatchdogWeeder`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingDependencyWatchdogWeeder {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `SeedSettingExcessCapacityReservation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingExcessCapacityReservation {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub configs: Vec<SeedSettingExcessCapacityReservationConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `SeedSettingExcessCapacityReservationConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingExcessCapacityReservationConfig {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub node_selector: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub resources: BTreeMap<String, Quantity>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
}

/// `SeedSettingLoadBalancerServices`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingLoadBalancerServices {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<LoadBalancerServicesProxyProtocol>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zonal_ingress: Option<SeedSettingLoadBalancerServicesZonalIngress>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<SeedSettingLoadBalancerServicesZones>,
}

/// `SeedSettingLoadBalancerServicesZonalIngress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingLoadBalancerServicesZonalIngress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `SeedSettingLoadBalancerServicesZones`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingLoadBalancerServicesZones {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<LoadBalancerServicesProxyProtocol>,
}

/// `SeedSettingPersistentVolumeClaimAutoscaler`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingPersistentVolumeClaimAutoscaler {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `SeedSettingScheduling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingScheduling {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub visible: bool,
}

/// `SeedSettingTopologyAwareRouting`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingTopologyAwareRouting {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
}

/// `SeedSettingVerticalPodAutoscaler`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingVerticalPodAutoscaler {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub enabled: bool,
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
}

/// `SeedSettingZoneSelection`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettingZoneSelection {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub mode: String,
}

/// `SeedSettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_watchdog: Option<SeedSettingDependencyWatchdog>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess_capacity_reservation: Option<SeedSettingExcessCapacityReservation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer_services: Option<SeedSettingLoadBalancerServices>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_autoscaler: Option<SeedSettingPersistentVolumeClaimAutoscaler>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SeedSettingScheduling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_aware_routing: Option<SeedSettingTopologyAwareRouting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertical_pod_autoscaler: Option<SeedSettingVerticalPodAutoscaler>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_selection: Option<SeedSettingZoneSelection>,
}

/// `SeedSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSpec {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub access_restrictions: Vec<AccessRestriction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub dns: SeedDNS,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extensions: Vec<Extension>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub networks: SeedNetworks,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub provider: SeedProvider,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<NamedResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SeedSettings>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub taints: Vec<SeedTaint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<SeedVolume>,
}

/// `SeedStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedStatus {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub allocatable: BTreeMap<String, Quantity>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub capacity: BTreeMap<String, Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate_expiration_timestamp: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_identity: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gardener: Option<Gardener>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// `SeedTaint`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedTaint {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// `SeedVolume`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedVolume {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_size: Option<Quantity>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub providers: Vec<SeedVolumeProvider>,
}

/// `SeedVolumeProvider`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedVolumeProvider {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub purpose: String,
}

/// `ShootNetworks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootNetworks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<String>,
}
