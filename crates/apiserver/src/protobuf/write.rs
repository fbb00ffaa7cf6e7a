//! From the JSON form to protobuf, member by member as they come: stored bytes are written without an object in between.
//!
//! The members of an inline message may stand anywhere in their JSON object. Each is written as a piece of its message; readers merge them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::duration::Duration;
use k8s_openapi::jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::messages::{self, Field, Form, Kind, Message, MessageId};
use crate::varint;

fn tag(out: &mut Vec<u8>, number: u64, wire_type: u64) {
    varint::put(out, number << 3 | wire_type);
}

pub(super) fn number(out: &mut Vec<u8>, field: u64, value: i64) {
    tag(out, field, 0);
    varint::put(out, value.cast_unsigned());
}

/// Writes a field of bytes.
pub(super) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    tag(out, field, 2);
    varint::put_bytes(out, value);
}

/// Writes a field whose content `write` makes.
pub(super) fn delimited<T, E>(
    out: &mut Vec<u8>,
    field: u64,
    write: impl FnOnce(&mut Vec<u8>) -> Result<T, E>,
) -> Result<T, E> {
    tag(out, field, 2);
    let start = out.len();
    let done = write(out)?;
    let mut length = Vec::with_capacity(5);
    varint::put(&mut length, (out.len() - start) as u64);
    out.splice(start..start, length);
    Ok(done)
}

