//! What functions do with values.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::names;
use gardener_apimachinery::quantity::Amount;
use ipnet::IpNet;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::{Regex, RegexBuilder};

use crate::eval::{Check, EvalError, Evaluation};
use crate::library;
use crate::value::Value;

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
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let date: jiff::civil::Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A pattern as expressions write it, which is as RE2 has it.
pub(crate) fn pattern(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(PATTERN_SIZE).build()
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
                Err(EvalError::overload())
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
        .or_else(|| lists(evaluation, name, member, args))
        .or_else(|| optionals(name, args))
        .or_else(|| addresses(evaluation, name, args))
        .or_else(|| amounts(evaluation, name, args))
        .or_else(|| formats(evaluation, name, args))
        .or_else(|| checks(evaluation, name, args));
    found.unwrap_or_else(|| Err(EvalError::overload()))
}

fn arithmetic<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let overflow = |value: Option<i64>| value.map_or_else(|| failed("integer overflow"), |value| Ok(Value::Int(value)));
    let unsigned =
        |value: Option<u64>| value.map_or_else(|| failed("unsigned integer overflow"), |value| Ok(Value::Uint(value)));
    Some(match (name, args) {
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("-_", [Value::Int(value)]) => overflow(value.checked_neg()),
        ("-_", [Value::Double(value)]) => Ok(Value::Double(-value)),
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
        ("_-_", [Value::Timestamp(a), Value::Timestamp(b)]) => span(a.as_nanosecond() - b.as_nanosecond()),
        ("_+_", [Value::Duration(a), Value::Duration(b)]) => span(a + b),
        ("_-_", [Value::Duration(a), Value::Duration(b)]) => span(a - b),
        _ => return None,
    })
}

fn shifted<'a>(time: Timestamp, by: i128) -> Found<'a> {
    match Timestamp::from_nanosecond(time.as_nanosecond() + by) {
        Ok(time) => Ok(Value::Timestamp(time)),
        Err(_) => failed("timestamp overflow"),
    }
}

fn span<'a>(nanoseconds: i128) -> Found<'a> {
    match i64::try_from(nanoseconds) {
        Ok(_) => Ok(Value::Duration(nanoseconds)),
        Err(_) => failed("duration overflow"),
    }
}

fn conversion<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
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
    let range = |value: f64| value.is_finite() && value.abs() < 9.223_372_036_854_775e18;
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
        ("int", [Value::Double(value)]) if range(*value) => Ok(Value::Int(*value as i64)),
        ("int", [Value::Double(_)]) => failed("integer overflow"),
        ("int", [Value::Text(text)]) => text
            .parse()
            .map(Value::Int)
            .or_else(|_| failed(format!("strconv.ParseInt: parsing {}: invalid syntax", quoted(text)))),
        ("int", [Value::Timestamp(time)]) => Ok(Value::Int(time.as_second())),
        ("int", [Value::Duration(nanoseconds)]) => int(*nanoseconds),
        ("uint", [Value::Int(value)]) => {
            u64::try_from(*value).map_or_else(|_| failed("unsigned integer overflow"), |value| Ok(Value::Uint(value)))
        }
        ("uint", [Value::Double(value)]) if range(*value) && *value >= 0.0 => Ok(Value::Uint(*value as u64)),
        ("uint", [Value::Double(_)]) => failed("unsigned integer overflow"),
        ("uint", [Value::Text(text)]) => text
            .parse()
            .map(Value::Uint)
            .or_else(|_| failed(format!("strconv.ParseUint: parsing {}: invalid syntax", quoted(text)))),
        ("double", [Value::Int(value)]) => Ok(Value::Double(*value as f64)),
        ("double", [Value::Uint(value)]) => Ok(Value::Double(*value as f64)),
        ("double", [Value::Text(text)]) => text
            .parse()
            .map(Value::Double)
            .or_else(|_| failed(format!("strconv.ParseFloat: parsing {}: invalid syntax", quoted(text)))),
        ("bool", [Value::Text(text)]) => match text.as_ref() {
            "true" | "TRUE" | "True" | "t" | "T" | "1" => Ok(Value::Bool(true)),
            "false" | "FALSE" | "False" | "f" | "F" | "0" => Ok(Value::Bool(false)),
            text => failed(format!("strconv.ParseBool: parsing {}: invalid syntax", quoted(text))),
        },
        ("bytes", [Value::Text(text)]) => Ok(Value::Bytes(text.as_bytes().into())),
        ("string", [Value::Bytes(bytes)]) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => failed("invalid UTF-8 in bytes, cannot convert to string"),
        },
        ("string", [value]) => return shown(value).map(|text| Ok(Value::text(text))),
        ("timestamp", [Value::Text(text)]) => timestamp(text).map_or_else(
            || {
                failed(format!(
                    "parsing time {} as \"2006-01-02T15:04:05Z07:00\"",
                    quoted(text)
                ))
            },
            |time| Ok(Value::Timestamp(time)),
        ),
        ("timestamp", [Value::Int(seconds)]) => match Timestamp::from_second(*seconds) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(_) => failed("timestamp overflow"),
        },
        ("duration", [Value::Text(text)]) => duration(text).map_or_else(
            || failed(format!("time: invalid duration {}", quoted(text))),
            |nanoseconds| Ok(Value::Duration(nanoseconds)),
        ),
        ("duration", [Value::Int(nanoseconds)]) => Ok(Value::Duration(i128::from(*nanoseconds))),
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

