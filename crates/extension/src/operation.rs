//! What is to be done with an extension object, and when [EXT-13]–[EXT-16].

use gardener_controller::Change;
use gardener_controller::operation::{operation, value};

use crate::ExtensionKind;

pub use gardener_rules::operation::{OperationType, SUCCEEDED};

fn last<K: ExtensionKind>(object: &K) -> Option<(&str, &str)> {
    object
        .last_operation()
        .map(|last| (last.r#type.as_str(), last.state.as_str()))
}

/// What is to be done with an object [EXT-13].
pub fn operation_type<K: ExtensionKind>(object: &K) -> OperationType {
    let asked = operation(object);
    if asked == Some(value::MIGRATE) {
        return OperationType::Migrate;
    }
    let is_in_deletion = object.meta().deletion_timestamp.is_some();
    if !is_in_deletion && asked == Some(value::RESTORE) {
        return OperationType::Restore;
    }
    OperationType::next(is_in_deletion, object.last_operation())
}

/// Whether nothing is to be done because the object was let go [EXT-14].
pub fn is_migrated<K: ExtensionKind>(object: &K) -> bool {
    last(object) == Some(("Migrate", SUCCEEDED))
        && !matches!(operation_type(object), OperationType::Migrate | OperationType::Restore)
}

fn is_asked<K: ExtensionKind>(object: &K) -> bool {
    matches!(
        operation(object),
        Some(value::RECONCILE | value::RESTORE | value::MIGRATE)
    )
}

/// Whether a change calls for the extension [EXT-15]. Beyond the rule, a change of nothing but the status never does: it is our own, and
/// what failed comes again by itself, later and later.
pub fn is_call<K: ExtensionKind>(change: &Change<K>) -> bool {
    match change {
        Change::Applied { old: None, new } => {
            is_asked(new.as_ref())
                || new.meta().deletion_timestamp.is_some()
                || last(new.as_ref()).is_none_or(|(_, state)| state != SUCCEEDED) && !waits(new.as_ref())
        }
        Change::Applied { old: Some(old), new } => {
            let untouched = old.has_same_status(new);
            let asked_anew = old.meta().annotations != new.meta().annotations;
            (is_asked(new.as_ref()) && (untouched || asked_anew))
                || (new.meta().deletion_timestamp.is_some() && untouched)
        }
        Change::Deleted(_) => false,
    }
}

/// Whether the object waits for its state [EXT-10].
pub fn waits<K: ExtensionKind>(object: &K) -> bool {
    operation(object) == Some(value::WAIT_FOR_STATE)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gardener_apis::extensions::v1alpha1::Infrastructure;
    use serde_json::{Value, json};

    use super::*;

    fn object(annotation: &str, deleted: bool, last: Option<(&str, &str)>) -> Infrastructure {
        let mut value = json!({"metadata": {"name": "a", "annotations": {}}, "spec": {}, "status": {}});
        if !annotation.is_empty() {
            value["metadata"]["annotations"]["gardener.cloud/operation"] = annotation.into();
        }
        if deleted {
            value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        if let Some((kind, state)) = last {
            value["status"]["lastOperation"] = json!({"type": kind, "state": state, "progress": 1, "description": ""});
        }
        serde_json::from_value::<Infrastructure>(Value::clone(&value)).unwrap()
    }

    #[test]
    fn ext_13_operation_types() {
        let table = [
            (("migrate", true, None), OperationType::Migrate),
            (("restore", true, None), OperationType::Delete),
            (
                ("restore", false, Some(("Create", "Succeeded"))),
                OperationType::Restore,
            ),
            (("", false, None), OperationType::Create),
            (("reconcile", false, Some(("Create", "Error"))), OperationType::Create),
            (
                ("reconcile", false, Some(("Create", "Succeeded"))),
                OperationType::Reconcile,
            ),
            (("", false, Some(("Migrate", "Error"))), OperationType::Migrate),
            (("", false, Some(("Restore", "Processing"))), OperationType::Restore),
            (("", false, Some(("Delete", "Error"))), OperationType::Reconcile),
        ];
        for ((annotation, deleted, last), expected) in table {
            let found = operation_type(&object(annotation, deleted, last));
            assert_eq!(found, expected, "{annotation} {deleted} {last:?}");
        }
    }

    #[test]
    fn ext_14_what_was_let_go_is_left_alone() {
        let migrated = Some(("Migrate", "Succeeded"));
        let table = [
            ("", true, true),
            ("reconcile", false, true),
            ("restore", false, false),
            ("migrate", true, false),
        ];
        for (annotation, deleted, expected) in table {
            assert_eq!(
                is_migrated(&object(annotation, deleted, migrated)),
                expected,
                "{annotation} {deleted}"
            );
        }
        assert!(!is_migrated(&object("", true, Some(("Migrate", "Error")))));
    }

    #[test]
    fn ext_15_calls() {
        let create = |object: Infrastructure| {
            is_call(&Change::Applied {
                old: None,
                new: Arc::new(object),
            })
        };
        assert!(!create(object("", false, Some(("Create", "Succeeded")))));
        assert!(create(object("", false, Some(("Create", "Aborted")))));
        assert!(create(object("", false, None)));
        assert!(!create(object("wait-for-state", false, None)));
        assert!(create(object("reconcile", false, Some(("Create", "Succeeded")))));
        let update = |old: Infrastructure, new: Infrastructure| {
            is_call(&Change::Applied {
                old: Some(Arc::new(old)),
                new: Arc::new(new),
            })
        };
        let done = Some(("Create", "Succeeded"));
        assert!(update(object("", false, done), object("restore", false, done)));
        assert!(!update(object("", false, done), object("", false, done)));
        assert!(update(object("", false, done), object("", true, done)));
        let mut observed = object("", true, done);
        observed.status.observed_generation = Some(2);
        assert!(!update(object("", true, done), observed));
        assert!(!update(
            object("migrate", true, done),
            object("migrate", true, Some(("Migrate", "Error")))
        ));
    }
}