/// Reads a message's JSON form and writes its fields.
pub(super) struct Fields<'o> {
    pub(super) message: &'static Message,
    pub(super) out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.message.form {
            // any JSON, in the bytes in which it is written
            Form::Json => {
                let raw: Box<RawValue> = serde::Deserialize::deserialize(deserializer)?;
                bytes(self.out, 1, raw.get().as_bytes());
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl Fields<'_> {
    fn unexpected<E: Error>(&self, found: &str) -> E {
        E::custom(format!("{found} where a {} should be", self.message.name))
    }

    /// The message of the schema in a choice of schema and something else.
    fn schema(&self) -> Option<MessageId> {
        let number = if self.message.form == Form::SchemaOrBool { 2 } else { 1 };
        match self.message.field(number)?.kind {
            Kind::Message(id) => Some(id),
            _ => None,
        }
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.message.form {
            Form::SchemaOrBool => {
                number(self.out, 1, i64::from(value));
                Ok(())
            }
            _ => Err(self.unexpected("a boolean")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.message.form {
            Form::IntOrString => {
                number(self.out, 1, 0);
                number(self.out, 2, value);
                bytes(self.out, 3, b"");
                Ok(())
            }
            Form::Quantity => {
                bytes(self.out, 1, value.to_string().as_bytes());
                Ok(())
            }
            Form::Duration => {
                number(self.out, 1, value);
                Ok(())
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(value.cast_signed())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.message.form {
            Form::Quantity => {
                bytes(self.out, 1, value.to_string().as_bytes());
                Ok(())
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.message.form {
            Form::Time | Form::MicroTime => {
                let time: Timestamp = value
                    .parse()
                    .map_err(|error| E::custom(format!("{value:?} is no time: {error}")))?;
                // Go rounds down, and gives nanoseconds forward from there
                let nanos = time.as_nanosecond().rem_euclid(1_000_000_000);
                let seconds = time.as_nanosecond().div_euclid(1_000_000_000);
                number(self.out, 1, i64::try_from(seconds).unwrap_or_default());
                let nanos = if self.message.form == Form::Time { 0 } else { nanos };
                number(self.out, 2, i64::try_from(nanos).unwrap_or_default());
            }
            Form::Duration => {
                let duration: Duration = value.parse().map_err(E::custom)?;
                number(self.out, 1, duration.as_nanos());
            }
            Form::IntOrString => {
                number(self.out, 1, 1);
                number(self.out, 2, 0);
                bytes(self.out, 3, value.as_bytes());
            }
            Form::Quantity => bytes(self.out, 1, value.as_bytes()),
            _ => return Err(self.unexpected("a text")),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match (self.message.form, self.schema()) {
            (Form::Texts, _) => {
                while let Some(text) = list.next_element::<std::borrow::Cow<'_, str>>()? {
                    bytes(self.out, 1, text.as_bytes());
                }
            }
            (Form::SchemaOrTexts, _) => {
                while let Some(text) = list.next_element::<std::borrow::Cow<'_, str>>()? {
                    bytes(self.out, 2, text.as_bytes());
                }
            }
            (Form::SchemaOrArray, Some(schema)) => {
                while list.next_element_seed(Nested::new(schema, 2, self.out))?.is_some() {}
            }
            _ => return Err(self.unexpected("a list")),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        match (self.message.form, self.schema()) {
            (Form::Fields, _) => {
                while let Some(member) = members.next_key_seed(MemberOf(self.message))? {
                    match member {
                        Some(member) => members.next_value_seed(MemberValue {
                            inlined_in: &member.inlined_in,
                            field: &member.field,
                            out: &mut *self.out,
                        })?,
                        None => {
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(())
            }
            (Form::Map, _) => {
                let message = self.message;
                let field = message.field(1).ok_or_else(|| self.unexpected("a map"))?;
                FieldValue { field, out: self.out }.visit_map(members)
            }
            (form @ (Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrTexts), Some(schema)) => {
                let at = if form == Form::SchemaOrBool {
                    number(self.out, 1, 1);
                    2
                } else {
                    1
                };
                let message = messages::message(schema).ok_or_else(|| A::Error::custom("no such message"))?;
                delimited(self.out, at, |out| Fields { message, out }.visit_map(members))
            }
            _ => Err(self.unexpected("an object")),
        }
    }
}

/// Finds the member with a name. `None`: the message does not have it.
struct MemberOf(&'static Message);

impl<'de> DeserializeSeed<'de> for MemberOf {
    type Value = Option<&'static messages::Member>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for MemberOf {
    type Value = Option<&'static messages::Member>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.member(name))
    }
}

/// Writes one member, wrapped into the inline fields that lead to it.
struct MemberValue<'f, 'o> {
    inlined_in: &'f [u64],
    field: &'f Field,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for MemberValue<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let field = self.field;
        match self.inlined_in.split_first() {
            Some((number, inlined_in)) => delimited(self.out, *number, |out| {
                MemberValue { inlined_in, field, out }.deserialize(deserializer)
            }),
            None => FieldValue { field, out: self.out }.deserialize(deserializer),
        }
    }
}

/// Writes one field: a value, a list or a map of them.
struct FieldValue<'f, 'o> {
    field: &'f Field,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.field.kind {
            Kind::Message(id) if !self.field.repeated => {
                Nested::new(id, self.field.number, self.out).deserialize(deserializer)
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl FieldValue<'_, '_> {
    fn unexpected<E: Error>(&self, found: &str) -> E {
        E::custom(format!(
            "{found} in the field {:?}, which has another type",
            self.field.name
        ))
    }
}

impl<'de> Visitor<'de> for FieldValue<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the value of {:?}", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.field.kind {
            Kind::Bool => {
                number(self.out, self.field.number, i64::from(value));
                Ok(())
            }
            _ => Err(self.unexpected("a boolean")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.field.kind {
            Kind::Int32 | Kind::Int64 => {
                number(self.out, self.field.number, value);
                Ok(())
            }
            Kind::Double => self.visit_f64(value as f64),
            _ => Err(self.unexpected("a number")),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(value.cast_signed())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.field.kind {
            Kind::Double => {
                tag(self.out, self.field.number, 1);
                self.out.extend_from_slice(&value.to_le_bytes());
                Ok(())
            }
            // whole numbers may be written as 1.0
            Kind::Int32 | Kind::Int64 if value.fract() == 0.0 => self.visit_i64(value as i64),
            _ => Err(self.unexpected("a fraction")),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.field.kind {
            Kind::String => bytes(self.out, self.field.number, value.as_bytes()),
            Kind::Bytes => bytes(self.out, self.field.number, &decoded(value)?),
            _ => return Err(self.unexpected("a text")),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.field.repeated {
            return Err(self.unexpected("a list"));
        }
        match self.field.kind {
            Kind::Message(id) => {
                while list
                    .next_element_seed(Element(Nested::new(id, self.field.number, &mut *self.out)))?
                    .is_some()
                {}
            }
            _ => {
                let field = self.field;
                while list
                    .next_element_seed(FieldValue {
                        field,
                        out: &mut *self.out,
                    })?
                    .is_some()
                {}
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let field = self.field.number;
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            delimited(self.out, field, |out| {
                bytes(out, 1, key.as_bytes());
                match self.field.kind {
                    Kind::MessageMap(id) => map.next_value_seed(Element(Nested::new(id, 2, out))),
                    Kind::TextMap => {
                        let text: Option<std::borrow::Cow<'_, str>> = map.next_value()?;
                        bytes(out, 2, text.unwrap_or_default().as_bytes());
                        Ok(())
                    }
                    Kind::BytesMap => {
                        let text: Option<std::borrow::Cow<'_, str>> = map.next_value()?;
                        bytes(out, 2, &decoded(&text.unwrap_or_default())?);
                        Ok(())
                    }
                    Kind::BoolMap => {
                        let flag: Option<bool> = map.next_value()?;
                        number(out, 2, i64::from(flag.unwrap_or_default()));
                        Ok(())
                    }
                    _ => Err(A::Error::custom(format!(
                        "an object in the field {:?}, which has another type",
                        self.field.name
                    ))),
                }
            })?;
        }
        Ok(())
    }
}

fn decoded<E: Error>(text: &str) -> Result<Vec<u8>, E> {
    STANDARD
        .decode(text)
        .map_err(|error| E::custom(format!("a value is no base64: {error}")))
}

/// Writes a message as a field of another. Nothing is written for `null`.
struct Nested<'o> {
    message: MessageId,
    number: u64,
    out: &'o mut Vec<u8>,
}

impl<'o> Nested<'o> {
    fn new(message: MessageId, number: u64, out: &'o mut Vec<u8>) -> Self {
        Self { message, number, out }
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let start = self.out.len();
        let message = messages::message(self.message).ok_or_else(|| D::Error::custom("no such message"))?;
        let null = deserializer.deserialize_option(Present {
            message,
            number: self.number,
            out: &mut *self.out,
        })?;
        if null {
            self.out.truncate(start);
        }
        Ok(())
    }
}

/// Tells `null` from a message. The value is whether it was `null`.
struct Present<'o> {
    message: &'static Message,
    number: u64,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Present<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message.name)
    }

    fn visit_none<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        let message = self.message;
        delimited(self.out, self.number, |out| {
            Fields { message, out }.deserialize(deserializer)
        })?;
        Ok(false)
    }
}

/// An element of a list or map, which is there even when it is `null`.
struct Element<'o>(Nested<'o>);

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let message = messages::message(self.0.message).ok_or_else(|| D::Error::custom("no such message"))?;
        delimited(self.0.out, self.0.number, |out| {
            Fields { message, out }.deserialize(deserializer)
        })
    }
}
