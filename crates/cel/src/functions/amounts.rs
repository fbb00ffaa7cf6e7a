//! Quantities and semantic versions.

use std::sync::Arc;

use gardener_apimachinery::quantity::Amount;

use super::conversions::quoted;
use super::{Found, failed, int};
use crate::eval::Evaluation;
use crate::value::Value;

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

pub(super) fn amounts<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
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
