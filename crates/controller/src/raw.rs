//! Objects as an API tells them: text, and the little that is needed to follow them.
//!
//! What follows a kind does so without knowing its type: that is compiled once, and what no controller reads (`managedFields`, the larger
//! half of many objects) is never made into values. An object becomes a typed one when the copy takes it.
//!
//! The text is taken as it stands, for which a watch must say what happened before it tells the object (`type`, then `object`), as every API
//! server does.

use std::borrow::Cow;

use gardener_apimachinery::skim;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object's text.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    text: Box<str>,
    /// Name, namespace, uid and resource version; nothing else.
    head: ObjectMeta,
    /// The logical cluster that the object is in, where the list or watch is one across clusters; else empty. It is told first of all.
    pub cluster: String,
}

/// The path under which objects are listed and watched: what takes the place of a kind here.
#[derive(Clone, Debug)]
pub(crate) struct Path(String);

impl Raw {
    /// Reaches the same objects as a typed API.
    pub fn api<K: Resource>(typed: Api<K>) -> Api<Self> {
        let path = Path(typed.resource_url().to_owned());
        Api::all_with(typed.into_client(), &path)
    }

    /// The object as one of a type.
    ///
    /// # Errors
    /// When it is none.
    pub fn read<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(&self.text)
    }
}

impl Resource for Raw {
    type DynamicType = Path;
    type Scope = ClusterResourceScope;

    fn kind(_: &Path) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(_: &Path) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version(_: &Path) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural(_: &Path) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn url_path(path: &Path, _: Option<&str>) -> String {
        path.0.clone()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.head
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.head
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        Self::of(whole.get()).map_err(D::Error::custom)
    }
}

impl Raw {
    /// `whole` is known to be JSON.
    fn of(whole: &str) -> Result<Self, serde_json::Error> {
        let mut cluster = String::new();
        let mut metadata = None;
        // what follows the metadata need not be looked at
        for member in skim::members(whole.as_bytes()) {
            match member.map_err(serde_json::Error::custom)? {
                (b"logicalCluster", name) => cluster = serde_json::from_slice(name)?,
                (b"metadata", found) => {
                    metadata = Some(found);
                    break;
                }
                _ => {}
            }
        }
        let metadata = metadata.ok_or_else(|| serde_json::Error::missing_field("metadata"))?;
        let mut head = ObjectMeta::default();
        let mut managed_fields = None;
        for member in skim::members(metadata) {
            let (key, value) = member.map_err(serde_json::Error::custom)?;
            match key {
                b"name" => head.name = serde_json::from_slice(value)?,
                b"namespace" => head.namespace = serde_json::from_slice(value)?,
                b"uid" => head.uid = serde_json::from_slice(value)?,
                b"resourceVersion" => head.resource_version = serde_json::from_slice(value)?,
                b"managedFields" => managed_fields = Some(value),
                _ => {}
            }
        }
        let text = match managed_fields.and_then(|part| without(whole, part)) {
            Some(text) => text.into(),
            None => whole.into(),
        };
        Ok(Self { text, head, cluster })
    }
}

/// A text with null in place of one of its parts; none when the part is not one of this text.
fn without(whole: &str, part: &[u8]) -> Option<String> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let (before, after) = (whole.get(..at)?, whole.get(at + part.len()..)?);
    Some([before, "null", after].concat())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::DynamicObject;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const OBJECT: &str = r#"{"logicalCluster":"garden","apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","managedFields":[{"manager":"m","fieldsV1":{"f:data":{}}}],"labels":{"x":"y"}},"data":{"k":"v"}}"#;

    #[test]
    fn what_no_controller_reads_is_left_out() {
        let raw: Raw = serde_json::from_str(OBJECT).unwrap();
        assert_eq!(raw.cluster, "garden");
        assert_eq!(
            (raw.head.name.as_deref(), raw.head.resource_version.as_deref()),
            (Some("a"), Some("7"))
        );
        assert!(!raw.text.contains("manager"));
        let typed: ConfigMap = raw.read().unwrap();
        assert_eq!(typed.metadata.managed_fields, None);
        assert_eq!(typed.metadata.labels.unwrap()["x"], "y");
        assert_eq!(typed.data.unwrap()["k"], "v");
        let dynamic: DynamicObject = raw.read().unwrap();
        assert_eq!(dynamic.data["data"]["k"], "v");
    }

    #[test]
    fn lists_and_watches_hold_them() {
        let list = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{OBJECT}]}}"#
        );
        let list: ObjectList<Raw> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items[0].head.uid.as_deref(), Some("u"));
        let event = format!(r#"{{"type":"ADDED","object":{OBJECT}}}"#);
        let event: WatchEvent<Raw> = serde_json::from_str(&event).unwrap();
        assert!(matches!(event, WatchEvent::Added(raw) if raw.cluster == "garden"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "{}", r#"{"metadata":7}"#, r#"{"metadata":{"name":1}}"#] {
            assert!(serde_json::from_str::<Raw>(text).is_err(), "{text}");
        }
    }
}
