//! Tables: what `kubectl get` prints. Columns and cells come from a kind's strategy or a custom resource's JSON paths.

use bytes::{BufMut, BytesMut};
use gardener_apimachinery::ApiError;
use gardener_apimachinery::duration::{Duration, human};
use gardener_apimachinery::field::go_quote;
use gardener_store::Entry;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::definition::{Column, Columns, Definition, PathColumn, Version};
use crate::meta;
use crate::object::{self, Head};

/// Which object each row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// None.
    None,
    /// Its metadata; the default.
    Metadata,
    /// The object.
    Object,
}

impl Include {
    /// Reads the `includeObject` query parameter.
    ///
    /// # Errors
    /// 400 for what it cannot be.
    pub fn read(text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                go_quote(other)
            ))),
        }
    }
}

/// How a client wants its tables.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Which object each row carries.
    pub include: Include,
    /// `meta.k8s.io/v1`, or its beta.
    pub meta_version: &'static str,
}

/// Columns of kinds that tell none.
pub fn default_columns() -> Vec<Column> {
    vec![
        column("Name", "string", "name", 0),
        Column {
            name: "Age".into(),
            type_: "date".into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
        },
    ]
}

/// A column without description.
pub fn column(name: &str, type_: &str, format: &str, priority: i32) -> Column {
    Column {
        name: name.into(),
        type_: type_.into(),
        format: format.into(),
        description: String::new(),
        priority,
    }
}

/// Whether a kind's table is upstream's plain one of names and times, which tells no rows where others tell an empty list.
pub(crate) fn is_plain(version: &Version) -> bool {
    matches!(&version.columns, Columns::Row(columns) if columns.get(1).is_some_and(|column| column.name == "Created At"))
}

/// Cells of kinds that tell none.
pub fn default_row(now: Timestamp, object: &Value) -> Vec<Value> {
    vec![meta::name(object).into(), age(now, object).into()]
}

/// Time since creation, as kubectl shows it.
pub fn age(now: Timestamp, object: &Value) -> String {
    since(now, meta::text(object, "/metadata/creationTimestamp"))
}

/// Time since a timestamp, as kubectl shows it; `<unknown>` when there is none.
pub fn since(now: Timestamp, time: &str) -> String {
    match meta::parse_time(time) {
        Some(then) => human(Duration::from_secs(now.as_second() - then.as_second())),
        None => "<unknown>".into(),
    }
}

fn columns(version: &Version) -> Vec<Column> {
    match &version.columns {
        Columns::Row(columns) => columns.clone(),
        Columns::Paths(own) => {
            let mut columns = vec![Column {
                description: "Name of the object, unique among its kind in its namespace.".into(),
                ..column("Name", "string", "name", 0)
            }];
            columns.extend(own.iter().map(|own| own.column.clone()));
            columns
        }
    }
}

fn cells(definition: &Definition, version: &Version, now: Timestamp, object: &Value) -> Vec<Value> {
    match &version.columns {
        Columns::Row(_) => definition.strategy.row(now, object),
        Columns::Paths(own) => std::iter::once(meta::name(object).into())
            .chain(own.iter().map(|own| path_cell(own, now, object)))
            .collect(),
    }
}

/// The cells of a stored object's row as JSON text. What changes with time is left open: ages since the object was made, which stand in the gaps
/// between the pieces.
pub(crate) struct Row {
    pieces: Vec<String>,
    created: Timestamp,
}

impl Row {
    /// The row of an object; none if it tells another time than that since the object was made. Columns of custom resources may change while the
    /// object stays: their rows are not kept.
    fn of(definition: &Definition, version: &Version, object: &Value) -> Option<Self> {
        if let Columns::Paths(_) = &version.columns {
            return None;
        }
        let created = meta::parse_time(meta::text(object, "/metadata/creationTimestamp")).unwrap_or_default();
        // what differs at two moments must be the age at both
        let moments = [created, created.checked_add(LATER).ok()?];
        let [first, second] = moments.map(|now| cells(definition, version, now, object));
        let [young, old] = moments.map(|now| Value::from(age(now, object)));
        let mut pieces = vec!["[".to_owned()];
        for (index, (one, other)) in first.into_iter().zip(second).enumerate() {
            let piece = pieces.last_mut()?;
            if index > 0 {
                piece.push(',');
            }
            if one == other {
                piece.push_str(&one.to_string());
            } else if one == young && other == old {
                pieces.push(String::new());
            } else {
                return None;
            }
        }
        pieces.last_mut()?.push(']');
        Some(Self { pieces, created })
    }

    /// Writes the cells as they are now.
    fn put(&self, out: &mut BytesMut, now: Timestamp) {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                let age = human(Duration::from_secs(now.as_second() - self.created.as_second()));
                out.put_slice(format!("\"{age}\"").as_bytes());
            }
            out.put_slice(piece.as_bytes());
        }
    }
}

/// A time after which an age is surely told by another text than at its beginning.
const LATER: SignedDuration = SignedDuration::from_secs(12_345_678);

/// Writes an entry's row.
pub(crate) fn put_row(out: &mut BytesMut, entry: &Entry, scope: (&Definition, &Version), now: Timestamp, style: Style) {
    let (definition, version) = scope;
    let head = Head::of(entry, definition);
    out.put_slice(b"{\"cells\":");
    match head.row(|| Row::of(definition, version, &object::value_of(entry))) {
        Some(row) => row.put(out, now),
        None => {
            let cells = cells(definition, version, now, &object::value_of(entry));
            out.put_slice(Value::from(cells).to_string().as_bytes());
        }
    }
    out.put_slice(b",\"object\":");
    match style.include {
        Include::None => out.put_slice(b"null"),
        Include::Metadata => put_metadata(out, head.metadata(entry), style.meta_version),
        Include::Object => out.put_slice(&entry.value),
    }
    out.put_u8(b'}');
}

