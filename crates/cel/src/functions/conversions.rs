//! From one type to another.

use gardener_apimachinery::field::go_float;

use super::{Found, NANO, duration, failed, int};
use crate::eval::Evaluation;
use crate::instant::{Instant, Malformed};
use crate::value::Value;

pub(super) fn conversion<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    if let ("dyn", [value]) = (name, args) {
        return Some(Ok(value.clone()));
    }
    if let ("type", [value]) = (name, args) {
        return Some(Ok(Value::Type(value.type_name())));
    }
    if matches!(
        name,
        "int" | "uint" | "double" | "string" | "bytes" | "bool" | "timestamp" | "duration"
    ) && let [value] = args
        && let Err(error) = evaluation.traverse(value.size())
    {
        return Some(Err(error));
    }
    // what is cut off must fit
    let int_range = |value: f64| value.is_finite() && value.abs() < 9_223_372_036_854_775_808.0;
    let uint_range = |value: f64| (0.0..18_446_744_073_709_551_616.0).contains(&value);
    let unreadable = || failed(format!("type conversion error from 'string' to '{}'", full_name(name)));
    Some(match (name, args) {
        ("int", [value @ Value::Int(_)])
        | ("uint", [value @ Value::Uint(_)])
        | ("double", [value @ Value::Double(_)])
        | ("string", [value @ Value::Text(_)])
        | ("bytes", [value @ Value::Bytes(_)])
        | ("bool", [value @ Value::Bool(_)])
        | ("timestamp", [value @ Value::Timestamp(_)])
        | ("duration", [value @ Value::Duration(_)]) => Ok(value.clone()),
        ("int", [Value::Uint(value)]) => int(*value),
        ("int", [Value::Double(value)]) if int_range(*value) => Ok(Value::Int(*value as i64)),
        ("int", [Value::Double(_)]) => failed("integer overflow"),
        ("int", [Value::Text(text)]) => text.parse().map(Value::Int).or_else(|_| unreadable()),
        ("int", [Value::Timestamp(time)]) => Ok(Value::Int(time.seconds())),
        ("int", [Value::Duration(nanoseconds)]) => int(*nanoseconds),
        ("uint", [Value::Int(value)]) => {
            u64::try_from(*value).map_or_else(|_| failed("unsigned integer overflow"), |value| Ok(Value::Uint(value)))
        }
        ("uint", [Value::Double(value)]) if uint_range(*value) => Ok(Value::Uint(*value as u64)),
        ("uint", [Value::Double(_)]) => failed("unsigned integer overflow"),
        ("uint", [Value::Text(text)]) if text.starts_with('+') => unreadable(),
        ("uint", [Value::Text(text)]) => text.parse().map(Value::Uint).or_else(|_| unreadable()),
        ("double", [Value::Int(value)]) => Ok(Value::Double(*value as f64)),
        ("double", [Value::Uint(value)]) => Ok(Value::Double(*value as f64)),
        ("double", [Value::Text(text)]) => match text.parse::<f64>() {
            // a number that is too large is none
            Ok(value) if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => unreadable(),
            Ok(value) => Ok(Value::Double(value)),
            Err(_) => unreadable(),
        },
        ("bool", [Value::Text(text)]) => match text.as_ref() {
            "true" | "TRUE" | "True" | "t" | "T" | "1" => Ok(Value::Bool(true)),
            "false" | "FALSE" | "False" | "f" | "F" | "0" => Ok(Value::Bool(false)),
            _ => unreadable(),
        },
        ("bytes", [Value::Text(text)]) => Ok(Value::Bytes(text.as_bytes().into())),
        ("string", [Value::Bytes(bytes)]) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => failed("invalid UTF-8 in bytes, cannot convert to string"),
        },
        ("string", [value]) => return shown(value).map(|text| Ok(Value::text(text))),
        ("timestamp", [Value::Text(text)]) => match Instant::parse(text) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(Malformed::Range) => failed("timestamp overflow"),
            Err(Malformed::Syntax) => unreadable(),
        },
        ("timestamp", [Value::Int(seconds)]) => match Instant::from_seconds(*seconds) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => failed("timestamp overflow"),
        },
        ("duration", [Value::Text(text)]) => {
            duration(text).map_or_else(unreadable, |nanoseconds| Ok(Value::Duration(nanoseconds)))
        }
        ("duration", [Value::Int(_)]) => failed("type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("size", [value @ Value::Text(text)]) => {
            return Some(
                evaluation
                    .traverse(value.size())
                    .and_then(|()| int(text.chars().count())),
            );
        }
        ("size", [value @ (Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Json(..))]) => int(value.size()),
        _ => return None,
    })
}

pub(super) fn quoted(text: &str) -> String {
    gardener_apimachinery::field::go_quote(text)
}

/// The name of the type that a conversion makes.
fn full_name(conversion: &str) -> &str {
    match conversion {
        "timestamp" => "google.protobuf.Timestamp",
        "duration" => "google.protobuf.Duration",
        own => own,
    }
}

/// A value as `string(…)` shows it.
pub(crate) fn shown(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_float(*value),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => text.clone().into_owned(),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanoseconds) => {
            let (seconds, rest) = (nanoseconds / NANO, nanoseconds % NANO);
            format!("{}s", seconds as f64 + rest as f64 / 1e9)
        }
        Value::Ip(address) => address.to_string(),
        Value::Cidr(range) => range.to_string(),
        _ => return None,
    })
}
