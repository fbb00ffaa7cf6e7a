//! The bounded window of events that a topic keeps for watchers who come back and for older snapshots.
//!
//! Hardly anybody looks at more than the last few events, but all of them keep values that are gone elsewhere. So each value is kept once, by the
//! event that took it away or by the index, and in little space when newer events have come.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::squeeze::Squeezer;
use crate::{Entry, Event, EventKind, Revision};

/// What an event costs besides values, roughly: itself, its key and an entry's head.
const OVERHEAD: usize = 256;

/// The newest events of one topic, in revision order. Several may share one revision: etcd gives all changes of a transaction, and all keys of
/// a lease that ends, the same. So readers count events instead: each has a number, one more than the one before.
#[derive(Debug)]
pub(crate) struct Window {
    events: VecDeque<Noted>,
    /// The number of the first event kept; so many were dropped.
    first: u64,
    /// How many events' values are kept as they are.
    most_fresh: usize,
    floor: Revision,
    cost: usize,
}

/// An event as it is kept.
#[derive(Debug)]
struct Noted {
    revision: Revision,
    kind: EventKind,
    path: Arc<str>,
    entry: New,
    previous: Option<Arc<Entry>>,
}

/// A value since an event.
#[derive(Debug)]
enum New {
    Here(Arc<Entry>),
    /// It is what was before the event of this number.
    Before(u64),
}

/// The values of an event that is no longer among the newest. They are squeezed without the window, which others read meanwhile.
#[derive(Debug)]
pub(crate) struct Aged {
    /// The event's.
    number: u64,
    previous: Option<Arc<Entry>>,
    last: Option<Arc<Entry>>,
}

impl Aged {
    /// Makes the values small, and forgets those that cannot be. Takes time that grows with their length.
    pub(crate) fn squeeze(&mut self, squeezer: &Squeezer) {
        for value in [&mut self.previous, &mut self.last] {
            *value = value.take().and_then(|entry| entry.squeezed(squeezer)).map(Arc::new);
        }
    }

    /// One of the values.
    pub(crate) fn any(&self) -> Option<&Arc<Entry>> {
        self.previous.as_ref().or(self.last.as_ref())
    }

    /// The value since the event, which is there still if nothing came after it.
    pub(crate) fn last(&self) -> Option<&Arc<Entry>> {
        self.last.as_ref()
    }
}

impl Noted {
    /// The bytes that would be free without this event. A created or updated value is kept alive by the index or by the next event of its
    /// key, so that only the previous one counts.
    fn cost(&self) -> usize {
        let last = match (self.kind, &self.entry) {
            (EventKind::Deleted, New::Here(last)) => last.cost(),
            _ => 0,
        };
        OVERHEAD + last + self.previous.as_ref().map_or(0, |previous| previous.cost())
    }

    /// What may be squeezed: all but a value that a later event keeps.
    fn aged(&self, number: u64) -> Aged {
        let last = match &self.entry {
            New::Here(last) => Some(Arc::clone(last)),
            New::Before(_) => None,
        };
        Aged {
            number,
            previous: self.previous.clone(),
            last,
        }
    }
}

