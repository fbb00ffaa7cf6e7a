//! What a gardenlet is given: clients, names, configuration [CP-150].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::{Gardener, Seed};
use gardener_controller::secrets::{Manager, ManagerError, Options};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::bootstrap::GardenKubeconfig;

/// Gives clients of shoots' APIs.
#[async_trait]
pub trait ShootClients: Send + Sync + 'static {
    /// A client of the shoot with this technical ID, as the service account `gardener-internal` [CP-101].
    ///
    /// # Errors
    /// Why it cannot be reached.
    async fn client(&self, technical_id: &str) -> Result<Client, String>;
}

/// What a gardenlet works with.
#[derive(Clone)]
pub struct Config {
    /// A client of the garden.
    pub garden: Client,
    /// The kubeconfig behind that client, if it is kept in the seed and renewed.
    pub garden_kubeconfig: Option<GardenKubeconfig>,
    /// A client of the seed.
    pub seed: Client,
    /// Clients of the shoots.
    pub shoots: Arc<dyn ShootClients>,
    /// The name of the Seed.
    pub seed_name: String,
    /// Labels, annotations and spec of the Seed, if this gardenlet registers it.
    pub seed_template: Option<Seed>,
    /// Who this gardenlet is: written to `status.gardener`.
    pub identity: Gardener,
    /// What time it is.
    pub clock: Clock,
    /// Passwords, keys and spreading.
    pub chance: Chance,
    /// The configuration file's fields.
    pub settings: Settings,
}

impl Config {
    /// The manager of gardenlet's secrets in a namespace of the seed; `rotations` tells when which of them was last rotated.
    ///
    /// # Errors
    /// What the seed says.
    pub(crate) async fn secrets_manager(
        &self,
        namespace: &str,
        rotations: BTreeMap<String, Timestamp>,
    ) -> Result<Manager, ManagerError> {
        let options = Options {
            namespace: namespace.to_owned(),
            identity: "gardenlet".to_owned(),
            rotations,
        };
        let chance = StdRng::seed_from_u64(self.chance.number());
        Manager::new(self.seed.clone(), self.clock.clone(), options, chance).await
    }

    /// Selects what the garden has labelled as this seed's: gardenlet may list nothing else [AUTH-4].
    pub(crate) fn seed_label(&self) -> String {
        format!("{}{}=true", label::SEED_NAME_PREFIX, self.seed_name)
    }
}

/// The fields of GardenletConfiguration that exist here [CP-150].
#[derive(Clone, Debug)]
pub struct Settings {
    /// `controllers.shoot`.
    pub shoot: ShootSettings,
    /// `controllers.shootCare`.
    pub shoot_care: CareSettings,
    /// `controllers.seed.syncPeriod`.
    pub seed_sync_period: Duration,
    /// `controllers.seed.leaseResyncSeconds`.
    pub lease_resync: Duration,
    /// `controllers.seedCare.syncPeriod`.
    pub seed_care_sync_period: Duration,
    /// `controllers.seedCare.conditionThresholds`, by condition type [ST-30].
    pub seed_care_condition_thresholds: Vec<(String, Duration)>,
    /// `controllers.controllerInstallationCare.syncPeriod`.
    pub controller_installation_care_sync_period: Duration,
    /// `controllers.backupEntry`.
    pub backup_entry: BackupEntrySettings,
    /// Where shoots' API servers are reached: the address of the SNI entrance, if no LoadBalancer Service `istio-ingressgateway`
    /// tells another.
    pub ingress: Ingress,
}

/// The entrance in front of the shoots' API servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// IP address or host name.
    pub address: String,
    /// TCP port; left out of URLs if it is 443.
    pub port: u16,
}

/// `controllers.shoot`.
#[derive(Clone, Debug)]
pub struct ShootSettings {
    /// How many shoots at a time.
    pub concurrent_syncs: usize,
    /// How often an unchanged shoot is reconciled.
    pub sync_period: Duration,
    /// How long a failing operation is retried.
    pub retry_duration: Duration,
    /// How often progress is written at most; every change if zero.
    pub progress_report_period: Duration,
    /// The time to live of DNS records in seconds.
    pub dns_entry_ttl_seconds: i64,
    /// Whether the annotations `ignore` and `sync-period` count.
    pub respect_sync_period_overwrite: bool,
    /// Whether unchanged shoots are reconciled in their maintenance window only.
    pub reconcile_in_maintenance_only: bool,
}

/// `controllers.shootCare`.
#[derive(Clone, Debug)]
pub struct CareSettings {
    /// How many shoots at a time.
    pub concurrent_syncs: usize,
    /// How often a shoot is looked at.
    pub sync_period: Duration,
    /// Up to which age a heartbeat counts; none switches the check off [EXT-122].
    pub stale_extension_health_checks: Option<Duration>,
    /// How long a failing check is Progressing before it is False, by condition type [ST-30].
    pub condition_thresholds: Vec<(String, Duration)>,
    /// How long a ManagedResource may roll out before that counts; not at all if there is none [ST-62].
    pub managed_resource_progressing_threshold: Option<Duration>,
    /// Whether webhooks that are problematic are changed [ST-110].
    pub webhook_remediator_enabled: bool,
}

/// `controllers.backupEntry`.
#[derive(Clone, Debug, Default)]
pub struct BackupEntrySettings {
    /// How long a deleted entry is kept, in hours.
    pub deletion_grace_period_hours: u32,
    /// The purposes of shoots whose entries are kept so long; those of all if there are none.
    pub deletion_grace_period_shoot_purposes: Vec<String>,
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

impl Default for Settings {
    /// Upstream's defaults [CP-150].
    fn default() -> Self {
        Self {
            shoot: ShootSettings {
                concurrent_syncs: 20,
                sync_period: HOUR,
                retry_duration: HOUR * 12,
                progress_report_period: Duration::ZERO,
                dns_entry_ttl_seconds: 120,
                respect_sync_period_overwrite: false,
                reconcile_in_maintenance_only: false,
            },
            shoot_care: CareSettings {
                concurrent_syncs: 20,
                sync_period: MINUTE,
                stale_extension_health_checks: Some(MINUTE * 5),
                condition_thresholds: Vec::new(),
                managed_resource_progressing_threshold: None,
                webhook_remediator_enabled: false,
            },
            seed_sync_period: MINUTE,
            lease_resync: Duration::from_secs(2),
            seed_care_sync_period: Duration::from_secs(30),
            seed_care_condition_thresholds: Vec::new(),
            controller_installation_care_sync_period: Duration::from_secs(30),
            backup_entry: BackupEntrySettings::default(),
            ingress: Ingress {
                address: "127.0.0.1".to_owned(),
                port: 443,
            },
        }
    }
}
