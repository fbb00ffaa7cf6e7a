//! `format`: values in a text, as verbs say.

use super::conversions::shown;
use super::{Found, failed};
use crate::eval::{EvalError, Evaluation};
use crate::value::Value;

/// `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X`, `%o`, and `%%`.
pub(super) fn formatted<'a>(evaluation: &mut Evaluation<'_>, text: &str, list: &Value<'a>) -> Found<'a> {
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
