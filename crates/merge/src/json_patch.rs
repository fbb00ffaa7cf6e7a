//! JSON patch (RFC 6902) as API servers apply it: to what clients send, and to what webhooks answer.
//!
//! Where it differs from the standard: indexes may count from a list's end, what stands before a path's first slash is not looked at, null
//! and nothing are the same, and the replacement of a member that is not there adds it.

use std::fmt::Display;

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::go_json::type_of;
use serde_json::{Map, Value};

use crate::patch::PatchError;
use crate::patched_text::{self, Part};

/// How many operations a client's patch may have.
pub(crate) const MAX_OPERATIONS: usize = 10_000;

/// By how many bytes all copies of one patch may let an object grow.
const COPY_LIMIT: usize = 3 * 1024 * 1024;

/// How deep a patched object may be, as bodies may: what is deeper could not be read again, and many small operations could make it as deep
/// as they like.
const MAX_DEPTH: usize = 120;

/// What is wrong with paths that lead nowhere.
const MISSING: &str = "missing value";

/// How it ends what is said of a `test` that fails.
const TEST_FAILED: &str = ": test failed";

/// A list of operations.
pub struct JsonPatch<'p> {
    operations: Vec<Operation<'p>>,
}

/// An operation; one that is null has no members.
struct Operation<'p> {
    members: Option<&'p Map<String, Value>>,
}

impl<'p> JsonPatch<'p> {
    /// Reads a patch.
    ///
    /// # Errors
    /// When it is no list of objects.
    pub fn of(patch: &'p Value) -> Result<Self, PatchError> {
        Self::read(patch, "jsonpatch.Patch", "jsonpatch.Operation").map_err(PatchError::Format)
    }

    /// Reads a patch that a client sent and whose fields are looked at.
    ///
    /// # Errors
    /// When it is no list of objects, or a member is no text.
    pub fn checked(patch: &'p Value) -> Result<Self, PatchError> {
        let read = Self::read(patch, "[]handlers.jsonPatchOp", "handlers.jsonPatchOp");
        let read = read.map_err(PatchError::Malformed)?;
        for operation in &read.operations {
            for member in ["op", "path", "from"] {
                if let Some(other) = operation.get(member).filter(|value| !value.is_string()) {
                    return Err(PatchError::Malformed(format!(
                        "json: cannot unmarshal {} into Go struct field jsonPatchOp.{member} of type string",
                        type_of(other)
                    )));
                }
            }
        }
        Ok(read)
    }

    fn read(patch: &'p Value, list: &str, element: &str) -> Result<Self, String> {
        let cannot = |value: &Value, what: &str| {
            let found = type_of(value);
            format!("json: cannot unmarshal {found} into Go value of type {what}")
        };
        let operations = match patch {
            Value::Array(operations) => operations.as_slice(),
            Value::Null => &[],
            other => return Err(cannot(other, list)),
        };
        let operations = operations.iter().map(|operation| match operation {
            Value::Object(members) => Ok(Operation { members: Some(members) }),
            Value::Null => Ok(Operation { members: None }),
            other => Err(cannot(other, element)),
        });
        Ok(Self {
            operations: operations.collect::<Result<_, _>>()?,
        })
    }

