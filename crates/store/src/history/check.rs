//! Judges a history: whether one order of transactions explains all that clients were told.

use std::collections::BTreeMap;

use super::{Deed, End, Epoch, Outcome, Page, Query, Record, Seen, Tick, Told, Wanted};
use crate::contract::stamp;
use crate::{EventKind, Expect, ReadError, Revision};

/// What kind of store it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// How many events it keeps at least.
    pub(super) window: usize,
    /// Whether revisions count changes; if not, the changes of a transaction share one, and others may take some.
    pub(super) counted: bool,
}

/// How much was judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) done: usize,
    pub(super) refused: usize,
    /// Transactions of which the client did not learn what became of them, and how many of them happened.
    pub(super) unknown: (usize, usize),
    /// How many of those nobody saw before a power loss, and all afterwards.
    pub(super) recovered: usize,
    pub(super) reads: usize,
    pub(super) watches: usize,
    pub(super) compacted: usize,
}

type Entries = BTreeMap<String, Seen>;

/// What the store held from a revision on.
#[derive(Clone, Debug)]
struct State {
    revision: Revision,
    entries: Entries,
    /// When the transaction that made it began.
    begun: Tick,
    /// Whether its transaction is complete.
    whole: bool,
}

struct Transaction<'a> {
    begin: Tick,
    wanted: &'a [Wanted],
    outcome: &'a Outcome,
    applied: bool,
}

fn given(value: &str) -> &str {
    value.split('@').next().unwrap_or_default()
}

fn stamped(value: &str, revision: Revision) -> String {
    let value = stamp(&value.to_owned().into(), revision);
    String::from_utf8_lossy(&value).into_owned()
}

/// What a change makes of what was there, if its precondition holds.
fn apply(entries: &mut Entries, wanted: &Wanted, revision: Revision) -> Option<(EventKind, Seen, Option<Seen>)> {
    let previous = entries.get(&wanted.path).cloned();
    let written = previous.as_ref().map(|seen| seen.written);
    if !wanted.expect.holds(written) {
        return None;
    }
    match (&wanted.value, previous) {
        (None, None) => None,
        (None, Some(last)) => {
            entries.remove(&wanted.path);
            let gone = Seen {
                value: stamped(given(&last.value), revision),
                written: revision,
                ..last.clone()
            };
            Some((EventKind::Deleted, gone, Some(last)))
        }
        (Some(value), previous) => {
            let (created, version) = previous
                .as_ref()
                .map_or((revision, 1), |last| (last.created, last.version + 1));
            let seen = Seen {
                value: stamped(value, revision),
                created,
                written: revision,
                version,
            };
            entries.insert(wanted.path.clone(), seen.clone());
            let kind = match previous {
                Some(_) => EventKind::Updated,
                None => EventKind::Created,
            };
            Some((kind, seen, previous))
        }
    }
}

/// Which of the transactions, and in which order, lead to what was found after a power loss.
fn explain(
    entries: &Entries,
    revision: Revision,
    pending: &[&[Wanted]],
    found: (Revision, &Entries),
) -> Option<Vec<usize>> {
    fn step(
        entries: &Entries,
        revision: Revision,
        pending: &[&[Wanted]],
        found: (Revision, &Entries),
        order: &mut Vec<usize>,
    ) -> bool {
        if revision == found.0 {
            return entries == found.1;
        }
        for (number, wanted) in pending.iter().enumerate() {
            if order.contains(&number) || revision + wanted.len() as u64 > found.0 {
                continue;
            }
            let mut after = entries.clone();
            let mut at = revision;
            let possible = wanted.iter().all(|one| {
                at += 1;
                apply(&mut after, one, at).is_some()
            });
            order.push(number);
            if possible && step(&after, at, pending, found, order) {
                return true;
            }
            order.pop();
        }
        false
    }
    let mut order = Vec::new();
    step(entries, revision, pending, found, &mut order).then_some(order)
}

/// The newest revision that was known before a moment.
struct Knowledge(Vec<(Tick, Revision)>);

impl Knowledge {
    fn of(epoch: &Epoch) -> Self {
        let mut known = vec![(0, epoch.revision)];
        let of_told = |told: &Told| (told.tick, told.revision);
        known.extend(epoch.log.iter().map(of_told));
        for Record { end, deed, .. } in &epoch.records {
            match deed {
                Deed::Transaction(_, Outcome::Done(seen)) => {
                    known.extend(seen.iter().map(|seen| (*end, seen.written)));
                }
                Deed::Transaction(_, Outcome::Refused(_, Some(seen))) | Deed::Get(_, Some(seen)) => {
                    known.push((*end, seen.written));
                }
                Deed::List(Query { at: None, .. }, Ok(page)) => known.push((*end, page.revision)),
                Deed::Watch { told, .. } => known.extend(told.iter().map(of_told)),
                _ => {}
            }
        }
        known.sort_unstable();
        let mut newest = 0;
        for (_, revision) in &mut known {
            newest = newest.max(*revision);
            *revision = newest;
        }
        Self(known)
    }

