//! `format`: values in a text, as clauses say.

use super::conversions::{quoted, shown};
use super::{Found, failed};
use crate::eval::{EvalError, Evaluation};
use crate::value::Value;

/// How many digits a clause shows behind the point that does not say it.
const DIGITS: usize = 6;
/// How deep lists and maps are shown.
const MAX_DEPTH: usize = 64;
/// The most digits, or the greatest width, that a clause can ask for.
const MOST: usize = 1000;

/// A part of a text that is formatted.
pub(crate) enum Piece<'t> {
    Plain(&'t str),
    /// A clause, or why it is none.
    Clause(Result<Clause, String>),
    /// A clause that begins at the end of the text.
    Cut,
}

/// `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X`, `%o`; with a number of digits: `%.3f`.
#[derive(Clone, Copy)]
pub(crate) struct Clause {
    pub(crate) verb: char,
    digits: Option<usize>,
}

/// The parts of a text that is formatted; `%%` is no clause.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((plain, tail)) = rest.split_once('%') {
        found.push(Piece::Plain(plain));
        rest = match (tail.strip_prefix('%'), tail) {
            (Some(tail), _) => {
                found.push(Piece::Plain("%"));
                tail
            }
            (None, "") => {
                found.push(Piece::Cut);
                ""
            }
            (None, tail) => {
                let (clause, tail) = clause(tail);
                found.push(Piece::Clause(clause));
                tail
            }
        };
    }
    found.push(Piece::Plain(rest));
    found
}

/// The clause that a text begins with, and what follows it.
fn clause(text: &str) -> (Result<Clause, String>, &str) {
    let wrong = |why: String| (Err(format!("could not parse formatting clause: {why}")), "");
    let (digits, rest) = match text.strip_prefix('.') {
        None => (None, text),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let Some((digits, rest)) = end.and_then(|end| rest.split_at_checked(end)) else {
                return wrong("error while parsing precision: could not find end of precision specifier".to_owned());
            };
            let Ok(number) = digits.parse::<usize>() else {
                let why = if digits.is_empty() {
                    "invalid syntax"
                } else {
                    "value out of range"
                };
                return wrong(format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {}: {why}",
                    quoted(digits)
                ));
            };
            (Some(number.min(MOST)), rest)
        }
    };
    let mut chars = rest.chars();
    match chars.next() {
        Some(verb @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => (Ok(Clause { verb, digits }), chars.as_str()),
        _ => {
            // only one byte is looked at
            let found = rest.bytes().next().map(char::from).unwrap_or_default();
            wrong(format!("unrecognized formatting clause \"{found}\""))
        }
    }
}

/// What is said of a value of a type that a clause does not take.
pub(crate) fn refused(verb: char, found: &str) -> String {
    let only = match verb {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    };
    format!("error during formatting: {only}, was given {found}")
}

/// Whether a clause takes values of a type.
pub(crate) fn takes(verb: char, type_name: &str) -> bool {
    match verb {
        's' => matches!(
            type_name,
            "list"
                | "map"
                | "int"
                | "uint"
                | "double"
                | "bool"
                | "string"
                | "bytes"
                | "type"
                | "null_type"
                | "google.protobuf.Timestamp"
                | "google.protobuf.Duration"
        ),
        'f' | 'e' => matches!(type_name, "double" | "string"),
        'b' => matches!(type_name, "int" | "uint" | "bool"),
        'x' | 'X' => matches!(type_name, "int" | "uint" | "string" | "bytes"),
        _ => matches!(type_name, "int" | "uint"),
    }
}

pub(super) fn formatted<'a>(evaluation: &mut Evaluation<'_>, text: &str, list: &Value<'a>) -> Found<'a> {
    let mut args = list.elements().enumerate();
    let mut out = String::new();
    for piece in pieces(text) {
        if let Piece::Plain(plain) = piece {
            out.push_str(plain);
            continue;
        }
        let Some((_, arg)) = args.next() else {
            return failed(format!("index {} out of range", list.size()));
        };
        let clause = match piece {
            Piece::Clause(clause) => clause.map_err(EvalError::new)?,
            _ => return failed("unexpected end of string"),
        };
        let shown = clause.shown(&arg).map_err(EvalError::new)?;
        evaluation.traverse(shown.len() as u64 * 2)?;
        out.push_str(&shown);
    }
    Ok(Value::text(out))
}