    /// Refuses a patch that has more operations than clients may send.
    ///
    /// # Errors
    /// When it has.
    pub fn limited(self) -> Result<Self, PatchError> {
        match self.operations.len() {
            more if more > MAX_OPERATIONS => Err(PatchError::TooManyOperations(more)),
            _ => Ok(self),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The paths of members that no operation has.
    pub fn unknown_fields(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        for (at, operation) in self.operations.iter().enumerate() {
            let keys = operation.members.into_iter().flat_map(Map::keys);
            let others = keys.filter(|key| !matches!(key.as_str(), "op" | "path" | "from" | "value"));
            unknown.extend(others.map(|key| format!("[{at}].{key}")));
        }
        unknown
    }

    /// Applies all operations to a document, or none.
    ///
    /// # Errors
    /// When one does not apply.
    pub fn apply(&self, document: &Value) -> Result<Value, PatchError> {
        let mut patched = document.clone();
        let mut copied = 0;
        for operation in &self.operations {
            let done = match operation.kind() {
                "add" => operation.add(&mut patched),
                "remove" => operation.remove(&mut patched),
                "replace" => operation.replace(&mut patched),
                "move" => operation.relocate(&mut patched),
                "test" => operation.test(&patched),
                "copy" => operation.copy(&mut patched, &mut copied),
                other => Err(format!("Unexpected kind: {other}")),
            };
            done.map_err(|why| match why.ends_with(TEST_FAILED) {
                true => PatchError::TestFailed(why),
                false => PatchError::DoesNotApply(why),
            })?;
        }
        Ok(patched)
    }

    /// The text of a document that the operations changed, all of which apply. `before` is what it was, as it was written.
    pub fn patched_text(&self, before: &str) -> String {
        patched_text::after(before, |document| {
            for operation in &self.operations {
                // what does not apply has no text
                let _ = operation.apply_to_text(document);
            }
        })
    }
}

impl Operation<'_> {
    /// A member that is there and not null.
    fn get(&self, member: &str) -> Option<&Value> {
        self.members?.get(member).filter(|value| !value.is_null())
    }

    fn kind(&self) -> &str {
        self.get("op").and_then(Value::as_str).unwrap_or("unknown")
    }

    fn value(&self) -> Value {
        self.get("value").cloned().unwrap_or_default()
    }

    fn text(&self, member: &str, missing: &str) -> Result<&str, String> {
        match self.get(member) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(format!(
                "json: cannot unmarshal {} into Go value of type string",
                type_of(other)
            )),
            None => Err(format!("{missing}: {MISSING}")),
        }
    }

    fn path(&self) -> Result<&str, String> {
        self.text("path", "operation missing path field")
    }

    fn from(&self) -> Result<&str, String> {
        self.text("from", "operation, missing from field")
    }

    /// Does to a document's parts what is done to its value, and opens what has to be looked into for that.
    fn apply_to_text(&self, document: &mut Part) -> Option<()> {
        let path = self.path().ok()?;
        match self.kind() {
            "test" if path.is_empty() => document.open_all(),
            "test" => {
                let (container, key) = open_at(document, path)?;
                if let Some(found) = part(container, &key) {
                    found.open_all();
                }
            }
            "replace" if path.is_empty() => {
                *document = Part::of(&self.value());
                document.open();
            }
            "replace" => {
                let (container, key) = open_at(document, path)?;
                match part(container, &key) {
                    Some(found) => *found = Part::of(&self.value()),
                    None => put_part(container, key, Part::of(&self.value()))?,
                }
            }
            "add" => {
                let (container, key) = open_at(document, path)?;
                put_part(container, key, Part::of(&self.value()))?;
            }
            "remove" => {
                let (container, key) = open_at(document, path)?;
                take_part(container, &key)?;
            }
            "move" => {
                let (container, key) = open_at(document, self.from().ok()?)?;
                let moved = take_part(container, &key)?;
                let (container, key) = open_at(document, path)?;
                put_part(container, key, moved)?;
            }
            "copy" => {
                let (container, key) = open_at(document, self.from().ok()?)?;
                let copied = part(container, &key).map_or_else(Part::null, |found| found.closed());
                let (container, key) = open_at(document, path)?;
                put_part(container, key, copied)?;
            }
            _ => {}
        }
        Some(())
    }

