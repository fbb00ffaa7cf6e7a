//! Amounts of resources: Go's `resource.Quantity`. Reads decimal SI (`100m`, `2k`), binary SI (`1Gi`) and exponents (`1e3`),
//! compares and adds exactly to a billionth, and writes the canonical form.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Billionths in one unit: the smallest amount that is told apart.
const NANO: i128 = 1_000_000_000;
/// The largest amount: Go knows none, but nobody has as much.
const MAX: i128 = 10i128.pow(37);
/// The largest amount in binary units: Go caps them.
const MAX_BINARY: i128 = i64::MAX as i128 * NANO;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `1500m`, `2k`.
    DecimalSi,
    /// `1536Mi`.
    BinarySi,
    /// `15e2`.
    DecimalExponent,
}

/// An amount with its way to be written. Equality and order look at the amount only.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    nanos: i128,
    format: Format,
}

/// A text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text has not the form number, suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The suffix is none of those known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Amount {
    /// A whole number of units, written in decimal SI.
    pub fn units(units: i64) -> Self {
        Self {
            nanos: i128::from(units) * NANO,
            format: Format::DecimalSi,
        }
    }

    /// A number of thousandths, written in decimal SI.
    pub fn milli(thousandths: i64) -> Self {
        Self {
            nanos: i128::from(thousandths) * (NANO / 1000),
            format: Format::DecimalSi,
        }
    }

    /// A whole number of bytes, written in binary SI.
    pub fn bytes(bytes: i64) -> Self {
        Self {
            nanos: i128::from(bytes) * NANO,
            format: Format::BinarySi,
        }
    }

    /// Whole units, rounded up as Go's `Value()` does.
    pub fn value(self) -> i64 {
        rounded_up(self.nanos, NANO)
    }

    /// Thousandths, rounded up as Go's `MilliValue()` does.
    pub fn milli_value(self) -> i64 {
        rounded_up(self.nanos, NANO / 1000)
    }

    /// Whether the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The way it is written.
    pub fn format(self) -> Format {
        self.format
    }

    fn with(self, nanos: i128, other: Self) -> Self {
        // Go: a zero takes over the other's format.
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self {
            nanos: nanos.clamp(-MAX, MAX),
            format,
        }
    }
}

fn rounded_up(nanos: i128, unit: i128) -> i64 {
    let whole = nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0);
    i64::try_from(whole).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

impl std::ops::Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.with(self.nanos + other.nanos, other)
    }
}

impl std::ops::Sub for Amount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.with(self.nanos - other.nanos, other)
    }
}

impl std::ops::Mul<i64> for Amount {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        self.with(self.nanos.saturating_mul(i128::from(factor)), self)
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}
impl Eq for Amount {}
impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// What a suffix multiplies by: a power of two or of ten.
enum Scale {
    Two(u32),
    Ten(i32),
}

fn scale(suffix: &str) -> Option<(Scale, Format)> {
    let binary = |power| Some((Scale::Two(power), Format::BinarySi));
    let decimal = |power| Some((Scale::Ten(power), Format::DecimalSi));
    match suffix {
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let power: i32 = exponent.parse().ok()?;
            Some((Scale::Ten(power), Format::DecimalExponent))
        }
    }
}

/// A number and what follows it.
fn split(unsigned: &str) -> (&str, &str) {
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    unsigned.split_at(end.unwrap_or(unsigned.len()))
}

