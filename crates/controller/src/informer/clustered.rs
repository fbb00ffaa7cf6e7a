//! An object together with the logical cluster it is in, as lists and watches across all clusters send it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An object of a list or watch across logical clusters: the object's own members and `logicalCluster`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clustered<K> {
    /// The logical cluster.
    #[serde(rename = "logicalCluster")]
    pub cluster: String,
    /// The object.
    #[serde(flatten)]
    pub object: K,
}

impl<K: Resource> Resource for Clustered<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

const CLUSTER: &str = "logicalCluster";

// By hand, for a derived one with a flattened object would keep the whole object in a tree before it reads it.
impl<'de, K: Deserialize<'de>> Deserialize<'de> for Clustered<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ClusteredVisitor(PhantomData))
    }
}

struct ClusteredVisitor<K>(PhantomData<K>);

impl<'de, K: Deserialize<'de>> Visitor<'de> for ClusteredVisitor<K> {
    type Value = Clustered<K>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a Kubernetes object with the member logicalCluster")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut cluster = String::new();
        let own = Members {
            map,
            cluster: &mut cluster,
        };
        let object = K::deserialize(MapAccessDeserializer::new(own))?;
        Ok(Clustered { cluster, object })
    }
}

/// An object's members without the cluster, which is put aside.
struct Members<'a, A> {
    map: A,
    cluster: &'a mut String,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if key == CLUSTER {
                *self.cluster = self.map.next_value()?;
            } else {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cluster_may_stand_anywhere_or_be_missing() {
        let object = r#""apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}"#;
        for (text, cluster) in [
            (format!(r#"{{"logicalCluster":"garden",{object}}}"#), "garden"),
            (format!(r#"{{{object},"logicalCluster":"garden"}}"#), "garden"),
            (format!("{{{object}}}"), ""),
        ] {
            let typed: Clustered<ConfigMap> = serde_json::from_str(&text).unwrap();
            assert_eq!(typed.cluster, cluster);
            assert_eq!(typed.object.metadata.name.as_deref(), Some("a"));
            assert_eq!(typed.object.data.as_ref().unwrap()["k"], "v");
            let dynamic: Clustered<DynamicObject> = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (dynamic.cluster.as_str(), &dynamic.object.data),
                (cluster, &json!({"data": {"k": "v"}}))
            );
        }
        assert!(serde_json::from_str::<Clustered<ConfigMap>>("[]").is_err());
    }
}
