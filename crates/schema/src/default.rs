//! Structural defaulting, as apiextensions does it for custom resources, and the members that Go always writes of its types.
//!
//! The `default` of OpenAPI documents of built-in kinds tells mostly Go's zero values. Others (`protocol: TCP`) are filled in by the
//! kinds' own defaulting.

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value};

use crate::empty::{Empty, Place};
use crate::json::is_empty;
use crate::meta::OBJECT_META;
use crate::schema::{Kind, Schema};

impl Schema {
    /// Fills in defaults, into objects that exist. A null where null is no value (`nullable` is not set) is replaced by
    /// the default; where there is none, it is dropped.
    pub fn apply_defaults(&self, value: &mut Value) {
        self.drop_nulls(value);
        self.fill_defaults(value);
    }

    /// Fills in defaults, into objects that exist and in the place of null where null is no value. Other nulls stay.
    pub fn fill_defaults(&self, value: &mut Value) {
        if self.definition_name() == Some(OBJECT_META) {
            // Decoded like that of built-in kinds: without nulls, and what is missing stays missing, but for what the author of an object
            // within others says.
            self.fill_said(value);
            self.canonicalize(value);
            return;
        }
        match value {
            Value::Object(members) => {
                for (name, field) in self.fields() {
                    let Some(default) = field.default_value() else { continue };
                    match members.get(name) {
                        None => {}
                        Some(Value::Null) if !field.is_nullable() => {}
                        Some(_) => continue,
                    }
                    members.insert(name.to_owned(), default.clone());
                }
                for (name, value) in members {
                    let Some(child) = self.child(name) else { continue };
                    if let (Value::Null, false, Some(default)) = (&*value, child.is_nullable(), child.default_value()) {
                        *value = default.clone();
                    }
                    child.fill_defaults(value);
                }
            }
            Value::Array(elements) => {
                let Some(items) = self.items() else { return };
                for value in elements {
                    if value.is_null()
                        && !items.is_nullable()
                        && let Some(default) = items.default_value()
                    {
                        *value = default.clone();
                    }
                    items.fill_defaults(value);
                }
            }
            _ => {}
        }
    }

    /// Fills in the fields of metadata that an author gave defaults.
    fn fill_said(&self, metadata: &mut Value) {
        let Value::Object(members) = metadata else { return };
        let said = self.constraints().flat_map(|own| &own.all_of).flat_map(Self::fields);
        for (name, field) in said {
            if let (Some(default), Some(_)) = (field.default_value(), self.field(name))
                && members.get(name).is_none_or(is_empty)
            {
                members.insert(name.to_owned(), default.clone());
            }
        }
    }

    /// Drops members that are null where null is no value and no default takes its place.
    fn drop_nulls(&self, value: &mut Value) {
        if self.definition_name() == Some(OBJECT_META) {
            return;
        }
        match value {
            Value::Object(members) => members.retain(|name, value| {
                let Some(child) = self.child(name) else { return true };
                if value.is_null() && !child.is_nullable() && child.default_value().is_none() {
                    return false;
                }
                child.drop_nulls(value);
                true
            }),
            Value::Array(elements) => {
                let Some(items) = self.items() else { return };
                elements.iter_mut().for_each(|value| items.drop_nulls(value));
            }
            _ => {}
        }
    }

    /// What a field is where nobody set it, if Go writes it all the same: structs, and what is not `omitempty`. None for fields of custom
    /// resources.
    pub fn zero_value(&self, field: &str) -> Option<&Value> {
        self.definition_name()?;
        self.field(field)?.zero_default()
    }

