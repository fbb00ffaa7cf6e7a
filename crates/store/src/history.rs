//! What random clients did to a store and saw of it, and whether that can be: [`clients`] does and writes down, [`check`] judges.
//!
//! A history is linearizable if all of it follows from one order of the transactions, in which nothing comes before what was known when it began. The
//! store itself tells that order: its revisions. So no order has to be searched for, except for transactions of which nobody learned what became of
//! them before a power loss.
//!
//! Seeds that are fixed run with the other tests. `GARDENER_TEST_HISTORIES=<number>` runs so many for each backend, from seeds that follow the day's
//! time; a failing history names its seed, `GARDENER_TEST_HISTORY_SEED=<seed>` begins there.

mod check;
mod clients;
mod members;
mod subject;
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{Entry, EventKind, Expect, ReadError, Revision};

/// A moment of a history: what has the smaller one came first.
type Tick = u64;

/// An entry as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    value: String,
    created: Revision,
    written: Revision,
    version: u64,
}

impl From<&Entry> for Seen {
    fn from(entry: &Entry) -> Self {
        Self {
            value: String::from_utf8_lossy(&entry.value()).into_owned(),
            created: entry.create_revision,
            written: entry.mod_revision,
            version: entry.version(),
        }
    }
}

/// A change that a client wanted. Values that are put occur once in a history.
#[derive(Clone, Debug)]
struct Wanted {
    path: String,
    expect: Expect,
    value: Option<String>,
}

/// What a client was told of a transaction.
#[derive(Clone, Debug)]
enum Outcome {
    Done(Vec<Seen>),
    /// The precondition of this key did not hold, for this is there.
    Refused(String, Option<Seen>),
    /// It has not happened and will not.
    NotDone,
    Unknown,
}

/// An event as a client saw it, and when.
#[derive(Clone, Debug)]
struct Told {
    tick: Tick,
    revision: Revision,
    kind: EventKind,
    path: String,
    entry: Seen,
    previous: Option<Seen>,
}

/// How a watch ended for its client.
#[derive(Clone, Debug)]
enum End {
    /// It was told that all events up to this revision were given.
    Left(Revision),
    /// As before, and nothing happens any more.
    Drained(Revision),
    Failed(ReadError),
}

/// What was done.
#[derive(Clone, Debug)]
enum Deed {
    Transaction(Vec<Wanted>, Outcome),
    Get(String, Option<Seen>),
    List(Query, Result<Page, ReadError>),
    Watch {
        prefix: String,
        after: Revision,
        told: Vec<Told>,
        end: End,
    },
}

#[derive(Clone, Debug, Default)]
struct Query {
    prefix: String,
    at: Option<Revision>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Clone, Debug)]
struct Page {
    entries: Vec<(String, Seen)>,
    revision: Revision,
    remaining: u64,
}

#[derive(Clone, Debug)]
struct Record {
    begin: Tick,
    end: Tick,
    deed: Deed,
}

/// What happened between two starts of a store.
#[derive(Debug, Default)]
struct Epoch {
    /// What the store held at its start.
    revision: Revision,
    entries: Vec<(String, Seen)>,
    /// All events, as one watch told them that looked all the time.
    log: Vec<Told>,
    records: Vec<Record>,
}

/// Writes a history down.
#[derive(Debug, Default)]
struct Recorder {
    clock: AtomicU64,
    records: Mutex<Vec<Record>>,
}

impl Recorder {
    fn tick(&self) -> Tick {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, begin: Tick, deed: Deed) {
        let end = self.tick();
        self.records.lock().push(Record { begin, end, deed });
    }

    fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock())
    }
}
