//! The etcd backend: reads come from the index, which follows etcd by one watch; changes are transactions of etcd, acknowledged when the index has
//! seen them.
//!
//! Revisions are etcd's. Others may write there at the same time (kube-apiserver, or more of us): who must see what they wrote calls
//! [`Store::catch_up`] first. That costs one question to etcd and its answer, which all readers share who come while another question is under
//! way; the question is one that needs a majority of etcd's members but no disk.

mod client;
mod commit;
mod config;
mod follow;
mod layout;
mod mirror;
#[cfg(any(test, feature = "contract"))]
pub mod process;
mod upkeep;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Notify, RwLock, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::index::Index;
use crate::{
    Behind, Change, CommitError, Committed, Entry, Expect, Form, Key, ListOptions, Listing, Options, ReadError,
    Revision, Store, Topic, Watch,
};
use client::{CallError, Client};
pub use config::{EtcdConfig, EtcdError};
use follow::{Follower, Reader};
pub use layout::Layout;
use mirror::{Format, Mirror};
use upkeep::Leases;

/// How long a reader or writer waits for the index.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many revisions of the past are read at the start, so that watches of before go on.
const REPLAYED: Revision = 1000;
/// How many changes one transaction takes; etcd takes 128 operations unless it is told otherwise.
const TRANSACTION: usize = 100;

/// A store in etcd.
pub struct EtcdStore {
    client: Arc<Client>,
    mirror: Arc<Mirror>,
    max_value: usize,
    leases: Leases,
    progress: Arc<Notify>,
    readers: mpsc::UnboundedSender<Reader>,
    /// Whether the store is closed. Writers hold it while they write.
    closed: RwLock<bool>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl EtcdStore {
    /// Opens the store: reads all that is there, and follows it from then on.
    ///
    /// # Errors
    /// [`EtcdError`]: the settings cannot be used, or etcd does not answer.
    pub async fn open(
        config: &EtcdConfig,
        layout: Arc<dyn Layout>,
        form: Form,
        options: Options,
    ) -> Result<Self, EtcdError> {
        let client = Arc::new(Client::new(config)?);
        let unreachable = |reason| EtcdError::Unreachable {
            endpoints: config.endpoints.join(","),
            reason,
        };
        let failed = |error: CallError| match error {
            CallError::Encrypted(..) => EtcdError::Encrypted(error.reason()),
            other => unreachable(other.reason()),
        };
        let format = Format {
            layout,
            encryption: options.encryption.clone(),
            form,
        };
        let now = follow::newest(&client, &*format.layout).await.map_err(failed)?;
        let replayed = now.saturating_sub(REPLAYED).max(1);
        let image = match mirror::read(&client, &format, Some(replayed)).await {
            // what was cut, or encrypted with a key that is no longer needed
            Err(CallError::Compacted | CallError::Encrypted(..)) => mirror::read(&client, &format, None).await,
            other => other,
        };
        let image = image.map_err(failed)?;
        let index = Arc::new(Index::loaded(image.revision, image.entries, form, &options));
        let mirror = Arc::new(Mirror::new(index, format));
        let progress = Arc::new(Notify::new());
        let (readers, waiting) = mpsc::unbounded_channel();
        let follower = Follower {
            client: Arc::clone(&client),
            mirror: Arc::clone(&mirror),
            progress: Arc::clone(&progress),
        };
        let serving = follow::serve_readers(Arc::clone(&client), Arc::clone(&mirror), Arc::clone(&progress), waiting);
        let mut tasks = vec![
            tokio::spawn(follower.run()).abort_handle(),
            tokio::spawn(serving).abort_handle(),
        ];
        if let Some(interval) = config.compaction_interval.filter(|interval| !interval.is_zero()) {
            tasks.push(tokio::spawn(upkeep::compact(Arc::clone(&client), interval)).abort_handle());
        }
        let store = Self {
            client,
            mirror,
            max_value: options.max_value,
            leases: Leases::default(),
            progress,
            readers,
            closed: RwLock::new(false),
            tasks: Mutex::new(tasks),
        };
        store.newest().await.map_err(|behind| match store.mirror.encrypted() {
            Some(reason) => EtcdError::Encrypted(reason),
            None => unreachable(behind.reason),
        })?;
        Ok(store)
    }

    /// Waits until the index has all that is in etcd now.
    async fn newest(&self) -> Result<(), Behind> {
        let late = || Behind {
            reason: "the changes did not come in time".into(),
        };
        let closed = || Behind {
            reason: "the store is closed".into(),
        };
        let (reader, told) = oneshot::channel();
        self.readers.send(reader).map_err(|_| closed())?;
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(told)) => told,
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(late()),
        }
    }

    async fn write(&self, changes: &[Change]) -> Result<Vec<Committed>, CommitError> {
        let closed = self.closed.read().await;
        if *closed {
            return Err(CommitError::Closed);
        }
        self.transact(changes).await
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.tasks.lock().iter().for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let committed = self.write(&[change]).await?;
        committed.into_iter().next().ok_or(CommitError::Closed)
    }

    async fn commit_all(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        self.write(&changes).await
    }

    async fn catch_up(&self) -> Result<(), Behind> {
        self.newest().await
    }

    fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.mirror.index.get(key)
    }

    fn list(&self, topic: &Topic, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        self.mirror.index.list(topic, prefix, options)
    }

    fn count(&self, topic: &Topic, prefix: &str) -> usize {
        self.mirror.index.count(topic, prefix)
    }

    fn topics(&self) -> Vec<Topic> {
        self.mirror.index.topics()
    }

    fn revision(&self) -> Revision {
        self.mirror.index.revision()
    }

    fn watch(&self, topic: &Topic, prefix: &str, after: Revision) -> Result<Watch, ReadError> {
        Watch::start(&self.mirror.index, topic, prefix, after)
    }

    async fn purge(&self, cluster: &str) -> Result<usize, CommitError> {
        let mut count = 0;
        loop {
            let mut keys = self.mirror.index.keys(&format!("{cluster}/"));
            keys.truncate(TRANSACTION);
            let expect = Expect::Any;
            let changes: Vec<_> = keys.into_iter().map(|key| Change::Delete { key, expect }).collect();
            match self.write(&changes).await {
                Ok(none) if none.is_empty() => return Ok(count),
                Ok(deleted) => count += deleted.len(),
                // somebody else was faster with one of them: look again
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn close(&self) {
        *self.closed.write().await = true;
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }
}
