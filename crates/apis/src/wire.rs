//! Details of the JSON form that serde has no attribute for.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::api::core::v1::LocalObjectReference;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reads `null` as the type's default, as Go does for non-pointer fields.
///
/// # Errors
/// Fails when the value is neither null nor of type `T`.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a map of lists of texts as Go does, where `null` stands for what is empty at every place.
///
/// # Errors
/// Fails when the value is no such map.
pub fn texts_by_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    type Told = BTreeMap<String, Option<Vec<Option<String>>>>;
    let told = Option::<Told>::deserialize(deserializer)?.unwrap_or_default();
    let texts = |list: Option<Vec<Option<String>>>| {
        let list = list.unwrap_or_default().into_iter();
        list.map(Option::unwrap_or_default).collect()
    };
    Ok(told.into_iter().map(|(name, list)| (name, texts(list))).collect())
}

/// Writes an empty list as `null`, as Go does for one that nobody set where it leaves nothing out.
///
/// # Errors
/// Those of the serializer.
pub fn empty_as_null<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match list.is_empty() {
        true => serializer.serialize_none(),
        false => list.serialize(serializer),
    }
}

/// Writes a reference to an object of the same namespace as Go does: without a name that is empty.
///
/// # Errors
/// Those of the serializer.
pub fn local_reference<S: Serializer>(
    reference: &Option<LocalObjectReference>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let name = reference.as_ref().map(|reference| ("name", reference.name.as_str()));
    serializer.collect_map(name.filter(|(_, name)| !name.is_empty()))
}

/// Writes a number as Go does: a whole one without a fraction.
///
/// # Errors
/// Those of the serializer.
pub fn go_float<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    /// Up to here every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() <= EXACT => serializer.serialize_i64(*value as i64),
        Some(value) => serializer.serialize_f64(*value),
        None => serializer.serialize_none(),
    }
}

/// Whether a value equals its type's default and need not be written.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The `apiVersion` field of a kind: nothing in memory, the kind's constant on the wire.
pub struct ApiVersionOf<K>(PhantomData<fn() -> K>);

/// The `kind` field of a kind: nothing in memory, the kind's name on the wire.
pub struct KindOf<K>(PhantomData<fn() -> K>);

macro_rules! constant_field {
    ($name:ident, $constant:ident) => {
        impl<K> Clone for $name<K> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<K> Copy for $name<K> {}
        impl<K> Default for $name<K> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }
        impl<K> PartialEq for $name<K> {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }
        impl<K: k8s_openapi::Resource> std::fmt::Debug for $name<K> {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(K::$constant)
            }
        }
        impl<K: k8s_openapi::Resource> Serialize for $name<K> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(K::$constant)
            }
        }
        impl<'de, K> Deserialize<'de> for $name<K> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                IgnoredAny::deserialize(deserializer).map(|_| Self::default())
            }
        }
    };
}

constant_field!(ApiVersionOf, API_VERSION);
constant_field!(KindOf, KIND);

#[cfg(test)]
mod tests {
    use crate::core::v1::OCIRepository;
    use crate::core::v1beta1::MachineImageFlavor;
    use serde_json::json;

    #[test]
    fn nothing_stands_for_what_is_empty() {
        for (told, read) in [
            (json!(null), json!({})),
            (json!({"a": null}), json!({"a": []})),
            (json!({"a": ["b", null]}), json!({"a": ["b", ""]})),
        ] {
            let flavor: MachineImageFlavor = serde_json::from_value(told).unwrap();
            assert_eq!(serde_json::to_value(flavor).unwrap(), read);
        }
    }

    #[test]
    fn references_without_a_name_are_empty() {
        let written = json!({"caBundleSecretRef": {}, "pullSecretRef": {"name": "a"}});
        let sent = json!({"caBundleSecretRef": {"name": ""}, "pullSecretRef": {"name": "a"}});
        let chart: OCIRepository = serde_json::from_value(sent).unwrap();
        assert_eq!(serde_json::to_value(chart).unwrap(), written);
    }
}
