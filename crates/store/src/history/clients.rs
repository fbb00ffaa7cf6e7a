//! Clients that do at random what clients do, and write down what they saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::subject::{Events, Subject};
use super::{Deed, End, Epoch, Outcome, Page, Query, Recorder, Seen, Tick, Told, Wanted};
use crate::contract::key;
use crate::dice::Dice;
use crate::{Change, CommitError, Event, Expect, ListOptions, ReadError, Revision};

const PATHS: [&str; 6] = ["c/a", "c/b", "c/n/a", "c/n/b", "d/a", "d/b"];
const PREFIXES: [&str; 4] = ["", "c/", "c/n/", "d/"];

/// How much is done in an epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) clients: u64,
    pub(super) deeds: u64,
}

/// The watch that sees everything: looked at after each deed.
struct Auditor {
    events: Box<dyn Events>,
    log: Vec<Told>,
    failed: Option<ReadError>,
}

/// One start of a store, with all who use it.
pub(super) struct Party {
    recorder: Arc<Recorder>,
    subjects: Vec<Arc<dyn Subject>>,
    auditor: Mutex<Auditor>,
    epoch: Mutex<Epoch>,
    /// The newest revision that anybody has seen.
    newest: AtomicU64,
    values: Arc<AtomicU64>,
    over: AtomicBool,
    done: AtomicU64,
}

fn told(tick: Tick, event: &Event) -> Told {
    Told {
        tick,
        revision: event.revision,
        kind: event.kind,
        path: event.entry.key.path.to_string(),
        entry: Seen::from(&*event.entry),
        previous: event.previous.as_deref().map(Seen::from),
    }
}

fn page(listing: &crate::Listing) -> Page {
    Page {
        entries: listing
            .entries
            .iter()
            .map(|entry| (entry.key.path.to_string(), Seen::from(&**entry)))
            .collect(),
        revision: listing.revision,
        remaining: listing.remaining,
    }
}

fn options(query: &Query) -> ListOptions {
    ListOptions {
        at: query.at,
        after: query.after.clone(),
        limit: query.limit,
    }
}

impl Party {
    /// Meets at a store that was just opened. All subjects are the same store.
    pub(super) fn new(recorder: &Arc<Recorder>, values: &Arc<AtomicU64>, subjects: Vec<Arc<dyn Subject>>) -> Arc<Self> {
        let start = page(&subjects[0].list("", &ListOptions::default()).unwrap());
        let events = subjects[0].watch("", start.revision).unwrap();
        Arc::new(Self {
            recorder: Arc::clone(recorder),
            subjects,
            auditor: Mutex::new(Auditor {
                events,
                log: Vec::new(),
                failed: None,
            }),
            newest: AtomicU64::new(start.revision),
            epoch: Mutex::new(Epoch {
                revision: start.revision,
                entries: start.entries,
                ..Epoch::default()
            }),
            values: Arc::clone(values),
            over: AtomicBool::new(false),
            done: AtomicU64::new(0),
        })
    }

