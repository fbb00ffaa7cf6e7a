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
                    if value.is_null() && !items.is_nullable() {
                        if let Some(default) = items.default_value() {
                            *value = default.clone();
                        }
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