impl FromStr for Amount {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let negative = text.starts_with('-');
        let (number, suffix) = split(unsigned);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(ParseQuantityError::Form);
        }
        if !suffix.chars().all(|c| "eEinumkKMGTP+-0123456789".contains(c)) {
            return Err(ParseQuantityError::Form);
        }
        let (scale, format) = scale(suffix).ok_or(ParseQuantityError::Suffix)?;
        // digits * 10^(9 + power - fraction digits) billionths, rounded away from zero below a billionth
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let mantissa: i128 = if digits.is_empty() {
            0
        } else if digits.len() > 36 {
            MAX
        } else {
            digits.parse().map_err(|_| ParseQuantityError::Form)?
        };
        let places = i32::try_from(fraction.len()).map_err(|_| ParseQuantityError::Form)?;
        let nanos = match scale {
            Scale::Two(power) => shifted(mantissa.saturating_mul(1i128 << power), 9 - places),
            Scale::Ten(power) => shifted(mantissa, 9 + power - places),
        };
        let nanos = nanos.min(match format {
            Format::BinarySi => MAX_BINARY,
            Format::DecimalSi | Format::DecimalExponent => MAX,
        });
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
            format,
        })
    }
}

fn shifted(value: i128, power: i32) -> i128 {
    if value == 0 {
        return 0;
    }
    match u32::try_from(power) {
        Ok(power) => 10i128
            .checked_pow(power)
            .and_then(|factor| value.checked_mul(factor))
            .unwrap_or(MAX),
        Err(_) => match 10i128.checked_pow(power.unsigned_abs()) {
            Some(divisor) => value / divisor + i128::from(value % divisor != 0),
            None => 1,
        },
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.nanos % NANO == 0;
        let units = self.nanos / NANO;
        if self.format == Format::BinarySi && whole && units.abs() >= 1024 {
            let mut number = units;
            let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
            let mut suffix = suffixes.next().unwrap_or_default();
            while number % 1024 == 0 {
                match suffixes.next() {
                    Some(next) => {
                        suffix = next;
                        number /= 1024;
                    }
                    None => break,
                }
            }
            return write!(formatter, "{number}{suffix}");
        }
        if self.nanos == 0 {
            return formatter.write_str("0");
        }
        let mut number = self.nanos;
        let mut power = -9;
        while number % 1000 == 0 {
            number /= 1000;
            power += 3;
        }
        // there is no suffix for more, which Go forgets
        if power > 18 || self.format == Format::DecimalExponent && power != 0 {
            return write!(formatter, "{number}e{power}");
        }
        let suffix = match power {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            0 => "",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            _ => "E",
        };
        write!(formatter, "{number}{suffix}")
    }
}

/// The text of a quantity as the API server writes it back: the canonical one, or the text itself where Go takes it for that.
///
/// # Errors
/// Fails when the text is no quantity.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, ParseQuantityError> {
    let text = text.trim();
    let amount: Amount = text.parse()?;
    Ok(match passes_for_canonical(text) {
        true => text.into(),
        false => amount.to_string().into(),
    })
}

/// The text of a quantity that is finer than a thousandth, rounded away from zero; none for one that is not, and for what is no quantity.
pub fn rounded_to_milli(text: &str) -> Option<String> {
    // without a point, an exponent and a suffix below `m` nothing is finer
    if !text
        .bytes()
        .any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'n' | b'u'))
    {
        return None;
    }
    let amount: Amount = text.parse().ok()?;
    let unit = NANO / 1000;
    let rest = amount.nanos % unit;
    let rounded = amount.nanos - rest + unit * rest.signum();
    (rest != 0).then(|| {
        Amount {
            nanos: rounded,
            ..amount
        }
        .to_string()
    })
}

