//! The operation annotations of shoots, [VAL-O1] – [VAL-O12].

use std::collections::{BTreeMap, BTreeSet};

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
    op::ROLLOUT_WORKERS,
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
    op::ROTATE_ROLLOUT_WORKERS,
    op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START,
    op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
    op::ROTATE_SSH_KEYPAIR,
];

const ALONE: [&str; 3] = [op::MAINTAIN, op::RETRY, op::FORCE_IN_PLACE_UPDATE];

/// Operations and those that must not run together with them, [VAL-O4].
const INCOMPATIBLE: [(&str, &[&str]); 5] = [
    (
        op::ROTATE_CREDENTIALS_START,
        &[
            op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT,
            op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
            op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
        ],
    ),
    (
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
        &[op::ROTATE_CA_START, op::ROTATE_SERVICE_ACCOUNT_KEY_START],
    ),
    (op::ROTATE_CA_START, &[op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT]),
    (
        op::ROTATE_SERVICE_ACCOUNT_KEY_START,
        &[op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT],
    ),
    (op::ROTATE_ETCD_ENCRYPTION_KEY, &[op::ROTATE_ETCD_ENCRYPTION_KEY_START]),
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

/// Whether an operation rolls out pools by name.
pub(super) fn is_rollout(operation: &str) -> bool {
    operation.starts_with(op::ROLLOUT_WORKERS) || operation.starts_with(op::ROTATE_ROLLOUT_WORKERS)
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
    is_rollout(operation) || KNOWN.contains(&operation)
}

/// [VAL-O1], [VAL-O2]: the first operation that is none, or not for this shoot, or not beside others.
fn refused(operations: &[&str], shoot: &Shoot, path: &Path) -> Option<Error> {
    let spec = &shoot.spec;
    let managed = spec.credentials_binding_name.is_some() || spec.secret_binding_name.is_some();
    let own_machines = spec.is_self_hosted() && !managed;
    operations.iter().find_map(|operation| {
        if !is_known(operation) {
            return Some(Error::not_supported(path, *operation, &KNOWN));
        }
        let why = if operations.len() > 1 && ALONE.contains(operation) {
            "to be run in parallel with other operations"
        } else if own_machines && is_rollout(operation) {
            "for self-hosted shoot clusters with unmanaged infrastructure"
        } else {
            return None;
        };
        let why = format!("operation '{operation}' is not permitted {why}");
        Some(Error::forbidden(path, why))
    })
}

/// Checks both annotations.
pub(super) fn validate_operations(shoot: &Shoot) -> ErrorList {
    let root = Path::new("metadata.annotations");
    let at_once = root.key(OPERATION);
    let later = root.key(MAINTENANCE_OPERATION);
    let now = shoot.operations(OPERATION);
    let maintenance = shoot.operations(MAINTENANCE_OPERATION);
    let refused = refused(&now, shoot, &at_once).or_else(|| refused(&maintenance, shoot, &later));
    if let Some(refused) = refused {
        return vec![refused];
    }
    let mut errors = ErrorList::new();
    if maintenance.iter().any(|operation| now.contains(operation)) {
        errors.push(Error::forbidden(
            &root,
            format!("annotations {at_once} and {later} must not have any equal operations"),
        ));
    }
    for (path, operations, word) in [
        (&at_once, &now, "operations"),
        (&later, &maintenance, "maintenance operations"),
    ] {
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
                        "for Kubernetes versions >= 1.34, operation '{operation}' is no longer supported, please use 'rotate-etcd-encryption-key' instead, which performs a complete etcd encryption key rotation"
                    ),
                ));
            }
            errors.extend(incompatible(operation, operations, word, path));
            errors.extend(of_the_time(operation, shoot, path));
        }
    }
    errors.extend(across(&now, &maintenance, &at_once));
    for operation in &now {
        errors.extend(context(operation, shoot, &at_once));
    }
    // shoots in deletion see no maintenance any more
    if shoot.metadata.deletion_timestamp.is_none() {
        for operation in &maintenance {
            errors.extend(context(operation, shoot, &later));
        }
    }
    errors
}

/// [VAL-O4].
fn incompatible(operation: &str, operations: &[&str], word: &str, path: &Path) -> Option<Error> {
    let (_, others) = INCOMPATIBLE.iter().find(|(one, _)| *one == operation)?;
    let meets = others.iter().any(|other| operations.contains(other));
    let others = others.join(", ");
    let why = format!("operation '{operation}' is not permitted to be run together with {others} {word}");
    meets.then(|| Error::forbidden(path, why))
}

