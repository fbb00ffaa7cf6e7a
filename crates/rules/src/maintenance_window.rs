//! The daily window in which a shoot is maintained [UPD-40], [UPD-43], [UPD-44].

use gardener_apis::core::v1beta1::{MaintenanceTimeWindow, Shoot, maintenance_time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

const DAY: i64 = 24 * 3600;
/// What is cut off the end, so that what begins in the window also ends in it [UPD-43].
const MARGIN: i64 = 15 * 60;

/// A window in seconds of the day (UTC), both ends inclusive. It may span midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    begin: i64,
    end: i64,
}

impl Window {
    /// The window in which a shoot's maintenance may begin.
    pub fn of(shoot: &Shoot) -> Self {
        let maintenance = shoot.spec.maintenance.as_ref();
        Self::effective(maintenance.and_then(|own| own.time_window.as_ref()))
    }

    /// The window in which maintenance may begin; always, if none is given or it cannot be read [UPD-43].
    pub fn effective(window: Option<&MaintenanceTimeWindow>) -> Self {
        let always = Self { begin: 0, end: DAY - 1 };
        let Some(window) = window else { return always };
        match (maintenance_time(&window.begin), maintenance_time(&window.end)) {
            (Ok(begin), Ok(end)) => Self {
                begin,
                end: (end - MARGIN).rem_euclid(DAY),
            },
            _ => always,
        }
    }

    /// Begin and end of the next window after `now`, as it is given, to its very end; none, if none is given or it cannot be read.
    pub fn next_given(shoot: &Shoot, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let given = shoot.spec.maintenance.as_ref()?.time_window.as_ref()?;
        let (begin, end) = (maintenance_time(&given.begin).ok()?, maintenance_time(&given.end).ok()?);
        let next = Self { begin, end }.next_begin(now);
        let length = (end - begin - 1).rem_euclid(DAY) + 1;
        Some((
            next,
            next.saturating_add(SignedDuration::from_secs(length)).unwrap_or(next),
        ))
    }

    /// Whether a time is in the window [UPD-43].
    pub fn contains(&self, time: Timestamp) -> bool {
        let second = time.as_second().rem_euclid(DAY);
        if self.end < self.begin {
            second >= self.begin || second <= self.end
        } else {
            self.begin <= second && second <= self.end
        }
    }

    /// When the next window opens: always after `now`.
    pub fn next_begin(&self, now: Timestamp) -> Timestamp {
        let second = now.as_second();
        let wait = (self.begin - second.rem_euclid(DAY) - 1).rem_euclid(DAY) + 1;
        Timestamp::from_second(second.saturating_add(wait)).unwrap_or(Timestamp::MAX)
    }

    /// When the window opened that is open at `now`, or was the last that was open.
    pub fn last_begin(&self, now: Timestamp) -> Timestamp {
        let next = self.next_begin(now);
        next.saturating_sub(SignedDuration::from_secs(DAY)).unwrap_or(next)
    }

    /// A moment in the window that opens at `begin`; `share` (0 to 1) says where in it.
    pub fn moment(&self, begin: Timestamp, share: f64) -> Timestamp {
        let length = SignedDuration::from_secs(self.length());
        begin
            .saturating_add(length.mul_f64(share.clamp(0.0, 1.0)))
            .unwrap_or(begin)
    }

    fn length(&self) -> i64 {
        (self.end - self.begin).rem_euclid(DAY).max(1)
    }

