//! Reads schema nodes from OpenAPI v3 components and from CRDs' `openAPIV3Schema`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde_json::{Map, Value};

use crate::meta::object_meta;
use crate::rules::Rule;
use crate::schema::{Constraints, Kind, ListType, MapType, Schema, Slot};

/// How deep schemas may nest; deeper nodes are refused, so that no input exhausts the stack.
const MAX_DEPTH: usize = 100;
const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// A schema document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema at {path}: expected {expected}, found {found}; correct the schema document")]
pub struct ParseError {
    /// Where in the document.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl ParseError {
    pub(crate) fn new(path: &str, expected: &str, found: &Value) -> Self {
        let mut found = found.to_string();
        if found.chars().count() > 80 {
            found = found.chars().take(80).chain("…".chars()).collect();
        }
        Self {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
        }
    }
}

/// Reads the nodes of one document.
pub(crate) struct Reader<'a> {
    /// Places of the definitions that references name; none in CRDs, which have no references.
    slots: Option<&'a BTreeMap<&'a str, Slot>>,
}

impl Schema {
    /// Reads a CRD version's `openAPIV3Schema`. The root gets `apiVersion`, `kind` and the schema of object metadata,
    /// which CRDs leave out; so do embedded resources.
    ///
    /// # Errors
    /// When something that must be an object, list, text or number is none, or nodes nest too deep.
    pub fn from_crd(document: &Value) -> Result<Arc<Self>, ParseError> {
        let mut root = Reader { slots: None }.node(document, "openAPIV3Schema", 0)?;
        if root.kind == Kind::Any {
            root.kind = Kind::Object;
        }
        as_resource(&mut root);
        Ok(Arc::new(root))
    }
}

/// Gives a node what every API object has. What the node says about metadata's values stays as a constraint.
fn as_resource(node: &mut Schema) {
    let text = || {
        Arc::new(Schema {
            kind: Kind::String,
            ..Schema::default()
        })
    };
    for name in ["apiVersion", "kind"] {
        node.fields.entry(name.into()).or_insert_with(text);
    }
    let slot: Slot = Arc::new(OnceLock::from(object_meta()));
    let said = node.fields.remove("metadata");
    let constraints = said
        .filter(|said| said.has_fields() || said.constraints.is_some() || !said.required.is_empty())
        .map(|said| {
            Box::new(Constraints {
                all_of: vec![Schema {
                    preserve_unknown: true,
                    ..Schema::clone(&said)
                }],
                ..Constraints::default()
            })
        });
    let metadata = Schema {
        reference: Some(slot),
        constraints,
        ..Schema::default()
    };
    node.fields.insert("metadata".into(), Arc::new(metadata));
}

impl<'a> Reader<'a> {
    pub(crate) fn openapi(slots: &'a BTreeMap<&'a str, Slot>) -> Self {
        Self { slots: Some(slots) }
    }

    /// Reads a named definition.
    pub(crate) fn definition(&self, name: &str, document: &Value) -> Result<Schema, ParseError> {
        let mut node = self.node(document, name, 0)?;
        node.name = Some(name.into());
        if name.ends_with(".api.resource.Quantity") {
            node.kind = Kind::Quantity;
            node.constraints = None;
            node.preserve_unknown = false;
        } else if name.ends_with(".meta.v1.Duration") {
            node.format = Some("go-duration".into());
        } else if name.ends_with(".meta.v1.MicroTime") || name.ends_with(".meta.v1.Time") {
            node.format = Some("date-time".into());
        }
        Ok(node)
    }

