//! The kind and version that an object tells, as Go reads them before anything else of it.

use serde_json::Value;

use crate::go_json::type_of;
use crate::pointer::Pointed;

/// The struct that Go reads first, as its messages show it.
const TYPE_META: &str =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Whether a text is no group and version: more than a group stands before the version.
pub fn is_no_group_version(text: &str) -> bool {
    text.matches('/').count() > 1
}

/// Why not even the kind of an object can be read, if so.
pub fn unreadable(object: &Value) -> Option<String> {
    let cannot = |why: String| format!("couldn't get version/kind; json parse error: json: cannot unmarshal {why}");
    let members = match object {
        Value::Object(members) => members,
        Value::Null => return None,
        other => return Some(cannot(format!("{} into Go value of type {TYPE_META}", type_of(other)))),
    };
    for key in ["apiVersion", "kind"] {
        match members.get(key) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Some(cannot(format!(
                    "{} into Go struct field .{key} of type string",
                    type_of(other)
                )));
            }
        }
    }
    let api_version = object.at("/apiVersion").and_then(Value::as_str).unwrap_or_default();
    is_no_group_version(api_version).then(|| format!("unexpected GroupVersion string: {api_version}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_tells_no_kind_is_told() {
        assert_eq!(unreadable(&json!({"apiVersion": "a/b", "kind": "C"})), None);
        assert_eq!(unreadable(&json!({"apiVersion": null})), None);
        for (object, expected) in [
            (json!({"apiVersion": "a/b/c"}), "unexpected GroupVersion string: a/b/c"),
            (
                json!({"kind": 1}),
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
            ),
            (
                json!([]),
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
            ),
        ] {
            assert_eq!(unreadable(&object).as_deref(), Some(expected));
        }
    }
}
