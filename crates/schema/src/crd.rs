//! What is wrong with the schema of a definition that is otherwise structural: what OpenAPI has and definitions have not, lists and maps,
//! defaults, and rules with their costs. Messages are apiextensions'.

use std::collections::BTreeSet;
use std::sync::Arc;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_escaped};
use gardener_cel::Declared;
use serde_json::{Value, json};

use crate::rules::{self, Rule, Rules};
use crate::schema::Schema;
use crate::structural::{self, branches, child, flag, properties, text};

/// What one rule may cost by estimate.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost by estimate.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// Finds what is wrong with a schema (`openAPIV3Schema`).
pub fn validate(schema: &Value, path: &Path) -> ErrorList {
    // what is not read at all is told below, and nothing else
    let mut errors = match has_unsupported(schema) {
        true => ErrorList::new(),
        false => structural::validate(schema, path),
    };
    let parsed = Schema::from_crd(schema).ok();
    if errors.is_empty()
        && let Some(parsed) = &parsed
    {
        defaults(schema, parsed, (true, false), path, &mut errors);
    }
    let context = Context {
        inside_meta: false,
        forbidden_defaults: None,
        uncorrelated: None,
        cardinality: Some(1),
        parsed: parsed
            .as_deref()
            .filter(|_| errors.is_empty() && !has_unsupported(schema)),
    };
    let mut checked = Checked {
        schema: ErrorList::new(),
        rules: ErrorList::new(),
        costs: Costs::default(),
    };
    checked.node(schema, &context, true, path);
    errors.append(&mut checked.schema);
    errors.append(&mut checked.rules);
    // of what cannot be read that is told last, and only if nothing else is wrong
    if errors.is_empty() && has_unsupported(schema) {
        errors.push(Error::invalid(path, "", "OpenAPIV3Schema 'schema' is not supported"));
    }
    checked.costs.judge(path, &mut errors);
    errors
}

/// What OpenAPI has and definitions have not.
const UNSUPPORTED: [&str; 6] = [
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];

fn has_unsupported(schema: &Value) -> bool {
    let set = |key: &&str| schema.get(*key).is_some_and(|value| !value.is_null());
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|key| branches(schema, key));
    let single = ["items", "not", "additionalProperties"];
    UNSUPPORTED.iter().any(set)
        || names_dialect(schema)
        || schema.get("items").is_some_and(Value::is_array)
        || lists.into_iter().any(has_unsupported)
        || single
            .into_iter()
            .filter_map(|key| child(schema, key))
            .any(has_unsupported)
        || properties(schema).any(|(_, property)| has_unsupported(property))
}

/// Whether a schema says by which dialect it is to be read.
fn names_dialect(schema: &Value) -> bool {
    !text(schema, "$schema").is_empty()
}

/// What is known of a node from those above.
#[derive(Clone)]
struct Context<'a> {
    inside_meta: bool,
    /// Why there may be no default, if so.
    forbidden_defaults: Option<String>,
    /// The node above whose values cannot be compared with those before.
    uncorrelated: Option<Path>,
    /// How many such values an object can have; none: there is no bound.
    cardinality: Option<u64>,
    /// The node as it is used; none where rules are not looked at.
    parsed: Option<&'a Schema>,
}

#[derive(Default)]
struct Costs {
    total: u64,
    most_expensive: Vec<(u64, Path)>,
}

impl Costs {
    fn add(&mut self, path: &Path, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_LIMIT / 100 {
            return;
        }
        self.most_expensive.push((cost, path.clone()));
        self.most_expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(4);
    }

