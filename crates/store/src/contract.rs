//! What every backend must do, as tests over `Arc<dyn Store>`; run for each backend by the macro at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use crate::{
    Change, CommitError, Entry, EventKind, Expect, Key, ListOptions, Options, ReadError, Revision, Store, Topic,
};

/// `<value>@<revision>`: shows in every test that readers get stamped values.
pub(crate) fn stamp(value: &Bytes, revision: Revision) -> Bytes {
    let given = value.split(|byte| *byte == b'@').next().unwrap_or_default();
    let mut stamped = given.to_vec();
    stamped.extend_from_slice(format!("@{revision}").as_bytes());
    stamped.into()
}

pub(crate) fn pods() -> Topic {
    Topic::new("", "pods")
}

pub(crate) fn key(path: &str) -> Key {
    Key::new(pods(), path)
}

pub(crate) fn put(path: &str, expect: Expect, value: &str) -> Change {
    Change::Put {
        key: key(path),
        expect,
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}

pub(crate) fn delete(path: &str, expect: Expect) -> Change {
    Change::Delete { key: key(path), expect }
}

fn text(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.value).into_owned()
}

pub(crate) fn small() -> Options {
    Options {
        events_per_topic: 8,
        event_bytes: 1 << 20,
        max_value: 64,
        ..Options::default()
    }
}

pub(crate) async fn revisions_count_up_and_reads_see_stamped_values(store: Arc<dyn Store>) {
    assert_eq!(store.revision(), 0);
    assert!(store.get(&key("c/n/a")).is_none());
    let first = store.commit(put("c/n/a", Expect::Any, "one")).await.unwrap();
    assert_eq!((first.revision, text(&first.entry)), (1, "one@1".into()));
    let second = store.commit(put("c/n/a", Expect::Any, "two")).await.unwrap();
    let entry = store.get(&key("c/n/a")).unwrap();
    assert_eq!(entry, second.entry);
    assert_eq!(
        (
            text(&entry).as_str(),
            entry.create_revision,
            entry.mod_revision,
            entry.version
        ),
        ("two@2", 1, 2, 2)
    );
    let deleted = store.commit(delete("c/n/a", Expect::Any)).await.unwrap();
    assert_eq!((deleted.revision, text(&deleted.entry).as_str()), (3, "two@3"));
    assert!(store.get(&key("c/n/a")).is_none());
    let again = store.commit(put("c/n/a", Expect::Absent, "x")).await.unwrap();
    assert_eq!((again.entry.create_revision, again.entry.version), (4, 1));
    assert_eq!(store.revision(), 4);
}

pub(crate) async fn preconditions_hold_or_nothing_happens(store: Arc<dyn Store>) {
    store.commit(put("c/there", Expect::Any, "v")).await.unwrap();
    let table = [
        (put("c/there", Expect::Absent, "x"), Some(1)),
        (put("c/there", Expect::Revision(9), "x"), Some(1)),
        (put("c/none", Expect::Present, "x"), None),
        (put("c/none", Expect::Revision(1), "x"), None),
        (delete("c/none", Expect::Any), None),
        (delete("c/none", Expect::Absent), None),
        (delete("c/there", Expect::Revision(2)), Some(1)),
        (delete("c/there", Expect::Absent), Some(1)),
    ];
    for (change, expected) in table {
        match store.commit(change.clone()).await {
            Err(CommitError::Conflict { current, .. }) => {
                assert_eq!(current.map(|entry| entry.mod_revision), expected, "{change:?}")
            }
            other => panic!("{change:?} gave {other:?}"),
        }
    }
    assert_eq!(store.revision(), 1);
    for (revision, change) in [
        (2, put("c/there", Expect::Revision(1), "x")),
        (3, put("c/there", Expect::Present, "y")),
        (4, delete("c/there", Expect::Revision(3))),
    ] {
        assert_eq!(store.commit(change).await.unwrap().revision, revision);
    }
    match store.commit(put("c/big", Expect::Any, &"x".repeat(65))).await {
        Err(CommitError::TooLarge { size, limit, .. }) => assert_eq!((size, limit), (65, 64)),
        other => panic!("{other:?}"),
    }
    store.commit(put("c/big", Expect::Any, &"x".repeat(64))).await.unwrap();
}

