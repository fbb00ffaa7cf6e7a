//! What every backend must do, as functions over an empty `Arc<dyn Store>` that nobody else uses; made tests of a backend by the macro at the
//! end. They panic where a backend does otherwise. Stores that were used before count on from where they are, so revisions are relative.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use crate::{
    Change, CommitError, Entry, EventKind, Expect, Form, Key, ListOptions, Options, ReadError, Revision, Store, Topic,
};

/// `<value>@<revision>`: shows in every test that readers get stamped values.
pub fn stamp(value: &Bytes, revision: Revision) -> Bytes {
    let given = value.split(|byte| *byte == b'@').next().unwrap_or_default();
    let mut stamped = given.to_vec();
    stamped.extend_from_slice(format!("@{revision}").as_bytes());
    stamped.into()
}

/// Values that are [stamped](stamp), and whose heads end with the last semicolon.
pub const FORM: Form = Form {
    stamp,
    head: |value| value.iter().rposition(|byte| *byte == b';').map_or(0, |at| at + 1),
};

pub fn pods() -> Topic {
    Topic::new("", "pods")
}

pub fn key(path: &str) -> Key {
    Key::new(pods(), path)
}

pub fn put(path: &str, expect: Expect, value: &str) -> Change {
    Change::Put {
        key: key(path),
        expect,
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}

pub fn delete(path: &str, expect: Expect) -> Change {
    Change::Delete { key: key(path), expect }
}

/// A value as readers see it at a revision.
fn at(value: &str, revision: Revision) -> String {
    format!("{value}@{revision}")
}

fn text(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.value()).into_owned()
}

pub fn small() -> Options {
    Options {
        events_per_topic: 8,
        event_bytes: 1 << 20,
        max_value: 64,
        ..Options::default()
    }
}

/// The same bounds, with all values encrypted.
#[cfg(test)]
fn encrypted(options: Options) -> Options {
    Options {
        encryption: sealed("1"),
        ..options
    }
}

/// All values encrypted with a key of this name.
#[cfg(test)]
pub(crate) fn sealed(name: &str) -> crate::Encryption {
    let key = crate::SecretKey {
        name: name.to_owned(),
        secret: name.repeat(32).into_bytes()[..32].to_vec().into(),
    };
    let provider = crate::Provider::aes_gcm(&[key]).unwrap();
    crate::Encryption::default().with(crate::Scope::Everything, vec![provider])
}

pub async fn revisions_count_up_and_reads_see_stamped_values(store: Arc<dyn Store>) {
    let base = store.revision();
    assert!(store.get(&key("c/n/a")).is_none());
    let first = store.commit(put("c/n/a", Expect::Any, "one")).await.unwrap();
    assert_eq!(first.revision, base + 1);
    assert_eq!(text(&first.entry), at("one", base + 1));
    let second = store.commit(put("c/n/a", Expect::Any, "two")).await.unwrap();
    let entry = store.get(&key("c/n/a")).unwrap();
    assert_eq!(entry, second.entry);
    assert_eq!(
        (text(&entry), entry.create_revision, entry.mod_revision, entry.version()),
        (at("two", base + 2), base + 1, base + 2, 2)
    );
    let deleted = store.commit(delete("c/n/a", Expect::Any)).await.unwrap();
    assert_eq!(deleted.revision, base + 3);
    assert_eq!(text(&deleted.entry), at("two", base + 3));
    assert!(store.get(&key("c/n/a")).is_none());
    let again = store.commit(put("c/n/a", Expect::Absent, "x")).await.unwrap();
    assert_eq!((again.entry.create_revision, again.entry.version()), (base + 4, 1));
    assert_eq!(store.revision(), base + 4);
}

