//! Bounds of a store, and who encrypts what it stores.

use crate::Encryption;

/// Bounds of a store, and who encrypts what it stores. All have defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many events one topic keeps for watchers and older snapshots.
    pub events_per_topic: usize,
    /// Of how many of them the values are kept as they are; those of older ones are compressed, and so is what nobody changed for so long.
    pub fresh_events: usize,
    /// How many bytes the events of all topics together may keep alive; the oldest go first.
    pub event_bytes: usize,
    /// The largest value accepted, in bytes.
    pub max_value: usize,
    /// How many bytes of pages the disk backend caches.
    pub disk_cache_bytes: usize,
    /// Who encrypts values on disk or in etcd. The memory backend has nothing at rest.
    pub encryption: Encryption,
}

impl Options {
    /// The defaults, but that every value is kept as those are that nobody changed for long: so that tests need not wait until they are.
    pub fn all_old() -> Self {
        Self {
            fresh_events: 0,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            events_per_topic: 4096,
            fresh_events: 256,
            event_bytes: 24 << 20,
            max_value: 3 << 20,
            disk_cache_bytes: 2 << 20,
            encryption: Encryption::default(),
        }
    }
}