    /// How many deeds were done.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Lets clients do what they do until they have done enough, or the store takes no more. Then all watches are read to their end.
    pub(super) async fn run(self: &Arc<Self>, load: Load, seed: u64) -> Epoch {
        let clients: Vec<_> = (0..load.clients)
            .map(|number| {
                let dice = Dice::new(seed.wrapping_mul(1009) + number);
                let client = Client {
                    party: Arc::clone(self),
                    subject: Arc::clone(&self.subjects[number as usize % self.subjects.len()]),
                    dice,
                    watch: None,
                };
                tokio::spawn(client.run(load.deeds))
            })
            .collect();
        let watchers: Vec<_> = (0..3)
            .map(|number| {
                let subject = Arc::clone(&self.subjects[number % self.subjects.len()]);
                tokio::spawn(Arc::clone(self).follow(subject, PREFIXES[number]))
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        for subject in &self.subjects {
            while subject.catch_up().await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        self.over.store(true, Ordering::SeqCst);
        for watcher in watchers {
            watcher.await.unwrap();
        }
        self.audit();
        self.resume_everywhere();
        let mut epoch = std::mem::take(&mut *self.epoch.lock());
        let mut auditor = self.auditor.lock();
        assert!(
            auditor.failed.is_none(),
            "the auditor was too slow: {:?}",
            auditor.failed
        );
        epoch.log = std::mem::take(&mut auditor.log);
        epoch.records = self.recorder.take();
        epoch
    }

    fn saw(&self, revision: Revision) {
        self.newest.fetch_max(revision, Ordering::SeqCst);
    }

    fn audit(&self) {
        let mut auditor = self.auditor.lock();
        loop {
            match auditor.events.try_next() {
                Ok(Some(event)) => {
                    self.saw(event.revision);
                    let told = told(self.recorder.tick(), &event);
                    auditor.log.push(told);
                }
                Ok(None) => return,
                Err(error) => {
                    auditor.failed = Some(error);
                    return;
                }
            }
        }
    }

    /// Follows a prefix to the end, as one who waits for events.
    async fn follow(self: Arc<Self>, subject: Arc<dyn Subject>, prefix: &'static str) {
        let mut after = self.epoch.lock().revision;
        loop {
            let begin = self.recorder.tick();
            let mut events = match subject.watch(prefix, after) {
                Ok(events) => events,
                Err(error) => {
                    self.watched(begin, prefix, after, Vec::new(), End::Failed(error));
                    after = restart_at(error);
                    continue;
                }
            };
            let mut all = Vec::new();
            let end = loop {
                let next = tokio::select! {
                    biased;
                    next = events.next() => next.map(Some),
                    () = tokio::time::sleep(std::time::Duration::from_millis(5)) => Ok(None),
                };
                match next {
                    Ok(Some(event)) => {
                        self.saw(event.revision);
                        all.push(told(self.recorder.tick(), &event));
                    }
                    Ok(None) if self.over.load(Ordering::SeqCst) => match events.try_next() {
                        Ok(None) => break End::Drained(events.caught_up()),
                        Ok(Some(event)) => all.push(told(self.recorder.tick(), &event)),
                        Err(error) => break End::Failed(error),
                    },
                    Ok(None) => {}
                    Err(error) => break End::Failed(error),
                }
            };
            self.watched(begin, prefix, after, all, end.clone());
            match end {
                End::Failed(error) => after = restart_at(error),
                _ => return,
            }
        }
    }

    fn watched(&self, begin: Tick, prefix: &str, after: Revision, told: Vec<Told>, end: End) {
        let prefix = prefix.to_owned();
        self.recorder.record(
            begin,
            Deed::Watch {
                prefix,
                after,
                told,
                end,
            },
        );
    }

    /// From wherever a watch begins, the same comes.
    fn resume_everywhere(&self) {
        let newest = self.newest.load(Ordering::SeqCst);
        let start = self.epoch.lock().revision;
        let step = usize::try_from((newest - start) / 25 + 1).unwrap();
        for after in (start.saturating_sub(1)..=newest).step_by(step) {
            for (subject, prefix) in self.subjects.iter().zip(["", "c/"]) {
                let begin = self.recorder.tick();
                let (mut all, end) = match subject.watch(prefix, after) {
                    Err(error) => (Vec::new(), End::Failed(error)),
                    Ok(mut events) => {
                        let mut all = Vec::new();
                        let end = loop {
                            match events.try_next() {
                                Ok(Some(event)) => all.push(told(self.recorder.tick(), &event)),
                                Ok(None) => break End::Drained(events.caught_up()),
                                Err(error) => break End::Failed(error),
                            }
                        };
                        (all, end)
                    }
                };
                self.watched(begin, prefix, after, std::mem::take(&mut all), end);
            }
        }
    }
}

fn restart_at(error: ReadError) -> Revision {
    match error {
        ReadError::Compacted { oldest, .. } => oldest,
        ReadError::Future { current, .. } => current,
    }
}

struct Client {
    party: Arc<Party>,
    subject: Arc<dyn Subject>,
    dice: Dice,
    watch: Option<Watching>,
}

struct Watching {
    begin: Tick,
    prefix: &'static str,
    after: Revision,
    events: Box<dyn Events>,
    told: Vec<Told>,
}

impl Client {
    async fn run(mut self, deeds: u64) {
        let mut left = deeds;
        while left > 0 {
            left -= 1;
            let goes_on = self.act().await;
            self.party.done.fetch_add(1, Ordering::SeqCst);
            self.party.audit();
            if !goes_on {
                // the store takes no more: a few reads yet, they must go on
                left = left.min(4);
            }
            for _ in 0..self.dice.below(3) {
                tokio::task::yield_now().await;
            }
        }
        self.leave();
    }

    async fn act(&mut self) -> bool {
        match self.dice.below(20) {
            0..=10 => return self.write().await,
            11..=13 => {
                let path = self.path();
                self.read(path).await;
            }
            14..=16 => self.list().await,
            _ => self.look().await,
        }
        true
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.dice.below(PATHS.len() as u64) as usize]
    }

    fn prefix(&mut self) -> &'static str {
        PREFIXES[self.dice.below(PREFIXES.len() as u64) as usize]
    }

    async fn wanted(&mut self, path: &str) -> Wanted {
        let found = self.read(path).await.map(|seen| seen.written);
        let expect = match (self.dice.below(8), found) {
            (0..=2, _) => Expect::Any,
            // what was seen a moment ago, mostly
            (3..=5, Some(revision)) => Expect::Revision(revision),
            (3..=5, None) | (6, _) => Expect::Absent,
            _ => Expect::Present,
        };
        let value = (!self.dice.one_in(4)).then(|| self.party.values.fetch_add(1, Ordering::SeqCst).to_string());
        Wanted {
            path: path.to_owned(),
            expect,
            value,
        }
    }

    async fn write(&mut self) -> bool {
        let mut paths = vec![self.path()];
        if self.dice.one_in(3) {
            for _ in 0..2 {
                let another = self.path();
                if !paths.contains(&another) {
                    paths.push(another);
                }
            }
        }
        let mut all = Vec::with_capacity(paths.len());
        for path in paths {
            all.push(self.wanted(path).await);
        }
        let changes = all.iter().map(|one| match &one.value {
            Some(value) => Change::Put {
                key: key(&one.path),
                expect: one.expect,
                value: Bytes::copy_from_slice(value.as_bytes()),
            },
            None => Change::Delete {
                key: key(&one.path),
                expect: one.expect,
            },
        });
        let changes = changes.collect();
        // A client that goes away before it is answered; not one of whose deletions nobody could say later whose they are.
        let told_apart = |one: &Wanted| one.value.is_some() || matches!(one.expect, Expect::Revision(_));
        let patience = match all.iter().all(told_apart) && self.dice.one_in(10) {
            true => self.dice.below(6),
            false => u64::MAX,
        };
        let begin = self.party.recorder.tick();
        let answered = tokio::select! {
            biased;
            answered = self.subject.commit(changes) => Some(answered),
            () = moments(patience) => None,
        };
        let (outcome, goes_on) = match answered {
            None => (Outcome::Unknown, true),
            Some(Ok(committed)) => {
                let seen: Vec<Seen> = committed.iter().map(|one| Seen::from(&*one.entry)).collect();
                committed.iter().for_each(|one| self.party.saw(one.revision));
                assert!(committed.iter().all(|one| one.revision == one.entry.mod_revision));
                (Outcome::Done(seen), true)
            }
            Some(Err(CommitError::Conflict { key, current })) => {
                let current = current.as_deref().map(Seen::from);
                (Outcome::Refused(key.path.to_string(), current), true)
            }
            Some(Err(CommitError::Unreachable { .. })) => (Outcome::NotDone, true),
            Some(Err(CommitError::Unknown { .. })) => (Outcome::Unknown, true),
            Some(Err(CommitError::Unavailable { .. })) => (Outcome::Unknown, false),
            Some(Err(other)) => panic!("{other}"),
        };
        self.party.recorder.record(begin, Deed::Transaction(all, outcome));
        goes_on
    }

    /// Reads a key; none, too, where nobody can tell what is there.
    async fn read(&mut self, path: &str) -> Option<Seen> {
        let begin = self.party.recorder.tick();
        self.subject.catch_up().await.ok()?;
        let found = self.subject.get(path).as_deref().map(Seen::from);
        found.iter().for_each(|seen| self.party.saw(seen.written));
        self.party
            .recorder
            .record(begin, Deed::Get(path.to_owned(), found.clone()));
        found
    }

    async fn list(&mut self) {
        let mut query = Query {
            prefix: self.prefix().to_owned(),
            ..Query::default()
        };
        if self.dice.one_in(2) {
            query.limit = Some(1 + self.dice.below(3) as usize);
        }
        if self.dice.one_in(4) {
            query.at = Some(self.revision());
        }
        loop {
            let begin = self.party.recorder.tick();
            if self.subject.catch_up().await.is_err() {
                return;
            }
            let listed = self
                .subject
                .list(&query.prefix, &options(&query))
                .as_ref()
                .map(page)
                .map_err(|error| *error);
            self.party
                .recorder
                .record(begin, Deed::List(query.clone(), listed.clone()));
            let Ok(page) = listed else { return };
            self.party.saw(page.revision);
            if page.remaining == 0 {
                return;
            }
            query.at = Some(page.revision);
            query.after = page.entries.last().map(|(path, _)| path.clone());
            tokio::task::yield_now().await;
        }
    }

    /// A revision of the recent past.
    fn revision(&mut self) -> Revision {
        let newest = self.party.newest.load(Ordering::SeqCst);
        newest.saturating_sub(self.dice.below(12) * self.dice.below(12))
    }

    /// Reads some events of a watch of its own.
    async fn look(&mut self) {
        if self.watch.is_some() && self.dice.one_in(5) {
            self.leave();
        }
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => {
                let (prefix, after) = (self.prefix(), self.revision());
                let begin = self.party.recorder.tick();
                // another server on the same etcd may have seen more
                if self.subject.catch_up().await.is_err() {
                    return;
                }
                match self.subject.watch(prefix, after) {
                    Ok(events) => Watching {
                        begin,
                        prefix,
                        after,
                        events,
                        told: Vec::new(),
                    },
                    Err(error) => return self.party.watched(begin, prefix, after, Vec::new(), End::Failed(error)),
                }
            }
        };
        for _ in 0..self.dice.below(12) {
            match watch.events.try_next() {
                Ok(Some(event)) => {
                    self.party.saw(event.revision);
                    watch.told.push(told(self.party.recorder.tick(), &event));
                }
                Ok(None) => break,
                Err(error) => {
                    let Watching {
                        begin,
                        prefix,
                        after,
                        told,
                        ..
                    } = watch;
                    return self.party.watched(begin, prefix, after, told, End::Failed(error));
                }
            }
        }
        self.watch = Some(watch);
    }

    fn leave(&mut self) {
        if let Some(watch) = self.watch.take() {
            let caught_up = watch.events.caught_up();
            self.party
                .watched(watch.begin, watch.prefix, watch.after, watch.told, End::Left(caught_up));
        }
    }
}

async fn moments(count: u64) {
    if count == u64::MAX {
        std::future::pending::<()>().await;
    }
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}