pub async fn preconditions_hold_or_nothing_happens(store: Arc<dyn Store>) {
    let first = store.commit(put("c/there", Expect::Any, "v")).await.unwrap().revision;
    let table = [
        (put("c/there", Expect::Absent, "x"), Some(first)),
        (put("c/there", Expect::Revision(first + 8), "x"), Some(first)),
        (put("c/none", Expect::Present, "x"), None),
        (put("c/none", Expect::Revision(first), "x"), None),
        (delete("c/none", Expect::Any), None),
        (delete("c/none", Expect::Absent), None),
        (delete("c/there", Expect::Revision(first + 1)), Some(first)),
        (delete("c/there", Expect::Absent), Some(first)),
    ];
    for (change, expected) in table {
        match store.commit(change.clone()).await {
            Err(CommitError::Conflict { current, .. }) => {
                assert_eq!(current.map(|entry| entry.mod_revision), expected, "{change:?}")
            }
            other => panic!("{change:?} gave {other:?}"),
        }
    }
    assert_eq!(store.revision(), first);
    for (later, change) in [
        (1, put("c/there", Expect::Revision(first), "x")),
        (2, put("c/there", Expect::Present, "y")),
        (3, delete("c/there", Expect::Revision(first + 2))),
    ] {
        assert_eq!(store.commit(change).await.unwrap().revision, first + later);
    }
    match store.commit(put("c/big", Expect::Any, &"x".repeat(65))).await {
        Err(CommitError::TooLarge { size, limit, .. }) => assert_eq!((size, limit), (65, 64)),
        other => panic!("{other:?}"),
    }
    store.commit(put("c/big", Expect::Any, &"x".repeat(64))).await.unwrap();
}

pub async fn commit_all_is_all_or_nothing(store: Arc<dyn Store>) {
    let first = store.commit(put("c/a", Expect::Any, "1")).await.unwrap().revision;
    store.commit(put("c/gone", Expect::Any, "1")).await.unwrap();
    let before = store.revision();
    let refused = store
        .commit_all(vec![put("c/b", Expect::Absent, "1"), put("c/a", Expect::Absent, "2")])
        .await;
    assert!(matches!(refused, Err(CommitError::Conflict { key: found, .. }) if found == key("c/a")));
    assert_eq!((store.revision(), store.count(&pods(), "")), (before, 2));
    let refused = store
        .commit_all(vec![put("c/b", Expect::Absent, "1"), delete("c/b", Expect::Any)])
        .await;
    assert_eq!(refused.unwrap_err(), CommitError::Repeated { key: key("c/b") });
    assert_eq!(store.revision(), before);

    let mut watch = store.watch(&pods(), "", before).unwrap();
    let done = store
        .commit_all(vec![
            put("c/b", Expect::Absent, "b1"),
            put("c/a", Expect::Revision(first), "a2"),
            delete("c/gone", Expect::Present),
            put("c/c", Expect::Any, "c1"),
        ])
        .await
        .unwrap();
    let mut last = before + 1;
    for (one, value) in done.iter().zip(["b1", "a2", "1", "c1"]) {
        assert!(one.revision >= last, "{} before {last}", one.revision);
        last = one.revision;
        assert_eq!(text(&one.entry), at(value, one.revision));
        // a watcher gets each of them, in order, even where all have one revision
        let event = watch.next().await.unwrap();
        assert_eq!((event.revision, &event.entry), (one.revision, &one.entry));
    }
    assert_eq!(watch.caught_up(), last);
    assert_eq!(store.revision(), last);
    assert!(store.get(&key("c/gone")).is_none());
    let entry = store.get(&key("c/a")).unwrap();
    assert_eq!((entry.create_revision, entry.version()), (first, 2));
    assert_eq!(store.get(&key("c/b")).unwrap().version(), 1);
    assert_eq!(store.get(&key("c/c")).unwrap().create_revision, done[3].revision);
    assert_eq!(store.commit_all(vec![]).await.unwrap(), []);
    assert_eq!(store.revision(), last);
}

fn paths(listing: &crate::Listing) -> Vec<&str> {
    listing.entries.iter().map(|entry| &*entry.key.path).collect()
}

