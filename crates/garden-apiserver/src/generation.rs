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

/// [GAPI-32]: whether the operation annotation raises the generation. `consumed` operations are removed, `kept` ones stay and raise it with every
/// update. Asked last: an update that raises the generation for another reason leaves the annotation to the next one.
pub(crate) fn operation_bumps<K: Metadata<Ty = ObjectMeta>>(new: &mut K, consumed: &[&str], kept: &[&str]) -> bool {
    let operation = annotation_of(new.metadata(), annotation::OPERATION).unwrap_or_default();
    if consumed.contains(&operation) {
        remove_annotation(new.metadata_mut(), annotation::OPERATION);
        return true;
    }
    kept.contains(&operation)
}

/// Whether the operation annotation is another one than before.
pub(crate) fn operation_changes<K: Metadata<Ty = ObjectMeta>>(new: &K, old: &K) -> bool {
    let operation = |kind: &K| annotation_of(kind.metadata(), annotation::OPERATION).map(str::to_owned);
    operation(new) != operation(old)
}

/// Whether a boolean annotation becomes true.
pub(crate) fn becomes_true<K: Metadata<Ty = ObjectMeta>>(new: &K, old: &K, key: &str) -> bool {
    let truth = |kind: &K| annotation_of(kind.metadata(), key).is_some_and(is_true);
    truth(new) && !truth(old)
}

/// Whether an annotation becomes the text `true`, and no other way to say it.
pub(crate) fn becomes_text_true<K: Metadata<Ty = ObjectMeta>>(new: &K, old: &K, key: &str) -> bool {
    let told = |kind: &K| annotation_of(kind.metadata(), key) == Some("true");
    told(new) && !told(old)
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
        let retries = value == op::RETRY;
        if retries || split_operations(&value).is_empty() {
            remove_annotation(&mut new.metadata, annotation::OPERATION);
        }
        return retries;
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
            // upstream forgets here what operations before it wanted
            op::FORCE_IN_PLACE_UPDATE => bump = false,
            op::MAINTAIN | op::RETRY | "" => {}
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
            (
                "reconcile;force-in-place-update",
                "Succeeded",
                false,
                Some("force-in-place-update"),
            ),
            (";", "Succeeded", false, None),
        ] {
            let mut new = shoot(operation, state);
            normalize_operations(&mut new.metadata);
            let old = shoot("", state);
            assert_eq!(shoot_bumps(&mut new, &old), bump, "{operation}");
            assert_eq!(new.annotation(annotation::OPERATION), left, "{operation}");
        }
    }

    /// Whether an update with this operation raises the generation, once without and once with another change; and what is left of the operation.
    fn operates<K: GardenKind>(before: &str, operation: &str) -> [(bool, Option<String>); 2] {
        let object = |operation: &str, provider: &str| -> K {
            let annotations = match operation {
                "" => json!({}),
                operation => json!({annotation::OPERATION: operation}),
            };
            let spec = json!({"provider": {"type": provider}, "bucketName": provider, "shoot": {"name": provider}, "revisionHistoryLimit": provider.len(),
                "deployment": {"serviceAccountName": provider}});
            serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations}, "spec": spec}))
                .unwrap()
        };
        let old = object(before, "local");
        ["local", "another"].map(|provider| {
            let mut new = object(operation, provider);
            let rises = new.bumps(&old);
            (
                rises,
                annotation_of(new.metadata(), annotation::OPERATION).map(str::to_owned),
            )
        })
    }

    #[test]
    fn gapi_32_operations() {
        use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, Seed};
        use gardener_apis::seedmanagement::v1alpha1::{Gardenlet, ManagedSeed, ManagedSeedSet};
        type Operates = fn(&str, &str) -> [(bool, Option<String>); 2];
        let table: [(&str, Operates, &str, &str, bool, bool); 17] = [
            ("BackupBucket", operates::<BackupBucket>, "", "reconcile", true, false),
            ("BackupBucket", operates::<BackupBucket>, "", "migrate", false, true),
            ("BackupEntry", operates::<BackupEntry>, "", "reconcile", true, false),
            ("BackupEntry", operates::<BackupEntry>, "", "migrate", true, false),
            ("BackupEntry", operates::<BackupEntry>, "", "restore", true, true),
            (
                "BackupEntry",
                operates::<BackupEntry>,
                "restore",
                "restore",
                false,
                true,
            ),
            ("Seed", operates::<Seed>, "", "reconcile", true, false),
            ("Seed", operates::<Seed>, "reconcile", "reconcile", false, true),
            ("Seed", operates::<Seed>, "", "renew-kubeconfig", true, true),
            (
                "Seed",
                operates::<Seed>,
                "renew-kubeconfig",
                "renew-kubeconfig",
                false,
                true,
            ),
            ("Gardenlet", operates::<Gardenlet>, "", "reconcile", true, false),
            (
                "Gardenlet",
                operates::<Gardenlet>,
                "force-redeploy",
                "force-redeploy",
                true,
                true,
            ),
            (
                "Gardenlet",
                operates::<Gardenlet>,
                "renew-kubeconfig",
                "renew-kubeconfig",
                true,
                true,
            ),
            ("ManagedSeed", operates::<ManagedSeed>, "", "reconcile", true, false),
            (
                "ManagedSeed",
                operates::<ManagedSeed>,
                "renew-kubeconfig",
                "renew-kubeconfig",
                true,
                true,
            ),
            (
                "ManagedSeedSet",
                operates::<ManagedSeedSet>,
                "",
                "reconcile",
                true,
                false,
            ),
            (
                "ManagedSeedSet",
                operates::<ManagedSeedSet>,
                "",
                "renew-kubeconfig",
                false,
                true,
            ),
        ];
        for (kind, operates, before, operation, rises, stays) in table {
            let [alone, beside] = operates(before, operation);
            assert_eq!(
                (alone.0, alone.1.is_some()),
                (rises, stays),
                "{kind}: {before} {operation}"
            );
            assert_eq!(
                beside,
                (true, Some(operation.to_owned())),
                "{kind}: another change leaves {operation}"
            );
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
