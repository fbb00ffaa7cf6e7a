//! Events, and the bounded window of them that a topic keeps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::{Entry, Revision};

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The key came to be.
    Created,
    /// The key got another value.
    Updated,
    /// The key went away.
    Deleted,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The change's revision.
    pub revision: Revision,
    /// What happened.
    pub kind: EventKind,
    /// The value from this revision on; for a deletion the last value, stamped with the deletion's revision.
    pub entry: Arc<Entry>,
    /// The entry before the change; none for a creation.
    pub previous: Option<Arc<Entry>>,
}

/// What an event costs besides values, roughly: itself, its key and the entry's head.
const OVERHEAD: usize = 256;

impl Event {
    /// The bytes that would be free without this event. A created or updated entry is kept alive by the index or by the next
    /// event of its key, so that only the previous one counts.
    pub(crate) fn cost(&self) -> usize {
        let last = match self.kind {
            EventKind::Deleted => self.entry.value.len(),
            EventKind::Created | EventKind::Updated => 0,
        };
        OVERHEAD + last + self.previous.as_ref().map_or(0, |previous| previous.value.len())
    }
}

/// The newest events of one topic, in revision order. Several may share one revision: etcd gives all changes of a transaction, and all keys of
/// a lease that ends, the same. So readers count events instead: each has a number, one more than the one before.
#[derive(Debug)]
pub(crate) struct Window {
    events: VecDeque<Event>,
    /// The number of the first event kept; so many were dropped.
    first: u64,
    floor: Revision,
}

impl Window {
    /// An empty window that knows everything after `floor`.
    pub(crate) fn starting_at(floor: Revision) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            floor,
        }
    }

    /// The number of the first event kept.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next event will get.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the first event above `revision`.
    pub(crate) fn after(&self, revision: Revision) -> u64 {
        self.first + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    /// Every event with a revision above this one is in the window.
    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Forgets the oldest event and returns its cost.
    pub(crate) fn drop_oldest(&mut self) -> usize {
        match self.events.pop_front() {
            Some(event) => {
                self.floor = event.revision;
                self.first += 1;
                event.cost()
            }
            None => 0,
        }
    }

    /// The revision of the oldest event kept.
    pub(crate) fn oldest(&self) -> Option<Revision> {
        self.events.front().map(|event| event.revision)
    }

    /// The first event from number `from` on whose path starts with `prefix`, and its number.
    pub(crate) fn next(&self, prefix: &str, from: u64) -> Option<(u64, &Event)> {
        let start = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        (self.first.max(from)..)
            .zip(self.events.range(start.min(self.events.len())..))
            .find(|(_, event)| event.entry.key.path.starts_with(prefix))
    }

    /// What differed at revision `at`: for every path changed since, the entry it had then.
    pub(crate) fn undo(&self, prefix: &str, at: Revision) -> BTreeMap<Arc<str>, Option<Arc<Entry>>> {
        let mut before = BTreeMap::new();
        for event in self.events.iter().rev() {
            if event.revision <= at {
                break;
            }
            if event.entry.key.path.starts_with(prefix) {
                before.insert(event.entry.key.path.clone(), event.previous.clone());
            }
        }
        before
    }
}