pub async fn pages_of_one_snapshot_stay_while_writes_happen(store: Arc<dyn Store>) {
    let base = store.revision();
    for path in ["c/n/b", "c/n/a", "c/m/z", "c/n/d", "c/n0/x"] {
        store.commit(put(path, Expect::Any, "v")).await.unwrap();
    }
    assert_eq!(store.count(&pods(), "c/n/"), 3);
    assert_eq!(store.count(&pods(), ""), 5);
    let first = store
        .list(
            &pods(),
            "c/n/",
            &ListOptions {
                limit: Some(2),
                ..ListOptions::default()
            },
        )
        .unwrap();
    assert_eq!(
        (paths(&first), first.revision, first.remaining),
        (vec!["c/n/a", "c/n/b"], base + 5, 1)
    );

    store.commit(delete("c/n/d", Expect::Any)).await.unwrap();
    store.commit(put("c/n/c", Expect::Any, "new")).await.unwrap();
    store.commit(put("c/n/d", Expect::Any, "new")).await.unwrap();
    store.commit(put("c/n/a", Expect::Any, "new")).await.unwrap();
    let page = |at: Option<u64>, after: &str| ListOptions {
        at: at.map(|at| base + at),
        after: Some(after.to_owned()),
        limit: Some(2),
    };
    let rest = store.list(&pods(), "c/n/", &page(Some(5), "c/n/b")).unwrap();
    assert_eq!(
        (paths(&rest), rest.revision, rest.remaining),
        (vec!["c/n/d"], base + 5, 0)
    );
    assert_eq!(text(&rest.entries[0]), at("v", base + 4));
    let newest = store.list(&pods(), "c/n/", &page(None, "c/n/b")).unwrap();
    assert_eq!((paths(&newest), newest.revision), (vec!["c/n/c", "c/n/d"], base + 9));
    // A start before the prefix is the prefix's start.
    let all = store.list(&pods(), "c/n/", &page(Some(9), "a")).unwrap();
    assert_eq!((paths(&all), all.remaining), (vec!["c/n/a", "c/n/b"], 2));

    let future = store.list(&pods(), "", &page(Some(10), ""));
    assert_eq!(
        future.unwrap_err(),
        ReadError::Future {
            requested: base + 10,
            current: base + 9
        }
    );
    let unknown = Topic::new("apps", "deployments");
    let empty = store.list(&unknown, "", &ListOptions::default()).unwrap();
    assert_eq!((empty.entries.len(), empty.revision), (0, base + 9));
    assert_eq!(store.topics(), [pods()]);
}

pub async fn watches_get_every_event_once_in_order(store: Arc<dyn Store>) {
    let base = store.revision();
    for (path, value) in [("c/n/a", "1"), ("d/n/a", "other"), ("c/n/a", "2")] {
        store.commit(put(path, Expect::Any, value)).await.unwrap();
    }
    let mut watch = store.watch(&pods(), "c/", base + 1).unwrap();
    assert_eq!(watch.caught_up(), base + 2, "revision 2 is outside the prefix");
    let event = watch.next().await.unwrap();
    assert_eq!(
        (event.revision, event.kind, text(&event.entry)),
        (base + 3, EventKind::Updated, at("2", base + 3))
    );
    assert_eq!(text(&event.previous.unwrap()), at("1", base + 1));
    assert!(watch.try_next().unwrap().is_none());
    assert_eq!(watch.caught_up(), base + 3);
    assert!(watch.next().now_or_never().is_none());

    let waiting = tokio::spawn(async move {
        let event = watch.next().await.unwrap();
        (event, watch)
    });
    tokio::task::yield_now().await;
    store.commit(delete("c/n/a", Expect::Any)).await.unwrap();
    let (event, mut watch) = waiting.await.unwrap();
    assert_eq!(
        (event.revision, event.kind, text(&event.entry)),
        (base + 4, EventKind::Deleted, at("2", base + 4))
    );
    assert_eq!(text(&event.previous.unwrap()), at("2", base + 3));

    // Other topics move the bookmark, not the watch.
    let elsewhere = Change::Put {
        key: Key::new(Topic::new("apps", "deployments"), "c/n/a"),
        expect: Expect::Any,
        value: Bytes::from_static(b"x"),
    };
    store.commit(elsewhere).await.unwrap();
    assert!(watch.next().now_or_never().is_none());
    assert_eq!(watch.caught_up(), base + 5);
    assert_eq!(
        store.watch(&pods(), "", base + 6).unwrap_err(),
        ReadError::Future {
            requested: base + 6,
            current: base + 5
        }
    );
}