    fn judge(&self, path: &Path, errors: &mut ErrorList) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (_, path) in &self.most_expensive {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(Error::forbidden(path, why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(Error::forbidden(path, exceeded(what, self.total, SCHEMA_LIMIT)));
    }
}

fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

struct Checked {
    schema: ErrorList,
    rules: ErrorList,
    costs: Costs,
}

impl Checked {
    fn node(&mut self, schema: &Value, context: &Context<'_>, is_root: bool, path: &Path) {
        let before = self.schema.len();
        self.unsupported(schema, context, path);
        if flag(schema, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.schema.push(Error::forbidden(&path.child("uniqueItems"), why));
        }
        self.children(schema, context, is_root, path);
        self.lists_and_maps(schema, path);
        self.keys(schema, path);
        self.rules(schema, context, before, path);
    }

    fn unsupported(&mut self, schema: &Value, context: &Context<'_>, path: &Path) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.schema
                .push(Error::not_supported(&path.child("type"), kind, &TYPES));
        }
        let mut forbidden = |key: &str, why: &str| self.schema.push(Error::forbidden(&path.child(key), why));
        let set = |key: &str| schema.get(key).is_some_and(|value| !value.is_null());
        if let Some(reason) = context.forbidden_defaults.as_ref().filter(|_| set("default")) {
            forbidden("default", &format!("must not be set {reason}"));
        }
        for key in UNSUPPORTED {
            if set(key) {
                forbidden(key, &format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            forbidden("type", "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").is_some_and(Value::is_array) {
            forbidden("items", "items must be a schema object and not an array");
        }
        if context.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
            forbidden(
                "x-kubernetes-embedded-resource",
                "must not be used inside of resource meta",
            );
        }
    }

    fn children(&mut self, schema: &Value, context: &Context<'_>, is_root: bool, path: &Path) {
        let below = Context {
            cardinality: context
                .cardinality
                .zip(most(schema))
                .map(|(own, each)| own.saturating_mul(each)),
            ..context.clone()
        };
        let narrowing = Context {
            parsed: None,
            ..context.clone()
        };
        if let Some(additional) = schema
            .get("additionalProperties")
            .filter(|additional| !additional.is_null())
        {
            let path = path.child("additionalProperties");
            if properties(schema).next().is_some() && *additional != Value::Bool(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.schema.push(Error::forbidden(&path, why));
            }
            let mut inside = Context {
                parsed: context.parsed.and_then(Schema::additional),
                ..below.clone()
            };
            if context.inside_meta {
                inside.forbidden_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            if additional.is_object() {
                self.node(additional, &inside, false, &path);
            }
        }
        for (name, property) in properties(schema) {
            let mut inside = Context {
                parsed: context.parsed.and_then(|parsed| parsed.field(name)),
                ..below.clone()
            };
            let is_meta = is_root || flag(schema, "x-kubernetes-embedded-resource");
            if is_meta && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                inside.inside_meta = true;
                if is_root {
                    inside.forbidden_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.node(property, &inside, false, &path.child("properties").key(name));
        }
        if let Some(not) = child(schema, "not") {
            self.node(not, &narrowing, false, &path.child("not"));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (at, branch) in branches(schema, key).enumerate() {
                self.node(branch, &narrowing, false, &path.child(key).index(at));
            }
        }
        if let Some(items) = child(schema, "items") {
            let mut inside = Context {
                parsed: context.parsed.and_then(Schema::items),
                ..below
            };
            if text(schema, "x-kubernetes-list-type") != "map" {
                inside.uncorrelated.get_or_insert_with(|| path.clone());
            }
            self.node(items, &inside, false, &path.child("items"));
        }
    }

    fn lists_and_maps(&mut self, schema: &Value, path: &Path) {
        let errors = &mut self.schema;
        let kind = text(schema, "type");
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            errors.push(Error::invalid(&path, false, "must be true or undefined"));
        }
        let of_type = |wanted: &str, key: &str| {
            let why = format!("must be {wanted} if {key} is specified");
            match kind.is_empty() {
                true => Error::required(&path.child("type"), why),
                false => Error::invalid(&path.child("type"), kind, why),
            }
        };
        let (map_type, list_type) = (
            text(schema, "x-kubernetes-map-type"),
            text(schema, "x-kubernetes-list-type"),
        );
        if !map_type.is_empty() && kind != "object" {
            errors.push(of_type("object", "x-kubernetes-map-type"));
        }
        if !matches!(map_type, "" | "atomic" | "granular") {
            let path = path.child("x-kubernetes-map-type");
            errors.push(Error::not_supported(&path, map_type, &["atomic", "granular"]));
        }
        if !list_type.is_empty() && kind != "array" {
            errors.push(of_type("array", "x-kubernetes-list-type"));
        } else if let ("set", Some(items)) = (list_type, child(schema, "items")) {
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let own = |key: &str| items.get(key).cloned().unwrap_or(Value::Null);
            let items_path = path.child("items");
            match text(items, "type") {
                "array" if !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic") => {
                    let key = "x-kubernetes-list-type";
                    errors.push(Error::invalid(&items_path.child(key), own(key), why));
                }
                "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                    let path = items_path.child("x-kubernetes-map-type");
                    // upstream shows the list's type here
                    errors.push(Error::invalid(&path, own("x-kubernetes-list-type"), why));
                }
                _ => {}
            }
        }
        if !matches!(list_type, "" | "atomic" | "set" | "map") {
            let path = path.child("x-kubernetes-list-type");
            errors.push(Error::not_supported(&path, list_type, &["atomic", "set", "map"]));
        }
    }

    fn keys(&mut self, schema: &Value, path: &Path) {
        let errors = &mut self.schema;
        let list_type = text(schema, "x-kubernetes-list-type");
        let key_list = branches(schema, "x-kubernetes-list-map-keys");
        let keys: Vec<&str> = key_list.filter_map(Value::as_str).collect();
        let keys_path = path.child("x-kubernetes-list-map-keys");
        if !keys.is_empty() && list_type != "map" {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            let path = path.child("x-kubernetes-list-type");
            errors.push(match list_type {
                "" => Error::required(&path, why),
                other => Error::invalid(&path, other, why),
            });
        }
        let items = child(schema, "items");
        let items_path = path.child("items");
        if list_type == "map" {
            if keys.is_empty() {
                let why = "must not be empty if x-kubernetes-list-type is map";
                errors.push(Error::required(&keys_path, why));
            }
            match items {
                None => errors.push(Error::required(
                    &items_path,
                    "must have a schema if x-kubernetes-list-type is map",
                )),
                Some(items) if text(items, "type") != "object" => {
                    let why = "must be object if parent array's x-kubernetes-list-type is map";
                    errors.push(Error::invalid(&items_path.child("type"), text(items, "type"), why));
                }
                Some(items) => {
                    let mut seen = BTreeSet::new();
                    for key in &keys {
                        match items.get("properties").and_then(|properties| properties.get(*key)) {
                            Some(own) if matches!(text(own, "type"), "array" | "object") => {
                                let path = items_path.child("properties").key(key).child("type");
                                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                                errors.push(Error::invalid(&path, text(items, "type"), why));
                            }
                            Some(_) => {}
                            None => {
                                let why = "entries must all be names of item properties";
                                errors.push(Error::invalid(&keys_path, json!(keys), why));
                            }
                        }
                        if !seen.insert(key) {
                            let why = "must not contain duplicate entries";
                            errors.push(Error::invalid(&keys_path, json!(keys), why));
                        }
                    }
                }
            }
        }
        let (Some(items), "set" | "map") = (items, list_type) else {
            return;
        };
        if flag(items, "nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            errors.push(Error::forbidden(&items_path.child("nullable"), why));
        }
        for key in keys.iter().filter(|_| list_type == "map") {
            let Some(own) = items.get("properties").and_then(|properties| properties.get(*key)) else {
                continue;
            };
            let path = items_path.child("properties").key(key);
            let required = branches(items, "required").any(|name| name.as_str() == Some(key));
            if !required && own.get("default").is_none_or(Value::is_null) {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                errors.push(Error::required(&path.child("default"), why));
            }
            if flag(own, "nullable") {
                let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                errors.push(Error::forbidden(&path.child("nullable"), why));
            }
        }
    }

    fn rules(&mut self, schema: &Value, context: &Context<'_>, errors_before: usize, path: &Path) {
        let documents: Vec<&Value> = branches(schema, "x-kubernetes-validations").collect();
        if documents.is_empty() {
            return;
        }
        let path = path.child("x-kubernetes-validations");
        for (at, document) in documents.iter().enumerate() {
            beside(schema, document, &path.index(at), &mut self.schema);
        }
        let Some(parsed) = context.parsed.filter(|_| self.schema.len() == errors_before) else {
            return;
        };
        let Some(declared) = rules::declared(parsed) else {
            let why = "internal error: failed to retrieve type information for x-kubernetes-validations";
            self.rules.push(Error::internal(&path, why));
            return;
        };
        let read: Vec<Rule> = documents.iter().filter_map(|document| Rule::parse(document)).collect();
        for (at, compiled) in Rules::compile(&read, &declared).iter().enumerate() {
            let (Some(document), Some(rule)) = (documents.get(at), read.get(at)) else {
                continue;
            };
            let rule_path = path.index(at).child("rule");
            let cost = compiled.program.as_ref().map_or(0, |program| program.estimated_cost);
            let cost = cost.saturating_mul(context.cardinality.unwrap_or_else(|| at_most(&declared)));
            if cost > RULE_LIMIT {
                let why = exceeded("estimated rule cost", cost, RULE_LIMIT);
                self.rules.push(Error::forbidden(&rule_path, why));
            }
            self.costs.add(&rule_path, cost);
            if let Err(why) = &compiled.program {
                self.rules
                    .push(Error::invalid_part(&rule_path, format!("{}: {why}", shown(document))));
            }
            let message_path = path.index(at).child("messageExpression");
            // a rule that does not compile has no message
            match compiled.message.as_ref().filter(|_| compiled.program.is_ok()) {
                Some(Err(why)) => {
                    let why = format!("{}: {why}", shown(document));
                    self.rules.push(Error::invalid_part(&message_path, why));
                }
                Some(Ok(program)) => {
                    if program.estimated_cost > RULE_LIMIT {
                        let why = exceeded("estimated messageExpression cost", program.estimated_cost, RULE_LIMIT);
                        self.rules.push(Error::forbidden(&message_path, why));
                    }
                    self.costs.add(&message_path, program.estimated_cost);
                }
                None => {}
            }
            if compiled.uses_old_self {
                if let Some(above) = &context.uncorrelated {
                    let why = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {}",
                        above.as_str()
                    );
                    self.rules.push(Error::invalid(&rule_path, rule.rule.as_str(), why));
                }
            } else if let Some(optional) = document.get("optionalOldSelf").filter(|value| value.is_boolean()) {
                let why = "may not be set if oldSelf is not used in rule";
                let path = path.index(at).child("optionalOldSelf");
                self.rules.push(Error::invalid(&path, optional.clone(), why));
            }
        }
    }
}

/// How many values of a declaration fit into a request.
fn at_most(declared: &Arc<Declared>) -> u64 {
    gardener_cel::REQUEST_SIZE / (declared.min_size + 1)
}

/// How many values a node has below it; none: there is no bound.
fn most(schema: &Value) -> Option<u64> {
    let number = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_i64)
            .map(|number| u64::try_from(number).unwrap_or(0))
    };
    match text(schema, "type") {
        "object" if schema.get("additionalProperties").is_some_and(|value| !value.is_null()) => number("maxProperties"),
        "array" => number("maxItems"),
        _ => Some(1),
    }
}

