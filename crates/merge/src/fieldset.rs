//! Sets of field paths and their serialized form, `FieldsV1`.

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {}

impl Set {
    /// Reads a set of dotted paths of fields, such as `status` or `metadata.labels`.
    pub fn of_fields(paths: &[&str]) -> Self {
        let _ = paths;
        Self {}
    }
}