pub(crate) async fn commit_all_is_all_or_nothing(store: Arc<dyn Store>) {
    store.commit(put("c/a", Expect::Any, "1")).await.unwrap();
    let refused = store
        .commit_all(vec![put("c/b", Expect::Absent, "1"), put("c/a", Expect::Absent, "2")])
        .await;
    assert!(matches!(refused, Err(CommitError::Conflict { key: found, .. }) if found == key("c/a")));
    assert_eq!((store.revision(), store.count(&pods(), "")), (1, 1));

    // Each change sees the ones before it: b is written at revision 2 and expected there.
    let done = store
        .commit_all(vec![
            put("c/b", Expect::Absent, "b1"),
            put("c/b", Expect::Revision(2), "b2"),
            delete("c/a", Expect::Present),
            put("c/a", Expect::Absent, "again"),
            delete("c/b", Expect::Revision(3)),
        ])
        .await
        .unwrap();
    let told: Vec<_> = done.iter().map(|one| (one.revision, text(&one.entry))).collect();
    assert_eq!(
        told,
        [
            (2, "b1@2".into()),
            (3, "b2@3".into()),
            (4, "1@4".into()),
            (5, "again@5".into()),
            (6, "b2@6".into())
        ]
    );
    assert!(store.get(&key("c/b")).is_none());
    assert_eq!(store.get(&key("c/a")).unwrap().create_revision, 5);
    assert_eq!(store.commit_all(vec![]).await.unwrap(), []);
    assert_eq!(store.revision(), 6);
}

fn paths(listing: &crate::Listing) -> Vec<&str> {
    listing.entries.iter().map(|entry| &*entry.key.path).collect()
}

pub(crate) async fn pages_of_one_snapshot_stay_while_writes_happen(store: Arc<dyn Store>) {
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
        (vec!["c/n/a", "c/n/b"], 5, 1)
    );

    store.commit(delete("c/n/d", Expect::Any)).await.unwrap();
    store.commit(put("c/n/c", Expect::Any, "new")).await.unwrap();
    store.commit(put("c/n/d", Expect::Any, "new")).await.unwrap();
    store.commit(put("c/n/a", Expect::Any, "new")).await.unwrap();
    let page = |at, after: &str| ListOptions {
        at,
        after: Some(after.to_owned()),
        limit: Some(2),
    };
    let rest = store.list(&pods(), "c/n/", &page(Some(5), "c/n/b")).unwrap();
    assert_eq!((paths(&rest), rest.revision, rest.remaining), (vec!["c/n/d"], 5, 0));
    assert_eq!(text(&rest.entries[0]), "v@4");
    let newest = store.list(&pods(), "c/n/", &page(None, "c/n/b")).unwrap();
    assert_eq!((paths(&newest), newest.revision), (vec!["c/n/c", "c/n/d"], 9));
    // A start before the prefix is the prefix's start.
    let all = store.list(&pods(), "c/n/", &page(Some(9), "a")).unwrap();
    assert_eq!((paths(&all), all.remaining), (vec!["c/n/a", "c/n/b"], 2));

    let future = store.list(&pods(), "", &page(Some(10), ""));
    assert_eq!(
        future.unwrap_err(),
        ReadError::Future {
            requested: 10,
            current: 9
        }
    );
    let unknown = Topic::new("apps", "deployments");
    let empty = store.list(&unknown, "", &ListOptions::default()).unwrap();
    assert_eq!((empty.entries.len(), empty.revision), (0, 9));
    assert_eq!(store.topics(), [pods()]);
}

pub(crate) async fn watches_get_every_event_once_in_order(store: Arc<dyn Store>) {
    for (path, value) in [("c/n/a", "1"), ("d/n/a", "other"), ("c/n/a", "2")] {
        store.commit(put(path, Expect::Any, value)).await.unwrap();
    }
    let mut watch = store.watch(&pods(), "c/", 1).unwrap();
    assert_eq!(watch.caught_up(), 2, "revision 2 is outside the prefix");
    let event = watch.next().await.unwrap();
    assert_eq!(
        (event.revision, event.kind, text(&event.entry)),
        (3, EventKind::Updated, "2@3".into())
    );
    assert_eq!(text(&event.previous.unwrap()), "1@1");
    assert!(watch.try_next().unwrap().is_none());
    assert_eq!(watch.caught_up(), 3);
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
        (4, EventKind::Deleted, "2@4".into())
    );
    assert_eq!(text(&event.previous.unwrap()), "2@3");

    // Other topics move the bookmark, not the watch.
    let elsewhere = Change::Put {
        key: Key::new(Topic::new("apps", "deployments"), "c/n/a"),
        expect: Expect::Any,
        value: Bytes::from_static(b"x"),
    };
    store.commit(elsewhere).await.unwrap();
    assert!(watch.next().now_or_never().is_none());
    assert_eq!(watch.caught_up(), 5);
    assert_eq!(
        store.watch(&pods(), "", 6).unwrap_err(),
        ReadError::Future {
            requested: 6,
            current: 5
        }
    );
}

