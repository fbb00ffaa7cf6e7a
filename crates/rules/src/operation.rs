//! Which operation an object's last one leads to; the same for shoots, extension objects, seeds and backups [ST-120], [EXT-13].

use gardener_apis::core::v1beta1::LastOperation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// `status.lastOperation.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationType {
    /// It is made.
    Create,
    /// It is brought to its spec.
    Reconcile,
    /// It is removed.
    Delete,
    /// It leaves a seed.
    Migrate,
    /// It arrives on a seed.
    Restore,
}

/// `status.lastOperation.state` of an operation that is done.
pub const SUCCEEDED: &str = "Succeeded";

/// An operation as a status tells it.
pub fn last_operation(
    operation: OperationType,
    state: &str,
    progress: i32,
    description: impl Into<String>,
    now: Time,
) -> LastOperation {
    LastOperation {
        r#type: operation.as_str().to_owned(),
        state: state.to_owned(),
        progress,
        description: description.into(),
        last_update_time: Some(now),
    }
}

impl OperationType {
    /// The wire value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Reconcile => "Reconcile",
            Self::Delete => "Delete",
            Self::Migrate => "Migrate",
            Self::Restore => "Restore",
        }
    }

    /// What comes next when nothing special is asked: deletion goes first, what has not succeeded is gone on with, all else is reconciled.
    pub fn next(is_in_deletion: bool, last: Option<&LastOperation>) -> Self {
        let Some(last) = last else {
            return if is_in_deletion { Self::Delete } else { Self::Create };
        };
        match last.r#type.as_str() {
            _ if is_in_deletion => Self::Delete,
            "Create" if last.state != SUCCEEDED => Self::Create,
            "Migrate" if last.state != SUCCEEDED => Self::Migrate,
            "Restore" if last.state != SUCCEEDED => Self::Restore,
            _ => Self::Reconcile,
        }
    }

    /// The description when the operation on a shoot starts [CP-15].
    pub fn start_description(self) -> &'static str {
        match self {
            Self::Create | Self::Reconcile => "Reconciliation of Shoot cluster initialized.",
            Self::Restore => "Restoration of Shoot cluster initialized.",
            Self::Migrate => "Preparation of Shoot cluster for migration initialized.",
            Self::Delete => "Deletion of Shoot cluster in progress.",
        }
    }

    /// The description when the operation on a shoot succeeded [CP-16].
    pub fn success_description(self) -> &'static str {
        match self {
            Self::Create | Self::Reconcile => "Shoot cluster has been successfully reconciled.",
            Self::Restore => "Shoot cluster has been successfully restored.",
            Self::Migrate => "Shoot cluster has been successfully prepared for migration.",
            Self::Delete => "Shoot cluster has been successfully deleted.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_120_the_last_operation_decides() {
        use OperationType::*;
        let last = |kind: &str, state: &str| LastOperation {
            r#type: kind.into(),
            state: state.into(),
            ..LastOperation::default()
        };
        let table = [
            (false, None, Create),
            (true, None, Delete),
            (true, Some(last("Create", "Error")), Delete),
            (false, Some(last("Create", "Error")), Create),
            (false, Some(last("Create", "Succeeded")), Reconcile),
            (false, Some(last("Reconcile", "Error")), Reconcile),
            (false, Some(last("Migrate", "Error")), Migrate),
            (false, Some(last("Restore", "Processing")), Restore),
            (false, Some(last("Restore", "Succeeded")), Reconcile),
            (false, Some(last("Delete", "Error")), Reconcile),
        ];
        for (is_in_deletion, last, expected) in table {
            assert_eq!(
                OperationType::next(is_in_deletion, last.as_ref()),
                expected,
                "{is_in_deletion} {last:?}"
            );
        }
    }
}
