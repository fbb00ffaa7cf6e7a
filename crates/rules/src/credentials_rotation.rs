//! The rotation of a shoot's credentials: when it is due [VER-84], [ST-89], what a start and a success make of `status.credentials.rotation`
//! [CP-80]–[CP-82], and which of an encryption key's two steps a control plane is in [CP-92], [CP-95].
//!
//! Here are the credentials that are rotated by themselves: SSH key pair, observability passwords and etcd encryption key. Those of authorities and of the
//! service account key, which people start and complete, are not.

mod encryption;

use gardener_apis::constants::operation;
use gardener_apis::core::v1beta1::{
    ETCDEncryptionKeyRotation, MaintenanceRotationConfig, Shoot, ShootCredentialsRotation,
};
use gardener_apis::versions::parse;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

pub use encryption::{Encryption, Keys};

/// `Preparing`: new credentials are made and spread, old ones still hold.
pub const PREPARING: &str = "Preparing";
/// `Prepared`: both hold.
pub const PREPARED: &str = "Prepared";
/// `Completing`: old credentials go.
pub const COMPLETING: &str = "Completing";
/// `Completed`: only the new ones hold.
pub const COMPLETED: &str = "Completed";

/// Credentials that maintenance rotates, in the order in which it tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credentials {
    /// The key pair for the nodes' SSH.
    SshKeypair,
    /// The passwords of the observability stack.
    Observability,
    /// The key that the API server's values in etcd are encrypted with.
    EtcdEncryptionKey,
}

impl Credentials {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SshKeypair, Self::Observability, Self::EtcdEncryptionKey];

    /// The operation that rotates them.
    pub fn operation(self) -> &'static str {
        match self {
            Self::SshKeypair => operation::ROTATE_SSH_KEYPAIR,
            Self::Observability => operation::ROTATE_OBSERVABILITY_CREDENTIALS,
            Self::EtcdEncryptionKey => operation::ROTATE_ETCD_ENCRYPTION_KEY,
        }
    }
}

/// What the status tells of rotations.
pub fn status(shoot: &Shoot) -> Option<&ShootCredentialsRotation> {
    shoot.status.credentials.as_ref()?.rotation.as_ref()
}

fn status_mut(shoot: &mut Shoot) -> &mut ShootCredentialsRotation {
    let credentials = shoot.status.credentials.get_or_insert_default();
    credentials.rotation.get_or_insert_default()
}

/// The phase of the etcd encryption key's rotation; empty if it was never rotated.
pub fn etcd_encryption_key_phase(shoot: &Shoot) -> &str {
    let rotation = status(shoot).and_then(|all| all.etcd_encryption_key.as_ref());
    rotation.map_or("", |rotation| rotation.phase.as_str())
}

/// Whether no rotation is under way in this phase.
pub fn is_at_rest(phase: &str) -> bool {
    phase.is_empty() || phase == COMPLETED
}

/// When the credentials were last rotated; none if never.
fn last_completion(shoot: &Shoot, of: Credentials) -> Option<Timestamp> {
    let rotation = status(shoot)?;
    let time = match of {
        Credentials::SshKeypair => rotation.ssh_keypair.as_ref()?.last_completion_time.as_ref(),
        Credentials::Observability => rotation.observability.as_ref()?.last_completion_time.as_ref(),
        Credentials::EtcdEncryptionKey => rotation.etcd_encryption_key.as_ref()?.last_completion_time.as_ref(),
    };
    time.map(|time| time.0)
}

/// After how long the credentials are rotated by themselves; none if never.
fn period(shoot: &Shoot, of: Credentials) -> Option<SignedDuration> {
    let maintenance = shoot.spec.maintenance.as_ref()?;
    let wanted = maintenance.auto_rotation.as_ref()?.credentials.as_ref()?;
    let config: &MaintenanceRotationConfig = match of {
        Credentials::SshKeypair => wanted.ssh_keypair.as_ref()?,
        Credentials::Observability => wanted.observability.as_ref()?,
        Credentials::EtcdEncryptionKey => wanted.etcd_encryption_key.as_ref()?,
    };
    let period = SignedDuration::from_nanos(config.rotation_period?.as_nanos());
    (!period.is_zero()).then_some(period)
}

/// When the period of the credentials ends: after that they are to be rotated, not at that very moment. It counts from their last rotation, or from the
/// shoot's creation. None, if they are not rotated by themselves [VER-84].
pub fn period_ends(shoot: &Shoot, of: Credentials) -> Option<Timestamp> {
    let period = period(shoot, of)?;
    let created = || shoot.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let since = last_completion(shoot, of).or_else(created).unwrap_or(Timestamp::MIN);
    Some(since.saturating_add(period).unwrap_or(Timestamp::MAX))
}

/// Whether the period of the credentials is over [VER-84], [ST-89].
pub fn is_overdue(shoot: &Shoot, of: Credentials, now: Timestamp) -> bool {
    period_ends(shoot, of).is_some_and(|end| end < now)
}

/// Whether a shoot as it is may have the credentials rotated: without SSH access there is no key pair, and asleep nothing can be encrypted anew [VER-84].
pub fn is_possible(shoot: &Shoot, of: Credentials) -> bool {
    match of {
        Credentials::SshKeypair => shoot.spec.ssh_access_enabled(),
        Credentials::Observability => true,
        Credentials::EtcdEncryptionKey => !shoot.hibernation_enabled(),
    }
}

