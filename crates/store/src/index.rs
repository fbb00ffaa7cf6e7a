//! The in-memory index that both backends read from: per topic an ordered map and a window of events.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch as signal;

use crate::event::Window;
use crate::{Entry, Event, EventKind, Key, ListOptions, Listing, ReadError, Revision, Topic};

#[derive(Debug)]
pub(crate) struct Index {
    state: RwLock<State>,
    events_per_topic: usize,
    event_bytes: usize,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    /// The revision that was loaded: no event up to it is known, in any topic.
    base: Revision,
    topics: BTreeMap<Topic, TopicState>,
    event_bytes: usize,
}

#[derive(Debug)]
struct TopicState {
    entries: BTreeMap<Arc<str>, Arc<Entry>>,
    window: Window,
    wake: signal::Sender<()>,
}

impl TopicState {
    fn starting_at(floor: Revision) -> Self {
        Self {
            entries: BTreeMap::new(),
            window: Window::starting_at(floor),
            wake: signal::Sender::new(()),
        }
    }
}

impl State {
    fn topic(&mut self, topic: &Topic) -> &mut TopicState {
        let base = self.base;
        self.topics
            .entry(topic.clone())
            .or_insert_with(|| TopicState::starting_at(base))
    }

    /// Forgets events until the bounds hold again after events were added to `topic`.
    fn trim(&mut self, topic: &Topic, per_topic: usize, bytes: usize) {
        if let Some(state) = self.topics.get_mut(topic) {
            while state.window.len() > per_topic {
                self.event_bytes -= state.window.drop_oldest();
            }
        }
        while self.event_bytes > bytes {
            let oldest = self
                .topics
                .values_mut()
                .filter(|state| state.window.len() > 0)
                .min_by_key(|state| state.window.oldest());
            match oldest {
                Some(state) => self.event_bytes -= state.window.drop_oldest(),
                None => break,
            }
        }
    }
}

/// The entries of `map` under `prefix`, after `after`.
fn under<'a, V>(
    map: &'a BTreeMap<Arc<str>, V>,
    prefix: &'a str,
    after: Option<&'a str>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a V)> {
    let start = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    map.range::<str, _>((start, Bound::Unbounded))
        .take_while(move |(path, _)| path.starts_with(prefix))
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
        options: &crate::Options,
    ) -> Self {
        let mut state = State {
            revision,
            base: revision,
            topics: BTreeMap::new(),
            event_bytes: 0,
        };
        for entry in entries {
            let topic = entry.key.topic.clone();
            state
                .topic(&topic)
                .entries
                .insert(entry.key.path.clone(), Arc::new(entry));
        }
        Self {
            state: RwLock::new(state),
            events_per_topic: options.events_per_topic,
            event_bytes: options.event_bytes,
        }
    }

    /// Makes durable events visible, all at once, and wakes the watchers of their topics.
    pub(crate) fn publish(&self, events: Vec<Event>) {
        let Some(last) = events.last() else { return };
        let mut state = self.state.write();
        state.revision = last.revision;
        let mut touched: Vec<Topic> = Vec::new();
        for event in events {
            let topic = event.entry.key.topic.clone();
            state.event_bytes += event.cost();
            let of_topic = state.topic(&topic);
            let path = event.entry.key.path.clone();
            match event.kind {
                EventKind::Deleted => of_topic.entries.remove(&path),
                EventKind::Created | EventKind::Updated => of_topic.entries.insert(path, event.entry.clone()),
            };
            of_topic.window.push(event);
            state.trim(&topic, self.events_per_topic, self.event_bytes);
            if !touched.contains(&topic) {
                touched.push(topic);
            }
        }
        for topic in touched {
            if let Some(state) = state.topics.get(&topic) {
                state.wake.send_replace(());
            }
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        let state = self.state.read();
        state.topics.get(&key.topic)?.entries.get(&key.path).cloned()
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
            .map(|(_, entry)| entry.key.clone())
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
            return Ok(page(current.map(|(_, entry)| entry), options.limit, at));
        }
        let mut merged: BTreeMap<&Arc<str>, &Arc<Entry>> =
            current.filter(|(path, _)| !changed.contains_key(*path)).collect();
        merged.extend(
            under(&changed, prefix, after).filter_map(|(path, before)| before.as_ref().map(|entry| (path, entry))),
        );
        Ok(page(merged.into_values(), options.limit, at))
    }

    /// Checks that a watch can start after `after`, and gives what wakes it.
    pub(crate) fn subscribe(&self, topic: &Topic, after: Revision) -> Result<signal::Receiver<()>, ReadError> {
        let mut state = self.state.write();
        let current = state.revision;
        let of_topic = state.topic(topic);
        check(after, of_topic.window.floor(), current)?;
        Ok(of_topic.wake.subscribe())
    }

    /// The next event under `prefix` above `after`; if there is none, the revision up to which that is known.
    pub(crate) fn next_event(
        &self,
        topic: &Topic,
        prefix: &str,
        after: Revision,
    ) -> Result<Result<Event, Revision>, ReadError> {
        let state = self.state.read();
        let Some(of_topic) = state.topics.get(topic) else {
            return Ok(Err(state.revision));
        };
        check(after, of_topic.window.floor(), Revision::MAX)?;
        Ok(of_topic.window.next(prefix, after).cloned().ok_or(state.revision))
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
