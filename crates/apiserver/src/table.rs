//! Tables: what `kubectl get` prints. Columns and cells come from a kind's strategy or a custom resource's JSON paths.

use bytes::{BufMut, BytesMut};
use gardener_apimachinery::ApiError;
use gardener_apimachinery::duration::{Duration, human};
use gardener_apimachinery::field::go_quote;
use gardener_store::Entry;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::definition::{Column, Columns, Definition, PathColumn, Version};
use crate::object::{self, Head};
use crate::{json_path, meta};

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

/// The cells of a stored object's row as JSON text. What changes with time is left open: ages since the object was made, which stand in the gaps.
pub(crate) struct Row {
    text: Box<str>,
    /// Where in the text.
    gaps: Box<[u32]>,
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
        let (mut text, mut gaps) = ("[".to_owned(), Vec::new());
        for (index, (one, other)) in first.into_iter().zip(second).enumerate() {
            if index > 0 {
                text.push(',');
            }
            if one == other {
                text.push_str(&one.to_string());
            } else if one == young && other == old {
                gaps.push(text.len().try_into().ok()?);
            } else {
                return None;
            }
        }
        text.push(']');
        Some(Self {
            text: text.into(),
            gaps: gaps.into(),
            created,
        })
    }

    /// Writes the cells as they are now.
    fn put(&self, out: &mut BytesMut, now: Timestamp) {
        let text = self.text.as_bytes();
        let mut behind = 0;
        for gap in self.gaps.iter().map(|gap| *gap as usize) {
            let age = human(Duration::from_secs(now.as_second() - self.created.as_second()));
            out.put_slice(text.get(behind..gap).unwrap_or_default());
            out.put_slice(format!("\"{age}\"").as_bytes());
            behind = gap;
        }
        out.put_slice(text.get(behind..).unwrap_or_default());
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
        Include::Metadata => put_metadata(out, definition, head.metadata(&entry.head()), style.meta_version),
        Include::Object => out.put_slice(&entry.value()),
    }
    out.put_u8(b'}');
}

/// The `columnDefinitions` of a table.
pub(crate) fn column_definitions(version: &Version) -> Value {
    definitions(columns(version))
}

/// Columns as a table tells them.
pub(crate) fn definitions(columns: Vec<Column>) -> Value {
    let columns = columns.into_iter();
    columns
        .map(|c| json!({"name": c.name, "type": c.type_, "format": c.format, "description": c.description, "priority": c.priority}))
        .collect()
}

fn path_cell(column: &PathColumn, now: Timestamp, object: &Value) -> Value {
    let Some(found) = json_path::first(object, &column.path) else {
        return Value::Null;
    };
    match (column.column.type_.as_str(), found) {
        ("string", Value::String(text)) => text.clone().into(),
        // as Go prints nothing
        ("string", Value::Null) => "<no value>".into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number
                .as_f64()
                .map_or(Value::Null, |number| (number.trunc() as i64).into()),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => found.clone(),
        ("date", Value::String(time)) if !time.is_empty() && meta::parse_time(time).is_none() => "<invalid>".into(),
        ("date", Value::String(time)) => since(now, time).into(),
        // what is not of the column's type is not shown
        _ => Value::Null,
    }
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
    let rows = objects
        .iter()
        .map(|object| row(definition, object, cells(definition, version, now, object), style));
    let rows: Vec<Value> = rows.collect();
    let columns = match headers {
        true => column_definitions(version),
        false => Value::Null,
    };
    let rows = if rows.is_empty() && is_plain(version) {
        Value::Null
    } else {
        rows.into()
    };
    of_rows(style, list_meta, columns, rows)
}

/// A row of these cells.
pub(crate) fn row(definition: &Definition, object: &Value, cells: Vec<Value>, style: Style) -> Value {
    let shown = match style.include {
        Include::None => Value::Null,
        Include::Metadata => metadata_only(definition, object, style.meta_version),
        Include::Object => object.clone(),
    };
    json!({"cells": cells, "object": shown})
}

/// A `Table` of these columns and rows.
pub(crate) fn of_rows(style: Style, list_meta: Value, columns: Value, rows: Value) -> Value {
    json!({"kind": "Table", "apiVersion": style.meta_version, "metadata": list_meta, "columnDefinitions": columns, "rows": rows})
}

/// Drops annotations, such as those that only the object as a whole is told with, and with the last of them the map.
pub(crate) fn drop_annotations(metadata: &mut Value, names: &[&str]) {
    let Some(members) = metadata.as_object_mut() else {
        return;
    };
    let Some(annotations) = members.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.retain(|name, _| !names.contains(&name.as_str()));
    if annotations.is_empty() {
        members.remove("annotations");
    }
}

/// An object's metadata as `PartialObjectMetadata`.
pub fn metadata_only(definition: &Definition, object: &Value, meta_version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    drop_annotations(&mut metadata, definition.strategy.made_annotations());
    partial(metadata, meta_version)
}

/// Metadata as `PartialObjectMetadata`.
pub fn partial(metadata: Value, meta_version: &str) -> Value {
    json!({"kind": PARTIAL, "apiVersion": meta_version, "metadata": metadata})
}

/// Writes metadata as `PartialObjectMetadata`.
pub fn put_metadata(out: &mut BytesMut, definition: &Definition, metadata: &[u8], meta_version: &str) {
    for text in [
        "{\"kind\":\"",
        PARTIAL,
        "\",\"apiVersion\":\"",
        meta_version,
        "\",\"metadata\":",
    ] {
        out.put_slice(text.as_bytes());
    }
    let made = definition.strategy.made_annotations();
    // most kinds have none
    let parsed = if made.is_empty() {
        None
    } else {
        serde_json::from_slice::<Value>(metadata).ok()
    };
    match parsed {
        Some(mut metadata) => {
            drop_annotations(&mut metadata, made);
            out.put_slice(metadata.to_string().as_bytes());
        }
        None => out.put_slice(metadata),
    }
    out.put_u8(b'}');
}

/// The kind of an object's metadata alone.
pub const PARTIAL: &str = "PartialObjectMetadata";
