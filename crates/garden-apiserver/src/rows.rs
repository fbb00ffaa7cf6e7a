//! Texts that several tables show, [GAPI-10] – [GAPI-19].

use gardener_apimachinery::duration::{Duration, human};
use gardener_apis::core::v1beta1::{Condition, LastOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// What a cell shows that has no value.
pub(crate) const UNKNOWN: &str = "<unknown>";
/// What a cell shows that will have a value.
pub(crate) const PENDING: &str = "<pending>";
/// What a cell shows of what was not seen.
const NEVER: &str = "<never>";
/// What a cell shows of a time that is over.
const EXPIRED: &str = "<expired>";
/// What a cell shows that need not have a value.
pub(crate) const NONE: &str = "<none>";

/// A text, or a placeholder when it is missing or empty.
pub(crate) fn or<'a>(text: Option<&'a str>, placeholder: &'a str) -> Value {
    text.filter(|text| !text.is_empty()).unwrap_or(placeholder).into()
}

/// Time since a moment, short.
fn since(now: Timestamp, time: Option<&Time>) -> Value {
    match time {
        Some(time) => human(Duration::from_secs(now.as_second() - time.0.as_second())).into(),
        None => UNKNOWN.into(),
    }
}

/// How long ago something was seen, if ever.
pub(crate) fn ago(now: Timestamp, time: Option<&Time>) -> Value {
    match time {
        Some(time) => format!(
            "{} ago",
            human(Duration::from_secs(now.as_second() - time.0.as_second()))
        )
        .into(),
        None => NEVER.into(),
    }
}

/// Time until a moment, short.
pub(crate) fn until(now: Timestamp, time: Option<&Time>) -> Value {
    match time {
        Some(time) if time.0 < now => EXPIRED.into(),
        Some(time) => human(Duration::from_secs(time.0.as_second() - now.as_second())).into(),
        None => PENDING.into(),
    }
}

/// Time since creation.
pub(crate) fn age(now: Timestamp, meta: &ObjectMeta) -> Value {
    since(now, meta.creation_timestamp.as_ref())
}

/// The status of a condition.
pub(crate) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a str> {
    conditions
        .iter()
        .find(|condition| condition.r#type == kind)
        .map(|condition| condition.status.as_str())
}

/// The status of a condition as a cell.
pub(crate) fn condition_cell(conditions: &[Condition], kind: &str) -> Value {
    or(condition(conditions, kind), UNKNOWN)
}

/// `Reconcile Succeeded (100%)`.
pub(crate) fn operation(operation: Option<&LastOperation>) -> Value {
    match operation {
        Some(operation) => format!("{} {} ({}%)", operation.r#type, operation.state, operation.progress).into(),
        None => PENDING.into(),
    }
}

/// State and progress in two cells.
pub(crate) fn state_and_progress(operation: Option<&LastOperation>) -> [Value; 2] {
    match operation {
        Some(operation) => [operation.state.as_str().into(), operation.progress.into()],
        None => [PENDING.into(), 0.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_19_when_a_bastion_was_seen_and_expires() {
        let time = |text: &str| Time(text.parse().unwrap());
        let now = time("2026-01-01T12:00:00Z");
        let [before, after] = [time("2026-01-01T11:30:00Z"), time("2026-01-01T12:00:28Z")];
        assert_eq!([ago(now.0, Some(&before)), ago(now.0, None)], ["30m ago", "<never>"]);
        let told = [Some(&after), Some(&before), None].map(|time| until(now.0, time));
        assert_eq!(told, ["28s", "<expired>", "<pending>"]);
    }

    #[test]
    fn progress_is_a_number() {
        let operation: LastOperation = serde_json::from_value(serde_json::json!({
            "description": "", "lastUpdateTime": "2026-01-01T12:00:00Z", "progress": 50, "state": "Processing", "type": "Create"}))
        .unwrap();
        assert_eq!(
            state_and_progress(Some(&operation)),
            [Value::from("Processing"), Value::from(50)]
        );
        assert_eq!(state_and_progress(None), [Value::from(PENDING), Value::from(0)]);
    }
}
