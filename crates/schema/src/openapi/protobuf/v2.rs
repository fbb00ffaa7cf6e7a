//! Documents of version 2: messages `openapi.v2.*`.

use serde_json::Value;

use super::{Message, any, elements, members, named};

/// A document of version 2 ([`crate::openapi::v2::document`]) as message `Document`.
pub fn encode(document: &Value) -> Vec<u8> {
    Message::default()
        .text(1, document.get("swagger"))
        .optional(2, document.get("info"), info)
        .optional(8, document.get("paths"), |paths| {
            Message::default().messages(2, members(paths).map(|(name, item)| named(name, path_item(item))))
        })
        .optional(9, document.get("definitions"), schemas)
        .messages(12, elements(document.get("security")).map(security_requirement))
        .optional(13, document.get("securityDefinitions"), |definitions| {
            Message::default().messages(
                1,
                members(definitions).map(|(name, definition)| named(name, security_definitions_item(definition))),
            )
        })
        .extensions(16, document)
        .0
}

fn security_requirement(requirement: &Value) -> Message {
    let scopes = |scopes| Message::default().texts(1, Some(scopes));
    Message::default().messages(1, members(requirement).map(|(name, own)| named(name, scopes(own))))
}

/// `SecurityDefinitionsItem` of an `ApiKeySecurity`.
fn security_definitions_item(definition: &Value) -> Message {
    let key = Message::default()
        .text(1, definition.get("type"))
        .text(2, definition.get("name"))
        .text(3, definition.get("in"))
        .text(4, definition.get("description"))
        .extensions(5, definition);
    Message::default().message(2, key)
}

fn info(info: &Value) -> Message {
    Message::default()
        .text(1, info.get("title"))
        .text(2, info.get("version"))
        .text(3, info.get("description"))
}

fn path_item(item: &Value) -> Message {
    Message::default()
        .optional(2, item.get("get"), operation)
        .optional(3, item.get("put"), operation)
        .optional(4, item.get("post"), operation)
        .optional(5, item.get("delete"), operation)
        .optional(6, item.get("options"), operation)
        .optional(7, item.get("head"), operation)
        .optional(8, item.get("patch"), operation)
        .messages(9, elements(item.get("parameters")).map(parameters_item))
        .extensions(10, item)
}

fn operation(operation: &Value) -> Message {
    Message::default()
        .texts(1, operation.get("tags"))
        .text(2, operation.get("summary"))
        .text(3, operation.get("description"))
        .text(5, operation.get("operationId"))
        .texts(6, operation.get("produces"))
        .texts(7, operation.get("consumes"))
        .messages(8, elements(operation.get("parameters")).map(parameters_item))
        .optional(9, operation.get("responses"), responses)
        .texts(10, operation.get("schemes"))
        .flag(11, operation.get("deprecated"))
        .extensions(13, operation)
}

/// `ParametersItem` of a `Parameter`: a `BodyParameter`, or a `NonBodyParameter` of a path or query.
fn parameters_item(parameter: &Value) -> Message {
    let found = match parameter.get("in").and_then(Value::as_str) {
        Some("body") => Message::default().message(1, body_parameter(parameter)),
        Some("path") => Message::default().message(2, Message::default().message(4, path_parameter(parameter))),
        _ => Message::default().message(2, Message::default().message(3, query_parameter(parameter))),
    };
    Message::default().message(1, found)
}

fn body_parameter(parameter: &Value) -> Message {
    Message::default()
        .text(1, parameter.get("description"))
        .text(2, parameter.get("name"))
        .text(3, parameter.get("in"))
        .flag(4, parameter.get("required"))
        .optional(5, parameter.get("schema"), schema)
        .extensions(6, parameter)
}

fn path_parameter(parameter: &Value) -> Message {
    Message::default()
        .flag(1, parameter.get("required"))
        .text(2, parameter.get("in"))
        .text(3, parameter.get("description"))
        .text(4, parameter.get("name"))
        .text(5, parameter.get("type"))
        .text(6, parameter.get("format"))
        .flag(19, parameter.get("uniqueItems"))
        .extensions(22, parameter)
}

fn query_parameter(parameter: &Value) -> Message {
    Message::default()
        .flag(1, parameter.get("required"))
        .text(2, parameter.get("in"))
        .text(3, parameter.get("description"))
        .text(4, parameter.get("name"))
        .text(6, parameter.get("type"))
        .text(7, parameter.get("format"))
        .flag(20, parameter.get("uniqueItems"))
        .extensions(23, parameter)
}

/// `Responses` of `ResponseValue`s that are `Response`s, whose `SchemaItem`s are `Schema`s.
fn responses(responses: &Value) -> Message {
    let response = |response: &Value| {
        Message::default()
            .text(1, response.get("description"))
            .optional(2, response.get("schema"), |form| {
                Message::default().message(1, schema(form))
            })
            .extensions(5, response)
    };
    let by_code = members(responses).filter(|(code, _)| !code.starts_with("x-"));
    Message::default()
        .messages(
            1,
            by_code.map(|(code, found)| named(code, Message::default().message(1, response(found)))),
        )
        .extensions(2, responses)
}

