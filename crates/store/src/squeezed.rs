//! Entries that hardly anybody wants any more, in little space.

use crate::{Entry, Key, Revision};

/// An entry whose value is compressed.
#[derive(Debug)]
pub(crate) struct Squeezed {
    key: Key,
    bytes: Box<[u8]>,
    /// Of the value.
    length: usize,
    create_revision: Revision,
    mod_revision: Revision,
    version: u64,
    stale: bool,
}

impl Squeezed {
    /// None if it would not take a quarter less space.
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        let bytes = lz4_flex::block::compress(&entry.value);
        let length = entry.value.len();
        (bytes.len() + size_of::<Self>() < length / 4 * 3).then(|| Self {
            key: entry.key.clone(),
            bytes: bytes.into(),
            length,
            create_revision: entry.create_revision,
            mod_revision: entry.mod_revision,
            version: entry.version(),
            stale: entry.is_stale(),
        })
    }

    /// The bytes it takes.
    pub(crate) fn len(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }

    /// The entry as it was, but for what readers derived from it.
    pub(crate) fn entry(&self) -> Entry {
        let Ok(value) = lz4_flex::block::decompress(&self.bytes, self.length) else {
            unreachable!("it was compressed here, in memory")
        };
        let key = self.key.clone();
        Entry::new(key, value.into(), self.create_revision, self.mod_revision, self.version).with_stale(self.stale)
    }
}
