//! What is known of one replica.

use std::cmp::{Ordering, Reverse};

use gardener_apimachinery::meta::is_true;
use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::{Condition, Seed, Shoot};
use gardener_apis::seedmanagement::v1alpha1::ManagedSeed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::status_label;

const PROTECTED: &str = "seedmanagement.gardener.cloud/protect-from-deletion";

/// How far a replica has come, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Its shoot failed.
    ShootReconcileFailed,
    /// The deletion of its shoot failed.
    ShootDeleteFailed,
    /// Its shoot is created.
    ShootReconciling,
    /// Its shoot is deleted.
    ShootDeleting,
    /// Its shoot is there, its managed seed is not.
    ShootReconciled,
    /// Its managed seed is created.
    ManagedSeedPreparing,
    /// Its managed seed is deleted.
    ManagedSeedDeleting,
    /// Its managed seed is registered.
    ManagedSeedRegistered,
}

/// A replica with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    /// The shoot, by which a replica is known.
    pub shoot: &'a Shoot,
    /// The managed seed of the same name.
    pub managed_seed: Option<&'a ManagedSeed>,
    /// The seed of the same name.
    pub seed: Option<&'a Seed>,
    /// Whether shoots are scheduled to the seed.
    pub has_shoots: bool,
}

fn is_observed(metadata: &ObjectMeta, observed: Option<i64>) -> bool {
    metadata.generation.unwrap_or_default() == observed.unwrap_or_default()
}

fn is_true_in(conditions: &[Condition], kind: &str) -> Option<bool> {
    let condition = conditions.iter().find(|own| own.r#type == kind);
    condition.map(|own| own.status == "True")
}

/// Whether a managed seed is up to date and registered.
pub fn is_registered(managed_seed: &ManagedSeed) -> bool {
    is_observed(&managed_seed.metadata, managed_seed.status.observed_generation)
        && managed_seed.metadata.deletion_timestamp.is_none()
        && is_true_in(&managed_seed.status.conditions, "SeedRegistered") == Some(true)
}

/// Whether a seed is up to date and works.
pub fn is_seed_ready(seed: &Seed) -> bool {
    let is = |kind: &str| is_true_in(&seed.status.conditions, kind);
    is_observed(&seed.metadata, seed.status.observed_generation)
        && seed.metadata.deletion_timestamp.is_none()
        && is("GardenletReady") == Some(true)
        && is("SeedSystemComponentsHealthy") == Some(true)
        && is("BackupBucketsReady") != Some(false)
}

impl Replica<'_> {
    /// The name of its objects.
    pub fn name(&self) -> &str {
        self.shoot.own_name()
    }

    /// Namespace and name.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.shoot.project_namespace(), self.name())
    }

    /// The number at the end of its name; −1 without one.
    pub fn ordinal(&self) -> i32 {
        let number = self.name().rsplit_once('-').map(|(_, number)| number);
        let number = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        number.and_then(|number| number.parse().ok()).unwrap_or(-1)
    }

    /// How far it has come.
    pub fn status(&self) -> Status {
        let going = self.shoot.in_deletion();
        if let Some(managed_seed) = self.managed_seed {
            return match managed_seed.metadata.deletion_timestamp {
                _ if is_registered(managed_seed) => Status::ManagedSeedRegistered,
                None => Status::ManagedSeedPreparing,
                Some(_) => Status::ManagedSeedDeleting,
            };
        }
        let observed = is_observed(&self.shoot.metadata, self.shoot.status.observed_generation);
        let last = self.shoot.status.last_operation.as_ref().filter(|_| observed);
        let last = last.map(|last| (last.r#type.as_str(), last.state.as_str()));
        match (going, last) {
            (false, Some(("Create" | "Reconcile", "Succeeded"))) => Status::ShootReconciled,
            (false, Some(("Create" | "Reconcile", "Failed"))) => Status::ShootReconcileFailed,
            (true, Some(("Delete", "Failed"))) => Status::ShootDeleteFailed,
            (false, _) => Status::ShootReconciling,
            (true, _) => Status::ShootDeleting,
        }
    }

    /// Whether its seed is ready.
    pub fn is_seed_ready(&self) -> bool {
        self.seed.is_some_and(is_seed_ready)
    }

    /// The health of its shoot, by its label.
    pub fn health(&self) -> status_label::Status {
        let labels = self.shoot.metadata.labels.as_ref();
        let told = labels.and_then(|labels| labels.get(label::SHOOT_STATUS));
        match told.map(String::as_str) {
            Some("healthy") => status_label::Status::Healthy,
            Some("unhealthy") => status_label::Status::Unhealthy,
            Some("unknown") => status_label::Status::Unknown,
            _ => status_label::Status::Progressing,
        }
    }

    /// Whether everything of it works.
    pub fn is_ready(&self) -> bool {
        self.status() == Status::ManagedSeedRegistered
            && self.is_seed_ready()
            && self.health() == status_label::Status::Healthy
    }

    /// Whether it may be deleted.
    pub fn is_deletable(&self) -> bool {
        let is_protected = |metadata: &ObjectMeta| {
            let told = metadata.annotations.as_ref().and_then(|own| own.get(PROTECTED));
            told.is_some_and(|value| is_true(value))
        };
        let managed_seed = self.managed_seed.map(|own| &own.metadata);
        !self.has_shoots && !is_protected(&self.shoot.metadata) && !managed_seed.is_some_and(is_protected)
    }

    /// Which of two replicas is deleted rather: the one that has come less far, whose seed is not ready, whose shoot is worse, whose ordinal is
    /// higher.
    pub fn by_priority(&self, other: &Self) -> Ordering {
        let key = |own: &Self| {
            (
                own.status(),
                own.is_seed_ready(),
                Reverse(own.health()),
                Reverse(own.ordinal()),
            )
        };
        key(self).cmp(&key(other))
    }
}
