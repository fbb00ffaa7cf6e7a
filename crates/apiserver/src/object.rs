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
use gardener_store::{Entry, Revision};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::definition::Definition;
use crate::table;
use crate::unread::Unread;

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

/// Writes the revision into an encoded object as `metadata.resourceVersion`. This is the store's [`gardener_store::Stamp`].
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

/// What selectors, deletion and indexes need of an object, parsed once per entry.
pub struct Head {
    /// Labels by key. There is a head for each of many objects: slices take a quarter of what maps do.
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Selectable fields, `metadata.name` and `metadata.namespace` included.
    fields: Box<[(Cow<'static, str>, Box<str>)]>,
    /// Where the metadata stands in the entry's bytes.
    metadata: Range<usize>,
    /// The object's row in tables.
    row: OnceLock<Option<table::Row>>,
    /// Something a consumer derived from this object, e.g. parsed RBAC rules.
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// What was made of an object, kept with it until the object changes.
pub type Kept = Arc<dyn Any + Send + Sync>;

impl Head {
    /// The head of an entry; parsed on first use.
    pub fn of(entry: &Entry, definition: &Definition) -> Arc<Self> {
        entry.memo(|entry| {
            // many kinds are selected by their metadata alone; then the rest need not be read
            let by_metadata = definition.strategy.kept_fields(&json!({})).is_empty();
            let object = selectable(&entry.value, by_metadata).unwrap_or_else(|| value_of(entry));
            let text = |key: &str| object.at(key).and_then(Value::as_str).unwrap_or_default().into();
            let kept = definition.strategy.kept_fields(&object).into_iter();
            let kept = kept.map(|(path, value)| (Cow::Owned(path), value.into_boxed_str()));
            let namespace = definition.namespaced.then(|| text("/metadata/namespace"));
            let labels = crate::meta::string_map(object.at("/metadata/labels")).into_iter();
            Self {
                labels: labels.map(|(key, value)| (key.into(), value.into())).collect(),
                fields: kept
                    .chain([(Cow::Borrowed("metadata.name"), text("/metadata/name"))])
                    .chain(namespace.map(|namespace| (Cow::Borrowed("metadata.namespace"), namespace)))
                    .collect(),
                metadata: place_of_metadata(&entry.value),
                row: OnceLock::new(),
                derived: OnceLock::new(),
            }
        })
    }

    /// A selectable field's value.
    pub fn field(&self, path: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(key, _)| key == path)
            .map(|(_, value)| &**value)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(found, _)| (**found).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// The metadata's bytes in those of the entry that this is the head of.
    pub(crate) fn metadata<'e>(&self, entry: &'e Entry) -> &'e [u8] {
        entry.value.get(self.metadata.clone()).unwrap_or(b"{}")
    }

    /// The object's row in tables, made once; none if it cannot be kept.
    pub(crate) fn row(&self, make: impl FnOnce() -> Option<table::Row>) -> Option<&table::Row> {
        self.row.get_or_init(make).as_ref()
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

/// An encoded object without what says who owns its fields, the larger half of many, for nothing is selected by that; of its metadata alone, if
/// that is told. None, if it has to be read as a whole.
fn selectable(value: &[u8], metadata_alone: bool) -> Option<Value> {
    let parsed = |value: &[u8]| serde_json::from_slice::<Value>(value).ok();
    let mut metadata = Map::new();
    for member in skim::members(metadata_of(value)) {
        let (key, value) = member.ok()?;
        if key != b"managedFields" {
            metadata.insert(skim::plain(key)?.to_owned(), parsed(value)?);
        }
    }
    let mut object = Map::new();
    for member in skim::members(value).take_while(|_| !metadata_alone) {
        let (key, value) = member.ok()?;
        if key != b"metadata" {
            object.insert(skim::plain(key)?.to_owned(), parsed(value)?);
        }
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    Some(Value::Object(object))
}

/// Where an encoded object's metadata stands in its bytes; nowhere, if it has none.
fn place_of_metadata(value: &[u8]) -> Range<usize> {
    let metadata = metadata_of(value);
    // one lies in the other
    let start = (metadata.as_ptr() as usize).checked_sub(value.as_ptr() as usize);
    let place = start.map(|start| start..start + metadata.len());
    place
        .filter(|place| place.end <= value.len())
        .unwrap_or(usize::MAX..usize::MAX)
}

/// The bytes of an encoded object's metadata.
pub fn metadata_of(value: &[u8]) -> &[u8] {
    skim::member(value, "metadata").unwrap_or(b"{}")
}

/// An entry's object, parsed into a type.
pub fn parse<T: for<'a> Deserialize<'a>>(entry: &Entry) -> Option<T> {
    // whether it is text is asked once, and not of each text in it
    serde_json::from_str(std::str::from_utf8(&entry.value).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta;

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

    #[test]
    fn nothing_is_selected_by_who_owns_fields() {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "A",
            "metadata": {"name": "n", "labels": {"a\"b": "c"}, "managedFields": [{"manager": "m"}]},
            "spec": {"x": [1, {"managedFields": 2}]},
        });
        let raw = encode(&object);
        meta::take_managed_fields(&mut object);
        assert_eq!(selectable(&raw, false), Some(object.clone()));
        assert_eq!(selectable(&raw, true), Some(json!({"metadata": object["metadata"]})));
        assert_eq!(selectable(br#"{"metadata":{},"sp\u0065c":1}"#, false), None);
    }
}
