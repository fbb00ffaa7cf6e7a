//! JSON patch (RFC 6902) and merge patch (RFC 7396), with the API server's answers to patches that fail.

use gardener_apimachinery::ApiError;
use json_patch::{Patch, PatchOperation};
use serde_json::Value;

/// How many operations one JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// A patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// The patch has more operations than an API server takes.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// The patch does not fit the object: a `test` fails, a path leads nowhere.
    #[error("{0}")]
    DoesNotApply(String),
    /// The patch uses a directive of strategic merge patch wrongly.
    #[error("{0}")]
    Directive(String),
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(_) => Self::bad_request(error.to_string()),
            PatchError::TooManyOperations(_) => Self::new(413, "RequestEntityTooLarge", error.to_string()),
            // The API server tells no more than this.
            PatchError::DoesNotApply(_) => Self::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
            .with_causes(Vec::new()),
            PatchError::Directive(_) => Self::bad_request(error.to_string()),
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
    let operations: Vec<PatchOperation> =
        serde_json::from_value(patch.clone()).map_err(|why| PatchError::DoesNotApply(why.to_string()))?;
    let mut patched = document.clone();
    json_patch::patch(&mut patched, &Patch(operations)).map_err(|why| PatchError::DoesNotApply(why.to_string()))?;
    Ok(patched)
}

/// Applies a merge patch to a document.
///
/// # Errors
/// When the patch is no object: objects cannot be replaced by anything else.
pub fn merge_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
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

pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