    fn node(&self, document: &Value, path: &str, depth: usize) -> Result<Schema, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError::new(path, "at most 100 levels", &Value::Null));
        }
        let Value::Object(document) = document else {
            // A boolean schema: `true` is any value. Structural schemas have none; OpenAPI documents do not use them either.
            if document == &Value::Bool(true) {
                return Ok(Schema::any());
            }
            return Err(ParseError::new(path, "a schema object", document));
        };
        let mut node = Schema {
            kind: kind(document, path)?,
            format: text(document, "format", path)?.map(Into::into),
            nullable: flag(document, "nullable"),
            default: document.get("default").map(|value| Box::new(value.clone())),
            required: texts(document, "required", path)?,
            embedded_resource: flag(document, "x-kubernetes-embedded-resource"),
            preserve_unknown: flag(document, "x-kubernetes-preserve-unknown-fields"),
            list_type: match text(document, "x-kubernetes-list-type", path)? {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some("atomic") => Some(ListType::Atomic),
                _ => None,
            },
            list_map_keys: texts(document, "x-kubernetes-list-map-keys", path)?,
            map_type: match text(document, "x-kubernetes-map-type", path)? {
                Some("atomic") => Some(MapType::Atomic),
                Some("granular") => Some(MapType::Granular),
                _ => None,
            },
            patch_strategy: text(document, "x-kubernetes-patch-strategy", path)?
                .map(|list| list.split(',').map(Into::into).collect())
                .unwrap_or_default(),
            patch_merge_key: text(document, "x-kubernetes-patch-merge-key", path)?.map(Into::into),
            ..Schema::default()
        };
        if let Some(properties) = object(document, "properties", path)? {
            for (name, value) in properties {
                let child = self.node(value, &format!("{path}.properties.{name}"), depth + 1)?;
                node.fields.insert(name.as_str().into(), Arc::new(child));
            }
        }
        match document.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => node.additional = Some(Arc::new(Schema::any())),
            Some(value) => {
                let child = self.node(value, &format!("{path}.additionalProperties"), depth + 1)?;
                node.additional = Some(Arc::new(child));
            }
        }
        match document.get("items") {
            None | Some(Value::Null) => {}
            Some(value) => node.items = Some(Arc::new(self.node(value, &format!("{path}.items"), depth + 1)?)),
        }
        self.reference(document, &mut node);
        node.constraints = self.constraints(document, path, depth, node.kind)?.map(Box::new);
        if self.slots.is_some() {
            // Go types without a schema of their own (RawExtension, JSON, FieldsV1): anything goes.
            let free = node.fields.is_empty() && node.additional.is_none() && node.reference.is_none();
            node.preserve_unknown |= free && matches!(node.kind, Kind::Object | Kind::Any);
        } else {
            node.preserve_unknown |=
                node.kind == Kind::Any && node.fields.is_empty() && node.additional.is_none() && node.items.is_none();
            if node.embedded_resource {
                as_resource(&mut node);
            }
        }
        Ok(node)
    }

    /// A reference stands alone or, where the node adds something, as the only element of `allOf`.
    fn reference(&self, document: &Map<String, Value>, node: &mut Schema) {
        let Some(slots) = self.slots else { return };
        let wrapped = match document.get("allOf") {
            Some(Value::Array(list)) if list.len() == 1 => list.first().and_then(|entry| entry.get("$ref")),
            _ => None,
        };
        let Some(target) = document.get("$ref").or(wrapped).and_then(Value::as_str) else {
            return;
        };
        let name = target.strip_prefix(REFERENCE_PREFIX).unwrap_or(target);
        match slots.get(name) {
            Some(slot) => node.reference = Some(Arc::clone(slot)),
            None => node.preserve_unknown = true,
        }
    }

    fn constraints(
        &self,
        document: &Map<String, Value>,
        path: &str,
        depth: usize,
        kind: Kind,
    ) -> Result<Option<Constraints>, ParseError> {
        const NAMES: [&str; 19] = [
            "enum",
            "pattern",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "uniqueItems",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "x-kubernetes-validations",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ];
        if !NAMES.iter().any(|name| document.contains_key(*name)) {
            return Ok(None);
        }
        let branches = |name: &str| -> Result<Vec<Schema>, ParseError> {
            let list = match document.get(name) {
                Some(Value::Array(list)) => list,
                _ => return Ok(Vec::new()),
            };
            let referring = self.slots.is_some() && list.iter().any(|entry| entry.get("$ref").is_some());
            // What `allOf` refers to is the node's type, and the alternatives of special scalars are their kind.
            if referring
                || matches!(kind, Kind::IntOrString | Kind::Quantity) && name != "allOf" && is_int_or_string(list)
            {
                return Ok(Vec::new());
            }
            list.iter()
                .enumerate()
                .map(|(i, entry)| {
                    let mut node = self.node(entry, &format!("{path}.{name}[{i}]"), depth + 1)?;
                    node.preserve_unknown = true;
                    Ok(node)
                })
                .collect()
        };
        let number = |name: &str| match document.get(name) {
            Some(Value::Number(number)) => Some(number.clone()),
            _ => None,
        };
        let count = |name: &str| document.get(name).and_then(Value::as_u64);
        let rules = document.get("x-kubernetes-validations").and_then(Value::as_array);
        Ok(Some(Constraints {
            enumeration: document.get("enum").and_then(Value::as_array).cloned(),
            pattern: text(document, "pattern", path)?
                .and_then(|text| Regex::new(text).ok().map(|regex| (text.to_owned(), regex))),
            minimum: number("minimum").map(|number| (number, flag(document, "exclusiveMinimum"))),
            maximum: number("maximum").map(|number| (number, flag(document, "exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            unique_items: flag(document, "uniqueItems"),
            all_of: branches("allOf")?,
            any_of: branches("anyOf")?,
            one_of: branches("oneOf")?,
            not: match document.get("not") {
                Some(entry @ Value::Object(_)) => Some(self.node(entry, &format!("{path}.not"), depth + 1)?),
                _ => None,
            },
            rules: rules.into_iter().flatten().filter_map(Rule::parse).collect(),
        }))
    }
}

/// Whether alternatives are just `integer` and `string`.
fn is_int_or_string(list: &[Value]) -> bool {
    list.iter().all(|entry| {
        matches!(
            entry.get("type").and_then(Value::as_str),
            Some("integer" | "string" | "number")
        )
    })
}

fn kind(document: &Map<String, Value>, path: &str) -> Result<Kind, ParseError> {
    if flag(document, "x-kubernetes-int-or-string") {
        return Ok(Kind::IntOrString);
    }
    Ok(match text(document, "type", path)? {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") if document.get("format").and_then(Value::as_str) == Some("int-or-string") => Kind::IntOrString,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        _ if document.get("format").and_then(Value::as_str) == Some("int-or-string") => Kind::IntOrString,
        _ => Kind::Any,
    })
}

fn flag(document: &Map<String, Value>, name: &str) -> bool {
    document.get(name) == Some(&Value::Bool(true))
}

fn text<'a>(document: &'a Map<String, Value>, name: &str, path: &str) -> Result<Option<&'a str>, ParseError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(ParseError::new(&format!("{path}.{name}"), "a text", other)),
    }
}

fn texts(document: &Map<String, Value>, name: &str, path: &str) -> Result<Vec<Box<str>>, ParseError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| match entry {
                Value::String(text) => Ok(text.as_str().into()),
                other => Err(ParseError::new(&format!("{path}.{name}"), "a list of texts", other)),
            })
            .collect(),
        Some(other) => Err(ParseError::new(&format!("{path}.{name}"), "a list of texts", other)),
    }
}

fn object<'a>(
    document: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<&'a Map<String, Value>>, ParseError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(ParseError::new(&format!("{path}.{name}"), "an object", other)),
    }
}
