//! The credentials that a maintenance has rotated [VER-84].

use gardener_apis::core::v1beta1::Shoot;
use k8s_openapi::jiff::Timestamp;

use super::{Item, Subject};
use crate::credentials_rotation::{
    Credentials, etcd_encryption_key_phase, is_at_rest, is_overdue, is_possible, period_ends,
};

/// Whether the shoot is one of which gardenlet can be asked anything: otherwise no rotation starts, and none is told [VER-85].
fn can_be_asked(shoot: &Shoot) -> bool {
    let last = shoot.status.last_operation.as_ref();
    last.is_some_and(|last| last.state != "Failed")
}

/// Reason and result of a rotation that is due.
fn told(shoot: &Shoot, of: Credentials) -> (&'static str, Result<&'static str, &'static str>) {
    match of {
        Credentials::SshKeypair => (
            "Automatic rotation of SSH keypair configured",
            Ok("SSH keypair rotation started"),
        ),
        Credentials::Observability => (
            "Automatic rotation of observability passwords configured",
            Ok("Observability passwords rotation started"),
        ),
        Credentials::EtcdEncryptionKey if is_at_rest(etcd_encryption_key_phase(shoot)) => (
            "Automatic rotation of etcd encryption key configured",
            Ok("ETCD Encryption key rotation started"),
        ),
        Credentials::EtcdEncryptionKey => (
            "ETCD encryption key rotation is already in progress",
            Err("Could not start ETCD encryption key rotation"),
        ),
    }
}

/// The rotations that are due, each with what becomes of it.
pub(super) fn due(shoot: &Shoot, now: Timestamp) -> Vec<Item> {
    let all = Credentials::ALL
        .into_iter()
        .filter(|of| can_be_asked(shoot) && is_possible(shoot, *of) && is_overdue(shoot, *of, now));
    all.map(|of| {
        let (reason, result) = told(shoot, of);
        Item {
            subject: Subject::Credentials(of),
            reason: reason.to_owned(),
            result: result.map(str::to_owned).map_err(str::to_owned),
        }
    })
    .collect()
}

/// When next a rotation of a shoot becomes due. One that waits for another one to end, or for a schedule to wake the shoot up, may be due at any time.
pub(super) fn next_due(shoot: &Shoot, now: Timestamp) -> Option<Timestamp> {
    let hibernation = shoot.spec.hibernation.as_ref();
    let wakes_up = hibernation.is_some_and(|own| own.schedules.iter().any(|schedule| schedule.end.is_some()));
    let next = |of: Credentials| {
        let end = period_ends(shoot, of)?;
        let is_key = of == Credentials::EtcdEncryptionKey;
        let waits = is_key && !is_at_rest(etcd_encryption_key_phase(shoot));
        let sleeps = is_key && wakes_up && !is_possible(shoot, of);
        match is_possible(shoot, of) || sleeps {
            true if end >= now => Some(end),
            true => (waits || sleeps).then_some(now),
            false => None,
        }
    };
    Credentials::ALL
        .into_iter()
        .filter(|_| can_be_asked(shoot))
        .filter_map(next)
        .min()
}
