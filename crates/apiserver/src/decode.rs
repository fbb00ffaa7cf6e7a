//! Reads request bodies: JSON and YAML into JSON values, with the duplicate fields that strict validation reports.

use std::fmt;

use gardener_apimachinery::ApiError;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep objects and lists may nest; more is refused before it can exhaust the stack.
const MAX_DEPTH: usize = 120;

/// The body formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// A body, read.
#[derive(Debug)]
pub struct Decoded {
    /// The value; of a field given twice, the last.
    pub value: Value,
    /// Paths of fields that were given twice.
    pub duplicates: Vec<String>,
}

/// Reads a body.
///
/// # Errors
/// 400 with the parser's message.
pub fn decode(bytes: &[u8], format: Format) -> Result<Decoded, ApiError> {
    let mut duplicates = Vec::new();
    let seed = Node {
        duplicates: &mut duplicates,
        path: String::new(),
        depth: 0,
    };
    let value = match format {
        Format::Json => {
            let mut deserializer = serde_json::Deserializer::from_slice(bytes);
            let value = seed
                .deserialize(&mut deserializer)
                .map_err(|error| ApiError::bad_request(json_message(&error, bytes)))?;
            deserializer
                .end()
                .map_err(|error| ApiError::bad_request(json_message(&error, bytes)))?;
            value
        }
        Format::Yaml => {
            let text = std::str::from_utf8(bytes)
                .map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: {error}")))?;
            serde_saphyr::from_str::<Value>(text)
                .map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: yaml: {error}")))?
        }
    };
    Ok(Decoded { value, duplicates })
}

fn json_message(error: &serde_json::Error, bytes: &[u8]) -> String {
    let why = if error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        error.to_string()
    };
    format!(
        "couldn't get version/kind; json parse error: {why} ({})",
        summary(bytes)
    )
}

/// How a body that cannot be read begins: text if it may be JSON, else its bytes in hexadecimal digits.
pub(crate) fn summary(bytes: &[u8]) -> String {
    const LENGTH: usize = 30;
    let head = bytes.get(..LENGTH).unwrap_or(bytes);
    let shown = match bytes.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    match bytes.len() > LENGTH {
        true => format!("{shown} ..."),
        false => shown,
    }
}

struct Node<'a> {
    duplicates: &'a mut Vec<String>,
    path: String,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // a float that is a whole number is an integer to Kubernetes
        if value.fract() == 0.0 && value.abs() < 9.0e15 {
            return Ok(Value::Number((value as i64).into()));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        if self.depth > MAX_DEPTH {
            return Err(serde::de::Error::custom("exceeded max depth"));
        }
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Node {
            duplicates: self.duplicates,
            path: format!("{}[{}]", self.path, items.len()),
            depth: self.depth + 1,
        })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        if self.depth > MAX_DEPTH {
            return Err(serde::de::Error::custom("exceeded max depth"));
        }
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            let value = access.next_value_seed(Node {
                duplicates: self.duplicates,
                path: path.clone(),
                depth: self.depth + 1,
            })?;
            if map.insert(key, value).is_some() {
                self.duplicates.push(path);
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_told_and_the_last_wins() {
        let decoded = decode(br#"{"a":1,"b":{"c":1,"c":2},"a":3}"#, Format::Json).unwrap();
        assert_eq!(decoded.value, serde_json::json!({"a": 3, "b": {"c": 2}}));
        assert_eq!(decoded.duplicates, ["b.c", "a"]);
    }

    #[test]
    fn depth_and_truncation_are_refused() {
        let deep = "[".repeat(100_000);
        assert!(decode(deep.as_bytes(), Format::Json).is_err());
        let error = decode(br#"{"apiVersion": "core.gardener.cloud/v1beta1","#, Format::Json).unwrap_err();
        assert_eq!(
            error.message(),
            r#"couldn't get version/kind; json parse error: unexpected end of JSON input ({"apiVersion": "core.gardener. ...)"#
        );
    }

    #[test]
    fn yaml_is_read() {
        assert_eq!(
            decode(b"a: 1\nb: [x, '2']\n", Format::Yaml).unwrap().value,
            serde_json::json!({"a": 1, "b": ["x", "2"]})
        );
    }
}
