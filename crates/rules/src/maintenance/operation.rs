//! What maintenance asks gardenlet to do [VER-85], [VER-87].

use std::collections::BTreeMap;

use gardener_apimachinery::meta::is_true;
use gardener_apis::constants::{annotation, operation, task};
use gardener_apis::core::v1beta1::{Shoot, split_operations};

use super::{Plan, Report, Settings, Subject};
use crate::credentials_rotation::Credentials;

/// The operations of the rotations that start now [VER-84].
fn rotations(report: &Report) -> impl Iterator<Item = &'static str> {
    report.items.iter().filter_map(|item| match item.subject {
        Subject::Credentials(of) if item.result.is_ok() => Some(of.operation()),
        _ => None,
    })
}

fn asked(shoot: &Shoot, report: &Report, annotations: &mut BTreeMap<String, String>) -> Option<String> {
    let state = shoot.status.last_operation.as_ref().map(|last| last.state.as_str())?;
    if state == "Failed" {
        let marked = annotations
            .get(annotation::SHOOT_NEEDS_RETRY)
            .is_some_and(|marker| is_true(marker));
        if marked {
            annotations.remove(annotation::SHOOT_NEEDS_RETRY);
        }
        return marked.then(|| operation::RETRY.to_owned());
    }
    let wanted = annotations
        .remove(annotation::MAINTENANCE_OPERATION)
        .unwrap_or_default();
    let mut wanted = split_operations(&wanted);
    if !wanted.contains(&operation::RECONCILE) {
        wanted.push(operation::RECONCILE);
    }
    for rotation in rotations(report) {
        // who asked for the first of two steps wants to ask for the second one, too
        let in_steps = rotation == Credentials::EtcdEncryptionKey.operation()
            && wanted.contains(&operation::ROTATE_ETCD_ENCRYPTION_KEY_START);
        if !in_steps && !wanted.contains(&rotation) {
            wanted.push(rotation);
        }
    }
    Some(wanted.join(";"))
}

/// Writes the operation annotation.
pub(super) fn request(plan: &mut Plan) {
    let mut annotations = plan.shoot.metadata.annotations.take().unwrap_or_default();
    if annotations
        .get(annotation::OPERATION)
        .is_some_and(|own| split_operations(own).contains(&operation::MAINTAIN))
    {
        annotations.remove(annotation::OPERATION);
    }
    if let Some(value) = asked(&plan.shoot, &plan.report, &mut annotations) {
        if value != operation::RECONCILE {
            plan.report
                .messages
                .push(format!("Added {value:?} operation annotation"));
        }
        annotations.insert(annotation::OPERATION.to_owned(), value);
    }
    plan.shoot.metadata.annotations = Some(annotations);
}

/// Adds the tasks of the reconciliation to those that wait already.
pub(super) fn add_tasks(shoot: &mut Shoot, settings: Settings) {
    let mut wanted = task::ALL.to_vec();
    wanted.extend(
        settings
            .restart_control_plane
            .then_some(task::RESTART_CONTROL_PLANE_PODS),
    );
    wanted.extend(settings.restart_core_addons.then_some(task::RESTART_CORE_ADDONS));
    shoot.add_tasks(wanted);
}
