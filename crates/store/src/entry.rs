//! A value at a revision, and what readers derived from it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::Key;

/// The number of a change: 1 for the first one in the life of a store, then one more for each.
pub type Revision = u64;

/// Turns the value a writer gave into the one readers see at a revision. Given its own output it replaces the revision in it: so the
/// last value of a deleted key is stamped with the deletion's.
pub type Stamp = fn(&Bytes, Revision) -> Bytes;

/// One value as it was from one revision on. Never changes; shared by all readers.
pub struct Entry {
    /// Where it is.
    pub key: Key,
    /// The stamped value.
    pub value: Bytes,
    /// The revision that created the key.
    pub create_revision: Revision,
    /// The revision of this value; in a deletion's entry, of the deletion.
    pub mod_revision: Revision,
    // a number and a flag share a word: there are many entries
    version: u32,
    stale: bool,
    memo: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Entry {
    pub(crate) fn new(key: Key, value: Bytes, create_revision: Revision, mod_revision: Revision, version: u64) -> Self {
        Self {
            key,
            value,
            create_revision,
            mod_revision,
            version: u32::try_from(version).unwrap_or(u32::MAX),
            stale: false,
            memo: OnceLock::new(),
        }
    }

    /// The entry of a value that is stored in another way than it would be today.
    pub(crate) fn with_stale(mut self, stale: bool) -> Self {
        self.stale = stale;
        self
    }

    /// How often the key was written since it was created, from 1. Numbers above those of 32 bits are not told apart.
    pub fn version(&self) -> u64 {
        self.version.into()
    }

    /// Whether the value is stored in another way than it would be today: not encrypted, or with a key of before. A writer who would change
    /// nothing should write such a value all the same.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// What `make` derives from this entry: computed once, then shared by all readers of the entry. An entry remembers one type;
    /// asked for another one, it computes it anew each time.
    pub fn memo<T: Any + Send + Sync>(&self, make: impl FnOnce(&Entry) -> T) -> Arc<T> {
        match self.memo.get() {
            Some(remembered) => match Arc::clone(remembered).downcast::<T>() {
                Ok(value) => value,
                Err(_) => Arc::new(make(self)),
            },
            None => {
                // Two readers may both compute; the first one's value stays, so that all share it.
                let value = Arc::new(make(self));
                let shared: Arc<dyn Any + Send + Sync> = value.clone();
                let kept = self.memo.get_or_init(|| shared);
                Arc::clone(kept).downcast::<T>().unwrap_or(value)
            }
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Entry")
            .field("key", &self.key)
            .field("value", &self.value)
            .field("create_revision", &self.create_revision)
            .field("mod_revision", &self.mod_revision)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.value == other.value
            && self.create_revision == other.create_revision
            && self.mod_revision == other.mod_revision
            && self.version == other.version
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Topic;

    #[test]
    fn memo_is_computed_once_and_other_types_do_not_disturb_it() {
        let entry = Entry::new(
            Key::new(Topic::new("", "pods"), "garden/ns/a"),
            Bytes::from_static(b"12"),
            1,
            1,
            1,
        );
        let length = entry.memo(|entry| entry.value.len());
        assert_eq!(*length, 2);
        let again = entry.memo(|_| -> usize { panic!("computed twice") });
        assert!(Arc::ptr_eq(&length, &again));
        assert_eq!(*entry.memo(|_| "other".to_owned()), "other");
        assert_eq!(*entry.memo(|_| 7usize), 2);
    }
}
