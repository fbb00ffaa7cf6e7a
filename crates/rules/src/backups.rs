//! What becomes of a BackupBucket or BackupEntry on its seed: when its extension is asked, what its status then says, and how long a deleted
//! entry is kept [EXT-3.9], [EXT-23], [CP-150]. Not how any of it is written.

use std::time::Duration;

use gardener_apis::core::v1beta1::{BackupBucket, LastError, LastOperation};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::operation::{OperationType, SUCCEEDED};

/// A bucket that nobody asked about for so long is reconciled when it is looked at.
const STALE: SignedDuration = SignedDuration::from_hours(12);

/// The two kinds, of which much the same is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// BackupBucket.
    Bucket,
    /// BackupEntry.
    Entry,
}

impl Kind {
    /// The description of an operation that has begun.
    pub fn start_description(self, operation: OperationType) -> String {
        let kind = match self {
            Self::Bucket => "BackupBucket",
            Self::Entry => "BackupEntry",
        };
        format!("{} of {kind} state initialized.", noun(operation))
    }

    /// The description of an operation that is done.
    pub fn success_description(self, operation: OperationType) -> String {
        match (self, operation) {
            (Self::Bucket, OperationType::Delete) => "Backup Bucket has been successfully deleted.".to_owned(),
            (Self::Bucket, _) => "Backup Bucket has been successfully reconciled.".to_owned(),
            (Self::Entry, _) => format!("{} of BackupEntry succeeded.", noun(operation)),
        }
    }

    /// The description of a deletion that failed for what the extension says.
    pub fn deletion_failure_description(self, error: &str) -> String {
        match self {
            Self::Bucket => format!("{error} Operation will be retried."),
            Self::Entry => error.to_owned(),
        }
    }
}

fn noun(operation: OperationType) -> &'static str {
    match operation {
        OperationType::Create | OperationType::Reconcile => "Reconciliation",
        OperationType::Restore => "Restoration",
        OperationType::Migrate => "Migration",
        OperationType::Delete => "Deletion",
    }
}

/// What the seed has of a backup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The Secret with the credentials, made of those in the garden.
    pub secret: Option<FoundSecret>,
    /// The extension's object.
    pub object: Option<FoundObject<'a>>,
}

/// The Secret with the credentials.
#[derive(Clone, Copy, Debug)]
pub struct FoundSecret {
    /// Whether it holds what the garden has now.
    pub is_current: bool,
    /// When it was written (`gardener.cloud/timestamp`); none if that cannot be read.
    pub written: Option<Timestamp>,
}

/// The extension's object.
#[derive(Clone, Copy, Debug)]
pub struct FoundObject<'a> {
    /// Whether its spec is the one it would get now.
    pub is_current: bool,
    /// Whether its extension has been asked and has not begun (`gardener.cloud/operation`).
    pub is_asked: bool,
    /// `status.lastOperation`.
    pub last_operation: Option<&'a LastOperation>,
    /// `status.lastError`.
    pub last_error: Option<&'a LastError>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The Secret is to be written.
    pub write_secret: bool,
    /// The extension is to be asked to reconcile.
    pub ask: bool,
    /// What the status says then.
    pub state: State,
}

/// How it stands with a backup.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The extension is at work.
    Processing,
    /// The extension says that it failed; `last_update_time` is not set.
    Failed(LastError),
    /// All is as it should be.
    Succeeded,
    /// It waits for a time to come; with what for.
    Pending(String),
}

/// Decides what is to be done about a backup that stays. A Secret that is written now makes the extension's last operation an old one.
pub fn decide(found: &Found<'_>, now: Timestamp) -> Decision {
    let outdated = found.secret.is_some_and(|secret| !secret.is_current);
    let written = found
        .secret
        .filter(|secret| secret.is_current)
        .and_then(|secret| secret.written);
    let (ask, state) = match &found.object {
        None => (true, State::Processing),
        Some(object) => {
            // a status tells whole seconds
            let (ask, state) = look(object, written.unwrap_or(now).as_second(), now);
            (ask || outdated, state)
        }
    };
    let state = match state {
        State::Succeeded if ask => State::Processing,
        state => state,
    };
    Decision {
        write_secret: written.is_none(),
        ask,
        state,
    }
}