fn quoted(text: &str) -> String {
    gardener_apimachinery::field::go_quote(text)
}

/// A value as `string(…)` shows it.
fn shown(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) if value.is_nan() => "NaN".to_owned(),
        Value::Double(value) if value.is_infinite() => if *value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => text.clone().into_owned(),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanoseconds) => {
            let (seconds, rest) = (nanoseconds / NANO, (nanoseconds % NANO).abs());
            match rest {
                0 => format!("{seconds}s"),
                rest => {
                    let sign = if seconds == 0 && *nanoseconds < 0 { "-" } else { "" };
                    format!("{sign}{seconds}.{}s", format!("{rest:09}").trim_end_matches('0'))
                }
            }
        }
        Value::Ip(address) => address.to_string(),
        Value::Cidr(range) => range.to_string(),
        _ => return None,
    })
}

fn times<'a>(name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
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
    let zoned = time.to_zoned(zone);
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
fn time_zone(text: &str) -> Option<TimeZone> {
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

/// Where a position in characters is in bytes.
fn at(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    places.nth(position)
}

fn position(text: &str, at: Option<usize>) -> i64 {
    let found = at.and_then(|at| text.get(..at)).map(|head| head.chars().count());
    found.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1)
}

fn texts<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let [Value::Text(text), rest @ ..] = args else {
        if let ("join", [list, rest @ ..]) = (name, args) {
            let separator = match rest {
                [] => "",
                [Value::Text(separator)] => separator,
                _ => return None,
            };
            return list.list_len().map(|_| join(evaluation, list, separator));
        }
        return None;
    };
    let second = match rest.first() {
        Some(Value::Text(second)) => second.as_ref(),
        _ => "",
    };
    let cost = match name {
        "contains" => (text.len() as u64).div_ceil(10) * (second.len() as u64).div_ceil(10).max(1),
        "matches" | "find" | "findAll" => {
            (text.len() as u64 + 1).div_ceil(10) * (second.len() as u64).div_ceil(4).max(1)
        }
        "startsWith" | "endsWith" => (second.len() as u64).div_ceil(10),
        "replace" | "split" => (text.len() as u64).div_ceil(5),
        _ => (text.len() as u64).div_ceil(10),
    };
    if let Err(error) = evaluation.pay(cost) {
        return Some(Err(error));
    }
    let out_of_range = |position: &i64| failed(format!("index out of range: {position}"));
    Some(match (name, rest) {
        ("contains", [Value::Text(part)]) => Ok(Value::Bool(text.contains(part.as_ref()))),
        ("startsWith", [Value::Text(part)]) => Ok(Value::Bool(text.starts_with(part.as_ref()))),
        ("endsWith", [Value::Text(part)]) => Ok(Value::Bool(text.ends_with(part.as_ref()))),
        ("matches", [Value::Text(own)]) => with_pattern(own, |regex| Value::Bool(regex.is_match(text))),
        ("find", [Value::Text(own)]) => with_pattern(own, |regex| {
            Value::text(regex.find(text).map_or("", |found| found.as_str()).to_owned())
        }),
        ("findAll", [Value::Text(own)]) => with_pattern(own, |regex| all(&regex, text, -1)),
        ("findAll", [Value::Text(own), Value::Int(most)]) => with_pattern(own, |regex| all(&regex, text, *most)),
        ("charAt", [Value::Int(position)]) => match at(text, *position) {
            Some(at) => {
                let found = text.get(at..).and_then(|tail| tail.chars().next());
                Ok(Value::text(found.map(String::from).unwrap_or_default()))
            }
            None => out_of_range(position),
        },
        ("indexOf", [Value::Text(part)]) => Ok(Value::Int(position(text, text.find(part.as_ref())))),
        ("indexOf", [Value::Text(part), Value::Int(from)]) => match at(text, *from) {
            Some(from) => {
                let found = text.get(from..).and_then(|tail| tail.find(part.as_ref()));
                Ok(Value::Int(position(text, found.map(|found| found + from))))
            }
            None => out_of_range(from),
        },
        ("lastIndexOf", [Value::Text(part)]) => Ok(Value::Int(position(text, text.rfind(part.as_ref())))),
        ("lastIndexOf", [Value::Text(part), Value::Int(until)]) => match at(text, *until) {
            Some(until) => {
                let end = (until + part.len()).min(text.len());
                let end = (end..=text.len())
                    .find(|end| text.is_char_boundary(*end))
                    .unwrap_or(text.len());
                let found = text.get(..end).and_then(|head| head.rfind(part.as_ref()));
                Ok(Value::Int(position(text, found)))
            }
            None => out_of_range(until),
        },
        ("lowerAscii", []) => Ok(Value::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Value::text(text.trim().to_owned())),
        ("replace", [Value::Text(part), Value::Text(by)]) => replace(evaluation, text, part, by, -1),
        ("replace", [Value::Text(part), Value::Text(by), Value::Int(most)]) => {
            replace(evaluation, text, part, by, *most)
        }
        ("split", [Value::Text(by)]) => split(evaluation, text, by, -1),
        ("split", [Value::Text(by), Value::Int(most)]) => split(evaluation, text, by, *most),
        ("substring", [Value::Int(from)]) => match at(text, *from).and_then(|from| text.get(from..)) {
            Some(tail) => Ok(Value::text(tail.to_owned())),
            None => out_of_range(from),
        },
        ("substring", [Value::Int(from), Value::Int(to)]) => match (at(text, *from), at(text, *to)) {
            (Some(_), Some(_)) if from > to => failed(format!("invalid substring range. start: {from}, end: {to}")),
            (Some(from), Some(to)) => Ok(Value::text(text.get(from..to).unwrap_or_default().to_owned())),
            (None, _) => out_of_range(from),
            (_, None) => out_of_range(to),
        },
        ("format", [list]) => formatted(evaluation, text, list),
        ("strings.quote", []) => Ok(Value::text(quoted(text))),
        _ => return None,
    })
}