pub(crate) async fn slow_readers_are_told_that_they_missed_events(store: Arc<dyn Store>) {
    let mut slow = store.watch(&pods(), "", 0).unwrap();
    for number in 0..9 {
        let value = number.to_string();
        store.commit(put("c/a", Expect::Any, &value)).await.unwrap();
    }
    let compacted = ReadError::Compacted {
        requested: 0,
        oldest: 1,
    };
    assert_eq!(slow.next().await.unwrap_err(), compacted);
    assert_eq!(slow.try_next().unwrap_err(), compacted);
    assert_eq!(store.watch(&pods(), "", 0).unwrap_err(), compacted);
    let old = ListOptions {
        at: Some(0),
        ..ListOptions::default()
    };
    assert_eq!(store.list(&pods(), "", &old).unwrap_err(), compacted);
    let mut watch = store.watch(&pods(), "", 1).unwrap();
    for revision in 2..=9 {
        assert_eq!(watch.next().await.unwrap().revision, revision);
    }
    // A reader that has seen all falls out of no window, however long nothing concerns it.
    let mut idle = store.watch(&pods(), "elsewhere/", 9).unwrap();
    for _ in 0..4 {
        for _ in 0..8 {
            store.commit(put("c/a", Expect::Any, "x")).await.unwrap();
        }
        assert!(idle.try_next().unwrap().is_none());
    }
}

pub(crate) async fn concurrent_writers_lose_no_update(store: Arc<dyn Store>) {
    store.commit(put("c/n", Expect::Any, "0")).await.unwrap();
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
    assert_eq!((text(&last).as_str(), last.version), ("80@81", 81));
}

pub(crate) async fn purge_removes_one_cluster_with_events(store: Arc<dyn Store>) {
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
    let mut watch = store.watch(&pods(), "", 3).unwrap();
    assert_eq!(store.purge("gone").await.unwrap(), 2);
    assert_eq!(store.purge("gone").await.unwrap(), 0);
    assert_eq!(store.revision(), 5);
    let event = watch.next().await.unwrap();
    assert_eq!((event.kind, text(&event.entry)), (EventKind::Deleted, "a@4".into()));
    assert_eq!(store.topics(), [pods()]);
    assert_eq!(
        paths(&store.list(&pods(), "", &ListOptions::default()).unwrap()),
        ["gone0/a"]
    );
}

pub(crate) async fn a_closed_store_reads_but_does_not_write(store: Arc<dyn Store>) {
    store.commit(put("c/a", Expect::Any, "1")).await.unwrap();
    store.close().await;
    store.close().await;
    let refused = store.commit(put("c/a", Expect::Any, "2")).await;
    assert_eq!(refused.unwrap_err(), CommitError::Closed);
    assert_eq!(store.purge("c").await.unwrap_err(), CommitError::Closed);
    assert_eq!(text(&store.get(&key("c/a")).unwrap()), "1@1");
}

pub(crate) async fn the_byte_bound_drops_the_oldest_events_of_all_topics(store: Arc<dyn Store>) {
    // Run with room for four events of 256 bytes.
    let names = ["a", "b", "c"];
    let topics: BTreeMap<_, _> = names.iter().map(|name| (name, Topic::new("", name))).collect();
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
    let oldest = |name: &str| match store.watch(&topics[&name], "", 0) {
        Err(ReadError::Compacted { oldest, .. }) => oldest,
        Ok(_) => 0,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(names.map(oldest), [1, 2, 0]);
}

/// The whole suite as tests of one backend. `$make` is an expression that gives `(Arc<dyn Store>, guard)` from `Options`.
macro_rules! suite {
    ($make:expr; $($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let (store, _guard) = $make($crate::contract::small());
                $crate::contract::$name(store).await;
            }
        )*
        #[tokio::test]
        async fn the_byte_bound_drops_the_oldest_events_of_all_topics() {
            let options = $crate::Options { event_bytes: 4 * 256, ..$crate::contract::small() };
            let (store, _guard) = $make(options);
            $crate::contract::the_byte_bound_drops_the_oldest_events_of_all_topics(store).await;
        }
    };
    ($make:expr) => {
        $crate::contract::suite!($make;
            revisions_count_up_and_reads_see_stamped_values,
            preconditions_hold_or_nothing_happens,
            commit_all_is_all_or_nothing,
            pages_of_one_snapshot_stay_while_writes_happen,
            watches_get_every_event_once_in_order,
            slow_readers_are_told_that_they_missed_events,
            concurrent_writers_lose_no_update,
            purge_removes_one_cluster_with_events,
            a_closed_store_reads_but_does_not_write,
        );
    };
}
pub(crate) use suite;

mod memory {
    use super::*;

    fn make(options: Options) -> (Arc<dyn Store>, ()) {
        (Arc::new(crate::MemoryStore::new(stamp, options)), ())
    }

    suite!(make);
}

mod disk {
    use super::*;

    fn make(options: Options) -> (Arc<dyn Store>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::DiskStore::open(dir.path(), stamp, options).unwrap();
        (Arc::new(store), dir)
    }

    suite!(make);
}