/// The `columnDefinitions` of a table.
pub(crate) fn column_definitions(version: &Version) -> Value {
    let columns = columns(version).into_iter();
    columns
        .map(|c| json!({"name": c.name, "type": c.type_, "format": c.format, "description": c.description, "priority": c.priority}))
        .collect()
}

fn path_cell(column: &PathColumn, now: Timestamp, object: &Value) -> Value {
    let Some(found) = json_path(object, &column.path) else {
        return Value::Null;
    };
    match (column.column.type_.as_str(), found) {
        ("date", Value::String(time)) => since(now, time).into(),
        ("string", Value::String(text)) => text.clone().into(),
        ("string", Value::Null) => Value::Null,
        ("string", other) => other.to_string().into(),
        (_, other) => other.clone(),
    }
}

/// The value at a simple JSON path: `.spec.replicas`, `.metadata.labels.node`, `.status.conditions[?(@.type=="Ready")].status`, `.a[0].b`.
pub fn json_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    for step in split_path(path) {
        at = match step {
            Step::Field(name) => at.get(&name)?,
            Step::Index(index) => at.get(index)?,
            Step::Filter(key, value) => at
                .as_array()?
                .iter()
                .find(|item| item.get(&key).and_then(Value::as_str) == Some(value.as_str()))?,
        };
    }
    Some(at)
}

enum Step {
    Field(String),
    Index(usize),
    Filter(String, String),
}

fn split_path(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let mut name = String::new();
            let mut chars = after.char_indices();
            let mut end = after.len();
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
                    '.' | '[' => {
                        end = at;
                        break;
                    }
                    c => name.push(c),
                }
            }
            if !name.is_empty() {
                steps.push(Step::Field(name));
            }
            rest = after.get(end..).unwrap_or_default();
        } else if let Some(after) = rest.strip_prefix('[') {
            let Some((inside, tail)) = after.split_once(']') else {
                break;
            };
            if let Ok(index) = inside.parse() {
                steps.push(Step::Index(index));
            } else if let Some((key, value)) = inside
                .trim_start_matches("?(")
                .trim_end_matches(')')
                .trim_start_matches("@.")
                .split_once("==")
            {
                steps.push(Step::Filter(
                    key.trim().to_owned(),
                    value.trim().trim_matches(|c| c == '"' || c == '\'').to_owned(),
                ));
            } else {
                steps.push(Step::Field(inside.trim_matches(|c| c == '"' || c == '\'').to_owned()));
            }
            rest = tail;
        } else {
            rest = match rest.find(['.', '[']) {
                Some(next) => {
                    steps.push(Step::Field(rest.get(..next).unwrap_or_default().to_owned()));
                    rest.get(next..).unwrap_or_default()
                }
                None => {
                    steps.push(Step::Field(rest.to_owned()));
                    ""
                }
            };
        }
    }
    steps
}

/// A `Table` of objects. `headers` is false for all but the first frame of a watch.
pub fn table(
    definition: &Definition,
    version: &Version,
    now: Timestamp,
    objects: &[Value],
    style: Style,
    list_meta: Value,
    headers: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": cells(definition, version, now, object)});
            let shown = match style.include {
                Include::None => Value::Null,
                Include::Metadata => metadata_only(object, style.meta_version),
                Include::Object => object.clone(),
            };
            if let Value::Object(row) = &mut row {
                row.insert("object".into(), shown);
            }
            row
        })
        .collect();
    let columns = match headers {
        true => column_definitions(version),
        false => Value::Null,
    };
    let rows = if rows.is_empty() && is_plain(version) {
        Value::Null
    } else {
        rows.into()
    };
    json!({"kind": "Table", "apiVersion": style.meta_version, "metadata": list_meta, "columnDefinitions": columns, "rows": rows})
}

/// An object's metadata as `PartialObjectMetadata`.
pub fn metadata_only(object: &Value, meta_version: &str) -> Value {
    json!({"kind": PARTIAL, "apiVersion": meta_version, "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({}))})
}

/// Writes metadata as `PartialObjectMetadata`.
pub fn put_metadata(out: &mut BytesMut, metadata: &[u8], meta_version: &str) {
    out.put_slice(format!("{{\"kind\":\"{PARTIAL}\",\"apiVersion\":\"{meta_version}\",\"metadata\":").as_bytes());
    out.put_slice(metadata);
    out.put_u8(b'}');
}

/// The kind of an object's metadata alone.
pub const PARTIAL: &str = "PartialObjectMetadata";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed() {
        let object = json!({"spec": {"a": [{"b": 1}], "l.x/y": "z"}, "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]}});
        assert_eq!(json_path(&object, ".spec.a[0].b"), Some(&json!(1)));
        assert_eq!(
            json_path(&object, ".status.conditions[?(@.type==\"Ready\")].status"),
            Some(&json!("True"))
        );
        assert_eq!(json_path(&object, ".spec.l\\.x/y"), Some(&json!("z")));
        assert_eq!(json_path(&object, "spec.a"), object.pointer("/spec/a"));
        assert_eq!(json_path(&object, ".spec.none.x"), None);
    }
}
