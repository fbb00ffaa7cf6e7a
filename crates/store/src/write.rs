//! Changes, their preconditions, and the batch in which a backend turns them into entries and events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::encryption::{Encryption, Place};
use crate::index::Index;
use crate::{CipherError, Entry, Event, EventKind, Form, Key, Revision};

/// What must hold of a key for a change to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing. (A deletion needs the key to be there all the same.)
    Any,
    /// The key is not there.
    Absent,
    /// The key is there.
    Present,
    /// The key is there and was last written at this revision.
    Revision(Revision),
}

impl Expect {
    /// Whether it holds of a key that was last written at `found`, or is not there.
    pub(crate) fn holds(self, found: Option<Revision>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Present => found.is_some(),
            Self::Revision(expected) => found == Some(expected),
        }
    }
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes a value.
    Put {
        /// Where.
        key: Key,
        /// Precondition.
        expect: Expect,
        /// The value before stamping.
        value: Bytes,
    },
    /// Removes a key. A key that is not there is a conflict.
    Delete {
        /// Where.
        key: Key,
        /// Precondition.
        expect: Expect,
    },
}

/// A change that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its revision.
    pub revision: Revision,
    /// The new entry; for a deletion the last value, stamped with the deletion's revision.
    pub entry: Arc<Entry>,
}

/// Why a change did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The precondition does not hold.
    #[error("{key} is not as expected: it {}; read it again and decide anew", describe(.current))]
    Conflict {
        /// The key in question.
        key: Key,
        /// What is there.
        current: Option<Arc<Entry>>,
    },
    /// The value is larger than the store takes.
    #[error("the value of {key} has {size} bytes, the limit is {limit}: make the object smaller")]
    TooLarge {
        /// The key in question.
        key: Key,
        /// Its value's size in bytes.
        size: usize,
        /// The largest size in bytes.
        limit: usize,
    },
    /// The disk failed. The store refuses every later change, for it no longer knows what the disk holds.
    #[error(
        "the store cannot write to disk ({reason}): free space or repair the disk, then restart; everything acknowledged is kept"
    )]
    Unavailable {
        /// What the disk said.
        reason: Arc<str>,
    },
    /// One key was to be changed twice at once.
    #[error("{key} is to be changed twice at once: make the changes one after the other")]
    Repeated {
        /// The key in question.
        key: Key,
    },
    /// The value cannot be encrypted.
    #[error("the value of {key} cannot be stored: {reason}")]
    Cipher {
        /// The key in question.
        key: Key,
        /// What is wrong.
        reason: CipherError,
    },
    /// The store behind could not be asked. Nothing has happened.
    #[error("etcd cannot take changes now ({reason}): try again")]
    Unreachable {
        /// What went wrong.
        reason: Arc<str>,
    },
    /// The store behind was asked, but did not say whether it made the change.
    #[error("etcd did not tell whether it made the change ({reason}): read the object again before you change it")]
    Unknown {
        /// What went wrong.
        reason: Arc<str>,
    },
    /// The store behind refuses the change, and would again.
    #[error("etcd refuses the change: {reason}")]
    Refused {
        /// What it said.
        reason: Arc<str>,
    },
    /// The store was closed.
    #[error("the store is closed: it takes no changes while the process shuts down")]
    Closed,
}

fn describe(current: &Option<Arc<Entry>>) -> String {
    match current {
        Some(entry) => format!("was last written at revision {}", entry.mod_revision),
        None => "does not exist".to_owned(),
    }
}

impl Change {
    /// The value as it is to be stored at the key's place; none for a deletion.
    pub(crate) fn sealed(&self, encryption: &Encryption, place: impl Place) -> Result<Option<Bytes>, CommitError> {
        let (key, _, value) = self.parts();
        let sealed = value.map(|value| encryption.seal(key, place, value)).transpose();
        sealed.map_err(|reason| CommitError::Cipher {
            key: key.clone(),
            reason,
        })
    }

    pub(crate) fn parts(&self) -> (&Key, Expect, Option<&Bytes>) {
        match self {
            Change::Put { key, expect, value } => (key, *expect, Some(value)),
            Change::Delete { key, expect } => (key, *expect, None),
        }
    }
}

