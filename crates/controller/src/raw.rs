//! Objects as an API tells them: text, and the little that is needed to follow them.
//!
//! What follows a kind does so without knowing its type: that is compiled once, and what no controller reads (`managedFields`, the larger
//! half of many objects) is never made into values. An object becomes a typed one when the copy takes it.
//!
//! The text is taken as it stands, for which a watch must say what happened before it tells the object (`type`, then `object`), as every API
//! server does.

use std::borrow::Cow;
use std::fmt::{self, Formatter};

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource};
use serde::de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object's text, without its managedFields.
#[derive(Clone, Debug)]
pub struct Raw {
    text: Box<str>,
    /// Name, namespace, uid and resource version; nothing else.
    head: ObjectMeta,
    /// The logical cluster that the object is in, where the list or watch is one across clusters; else empty. It is told first of all.
    pub(crate) cluster: String,
}

/// The path under which objects are listed and watched: what takes the place of a kind here.
#[derive(Clone, Debug)]
pub struct Path(String);

impl Raw {
    /// Reaches the same objects as an API of their type.
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
        deserializer.deserialize_map(Reader)
    }
}

/// Reads an object once: its text is put together of its members' on the way.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Raw;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
        let mut raw = Raw {
            text: Box::default(),
            head: ObjectMeta::default(),
            cluster: String::new(),
        };
        let mut text = Text::default();
        let mut has_metadata = false;
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            match &*key {
                "metadata" => {
                    has_metadata = true;
                    let (metadata, head) = members.next_value_seed(Metadata)?;
                    text.add(&key, &metadata).map_err(A::Error::custom)?;
                    raw.head = head;
                }
                "logicalCluster" => {
                    raw.cluster = members.next_value()?;
                }
                _ => {
                    let value: &RawValue = members.next_value()?;
                    text.add(&key, value.get()).map_err(A::Error::custom)?;
                }
            }
        }
        if !has_metadata {
            return Err(A::Error::missing_field("metadata"));
        }
        raw.text = text.end().into();
        Ok(raw)
    }
}

/// The metadata's text without managedFields, and what is kept of it.
struct Metadata;

impl<'de> DeserializeSeed<'de> for Metadata {
    type Value = (String, ObjectMeta);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata {
    type Value = (String, ObjectMeta);

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object's metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut text, mut head) = (Text::default(), ObjectMeta::default());
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            if key == "managedFields" {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: &RawValue = members.next_value()?;
            let read = |kept: &mut Option<String>| -> Result<(), A::Error> {
                *kept = serde_json::from_str(value.get()).map_err(A::Error::custom)?;
                Ok(())
            };
            match &*key {
                "name" => read(&mut head.name)?,
                "namespace" => read(&mut head.namespace)?,
                "uid" => read(&mut head.uid)?,
                "resourceVersion" => read(&mut head.resource_version)?,
                _ => {}
            }
            text.add(&key, value.get()).map_err(A::Error::custom)?;
        }
        Ok((text.end(), head))
    }
}

/// The text of an object, member by member.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn add(&mut self, key: &str, value: &str) -> Result<(), serde_json::Error> {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut self.0, key)?;
        self.0.push(b':');
        self.0.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_default()
    }
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
