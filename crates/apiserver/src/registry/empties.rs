//! What a body tells without telling anything: lists, maps and texts of bytes without an element. Go tells them from none until an object is
//! stored, so that refusals show them, and some kinds count them as a change; here they are dropped where a body is accepted, and noted.

use gardener_apimachinery::field::{Error, ErrorList};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::{pointer, skim};
use gardener_schema::Empty;
use serde_json::Value;
use serde_json::value::RawValue;

/// How the lines of a change begin in a text.
const CHANGED_LINES: &str = "\n@@ ";

/// Those of the body that was accepted last.
#[derive(Default)]
pub struct Empties(parking_lot::Mutex<Vec<Empty>>);

impl Empties {
    /// Notes those of another body, in the place of those before.
    pub(super) fn note(&self, found: Vec<Empty>) {
        *self.0.lock() = found;
    }

    /// Whether the body has one outside of its metadata and status.
    pub(super) fn is_any_told(&self) -> bool {
        let is_told = |empty: &Empty| {
            let member = empty.at.split('/').nth(1);
            !matches!(member, Some("metadata" | "status"))
        };
        self.0.lock().iter().any(is_told)
    }

    /// Findings that tell a change line by line, as they are told of the body: `again` judges the object with what the body tells empty.
    pub(super) fn changes_shown(
        &self,
        mut errors: ErrorList,
        object: &Value,
        again: impl FnOnce(Value) -> ErrorList,
    ) -> ErrorList {
        let tells_change = |error: &Error| error.detail.contains(CHANGED_LINES);
        if !self.is_any_told() || !errors.iter().any(tells_change) {
            return errors;
        }
        let mut whole = object.clone();
        for empty in self.0.lock().iter() {
            put(&mut whole, empty);
        }
        let told = again(whole);
        for error in errors.iter_mut().filter(|error| tells_change(error)) {
            let same = |other: &&Error| tells_change(other) && other.kind == error.kind && other.path == error.path;
            if let Some(other) = told.iter().find(same) {
                error.detail.clone_from(&other.detail);
            }
        }
        errors
    }

    /// Findings as they are told of the body: what they show as `null` and the body tells empty is shown empty.
    pub(crate) fn shown_in(&self, mut errors: ErrorList) -> ErrorList {
        let empties = self.0.lock();
        if !empties.is_empty() {
            errors.iter_mut().for_each(|error| show(error, &empties));
        }
        errors
    }
}

/// Puts an empty value where an object has none.
fn put(object: &mut Value, empty: &Empty) {
    let Some((parent, member)) = pointer::parent(&empty.at) else {
        return;
    };
    if let Some(Value::Object(members)) = object.at_mut(parent) {
        let own = members.entry(member).or_insert(Value::Null);
        if own.is_null() {
            own.clone_from(&empty.value);
        }
    }
}

fn show(error: &mut Error, empties: &[Empty]) {
    let Some(text) = error.shown().filter(|text| text.contains("null")) else {
        return;
    };
    let filled = fill(&text, &error.path.pointer(), empties);
    if let Some(filled) = filled.filter(|filled| *filled != text) {
        error.show_as(filled);
    }
}

/// The text of a value at a pointer with its empty parts instead of `null`. None, if it is no JSON in one line. Go's types name their members as
/// the API does, but for capitals.
fn fill(text: &str, at: &str, empties: &[Empty]) -> Option<String> {
    match text.as_bytes().first()? {
        b'n' => {
            let mut empties = empties.iter();
            let told = empties.find(|empty| empty.at.eq_ignore_ascii_case(at));
            Some(told.map_or_else(|| text.to_owned(), |empty| empty.value.to_string()))
        }
        b'{' => {
            let members: Option<Vec<String>> = skim::members(text.as_bytes())
                .map(|member| {
                    let (key, value) = member.ok()?;
                    let (key, value) = (std::str::from_utf8(key).ok()?, std::str::from_utf8(value).ok()?);
                    let filled = fill(value, &pointer::member(at, key), empties)?;
                    Some(format!("\"{key}\":{filled}"))
                })
                .collect();
            Some(format!("{{{}}}", members?.join(",")))
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            let elements = elements.iter().enumerate();
            let elements: Option<Vec<String>> = elements
                .map(|(index, value)| fill(value.get(), &pointer::member(at, &index.to_string()), empties))
                .collect();
            Some(format!("[{}]", elements?.join(",")))
        }
        _ => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use gardener_apimachinery::field::Path;
    use serde_json::json;

    use super::*;

    fn empties() -> Empties {
        let empties = Empties::default();
        empties.note(vec![
            Empty::new("/spec/workers/1/zones", json!([])),
            Empty::new("/spec/workers/1/labels", json!({})),
        ]);
        empties
    }

    #[test]
    fn refusals_show_what_is_empty() {
        let workers = Path::new("spec").child("workers");
        let second = "{\"Name\":\"a\\u003c\",\"Labels\":null,\"Zones\":null,\"Taints\":null}";
        let shown = |error| empties().shown_in(vec![error]).pop().unwrap().body();
        for (error, expected) in [
            (
                Error::literal(&workers.index(1).child("zones"), "null", "x"),
                "Invalid value: []: x",
            ),
            (
                Error::invalid(&workers.index(1).child("labels"), serde_json::Value::Null, "x"),
                "Invalid value: {}: x",
            ),
            (
                Error::literal(&workers.index(0).child("zones"), "null", "x"),
                "Invalid value: null: x",
            ),
            (
                Error::literal(&workers.index(1), second, "x"),
                "Invalid value: {\"Name\":\"a\\u003c\",\"Labels\":{},\"Zones\":[],\"Taints\":null}: x",
            ),
            (
                Error::literal(&workers, format!("[null,{second}]"), "x"),
                "Invalid value: [null,{\"Name\":\"a\\u003c\",\"Labels\":{},\"Zones\":[],\"Taints\":null}]: x",
            ),
            (
                Error::literal(&workers, "[no null JSON", "x"),
                "Invalid value: [no null JSON: x",
            ),
            (
                Error::required(&workers.index(1).child("zones"), "x"),
                "Required value: x",
            ),
            (Error::forbidden(&workers.index(1).child("zones"), "x"), "Forbidden: x"),
        ] {
            assert_eq!(shown(error), expected);
        }
    }

    #[test]
    fn changes_show_what_is_empty() {
        let object = json!({"spec": {"workers": [{}, {"zones": null}]}});
        let path = Path::new("spec");
        let judged = |object: &serde_json::Value| {
            let why = format!("immutable\n@@ -1 +1 @@\n+{object}");
            vec![
                Error::forbidden(&path, why),
                Error::forbidden(&path, object.to_string()),
            ]
        };
        let told = empties().changes_shown(judged(&object), &object, |whole| judged(&whole));
        let whole = json!({"spec": {"workers": [{}, {"labels": {}, "zones": []}]}});
        assert_eq!(told[0], judged(&whole)[0]);
        // only of changes it is known that the same is found
        assert_eq!(told[1], judged(&object)[1]);
        let told = Empties::default().changes_shown(judged(&object), &object, |whole| judged(&whole));
        assert_eq!(told, judged(&object));
    }

    #[test]
    fn only_what_the_specification_tells_counts() {
        let counts = |at: &str| {
            let empties = Empties::default();
            empties.note(vec![Empty::new(at, json!([]))]);
            empties.is_any_told()
        };
        assert!(counts("/spec/rules") && counts("/data"));
        assert!(!counts("/metadata/finalizers") && !counts("/status/conditions"));
    }
}
