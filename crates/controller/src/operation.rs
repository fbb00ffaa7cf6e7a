//! The annotations by which components ask each other for an operation [EXT-12].

use std::collections::BTreeMap;

use gardener_apimachinery::meta::is_true;
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

/// What is asked for; see the constants of [`value`].
pub const OPERATION: &str = "gardener.cloud/operation";
/// When it was asked for.
pub const TIMESTAMP: &str = "gardener.cloud/timestamp";
/// That a deletion is meant.
pub const CONFIRM_DELETION: &str = "confirmation.gardener.cloud/deletion";

/// Values of [`OPERATION`] that controllers and extensions exchange.
pub mod value {
    /// Reconcile to the spec.
    pub const RECONCILE: &str = "reconcile";
    /// Rebuild from the state, then reconcile.
    pub const RESTORE: &str = "restore";
    /// Stop, save the last state and let go.
    pub const MIGRATE: &str = "migrate";
    /// Do nothing until the state is there.
    pub const WAIT_FOR_STATE: &str = "wait-for-state";
}

/// The annotation's form of a time: RFC 3339, UTC, nanoseconds without trailing zeros [EXT-12].
pub fn format_timestamp(now: Timestamp) -> String {
    now.to_string()
}

/// The time an operation was asked for; none if there is none or it cannot be read.
pub fn timestamp<K: Resource>(object: &K) -> Option<Timestamp> {
    object.annotations().get(TIMESTAMP)?.parse().ok()
}

/// The operation that is asked for.
pub fn operation<K: Resource>(object: &K) -> Option<&str> {
    object.annotations().get(OPERATION).map(String::as_str)
}

/// Asks for an operation now.
pub fn ask(annotations: &mut BTreeMap<String, String>, operation: &str, now: Timestamp) {
    annotations.insert(OPERATION.to_owned(), operation.to_owned());
    annotations.insert(TIMESTAMP.to_owned(), format_timestamp(now));
}

/// Takes the request away; the time stays [EXT-12].
pub fn clear(annotations: &mut BTreeMap<String, String>) {
    annotations.remove(OPERATION);
}

/// Confirms that the object may be deleted [EXT-25].
pub fn confirm_deletion(annotations: &mut BTreeMap<String, String>, now: Timestamp) {
    annotations.insert(CONFIRM_DELETION.to_owned(), "true".to_owned());
    annotations.insert(TIMESTAMP.to_owned(), format_timestamp(now));
}

/// Whether the object may be deleted: the annotation reads as true.
pub fn is_deletion_confirmed<K: Resource>(object: &K) -> bool {
    object
        .annotations()
        .get(CONFIRM_DELETION)
        .is_some_and(|value| is_true(value))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn ext_12_asking_sets_the_time_and_clearing_keeps_it() {
        let now: Timestamp = "2026-03-01T10:00:00.12345678Z".parse().unwrap();
        let mut object = ConfigMap::default();
        ask(object.annotations_mut(), value::RECONCILE, now);
        assert_eq!(operation(&object), Some("reconcile"));
        assert_eq!(object.annotations()[TIMESTAMP], "2026-03-01T10:00:00.12345678Z");
        clear(object.annotations_mut());
        assert_eq!((operation(&object), timestamp(&object)), (None, Some(now)));
        assert_eq!(
            format_timestamp("2026-03-01T11:00:00+01:00".parse().unwrap()),
            "2026-03-01T10:00:00Z"
        );
    }

    #[test]
    fn ext_25_deletion_is_confirmed_by_a_true_value() {
        let mut object = ConfigMap::default();
        assert!(!is_deletion_confirmed(&object));
        confirm_deletion(object.annotations_mut(), Timestamp::UNIX_EPOCH);
        assert!(is_deletion_confirmed(&object));
        object.annotations_mut().insert(CONFIRM_DELETION.into(), "yes".into());
        assert!(!is_deletion_confirmed(&object));
    }
}
