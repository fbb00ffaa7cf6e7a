//! Members of an object that a write neither reads nor changes, as the bytes that are stored: [`Unread`].
//!
//! A write to the status leaves the specification as it is, and that is most of an object. It need not be parsed, copied, compared and serialized
//! to be stored again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The other members of a stored object, by name.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread {
    members: BTreeMap<String, Bytes>,
}

impl Unread {
    /// The members that are always read.
    pub const READ: [&'static str; 4] = ["apiVersion", "kind", "metadata", "status"];

    /// Takes a JSON object apart: members that are always read, and the others. None, if it is none or has a member twice.
    pub fn take_apart(json: &Bytes) -> Option<(BTreeMap<String, Bytes>, Self)> {
        let members = members_of(json)?;
        let (read, members) = members
            .into_iter()
            .partition(|(name, _)| Self::READ.contains(&name.as_str()));
        Some((read, Self { members }))
    }

    /// How many bytes the members have, about.
    pub fn len(&self) -> usize {
        self.members().map(|(name, bytes)| name.len() + bytes.len() + 4).sum()
    }

    /// The members with their bytes, by name.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.members.iter().map(|(name, bytes)| (name.as_str(), bytes))
    }

    /// Whether these members are among those of the other one, byte by byte.
    pub fn is_part_of(&self, other: &Self) -> bool {
        let mut members = self.members.iter();
        members.all(|(name, bytes)| other.members.get(name) == Some(bytes))
    }

    /// Gives the members to an object.
    pub fn add_to(&self, object: &mut Value) {
        let Value::Object(object) = object else { return };
        for (name, bytes) in &self.members {
            // what is stored can be parsed
            let value = serde_json::from_slice(bytes).unwrap_or_default();
            object.insert(name.clone(), value);
        }
    }

    /// A member with no more than some of its own members. None, if it is not there or no object.
    pub fn part(&self, name: &str, wanted: &[&str]) -> Option<Value> {
        let mut deserializer = serde_json::Deserializer::from_slice(self.members.get(name)?);
        deserializer.deserialize_map(Part(wanted)).ok()
    }
}

/// The members of a JSON object, each with its bytes. None, if it is no object or has a member twice.
fn members_of(json: &Bytes) -> Option<BTreeMap<String, Bytes>> {
    let text = std::str::from_utf8(json).ok()?;
    let found: Members<'_> = serde_json::from_str(text).ok()?;
    let count = found.0.len();
    let members: BTreeMap<String, Bytes> = found
        .0
        .into_iter()
        .map(|(name, value)| (name.into_owned(), json.slice_ref(value.get().as_bytes())))
        .collect();
    (members.len() == count).then_some(members)
}

/// Members in their order.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'t> Visitor<'t> for InOrder {
            type Value = Members<'t>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut access: A) -> Result<Members<'t>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Reads these members of an object.
struct Part<'w>(&'w [&'w str]);

impl<'t> Visitor<'t> for Part<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<Cow<'t, str>>()? {
            match self.0.contains(&name.as_ref()) {
                true => drop(members.insert(name.into_owned(), access.next_value()?)),
                false => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_taken_apart_and_put_together() {
        let json = r#"{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"data":{"b":"\n"},"spec":{"a":[1, 2],"b":{"c":{}},"d":null},"status":{}}"#;
        let (read, unread) = Unread::take_apart(&Bytes::from_static(json.as_bytes())).unwrap();
        let names: Vec<&str> = read.keys().map(String::as_str).collect();
        assert_eq!(names, ["apiVersion", "kind", "metadata", "status"]);
        assert_eq!(read["metadata"], r#"{"name":"n"}"#);
        assert_eq!(
            unread.part("spec", &["a", "d", "x"]),
            Some(json!({"a": [1, 2], "d": null}))
        );
        assert_eq!(unread.part("other", &["a"]), None);
        let read = read
            .iter()
            .map(|(name, bytes)| (name.clone(), serde_json::from_slice(bytes).unwrap()));
        let mut object = Value::Object(read.collect());
        unread.add_to(&mut object);
        assert_eq!(object, serde_json::from_str::<Value>(json).unwrap());
    }

    #[test]
    fn what_is_no_object_is_not_taken_apart() {
        for json in [
            "",
            "1",
            "[]",
            "{",
            "{} {}",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":}"#,
        ] {
            assert_eq!(Unread::take_apart(&Bytes::from_static(json.as_bytes())), None, "{json}");
        }
    }

    #[test]
    fn members_are_compared_byte_by_byte() {
        let unread = |json: &'static str| Unread::take_apart(&Bytes::from_static(json.as_bytes())).unwrap().1;
        let stored = unread(r#"{"status":1,"spec":{"a":1},"data":2}"#);
        assert!(unread(r#"{"status":2,"spec":{"a":1}}"#).is_part_of(&stored));
        assert!(unread("{}").is_part_of(&stored));
        assert!(!unread(r#"{"spec":{"a": 1}}"#).is_part_of(&stored));
        assert!(!unread(r#"{"other":2}"#).is_part_of(&stored));
    }
}