fn with_pattern<'a>(own: &str, then: impl FnOnce(Regex) -> Value<'a>) -> Found<'a> {
    match pattern(own) {
        Ok(regex) => Ok(then(regex)),
        Err(_) => failed(format!("error parsing regexp: {own}")),
    }
}

fn all<'a>(regex: &Regex, text: &str, most: i64) -> Value<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = regex.find_iter(text).take(most);
    Value::List(Arc::new(
        found.map(|one| Value::text(one.as_str().to_owned())).collect(),
    ))
}

fn join<'a>(evaluation: &mut Evaluation<'_>, list: &Value<'a>, separator: &str) -> Found<'a> {
    let mut out = String::new();
    for (place, element) in list.elements().enumerate() {
        let Value::Text(text) = element else {
            return Err(EvalError::overload());
        };
        evaluation.traverse((text.len() + separator.len()) as u64 * 2)?;
        if place > 0 {
            out.push_str(separator);
        }
        out.push_str(&text);
    }
    Ok(Value::text(out))
}

fn replace<'a>(evaluation: &mut Evaluation<'_>, text: &str, part: &str, by: &str, most: i64) -> Found<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // what comes out is paid for before it is made
    let count = text.matches(part).take(most).count() as u64;
    evaluation.traverse(count.saturating_mul(by.len() as u64))?;
    Ok(Value::text(text.replacen(part, by, most)))
}

