//! Reading a whole file at start. One thread reads the rows, others make entries of them: decrypting and stamping is most of the work.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, available_parallelism};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{AccessGuard, ReadTransaction, ReadableDatabase, TableError};

use super::OpenError;
use super::file::{self, ENTRIES, FORMAT, META, META_FORMAT, META_REVISION, StoreFile, damaged, guarded};
use crate::{Encryption, Entry, Form, Key, Revision, Topic};

/// How much is handed to another thread at once: whichever is reached first.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;
/// How many batches wait for a thread at most: they are all the memory that reading takes beside what it makes.
const WAITING: usize = 4;
/// How many threads make entries at most: the one that reads cannot keep more of them busy.
const MOST_THREADS: usize = 4;

/// A row as it lies in the file: key and value.
type Row = (
    AccessGuard<'static, (&'static str, &'static str)>,
    AccessGuard<'static, file::Row<'static>>,
);
/// Rows that follow each other in the file, and how many batches came before them.
type Batch = (usize, Vec<Row>);
/// What a batch came to.
type Made = (usize, Result<Vec<Entry>, OpenError>);

/// Makes entries of rows.
#[derive(Clone, Copy)]
struct Maker<'a> {
    file: &'a StoreFile,
    newest: Revision,
    form: Form,
    encryption: &'a Encryption,
}

impl StoreFile {
    /// Reads everything: the newest revision and all entries, stamped, in the order of their keys.
    pub(super) fn load(&self, form: Form, encryption: &Encryption) -> Result<(Revision, Vec<Entry>), OpenError> {
        guarded(self.path(), || {
            let transaction = self.database.begin_read().map_err(|error| self.broken(error))?;
            let maker = Maker {
                file: self,
                newest: self.newest(&transaction)?,
                form,
                encryption,
            };
            Ok((maker.newest, self.entries(&transaction, maker)?))
        })
    }

    fn broken(&self, error: impl Into<redb::Error>) -> OpenError {
        damaged(self.path(), error.into())
    }

    /// The newest revision of a file that this program knows how to read.
    fn newest(&self, transaction: &ReadTransaction) -> Result<Revision, OpenError> {
        let meta = transaction.open_table(META).map_err(|error| match error {
            TableError::TableDoesNotExist(_) => damaged(self.path(), "it is not a store of this program"),
            error => self.broken(error),
        })?;
        let number = |name: &str| {
            let found = meta.get(name).map_err(|error| self.broken(error))?;
            found
                .map(|guard| guard.value())
                .ok_or_else(|| damaged(self.path(), format!("its {name} is missing")))
        };
        let format = number(META_FORMAT)?;
        if format > FORMAT {
            return Err(OpenError::NewerFormat {
                path: self.path().to_owned(),
                found: format,
                supported: FORMAT,
            });
        }
        number(META_REVISION)
    }

    fn entries(&self, transaction: &ReadTransaction, maker: Maker<'_>) -> Result<Vec<Entry>, OpenError> {
        let threads = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        let (hand_over, batches) = sync_channel(WAITING);
        let batches = Arc::new(Mutex::new(batches));
        let unstarted = |source| OpenError::Unwritable {
            path: self.path().to_owned(),
            source,
        };
        thread::scope(|scope| {
            // Both ends go with those who hold them, however they end, so that nobody waits for ever for the other side.
            let (hand_over, batches) = (hand_over, batches);
            let start = |_| {
                let batches = Arc::clone(&batches);
                thread::Builder::new().spawn_scoped(scope, move || maker.work(&batches))
            };
            let makers = (0..threads).map(start).collect::<Result<Vec<_>, _>>();
            drop(batches);
            let makers = makers.map_err(unstarted)?;
            self.read(transaction, hand_over)?;
            let mut made = Vec::new();
            for maker in makers {
                made.extend(maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            made.sort_unstable_by_key(|(number, _)| *number);
            let made = made.into_iter().map(|(_, entries)| entries);
            Ok(made.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        })
    }

    /// Hands all rows over.
    fn read(&self, transaction: &ReadTransaction, hand_over: SyncSender<Batch>) -> Result<(), OpenError> {
        let table = transaction.open_table(ENTRIES).map_err(|error| self.broken(error))?;
        let all = table.range::<(&str, &str)>(..).map_err(|error| self.broken(error))?;
        let (mut number, mut bytes, mut rows) = (0, 0, Vec::new());
        for row in all {
            let row = row.map_err(|error| self.broken(error))?;
            bytes += row.1.value().3.len();
            rows.push(row);
            if rows.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                // Nobody takes it where all have panicked, which is told when they are waited for.
                hand_over.send((number, std::mem::take(&mut rows))).ok();
                (number, bytes) = (number + 1, 0);
            }
        }
        hand_over.send((number, rows)).ok();
        Ok(())
    }
}

impl Maker<'_> {
    /// Makes entries of batches until no more come.
    fn work(self, batches: &Mutex<Receiver<Batch>>) -> Vec<Made> {
        let mut topic = Topic::from_text("");
        let next = || batches.lock().recv().ok();
        let made = std::iter::from_fn(next).map(|(number, rows)| {
            let entries = rows.into_iter().map(|row| self.entry(row, &mut topic));
            (number, entries.collect())
        });
        made.collect()
    }

    /// `topic` is the topic of the row before: rows of one topic share it.
    fn entry(self, (key, value): Row, topic: &mut Topic) -> Result<Entry, OpenError> {
        let (topic_text, path) = key.value();
        let (created, written, version, stored) = value.value();
        if written > self.newest {
            let reason = format!("{topic_text} {path} is newer than the store");
            return Err(damaged(self.file.path(), reason));
        }
        if topic.as_str() != topic_text {
            *topic = Topic::from_text(topic_text);
        }
        let key = Key::new(topic.clone(), path);
        let opened = self.encryption.open(&key, &key, &Bytes::copy_from_slice(stored));
        let opened = opened.map_err(|reason| OpenError::Encrypted {
            path: self.file.path().to_owned(),
            key: key.clone(),
            reason,
        })?;
        let value = (self.form.stamp)(&opened.value, written);
        Ok(Entry::new(key, value, created, written, version).with_stale(opened.stale))
    }
}
