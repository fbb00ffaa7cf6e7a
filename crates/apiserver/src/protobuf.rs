//! Reads bodies in Kubernetes' protobuf form, which typed clients send for built-in kinds: one decoder, driven by a table of field numbers.
//!
//! The table is recorded; a fourth entry of a field tells scalars that are pointers (`ptr`) or always written (`req`) in Go. All other scalars are
//! left out when they are zero, as Go's JSON form leaves them out. Answers are JSON: every client that sends protobuf accepts it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::duration::Duration;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The content type.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every body begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may nest.
const MAX_DEPTH: usize = 100;

#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedField {
    Plain(u64, String, String),
    Marked(u64, String, String, String),
}

struct Field {
    name: String,
    kind: Kind,
    repeated: bool,
    inline: bool,
    keep_zero: bool,
}

enum Kind {
    String,
    Bytes,
    Bool,
    Integer,
    Double,
    TextMap,
    BytesMap,
    MessageMap(String),
    Message(String),
}

type Messages = BTreeMap<String, BTreeMap<u64, Field>>;

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let recorded: BTreeMap<String, Vec<RecordedField>> =
        serde_json::from_str(include_str!("../recorded/protobuf.json")).unwrap_or_default();
    recorded
        .into_iter()
        .map(|(name, fields)| (name, fields.into_iter().map(field).collect()))
        .collect()
});

fn field(recorded: RecordedField) -> (u64, Field) {
    let (number, name, kind, mark) = match recorded {
        RecordedField::Plain(number, name, kind) => (number, name, kind, String::new()),
        RecordedField::Marked(number, name, kind, mark) => (number, name, kind, mark),
    };
    let kind = match kind.as_str() {
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int32" | "int64" => Kind::Integer,
        "double" => Kind::Double,
        "map<string,string>" => Kind::TextMap,
        "map<string,bytes>" => Kind::BytesMap,
        other => match other
            .strip_prefix("map<string,")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            Some(message) => Kind::MessageMap(message.to_owned()),
            None => Kind::Message(other.to_owned()),
        },
    };
    let keep_zero = matches!(mark.as_str(), "ptr" | "req");
    (
        number,
        Field {
            name,
            kind,
            repeated: mark == "repeated",
            inline: mark == "inline",
            keep_zero,
        },
    )
}

