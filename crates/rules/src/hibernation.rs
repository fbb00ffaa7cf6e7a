//! Hibernation by schedules [ST-171]–[ST-173], [GCM-40]: whether a shoot is to sleep or to wake up now, and when it is to be looked at again.

use gardener_apimachinery::cron::{ZonedSchedule, location};
use gardener_apis::core::v1beta1::{HibernationSchedule, Shoot};
use jiff::{SignedDuration, Timestamp};

use crate::maintenance_window::Window;
use crate::shoot_operation::is_failed;

/// What is older is not made up for, however long the controller was away.
const LONGEST_LOOK_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Added to the next firing, so that it has happened for certain.
const MARGIN: SignedDuration = SignedDuration::from_millis(100);

/// Which way a schedule turns a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// To sleep.
    Hibernate,
    /// To wake up.
    WakeUp,
}

impl Turn {
    /// `spec.hibernation.enabled` after it.
    pub fn enables(self) -> bool {
        self == Self::Hibernate
    }

    /// Reason and message of the event.
    pub fn event(self) -> (&'static str, &'static str) {
        match self {
            Self::Hibernate => ("Hibernated", "Hibernating cluster due to schedule"),
            Self::WakeUp => ("WokenUp", "Waking up cluster due to schedule"),
        }
    }
}

/// What is to be done about a shoot's schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What has fired last and was not followed yet.
    pub turn: Option<Turn>,
    /// How long until the next firing; none, if there is none.
    pub wait: Option<SignedDuration>,
}

/// Schedules with what they do, in the order in which they are written; none, if one of them cannot be followed: a place that nobody knows has no
/// clock.
fn parse(schedules: &[HibernationSchedule]) -> Option<Vec<(ZonedSchedule, Turn)>> {
    let mut parsed = Vec::new();
    for schedule in schedules {
        let zone = location(schedule.location.as_deref().unwrap_or_default()).ok()?;
        for (text, turn) in [(&schedule.start, Turn::Hibernate), (&schedule.end, Turn::WakeUp)] {
            if let Some(text) = text {
                parsed.push((ZonedSchedule::parse(text, &zone).ok()?, turn));
            }
        }
    }
    Some(parsed)
}

/// Decides about a shoot; nothing, when it has no schedules that can be followed. `deadline` is how late a firing may still be followed, `version` is
/// Gardener's: who failed with it stays as it is until somebody lifts that.
pub fn decide(shoot: &Shoot, deadline: Option<SignedDuration>, version: &str, now: Timestamp) -> Option<Decision> {
    let schedules = shoot.spec.hibernation.as_ref().map(|own| own.schedules.as_slice());
    let schedules = schedules.filter(|own| !own.is_empty() && !shoot.in_deletion())?;
    let schedules = parse(schedules)?;
    let next = schedules
        .iter()
        .filter_map(|(schedule, _)| schedule.next_after(now))
        .min();
    let wait = next.map(|next| next.duration_since(now) + MARGIN);
    if is_failed(shoot, version) {
        return Some(Decision { turn: None, wait });
    }
    let triggered = shoot.status.last_hibernation_trigger_time.as_ref().map(|time| time.0);
    let created = shoot.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let mut since = triggered.or(created).unwrap_or(Timestamp::MIN);
    for oldest in deadline.into_iter().chain([LONGEST_LOOK_BACK]) {
        since = since.max(now.saturating_sub(oldest).unwrap_or(Timestamp::MIN));
    }
    let mut latest: Option<(Timestamp, Turn)> = None;
    for (schedule, turn) in &schedules {
        let fired = schedule.last_within(since, now);
        if let Some(fired) = fired.filter(|fired| latest.is_none_or(|(latest, _)| *fired > latest)) {
            latest = Some((fired, *turn));
        }
    }
    Some(Decision {
        turn: latest.map(|(_, turn)| turn),
        wait,
    })
}

