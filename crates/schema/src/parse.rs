//! Reads schema nodes from OpenAPI v3 components and from CRDs' `openAPIV3Schema`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use gardener_cel::regexp;
use regex::Regex;
use serde_json::{Map, Value};

use crate::go_types;
use crate::meta::object_meta;
use crate::rules::{Rule, Rules};
use crate::schema::{Constraints, Kind, ListType, MapType, Schema, Slot};

/// How deep schemas may nest; deeper nodes are refused, so that no input exhausts the stack.
const MAX_DEPTH: usize = 100;
const REFERENCE_PREFIX: &str = "#/components/schemas/";
/// Go types without a field, which look like those in which anything goes.
const EMPTY_STRUCTS: [&str; 2] = [".v1.CustomResourceSubresourceStatus", ".v1beta1.DNSExposure"];

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
    /// What patterns were compiled to: documents repeat them, that of quantities many times.
    patterns: RefCell<HashMap<String, Option<Regex>>>,
}

impl Schema {
    /// Reads a CRD version's `openAPIV3Schema`. The root gets `apiVersion`, `kind` and the schema of object metadata,
    /// which CRDs leave out; so do embedded resources.
    ///
    /// # Errors
    /// When something that must be an object, list, text or number is none, or nodes nest too deep.
    pub fn from_crd(document: &Value) -> Result<Arc<Self>, ParseError> {
        let mut root = Reader::new(None).node(document, "openAPIV3Schema", 0)?;
        if root.kind == Kind::Any {
            root.kind = Kind::Object;
        }
        as_resource(&mut root);
        prune_defaults(&mut root);
        Ok(Arc::new(root))
    }
}

/// Takes out of defaults what is unknown in them, as metadata of objects within others may have it.
fn prune_defaults(node: &mut Schema) {
    if let Some(mut default) = node
        .default
        .take_if(|default| default.is_object() || default.is_array())
    {
        node.prune(&mut default);
        node.default = Some(default);
    }
    let children = node
        .fields
        .values_mut()
        .chain(&mut node.items)
        .chain(&mut node.additional);
    for child in children {
        // nothing else holds what was read just now, but for the schema of metadata, which has been looked at
        if let Some(child) = Arc::get_mut(child) {
            prune_defaults(child);
        }
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
        if !node.fields.contains_key(name) {
            node.fields.insert_sorted(name.into(), text());
        }
    }
    let slot: Slot = Arc::new(OnceLock::from(object_meta()));
    let said = node.fields.shift_remove("metadata");
    // only objects within others may have one
    let default = said.as_ref().and_then(|said| said.default.clone()).map(|mut default| {
        object_meta().prune(&mut default);
        default
    });
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
        default,
        ..Schema::default()
    };
    node.fields.insert_sorted("metadata".into(), Arc::new(metadata));
}

/// Adds to a definition what is known of its Go type.
fn as_go_type(node: &mut Schema, name: &str) {
    let go = go_types::of(name);
    node.null_fields = go
        .map(|go| go.nulls.iter().map(|name| (*name).into()).collect())
        .unwrap_or_default();
    for (field, schema) in &mut node.fields {
        let is_null = go.is_some_and(|go| go.nulls.contains(&field.as_ref()));
        let is_pointer = go.is_some_and(|go| go.pointers.contains(&field.as_ref()));
        let zero = go.and_then(|go| go.zeros.get(field.as_ref()));
        let zero = zero.cloned().or_else(|| is_null.then_some(Value::Null));
        if go.is_some_and(|go| go.omits.contains(&field.as_ref())) {
            let schema = Arc::make_mut(schema);
            schema.key_default = schema.default.take();
            schema.omits_zero = true;
        }
        let is_scalar = matches!(schema.kind, Kind::String | Kind::Integer | Kind::Number | Kind::Boolean);
        if schema.default.is_some() {
            // what has another default than the zero value is left out when it has that
            if !is_pointer && is_scalar && schema.zero_default().is_none() {
                Arc::make_mut(schema).omits_zero = true;
            }
            continue;
        }
        if let Some(zero) = zero {
            Arc::make_mut(schema).default = Some(Box::new(zero));
        } else if !is_pointer && is_scalar {
            Arc::make_mut(schema).omits_zero = true;
        }
    }
}

impl<'a> Reader<'a> {
    fn new(slots: Option<&'a BTreeMap<&'a str, Slot>>) -> Self {
        Self {
            slots,
            patterns: RefCell::default(),
        }
    }

    /// Compiles a pattern; none if it is no regular expression.
    fn pattern(&self, text: &str) -> Option<Regex> {
        if let Some(known) = self.patterns.borrow().get(text) {
            return known.clone();
        }
        let compiled = regexp::compile(text).ok();
        self.patterns.borrow_mut().insert(text.to_owned(), compiled.clone());
        compiled
    }

