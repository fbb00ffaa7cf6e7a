//! When generations rise and which operation annotations a write consumes, [GAPI-31] – [GAPI-35].

use gardener_apimachinery::meta::is_true;
use gardener_apis::constants::{annotation, operation as op};
use gardener_apis::core::v1beta1::{Shoot, split_operations};
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::kind::GardenKind;

/// Everything of an object but its metadata and status.
fn content<K: GardenKind>(kind: &K) -> Value {
    let mut value = serde_json::to_value(kind).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    value
}

/// Whether anything but metadata and status differs.
pub(crate) fn content_changed<K: GardenKind>(new: &K, old: &K) -> bool {
    content(new) != content(old)
}

/// Whether this write asks for deletion.
pub(crate) fn deletion_begins<K: Metadata<Ty = ObjectMeta>>(new: &K, old: &K) -> bool {
    new.metadata().deletion_timestamp.is_some() && old.metadata().deletion_timestamp.is_none()
}

pub(crate) fn annotation_of<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn remove_annotation(meta: &mut ObjectMeta, key: &str) {
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(key);
        if annotations.is_empty() {
            meta.annotations = None;
        }
    }
}

/// [GAPI-32]: `consumed` operations are removed and raise the generation; `kept` ones raise it when they are new.
pub(crate) fn operation_bumps<K: Metadata<Ty = ObjectMeta>>(
    new: &mut K,
    old: &K,
    consumed: &[&str],
    kept: &[&str],
) -> bool {
    let Some(operation) = annotation_of(new.metadata(), annotation::OPERATION).map(str::to_owned) else {
        return false;
    };
    if consumed.contains(&operation.as_str()) {
        remove_annotation(new.metadata_mut(), annotation::OPERATION);
        return true;
    }
    kept.contains(&operation.as_str())
        && annotation_of(old.metadata(), annotation::OPERATION) != Some(operation.as_str())
}

/// Whether a boolean annotation becomes true.
pub(crate) fn becomes_true<K: Metadata<Ty = ObjectMeta>>(new: &K, old: &K, key: &str) -> bool {
    let truth = |kind: &K| annotation_of(kind.metadata(), key).is_some_and(is_true);
    truth(new) && !truth(old)
}

/// [GAPI-35]: parts trimmed, repeated parts dropped.
pub(crate) fn normalize_operations(meta: &mut ObjectMeta) {
    for key in [annotation::OPERATION, annotation::MAINTENANCE_OPERATION] {
        let Some(value) = meta
            .annotations
            .as_mut()
            .and_then(|annotations| annotations.get_mut(key))
        else {
            continue;
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in split_operations(value) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        *value = parts.join(";");
    }
}

/// The parts that a start of all rotations covers, [GAPI-34].
fn covered_by(operation: &str) -> &'static [&'static str] {
    match operation {
        op::ROTATE_CREDENTIALS_START => &[
            op::ROTATE_CA_START,
            op::ROTATE_SERVICE_ACCOUNT_KEY_START,
            op::ROTATE_ETCD_ENCRYPTION_KEY,
            op::ROTATE_ETCD_ENCRYPTION_KEY_START,
            op::ROTATE_OBSERVABILITY_CREDENTIALS,
            op::ROTATE_SSH_KEYPAIR,
        ],
        op::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT => &[
            op::ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT,
            op::ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT,
            op::ROTATE_ETCD_ENCRYPTION_KEY,
            op::ROTATE_ETCD_ENCRYPTION_KEY_START,
            op::ROTATE_OBSERVABILITY_CREDENTIALS,
            op::ROTATE_SSH_KEYPAIR,
        ],
        op::ROTATE_CREDENTIALS_COMPLETE => &[
            op::ROTATE_CA_COMPLETE,
            op::ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
            op::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
        ],
        _ => &[],
    }
}