/// `Definitions` and `Properties`.
fn schemas(schemas: &Value) -> Message {
    Message::default().messages(1, members(schemas).map(|(name, form)| named(name, schema(form))))
}

fn schema(form: &Value) -> Message {
    Message::default()
        .text(1, form.get("$ref"))
        .text(2, form.get("format"))
        .text(3, form.get("title"))
        .text(4, form.get("description"))
        .optional(5, form.get("default"), any)
        .double(6, form.get("multipleOf"))
        .double(7, form.get("maximum"))
        .flag(8, form.get("exclusiveMaximum"))
        .double(9, form.get("minimum"))
        .flag(10, form.get("exclusiveMinimum"))
        .integer(11, form.get("maxLength"))
        .integer(12, form.get("minLength"))
        .text(13, form.get("pattern"))
        .integer(14, form.get("maxItems"))
        .integer(15, form.get("minItems"))
        .flag(16, form.get("uniqueItems"))
        .integer(17, form.get("maxProperties"))
        .integer(18, form.get("minProperties"))
        .texts(19, form.get("required"))
        .messages(20, elements(form.get("enum")).map(any))
        .optional(21, form.get("additionalProperties"), additional_properties)
        .optional(22, form.get("type"), |kind| Message::default().texts(1, Some(kind)))
        .optional(23, form.get("items"), |items| {
            Message::default().message(1, schema(items))
        })
        .messages(24, elements(form.get("allOf")).map(schema))
        .optional(25, form.get("properties"), schemas)
        .optional(30, form.get("example"), any)
        .extensions(31, form)
}

/// `AdditionalPropertiesItem`: a schema, or whether any is allowed.
fn additional_properties(form: &Value) -> Message {
    match form {
        Value::Bool(_) => Message::default().member_flag(2, form),
        form => Message::default().message(1, schema(form)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hexadecimal(document: &Value) -> String {
        encode(document).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn documents_are_written_as_gnostic_writes_them() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "t", "version": "v"},
            "paths": {"/a/{n}": {
                "parameters": [{"name": "n", "in": "path", "required": true, "type": "string", "uniqueItems": true}],
                "patch": {
                    "operationId": "p",
                    "consumes": ["a/b"],
                    "parameters": [
                        {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": true},
                        {"in": "body", "name": "body", "required": true, "schema": {"$ref": "#/definitions/A"}},
                    ],
                    "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}},
                },
            }},
            "definitions": {"A": {
                "type": "object",
                "required": ["b"],
                "properties": {
                    "b": {"type": "array", "maxItems": 300, "items": {"type": "number", "minimum": 1.5, "exclusiveMinimum": true}},
                    "c": {"additionalProperties": {"type": "string"}},
                },
            }},
        });
        // what `proto.Marshal(openapi_v2.ParseDocument(document))` of gnostic-models v0.7.0 gives
        let expected = "0a03322e3012060a017412017642a50112a2010a062f612f7b6e7d12970142772a01703a03612f6242200a1e121c1a1a1205717565727922\
            0664727952756e3206737472696e67a0010142250a230a211204626f64791a04626f647920012a110a0f232f646566696e6974696f6e732f\
            414a240a220a03323030121b0a190a024f4b12130a110a0f232f646566696e6974696f6e732f414a1c0a1a12182216080112047061746822\
            016e2a06737472696e679801014a5f0a5d0a014112589a010162b201080a066f626a656374ca01460a2d0a0162122870ac02b201070a0561\
            72726179ba01180a1649000000000000f83f5001b201080a066e756d6265720a150a01631210aa010d0a0bb201080a06737472696e67";
        assert_eq!(hexadecimal(&document), expected);
    }

    #[test]
    fn credentials_are_written_as_gnostic_writes_them() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "t", "version": "v"},
            "paths": {},
            "securityDefinitions": {"B": {"type": "apiKey", "name": "authorization", "in": "header"}},
            "security": [{"B": []}],
        });
        let expected = "0a03322e3012060a0174120176420062070a050a014212006a280a260a01421221121f0a066170694b6579120d617574686f72697a\
            6174696f6e1a06686561646572";
        assert_eq!(hexadecimal(&document), expected);
    }

    #[test]
    fn members_without_a_field_are_vendor_extensions() {
        // field 16 of Document: NamedAny { name: "x-a", value: Any { yaml: "[1]" } }
        assert_eq!(
            hexadecimal(&json!({"x-a": [1], "unknown": 1})),
            "82010c0a03782d611205".to_owned() + "12035b315d"
        );
    }
}
