//! `metav1.Duration`: a span of time in Go's text form, such as `1h0m0s` or `1.5h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration as Std;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A signed span of time with nanosecond precision that reads and writes as Go's `time.Duration` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

/// Why a text is no duration. The message is the one Go's `time.ParseDuration` gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseDurationError(String);

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Duration {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self {
            nanos: seconds.saturating_mul(1_000_000_000),
        }
    }

    /// A duration of nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// The whole duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The whole seconds of the duration.
    pub const fn as_secs(self) -> i64 {
        self.nanos / 1_000_000_000
    }

    /// The duration in seconds, fractions kept.
    pub fn as_secs_f64(self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// As the standard library's duration; a negative one becomes zero.
    pub fn to_std(self) -> Std {
        Std::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

impl From<Std> for Duration {
    fn from(value: Std) -> Self {
        Self {
            nanos: i64::try_from(value.as_nanos()).unwrap_or(i64::MAX),
        }
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || ParseDurationError(format!("time: invalid duration {text:?}"));
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self::default());
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (whole, after) = rest.split_at(digits);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(tail) => tail.split_at(tail.bytes().take_while(u8::is_ascii_digit).count()),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let unit_len = after
                .find(|c: char| c == '.' || c.is_ascii_digit())
                .unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_len);
            if unit.is_empty() {
                return Err(ParseDurationError(format!("time: missing unit in duration {text:?}")));
            }
            let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(ParseDurationError(format!(
                    "time: unknown unit {unit:?} in duration {text:?}"
                )));
            };
            let scale = i128::from(*scale);
            if !whole.is_empty() {
                total = whole
                    .parse::<i64>()
                    .ok()
                    .map(i128::from)
                    .and_then(|n| n.checked_mul(scale))
                    .and_then(|n| total.checked_add(n))
                    .ok_or_else(invalid)?;
            }
            let mut digit_scale = scale;
            for digit in fraction.bytes() {
                digit_scale /= 10;
                total += i128::from(digit - b'0') * digit_scale;
            }
            rest = after;
        }
        if negative {
            total = -total;
        }
        i64::try_from(total).map(Self::from_nanos).map_err(|_| invalid())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return formatter.write_str("0s");
        }
        let total = self.nanos.unsigned_abs();
        if self.nanos < 0 {
            formatter.write_str("-")?;
        }
        let decimal = |formatter: &mut fmt::Formatter<'_>, value: u64, unit: u64, name: &str| {
            let fraction = format!("{:0width$}", value % unit, width = unit.ilog10() as usize);
            let fraction = fraction.trim_end_matches('0');
            if unit == 1 || fraction.is_empty() {
                write!(formatter, "{}{name}", value / unit)
            } else {
                write!(formatter, "{}.{fraction}{name}", value / unit)
            }
        };
        match total {
            0..1_000 => decimal(formatter, total, 1, "ns"),
            1_000..1_000_000 => decimal(formatter, total, 1_000, "µs"),
            1_000_000..1_000_000_000 => decimal(formatter, total, 1_000_000, "ms"),
            _ => {
                let seconds = total / 1_000_000_000;
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                if hours > 0 {
                    write!(formatter, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(formatter, "{minutes}m")?;
                }
                decimal(formatter, total % 60_000_000_000, 1_000_000_000, "s")
            }
        }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A span as `kubectl get` shows an age: two units at most, `5s`, `3m20s`, `4d3h`, `2y40d`, and `<invalid>` for the future.
pub fn human(span: Duration) -> String {
    let seconds = span.as_nanos().div_euclid(1_000_000_000);
    if seconds < -1 {
        return "<invalid>".into();
    }
    if seconds < 0 {
        return "0s".into();
    }
    if seconds < 60 * 2 {
        return format!("{seconds}s");
    }
    let minutes = seconds / 60;
    if minutes < 10 {
        let rest = seconds % 60;
        return if rest == 0 {
            format!("{minutes}m")
        } else {
            format!("{minutes}m{rest}s")
        };
    }
    if minutes < 60 * 3 {
        return format!("{minutes}m");
    }
    let hours = minutes / 60;
    if hours < 8 {
        let rest = minutes % 60;
        return if rest == 0 {
            format!("{hours}h")
        } else {
            format!("{hours}h{rest}m")
        };
    }
    if hours < 48 {
        return format!("{hours}h");
    }
    let days = hours / 24;
    if hours < 24 * 8 {
        let rest = hours % 24;
        return if rest == 0 {
            format!("{days}d")
        } else {
            format!("{days}d{rest}h")
        };
    }
    if hours < 24 * 365 * 2 {
        return format!("{days}d");
    }
    let years = days / 365;
    if hours < 24 * 365 * 8 {
        let rest = days % 365;
        return if rest == 0 {
            format!("{years}y")
        } else {
            format!("{years}y{rest}d")
        };
    }
    format!("{years}y")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_as_go_does() {
        for (text, written) in [
            ("1h", "1h0m0s"),
            ("90m", "1h30m0s"),
            ("1.5h", "1h30m0s"),
            ("0", "0s"),
            ("300ms", "300ms"),
            ("1.5s", "1.5s"),
            ("-2m3s", "-2m3s"),
            ("1us", "1µs"),
            ("2m0.5s", "2m0.5s"),
            ("168h", "168h0m0s"),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), written, "{text}");
        }
        for text in ["", "1", "h", "1x", "-", "1h2", "99999999999h"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn ages_as_kubectl_shows_them() {
        for (seconds, shown) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (601, "10m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (86_400, "24h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(human(Duration::from_secs(seconds)), shown);
        }
    }
}
