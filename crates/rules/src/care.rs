//! How the findings of care become conditions [ST-30], and what is found: one module per thing that is looked at. Not how it is read.

pub mod api_server;
pub mod control_plane;
pub mod extensions;
pub mod managed_resources;
pub mod nodes;
pub mod preserved;
pub mod scaling;
pub mod stale_pods;

use std::time::Duration;

use gardener_apis::core::v1beta1::{Condition, LastOperation};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The condition's reason.
    pub reason: String,
    /// The condition's message.
    pub message: String,
    /// Gardener's error codes.
    pub codes: Vec<String>,
}

impl Finding {
    /// A finding without codes.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            codes: Vec::new(),
        }
    }
}

/// The status of a condition whose check failed: Progressing for a time, then False [ST-30].
pub fn status_of_failure(
    old: &Condition,
    reason: &str,
    threshold: Option<SignedDuration>,
    last: Option<&LastOperation>,
    now: Timestamp,
) -> &'static str {
    const FALSE: &str = "False";
    const PROGRESSING: &str = "Progressing";
    let Some(threshold) = threshold else { return FALSE };
    let within = |time: Option<Timestamp>| time.is_some_and(|time| now.duration_since(time) <= threshold);
    let updated = last.and_then(|last| last.last_update_time.as_ref()).map(|time| time.0);
    let recent = last.is_some_and(|last| last.state == "Succeeded") && within(updated);
    let transition = old.last_transition_time.as_ref().map(|time| time.0);
    let progressing = match old.status.as_str() {
        "True" => true,
        PROGRESSING => recent || within(transition),
        FALSE => recent || old.reason != reason,
        _ => false,
    };
    if progressing { PROGRESSING } else { FALSE }
}

/// How long until a shoot is looked at again: every `period`, but sooner as long as what was just rolled out is coming up, so that
/// nobody waits a minute for good news. What stays bad is looked at ever more rarely, up to the period.
pub fn next_look(is_fine: bool, last: Option<&LastOperation>, now: Timestamp, period: Duration) -> Duration {
    const SOONEST: Duration = Duration::from_millis(250);
    let ended = last
        .filter(|last| last.state == "Succeeded")
        .and_then(|last| last.last_update_time.as_ref());
    match ended {
        Some(ended) if !is_fine => {
            let since = Duration::try_from(now.duration_since(ended.0)).unwrap_or_default();
            (since / 4).max(SOONEST).min(period)
        }
        _ => period,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn st_40_what_comes_up_is_looked_at_sooner() {
        let at = |text: &str| Time(format!("2026-03-01T{text}Z").parse().unwrap());
        let last = |state: &str| LastOperation {
            state: state.into(),
            last_update_time: Some(at("10:00:00")),
            ..LastOperation::default()
        };
        let period = Duration::from_secs(60);
        let millis = Duration::from_millis;
        let table = [
            (true, Some(last("Succeeded")), "10:00:00", period),
            (false, Some(last("Succeeded")), "10:00:00", millis(250)),
            (false, Some(last("Succeeded")), "10:00:02", millis(500)),
            (false, Some(last("Succeeded")), "10:10:00", period),
            (false, Some(last("Succeeded")), "09:59:00", millis(250)),
            (false, Some(last("Processing")), "10:00:00", period),
            (false, None, "10:00:00", period),
        ];
        for (is_fine, last, now, expected) in table {
            assert_eq!(
                next_look(is_fine, last.as_ref(), at(now).0, period),
                expected,
                "{now} {last:?}"
            );
        }
    }

    #[test]
    fn st_30_thresholds() {
        let at = |text: &str| Some(Time(format!("2026-03-01T{text}Z").parse().unwrap()));
        let now: Timestamp = "2026-03-01T10:10:00Z".parse().unwrap();
        let minute = Some(SignedDuration::from_mins(1));
        let last = |text: &str| LastOperation {
            state: "Succeeded".into(),
            last_update_time: at(text),
            ..LastOperation::default()
        };
        let (long_ago, recently) = (last("09:00:00"), last("10:09:30"));
        let table = [
            ("True", "R", "09:00:00", None, &long_ago, "False"),
            ("True", "R", "09:00:00", minute, &long_ago, "Progressing"),
            ("Progressing", "R", "10:09:00", minute, &long_ago, "Progressing"),
            ("Progressing", "R", "10:08:59", minute, &long_ago, "False"),
            ("Progressing", "R", "10:08:59", minute, &recently, "Progressing"),
            ("False", "R", "10:00:00", minute, &long_ago, "False"),
            ("False", "Other", "10:00:00", minute, &long_ago, "Progressing"),
            ("Unknown", "R", "10:09:59", minute, &recently, "False"),
        ];
        for (status, reason, transition, threshold, last, expected) in table {
            let old = Condition {
                status: status.into(),
                reason: reason.into(),
                last_transition_time: at(transition),
                ..Condition::default()
            };
            let found = status_of_failure(&old, "R", threshold, Some(last), now);
            assert_eq!(found, expected, "{status} {reason} {transition}");
        }
    }
}
