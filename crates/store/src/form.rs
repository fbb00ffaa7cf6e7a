//! What a store is told of the values that it keeps, which are bytes to it.

use bytes::Bytes;

/// The number of a change: 1 for the first one in the life of a store, then one more for each.
pub type Revision = u64;

/// What a store is told of the values that it keeps.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Turns the value a writer gave into the one readers see at a revision. Given its own output it replaces the revision in it: so the last value of
    /// a deleted key is stamped with the deletion's.
    pub stamp: fn(&Bytes, Revision) -> Bytes,
    /// The length of a stamped value's head: the part of it that resembles other values of its topic, and that many readers need alone.
    /// [`Entry::head`](crate::Entry::head) tells it in less time than the value. 0 where there is none.
    pub head: fn(&[u8]) -> usize,
}

impl Form {
    /// A stamped value's head, and the rest.
    pub(crate) fn split(self, value: &[u8]) -> (&[u8], &[u8]) {
        let length = (self.head)(value);
        value.split_at_checked(length).unwrap_or((&[], value))
    }
}