    fn before(&self, tick: Tick) -> Revision {
        let count = self.0.partition_point(|(known, _)| *known < tick);
        count
            .checked_sub(1)
            .and_then(|last| self.0.get(last))
            .map_or(0, |(_, revision)| *revision)
    }
}

struct Judge<'a> {
    rules: Rules,
    epoch: &'a Epoch,
    known: Knowledge,
    transactions: Vec<Transaction<'a>>,
    states: Vec<State>,
}

/// Judges a whole history.
///
/// # Errors
/// Says what cannot be.
pub(super) fn check(epochs: &[Epoch], rules: Rules) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut before: Option<Judge<'_>> = None;
    for epoch in epochs {
        if let Some(judge) = before {
            summary.recovered += judge.recovered(epoch)?;
        }
        let mut judge = Judge::new(epoch, rules);
        judge.replay()?;
        judge.reads(&mut summary)?;
        judge.count(&mut summary);
        before = Some(judge);
    }
    Ok(summary)
}

impl<'a> Judge<'a> {
    fn new(epoch: &'a Epoch, rules: Rules) -> Self {
        let transactions = epoch.records.iter().filter_map(|record| match &record.deed {
            Deed::Transaction(wanted, outcome) => Some(Transaction {
                begin: record.begin,
                wanted,
                outcome,
                applied: false,
            }),
            _ => None,
        });
        Self {
            rules,
            epoch,
            known: Knowledge::of(epoch),
            transactions: transactions.collect(),
            states: vec![State {
                revision: epoch.revision,
                entries: epoch.entries.iter().cloned().collect(),
                begun: 0,
                whole: true,
            }],
        }
    }

    fn count(&self, summary: &mut Summary) {
        for transaction in &self.transactions {
            match transaction.outcome {
                Outcome::Done(_) => summary.done += 1,
                Outcome::Refused(..) | Outcome::NotDone => summary.refused += 1,
                Outcome::Unknown => {
                    summary.unknown.0 += 1;
                    summary.unknown.1 += usize::from(transaction.applied);
                }
            }
        }
    }

    fn last(&self) -> &State {
        self.states.last().unwrap()
    }