fn split<'a>(evaluation: &mut Evaluation<'_>, text: &str, by: &str, most: i64) -> Found<'a> {
    if most == 0 {
        return Ok(Value::List(Arc::default()));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let parts: Vec<String> = match by.is_empty() {
        // between all characters, but not before the first and behind the last
        true => {
            let mut parts: Vec<String> = text.chars().map(String::from).collect();
            if parts.len() > most {
                let tail = parts.split_off(most - 1).concat();
                parts.push(tail);
            }
            parts
        }
        false => text.splitn(most, by).map(str::to_owned).collect(),
    };
    evaluation.pay(parts.len() as u64)?;
    Ok(Value::List(Arc::new(parts.into_iter().map(Value::text).collect())))
}

/// `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X`, `%o`, and `%%`.
fn formatted<'a>(evaluation: &mut Evaluation<'_>, text: &str, list: &Value<'a>) -> Found<'a> {
    let mut args = list.elements();
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut number = 0_usize;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            precision = digits.parse::<usize>().ok().map(|precision| precision.min(100));
        }
        let Some(verb) = chars.next() else {
            return failed("unexpected end of string");
        };
        let Some(arg) = args.next() else {
            return failed(format!("index {number} out of range"));
        };
        number += 1;
        let shown = clause(verb, precision, &arg, 0).ok_or_else(|| {
            EvalError::new(format!(
                "error during formatting: {verb:?} clause cannot be used on {}",
                arg.type_name()
            ))
        })?;
        evaluation.traverse(shown.len() as u64 * 2)?;
        out.push_str(&shown);
    }
    Ok(Value::text(out))
}

fn clause(verb: char, precision: Option<usize>, arg: &Value<'_>, depth: usize) -> Option<String> {
    Some(match (verb, arg) {
        ('s', value) => in_text(value, depth)?,
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('f', Value::Double(value)) => format!("{value:.*}", precision.unwrap_or(6)),
        ('f', Value::Int(value)) => format!("{:.*}", precision.unwrap_or(6), *value as f64),
        ('e', Value::Double(value)) => exponent(*value, precision.unwrap_or(6)),
        ('b', Value::Int(value)) if *value < 0 => format!("-{:b}", value.unsigned_abs()),
        ('b', Value::Int(value)) => format!("{value:b}"),
        ('b', Value::Uint(value)) => format!("{value:b}"),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('o', Value::Int(value)) if *value < 0 => format!("-{:o}", value.unsigned_abs()),
        ('o', Value::Int(value)) => format!("{value:o}"),
        ('o', Value::Uint(value)) => format!("{value:o}"),
        ('x', value) => hexadecimal(value)?,
        ('X', value) => hexadecimal(value)?.to_uppercase(),
        _ => return None,
    })
}

fn exponent(value: f64, precision: usize) -> String {
    let shown = format!("{value:.precision$e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn hexadecimal(value: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Some(match value {
        Value::Int(value) if *value < 0 => format!("-{:x}", value.unsigned_abs()),
        Value::Int(value) => format!("{value:x}"),
        Value::Uint(value) => format!("{value:x}"),
        Value::Text(text) => bytes(text.as_bytes()),
        Value::Bytes(own) => bytes(own),
        _ => return None,
    })
}

