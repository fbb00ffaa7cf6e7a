//! What clients talk to: a store, or something that only looks like one.

use std::sync::Arc;

use async_trait::async_trait;

use crate::contract::{key, pods};
use crate::{
    Behind, Change, CommitError, Committed, Entry, Event, ListOptions, Listing, ReadError, Revision, Store, Watch,
};

#[async_trait]
pub(super) trait Subject: Send + Sync {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError>;
    async fn catch_up(&self) -> Result<(), Behind>;
    fn get(&self, path: &str) -> Option<Arc<Entry>>;
    fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError>;
    fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Events>, ReadError>;
}

#[async_trait]
pub(super) trait Events: Send {
    async fn next(&mut self) -> Result<Event, ReadError>;
    fn try_next(&mut self) -> Result<Option<Event>, ReadError>;
    fn caught_up(&self) -> Revision;
}

/// A store as it is.
pub(super) struct Plain(pub(super) Arc<dyn Store>);

#[async_trait]
impl Subject for Plain {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        self.0.commit_all(changes).await
    }

    async fn catch_up(&self) -> Result<(), Behind> {
        self.0.catch_up().await
    }

    fn get(&self, path: &str) -> Option<Arc<Entry>> {
        self.0.get(&key(path))
    }

    fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        self.0.list(&pods(), prefix, options)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Events>, ReadError> {
        Ok(Box::new(self.0.watch(&pods(), prefix, after)?))
    }
}

#[async_trait]
impl Events for Watch {
    async fn next(&mut self) -> Result<Event, ReadError> {
        Watch::next(self).await
    }

    fn try_next(&mut self) -> Result<Option<Event>, ReadError> {
        Watch::try_next(self)
    }

    fn caught_up(&self) -> Revision {
        Watch::caught_up(self)
    }
}
