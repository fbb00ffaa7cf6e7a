//! When an extension object counts as ready [EXT-20], and when it is asked to work again [EXT-24]. Not how it is waited for.

use gardener_apis::core::v1beta1::{LastError, LastOperation};
use k8s_openapi::jiff::Timestamp;

/// What the check reads of an extension object.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// The annotation `gardener.cloud/operation`.
    pub operation: Option<&'a str>,
    /// The annotation `gardener.cloud/timestamp`.
    pub timestamp: Option<&'a str>,
    /// `status.lastError`.
    pub last_error: Option<&'a LastError>,
    /// `status.lastOperation`.
    pub last_operation: Option<&'a LastOperation>,
}

/// Why an object is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The extension tells an error: tolerated for a time [EXT-21].
    Error {
        /// The text.
        message: String,
        /// Gardener's error codes.
        codes: Vec<String>,
    },
    /// It takes longer.
    Waiting(String),
}

impl NotReady {
    /// The text.
    pub fn message(&self) -> &str {
        match self {
            Self::Error { message, .. } | Self::Waiting(message) => message,
        }
    }

    /// Gardener's error codes.
    pub fn codes(&self) -> &[String] {
        match self {
            Self::Error { codes, .. } => codes,
            Self::Waiting(_) => &[],
        }
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.as_second()
}

/// Whether an object is ready, and if not, why [EXT-20].
///
/// # Errors
/// The first check that failed.
pub fn check(object: &Observed<'_>) -> Result<(), NotReady> {
    if let Some(error) = object.last_error {
        return Err(NotReady::Error {
            message: format!("error during reconciliation: {}", error.description),
            codes: error.codes.clone(),
        });
    }
    let waiting = |text: String| Err(NotReady::Waiting(text));
    let (observed, generation) = (object.observed_generation, object.generation);
    if observed != generation {
        return waiting(format!("observed generation outdated ({observed}/{generation})"));
    }
    if let Some(operation) = object.operation {
        return waiting(format!(
            "gardener operation {operation:?} is not yet picked up by controller"
        ));
    }
    let Some(last) = object.last_operation else {
        return waiting("extension did not record a last operation yet".to_owned());
    };
    if last.state != "Succeeded" {
        return waiting(format!("extension state is not succeeded but {}", last.state));
    }
    let Some(text) = object.timestamp else {
        return Ok(());
    };
    let asked: Timestamp = match text.parse() {
        Ok(asked) => asked,
        Err(error) => return waiting(format!("cannot parse gardener.cloud/timestamp annotation: {error}")),
    };
    let updated = last.last_update_time.as_ref().map(|time| time.0).unwrap_or_default();
    if seconds(asked) > seconds(updated) {
        return waiting(format!(
            "extension is not reconciled yet - reconciliation requested at {asked}, last update time is: {updated}"
        ));
    }
    Ok(())
}

/// Whether a deploy that was not asked for has to trigger the extension nevertheless: the last operation did not succeed, or
/// the request is unreadable or later than the answer [EXT-24].
pub fn must_be_asked_again(object: &Observed<'_>) -> bool {
    let Some(last) = object.last_operation else {
        return true;
    };
    let Some(asked) = object.timestamp.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return true;
    };
    let updated = last.last_update_time.as_ref().map(|time| time.0).unwrap_or_default();
    last.state != "Succeeded" || seconds(asked) > seconds(updated)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn operation(state: &str, at: &str) -> LastOperation {
        LastOperation {
            state: state.into(),
            last_update_time: Some(Time(at.parse().unwrap())),
            ..LastOperation::default()
        }
    }

    #[test]
    fn ext_20_the_first_failing_check_speaks() {
        let error = LastError {
            description: "boom".into(),
            codes: vec!["ERR_INFRA_DEPENDENCIES".into()],
            ..LastError::default()
        };
        let done = operation("Succeeded", "2026-03-01T10:00:05Z");
        let busy = operation("Processing", "2026-03-01T10:00:05Z");
        let base = Observed {
            generation: 1,
            observed_generation: 1,
            last_operation: Some(&done),
            ..Observed::default()
        };
        // W-EXT-1..3
        let table: [(Observed<'_>, Result<(), &str>); 9] = [
            (base.clone(), Ok(())),
            (
                Observed {
                    observed_generation: 0,
                    ..base.clone()
                },
                Err("observed generation outdated (0/1)"),
            ),
            (
                Observed {
                    observed_generation: 0,
                    last_error: Some(&error),
                    ..base.clone()
                },
                Err("error during reconciliation: boom"),
            ),
            (
                Observed {
                    operation: Some("reconcile"),
                    ..base.clone()
                },
                Err("gardener operation \"reconcile\" is not yet picked up by controller"),
            ),
            (
                Observed {
                    last_operation: None,
                    ..base.clone()
                },
                Err("extension did not record a last operation yet"),
            ),
            (
                Observed {
                    last_operation: Some(&busy),
                    ..base.clone()
                },
                Err("extension state is not succeeded but Processing"),
            ),
            (
                Observed {
                    timestamp: Some("2026-03-01T10:00:05.9Z"),
                    ..base.clone()
                },
                Ok(()),
            ),
            (
                Observed {
                    timestamp: Some("2026-03-01T10:00:06.1Z"),
                    ..base.clone()
                },
                Err(
                    "extension is not reconciled yet - reconciliation requested at 2026-03-01T10:00:06.1Z, last update time is: 2026-03-01T10:00:05Z",
                ),
            ),
            (
                Observed {
                    timestamp: Some("foo"),
                    ..base
                },
                Err("cannot parse gardener.cloud/timestamp annotation: "),
            ),
        ];
        for (object, expected) in table {
            match (check(&object), expected) {
                (Ok(()), Ok(())) => {}
                (Err(why), Err(text)) => assert!(why.message().starts_with(text), "{why:?} instead of {text}"),
                (found, wanted) => panic!("{object:?}: {found:?} instead of {wanted:?}"),
            }
        }
    }

    #[test]
    fn ext_24_what_is_done_is_left_alone() {
        let done = operation("Succeeded", "2026-03-01T10:00:05Z");
        let failed = operation("Error", "2026-03-01T10:00:05Z");
        let table = [
            (Some(&done), Some("2026-03-01T10:00:04Z"), false),
            (Some(&done), Some("2026-03-01T10:00:06Z"), true),
            (Some(&done), Some("foo"), true),
            (Some(&failed), Some("2026-03-01T10:00:04Z"), true),
            (None, Some("2026-03-01T10:00:04Z"), true),
        ];
        for (last_operation, timestamp, expected) in table {
            let object = Observed {
                last_operation,
                timestamp,
                ..Observed::default()
            };
            assert_eq!(must_be_asked_again(&object), expected, "{object:?}");
        }
    }
}
