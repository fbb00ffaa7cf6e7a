//! Reads an object's JSON as a type, but for its managedFields.

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// The object as a type.
///
/// # Errors
/// The JSON does not fit.
pub(crate) fn read<K: DeserializeOwned>(object: &Value) -> Result<K, Error> {
    match object {
        Value::Object(members) => K::deserialize(Object(members)),
        other => K::deserialize(other),
    }
}

/// The members of an object.
struct Object<'v>(&'v Map<String, Value>);

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let members = self.0.iter().map(|(key, value)| match (key.as_str(), value) {
            ("metadata", Value::Object(members)) => ("metadata", Member::Metadata(members)),
            (key, value) => (key, Member::Other(value)),
        });
        visitor.visit_map(MapDeserializer::new(members))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// A member of an object.
enum Member<'v> {
    Metadata(&'v Map<String, Value>),
    Other(&'v Value),
}

impl<'de> IntoDeserializer<'de, Error> for Member<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Member<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_any(visitor),
            Self::Metadata(members) => {
                let tracked = |key: &str| key == "managedFields";
                let members = members.iter().filter(|(key, _)| !tracked(key));
                visitor.visit_map(MapDeserializer::new(members.map(|(key, value)| (key.as_str(), value))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_option(visitor),
            metadata @ Self::Metadata(_) => visitor.visit_some(metadata),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_newtype_struct(name, visitor),
            metadata @ Self::Metadata(_) => visitor.visit_newtype_struct(metadata),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_enum(name, variants, visitor),
            metadata @ Self::Metadata(_) => metadata.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn all_but_the_managed_fields_is_read() {
        let mut object = json!({
            "metadata": {
                "name": "a",
                "labels": {"managedFields": "is a label"},
                "managedFields": [{"manager": "kubectl", "operation": "Update"}],
            },
            "data": {"managedFields": "is text"},
            "immutable": null,
        });
        let read: ConfigMap = read(&object).unwrap();
        object["metadata"]["managedFields"].take();
        assert_eq!(read, serde_json::from_value(object).unwrap());
        assert_eq!(read.metadata.labels.unwrap().len(), 1);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (object, why) in [
            (
                json!({"metadata": {"name": 1}}),
                "invalid type: integer `1`, expected a string",
            ),
            (json!({"metadata": 1}), "invalid type: integer `1`"),
            (json!({"data": []}), "invalid type: sequence, expected a map"),
            (json!([]), "invalid type: sequence"),
        ] {
            let told = read::<ConfigMap>(&object).unwrap_err().to_string();
            assert!(told.starts_with(why), "{object}: {told}");
        }
    }
}
