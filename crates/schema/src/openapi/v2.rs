//! The Swagger 2.0 form of OpenAPI v3 documents: one document for all groups, which API servers publish at `/openapi/v2`.
//!
//! Version 2 has no `oneOf`, `nullable` or schemas beside references. What cannot be said is left out as kube-apiserver leaves it
//! out of its own, so that clients which know only this version (kubectl up to 1.28) accept all that the server accepts.

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

/// Where schemas live in version 3.
const COMPONENTS: &str = "#/components/schemas/";
/// Where schemas live in version 2.
const DEFINITIONS: &str = "#/definitions/";
/// What a path item holds beside its parameters.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// One document from those of all groups. A schema that several documents carry counts once; the first tells of the server.
pub fn document(documents: impl IntoIterator<Item = Value>) -> Value {
    let (mut info, mut credentials) = (None, Map::new());
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for mut document in documents {
        info = info.or_else(|| document.get_mut("info").map(Value::take));
        credentials.extend(object(document.at_mut("/components/securitySchemes")));
        for (path, item) in object(document.get_mut("paths")) {
            paths.insert(path, path_item(item));
        }
        for (name, mut component) in object(document.at_mut("/components/schemas")) {
            definitions.entry(name).or_insert_with(|| {
                schema(&mut component);
                component
            });
        }
    }
    let mut whole = json!({
        "swagger": "2.0",
        "info": info.unwrap_or_else(|| json!({"title": "Kubernetes", "version": "unversioned"})),
        "paths": paths,
        "definitions": definitions,
    });
    if let Some(whole) = whole.as_object_mut()
        && !credentials.is_empty()
    {
        let each = credentials.keys().map(|name| json!({name: []})).collect();
        whole.insert("security".to_owned(), each);
        whole.insert("securityDefinitions".to_owned(), Value::Object(credentials));
    }
    whole
}

/// Takes the members of an object out of its place; none when there is no object.
fn object(place: Option<&mut Value>) -> Map<String, Value> {
    match place.map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn path_item(mut item: Value) -> Value {
    let Some(members) = item.as_object_mut() else {
        return item;
    };
    for method in METHODS {
        if let Some(found) = members.get_mut(method) {
            operation(found);
        }
    }
    parameters(members);
    item
}

fn operation(operation: &mut Value) {
    let Some(members) = operation.as_object_mut() else {
        return;
    };
    parameters(members);
    members.insert("schemes".to_owned(), json!(["https"]));
    let mut body = members.remove("requestBody").unwrap_or_default();
    let content = object(body.get_mut("content"));
    if let Some(mut form) = content.values().next().and_then(|media| media.get("schema")).cloned() {
        schema(&mut form);
        let required = body.get("required").cloned().unwrap_or(Value::Bool(false));
        members.insert("consumes".to_owned(), content.keys().cloned().collect());
        let list = members.entry("parameters").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!({"in": "body", "name": "body", "required": required, "schema": form}));
        }
    }
    let mut produces: Vec<String> = Vec::new();
    for response in members
        .get_mut("responses")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let content = object(response.get_mut("content"));
        let Some(response) = response.as_object_mut() else {
            continue;
        };
        response.remove("content");
        if let Some(mut form) = content.values().next().and_then(|media| media.get("schema")).cloned() {
            schema(&mut form);
            response.insert("schema".to_owned(), form);
        }
        produces.extend(content.into_iter().map(|(media, _)| media));
    }
    produces.sort();
    produces.dedup();
    if !produces.is_empty() {
        members.insert("produces".to_owned(), json!(produces));
    }
}

/// The schema of a parameter that is no body stands in the parameter itself.
fn parameters(holder: &mut Map<String, Value>) {
    for parameter in holder
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(parameter) = parameter.as_object_mut() else {
            continue;
        };
        if let Some(Value::Object(form)) = parameter.remove("schema") {
            parameter.extend(form);
        }
    }
}

fn schema(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    alternatives(members);
    members.remove("default");
    if let Some(Value::String(target)) = members.get_mut("$ref")
        && let Some(name) = target.strip_prefix(COMPONENTS)
    {
        *target = format!("{DEFINITIONS}{name}");
    }
    let any_value = members.remove("nullable") == Some(Value::Bool(true));
    let any_members = members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if any_value || any_members {
        members.remove("items");
        members.remove("properties");
    }
    let kind = members.get("type").and_then(Value::as_str);
    let untyped = match kind {
        Some("object") => any_members,
        Some("array") => !members.contains_key("items"),
        _ => false,
    };
    if any_value || untyped {
        members.remove("type");
    }
    not_required(members);
    for child in members
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        self::schema(child);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = members.get_mut(name) {
            self::schema(child);
        }
    }
}