/// Whether an update of a shoot raises its generation; consumes operations, [GAPI-33], [GAPI-34].
pub(crate) fn shoot_bumps(new: &mut Shoot, old: &Shoot) -> bool {
    let confined = new
        .spec
        .maintenance
        .as_ref()
        .and_then(|maintenance| maintenance.confine_spec_update_rollout)
        .unwrap_or_default();
    let spec_counts = if confined {
        new.hibernation_enabled() != old.hibernation_enabled()
    } else {
        new.spec != old.spec
    };
    if spec_counts || deletion_begins(new, old) || becomes_true(new, old, annotation::CONFIRMATION_FORCE_DELETION) {
        return true;
    }
    let Some(last) = new.status.last_operation.clone() else {
        return false;
    };
    let Some(value) = new.annotation(annotation::OPERATION).map(str::to_owned) else {
        return false;
    };
    if last.state == "Failed" {
        if value == op::RETRY {
            remove_annotation(&mut new.metadata, annotation::OPERATION);
            return true;
        }
        return false;
    }
    let operations = split_operations(&value);
    let mut bump = false;
    let mut dropped: Vec<&str> = Vec::new();
    for operation in &operations {
        match *operation {
            op::RECONCILE => {
                bump = true;
                dropped.push(operation);
            }
            op::ROTATE_SSH_KEYPAIR => {
                if new.spec.ssh_access_enabled() {
                    bump = true;
                } else {
                    dropped.push(operation);
                }
            }
            op::MAINTAIN | op::RETRY | op::FORCE_IN_PLACE_UPDATE | "" => {}
            other => {
                let known = other.starts_with("rotate-") || other.starts_with(op::ROLLOUT_WORKERS);
                bump |= known;
                dropped.extend(covered_by(other));
            }
        }
    }
    let kept: Vec<&str> = operations
        .iter()
        .copied()
        .filter(|operation| !dropped.contains(operation))
        .collect();
    if kept.is_empty() {
        remove_annotation(&mut new.metadata, annotation::OPERATION);
    } else if let Some(annotations) = &mut new.metadata.annotations {
        annotations.insert(annotation::OPERATION.into(), kept.join(";"));
    }
    bump
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cases::merge;
    use serde_json::json;

    fn shoot(operation: &str, state: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {annotation::OPERATION: operation}},
            "spec": {"provider": {"type": "local", "workers": [{"name": "w"}]}},
            "status": {"lastOperation": {"type": "Reconcile", "state": state}}
        }))
        .unwrap()
    }

    #[test]
    fn gapi_34_operations() {
        for (operation, state, bump, left) in [
            ("reconcile", "Succeeded", true, None),
            ("retry;reconcile", "Succeeded", true, Some("retry")),
            ("retry", "Failed", true, None),
            ("reconcile", "Failed", false, Some("reconcile")),
            ("maintain", "Succeeded", false, Some("maintain")),
            (
                "rotate-credentials-start;rotate-ca-start",
                "Succeeded",
                true,
                Some("rotate-credentials-start"),
            ),
            ("rotate-ssh-keypair", "Succeeded", true, Some("rotate-ssh-keypair")),
            ("rollout-workers=w", "Succeeded", true, Some("rollout-workers=w")),
            (";", "Succeeded", false, None),
        ] {
            let mut new = shoot(operation, state);
            normalize_operations(&mut new.metadata);
            let old = shoot("", state);
            assert_eq!(shoot_bumps(&mut new, &old), bump, "{operation}");
            assert_eq!(new.annotation(annotation::OPERATION), left, "{operation}");
        }
    }

    #[test]
    fn gapi_33_confined_changes() {
        let old = shoot("", "Succeeded");
        let mut new = old.clone();
        new.spec.maintenance = serde_json::from_value(json!({"confineSpecUpdateRollout": true})).unwrap();
        new.spec.region = "south".into();
        assert!(!shoot_bumps(&mut new.clone(), &old));
        new.spec.hibernation = serde_json::from_value(json!({"enabled": true})).unwrap();
        assert!(shoot_bumps(&mut new, &old));
    }

    /// UC-1 to UC-11 [UPD-10]–[UPD-13]: whether the generation rises, and what is left of the annotation.
    #[test]
    fn uc_1_to_11_what_raises_the_generation() {
        let confined = json!({"spec": {"maintenance": {"confineSpecUpdateRollout": true}}});
        let no_ssh = json!({"spec": {"provider": {"workersSettings": {"sshAccess": {"enabled": false}}}}});
        let state = |state: &str| json!({"status": {"lastOperation": {"type": "Reconcile", "state": state}}});
        let asks = |operation: &str| json!({"metadata": {"annotations": {annotation::OPERATION: operation}}});
        let labelled = json!({"spec": {"provider": {"workers": [{"name": "w", "labels": {"a": "b"}}]}}});
        let both = |one: &Value, other: &Value| {
            let mut whole = one.clone();
            merge(&mut whole, other.clone());
            whole
        };
        let table = [
            (
                "UC-1",
                state("Succeeded"),
                json!({"spec": {"kubernetes": {"version": "1.34.1"}}}),
                true,
                None,
            ),
            ("UC-2", confined.clone(), labelled.clone(), false, None),
            (
                "UC-3",
                confined.clone(),
                json!({"spec": {"hibernation": {"enabled": true}}}),
                true,
                None,
            ),
            (
                "UC-4",
                confined.clone(),
                json!({"spec": {"maintenance": {"confineSpecUpdateRollout": false}}}),
                true,
                None,
            ),
            ("and on", json!({}), confined.clone(), false, None),
            (
                "with another change",
                json!({}),
                both(&confined, &labelled),
                false,
                None,
            ),
            ("UC-5", state("Failed"), asks("retry"), true, None),
            ("UC-6", state("Failed"), asks("reconcile"), false, Some("reconcile")),
            (
                "of several",
                state("Failed"),
                asks("retry;reconcile"),
                false,
                Some("retry;reconcile"),
            ),
            ("UC-7", state("Error"), asks("reconcile"), true, None),
            ("UC-8", state("Succeeded"), asks("retry"), false, Some("retry")),
            ("UC-9", json!({}), asks("reconcile"), false, Some("reconcile")),
            (
                "UC-10",
                both(&no_ssh, &state("Succeeded")),
                asks("rotate-ssh-keypair"),
                false,
                None,
            ),
            (
                "UC-11",
                state("Succeeded"),
                asks("reconcile;rotate-ca-start"),
                true,
                Some("rotate-ca-start"),
            ),
            (
                "a change of the spec leaves it",
                state("Succeeded"),
                both(&labelled, &asks("reconcile")),
                true,
                Some("reconcile"),
            ),
            (
                "in confinement it counts",
                both(&confined, &state("Succeeded")),
                asks("reconcile"),
                true,
                None,
            ),
        ];
        for (id, given, change, rises, left) in table {
            let mut before = json!({
                "metadata": {"name": "a"},
                "spec": {"kubernetes": {"version": "1.34.0"}, "provider": {"type": "local", "workers": [{"name": "w"}]}},
            });
            merge(&mut before, given);
            let mut after = before.clone();
            merge(&mut after, change);
            let old: Shoot = serde_json::from_value(before).unwrap();
            let mut new: Shoot = serde_json::from_value(after).unwrap();
            normalize_operations(&mut new.metadata);
            assert_eq!(shoot_bumps(&mut new, &old), rises, "{id}");
            assert_eq!(new.annotation(annotation::OPERATION), left, "{id}");
        }
    }
}
