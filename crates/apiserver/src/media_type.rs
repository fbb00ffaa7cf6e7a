//! Media types of bodies, read as Go's `mime` package reads them: what a client writes behind the type may make it none.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The type of a `Content-Type` header in lower case, without its parameters. `None`, if the type or one of its parameters is malformed, or
/// one parameter has two values.
pub(crate) fn parse(text: &str) -> Option<Cow<'_, str>> {
    let (base, parameters) = match text.find(';') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let base = base.trim();
    let base = match base.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(base.to_ascii_lowercase()),
        false => Cow::Borrowed(base),
    };
    (is_type(&base) && parameters_fit(parameters)).then_some(base)
}

fn is_type(base: &str) -> bool {
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(is_token_byte);
    match base.split_once('/') {
        Some((kind, subtype)) => is_token(kind) && is_token(subtype),
        None => is_token(base),
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

fn parameters_fit(mut rest: &str) -> bool {
    let mut seen = BTreeMap::new();
    while !rest.trim_start().is_empty() {
        // one semicolon may stand at the end
        if rest.trim() == ";" {
            return true;
        }
        let Some((name, value, after)) = parameter(rest) else {
            return false;
        };
        if *seen.entry(name).or_insert_with(|| value.clone()) != value {
            return false;
        }
        rest = after;
    }
    true
}

/// The first parameter's name and value, and what follows it.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.trim_start().strip_prefix(';')?.trim_start());
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let (value, after) = token(rest);
            (!value.is_empty()).then(|| (value.to_owned(), after))?
        }
    };
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), value, after))
}

fn token(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_token_byte(byte));
    text.split_at(end.unwrap_or(text.len()))
}

/// What stands up to the closing quote, and what follows that. A backslash stands for itself but before characters that no token has.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\r' | '\n' => return None,
            '\\' => {
                let escaped = characters.next_if(|(_, next)| "()<>@,;:\\\"/[]?=".contains(*next));
                value.push(escaped.map_or(character, |(_, next)| next));
            }
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("application/json", Some("application/json")),
            ("Application/JSON ; Charset=\"UTF-8\" ;", Some("application/json")),
            ("json", Some("json")),
            ("application/json; a=b; A=b", Some("application/json")),
            ("application/json;a=\"x\\\";y\\z\";b=c", Some("application/json")),
            ("application/json;;", None),
            ("application/json; charset", None),
            ("application/json; charset=", None),
            ("application/json; charset=\"", None),
            ("application/json; a=b; a=c", None),
            ("application/json; a=b c", None),
            ("application/json, text/plain", None),
            ("application/", None),
            ("a/b/c", None),
            ("", None),
        ] {
            assert_eq!(parse(text).as_deref(), expected, "{text}");
        }
    }
}
