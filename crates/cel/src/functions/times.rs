//! Parts of timestamps and durations.

use jiff::tz::TimeZone;

use super::{Found, NANO, failed, int};
use crate::value::Value;

pub(super) fn times<'a>(name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    if let [Value::Duration(nanoseconds)] = args {
        return Some(match name {
            "getHours" => int(nanoseconds / (3600 * NANO)),
            "getMinutes" => int(nanoseconds / (60 * NANO)),
            "getSeconds" => int(nanoseconds / NANO),
            "getMilliseconds" => int(nanoseconds / 1_000_000),
            _ => return None,
        });
    }
    let (time, zone) = match args {
        [Value::Timestamp(time)] => (time, TimeZone::UTC),
        [Value::Timestamp(time), Value::Text(zone)] => match time_zone(zone) {
            Some(zone) => (time, zone),
            None => return Some(failed(format!("unknown time zone {zone}"))),
        },
        _ => return None,
    };
    let zoned = time.civil(&zone);
    Some(match name {
        "getFullYear" => int(zoned.year()),
        "getMonth" => int(zoned.month() - 1),
        "getDayOfYear" => int(zoned.day_of_year() - 1),
        "getDayOfMonth" => int(zoned.day() - 1),
        "getDate" => int(zoned.day()),
        "getDayOfWeek" => int(zoned.weekday().to_sunday_zero_offset()),
        "getHours" => int(zoned.hour()),
        "getMinutes" => int(zoned.minute()),
        "getSeconds" => int(zoned.second()),
        "getMilliseconds" => int(zoned.millisecond()),
        _ => return None,
    })
}

/// A zone by its name, or by its offset (`+02:00`).
pub(super) fn time_zone(text: &str) -> Option<TimeZone> {
    if text.is_empty() || text == "UTC" {
        return Some(TimeZone::UTC);
    }
    if let Some((hours, minutes)) = text.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = hours * 3600 + if negative { -minutes } else { minutes } * 60;
        return jiff::tz::Offset::from_seconds(seconds).ok().map(TimeZone::fixed);
    }
    TimeZone::get(text).ok()
}