/// What can be told of changes made at once without knowing what is there: each key occurs once, no value is too large.
pub(crate) struct Bounds<'a> {
    keys: BTreeSet<&'a Key>,
    max_value: usize,
}

impl<'a> Bounds<'a> {
    pub(crate) fn new(max_value: usize) -> Self {
        Self {
            keys: BTreeSet::new(),
            max_value,
        }
    }

    /// Checks the next change.
    pub(crate) fn check(&mut self, change: &'a Change) -> Result<(), CommitError> {
        let (key, _, value) = change.parts();
        if !self.keys.insert(key) {
            return Err(CommitError::Repeated { key: key.clone() });
        }
        match value {
            Some(value) if value.len() > self.max_value => Err(CommitError::TooLarge {
                key: key.clone(),
                size: value.len(),
                limit: self.max_value,
            }),
            _ => Ok(()),
        }
    }
}

/// Changes on their way to durability: what they look like on top of the index, before anybody else may see them.
pub(crate) struct Batch<'a> {
    index: &'a Index,
    form: Form,
    max_value: usize,
    revision: Revision,
    changed: BTreeMap<Key, Option<Arc<Entry>>>,
    events: Vec<Event>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(index: &'a Index, form: Form, max_value: usize) -> Self {
        Self {
            index,
            form,
            max_value,
            revision: index.revision(),
            changed: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn current(&self, key: &Key) -> Option<Arc<Entry>> {
        match self.changed.get(key) {
            Some(changed) => changed.clone(),
            None => self.index.get(key),
        }
    }

    /// Checks that all of `changes` can be made. Changes nothing.
    pub(crate) fn check<'c>(&self, changes: impl IntoIterator<Item = &'c Change>) -> Result<(), CommitError> {
        let mut bounds = Bounds::new(self.max_value);
        for change in changes {
            bounds.check(change)?;
            let (key, expect, value) = change.parts();
            let current = self.current(key);
            let found = current.as_ref().map(|entry| entry.mod_revision);
            if !expect.holds(found) || (value.is_none() && found.is_none()) {
                return Err(CommitError::Conflict {
                    key: key.clone(),
                    current,
                });
            }
        }
        Ok(())
    }

    /// Writes a value that was checked.
    pub(crate) fn put(&mut self, key: Key, value: &Bytes) -> Committed {
        let previous = self.current(&key);
        self.revision += 1;
        let (created, version) = match &previous {
            Some(entry) => (entry.create_revision, entry.version() + 1),
            None => (self.revision, 1),
        };
        let entry = Arc::new(Entry::new(
            key.clone(),
            (self.form.stamp)(value, self.revision),
            created,
            self.revision,
            version,
        ));
        self.changed.insert(key, Some(entry.clone()));
        let kind = match previous {
            Some(_) => EventKind::Updated,
            None => EventKind::Created,
        };
        self.record(kind, entry, previous)
    }

    /// Removes a key that was checked. None if the key is not there after all.
    pub(crate) fn delete(&mut self, key: Key) -> Option<Committed> {
        let previous = self.current(&key)?;
        self.revision += 1;
        let entry = Arc::new(previous.deleted(self.form, self.revision));
        self.changed.insert(key, None);
        Some(self.record(EventKind::Deleted, entry, Some(previous)))
    }

    fn record(&mut self, kind: EventKind, entry: Arc<Entry>, previous: Option<Arc<Entry>>) -> Committed {
        self.events.push(Event {
            revision: self.revision,
            kind,
            entry: entry.clone(),
            previous,
        });
        Committed {
            revision: self.revision,
            entry,
        }
    }

    /// All keys of a logical cluster, in order.
    pub(crate) fn keys_of(&self, cluster: &str) -> Vec<Key> {
        let prefix = format!("{cluster}/");
        let mut keys = self.index.keys(&prefix);
        keys.retain(|key| !self.changed.contains_key(key));
        keys.extend(
            self.changed
                .iter()
                .filter(|(key, entry)| entry.is_some() && key.path.starts_with(&prefix))
                .map(|(key, _)| key.clone()),
        );
        keys.sort();
        keys
    }

    /// What happened, to be published once it is durable.
    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }
}
