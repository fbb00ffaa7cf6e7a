//! Merge patch (RFC 7396), and the API server's answers to patches that fail.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::go_json::type_of;
use serde_json::{Map, Value};

use crate::json_patch::MAX_OPERATIONS;

/// A patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// A merge patch that is null.
    #[error("Invalid JSON Patch")]
    Nothing,
    /// The patch has more operations than an API server takes.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// The patch does not fit the object: a path leads nowhere.
    #[error("{0}")]
    DoesNotApply(String),
    /// A `test` of the patch fails.
    #[error("{0}")]
    TestFailed(String),
    /// The patch is none, or a directive has another form than it must.
    #[error("{0}")]
    Format(String),
    /// The patch merges what is kept as it came: how the field is merged is not known.
    #[error("unable to find api field in struct RawExtension for the json field {0:?}")]
    Unstructured(String),
    /// The patch uses a directive of strategic merge patch wrongly.
    #[error("{0}")]
    Directive(String),
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(_) | PatchError::Format(_) | PatchError::Nothing => {
                Self::bad_request(error.to_string())
            }
            PatchError::Unstructured(_) => Self::unclassified(error.to_string()),
            PatchError::TooManyOperations(_) => Self::new(413, "RequestEntityTooLarge", error.to_string()),
            // The API server tells no more than this.
            PatchError::DoesNotApply(_) | PatchError::TestFailed(_) => Self::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
            .with_causes(Vec::new()),
            PatchError::Directive(_) => Self::unclassified(error.to_string()),
        }
    }
}

/// Applies a merge patch to a document.
///
/// # Errors
/// When the patch is no object: objects cannot be replaced by anything else.
pub fn merge_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    if patch.is_null() {
        return Err(PatchError::Nothing);
    }
    if !patch.is_object() {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            type_of(patch)
        )));
    }
    let mut patched = document.clone();
    if let (Value::Object(members), Value::Object(changes)) = (&mut patched, patch) {
        merge_members(members, changes);
    }
    Ok(patched)
}

fn merge_members(members: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, change) in changes {
        match (members.get_mut(key), change) {
            (_, Value::Null) => {
                members.remove(key);
            }
            (Some(Value::Object(old)), Value::Object(changes)) => merge_members(old, changes),
            // what takes an object's place stays as it was sent
            (Some(old @ Value::Object(_)), change) => *old = change.clone(),
            (_, change) => {
                members.insert(key.clone(), without_nulls(change));
            }
        }
    }
}

/// A value without members that are null, in lists, too.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            set.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(elements) => elements.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::JsonPatch;

    #[test]
    fn answers_of_an_api_server() {
        let document = json!({"spec": {"a": 1}});
        let unprocessable = "the server rejected our request due to an error in our request";
        let of_object =
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        for (patch, code, message) in [
            (json!({"op": "add"}), 400, of_object),
            (json!([{"op": "remove", "path": "/spec/nothing"}]), 422, unprocessable),
        ] {
            let error = JsonPatch::checked(&patch).and_then(|patch| patch.apply(&document));
            let error = ApiError::from(error.unwrap_err());
            assert_eq!((error.code(), error.message()), (code, message), "{patch}");
            if code == 422 {
                let status = serde_json::to_value(error.status()).unwrap();
                assert_eq!(status["details"], json!({}), "{patch}");
            }
        }
    }

    #[test]
    fn merge_patches() {
        let document = json!({"spec": {"a": 1, "list": ["x"], "deep": {"b": 1, "c": 2}}});
        for (patch, expected) in [
            (
                json!({"spec": {"a": null, "list": ["y"], "deep": {"b": 3}}}),
                json!({"spec": {"list": ["y"], "deep": {"b": 3, "c": 2}}}),
            ),
            // nulls go with what is new, in lists, too, but not with what takes an object's place
            (
                json!({"spec": {"a": [{"x": null, "y": 1}, null], "list": {"z": null}, "deep": [{"x": null}]}, "new": {"n": {"m": null}}}),
                json!({"spec": {"a": [{"y": 1}, null], "list": {}, "deep": [{"x": null}]}, "new": {"n": {}}}),
            ),
            (json!({"none": null}), document.clone()),
        ] {
            assert_eq!(merge_patch(&document, &patch).unwrap(), expected, "{patch}");
        }
        assert!(merge_patch(&document, &json!([])).is_err());
    }
}