    /// The transaction whose events begin the rest of the log.
    fn author(&self, rest: &[Told]) -> Result<usize, String> {
        let first = &rest[0];
        let fits = |transaction: &Transaction<'_>| {
            let wanted = transaction.wanted;
            rest.len() >= wanted.len()
                && wanted.iter().zip(rest).enumerate().all(|(number, (wanted, told))| {
                    let revision = match self.rules.counted {
                        true => first.revision + number as u64,
                        false => first.revision,
                    };
                    let value = (told.kind != EventKind::Deleted).then(|| given(&told.entry.value));
                    told.revision == revision && told.path == wanted.path && value == wanted.value.as_deref()
                })
        };
        let done = |transaction: &Transaction<'_>| match transaction.outcome {
            Outcome::Done(seen) => seen.first().is_some_and(|seen| seen.written == first.revision),
            _ => false,
        };
        let unknown = |transaction: &Transaction<'_>| {
            let mut entries = self.last().entries.clone();
            let mut wanted = transaction.wanted.iter();
            matches!(transaction.outcome, Outcome::Unknown)
                && transaction.begin < first.tick
                && first.revision > self.known.before(transaction.begin)
                && wanted.all(|one| apply(&mut entries, one, first.revision).is_some())
        };
        // Deletions of which nobody learned what became of them look alike. One that can only have happened here comes before one that may have
        // happened another time: what it puts is nowhere else, or it expects what is there only now.
        let preference = |transaction: &Transaction<'_>| {
            let wanted = transaction.wanted;
            let puts = wanted.iter().any(|one| one.value.is_some());
            let expects = wanted.iter().any(|one| matches!(one.expect, Expect::Revision(_)));
            (puts, expects, wanted.len())
        };
        let open = || {
            let all = self.transactions.iter().enumerate();
            all.filter(|(_, transaction)| !transaction.applied && fits(transaction))
        };
        open()
            .find(|(_, transaction)| done(transaction))
            .or_else(|| {
                let unknown = open().filter(|(_, transaction)| unknown(transaction));
                unknown.max_by_key(|(_, transaction)| preference(transaction))
            })
            .map(|(number, _)| number)
            .ok_or_else(|| {
                let value = given(&first.entry.value);
                let own = |one: &&Transaction<'_>| one.wanted.iter().any(|part| part.value.as_deref() == Some(value));
                let candidates = self.transactions.iter().filter(own);
                let wanted: Vec<_> = candidates
                    .map(|one| (one.wanted, one.outcome, one.begin, self.known.before(one.begin)))
                    .collect();
                let told = rest.get(..4).unwrap_or(rest);
                format!("no transaction has all of what was told: {told:?}; of that value are {wanted:?}")
            })
    }

    /// Goes through all that the log tells, and finds who did it.
    fn replay(&mut self) -> Result<(), String> {
        let mut rest = &self.epoch.log[..];
        while let Some(first) = rest.first() {
            let number = self.author(rest)?;
            let transaction = &mut self.transactions[number];
            transaction.applied = true;
            let (begin, wanted, outcome) = (transaction.begin, transaction.wanted, transaction.outcome);
            if self.rules.counted && first.revision != self.last().revision + 1 {
                return Err(format!("{first:?} follows revision {}", self.last().revision));
            }
            if first.revision <= self.last().revision || first.revision <= self.known.before(begin) {
                return Err(format!(
                    "{first:?} was wanted when revision {} was known",
                    self.known.before(begin)
                ));
            }
            let (own, later) = rest.split_at(wanted.len());
            let mut entries = self.last().entries.clone();
            for (part, (wanted, told)) in wanted.iter().zip(own).enumerate() {
                if told.tick < begin {
                    return Err(format!("{told:?} was told before it was wanted"));
                }
                let Some(expected) = apply(&mut entries, wanted, told.revision) else {
                    return Err(format!(
                        "{wanted:?} cannot have been done at revision {}",
                        told.revision
                    ));
                };
                let (kind, entry, previous) = &expected;
                if (kind, entry, previous) != (&told.kind, &told.entry, &told.previous) {
                    return Err(format!("told {told:?} instead of {expected:?}"));
                }
                if let Outcome::Done(seen) = outcome
                    && seen.get(part) != Some(entry)
                {
                    return Err(format!("acknowledged {seen:?}, told {told:?}"));
                }
                let state = State {
                    revision: told.revision,
                    entries: entries.clone(),
                    begun: begin,
                    whole: part + 1 == own.len(),
                };
                // of one revision only the whole can be asked for
                if self.rules.counted || state.whole {
                    self.states.push(state);
                }
            }
            rest = later;
        }
        match self
            .transactions
            .iter()
            .find(|one| !one.applied && matches!(one.outcome, Outcome::Done(_)))
        {
            Some(lost) => Err(format!(
                "acknowledged but not there: {:?}, {:?}",
                lost.wanted, lost.outcome
            )),
            None => Ok(()),
        }
    }

    /// What the next start of the store found, compared with what was there before. How many transactions only show now.
    fn recovered(&self, next: &Epoch) -> Result<usize, String> {
        let pending: Vec<&[Wanted]> = self
            .transactions
            .iter()
            .filter(|one| !one.applied && matches!(one.outcome, Outcome::Unknown))
            .map(|one| one.wanted)
            .collect();
        let last = self.last();
        let found: Entries = next.entries.iter().cloned().collect();
        match explain(&last.entries, last.revision, &pending, (next.revision, &found)) {
            Some(order) => Ok(order.len()),
            None => Err(format!(
                "revision {} with {:?} does not follow from revision {} with {:?} and any of {pending:?}",
                next.revision, found, last.revision, last.entries
            )),
        }
    }

    /// The states that a deed may have seen: none that was over when it began, none that was wanted after it ended.
    fn possible(&self, begin: Tick, end: Tick) -> impl Iterator<Item = &State> {
        let known = self.known.before(begin);
        let first = self
            .states
            .iter()
            .rposition(|state| state.whole && state.revision <= known)
            .unwrap_or_default();
        self.states[first..]
            .iter()
            .filter(move |state| state.whole && state.begun < end)
    }

    fn reads(&self, summary: &mut Summary) -> Result<(), String> {
        for record in &self.epoch.records {
            let (begin, end) = (record.begin, record.end);
            let holds = match &record.deed {
                Deed::Transaction(wanted, Outcome::Refused(path, current)) => {
                    let is_refused = |state: &State| {
                        let one = wanted.iter().find(|one| one.path == *path);
                        one.is_some_and(|one| apply(&mut state.entries.clone(), one, 0).is_none())
                    };
                    self.possible(begin, end).any(is_refused)
                        && self
                            .possible(begin, end)
                            .any(|state| state.entries.get(path) == current.as_ref())
                }
                Deed::Transaction(..) => true,
                Deed::Get(path, found) => {
                    summary.reads += 1;
                    self.possible(begin, end)
                        .any(|state| state.entries.get(path) == found.as_ref())
                }
                Deed::List(query, Ok(page)) => {
                    summary.reads += 1;
                    self.listed(begin, end, query, page)
                }
                Deed::List(query, Err(error)) => {
                    summary.compacted += 1;
                    self.missing(begin, query.at.unwrap_or_default(), *error)
                }
                Deed::Watch {
                    prefix,
                    after,
                    told,
                    end,
                } => {
                    summary.watches += 1;
                    summary.compacted += usize::from(matches!(end, End::Failed(_)));
                    self.watched(begin, prefix, *after, told, end)
                }
            };
            if !holds {
                return Err(format!(
                    "{record:?} cannot be; revision {} was known, of {}",
                    self.known.before(begin),
                    self.last().revision
                ));
            }
        }
        Ok(())
    }

    fn listed(&self, begin: Tick, end: Tick, query: &Query, page: &Page) -> bool {
        let newest = self.states.iter().rev().find(|state| state.revision <= page.revision);
        let Some(state) = newest else { return false };
        let fits = match query.at {
            Some(at) => page.revision == at,
            None => {
                state.whole
                    && state.begun < end
                    && page.revision >= self.known.before(begin)
                    && (!self.rules.counted || page.revision == state.revision)
            }
        };
        let after = query.after.as_deref();
        let mut expected = state
            .entries
            .iter()
            .filter(|(path, _)| path.starts_with(&query.prefix) && after.is_none_or(|after| path.as_str() > after));
        let mut given = page.entries.iter();
        fits && given.all(|(path, seen)| expected.next() == Some((path, seen)))
            && query.limit.is_none_or(|limit| page.entries.len() <= limit)
            && expected.count() as u64 == page.remaining
            && (page.remaining == 0 || query.limit == Some(page.entries.len()))
    }

    /// Whether history may be missing from a revision on, or the revision itself.
    fn missing(&self, begin: Tick, from: Revision, error: ReadError) -> bool {
        match error {
            ReadError::Compacted { requested, oldest } => {
                let later = self.epoch.log.iter().filter(|told| told.revision > requested).count();
                requested < oldest && (from < self.epoch.revision || later > self.rules.window)
            }
            ReadError::Future { requested, current } => requested > current && requested > self.known.before(begin),
        }
    }

    fn watched(&self, begin: Tick, prefix: &str, after: Revision, told: &[Told], end: &End) -> bool {
        let of_prefix = |told: &&Told| told.revision > after && told.path.starts_with(prefix);
        let mut expected = self.epoch.log.iter().filter(of_prefix);
        let same = |one: &Told, other: &Told| {
            (one.revision, one.kind, &one.path) == (other.revision, other.kind, &other.path)
                && (&one.entry, &one.previous) == (&other.entry, &other.previous)
        };
        if !told
            .iter()
            .all(|told| expected.next().is_some_and(|expected| same(told, expected)))
        {
            return false;
        }
        let next = expected.next();
        match end {
            End::Left(caught_up) => next.is_none_or(|next| next.revision > *caught_up),
            End::Drained(caught_up) => next.is_none() && *caught_up >= self.last().revision,
            End::Failed(error) => {
                let from = told.last().map_or(after, |last| last.revision);
                self.missing(begin, from, *error)
            }
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn put(path: &str, expect: Expect, value: &str) -> Wanted {
        Wanted {
            path: path.to_owned(),
            expect,
            value: Some(value.to_owned()),
        }
    }

    #[test]
    fn what_a_power_loss_left_is_explained_by_whole_transactions_only() {
        let one = [put("a", Expect::Absent, "1"), put("b", Expect::Absent, "2")];
        let other = [put("a", Expect::Revision(1), "3")];
        let pending = [&other[..], &one[..]];
        let mut entries = Entries::new();
        assert_eq!(explain(&entries, 0, &pending, (0, &entries)), Some(vec![]));
        let mut found = Entries::new();
        apply(&mut found, &one[0], 1);
        assert_eq!(explain(&entries, 0, &pending, (1, &found)), None, "half of one");
        apply(&mut found, &one[1], 2);
        assert_eq!(explain(&entries, 0, &pending, (2, &found)), Some(vec![1]));
        apply(&mut found, &other[0], 3);
        assert_eq!(explain(&entries, 0, &pending, (3, &found)), Some(vec![1, 0]));
        found.remove("b");
        assert_eq!(explain(&entries, 0, &pending, (3, &found)), None);
        entries.clone_from(&found);
        assert_eq!(explain(&entries, 3, &pending, (2, &found)), None, "nothing goes back");
    }
}
