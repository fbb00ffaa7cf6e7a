//! Searching, cutting and joining texts.

use std::sync::Arc;

use regex::Regex;

use super::conversions::shown;
use super::format::formatted;
use super::{Found, failed, pattern};
use crate::eval::Evaluation;
use crate::library::ESCAPE_KEY;
use crate::value::Value;

/// Where a position in characters is in bytes.
pub(super) fn at(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    places.nth(position)
}

pub(super) fn position(text: &str, at: Option<usize>) -> i64 {
    let found = at.and_then(|at| text.get(..at)).map(|head| head.chars().count());
    found.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1)
}

pub(super) fn texts<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let [Value::Text(text), rest @ ..] = args else {
        if let ("join", [list, rest @ ..]) = (name, args) {
            let separator = match rest {
                [] => "",
                [Value::Text(separator)] => separator,
                _ => return None,
            };
            // the others are looked at when they are joined
            let may = list.list_len().is_some() && matches!(list.element(0), None | Some(Value::Text(_)));
            return may.then(|| join(evaluation, list, separator));
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
        ("matches", [Value::Text(own)]) => with_pattern(name, own, |regex| Value::Bool(regex.is_match(text))),
        ("find", [Value::Text(own)]) => with_pattern(name, own, |regex| {
            Value::text(regex.find(text).map_or("", |found| found.as_str()).to_owned())
        }),
        ("findAll", [Value::Text(own)]) => with_pattern(name, own, |regex| all(&regex, text, -1)),
        ("findAll", [Value::Text(own), Value::Int(most)]) => with_pattern(name, own, |regex| all(&regex, text, *most)),
        (ESCAPE_KEY, []) => Ok(Value::text(text.replace('~', "~0").replace('/', "~1"))),
        ("charAt", [Value::Int(position)]) => match at(text, *position) {
            Some(at) => {
                let found = text.get(at..).and_then(|tail| tail.chars().next());
                Ok(Value::text(found.map(String::from).unwrap_or_default()))
            }
            None => out_of_range(position),
        },
        ("indexOf", [Value::Text(part)]) => first_index(text, part, 0),
        ("indexOf", [Value::Text(part), Value::Int(from)]) => first_index(text, part, *from),
        ("lastIndexOf", [Value::Text(part)]) => Ok(Value::Int(position(text, text.rfind(part.as_ref())))),
        ("lastIndexOf", [Value::Text(part), Value::Int(until)]) => last_index(text, part, *until),
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
        ("substring", [Value::Int(from), Value::Int(to)]) if from > to => {
            failed(format!("invalid substring range. start: {from}, end: {to}"))
        }
        ("substring", [Value::Int(from), Value::Int(to)]) => match (at(text, *from), at(text, *to)) {
            (Some(from), Some(to)) => Ok(Value::text(text.get(from..to).unwrap_or_default().to_owned())),
            (None, _) => out_of_range(from),
            (_, None) => out_of_range(to),
        },
        ("format", [list]) => formatted(evaluation, text, list),
        ("strings.quote", []) => Ok(Value::text(escaped(text))),
        _ => return None,
    })
}

/// Where a part first stands at a position or behind it. Nothing stands behind the end; what is empty stands everywhere.
fn first_index<'a>(text: &str, part: &str, from: i64) -> Found<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return failed(format!("index out of range: {from}"));
    }
    let found = at(text, from).and_then(|from| {
        let tail = text.get(from..)?;
        tail.find(part).map(|found| found + from)
    });
    Ok(Value::Int(position(text, found)))
}

/// Where a part last begins at a position or before it.
fn last_index<'a>(text: &str, part: &str, until: i64) -> Found<'a> {
    if part.is_empty() {
        return Ok(Value::Int(until));
    }
    if until < 0 {
        return failed(format!("index out of range: {until}"));
    }
    let begin = at(text, until).filter(|begin| *begin < text.len());
    let found = begin.and_then(|begin| {
        let places = text.char_indices().map(|(place, _)| place);
        let mut places: Vec<usize> = places.take_while(|place| *place <= begin).collect();
        places.reverse();
        let begins = |place: &usize| text.get(*place..).is_some_and(|tail| tail.starts_with(part));
        places.into_iter().find(begins)
    });
    Ok(Value::Int(position(text, found)))
}

/// A text as expressions write it. Other than Go's quoting it keeps all characters but those that have an escape of one letter.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Does something with a pattern, for the function of this name.
pub(super) fn with_pattern<'a>(name: &str, own: &str, then: impl FnOnce(Regex) -> Value<'a>) -> Found<'a> {
    match pattern(own) {
        Ok(regex) => Ok(then(regex)),
        Err(error) if name == "matches" => failed(error.to_string()),
        Err(error) => failed(format!("Illegal regex: {error}")),
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
            let shown = shown(&element).unwrap_or_else(|| element.type_name().to_owned());
            return failed(format!("join: invalid input: {shown}"));
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