/// A value within a text; lists and maps too.
fn in_text(value: &Value<'_>, depth: usize) -> Option<String> {
    if depth > 64 {
        return None;
    }
    Some(match value {
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(_) | Value::Json(serde_json::Value::Array(_), _) => {
            let parts: Option<Vec<String>> = value.elements().map(|one| in_text(&one, depth + 1)).collect();
            format!("[{}]", parts?.join(", "))
        }
        Value::Map(_) | Value::Json(..) => {
            let entries = value.keys()?.into_iter().map(|key| {
                let found = value.member(&key.key()?)?;
                Some(format!(
                    "{}: {}",
                    in_text(&key, depth + 1)?,
                    in_text(&found, depth + 1)?
                ))
            });
            format!("{{{}}}", entries.collect::<Option<Vec<String>>>()?.join(", "))
        }
        value => shown(value)?,
    })
}

fn lists<'a>(evaluation: &mut Evaluation<'_>, name: &str, member: bool, args: &[Value<'a>]) -> Option<Found<'a>> {
    let [list, rest @ ..] = args else { return None };
    list.list_len()?;
    if !member && !name.starts_with("sets.") {
        return None;
    }
    let weight: u64 = list.elements().map(|one| one.size().div_ceil(10) + 1).sum();
    if let Err(error) = evaluation.pay(weight) {
        return Some(Err(error));
    }
    let place = |at: Option<usize>| Value::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1));
    Some(match (name, rest) {
        ("isSorted", []) => {
            let all: Vec<Value<'a>> = list.elements().collect();
            let sorted = all.windows(2).all(|pair| match pair {
                [a, b] => a.order(b).is_some_and(|order| order.is_le()),
                _ => true,
            });
            Ok(Value::Bool(sorted))
        }
        ("sum", []) => {
            let mut all = list.elements();
            let Some(first) = all.next() else {
                return Some(Ok(Value::Int(0)));
            };
            all.try_fold(first, |sum, one| {
                arithmetic(evaluation, "_+_", &[sum, one]).unwrap_or_else(|| Err(EvalError::overload()))
            })
        }
        ("min" | "max", []) => {
            let mut all = list.elements();
            let Some(mut found) = all.next() else {
                return Some(failed(format!("{name} called on empty list")));
            };
            for one in all {
                let Some(order) = one.order(&found) else {
                    return Some(Err(EvalError::overload()));
                };
                if (name == "min" && order.is_lt()) || (name == "max" && order.is_gt()) {
                    found = one;
                }
            }
            Ok(found)
        }
        ("indexOf", [wanted]) => Ok(place(list.elements().position(|one| one.same(wanted)))),
        ("lastIndexOf", [wanted]) => {
            let all: Vec<Value<'a>> = list.elements().collect();
            Ok(place(all.iter().rposition(|one| one.same(wanted))))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [other]) => {
            other.list_len()?;
            if let Err(error) = evaluation.pay(list.size().saturating_mul(other.size())) {
                return Some(Err(error));
            }
            let (one, other): (Vec<_>, Vec<_>) = (list.elements().collect(), other.elements().collect());
            let has = |all: &[Value<'a>], one: &Value<'a>| all.iter().any(|own| own.same(one));
            Ok(Value::Bool(match name {
                "sets.contains" => other.iter().all(|wanted| has(&one, wanted)),
                "sets.intersects" => other.iter().any(|wanted| has(&one, wanted)),
                _ => other.iter().all(|wanted| has(&one, wanted)) && one.iter().all(|wanted| has(&other, wanted)),
            }))
        }
        _ => return None,
    })
}

fn optionals<'a>(name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    Some(match (name, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::Optional(Some(Box::new(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => Ok(Value::Optional(match is_zero(value) {
            true => None,
            false => Some(Box::new(value.clone())),
        })),
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => failed("optional.none() dereference"),
        ("or", [own @ Value::Optional(inner), other @ Value::Optional(_)]) => {
            Ok(if inner.is_some() { own.clone() } else { other.clone() })
        }
        ("orValue", [Value::Optional(inner), other]) => {
            Ok(inner.as_ref().map_or_else(|| other.clone(), |inner| (**inner).clone()))
        }
        _ => return None,
    })
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(value) => *value == 0.0,
        Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Json(..) => value.size() == 0,
        Value::Optional(inner) => inner.is_none(),
        _ => false,
    }
}

