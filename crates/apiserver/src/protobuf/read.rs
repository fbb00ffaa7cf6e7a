//! From protobuf to the JSON form: messages are read by the numbers of their fields.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::duration::Duration;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::messages::{self, Field, Form, Kind, Message, MessageId};
use crate::varint;

/// How deep messages may nest.
const MAX_DEPTH: usize = 100;

/// What the readers that upstream generates say of bytes that end too early.
const TOO_SHORT: &str = "unexpected EOF";

/// The value of a field as it is on the wire.
pub(super) enum Wire<'a> {
    Number(u64),
    /// Eight bytes, or four.
    Bits(u64, u8),
    Bytes(&'a [u8]),
    /// A form that no message has, by its number.
    Other(u8),
}

impl Wire<'_> {
    /// Skips it: unknown numbers are of newer clients.
    pub(super) fn skipped(&self) -> Result<(), String> {
        match self.form() {
            form if form < 6 => Ok(()),
            form => Err(format!("proto: illegal wireType {form}")),
        }
    }

    /// The number of its form.
    fn form(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Bits(_, form) | Self::Other(form) => *form,
            Self::Bytes(_) => 2,
        }
    }
}

/// Reads fields one by one.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// The next field: its number and value. `None` at the end, or when the bytes end in a field.
    pub(super) fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = varint::take(&mut self.0)?;
        let value = match tag & 7 {
            0 if tag >> 3 == 0 => Wire::Number(0),
            0 => Wire::Number(varint::take(&mut self.0)?),
            1 => Wire::Bits(u64::from_le_bytes(self.take(8)?.try_into().ok()?), 1),
            2 => Wire::Bytes(varint::take_bytes(&mut self.0)?),
            5 => Wire::Bits(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?)), 5),
            other => Wire::Other(other.to_le_bytes()[0]),
        };
        Some((tag >> 3, value))
    }

    /// The next field of a message of this type, which is there.
    pub(super) fn field_of(&mut self, go_name: &str) -> Result<(u64, Wire<'a>), String> {
        let (number, wire) = self.field().ok_or(TOO_SHORT)?;
        match (number, wire.form()) {
            (_, 4) => Err(format!("proto: {go_name}: wiretype end group for non-group")),
            (0, form) => Err(format!("proto: {go_name}: illegal tag 0 (wire type {form})")),
            _ => Ok((number, wire)),
        }
    }
}

/// The JSON form of a message.
pub(super) fn message(message: &Message, bytes: &[u8], depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("messages nest too deep".to_owned());
    }
    match message.form {
        Form::Fields => fields(message, bytes, depth).map(Value::Object),
        Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrTexts => {
            fields(message, bytes, depth).map(|fields| chosen(message.form, fields))
        }
        Form::Texts => Ok(texts(bytes)),
        Form::Map => {
            let map = message.field(1).map(|field| field.name).unwrap_or_default();
            fields(message, bytes, depth).map(|mut fields| fields.remove(map).unwrap_or_else(|| json!({})))
        }
        form => special(form, bytes),
    }
}

fn fields(message: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let (number, wire) = reader.field_of(message.go_name())?;
        match message.field(number) {
            Some(field) => read_field(field, wire, &mut object, depth)?,
            None => wire.skipped()?,
        }
    }
    Ok(object)
}

