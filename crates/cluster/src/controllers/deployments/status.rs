//! A Deployment's status: counts, and the conditions Available, Progressing and ReplicaFailure.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::AFTER_DEADLINE;
use super::decide::{bounds, replicas, split};
use super::replica_sets::{available, current};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const COMPLETE: &str = "NewReplicaSetAvailable";

fn ready(set: &ReplicaSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.ready_replicas)
        .unwrap_or(0)
}

fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|own| own.type_.as_deref() == Some(type_))
}

fn deadline(deployment: &Deployment) -> Option<i64> {
    let seconds = deployment.spec.progress_deadline_seconds.unwrap_or(600);
    (seconds != i32::MAX).then_some(i64::from(seconds))
}

fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = replicas(deployment);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
}

/// Whether more new pods are there, fewer old ones, or more of all are ready or available than before.
fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let updated = |status: &DeploymentStatus| status.updated_replicas.unwrap_or(0);
    let old_ones = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - updated(status);
    updated(new) > updated(old)
        || old_ones(new) < old_ones(old)
        || new.ready_replicas.unwrap_or(0) > old.ready_replicas.unwrap_or(0)
        || new.available_replicas.unwrap_or(0) > old.available_replicas.unwrap_or(0)
}

fn timed_out(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> bool {
    let (Some(condition), Some(seconds)) = (find(status, PROGRESSING), deadline(deployment)) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        _ => condition
            .last_update_time
            .as_ref()
            .is_some_and(|since| now.duration_since(since.0).as_secs() > seconds),
    }
}

/// Sets a condition; what is the same keeps its times, unless `touch` moves the update time.
fn set(
    conditions: &mut Vec<DeploymentCondition>,
    type_: &str,
    status: bool,
    reason: &str,
    message: String,
    now: Timestamp,
    touch: bool,
) {
    let status = if status { "True" } else { "False" };
    // whole seconds, as times are told
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let before = conditions.iter().find(|own| own.type_.as_deref() == Some(type_));
    if let Some(before) = before
        && before.status.as_deref() == Some(status)
        && before.reason.as_deref() == Some(reason)
        && !(touch && before.last_update_time.as_ref() != Some(&now))
    {
        return;
    }
    let since = before
        .filter(|own| own.status.as_deref() == Some(status))
        .and_then(|own| own.last_transition_time.clone());
    let condition = DeploymentCondition {
        type_: Some(type_.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(since.unwrap_or(now)),
    };
    conditions.retain(|own| own.type_.as_deref() != Some(type_));
    conditions.push(condition);
}

/// The status of a Deployment with these sets.
pub(super) fn status(deployment: &Deployment, sets: &[ReplicaSet], now: Timestamp) -> DeploymentStatus {
    let old_status = deployment.status.clone().unwrap_or_default();
    let (new, _) = split(deployment, sets);
    let wanted = replicas(deployment);
    let some = |number: i32| (number > 0).then_some(number);
    let total: i32 = sets.iter().map(current).sum();
    let available: i32 = sets.iter().map(available).sum();
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(total),
        updated_replicas: some(new.map_or(0, current)),
        ready_replicas: some(sets.iter().map(ready).sum()),
        available_replicas: some(available),
        unavailable_replicas: some((total.max(wanted) - available).max(0)),
        collision_count: old_status.collision_count,
        conditions: old_status.conditions.clone(),
        ..DeploymentStatus::default()
    };
    let mut conditions = status.conditions.take().unwrap_or_default();
    let (_, unavailable) = bounds(deployment);
    if available >= wanted - unavailable {
        let message = "Deployment has minimum availability.".to_owned();
        set(
            &mut conditions,
            AVAILABLE,
            true,
            "MinimumReplicasAvailable",
            message,
            now,
            false,
        );
    } else {
        let message = "Deployment does not have minimum availability.".to_owned();
        set(
            &mut conditions,
            AVAILABLE,
            false,
            "MinimumReplicasUnavailable",
            message,
            now,
            false,
        );
    }
    progress(deployment, &old_status, &status, new, &mut conditions, now);
    let failure = sets.iter().find_map(|own| {
        let conditions = own.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .find(|own| own.type_.as_deref() == Some(FAILURE) && own.status.as_deref() == Some("True"))
            .cloned()
    });
    match failure {
        Some(own) => {
            let (reason, message) = (own.reason.unwrap_or_default(), own.message.unwrap_or_default());
            set(&mut conditions, FAILURE, true, &reason, message, now, false);
        }
        None => conditions.retain(|own| own.type_.as_deref() != Some(FAILURE)),
    }
    status.conditions = Some(conditions);
    status
}

fn progress(
    deployment: &Deployment,
    old: &DeploymentStatus,
    status: &DeploymentStatus,
    new: Option<&ReplicaSet>,
    conditions: &mut Vec<DeploymentCondition>,
    now: Timestamp,
) {
    let paused = deployment.spec.paused.unwrap_or(false);
    let (what, name) = match new {
        Some(new) => ("ReplicaSet", new.name_any()),
        None => ("Deployment", deployment.name_any()),
    };
    let known = find(old, PROGRESSING);
    if paused {
        if known.is_none_or(|own| own.reason.as_deref() != Some(TIMED_OUT)) {
            let message = "Deployment is paused".to_owned();
            set(conditions, PROGRESSING, false, "DeploymentPaused", message, now, false);
            if let Some(own) = conditions
                .iter_mut()
                .find(|own| own.type_.as_deref() == Some(PROGRESSING))
            {
                own.status = Some("Unknown".to_owned());
            }
        }
        return;
    }
    let observed = old.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0);
    let was_complete = known.is_some_and(|own| own.reason.as_deref() == Some(COMPLETE));
    // what was complete stays so while its pods come and go
    if was_complete && observed && old.replicas == old.updated_replicas {
        return;
    }
    if is_complete(deployment, status) && new.is_some() {
        let message = format!("{what} \"{name}\" has successfully progressed.");
        set(conditions, PROGRESSING, true, COMPLETE, message, now, false);
    } else if known.is_none() || !observed || was_complete || progressed(old, status) {
        let message = format!("{what} \"{name}\" is progressing.");
        set(conditions, PROGRESSING, true, "ReplicaSetUpdated", message, now, true);
    } else if timed_out(deployment, old, now) {
        let message = format!("{what} \"{name}\" has timed out progressing.");
        set(conditions, PROGRESSING, false, TIMED_OUT, message, now, false);
    }
}

/// How long until the deadline of an update that is under way has passed.
pub(super) fn until_deadline(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let condition = find(status, PROGRESSING)?;
    if !matches!(condition.reason.as_deref(), Some("ReplicaSetUpdated")) {
        return None;
    }
    let since = condition.last_update_time.as_ref()?.0;
    let left = deadline(deployment)? - now.duration_since(since).as_secs();
    Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)) + AFTER_DEADLINE)
}
