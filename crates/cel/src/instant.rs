//! Times from the year 1 to the year 9999, with the offset that they were written with.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const NANO: i128 = 1_000_000_000;
const DAY: i64 = 86_400;
/// The first and the last second of all times.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A time.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    /// Since 1970, in UTC.
    seconds: i64,
    nanoseconds: u32,
    /// How many seconds a clock there is ahead of UTC. Nothing but how the time is shown hangs on it.
    offset: i32,
}

impl Instant {
    /// The time so many seconds after 1970.
    pub(crate) fn from_seconds(seconds: i64) -> Option<Self> {
        SECONDS.contains(&seconds).then_some(Self {
            seconds,
            nanoseconds: 0,
            offset: 0,
        })
    }

    /// A time as RFC 3339 writes it, and nothing else. The error tells whether it is written so, but of no year that can be.
    pub(crate) fn parse(text: &str) -> Result<Self, Malformed> {
        read(text).ok_or(Malformed::Syntax)?.ok_or(Malformed::Range)
    }

    /// Whether it is the first time of all.
    pub(crate) fn is_first(self) -> bool {
        self.seconds == *SECONDS.start() && self.nanoseconds == 0
    }

    /// The whole seconds since 1970.
    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }

    /// The nanoseconds since 1970.
    pub(crate) fn since_epoch(self) -> i128 {
        i128::from(self.seconds) * NANO + i128::from(self.nanoseconds)
    }

    /// A time so many nanoseconds later; none if there is no such time.
    pub(crate) fn later(self, by: i128) -> Option<Self> {
        let all = self.since_epoch().checked_add(by)?;
        let seconds = i64::try_from(all.div_euclid(NANO)).ok()?;
        SECONDS.contains(&seconds).then_some(Self {
            seconds,
            nanoseconds: u32::try_from(all.rem_euclid(NANO)).ok()?,
            offset: self.offset,
        })
    }

    /// What calendars and clocks show in a zone.
    pub(crate) fn civil(self, zone: &TimeZone) -> DateTime {
        // the last hours of the year 9999 have the offset of those before them
        let second = self
            .seconds
            .clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let offset = Timestamp::from_second(second).map_or(0, |time| zone.to_offset(time).seconds());
        self.shown_at(offset)
    }

    fn shown_at(self, offset: i32) -> DateTime {
        let local = self.seconds + i64::from(offset);
        let (days, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        // a clock behind UTC may show the year before the first, and one ahead of it none at all
        let day = epoch.saturating_add(days.days());
        day.saturating_add(second.seconds())
            .saturating_add(i64::from(self.nanoseconds).nanoseconds())
    }
}

impl PartialEq for Instant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Instant {}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

impl From<Timestamp> for Instant {
    fn from(time: Timestamp) -> Self {
        let at = Self {
            seconds: 0,
            nanoseconds: 0,
            offset: 0,
        };
        at.later(time.as_nanosecond()).unwrap_or(at)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.shown_at(self.offset);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            shown.year(),
            shown.month(),
            shown.day(),
            shown.hour(),
            shown.minute(),
            shown.second()
        )?;
        if self.nanoseconds > 0 {
            write!(f, ".{}", format!("{:09}", self.nanoseconds).trim_end_matches('0'))?;
        }
        let minutes = self.offset.unsigned_abs() / 60;
        match self.offset {
            0 => f.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// Why a text is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    Syntax,
    Range,
}

/// So many digits at the beginning of a text, and the rest.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let all = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| all)?, rest))
}

fn read(text: &str) -> Option<Option<Instant>> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (hour, rest) = digits(rest.strip_prefix('T')?, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
    let small = |value: i64| i8::try_from(value).ok();
    let date = Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut nanoseconds: u32 = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        let (own, tail) = fraction.split_at_checked(end).filter(|(own, _)| !own.is_empty())?;
        nanoseconds = format!("{own:0<9}").get(..9)?.parse().ok()?;
        rest = tail;
    }
    let offset = match rest {
        "Z" => 0,
        zone => {
            let (ahead, zone) = match zone.strip_prefix('+') {
                Some(zone) => (1, zone),
                None => (-1, zone.strip_prefix('-')?),
            };
            let (hours, zone) = digits(zone, 2)?;
            let (minutes, zone) = digits(zone.strip_prefix(':')?, 2)?;
            if hours > 24 || minutes > 60 || !zone.is_empty() {
                return None;
            }
            ahead * (hours * 3600 + minutes * 60)
        }
    };
    let epoch = Date::constant(1970, 1, 1);
    let days = i64::from(date.since(epoch).ok()?.get_days());
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(SECONDS.contains(&seconds).then_some(Instant {
        seconds,
        nanoseconds,
        offset: i32::try_from(offset).ok()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_strictly_and_shown_as_they_were_written() {
        for (text, seconds, shown) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("0001-01-01T00:00:00Z", -62_135_596_800, "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.5Z", 253_402_300_799, "9999-12-31T23:59:59.5Z"),
            ("2020-01-01T00:00:00+02:00", 1_577_829_600, "2020-01-01T00:00:00+02:00"),
            (
                "2020-02-29T12:30:45,120-00:30",
                1_582_981_245,
                "2020-02-29T12:30:45.12-00:30",
            ),
            ("2020-01-01T00:00:00+00:00", 1_577_836_800, "2020-01-01T00:00:00Z"),
        ] {
            let time = Instant::parse(text).unwrap();
            assert_eq!(
                (time.seconds(), time.to_string()),
                (seconds, shown.to_owned()),
                "{text}"
            );
        }
        for text in [
            "2020-01-01",
            "2020-01-01 00:00:00Z",
            "2020-01-01t00:00:00z",
            "2020-01-01T00:00:00",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:60Z",
            "2020-02-30T00:00:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00Zz",
            "2020-01-01T00:00:00+2:00",
            "",
        ] {
            assert_eq!(Instant::parse(text), Err(Malformed::Syntax), "{text}");
        }
        for text in ["0000-12-31T00:00:00Z", "9999-12-31T23:59:59-01:00"] {
            assert_eq!(Instant::parse(text), Err(Malformed::Range), "{text}");
        }
    }

    #[test]
    fn there_is_no_time_behind_the_last() {
        let last = Instant::parse("9999-12-31T23:59:59Z").unwrap();
        assert_eq!(last.later(NANO), None);
        let before = last.later(-NANO).unwrap();
        assert_eq!(before.to_string(), "9999-12-31T23:59:58Z");
        let zone = TimeZone::fixed(jiff::tz::Offset::constant(-2));
        assert_eq!(last.civil(&zone).to_string(), "9999-12-31T21:59:59");
    }
}
