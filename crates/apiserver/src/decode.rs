//! Reads request bodies: JSON and YAML into JSON values, with the duplicate fields that strict validation reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use gardener_apimachinery::{ApiError, go_json};
use gardener_schema::{Order, Schema};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::registry::FieldValidation;
use crate::yaml;

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
    /// What is known of the body besides.
    pub source: Source,
}

impl From<Value> for Decoded {
    /// A value that no body tells more of.
    fn from(value: Value) -> Self {
        Self {
            value,
            source: Source::default(),
        }
    }
}

/// What the value does not tell of the body it comes from.
#[derive(Debug, Default)]
pub struct Source {
    /// Paths of fields that were given twice.
    duplicates: Vec<String>,
    /// What a strict reader says of keys that were given twice in YAML.
    repeated: Vec<String>,
    /// What was found in what made the body.
    found: Vec<String>,
    /// Whether a whole number is written like `2.0`.
    whole_floats: bool,
    /// Whether the object was merged, not read: then it has nulls that reading drops.
    merged: bool,
    body: Bytes,
    format: Option<Format>,
    /// Whether the members of the object stand as in the body.
    ordered: bool,
}

/// Paths of unknown fields, by when they are found.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// With those given twice, in the order of the body.
    OnTheWay(Vec<String>),
    /// When the body was read, in this order.
    Afterwards(Vec<String>),
}

impl Unknown {
    fn is_empty(&self) -> bool {
        let (Self::OnTheWay(paths) | Self::Afterwards(paths)) = self;
        paths.is_empty()
    }
}

impl Source {
    /// Tells of unknown fields, and of those given twice, as the client wants to know of them.
    ///
    /// # Errors
    /// What strict decoding says.
    pub(crate) fn judge(
        &self,
        unknown: Unknown,
        validation: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        if unknown.is_empty() && !self.has_findings() {
            return Ok(());
        }
        match validation {
            FieldValidation::Strict => return Err(format!("strict decoding error: {}", self.refusal(unknown))),
            FieldValidation::Warn => warnings.extend(self.findings(unknown)),
            FieldValidation::Ignore => {}
        }
        Ok(())
    }

    /// Whether a value of a Go type decodes, and what is to be said of fields that the type does not have.
    ///
    /// # Errors
    /// What does not fit, or what the client does not want to be ignored.
    pub(crate) fn judge_decoded(
        &self,
        schema: &Schema,
        (value, kind): (&Value, &str),
        validation: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        schema.decode(value, kind).map_err(|why| why.to_string())?;
        let unknown = match validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Strict | FieldValidation::Warn => schema.unknown_fields(value),
        };
        self.judge(Unknown::OnTheWay(unknown), validation, warnings)
    }

    /// The body as it was sent, and as JSON; of what was not sent, `value` as JSON.
    pub(crate) fn told<'s>(&'s self, value: &Value) -> (Cow<'s, [u8]>, Cow<'s, [u8]>) {
        let json = || Cow::Owned(value.to_string().into_bytes());
        match self.format {
            Some(Format::Json) => (Cow::Borrowed(&self.body), Cow::Borrowed(&self.body)),
            Some(Format::Yaml) => (Cow::Borrowed(&self.body), json()),
            None => (json(), json()),
        }
    }

    /// The source of an object that was merged of an applied configuration and what was there.
    pub(crate) fn merged() -> Self {
        Self {
            merged: true,
            ..Self::default()
        }
    }

    /// Whether the object was merged, not read.
    pub(crate) fn is_merged(&self) -> bool {
        self.merged
    }

    /// The source of a body that was made by something, which has this source, and in which this was found.
    pub(crate) fn telling(found: Vec<String>, made_by: &Self) -> Self {
        Self {
            found,
            whole_floats: made_by.whole_floats,
            ..Self::default()
        }
    }

    /// Whether there is something to tell, such as a field that was given twice.
    pub(crate) fn has_findings(&self) -> bool {
        !self.duplicates.is_empty() || !self.repeated.is_empty() || !self.found.is_empty()
    }

    /// What is told of a body that is made part of something else, whose members have an order of their own.
    pub(crate) fn forget_order(&mut self) {
        self.ordered = false;
    }

    /// The order of the body's members, where it has one.
    pub(crate) fn order(&self) -> Option<Order> {
        let is_told = self.ordered && self.format == Some(Format::Json);
        is_told.then(|| Order::of(&self.body)).flatten()
    }

    /// What a strict reader says of keys that were given twice in YAML.
    pub(crate) fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// What strict decoding finds, in one text.
    pub(crate) fn refusal(&self, unknown: Unknown) -> String {
        let mut found = self.findings(unknown);
        if !self.repeated.is_empty() {
            found.splice(..self.repeated.len(), [yaml::refused(&self.repeated)]);
        }
        found.join(", ")
    }

    /// Whether a whole number is written like `2.0`, or has more than 64 bits: a number that is none of Go's integers.
    pub(crate) fn has_whole_floats(&self) -> bool {
        self.whole_floats
    }

    /// What strict decoding finds: these unknown fields and those given twice.
    pub(crate) fn findings(&self, unknown: Unknown) -> Vec<String> {
        let mut found = [self.repeated.as_slice(), &self.found].concat();
        let (unknown, behind) = match unknown {
            Unknown::OnTheWay(paths) => (paths, Vec::new()),
            Unknown::Afterwards(paths) => (Vec::new(), paths),
        };
        let mut unknown: BTreeSet<String> = unknown.into_iter().collect();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        // a type skips what it does not know without looking into it; a patch is looked at before it is known what it makes
        let is_seen = |path: &&String| !self.ordered || !is_under(path, &unknown);
        let duplicates: Vec<&String> = self.duplicates.iter().filter(is_seen).collect();
        // a patch is read on its own, and then what it makes, with its members sorted
        if self.ordered && duplicates.len() + unknown.len() > 1 {
            for path in self.paths() {
                if unknown.remove(&path) {
                    found.push(format!("unknown field \"{path}\""));
                }
                if duplicates.contains(&&path) && !seen.insert(path.clone()) {
                    found.push(format!("duplicate field \"{path}\""));
                }
            }
        } else {
            found.extend(duplicates.iter().map(|path| format!("duplicate field \"{path}\"")));
        }
        let unknown = unknown.into_iter().chain(behind);
        found.extend(unknown.map(|path| format!("unknown field \"{path}\"")));
        found
    }

    /// The paths of all fields in the order of the body.
    fn paths(&self) -> Vec<String> {
        let mut notes = Notes {
            paths: Some(Vec::new()),
            ..Notes::default()
        };
        let seed = Node {
            notes: &mut notes,
            place: Place::ROOT,
        };
        match self.format {
            Some(Format::Json) => drop(seed.deserialize(&mut serde_json::Deserializer::from_slice(&self.body))),
            // a value from YAML has its members in the order of their names already
            Some(Format::Yaml) | None => {}
        }
        notes.paths.unwrap_or_default()
    }
}

