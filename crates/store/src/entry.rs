//! A value at a revision, and what readers derived from it.
//!
//! Most values are read seldom once they are some time old, and they are most of the memory that a store takes. So an entry may hold its value
//! compressed; the index decides when.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::squeeze::{Squeezed, Squeezer};
use crate::{Form, Key, Revision};

/// One value as it was from one revision on. Never changes; shared by all readers.
pub struct Entry {
    /// Where it is.
    pub key: Key,
    /// The stamped value.
    value: Value,
    /// The revision that created the key.
    pub create_revision: Revision,
    /// The revision of this value; in a deletion's entry, of the deletion.
    pub mod_revision: Revision,
    // a number and a flag share a word: there are many entries
    version: u32,
    stale: bool,
    memo: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// A value in memory.
#[derive(Clone)]
enum Value {
    Whole(Bytes),
    Squeezed(Squeezed),
}

impl Value {
    /// The bytes it takes.
    fn cost(&self) -> usize {
        match self {
            Self::Whole(value) => value.len(),
            Self::Squeezed(squeezed) => squeezed.cost(),
        }
    }
}

impl Entry {
    pub(crate) fn new(key: Key, value: Bytes, create_revision: Revision, mod_revision: Revision, version: u64) -> Self {
        Self {
            key,
            value: Value::Whole(value),
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

    /// The value. Borrowed, or unpacked each time if the entry keeps it compressed: ask once and hold on to it while it is needed.
    pub fn value(&self) -> Cow<'_, [u8]> {
        match &self.value {
            Value::Whole(value) => Cow::Borrowed(value),
            Value::Squeezed(squeezed) => Cow::Owned(squeezed.whole()),
        }
    }

    /// The value up to the end of its head (see [`Form`]) or further. As [`value`](Self::value), but takes only as long as the head is.
    pub fn head(&self) -> Cow<'_, [u8]> {
        match &self.value {
            Value::Whole(value) => Cow::Borrowed(value),
            Value::Squeezed(squeezed) => Cow::Owned(squeezed.head()),
        }
    }

    /// The value, to be kept longer than the entry. Shared with it, unless the entry keeps it compressed.
    pub fn bytes(&self) -> Bytes {
        match &self.value {
            Value::Whole(value) => value.clone(),
            Value::Squeezed(squeezed) => squeezed.whole().into(),
        }
    }

    /// The bytes that the value takes in memory.
    pub(crate) fn cost(&self) -> usize {
        self.value.cost()
    }

    /// The same entry in less memory, with what readers derived from it. None, if it is compressed already or that would not save a quarter of the
    /// value.
    pub(crate) fn squeezed(&self, squeezer: &Squeezer) -> Option<Self> {
        let Value::Whole(value) = &self.value else { return None };
        let squeezed = squeezer.squeeze(value)?;
        Some(Self {
            key: self.key.clone(),
            value: Value::Squeezed(squeezed),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            stale: self.stale,
            memo: self.memo.clone(),
        })
    }

    /// The entry that tells of the key's deletion: the last value at the deletion's revision.
    pub(crate) fn deleted(&self, form: Form, revision: Revision) -> Self {
        let value = (form.stamp)(&self.bytes(), revision);
        Self::new(self.key.clone(), value, self.create_revision, revision, self.version())
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
            .field("value", &String::from_utf8_lossy(&self.value()))
            .field("create_revision", &self.create_revision)
            .field("mod_revision", &self.mod_revision)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.value() == other.value()
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
    use crate::contract::FORM;
    use crate::dice::Dice;

    #[test]
    fn memo_is_computed_once_and_other_types_do_not_disturb_it() {
        let entry = Entry::new(
            Key::new(Topic::new("", "pods"), "garden/ns/a"),
            Bytes::from_static(b"12"),
            1,
            1,
            1,
        );
        let length = entry.memo(|entry| entry.value().len());
        assert_eq!(*length, 2);
        let again = entry.memo(|_| -> usize { panic!("computed twice") });
        assert!(Arc::ptr_eq(&length, &again));
        assert_eq!(*entry.memo(|_| "other".to_owned()), "other");
        assert_eq!(*entry.memo(|_| 7usize), 2);
    }

    #[test]
    fn a_squeezed_entry_is_the_same_in_less_memory() {
        let text = Bytes::from("key: value\n".repeat(100));
        let entry = Entry::new(Key::new(Topic::new("", "pods"), "a"), text.clone(), 3, 7, 2).with_stale(true);
        let derived = entry.memo(|entry| entry.value().len());
        let squeezed = entry.squeezed(&Squeezer::new(FORM, None)).unwrap();
        assert!(squeezed.cost() < entry.cost() / 10);
        assert_eq!(squeezed, entry);
        assert_eq!((squeezed.bytes(), squeezed.is_stale()), (text, true));
        assert!(Arc::ptr_eq(
            &derived,
            &squeezed.memo(|_| -> usize { panic!("computed twice") })
        ));
        assert!(squeezed.squeezed(&Squeezer::new(FORM, None)).is_none());
        assert!(size_of::<Entry>() <= 112, "{}", size_of::<Entry>());
    }

    #[test]
    fn what_would_not_become_smaller_stays_as_it_is() {
        let key = || Key::new(Topic::new("", "pods"), "a");
        let mut dice = Dice::new(1);
        let noise: Vec<u8> = (0..2000).map(|_| dice.below(256) as u8).collect();
        for value in [noise, "x".repeat(127).into_bytes()] {
            let entry = Entry::new(key(), value.into(), 1, 1, 1);
            assert!(entry.squeezed(&Squeezer::new(FORM, None)).is_none());
        }
    }
}
