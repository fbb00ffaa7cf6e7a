//! Histories of all backends, and of stores that are wrong.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::check::{Rules, Summary, check};
use super::clients::{Load, Party};
use super::members::Members;
use super::subject::{Events, Plain, Subject};
use super::{Epoch, Recorder};
use crate::contract::{FORM, small, stamp};
use crate::dice::Dice;
use crate::disk::faults::{Disk, Fault};
use crate::etcd::process::{self, Etcd};
use crate::{
    Behind, Change, CommitError, Committed, DiskStore, Entry, Event, Expect, ListOptions, Listing, MemoryStore,
    OpenError, Options, ReadError, Revision, Store,
};

/// The seeds to run: so many, unless the environment wants more.
fn seeds(fixed: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match (number("GARDENER_TEST_HISTORIES"), number("GARDENER_TEST_HISTORY_SEED")) {
        (None, None) => 0..fixed,
        (count, Some(first)) => first..first + count.unwrap_or(1),
        (Some(count), None) => {
            #[allow(clippy::disallowed_methods)] // other seeds each time are wanted
            let now = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap();
            let first = now.as_secs() << 20;
            first..first + count
        }
    }
}

fn options(window: usize) -> Options {
    Options {
        events_per_topic: window,
        max_value: 1 << 10,
        ..small()
    }
}

fn rules(window: usize) -> Rules {
    Rules { window, counted: true }
}

fn judged(seed: u64, epochs: &[Epoch], rules: Rules) -> Summary {
    check(epochs, rules).unwrap_or_else(|wrong| panic!("GARDENER_TEST_HISTORY_SEED={seed}: {wrong}"))
}

fn window(seed: u64) -> usize {
    match seed % 3 {
        0 => 40,
        _ => 10_000,
    }
}

const LOAD: Load = Load { clients: 5, deeds: 60 };