/// Reads a body.
///
/// # Errors
/// 400 with what is wrong, in Go's words.
pub fn decode(body: &Bytes, format: Format) -> Result<Decoded, ApiError> {
    match format {
        Format::Json => {
            let mut notes = Notes::default();
            let value = read_json(body, &mut notes).map_err(|error| {
                let why = go_json::syntax_error(body).unwrap_or_else(|| error.to_string());
                ApiError::bad_request(why)
            })?;
            Ok(Decoded {
                value,
                source: notes.of(body, format),
            })
        }
        Format::Yaml => decode_yaml(body),
    }
}

/// Reads an object with these members of a JSON body. None, where one cannot be read.
pub(crate) fn members(body: &Bytes, members: &BTreeMap<String, Bytes>) -> Option<Decoded> {
    let mut notes = Notes::default();
    let mut read = Map::new();
    for (name, bytes) in members {
        let place = Place::ROOT.then(Step::Field(name));
        let value = read_from(serde_json::Deserializer::from_slice(bytes), place, &mut notes).ok()?;
        read.insert(name.clone(), value);
    }
    Some(Decoded {
        value: Value::Object(read),
        source: notes.of(body, Format::Json),
    })
}

fn read_json(body: &[u8], notes: &mut Notes) -> serde_json::Result<Value> {
    // whether it is text is asked once, and not of each text in it
    match std::str::from_utf8(body) {
        Ok(text) => read_from(serde_json::Deserializer::from_str(text), Place::ROOT, notes),
        // why it is none is told where it stands
        Err(_) => read_from(serde_json::Deserializer::from_slice(body), Place::ROOT, notes),
    }
}

fn read_from<'b>(
    mut deserializer: serde_json::Deserializer<impl serde_json::de::Read<'b>>,
    place: Place<'_>,
    notes: &mut Notes,
) -> serde_json::Result<Value> {
    let seed = Node { notes, place };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

fn decode_yaml(body: &Bytes) -> Result<Decoded, ApiError> {
    // most of what comes as YAML is JSON, which is read faster; what of it means something else in YAML is read as YAML
    let mut notes = Notes::default();
    let json = match body.first() {
        Some(b'{') => read_json(body, &mut notes).ok(),
        _ => None,
    };
    let (value, repeated) = match json.filter(|_| notes.duplicates.is_empty() && !notes.whole_floats) {
        Some(value) => (value, Vec::new()),
        None => {
            let text =
                std::str::from_utf8(body).map_err(|_| ApiError::bad_request("yaml: invalid leading UTF-8 octet"))?;
            let document = yaml::read(text).map_err(ApiError::bad_request)?;
            (document.value, document.repeated)
        }
    };
    Ok(Decoded {
        value,
        source: Source {
            repeated,
            body: body.clone(),
            format: Some(Format::Yaml),
            ..Source::default()
        },
    })
}

/// The start of a body, as messages show it.
pub(crate) fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (head, rest) = body.split_at(body.len().min(SHOWN));
    let mut shown = match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if !rest.is_empty() {
        shown.push_str(" ...");
    }
    shown
}

