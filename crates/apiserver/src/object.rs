//! Objects as they are stored: their bytes, and the parsed head beside them.
//!
//! The persisted form is JSON that starts with `apiVersion`, `kind` and `metadata`, without a resourceVersion. [`stamp`] writes the
//! revision in when the store takes the bytes into memory; from then on reads, lists and watches send them as they are.

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::skim;
use gardener_store::{Entry, Form, Revision};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::definition::Definition;
use crate::selectable::Selectable;
use crate::table;
use crate::unread::Unread;
use crate::varint;

const METADATA: &[u8] = b"\"metadata\":{";

/// Serializes an object for the store.
pub fn encode(object: &Value) -> Bytes {
    encode_with(object, None)
}

/// As [`encode`], of an object that has some members beside those that were read.
pub(crate) fn encode_with(object: &Value, unread: Option<&Unread>) -> Bytes {
    const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];
    let Value::Object(members) = object else {
        return Bytes::from(object.to_string());
    };
    let mut out = Vec::with_capacity(1024 + unread.map_or(0, Unread::len));
    let begin = |out: &mut Vec<u8>, key: &str| {
        out.push(if out.is_empty() { b'{' } else { b',' });
        // writing JSON values with text keys into memory cannot fail
        let _ = serde_json::to_writer(&mut *out, key);
        out.push(b':');
    };
    let write = |out: &mut Vec<u8>, key: &str, value: &Value| {
        begin(out, key);
        let _ = serde_json::to_writer(&mut *out, value);
    };
    for key in FIRST {
        if let Some(value) = members.get(key) {
            write(&mut out, key, value);
        }
    }
    let mut unread = unread.into_iter().flat_map(Unread::members).peekable();
    for (key, value) in members.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())) {
        while let Some((name, bytes)) = unread.next_if(|(name, _)| *name < key.as_str()) {
            begin(&mut out, name);
            out.extend_from_slice(bytes);
        }
        write(&mut out, key, value);
    }
    for (name, bytes) in unread {
        begin(&mut out, name);
        out.extend_from_slice(bytes);
    }
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
    Bytes::from(out)
}

/// Whether bytes of a JSON object are in the persisted form: they begin with `apiVersion`, `kind` and `metadata`.
pub fn is_encoded(value: &[u8]) -> bool {
    let text = |rest: &[u8]| -> Option<usize> {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        // names of kinds and versions have nothing to escape
        (!rest.get(..end)?.contains(&b'\\')).then_some(end)
    };
    let mut rest = value;
    for member in [&b"{\"apiVersion\":\""[..], b",\"kind\":\""] {
        let Some(behind) = rest.strip_prefix(member) else {
            return false;
        };
        let Some(end) = text(behind) else { return false };
        rest = behind.get(end + 1..).unwrap_or_default();
    }
    rest.starts_with(b",\"metadata\":{")
}

/// What stores are told of encoded objects: their heads end with their metadata.
pub const FORM: Form = Form {
    stamp,
    head: |value| place_of_metadata(value).map_or(0, |place| place.end as usize),
};

/// Writes the revision into an encoded object as `metadata.resourceVersion`.
pub fn stamp(value: &Bytes, revision: Revision) -> Bytes {
    let Some(at) = value.windows(METADATA.len()).position(|window| window == METADATA) else {
        return value.clone();
    };
    let at = at + METADATA.len();
    let (head, tail) = value.split_at(at);
    let own = b"\"resourceVersion\":\"";
    // a value that was stamped before (a deleted object's last state) is stamped anew
    let tail = match tail.strip_prefix(own.as_slice()) {
        Some(rest) => rest
            .iter()
            .position(|b| *b == b'"')
            .and_then(|end| rest.get(end + 1..))
            .map_or(tail, |rest| rest.strip_prefix(b",").unwrap_or(rest)),
        None => tail,
    };
    let revision = revision.to_string();
    let comma: &[u8] = if tail.first() == Some(&b'}') { b"" } else { b"," };
    let parts = [head, own, revision.as_bytes(), b"\"", comma, tail];
    // exactly as large as needed: there are many, and they stay
    Bytes::from(parts.concat())
}

/// What selectors, deletion and indexes need of an object, parsed once per entry. There is one for each of many objects, so that it is kept small.
pub struct Head {
    /// Labels by key.
    labels: Pairs,
    /// Selectable fields, `metadata.name` and `metadata.namespace` included.
    fields: Pairs,
    /// Where the metadata stands in the entry's bytes.
    metadata: Range<u32>,
    /// The object's row in tables.
    row: OnceLock<Option<Box<table::Row>>>,
    /// Something a consumer derived from this object, e.g. parsed RBAC rules.
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// What was made of an object, kept with it until the object changes.
pub type Kept = Arc<dyn Any + Send + Sync>;

/// Keys and values one after the other in one piece of memory, each behind its length: with a piece for each text they would take four times as
/// much.
struct Pairs(Box<[u8]>);

impl Pairs {
    fn of<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut bytes = Vec::new();
        for (key, value) in pairs {
            varint::put_bytes(&mut bytes, key.as_ref().as_bytes());
            varint::put_bytes(&mut bytes, value.as_ref().as_bytes());
        }
        Self(bytes.into())
    }