/// A rule as Go shows one.
fn shown(document: &Value) -> String {
    let text = |key: &str| document.get(key).cloned().unwrap_or_else(|| "".into());
    let or_null = |key: &str| document.get(key).cloned().unwrap_or(Value::Null);
    // in the order of Go's fields, which a map of JSON does not keep: the text is put together here
    let members = [
        ("Rule", text("rule")),
        ("Message", text("message")),
        ("MessageExpression", text("messageExpression")),
        ("Reason", or_null("reason")),
        ("FieldPath", text("fieldPath")),
        ("OptionalOldSelf", or_null("optionalOldSelf")),
    ];
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("\"{key}\":{value}"))
        .collect();
    go_escaped(format!("{{{}}}", members.join(","))).into_owned()
}

/// Checks what stands beside an expression.
fn beside(schema: &Value, document: &Value, path: &Path, errors: &mut ErrorList) {
    const REASONS: [&str; 4] = [
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueRequired",
    ];
    let (rule, message) = (text(document, "rule"), text(document, "message"));
    let breaks = |text: &str| text.contains(['\n', '\r']);
    if rule.trim().is_empty() {
        errors.push(Error::required(&path.child("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        let why = "must be non-empty if specified";
        errors.push(Error::invalid(&path.child("message"), message, why));
    } else if breaks(message.trim()) {
        let why = "must not contain line breaks";
        errors.push(Error::invalid(&path.child("message"), message, why));
    } else if breaks(rule.trim()) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(Error::required(&path.child("message"), why));
    }
    let expression = text(document, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        errors.push(Error::required(&path.child("messageExpression"), why));
    }
    if let Some(reason) = document.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        errors.push(Error::not_supported(&path.child("reason"), reason, &REASONS));
    }
    let below = text(document, "fieldPath");
    let path = path.child("fieldPath");
    if !below.is_empty() && below.trim().is_empty() {
        errors.push(Error::invalid(&path, below, "must be non-empty if specified"));
    }
    if breaks(below) {
        errors.push(Error::invalid(&path, below, "must not contain line breaks"));
    }
    if !below.is_empty() && at_path(schema, below, true).is_err() {
        errors.push(Error::invalid(&path, below, "must be a valid path"));
    }
}

/// The schema at a path of fields (`.a.b`, and with `arrays` also `['c']`).
///
/// # Errors
/// Why the path leads nowhere.
pub fn at_path<'a>(schema: &'a Value, path: &str, arrays: bool) -> Result<&'a Value, String> {
    let mut own = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(tail) = rest.strip_prefix('[') {
            if !arrays {
                return Err("array notation is not allowed".to_owned());
            }
            let inner = tail.strip_prefix('\'').and_then(|tail| tail.split_once("']"));
            let Some((key, tail)) = inner else {
                let shown = tail.split([']', '.', '[']).next().unwrap_or_default();
                return Err(format!("expected single quoted string but got {shown}"));
            };
            (name, rest) = (key.replace("\\'", "'"), tail);
        } else if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[', ']']).unwrap_or(tail.len());
            let (key, tail) = tail.split_at_checked(end).unwrap_or((tail, ""));
            if key.is_empty() && tail.is_empty() {
                return Err("unexpected end of JSON path".to_owned());
            }
            (name, rest) = (key.to_owned(), tail);
        } else {
            let shown = rest.split(['.', '[', ']']).next().unwrap_or_default();
            return Err(format!("expected [ or . but got: {shown}"));
        }
        own = match (own.get("properties"), child(own, "additionalProperties")) {
            (Some(properties), _) => properties.get(&name).ok_or("does not refer to a valid field")?,
            (None, Some(additional)) => additional,
            (None, None) => return Err("does not refer to a valid field".to_owned()),
        };
    }
    Ok(own)
}

