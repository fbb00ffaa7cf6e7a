//! Types of `druid.gardener.cloud`: the `Etcd` kind and what only it uses.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use serde::{Deserialize, Serialize};

/// The `Etcd` kind of `druid.gardener.cloud/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Etcd {
    /// Always `apiVersion` of this kind.
    #[serde(default)]
    pub api_version: crate::wire::ApiVersionOf<Etcd>,
    /// Always the name of this kind.
    #[serde(default)]
    pub kind: crate::wire::KindOf<Etcd>,
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: EtcdSpec,
    #[serde(default, skip_serializing_if = "crate::wire::is_default")]
    pub status: EtcdStatus,
}

crate::resource!(Etcd, "druid.gardener.cloud", "v1alpha1", "etcds", Namespaced);

/// `EtcdSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSpec {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub backup: EtcdBackup,
    #[serde(default)]
    pub etcd: EtcdEtcd,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub externally_managed_member_addresses: Vec<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_name_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    #[serde(default)]
    pub replicas: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_root: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_constraints: Option<EtcdSchedulingConstraints>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_config: Option<EtcdSharedConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_capacity: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<String>,
}

/// `EtcdBackup`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackup {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<EtcdBackupCompression>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_snapshot_memory_limit: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_snapshot_period: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_snapshot_retention_period: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_profiling: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_snapshot_timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_snapshot_schedule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbage_collection_period: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbage_collection_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<EtcdBackupLeaderElection>,
    #[serde(rename = "maxBackupsLimitBasedGC", default, skip_serializing_if = "Option::is_none")]
    pub max_backups_limit_based_gc: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<k8s_openapi::api::core::v1::ResourceRequirements>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_compaction: Option<EtcdBackupSnapshotCompaction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<EtcdBackupStore>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<EtcdBackupTls>,
}

/// `EtcdBackupCompression`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupCompression {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// `EtcdBackupLeaderElection`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupLeaderElection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_connection_timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reelection_period: Option<String>,
}

/// `EtcdBackupSnapshotCompaction`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupSnapshotCompaction {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_threshold: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<k8s_openapi::api::core::v1::ResourceRequirements>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_full_snapshot_threshold: Option<i64>,
}

/// `EtcdBackupStore`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupStore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_override: Option<String>,
    #[serde(default)]
    pub prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<k8s_openapi::api::core::v1::SecretReference>,
}

/// `EtcdBackupTls`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupTls {
    #[serde(rename = "clientTLSSecretRef", default, skip_serializing_if = "Option::is_none")]
    pub client_tls_secret_ref: Option<EtcdBackupTlsClientTLSSecretRef>,
    #[serde(rename = "serverTLSSecretRef", default)]
    pub server_tls_secret_ref: EtcdBackupTlsServerTLSSecretRef,
    #[serde(rename = "tlsCASecretRef", default)]
    pub tls_ca_secret_ref: EtcdBackupTlsTlsCASecretRef,
}

/// `EtcdBackupTlsClientTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupTlsClientTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdBackupTlsServerTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupTlsServerTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdBackupTlsTlsCASecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupTlsTlsCASecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcd`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcd {
    #[serde(
        rename = "additionalAdvertisePeerURLs",
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_advertise_peer_urls: Vec<EtcdEtcdAdditionalAdvertisePeerURL>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_secret_ref: Option<EtcdEtcdAuthSecretRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_bbolt_freelist_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_with_existing_cluster: Option<EtcdEtcdBootstrapWithExistingCluster>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_port: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_service: Option<EtcdEtcdClientService>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_url_tls: Option<EtcdEtcdClientUrlTls>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmentation_schedule: Option<String>,
    #[serde(rename = "enableGRPCGateway", default, skip_serializing_if = "Option::is_none")]
    pub enable_grpc_gateway: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_defrag_timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_duration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_url_tls: Option<EtcdEtcdPeerUrlTls>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<k8s_openapi::api::core::v1::ResourceRequirements>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_port: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapper_port: Option<i32>,
}

/// `EtcdEtcdAdditionalAdvertisePeerURL`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdAdditionalAdvertisePeerURL {
    #[serde(default)]
    pub member_name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub urls: Vec<String>,
}

