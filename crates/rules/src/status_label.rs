//! The value of a shoot's label `shoot.gardener.cloud/status` [GCM-44], [ST-148], [ST-149].

use gardener_apis::core::v1beta1::Shoot;

/// How a shoot is, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Healthy,
    /// It may become well by itself.
    Progressing,
    /// Nobody knows.
    Unknown,
    /// Something is wrong.
    Unhealthy,
}

impl Status {
    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Progressing => "progressing",
            Self::Unknown => "unknown",
            Self::Unhealthy => "unhealthy",
        }
    }

    fn of(healthy: bool) -> Self {
        if healthy { Self::Healthy } else { Self::Unhealthy }
    }
}

/// The status of a shoot by its conditions, last operation and last errors.
pub fn of(shoot: &Shoot) -> Status {
    let Some(operation) = &shoot.status.last_operation else {
        return Status::Healthy;
    };
    let without_errors = Status::of(shoot.status.last_errors.is_empty());
    if operation.r#type == "Delete" || (operation.r#type == "Create" && operation.state != "Succeeded") {
        return without_errors;
    }
    let worst = shoot
        .status
        .conditions
        .iter()
        .map(|condition| match condition.status.as_str() {
            "True" => Status::Healthy,
            "Progressing" => Status::Progressing,
            "Unknown" => Status::Unknown,
            _ => Status::Unhealthy,
        })
        .max()
        .unwrap_or(Status::Healthy);
    let operation = if operation.state == "Processing" {
        without_errors
    } else {
        Status::of(operation.state == "Succeeded")
    };
    worst.max(operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_apis::core::v1beta1::{Condition, LastError, LastOperation};

    fn shoot(operation: Option<(&str, &str)>, errors: usize, conditions: &[&str]) -> Shoot {
        let mut shoot = Shoot::default();
        shoot.status.last_operation = operation.map(|(own, state)| LastOperation {
            r#type: own.into(),
            state: state.into(),
            ..LastOperation::default()
        });
        shoot.status.last_errors = vec![LastError::default(); errors];
        shoot.status.conditions = conditions
            .iter()
            .map(|status| Condition {
                status: (*status).into(),
                ..Condition::default()
            })
            .collect();
        shoot
    }

    #[test]
    fn gcm_44_st_149_worst_wins() {
        for (operation, errors, conditions, expected) in [
            // the table of section 22.13
            (None, 0, &["False"][..], "healthy"),
            (Some(("Create", "Processing")), 0, &["False"], "healthy"),
            (Some(("Create", "Error")), 1, &["True"], "unhealthy"),
            (Some(("Create", "Pending")), 0, &[], "healthy"),
            (Some(("Create", "Succeeded")), 0, &["True", "False"], "unhealthy"),
            (Some(("Delete", "Succeeded")), 0, &["False"], "healthy"),
            (
                Some(("Reconcile", "Processing")),
                0,
                &["True", "Progressing"],
                "progressing",
            ),
            (Some(("Reconcile", "Processing")), 1, &["True"], "unhealthy"),
            (Some(("Reconcile", "Succeeded")), 1, &["True"], "healthy"),
            (Some(("Reconcile", "Error")), 0, &["True"], "unhealthy"),
            (Some(("", "Pending")), 0, &[], "unhealthy"),
            (Some(("Migrate", "Aborted")), 0, &["True"], "unhealthy"),
            (
                Some(("Restore", "Succeeded")),
                0,
                &["Unknown", "Progressing"],
                "unknown",
            ),
            // and beside it
            (Some(("Delete", "Error")), 1, &["True"], "unhealthy"),
            (
                Some(("Create", "Succeeded")),
                0,
                &["True", "Progressing"],
                "progressing",
            ),
            (Some(("Reconcile", "Processing")), 0, &["True"], "healthy"),
            (Some(("Reconcile", "Failed")), 0, &["True"], "unhealthy"),
            (Some(("Reconcile", "Succeeded")), 0, &["True", ""], "unhealthy"),
            (Some(("Reconcile", "Succeeded")), 0, &["Maybe"], "unhealthy"),
        ] {
            assert_eq!(
                of(&shoot(operation, errors, conditions)).as_str(),
                expected,
                "{operation:?} {errors} {conditions:?}"
            );
        }
    }
}