/// Whether Go's `ParseQuantity` keeps the text of a quantity: it does not look closely, so that `1.500`, `+1` and `001` are kept.
fn passes_for_canonical(text: &str) -> bool {
    /// So many decimal digits always fit into 64 bits.
    const DIGITS: usize = 18;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, suffix) = split(unsigned);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    match scale(suffix) {
        Some((Scale::Ten(power), _)) => {
            let digits = [whole, fraction].concat();
            let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
            let power = power.saturating_sub(places);
            let is_short = !whole.is_empty() && digits.len() <= DIGITS;
            is_short && power >= -9 && power % 3 == 0 && !digits.ends_with("000")
        }
        Some((Scale::Two(power), _)) => {
            let taken = whole.len() + power as usize * 3 / 10 + 1;
            let odd = whole.parse::<u64>().is_ok_and(|value| value % 8 != 0);
            fraction.is_empty() && taken <= 15 && odd
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_finer_than_a_thousandth_is_rounded() {
        for (text, rounded) in [
            ("1", None),
            ("1m", None),
            ("1.500", None),
            ("2Gi", None),
            ("none", None),
            ("500u", Some("1m")),
            ("1000100u", Some("1001m")),
            ("-1n", Some("-1m")),
            ("1999999999n", Some("2")),
            ("100e-6", Some("1e-3")),
        ] {
            assert_eq!(rounded_to_milli(text).as_deref(), rounded, "{text}");
        }
    }

    #[test]
    fn canonical_forms_are_gos() {
        for (text, expected) in [
            ("0", "0"),
            ("1", "1"),
            ("100E", "100E"),
            ("1000E", "1e21"),
            ("1e20", "100e18"),
            ("30000000000000000000", "30E"),
            ("30000000000000000001", "30000000000000000001"),
            ("30Ei", "9223372036854775807"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("0.5Gi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1000Mi", "1000Mi"),
            ("1.5Gi", "1536Mi"),
            ("1023", "1023"),
            ("512Ki", "512Ki"),
            ("20000", "20k"),
            ("20k", "20k"),
            ("100", "100"),
            ("1e3", "1e3"),
            ("1500", "1500"),
            ("12e6", "12e6"),
            ("1E", "1E"),
            ("-1Gi", "-1Gi"),
            ("-1", "-1"),
            // Go keeps what looks canonical to it
            ("+2", "+2"),
            ("1.", "1."),
            ("1.500", "1.500"),
            ("1E3", "1E3"),
            ("001", "001"),
            ("1.Gi", "1.Gi"),
            (" 7 ", "7"),
            ("1.0", "1"),
            ("1.e2", "100"),
            ("1024Ki", "1Mi"),
            ("1000000", "1M"),
            ("-0", "0"),
            ("00", "0"),
            (".5", "500m"),
            ("0.0000000001", "1n"),
            ("100u", "100u"),
        ] {
            assert_eq!(canonical(text).unwrap(), expected, "{text}");
        }
        for bad in ["", "many", "1x", "1.2.3", "--1", "1 Gi", "."] {
            assert_eq!(canonical(bad), Err(ParseQuantityError::Form), "{bad}");
        }
        assert_eq!(canonical("1Kii"), Err(ParseQuantityError::Suffix));
    }

    #[test]
    fn arithmetic_keeps_the_first_format() {
        let gi: Amount = "1Gi".parse().unwrap();
        let mi: Amount = "512Mi".parse().unwrap();
        assert_eq!((gi + mi).to_string(), "1536Mi");
        assert_eq!((gi - mi).to_string(), "512Mi");
        assert_eq!((Amount::units(0) + mi).to_string(), "512Mi");
        assert_eq!((Amount::milli(80) * 3).to_string(), "240m");
        assert_eq!(Amount::milli(1).value(), 1);
        assert_eq!(Amount::milli(-1500).value(), -1);
        assert_eq!("2".parse::<Amount>().unwrap().milli_value(), 2000);
        assert!("999Mi".parse::<Amount>().unwrap() < gi);
        let odd = Amount::bytes(788_775_000);
        assert_eq!(odd.to_string(), "788775000");
        assert_eq!(odd.to_string().parse::<Amount>().unwrap().to_string(), "788775k");
    }

    proptest! {
        #[test]
        fn writing_and_reading_gives_the_same(units in any::<i32>(), thousandths in 0..1000i64, binary in any::<bool>()) {
            let amount = if binary { Amount::bytes(i64::from(units)) } else { Amount::units(i64::from(units)) + Amount::milli(thousandths) };
            let again: Amount = amount.to_string().parse().unwrap();
            prop_assert_eq!(again, amount);
            // As in Go, bytes that no binary suffix divides are written without one, and so are read as decimal.
            if again.format() == amount.format() {
                prop_assert_eq!(again.to_string(), amount.to_string());
            }
        }
    }
}