impl Window {
    /// An empty window that knows everything after `floor`, and keeps the values of the newest `most_fresh` events as they are.
    pub(crate) fn starting_at(floor: Revision, most_fresh: usize) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            most_fresh,
            floor,
            cost: 0,
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
        self.first + self.place_after(revision) as u64
    }

    fn place_after(&self, revision: Revision) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }

    /// Where the event of a number is.
    fn place(&self, number: u64) -> usize {
        usize::try_from(number.saturating_sub(self.first)).map_or(self.events.len(), |at| at.min(self.events.len()))
    }

    /// Every event with a revision above this one is in the window.
    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The bytes that would be free without the window.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// Adds the newest event. Takes time that grows with the logarithm of the window's length. Gives what is to be squeezed and then
    /// [settled](Self::settle).
    #[must_use]
    pub(crate) fn push(&mut self, event: Event) -> Option<Aged> {
        let number = self.end();
        if let Some(previous) = &event.previous {
            self.hand_over(previous, number);
        }
        let noted = Noted {
            revision: event.revision,
            kind: event.kind,
            path: Arc::clone(&event.entry.key.path),
            entry: New::Here(event.entry),
            previous: event.previous,
        };
        self.cost += noted.cost();
        self.events.push_back(noted);
        // one comes, and one is no longer among the newest
        let aged = self.events.len().checked_sub(self.most_fresh + 1)?;
        Some(self.events.get(aged)?.aged(self.first + aged as u64))
    }

    /// Keeps squeezed values in the place of those that they were made of, if their event is there still.
    pub(crate) fn settle(&mut self, aged: Aged) {
        let Some(place) = aged.number.checked_sub(self.first) else {
            return;
        };
        let Some(noted) = usize::try_from(place).ok().and_then(|place| self.events.get_mut(place)) else {
            return;
        };
        self.cost -= noted.cost();
        if aged.previous.is_some() {
            noted.previous = aged.previous;
        }
        // a later event may have taken it away meanwhile
        if let (Some(last), New::Here(_)) = (aged.last, &noted.entry) {
            noted.entry = New::Here(last);
        }
        self.cost += noted.cost();
    }

    /// Lets the event that made a value find it in the one that took it away.
    fn hand_over(&mut self, value: &Entry, number: u64) {
        let end = self.place_after(value.mod_revision);
        let at_once = self.events.range_mut(..end).rev();
        let made = at_once
            .take_while(|event| event.revision == value.mod_revision)
            .find(|event| event.path == value.key.path);
        if let Some(made) = made {
            made.entry = New::Before(number);
        }
    }

    /// Forgets the oldest event. Gives its cost, and what is to be squeezed if it was among the newest: the index may hold its value still.
    pub(crate) fn drop_oldest(&mut self) -> (usize, Option<Aged>) {
        let was_fresh = self.events.len() <= self.most_fresh;
        let Some(event) = self.events.pop_front() else {
            return (0, None);
        };
        let number = self.first;
        self.floor = event.revision;
        self.first += 1;
        self.cost -= event.cost();
        let aged = was_fresh.then(|| Aged {
            previous: None,
            ..event.aged(number)
        });
        (event.cost(), aged)
    }

    /// The revision of the oldest event kept.
    pub(crate) fn oldest(&self) -> Option<Revision> {
        self.events.front().map(|event| event.revision)
    }

    /// The first event from number `from` on whose path starts with `prefix`, and its number.
    pub(crate) fn next(&self, prefix: &str, from: u64) -> Option<(u64, Event)> {
        let (number, noted) = (self.first.max(from)..)
            .zip(self.events.range(self.place(from)..))
            .find(|(_, event)| event.path.starts_with(prefix))?;
        let entry = match &noted.entry {
            New::Here(entry) => entry,
            New::Before(later) => self.events.get(self.place(*later))?.previous.as_ref()?,
        };
        let event = Event {
            revision: noted.revision,
            kind: noted.kind,
            entry: Arc::clone(entry),
            previous: noted.previous.clone(),
        };
        Some((number, event))
    }

    /// What differed at revision `at`: for every path changed since, the entry it had then.
    pub(crate) fn undo(&self, prefix: &str, at: Revision) -> BTreeMap<Arc<str>, Option<Arc<Entry>>> {
        let mut before = BTreeMap::new();
        let since = self.events.range(self.place_after(at)..);
        for event in since.filter(|event| event.path.starts_with(prefix)) {
            before
                .entry(Arc::clone(&event.path))
                .or_insert_with(|| event.previous.clone());
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::contract::FORM;
    use crate::{Key, Topic};

    /// All events, as they were.
    #[derive(Default)]
    struct Model {
        events: Vec<Event>,
        current: BTreeMap<String, Arc<Entry>>,
    }

    impl Model {
        /// Writes a key, or deletes it where there is no value.
        fn write(&mut self, name: &str, value: Option<&str>) -> Option<Event> {
            let revision = self.events.len() as Revision + 1;
            let previous = self.current.remove(name);
            let last = previous.as_ref();
            let text = value.map_or_else(|| last.map(|last| last.bytes()), |text| Some(text.to_owned().into()))?;
            let created = last.map_or(revision, |last| last.create_revision);
            let version = last.map_or(0, |last| last.version()) + 1;
            let key = Key::new(Topic::new("", "things"), name);
            let entry =
                Arc::new(Entry::new(key, text, created, revision, version).with_stale(revision.is_multiple_of(3)));
            let kind = match (value, &previous) {
                (None, _) => EventKind::Deleted,
                (Some(_), None) => EventKind::Created,
                (Some(_), Some(_)) => EventKind::Updated,
            };
            if value.is_some() {
                self.current.insert(name.to_owned(), Arc::clone(&entry));
            }
            let event = Event {
                revision,
                kind,
                entry,
                previous,
            };
            self.events.push(event.clone());
            Some(event)
        }
    }

    /// As the index does it.
    fn push(window: &mut Window, event: Event) {
        if let Some(mut aged) = window.push(event) {
            aged.squeeze(&Squeezer::new(FORM, None));
            window.settle(aged);
        }
    }

    fn value() -> impl Strategy<Value = Option<String>> {
        let long = ("[a-c]{0,3}", 0usize..400).prop_map(|(text, times)| Some(text.repeat(times)));
        prop_oneof![1 => Just(None), 1 => "[a-z]{0,20}".prop_map(Some), 3 => long]
    }

    proptest! {
        #[test]
        fn events_come_back_as_they_were(
            writes in prop::collection::vec(("[ab]{1,2}", value()), 0..60),
            most_fresh in 0usize..9,
            longest in 1usize..40,
        ) {
            let (mut model, mut window) = (Model::default(), Window::starting_at(0, most_fresh));
            for (name, value) in &writes {
                let Some(event) = model.write(name, value.as_deref()) else { continue };
                push(&mut window, event);
                while window.len() > longest {
                    let (whole, (oldest, _)) = (window.cost(), window.drop_oldest());
                    prop_assert_eq!(whole - oldest, window.cost());
                }
                prop_assert_eq!(window.cost(), window.events.iter().map(Noted::cost).sum::<usize>());
            }
            for prefix in ["", "a", "bb"] {
                let kept = model.events.iter().skip(window.first() as usize);
                let expected: Vec<_> = kept.filter(|event| event.entry.key.path.starts_with(prefix)).collect();
                let mut from = 0;
                for event in &expected {
                    let (number, found) = window.next(prefix, from).unwrap();
                    prop_assert_eq!(&found, *event);
                    prop_assert_eq!(found.entry.is_stale(), event.entry.is_stale());
                    from = number + 1;
                }
                prop_assert!(window.next(prefix, from).is_none());
                for at in window.floor()..=model.events.len() as Revision {
                    let mut before = BTreeMap::new();
                    for event in expected.iter().rev().filter(|event| event.revision > at) {
                        before.insert(event.entry.key.path.clone(), event.previous.clone());
                    }
                    prop_assert_eq!(window.undo(prefix, at), before);
                }
            }
        }
    }

    #[test]
    fn each_value_is_kept_once_and_old_ones_in_little_space() {
        const LENGTH: usize = 10_000;
        let (mut model, mut window) = (Model::default(), Window::starting_at(0, 2));
        for turn in 0..20 {
            let value = format!("{turn:05}{}", "\"key\":\"value\",".repeat(LENGTH / 14));
            push(&mut window, model.write("a", Some(&value)).unwrap());
        }
        let entries = model.events.iter().map(|event| Arc::strong_count(&event.entry));
        // the model's own two, and the window's for what is fresh
        assert!(entries.take(17).all(|holders| holders == 2));
        assert!(window.cost() < 3 * LENGTH + 20 * OVERHEAD, "{}", window.cost());
        let deleted = model.write("a", None).unwrap();
        assert_eq!(deleted.entry.value(), model.events[19].entry.value());
        push(&mut window, deleted);
        assert!(window.cost() < 5 * LENGTH + 21 * OVERHEAD, "{}", window.cost());
    }
}