/// Checks that defaults are what their schemas ask for.
fn defaults(
    schema: &Value,
    parsed: &Schema,
    (is_root, inside_meta): (bool, bool),
    path: &Path,
    errors: &mut ErrorList,
) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let path = path.child("default");
        let mut pruned = default.clone();
        parsed.prune_beside_metadata(&mut pruned);
        if !inside_meta && pruned != *default {
            errors.push(Error::invalid(&path, default.clone(), "must not have unknown fields"));
        }
        // findings tell the place within the default
        for mut error in parsed.validate(default, None, &Path::root()) {
            error.path = match error.path.as_str() {
                "" => path.clone(),
                within if within.starts_with('[') => Path::new(&format!("{}{within}", path.as_str())),
                within => path.child(within),
            };
            errors.push(error);
        }
    }
    if let (Some(items), Some(parsed)) = (child(schema, "items"), parsed.items()) {
        defaults(items, parsed, (false, inside_meta), &path.child("items"), errors);
    }
    let parsed_is_embedded = parsed.is_embedded_resource();
    for (name, property) in properties(schema) {
        // what is said of metadata is not the metadata's schema
        let is_meta = is_root && matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        if let Some(parsed) = parsed.field(name).filter(|_| !is_meta) {
            let inside_meta = inside_meta || parsed_is_embedded && name == "metadata";
            defaults(
                property,
                parsed,
                (false, inside_meta),
                &path.child("properties").key(name),
                errors,
            );
        }
    }
}
