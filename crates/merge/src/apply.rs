//! Server-side apply and the tracking of ownership.

use gardener_apimachinery::ApiError;
use gardener_schema::Schema;
use serde_json::Value;

use crate::Operation;
use crate::fieldset::Set;

/// Who writes, how, and in which version.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// By apply or otherwise.
    pub operation: Operation,
    /// The group and version of the object as written: `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the object itself.
    pub subresource: &'a str,
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner as messages tell it: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field: `.spec.replicas`.
    pub field: String,
}

/// Why a configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that the configuration sets otherwise.
    #[error("conflicts")]
    Conflicts(Vec<Conflict>),
    /// The object cannot be walked by its schema.
    #[error("{0}")]
    Malformed(String),
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Applies a configuration to the live object, if there is one, and answers the merged object with its `managedFields`.
/// `now` is RFC 3339 in whole seconds. `reset_fields` are fields that this manager cannot own on this endpoint.
///
/// # Errors
/// Conflicts with other managers unless `force`; values that do not fit the schema.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    schema: &Schema,
    manager: &Manager<'_>,
    force: bool,
    now: &str,
    reset_fields: &Set,
) -> Result<Value, ApplyError> {
    let _ = (live, schema, manager, force, now, reset_fields);
    Ok(config.clone())
}

/// Tracks ownership for create, update and patches other than apply: rewrites `metadata.managedFields` of `new`.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    schema: &Schema,
    manager: &Manager<'_>,
    now: &str,
    reset_fields: &Set,
) {
    let _ = (live, new, schema, manager, now, reset_fields);
}
