//! Documents of version 3: messages `openapi.v3.*`.

use serde_json::Value;

use super::{Message, any, elements, members, named};

/// A document of version 3 ([`crate::openapi::document`]) as message `Document`.
pub fn encode(document: &Value) -> Vec<u8> {
    Message::default()
        .text(1, document.get("openapi"))
        .optional(2, document.get("info"), info)
        .optional(4, document.get("paths"), |paths| {
            Message::default().messages(1, members(paths).map(|(name, item)| named(name, path_item(item))))
        })
        .optional(5, document.get("components"), components)
        .extensions(9, document)
        .0
}

fn info(info: &Value) -> Message {
    Message::default()
        .text(1, info.get("title"))
        .text(2, info.get("description"))
        .text(6, info.get("version"))
}

fn components(components: &Value) -> Message {
    Message::default()
        .optional(1, components.get("schemas"), schemas)
        .optional(7, components.get("securitySchemes"), |schemes| {
            let schemes = members(schemes).map(|(name, scheme)| named(name, or_reference(scheme, security_scheme)));
            Message::default().messages(1, schemes)
        })
        .extensions(10, components)
}

fn security_scheme(scheme: &Value) -> Message {
    Message::default()
        .text(1, scheme.get("type"))
        .text(2, scheme.get("description"))
        .text(3, scheme.get("name"))
        .text(4, scheme.get("in"))
        .text(5, scheme.get("scheme"))
        .extensions(9, scheme)
}

/// `SchemaOrReference`, `ParameterOrReference`, and so on.
fn or_reference(value: &Value, form: impl Fn(&Value) -> Message) -> Message {
    match value.get("$ref") {
        Some(reference) => Message::default().message(2, Message::default().text(1, Some(reference))),
        None => Message::default().message(1, form(value)),
    }
}

fn path_item(item: &Value) -> Message {
    Message::default()
        .text(2, item.get("summary"))
        .text(3, item.get("description"))
        .optional(4, item.get("get"), operation)
        .optional(5, item.get("put"), operation)
        .optional(6, item.get("post"), operation)
        .optional(7, item.get("delete"), operation)
        .optional(8, item.get("options"), operation)
        .optional(9, item.get("head"), operation)
        .optional(10, item.get("patch"), operation)
        .messages(13, parameters(item))
        .extensions(14, item)
}

fn operation(operation: &Value) -> Message {
    Message::default()
        .texts(1, operation.get("tags"))
        .text(2, operation.get("summary"))
        .text(3, operation.get("description"))
        .text(5, operation.get("operationId"))
        .messages(6, parameters(operation))
        .optional(7, operation.get("requestBody"), |body| or_reference(body, request_body))
        .optional(8, operation.get("responses"), responses)
        .flag(10, operation.get("deprecated"))
        .extensions(13, operation)
}

fn parameters(of: &Value) -> impl Iterator<Item = Message> {
    elements(of.get("parameters")).map(|own| or_reference(own, parameter))
}

fn parameter(parameter: &Value) -> Message {
    Message::default()
        .text(1, parameter.get("name"))
        .text(2, parameter.get("in"))
        .text(3, parameter.get("description"))
        .flag(4, parameter.get("required"))
        .optional(10, parameter.get("schema"), schema_or_reference)
        .extensions(14, parameter)
}

fn request_body(body: &Value) -> Message {
    Message::default()
        .text(1, body.get("description"))
        .optional(2, body.get("content"), media_types)
        .flag(3, body.get("required"))
        .extensions(4, body)
}

fn media_types(content: &Value) -> Message {
    let media_type = |form: &Value| {
        Message::default()
            .optional(1, form.get("schema"), schema_or_reference)
            .extensions(5, form)
    };
    Message::default().messages(1, members(content).map(|(name, form)| named(name, media_type(form))))
}

fn responses(responses: &Value) -> Message {
    let response = |response: &Value| {
        Message::default()
            .text(1, response.get("description"))
            .optional(3, response.get("content"), media_types)
            .extensions(5, response)
    };
    let by_code = members(responses).filter(|(code, _)| *code != "default" && !code.starts_with("x-"));
    Message::default()
        .optional(1, responses.get("default"), |own| or_reference(own, response))
        .messages(2, by_code.map(|(code, own)| named(code, or_reference(own, response))))
        .extensions(3, responses)
}

/// `SchemasOrReferences` and `Properties`.
fn schemas(schemas: &Value) -> Message {
    Message::default().messages(
        1,
        members(schemas).map(|(name, form)| named(name, schema_or_reference(form))),
    )
}

fn schema_or_reference(form: &Value) -> Message {
    or_reference(form, schema)
}