    /// The wait until a moment in the next window; `share` (0 to 1) says where in the window. With `from_now` a window that is open
    /// counts, what is left of it; otherwise the one after it [UPD-44].
    pub fn until_next(&self, now: Timestamp, from_now: bool, share: f64) -> SignedDuration {
        if from_now && self.contains(now) {
            let since_begin = (now.as_second().rem_euclid(DAY) - self.begin).rem_euclid(DAY);
            return SignedDuration::from_secs(self.length() - since_begin).mul_f64(share.clamp(0.0, 1.0));
        }
        self.moment(self.next_begin(now), share).duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(begin: &str, end: &str) -> Window {
        Window {
            begin: maintenance_time(begin).unwrap(),
            end: maintenance_time(end).unwrap(),
        }
    }

    #[test]
    fn upd_43_uc_12_to_14_windows() {
        let given = |begin: &str, end: &str| {
            Window::effective(Some(&MaintenanceTimeWindow {
                begin: begin.into(),
                end: end.into(),
            }))
        };
        let at = |time: &str| format!("2026-03-01T{time}Z").parse::<Timestamp>().unwrap();
        let table = [
            (given("220000+0000", "230000+0000"), "22:45:00", true),
            (given("220000+0000", "230000+0000"), "22:45:01", false),
            (given("230000+0000", "010000+0000"), "00:30:00", true),
            (given("230000+0000", "010000+0000"), "12:00:00", false),
            (given("010000+0200", "020000+0200"), "23:00:00", true),
            // UC-12 to UC-14
            (given("220000+0100", "230000+0100"), "21:50:00", false),
            (given("220000+0100", "230000+0100"), "21:45:00.9", true),
            (given("220000+0100", "230000+0100"), "20:59:59.9", false),
            (given("233000+0000", "003000+0000"), "00:15:00", true),
            (given("233000+0000", "003000+0000"), "00:15:01", false),
            (given("003000-2400", "013000-2400"), "01:00:00", true),
            (given("003000-2400", "013000-2400"), "12:00:00", false),
            (given("nonsense", "010000+0000"), "12:00:00", true),
            (Window::effective(None), "23:59:59", true),
        ];
        for (window, time, expected) in table {
            assert_eq!(window.contains(at(time)), expected, "{window:?} {time}");
        }
    }

    #[test]
    fn windows_open_once_a_day_also_over_midnight() {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let late = window("230000+0000", "010000+0000");
        for (now, next, last) in [
            ("2026-03-29T22:59:59.5Z", "2026-03-29T23:00:00Z", "2026-03-28T23:00:00Z"),
            ("2026-03-29T23:00:00Z", "2026-03-30T23:00:00Z", "2026-03-29T23:00:00Z"),
            ("2026-03-30T00:30:00Z", "2026-03-30T23:00:00Z", "2026-03-29T23:00:00Z"),
        ] {
            assert_eq!(late.next_begin(at(now)), at(next), "{now}");
            assert_eq!(late.last_begin(at(now)), at(last), "{now}");
        }
        assert_eq!(
            late.moment(at("2026-03-29T23:00:00Z"), 0.75),
            at("2026-03-30T00:30:00Z")
        );
    }

    #[test]
    fn upd_44_vectors() {
        let table = [
            ("160000+0000", "190000+0000", "17:00", false, "26h"),
            ("160000+0000", "190000+0000", "15:00", false, "4h"),
            ("160000+0000", "190000+0000", "20:00", false, "23h"),
            ("160000+0000", "190000+0000", "17:00", true, "2h"),
            ("000000+0000", "010000+0000", "00:30", false, "24h30m"),
            ("000000+0000", "010000+0000", "00:30", true, "30m"),
            ("230000+0000", "010000+0000", "00:00", false, "25h"),
            ("230000+0000", "010000+0000", "00:00", true, "1h"),
            ("230000+0000", "010000+0000", "21:00", false, "4h"),
            ("230000+0000", "000000+0000", "23:30", false, "24h30m"),
            ("230000+0000", "000000+0000", "23:30", true, "30m"),
        ];
        for (begin, end, now, from_now, expected) in table {
            let now: Timestamp = format!("2026-03-01T{now}:00Z").parse().unwrap();
            let most = window(begin, end).until_next(now, from_now, 1.0);
            assert_eq!(most, expected.parse().unwrap(), "{begin} {end} {now} {from_now}");
        }
    }
}