/// Whether the extension of an object has to be asked since its Secret was written in that second, and how it stands.
fn look(object: &FoundObject<'_>, written: i64, now: Timestamp) -> (bool, State) {
    let updated = |last: &LastOperation| last.last_update_time.as_ref().map(|time| time.0).unwrap_or_default();
    let failed = |description: String, codes: Vec<String>| {
        State::Failed(LastError {
            description,
            codes,
            ..LastError::default()
        })
    };
    let is_old = object
        .last_operation
        .is_some_and(|last| updated(last).as_second() < written);
    if !object.is_current || is_old {
        return (true, State::Processing);
    }
    let Some(last) = object.last_operation else {
        let text = "extension did not record a last operation yet".to_owned();
        return (!object.is_asked, failed(text, Vec::new()));
    };
    match (object.last_error, last.state.as_str()) {
        (Some(error), state) => {
            let text = format!("error during reconciliation: {}", error.description);
            (state == "Failed", failed(text, error.codes.clone()))
        }
        (None, state @ ("Error" | "Failed")) => {
            let text = format!("extension state is not Succeeded but {state}");
            (state == "Failed", failed(text, Vec::new()))
        }
        (None, SUCCEEDED) => (now.duration_since(updated(last)) > STALE, State::Succeeded),
        (None, _) => (false, State::Processing),
    }
}

/// Whether a bucket may be written to.
///
/// # Errors
/// Why not; `last_update_time` is not set.
pub fn check_bucket(bucket: &BackupBucket) -> Result<(), LastError> {
    let refuse = |description: String, codes: &[String]| {
        Err(LastError {
            description,
            codes: codes.to_vec(),
            ..LastError::default()
        })
    };
    if let Some(error) = &bucket.status.last_error {
        let text = format!(
            "error during reconciliation of associated BackupBucket: {}",
            error.description
        );
        return refuse(text, &error.codes);
    }
    let generation = bucket.metadata.generation.unwrap_or_default();
    let observed = bucket.status.observed_generation.unwrap_or_default();
    if observed != generation {
        return refuse(format!("observed generation outdated ({observed}/{generation})"), &[]);
    }
    match bucket.status.last_operation.as_ref().map(|last| last.state.as_str()) {
        None => refuse(
            "associated BackupBucket did not record a last operation yet".to_owned(),
            &[],
        ),
        Some(SUCCEEDED) => Ok(()),
        Some(state) => refuse(
            format!("associated BackupBucket state is not Succeeded but {state}"),
            &[],
        ),
    }
}

