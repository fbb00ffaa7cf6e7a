//! The store against a model: a map and the history of all its states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::contract::{FORM, delete, key, pods, put, small, stamp};
use crate::{Change, CommitError, EventKind, Expect, ListOptions, MemoryStore, ReadError, Revision, Store};

/// Path to (value as given, created, written, version).
type State = BTreeMap<String, (String, Revision, Revision, u64)>;

#[derive(Clone, Debug)]
struct Op {
    path: String,
    expect: Expect,
    value: Option<String>,
}

impl Op {
    fn change(&self) -> Change {
        match &self.value {
            Some(value) => put(&self.path, self.expect, value),
            None => delete(&self.path, self.expect),
        }
    }
}

/// The states after each change, or none if one of them is refused.
fn apply(mut state: State, mut revision: Revision, ops: &[Op]) -> Option<Vec<State>> {
    let mut states = Vec::new();
    let paths: BTreeSet<_> = ops.iter().map(|op| &op.path).collect();
    if paths.len() < ops.len() {
        return None;
    }
    for op in ops {
        let found = state.get(&op.path).cloned();
        let written = found.as_ref().map(|found| found.2);
        let holds = match op.expect {
            Expect::Any => true,
            Expect::Absent => written.is_none(),
            Expect::Present => written.is_some(),
            Expect::Revision(revision) => written == Some(revision),
        };
        if !holds || (op.value.is_none() && found.is_none()) {
            return None;
        }
        revision += 1;
        match &op.value {
            Some(value) => {
                let (created, version) = found.map_or((revision, 1), |old| (old.1, old.3 + 1));
                let row = (value.clone(), created, revision, version);
                state.insert(op.path.clone(), row);
            }
            None => {
                state.remove(&op.path);
            }
        }
        states.push(state.clone());
    }
    Some(states)
}

fn any_op() -> impl Strategy<Value = Op> {
    let path = prop_oneof![Just("c/a"), Just("c/b"), Just("c/n/a"), Just("d/a")];
    let expect = prop_oneof![
        4 => Just(Expect::Any),
        1 => Just(Expect::Absent),
        1 => Just(Expect::Present),
        2 => (1u64..12).prop_map(Expect::Revision),
    ];
    (path, expect, proptest::option::weighted(0.7, "[a-z]{1,3}")).prop_map(|(path, expect, value)| Op {
        path: path.to_owned(),
        expect,
        value,
    })
}

fn shown(state: &State, prefix: &str) -> Vec<(String, Vec<u8>, Revision, Revision, u64)> {
    state
        .iter()
        .filter(|(path, _)| path.starts_with(prefix))
        .map(|(path, (value, created, written, version))| {
            let stamped = stamp(&value.clone().into(), *written).to_vec();
            (path.clone(), stamped, *created, *written, *version)
        })
        .collect()
}

fn listed(listing: &crate::Listing) -> Vec<(String, Vec<u8>, Revision, Revision, u64)> {
    listing
        .entries
        .iter()
        .map(|entry| {
            (
                entry.key.path.to_string(),
                entry.value().to_vec(),
                entry.create_revision,
                entry.mod_revision,
                entry.version(),
            )
        })
        .collect()
}

/// Runs groups of changes on store and model, then compares every snapshot, page and event still kept with the history.
async fn compare(store: Arc<dyn Store>, groups: Vec<Vec<Op>>) {
    let mut history = vec![State::new()];
    for ops in groups {
        let before = history.last().unwrap().clone();
        let expected = apply(before, history.len() as u64 - 1, &ops);
        let done = store.commit_all(ops.iter().map(Op::change).collect()).await;
        match expected {
            Some(states) => {
                assert_eq!(done.unwrap().len(), states.len());
                history.extend(states);
            }
            None => assert!(matches!(
                done,
                Err(CommitError::Conflict { .. } | CommitError::Repeated { .. })
            )),
        }
    }
    let newest = history.len() as u64 - 1;
    assert_eq!(store.revision(), newest);
    let oldest = newest.saturating_sub(small().events_per_topic as u64);
    for (at, state) in (0..).zip(&history) {
        for prefix in ["", "c/", "c/n/"] {
            let options = |after, limit| ListOptions {
                at: Some(at),
                after,
                limit,
            };
            let expected = shown(state, prefix);
            match store.list(&pods(), prefix, &options(None, None)) {
                Ok(listing) if at >= oldest => assert_eq!(listed(&listing), expected),
                Err(ReadError::Compacted { requested, oldest }) => {
                    assert!(requested == at && at < oldest);
                    assert!(store.watch(&pods(), prefix, at).is_err());
                    continue;
                }
                other => panic!("{other:?} at {at}"),
            }
            // Page by page the same, and `remaining` says what is left.
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = store.list(&pods(), prefix, &options(after, Some(2))).unwrap();
                pages.extend(listed(&page));
                assert_eq!(page.remaining as usize, expected.len() - pages.len());
                if page.remaining == 0 {
                    break;
                }
                after = pages.last().map(|last| last.0.clone());
            }
            assert_eq!(pages, expected);
            // Events lead from this state through all later ones.
            let mut replayed: BTreeMap<String, Revision> = state
                .iter()
                .filter(|(path, _)| path.starts_with(prefix))
                .map(|(path, row)| (path.clone(), row.2))
                .collect();
            let mut watch = store.watch(&pods(), prefix, at).unwrap();
            while let Some(event) = watch.try_next().unwrap() {
                let path = event.entry.key.path.to_string();
                let previous = event.previous.as_ref().map(|entry| entry.mod_revision);
                assert_eq!(replayed.get(&path).copied(), previous);
                assert_eq!(event.entry.mod_revision, event.revision);
                match event.kind {
                    EventKind::Deleted => replayed.remove(&path),
                    _ => replayed.insert(path, event.revision),
                };
                let then = &history[event.revision as usize];
                let expected: BTreeMap<String, Revision> = then
                    .iter()
                    .filter(|(path, _)| path.starts_with(prefix))
                    .map(|(path, row)| (path.clone(), row.2))
                    .collect();
                assert_eq!(replayed, expected);
            }
            assert_eq!(watch.caught_up(), newest);
        }
    }
    let last = history.last().unwrap();
    for path in ["c/a", "c/b", "c/n/a", "d/a"] {
        let found = store.get(&key(path)).map(|entry| entry.mod_revision);
        assert_eq!(found, last.get(path).map(|row| row.2));
    }
    assert_eq!(store.count(&pods(), ""), last.len());
}

fn any_groups() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let group = (proptest::collection::vec(any_op(), 1..4), proptest::bool::weighted(0.8));
    let group = group.prop_map(|(mut ops, distinct)| {
        let mut seen = BTreeSet::new();
        ops.retain(|op: &Op| seen.insert(op.path.clone()) || !distinct);
        ops
    });
    proptest::collection::vec(group, 0..16)
}

fn run(store: Arc<dyn Store>, groups: Vec<Vec<Op>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(compare(store, groups));
}

proptest! {
    #[test]
    fn memory_does_what_the_model_does(groups in any_groups()) {
        run(Arc::new(MemoryStore::new(FORM, small())), groups);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn disk_does_what_the_model_does(groups in any_groups()) {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(crate::DiskStore::open(dir.path(), FORM, small()).unwrap());
        run(store.clone(), groups);
        let before = store.list(&pods(), "", &ListOptions::default()).unwrap();
        drop(store);
        let store = crate::DiskStore::open(dir.path(), FORM, small()).unwrap();
        prop_assert_eq!(store.list(&pods(), "", &ListOptions::default()).unwrap(), before);
    }
}