    fn add(&self, document: &mut Value) -> Result<(), String> {
        let path = self
            .path()
            .map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
        let (container, key) = find(document, path)
            .ok_or_else(|| format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}"))?;
        let value = self.value();
        fits(path, &value)
            .and_then(|()| put(container, key, value))
            .map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&self, document: &mut Value) -> Result<(), String> {
        let path = self
            .path()
            .map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
        let (container, key) = find(document, path)
            .ok_or_else(|| format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"))?;
        take(container, &key)
            .map(drop)
            .map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(&self, document: &mut Value) -> Result<(), String> {
        let path = self
            .path()
            .map_err(|why| format!("replace operation failed to decode path: {why}"))?;
        let value = self.value();
        fits(path, &value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
            }
            *document = value;
            return Ok(());
        }
        let (container, key) = find(document, path)
            .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: {MISSING}"))?;
        match container {
            Value::Array(elements) => {
                let at = index(&key).and_then(|at| element(at, elements.len()));
                let at =
                    at.map_err(|_| format!("replace operation does not apply: doc is missing key: {path}: {MISSING}"))?;
                if let Some(element) = elements.get_mut(at) {
                    *element = value;
                }
                Ok(())
            }
            members => put(members, key, value),
        }
    }

    fn relocate(&self, document: &mut Value) -> Result<(), String> {
        let from = self
            .from()
            .map_err(|why| format!("move operation failed to decode from: {why}"))?;
        let (container, key) = find(document, from)
            .ok_or_else(|| format!("move operation does not apply: doc is missing from path: {from}: {MISSING}"))?;
        let value = take(container, &key).map_err(|why| format!("error in move for path: '{key}': {why}"))?;
        let path = self
            .path()
            .map_err(|why| format!("move operation failed to decode path: {why}"))?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        fits(path, &value)
            .and_then(|()| put(container, key, value))
            .map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn test(&self, document: &Value) -> Result<(), String> {
        let path = self
            .path()
            .map_err(|why| format!("test operation failed to decode path: {why}"))?;
        let found = match path {
            "" => document,
            _ => {
                let (container, key) = look(document, path)
                    .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
                get(container, &key).map_err(|why| format!("error in test for path: '{path}': {why}"))?
            }
        };
        match *found == self.value() {
            true => Ok(()),
            false => Err(format!("testing value {path} failed{TEST_FAILED}")),
        }
    }

    fn copy(&self, document: &mut Value, copied: &mut usize) -> Result<(), String> {
        let from = self
            .from()
            .map_err(|why| format!("copy operation failed to decode from: {why}"))?;
        let (container, key) = look(document, from)
            .ok_or_else(|| format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}"))?;
        let value = get(container, &key).map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        let value = value.clone();
        let path = self
            .path()
            .map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        *copied += match &value {
            Value::Null => 0,
            value => value.to_string().len(),
        };
        if *copied > COPY_LIMIT {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPY_LIMIT}"
            ));
        }
        fits(path, &value)
            .and_then(|()| put(container, key, value))
            .map_err(|why| format!("error while adding value during copy: {why}"))
    }
}

/// Whether an object is not too deep that has a value at a path.
fn fits(path: &str, value: &Value) -> Result<(), String> {
    match path.matches('/').count() + depth(value) > MAX_DEPTH {
        true => Err("exceeded max depth".to_owned()),
        false => Ok(()),
    }
}

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Object(members) => members.values().map(depth).max(),
        Value::Array(elements) => elements.iter().map(depth).max(),
        _ => return 0,
    };
    below.unwrap_or(0) + 1
}

/// The steps to what a path's last step names, and that step. None for a path without a slash.
fn steps(path: &str) -> Option<(Vec<String>, String)> {
    let unescaped = |step: &str| {
        let mut text = String::new();
        let mut rest = step;
        // one pass: what an escape makes is no escape
        while let Some((before, after)) = rest.split_once('~') {
            text.push_str(before);
            let (made, left) = match after.as_bytes().first() {
                Some(b'1') => ('/', after.get(1..)),
                Some(b'0') => ('~', after.get(1..)),
                _ => ('~', Some(after)),
            };
            text.push(made);
            rest = left.unwrap_or_default();
        }
        text.push_str(rest);
        text
    };
    let (_, path) = path.split_once('/')?;
    let mut steps: Vec<String> = path.split('/').map(unescaped).collect();
    let last = steps.pop()?;
    Some((steps, last))
}

/// The object or list in which a path's last step is, and that step.
fn look<'d>(document: &'d Value, path: &str) -> Option<(&'d Value, String)> {
    let (steps, last) = steps(path)?;
    let mut at = document;
    for step in steps {
        at = get(at, &step).ok().filter(|next| next.is_object() || next.is_array())?;
    }
    Some((at, last))
}

/// As [`look`], to change it.
fn find<'d>(document: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let (steps, last) = steps(path)?;
    let mut at = document;
    for step in steps {
        let next = match at {
            Value::Object(members) => members.get_mut(&step),
            Value::Array(elements) => {
                let number = index(&step).and_then(|number| element(number, elements.len())).ok()?;
                elements.get_mut(number)
            }
            _ => None,
        };
        at = next.filter(|next| next.is_object() || next.is_array())?;
    }
    Some((at, last))
}

/// As [`find`], in a document's parts; opens the containers on the way.
fn open_at<'d>(document: &'d mut Part, path: &str) -> Option<(&'d mut Part, String)> {
    let (steps, last) = steps(path)?;
    let mut at = document;
    for step in steps {
        at = part(at, &step)?.open();
    }
    Some((at, last))
}

