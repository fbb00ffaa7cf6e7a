//! Texts in a format: quantities, durations, times and the `format`s of schemas; with the messages of Go's parsers.

pub mod named;

use gardener_apimachinery::field::go_time_quote;

const QUANTITY_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const QUANTITY_SUFFIX: &str = "unable to parse quantity's suffix";

/// Checks a quantity such as `500m` or `1Gi`.
///
/// # Errors
/// The message of `resource.ParseQuantity`.
pub fn quantity(text: &str) -> Result<(), &'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    if number.matches('.').count() > 1 || !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(QUANTITY_FORMAT);
    }
    let letters = suffix
        .find(|c: char| !"eEinumkKMGTP".contains(c))
        .unwrap_or(suffix.len());
    let (unit, rest) = suffix.split_at(letters);
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(QUANTITY_FORMAT);
    }
    let exponent = matches!(unit, "e" | "E");
    let known = matches!(
        unit,
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
    );
    let fits = if rest.is_empty() {
        known
    } else {
        exponent && !digits.is_empty()
    };
    if fits { Ok(()) } else { Err(QUANTITY_SUFFIX) }
}

/// Checks a duration such as `1h30m`.
///
/// # Errors
/// The message of Go's `time.ParseDuration`.
pub fn duration(text: &str) -> Result<(), String> {
    let invalid = || Err(format!("time: invalid duration {}", go_time_quote(text)));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let mut points = 0;
        let end = rest.find(|c: char| {
            points += usize::from(c == '.');
            !c.is_ascii_digit() && c != '.' || points > 1
        });
        let (number, tail) = rest.split_at(end.unwrap_or(rest.len()));
        if !number.contains(|c: char| c.is_ascii_digit()) {
            return invalid();
        }
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        match unit {
            "" => return Err(format!("time: missing unit in duration {}", go_time_quote(text))),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            _ => {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    go_time_quote(unit),
                    go_time_quote(text)
                ));
            }
        }
        rest = tail;
    }
    Ok(())
}

/// Checks a time as RFC 3339 writes it.
///
/// # Errors
/// The message of Go's `time.Parse`.
pub fn time(text: &str) -> Result<(), String> {
    time_as(text, "2006-01-02T15:04:05Z07:00", false)
}

/// Checks a time with exactly six digits of a fraction of a second.
///
/// # Errors
/// The message of Go's `time.Parse`.
pub fn micro_time(text: &str) -> Result<(), String> {
    time_as(text, "2006-01-02T15:04:05.000000Z07:00", true)
}

/// `layout` is Go's; `micro` tells whether it has a fraction.
fn time_as(text: &str, layout: &str, micro: bool) -> Result<(), String> {
    let fail = |rest: &str, element: &str| {
        Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            go_time_quote(text),
            go_time_quote(layout),
            go_time_quote(rest),
            go_time_quote(element)
        ))
    };
    let mut rest = text;
    for (digits, separator, element) in [
        (4, "-", "2006"),
        (2, "-", "01"),
        (2, "T", "02"),
        (2, ":", "15"),
        (2, ":", "04"),
        (2, "", "05"),
    ] {
        if rest.len() < digits || !rest.bytes().take(digits).all(|b| b.is_ascii_digit()) {
            return fail(rest, element);
        }
        // The bytes before are digits, so this is a boundary.
        let (_, tail) = rest.split_at(digits);
        match tail.strip_prefix(separator) {
            Some(tail) => rest = tail,
            None => return fail(tail, separator),
        }
    }
    if micro {
        let digits = rest.strip_prefix('.').and_then(|fraction| fraction.get(..6));
        if digits.is_none_or(|digits| !digits.bytes().all(|digit| digit.is_ascii_digit())) {
            return fail(rest, ".000000");
        }
        rest = rest.get(7..).unwrap_or_default();
    } else if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if end == 0 {
            return fail(rest, "Z07:00");
        }
        rest = fraction.get(end..).unwrap_or_default();
    }
    let extra = match rest.as_bytes() {
        [b'Z', ..] => rest.get(1..),
        [b'+' | b'-', a, b, b':', c, d, ..] if [a, b, c, d].iter().all(|b| b.is_ascii_digit()) => rest.get(6..),
        _ => None,
    };
    match extra {
        None => return fail(rest, "Z07:00"),
        Some("") => {}
        Some(extra) => {
            return Err(format!(
                "parsing time {}: extra text: {}",
                go_time_quote(text),
                go_time_quote(extra)
            ));
        }
    }
    if text.parse::<jiff::Timestamp>().is_err() {
        let part = out_of_range(text);
        return Err(format!("parsing time {}: {part}out of range", go_time_quote(text)));
    }
    Ok(())
}

