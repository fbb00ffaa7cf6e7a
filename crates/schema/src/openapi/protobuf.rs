//! The protobuf forms of OpenAPI documents, which kubectl reads: [`v2`] and [`v3`], after gnostic's `OpenAPIv2.proto` and `OpenAPIv3.proto`.
//!
//! Written only; each function there is one message of those files, each number a field's. What has no field (`x-…`) is a vendor
//! extension: a name and its value as YAML, for which JSON serves.

pub mod v2;
pub mod v3;

use serde_json::{Map, Value};

/// Fields of one message in wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn bytes(mut self, number: u64, bytes: &[u8]) -> Self {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, number: u64, message: Self) -> Self {
        self.bytes(number, &message.0)
    }

    fn messages(self, number: u64, messages: impl IntoIterator<Item = Self>) -> Self {
        messages
            .into_iter()
            .fold(self, |whole, message| whole.message(number, message))
    }

    /// A message that is absent when the value is.
    fn optional(self, number: u64, value: Option<&Value>, form: impl Fn(&Value) -> Self) -> Self {
        match value {
            Some(value) => self.message(number, form(value)),
            None => self,
        }
    }

    fn text(self, number: u64, value: Option<&Value>) -> Self {
        match value.and_then(Value::as_str) {
            Some(text) => self.bytes(number, text.as_bytes()),
            None => self,
        }
    }

    /// Elements of a list, or a text that stands for a list of one.
    fn texts(self, number: u64, value: Option<&Value>) -> Self {
        match value {
            Some(Value::Array(list)) => list.iter().fold(self, |whole, text| whole.text(number, Some(text))),
            other => self.text(number, other),
        }
    }

    fn flag(mut self, number: u64, value: Option<&Value>) -> Self {
        if value == Some(&Value::Bool(true)) {
            self.varint(number << 3);
            self.varint(1);
        }
        self
    }

    /// A flag that is one of several things that there may be: told if it is false, too.
    fn member_flag(mut self, number: u64, value: &Value) -> Self {
        self.varint(number << 3);
        self.varint(u64::from(value == &Value::Bool(true)));
        self
    }

    fn integer(mut self, number: u64, value: Option<&Value>) -> Self {
        if let Some(value) = value.and_then(Value::as_i64) {
            self.varint(number << 3);
            self.varint(value.cast_unsigned());
        }
        self
    }

    fn double(mut self, number: u64, value: Option<&Value>) -> Self {
        if let Some(value) = value.and_then(Value::as_f64) {
            self.varint(number << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
        self
    }

    /// `x-…` members, as `NamedAny`.
    fn extensions(self, number: u64, value: &Value) -> Self {
        let extensions = members(value).filter(|(name, _)| name.starts_with("x-"));
        self.messages(number, extensions.map(|(name, value)| named(name, any(value))))
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn elements(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// All of `NamedAny`, `NamedSchema`, `NamedPathItem`, and so on.
fn named(name: &str, value: Message) -> Message {
    Message::default().bytes(1, name.as_bytes()).message(2, value)
}

/// `Any`.
fn any(value: &Value) -> Message {
    Message::default().bytes(2, value.to_string().as_bytes())
}
