//! Objects that expressions make: `Object{…}` and `Object.spec{…}`, which say what another object shall have, and `JSONPatch{…}`, an operation
//! of a JSON patch. Only expressions that change objects know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::go_quote;
use serde_json::{Map, Value as Json};

use crate::eval::EvalError;
use crate::functions;
use crate::types::{STRING, Type};
use crate::value::{Key, Value};

/// The type of an object that says what another one shall have.
pub const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub const PATCH: &str = "JSONPatch";

/// An object that an expression made.
#[derive(Clone, Debug)]
pub struct Made<'a> {
    /// The name of its type: that of the fields in which it is to stand, behind `Object`.
    pub(crate) name: Arc<str>,
    pub(crate) fields: BTreeMap<String, Value<'a>>,
}

/// Whether there is such a type.
pub(crate) fn is_known(name: &str) -> bool {
    name == PATCH || name == OBJECT || name.strip_prefix(OBJECT).is_some_and(|rest| rest.starts_with('.'))
}

/// The type of a field; none if there is no such field.
pub(crate) fn field(name: &str, field: &str) -> Option<Type> {
    match (name, field) {
        (PATCH, "op" | "path" | "from") => Some(STRING),
        (PATCH, "value") => Some(Type::Dyn),
        (PATCH, _) => None,
        (_, _) => Some(Type::Dyn),
    }
}

/// Makes an object.
pub(crate) fn make<'a>(name: &str, fields: BTreeMap<String, Value<'a>>) -> Result<Value<'a>, EvalError> {
    if name == PATCH {
        for (field, value) in &fields {
            if field != "value" && !matches!(value, Value::Text(_)) {
                let found = native_type(value);
                let why = format!("unexpected type {found} for JSONPatchType '{field}' field");
                return Err(EvalError::new(why));
            }
        }
    }
    Ok(Value::Made(Arc::new(Made {
        name: name.into(),
        fields,
    })))
}

/// What Go calls a value where it does not know of expressions.
fn native_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Text(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) => "map[ref.Val]ref.Val",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        other => other.go_type(),
    }
}

/// What a list or a map consists of.
fn parts<'a>(value: &Value<'a>) -> Vec<Value<'a>> {
    match value {
        Value::List(list) => list.to_vec(),
        Value::Map(map) => map.values().cloned().collect(),
        _ => Vec::new(),
    }
}

/// What in an object is named after other fields than those in which it stands. Lists and maps between have no names.
fn misnamed(value: &Value<'_>, wanted: &str, found: &mut Vec<String>) {
    if let Value::Made(made) = value {
        if *made.name != *wanted {
            found.push(format!(
                "unexpected type name {}, expected {}, which matches field name path from root Object type",
                go_quote(&made.name),
                go_quote(wanted)
            ));
        }
        for (name, value) in &made.fields {
            misnamed(value, &format!("{wanted}.{name}"), found);
        }
    }
    for part in parts(value) {
        misnamed(&part, wanted, found);
    }
}

fn well_named(value: &Value<'_>, root: &str) -> Result<(), String> {
    let mut found = Vec::new();
    misnamed(value, root, &mut found);
    match found.is_empty() {
        true => Ok(()),
        false => Err(format!("type mismatch: {}", found.join("\n"))),
    }
}

/// A value as JSON. `null` tells what stands for one that the expression says.
fn json(value: &Value<'_>, null: &Json) -> Result<Json, String> {
    let json = |value: &Value<'_>| json(value, null);
    Ok(match value {
        Value::Null => null.clone(),
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        // Go writes whole numbers without a point
        Value::Double(value) if value.fract() == 0.0 && value.abs() < 1e15 => (*value as i64).into(),
        Value::Double(value) => (*value).into(),
        Value::Text(text) => text.clone().into_owned().into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::Json(json, _) => (*json).clone(),
        Value::List(list) => list.iter().map(json).collect::<Result<_, _>>()?,
        Value::Map(map) => {
            let mut members = Map::new();
            for (key, value) in map.iter() {
                let Key::Text(key) = key else {
                    return Err("map keys must be strings".to_owned());
                };
                members.insert(key.clone(), json(value)?);
            }
            members.into()
        }
        Value::Made(made) => {
            let fields = made.fields.iter();
            let members: Map<String, Json> = fields
                .map(|(name, value)| Ok((name.clone(), json(value)?)))
                .collect::<Result<_, String>>()?;
            members.into()
        }
        Value::Timestamp(_) | Value::Duration(_) => functions::shown(value).unwrap_or_default().into(),
        other => {
            let ty = other.type_name();
            return Err(format!("type conversion error from '{ty}' to 'google.protobuf.Value'"));
        }
    })
}

impl Value<'_> {
    /// What an object of the type `Object` says that another one shall have.
    ///
    /// # Errors
    /// Parts of it are named after other fields than those in which they stand, or cannot be told in JSON.
    pub fn configuration(&self) -> Result<Json, String> {
        well_named(self, OBJECT)?;
        // such a null is the number of an enumeration in Go, of whose values it is the first
        json(self, &0.into()).map_err(|_| format!("invalid return type: {}", self.go_type()))
    }

    /// The JSON patch that a list of operations is.
    ///
    /// # Errors
    /// It is no such list, or values in it cannot be told in JSON.
    pub fn json_patch(&self) -> Result<Json, String> {
        const NO_JSON: &str = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
        let operation = |value: &Value<'_>| -> Result<Json, String> {
            let Value::Made(made) = value else {
                let why = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
                return Err(why.to_owned());
            };
            let text = |name: &str| match made.fields.get(name) {
                Some(Value::Text(text)) => text.clone().into_owned(),
                _ => String::new(),
            };
            let mut members = Map::new();
            members.insert("op".to_owned(), text("op").into());
            members.insert("path".to_owned(), text("path").into());
            let from = text("from");
            if !from.is_empty() {
                members.insert("from".to_owned(), from.into());
            }
            if let Some(value) = made.fields.get("value") {
                if let Value::Made(object) = value {
                    well_named(value, &object.name)?;
                }
                let value = json(value, &Json::Null).map_err(|why| format!("{NO_JSON}: {why}"))?;
                members.insert("value".to_owned(), value);
            }
            Ok(members.into())
        };
        self.elements().map(|element| operation(&element)).collect()
    }
}
