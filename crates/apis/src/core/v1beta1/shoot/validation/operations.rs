//! The operation annotations of shoots, [VAL-O1] – [VAL-O12].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::super::{Shoot, ShootStatus, Worker};
use super::{MAINTENANCE_OPERATION, OPERATION, Phases, encrypted_in_spec, encrypted_in_status, normalized};
use crate::constants::operation as op;
use crate::versions;

const KNOWN: [&str; 20] = [
    op::FORCE_IN_PLACE_UPDATE,
    op::MAINTAIN,
    op::RECONCILE,
    op::RETRY,
    op::ROTATE_CA_COMPLETE,
    op::ROTATE_CA_START,
    op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_CREDENTIALS_COMPLETE,
    op::ROTATE_CREDENTIALS_START,
    op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_ETCD_ENCRYPTION_KEY,
    op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
    op::ROTATE_ETCD_ENCRYPTION_KEY_START,
    op::ROTATE_OBSERVABILITY_CREDENTIALS,
    op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_SSH_KEYPAIR,
    op::ROLLOUT_WORKERS,
    op::ROTATE_ROLLOUT_WORKERS,
];

const ALONE: [&str; 3] = [op::MAINTAIN, op::RETRY, op::FORCE_IN_PLACE_UPDATE];

/// Pairs that must not run together, [VAL-O4].
const INCOMPATIBLE: [(&str, &str); 8] = [
    (
        op::ROTATE_CREDENTIALS_START,
        op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT,
    ),
    (
        op::ROTATE_CREDENTIALS_START,
        op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
    ),
    (
        op::ROTATE_CREDENTIALS_START,
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
    ),
    (
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
        op::ROTATE_CA_START,
    ),
    (
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
        op::ROTATE_SERVICE_ACCOUNT_KEY_START,
    ),
    (op::ROTATE_CA_START, op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT),
    (
        op::ROTATE_SERVICE_ACCOUNT_KEY_START,
        op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
    ),
    (op::ROTATE_ETCD_ENCRYPTION_KEY, op::ROTATE_ETCD_ENCRYPTION_KEY_START),
];

/// The starts that a start of everything covers, and the completions that a completion covers, [VAL-O8].
const COVERED_STARTS: [&str; 6] = [
    op::ROTATE_CA_START,
    op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_ETCD_ENCRYPTION_KEY,
    op::ROTATE_ETCD_ENCRYPTION_KEY_START,
];
const COVERED_COMPLETIONS: [&str; 3] = [
    op::ROTATE_CA_COMPLETE,
    op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
    op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
];