/// How long a deleted entry of a shoot with this purpose is kept: `controllers.backupEntry.deletionGracePeriodHours`, if
/// `deletionGracePeriodShootPurposes` has the purpose, or nothing is known of either.
pub fn deletion_grace(hours: u32, purposes: &[String], purpose: &str) -> Duration {
    if purposes.is_empty() || purpose.is_empty() || purposes.iter().any(|one| one == purpose) {
        Duration::from_secs(u64::from(hours) * 3600)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn last(state: &str, time: &str) -> LastOperation {
        LastOperation {
            state: state.to_owned(),
            last_update_time: Some(Time(at(time))),
            ..LastOperation::default()
        }
    }

    fn decided(secret: Option<FoundSecret>, object: Option<FoundObject<'_>>) -> (bool, bool, String) {
        let decision = decide(&Found { secret, object }, at("2026-03-01T10:00:00Z"));
        let state = match decision.state {
            State::Processing => "Processing".to_owned(),
            State::Succeeded => "Succeeded".to_owned(),
            State::Pending(text) => text,
            State::Failed(error) => format!("{} {:?}", error.description, error.codes),
        };
        (decision.write_secret, decision.ask, state)
    }

    #[test]
    fn ext_3_9_the_extension_is_asked_when_something_is_new() {
        let secret = Some(FoundSecret {
            is_current: true,
            written: Some(at("2026-03-01T09:00:00.7Z")),
        });
        let (before, same_second, after) = (
            last("Succeeded", "2026-03-01T08:59:59Z"),
            last("Succeeded", "2026-03-01T09:00:00Z"),
            last("Succeeded", "2026-03-01T09:10:00Z"),
        );
        let object = |last| FoundObject {
            is_current: true,
            is_asked: false,
            last_operation: last,
            last_error: None,
        };
        let is = |write, ask, state: &str| (write, ask, state.to_owned());
        assert_eq!(decided(None, None), is(true, true, "Processing"));
        assert_eq!(decided(secret, None), is(false, true, "Processing"));
        assert_eq!(decided(None, Some(object(Some(&after)))), is(true, true, "Processing"));
        assert_eq!(
            decided(secret, Some(object(Some(&after)))),
            is(false, false, "Succeeded")
        );
        assert_eq!(
            decided(secret, Some(object(Some(&same_second)))),
            is(false, false, "Succeeded")
        );
        assert_eq!(
            decided(secret, Some(object(Some(&before)))),
            is(false, true, "Processing")
        );
        let other_spec = FoundObject {
            is_current: false,
            ..object(Some(&after))
        };
        assert_eq!(decided(secret, Some(other_spec)), is(false, true, "Processing"));
        let other_data = secret.map(|secret| FoundSecret {
            is_current: false,
            ..secret
        });
        assert_eq!(
            decided(other_data, Some(object(Some(&after)))),
            is(true, true, "Processing")
        );
        let unreadable_time = secret.map(|secret| FoundSecret {
            written: None,
            ..secret
        });
        assert_eq!(
            decided(unreadable_time, Some(object(Some(&after)))),
            is(true, true, "Processing")
        );
        let old = last("Succeeded", "2026-02-28T21:59:59Z");
        let long_ago = secret.map(|secret| FoundSecret {
            written: Some(at("2026-01-01T00:00:00Z")),
            ..secret
        });
        assert_eq!(
            decided(long_ago, Some(object(Some(&old)))),
            is(false, true, "Processing")
        );
    }

    #[test]
    fn ext_23_what_the_extension_says_is_told() {
        let secret = Some(FoundSecret {
            is_current: true,
            written: Some(at("2026-03-01T09:00:00Z")),
        });
        let error = LastError {
            description: "no quota".to_owned(),
            codes: vec!["ERR_INFRA_QUOTA_EXCEEDED".to_owned()],
            ..LastError::default()
        };
        let told = r#"error during reconciliation: no quota ["ERR_INFRA_QUOTA_EXCEEDED"]"#;
        let table = [
            (None, None, true, "extension did not record a last operation yet []"),
            (Some("Processing"), None, false, "Processing"),
            (Some("Processing"), Some(&error), false, told),
            (Some("Error"), Some(&error), false, told),
            (
                Some("Error"),
                None,
                false,
                "extension state is not Succeeded but Error []",
            ),
            (Some("Failed"), Some(&error), true, told),
            (
                Some("Failed"),
                None,
                true,
                "extension state is not Succeeded but Failed []",
            ),
        ];
        for (state, last_error, ask, expected) in table {
            let operation = state.map(|state| last(state, "2026-03-01T09:30:00Z"));
            let mut object = FoundObject {
                is_current: true,
                is_asked: false,
                last_operation: operation.as_ref(),
                last_error,
            };
            assert_eq!(
                decided(secret, Some(object)),
                (false, ask, expected.to_owned()),
                "{state:?}"
            );
            object.is_asked = true;
            assert_eq!(
                decided(secret, Some(object)).1,
                ask && state.is_some(),
                "{state:?}, asked"
            );
        }
    }

    #[test]
    fn ext_3_10_entries_need_a_bucket_that_succeeded() {
        let mut bucket = BackupBucket::default();
        let told = |bucket: &BackupBucket| check_bucket(bucket).map_err(|error| (error.description, error.codes));
        let refused = |text: &str| Err((text.to_owned(), Vec::new()));
        let none = refused("associated BackupBucket did not record a last operation yet");
        assert_eq!(told(&bucket), none);
        bucket.status.last_operation = Some(last("Processing", "2026-03-01T09:00:00Z"));
        assert_eq!(
            told(&bucket),
            refused("associated BackupBucket state is not Succeeded but Processing")
        );
        bucket.status.last_operation = Some(last("Succeeded", "2026-03-01T09:00:00Z"));
        assert_eq!(told(&bucket), Ok(()));
        bucket.metadata.generation = Some(2);
        bucket.status.observed_generation = Some(1);
        assert_eq!(told(&bucket), refused("observed generation outdated (1/2)"));
        bucket.status.last_error = Some(LastError {
            description: "no quota".to_owned(),
            codes: vec!["ERR_INFRA_QUOTA_EXCEEDED".to_owned()],
            ..LastError::default()
        });
        assert_eq!(
            told(&bucket),
            Err((
                "error during reconciliation of associated BackupBucket: no quota".to_owned(),
                vec!["ERR_INFRA_QUOTA_EXCEEDED".to_owned()]
            ))
        );
    }

    #[test]
    fn cp_150_a_deleted_entry_is_kept_by_the_shoots_purpose() {
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        let production = ["production".to_owned()];
        assert_eq!(deletion_grace(24, &[], "evaluation"), hours(24));
        assert_eq!(deletion_grace(24, &production, "production"), hours(24));
        assert_eq!(deletion_grace(24, &production, "evaluation"), hours(0));
        assert_eq!(deletion_grace(24, &production, ""), hours(24));
        assert_eq!(deletion_grace(0, &[], "production"), hours(0));
    }

    #[test]
    fn ext_23_descriptions_name_kind_and_operation() {
        use OperationType::{Create, Delete};
        assert_eq!(
            Kind::Bucket.start_description(Create),
            "Reconciliation of BackupBucket state initialized."
        );
        assert_eq!(
            Kind::Entry.start_description(Delete),
            "Deletion of BackupEntry state initialized."
        );
        assert_eq!(
            Kind::Bucket.success_description(Delete),
            "Backup Bucket has been successfully deleted."
        );
        assert_eq!(
            Kind::Entry.success_description(Create),
            "Reconciliation of BackupEntry succeeded."
        );
    }
}