/// Whether a shoot sleeps while its next maintenance window is open, or does not stay awake for it. Without a window, or with schedules that cannot be
/// followed, nobody can tell, and it does not [ST-89].
pub fn sleeps_in_next_window(shoot: &Shoot, now: Timestamp) -> bool {
    let Some((begin, end)) = Window::next_given(shoot, now) else {
        return false;
    };
    let schedules = shoot
        .spec
        .hibernation
        .as_ref()
        .map_or(&[][..], |own| own.schedules.as_slice());
    let Some(schedules) = parse(schedules) else {
        return false;
    };
    let next = |wanted: Turn| {
        let own = schedules.iter().filter(|(_, turn)| *turn == wanted);
        own.filter_map(|(schedule, _)| schedule.next_after(now)).min()
    };
    let (sleeps, wakes) = (next(Turn::Hibernate), next(Turn::WakeUp));
    if shoot.status.hibernated {
        return wakes.is_none_or(|wakes| wakes > begin || sleeps.is_some_and(|sleeps| wakes < sleeps && sleeps < end));
    }
    sleeps.is_some_and(|sleeps| sleeps <= end && wakes.is_none_or(|wakes| wakes < sleeps || wakes > begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shoot(schedules: Value, triggered: Option<&str>) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "one", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2},
            "spec": {"hibernation": {"schedules": schedules}},
            "status": {"lastHibernationTriggerTime": triggered, "observedGeneration": 2, "gardener": {"version": "v1"}},
        }))
        .unwrap()
    }

    fn decided(shoot: &Shoot, now: &str) -> Option<(Option<Turn>, Option<String>)> {
        let now: Timestamp = now.parse().unwrap();
        let decision = decide(shoot, Some(SignedDuration::from_hours(2)), "v1", now)?;
        Some((decision.turn, decision.wait.map(|wait| (now + wait).to_string())))
    }

    #[test]
    fn w50_wakes_up() {
        let shoot = shoot(json!([{"end": "0 6 * * *"}]), Some("2026-06-01T20:00:00Z"));
        let woken = decided(&shoot, "2026-06-02T06:01:00Z").unwrap();
        assert_eq!(woken, (Some(Turn::WakeUp), Some("2026-06-03T06:00:00.1Z".into())));
    }

    #[test]
    fn st_172_the_last_crossing_wins() {
        let both = json!([{"start": "0 20 * * *", "end": "0 6 * * *"}]);
        let table = [
            // nothing fired since it was followed
            (Some("2026-06-01T20:00:00Z"), "2026-06-01T23:00:00Z", None),
            (
                Some("2026-06-01T06:00:00Z"),
                "2026-06-01T20:00:00Z",
                Some(Turn::Hibernate),
            ),
            // the controller was away for three days: only what is younger than two hours counts
            (Some("2026-05-29T06:00:00Z"), "2026-06-01T07:00:00Z", Some(Turn::WakeUp)),
            (Some("2026-05-29T06:00:00Z"), "2026-06-01T09:00:00Z", None),
            (None, "2026-06-01T20:30:00Z", Some(Turn::Hibernate)),
        ];
        for (triggered, now, expected) in table {
            assert_eq!(
                decided(&shoot(both.clone(), triggered), now).unwrap().0,
                expected,
                "{triggered:?} {now}"
            );
        }
        let tie = shoot(json!([{"start": "0 20 * * *"}, {"end": "0 20 * 1-12 *"}]), None);
        assert_eq!(
            decided(&tie, "2026-06-01T20:00:00Z").unwrap().0,
            Some(Turn::Hibernate),
            "the first of two at once"
        );
    }

    /// W-S1 to W-S7: start `0 7 * * *`, end `0 2 * * *`; no deadline unless noted.
    #[test]
    fn w_s_the_chapter_s_cases() {
        let schedules = json!([{"start": "0 7 * * *", "end": "0 2 * * *"}]);
        let two_hours = Some(SignedDuration::from_hours(2));
        let (seven, two) = ("2026-06-10T07:00:00.1Z", "2026-06-10T02:00:00.1Z");
        let tomorrow = "2026-06-11T02:00:00.1Z";
        let table = [
            // id, now, created, last trigger, deadline, what is done, when it is looked at again
            (
                "W-S1",
                "01:59:30",
                "2026-06-09T01:59:30Z",
                None,
                None,
                Some(Turn::Hibernate),
                two,
            ),
            (
                "W-S2",
                "06:59:59",
                "2026-06-09T06:59:59Z",
                None,
                None,
                Some(Turn::WakeUp),
                seven,
            ),
            (
                "W-S3",
                "07:00:00",
                "2026-06-10T06:59:30Z",
                None,
                None,
                Some(Turn::Hibernate),
                tomorrow,
            ),
            ("W-S4", "19:00:01", "2026-06-10T19:00:00Z", None, None, None, tomorrow),
            (
                "W-S5",
                "06:59:59",
                "2026-06-09T00:00:00Z",
                Some("2026-06-10T02:00:00Z"),
                None,
                None,
                seven,
            ),
            (
                "W-S6",
                "07:00:01",
                "2026-06-09T00:00:00Z",
                Some("2026-06-10T02:00:00Z"),
                None,
                Some(Turn::Hibernate),
                tomorrow,
            ),
            (
                "W-S7",
                "09:30:00",
                "2026-06-09T00:00:00Z",
                Some("2026-06-10T02:00:00Z"),
                two_hours,
                None,
                tomorrow,
            ),
            // seven days back and no further
            (
                "8 days",
                "06:59:59",
                "2026-01-01T00:00:00Z",
                None,
                None,
                Some(Turn::WakeUp),
                seven,
            ),
        ];
        for (id, now, created, triggered, deadline, turn, next) in table {
            let mut shoot = shoot(schedules.clone(), triggered);
            shoot.metadata.creation_timestamp = serde_json::from_value(json!(created)).unwrap();
            let now: Timestamp = format!("2026-06-10T{now}Z").parse().unwrap();
            let decision = decide(&shoot, deadline, "v1", now).unwrap();
            assert_eq!(decision.turn, turn, "{id}");
            assert_eq!(
                decision.wait.map(|wait| (now + wait).to_string()).as_deref(),
                Some(next),
                "{id}"
            );
        }
        let weekly = shoot(json!([{"start": "0 7 * * 2"}]), Some("2026-05-01T00:00:00Z"));
        // a Tuesday's firing, seven days later to the second, and before
        for (now, turn) in [
            ("2026-06-09T06:59:59Z", Some(Turn::Hibernate)),
            ("2026-06-02T06:59:59Z", Some(Turn::Hibernate)),
        ] {
            assert_eq!(
                decide(&weekly, None, "v1", now.parse().unwrap()).unwrap().turn,
                turn,
                "{now}"
            );
        }
    }

    #[test]
    fn st_172_who_is_left_alone() {
        let schedules = json!([{"start": "0 20 * * *", "location": "Europe/Berlin"}]);
        assert_eq!(decided(&shoot(json!([]), None), "2026-06-01T20:00:00Z"), None);
        assert_eq!(
            decided(&shoot(json!([{"start": "never"}]), None), "2026-06-01T20:00:00Z"),
            None
        );
        let mut failed = shoot(schedules.clone(), None);
        failed.status.last_operation = serde_json::from_value(json!({"type": "Reconcile", "state": "Failed"})).unwrap();
        let next = Some("2026-06-02T18:00:00.1Z".to_owned());
        assert_eq!(
            decided(&failed, "2026-06-01T18:30:00Z"),
            Some((None, next.clone())),
            "W-S8"
        );
        // gardenlet will try again who failed with another spec or another version
        let follows = Some((Some(Turn::Hibernate), next.clone()));
        let mut changed = failed.clone();
        changed.metadata.generation = Some(3);
        assert_eq!(decided(&changed, "2026-06-01T18:30:00Z"), follows);
        let mut upgraded = failed.clone();
        upgraded.status.gardener.version = "v0".into();
        assert_eq!(decided(&upgraded, "2026-06-01T18:30:00Z"), follows);
        // what is eight o'clock where nobody knows
        let nowhere = json!([{"start": "0 20 * * *", "location": "Moon/Crater"}]);
        assert_eq!(decided(&shoot(nowhere, None), "2026-06-01T20:00:00Z"), None);
        let berlin = decided(&shoot(schedules, None), "2026-06-01T18:30:00Z");
        assert_eq!(berlin, Some((Some(Turn::Hibernate), next)));
    }

    /// Window 22:00–23:00, now noon. The first is whether the shoot sleeps now.
    #[test]
    fn st_89_windows_that_are_slept_through() {
        let all_day = json!([{"start": "0 8 * * *", "end": "0 18 * * *"}]);
        let by_night = json!([{"start": "0 20 * * *", "end": "0 6 * * *"}]);
        let in_window = json!([{"start": "30 22 * * *", "end": "0 6 * * *"}]);
        let table = [
            (false, json!([]), false),
            (true, json!([]), true),
            (true, all_day.clone(), false),
            (true, by_night.clone(), true),
            (false, by_night.clone(), true),
            (false, in_window.clone(), true),
            // wakes up in the evening and sleeps again before the window ends
            (true, json!([{"start": "30 22 * * *", "end": "0 18 * * *"}]), true),
            (true, json!([{"start": "0 23 * * *", "end": "0 18 * * *"}]), false),
            // sleeps in the afternoon, but wakes up in time
            (false, json!([{"start": "0 14 * * *", "end": "0 18 * * *"}]), false),
            (false, json!([{"start": "30 23 * * *"}]), false),
            (false, json!([{"start": "0 20 * * *"}]), true),
            (true, json!([{"start": "never"}]), false),
        ];
        for (hibernated, schedules, expected) in table {
            let shoot: Shoot = serde_json::from_value(json!({
                "spec": {
                    "hibernation": {"enabled": hibernated, "schedules": schedules},
                    "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
                },
                "status": {"hibernated": hibernated},
            }))
            .unwrap();
            let found = sleeps_in_next_window(&shoot, "2026-06-01T12:00:00Z".parse().unwrap());
            assert_eq!(found, expected, "{hibernated} {schedules}");
        }
        let without: Shoot = serde_json::from_value(json!({"status": {"hibernated": true}})).unwrap();
        assert!(!sleeps_in_next_window(
            &without,
            "2026-06-01T12:00:00Z".parse().unwrap()
        ));
    }
}