/// The first part of a time that is too large, as Go looks: at the day last, as the month and the year tell how many there are.
fn out_of_range(text: &str) -> &'static str {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i16>().ok();
    for (name, place, least, most) in [
        ("month ", 5, 1, 12),
        ("hour ", 11, 0, 23),
        ("minute ", 14, 0, 59),
        ("second ", 17, 0, 59),
    ] {
        if part(place, place + 2).is_some_and(|value| !(least..=most).contains(&value)) {
            return name;
        }
    }
    let month = part(0, 4).zip(part(5, 7)).and_then(|(year, month)| {
        let month = i8::try_from(month).ok()?;
        jiff::civil::Date::new(year, month, 1).ok()
    });
    match month.zip(part(8, 10)) {
        Some((month, day)) if !(1..=i16::from(month.days_in_month())).contains(&day) => "day ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for good in [
            "0", "1", "500m", "1Gi", "-1", "+1.5", ".5", "1.", "1e3", "1E3", "1E", "12e-3", "100n",
        ] {
            assert_eq!(quantity(good), Ok(()), "{good}");
        }
        for bad in ["", "many", "1.2.3", "1 Gi", "--1", "."] {
            assert_eq!(quantity(bad), Err(QUANTITY_FORMAT), "{bad}");
        }
        for bad in ["1ii", "1m3", "1Ki3", "1e", "1KiKi"] {
            assert_eq!(quantity(bad), Err(QUANTITY_SUFFIX), "{bad}");
        }
    }

    #[test]
    fn durations() {
        for good in ["0", "1h30m", "-1.5s", "100ms", "1us"] {
            assert_eq!(duration(good), Ok(()), "{good}");
        }
        assert_eq!(duration("abc").unwrap_err(), "time: invalid duration \"abc\"");
        assert_eq!(
            duration("ü\"\n").unwrap_err(),
            r#"time: invalid duration "\xc3\xbc\"\x0a""#
        );
        assert_eq!(duration("").unwrap_err(), "time: invalid duration \"\"");
        assert_eq!(duration("5").unwrap_err(), "time: missing unit in duration \"5\"");
        assert_eq!(
            duration("1.2.3").unwrap_err(),
            "time: missing unit in duration \"1.2.3\""
        );
        assert_eq!(
            duration("5d").unwrap_err(),
            "time: unknown unit \"d\" in duration \"5d\""
        );
    }

    #[test]
    fn times() {
        for good in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456+01:00"] {
            assert_eq!(time(good), Ok(()), "{good}");
        }
        for (bad, rest, element) in [
            ("abc", "abc", "2006"),
            ("2026-01-02", "", "T"),
            ("2026-01-02 03:04:05Z", " 03:04:05Z", "T"),
            ("2026-01-02T03:04:05", "", "Z07:00"),
            ("", "", "2006"),
        ] {
            assert_eq!(
                time(bad).unwrap_err(),
                format!(
                    "parsing time \"{bad}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{rest}\" as \"{element}\""
                )
            );
        }
        for (bad, why) in [
            ("2026-13-32T03:04:05Z", "month out of range"),
            ("2024-02-30T00:00:00Z", "day out of range"),
            ("2024-04-00T00:00:00Z", "day out of range"),
            ("2024-02-30T25:00:00Z", "hour out of range"),
            ("2026-01-02T23:04:65Z", "second out of range"),
        ] {
            let told = time(bad).unwrap_err();
            assert_eq!(told, format!("parsing time \"{bad}\": {why}"));
        }
        for (bad, extra) in [("2026-01-02T03:04:05Zx", "x"), ("2026-01-02T03:04:05.5+01:00 ", " ")] {
            let expected = format!("parsing time \"{bad}\": extra text: \"{extra}\"");
            assert_eq!(time(bad).unwrap_err(), expected);
        }
        assert_eq!(micro_time("2026-01-02T03:04:05.123456+01:00"), Ok(()));
        for (bad, rest, element) in [
            ("2026-01-02T03:04:05Z", "Z", ".000000"),
            ("2026-01-02T03:04:05.123Z", ".123Z", ".000000"),
            ("2026-01-02T03:04:05.1234567Z", "7Z", "Z07:00"),
        ] {
            assert_eq!(
                micro_time(bad).unwrap_err(),
                format!(
                    "parsing time \"{bad}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"{rest}\" as \"{element}\""
                )
            );
        }
    }
}
