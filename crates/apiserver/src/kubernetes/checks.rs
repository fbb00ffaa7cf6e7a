//! Checks that the validation of many kinds is made of, on members of JSON objects.

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::quantity::Amount;
use serde_json::{Map, Value};

use crate::meta;

/// The text of a member; empty when absent.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What is wanted of an object; null when absent.
pub(super) fn spec_of(object: &Value) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// An annotation of an object.
pub(super) fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// The amount that a text tells; none where it cannot be read.
pub(super) fn amount(value: &Value) -> Option<Amount> {
    value.as_str()?.parse().ok()
}

/// The number of a member.
pub(super) fn number(object: &Value, key: &str) -> Option<i64> {
    object.get(key).and_then(Value::as_i64)
}

/// Whether a member is `true`.
pub(super) fn is_true(object: &Value, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

/// The elements of a member; none when absent.
pub(super) fn list<'v>(object: &'v Value, key: &str) -> &'v [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of a member; none when absent.
pub(super) fn map<'v>(object: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
    object.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// Adds what a check of syntax found wrong with a text.
pub(super) fn syntax(wrong: Vec<String>, value: &str, at: &Path, errors: &mut ErrorList) {
    errors.extend(wrong.into_iter().map(|why| Error::invalid(at, value, why)));
}

/// A text that must be there and be of a syntax.
pub(super) fn required_syntax(value: &str, check: fn(&str) -> Vec<String>, at: &Path, errors: &mut ErrorList) {
    match value {
        "" => errors.push(Error::required(at, "")),
        value => syntax(check(value), value, at, errors),
    }
}

/// A number that may not be negative.
pub(super) fn nonnegative(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(number) = number(object, key).filter(|number| *number < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child(key), number, why));
    }
}

/// A text that is one of those known; absent is fine, but one that is there without a letter is none of them.
pub(super) fn one_of(object: &Value, key: &str, known: &[&str], path: &Path, errors: &mut ErrorList) {
    let value = object.get(key).and_then(Value::as_str);
    if let Some(value) = value.filter(|value| !known.contains(value)) {
        errors.push(Error::not_supported(&path.child(key), value, known));
    }
}

/// A text that is one of those known where it is there at all, be it empty.
pub(super) fn one_of_if_set(object: &Value, key: &str, known: &[&str], path: &Path, errors: &mut ErrorList) {
    if let Some(value) = object.get(key).and_then(Value::as_str)
        && !known.contains(&value)
    {
        errors.push(Error::not_supported(&path.child(key), value, known));
    }
}

/// Keys and values of a map of labels.
pub(super) fn labels(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let at = path.child(key);
    for (name, value) in map(object, key) {
        syntax(meta::qualified_name(name), name, &at, errors);
        let value = value.as_str().unwrap_or_default();
        syntax(meta::label_value(value), value, &at, errors);
    }
}

/// A label selector: keys, values, operators and their number of values.
pub(super) fn label_selector(selector: &Value, path: &Path, errors: &mut ErrorList) {
    labels(selector, "matchLabels", path, errors);
    for (index, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        let at = path.child("matchExpressions").index(index);
        requirement_of_selector(requirement, &at, errors);
        for (index, value) in list(requirement, "values").iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            syntax(
                meta::label_value(value),
                value,
                &at.child("values").index(index),
                errors,
            );
        }
    }
}