    /// The value of a key.
    fn get(&self, key: &str) -> Option<&str> {
        let mut rest = &*self.0;
        loop {
            let (found, value) = (varint::take_bytes(&mut rest)?, varint::take_bytes(&mut rest)?);
            if found == key.as_bytes() {
                return std::str::from_utf8(value).ok();
            }
        }
    }
}

impl Head {
    /// The head of an entry; parsed on first use.
    pub fn of(entry: &Entry, definition: &Definition) -> Arc<Self> {
        entry.memo(|entry| {
            let (own, other) = (
                definition.strategy.selectable_fields(),
                definition.strategy.other_fields(),
            );
            let selected_by = || own.iter().chain(other);
            let mut wanted = METADATA_SELECTED_BY.to_vec();
            wanted.extend(selected_by().flat_map(Selectable::pointers));
            // many kinds are selected by their metadata alone; then the rest need not be looked at
            let value = match wanted.iter().all(|pointer| pointer.starts_with("/metadata/")) {
                true => entry.head(),
                false => entry.value(),
            };
            let object = picked(&value, &wanted).or_else(|| parsed(&entry.value()));
            let object = object.unwrap_or_default();
            let text = |key: &str| object.at(key).and_then(Value::as_str).unwrap_or_default();
            let kept = selected_by().map(|field| (&*field.name, field.value(&object)));
            let own = |path, value| (path, Cow::Borrowed(value));
            let namespace = definition
                .namespaced
                .then(|| own("metadata.namespace", text("/metadata/namespace")));
            Self {
                labels: Pairs::of(crate::meta::string_map(object.at("/metadata/labels"))),
                fields: Pairs::of(
                    kept.chain([own("metadata.name", text("/metadata/name"))])
                        .chain(namespace),
                ),
                metadata: place_of_metadata(&value).unwrap_or(u32::MAX..u32::MAX),
                row: OnceLock::new(),
                derived: OnceLock::new(),
            }
        })
    }

    /// A selectable field's value.
    pub fn field(&self, path: &str) -> Option<&str> {
        self.fields.get(path)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key)
    }

    /// The metadata's bytes in the value of the entry that this is the head of, or in its head.
    pub(crate) fn metadata<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        let place = self.metadata.start as usize..self.metadata.end as usize;
        value.get(place).unwrap_or(b"{}")
    }

    /// The object's row in tables, made once; none if it cannot be kept.
    pub(crate) fn row(&self, make: impl FnOnce() -> Option<table::Row>) -> Option<&table::Row> {
        self.row.get_or_init(|| make().map(Box::new)).as_deref()
    }

    /// What a consumer derives from the entry, computed once. All callers for one kind must ask for the same type.
    pub fn derive<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let derived = self.derived.get_or_init(|| Arc::new(make())).clone();
        match derived.downcast::<T>() {
            Ok(found) => found,
            Err(_) => unreachable!("one kind's head is derived into one type"),
        }
    }
}

/// Takes away what an object says of its kind, as elements of lists of Go types go without it.
pub(crate) fn drop_type(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
}

/// An entry's object, parsed.
pub fn value_of(entry: &Entry) -> Value {
    parse(entry).unwrap_or(Value::Null)
}

/// What every object is selected by.
const METADATA_SELECTED_BY: [&str; 3] = ["/metadata/labels", "/metadata/name", "/metadata/namespace"];

/// What an entry's object has at these JSON pointers, in its place.
pub(crate) fn part_of(entry: &Entry, pointers: &[&str]) -> Value {
    let value = entry.value();
    let part = picked(&value, pointers).or_else(|| parsed(&value));
    part.unwrap_or_default()
}

/// What a JSON object has at these JSON pointers, in its place; what stands elsewhere is left out unread. None, if it has to be read as a whole.
fn picked(value: &[u8], pointers: &[&str]) -> Option<Value> {
    if pointers.contains(&"") {
        return parsed(value);
    }
    let mut object = Map::new();
    let mut is_read = true;
    skim::pick(value, pointers, &mut |pointer, value| {
        let path = pointer.trim_start_matches('/');
        is_read &= parsed(value).is_some_and(|value| put(&mut object, path, value));
    })?;
    is_read.then_some(Value::Object(object))
}

