//! `ControllerManagerConfiguration` (`controllermanager.config.gardener.cloud/v1alpha1`): upstream's fields with upstream's defaults.
//!
//! How a file is read, and what of it has no effect, is in `read`. Values are kept as they are meant: what is not set has its default.

mod read;

use std::collections::BTreeMap;

use gardener_apimachinery::duration::Duration;
use gardener_rules::maintenance::Settings;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

pub use read::{ConfigurationError, read};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// The whole configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerManagerConfiguration {
    /// How the garden is reached.
    pub garden_client_connection: ClientConnection,
    /// The controllers.
    pub controllers: Controllers,
    /// Which of several replicas works.
    pub leader_election: LeaderElection,
    /// `debug`, `info` or `error`.
    pub log_level: String,
    /// `json` or `text`.
    pub log_format: String,
    /// Where health and metrics are served.
    pub server: Servers,
    /// Without effect.
    pub debugging: Debugging,
    /// Features that are switched on or off.
    pub feature_gates: BTreeMap<String, bool>,
}

impl Default for ControllerManagerConfiguration {
    fn default() -> Self {
        Self {
            garden_client_connection: ClientConnection::default(),
            controllers: Controllers::default(),
            leader_election: LeaderElection::default(),
            log_level: "info".to_owned(),
            log_format: "json".to_owned(),
            server: Servers::default(),
            debugging: Debugging::default(),
            feature_gates: BTreeMap::new(),
        }
    }
}

impl ControllerManagerConfiguration {
    /// What maintenance is told.
    pub fn maintenance(&self) -> Settings {
        let gate = self.feature_gates.get(read::DISABLE_NGINX_INGRESS);
        Settings {
            restart_control_plane: self.controllers.shoot_maintenance.enable_shoot_control_plane_restarter,
            restart_core_addons: self.controllers.shoot_maintenance.enable_shoot_core_addon_restarter,
            disable_nginx_ingress: gate.copied().unwrap_or_default(),
        }
    }
}

/// How the garden is reached. There is no limit on requests here, and JSON is spoken alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConnection {
    /// Path of a kubeconfig.
    pub kubeconfig: String,
    /// Without effect.
    pub accept_content_types: String,
    /// Without effect.
    pub content_type: String,
    /// Without effect.
    pub qps: f64,
    /// Without effect.
    pub burst: i64,
}

/// Which of several replicas works.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderElection {
    /// Whether a lease is needed to work.
    pub leader_elect: bool,
    /// How long others wait after the last renewal.
    pub lease_duration: Duration,
    /// How long a leader tries to renew.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
    /// `leases`; there is nothing else.
    pub resource_lock: String,
    /// The lease's name.
    pub resource_name: String,
    /// The lease's namespace. By default that of section F of the garden API; upstream's is `garden`.
    pub resource_namespace: String,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_lock: "leases".to_owned(),
            resource_name: "gardener-controller-manager-leader-election".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }
}

/// Where health and metrics are served.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Servers {
    /// `/healthz` and `/readyz`.
    pub health_probes: HealthProbes,
    /// `/metrics`.
    pub metrics: Metrics,
}

macro_rules! server {
    ($name:ident, $port:literal) => {
        /// An address to listen on; an empty one means all of the machine's.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// The IP address.
            pub bind_address: String,
            /// The port.
            pub port: u16,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    bind_address: String::new(),
                    port: $port,
                }
            }
        }
    };
}
server!(HealthProbes, 2718);
server!(Metrics, 2719);

/// Without effect.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Debugging {
    /// Without effect.
    pub enable_profiling: bool,
    /// Without effect.
    pub enable_contention_profiling: bool,
}

/// Makes a controller's section: how many objects it works on at once, and what else there is with its default.
macro_rules! section {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// How many objects the controller works on at once.
            pub concurrent_syncs: usize,
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { concurrent_syncs: 5, $($field: $default,)* }
            }
        }
    };
}

section! {
    /// A controller of which nothing but its concurrency is configured.
    Plain {}
}
section! {
    /// `bastion`.
    Bastion {
        /// How old a bastion may become.
        max_lifetime: Duration = Duration::from_secs(24 * HOUR),
    }
}
section! {
    /// `event`.
    Event {
        /// How long events about anything but shoots are kept.
        #[serde(rename = "ttlNonShootEvents")]
        ttl_non_shoot_events: Duration = Duration::from_secs(HOUR),
    }
}
section! {
    /// `project`.
    Project {
        /// How old a project must be to become stale.
        minimum_lifetime_days: i64 = 30,
        /// Quotas of projects' namespaces; the first whose selector matches counts.
        quotas: Vec<Quota> = Vec::new(),
        /// How long a stale project is left alone.
        stale_grace_period_days: i64 = 14,
        /// How long a project may be stale until it is deleted.
        stale_expiration_time_days: i64 = 90,
        /// How often it is looked at.
        stale_sync_period: Duration = Duration::from_secs(12 * HOUR),
    }
}
section! {
    /// `seed`: the lifecycle of gardenlets.
    Seed {
        /// How old a lease may be.
        monitor_period: Duration = Duration::from_secs(40),
        /// How long a gardenlet may be silent until its shoots' conditions become unknown. Not set: five monitor periods.
        shoot_monitor_period: Option<Duration> = None,
        /// How often leases are looked at.
        sync_period: Duration = Duration::from_secs(10),
    }
}

impl Seed {
    /// How long a gardenlet may be silent until its shoots' conditions become unknown.
    pub fn shoot_monitor_period(&self) -> Duration {
        let five = Duration::from_nanos(self.monitor_period.as_nanos().saturating_mul(5));
        self.shoot_monitor_period.unwrap_or(five)
    }
}

