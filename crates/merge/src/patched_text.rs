//! The text of a patched document, as refusals show it. Members of what a patch opened are sorted; what it left alone is as it was written.

use std::collections::BTreeMap;

use gardener_apimachinery::field::go_escaped;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::patch::without_nulls;

/// A part of a document.
#[derive(Clone)]
pub(crate) enum Part {
    /// Nobody looked into it: as it was written.
    Closed(Box<RawValue>),
    Object(BTreeMap<String, Part>),
    List(Vec<Part>),
}

impl Part {
    /// A document that is no JSON has no parts.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self::Closed)
    }

    /// What a patch tells.
    pub(crate) fn of(value: &Value) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(raw) => Self::Closed(raw),
            Err(_) => Self::null(),
        }
    }

    pub(crate) fn null() -> Self {
        Self::Closed(RawValue::NULL.to_owned())
    }

    /// Looks into an object or a list. Others stay as they are.
    pub(crate) fn open(&mut self) -> &mut Self {
        let opened = match self {
            Self::Closed(raw) if raw.get().starts_with('{') => {
                let members = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(raw.get());
                let members = members.unwrap_or_default().into_iter();
                Some(Self::Object(
                    members.map(|(key, raw)| (key, Self::Closed(raw))).collect(),
                ))
            }
            Self::Closed(raw) if raw.get().starts_with('[') => {
                let elements = serde_json::from_str::<Vec<Box<RawValue>>>(raw.get());
                let elements = elements.unwrap_or_default().into_iter();
                Some(Self::List(elements.map(Self::Closed).collect()))
            }
            _ => None,
        };
        if let Some(opened) = opened {
            *self = opened;
        }
        self
    }

    /// Looks into all that is in it.
    pub(crate) fn open_all(&mut self) {
        match self.open() {
            Self::Object(members) => members.values_mut().for_each(Self::open_all),
            Self::List(elements) => elements.iter_mut().for_each(Self::open_all),
            Self::Closed(_) => {}
        }
    }

    /// A copy, which nobody looked into.
    pub(crate) fn closed(&self) -> Self {
        let mut text = String::new();
        self.write(&mut text);
        Self::read(&text).unwrap_or_else(Self::null)
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Closed(raw) => out.push_str(raw.get()),
            Self::Object(members) => {
                out.push('{');
                for (at, (key, member)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    member.write(out);
                }
                out.push('}');
            }
            Self::List(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
        }
    }

    /// Merges a patch as [`crate::merge_patch`] does.
    fn merge(&mut self, patch: &Value) {
        let Value::Object(changes) = patch else {
            *self = Self::of(patch);
            return;
        };
        let Self::Object(members) = self.open() else {
            return;
        };
        for (key, change) in changes {
            if change.is_null() {
                members.remove(key);
                continue;
            }
            match members.get_mut(key).map(Self::open) {
                Some(member @ Self::Object(_)) => member.merge(change),
                _ => {
                    members.insert(key.clone(), Self::of(&without_nulls(change)));
                }
            }
        }
    }
}

/// The text of a document after something was done to it, with `<`, `>` and `&` as Go's encoder writes them.
pub(crate) fn after(before: &str, change: impl FnOnce(&mut Part)) -> String {
    let mut text = String::new();
    if let Some(mut document) = Part::read(before) {
        document.open();
        change(&mut document);
        document.write(&mut text);
    }
    go_escaped(text).into_owned()
}

/// The text of a document that a merge patch changed. `before` is what it was, as it was written.
pub fn merged(before: &str, patch: &Value) -> String {
    after(before, |document| document.merge(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::JsonPatch;

    const BEFORE: &str = r#"{"kind":"K","metadata":{"name":"a","labels":{"z":"1","b":"<"}},"spec":{"c":[{"z":1,"a":2}],"b":{"y":1,"x":2}}}"#;

    #[test]
    fn merge_patches_sort_what_they_name() {
        for (patch, expected) in [
            (
                json!({"spec": {"n": 1}}),
                r#"{"kind":"K","metadata":{"name":"a","labels":{"z":"1","b":"\u003c"}},"spec":{"b":{"y":1,"x":2},"c":[{"z":1,"a":2}],"n":1}}"#,
            ),
            (
                json!({"metadata": {"labels": {"n": null}}, "spec": "x"}),
                r#"{"kind":"K","metadata":{"labels":{"b":"\u003c","z":"1"},"name":"a"},"spec":"x"}"#,
            ),
            (
                json!({"kind": null, "spec": {"c": [{"n": null, "a": 1}], "b": null}}),
                r#"{"metadata":{"name":"a","labels":{"z":"1","b":"\u003c"}},"spec":{"c":[{"a":1}]}}"#,
            ),
        ] {
            assert_eq!(merged(BEFORE, &patch), expected, "{patch}");
        }
    }

    #[test]
    fn json_patches_sort_what_they_pass() {
        for (patch, expected) in [
            (
                json!([{"op": "add", "path": "/spec/c/0/m", "value": {"z": 1}}]),
                r#"{"kind":"K","metadata":{"name":"a","labels":{"z":"1","b":"\u003c"}},"spec":{"b":{"y":1,"x":2},"c":[{"a":2,"m":{"z":1},"z":1}]}}"#,
            ),
            (
                json!([{"op": "test", "path": "/metadata/labels", "value": {"z": "1", "b": "<"}}, {"op": "remove", "path": "/spec"}]),
                r#"{"kind":"K","metadata":{"labels":{"b":"\u003c","z":"1"},"name":"a"}}"#,
            ),
            (
                json!([{"op": "copy", "from": "/spec/b", "path": "/kind"}, {"op": "move", "from": "/spec/c", "path": "/metadata/c"}]),
                r#"{"kind":{"y":1,"x":2},"metadata":{"c":[{"z":1,"a":2}],"labels":{"z":"1","b":"\u003c"},"name":"a"},"spec":{"b":{"y":1,"x":2}}}"#,
            ),
        ] {
            let read = JsonPatch::of(&patch).unwrap();
            assert_eq!(read.patched_text(BEFORE), expected, "{patch}");
        }
    }
}
