//! When a cron expression fires: in a time zone, between two moments that the caller names.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::{ParseCronError, Schedule};
use crate::duration::Duration;

/// How far ahead the next firing is looked for: what does not fire in five years never does.
const YEARS_AHEAD: i16 = 5;

/// An expression and the time zone that it may begin with: `CRON_TZ=Europe/Berlin 0 8 * * *`; or `@every 2h`, which counts from the moment that the
/// caller names.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedSchedule(Times);

#[derive(Clone, Debug, PartialEq)]
enum Times {
    Clock(Clock),
    Every(SignedDuration),
}

/// Times that a clock at a place shows.
#[derive(Clone, Debug, PartialEq)]
struct Clock {
    schedule: Schedule,
    zone: TimeZone,
}

/// The delay of `@every`: whole seconds, at least one.
fn every(text: &str) -> Option<Result<SignedDuration, ParseCronError>> {
    let delay = text.strip_prefix("@every ")?.parse::<Duration>();
    Some(match delay {
        Ok(delay) => Ok(SignedDuration::from_secs((delay.as_nanos() / 1_000_000_000).max(1))),
        Err(error) => Err(ParseCronError(format!("Failed to parse duration {text}: {error}"))),
    })
}

/// A moment without its fraction of a second.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// There is no time zone of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownLocation(String);

/// The time zone of a name, as Go loads locations: names are written as in the database, none and `UTC` mean UTC, and so does `Local`, as in the
/// containers in which Gardener runs.
///
/// # Errors
/// Nobody knows the name.
pub fn location(name: &str) -> Result<TimeZone, UnknownLocation> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(TimeZone::UTC);
    }
    let found = TimeZone::get(name).ok();
    found
        .filter(|zone| zone.iana_name() == Some(name))
        .ok_or_else(|| UnknownLocation(name.to_owned()))
}

impl ZonedSchedule {
    /// Parses an expression; `zone` counts where it names none itself.
    ///
    /// # Errors
    /// As [`Schedule::parse`], and for unknown time zones.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, ParseCronError> {
        let (zone, rest) = match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
            Some(own) => {
                let (name, rest) = own.split_once(' ').unwrap_or((own, ""));
                let zone = location(name);
                let zone = zone.map_err(|why| ParseCronError(format!("provided bad location {name}: {why}")))?;
                (zone, rest.trim_start())
            }
            None => (zone.clone(), text),
        };
        let times = match every(rest) {
            Some(delay) => Times::Every(delay?),
            None => Times::Clock(Clock {
                schedule: Schedule::parse(rest)?,
                zone,
            }),
        };
        Ok(Self(times))
    }

    /// The last firing after one moment, up to and with another.
    pub fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Times::Clock(clock) => clock.last_within(after, until),
            Times::Every(delay) => {
                let from = whole_seconds(after);
                let times = until.duration_since(from).as_secs() / delay.as_secs().max(1);
                let since = SignedDuration::from_secs(delay.as_secs().saturating_mul(times));
                (times > 0).then(|| from.checked_add(since).ok()).flatten()
            }
        }
    }

    /// The first firing after a moment.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Times::Clock(clock) => clock.next_after(after),
            Times::Every(delay) => whole_seconds(after).checked_add(*delay).ok(),
        }
    }
}

impl Clock {
    fn day_fits(&self, day: Date) -> bool {
        let number = |value: i8| u32::try_from(value).unwrap_or_default();
        let weekday = number(day.weekday().to_sunday_zero_offset());
        self.schedule.fits_day(number(day.day()), number(day.month()), weekday)
    }

    /// The firings on a day, in their order. A time that the clocks jump over does not fire, one that they show twice fires twice.
    fn on(&self, day: Date) -> Vec<Timestamp> {
        if !self.day_fits(day) {
            return Vec::new();
        }
        let has = |bits: u64, value: i8| bits & (1 << value) != 0;
        let mut fired = Vec::new();
        for hour in (0..24).filter(|hour| has(self.schedule.hours, *hour)) {
            for minute in (0..60).filter(|minute| has(self.schedule.minutes, *minute)) {
                fired.extend(self.at(day.at(hour, minute, 0, 0)));
            }
        }
        fired.sort();
        fired
    }

