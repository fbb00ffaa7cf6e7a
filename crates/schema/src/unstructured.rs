//! Whether a tree of values becomes an object of Go types, as Go's converter of unstructured objects sees it: strategic merge patches make
//! their objects so. Its words are others than those of the decoder of JSON.

use serde_json::Value;

use crate::decode::DecodeError;
use crate::go_types;
use crate::numbers::truncated;
use crate::schema::{Kind, Schema};

impl Schema {
    /// Checks the types of a value.
    ///
    /// # Errors
    /// The first misfit: `cannot restore map from string`.
    pub fn convert(&self, value: &Value) -> Result<(), DecodeError> {
        self.convert_as(value, None)
    }

    /// Makes numbers those of their Go types, as Go's converter does where its decoder refuses them: whole ones that are written like `2.0`, and
    /// those of more than 32 bits where the type has no more. Answers whether there were such.
    pub fn cut_numbers(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(members) => {
                let cut = members
                    .iter_mut()
                    .filter_map(|(name, value)| Some(self.child(name)?.cut_numbers(value)));
                cut.fold(false, |any, cut| any | cut)
            }
            Value::Array(elements) => self.items().is_some_and(|items| {
                let cut = elements.iter_mut().map(|value| items.cut_numbers(value));
                cut.fold(false, |any, cut| any | cut)
            }),
            Value::Number(number) if self.kind() == Kind::Integer => {
                let of_float = || number.as_f64().filter(|float| float.fract() == 0.0).map(truncated);
                let Some(whole) = number.as_i64().or_else(of_float) else {
                    return false;
                };
                let own = match self.format() {
                    Some("int32") => i64::from(whole as i32),
                    _ => whole,
                };
                let is_other = number.as_i64() != Some(own);
                if is_other {
                    *value = own.into();
                }
                is_other
            }
            _ => false,
        }
    }

    /// As [`Schema::convert`], of a field whose Go type has this name.
    fn convert_as(&self, value: &Value, named: Option<&str>) -> Result<(), DecodeError> {
        let wrong = |why: String| Err(DecodeError::new(why));
        let found = || go_kind(value);
        let is_scalar = |kind: &str| match (kind, value) {
            // Go takes whole numbers for what can be made a text, and wants none
            ("string", Value::Number(number)) if !number.is_f64() => {
                wrong(format!("cannot convert {} to {}", found(), named.unwrap_or(kind)))
            }
            ("int32" | "int64", Value::Number(_)) => {
                wrong(format!("cannot convert {} to {}", found(), named.unwrap_or(kind)))
            }
            _ => wrong(format!("unrecognized type: {kind}")),
        };
        let reads_json = matches!(self.kind(), Kind::Quantity | Kind::IntOrString)
            || matches!(self.format(), Some("date-time" | "go-micro-time" | "go-duration"))
            || self.definition_name().is_some_and(|name| {
                [
                    ".RawExtension",
                    ".FieldsV1",
                    ".JSON",
                    ".JSONSchemaPropsOrBool",
                    ".JSONSchemaPropsOrArray",
                ]
                .iter()
                .any(|own| name.ends_with(own))
            });
        match (self.kind(), value) {
            (_, Value::Null) | (Kind::Any, _) => Ok(()),
            _ if reads_json => self.decode(value, ""),
            (Kind::Object, Value::Object(members)) => {
                let structure = self.definition_name().and_then(go_types::of);
                members.iter().try_for_each(|(name, value)| {
                    let named = structure.and_then(|structure| structure.named(name));
                    self.child(name).map_or(Ok(()), |child| child.convert_as(value, named))
                })
            }
            (Kind::Object, _) => match self.definition_name() {
                Some(_) => wrong(format!("cannot restore struct from: {}", found())),
                None => wrong(format!("cannot restore map from {}", found())),
            },
            (Kind::Array, Value::Array(elements)) => {
                let of_elements = named.and_then(|named| named.strip_prefix("[]"));
                let mut elements = elements.iter();
                self.items().map_or(Ok(()), |items| {
                    elements.try_for_each(|value| items.convert_as(value, of_elements))
                })
            }
            (Kind::Array, _) => wrong(format!("cannot restore slice from {}", found())),
            (Kind::String, Value::String(text)) if self.format() == Some("byte") => {
                let decoded = self.decode(&Value::from(text.as_str()), "");
                decoded.map_err(|why| DecodeError::new(format!("error decoding from json: {why}")))
            }
            (Kind::String, Value::String(_)) => Ok(()),
            (Kind::String, _) if self.format() == Some("byte") => {
                wrong(format!("cannot restore slice from {}", found()))
            }
            (Kind::String, _) => is_scalar("string"),
            (Kind::Integer, Value::Number(number)) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
                Ok(())
            }
            (Kind::Integer, _) => is_scalar(self.format().unwrap_or("int64")),
            (Kind::Number, Value::Number(_)) | (Kind::Boolean, Value::Bool(_)) => Ok(()),
            (Kind::Number, _) => is_scalar("float64"),
            (Kind::Boolean, _) => is_scalar("bool"),
            (Kind::Quantity | Kind::IntOrString, _) => Ok(()),
        }
    }
}

/// The kind of a value in Go's tree.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fixtures;

    #[test]
    fn numbers_are_cut_to_the_bits_of_their_type() {
        let deployment = fixtures::deployment();
        let mut object = json!({"spec": {"replicas": 2_147_483_648_i64, "paused": true}});
        assert!(deployment.cut_numbers(&mut object));
        assert_eq!(
            object,
            json!({"spec": {"replicas": -2_147_483_648_i64, "paused": true}})
        );
        assert!(!deployment.cut_numbers(&mut object));
        for (told, read) in [("3.0", 3), ("-0.0", 0), ("1e2", 100), ("1e30", 0), ("1e19", 0)] {
            let told: serde_json::Value = serde_json::from_str(told).unwrap();
            let mut object = json!({"spec": {"replicas": told}});
            assert!(deployment.cut_numbers(&mut object));
            assert_eq!(object, json!({"spec": {"replicas": read}}), "{told}");
        }
        let mut object = json!({"spec": {"replicas": 1.5}});
        assert!(!deployment.cut_numbers(&mut object));
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_converters_words() {
        let deployment = fixtures::deployment();
        for (spec, expected) in [
            (
                json!({"replicas": 2, "paused": true, "selector": {"matchLabels": {"a": "b"}}}),
                "",
            ),
            (json!("x"), "cannot restore struct from: string"),
            (
                json!({"selector": {"matchLabels": "x"}}),
                "cannot restore map from string",
            ),
            (
                json!({"selector": {"matchLabels": {"a": 1}}}),
                "cannot convert int64 to string",
            ),
            (
                json!({"selector": {"matchLabels": {"a": true}}}),
                "unrecognized type: string",
            ),
            (
                json!({"selector": {"matchLabels": {"a": 1.5}}}),
                "unrecognized type: string",
            ),
            (json!({"replicas": "2"}), "unrecognized type: int32"),
            (json!({"replicas": 2.5}), "cannot convert float64 to int32"),
            (json!({"paused": 1}), "unrecognized type: bool"),
            (
                json!({"template": {"spec": {"containers": {}}}}),
                "cannot restore slice from map",
            ),
            (
                json!({"template": {"spec": {"containers": [{"name": "c", "imagePullPolicy": 1}]}}}),
                "cannot convert int64 to v1.PullPolicy",
            ),
        ] {
            let converted = deployment.convert(&json!({"spec": spec}));
            let why = converted.map_err(|error| error.to_string()).err().unwrap_or_default();
            assert_eq!(why, expected, "{spec}");
        }
    }
}