/// [VAL-O8].
fn across(now: &[&str], maintenance: &[&str], path: &Path) -> ErrorList {
    let covered = |operation: &str| -> &[&str] {
        match operation {
            op::ROTATE_CREDENTIALS_START | op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT => &COVERED_STARTS,
            op::ROTATE_CREDENTIALS_COMPLETE => &COVERED_COMPLETIONS,
            _ => &[],
        }
    };
    let met = |operation: &str, others: &[&str]| {
        let mut met: Vec<&str> = covered(operation)
            .iter()
            .copied()
            .filter(|own| others.contains(own))
            .collect();
        met.sort_unstable();
        (!met.is_empty()).then(|| met.join(", "))
    };
    let finding = |now: &str, later: &str| {
        let why = format!("operation '{now}' is not permitted when maintenance operation is '{later}'");
        Error::forbidden(path, why)
    };
    let by_later = maintenance
        .iter()
        .filter_map(|later| Some(finding(&met(later, now)?, later)));
    let by_now = now.iter().filter_map(|own| Some(finding(own, &met(own, maintenance)?)));
    by_later.chain(by_now).collect()
}

/// [VAL-O9]: created, and not on its way elsewhere.
pub(super) fn is_ready(status: &ShootStatus) -> bool {
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

/// [VAL-O6], [VAL-O7]: what has to wait until the shoot is awake, or encrypts as it shall.
fn of_the_time(operation: &str, shoot: &Shoot, path: &Path) -> ErrorList {
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
            op::ROTATE_CREDENTIALS_START | op::ROTATE_ETCD_ENCRYPTION_KEY | op::ROTATE_ETCD_ENCRYPTION_KEY_START
        )
    {
        errors.push(Error::forbidden(
            path,
            format!(
                "operation '{operation}' is not permitted because a previous encryption configuration change is currently being rolled out"
            ),
        ));
    }
    errors
}

/// [VAL-O9] – [VAL-O12]: one operation in the state of its shoot.
fn context(operation: &str, shoot: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = &shoot.status;
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
            // from 1.34 on the key of etcd is rotated in one go
            let at_once = versions::at_least(shoot.spec.kubernetes_version(), 34);
            let parts = if at_once { &[ca, key][..] } else { &[ca, key, etcd] };
            errors.extend(complete("rotation of all credentials", parts, path));
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
    let rotating = operation.starts_with(op::ROTATE_ROLLOUT_WORKERS);
    let (name, or) = match rotating {
        true => (op::ROTATE_ROLLOUT_WORKERS, ""),
        false => (op::ROLLOUT_WORKERS, "either '*' or "),
    };
    let Some(list) = operation.strip_prefix(name) else {
        return errors;
    };
    const WAITING: &str = "WaitingForWorkersRollout";
    if rotating && phases.ca != WAITING && phases.service_account_key != WAITING {
        errors.push(Error::forbidden(
            path,
            "either .status.credentials.rotation.certificateAuthorities.phase or .status.credentials.rotation.serviceAccountKey.phase must be in 'WaitingForWorkersRollout' in order to trigger workers rollout",
        ));
    }
    // what has no list is taken for the name of a pool
    let mut pools: Vec<&str> = list.strip_prefix('=').unwrap_or(operation).split(',').collect();
    if pools.contains(&"") {
        errors.push(Error::required(
            path,
            format!("must provide {or}at least one pool name via {name}=<poolName1>[,<poolName2>,...]"),
        ));
    }
    if !rotating {
        if pools == ["*"] {
            pools = workers.iter().map(|worker| worker.name.as_str()).collect();
        }
        if pools.contains(&"*") {
            errors.push(Error::forbidden(
                path,
                "if '*' is provided, no other pool names are allowed",
            ));
        }
    }
    // of two of one name the first counts
    let known = workers.iter().rev().map(|worker| (worker.name.as_str(), worker));
    let known: BTreeMap<&str, &Worker> = known.collect();
    let mut seen = BTreeSet::new();
    for pool in &pools {
        if !seen.insert(pool) {
            errors.push(Error::duplicate(
                path,
                format!("pool name {pool} was specified multiple times"),
            ));
        }
        match known.get(pool) {
            None => errors.push(Error::invalid(
                path,
                *pool,
                format!("worker pool name {pool} does not exist in .spec.provider.workers[]"),
            )),
            Some(worker) if !rotating && Worker::is_in_place(worker) => errors.push(Error::invalid(
                path,
                *pool,
                format!(
                    "worker pool {pool} is using in-place update strategy; manual worker pool rollout is not supported for such pools"
                ),
            )),
            Some(_) => {}
        }
    }
    errors
}
