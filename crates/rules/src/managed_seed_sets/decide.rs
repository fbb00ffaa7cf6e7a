//! What a set does next.

use gardener_apis::seedmanagement::v1alpha1::{ManagedSeedSet, ManagedSeedSetStatus, PendingReplica};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::{Replica, Status};
use crate::status_label;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: all is as it should be. In deletion the set can go.
    Nothing,
    /// Nothing but waiting.
    Wait,
    /// The shoot of a new replica with this ordinal is created.
    CreateShoot(i32),
    /// The managed seed of the replica with this ordinal is created.
    CreateManagedSeed(i32),
    /// The shoot of this name is deleted.
    DeleteShoot(String),
    /// The managed seed of this name is deleted.
    DeleteManagedSeed(String),
    /// The shoot of this name is tried again.
    RetryShoot(String),
}

/// What a set does next, and what it tells of that.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is done.
    pub act: Act,
    /// The event's reason and message.
    pub event: Option<(&'static str, String)>,
    /// The status when that is done.
    pub status: ManagedSeedSetStatus,
}

/// Why a set can do nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// The status meanwhile.
    pub status: Box<ManagedSeedSetStatus>,
    /// The reason.
    pub why: &'static str,
}

/// Decides. The replicas may come in any order.
///
/// # Errors
/// [`Stuck`].
pub fn decide(
    set: &ManagedSeedSet,
    replicas: &[Replica<'_>],
    max_retries: i32,
    now: Timestamp,
) -> Result<Decision, Stuck> {
    let mut replicas: Vec<Replica<'_>> = replicas.to_vec();
    replicas.sort_by_key(|own| (own.ordinal(), own.name().to_owned()));
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let ready = replicas.iter().filter(|own| own.is_ready()).count();
    let mut status = set.status.clone();
    status.observed_generation = set.metadata.generation;
    status.replicas = number(replicas.len());
    status.ready_replicas = (ready > 0).then(|| number(ready));
    let going = set.metadata.deletion_timestamp.is_some();
    let target = if going { 0 } else { set.spec.replicas.unwrap_or(1) };
    let (scaling_out, scaling_in) = (status.replicas < target, status.replicas > target);
    let mut own = Deciding {
        status,
        max_retries,
        scaling_in,
        now,
    };
    let pending = own.pending(&replicas);
    // what a run has begun with is told, even if it did not come to tell of it
    let next = own.next_ordinal(&replicas);
    own.status.next_replica_number = (next > 0).then_some(next);
    if let Some((act, event)) = pending.as_ref().and_then(|replica| own.about(replica)) {
        return Ok(own.decided(act, Some(event)));
    }
    if scaling_out {
        let ordinal = next;
        let name = format!("{}-{ordinal}", set.metadata.name.as_deref().unwrap_or_default());
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        own.now_pending(&name, "ShootReconciling", None);
        own.status.replicas = own.status.replicas.saturating_add(1);
        own.status.next_replica_number = Some(ordinal.saturating_add(1));
        let event = ("CreatingShoot", format!("Creating Shoot {namespace}/{name}"));
        return Ok(own.decided(Act::CreateShoot(ordinal), Some(event)));
    }
    if scaling_in {
        let deletable = replicas.iter().filter(|own| own.is_deletable());
        let Some(replica) = deletable.min_by(|one, other| one.by_priority(other)) else {
            return Err(Stuck {
                status: Box::new(own.status),
                why: "no deletable replicas found",
            });
        };
        let (act, event) = own.delete(replica);
        if replica.is_ready() {
            own.status.ready_replicas = own.status.ready_replicas.map(|own| own - 1).filter(|own| *own > 0);
        }
        return Ok(own.decided(act, Some(event)));
    }
    let is_pending = |replica: &Replica<'_>| pending.as_ref().is_some_and(|own| own.name() == replica.name());
    for replica in replicas.iter().filter(|own| !own.is_ready() && !is_pending(own)) {
        if let Some((act, event)) = own.about(replica) {
            return Ok(own.decided(act, Some(event)));
        }
    }
    own.status.pending_replica = None;
    Ok(own.decided(Act::Nothing, None))
}

type Event = (&'static str, String);

struct Deciding {
    status: ManagedSeedSetStatus,
    max_retries: i32,
    scaling_in: bool,
    now: Timestamp,
}

impl Deciding {
    fn decided(self, act: Act, event: Option<Event>) -> Decision {
        Decision {
            act,
            event,
            status: self.status,
        }
    }

    /// The replica that is worked on: the one that the status names, else one that a run began with and did not come to tell of.
    fn pending<'a>(&self, replicas: &[Replica<'a>]) -> Option<Replica<'a>> {
        let named = self.status.pending_replica.as_ref();
        let named = named.and_then(|pending| replicas.iter().find(|own| own.name() == pending.name));
        let next = self.status.next_replica_number.unwrap_or_default();
        let untold = |own: &&Replica<'_>| match self.scaling_in {
            true => matches!(
                own.status(),
                Status::ManagedSeedDeleting | Status::ShootDeleting | Status::ShootDeleteFailed
            ),
            false => own.ordinal() >= next && !own.is_ready(),
        };
        named.or_else(|| replicas.iter().find(untold)).copied()
    }

    /// Replicas are sorted by ordinal.
    fn next_ordinal(&self, replicas: &[Replica<'_>]) -> i32 {
        let behind = replicas.last().map_or(0, |own| own.ordinal().saturating_add(1));
        behind.max(self.status.next_replica_number.unwrap_or_default())
    }

    /// How often a replica was tried again for a reason, as far as that is told.
    fn retries(&self, name: &str, reason: &str) -> Option<i32> {
        let pending = self.status.pending_replica.as_ref();
        pending.filter(|own| own.name == name && own.reason == reason)?.retries
    }

    fn now_pending(&mut self, name: &str, reason: &str, retries: Option<i32>) {
        let known = self.status.pending_replica.as_ref();
        if known.is_some_and(|own| own.name == name && own.reason == reason && own.retries == retries) {
            return;
        }
        self.status.pending_replica = Some(PendingReplica {
            name: name.to_owned(),
            reason: reason.to_owned(),
            retries,
            since: Some(Time(self.now)),
        });
    }

    /// What is done about a replica; none, if the set need not care for it any longer.
    fn about(&mut self, replica: &Replica<'_>) -> Option<(Act, Event)> {
        let (name, full_name) = (replica.name(), replica.full_name());
        let wait = |own: &mut Self, reason: &str, event: &'static str, message: String| {
            let retries = own.retries(name, reason);
            own.now_pending(name, reason, retries);
            Some((Act::Wait, (event, message)))
        };
        match replica.status() {
            Status::ShootReconcileFailed if !self.scaling_in => Some(self.retry(
                replica,
                ("ShootReconciling", "ShootReconcileFailed"),
                (
                    "RetryingShootReconciliation",
                    "NotRetryingShootReconciliation",
                    "reconciliation",
                ),
            )),
            Status::ShootDeleteFailed => Some(self.retry(
                replica,
                ("ShootDeleting", "ShootDeleteFailed"),
                ("RetryingShootDeletion", "NotRetryingShootDeletion", "deletion"),
            )),
            Status::ShootReconciling if !self.scaling_in => {
                let message = format!("Waiting for Shoot {full_name} to be reconciled");
                wait(self, "ShootReconciling", "WaitingForShootReconciled", message)
            }
            Status::ShootDeleting => {
                let message = format!("Waiting for Shoot {full_name} to be deleted");
                wait(self, "ShootDeleting", "WaitingForShootDeleted", message)
            }
            Status::ShootReconciled if self.scaling_in => Some(self.delete(replica)),
            Status::ShootReconciled => {
                self.now_pending(name, "ManagedSeedPreparing", None);
                let event = ("CreatingManagedSeed", format!("Creating ManagedSeed {full_name}"));
                Some((Act::CreateManagedSeed(replica.ordinal()), event))
            }
            Status::ManagedSeedPreparing if !self.scaling_in => {
                let message = format!("Waiting for ManagedSeed {full_name} to be registered");
                wait(self, "ManagedSeedPreparing", "WaitingForManagedSeedRegistered", message)
            }
            Status::ManagedSeedDeleting => {
                let message = format!("Waiting for ManagedSeed {full_name} to be deleted");
                wait(self, "ManagedSeedDeleting", "WaitingForManagedSeedDeleted", message)
            }
            _ if self.scaling_in => None,
            _ if !replica.is_seed_ready() => {
                let message = format!("Waiting for Seed {name} to be ready");
                wait(self, "SeedNotReady", "WaitingForSeedReady", message)
            }
            _ if replica.health() != status_label::Status::Healthy => {
                let message = format!("Waiting for Shoot {full_name} to be healthy");
                wait(self, "ShootNotHealthy", "WaitingForShootHealthy", message)
            }
            _ => None,
        }
    }

    /// Tries a failed shoot again, if that was not done too often.
    fn retry(
        &mut self,
        replica: &Replica<'_>,
        (trying, failed): (&str, &str),
        (event, given_up, what): (&'static str, &'static str, &str),
    ) -> (Act, Event) {
        let (name, full_name) = (replica.name(), replica.full_name());
        // given up is given up, until something changes
        let retries = self
            .retries(name, trying)
            .or(self.retries(name, failed))
            .unwrap_or_default();
        if retries < self.max_retries {
            self.now_pending(name, trying, Some(retries + 1));
            let act = Act::RetryShoot(name.to_owned());
            return (act, (event, format!("Retrying Shoot {full_name} {what}")));
        }
        self.now_pending(name, failed, Some(retries));
        let message = format!("Not retrying Shoot {full_name} {what} since max retries have been reached");
        (Act::Wait, (given_up, message))
    }

    fn delete(&mut self, replica: &Replica<'_>) -> (Act, Event) {
        let (name, full_name) = (replica.name(), replica.full_name());
        match replica.status() >= Status::ManagedSeedPreparing {
            true => {
                self.now_pending(name, "ManagedSeedDeleting", None);
                let event = ("DeletingManagedSeed", format!("Deleting ManagedSeed {full_name}"));
                (Act::DeleteManagedSeed(name.to_owned()), event)
            }
            false => {
                self.now_pending(name, "ShootDeleting", None);
                let event = ("DeletingShoot", format!("Deleting Shoot {full_name}"));
                (Act::DeleteShoot(name.to_owned()), event)
            }
        }
    }
}
