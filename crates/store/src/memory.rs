//! The memory backend: commits under a lock, in the caller's task. Deterministic, works in virtual time.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::index::Index;
use crate::write::Batch;
use crate::{
    Change, CommitError, Committed, Entry, Expect, Form, Key, ListOptions, Listing, Options, ReadError, Revision,
    Store, Topic, Watch,
};

/// A store that lives as long as the process.
#[derive(Debug)]
pub struct MemoryStore {
    index: Arc<Index>,
    form: Form,
    max_value: usize,
    /// Whether the store is closed; its lock is what puts commits in order.
    closed: Mutex<bool>,
}

impl MemoryStore {
    /// An empty store at revision 0.
    pub fn new(form: Form, options: Options) -> Self {
        Self {
            index: Arc::new(Index::loaded(0, [], form, &options)),
            form,
            max_value: options.max_value,
            closed: Mutex::default(),
        }
    }

    fn write(&self, decide: impl FnOnce(&Batch<'_>) -> Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let closed = self.closed.lock();
        if *closed {
            return Err(CommitError::Closed);
        }
        let mut batch = Batch::new(&self.index, self.form, self.max_value);
        let changes = decide(&batch);
        batch.check(&changes)?;
        let mut committed = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Change::Put { key, value, .. } => committed.push(batch.put(key, &value)),
                Change::Delete { key, .. } => committed.extend(batch.delete(key)),
            }
        }
        let old = self.index.publish(batch.into_events());
        drop(closed);
        self.index.squeeze(old);
        Ok(committed)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let committed = self.write(|_| vec![change])?;
        committed.into_iter().next().ok_or(CommitError::Closed)
    }

    async fn commit_all(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        self.write(|_| changes)
    }

    fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.index.get(key)
    }

    fn list(&self, topic: &Topic, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        self.index.list(topic, prefix, options)
    }

    fn count(&self, topic: &Topic, prefix: &str) -> usize {
        self.index.count(topic, prefix)
    }

    fn topics(&self) -> Vec<Topic> {
        self.index.topics()
    }

    fn revision(&self) -> Revision {
        self.index.revision()
    }

    fn watch(&self, topic: &Topic, prefix: &str, after: Revision) -> Result<Watch, ReadError> {
        Watch::start(&self.index, topic, prefix, after)
    }

    async fn purge(&self, cluster: &str) -> Result<usize, CommitError> {
        let committed = self.write(|batch| {
            let keys = batch.keys_of(cluster).into_iter();
            keys.map(|key| Change::Delete {
                key,
                expect: Expect::Any,
            })
            .collect()
        })?;
        Ok(committed.len())
    }

    async fn close(&self) {
        *self.closed.lock() = true;
    }
}
