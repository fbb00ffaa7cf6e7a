//! What upstream's converter of maps says that cannot make an object of a built-in kind. A strategic merge patch goes through it, not through
//! the decoder of JSON.

use serde_json::Value;

use crate::schema::{Kind, Schema};

/// The kind of a value in a Go map.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

impl Schema {
    /// Finds what cannot be made an object of, in upstream's words: `cannot restore map from string`.
    ///
    /// # Errors
    /// The first such value.
    pub fn restore(&self, value: &Value) -> Result<(), String> {
        let unrecognized = |go: &str| Err(format!("unrecognized type: {go}"));
        let found = kind_of(value);
        match (self.kind(), value) {
            (_, Value::Null) | (Kind::Any, _) => Ok(()),
            (Kind::Object, Value::Object(members)) => members.iter().try_for_each(|(name, value)| {
                let child = self.child(name);
                child.map_or(Ok(()), |child| child.restore(value))
            }),
            (Kind::Object, _) if self.has_fields() => Err(format!("cannot restore struct from: {found}")),
            (Kind::Object, _) => Err(format!("cannot restore map from {found}")),
            (Kind::Array, Value::Array(elements)) => {
                let items = self.items();
                let mut elements = elements.iter();
                elements.try_for_each(|value| items.map_or(Ok(()), |items| items.restore(value)))
            }
            (Kind::Array, _) => Err(format!("cannot restore slice from {found}")),
            (Kind::String, Value::String(_)) | (Kind::Quantity | Kind::IntOrString, _) => {
                self.restore_by_decoder(value)
            }
            (Kind::String, _) if matches!(self.format(), Some("date-time" | "go-micro-time" | "go-duration")) => {
                self.restore_by_decoder(value)
            }
            (Kind::String, _) if self.format() == Some("byte") => Err(format!("cannot restore slice from {found}")),
            // Go could make a text of an integer, and is told not to
            (Kind::String, Value::Number(number)) if !number.is_f64() => {
                Err(format!("cannot convert {found} to string"))
            }
            (Kind::String, _) => unrecognized("string"),
            (Kind::Integer, Value::Number(number)) => {
                let whole = number.as_i64().is_some() || number.as_f64().is_some_and(|number| number.fract() == 0.0);
                let go = self.format().unwrap_or("int64");
                if whole {
                    Ok(())
                } else {
                    Err(format!("cannot convert {found} to {go}"))
                }
            }
            (Kind::Integer, _) => unrecognized(self.format().unwrap_or("int64")),
            (Kind::Number, Value::Number(_)) | (Kind::Boolean, Value::Bool(_)) => Ok(()),
            (Kind::Number, _) => unrecognized("float64"),
            (Kind::Boolean, _) => unrecognized("bool"),
        }
    }

    /// Types that read themselves do so here, too.
    fn restore_by_decoder(&self, value: &Value) -> Result<(), String> {
        self.decode(value, "string").map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fixtures;

    #[test]
    fn words_of_the_converter() {
        let schema = fixtures::deployment();
        for (spec, expected) in [
            (json!({"replicas": 1.0, "paused": true}), None),
            (json!("x"), Some("cannot restore struct from: string")),
            (json!({"replicas": "x"}), Some("unrecognized type: int32")),
            (json!({"replicas": 1.5}), Some("cannot convert float64 to int32")),
            (json!({"paused": 1}), Some("unrecognized type: bool")),
            (
                json!({"selector": {"matchLabels": []}}),
                Some("cannot restore map from slice"),
            ),
            (
                json!({"selector": {"matchLabels": {"a": 1}}}),
                Some("cannot convert int64 to string"),
            ),
            (
                json!({"selector": {"matchLabels": {"a": true}}}),
                Some("unrecognized type: string"),
            ),
            (
                json!({"template": {"spec": {"containers": {}}}}),
                Some("cannot restore slice from map"),
            ),
        ] {
            let found = schema.restore(&json!({"spec": spec})).err();
            assert_eq!(found.as_deref(), expected, "{spec}");
        }
    }
}
