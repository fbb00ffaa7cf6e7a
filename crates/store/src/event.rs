//! What a watch tells: one change of one key.

use std::sync::Arc;

use crate::{Entry, Revision};

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The key came to be.
    Created,
    /// The key got another value.
    Updated,
    /// The key went away.
    Deleted,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The change's revision.
    pub revision: Revision,
    /// What happened.
    pub kind: EventKind,
    /// The value from this revision on; for a deletion the last value, stamped with the deletion's revision.
    pub entry: Arc<Entry>,
    /// The entry before the change; none for a creation.
    pub previous: Option<Arc<Entry>>,
}