/// `EtcdEtcdAuthSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdAuthSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdBootstrapWithExistingCluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdBootstrapWithExistingCluster {
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub client_endpoints: Vec<String>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub members: Vec<EtcdEtcdBootstrapWithExistingClusterMember>,
}

/// `EtcdEtcdBootstrapWithExistingClusterMember`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdBootstrapWithExistingClusterMember {
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub peer_urls: Vec<String>,
}

/// `EtcdEtcdClientService`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdClientService {
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
}

/// `EtcdEtcdClientUrlTls`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdClientUrlTls {
    #[serde(rename = "clientTLSSecretRef", default, skip_serializing_if = "Option::is_none")]
    pub client_tls_secret_ref: Option<EtcdEtcdClientUrlTlsClientTLSSecretRef>,
    #[serde(rename = "serverTLSSecretRef", default)]
    pub server_tls_secret_ref: EtcdEtcdClientUrlTlsServerTLSSecretRef,
    #[serde(rename = "tlsCASecretRef", default)]
    pub tls_ca_secret_ref: EtcdEtcdClientUrlTlsTlsCASecretRef,
}

/// `EtcdEtcdClientUrlTlsClientTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdClientUrlTlsClientTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdClientUrlTlsServerTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdClientUrlTlsServerTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdClientUrlTlsTlsCASecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdClientUrlTlsTlsCASecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdPeerUrlTls`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdPeerUrlTls {
    #[serde(rename = "clientTLSSecretRef", default, skip_serializing_if = "Option::is_none")]
    pub client_tls_secret_ref: Option<EtcdEtcdPeerUrlTlsClientTLSSecretRef>,
    #[serde(rename = "serverTLSSecretRef", default)]
    pub server_tls_secret_ref: EtcdEtcdPeerUrlTlsServerTLSSecretRef,
    #[serde(
        rename = "skipClientSANVerification",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub skip_client_san_verification: Option<bool>,
    #[serde(rename = "tlsCASecretRef", default)]
    pub tls_ca_secret_ref: EtcdEtcdPeerUrlTlsTlsCASecretRef,
}

/// `EtcdEtcdPeerUrlTlsClientTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdPeerUrlTlsClientTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdPeerUrlTlsServerTLSSecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdPeerUrlTlsServerTLSSecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdEtcdPeerUrlTlsTlsCASecretRef`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEtcdPeerUrlTlsTlsCASecretRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `EtcdSchedulingConstraints`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSchedulingConstraints {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<k8s_openapi::api::core::v1::Affinity>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tolerations: Vec<EtcdSchedulingConstraintsToleration>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub topology_spread_constraints: Vec<k8s_openapi::api::core::v1::TopologySpreadConstraint>,
}

/// `EtcdSchedulingConstraintsToleration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSchedulingConstraintsToleration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// `EtcdSharedConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSharedConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compaction_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compaction_retention: Option<String>,
}

/// `EtcdStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_with_existing_cluster: Option<EtcdStatusBootstrapWithExistingCluster>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<EtcdStatusCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdStatusEtcd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub last_errors: Vec<EtcdStatusLastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<EtcdStatusLastOperation>,
    #[serde(
        default,
        deserialize_with = "crate::wire::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub members: Vec<EtcdStatusMember>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(rename = "peerUrlTLSEnabled", default, skip_serializing_if = "Option::is_none")]
    pub peer_url_tls_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// `EtcdStatusBootstrapWithExistingCluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusBootstrapWithExistingCluster {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Time>,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub members: Vec<EtcdStatusBootstrapWithExistingClusterMember>,
}

/// `EtcdStatusBootstrapWithExistingClusterMember`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusBootstrapWithExistingClusterMember {
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    pub peer_urls: Vec<String>,
}

/// `EtcdStatusCondition`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub r#type: String,
}

/// `EtcdStatusEtcd`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusEtcd {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub name: String,
}

/// `EtcdStatusLastError`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusLastError {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

/// `EtcdStatusLastOperation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusLastOperation {
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    #[serde(rename = "runID", default)]
    pub run_id: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub r#type: String,
}

/// `EtcdStatusMember`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatusMember {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default)]
    pub status: String,
}
