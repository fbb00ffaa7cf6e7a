//! The in-memory index that all backends read from: per topic its entries in order and a window of events.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{self, AtomicU64};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::squeeze::{ALIKE, Dictionary, Squeezer};
use crate::window::{Aged, Window};
use crate::{Entry, Event, EventKind, Form, Key, ListOptions, Listing, ReadError, Revision, Topic};

/// How many loaded entries are squeezed before readers and writers may look at the index again.
const SQUEEZED_AT_ONCE: usize = 256;

#[derive(Debug)]
pub(crate) struct Index {
    state: RwLock<State>,
    events_per_topic: usize,
    event_bytes: usize,
    form: Form,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    /// The revision that was loaded: no event up to it is known, in any topic.
    base: Revision,
    topics: BTreeMap<Topic, TopicState>,
    /// What all windows cost.
    event_bytes: usize,
    fresh_events: usize,
}

#[derive(Debug)]
struct TopicState {
    entries: BTreeSet<ByPath>,
    window: Window,
    listeners: BTreeMap<Box<str>, Listened>,
    /// What values are squeezed with; none before there are many.
    dictionary: Option<Arc<Dictionary>>,
}

/// Values that were given by events that are no longer among the newest, or were taken away by them.
#[derive(Debug)]
#[must_use = "they take much space until the index squeezes them"]
pub(crate) struct Old(Vec<(Topic, Aged)>);

/// An entry of one topic in the order of paths. A map would keep each path a second time.
#[derive(Debug)]
struct ByPath(Arc<Entry>);

impl Borrow<str> for ByPath {
    fn borrow(&self) -> &str {
        &self.0.key.path
    }
}

impl PartialEq for ByPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.key.path == other.0.key.path
    }
}

impl Eq for ByPath {}

impl PartialOrd for ByPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.path.cmp(&other.0.key.path)
    }
}

/// What the watches of one prefix share.
#[derive(Debug)]
struct Listened {
    listener: Arc<Listener>,
    watches: usize,
}

/// Wakes the watches of one prefix in the order in which they began to wait.
#[derive(Debug)]
pub(crate) struct Listener {
    notify: Notify,
    /// No event under the prefix has this number or a higher one.
    end: AtomicU64,
}

/// How far a watch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the first event that it has not looked at.
    pub(crate) next: u64,
    /// All events of its topic and prefix up to this revision were given, or some of this revision.
    pub(crate) revision: Revision,
}

impl Listener {
    /// Ends with the next event.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

/// The listeners whose prefix `path` starts with.
fn listening<'a>(
    listeners: &'a BTreeMap<Box<str>, Listened>,
    path: &'a str,
) -> impl Iterator<Item = &'a Arc<Listener>> {
    let mut bound = Some(path);
    std::iter::from_fn(move || {
        // The greatest prefix not above the bound either fits, or what it has in common with the path bounds all that may fit.
        while let Some(at) = bound {
            let (prefix, listened) = listeners
                .range::<str, _>((Bound::Unbounded, Bound::Included(at)))
                .next_back()?;
            let common = path
                .char_indices()
                .zip(prefix.chars())
                .take_while(|((_, one), other)| one == other);
            let common = common.last().map_or(0, |((start, one), _)| start + one.len_utf8());
            if common == prefix.len() {
                bound = path
                    .get(..common)
                    .and_then(|own| own.char_indices().next_back())
                    .and_then(|(last, _)| path.get(..last));
                return Some(&listened.listener);
            }
            bound = path.get(..common);
        }
        None
    })
}

impl TopicState {
    fn starting_at(floor: Revision, fresh_events: usize) -> Self {
        Self {
            entries: BTreeSet::new(),
            window: Window::starting_at(floor, fresh_events),
            listeners: BTreeMap::new(),
            dictionary: None,
        }
    }

    /// How many values there are, about.
    fn values(&self) -> usize {
        self.entries.len() + self.window.len()
    }

    /// Exchanges an entry for the same one in less memory, if it is there still.
    fn exchange(&mut self, squeezed: &Arc<Entry>) {
        let there = self.entries.get(&*squeezed.key.path);
        if there.is_some_and(|ByPath(there)| there.mod_revision == squeezed.mod_revision) {
            self.entries.replace(ByPath(Arc::clone(squeezed)));
        }
    }
}

impl State {
    fn topic(&mut self, topic: &Topic) -> &mut TopicState {
        let (base, fresh_events) = (self.base, self.fresh_events);
        self.topics
            .entry(topic.clone())
            .or_insert_with(|| TopicState::starting_at(base, fresh_events))
    }