fn is_prefixed(operation: &str, name: &str) -> bool {
    operation.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

/// Whether an operation rolls out pools by name.
pub(super) fn is_rollout(operation: &str) -> bool {
    is_prefixed(operation, op::ROLLOUT_WORKERS) || is_prefixed(operation, op::ROTATE_ROLLOUT_WORKERS)
}

/// [VAL-O6]: what cannot be done without running control plane.
pub(super) fn forbidden_in_hibernation(operation: &str) -> bool {
    is_rollout(operation)
        || matches!(
            operation,
            op::ROTATE_CREDENTIALS_START
                | op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT
                | op::ROTATE_CREDENTIALS_COMPLETE
                | op::ROTATE_ETCD_ENCRYPTION_KEY
                | op::ROTATE_ETCD_ENCRYPTION_KEY_START
                | op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE
                | op::ROTATE_SERVICE_ACCOUNT_KEY_START
                | op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT
                | op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE
        )
}

fn is_known(operation: &str) -> bool {
    is_rollout(operation)
        || (KNOWN.contains(&operation) && !matches!(operation, op::ROLLOUT_WORKERS | op::ROTATE_ROLLOUT_WORKERS))
}

/// Checks both annotations.
pub(super) fn validate_operations(shoot: &Shoot) -> ErrorList {
    let root = Path::new("metadata.annotations");
    let at_once = root.key(OPERATION);
    let later = root.key(MAINTENANCE_OPERATION);
    let now = shoot.operations(OPERATION);
    let maintenance = shoot.operations(MAINTENANCE_OPERATION);
    let mut errors = ErrorList::new();
    for (path, operations) in [(&at_once, &now), (&later, &maintenance)] {
        for operation in operations.iter().filter(|operation| !is_known(operation)) {
            errors.push(Error::not_supported(path, *operation, &KNOWN));
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if maintenance.iter().any(|operation| now.contains(operation)) {
        errors.push(Error::forbidden(
            &root,
            format!("annotations {OPERATION} and {MAINTENANCE_OPERATION} must not have any equal operations"),
        ));
    }
    for (path, operations, word) in [
        (&at_once, &now, "operations"),
        (&later, &maintenance, "maintenance operations"),
    ] {
        errors.extend(combination(operations, word, path));
        for operation in operations {
            if versions::at_least(shoot.spec.kubernetes_version(), 34)
                && matches!(
                    *operation,
                    op::ROTATE_ETCD_ENCRYPTION_KEY_START | op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE
                )
            {
                errors.push(Error::forbidden(
                    &at_once,
                    format!(
                        "for Kubernetes versions >= 1.34, operation '{operation}' is no longer supported, please use 'rotate-etcd-encryption-key' instead"
                    ),
                ));
            }
        }
    }
    for operation in &now {
        errors.extend(context(operation, shoot, &at_once));
    }
    if shoot.metadata.deletion_timestamp.is_none() {
        for operation in &maintenance {
            errors.extend(context(operation, shoot, &later));
        }
    }
    errors.extend(across(&now, &maintenance, &at_once));
    errors
}

/// [VAL-O2], [VAL-O4].
fn combination(operations: &[&str], word: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if operations.len() > 1 {
        for operation in operations.iter().filter(|operation| ALONE.contains(operation)) {
            errors.push(Error::forbidden(
                path,
                format!("operation '{operation}' is not permitted to be run in parallel with other operations"),
            ));
        }
    }
    for (one, other) in INCOMPATIBLE {
        if operations.contains(&one) && operations.contains(&other) {
            errors.push(Error::forbidden(
                path,
                format!("operation '{one}' is not permitted to be run together with {other} {word}"),
            ));
        }
    }
    errors
}

/// [VAL-O8].
fn across(now: &[&str], maintenance: &[&str], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let starts = [
        op::ROTATE_CREDENTIALS_START,
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
    ];
    let clash = |one: &str, other: &str| {
        (starts.contains(&one) && COVERED_STARTS.contains(&other))
            || (one == op::ROTATE_CREDENTIALS_COMPLETE && COVERED_COMPLETIONS.contains(&other))
    };
    for operation in now {
        for later in maintenance {
            if clash(later, operation) || clash(operation, later) {
                errors.push(Error::forbidden(
                    path,
                    format!("operation '{operation}' is not permitted when maintenance operation is '{later}'"),
                ));
            }
        }
    }
    errors
}

/// [VAL-O9]: created, and not on its way elsewhere.
fn is_ready(status: &ShootStatus) -> bool {
    status.last_operation.as_ref().is_some_and(|operation| {
        operation.r#type == "Reconcile"
            || (matches!(operation.r#type.as_str(), "Create" | "Restore") && operation.state == "Succeeded")
    })
}

/// A rotation's start: ready, and no earlier one under way.
fn start(what: &str, fields: &[(&str, &str)], shoot: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !is_ready(&shoot.status) {
        errors.push(Error::forbidden(
            path,
            format!("cannot start {what} if shoot was not yet created successfully or is not ready for reconciliation"),
        ));
    }
    for (field, phase) in fields {
        if !matches!(*phase, "" | "Completed") {
            errors.push(Error::forbidden(
                path,
                format!("cannot start {what} if .status.credentials.rotation.{field}.phase is not 'Completed'"),
            ));
        }
    }
    errors
}

fn complete(what: &str, fields: &[(&str, &str)], path: &Path) -> ErrorList {
    fields
        .iter()
        .filter(|(_, phase)| *phase != "Prepared")
        .map(|(field, _)| {
            Error::forbidden(
                path,
                format!("cannot complete {what} if .status.credentials.rotation.{field}.phase is not 'Prepared'"),
            )
        })
        .collect()
}

/// [VAL-O6], [VAL-O7], [VAL-O9] – [VAL-O12]: one operation in the state of its shoot.
fn context(operation: &str, shoot: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = &shoot.status;
    if forbidden_in_hibernation(operation) && (shoot.hibernation_enabled() || status.hibernated) {
        errors.push(Error::forbidden(
            path,
            format!("operation '{operation}' is not permitted when shoot is hibernated or is waking up"),
        ));
    }
    let rolling = normalized(encrypted_in_spec(&shoot.spec)) != normalized(encrypted_in_status(status));
    if rolling
        && matches!(
            operation,
            op::ROTATE_CREDENTIALS_START
                | op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT
                | op::ROTATE_ETCD_ENCRYPTION_KEY
                | op::ROTATE_ETCD_ENCRYPTION_KEY_START
        )
    {
        errors.push(Error::forbidden(
            path,
            format!(
                "operation '{operation}' is not permitted because a previous encryption configuration change is currently being rolled out"
            ),
        ));
    }
    let phases = Phases::of(status);
    let ca = ("certificateAuthorities", phases.ca);
    let key = ("serviceAccountKey", phases.service_account_key);
    let etcd = ("etcdEncryptionKey", phases.etcd_encryption_key);
    let pending_what = match operation {
        op::ROTATE_CREDENTIALS_START | op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT => {
            errors.extend(start("rotation of all credentials", &[ca, key, etcd], shoot, path));
            Some("rotation of all credentials")
        }
        op::ROTATE_CREDENTIALS_COMPLETE => {
            errors.extend(complete("rotation of all credentials", &[ca, key, etcd], path));
            None
        }
        op::ROTATE_CA_START | op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT => {
            errors.extend(start("CA rotation", &[ca], shoot, path));
            Some("CA rotation")
        }
        op::ROTATE_CA_COMPLETE => {
            errors.extend(complete("CA rotation", &[ca], path));
            None
        }
        op::ROTATE_SERVICE_ACCOUNT_KEY_START | op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT => {
            errors.extend(start("service account key rotation", &[key], shoot, path));
            Some("service account key rotation")
        }
        op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE => {
            errors.extend(complete("service account key rotation", &[key], path));
            None
        }
        op::ROTATE_ETCD_ENCRYPTION_KEY | op::ROTATE_ETCD_ENCRYPTION_KEY_START => {
            errors.extend(start("ETCD encryption key rotation", &[etcd], shoot, path));
            None
        }
        op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE => {
            errors.extend(complete("ETCD encryption key rotation", &[etcd], path));
            None
        }
        _ => None,
    };
    if let Some(what) = pending_what
        && let Some(pending) = status
            .in_place_updates
            .as_ref()
            .and_then(|updates| updates.pending_worker_updates.as_ref())
    {
        for (name, pools) in [
            ("autoInPlaceUpdate", &pending.auto_in_place_update),
            ("manualInPlaceUpdate", &pending.manual_in_place_update),
        ] {
            if !pools.is_empty() {
                errors.push(Error::forbidden(
                    path,
                    format!("cannot start {what} if status.inPlaceUpdates.pendingWorkerUpdates.{name} is not empty"),
                ));
            }
        }
    }
    errors.extend(rollouts(operation, shoot, &phases, path));
    errors
}

/// [VAL-O10], [VAL-O11].
fn rollouts(operation: &str, shoot: &Shoot, phases: &Phases<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let workers = &shoot.spec.provider.workers;
    let rotating = is_prefixed(operation, op::ROTATE_ROLLOUT_WORKERS);
    let Some((name, list)) = operation.split_once('=').filter(|_| is_rollout(operation)) else {
        return errors;
    };
    let names: Vec<&str> = list.split(',').filter(|name| !name.is_empty()).collect();
    if rotating && phases.ca != "WaitingForWorkersRollout" && phases.service_account_key != "WaitingForWorkersRollout" {
        errors.push(Error::forbidden(
            path,
            "either .status.credentials.rotation.certificateAuthorities.phase or .status.credentials.rotation.serviceAccountKey.phase must be in 'WaitingForWorkersRollout' in order to trigger workers rollout",
        ));
    }
    if names.is_empty() {
        errors.push(Error::required(
            path,
            format!("must provide at least one pool name via {name}=<poolName1>[,<poolName2>,...]"),
        ));
        return errors;
    }
    if !rotating && names.contains(&"*") {
        if names.len() > 1 {
            errors.push(Error::forbidden(
                path,
                "if '*' is provided, no other pool names are allowed",
            ));
        }
        return errors;
    }
    for (i, pool) in names.iter().enumerate() {
        if names.iter().take(i).any(|earlier| earlier == pool) {
            errors.push(Error::duplicate(path, *pool));
        }
        match workers.iter().find(|worker| worker.name == *pool) {
            None => errors.push(Error::invalid(
                path,
                *pool,
                format!("worker pool name {pool} does not exist in .spec.provider.workers[]"),
            )),
            Some(worker) if !rotating && Worker::is_in_place(worker) => errors.push(Error::invalid(
                path,
                *pool,
                format!(
                    "worker pool {pool} has update strategy {}, manual worker pool rollout is not supported for such pools",
                    worker.strategy()
                ),
            )),
            Some(_) => {}
        }
    }
    errors
}