pub async fn slow_readers_are_told_that_they_missed_events(store: Arc<dyn Store>) {
    let base = store.revision();
    let mut slow = store.watch(&pods(), "", base).unwrap();
    for number in 0..9 {
        let value = number.to_string();
        store.commit(put("c/a", Expect::Any, &value)).await.unwrap();
    }
    let compacted = ReadError::Compacted {
        requested: base,
        oldest: base + 1,
    };
    assert_eq!(slow.next().await.unwrap_err(), compacted);
    assert_eq!(slow.try_next().unwrap_err(), compacted);
    assert_eq!(store.watch(&pods(), "", base).unwrap_err(), compacted);
    let old = ListOptions {
        at: Some(base),
        ..ListOptions::default()
    };
    assert_eq!(store.list(&pods(), "", &old).unwrap_err(), compacted);
    let mut watch = store.watch(&pods(), "", base + 1).unwrap();
    for revision in base + 2..=base + 9 {
        assert_eq!(watch.next().await.unwrap().revision, revision);
    }
    // A reader that has seen all falls out of no window, however long nothing concerns it.
    let mut idle = store.watch(&pods(), "elsewhere/", base + 9).unwrap();
    for _ in 0..4 {
        for _ in 0..8 {
            store.commit(put("c/a", Expect::Any, "x")).await.unwrap();
        }
        assert!(idle.try_next().unwrap().is_none());
    }
}