fn schema(form: &Value) -> Message {
    let some_of = |name: &str| elements(form.get(name)).map(schema_or_reference);
    Message::default()
        .flag(1, form.get("nullable"))
        .optional(6, form.get("externalDocs"), |told| {
            Message::default()
                .text(1, told.get("description"))
                .text(2, told.get("url"))
        })
        .optional(7, form.get("example"), any)
        .text(9, form.get("title"))
        .double(10, form.get("multipleOf"))
        .double(11, form.get("maximum"))
        .flag(12, form.get("exclusiveMaximum"))
        .double(13, form.get("minimum"))
        .flag(14, form.get("exclusiveMinimum"))
        .integer(15, form.get("maxLength"))
        .integer(16, form.get("minLength"))
        .text(17, form.get("pattern"))
        .integer(18, form.get("maxItems"))
        .integer(19, form.get("minItems"))
        .flag(20, form.get("uniqueItems"))
        .integer(21, form.get("maxProperties"))
        .integer(22, form.get("minProperties"))
        .texts(23, form.get("required"))
        .messages(24, elements(form.get("enum")).map(any))
        .text(25, form.get("type"))
        .messages(26, some_of("allOf"))
        .messages(27, some_of("oneOf"))
        .messages(28, some_of("anyOf"))
        .optional(29, form.get("not"), schema)
        .optional(30, form.get("items"), |items| {
            Message::default().message(1, schema_or_reference(items))
        })
        .optional(31, form.get("properties"), schemas)
        .optional(32, form.get("additionalProperties"), additional_properties)
        .optional(33, form.get("default"), default)
        .text(34, form.get("description"))
        .text(35, form.get("format"))
        .extensions(36, form)
}

/// `AdditionalPropertiesItem`: a schema, or whether any is allowed.
fn additional_properties(form: &Value) -> Message {
    match form {
        Value::Bool(_) => Message::default().member_flag(2, form),
        form => Message::default().message(1, schema_or_reference(form)),
    }
}

/// `DefaultType`. It has no place for lists and objects: of those it tells only that there is a default.
fn default(value: &Value) -> Message {
    match value {
        Value::Number(_) => Message::default().double(1, Some(value)),
        Value::Bool(_) => Message::default().member_flag(2, value),
        _ => Message::default().text(3, Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_written_as_gnostic_writes_them() {
        let reference = json!({"$ref": "#/components/schemas/A"});
        let document = json!({
            "openapi": "3.0.0",
            "info": {"title": "t", "version": "v"},
            "paths": {"/a/{n}": {
                "parameters": [{"name": "n", "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}],
                "patch": {
                    "operationId": "p",
                    "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
                    "requestBody": {"required": true, "content": {"a/b": {"schema": reference}}},
                    "responses": {"200": {"description": "OK", "content": {"c/d": {"schema": reference}}}},
                },
            }},
            "components": {
                "schemas": {"A": {
                    "type": "object",
                    "required": ["b"],
                    "properties": {
                        "b": {"type": "array", "maxItems": 300, "items": {"type": "number", "minimum": 1.5, "exclusiveMinimum": true, "default": 2}},
                        "c": {"additionalProperties": {"type": "string", "default": "d"}},
                        "e": {"allOf": [reference], "default": {}},
                        "f": {"type": "boolean", "default": false, "additionalProperties": false, "nullable": true},
                    },
                }},
                "securitySchemes": {"B": {"type": "apiKey", "name": "authorization", "in": "header"}},
            },
        });
        // what `proto.Marshal(openapi_v3.ParseDocument(document))` of gnostic-models v0.7.1 gives
        let expected = "0a05332e302e3012060a017432017622b8010ab5010a062f612f7b6e7d12aa015288012a0170321e0a1c0a0664727952756e12057175\
            657279520b0a09ca0106737472696e673a2b0a2912250a230a03612f62121c0a1a12180a16232f636f6d706f6e656e74732f73636865\
            6d61732f411801423612340a03323030122d0a2b0a024f4b1a250a230a03632f64121c0a1a12180a16232f636f6d706f6e656e74732f\
            736368656d61732f416a1d0a1b0a016e1204706174682001520e0a0ca00101ca0106737472696e672aed010ac0010abd010a014112b7\
            010ab401ba010162ca01066f626a656374fa01a3010a3a0a016212350a339001ac02ca01056172726179f201240a220a206900000000\
            0000f83f7001ca01066e756d6265728a02090900000000000000400a1d0a016312180a168202130a110a0fca0106737472696e678a02\
            031a01640a270a016512220a20d2011a12180a16232f636f6d706f6e656e74732f736368656d61732f418a02000a1d0a016612180a16\
            0801ca0107626f6f6c65616e82020210008a020210003a280a260a014212210a1f0a066170694b65791a0d617574686f72697a617469\
            6f6e2206686561646572";
        let found: String = encode(&document).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected);
    }
}