enum Wire<'a> {
    Number(u64),
    Bits(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// The next field: its number and value. `None` at the end or when the bytes are no protobuf.
    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bits(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Bits(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

fn malformed(what: &str) -> ApiError {
    ApiError::bad_request(format!("the body is no valid {CONTENT_TYPE}: {what}"))
}

/// The message of a group, version and kind, e.g. `k8s.io.api.apps.v1.Deployment`.
fn message_name(api_version: &str, kind: &str) -> Option<&'static str> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let package = match group {
        "" => "core".to_owned(),
        "apiextensions.k8s.io" => "apiextensions".to_owned(),
        other => other.split('.').next().unwrap_or(other).to_owned(),
    };
    let mut candidates = vec![format!("k8s.io.api.{package}.{version}.{kind}")];
    candidates.push(format!(
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.{kind}"
    ));
    candidates.push(format!(
        "k8s.io.kube_aggregator.pkg.apis.apiregistration.{version}.{kind}"
    ));
    candidates.push(format!("k8s.io.apimachinery.pkg.apis.meta.v1.{kind}"));
    candidates
        .iter()
        .find_map(|name| MESSAGES.get_key_value(name).map(|(name, _)| name.as_str()))
}

/// Reads a body into the JSON form of its object.
///
/// # Errors
/// 400 when the bytes are no such body, 415 for kinds that have no protobuf form.
pub fn decode(bytes: &[u8]) -> Result<Value, ApiError> {
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| malformed("it does not begin with \"k8s\\0\""))?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader(rest);
    while !reader.0.is_empty() {
        let (number, value) = reader
            .field()
            .ok_or_else(|| malformed("its envelope ends in the middle of a field"))?;
        match (number, value) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some((number, value)) = meta.field() {
                    if let Wire::Bytes(text) = value {
                        let text = String::from_utf8_lossy(text).into_owned();
                        if number == 1 { api_version = text } else { kind = text }
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = message_name(&api_version, &kind)
        .ok_or_else(|| ApiError::unsupported_media_type(&["application/json", "application/yaml"]))?;
    let mut object = message(name, raw, 0)?;
    if let Value::Object(members) = &mut object
        && (kind != "DeleteOptions" || !api_version.is_empty())
    {
        members.insert("apiVersion".into(), api_version.into());
        members.insert("kind".into(), kind.into());
    }
    Ok(object)
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, ApiError> {
    if depth > MAX_DEPTH {
        return Err(malformed("messages nest too deep"));
    }
    if let Some(special) = special(name, bytes)? {
        return Ok(special);
    }
    let fields = MESSAGES
        .get(name)
        .ok_or_else(|| malformed(&format!("no message is called {name}")))?;
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let (number, wire) = reader
            .field()
            .ok_or_else(|| malformed(&format!("message {name} ends in the middle of a field")))?;
        // unknown numbers are of newer clients
        let Some(field) = fields.get(&number) else { continue };
        read_field(field, wire, &mut object, depth)?;
    }
    Ok(Value::Object(object))
}

fn read_field(field: &Field, wire: Wire<'_>, object: &mut Map<String, Value>, depth: usize) -> Result<(), ApiError> {
    let wrong = || malformed(&format!("field {:?} has another type", field.name));
    let value = match (&field.kind, wire) {
        (Kind::String, Wire::Bytes(bytes)) => {
            Value::String(std::str::from_utf8(bytes).map_err(|_| wrong())?.to_owned())
        }
        (Kind::Bytes, Wire::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Kind::Bool, Wire::Number(number)) => Value::Bool(number != 0),
        (Kind::Integer, Wire::Number(number)) => json!(number.cast_signed()),
        (Kind::Double, Wire::Bits(bits)) => json!(f64::from_bits(bits)),
        (Kind::TextMap | Kind::BytesMap | Kind::MessageMap(_), Wire::Bytes(bytes)) => {
            let (key, value) = map_entry(&field.kind, bytes, depth)?;
            let map = object.entry(field.name.clone()).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            return Ok(());
        }
        (Kind::Message(name), Wire::Bytes(bytes)) => {
            let value = message(name, bytes, depth + 1)?;
            if field.inline {
                if let Value::Object(members) = value {
                    object.extend(members);
                }
                return Ok(());
            }
            value
        }
        _ => return Err(wrong()),
    };
    if field.repeated {
        let list = object.entry(field.name.clone()).or_insert_with(|| json!([]));
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
    if !zero || (field.keep_zero && !value.is_null()) {
        object.insert(field.name.clone(), value);
    }
    Ok(())
}

fn map_entry(kind: &Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), ApiError> {
    let mut key = String::new();
    let mut value = match kind {
        Kind::MessageMap(_) => json!({}),
        _ => json!(""),
    };
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field() {
        let Wire::Bytes(bytes) = wire else {
            return Err(malformed("a map's entry has another type"));
        };
        match (number, kind) {
            (1, _) => key = String::from_utf8_lossy(bytes).into_owned(),
            (_, Kind::BytesMap) => value = STANDARD.encode(bytes).into(),
            (_, Kind::MessageMap(name)) => value = message(name, bytes, depth + 1)?,
            _ => value = String::from_utf8_lossy(bytes).into_owned().into(),
        }
    }
    Ok((key, value))
}

/// Messages whose JSON form is no object of their fields.
fn special(name: &str, bytes: &[u8]) -> Result<Option<Value>, ApiError> {
    let short = name.rsplit('.').next().unwrap_or(name);
    let numbers = || {
        let mut found = [0i64; 4];
        let mut text = String::new();
        let mut reader = Reader(bytes);
        while let Some((number, wire)) = reader.field() {
            match wire {
                Wire::Number(value) => {
                    if let Some(slot) = usize::try_from(number).ok().and_then(|at| found.get_mut(at)) {
                        *slot = value.cast_signed();
                    }
                }
                Wire::Bytes(value) => text = String::from_utf8_lossy(value).into_owned(),
                Wire::Bits(_) => {}
            }
        }
        (found, text)
    };
    let raw_json = || {
        let mut reader = Reader(bytes);
        let mut value = Value::Null;
        while let Some((_, wire)) = reader.field() {
            if let Wire::Bytes(raw) = wire {
                value = serde_json::from_slice(raw)
                    .map_err(|error| malformed(&format!("raw JSON inside cannot be read: {error}")))?;
            }
        }
        Ok::<_, ApiError>(value)
    };
    let value = match (
        short,
        name.starts_with("k8s.io.apimachinery") || name.contains("apiextensions"),
    ) {
        ("Time", true) if bytes.is_empty() => Value::Null,
        ("Time", true) => {
            let ([_, seconds, ..], _) = numbers();
            Timestamp::from_second(seconds)
                .map_err(|error| malformed(&error.to_string()))?
                .to_string()
                .into()
        }
        ("MicroTime", true) if bytes.is_empty() => Value::Null,
        ("MicroTime", true) => {
            let ([_, seconds, nanos, _], _) = numbers();
            let time = Timestamp::new(seconds, i32::try_from(nanos).unwrap_or(0))
                .map_err(|error| malformed(&error.to_string()))?;
            format!("{time:.6}").into()
        }
        ("Duration", true) => Duration::from_nanos(numbers().0[1]).to_string().into(),
        ("Quantity", true) => numbers().1.into(),
        ("IntOrString", true) => {
            let ([_, kind, number, _], text) = numbers();
            if kind == 1 { text.into() } else { json!(number) }
        }
        ("FieldsV1" | "RawExtension" | "JSON", true) => raw_json()?,
        ("ExtraValue" | "Verbs", _) => {
            let mut list = Vec::new();
            let mut reader = Reader(bytes);
            while let Some((_, wire)) = reader.field() {
                if let Wire::Bytes(text) = wire {
                    list.push(Value::from(String::from_utf8_lossy(text).into_owned()));
                }
            }
            Value::Array(list)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![
            u8::try_from(number << 3 | 2).unwrap(),
            u8::try_from(bytes.len()).unwrap(),
        ];
        out.extend_from_slice(bytes);
        out
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn objects_are_read_as_their_json_form() {
        let metadata = [
            field(1, b"web"),
            field(5, b""),
            field(8, b""),
            field(11, &[field(1, b"app"), field(2, b"web")].concat()),
        ]
        .concat();
        let spec = [vec![8, 0], vec![40, 0], field(4, &field(1, b"Recreate"))].concat();
        let raw = [field(1, &metadata), field(2, &spec)].concat();
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &raw)).unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 0, "strategy": {"type": "Recreate"}}})
        );
    }

    #[test]
    fn damaged_bodies_are_refused() {
        assert_eq!(decode(b"{}").unwrap_err().code(), 400);
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &[10, 200])).unwrap_err().code(),
            400
        );
        assert_eq!(decode(&body("example.com/v1", "Thing", &[])).unwrap_err().code(), 415);
    }
}