pub async fn concurrent_writers_lose_no_update(store: Arc<dyn Store>) {
    let first = store.commit(put("c/n", Expect::Any, "0")).await.unwrap().revision;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let mut done = 0;
            while done < 10 {
                let entry = store.get(&key("c/n")).unwrap();
                let shown = text(&entry);
                let number: u64 = shown.split('@').next().unwrap().parse().unwrap();
                let next = (number + 1).to_string();
                let expect = Expect::Revision(entry.mod_revision);
                match store.commit(put("c/n", expect, &next)).await {
                    Ok(committed) => {
                        done += 1;
                        let seen = store.get(&key("c/n")).unwrap().mod_revision;
                        assert!(seen >= committed.revision, "acknowledged but not visible");
                    }
                    Err(CommitError::Conflict { current, .. }) => {
                        assert_ne!(current.unwrap().mod_revision, entry.mod_revision);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let last = store.get(&key("c/n")).unwrap();
    assert_eq!((text(&last), last.version()), (at("80", first + 80), 81));
}

pub async fn purge_removes_one_cluster_with_events(store: Arc<dyn Store>) {
    let secret = Key::new(Topic::new("", "secrets"), "gone/n/s");
    let secret = Change::Put {
        key: secret,
        expect: Expect::Any,
        value: Bytes::from_static(b"s"),
    };
    for change in [
        put("gone/a", Expect::Any, "a"),
        put("gone0/a", Expect::Any, "stays"),
        secret,
    ] {
        store.commit(change).await.unwrap();
    }
    let before = store.revision();
    let mut watch = store.watch(&pods(), "", before).unwrap();
    assert_eq!(store.purge("gone").await.unwrap(), 2);
    assert_eq!(store.purge("gone").await.unwrap(), 0);
    let event = watch.next().await.unwrap();
    assert!(event.revision > before);
    assert_eq!(
        (event.kind, text(&event.entry)),
        (EventKind::Deleted, at("a", event.revision))
    );
    assert_eq!(store.topics(), [pods()]);
    assert_eq!(
        paths(&store.list(&pods(), "", &ListOptions::default()).unwrap()),
        ["gone0/a"]
    );
}

pub async fn a_closed_store_reads_but_does_not_write(store: Arc<dyn Store>) {
    let first = store.commit(put("c/a", Expect::Any, "1")).await.unwrap().revision;
    store.close().await;
    store.close().await;
    let refused = store.commit(put("c/a", Expect::Any, "2")).await;
    assert_eq!(refused.unwrap_err(), CommitError::Closed);
    assert_eq!(store.purge("c").await.unwrap_err(), CommitError::Closed);
    assert_eq!(text(&store.get(&key("c/a")).unwrap()), at("1", first));
}

pub async fn the_byte_bound_drops_the_oldest_events_of_all_topics(store: Arc<dyn Store>) {
    // Run with room for four events of 256 bytes.
    let names = ["a", "b", "c"];
    let topics: BTreeMap<_, _> = names.iter().map(|name| (name, Topic::new("", name))).collect();
    let base = store.revision();
    for round in 0..2 {
        for name in names {
            let change = Change::Put {
                key: Key::new(topics[&name].clone(), format!("c/{round}")),
                expect: Expect::Any,
                value: Bytes::from_static(b"v"),
            };
            store.commit(change).await.unwrap();
        }
    }
    let oldest = |name: &str| match store.watch(&topics[&name], "", base) {
        Err(ReadError::Compacted { oldest, .. }) => oldest - base,
        Ok(_) => 0,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(names.map(oldest), [1, 2, 0]);
}

/// What the suite consists of: calls the macro `$run` with the functions' names.
#[macro_export]
macro_rules! for_each_contract {
    ($run:path) => {
        $run! {
            revisions_count_up_and_reads_see_stamped_values,
            preconditions_hold_or_nothing_happens,
            commit_all_is_all_or_nothing,
            pages_of_one_snapshot_stay_while_writes_happen,
            watches_get_every_event_once_in_order,
            slow_readers_are_told_that_they_missed_events,
            concurrent_writers_lose_no_update,
            purge_removes_one_cluster_with_events,
            a_closed_store_reads_but_does_not_write,
            the_byte_bound_drops_the_oldest_events_of_all_topics,
        }
    };
}

/// The bounds under which a function of the suite runs.
pub fn options(name: &str) -> Options {
    match name {
        "the_byte_bound_drops_the_oldest_events_of_all_topics" => Options {
            event_bytes: 4 * 256,
            ..small()
        },
        _ => small(),
    }
}

#[cfg(test)]
mod backends {

    macro_rules! memory {
        ($($name:ident),* $(,)?) => {
            mod memory {
                $(
                    #[tokio::test]
                    async fn $name() {
                        use super::super as contract;
                        let options = contract::options(stringify!($name));
                        contract::$name(std::sync::Arc::new(crate::MemoryStore::new(contract::FORM, options))).await;
                    }
                )*
            }
        };
    }
    crate::for_each_contract!(memory);

    macro_rules! disk {
        ($($name:ident),* $(,)?) => {
            mod disk {
                $(
                    #[tokio::test]
                    async fn $name() {
                        use super::super as contract;
                        let options = contract::options(stringify!($name));
                        let dir = tempfile::tempdir().unwrap();
                        let store = crate::DiskStore::open(dir.path(), contract::FORM, options).unwrap();
                        contract::$name(std::sync::Arc::new(store)).await;
                    }
                )*
            }
        };
    }
    crate::for_each_contract!(disk);

    macro_rules! encrypted_disk {
        ($($name:ident),* $(,)?) => {
            mod encrypted_disk {
                $(
                    #[tokio::test]
                    async fn $name() {
                        use super::super as contract;
                        let options = contract::encrypted(contract::options(stringify!($name)));
                        let dir = tempfile::tempdir().unwrap();
                        let store = crate::DiskStore::open(dir.path(), contract::FORM, options).unwrap();
                        contract::$name(std::sync::Arc::new(store)).await;
                    }
                )*
            }
        };
    }
    crate::for_each_contract!(encrypted_disk);
}