fn part<'d>(container: &'d mut Part, key: &str) -> Option<&'d mut Part> {
    match container {
        Part::Object(members) => members.get_mut(key),
        Part::List(elements) => {
            let at = element(index(key).ok()?, elements.len()).ok()?;
            elements.get_mut(at)
        }
        Part::Closed(_) => None,
    }
}

fn take_part(container: &mut Part, key: &str) -> Option<Part> {
    match container {
        Part::Object(members) => members.remove(key),
        Part::List(elements) => {
            let at = element(index(key).ok()?, elements.len()).ok()?;
            Some(elements.remove(at))
        }
        Part::Closed(_) => None,
    }
}

fn put_part(container: &mut Part, key: String, value: Part) -> Option<()> {
    match container {
        Part::Object(members) => {
            members.insert(key, value);
        }
        Part::List(elements) if key == "-" => elements.push(value),
        Part::List(elements) => {
            let at = element(index(&key).ok()?, elements.len() + 1).ok()?;
            elements.insert(at, value);
        }
        Part::Closed(_) => return None,
    }
    Some(())
}

/// What a container has: null where an object has nothing.
fn get<'d>(container: &'d Value, key: &str) -> Result<&'d Value, String> {
    match container {
        Value::Array(elements) => {
            let at = element(index(key)?, elements.len())?;
            Ok(elements.get(at).unwrap_or(&Value::Null))
        }
        other => Ok(other.get(key).unwrap_or(&Value::Null)),
    }
}

fn take(container: &mut Value, key: &str) -> Result<Value, String> {
    match container {
        Value::Array(elements) => {
            let at = element(index(key)?, elements.len())?;
            Ok(elements.remove(at))
        }
        other => {
            let taken = other.as_object_mut().and_then(|members| members.remove(key));
            taken.ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}"))
        }
    }
}

fn put(container: &mut Value, key: String, value: Value) -> Result<(), String> {
    match container {
        Value::Array(elements) if key == "-" => elements.push(value),
        Value::Array(elements) => {
            let number = index(&key).map_err(|why| format!("value was not a proper array index: '{key}': {why}"))?;
            // what is added may stand behind the last element
            let at = element(number, elements.len() + 1)?;
            elements.insert(at, value);
        }
        Value::Object(members) => {
            members.insert(key, value);
        }
        _ => {}
    }
    Ok(())
}

/// A number as Go's `strconv.Atoi` reads it.
fn index(key: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    key.parse().map_err(|error: std::num::ParseIntError| {
        let why: &dyn Display = match error.kind() {
            PosOverflow | NegOverflow => &"value out of range",
            _ => &"invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {why}", go_quote(key))
    })
}

/// The place in a list of this length; negative numbers count from its end.
fn element(number: i64, length: usize) -> Result<usize, String> {
    let from_start = match usize::try_from(number.unsigned_abs()) {
        Ok(back) if number < 0 => length.checked_sub(back),
        Ok(at) => Some(at).filter(|at| *at < length),
        Err(_) => None,
    };
    from_start.ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}

#[cfg(test)]
mod tests {
    use gardener_apimachinery::pointer::Pointed;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn applied(document: &Value, operation: Value) -> Result<Value, String> {
        let patch = json!([operation]);
        let patch = JsonPatch::of(&patch).unwrap();
        patch.apply(document).map_err(|error| error.to_string())
    }