    /// The fields that Go always writes, with what they are where nobody set them. None of custom resources.
    pub fn zero_fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        let fields = self.definition_name().map(|_| {
            let node = self.with_fields();
            node.zero_fields.get_or_init(|| {
                let fields = node.fields();
                let zeros = fields.filter_map(|(name, field)| Some((name.into(), field.zero_default()?.clone())));
                zeros.collect()
            })
        });
        let fields = fields.into_iter().flatten();
        fields.map(|(name, zero)| (&**name, zero))
    }

    /// Whether Go leaves out the zero value of this field.
    pub fn omits_zero(&self) -> bool {
        self.omits_zero
    }

    /// The default, if it is Go's zero value.
    pub(crate) fn zero_default(&self) -> Option<&Value> {
        self.default_value().filter(|value| match value {
            Value::Object(members) => members.is_empty(),
            Value::String(text) => {
                let is_no_time = || text == "0s" && self.format() == Some("go-duration");
                text.is_empty() || self.kind() == crate::Kind::Quantity || is_no_time()
            }
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Bool(flag) => !flag,
            Value::Null => true,
            Value::Array(_) => false,
        })
    }

    /// Drops the members that Go leaves out of an object of a built-in kind: optional lists and maps without an element, and zero values of
    /// scalars that are no pointers.
    pub fn drop_empty_metadata(&self, object: &mut Value) {
        // an empty list of managedFields asks to drop them all
        let managed = object.at_mut("/metadata/managedFields").map(Value::take);
        if let (Some(schema), Some(metadata)) = (self.field("metadata"), object.get_mut("metadata")) {
            schema.drop_empty(metadata);
            if let (Some(managed), Some(members)) = (managed, metadata.as_object_mut()) {
                members.insert("managedFields".into(), managed);
            }
        }
    }

    /// Drops what Go leaves out when it writes: empty values of optional fields. Answers where there was a list, a map or a text of bytes without
    /// an element, whether it was dropped or not: Go tells it from none until it is stored.
    pub fn drop_empty(&self, value: &mut Value) -> Vec<Empty> {
        let mut found = Vec::new();
        self.drop_empty_at(value, &Place::Root, &mut found);
        found
    }

    fn drop_empty_at(&self, value: &mut Value, at: &Place<'_>, found: &mut Vec<Empty>) {
        match value {
            Value::Object(members) => members.retain(|name, value| {
                let Some(child) = self.child(name) else { return true };
                let at = Place::Member(at, name);
                child.drop_empty_at(value, &at, found);
                let is_empty = match value {
                    Value::Bool(false) => return !child.omits_zero,
                    Value::String(text) if text.is_empty() => {
                        if child.format() == Some("byte") {
                            found.push(at.empty(value));
                        }
                        return !child.omits_zero;
                    }
                    Value::Number(number) if number.as_i64() == Some(0) => return !child.omits_zero,
                    Value::Array(elements) => elements.is_empty(),
                    Value::Object(members) => members.is_empty() && child.fields().next().is_none(),
                    _ => false,
                };
                if is_empty {
                    found.push(at.empty(value));
                }
                let is_optional = || {
                    let is_field = self.definition_name().is_some() && self.field(name).is_some();
                    let is_written = child.default_value() == Some(&Value::Null);
                    is_field
                        && !is_written
                        && child.definition_name().is_none()
                        && (child.omits_zero || !self.required().any(|required| required == name))
                };
                !(is_empty && is_optional())
            }),
            Value::Array(elements) => {
                let Some(items) = self.items() else { return };
                for (index, value) in elements.iter_mut().enumerate() {
                    items.drop_empty_at(value, &Place::Element(at, index), found);
                }
            }
            _ => {}
        }
    }

    /// Writes the members that Go always writes ([`Schema::zero_value`]) into an object of a built-in kind.
    pub fn complete(&self, value: &mut Value) {
        self.complete_with(value, true);
    }

    /// As [`Schema::complete`], but leaves lists and maps as they are: whether they are empty or not there is still to be seen.
    pub fn complete_scalars(&self, value: &mut Value) {
        self.complete_with(value, false);
    }

    /// As [`Schema::complete`], of an object some of whose members are elsewhere: no more than the named ones are looked at, and come to be.
    pub fn complete_members(&self, value: &mut Value, named: &[&str]) {
        if let Value::Object(members) = value {
            self.complete_where(members, true, |name| named.contains(&name));
        }
    }

    fn complete_where(&self, members: &mut Map<String, Value>, nulls: bool, here: impl Fn(&str) -> bool) {
        for (name, zero) in self.zero_fields().filter(|(name, _)| here(name)) {
            let is_collection = || {
                self.field(name)
                    .is_some_and(|field| matches!(field.kind(), Kind::Array | Kind::Object))
            };
            if !members.contains_key(name) && (nulls || !zero.is_null() || !is_collection()) {
                members.insert(name.to_owned(), zero.clone());
            }
        }
        for (name, value) in members.iter_mut().filter(|(name, _)| here(name)) {
            let Some(child) = self.child(name) else { continue };
            child.complete_with(value, nulls);
            // what is stored as protobuf comes back without the difference between none and nothing
            if nulls && value.as_array().is_some_and(Vec::is_empty) && child.default_value() == Some(&Value::Null) {
                *value = Value::Null;
            }
        }
    }

    fn complete_with(&self, value: &mut Value, nulls: bool) {
        match value {
            Value::Object(members) => self.complete_where(members, nulls, |_| true),
            Value::Array(elements) => {
                let Some(items) = self.items() else { return };
                elements.iter_mut().for_each(|value| items.complete_with(value, nulls));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn built_in_kinds_are_as_go_writes_them() {
        let schema = crate::fixtures::deployment();
        let mut value = json!({
            "metadata": {"name": "a", "labels": {}, "finalizers": []},
            "spec": {"selector": {}, "replicas": 0, "paused": false, "template": {"spec": {"hostNetwork": false, "shareProcessNamespace": false,
                "containers": [{"name": "c", "args": [], "env": [{"name": "A", "value": ""}]}], "volumes": [{"name": "v", "emptyDir": {}}]}}},
        });
        schema.drop_empty(&mut value);
        schema.complete(&mut value);
        assert_eq!(
            (&value["metadata"], &value["status"], &value["spec"]["strategy"]),
            (&json!({"name": "a"}), &json!({}), &json!({}))
        );
        let spec = &value["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0].get("args"), None);
        assert_eq!(spec["containers"][0]["resources"], json!({}));
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}), "a pointer that is set stays");
        assert_eq!(value["spec"]["selector"], json!({}), "as is what is required");
        assert_eq!(
            value["spec"]["replicas"],
            json!(0),
            "and the zero that a pointer points to"
        );
        assert_eq!(spec["shareProcessNamespace"], json!(false));
        assert_eq!((value["spec"].get("paused"), spec.get("hostNetwork")), (None, None));
        assert_eq!(spec["containers"][0]["env"], json!([{"name": "A"}]));
        let once = value.clone();
        schema.drop_empty(&mut value);
        schema.complete(&mut value);
        assert_eq!(value, once);
    }

    #[test]
    fn empty_texts_with_another_default_are_none() {
        let schema = crate::fixtures::deployment();
        let pod =
            |port: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": [port]}]}}}});
        let mut value = pod(json!({"containerPort": 80, "protocol": ""}));
        schema.drop_empty(&mut value);
        assert_eq!(value, pod(json!({"containerPort": 80})));
    }

    #[test]
    fn what_is_empty_is_found() {
        let schema = crate::fixtures::deployment();
        let mut object = json!({
            "metadata": {"labels": {}}, "status": {"conditions": []},
            "spec": {"selector": {"matchLabels": {}, "matchExpressions": [{"key": "a", "values": []}]}, "strategy": {}, "replicas": 0,
                "template": {"metadata": {"annotations": {"a/b": ""}}, "spec": {"containers": []}}},
        });
        let told = object.clone();
        let expected = [
            "/metadata/labels",
            "/spec/selector/matchExpressions/0/values",
            "/spec/selector/matchLabels",
            "/spec/template/spec/containers",
            "/status/conditions",
        ];
        let found = schema.drop_empty(&mut object);
        let places: Vec<&str> = found.iter().map(|empty| empty.at.as_str()).collect();
        assert_eq!(places, expected, "structs are none of them");
        for empty in &found {
            assert_eq!(told.at(&empty.at), Some(&empty.value));
        }
    }

    #[test]
    fn defaults_go_into_objects_that_exist() {
        let schema = Schema::from_crd(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "integer", "default": 1},
                "nullable": {"type": "integer", "nullable": true, "default": 2},
                "deep": {"type": "object", "properties": {"b": {"type": "string", "default": "x"}}},
                "made": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "y"}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean", "default": true}}}},
                "map": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
                "bare": {"type": "string"}}}}}))
        .unwrap();
        for (value, expected) in [
            (json!({}), json!({})),
            (
                json!({"metadata": {"creationTimestamp": null, "ownerReferences": [{"name": "a"}]}}),
                json!({"metadata": {"ownerReferences": [{"name": "a"}]}}),
            ),
            (
                json!({"spec": {}}),
                json!({"spec": {"a": 1, "nullable": 2, "made": {"b": "y"}}}),
            ),
            (
                json!({"spec": {"a": null, "nullable": null, "deep": {}, "made": {"b": "w"}, "list": [{}, {"c": false}],
                    "map": {"k": null, "l": "m"}, "bare": null}}),
                json!({"spec": {"a": 1, "nullable": null, "deep": {"b": "x"}, "made": {"b": "w"},
                    "list": [{"c": true}, {"c": false}], "map": {"k": "z", "l": "m"}}}),
            ),
        ] {
            let mut found = value.clone();
            schema.apply_defaults(&mut found);
            assert_eq!(found, expected, "{value}");
            let once = found.clone();
            schema.apply_defaults(&mut found);
            assert_eq!(found, once, "defaulting twice changes nothing");
        }
    }
}