fn address(text: &str) -> Result<IpAddr, EvalError> {
    let parsed: IpAddr = text.parse().map_err(|_| {
        EvalError::new(format!(
            "IP Address {} parse error during conversion from string: unable to parse IP",
            quoted(text)
        ))
    })?;
    match parsed {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        ))),
        parsed => Ok(parsed),
    }
}

fn range(text: &str) -> Result<IpNet, EvalError> {
    text.parse().map_err(|_| {
        EvalError::new(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({})",
            quoted(text)
        ))
    })
}

fn addresses<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    if let [.., Value::Text(text)] = args
        && let Err(error) = evaluation.traverse(text.len() as u64)
    {
        return Some(Err(error));
    }
    Some(match (name, args) {
        ("ip", [Value::Text(text)]) => address(text).map(Value::Ip),
        ("ip", [Value::Cidr(range)]) => Ok(Value::Ip(range.addr())),
        ("isIP", [Value::Text(text)]) => Ok(Value::Bool(address(text).is_ok())),
        ("ip.isCanonical", [Value::Text(text)]) => {
            address(text).map(|address| Value::Bool(address.to_string() == *text))
        }
        ("family", [Value::Ip(address)]) => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", [Value::Ip(address)]) => Ok(Value::Bool(address.is_unspecified())),
        ("isLoopback", [Value::Ip(address)]) => Ok(Value::Bool(address.is_loopback())),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => Ok(Value::Bool(match address {
            IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        })),
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Ok(Value::Bool(is_link_local(address))),
        ("isGlobalUnicast", [Value::Ip(address)]) => {
            let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
            let other = address.is_unspecified() || address.is_loopback() || address.is_multicast();
            Ok(Value::Bool(!broadcast && !other && !is_link_local(address)))
        }
        ("cidr", [Value::Text(text)]) => range(text).map(Value::Cidr),
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(range(text).is_ok())),
        ("containsIP", [Value::Cidr(range), Value::Ip(address)]) => Ok(Value::Bool(range.contains(address))),
        ("containsIP", [Value::Cidr(range), Value::Text(text)]) => {
            address(text).map(|address| Value::Bool(range.contains(&address)))
        }
        ("containsCIDR", [Value::Cidr(own), Value::Cidr(other)]) => Ok(Value::Bool(own.contains(other))),
        ("containsCIDR", [Value::Cidr(own), Value::Text(text)]) => {
            range(text).map(|other| Value::Bool(own.contains(&other)))
        }
        ("masked", [Value::Cidr(range)]) => Ok(Value::Cidr(range.trunc())),
        ("prefixLength", [Value::Cidr(range)]) => Ok(Value::Int(i64::from(range.prefix_len()))),
        ("url", [Value::Text(text)]) => match link(text) {
            Some(url) => Ok(Value::Url(Arc::new(url))),
            None => failed(format!(
                "URL parse error during conversion from string: parse {}: invalid URI for request",
                quoted(text)
            )),
        },
        ("isURL", [Value::Text(text)]) => Ok(Value::Bool(link(text).is_some())),
        ("getScheme", [Value::Url(url)]) => Ok(Value::text(
            if url.host_str() == Some(NO_HOST) {
                ""
            } else {
                url.scheme()
            }
            .to_owned(),
        )),
        ("getHostname", [Value::Url(url)]) => Ok(Value::text(host(url).trim_matches(['[', ']']).to_owned())),
        ("getHost", [Value::Url(url)]) => Ok(Value::text(match url.port() {
            Some(port) => format!("{}:{port}", host(url)),
            None => host(url).to_owned(),
        })),
        ("getPort", [Value::Url(url)]) => Ok(Value::text(url.port().map(|port| port.to_string()).unwrap_or_default())),
        ("getEscapedPath", [Value::Url(url)]) => Ok(Value::text(url.path().to_owned())),
        ("getQuery", [Value::Url(url)]) => {
            let mut query: std::collections::BTreeMap<crate::value::Key, Vec<Value<'a>>> = Default::default();
            for (key, value) in url.query_pairs() {
                let values = query.entry(crate::value::Key::Text(key.into_owned())).or_default();
                values.push(Value::text(value.into_owned()));
            }
            let lists = query.into_iter().map(|(key, list)| (key, Value::List(Arc::new(list))));
            Ok(Value::Map(Arc::new(lists.collect())))
        }
        _ => return None,
    })
}