    fn at(&self, local: DateTime) -> Vec<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let offsets = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => vec![offset],
            AmbiguousOffset::Gap { .. } => Vec::new(),
            AmbiguousOffset::Fold { before, after } => vec![before, after],
        };
        offsets
            .into_iter()
            .filter_map(|offset| offset.to_timestamp(local).ok())
            .collect()
    }

    fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let first = after.to_zoned(self.zone.clone()).date();
        let mut day = until.to_zoned(self.zone.clone()).date();
        while day >= first {
            let fired = self.on(day).into_iter().rev().find(|at| *at <= until);
            if let Some(at) = fired {
                return (at > after).then_some(at);
            }
            day = day.yesterday().ok()?;
        }
        None
    }

    fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let mut day = after.to_zoned(self.zone.clone()).date();
        let last_year = day.year().saturating_add(YEARS_AHEAD);
        while day.year() <= last_year {
            if let Some(at) = self.on(day).into_iter().find(|at| *at > after) {
                return Some(at);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str, zone: &str) -> ZonedSchedule {
        ZonedSchedule::parse(text, &TimeZone::get(zone).unwrap()).unwrap()
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn next_and_last() {
        let evening = schedule("0 20 * * 1-5", "UTC");
        assert_eq!(
            evening.next_after(time("2026-03-06T20:00:00Z")),
            Some(time("2026-03-09T20:00:00Z"))
        );
        assert_eq!(
            evening.last_within(time("2026-03-01T00:00:00Z"), time("2026-03-08T12:00:00Z")),
            Some(time("2026-03-06T20:00:00Z"))
        );
        let at = time("2026-03-06T20:00:00Z");
        assert_eq!(
            evening.last_within(time("2026-03-06T19:59:59Z"), at),
            Some(at),
            "the end counts"
        );
        assert_eq!(
            evening.last_within(at, time("2026-03-06T21:00:00Z")),
            None,
            "the beginning does not"
        );
        assert_eq!(schedule("0 0 30 2 *", "UTC").next_after(at), None);
        assert_eq!(
            schedule("0 0 29 2 *", "UTC").next_after(at),
            Some(time("2028-02-29T00:00:00Z"))
        );
    }

    #[test]
    fn time_zones_and_their_changes() {
        let berlin = schedule("30 2 * * *", "Europe/Berlin");
        let day = |from: &str, to: &str| {
            let (mut at, to) = (time(from), time(to));
            let mut fired = Vec::new();
            while let Some(next) = berlin.next_after(at).filter(|next| *next <= to) {
                fired.push(next.to_string());
                at = next;
            }
            fired
        };
        assert_eq!(
            day("2026-03-28T00:00:00Z", "2026-03-29T12:00:00Z"),
            ["2026-03-28T01:30:00Z"],
            "2:30 is jumped over"
        );
        assert_eq!(
            day("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
            "2:30 comes twice"
        );
        let own = schedule("CRON_TZ=Asia/Tokyo 0 9 * * *", "Europe/Berlin");
        assert_eq!(
            own.next_after(time("2026-01-01T00:00:00Z")),
            Some(time("2026-01-02T00:00:00Z"))
        );
        let nowhere = ZonedSchedule::parse("TZ=Nowhere/City 0 9 * * *", &TimeZone::UTC);
        assert_eq!(
            nowhere.unwrap_err().to_string(),
            "provided bad location Nowhere/City: unknown time zone Nowhere/City"
        );
    }

    #[test]
    fn every_counts_from_where_it_is_asked() {
        let hours = schedule("@every 1h30m", "UTC");
        let (from, until) = (time("2026-03-06T20:00:00.7Z"), time("2026-03-06T23:10:00Z"));
        assert_eq!(hours.next_after(from), Some(time("2026-03-06T21:30:00Z")));
        assert_eq!(hours.last_within(from, until), Some(time("2026-03-06T23:00:00Z")));
        assert_eq!(hours.last_within(from, time("2026-03-06T21:29:59Z")), None);
        let moment = schedule("TZ=Asia/Tokyo @every 10ms", "UTC");
        assert_eq!(moment.next_after(from), Some(time("2026-03-06T20:00:01Z")));
        let never = ZonedSchedule::parse("@every day", &TimeZone::UTC).unwrap_err();
        assert!(
            never
                .to_string()
                .starts_with("Failed to parse duration @every day: time: "),
            "{never}"
        );
    }
}