/// A field in a form that it has not.
fn of_other_form(field: &Field, form: u8) -> String {
    let name = match field.name {
        "metadata" => "ObjectMeta".to_owned(),
        "uid" => "UID".to_owned(),
        name => {
            let mut letters = name.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
    };
    format!("proto: wrong wireType = {form} for field {name}")
}

fn texts(bytes: &[u8]) -> Value {
    let mut list = Vec::new();
    let mut reader = Reader(bytes);
    while let Some((_, wire)) = reader.field() {
        if let Wire::Bytes(text) = wire {
            list.push(Value::from(String::from_utf8_lossy(text).into_owned()));
        }
    }
    Value::Array(list)
}

/// The alternative that a message holds: its schema, else the other.
fn chosen(form: Form, mut fields: Map<String, Value>) -> Value {
    let alternative = match form {
        Form::SchemaOrArray => "jSONSchemas",
        Form::SchemaOrTexts => "property",
        _ => "allows",
    };
    let schema = fields.remove("schema");
    match (form, schema) {
        (Form::SchemaOrBool, None) => fields.remove(alternative).unwrap_or(Value::Bool(false)),
        (Form::SchemaOrBool, Some(schema)) => schema,
        (_, schema) => fields.remove(alternative).or(schema).unwrap_or(Value::Null),
    }
}

fn inner(id: MessageId, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let found = messages::message(id).ok_or("a field's message is not known")?;
    message(found, bytes, depth + 1)
}

/// What Go keeps of a number that has more bits than its type.
fn lowest_bits(number: u64) -> i32 {
    ((number & u64::from(u32::MAX)) as u32).cast_signed()
}

fn read_field(field: &Field, wire: Wire<'_>, object: &mut Map<String, Value>, depth: usize) -> Result<(), String> {
    let form = wire.form();
    let value = match (field.kind, wire) {
        (Kind::String, Wire::Bytes(bytes)) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        (Kind::Bytes, Wire::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Kind::Bool, Wire::Number(number)) => Value::Bool(number != 0),
        (Kind::Int32, Wire::Number(number)) => json!(lowest_bits(number)),
        (Kind::Int64, Wire::Number(number)) => json!(number.cast_signed()),
        // Go writes whole numbers without a fraction
        (Kind::Double, Wire::Bits(bits, _)) => match f64::from_bits(bits) {
            whole if whole.fract() == 0.0 && whole.abs() < 9.0e15 => json!(whole as i64),
            number => json!(number),
        },
        (Kind::TextMap | Kind::BytesMap | Kind::BoolMap | Kind::MessageMap(_), Wire::Bytes(bytes)) => {
            let (key, value) = map_entry(field.kind, bytes, depth)?;
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            return Ok(());
        }
        (Kind::Message(id), Wire::Bytes(bytes)) => {
            let value = inner(id, bytes, depth)?;
            if field.inline {
                if let Value::Object(members) = value {
                    object.extend(members);
                }
                return Ok(());
            }
            value
        }
        _ => return Err(of_other_form(field, form)),
    };
    if field.repeated {
        let list = object.entry(field.name).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(value);
        }
        return Ok(());
    }
    let zero = match &value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
        _ => false,
    };
    // a message is there or not: a port 0, a schema `false` and a default `""` say something
    let may_be_empty = |id| messages::message(id).is_some_and(|own| matches!(own.form, Form::Json | Form::IntOrString));
    let is_empty_text = matches!(&value, Value::String(text) if text.is_empty());
    let says = matches!(field.kind, Kind::Message(id) if !is_empty_text || may_be_empty(id));
    if !zero || ((field.keep_zero || says) && !value.is_null()) {
        object.insert(field.name.to_owned(), value);
    }
    Ok(())
}

fn map_entry(kind: Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
    let mut key = String::new();
    let mut value = match kind {
        Kind::MessageMap(_) => json!({}),
        Kind::BoolMap => json!(false),
        _ => json!(""),
    };
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field() {
        match (number, kind, wire) {
            (1, _, Wire::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (_, Kind::BytesMap, Wire::Bytes(bytes)) => value = STANDARD.encode(bytes).into(),
            (_, Kind::MessageMap(id), Wire::Bytes(bytes)) => value = inner(id, bytes, depth)?,
            (_, Kind::TextMap, Wire::Bytes(bytes)) => value = String::from_utf8_lossy(bytes).into_owned().into(),
            (_, Kind::BoolMap, Wire::Number(number)) => value = (number != 0).into(),
            // as unknown fields
            _ => {}
        }
    }
    Ok((key, value))
}

/// Messages whose JSON form is no object of their fields.
fn special(form: Form, bytes: &[u8]) -> Result<Value, String> {
    let mut numbers = [0i64; 4];
    let mut text: &[u8] = &[];
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        match reader.field().ok_or(TOO_SHORT)? {
            (number, Wire::Number(value)) => {
                if let Some(slot) = usize::try_from(number).ok().and_then(|at| numbers.get_mut(at)) {
                    *slot = value.cast_signed();
                }
            }
            (_, Wire::Bytes(value)) => text = value,
            (_, Wire::Bits(..) | Wire::Other(_)) => {}
        }
    }
    let text_value = || Value::from(String::from_utf8_lossy(text).into_owned());
    let [_, first, second, _] = numbers;
    Ok(match form {
        Form::Time | Form::MicroTime if bytes.is_empty() => Value::Null,
        Form::Time => Timestamp::from_second(first)
            .map_err(|error| error.to_string())?
            .to_string()
            .into(),
        Form::MicroTime => {
            let time = Timestamp::new(first, i32::try_from(second).unwrap_or(0)).map_err(|error| error.to_string())?;
            format!("{time:.6}").into()
        }
        Form::Duration => Duration::from_nanos(first).to_string().into(),
        Form::IntOrString if first == 1 => text_value(),
        Form::IntOrString => json!(lowest_bits(second.cast_unsigned())),
        Form::Json if text.is_empty() => Value::Null,
        Form::Json => {
            serde_json::from_slice(text).map_err(|error| format!("raw JSON inside cannot be read: {error}"))?
        }
        _ => text_value(),
    })
}