/// A reference with something beside it is an `allOf` of one in version 3. Other alternatives cannot be said; those of Kubernetes' own
/// types (quantities, int-or-string) are strings.
fn alternatives(members: &mut Map<String, Value>) {
    if let Some(Value::Array(all)) = members.remove("allOf")
        && let [only] = all.as_slice()
        && let Some(target) = only.get("$ref")
    {
        members.insert("$ref".to_owned(), target.clone());
    }
    members.remove("not");
    members.remove("anyOf");
    let one_of = members.remove("oneOf");
    let is_string = |form: &Value| form.get("type").is_some_and(|kind| kind == "string");
    if one_of
        .as_ref()
        .and_then(Value::as_array)
        .is_some_and(|forms| forms.iter().any(is_string))
        && !members.contains_key("x-kubernetes-int-or-string")
    {
        members.entry("type").or_insert_with(|| "string".into());
    }
}

/// A member that may be null may as well be missing; so may those of an embedded resource that has no members here.
fn not_required(members: &mut Map<String, Value>) {
    let nullable = |form: Option<&Value>| form.and_then(|form| form.get("nullable")) == Some(&Value::Bool(true));
    if nullable(members.get("additionalProperties")) {
        members.remove("required");
    }
    let Some(Value::Array(mut required)) = members.remove("required") else {
        return;
    };
    let is_set = |name: &str| members.get(name) == Some(&Value::Bool(true));
    let hidden = is_set("x-kubernetes-embedded-resource") && is_set("x-kubernetes-preserve-unknown-fields");
    required.retain(|name| {
        let property = |name: &str| members.get("properties").and_then(|properties| properties.get(name));
        let is_hidden = |name: &str| hidden && matches!(name, "kind" | "apiVersion");
        name.as_str()
            .is_some_and(|name| !nullable(property(name)) && !is_hidden(name))
    });
    if !required.is_empty() {
        members.insert("required".to_owned(), Value::Array(required));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(mut value: Value) -> Value {
        schema(&mut value);
        value
    }

    #[test]
    fn what_version_2_cannot_say_is_left_out() {
        for (v3, v2) in [
            (
                json!({"allOf": [{"$ref": "#/components/schemas/a.B"}], "default": {}, "description": "d"}),
                json!({"$ref": "#/definitions/a.B", "description": "d"}),
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
                json!({"type": "string", "format": "int-or-string"}),
            ),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
                json!({"x-kubernetes-int-or-string": true}),
            ),
            (
                json!({"type": "object", "nullable": true, "properties": {"a": {"type": "string"}}}),
                json!({}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true,
                    "required": ["a", "kind", "apiVersion"], "properties": {"kind": {"type": "string"}}}),
                json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true, "required": ["a"]}),
            ),
            (
                json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "string"}}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
                json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
            ),
            (
                json!({"type": "array", "items": {"$ref": "#/components/schemas/a.B"}, "x-kubernetes-list-type": "map"}),
                json!({"type": "array", "items": {"$ref": "#/definitions/a.B"}, "x-kubernetes-list-type": "map"}),
            ),
        ] {
            assert_eq!(converted(v3.clone()), v2, "{v3}");
        }
    }

    #[test]
    fn bodies_and_answers_become_parameters_and_schemas() {
        let v3 = json!({
            "paths": {"/api/v1/things": {
                "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}}],
                "post": {
                    "operationId": "createCoreV1Thing",
                    "requestBody": {"required": true, "content": {"*/*": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                    "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}},
                    "x-kubernetes-action": "post",
                },
            }},
            "components": {"schemas": {"Thing": {"type": "object"}}},
        });
        assert_eq!(
            document([v3.clone(), v3]),
            json!({
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": "unversioned"},
                "paths": {"/api/v1/things": {
                    "parameters": [{"name": "pretty", "in": "query", "type": "string", "uniqueItems": true}],
                    "post": {
                        "operationId": "createCoreV1Thing",
                        "consumes": ["*/*"],
                        "produces": ["application/json"],
                        "schemes": ["https"],
                        "parameters": [{"in": "body", "name": "body", "required": true, "schema": {"$ref": "#/definitions/Thing"}}],
                        "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}},
                        "x-kubernetes-action": "post",
                    },
                }},
                "definitions": {"Thing": {"type": "object"}},
            })
        );
    }
}
