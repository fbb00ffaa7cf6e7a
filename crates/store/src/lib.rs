//! A revisioned key-value store: one trait, a memory, a disk and an etcd backend, several stores as one, one contract suite.
//!
//! Every change gets the next number of one counter, the *revision*. Readers see an in-memory index; watchers follow a bounded
//! window of events per topic. Nothing is visible before it is durable. Knows nothing of Kubernetes objects: values are bytes.
#![forbid(unsafe_code)]

mod disk;
mod divided;
mod encryption;
mod entry;
mod etcd;
mod event;
mod form;
mod index;
mod key;
mod memory;
mod options;
mod read;
mod squeeze;
mod watch;
mod window;
mod write;

#[cfg(any(test, feature = "contract"))]
pub mod contract;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod history;
#[cfg(test)]
mod model;

#[cfg(any(test, feature = "contract"))]
pub use etcd::process;

use std::sync::Arc;

use async_trait::async_trait;

pub use disk::{DiskStore, OpenError, SnapshotError};
pub use divided::DividedStore;
pub use encryption::{CipherError, Encryption, KeyError, Provider, Scope, SecretKey};
pub use entry::Entry;
pub use etcd::{EtcdConfig, EtcdError, EtcdStore, Layout};
pub use event::{Event, EventKind};
pub use form::{Form, Revision};
pub use key::{Key, Topic};
pub use memory::MemoryStore;
pub use options::Options;
pub use read::{Behind, ListOptions, Listing, ReadError};
pub use watch::Watch;
pub use write::{Change, CommitError, Committed, Expect};

/// A revisioned key-value store.
///
/// Writes are acknowledged when they are durable; an acknowledged write is visible to every later read. A write whose future
/// is dropped before it answers may or may not have happened.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes one change.
    ///
    /// # Errors
    /// [`CommitError`]: the precondition does not hold, the value is too large, or the store cannot write.
    async fn commit(&self, change: Change) -> Result<Committed, CommitError>;

    /// Makes all changes or none. Each key may occur once. Later changes have no smaller revisions than those before them; of one backend (etcd) all
    /// have the same.
    ///
    /// # Errors
    /// As [`Store::commit`], or [`CommitError::Repeated`]; then none of the changes has happened.
    async fn commit_all(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError>;

    /// Waits until reads show everything that anybody had written before the call, other processes on the same store included. A backend that no other
    /// process writes to answers at once.
    ///
    /// # Errors
    /// [`Behind`]: where the others write cannot be asked, or does not tell in time. Reads then show an older state.
    async fn catch_up(&self) -> Result<(), Behind> {
        Ok(())
    }

    /// The newest visible entry of a key.
    fn get(&self, key: &Key) -> Option<Arc<Entry>>;

    /// The entries of a topic whose path starts with `prefix`, ordered by path.
    ///
    /// # Errors
    /// [`ReadError`]: the snapshot asked for is too old or does not exist yet.
    fn list(&self, topic: &Topic, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError>;

    /// How many entries of a topic have a path that starts with `prefix`.
    fn count(&self, topic: &Topic, prefix: &str) -> usize;

    /// The topics that hold at least one entry, in order.
    fn topics(&self) -> Vec<Topic>;

    /// The newest visible revision.
    fn revision(&self) -> Revision;

    /// The newest visible revision by which a topic is read and watched: of a store that is divided, not all topics count by the same.
    fn revision_of(&self, _topic: &Topic) -> Revision {
        self.revision()
    }

    /// Every event of a topic under `prefix` with a revision above `after`, in order, each once.
    ///
    /// # Errors
    /// [`ReadError`]: events after `after` are no longer all there, or `after` has not happened yet.
    fn watch(&self, topic: &Topic, prefix: &str, after: Revision) -> Result<Watch, ReadError>;

    /// Removes every key whose path starts with `<cluster>/`, in all topics, as deletions. Returns how many.
    ///
    /// # Errors
    /// [`CommitError`]: the store cannot write.
    async fn purge(&self, cluster: &str) -> Result<usize, CommitError>;

    /// Finishes what was sent and stops: later commits are [`CommitError::Closed`], reads go on. Can be called again.
    async fn close(&self);
}