    /// Forgets events until the bounds hold again after events were added to `topic`. Those whose values are to be squeezed come to the `old` ones.
    fn trim(&mut self, topic: &Topic, per_topic: usize, bytes: usize, old: &mut Vec<(Topic, Aged)>) {
        let mut drop_oldest = |topic: &Topic, state: &mut TopicState| {
            let (cost, aged) = state.window.drop_oldest();
            old.extend(aged.map(|aged| (topic.clone(), aged)));
            cost
        };
        if let Some(state) = self.topics.get_mut(topic) {
            while state.window.len() > per_topic {
                self.event_bytes -= drop_oldest(topic, state);
            }
        }
        while self.event_bytes > bytes {
            let oldest = self
                .topics
                .iter_mut()
                .filter(|(_, state)| state.window.len() > 0)
                .min_by_key(|(_, state)| state.window.oldest());
            match oldest {
                Some((topic, state)) => self.event_bytes -= drop_oldest(topic, state),
                None => break,
            }
        }
    }
}

/// Where paths under `prefix` begin of which those up to `after` are known, up to the end of all paths.
fn behind<'a>(prefix: &'a str, after: Option<&'a str>) -> (Bound<&'a str>, Bound<&'a str>) {
    let start = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    (start, Bound::Unbounded)
}

/// The entries under `prefix`, after `after`.
#[allow(clippy::mutable_key_type)] // the order is that of paths, which never change
fn under<'a>(
    entries: &'a BTreeSet<ByPath>,
    prefix: &'a str,
    after: Option<&'a str>,
) -> impl Iterator<Item = &'a Arc<Entry>> {
    entries
        .range::<str, _>(behind(prefix, after))
        .map(|ByPath(entry)| entry)
        .take_while(move |entry| entry.key.path.starts_with(prefix))
}

fn page<'a>(mut entries: impl Iterator<Item = &'a Arc<Entry>>, limit: Option<usize>, revision: Revision) -> Listing {
    let taken: Vec<_> = entries.by_ref().take(limit.unwrap_or(usize::MAX)).cloned().collect();
    Listing {
        entries: taken,
        revision,
        remaining: entries.count() as u64,
    }
}

impl Index {
    /// An index that holds `entries` at `revision` and knows no events before it.
    pub(crate) fn loaded(
        revision: Revision,
        entries: impl IntoIterator<Item = Entry>,
        form: Form,
        options: &crate::Options,
    ) -> Self {
        let mut state = State {
            revision,
            base: revision,
            topics: BTreeMap::new(),
            event_bytes: 0,
            fresh_events: options.fresh_events,
        };
        for entry in entries {
            let topic = entry.key.topic.clone();
            state.topic(&topic).entries.replace(ByPath(Arc::new(entry)));
        }
        Self {
            state: RwLock::new(state),
            events_per_topic: options.events_per_topic,
            event_bytes: options.event_bytes,
            form,
        }
    }

    /// Nothing happened up to `revision`.
    pub(crate) fn advance(&self, revision: Revision) {
        let mut state = self.state.write();
        state.revision = state.revision.max(revision);
    }

    /// Makes durable events visible, all at once, and wakes the watchers of their topics. Gives what is to be [squeezed](Self::squeeze) when
    /// those who wait for the events were told.
    pub(crate) fn publish(&self, events: Vec<Event>) -> Old {
        let mut old = Vec::new();
        let Some(last) = events.last() else { return Old(old) };
        let mut state = self.state.write();
        state.revision = last.revision;
        let mut touched: Vec<Arc<Listener>> = Vec::new();
        for event in events {
            let topic = event.entry.key.topic.clone();
            let of_topic = state.topic(&topic);
            let path = &*event.entry.key.path;
            let end = of_topic.window.end() + 1;
            for listener in listening(&of_topic.listeners, path) {
                listener.end.store(end, atomic::Ordering::Release);
                if !touched.iter().any(|known| Arc::ptr_eq(known, listener)) {
                    touched.push(Arc::clone(listener));
                }
            }
            match event.kind {
                EventKind::Deleted => of_topic.entries.take(path),
                EventKind::Created | EventKind::Updated => of_topic.entries.replace(ByPath(event.entry.clone())),
            };
            let before = of_topic.window.cost();
            let aged = of_topic.window.push(event);
            let after = of_topic.window.cost();
            state.event_bytes = state.event_bytes - before + after;
            state.trim(&topic, self.events_per_topic, self.event_bytes, &mut old);
            old.extend(aged.map(|aged| (topic, aged)));
        }
        drop(state);
        touched.iter().for_each(|listener| listener.notify.notify_waiters());
        Old(old)
    }

