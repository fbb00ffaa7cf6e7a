//! Members of an object that a write neither reads nor changes, as the bytes that are stored: [`Unread`].
//!
//! A write to the status leaves the specification as it is, and that is most of an object. It need not be parsed, copied, compared and serialized
//! to be stored again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use gardener_apimachinery::skim;
use serde_json::{Map, Value};

/// The other members of a stored object, by name.
#[derive(Debug)]
pub struct Unread {
    members: BTreeMap<String, Bytes>,
    /// What was asked for as [`Self::part`] first, and what that is.
    part: OnceLock<(String, &'static [&'static str], Option<Value>)>,
}

impl Unread {
    /// The members that are always read.
    pub const READ: [&'static str; 4] = ["apiVersion", "kind", "metadata", "status"];

    /// Takes a JSON object apart: members that are always read, and the others, whose inside nobody has looked at. None, if it is none or has a
    /// member twice.
    pub fn take_apart(json: &Bytes) -> Option<(BTreeMap<String, Bytes>, Self)> {
        Self::take_apart_like(json, |_| None)
    }

    /// As [`Self::take_apart`], of an object that has all of these members, byte by byte; else none.
    pub fn take_apart_with(&self, json: &Bytes) -> Option<(BTreeMap<String, Bytes>, Self)> {
        let like = |name: &[u8]| {
            let name = std::str::from_utf8(name).ok()?;
            self.members.get(name).map(Bytes::as_ref)
        };
        Self::take_apart_like(json, like).filter(|(_, apart)| self.is_part_of(apart))
    }

    fn take_apart_like<'l>(
        json: &Bytes,
        like: impl Fn(&[u8]) -> Option<&'l [u8]>,
    ) -> Option<(BTreeMap<String, Bytes>, Self)> {
        let (mut read, mut members) = (BTreeMap::new(), BTreeMap::new());
        let mut apart = skim::members(json);
        while let Some(member) = apart.next_like(&like) {
            let (name, value) = member.ok()?;
            let name = skim::plain(name)?;
            let apart = match Self::READ.contains(&name) {
                true => &mut read,
                false => &mut members,
            };
            if apart.insert(name.to_owned(), json.slice_ref(value)).is_some() {
                return None;
            }
        }
        Some((read, Self::of(members)))
    }

    fn of(members: BTreeMap<String, Bytes>) -> Self {
        Self {
            members,
            part: OnceLock::new(),
        }
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
    fn is_part_of(&self, other: &Self) -> bool {
        let mut members = self.members.iter();
        members.all(|(name, bytes)| other.members.get(name) == Some(bytes))
    }

    /// Gives the members to an object.
    pub fn add_to(&self, object: &mut Value) {
        #[cfg(test)]
        tests::ADDED.with(|added| added.set(added.get() + 1));
        let Value::Object(object) = object else { return };
        for (name, bytes) in &self.members {
            // what is stored can be parsed
            let value = serde_json::from_slice(bytes).unwrap_or_default();
            object.insert(name.clone(), value);
        }
    }

    /// A member with no more than some of its own members; remembered, for all who write an object want the same. None, if it is not there or no
    /// object.
    pub fn part(&self, name: &str, wanted: &'static [&'static str]) -> Option<Cow<'_, Value>> {
        let (of, what, part) = self
            .part
            .get_or_init(|| (name.to_owned(), wanted, self.read_part(name, wanted)));
        match of == name && *what == wanted {
            true => part.as_ref().map(Cow::Borrowed),
            false => self.read_part(name, wanted).map(Cow::Owned),
        }
    }

    fn read_part(&self, name: &str, wanted: &[&str]) -> Option<Value> {
        let mut part = Map::new();
        for member in skim::members(self.members.get(name)?) {
            let (name, value) = member.ok()?;
            if let Some(name) = wanted.iter().find(|wanted| wanted.as_bytes() == name) {
                part.insert((*name).to_owned(), serde_json::from_slice(value).ok()?);
            }
        }
        Some(Value::Object(part))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    thread_local! {
        /// How often this thread read what was not to be read.
        pub(crate) static ADDED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn objects_are_taken_apart_and_put_together() {
        let json = r#"{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"data":{"b":"\n"},"spec":{"a":[1, 2],"b":{"c":{}},"d":null},"status":{}}"#;
        let (read, unread) = Unread::take_apart(&Bytes::from_static(json.as_bytes())).unwrap();
        let names: Vec<&str> = read.keys().map(String::as_str).collect();
        assert_eq!(names, ["apiVersion", "kind", "metadata", "status"]);
        assert_eq!(read["metadata"], r#"{"name":"n"}"#);
        for _ in 0..2 {
            let part = |name, wanted| unread.part(name, wanted).map(Cow::into_owned);
            assert_eq!(part("spec", &["a", "d", "x"]), Some(json!({"a": [1, 2], "d": null})));
            assert_eq!(part("spec", &["a"]), Some(json!({"a": [1, 2]})));
            assert_eq!(part("other", &["a"]), None);
        }
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
            r#"{"status":1,"status":2}"#,
            r#"{"a":"#,
        ] {
            assert!(
                Unread::take_apart(&Bytes::from_static(json.as_bytes())).is_none(),
                "{json}"
            );
        }
    }

    #[test]
    fn members_are_compared_byte_by_byte() {
        let unread = |json: &'static str| Unread::take_apart(&Bytes::from_static(json.as_bytes())).unwrap().1;
        let stored = Bytes::from_static(br#"{"status":1,"spec":{"a":1},"data":22}"#);
        for (sent, is_stored) in [
            (r#"{"status":2,"spec":{"a":1}}"#, true),
            (r#"{"data":22}"#, true),
            ("{}", true),
            (r#"{"spec":{"a": 1}}"#, false),
            (r#"{"data":2}"#, false),
            (r#"{"other":2}"#, false),
        ] {
            let apart = unread(sent).take_apart_with(&stored);
            assert_eq!(apart.is_some(), is_stored, "{sent}");
            if let Some((read, apart)) = apart {
                assert_eq!(read["status"], "1");
                assert_eq!(apart.members, Unread::take_apart(&stored).unwrap().1.members, "{sent}");
            }
        }
    }
}