section! {
    /// `seedExtensionsCheck` and `seedBackupBucketsCheck`.
    SeedCheck {
        /// How often it is looked at.
        sync_period: Duration = Duration::from_secs(30),
        /// How long conditions may be on their way from true to false.
        condition_thresholds: Vec<ConditionThreshold> = Vec::new(),
    }
}

impl SeedCheck {
    /// How long a condition may be on its way from true to false; not at all by default.
    pub fn threshold(&self, r#type: &str) -> Duration {
        let own = self.condition_thresholds.iter().find(|own| own.r#type == r#type);
        own.map(|own| own.duration).unwrap_or_default()
    }
}

section! {
    /// `shootMaintenance`.
    ShootMaintenance {
        /// Whether pods of the control plane are restarted.
        enable_shoot_control_plane_restarter: bool = true,
        /// Whether some addons are restarted.
        enable_shoot_core_addon_restarter: bool = false,
    }
}
section! {
    /// `shootQuota`.
    ShootQuota {
        /// How often lifetimes are looked at.
        sync_period: Duration = Duration::from_secs(HOUR),
    }
}
section! {
    /// `shootHibernation`.
    ShootHibernation {
        /// How late a schedule may still be followed.
        trigger_deadline_duration: Duration = Duration::from_secs(2 * HOUR),
    }
}
section! {
    /// `shootRetry`.
    ShootRetry {
        /// How long a failed shoot waits.
        retry_period: Duration = Duration::from_secs(10 * MINUTE),
        /// How much longer it may wait by chance.
        retry_jitter_period: Duration = Duration::from_secs(5 * MINUTE),
    }
}
section! {
    /// `managedSeedSet`.
    ManagedSeedSet {
        /// How often a failed shoot of a replica is tried again.
        max_shoot_retries: i32 = 3,
        /// How often sets are looked at.
        sync_period: Duration = Duration::from_secs(30 * MINUTE),
    }
}

/// How long a condition may be on its way from true to false.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionThreshold {
    /// The condition's type.
    pub r#type: String,
    /// How long.
    pub duration: Duration,
}

/// A quota of some projects' namespaces.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Labels, annotations and limits of the ResourceQuota.
    pub config: ResourceQuota,
    /// For which projects; not set or empty: for all.
    #[serde(default)]
    pub project_selector: LabelSelector,
}

/// The controllers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Controllers {
    /// [GCM-51].
    pub bastion: Bastion,
    /// [GCM-24].
    pub certificate_signing_request: Plain,
    /// [GCM-14].
    pub cloud_profile: Plain,
    /// [GCM-15].
    pub namespaced_cloud_profile: Plain,
    /// [GCM-11].
    pub controller_deployment: Plain,
    /// References of ControllerDeployments, as of shoots [GCM-17].
    pub controller_deployment_reference: Plain,
    /// [GCM-30].
    pub controller_registration: Plain,
    /// [GCM-50]. Not set: events are left alone, as with upstream.
    pub event: Option<Event>,
    /// [GCM-11].
    pub exposure_class: Plain,
    /// [GCM-1]–[GCM-7].
    pub project: Project,
    /// [GCM-10].
    pub quota: Plain,
    /// [GCM-12].
    pub secret_binding: Plain,
    /// [GCM-13].
    pub credentials_binding: Plain,
    /// [GCM-20].
    pub seed: Seed,
    /// [GCM-21].
    pub seed_extensions_check: SeedCheck,
    /// [GCM-22].
    pub seed_backup_buckets_check: SeedCheck,
    /// [GCM-17].
    pub seed_reference: Plain,
    /// [GCM-41].
    pub shoot_maintenance: ShootMaintenance,
    /// [GCM-42].
    pub shoot_quota: ShootQuota,
    /// [GCM-40].
    pub shoot_hibernation: ShootHibernation,
    /// [GCM-17].
    pub shoot_reference: Plain,
    /// [GCM-43].
    pub shoot_retry: ShootRetry,
    /// [GCM-45].
    pub shoot_conditions: Plain,
    /// [GCM-44].
    pub shoot_status_label: Plain,
    /// [GCM-46].
    pub shoot_migration: Plain,
    /// [GCM-25].
    pub managed_seed_set: ManagedSeedSet,
    /// [GCM-16].
    pub shoot_state: Plain,
    /// Without effect: informers have no deadline here, health tells of those that wait.
    pub cache_sync_timeout: Duration,
}

impl Default for Controllers {
    /// As without a file: all controllers run. A file without `event` leaves events alone.
    fn default() -> Self {
        Self {
            bastion: Bastion::default(),
            certificate_signing_request: Plain::default(),
            cloud_profile: Plain::default(),
            namespaced_cloud_profile: Plain::default(),
            controller_deployment: Plain::default(),
            controller_deployment_reference: Plain::default(),
            controller_registration: Plain::default(),
            event: Some(Event::default()),
            exposure_class: Plain::default(),
            project: Project::default(),
            quota: Plain::default(),
            secret_binding: Plain::default(),
            credentials_binding: Plain::default(),
            seed: Seed::default(),
            seed_extensions_check: SeedCheck::default(),
            seed_backup_buckets_check: SeedCheck::default(),
            seed_reference: Plain::default(),
            shoot_maintenance: ShootMaintenance::default(),
            shoot_quota: ShootQuota::default(),
            shoot_hibernation: ShootHibernation::default(),
            shoot_reference: Plain::default(),
            shoot_retry: ShootRetry::default(),
            shoot_conditions: Plain::default(),
            shoot_status_label: Plain::default(),
            shoot_migration: Plain::default(),
            managed_seed_set: ManagedSeedSet::default(),
            shoot_state: Plain::default(),
            cache_sync_timeout: Duration::from_secs(2 * MINUTE),
        }
    }
}
