//! How the keys and values of a store lie in etcd: told by who opens it, for etcd is shared with others who know where things are.

use std::time::Duration;

use bytes::Bytes;

use crate::Key;

/// Where keys are in etcd, and how values are read that others wrote there.
pub trait Layout: Send + Sync + 'static {
    /// What all keys of the store begin with, e.g. `/registry/`. Keys elsewhere are not looked at.
    fn prefix(&self) -> &str;

    /// The key in etcd; none if the store has no place for it.
    fn place(&self, key: &Key) -> Option<String>;

    /// The key that lies at a place; none if it is none of the store's.
    fn key_at(&self, place: &str) -> Option<Key>;

    /// A value in the form in which our writers give it.
    ///
    /// # Errors
    /// Says what is wrong with the value. Such a key is told in the log, and is not there for readers.
    fn read(&self, key: &Key, value: &Bytes) -> Result<Bytes, String>;

    /// How long a key lives after it was written; for ever if none.
    fn time_to_live(&self, key: &Key) -> Option<Duration>;
}