/// The host of URLs that have none.
const NO_HOST: &str = "no-host.invalid";

/// A URL with scheme, or an absolute path.
fn link(text: &str) -> Option<url::Url> {
    if text.starts_with('/') && !text.starts_with("//") {
        return url::Url::parse(&format!("relative://{NO_HOST}{text}")).ok();
    }
    url::Url::parse(text).ok()
}

fn host(url: &url::Url) -> &str {
    url.host_str().filter(|host| *host != NO_HOST).unwrap_or_default()
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xffc0 == 0xfe80),
    }
}

fn version(text: &str, normalize: bool) -> Option<semver::Version> {
    if !normalize {
        return semver::Version::parse(text).ok();
    }
    let text = text.trim().strip_prefix('v').unwrap_or(text.trim());
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at_checked(end)?;
    let mut parts: Vec<String> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            trimmed => trimmed.to_owned(),
        })
        .collect();
    if rest.is_empty() {
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
    }
    semver::Version::parse(&format!("{}{rest}", parts.join("."))).ok()
}

fn amounts<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    if let [Value::Text(text), ..] = args
        && let Err(error) = evaluation.traverse(text.len() as u64)
    {
        return Some(Err(error));
    }
    let amount = |text: &str| text.parse::<Amount>();
    let compared = |order: std::cmp::Ordering| Ok(Value::Int(order as i64));
    Some(match (name, args) {
        ("quantity", [Value::Text(text)]) => match amount(text) {
            Ok(amount) => Ok(Value::Quantity(amount)),
            Err(why) => failed(why.to_string()),
        },
        ("isQuantity", [Value::Text(text)]) => Ok(Value::Bool(amount(text).is_ok())),
        ("sign", [Value::Quantity(own)]) => Ok(Value::Int(match (own.is_negative(), own.is_zero()) {
            (true, _) => -1,
            (_, true) => 0,
            _ => 1,
        })),
        ("isInteger", [Value::Quantity(own)]) => Ok(Value::Bool(*own == Amount::units(own.value()))),
        ("asInteger", [Value::Quantity(own)]) => match *own == Amount::units(own.value()) {
            true => Ok(Value::Int(own.value())),
            false => failed("cannot convert value to integer"),
        },
        ("asApproximateFloat", [Value::Quantity(own)]) => Ok(Value::Double(own.milli_value() as f64 / 1000.0)),
        ("isGreaterThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a > b)),
        ("isLessThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a < b)),
        ("compareTo", [Value::Quantity(a), Value::Quantity(b)]) => compared(a.cmp(b)),
        ("add", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Quantity(*a + *b)),
        ("sub", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Quantity(*a - *b)),
        ("add", [Value::Quantity(a), Value::Int(b)]) => Ok(Value::Quantity(*a + Amount::units(*b))),
        ("sub", [Value::Quantity(a), Value::Int(b)]) => Ok(Value::Quantity(*a - Amount::units(*b))),
        ("semver", [Value::Text(text), rest @ ..]) => match version(text, matches!(rest, [Value::Bool(true)])) {
            Some(version) => Ok(Value::Semver(Arc::new(version))),
            None => failed(format!("invalid semver {}", quoted(text))),
        },
        ("isSemver", [Value::Text(text), rest @ ..]) => Ok(Value::Bool(
            version(text, matches!(rest, [Value::Bool(true)])).is_some(),
        )),
        ("major", [Value::Semver(own)]) => int(own.major),
        ("minor", [Value::Semver(own)]) => int(own.minor),
        ("patch", [Value::Semver(own)]) => int(own.patch),
        ("isGreaterThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a.cmp_precedence(b).is_gt())),
        ("isLessThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a.cmp_precedence(b).is_lt())),
        ("compareTo", [Value::Semver(a), Value::Semver(b)]) => compared(a.cmp_precedence(b)),
        _ => return None,
    })
}

const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

fn formats<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let known = |name: &str| FORMATS.iter().find(|own| **own == name).copied();
    if let ([], Some(format)) = (args, name.strip_prefix("format.").and_then(known)) {
        return Some(Ok(Value::Format(format)));
    }
    Some(match (name, args) {
        ("format.named", [Value::Text(name)]) => {
            Ok(Value::Optional(known(name).map(|name| Box::new(Value::Format(name)))))
        }
        ("validate", [Value::Format(format), Value::Text(text)]) => {
            // as a pattern of some length would cost
            if let Err(error) = evaluation.pay((text.len() as u64 + 1).div_ceil(10) * 8) {
                return Some(Err(error));
            }
            let wrong = wrong(format, text);
            Ok(Value::Optional((!wrong.is_empty()).then(|| {
                Box::new(Value::List(Arc::new(wrong.into_iter().map(Value::text).collect())))
            })))
        }
        _ => return None,
    })
}

/// What keeps a text from having a format.
fn wrong(format: &str, text: &str) -> Vec<String> {
    let unless = |fits: bool, why: &str| if fits { Vec::new() } else { vec![why.to_owned()] };
    let whole = |text: &str| {
        text.strip_suffix('-')
            .map_or_else(|| text.to_owned(), |stem| format!("{stem}a"))
    };
    match format {
        "dns1123Label" => names::dns_label(text),
        "dns1123Subdomain" => names::dns_subdomain(text),
        "dns1035Label" => names::dns1035_label(text),
        "qualifiedName" => names::qualified_name(text),
        // a name goes on behind a prefix
        "dns1123LabelPrefix" => names::dns_label(&whole(text)),
        "dns1123SubdomainPrefix" => names::dns_subdomain(&whole(text)),
        "dns1035LabelPrefix" => names::dns1035_label(&whole(text)),
        "labelValue" => names::label_value(text),
        "uri" => unless(link(text).is_some(), "invalid URI"),
        "uuid" => {
            let groups: Vec<usize> = text.split('-').map(str::len).collect();
            let digits = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
            unless(digits && groups == [8, 4, 4, 4, 12], "does not match the UUID format")
        }
        "byte" => unless(decode_base64(text).is_some(), "invalid base64"),
        "date" => unless(text.parse::<jiff::civil::Date>().is_ok(), "invalid date"),
        _ => unless(text.parse::<Timestamp>().is_ok(), "invalid datetime"),
    }
}

fn checks<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let [Value::Check(check), rest @ ..] = args else {
        return None;
    };
    let mut check = Check::clone(check);
    match (name, rest) {
        ("serviceAccount", [Value::Text(namespace), Value::Text(name)]) => {
            check.service_account = Some((namespace.clone().into_owned(), name.clone().into_owned()));
        }
        ("path", [Value::Text(path)]) => check.path = Some(path.clone().into_owned()),
        ("group", [Value::Text(group)]) => check.group = group.clone().into_owned(),
        ("resource", [Value::Text(resource)]) => check.resource = resource.clone().into_owned(),
        ("subresource", [Value::Text(subresource)]) => check.subresource = subresource.clone().into_owned(),
        ("namespace", [Value::Text(namespace)]) => check.namespace = namespace.clone().into_owned(),
        ("name", [Value::Text(name)]) => check.name = name.clone().into_owned(),
        ("check", [Value::Text(verb)]) => {
            if let Err(error) = evaluation.pay(350_000) {
                return Some(Err(error));
            }
            let decision = evaluation.authorizer.map(|authorizer| authorizer.decide(&check, verb));
            check.decision = Some(decision.unwrap_or_default());
        }
        ("allowed", []) => return Some(Ok(Value::Bool(check.decision.is_some_and(|(allowed, _)| allowed)))),
        ("reason", []) => return Some(Ok(Value::text(check.decision.unwrap_or_default().1))),
        ("error", []) => return Some(Ok(Value::text(""))),
        ("errored", []) => return Some(Ok(Value::Bool(false))),
        _ => return None,
    }
    Some(Ok(Value::Check(Arc::new(check))))
}