    /// Keeps old values in little space. Readers wait only while they are exchanged.
    pub(crate) fn squeeze(&self, Old(mut old): Old) {
        if old.is_empty() {
            return;
        }
        for (topic, aged) in &mut old {
            if let Some(sample) = aged.any() {
                let squeezer = self.squeezer(topic, sample);
                aged.squeeze(&squeezer);
            }
        }
        let mut state = self.state.write();
        for (topic, aged) in old {
            let Some(of_topic) = state.topics.get_mut(&topic) else {
                continue;
            };
            if let Some(last) = aged.last() {
                of_topic.exchange(last);
            }
            let before = of_topic.window.cost();
            of_topic.window.settle(aged);
            let after = of_topic.window.cost();
            state.event_bytes = state.event_bytes - before + after;
        }
    }

    /// What squeezes the values of a topic, of which one is known.
    fn squeezer(&self, topic: &Topic, sample: &Entry) -> Squeezer {
        let state = self.state.read();
        let of_topic = state.topics.get(topic);
        let known = of_topic.and_then(|of_topic| of_topic.dictionary.clone());
        let are_many = of_topic.is_some_and(|of_topic| of_topic.values() >= ALIKE);
        drop(state);
        let dictionary = match known {
            None if are_many => self.dictionary_like(topic, sample),
            known => known,
        };
        Squeezer::new(self.form, dictionary)
    }

    fn dictionary_like(&self, topic: &Topic, sample: &Entry) -> Option<Arc<Dictionary>> {
        let made = Dictionary::of(&sample.head(), self.form).map(Arc::new)?;
        let mut state = self.state.write();
        let of_topic = state.topics.get_mut(topic)?;
        // another one may have been quicker
        Some(Arc::clone(of_topic.dictionary.get_or_insert(made)))
    }

    /// Keeps what was loaded in little space and then what grows old, until nobody tells of any more or the index is gone.
    pub(crate) fn keep_small(index: &Weak<Self>, aging: Receiver<Old>) {
        Self::squeeze_loaded(index);
        for old in aging {
            let Some(index) = index.upgrade() else { return };
            index.squeeze(old);
        }
    }

    /// Takes as long as it takes to compress everything; readers wait only while values are exchanged.
    fn squeeze_loaded(index: &Weak<Self>) {
        let topics = index.upgrade().map(|index| index.topics()).unwrap_or_default();
        for topic in topics {
            let mut after = None;
            while let Some(last) = index
                .upgrade()
                .and_then(|index| index.squeeze_page(&topic, after.as_deref()))
            {
                after = Some(last);
            }
        }
    }

    /// Squeezes some of the entries of a topic behind a path. Gives the path of the last one; none if none are left.
    fn squeeze_page(&self, topic: &Topic, after: Option<&str>) -> Option<Arc<str>> {
        let state = self.state.read();
        let base = state.base;
        let page = under(&state.topics.get(topic)?.entries, "", after).take(SQUEEZED_AT_ONCE);
        let page: Vec<_> = page.cloned().collect();
        drop(state);
        let last = Arc::clone(&page.last()?.key.path);
        let squeezer = self.squeezer(topic, page.first()?);
        let loaded = page.iter().filter(|entry| entry.mod_revision <= base);
        let squeezed = loaded.filter_map(|entry| entry.squeezed(&squeezer));
        let squeezed: Vec<_> = squeezed.map(Arc::new).collect();
        let mut state = self.state.write();
        let of_topic = state.topics.get_mut(topic)?;
        squeezed.iter().for_each(|entry| of_topic.exchange(entry));
        Some(last)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        let state = self.state.read();
        let ByPath(entry) = state.topics.get(&key.topic)?.entries.get(&*key.path)?;
        Some(entry.clone())
    }

    pub(crate) fn revision(&self) -> Revision {
        self.state.read().revision
    }

    pub(crate) fn topics(&self) -> Vec<Topic> {
        let state = self.state.read();
        state
            .topics
            .iter()
            .filter(|(_, of_topic)| !of_topic.entries.is_empty())
            .map(|(topic, _)| topic.clone())
            .collect()
    }

