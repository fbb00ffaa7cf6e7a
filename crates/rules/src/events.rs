//! How long events are kept [GCM-50].

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// When an event is deleted; none, if it is not: events about shoots are left to the API server.
pub fn deleted_at(event: &Event, ttl: Duration) -> Option<Timestamp> {
    let about = event.regarding.as_ref();
    let api_version = about.and_then(|own| own.api_version.as_deref()).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = about.and_then(|own| own.kind.as_deref());
    if group == "core.gardener.cloud" && kind == Some("Shoot") {
        return None;
    }
    let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
    Some(last_seen(event).saturating_add(ttl).unwrap_or(Timestamp::MAX))
}

/// When what an event tells happened last; long ago, if nothing says when.
fn last_seen(event: &Event) -> Timestamp {
    let series = event.series.as_ref().map(|series| series.last_observed_time.0);
    let series = series.filter(|time| *time != Timestamp::UNIX_EPOCH);
    let once = event.event_time.as_ref().map(|time| time.0);
    let before = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    series.or(once).or(before).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn gcm_50_the_last_time_counts() {
        let of = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "name": "a"});
        let event = |mut fields: Value, regarding: Value| -> Event {
            fields["regarding"] = regarding;
            serde_json::from_value(fields).unwrap()
        };
        let hour = Duration::from_secs(3600);
        let (series, once, legacy) = (
            json!({"count": 3, "lastObservedTime": "2026-01-01T03:00:00.000000Z"}),
            "2026-01-01T02:00:00.000000Z",
            "2026-01-01T01:00:00Z",
        );
        let seed = || of("core.gardener.cloud/v1beta1", "Seed");
        for (fields, regarding, expected) in [
            (
                json!({"series": series, "eventTime": once, "deprecatedLastTimestamp": legacy}),
                seed(),
                Some("2026-01-01T04:00:00Z"),
            ),
            (
                json!({"eventTime": once, "deprecatedLastTimestamp": legacy}),
                seed(),
                Some("2026-01-01T03:00:00Z"),
            ),
            (
                json!({"deprecatedLastTimestamp": legacy}),
                of("v1", "Pod"),
                Some("2026-01-01T02:00:00Z"),
            ),
            (
                json!({"deprecatedLastTimestamp": legacy}),
                of("core.gardener.cloud/v1", "Shoot"),
                None,
            ),
            (
                json!({"deprecatedLastTimestamp": legacy}),
                of("other.cloud/v1", "Shoot"),
                Some("2026-01-01T02:00:00Z"),
            ),
        ] {
            let deleted = deleted_at(&event(fields.clone(), regarding), hour).map(|time| time.to_string());
            assert_eq!(deleted.as_deref(), expected, "{fields}");
        }
        let without_time = deleted_at(&event(json!({}), Value::Null), hour);
        assert!(without_time.is_some_and(|time| time < Timestamp::UNIX_EPOCH));
    }
}
