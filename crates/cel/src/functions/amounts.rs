//! Quantities and semantic versions.

use std::sync::Arc;

use gardener_apimachinery::quantity::Amount;

use super::conversions::quoted;
use super::{Found, failed, int};
use crate::eval::Evaluation;
use crate::value::Value;

/// A version, or why a text is none. Normalized ones may begin with `v`, leave out the last numbers, and have zeros before them.
fn version(text: &str, normalize: bool) -> Result<semver::Version, String> {
    let text = match normalize {
        true => normalized(text)?,
        false => text.to_owned(),
    };
    malformed(&text)?;
    semver::Version::parse(&text).map_err(|why| why.to_string())
}

fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    for part in parts.iter_mut().filter(|part| part.len() > 1) {
        let rest = part.trim_start_matches('0');
        *part = match rest.starts_with(|c: char| c.is_ascii_digit()) {
            true => rest.to_owned(),
            false => format!("0{rest}"),
        };
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

/// What is wrong with a version, in the words of the library that Kubernetes reads them with.
fn malformed(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    number("major", "Major", major)?;
    number("minor", "Minor", minor)?;
    let (rest, build) = rest
        .split_once('+')
        .map_or((rest, None), |(rest, build)| (rest, Some(build)));
    let (patch, release) = rest
        .split_once('-')
        .map_or((rest, None), |(patch, release)| (patch, Some(release)));
    number("patch", "Patch", patch)?;
    let named = |part: &str| part.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric());
    for part in release.into_iter().flat_map(|release| release.split('.')) {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        match part {
            "" => return Err("Prerelease is empty".to_owned()),
            part if digits && part.len() > 1 && part.starts_with('0') => {
                let shown = quoted(part);
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {shown}"
                ));
            }
            part if !named(part) => return Err(format!("Invalid character(s) found in prerelease {}", quoted(part))),
            _ => {}
        }
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        match part {
            "" => return Err("Build meta data is empty".to_owned()),
            part if !named(part) => {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    quoted(part)
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn number(name: &str, begins: &str, text: &str) -> Result<(), String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", quoted(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{begins} number must not contain leading zeroes {}",
            quoted(text)
        ));
    }
    match text.parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) => {
            let why = if text.is_empty() {
                "invalid syntax"
            } else {
                "value out of range"
            };
            Err(format!("strconv.ParseUint: parsing {}: {why}", quoted(text)))
        }
    }
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
            Ok(version) => Ok(Value::Semver(Arc::new(version))),
            Err(why) => failed(why),
        },
        ("isSemver", [Value::Text(text), rest @ ..]) => {
            Ok(Value::Bool(version(text, matches!(rest, [Value::Bool(true)])).is_ok()))
        }
        ("major", [Value::Semver(own)]) => int(own.major),
        ("minor", [Value::Semver(own)]) => int(own.minor),
        ("patch", [Value::Semver(own)]) => int(own.patch),
        ("isGreaterThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a.cmp_precedence(b).is_gt())),
        ("isLessThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a.cmp_precedence(b).is_lt())),
        ("compareTo", [Value::Semver(a), Value::Semver(b)]) => compared(a.cmp_precedence(b)),
        _ => return None,
    })
}