    /// All keys whose path starts with `prefix`, in order.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<Key> {
        let state = self.state.read();
        state
            .topics
            .values()
            .flat_map(|of_topic| under(&of_topic.entries, prefix, None))
            .map(|entry| entry.key.clone())
            .collect()
    }

    pub(crate) fn count(&self, topic: &Topic, prefix: &str) -> usize {
        let state = self.state.read();
        match state.topics.get(topic) {
            Some(of_topic) if prefix.is_empty() => of_topic.entries.len(),
            Some(of_topic) => under(&of_topic.entries, prefix, None).count(),
            None => 0,
        }
    }

    pub(crate) fn list(&self, topic: &Topic, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        let state = self.state.read();
        let at = options.at.unwrap_or(state.revision);
        let of_topic = state.topics.get(topic);
        let floor = of_topic.map_or(state.base, |of_topic| of_topic.window.floor());
        check(at, floor, state.revision)?;
        let Some(of_topic) = of_topic else {
            return Ok(page(std::iter::empty(), options.limit, at));
        };
        let after = options.after.as_deref();
        let current = under(&of_topic.entries, prefix, after);
        let changed = of_topic.window.undo(prefix, at);
        if changed.is_empty() {
            return Ok(page(current, options.limit, at));
        }
        let mut merged: BTreeMap<&str, &Arc<Entry>> = current
            .map(|entry| (&*entry.key.path, entry))
            .filter(|(path, _)| !changed.contains_key(*path))
            .collect();
        let before = changed.range::<str, _>(behind(prefix, after));
        merged.extend(before.filter_map(|(path, before)| Some((&**path, before.as_ref()?))));
        Ok(page(merged.into_values(), options.limit, at))
    }

    /// Checks that a watch can start after `after`, and gives what wakes it and where it starts. Each call wants one of
    /// [`Index::unsubscribe`].
    pub(crate) fn subscribe(
        &self,
        topic: &Topic,
        prefix: &str,
        after: Revision,
    ) -> Result<(Arc<Listener>, Position), ReadError> {
        let mut state = self.state.write();
        let current = state.revision;
        let of_topic = state.topic(topic);
        check(after, of_topic.window.floor(), current)?;
        let position = Position {
            next: of_topic.window.after(after),
            revision: after,
        };
        let end = of_topic.window.end();
        let listened = of_topic.listeners.entry(prefix.into()).or_insert_with(|| Listened {
            listener: Arc::new(Listener {
                notify: Notify::new(),
                // Nobody has looked: there may be events up to now.
                end: AtomicU64::new(end),
            }),
            watches: 0,
        });
        listened.watches += 1;
        Ok((Arc::clone(&listened.listener), position))
    }

    /// A watch has ended.
    pub(crate) fn unsubscribe(&self, topic: &Topic, prefix: &str) {
        let mut state = self.state.write();
        let Some(of_topic) = state.topics.get_mut(topic) else {
            return;
        };
        if let Some(listened) = of_topic.listeners.get_mut(prefix) {
            listened.watches -= 1;
            if listened.watches == 0 {
                of_topic.listeners.remove(prefix);
            }
        }
    }

    /// The next event under `prefix` from `position` on, if there is one, and the position behind it. Events that the window has lost do not
    /// matter to a listener that none of them was for.
    pub(crate) fn next_event(
        &self,
        topic: &Topic,
        prefix: &str,
        listener: &Listener,
        position: Position,
    ) -> Result<(Option<Event>, Position), ReadError> {
        let state = self.state.read();
        let nothing = |next| Position {
            next,
            revision: state.revision,
        };
        let Some(of_topic) = state.topics.get(topic) else {
            return Ok((None, nothing(position.next)));
        };
        let window = &of_topic.window;
        if listener.end.load(atomic::Ordering::Acquire) <= position.next {
            return Ok((None, nothing(window.end())));
        }
        if position.next < window.first() {
            return Err(ReadError::Compacted {
                requested: position.revision,
                oldest: window.floor(),
            });
        }
        Ok(match window.next(prefix, position.next) {
            Some((number, event)) => {
                let behind = Position {
                    next: number + 1,
                    revision: event.revision,
                };
                (Some(event), behind)
            }
            None => (None, nothing(window.end())),
        })
    }
}