/// Puts a value where a path of names leads through objects only; false, if it does not.
fn put(object: &mut Map<String, Value>, path: &str, value: Value) -> bool {
    let Some((first, rest)) = path.split_once('/') else {
        object.insert(path.to_owned(), value);
        return true;
    };
    let inside = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
    inside.as_object_mut().is_some_and(|inside| put(inside, rest, value))
}

/// Where an encoded object's metadata stands in its bytes; nowhere, if it has none.
fn place_of_metadata(value: &[u8]) -> Option<Range<u32>> {
    let metadata = metadata_of(value);
    // one lies in the other
    let start = (metadata.as_ptr() as usize).checked_sub(value.as_ptr() as usize);
    let place = start.map(|start| start..start + metadata.len());
    let place = place.filter(|place| place.end <= value.len());
    place.and_then(|place| Some(place.start.try_into().ok()?..place.end.try_into().ok()?))
}

/// The bytes of an encoded object's metadata.
pub fn metadata_of(value: &[u8]) -> &[u8] {
    skim::member(value, "metadata").unwrap_or(b"{}")
}

/// An entry's object, parsed into a type.
pub fn parse<T: for<'a> Deserialize<'a>>(entry: &Entry) -> Option<T> {
    parsed(&entry.value())
}

fn parsed<T: for<'a> Deserialize<'a>>(value: &[u8]) -> Option<T> {
    // whether it is text is asked once, and not of each text in it
    serde_json::from_str(std::str::from_utf8(value).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_stamped_in_place() {
        let object =
            json!({"spec": {"metadata": {"x": 1}}, "kind": "A", "apiVersion": "v1", "metadata": {"name": "n"}});
        let raw = encode(&object);
        let once = stamp(&raw, 7);
        assert_eq!(&once[..], br#"{"apiVersion":"v1","kind":"A","metadata":{"resourceVersion":"7","name":"n"},"spec":{"metadata":{"x":1}}}"#);
        let again = stamp(&once, 12);
        assert_eq!(
            serde_json::from_slice::<Value>(&again).unwrap()["metadata"],
            json!({"name": "n", "resourceVersion": "12"})
        );
        let empty = stamp(&encode(&json!({"metadata": {}})), 3);
        assert_eq!(&empty[..], br#"{"metadata":{"resourceVersion":"3"}}"#);
        assert_eq!(stamp(&empty, 4), stamp(&encode(&json!({"metadata": {}})), 4));
    }

    proptest! {
        #[test]
        fn pairs_are_found_again(pairs in prop::collection::btree_map(".*", ".{0,300}", 0..9), other in ".*") {
            let kept = Pairs::of(&pairs);
            for (key, value) in &pairs {
                prop_assert_eq!(kept.get(key), Some(value.as_str()));
            }
            prop_assert_eq!(kept.get(&other), pairs.get(&other).map(String::as_str));
        }
    }

    #[test]
    fn what_is_asked_for_is_picked_out() {
        let object = json!({
            "apiVersion": "v1",
            "kind": "A",
            "metadata": {"name": "n", "labels": {"a\"b": "c"}, "managedFields": [{"manager": "m"}]},
            "spec": {"x": [1, {"y": 2}], "z": null, "xx": 3},
        });
        let raw = encode(&object);
        let cases = [
            (
                &METADATA_SELECTED_BY[..],
                json!({"metadata": {"name": "n", "labels": {"a\"b": "c"}}}),
            ),
            (
                &["/spec/x", "/spec/z"],
                json!({"spec": {"x": [1, {"y": 2}], "z": null}}),
            ),
            (&["/spec/x/0", "/none"], json!({})),
            (&["/kind", ""], object.clone()),
            (&[], json!({})),
        ];
        for (pointers, wanted) in cases {
            assert_eq!(picked(&raw, pointers), Some(wanted), "{pointers:?}");
        }
        // a key that may be another, written otherwise
        assert_eq!(picked(br#"{"metadata":{},"sp\u0065c":1}"#, &["/spec"]), None);
        assert_eq!(picked(br#"{"metadata":{}"#, &["/spec"]), None);
    }

    proptest! {
        #[test]
        fn what_is_picked_is_as_in_the_whole(
            members in prop::collection::btree_map("[a-c]", prop::collection::btree_map("[a-c]", ".{0,3}", 0..3), 0..3),
            pointers in prop::collection::vec("(/[a-c]){1,3}", 0..4),
        ) {
            let object = json!(members);
            let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
            let picked = picked(object.to_string().as_bytes(), &pointers).unwrap();
            for pointer in pointers {
                prop_assert_eq!(picked.at(pointer), object.at(pointer));
            }
        }
    }
}
