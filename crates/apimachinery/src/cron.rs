//! Cron expressions of five fields: minute, hour, day of month, month, day of week. Parsing, matching, and when they fire; no clock.

mod occurrences;

pub use occurrences::{UnknownLocation, ZonedSchedule, location};

/// A parsed expression: one bit per allowed value of each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Minutes 0–59.
    pub minutes: u64,
    /// Hours 0–23.
    pub hours: u64,
    /// Days of the month 1–31.
    pub days: u64,
    /// Months 1–12.
    pub months: u64,
    /// Days of the week 0–6, Sunday is 0.
    pub weekdays: u64,
    /// Whether the day of month was `*` or `?`; with `any_weekday` it decides how the two day fields combine.
    pub any_day: bool,
    /// Whether the day of week was `*` or `?`.
    pub any_weekday: bool,
}

/// Why a text is no cron expression, worded as the library does that Gardener uses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseCronError(String);

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Parses a standard expression of five fields or one of `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`.
    ///
    /// # Errors
    /// Fails when the number of fields, a number or a range does not fit.
    pub fn parse(text: &str) -> Result<Self, ParseCronError> {
        if text.is_empty() {
            return Err(ParseCronError("Empty spec string".into()));
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => {
                return Err(ParseCronError(format!("Unrecognized descriptor: {other}")));
            }
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(ParseCronError(format!(
                "Expected exactly 5 fields, found {}: {text}",
                fields.len()
            )));
        };
        Ok(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS)?,
            any_day: starts_any(days),
            any_weekday: starts_any(weekdays),
        })
    }

    /// Whether a minute of a day is one of the schedule's. `weekday` counts from Sunday = 0.
    pub fn matches(&self, minute: u32, hour: u32, day: u32, month: u32, weekday: u32) -> bool {
        has(self.minutes, minute) && has(self.hours, hour) && self.fits_day(day, month, weekday)
    }

    /// Whether it fires at some time of a day. Where both fields of the day say something, one of them is enough.
    fn fits_day(&self, day: u32, month: u32, weekday: u32) -> bool {
        let (day_fits, weekday_fits) = (has(self.days, day), has(self.weekdays, weekday));
        let fits = match self.any_day || self.any_weekday {
            true => day_fits && weekday_fits,
            false => day_fits || weekday_fits,
        };
        has(self.months, month) && fits
    }
}

fn has(bits: u64, value: u32) -> bool {
    value < 64 && bits & (1 << value) != 0
}

fn starts_any(field: &str) -> bool {
    field
        .split(',')
        .any(|part| matches!(part.split('/').next(), Some("*" | "?")))
}

fn field(text: &str, min: u32, max: u32, names: &[&str]) -> Result<u64, ParseCronError> {
    let mut bits = 0;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        bits |= range(part, min, max, names)?;
    }
    Ok(bits)
}

fn number(text: &str, min: u32, names: &[&str]) -> Result<u32, ParseCronError> {
    let lower = text.to_lowercase();
    if let Some(position) = names.iter().position(|name| *name == lower) {
        return Ok(min + u32::try_from(position).unwrap_or_default());
    }
    text.parse().map_err(|_| {
        ParseCronError(format!(
            "Failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            crate::field::go_quote(text)
        ))
    })
}

fn range(part: &str, min: u32, max: u32, names: &[&str]) -> Result<u64, ParseCronError> {
    let mut halves = part.split('/');
    let span = halves.next().unwrap_or_default();
    let step = halves.next();
    if halves.next().is_some() {
        return Err(ParseCronError(format!("Too many slashes: {part}")));
    }
    let ends: Vec<&str> = span.split('-').collect();
    let (start, end) = match ends.as_slice() {
        // what ends a range of all is not read
        ["*" | "?", ..] => (min, max),
        [one] => {
            let start = number(one, min, names)?;
            (start, if step.is_some() { max } else { start })
        }
        [first, last] => (number(first, min, names)?, number(last, min, names)?),
        _ => return Err(ParseCronError(format!("Too many hyphens: {part}"))),
    };
    let step = step.map_or(Ok(1), |text| number(text, 0, &[]))?;
    if start < min {
        return Err(ParseCronError(format!(
            "Beginning of range ({start}) below minimum ({min}): {part}"
        )));
    }
    if end > max {
        return Err(ParseCronError(format!(
            "End of range ({end}) above maximum ({max}): {part}"
        )));
    }
    if start > end {
        return Err(ParseCronError(format!(
            "Beginning of range ({start}) beyond end of range ({end}): {part}"
        )));
    }
    if step == 0 {
        return Err(ParseCronError(format!(
            "Step of range should be a positive number: {part}"
        )));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_ones() {
        let evening = Schedule::parse("0 20 * * 1,2,3,4,5").unwrap();
        assert!(evening.matches(0, 20, 6, 7, 1));
        assert!(!evening.matches(0, 20, 6, 7, 0));
        assert!(!evening.matches(1, 20, 6, 7, 1));
        let either = Schedule::parse("*/15 8-17 1 * mon").unwrap();
        assert!(either.matches(45, 9, 1, 3, 4), "the first of a month");
        assert!(either.matches(45, 9, 2, 3, 1), "a Monday");
        assert!(!either.matches(45, 9, 2, 3, 2));
        assert_eq!(Schedule::parse("@daily"), Schedule::parse("0 0 * * *"));
    }

    #[test]
    fn bad_ones() {
        for (text, expected) in [
            ("never", "Expected exactly 5 fields, found 1: never"),
            ("", "Empty spec string"),
            ("60 * * * *", "End of range (60) above maximum (59): 60"),
            ("* * 0 * *", "Beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "Beginning of range (5) beyond end of range (1): 5-1"),
            ("1/2/3 * * * *", "Too many slashes: 1/2/3"),
            ("*/0 * * * *", "Step of range should be a positive number: */0"),
            (
                "x * * * *",
                "Failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
        ] {
            assert_eq!(Schedule::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
