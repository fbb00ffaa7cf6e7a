//! The thread that makes changes durable: takes all that wait, writes one transaction, publishes, answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::file::{Given, StoreFile};
use crate::index::Index;
use crate::write::Batch;
use crate::{Change, CommitError, Committed, Expect, Key, Stamp};

/// What a caller wants done.
#[derive(Debug)]
pub(super) enum Work {
    Changes(Vec<Change>),
    Purge(String),
}

/// Work, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Vec<Committed>, CommitError>>,
}

/// How many requests share one transaction at most: bounds how long the first of them waits.
const LARGEST_BATCH: usize = 1024;

#[derive(Debug)]
pub(super) struct Committer {
    pub(super) index: Arc<Index>,
    pub(super) stamp: Stamp,
    pub(super) max_value: usize,
    pub(super) file: StoreFile,
}

impl Committer {
    /// Works until nobody can send any more.
    pub(super) fn run(self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut failure: Option<CommitError> = None;
        while let Some(first) = requests.blocking_recv() {
            let mut waiting = vec![first];
            while waiting.len() < LARGEST_BATCH
                && let Ok(next) = requests.try_recv()
            {
                waiting.push(next);
            }
            if let Some(failure) = &failure {
                for request in waiting {
                    request.answer.send(Err(failure.clone())).ok();
                }
                continue;
            }
            failure = self.commit(waiting).err();
        }
    }

    /// Decides and writes one batch and answers its requests. An error is the end of writing.
    fn commit(&self, waiting: Vec<Request>) -> Result<(), CommitError> {
        let mut batch = Batch::new(&self.index, self.stamp, self.max_value);
        let mut given = BTreeMap::new();
        let mut written = Vec::new();
        let mut answers = Vec::with_capacity(waiting.len());
        let mut failed = None;
        for Request { work, answer } in waiting {
            let decided = match &failed {
                Some(failure) => Err(redb_failure(failure)),
                None => self
                    .apply(work, &mut batch, &mut given, &mut written)
                    .unwrap_or_else(|error| {
                        let answer = Err(redb_failure(&error));
                        failed = Some(error);
                        answer
                    }),
            };
            answers.push((answer, decided));
        }
        let events: Vec<_> = batch.into_events().into_iter().zip(written).collect();
        let durable = match failed {
            Some(error) => Err(error),
            None => self.file.persist(&events),
        };
        match durable {
            Ok(()) => {
                self.index.publish(events.into_iter().map(|(event, _)| event).collect());
                for (answer, decided) in answers {
                    // Who no longer waits need not be told.
                    answer.send(decided).ok();
                }
                Ok(())
            }
            Err(error) => {
                let failure = redb_failure(&error);
                tracing::error!(error = %error, "the store cannot write to disk and takes no more changes");
                for (answer, decided) in answers {
                    // A refusal was decided on what the batch would have made; none of that happened.
                    drop(decided);
                    answer.send(Err(failure.clone())).ok();
                }
                Err(failure)
            }
        }
    }

    /// Adds one request to the batch, all or nothing. The outer error is the disk's.
    fn apply(
        &self,
        work: Work,
        batch: &mut Batch<'_>,
        given: &mut BTreeMap<Key, Given>,
        written: &mut Vec<Given>,
    ) -> Result<Result<Vec<Committed>, CommitError>, redb::Error> {
        let changes = match work {
            Work::Changes(changes) => changes,
            Work::Purge(cluster) => batch
                .keys_of(&cluster)
                .into_iter()
                .map(|key| Change::Delete {
                    key,
                    expect: Expect::Any,
                })
                .collect(),
        };
        if let Err(refusal) = batch.check(&changes) {
            return Ok(Err(refusal));
        }
        let mut committed = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Change::Put { key, value, .. } => {
                    committed.push(batch.put(key.clone(), &value));
                    written.push(Some(value.clone()));
                    given.insert(key, Some(value));
                }
                Change::Delete { key, .. } => {
                    let last: Bytes = match given.get(&key) {
                        Some(last) => last.clone(),
                        None => self.file.given(&key)?,
                    }
                    .unwrap_or_default();
                    given.insert(key.clone(), None);
                    if let Some(deleted) = batch.delete(key, &last) {
                        committed.push(deleted);
                        written.push(None);
                    }
                }
            }
        }
        Ok(Ok(committed))
    }
}

fn redb_failure(error: &redb::Error) -> CommitError {
    CommitError::Unavailable {
        reason: error.to_string().into(),
    }
}