/// Whether the etcd encryption key's rotation is completed without being asked for [CP-82].
fn completes_itself(shoot: &Shoot, rotation: &ETCDEncryptionKeyRotation) -> bool {
    rotation.auto_complete_after_prepared == Some(true) || has_no_separate_steps(shoot)
}

/// From 1.34 on nobody can ask for the completion of the etcd encryption key's rotation [CP-84].
fn has_no_separate_steps(shoot: &Shoot) -> bool {
    parse(shoot.spec.kubernetes_version()).is_some_and(|version| (version.major, version.minor) >= (1, 34))
}

fn start_etcd_encryption_key(shoot: &mut Shoot, completes_itself: bool, now: &Time) {
    let rotation = status_mut(shoot).etcd_encryption_key.get_or_insert_default();
    PREPARING.clone_into(&mut rotation.phase);
    rotation.last_initiation_time = Some(now.clone());
    rotation.last_initiation_finished_time = None;
    rotation.last_completion_triggered_time = None;
    rotation.auto_complete_after_prepared = Some(completes_itself);
}

fn complete_etcd_encryption_key(shoot: &mut Shoot, now: &Time) {
    let rotation = status_mut(shoot).etcd_encryption_key.get_or_insert_default();
    COMPLETING.clone_into(&mut rotation.phase);
    rotation.last_completion_triggered_time = Some(now.clone());
}

/// Whether an operation of the annotation is one of those that [`started`] handles.
pub fn is_handled(wanted: &str) -> bool {
    [
        operation::ROTATE_SSH_KEYPAIR,
        operation::ROTATE_OBSERVABILITY_CREDENTIALS,
        operation::ROTATE_ETCD_ENCRYPTION_KEY,
        operation::ROTATE_ETCD_ENCRYPTION_KEY_START,
        operation::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
    ]
    .contains(&wanted)
}

/// Writes into the status what the start of an operation on the shoot makes of rotations: those that are asked for begin, and what goes on by itself does
/// [CP-80], [CP-82].
pub fn started(shoot: &mut Shoot, operations: &[String], now: &Time) {
    for wanted in operations {
        match wanted.as_str() {
            operation::ROTATE_SSH_KEYPAIR if shoot.spec.ssh_access_enabled() => {
                let rotation = status_mut(shoot).ssh_keypair.get_or_insert_default();
                rotation.last_initiation_time = Some(now.clone());
            }
            operation::ROTATE_OBSERVABILITY_CREDENTIALS => {
                let rotation = status_mut(shoot).observability.get_or_insert_default();
                rotation.last_initiation_time = Some(now.clone());
            }
            operation::ROTATE_ETCD_ENCRYPTION_KEY => start_etcd_encryption_key(shoot, true, now),
            operation::ROTATE_ETCD_ENCRYPTION_KEY_START => start_etcd_encryption_key(shoot, false, now),
            operation::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE => complete_etcd_encryption_key(shoot, now),
            _ => {}
        }
    }
    let rotation = status(shoot).and_then(|all| all.etcd_encryption_key.as_ref());
    if rotation.is_some_and(|own| own.phase == PREPARED && completes_itself(shoot, own)) {
        complete_etcd_encryption_key(shoot, now);
    }
    if Encryption::of(shoot).changes_provider() && is_at_rest(etcd_encryption_key_phase(shoot)) {
        start_etcd_encryption_key(shoot, true, now);
    }
}

fn is_under_way(initiated: Option<&Time>, completed: Option<&Time>) -> bool {
    initiated.is_some_and(|initiated| completed.is_none_or(|completed| completed.0 < initiated.0))
}

/// Writes into the status what the success of an operation on the shoot makes of rotations [CP-81].
pub fn succeeded(shoot: &mut Shoot, now: &Time) {
    let has_ssh_access = shoot.spec.ssh_access_enabled();
    let Some(all) = shoot.status.credentials.as_mut().and_then(|own| own.rotation.as_mut()) else {
        return;
    };
    if let Some(rotation) = &mut all.etcd_encryption_key {
        match rotation.phase.as_str() {
            PREPARING => {
                PREPARED.clone_into(&mut rotation.phase);
                rotation.last_initiation_finished_time = Some(now.clone());
            }
            COMPLETING => {
                COMPLETED.clone_into(&mut rotation.phase);
                rotation.last_completion_time = Some(now.clone());
                rotation.last_initiation_finished_time = None;
                rotation.last_completion_triggered_time = None;
                rotation.auto_complete_after_prepared = None;
            }
            _ => {}
        }
    }
    if let Some(rotation) = &mut all.ssh_keypair
        && is_under_way(
            rotation.last_initiation_time.as_ref(),
            rotation.last_completion_time.as_ref(),
        )
    {
        rotation.last_completion_time = Some(now.clone());
    }
    if let Some(rotation) = &mut all.observability
        && is_under_way(
            rotation.last_initiation_time.as_ref(),
            rotation.last_completion_time.as_ref(),
        )
    {
        rotation.last_completion_time = Some(now.clone());
    }
    if !has_ssh_access {
        all.ssh_keypair = None;
    }
}

#[cfg(test)]
mod tests;
