//! YAML as Go's library writes it: by libyaml, with lines that are broken behind 80 characters, keys in the order in which people count, and
//! quotes around what would mean something else.

use std::cmp::Ordering;
use std::sync::LazyLock;

use gardener_apimachinery::field::go_float;
use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};
use regex::Regex;
use serde_json::Value;

use crate::yaml;

#[allow(clippy::expect_used)] // a constant of this file
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\d{4}-\d{1,2}-\d{1,2}([Tt]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[+-]\d\d:\d\d)| \d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?)?$")
        .expect("a valid pattern")
});
#[allow(clippy::expect_used)] // a constant of this file
static BASE_60: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$").expect("a valid pattern"));

/// A value as a document.
pub(super) fn text(value: &Value) -> Vec<u8> {
    let mut written = Vec::new();
    let mut emitter = Emitter::new();
    emitter.set_output_string(&mut written);
    emitter.set_unicode(true);
    // what is written comes into memory, which takes everything
    let _ = document(&mut emitter, value);
    drop(emitter);
    // the mark of an end is for what could go on: libyaml has it wherever something could have, Go's library at the end alone
    const END: &[u8] = b"...\n";
    if written.ends_with(b"\n...\n") && !is_open(value) {
        written.truncate(written.len() - END.len());
    }
    written
}

/// Whether the last text of a value ends in lines without anything.
fn is_open(value: &Value) -> bool {
    match value {
        Value::String(text) => text.ends_with("\n\n") || text == "\n",
        Value::Array(elements) => elements.last().is_some_and(is_open),
        Value::Object(members) => {
            let last = members.iter().max_by(|(one, _), (other, _)| by_counting(one, other));
            last.is_some_and(|(_, value)| is_open(value))
        }
        _ => false,
    }
}

fn document(emitter: &mut Emitter<'_>, value: &Value) -> libyaml_safer::Result<()> {
    emitter.emit(Event::stream_start(Encoding::Utf8))?;
    emitter.emit(Event::document_start(None, &[], true))?;
    node(emitter, value)?;
    emitter.emit(Event::document_end(true))?;
    emitter.emit(Event::stream_end())?;
    emitter.flush()
}

fn node(emitter: &mut Emitter<'_>, value: &Value) -> libyaml_safer::Result<()> {
    match value {
        Value::Null => scalar(emitter, "null", ScalarStyle::Plain),
        Value::Bool(yes) => scalar(emitter, if *yes { "true" } else { "false" }, ScalarStyle::Plain),
        Value::Number(number) if number.is_f64() => {
            let text = go_float(number.as_f64().unwrap_or_default());
            scalar(emitter, &text, ScalarStyle::Plain)
        }
        Value::Number(number) => scalar(emitter, &number.to_string(), ScalarStyle::Plain),
        Value::String(text) => string(emitter, text),
        Value::Array(elements) => {
            emitter.emit(Event::sequence_start(None, None, true, SequenceStyle::Block))?;
            elements.iter().try_for_each(|element| node(emitter, element))?;
            emitter.emit(Event::sequence_end())
        }
        Value::Object(members) => {
            emitter.emit(Event::mapping_start(None, None, true, MappingStyle::Block))?;
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| by_counting(one, other));
            for (key, value) in members {
                string(emitter, key)?;
                node(emitter, value)?;
            }
            emitter.emit(Event::mapping_end())
        }
    }
}

fn scalar(emitter: &mut Emitter<'_>, text: &str, style: ScalarStyle) -> libyaml_safer::Result<()> {
    emitter.emit(Event::scalar(None, None, text, true, true, style))
}

fn string(emitter: &mut Emitter<'_>, text: &str) -> libyaml_safer::Result<()> {
    let style = match text.contains('\n') {
        true => ScalarStyle::Literal,
        false if is_plain(text) => ScalarStyle::Plain,
        false => ScalarStyle::DoubleQuoted,
    };
    scalar(emitter, text, style)
}

/// Whether a text is a text without quotes, too.
fn is_plain(text: &str) -> bool {
    yaml::is_text(text) && !TIME.is_match(text) && !BASE_60.is_match(text)
}

/// The order of keys: letters behind all else, and numbers by what they count.
fn by_counting(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut pairs = one.iter().zip(&other);
    let Some(at) = pairs.position(|(one, other)| one != other) else {
        return one.len().cmp(&other.len());
    };
    let (Some(first), Some(second)) = (one.get(at), other.get(at)) else {
        return Ordering::Equal;
    };
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (true, true) => return first.cmp(second),
        (false, false) => {}
    }
    // a zero behind other digits counts
    let before = one.iter().take(at).rev().take_while(|digit| digit.is_ascii_digit());
    let counts = (*first == '0' || *second == '0') && before.clone().any(|digit| *digit != '0');
    let number = |text: &[char]| {
        let digits = text.iter().skip(at).map_while(|digit| digit.to_digit(10));
        digits.fold((u64::from(counts), 0_usize), |(number, count), digit| {
            (number.wrapping_mul(10).wrapping_add(digit.into()), count + 1)
        })
    };
    number(&one).cmp(&number(&other)).then_with(|| first.cmp(second))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_those_of_go() {
        for (value, expected) in [
            (json!({}), "{}\n"),
            (
                json!({"a": [], "b": {}, "c": null, "d": true, "e": 1.5, "f": -3}),
                "a: []\nb: {}\nc: null\nd: true\ne: 1.5\nf: -3\n",
            ),
            (
                json!({"a": ["x", {"b": 1, "c": [2]}, [3]]}),
                "a:\n- x\n- b: 1\n  c:\n  - 2\n- - 3\n",
            ),
            (
                json!({"a": "yes", "b": "1", "c": "", "d": "2026-01-01T00:00:00Z", "e": "1:20", "f": "null"}),
                "a: \"yes\"\nb: \"1\"\nc: \"\"\nd: \"2026-01-01T00:00:00Z\"\ne: \"1:20\"\nf: \"null\"\n",
            ),
            (
                json!({"a": "b: c", "b": "'x'", "c": "#", "d": "x #y", "e": " x", "f": "{x}", "g": "a:b"}),
                "a: 'b: c'\nb: '''x'''\nc: '#'\nd: 'x #y'\ne: ' x'\nf: '{x}'\ng: a:b\n",
            ),
            (
                json!({"a": "x\ny\n", "b": "x\ny", "c": "x\n\n", "d": "x\ty", "e": "ü\u{7}"}),
                "a: |\n  x\n  y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: \"x\\ty\"\ne: \"ü\\a\"\n",
            ),
            (
                json!({"k:{\"name\":\"c\"}": {".": {}}, "f:a10": 1, "f:a2": 2, "f:A": 3}),
                "f:A: 3\nf:a2: 2\nf:a10: 1\nk:{\"name\":\"c\"}:\n  .: {}\n",
            ),
            (
                json!({"message": "resourceVersionMatch is forbidden unless resourceVersion is provided, and told: so that it is broken"}),
                "message: 'resourceVersionMatch is forbidden unless resourceVersion is provided, and\n  told: so that it is broken'\n",
            ),
        ] {
            let written = String::from_utf8(text(&value)).unwrap();
            assert_eq!(written, expected, "{value}");
        }
    }
}
