//! The thread that makes changes durable: takes all that wait, writes one transaction, publishes, answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::file::{Given, StoreFile};
use crate::index::{Index, Old};
use crate::write::Batch;
use crate::{Change, CommitError, Committed, Expect, Form};

/// What a caller wants done.
#[derive(Debug)]
pub(super) enum Work {
    /// Each with its value as it is stored.
    Changes(Vec<(Change, Given)>),
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
/// How long a transaction waits for company at most.
const LONGEST_GATHERING: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Committer {
    pub(super) index: Arc<Index>,
    pub(super) form: Form,
    pub(super) max_value: usize,
    pub(super) file: Arc<StoreFile>,
    /// To who squeezes old values: writers do not wait for that.
    pub(super) aging: Sender<Old>,
}

impl Committer {
    /// Works until nobody can send any more.
    #[allow(clippy::disallowed_methods)] // a thread of its own, and a disk, whose time is real
    pub(super) fn run(self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut failure: Option<CommitError> = None;
        let mut gathering = Duration::ZERO;
        while let Some(first) = requests.blocking_recv() {
            let mut waiting = vec![first];
            take_waiting(&mut requests, &mut waiting);
            // Where writers come together more are on their way: with them the disk is asked once instead of often, and nobody waits much
            // longer than for one commit more. A writer that is alone does not wait.
            if waiting.len() > 1 || !gathering.is_zero() {
                std::thread::sleep(gathering);
                take_waiting(&mut requests, &mut waiting);
            }
            let (started, alone) = (Instant::now(), waiting.len() == 1);
            if let Some(failure) = &failure {
                for request in waiting {
                    request.answer.send(Err(failure.clone())).ok();
                }
                continue;
            }
            failure = self.commit(waiting).err();
            gathering = match alone {
                true => Duration::ZERO,
                false => started.elapsed().min(LONGEST_GATHERING),
            };
        }
    }

    /// Decides and writes one batch and answers its requests. An error is the end of writing.
    fn commit(&self, waiting: Vec<Request>) -> Result<(), CommitError> {
        let mut batch = Batch::new(&self.index, self.form, self.max_value);
        let mut written = Vec::new();
        let answers: Vec<_> = waiting
            .into_iter()
            .map(|Request { work, answer }| (answer, apply(work, &mut batch, &mut written)))
            .collect();
        let events: Vec<_> = batch.into_events().into_iter().zip(written).collect();
        // The database may give up with a panic where the disk told it nonsense. Who waits must not be left with less than an answer.
        let persisted = catch_unwind(AssertUnwindSafe(|| self.file.persist(&events)));
        let persisted = match persisted {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("writing failed an internal check".to_owned()),
        };
        match persisted {
            Ok(()) => {
                let old = self.index.publish(events.into_iter().map(|(event, _)| event).collect());
                for (answer, decided) in answers {
                    // Who no longer waits need not be told.
                    answer.send(decided).ok();
                }
                // Whether anybody makes them small does not matter to what was written.
                self.aging.send(old).ok();
                Ok(())
            }
            Err(reason) => {
                tracing::error!(reason, "the store cannot write to disk and takes no more changes");
                let failure = CommitError::Unavailable { reason: reason.into() };
                for (answer, decided) in answers {
                    // A refusal was decided on what the batch would have made; none of that happened.
                    drop(decided);
                    answer.send(Err(failure.clone())).ok();
                }
                Err(failure)
            }
        }
    }
}

/// Takes what waits, as far as one transaction goes.
fn take_waiting(requests: &mut mpsc::UnboundedReceiver<Request>, waiting: &mut Vec<Request>) {
    while waiting.len() < LARGEST_BATCH
        && let Ok(next) = requests.try_recv()
    {
        waiting.push(next);
    }
}

/// Adds one request to the batch, all or nothing; what its events give to the disk goes to `written`.
fn apply(work: Work, batch: &mut Batch<'_>, written: &mut Vec<Given>) -> Result<Vec<Committed>, CommitError> {
    let changes = match work {
        Work::Changes(changes) => changes,
        Work::Purge(cluster) => batch
            .keys_of(&cluster)
            .into_iter()
            .map(|key| {
                let expect = Expect::Any;
                (Change::Delete { key, expect }, None)
            })
            .collect(),
    };
    batch.check(changes.iter().map(|(change, _)| change))?;
    let mut committed = Vec::with_capacity(changes.len());
    for (change, stored) in changes {
        match change {
            Change::Put { key, value, .. } => {
                committed.push(batch.put(key, &value));
                written.push(stored);
            }
            Change::Delete { key, .. } => {
                if let Some(deleted) = batch.delete(key) {
                    committed.push(deleted);
                    written.push(None);
                }
            }
        }
    }
    Ok(committed)
}
