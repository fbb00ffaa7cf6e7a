//! What gardenlet does with a shoot, and when [CP-10..17], [UPD-20..29].

pub use crate::operation::OperationType;

use gardener_apimachinery::meta::is_true;
use gardener_apis::Duration;
use gardener_apis::core::v1beta1::{Condition, LastError, LastOperation, Seed, Shoot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::maintenance_window::Window;

/// The annotation that keeps gardenlet away from a shoot.
pub const IGNORE: &str = "shoot.gardener.cloud/ignore";
/// The annotation on a Seed that stops all reconciliations on it.
pub const EMERGENCY_STOP: &str = "shoot.gardener.cloud/emergency-stop-reconciliations";

/// Whether a shoot is this seed's to care for: `spec.seedName`, or `status.seedName` while the two differ [CP-10].
pub fn is_responsible(shoot: &Shoot, seed: &str) -> bool {
    let of_status = shoot.status.seed_name.as_deref();
    of_status.or(shoot.spec.seed_name.as_deref()) == Some(seed)
}

/// Whether a shoot is to leave its seed [CP-10].
pub fn is_moving(shoot: &Shoot) -> bool {
    let (spec, status) = (&shoot.spec.seed_name, &shoot.status.seed_name);
    spec.is_some() && status.is_some() && spec != status
}

/// What has to be done [CP-11], [UPD-28].
pub fn operation_type(shoot: &Shoot) -> OperationType {
    let last = shoot.status.last_operation.as_ref();
    let (kind, state) = last.map_or(("", ""), |last| (last.r#type.as_str(), last.state.as_str()));
    if is_moving(shoot) {
        return OperationType::Migrate;
    }
    if kind == "Migrate" && matches!(state, "Succeeded" | "Aborted") {
        return OperationType::Restore;
    }
    OperationType::next(shoot.metadata.deletion_timestamp.is_some(), last)
}

/// Configuration that the decisions depend on [CP-150].
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// `controllers.shoot.syncPeriod`.
    pub sync_period: SignedDuration,
    /// `controllers.shoot.respectSyncPeriodOverwrite`.
    pub respect_sync_period_overwrite: bool,
    /// `controllers.shoot.reconcileInMaintenanceOnly`.
    pub reconcile_in_maintenance_only: bool,
    /// This gardenlet's version.
    pub version: &'a str,
}

/// What becomes of a shoot now [CP-12].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is worked on.
    Reconcile,
    /// It is failed or ignored: only the Cluster object is kept current.
    OnlySyncCluster,
    /// Not now, for this reason.
    NotNow(&'static str),
}

fn honours_annotations(shoot: &Shoot, policy: &Policy<'_>) -> bool {
    policy.respect_sync_period_overwrite || shoot.metadata.namespace.as_deref() == Some("garden")
}

fn is_observed(shoot: &Shoot) -> bool {
    shoot.metadata.generation.unwrap_or_default() == shoot.status.observed_generation.unwrap_or_default()
}

/// Whether a shoot failed with the latest spec and this version [UPD-22].
pub fn is_failed(shoot: &Shoot, version: &str) -> bool {
    let last = shoot.status.last_operation.as_ref();
    last.is_some_and(|last| last.state == "Failed") && is_observed(shoot) && shoot.status.gardener.version == version
}

/// Whether a shoot is to be left alone [UPD-20].
pub fn is_ignored(shoot: &Shoot, policy: &Policy<'_>) -> bool {
    honours_annotations(shoot, policy) && shoot.annotation(IGNORE).is_some_and(is_true)
}

fn is_up_to_date(shoot: &Shoot) -> bool {
    let last = shoot.status.last_operation.as_ref();
    is_observed(shoot) && last.is_some_and(|last| last.state == "Succeeded")
}

fn is_confined(shoot: &Shoot, policy: &Policy<'_>) -> bool {
    let maintenance = shoot.spec.maintenance.as_ref();
    policy.reconcile_in_maintenance_only || maintenance.and_then(|one| one.confine_spec_update_rollout) == Some(true)
}

fn was_done_in(window: &Window, shoot: &Shoot, now: Timestamp) -> bool {
    let last = shoot.status.last_operation.as_ref();
    let Some(Time(at)) = last.and_then(|last| last.last_update_time.clone()) else {
        return false;
    };
    window.contains(at) && now.duration_since(at) <= SignedDuration::from_hours(6)
}

/// Whether a shoot is worked on now [CP-12], [UPD-23].
pub fn decide(shoot: &Shoot, seed: &Seed, policy: &Policy<'_>, now: Timestamp) -> Decision {
    let stops = seed.metadata.annotations.as_ref();
    if stops.and_then(|all| all.get(EMERGENCY_STOP)).map(String::as_str) == Some("true") {
        return Decision::NotNow("Shoot reconciliation blocked by Seed emergency switch");
    }
    if is_failed(shoot, policy.version) || is_ignored(shoot, policy) {
        return Decision::OnlySyncCluster;
    }
    if operation_type(shoot) != OperationType::Reconcile || !is_up_to_date(shoot) || !is_confined(shoot, policy) {
        return Decision::Reconcile;
    }
    let window = Window::of(shoot);
    if window.contains(now) && !was_done_in(&window, shoot, now) {
        return Decision::Reconcile;
    }
    Decision::NotNow(
        "Shoot is not in its effective maintenance time window or was already reconciled during this time window.",
    )
}

/// The sync period of a shoot: its annotation can only lengthen the configured one [UPD-21].
pub fn sync_period(shoot: &Shoot, policy: &Policy<'_>) -> SignedDuration {
    let wanted = shoot
        .annotation("shoot.gardener.cloud/sync-period")
        .filter(|_| honours_annotations(shoot, policy));
    let wanted = wanted.and_then(|text| text.parse::<Duration>().ok());
    let wanted = wanted.map(|wanted| SignedDuration::from_nanos(wanted.as_nanos()));
    wanted.map_or(policy.sync_period, |wanted| wanted.max(policy.sync_period))
}

/// When a shoot comes again although nothing changed; never, if it failed or is ignored. `share` (0 to 1) chooses the moment in the next
/// window [CP-13], [UPD-26].
pub fn next_sync(shoot: &Shoot, policy: &Policy<'_>, now: Timestamp, share: f64) -> Option<SignedDuration> {
    if is_failed(shoot, policy.version) || is_ignored(shoot, policy) {
        return None;
    }
    if is_confined(shoot, policy) {
        return Some(Window::of(shoot).until_next(now, false, share));
    }
    Some(sync_period(shoot, policy))
}

/// How long a shoot waits when gardenlet starts [CP-13], [UPD-25].
pub fn delay_at_start(shoot: &Shoot, policy: &Policy<'_>, now: Timestamp, share: f64) -> SignedDuration {
    let at_once = operation_type(shoot) != OperationType::Reconcile
        || is_failed(shoot, policy.version)
        || is_ignored(shoot, policy)
        || !is_up_to_date(shoot)
        || !is_confined(shoot, policy);
    if at_once {
        return SignedDuration::ZERO;
    }
    let window = Window::of(shoot);
    let from_now = !was_done_in(&window, shoot, now);
    window.until_next(now, from_now, share)
}

/// Whether the seed lets shoots be reconciled; otherwise what is wrong with it [CP-14].
///
/// # Errors
/// The text behind `Shoot cannot be reconciled on seed: `.
pub fn seed_gate(seed: &Seed, gardenlet: &gardener_apis::core::v1beta1::Gardener) -> Result<(), String> {
    if seed.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let (observed, generation) = (
        seed.status.observed_generation.unwrap_or_default(),
        seed.metadata.generation.unwrap_or_default(),
    );
    if seed.status.gardener.as_ref() != Some(gardenlet) {
        return Err("seed is not up to date: it was not reconciled by this gardenlet yet".to_owned());
    }
    if observed < generation {
        return Err(format!(
            "seed is not up to date: observed generation outdated ({observed}/{generation})"
        ));
    }
    let mut failing = Vec::new();
    for wanted in ["GardenletReady", "SeedSystemComponentsHealthy"] {
        match seed.status.conditions.iter().find(|one| one.r#type == wanted) {
            None => return Err(format!("error in seed conditions: condition {wanted} is missing")),
            Some(condition) if condition.status != "True" => failing.push(wanted),
            Some(_) => {}
        }
    }
    if failing.is_empty() {
        return Ok(());
    }
    Err(format!("seed has failing conditions: [{}]", failing.join(" ")))
}

/// Whether the time for retries begins anew at the start of an operation [CP-15], [UPD-29], [ST-130]: a shoot that goes from one operation to another
/// only has a new time when it is to be deleted.
pub fn starts_retry_cycle(shoot: &Shoot, operation: OperationType, version: &str) -> bool {
    let last = shoot.status.last_operation.as_ref();
    shoot.status.retry_cycle_start_time.is_none()
        || !is_observed(shoot)
        || shoot.status.gardener.version != version
        || (operation == OperationType::Delete && last.is_some_and(|last| last.r#type != operation.as_str()))
}

/// The annotation's list of operations without those that were handled; none if nothing is left [CP-15].
pub fn remaining_operations(annotation: &str, handled: &[impl AsRef<str>]) -> Option<String> {
    let is_handled = |one: &str| handled.iter().any(|own| own.as_ref() == one);
    let rest: Vec<&str> = annotation
        .split(';')
        .map(str::trim)
        .filter(|one| !one.is_empty() && !is_handled(one))
        .collect();
    (!rest.is_empty()).then(|| rest.join(";"))
}

/// `status.lastOperation` and whether retries go on, after an operation failed [CP-17], [UPD-29], [ST-134]. They end `retry_duration` after the first
/// attempt, and where nobody knows when that was.
pub fn failed(
    description: &str,
    operation: OperationType,
    progress: i32,
    non_retryable: bool,
    retry_since: Option<Timestamp>,
    retry_duration: SignedDuration,
    now: &Time,
) -> LastOperation {
    let expired = retry_since.is_none_or(|since| now.0.duration_since(since) >= retry_duration);
    let gives_up = non_retryable || expired;
    LastOperation {
        r#type: operation.as_str().to_owned(),
        state: if gives_up { "Failed" } else { "Error" }.to_owned(),
        progress,
        description: if gives_up {
            description.to_owned()
        } else {
            format!("{description} Operation will be retried.")
        },
        last_update_time: Some(now.clone()),
    }
}

/// The errors without the one of a task that succeeded [CP-22].
pub fn without_task(errors: &[LastError], task: &str) -> Vec<LastError> {
    let others = errors.iter().filter(|one| one.task_id.as_deref() != Some(task));
    others.cloned().collect()
}

/// The task that errors belong to which keep an operation from beginning [ST-126].
pub const INITIALIZATION: &str = "initializeOperation";

/// The errors of a shoot with which no operation could begin: those that are known stay, and what only its owner can mend is told [ST-126].
pub fn with_initialization_error(errors: &[LastError], new: LastError) -> Vec<LastError> {
    let mut errors = without_task(errors, INITIALIZATION);
    if new.codes.iter().any(|code| code == "ERR_CONFIGURATION_PROBLEM") {
        errors.push(LastError {
            task_id: Some(INITIALIZATION.to_owned()),
            ..new
        });
    }
    errors
}

/// The conditions after a success: what is not False is to be checked again; nothing has turned for that [CP-16], [ST-95].
pub fn progressing_after_success(conditions: &[Condition], types: &[&str], now: &Time) -> Vec<Condition> {
    let mut conditions = conditions.to_vec();
    for condition in &mut conditions {
        let concerned = types.contains(&condition.r#type.as_str());
        if concerned && condition.status != "False" && condition.status != "Progressing" {
            condition.status = "Progressing".to_owned();
            condition.last_update_time = Some(now.clone());
        }
    }
    conditions
}

/// The technical ID: stored once, or made of project and name [CP-1].
pub fn technical_id(shoot: &Shoot, project: &str) -> String {
    if !shoot.status.technical_id.is_empty() {
        return shoot.status.technical_id.clone();
    }
    let name = shoot.metadata.name.as_deref().unwrap_or_default();
    format!("shoot--{project}--{name}")
}

#[cfg(test)]
mod tests;
