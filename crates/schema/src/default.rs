//! Structural defaulting, as apiextensions does it for custom resources.
//!
//! The `default` of OpenAPI documents of built-in kinds only tells Go's zero values; do not fill those in.

use serde_json::Value;

use crate::schema::Schema;

impl Schema {
    /// Fills in defaults, into objects that exist. A null where null is no value (`nullable` is not set) is replaced by
    /// the default; where there is none, it is dropped.
    pub fn apply_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, field) in self.fields() {
                    let Some(default) = field.default_value() else { continue };
                    match members.get(name) {
                        None => {}
                        Some(Value::Null) if !field.is_nullable() => {}
                        Some(_) => continue,
                    }
                    members.insert(name.to_owned(), default.clone());
                }
                members.retain(|name, value| {
                    let Some(child) = self.child(name) else { return true };
                    if value.is_null() && !child.is_nullable() && !child.is_free() {
                        match child.default_value() {
                            Some(default) => *value = default.clone(),
                            None => return false,
                        }
                    }
                    child.apply_defaults(value);
                    true
                });
            }
            Value::Array(elements) => {
                let Some(items) = self.items() else { return };
                for value in elements {
                    if value.is_null()
                        && !items.is_nullable()
                        && let Some(default) = items.default_value()
                    {
                        *value = default.clone();
                    }
                    items.apply_defaults(value);
                }
            }
            _ => {}
        }
    }

    /// Whether nothing is known of the value, so that null is as good as any.
    fn is_free(&self) -> bool {
        self.kind() == crate::Kind::Any && self.preserves_unknown()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_go_into_objects_that_exist() {
        let schema = Schema::from_crd(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "integer", "default": 1},
                "nullable": {"type": "integer", "nullable": true, "default": 2},
                "deep": {"type": "object", "properties": {"b": {"type": "string", "default": "x"}}},
                "made": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "y"}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean", "default": true}}}},
                "map": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
                "bare": {"type": "string"}}}}}))
        .unwrap();
        for (value, expected) in [
            (json!({}), json!({})),
            (
                json!({"spec": {}}),
                json!({"spec": {"a": 1, "nullable": 2, "made": {"b": "y"}}}),
            ),
            (
                json!({"spec": {"a": null, "nullable": null, "deep": {}, "made": {"b": "w"}, "list": [{}, {"c": false}],
                    "map": {"k": null, "l": "m"}, "bare": null}}),
                json!({"spec": {"a": 1, "nullable": null, "deep": {"b": "x"}, "made": {"b": "w"},
                    "list": [{"c": true}, {"c": false}], "map": {"k": "z", "l": "m"}}}),
            ),
        ] {
            let mut found = value.clone();
            schema.apply_defaults(&mut found);
            assert_eq!(found, expected, "{value}");
            let once = found.clone();
            schema.apply_defaults(&mut found);
            assert_eq!(found, once, "defaulting twice changes nothing");
        }
    }
}