async fn memory(seed: u64, wrap: impl FnOnce(Arc<dyn Subject>) -> Arc<dyn Subject>) -> Vec<Epoch> {
    let store = MemoryStore::new(FORM, options(window(seed)));
    let subject = wrap(Arc::new(Plain(Arc::new(store))));
    vec![
        Party::new(&Arc::default(), &Arc::default(), vec![subject])
            .run(LOAD, seed)
            .await,
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_can_be_explained() {
    let mut all = Summary::default();
    for seed in seeds(12) {
        let epochs = memory(seed, |subject| subject).await;
        let summary = judged(seed, &epochs, rules(window(seed)));
        assert!(
            summary.done > 20 && summary.reads > 20 && summary.watches > 20,
            "{summary:?}"
        );
        all.refused += summary.refused;
        all.compacted += summary.compacted;
    }
    assert!(all.refused > 0 && all.compacted > 0, "{all:?}");
}

fn disk_subject(store: &Arc<DiskStore>) -> Arc<dyn Subject> {
    Arc::new(Plain(Arc::clone(store) as Arc<dyn Store>))
}

/// Starts and crashes.
async fn disk(seed: u64, lies: bool) -> Result<Vec<Epoch>, OpenError> {
    let mut dice = Dice::new(seed);
    let disk = Disk::new(seed);
    let (recorder, values) = (Arc::<Recorder>::default(), Arc::<AtomicU64>::default());
    let mut epochs = Vec::new();
    for _ in 0..5 {
        let store = Arc::new(DiskStore::open_in(disk.clone(), FORM, options(window(seed)))?);
        let party = Party::new(&recorder, &values, vec![disk_subject(&store)]);
        let after = dice.below(300);
        match dice.below(6) {
            _ if lies => disk.lie(),
            0 => disk.fail_after(after, Fault::Gone),
            1 => disk.fail_after(after, Fault::TornWrite),
            2 => disk.fail_after(after, Fault::FailedSync),
            3 => disk.fail_after(after, Fault::Panic),
            4 => disk.limit(Some((after / 20) as usize)),
            _ => disk.slow_down(Duration::from_millis(after / 100)),
        }
        // or the power goes while all is well
        let goes = dice.below(LOAD.clients * LOAD.deeds * 2);
        let (cut, watched) = (disk.clone(), Arc::clone(&party));
        let power = tokio::spawn(async move {
            while watched.done() < goes {
                tokio::task::yield_now().await;
            }
            cut.lose_power();
        });
        epochs.push(party.run(LOAD, seed ^ dice.below(1 << 20)).await);
        power.abort();
        drop(party);
        drop(store);
        disk.lose_power();
    }
    let store = Arc::new(DiskStore::open_in(disk.clone(), FORM, options(window(seed)))?);
    let party = Party::new(&recorder, &values, vec![disk_subject(&store)]);
    epochs.push(party.run(Load { clients: 1, deeds: 5 }, seed).await);
    Ok(epochs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_disk_that_fails_can_be_explained() {
    let mut all = Summary::default();
    for seed in seeds(6) {
        let epochs = disk(seed, false).await.unwrap();
        let summary = judged(seed, &epochs, rules(window(seed)));
        all.done += summary.done;
        all.unknown.0 += summary.unknown.0;
        all.recovered += summary.recovered;
    }
    assert!(all.done > 100 && all.unknown.0 > 10, "{all:?}");
}

/// Two servers on one etcd that is killed again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_etcd_that_is_killed_can_be_explained() {
    let Some(program) = process::program() else { return };
    for seed in seeds(2) {
        let mut etcd = Etcd::start(&program).await.unwrap();
        let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
        for _ in 0..2 {
            let store = etcd.store(FORM, options(10_000)).await.unwrap();
            subjects.push(Arc::new(Plain(Arc::new(store))));
        }
        let party = Party::new(&Arc::default(), &Arc::default(), subjects);
        let watched = Arc::clone(&party);
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let kills = tokio::spawn(async move {
            let mut dice = Dice::new(seed);
            for kill in 1..4 {
                while watched.done() < kill * LOAD.clients * LOAD.deeds / 4 && !ended.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                etcd.kill().await;
                tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
                etcd.again().await.unwrap();
            }
            etcd
        });
        let epochs = vec![party.run(LOAD, seed).await];
        over.store(true, Ordering::SeqCst);
        let summary = judged(
            seed,
            &epochs,
            Rules {
                window: 10_000,
                counted: false,
            },
        );
        assert!(summary.done > 50, "{summary:?}");
        drop(kills.await.unwrap());
    }
}

/// Three servers on three members, each of which is killed once: so is the one that leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_etcd_whose_leader_changes_can_be_explained() {
    let Some(program) = process::program() else { return };
    for seed in seeds(1) {
        let mut members = Members::start(&program);
        let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
        for first in 0..3 {
            subjects.push(Arc::new(Plain(Arc::new(members.store(first, options(10_000)).await))));
        }
        let party = Party::new(&Arc::default(), &Arc::default(), subjects);
        let watched = Arc::clone(&party);
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let kills = tokio::spawn(async move {
            for member in 0..3 {
                let done = (member as u64 + 1) * LOAD.clients * LOAD.deeds / 5;
                while watched.done() < done && !ended.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                members.kill(member);
                // the others go on meanwhile
                tokio::time::sleep(Duration::from_millis(1500)).await;
                members.again(member);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            members
        });
        let epochs = vec![party.run(LOAD, seed).await];
        over.store(true, Ordering::SeqCst);
        let rules = Rules {
            window: 10_000,
            counted: false,
        };
        let summary = judged(seed, &epochs, rules);
        assert!(summary.done > 50, "{summary:?}");
        drop(kills.await.unwrap());
    }
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    LosesAnEvent,
    DoublesAnEvent,
    SwapsEvents,
    ReadsAnOldValue,
    ListsAnOldState,
    ListsHalf,
    IgnoresPreconditions,
    TearsTransactions,
    AcknowledgesEarly,
    SaysNoAndDoesIt,
}

/// A store that is right until its moment comes.
struct Mutant {
    inner: Arc<dyn Subject>,
    wrong: Wrong,
    /// Counts down.
    moment: Arc<AtomicU64>,
    fired: Arc<AtomicBool>,
    old: Mutex<std::collections::BTreeMap<String, Option<Arc<Entry>>>>,
}

impl Mutant {
    fn now(&self, wrong: Wrong) -> bool {
        self.wrong == wrong && now(&self.moment)
    }

    fn fire(&self) {
        self.fired.store(true, Ordering::SeqCst);
    }
}

fn now(moment: &AtomicU64) -> bool {
    let counted = moment.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    counted == Ok(1)
}

#[async_trait]
impl Subject for Mutant {
    async fn commit(&self, mut changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        if self.wrong == Wrong::IgnoresPreconditions {
            for change in &mut changes {
                let (Change::Put { expect, .. } | Change::Delete { expect, .. }) = change;
                if *expect != Expect::Any {
                    *expect = Expect::Any;
                    self.fire();
                }
            }
        }
        if self.wrong == Wrong::TearsTransactions && changes.len() > 1 {
            self.fire();
            let mut all = Vec::new();
            for change in changes {
                all.extend(self.inner.commit(vec![change]).await?);
                tokio::task::yield_now().await;
            }
            return Ok(all);
        }
        if self.now(Wrong::SaysNoAndDoesIt) {
            self.inner.commit(changes).await?;
            self.fire();
            return Err(CommitError::Unreachable { reason: "no".into() });
        }
        if self.wrong == Wrong::AcknowledgesEarly
            && let [
                Change::Put {
                    key,
                    expect: Expect::Any,
                    value,
                },
            ] = &changes[..]
            && now(&self.moment)
        {
            // what it will be, if nobody comes before
            let current = self.inner.get(&key.path);
            let revision = self.inner.list("", &ListOptions::default()).unwrap().revision + 1;
            let entry = Arc::new(Entry::new(
                key.clone(),
                stamp(value, revision),
                current.as_ref().map_or(revision, |entry| entry.create_revision),
                revision,
                current.map_or(1, |entry| entry.version() + 1),
            ));
            self.fire();
            return Ok(vec![Committed { revision, entry }]);
        }
        self.inner.commit(changes).await
    }

    async fn catch_up(&self) -> Result<(), Behind> {
        self.inner.catch_up().await
    }

    fn get(&self, path: &str) -> Option<Arc<Entry>> {
        let found = self.inner.get(path);
        let mut old = self.old.lock();
        let first = old.entry(path.to_owned()).or_insert_with(|| found.clone());
        if self.wrong == Wrong::ReadsAnOldValue && *first != found && now(&self.moment) {
            self.fire();
            return first.clone();
        }
        found
    }

    fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        let listing = self.inner.list(prefix, options)?;
        if options.at.is_none() && listing.revision > 5 && self.now(Wrong::ListsAnOldState) {
            self.fire();
            let at = Some(listing.revision - 4);
            return self.inner.list(prefix, &ListOptions { at, ..options.clone() });
        }
        if listing.entries.len() > 1 && self.now(Wrong::ListsHalf) {
            self.fire();
            return Ok(Listing {
                entries: listing.entries[1..].to_vec(),
                ..listing
            });
        }
        Ok(listing)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Events>, ReadError> {
        Ok(Box::new(WrongEvents {
            inner: self.inner.watch(prefix, after)?,
            wrong: self.wrong,
            moment: Arc::clone(&self.moment),
            fired: Arc::clone(&self.fired),
            next: Vec::new(),
        }))
    }
}

struct WrongEvents {
    inner: Box<dyn Events>,
    wrong: Wrong,
    moment: Arc<AtomicU64>,
    fired: Arc<AtomicBool>,
    next: Vec<Event>,
}

#[async_trait]
impl Events for WrongEvents {
    async fn next(&mut self) -> Result<Event, ReadError> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            let event = self.inner.next().await?;
            self.next.push(event);
        }
    }

    fn try_next(&mut self) -> Result<Option<Event>, ReadError> {
        if let Some(event) = self.next.pop() {
            return Ok(Some(event));
        }
        let Some(event) = self.inner.try_next()? else {
            return Ok(None);
        };
        let of_events = [Wrong::LosesAnEvent, Wrong::DoublesAnEvent, Wrong::SwapsEvents];
        if !of_events.contains(&self.wrong) || !now(&self.moment) {
            return Ok(Some(event));
        }
        match self.wrong {
            Wrong::LosesAnEvent => {
                self.fired.store(true, Ordering::SeqCst);
                self.try_next()
            }
            Wrong::DoublesAnEvent => {
                self.fired.store(true, Ordering::SeqCst);
                self.next.push(event.clone());
                Ok(Some(event))
            }
            _ => match self.inner.try_next()? {
                Some(second) => {
                    self.fired.store(true, Ordering::SeqCst);
                    self.next.push(event);
                    Ok(Some(second))
                }
                None => {
                    // there is none to swap with yet: another time
                    self.moment.store(1, Ordering::SeqCst);
                    Ok(Some(event))
                }
            },
        }
    }

    fn caught_up(&self) -> Revision {
        self.inner.caught_up()
    }
}

/// How often a wrong store is to show: whether it does depends on what the clients of a seed do.
const SHOWS: usize = 5;

/// How often a wrong store showed, and how often it was seen to be wrong.
async fn caught(wrong: Wrong) -> (usize, usize) {
    let (mut showed, mut found) = (0, 0);
    for seed in 0..100 {
        if showed == SHOWS {
            break;
        }
        let fired = Arc::<AtomicBool>::default();
        let wrap = |inner| -> Arc<dyn Subject> {
            Arc::new(Mutant {
                inner,
                wrong,
                moment: Arc::new(AtomicU64::new(3 + seed * 5 % 17)),
                fired: Arc::clone(&fired),
                old: Mutex::default(),
            })
        };
        let epochs = memory(3 * seed + 1, wrap).await;
        let fired = fired.load(Ordering::SeqCst);
        let refuted = check(&epochs, rules(10_000));
        assert!(fired || refuted.is_ok(), "{wrong:?}: {refuted:?}");
        showed += usize::from(fired);
        found += usize::from(refuted.is_err());
    }
    (showed, found)
}

/// On one thread and in virtual time, where a seed always gives the same history. With more, a store may be wrong at a moment when it cannot
/// be told from a right one: an old value is right for one who began to read before the new one was acknowledged.
#[tokio::test(start_paused = true)]
async fn a_wrong_store_is_found_out() {
    use Wrong::{
        AcknowledgesEarly, DoublesAnEvent, IgnoresPreconditions, ListsAnOldState, ListsHalf, LosesAnEvent,
        ReadsAnOldValue, SaysNoAndDoesIt, SwapsEvents, TearsTransactions,
    };
    for wrong in [
        LosesAnEvent,
        DoublesAnEvent,
        SwapsEvents,
        ReadsAnOldValue,
        ListsAnOldState,
        ListsHalf,
        IgnoresPreconditions,
        TearsTransactions,
        AcknowledgesEarly,
        SaysNoAndDoesIt,
    ] {
        let (showed, found) = caught(wrong).await;
        assert_eq!(showed, SHOWS, "{wrong:?} hardly ever shows");
        assert_eq!(found, showed, "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_disk_that_lies_is_found_out() {
    let mut found = 0;
    for seed in 0..4 {
        // it may be so bad that the store itself finds out
        found += match disk(seed, true).await {
            Ok(epochs) => usize::from(check(&epochs, rules(window(seed))).is_err()),
            Err(damage) => usize::from(matches!(damage, OpenError::Damaged { .. })),
        };
    }
    assert_eq!(found, 4);
}
