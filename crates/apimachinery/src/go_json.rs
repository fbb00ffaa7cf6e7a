//! What Go's `encoding/json` says of a text that is no JSON, or of a value that is not of the type wanted. Only asked once something is refused.

use serde_json::Value;

/// Why `bytes` are no JSON value, in Go's words; None when they are one.
pub fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0 };
    scanner.value().and_then(|()| scanner.end()).err()
}

/// Why `bytes` are no JSON object, in Go's words; None when they are one, or null.
pub fn object_error(bytes: &[u8]) -> Option<String> {
    let found = match serde_json::from_slice(bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(other) => type_of(&other),
        Err(_) => return syntax_error(bytes),
    };
    Some(format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    ))
}

/// The name of a value's JSON type as Go's decoder tells it.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How deep Go's scanner goes.
const MAX_DEPTH: usize = 10_000;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What comes next inside an open object or list.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Object,
    List,
}

impl Scanner<'_> {
    fn unexpected(&self, context: &str) -> String {
        match self.bytes.get(self.at) {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(*byte)),
        }
    }

    fn space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn end(&mut self) -> Result<(), String> {
        match self.space() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("after top-level value")),
        }
    }

    /// A whole value; without recursion, so that no depth exhausts the stack.
    fn value(&mut self) -> Result<(), String> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            // a value begins here
            match self.space() {
                Some(b'{') => {
                    self.at += 1;
                    if self.space() == Some(b'}') {
                        self.at += 1;
                    } else {
                        self.key()?;
                        open.push(Open::Object);
                        if open.len() > MAX_DEPTH {
                            return Err("exceeded max depth".to_owned());
                        }
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if self.space() == Some(b']') {
                        self.at += 1;
                    } else {
                        open.push(Open::List);
                        if open.len() > MAX_DEPTH {
                            return Err("exceeded max depth".to_owned());
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.unexpected("looking for beginning of value")),
            }
            // a value ended here
            loop {
                let Some(inside) = open.last().copied() else {
                    return Ok(());
                };
                match (inside, self.space()) {
                    (Open::Object, Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Open::List, Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Open::Object, Some(b'}')) | (Open::List, Some(b']')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Open::Object, _) => return Err(self.unexpected("after object key:value pair")),
                    (Open::List, _) => return Err(self.unexpected("after array element")),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), String> {
        if self.space() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string()?;
        if self.space() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.bytes.get(self.at) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.bytes.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                                    return Err(self.unexpected("in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.unexpected("in string escape code")),
                    }
                }
                Some(byte) if *byte >= 0x20 => self.at += 1,
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn digits(&mut self) -> bool {
        let from = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at > from
    }

    fn number(&mut self) -> Result<(), String> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else if !self.digits() {
            return Err(self.unexpected("in numeric literal"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.digits() {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            if !self.digits() {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.bytes.get(self.at) != Some(&expected) {
                let expected = quoted(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting {expected})")));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte as Go shows it in these messages.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x7f => "'\\x7f'".to_owned(),
        // a byte is taken for a character
        0x80..=0xa0 | 0xad => format!("'\\u00{byte:02x}'"),
        byte => {
            let text = crate::field::go_quote(&char::from(byte).to_string());
            format!("'{}'", text.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_of_go() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 x", "invalid character 'x' after object key:value pair"),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{}}", "invalid character '}' after top-level value"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            (
                "\"\\u12x\"",
                "invalid character 'x' in \\u hexadecimal character escape",
            ),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("tru", "unexpected end of JSON input"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            syntax_error(b" {\"a\": [1, -0.5e+3, true, false, null, \"\\u00e4\"], \"b\": {}} "),
            None
        );
    }

    proptest! {
        #[test]
        fn what_is_json_is_so_for_both(text in "[\\[\\]{}\",:0-9a-z .\\\\-]{0,24}") {
            let parsed = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parsed, syntax_error(text.as_bytes()).is_none());
        }
    }
}
