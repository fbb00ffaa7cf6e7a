//! What readers ask and get.

use std::sync::Arc;

use crate::{Entry, Revision};

/// What part of a listing to give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The exact snapshot to read; the newest one if absent.
    pub at: Option<Revision>,
    /// The path to start after, for the next page.
    pub after: Option<String>,
    /// The largest number of entries to give.
    pub limit: Option<usize>,
}

/// Entries of one snapshot, ordered by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<Arc<Entry>>,
    /// The snapshot's revision.
    pub revision: Revision,
    /// How many entries follow the last one given.
    pub remaining: u64,
}

/// Why a read cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The events needed are no longer kept.
    #[error("revision {requested} is no longer available, the oldest is {oldest}: list anew and go on from there")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The oldest revision that can be asked for.
        oldest: Revision,
    },
    /// The revision has not happened.
    #[error("revision {requested} does not exist yet, the newest is {current}")]
    Future {
        /// The revision asked for.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },
}

/// The store cannot tell whether it shows all that others wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store cannot tell what others wrote ({reason}): try again")]
pub struct Behind {
    /// What went wrong.
    pub reason: Arc<str>,
}
