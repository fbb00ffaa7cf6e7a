//! JSON patch (RFC 6902) and merge patch (RFC 7396), with the API server's answers to patches that fail.

use gardener_apimachinery::ApiError;
use gardener_schema::json::type_of;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;

/// How many operations one JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

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
    /// The patch does not fit the object: a `test` fails, a path leads nowhere.
    #[error("{0}")]
    DoesNotApply(String),
    /// The patch is none, or a directive has another form than it must.
    #[error("{0}")]
    Format(String),
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
            PatchError::TooManyOperations(_) => Self::new(413, "RequestEntityTooLarge", error.to_string()),
            // The API server tells no more than this.
            PatchError::DoesNotApply(_) => Self::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
            .with_causes(Vec::new()),
            PatchError::Directive(_) => Self::unclassified(error.to_string()),
        }
    }
}

/// Applies a JSON patch to a document. All operations or none.
///
/// # Errors
/// When the patch is no list of operations or an operation does not apply.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(list) = patch else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            type_of(patch)
        )));
    };
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(list.len()));
    }
    let mut patched = document.clone();
    for operation in list {
        let Some(operation) = as_standard(operation, &patched)? else {
            continue;
        };
        let operation: PatchOperation =
            serde_json::from_value(operation).map_err(|why| PatchError::DoesNotApply(why.to_string()))?;
        let operation = Patch(vec![adding_what_is_missing(operation, &patched)]);
        json_patch::patch(&mut patched, &operation).map_err(|why| PatchError::DoesNotApply(why.to_string()))?;
    }
    Ok(patched)
}

/// An operation as the standard has it. An API server also takes indexes that count from a list's end, does not look at what is before
/// a path's first slash, and finds null where nothing is. `None`: nothing is to be done.
fn as_standard(operation: &Value, document: &Value) -> Result<Option<Value>, PatchError> {
    let Value::Object(_) = operation else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
            type_of(operation)
        )));
    };
    let mut operation = operation.clone();
    let kind = operation
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    for key in ["path", "from"] {
        let Some(path) = operation.get(key).and_then(Value::as_str) else {
            continue;
        };
        if path.is_empty() && matches!(kind.as_str(), "replace" | "test") {
            continue;
        }
        let Some((_, path)) = path.split_once('/') else {
            return Err(PatchError::DoesNotApply(format!("no path: {path:?}")));
        };
        // what is added may stand behind the last element
        let behind = usize::from(key == "path" && matches!(kind.as_str(), "add" | "copy" | "move"));
        let path = counted_from_start(path, document, behind);
        if let Some(members) = operation.as_object_mut() {
            members.insert(key.to_owned(), path.into());
        }
    }
    let is_absent = |path: &str| {
        let parent = path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
        parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
    };
    let copies_nothing = kind == "copy" && operation.get("from").and_then(Value::as_str).is_some_and(is_absent);
    if let Some(members) = operation.as_object_mut() {
        if copies_nothing {
            members.remove("from");
            members.insert("op".to_owned(), "add".into());
        }
        if copies_nothing || matches!(kind.as_str(), "add" | "replace" | "test") {
            members.entry("value").or_insert(Value::Null);
        }
    }
    let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
    let finds_nothing = kind == "test" && operation.get("value").is_some_and(Value::is_null) && is_absent(path);
    Ok((!finds_nothing).then_some(operation))
}

/// A path whose negative indexes are counted from the start, as a JSON pointer.
fn counted_from_start(path: &str, document: &Value, behind: usize) -> String {
    let mut pointer = String::new();
    let last = path.split('/').count() - 1;
    for (at, segment) in path.split('/').enumerate() {
        let from_end = segment
            .strip_prefix('-')
            .and_then(|digits| digits.parse::<usize>().ok());
        let length = document.pointer(&pointer).and_then(Value::as_array).map(Vec::len);
        let index = match (from_end, length) {
            (Some(back), Some(length)) => (length + if at == last { behind } else { 0 }).checked_sub(back),
            _ => None,
        };
        pointer.push('/');
        match index {
            Some(index) => pointer.push_str(&index.to_string()),
            None => pointer.push_str(segment),
        }
    }
    pointer
}

/// An API server takes the replacement of a member that is not there for its addition.
fn adding_what_is_missing(operation: PatchOperation, document: &Value) -> PatchOperation {
    match operation {
        PatchOperation::Replace(replace) => {
            let member_of = replace
                .path
                .parent()
                .and_then(|parent| document.pointer(parent.as_str()));
            match member_of.is_some_and(Value::is_object) {
                true => PatchOperation::Add(AddOperation {
                    path: replace.path,
                    value: replace.value,
                }),
                false => PatchOperation::Replace(replace),
            }
        }
        other => other,
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
    json_patch::merge(&mut patched, patch);
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_of_an_api_server() {
        let document = json!({"spec": {"a": 1, "list": ["x"]}});
        for (patch, code, message) in [
            (
                json!({"op": "add"}),
                400,
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                json!([{"op": "remove", "path": "/spec/nothing"}]),
                422,
                "the server rejected our request due to an error in our request",
            ),
            (
                json!([{"op": "replace", "path": "/spec/a", "value": 2}, {"op": "test", "path": "/spec/a", "value": 1}]),
                422,
                "the server rejected our request due to an error in our request",
            ),
        ] {
            let error = ApiError::from(json_patch(&document, &patch).unwrap_err());
            assert_eq!((error.code(), error.message()), (code, message), "{patch}");
            if code == 422 {
                let status = serde_json::to_value(error.status()).unwrap();
                assert_eq!(status["details"], json!({}), "{patch}");
            }
        }
        let patch =
            json!([{"op": "add", "path": "/spec/list/-", "value": "y"}, {"op": "test", "path": "/spec/a", "value": 1}]);
        assert_eq!(
            json_patch(&document, &patch).unwrap(),
            json!({"spec": {"a": 1, "list": ["x", "y"]}})
        );
        for (patch, expected) in [
            (
                json!({"op": "remove", "path": "/spec/list/-1"}),
                json!({"spec": {"a": 1, "list": []}}),
            ),
            (
                json!({"op": "add", "path": "/spec/list/-1", "value": "y"}),
                json!({"spec": {"a": 1, "list": ["x", "y"]}}),
            ),
            (
                json!({"op": "add", "path": "x/b", "value": 1}),
                json!({"spec": {"a": 1, "list": ["x"]}, "b": 1}),
            ),
            (
                json!({"op": "test", "path": "/spec/none", "value": null}),
                document.clone(),
            ),
        ] {
            assert_eq!(json_patch(&document, &json!([patch])).unwrap(), expected, "{patch}");
        }
        for patch in [
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "remove", "path": "/spec/list/-2"}),
            json!({"op": "add", "path": "x", "value": 1}),
        ] {
            assert!(json_patch(&document, &json!([patch])).is_err(), "{patch}");
        }
        let many = Value::Array(vec![
            json!({"op": "test", "path": "/spec/a", "value": 1});
            MAX_OPERATIONS + 1
        ]);
        assert_eq!(ApiError::from(json_patch(&document, &many).unwrap_err()).code(), 413);
    }

    #[test]
    fn merge_patches() {
        let document = json!({"spec": {"a": 1, "list": ["x"], "deep": {"b": 1, "c": 2}}});
        let patch = json!({"spec": {"a": null, "list": ["y"], "deep": {"b": 3}}});
        assert_eq!(
            merge_patch(&document, &patch).unwrap(),
            json!({"spec": {"list": ["y"], "deep": {"b": 3, "c": 2}}})
        );
        assert!(merge_patch(&document, &json!([])).is_err());
    }
}
