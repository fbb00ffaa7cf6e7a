//! What functions do with values: which one is meant, and what several files of functions need.

mod amounts;
mod checks;
mod conversions;
mod format;
mod formats;
mod lists;
mod malformed;
mod network;
mod numbers;
mod overloads;
mod sequences;
mod texts;
mod times;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use regex::Regex;

use crate::regexp::{self, SyntaxError};

use self::amounts::amounts;
use self::checks::checks;
use self::conversions::conversion;
use self::formats::formats;
use self::lists::{lists, optionals};
use self::network::addresses;
use self::numbers::arithmetic;
use self::overloads::no_overload;
use self::sequences::sequences;
use self::texts::texts;
use self::times::times;
use crate::eval::{EvalError, Evaluation};
use crate::instant::Instant;
use crate::library;
use crate::value::Value;

pub(crate) use self::conversions::shown;
pub(crate) use self::format::{Piece, pieces, refused, takes};

type Found<'a> = Result<Value<'a>, EvalError>;

const NANO: i128 = 1_000_000_000;

/// How much memory a compiled pattern may take.
const PATTERN_SIZE: usize = 1 << 20;

/// A duration as Go writes it, in nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let units = [
            ("ns", 1),
            ("us", 1_000),
            ("µs", 1_000),
            ("μs", 1_000),
            ("ms", 1_000_000),
            ("s", NANO),
            ("m", 60 * NANO),
            ("h", 3600 * NANO),
        ];
        let (name, unit) = units.iter().find(|(name, _)| tail.starts_with(name))?;
        // `m` is minutes unless it is the beginning of `ms`
        rest = tail.get(name.len()..)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(*unit)?)?;
        let mut scale = *unit;
        for digit in fraction.chars() {
            scale /= 10;
            total += i128::from(digit.to_digit(10)?) * scale;
        }
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).ok().map(i128::from)
}

/// A time in RFC 3339, or a date.
pub(crate) fn timestamp(text: &str) -> Option<Instant> {
    if let Ok(time) = Instant::parse(text) {
        return Some(time);
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.into());
    }
    let date: jiff::civil::Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp().into())
}

pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A pattern as expressions write it.
pub(crate) fn pattern(text: &str) -> Result<Regex, SyntaxError> {
    regexp::compile_within(text, PATTERN_SIZE)
}

fn failed<'a>(why: impl Into<String>) -> Found<'a> {
    Err(EvalError::new(why))
}

fn int<'a>(value: impl TryInto<i64>) -> Found<'a> {
    value.try_into().map(Value::Int).or_else(|_| failed("integer overflow"))
}

/// Calls a function. Its arguments, with the target first, are evaluated already.
pub(crate) fn call<'a>(evaluation: &mut Evaluation<'_>, name: &str, member: bool, args: &[Value<'a>]) -> Found<'a> {
    evaluation.pay(1)?;
    if library::is_comparison(name)
        && let [left, right] = args
    {
        evaluation.traverse(left.size().min(right.size()))?;
        let order = left.order(right);
        let numbers = matches!((left, right), (Value::Double(_), _) | (_, Value::Double(_)));
        let Some(order) = order else {
            // nothing is in order with what is no number
            return if numbers {
                Ok(Value::Bool(false))
            } else {
                Err(no_overload(name, args))
            };
        };
        return Ok(Value::Bool(match name {
            "_<_" => order.is_lt(),
            "_<=_" => order.is_le(),
            "_>_" => order.is_gt(),
            _ => order.is_ge(),
        }));
    }
    let found = arithmetic(evaluation, name, args)
        .or_else(|| conversion(evaluation, name, args))
        .or_else(|| times(name, args))
        .or_else(|| texts(evaluation, name, args))
        .or_else(|| sequences(evaluation, name, member, args))
        .or_else(|| lists(evaluation, name, member, args))
        .or_else(|| optionals(name, args))
        .or_else(|| addresses(evaluation, name, args))
        .or_else(|| amounts(evaluation, name, args))
        .or_else(|| formats(evaluation, name, args))
        .or_else(|| checks(evaluation, name, args));
    found.unwrap_or_else(|| Err(no_overload(name, args)))
}