/// Operator, number of values and key of one requirement; `Gt` and `Lt` are for nodes only.
pub(super) fn requirement_of_selector(requirement: &Value, at: &Path, errors: &mut ErrorList) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(Error::required(
            &at.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(Error::forbidden(
            &at.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(Error::invalid(
            &at.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let key = text(requirement, "key");
    syntax(meta::qualified_name(key), key, &at.child("key"), errors);
}

/// A path below some folder.
pub(super) fn descending_path(value: &str, at: &Path, errors: &mut ErrorList) {
    if value.starts_with('/') {
        errors.push(Error::invalid(at, value, "must be a relative path"));
    }
    no_backsteps(value, at, errors);
}

/// A path without `..`.
pub(super) fn no_backsteps(value: &str, at: &Path, errors: &mut ErrorList) {
    if value.split('/').any(|part| part == "..") {
        errors.push(Error::invalid(at, value, "must not contain '..'"));
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(fits) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// What is wrong with the number of a port.
pub(super) fn port_number(number: i64, path: &Path) -> Option<Error> {
    let why = "must be between 1 and 65535, inclusive";
    (!(1..=65_535).contains(&number)).then(|| Error::invalid(path, number, why))
}

/// What is wrong with the protocol of a port.
pub(super) fn port_protocol(protocol: &str, path: &Path) -> Option<Error> {
    let known = ["SCTP", "TCP", "UDP"];
    (!known.contains(&protocol)).then(|| Error::not_supported(path, protocol, &known))
}

/// A port by number or name.
pub(super) fn port(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let at = path.child(key);
    match object.get(key) {
        Some(Value::String(name)) => syntax(port_name(name), name, &at, errors),
        other => errors.extend(port_number(other.and_then(Value::as_i64).unwrap_or(0), &at)),
    }
}

/// Makes the node affinity of a pod's spec what it is in `affinity`, and leaves the rest of its affinity alone.
pub(super) fn keep_node_affinity(spec: &mut Map<String, Value>, affinity: &Value) {
    if affinity.get("nodeAffinity").is_some() {
        spec.entry("affinity").or_insert_with(|| Value::Object(Map::new()));
    }
    let own = spec.get_mut("affinity").and_then(Value::as_object_mut);
    keep(own, affinity, "nodeAffinity");
    let own = spec.get("affinity").and_then(Value::as_object);
    if affinity.is_null() && own.is_some_and(Map::is_empty) {
        spec.remove("affinity");
    }
}

/// Makes a member what it was.
pub(super) fn keep(members: Option<&mut Map<String, Value>>, before: &Value, key: &str) {
    let Some(members) = members else { return };
    match before.get(key) {
        Some(old) => members.insert(key.to_owned(), old.clone()),
        None => members.remove(key),
    };
}

/// Why a text is no UUID in its normal form, if so: in the words of Go's `uuid.Validate` where it is none at all.
pub(super) fn uuid(text: &str) -> Option<String> {
    const LENGTH: usize = 36;
    let (plain, form) = match text.len() {
        LENGTH => (Some(text), ""),
        45 => {
            let urn = text.get(..9).filter(|urn| urn.eq_ignore_ascii_case("urn:uuid:"));
            (urn.and_then(|_| text.get(9..)), "prefix")
        }
        38 => (text.strip_prefix('{').and_then(|text| text.strip_suffix('}')), "braces"),
        32 => (Some(text), "digits"),
        length => return Some(format!("error validating uid: invalid UUID length: {length}")),
    };
    let Some(plain) = plain else {
        return Some(match form {
            "prefix" => format!(
                "error validating uid: invalid urn prefix: {}",
                go_quote(text.get(..9).unwrap_or(text))
            ),
            _ => "error validating uid: invalid bracketed UUID format".to_owned(),
        });
    };
    let is_right = plain.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 if form != "digits" => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    if !is_right {
        return Some("error validating uid: invalid UUID format".to_owned());
    }
    let is_normal = form.is_empty() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    (!is_normal).then(|| {
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_a_normal_form() {
        let normal = "5c2f8a1e-7b6d-4c3a-9e0f-1a2b3c4d5e6f";
        assert_eq!(uuid(normal), None);
        let is_no_normal_form = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        for (text, expected) in [
            ("Forbid".to_owned(), "error validating uid: invalid UUID length: 6"),
            (normal.to_uppercase(), is_no_normal_form),
            (normal.replace('-', ""), is_no_normal_form),
            (format!("{{{normal}}}"), is_no_normal_form),
            (format!("URN:uuid:{normal}"), is_no_normal_form),
            (
                format!("urn-uuid:{normal}"),
                "error validating uid: invalid urn prefix: \"urn-uuid:\"",
            ),
            (
                format!("[{normal}]"),
                "error validating uid: invalid bracketed UUID format",
            ),
            (normal.replace('-', "0"), "error validating uid: invalid UUID format"),
            (normal.replace('a', "g"), "error validating uid: invalid UUID format"),
        ] {
            assert_eq!(uuid(&text).as_deref(), Some(expected), "{text}");
        }
    }
}
