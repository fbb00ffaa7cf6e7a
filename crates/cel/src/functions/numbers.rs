//! Sums and products of numbers, times, durations, texts and lists.

use super::{Found, failed};
use crate::eval::Evaluation;
use crate::instant::Instant;
use crate::value::Value;

pub(super) fn arithmetic<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let overflow = |value: Option<i64>| value.map_or_else(|| failed("integer overflow"), |value| Ok(Value::Int(value)));
    let unsigned =
        |value: Option<u64>| value.map_or_else(|| failed("unsigned integer overflow"), |value| Ok(Value::Uint(value)));
    Some(match (name, args) {
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("-_", [Value::Int(value)]) => overflow(value.checked_neg()),
        ("-_", [Value::Double(value)]) => Ok(Value::Double(-value)),
        ("-_", [Value::Duration(value)]) => span(-value),
        ("_+_", [Value::Int(a), Value::Int(b)]) => overflow(a.checked_add(*b)),
        ("_-_", [Value::Int(a), Value::Int(b)]) => overflow(a.checked_sub(*b)),
        ("_*_", [Value::Int(a), Value::Int(b)]) => overflow(a.checked_mul(*b)),
        ("_/_", [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)]) => failed("division by zero"),
        ("_%_", [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)]) => failed("modulus by zero"),
        ("_/_", [Value::Int(a), Value::Int(b)]) => overflow(a.checked_div(*b)),
        ("_%_", [Value::Int(a), Value::Int(b)]) => overflow(a.checked_rem(*b)),
        ("_+_", [Value::Uint(a), Value::Uint(b)]) => unsigned(a.checked_add(*b)),
        ("_-_", [Value::Uint(a), Value::Uint(b)]) => unsigned(a.checked_sub(*b)),
        ("_*_", [Value::Uint(a), Value::Uint(b)]) => unsigned(a.checked_mul(*b)),
        ("_/_", [Value::Uint(a), Value::Uint(b)]) => unsigned(a.checked_div(*b)),
        ("_%_", [Value::Uint(a), Value::Uint(b)]) => unsigned(a.checked_rem(*b)),
        ("_+_", [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a + b)),
        ("_-_", [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a - b)),
        ("_*_", [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a * b)),
        ("_/_", [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a / b)),
        ("_+_", [Value::Text(a), Value::Text(b)]) => evaluation
            .traverse((a.len() + b.len()) as u64)
            .map(|()| Value::text(format!("{a}{b}"))),
        ("_+_", [Value::Bytes(a), Value::Bytes(b)]) => evaluation
            .traverse((a.len() + b.len()) as u64)
            .map(|()| Value::Bytes(a.iter().chain(b.iter()).copied().collect())),
        ("_+_", [Value::Timestamp(time), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(time)]) => {
            shifted(*time, *by)
        }
        ("_-_", [Value::Timestamp(time), Value::Duration(by)]) => shifted(*time, -by),
        ("_-_", [Value::Timestamp(a), Value::Timestamp(b)]) => span(a.since_epoch() - b.since_epoch()),
        ("_+_", [Value::Duration(a), Value::Duration(b)]) => span(a + b),
        ("_-_", [Value::Duration(a), Value::Duration(b)]) => span(a - b),
        _ => return None,
    })
}

fn shifted<'a>(time: Instant, by: i128) -> Found<'a> {
    match time.later(by) {
        Some(time) => Ok(Value::Timestamp(time)),
        None => failed("timestamp overflow"),
    }
}

fn span<'a>(nanoseconds: i128) -> Found<'a> {
    match i64::try_from(nanoseconds) {
        Ok(_) => Ok(Value::Duration(nanoseconds)),
        Err(_) => failed("integer overflow"),
    }
}
