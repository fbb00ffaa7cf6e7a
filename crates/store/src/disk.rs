//! The disk backend: one file, one committing thread. Reads never wait for the disk.
//!
//! Callers send their changes to the committer and wait; the committer takes all that wait, makes one durable transaction of
//! them, makes their events visible and then answers. So many writers share one flush to the disk.

mod committer;
mod error;
#[cfg(test)]
pub(crate) mod faults;
mod file;
mod folder;
mod load;
mod snapshot;
mod sums;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::index::Index;
use crate::{
    Change, CommitError, Committed, Encryption, Entry, Form, Key, ListOptions, Listing, Options, ReadError, Revision,
    Store, Topic, Watch,
};
use committer::{Committer, Request, Work};
pub use error::OpenError;
use folder::{Directory, Folder};
pub use snapshot::SnapshotError;

/// A store in a directory. Dropping it finishes what was sent and lets go of the directory.
#[derive(Debug)]
pub struct DiskStore {
    index: Arc<Index>,
    requests: Mutex<Option<mpsc::UnboundedSender<Request>>>,
    committer: Mutex<Option<JoinHandle<()>>>,
    /// For snapshots; none when the store is closed.
    file: Mutex<Option<Arc<file::StoreFile>>>,
    encryption: Encryption,
}

impl DiskStore {
    /// Opens the store in `dir`, creating directory and file where there are none. Blocks while it reads everything; call it
    /// before serving, or on a blocking thread.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong with the directory or the file and what to do.
    pub fn open(dir: &Path, form: Form, options: Options) -> Result<Self, OpenError> {
        Self::open_in(Directory::take(dir)?, form, options)
    }

    pub(crate) fn open_in<F: Folder + 'static>(folder: F, form: Form, options: Options) -> Result<Self, OpenError> {
        let file = Arc::new(file::open(folder, &options)?);
        let (revision, entries) = file.load(form, &options.encryption)?;
        let index = Arc::new(Index::loaded(revision, entries, form, &options));
        let (aging, grown_old) = std::sync::mpsc::channel();
        let loaded = Arc::downgrade(&index);
        std::thread::Builder::new()
            .name("store-squeezer".into())
            .spawn(move || Index::keep_small(&loaded, grown_old))
            .map_err(|source| OpenError::Unwritable {
                path: file.path().to_owned(),
                source,
            })?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let path = file.path().to_owned();
        let committer = Committer {
            index: Arc::clone(&index),
            form,
            max_value: options.max_value,
            file: Arc::clone(&file),
            aging,
        };
        let thread = std::thread::Builder::new()
            .name("store-committer".into())
            .spawn(move || committer.run(receiver))
            .map_err(|source| OpenError::Unwritable { path, source })?;
        Ok(Self {
            index,
            requests: Mutex::new(Some(sender)),
            committer: Mutex::new(Some(thread)),
            file: Mutex::new(Some(file)),
            encryption: options.encryption,
        })
    }

    /// Writes what the store holds now into a file, while the store goes on. Gives the revision that the file holds. What is encrypted in the
    /// store is so in the file.
    ///
    /// # Errors
    /// [`SnapshotError`]; then there is no new file, and one of before is as it was.
    pub async fn snapshot(&self, to: &Path) -> Result<Revision, SnapshotError> {
        let file = self.file.lock().clone().ok_or(SnapshotError::Closed)?;
        let to = to.to_owned();
        let copied = tokio::task::spawn_blocking(move || file.copy_to(&to)).await;
        copied.unwrap_or_else(|panic| {
            let reason = panic.to_string();
            Err(SnapshotError::Unreadable { reason })
        })
    }

    /// Makes the store of `dir` from a snapshot. `advance` is added to its revision: clients who have seen more than the snapshot holds must not
    /// find their revisions taken by other changes.
    ///
    /// # Errors
    /// [`OpenError`]: there is a store already, or the snapshot is none or damaged. Then `dir` has no store.
    pub fn restore(snapshot: &Path, dir: &Path, advance: Revision) -> Result<(), OpenError> {
        snapshot::restore(snapshot, dir, advance)
    }

    /// What is to be written of changes. Encrypted here, where the committer does not wait for it.
    fn prepared(&self, changes: Vec<Change>) -> Result<Work, CommitError> {
        let prepared = changes.into_iter().map(|change| {
            let (key, ..) = change.parts();
            let stored = change.sealed(&self.encryption, key)?;
            Ok((change, stored))
        });
        prepared.collect::<Result<_, CommitError>>().map(Work::Changes)
    }

    async fn send(&self, work: Work) -> Result<Vec<Committed>, CommitError> {
        let (answer, answered) = oneshot::channel();
        {
            let requests = self.requests.lock();
            let sender = requests.as_ref().ok_or(CommitError::Closed)?;
            sender.send(Request { work, answer }).map_err(|_| CommitError::Closed)?;
        }
        answered.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Lets the committer end once it has done what was sent, and gives its thread to wait for.
    fn stop(&self) -> Option<JoinHandle<()>> {
        // First, so that the committer closes the file: that may panic once the database has given up.
        self.file.lock().take();
        self.requests.lock().take();
        self.committer.lock().take()
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            // A panic of the committer was told to those who waited for it.
            thread.join().ok();
        }
    }
}

#[async_trait]
impl Store for DiskStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let committed = self.send(self.prepared(vec![change])?).await?;
        committed.into_iter().next().ok_or(CommitError::Closed)
    }

    async fn commit_all(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        self.send(self.prepared(changes)?).await
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
        Ok(self.send(Work::Purge(cluster.to_owned())).await?.len())
    }

    async fn close(&self) {
        if let Some(thread) = self.stop() {
            tokio::task::spawn_blocking(move || thread.join().ok()).await.ok();
        }
    }
}

#[cfg(test)]
mod tests;
