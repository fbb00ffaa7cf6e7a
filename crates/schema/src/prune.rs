//! Fields that the schema does not know: naming them, dropping them; and dropping nulls as Go's decoder does.

use std::borrow::Cow;
use std::sync::LazyLock;

use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::quantity;
use jiff::Timestamp;
use serde_json::Value;

use crate::formats;
use crate::schema::{Kind, Schema};

/// Members of every API object, which embedded resources keep.
pub const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Of what lies where the schema expects something else, nothing is known.
static NOTHING: LazyLock<Schema> = LazyLock::new(Schema::default);

/// One step of a path; rendered only when a finding is made.
enum Step<'a> {
    Root,
    Field(&'a Step<'a>, &'a str),
    Index(&'a Step<'a>, usize),
}

/// Where an unknown field of a custom resource is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Metadata,
    Rest,
    EmbeddedMetadata,
}

impl Step<'_> {
    fn render(&self, out: &mut String) {
        match self {
            Step::Root => {}
            Step::Field(parent, name) => {
                parent.render(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(parent, index) => {
                parent.render(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }
}

impl Schema {
    /// The paths of members that the schema does not know, in the order of the document, as strict decoding names them:
    /// `spec.template.spec.containers[0].foo`.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_unknown(value, &Step::Root, Part::Rest, &mut found);
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// As [`Schema::unknown_fields`], of a custom resource: those of its metadata, then all others by name, then those of metadata of
    /// objects in it.
    pub fn unknown_fields_of_resource(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_unknown(value, &Step::Root, Part::Rest, &mut found);
        found.sort_by(|(part, path), (other_part, other)| {
            let by_name = match part {
                Part::Rest => path.cmp(other),
                Part::Metadata | Part::EmbeddedMetadata => std::cmp::Ordering::Equal,
            };
            part.cmp(other_part).then(by_name)
        });
        found.into_iter().map(|(_, path)| path).collect()
    }

    fn knows(&self, name: &str) -> bool {
        self.preserves_unknown() || self.is_embedded_resource() && RESOURCE_FIELDS.contains(&name)
    }

    fn collect_unknown(&self, value: &Value, path: &Step<'_>, part: Part, found: &mut Vec<(Part, String)>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let part = match (name.as_str(), path) {
                        ("metadata", Step::Root) => Part::Metadata,
                        ("metadata", _) if self.is_embedded_resource() => Part::EmbeddedMetadata,
                        _ => part,
                    };
                    let path = Step::Field(path, name);
                    match self.child(name) {
                        Some(child) => child.collect_unknown(value, &path, part, found),
                        None if self.knows(name) => {}
                        None => {
                            let mut text = String::new();
                            path.render(&mut text);
                            found.push((part, text));
                        }
                    }
                }
            }
            Value::Array(elements) => {
                for (i, value) in elements.iter().enumerate() {
                    let path = Step::Index(path, i);
                    match self.items() {
                        Some(items) => items.collect_unknown(value, &path, part, found),
                        None if self.preserves_unknown() => {}
                        None => NOTHING.collect_unknown(value, &path, part, found),
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops the members that the schema does not know; an object where it wants something else loses all of them.
    pub fn prune(&self, value: &mut Value) {
        self.prune_but(value, false);
    }

    /// Does so everywhere but in the metadata of objects within others.
    pub fn prune_beside_metadata(&self, value: &mut Value) {
        self.prune_but(value, true);
    }

    fn prune_but(&self, value: &mut Value, spares_metadata: bool) {
        match value {
            Value::Object(members) => members.retain(|name, value| match self.child(name) {
                Some(_) if spares_metadata && name == "metadata" && self.is_embedded_resource() => true,
                Some(child) => {
                    child.prune_but(value, spares_metadata);
                    true
                }
                None => self.knows(name),
            }),
            Value::Array(elements) => {
                let items = match self.items() {
                    None if self.preserves_unknown() => return,
                    items => items.unwrap_or(&NOTHING),
                };
                elements
                    .iter_mut()
                    .for_each(|value| items.prune_but(value, spares_metadata));
            }
            _ => {}
        }
    }

    /// Drops null members of known fields, as decoding into Go's types does: there a null is the field's absence. Nulls in free-form objects
    /// stay. Writes quantities and durations in their canonical form, and bytes that are told as a list as text.
    pub fn canonicalize(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|name, value| match self.field(name) {
                Some(_) if value.is_null() => false,
                Some(child) => {
                    child.canonicalize(value);
                    true
                }
                None => {
                    if let Some(child) = self.additional() {
                        child.canonicalize_element(value);
                    }
                    true
                }
            }),
            Value::Array(bytes) if self.format() == Some("byte") => {
                if let Some(text) = base64_of(bytes) {
                    *value = Value::String(text);
                }
            }
            Value::Array(elements) => {
                if let Some(items) = self.items() {
                    elements.iter_mut().for_each(|value| items.canonicalize_element(value));
                }
            }
            Value::String(_) | Value::Number(_) if self.kind() == Kind::Quantity => canonicalize_quantity(value),
            Value::String(text) if matches!(self.format(), Some("date-time" | "go-micro-time")) => {
                if let Some(written) = in_utc(text, self.format() == Some("go-micro-time")) {
                    *text = written;
                }
            }
            Value::String(text) if self.format() == Some("go-duration") => {
                if let Ok(duration) = text.parse::<Duration>() {
                    *text = duration.to_string();
                }
            }
            _ => {}
        }
    }

    /// Does so with an object's metadata only: in custom resources a null may be a value.
    pub fn canonicalize_metadata(&self, value: &mut Value) {
        if let (Some(schema), Some(metadata)) = (self.field("metadata"), value.get_mut("metadata")) {
            schema.canonicalize(metadata);
        }
    }

    /// An element of a list or map: of a null there, Go's decoder makes the zero value of its type.
    fn canonicalize_element(&self, value: &mut Value) {
        if !value.is_null() || self.is_nullable() {
            return self.canonicalize(value);
        }
        match self.kind() {
            // a time that nobody set is written as null, too
            Kind::String if matches!(self.format(), Some("date-time" | "go-micro-time")) => {}
            Kind::String => *value = Value::String(String::new()),
            Kind::Integer | Kind::Number => *value = Value::from(0),
            Kind::Boolean => *value = Value::Bool(false),
            Kind::Quantity => *value = Value::from("0"),
            Kind::Object => *value = Value::Object(serde_json::Map::new()),
            _ => {}
        }
    }
}

/// The bytes that a list of numbers tells, as Go's encoder writes them; none if one is no byte. A null is a zero, as elsewhere in lists.
fn base64_of(bytes: &[Value]) -> Option<String> {
    use base64::Engine;
    let byte = |value: &Value| match value {
        Value::Null => Some(0),
        other => other.as_u64().and_then(|number| u8::try_from(number).ok()),
    };
    let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
    Some(base64::engine::general_purpose::STANDARD.encode(bytes?))
}

/// A time as Go writes it: in UTC, in whole seconds or in millionths. None, if it is written so, or is no time.
fn in_utc(text: &str, micro: bool) -> Option<String> {
    let (length, format) = match micro {
        false => ("2026-01-01T00:00:00Z".len(), "%Y-%m-%dT%H:%M:%SZ"),
        true => ("2026-01-01T00:00:00.000000Z".len(), "%Y-%m-%dT%H:%M:%S%.6fZ"),
    };
    // as most times come
    if text.len() == length && text.ends_with('Z') {
        return None;
    }
    let checked = match micro {
        false => formats::time(text),
        true => formats::micro_time(text),
    };
    let time: Timestamp = checked.ok().and_then(|()| text.parse().ok())?;
    Some(time.strftime(format).to_string())
}

/// What is no quantity stays as it is.
fn canonicalize_quantity(value: &mut Value) {
    let text: Cow<'_, str> = match &*value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    };
    let Ok(canonical) = quantity::canonical(&text) else {
        return;
    };
    if value.as_str() != Some(&*canonical) {
        *value = Value::String(canonical.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn unknown_fields_of_built_in_kinds() {
        let schema = fixtures::deployment();
        let value = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "foo": 1,
            "metadata": {"colour": "red", "labels": {"any": "x"}},
            "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "foo": 1,
                "resources": {"limits": {"cpu": "1"}}}]}}}});
        assert_eq!(
            schema.unknown_fields(&value),
            ["foo", "metadata.colour", "spec.template.spec.containers[1].foo"]
        );
        let mut pruned = value.clone();
        schema.prune(&mut pruned);
        assert!(schema.unknown_fields(&pruned).is_empty());
        assert_eq!(pruned["metadata"], json!({"labels": {"any": "x"}}));
    }

    #[test]
    fn times_are_written_in_utc() {
        for (text, micro, expected) in [
            ("2030-01-01T00:00:00+01:00", false, Some("2029-12-31T23:00:00Z")),
            ("2030-01-01T00:00:00.999Z", false, Some("2030-01-01T00:00:00Z")),
            (
                "2030-01-01T00:00:00.000001-00:30",
                true,
                Some("2030-01-01T00:30:00.000001Z"),
            ),
            ("2030-01-01T00:00:00Z", false, None),
            ("2030-01-01T00:00:00.000001Z", true, None),
            ("yesterday", false, None),
        ] {
            assert_eq!(in_utc(text, micro).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn free_form_parts_are_kept() {
        let schema = Schema::from_crd(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {}}}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true},
            "empty": {"type": "object"}}}}}),
        )
        .unwrap();
        let mut value = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "x": 1}, "x": 1, "spec": {
            "config": {"a": {"b": 1}, "known": {"c": 1}},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
            "empty": {"a": 1}}});
        assert_eq!(
            schema.unknown_fields(&value),
            [
                "metadata.x",
                "spec.config.known.c",
                "spec.empty.a",
                "spec.template.spec",
                "x"
            ]
        );
        schema.prune(&mut value);
        assert_eq!(
            value,
            json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {
                "config": {"a": {"b": 1}, "known": {}},
                "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
                "empty": {}}})
        );
    }

    #[test]
    fn nulls_of_known_fields_go() {
        let schema = fixtures::deployment();
        let mut value = json!({"metadata": {"creationTimestamp": null, "labels": {"a": null}},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "image": null}]}}}, "status": null});
        schema.canonicalize(&mut value);
        assert_eq!(
            value,
            json!({"metadata": {"labels": {"a": ""}}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}})
        );
    }

    #[test]
    fn nulls_in_lists_and_maps_are_zero_values() {
        let schema = fixtures::deployment();
        let pod = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let mut value = pod(json!([null, {"args": [null], "resources": {"limits": {"cpu": null}}}]));
        schema.canonicalize(&mut value);
        assert_eq!(
            value,
            pod(json!([{}, {"args": [""], "resources": {"limits": {"cpu": "0"}}}]))
        );
    }
}