    #[test]
    fn no_number_of_operations_makes_an_object_deeper_than_bodies_may_be() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| json!({"a": value}));
        assert_eq!(depth(&nested(7)), 7);
        assert!(applied(&json!({}), json!({"op": "add", "path": "/a", "value": nested(119)})).is_ok());
        for operation in [
            json!({"op": "add", "path": "/a", "value": nested(120)}),
            json!({"op": "add", "path": "/b/c", "value": nested(119)}),
            json!({"op": "replace", "path": "/a", "value": nested(120)}),
            json!({"op": "copy", "from": "/long", "path": "/b/c"}),
            json!({"op": "move", "from": "/long", "path": "/b/c"}),
        ] {
            let document = json!({"b": {}, "long": nested(119)});
            let refused = applied(&document, operation.clone());
            assert!(
                refused.is_err_and(|why| why.contains("exceeded max depth")),
                "{operation}"
            );
        }
        let deeper = json!({"op": "copy", "from": "/a", "path": "/a/a"});
        let many = Value::Array(vec![deeper; 1000]);
        let document = json!({"a": {"a": {}}});
        assert!(JsonPatch::of(&many).unwrap().apply(&document).is_err());
    }

    #[test]
    fn operations_change() {
        let document = json!({"a": 1, "list": ["x", "y"], "deep": {"b/c": 2, "n": null}});
        for (operation, pointer, expected) in [
            (
                json!({"op": "add", "path": "/list/-", "value": "z"}),
                "/list",
                json!(["x", "y", "z"]),
            ),
            (
                json!({"op": "add", "path": "/list/0", "value": "z"}),
                "/list",
                json!(["z", "x", "y"]),
            ),
            (
                json!({"op": "add", "path": "/list/2", "value": "z"}),
                "/list",
                json!(["x", "y", "z"]),
            ),
            (
                json!({"op": "add", "path": "/list/-1", "value": "z"}),
                "/list",
                json!(["x", "y", "z"]),
            ),
            (json!({"op": "add", "path": "ignored/b", "value": 1}), "/b", json!(1)),
            (json!({"op": "add", "path": "/b"}), "/b", json!(null)),
            (json!({"op": "remove", "path": "/list/-1"}), "/list", json!(["x"])),
            (json!({"op": "remove", "path": "/deep/n"}), "/deep", json!({"b/c": 2})),
            (
                json!({"op": "replace", "path": "/deep/b~1c", "value": 3}),
                "/deep/b~1c",
                json!(3),
            ),
            (json!({"op": "replace", "path": "/new", "value": 3}), "/new", json!(3)),
            (
                json!({"op": "replace", "path": "/list/+1", "value": 3}),
                "/list",
                json!(["x", 3]),
            ),
            (json!({"op": "replace", "path": "", "value": [1]}), "", json!([1])),
            (
                json!({"op": "move", "from": "/a", "path": "/list/1"}),
                "/list",
                json!(["x", 1, "y"]),
            ),
            (
                json!({"op": "copy", "from": "/list", "path": "/deep/n"}),
                "/deep/n",
                json!(["x", "y"]),
            ),
            (json!({"op": "copy", "from": "/none", "path": "/a"}), "/a", json!(null)),
            (json!({"op": "test", "path": "/none", "value": null}), "/a", json!(1)),
            (
                json!({"op": "test", "path": "/deep", "value": {"n": null, "b/c": 2}}),
                "/a",
                json!(1),
            ),
            (json!({"op": "test", "path": "/deep/n"}), "/a", json!(1)),
        ] {
            let patched = applied(&document, operation.clone());
            let found = patched.as_ref().map(|patched| patched.at(pointer));
            assert_eq!(found, Ok(Some(&expected)), "{operation}");
        }
    }

    #[test]
    fn what_does_not_apply_is_told_in_upstreams_words() {
        let document = json!({"a": 1, "list": ["x"], "nothing": null});
        for (operation, expected) in [
            (json!({"op": "odd"}), "Unexpected kind: odd"),
            (json!({"op": 1}), "Unexpected kind: unknown"),
            (json!(null), "Unexpected kind: unknown"),
            (
                json!({"op": "add"}),
                "add operation failed to decode path: missing value",
            ),
            (
                json!({"op": "add", "path": ""}),
                "add operation does not apply: doc is missing path: \"\": missing value",
            ),
            (
                json!({"op": "add", "path": "/nothing/x", "value": 1}),
                "add operation does not apply: doc is missing path: \"/nothing/x\": missing value",
            ),
            (
                json!({"op": "add", "path": "/a/x", "value": 1}),
                "add operation does not apply: doc is missing path: \"/a/x\": missing value",
            ),
            (
                json!({"op": "add", "path": "/list/x", "value": 1}),
                "error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({"op": "add", "path": "/list/2", "value": 1}),
                "error in add for path: '/list/2': Unable to access invalid index: 2: invalid index referenced",
            ),
            (
                json!({"op": "remove", "path": "/none"}),
                "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value",
            ),
            (
                json!({"op": "remove", "path": "/list/-2"}),
                "error in remove for path: '/list/-2': Unable to access invalid index: -2: invalid index referenced",
            ),
            (
                json!({"op": "remove", "path": "/list/-"}),
                "error in remove for path: '/list/-': strconv.Atoi: parsing \"-\": invalid syntax",
            ),
            (
                json!({"op": "replace", "path": 1}),
                "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
            ),
            (
                json!({"op": "replace"}),
                "replace operation failed to decode path: operation missing path field: missing value",
            ),
            (
                json!({"op": "replace", "path": "", "value": 1}),
                "replace operation value must be object or array: %!w(<nil>)",
            ),
            (
                json!({"op": "replace", "path": "/none/x", "value": 1}),
                "replace operation does not apply: doc is missing path: /none/x: missing value",
            ),
            (
                json!({"op": "replace", "path": "/list/1", "value": 1}),
                "replace operation does not apply: doc is missing key: /list/1: missing value",
            ),
            (
                json!({"op": "move", "path": "/x"}),
                "move operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                json!({"op": "move", "from": "/none", "path": "/x"}),
                "error in move for path: 'none': Unable to remove nonexistent key: none: missing value",
            ),
            (
                json!({"op": "move", "from": "/none/x", "path": "/x"}),
                "move operation does not apply: doc is missing from path: /none/x: missing value",
            ),
            (
                json!({"op": "move", "from": "/a", "path": "/none/x"}),
                "move operation does not apply: doc is missing destination path: /none/x: missing value",
            ),
            (
                json!({"op": "copy", "from": "/list/3", "path": "/x"}),
                "error in copy for from: '/list/3': Unable to access invalid index: 3: invalid index referenced",
            ),
            (
                json!({"op": "copy", "from": "/a", "path": "/list/99999999999999999999"}),
                "error while adding value during copy: value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            (
                json!({"op": "test", "path": "/a", "value": 2}),
                "testing value /a failed: test failed",
            ),
            (
                json!({"op": "test", "path": "", "value": {}}),
                "testing value  failed: test failed",
            ),
            (
                json!({"op": "test", "path": "/a/b", "value": 2}),
                "test operation does not apply: is missing path: /a/b: missing value",
            ),
            (
                json!({"op": "test", "path": "/list/7", "value": 2}),
                "error in test for path: '/list/7': Unable to access invalid index: 7: invalid index referenced",
            ),
        ] {
            assert_eq!(
                applied(&document, operation.clone()),
                Err(expected.to_owned()),
                "{operation}"
            );
        }
    }

    #[test]
    fn copies_are_bounded() {
        let document = json!({"a": "x".repeat(1 << 20)});
        let copy = json!({"op": "copy", "from": "/a", "path": "/b"});
        let patch = json!([copy, copy, copy]);
        let error = JsonPatch::of(&patch).unwrap().apply(&document).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("copy is 3145734, exceeding the limit 3145728"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_patch() {
        let failure = |patch: Value, checked: bool| {
            let read = match checked {
                true => JsonPatch::checked(&patch),
                false => JsonPatch::of(&patch),
            };
            read.err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (patch, plain, checked) in [
            (
                json!({}),
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                json!(["x"]),
                "json: cannot unmarshal string into Go value of type jsonpatch.Operation",
                "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
            ),
            (
                json!([{"op": 1}]),
                "",
                "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            ),
            (json!(null), "", ""),
        ] {
            assert_eq!(failure(patch.clone(), false), plain, "{patch}");
            assert_eq!(failure(patch.clone(), true), checked, "{patch}");
        }
        let many = Value::Array(vec![Value::Null; MAX_OPERATIONS + 1]);
        assert!(JsonPatch::of(&many).unwrap().limited().is_err());
        let odd = json!([null, {"op": "add", "odd": 1}]);
        assert_eq!(JsonPatch::of(&odd).unwrap().unknown_fields(), ["[1].odd"]);
    }

    proptest! {
        /// What is moved away and back leaves the document as it was.
        #[test]
        fn moves_are_undone(at in 0_usize..5, to in 0_usize..4) {
            let document = json!({"list": [0, 1, 2, 3, 4]});
            let path = |at: usize| format!("/list/{at}");
            let patch = json!([
                {"op": "move", "from": path(at), "path": path(to)},
                {"op": "move", "from": path(to), "path": path(at)},
            ]);
            prop_assert_eq!(JsonPatch::of(&patch).unwrap().apply(&document).unwrap(), document);
        }
    }
}