fn check(requested: Revision, oldest: Revision, current: Revision) -> Result<(), ReadError> {
    if requested > current {
        Err(ReadError::Future { requested, current })
    } else if requested < oldest {
        Err(ReadError::Compacted { requested, oldest })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::contract::FORM;
    use crate::write::Batch;

    const LENGTH: usize = 2000;

    fn key(number: usize) -> Key {
        Key::new(Topic::new("", "things"), format!("{number:04}"))
    }

    const UNSTAMPED: Form = Form {
        stamp: |value, _| value.clone(),
        ..FORM
    };

    /// What an index of small bounds takes for the values that are there.
    fn kept(index: &Index) -> usize {
        let state = index.state.read();
        let topics = state.topics.values();
        topics
            .flat_map(|topic| &topic.entries)
            .map(|ByPath(entry)| entry.cost())
            .sum()
    }

    fn write(index: &Index, number: usize) {
        let mut batch = Batch::new(index, UNSTAMPED, usize::MAX);
        batch.put(key(number), &text(number).into());
        let old = index.publish(batch.into_events());
        index.squeeze(old);
    }

    fn text(number: usize) -> String {
        format!("{number:05}{}", "\"key\":\"value\",".repeat(LENGTH / 14))
    }

    #[test]
    fn values_that_stay_take_little_space_once_newer_ones_came() {
        // without the second bound, events go while they are among the newest
        for event_bytes in [usize::MAX, 10 * LENGTH] {
            let options = Options {
                fresh_events: 8,
                event_bytes,
                ..Options::default()
            };
            let index = Index::loaded(0, [], UNSTAMPED, &options);
            (0..100).chain(0..100).for_each(|number| write(&index, number));
            assert!(kept(&index) < 8 * 2 * LENGTH, "{}", kept(&index));
            for number in 0..100 {
                let entry = index.get(&key(number)).unwrap();
                assert_eq!((entry.value(), entry.version()), (text(number).into_bytes().into(), 2));
            }
        }
    }

    #[test]
    fn loaded_values_take_little_space_and_what_was_written_since_stays() {
        let loaded = |number| Entry::new(key(number), text(number).into(), 1, 1, 1);
        let many = 2 * SQUEEZED_AT_ONCE + 3;
        let index = Arc::new(Index::loaded(1, (0..many).map(loaded), UNSTAMPED, &Options::default()));
        write(&index, 7);
        Index::squeeze_loaded(&Arc::downgrade(&index));
        assert!(kept(&index) < many * LENGTH / 10, "{}", kept(&index));
        for number in 0..many {
            let entry = index.get(&key(number)).unwrap();
            let is_whole = entry.cost() == entry.value().len();
            assert_eq!(
                (entry.value(), is_whole),
                (text(number).into_bytes().into(), number == 7)
            );
        }
    }

    #[test]
    fn a_topic_gets_a_dictionary_once_it_has_many_values() {
        let options = Options {
            fresh_events: 0,
            ..Options::default()
        };
        let index = Index::loaded(0, [], UNSTAMPED, &options);
        let has_dictionary = || {
            index
                .state
                .read()
                .topics
                .values()
                .any(|topic| topic.dictionary.is_some())
        };
        let write = |number: usize| {
            let mut batch = Batch::new(&index, UNSTAMPED, usize::MAX);
            batch.put(key(number), &format!("{};{}", text(number), text(number)).into());
            let old = index.publish(batch.into_events());
            index.squeeze(old);
        };
        (0..ALIKE / 2 - 1).for_each(write);
        assert!(!has_dictionary());
        (ALIKE / 2..ALIKE * 2).for_each(write);
        assert!(has_dictionary());
        let small = index.get(&key(ALIKE + 7)).map(|entry| entry.cost()).unwrap();
        let before = index.get(&key(7)).map(|entry| entry.cost()).unwrap();
        assert!(small < before, "{small} < {before}");
    }

    #[test]
    fn listeners_of_all_prefixes_are_found() {
        let listeners: BTreeMap<Box<str>, Listened> =
            ["", "a/", "a/b", "a/b/", "a/b/c", "a/bc/", "a/b/d", "b/", "ä/", "ä/ö"]
                .into_iter()
                .map(|prefix| {
                    let listener = Listener {
                        notify: Notify::new(),
                        end: AtomicU64::new(0),
                    };
                    let listened = Listened {
                        listener: Arc::new(listener),
                        watches: 1,
                    };
                    (prefix.into(), listened)
                })
                .collect();
        let mut rest: Vec<String> = vec![String::new()];
        for _ in 0..6 {
            let longer = rest
                .iter()
                .flat_map(|path| ["a", "b", "c", "d", "/", "ä", "ö"].map(|one| format!("{path}{one}")));
            rest = longer.chain([String::new()]).collect();
            rest.truncate(20_000);
            for path in &rest {
                let mut expected: Vec<_> = listeners
                    .iter()
                    .filter(|(prefix, _)| path.starts_with(&***prefix))
                    .collect();
                expected.reverse();
                let found: Vec<_> = listening(&listeners, path).collect();
                assert_eq!(found.len(), expected.len(), "{path}");
                assert!(
                    found
                        .iter()
                        .zip(&expected)
                        .all(|(one, (_, other))| Arc::ptr_eq(one, &other.listener)),
                    "{path}"
                );
            }
        }
    }
}