/// What is found out about a body on the way.
#[derive(Default)]
struct Notes {
    duplicates: Vec<String>,
    whole_floats: bool,
    /// All fields in their order, where asked for.
    paths: Option<Vec<String>>,
}

impl Notes {
    fn of(self, body: &Bytes, format: Format) -> Source {
        Source {
            duplicates: self.duplicates,
            whole_floats: self.whole_floats,
            body: body.clone(),
            format: Some(format),
            ordered: true,
            ..Source::default()
        }
    }
}

/// Where a node stands. Most bodies have nothing to tell of any, so that its path is written only when it is told.
#[derive(Clone, Copy)]
struct Place<'p> {
    step: Step<'p>,
    above: Option<&'p Self>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Item(usize),
}

impl Place<'_> {
    const ROOT: Self = Self {
        step: Step::Root,
        above: None,
        depth: 0,
    };

    /// The place one step further down.
    fn then<'p>(&'p self, step: Step<'p>) -> Place<'p> {
        Place {
            step,
            above: Some(self),
            depth: self.depth + 1,
        }
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        match self.depth > MAX_DEPTH {
            true => Err(E::custom("exceeded max depth")),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(above) = self.above else { return Ok(()) };
        above.fmt(formatter)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if above.above.is_none() => formatter.write_str(name),
            Step::Field(name) => write!(formatter, ".{name}"),
            Step::Item(number) => write!(formatter, "[{number}]"),
        }
    }
}

struct Node<'a> {
    notes: &'a mut Notes,
    place: Place<'a>,
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
        self.notes.whole_floats |= i64::try_from(value).is_err();
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        self.notes.whole_floats |= value.fract() == 0.0;
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
        self.place.check_depth()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Node {
            notes: &mut *self.notes,
            place: self.place.then(Step::Item(items.len())),
        })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.place.check_depth()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let place = self.place.then(Step::Field(&key));
            if let Some(paths) = &mut self.notes.paths {
                paths.push(place.to_string());
            }
            let value = access.next_value_seed(Node {
                notes: &mut *self.notes,
                place,
            })?;
            match map.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(mut first) => {
                    let place = self.place.then(Step::Field(first.key()));
                    self.notes.duplicates.push(place.to_string());
                    first.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

/// Whether a path is one of these, or leads through one.
fn is_under(path: &str, of: &BTreeSet<String>) -> bool {
    let ends = path.char_indices().filter(|(_, letter)| matches!(letter, '.' | '['));
    let mut parents = ends.filter_map(|(end, _)| path.get(..end));
    of.contains(path) || parents.any(|parent| of.contains(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_told_and_the_last_wins() {
        let body = Bytes::from_static(br#"{"z":0,"a":1,"b":{"c":1,"c":2},"a":3}"#);
        let decoded = decode(&body, Format::Json).unwrap();
        assert_eq!(decoded.value, serde_json::json!({"a": 3, "b": {"c": 2}, "z": 0}));
        assert_eq!(
            decoded
                .source
                .findings(Unknown::OnTheWay(vec!["b".to_owned(), "z".to_owned()])),
            ["unknown field \"z\"", "unknown field \"b\"", "duplicate field \"a\""]
        );
        let afterwards = Unknown::Afterwards(vec!["z".to_owned(), "b".to_owned()]);
        let found = decoded.source.findings(afterwards).join(", ");
        let expected = "duplicate field \"b.c\", duplicate field \"a\", unknown field \"z\", unknown field \"b\"";
        assert_eq!(found, expected);
    }

    #[test]
    fn depth_and_truncation_are_refused() {
        let deep = "[".repeat(100_000);
        assert!(decode(&Bytes::from(deep), Format::Json).is_err());
        let error = decode(&Bytes::from_static(br#"{"apiVersion": "v1","#), Format::Json).unwrap_err();
        assert_eq!(error.message(), "unexpected end of JSON input");
    }

    #[test]
    fn bodies_are_shown_by_their_start() {
        for (body, expected) in [
            ("", "<empty>"),
            ("[1]", "5b315d"),
            ("{\"a\":1}", "{\"a\":1}"),
            (
                "{\"apiVersion\": \"core.gardener.cloud\"}",
                "{\"apiVersion\": \"core.gardener. ...",
            ),
        ] {
            assert_eq!(summary(body.as_bytes()), expected);
        }
    }

    #[test]
    fn yaml_is_read() {
        assert_eq!(
            decode(&Bytes::from_static(b"a: 1\nb: [x, '2']\n"), Format::Yaml)
                .unwrap()
                .value,
            serde_json::json!({"a": 1, "b": ["x", "2"]})
        );
    }
}