    pub(crate) fn openapi(slots: &'a BTreeMap<&'a str, Slot>) -> Self {
        Self::new(Some(slots))
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
        } else if name.ends_with(".meta.v1.Time") {
            node.format = Some("date-time".into());
        } else if name.ends_with(".meta.v1.MicroTime") {
            node.format = Some("go-micro-time".into());
        } else if name.ends_with(".pkg.runtime.RawExtension") {
            // what is inside belongs to one owner as a whole
            node.map_type = Some(MapType::Atomic);
        } else if EMPTY_STRUCTS.iter().any(|own| name.ends_with(own)) {
            node.preserve_unknown = false;
        }
        if go_types::is_known(name) {
            as_go_type(&mut node, name);
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
                node.fields.insert_sorted(name.as_str().into(), Arc::new(child));
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
        let constraints = node.constraints.as_deref();
        let any_below = |is: &dyn Fn(&Schema) -> bool| {
            let mut below = node.fields.values().chain(&node.additional).chain(&node.items);
            below.any(|child| is(child))
        };
        let has_rules = constraints.is_some_and(|own| !own.rules.rules.is_empty())
            || constraints.is_some_and(|own| own.all_of.iter().any(|branch| branch.has_rules))
            || any_below(&|child| child.has_rules);
        let has_keyed_lists =
            matches!(node.list_type, Some(ListType::Set | ListType::Map)) || any_below(&|child| child.has_keyed_lists);
        let has_resources = node.embedded_resource || any_below(&|child| child.has_resources);
        node.has_rules = has_rules;
        node.has_keyed_lists = has_keyed_lists;
        node.has_resources = has_resources;
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
            pattern: text(document, "pattern", path)?.and_then(|text| Some((text.to_owned(), self.pattern(text)?))),
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
            rules: Rules::new(rules.into_iter().flatten().filter_map(Rule::parse).collect()),
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

#[cfg(test)]
mod tests {
    use gardener_apimachinery::field::Path;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Definitions, fixtures};

    #[test]
    fn references_and_what_stands_beside_them() {
        let deployment = fixtures::deployment();
        let spec = deployment.field("spec").unwrap();
        assert_eq!(spec.definition_name(), Some("io.k8s.api.apps.v1.DeploymentSpec"));
        assert!(spec.field("strategy").unwrap().has_patch_strategy("retainKeys"));
        assert_eq!(
            spec.field("selector").unwrap().map_type(),
            Some(MapType::Atomic),
            "told by the definition"
        );
        let containers = ["template", "spec", "containers"]
            .iter()
            .fold(spec, |node, name| node.field(name).unwrap());
        assert_eq!(containers.list_type(), Some(ListType::Map));
        assert_eq!(containers.patch_merge_key(), Some("name"));
        let ports = containers.items().unwrap().field("ports").unwrap();
        assert_eq!(ports.list_map_keys().collect::<Vec<_>>(), ["containerPort", "protocol"]);
        let protocol = ports.items().unwrap().field("protocol").unwrap();
        assert_eq!(protocol.default_value(), Some(&json!("TCP")));
        let limits = containers
            .items()
            .unwrap()
            .field("resources")
            .unwrap()
            .field("limits")
            .unwrap();
        assert_eq!(limits.child("cpu").unwrap().kind(), Kind::Quantity);
    }

    #[test]
    fn definitions_may_contain_themselves() {
        let definitions = fixtures::built_in();
        let crd = definitions
            .for_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
            .unwrap();
        let value = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema":
            {"properties": {"a": {"properties": {"b": {"items": {"type": "string"}, "typo": 1}}}}}}}]}});
        assert_eq!(
            crd.unknown_fields(&value),
            ["spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.typo"]
        );
        // A reference to nothing but itself must not hang.
        let document = json!({"components": {"schemas": {"a": {"$ref": "#/components/schemas/a"}}}});
        let definitions = Definitions::from_openapi([&document]).unwrap();
        assert_eq!(definitions.get("a").unwrap().kind(), Kind::Any);
    }

    #[test]
    fn recorded_crds_are_read() {
        for (file, versions) in fixtures::crds() {
            for document in versions {
                let schema = Schema::from_crd(&document).unwrap();
                let metadata = schema.field("metadata").unwrap();
                assert_eq!(metadata.definition_name(), Some(crate::meta::OBJECT_META), "{file}");
                assert!(schema.field("spec").unwrap().has_fields(), "{file}");
            }
        }
    }

    #[test]
    fn deep_documents_are_refused_without_exhausting_the_stack() {
        let mut document = json!({"type": "string"});
        for _ in 0..90 {
            document = json!({"type": "object", "properties": {"a": document}});
        }
        assert!(Schema::from_crd(&document).is_ok());
        for _ in 0..200 {
            document = json!({"type": "array", "items": document});
        }
        assert!(
            Schema::from_crd(&document)
                .unwrap_err()
                .to_string()
                .contains("at most 100 levels")
        );
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f32>().prop_map(|n| Value::from(f64::from(n))),
            prop::sample::select(vec![
                "object",
                "array",
                "string",
                "integer",
                "set",
                "map",
                "a",
                "(",
                "date-time"
            ])
            .prop_map(Value::from),
        ];
        let name = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "additionalProperties",
            "required",
            "enum",
            "pattern",
            "minimum",
            "default",
            "nullable",
            "anyOf",
            "allOf",
            "not",
            "$ref",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-validations",
            "x-kubernetes-embedded-resource",
            "multipleOf",
            "format",
            "a",
            "spec",
            "metadata",
        ]);
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..6)
                    .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_input_panics(document in json_value(), value in json_value(), old in json_value()) {
            let wrapped = json!({"components": {"schemas": {"a": document.clone()}}});
            let read = [
                Schema::from_crd(&document).ok(),
                Definitions::from_openapi([&wrapped]).ok().and_then(|found| found.get("a")),
            ];
            for schema in read.into_iter().flatten() {
                let _ = schema.decode(&value, "A");
                let _ = schema.validate(&value, Some(&old), &Path::root());
                let mut other = value.clone();
                schema.prune(&mut other);
                prop_assert!(schema.unknown_fields(&other).is_empty());
                schema.apply_defaults(&mut other);
                schema.canonicalize(&mut other);
            }
            let _ = crate::openapi::crd_components(crate::openapi::Custom {
                group: "a.b", version: "v1", kind: "A", list_kind: "AList", schema: Some(&document), has_scale: true, selectable_fields: &["spec.a"],
            });
        }
    }
}
