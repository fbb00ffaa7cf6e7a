//! Objects inside custom resources that a schema says are objects of their own: their versions, kinds and metadata.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::type_meta::is_no_group_version;
use gardener_schema::Schema;
use serde_json::{Value, json};

use crate::meta;

/// What is wrong with the objects inside `object`.
pub(crate) fn validate(schema: &Schema, object: &Value) -> ErrorList {
    let mut errors = Vec::new();
    look(schema, object, &Path::root(), &mut errors);
    errors
}

fn look(schema: &Schema, value: &Value, path: &Path, errors: &mut ErrorList) {
    if !schema.has_embedded_resources() {
        return;
    }
    match value {
        Value::Object(members) => {
            // the whole object is judged like any other
            if schema.is_embedded_resource() && !path.as_str().is_empty() {
                resource(value, path, errors);
            }
            for (name, value) in members {
                if let Some(child) = schema.child(name) {
                    let at = match schema.field(name) {
                        Some(_) => path.child(name),
                        None => path.key(name),
                    };
                    look(child, value, &at, errors);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = schema.items() {
                for (index, value) in elements.iter().enumerate() {
                    look(items, value, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(value: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["apiVersion", "kind"] {
        let at = path.child(key);
        match value.get(key) {
            None => errors.push(Error::required(&at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(Error::invalid(&at, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "apiVersion" => {
                if is_no_group_version(text) {
                    let why = format!("unexpected GroupVersion string: {text}");
                    errors.push(Error::invalid(&at, text.as_str(), why));
                }
            }
            Some(Value::String(text)) => {
                let wrong = meta::dns1035_label(&text.to_lowercase());
                if !wrong.is_empty() {
                    let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                    errors.push(Error::invalid(&at, text.as_str(), why));
                }
            }
            Some(other) => errors.push(Error::invalid(&at, other.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = value.get("metadata").filter(|metadata| metadata.is_object()) {
        let mut named = json!({"metadata": metadata});
        if meta::name(&named).is_empty() {
            // upstream looks at the rest as if it had a name
            meta::set(&mut named, "name", Some("fakename".into()));
        }
        for mut error in meta::validate(&named, meta::path_segment) {
            error.path = Path::new(&format!("{}.{}", path.as_str(), error.path.as_str()));
            errors.push(error);
        }
    }
}