impl Clause {
    fn shown(self, arg: &Value<'_>) -> Result<String, String> {
        let digits = self.digits.unwrap_or(DIGITS);
        Ok(match (self.verb, arg) {
            ('s', value) => return top(value),
            ('d', Value::Int(value)) => value.to_string(),
            ('d', Value::Uint(value)) => value.to_string(),
            ('f', value) => number(value)
                .map(|value| fixed(value, digits))
                .ok_or_else(|| self.refused(arg))?,
            ('e', value) => {
                let shown = number(value).map(exponent).ok_or_else(|| self.refused(arg))?;
                // the digits are taken for a width
                format!("{shown:>digits$}")
            }
            ('b', Value::Int(value)) if *value < 0 => format!("-{:b}", value.unsigned_abs()),
            ('b', Value::Int(value)) => format!("{value:b}"),
            ('b', Value::Uint(value)) => format!("{value:b}"),
            ('b', Value::Bool(value)) => u8::from(*value).to_string(),
            ('o', Value::Int(value)) if *value < 0 => format!("-{:o}", value.unsigned_abs()),
            ('o', Value::Int(value)) => format!("{value:o}"),
            ('o', Value::Uint(value)) => format!("{value:o}"),
            ('x', value) => hexadecimal(value).ok_or_else(|| self.refused(arg))?,
            ('X', value) => hexadecimal(value).ok_or_else(|| self.refused(arg))?.to_uppercase(),
            _ => return Err(self.refused(arg)),
        })
    }

    fn refused(self, arg: &Value<'_>) -> String {
        refused(self.verb, arg.type_name())
    }
}

/// A number, or a text that stands for one that cannot be written with digits.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// What is shown of numbers without digits.
fn without_digits(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// A number with its thousands apart, as English writes it.
fn fixed(value: f64, digits: usize) -> String {
    if let Some(shown) = without_digits(value) {
        return shown.to_owned();
    }
    let shown = format!("{:.digits$}", value.abs());
    let (whole, fraction) = shown
        .split_once('.')
        .map_or((&*shown, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number with a power of ten, of two digits at least.
fn exponent(value: f64) -> String {
    if let Some(shown) = without_digits(value) {
        return shown.to_owned();
    }
    let value = if value == 0.0 { 0.0 } else { value };
    let shown = format!("{value:.DIGITS$e}");
    let (mantissa, power) = shown.split_once('e').unwrap_or((&shown, "0"));
    let (sign, digits) = match power.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", power),
    };
    let digits = format!("{digits:0>2}");
    let raised = digits.chars().map(|digit| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    });
    format!("{mantissa}×10{sign}{}", raised.collect::<String>())
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

/// A value by itself: texts and numbers are shown as conversions make them.
fn top(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_) | Value::Text(_) => {}
        Value::Timestamp(_) | Value::Duration(_) => {}
        _ if takes('s', value.type_name()) => return within(value, false, 0),
        _ => return Err(refused('s', value.type_name())),
    }
    Ok(shown(value).unwrap_or_default())
}

/// A value within lists and maps, as expressions would write it.
fn within(value: &Value<'_>, quotes: bool, depth: usize) -> Result<String, String> {
    let quoted = |text: &str| if quotes { quoted(text) } else { text.to_owned() };
    let none = || {
        Err(format!(
            "error during formatting: no formatting function for {}",
            value.type_name()
        ))
    };
    if depth > MAX_DEPTH {
        return none();
    }
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if quotes => format!("b{}", quoted(text)),
            Ok(text) => text.to_owned(),
            Err(_) => {
                let why = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(format!(
                    "error during formatting: could not convert argument \"{why}\" to string"
                ));
            }
        },
        Value::Double(value) if value.is_finite() => format!("{value:.DIGITS$}"),
        Value::Double(_) => quoted(&shown(value).unwrap_or_default()),
        Value::Timestamp(_) => format!("timestamp({})", quoted(&shown(value).unwrap_or_default())),
        Value::Duration(_) => format!("duration({})", quoted(&shown(value).unwrap_or_default())),
        Value::Int(_) | Value::Uint(_) | Value::Bool(_) => shown(value).unwrap_or_default(),
        value if value.list_len().is_some() => {
            let parts: Result<Vec<String>, String> =
                value.elements().map(|one| within(&one, true, depth + 1)).collect();
            format!("[{}]", parts?.join(", "))
        }
        value => {
            let Some(keys) = value.keys() else {
                return none();
            };
            let mut entries = Vec::with_capacity(keys.len());
            for key in keys {
                let found = key.key().and_then(|key| value.member(&key)).unwrap_or(Value::Null);
                entries.push((within(&key, true, depth + 1)?, within(&found, true, depth + 1)?));
            }
            entries.sort();
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    })
}
