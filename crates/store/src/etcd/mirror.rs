//! The index as an image of etcd: what is there at the start, what each change does to it, and what changed where history is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::client::{CallError, Client};
use super::layout::Layout;
use super::wire;
use crate::index::Index;
use crate::squeeze::InOrder;
use crate::{Behind, Encryption, Entry, Event, EventKind, Form, Key, ListOptions, Revision};

/// How many keys one call reads.
const PAGE: i64 = 500;

/// What was read of etcd at one revision.
pub(super) struct Image {
    pub(super) revision: Revision,
    pub(super) entries: Vec<Entry>,
}

/// The index, and what turns etcd's keys and values into ours.
pub(super) struct Mirror {
    pub(super) index: Arc<Index>,
    pub(super) format: Format,
    /// Why values that were told cannot be decrypted; then what we hold is not what is there.
    encrypted: Mutex<Option<Arc<str>>>,
    /// Whether etcd was set back behind what was read of it: then what we hold never was.
    set_back: AtomicBool,
    arrivals: Mutex<BTreeMap<Revision, Vec<oneshot::Sender<()>>>>,
}

/// The end of the range of all keys that start with `prefix`.
pub(super) fn range_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // no key is above such a prefix: to the end
    vec![0]
}

/// What turns keys and values of etcd into ours.
pub(super) struct Format {
    pub(super) layout: Arc<dyn Layout>,
    pub(super) encryption: Encryption,
    pub(super) form: Form,
}

/// Reads everything under the layout's prefix as it was at `revision`, or as it is now.
pub(super) async fn read(client: &Client, format: &Format, revision: Option<Revision>) -> Result<Image, CallError> {
    let prefix = format.layout.prefix().as_bytes();
    let mut at = revision.unwrap_or(0);
    let (mut from, mut entries) = (prefix.to_vec(), Vec::new());
    let mut squeezer = InOrder::new(format.form);
    loop {
        let request = wire::RangeRequest {
            key: from,
            range_end: range_end(prefix),
            limit: PAGE,
            revision: wire::signed(at),
            ..wire::RangeRequest::default()
        };
        let page = client.range(request).await?;
        if at == 0 {
            at = wire::revision(page.header.as_ref());
        }
        for kv in &page.kvs {
            let entry = format.entry(kv)?;
            entries.extend(entry.map(|entry| squeezer.squeezed(entry)));
        }
        match page.kvs.last() {
            // the next key there can be
            Some(last) if page.more => from = [&last.key[..], &[0]].concat(),
            _ => return Ok(Image { revision: at, entries }),
        }
    }
}

impl Format {
    /// A key with its value as our readers see it; none if it is not the store's, or is nothing that can be read.
    ///
    /// # Errors
    /// [`CallError::Encrypted`]. To leave such a key out would be to tell that it is not there.
    fn entry(&self, kv: &wire::KeyValue) -> Result<Option<Entry>, CallError> {
        let Some((place, key)) = self.key(kv) else {
            return Ok(None);
        };
        let opened = self.encryption.open(&key, place, &kv.value);
        let opened = opened.map_err(|reason| CallError::Encrypted(place.into(), reason))?;
        match self.layout.read(&key, &opened.value) {
            Ok(value) => Ok(Some(of(key, self.form, kv, &value).with_stale(opened.stale))),
            Err(reason) => {
                tracing::error!(place, reason, "a value in etcd cannot be read and is left out");
                Ok(None)
            }
        }
    }

    /// The entry of a key that was deleted, with what stood there. A value that nobody can read is as it stood there.
    pub(super) fn last(&self, key: &Key, kv: wire::KeyValue) -> Arc<Entry> {
        let place = String::from_utf8_lossy(&kv.key);
        let opened = self.encryption.open(key, &*place, &kv.value).map(|opened| opened.value);
        let value = opened
            .map_err(|_| String::new())
            .and_then(|value| self.layout.read(key, &value));
        let value = value.unwrap_or_else(|_| kv.value.clone());
        Arc::new(of(key.clone(), self.form, &kv, &value))
    }

    /// Where a key of the store lies, and the key.
    fn key<'k>(&self, kv: &'k wire::KeyValue) -> Option<(&'k str, Key)> {
        let place = std::str::from_utf8(&kv.key).ok()?;
        Some((place, self.layout.key_at(place)?))
    }
}

/// The entry of a key with this value.
pub(super) fn of(key: Key, form: Form, kv: &wire::KeyValue, value: &Bytes) -> Entry {
    let revision = wire::number(kv.mod_revision);
    Entry::new(
        key,
        (form.stamp)(value, revision),
        wire::number(kv.create_revision),
        revision,
        wire::number(kv.version),
    )
}

impl Mirror {
    pub(super) fn new(index: Arc<Index>, format: Format) -> Self {
        Self {
            index,
            format,
            encrypted: Mutex::default(),
            set_back: AtomicBool::new(false),
            arrivals: Mutex::default(),
        }
    }

    /// As [`Mirror::not_set_back`]; refuses, too, while what is there cannot be decrypted.
    pub(super) fn check(&self, before: Revision, now: Revision) -> Result<(), Arc<str>> {
        self.not_set_back(before, now)?;
        self.encrypted().map_or(Ok(()), Err)
    }

    /// Compares a revision that etcd has with one that was read of it before. Refuses to go on once etcd was set back, as by a restored snapshot.
    pub(super) fn not_set_back(&self, before: Revision, now: Revision) -> Result<(), Arc<str>> {
        if now < before && !self.set_back.swap(true, Ordering::Relaxed) {
            tracing::error!(before, now, "etcd was set back; restart this server to read it anew");
        }
        match self.set_back.load(Ordering::Relaxed) {
            true => Err("etcd was set back behind what this server has read of it: restart the server".into()),
            false => Ok(()),
        }
    }

