//! Reads an object's JSON as a type, but for its managedFields, and with as much of its specification as is asked for.

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// What is read as the specification, if it is not the object's.
#[derive(Clone, Copy)]
pub(crate) enum Spec<'v> {
    /// Only these members of it.
    Only(&'v [&'v str]),
    /// This one, of an object that has none here.
    Instead(&'v Value),
}

/// The object as a type.
///
/// # Errors
/// The JSON does not fit.
pub(crate) fn read<K: DeserializeOwned>(object: &Value, spec: Option<Spec<'_>>) -> Result<K, Error> {
    match object {
        Value::Object(members) => K::deserialize(Object { members, spec }),
        other => K::deserialize(other),
    }
}

/// The members of an object.
struct Object<'v> {
    members: &'v Map<String, Value>,
    spec: Option<Spec<'v>>,
}

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { members, spec } = self;
        let members = members.iter().map(|(key, value)| match (key.as_str(), value, spec) {
            ("metadata", Value::Object(members), _) => ("metadata", Member::Metadata(members)),
            ("spec", Value::Object(members), Some(Spec::Only(wanted))) => ("spec", Member::Part(members, wanted)),
            (key, value, _) => (key, Member::Other(value)),
        });
        let instead = match spec {
            Some(Spec::Instead(spec)) => Some(("spec", Member::Other(spec))),
            _ => None,
        };
        visitor.visit_map(MapDeserializer::new(members.chain(instead)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// A member of an object.
enum Member<'v> {
    Metadata(&'v Map<String, Value>),
    /// Only these of its members.
    Part(&'v Map<String, Value>, &'v [&'v str]),
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
            Self::Part(members, wanted) => {
                let members = wanted.iter().filter_map(|key| Some((*key, members.get(*key)?)));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_option(visitor),
            members => visitor.visit_some(members),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Other(value) => value.deserialize_newtype_struct(name, visitor),
            members => visitor.visit_newtype_struct(members),
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
            members => members.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
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
        let read: ConfigMap = read(&object, None).unwrap();
        object["metadata"]["managedFields"].take();
        assert_eq!(read, serde_json::from_value(object).unwrap());
        assert_eq!(read.metadata.labels.unwrap().len(), 1);
    }

    #[test]
    fn as_much_of_the_specification_is_read_as_is_wanted() {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"nodeName": "b", "containers": "would not fit", "restartPolicy": "Never"},
            "status": {"phase": "Running"},
        });
        let read: Pod = read(&object, Some(Spec::Only(&["nodeName", "hostname"]))).unwrap();
        let expected = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "b", "containers": []}, "status": {"phase": "Running"}});
        assert_eq!(read, serde_json::from_value(expected).unwrap());
        let apart = json!({"metadata": {"name": "a"}, "status": {"phase": "Running"}});
        let spec = json!({"nodeName": "b"});
        assert_eq!(super::read::<Pod>(&apart, Some(Spec::Instead(&spec))).unwrap(), read);
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
            let told = read::<ConfigMap>(&object, None).unwrap_err().to_string();
            assert!(told.starts_with(why), "{object}: {told}");
        }
    }
}
