//! What the status of an `Etcd` tells, as a function of its StatefulSet, pods and leases.

use gardener_apis::druid::v1alpha1::{Etcd, EtcdStatus, EtcdStatusCondition, EtcdStatusEtcd, EtcdStatusMember};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::{Resource, ResourceExt};

use crate::components::{default_labels, member_names, quorum};

/// A quorum of members is ready.
pub const READY: &str = "Ready";
/// All members are ready.
pub const ALL_MEMBERS_READY: &str = "AllMembersReady";
/// All members run what the `Etcd` says.
pub const ALL_MEMBERS_UPDATED: &str = "AllMembersUpdated";
/// Snapshots are taken.
pub const BACKUP_READY: &str = "BackupReady";

/// How long after a full snapshot the next one is overdue: schedules are daily, and a day has an hour of grace.
const FULL_SNAPSHOT_SECONDS: i64 = 25 * 3600;

/// What is known of an etcd cluster.
pub struct Observed<'a> {
    /// Its StatefulSet, if there is one.
    pub stateful_set: Option<&'a StatefulSet>,
    /// Its pods.
    pub pods: &'a [std::sync::Arc<Pod>],
    /// Its leases.
    pub leases: &'a [std::sync::Arc<Lease>],
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Members with a pod. Id and role come from the lease that the member renews (`<id>:<role>`), readiness from the pod.
fn members(etcd: &Etcd, observed: &Observed<'_>, now: &Time) -> Vec<EtcdStatusMember> {
    let member = |name: String| {
        let pod = observed.pods.iter().find(|pod| pod.name_any() == name)?;
        let (status, reason) = if is_ready(pod) {
            ("Ready", "LeaseSucceeded")
        } else {
            ("NotReady", "PodNotReady")
        };
        let holder = observed
            .leases
            .iter()
            .find(|lease| lease.name_any() == name)
            .and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref());
        let (id, role) = match holder.and_then(|holder| holder.split_once(':')) {
            Some((id, role)) => (Some(id.to_owned()), Some(role.to_owned())),
            None => (None, None),
        };
        let before = etcd.status.members.iter().find(|member| member.name == name);
        let since = before
            .filter(|before| before.status == status)
            .and_then(|before| before.last_transition_time.clone());
        Some(EtcdStatusMember {
            id,
            last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
            name,
            reason: if status == "Ready" && role.is_none() {
                "PodReady"
            } else {
                reason
            }
            .to_owned(),
            role,
            status: status.to_owned(),
        })
    };
    member_names(etcd).into_iter().filter_map(member).collect()
}

fn condition(
    old: &[EtcdStatusCondition],
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: &Time,
) -> EtcdStatusCondition {
    let status = if holds { "True" } else { "False" };
    let before = old.iter().find(|condition| condition.r#type == kind);
    let same = before.filter(|before| before.status == status);
    let untouched = same.filter(|before| before.reason == reason && before.message == message);
    EtcdStatusCondition {
        last_transition_time: same
            .and_then(|before| before.last_transition_time.clone())
            .or_else(|| Some(now.clone())),
        last_update_time: untouched
            .and_then(|before| before.last_update_time.clone())
            .or_else(|| Some(now.clone())),
        message: message.to_owned(),
        reason: reason.to_owned(),
        status: status.to_owned(),
        r#type: kind.to_owned(),
    }
}

/// The status without last operation and observed generation, which belong to the run that applies the spec.
pub fn status(etcd: &Etcd, observed: &Observed<'_>, now: &Time) -> EtcdStatus {
    let wanted = etcd.spec.replicas;
    let set_status = observed.stateful_set.and_then(|set| set.status.as_ref());
    let members = members(etcd, observed, now);
    let ready = members.iter().filter(|member| member.status == "Ready").count();
    let ready = i32::try_from(ready).unwrap_or(i32::MAX);
    let updated = observed.stateful_set.is_some_and(|set| {
        set_status.is_some_and(|status| {
            status.observed_generation.unwrap_or_default() >= set.metadata.generation.unwrap_or_default()
                && status.updated_replicas.unwrap_or_default() >= wanted
                && status.current_revision == status.update_revision
        })
    });
    let old = &etcd.status.conditions;
    let mut conditions = vec![
        if ready >= quorum(wanted) || wanted == 0 {
            condition(
                old,
                READY,
                true,
                "Quorate",
                "The majority of ETCD members is ready",
                now,
            )
        } else {
            condition(
                old,
                READY,
                false,
                "QuorumLost",
                "The majority of ETCD members is not ready",
                now,
            )
        },
        if ready >= wanted {
            condition(
                old,
                ALL_MEMBERS_READY,
                true,
                "AllMembersReady",
                "All members are ready",
                now,
            )
        } else {
            condition(
                old,
                ALL_MEMBERS_READY,
                false,
                "NotAllMembersReady",
                "At least one member is not ready",
                now,
            )
        },
        if updated || wanted == 0 {
            condition(
                old,
                ALL_MEMBERS_UPDATED,
                true,
                "AllMembersUpdated",
                "All members reflect the desired spec",
                now,
            )
        } else {
            condition(
                old,
                ALL_MEMBERS_UPDATED,
                false,
                "NotAllMembersUpdated",
                "At least one member is not yet updated",
                now,
            )
        },
    ];
    let full_snapshot = format!("{}-full-snap", etcd.name_any());
    let taken = observed
        .leases
        .iter()
        .find(|lease| lease.name_any() == full_snapshot)
        .and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0.as_second()));
    // as long as nobody reports snapshots there is nothing to judge
    if let Some(taken) = taken.filter(|_| etcd.spec.backup.store.is_some()) {
        conditions.push(if now.0.as_second() - taken <= FULL_SNAPSHOT_SECONDS {
            condition(
                old,
                BACKUP_READY,
                true,
                "BackupSucceeded",
                "Snapshot backup succeeded",
                now,
            )
        } else {
            condition(
                old,
                BACKUP_READY,
                false,
                "BackupFailed",
                "Full snapshot missed its schedule",
                now,
            )
        });
    }
    let settled = observed.stateful_set.is_some_and(|set| {
        let replicas = set.spec.replicas.unwrap_or(1);
        replicas == wanted && set_status.is_some_and(|status| status.ready_replicas.unwrap_or_default() >= wanted)
    });
    let labels = default_labels(etcd);
    let selector: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    EtcdStatus {
        bootstrap_with_existing_cluster: etcd.status.bootstrap_with_existing_cluster.clone(),
        conditions,
        current_replicas: Some(set_status.map_or(0, |status| status.replicas)),
        etcd: observed.stateful_set.map(|set| EtcdStatusEtcd {
            api_version: Some(StatefulSet::api_version(&()).into_owned()),
            kind: StatefulSet::kind(&()).into_owned(),
            name: set.name_any(),
        }),
        label_selector: Some(LabelSelector {
            match_labels: Some(labels),
            ..LabelSelector::default()
        }),
        last_errors: etcd.status.last_errors.clone(),
        last_operation: etcd.status.last_operation.clone(),
        members,
        observed_generation: etcd.status.observed_generation,
        peer_url_tls_enabled: Some(etcd.spec.etcd.peer_url_tls.is_some()),
        ready: Some(settled && (ready >= quorum(wanted) || wanted == 0)),
        ready_replicas: Some(ready),
        replicas: Some(wanted),
        selector: Some(selector.join(",")),
    }
}