    /// What is there cannot be decrypted, until something else is told. Who waits for it waits no longer.
    pub(super) fn shut(&self, reason: Arc<str>) {
        *self.encrypted.lock() = Some(reason);
        self.arrivals.lock().clear();
    }

    /// Why what is there cannot be decrypted.
    pub(super) fn encrypted(&self) -> Option<Arc<str>> {
        self.encrypted.lock().clone()
    }

    /// Why a revision that was waited for does not come.
    pub(super) fn lost(&self) -> Behind {
        let reason = self.encrypted().unwrap_or_else(|| "the changes did not come".into());
        Behind { reason }
    }

    /// Ends when the index has seen `revision`; none if it has.
    pub(super) fn arrival(&self, revision: Revision) -> Option<oneshot::Receiver<()>> {
        let mut arrivals = self.arrivals.lock();
        // looked at under the lock: who publishes takes the lock afterwards
        if self.index.revision() >= revision {
            return None;
        }
        let (arrived, arrival) = oneshot::channel();
        arrivals.entry(revision).or_default().push(arrived);
        Some(arrival)
    }

    fn tell_arrivals(&self) {
        let mut arrivals = self.arrivals.lock();
        let later = arrivals.split_off(&(self.index.revision() + 1));
        for arrived in std::mem::replace(&mut *arrivals, later).into_values().flatten() {
            // who no longer waits need not be told
            arrived.send(()).ok();
        }
    }

    /// etcd says that all changes up to `revision` were told.
    pub(super) fn advance(&self, revision: Revision) {
        self.index.advance(revision);
        self.tell_arrivals();
    }

    /// Takes in changes that the watch told: whole revisions, in order.
    ///
    /// # Errors
    /// [`CallError::Encrypted`]; then none was taken in.
    pub(super) fn take(&self, told: &[wire::WatchEvent]) -> Result<(), CallError> {
        let mut changed: BTreeMap<Key, Option<Arc<Entry>>> = BTreeMap::new();
        let mut events = Vec::with_capacity(told.len());
        let mut newest = 0;
        for one in told {
            let Some(kv) = &one.kv else { continue };
            let revision = wire::number(kv.mod_revision);
            newest = revision;
            let Some((_, key)) = self.format.key(kv) else {
                continue;
            };
            let previous = match changed.get(&key) {
                Some(changed) => changed.clone(),
                None => self.index.get(&key),
            };
            let now = match one.kind == wire::WatchEventType::Delete as i32 {
                true => None,
                false => self.format.entry(kv)?.map(Arc::new),
            };
            changed.insert(key, now.clone());
            events.extend(self.events(previous, now, revision));
        }
        let old = self.index.publish(events);
        self.advance(newest);
        self.index.squeeze(old);
        Ok(())
    }

    /// What readers are told when a key's entry becomes another one.
    fn events(&self, previous: Option<Arc<Entry>>, now: Option<Arc<Entry>>, revision: Revision) -> Vec<Event> {
        let gone = |last: &Arc<Entry>, revision| Event {
            revision,
            kind: EventKind::Deleted,
            entry: Arc::new(last.deleted(self.format.form, revision)),
            previous: Some(Arc::clone(last)),
        };
        match (previous, now) {
            (None, None) => Vec::new(),
            (Some(last), None) => vec![gone(&last, revision)],
            (None, Some(entry)) => vec![Event {
                revision,
                kind: EventKind::Created,
                entry,
                previous: None,
            }],
            (Some(last), Some(entry)) if last.create_revision == entry.create_revision => vec![Event {
                revision,
                kind: EventKind::Updated,
                entry,
                previous: Some(last),
            }],
            // it went and came back while nobody looked
            (Some(last), Some(entry)) => {
                let created = Event {
                    revision,
                    kind: EventKind::Created,
                    entry,
                    previous: None,
                };
                vec![gone(&last, revision), created]
            }
        }
    }

    /// Takes in what changed up to an image, where the changes themselves can no longer be had. When keys went is not known: they go at the
    /// image's revision.
    pub(super) fn replace(&self, image: Image) {
        let mut before: BTreeSet<Key> = BTreeSet::new();
        for topic in self.index.topics() {
            let listing = self.index.list(&topic, "", &ListOptions::default());
            let entries = listing.map(|listing| listing.entries).unwrap_or_default();
            before.extend(entries.iter().map(|entry| entry.key.clone()));
        }
        let mut events = Vec::new();
        for entry in image.entries {
            before.remove(&entry.key);
            let previous = self.index.get(&entry.key);
            let revision = entry.mod_revision;
            if previous
                .as_ref()
                .is_none_or(|previous| previous.mod_revision != revision)
            {
                events.extend(self.events(previous, Some(Arc::new(entry)), revision));
            }
        }
        for key in before {
            events.extend(self.events(self.index.get(&key), None, image.revision));
        }
        events.sort_by_key(|event| event.revision);
        let old = self.index.publish(events);
        self.advance(image.revision);
        *self.encrypted.lock() = None;
        self.index.squeeze(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_behind_the_prefix() {
        assert_eq!(range_end(b"/registry/"), b"/registry0");
        assert_eq!(range_end(b"a\xff"), b"b");
        assert_eq!(range_end(b"\xff"), [0]);
        assert_eq!(range_end(b""), [0]);
    }
}
