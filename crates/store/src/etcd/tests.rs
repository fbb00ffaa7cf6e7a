//! The backend on a real etcd: `GARDENER_TEST_ETCD` names its program; where it does not, these tests say so and pass.

use std::sync::Arc;
use std::time::Duration;

use super::process::{Etcd, Flat};
use super::*;
use crate::EventKind;
use crate::contract::{self, delete, key, pods, put};

/// A running etcd, if there is a program.
async fn etcd() -> Option<Etcd> {
    Some(Etcd::start(&process::program()?).await.unwrap())
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let Some(etcd) = etcd().await else { return };
                let options = contract::options(stringify!($name));
                contract::$name(Arc::new(etcd.store(contract::FORM, options).await.unwrap())).await;
            }
        )*
    };
}
crate::for_each_contract!(suite);

fn text(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap()
}

#[tokio::test]
async fn what_another_process_wrote_is_there_after_catching_up() {
    let Some(etcd) = etcd().await else { return };
    let one = etcd.store(contract::FORM, contract::small()).await.unwrap();
    let other = etcd.store(contract::FORM, contract::small()).await.unwrap();
    let mut watch = other.watch(&pods(), "", other.revision()).unwrap();
    for number in 0..50 {
        let wrote = one.commit(put("c/a", Expect::Any, &number.to_string())).await.unwrap();
        other.catch_up().await.unwrap();
        assert_eq!(other.get(&key("c/a")).unwrap(), wrote.entry);
        assert_eq!(watch.next().await.unwrap().entry, wrote.entry);
        // changes outside of our keys move etcd's revision, too
        etcd.put("/elsewhere", "x").await;
        one.catch_up().await.unwrap();
        assert!(one.revision() > wrote.revision);
    }
    // a conflict tells what the other one wrote
    let wrote = one.commit(put("c/a", Expect::Any, "last")).await.unwrap();
    match other
        .commit(put("c/a", Expect::Revision(wrote.revision - 1), "x"))
        .await
    {
        Err(CommitError::Conflict { current, .. }) => assert_eq!(current.unwrap(), wrote.entry),
        done => panic!("{done:?}"),
    }
}

#[tokio::test]
async fn changes_of_one_revision_are_all_told() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    for path in ["c/a", "c/b", "c/c"] {
        store.commit(put(path, Expect::Any, "v")).await.unwrap();
    }
    let before = store.revision();
    let mut watch = store.watch(&pods(), "", before).unwrap();
    etcd.delete_all("/test/").await;
    for path in ["c/a", "c/b", "c/c"] {
        let event = watch.next().await.unwrap();
        assert_eq!((event.kind, &*event.entry.key.path), (EventKind::Deleted, path));
        assert_eq!(event.revision, before + 1);
    }
    assert!(watch.try_next().unwrap().is_none());
    assert_eq!(watch.caught_up(), before + 1);
}

#[tokio::test]
async fn a_store_that_is_opened_again_goes_on_where_watches_were() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    let first = store.commit(put("c/a", Expect::Any, "1")).await.unwrap().revision;
    store.commit(put("c/a", Expect::Any, "2")).await.unwrap();
    store.commit(delete("c/a", Expect::Any)).await.unwrap();
    store.commit(put("c/b", Expect::Any, "b")).await.unwrap();
    drop(store);
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    let mut watch = store.watch(&pods(), "", first).unwrap();
    let mut told = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        told.push((event.kind, text(&event.entry.value()).to_owned()));
    }
    let (updated, deleted, created) = (EventKind::Updated, EventKind::Deleted, EventKind::Created);
    let expected = [
        (updated, first + 1, "2"),
        (deleted, first + 2, "2"),
        (created, first + 3, "b"),
    ];
    assert_eq!(told, expected.map(|(kind, at, value)| (kind, format!("{value}@{at}"))));
}

#[tokio::test]
async fn a_lost_connection_loses_and_doubles_no_event() {
    let Some(mut etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    let first = store.commit(put("c/a", Expect::Any, "0")).await.unwrap().revision;
    let mut watch = store.watch(&pods(), "", first).unwrap();
    for round in 1..4 {
        etcd.kill().await;
        let refused =
            tokio::time::timeout(Duration::from_millis(300), store.commit(put("c/a", Expect::Any, "x"))).await;
        // either nobody answers yet, or it says that nobody does
        if let Ok(done) = refused {
            assert!(
                matches!(done, Err(CommitError::Unreachable { .. } | CommitError::Unknown { .. })),
                "{done:?}"
            );
        }
        assert!(store.get(&key("c/a")).is_some(), "reads go on");
        etcd.again().await.unwrap();
        let value = round.to_string();
        let wrote = store.commit(put("c/a", Expect::Present, &value)).await.unwrap();
        // the change that was refused may have been made after all: it is told, once
        loop {
            let event = watch.next().await.unwrap();
            assert!(event.revision > first);
            if event.revision == wrote.revision {
                assert_eq!(event.entry, wrote.entry);
                break;
            }
            assert!(text(&event.entry.value()).starts_with('x'));
        }
        assert!(watch.try_next().unwrap().is_none());
    }
}

#[tokio::test]
async fn what_changed_behind_cut_history_is_told() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    for path in ["c/stays", "c/changes", "c/goes", "c/returns"] {
        store.commit(put(path, Expect::Any, "1")).await.unwrap();
    }
    let before = store.revision();
    let mut watch = store.watch(&pods(), "", before).unwrap();
    // the store's connection is cut while another one writes and history is cut
    let gate = etcd.gate().await;
    let behind = etcd
        .store_at(&gate.url, contract::FORM, contract::small())
        .await
        .unwrap();
    let mut late = behind.watch(&pods(), "", before).unwrap();
    gate.close().await;
    store.commit(put("c/changes", Expect::Any, "2")).await.unwrap();
    store.commit(put("c/changes", Expect::Any, "3")).await.unwrap();
    store.commit(delete("c/goes", Expect::Any)).await.unwrap();
    store.commit(delete("c/returns", Expect::Any)).await.unwrap();
    store.commit(put("c/returns", Expect::Any, "2")).await.unwrap();
    store.commit(put("c/new", Expect::Any, "1")).await.unwrap();
    store.client.compact(store.revision()).await.unwrap();
    gate.open().await;
    behind.catch_up().await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = late.try_next().unwrap() {
        told.push((
            event.kind,
            event.entry.key.path.to_string(),
            text(&event.entry.value()).to_owned(),
        ));
    }
    let expected = [
        (EventKind::Updated, "c/changes", "3", 2),
        (EventKind::Deleted, "c/returns", "1", 5),
        (EventKind::Created, "c/returns", "2", 5),
        (EventKind::Created, "c/new", "1", 6),
        (EventKind::Deleted, "c/goes", "1", 6),
    ];
    let expected = expected.map(|(kind, path, value, at)| (kind, path.to_owned(), format!("{value}@{}", before + at)));
    assert_eq!(told, expected);
    assert_eq!(behind.revision(), store.revision());
    // who was never cut off got every single change
    let mut count = 0;
    while watch.try_next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 6);
}

#[tokio::test]
async fn requests_larger_than_etcd_takes_are_told() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, Options::default()).await.unwrap();
    for size in [2 << 20, 5 << 19] {
        match store.commit(put("c/big", Expect::Any, &"x".repeat(size))).await {
            Err(CommitError::TooLarge { size: told, .. }) => assert_eq!(told, size),
            done => panic!("{done:?}"),
        }
    }
    store
        .commit(put("c/big", Expect::Any, &"x".repeat(1 << 20)))
        .await
        .unwrap();
}

#[tokio::test]
async fn keys_that_end_by_themselves_share_a_lease() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    for number in 0..3 {
        let path = format!("{}/{number}", Flat::BRIEF);
        store.commit(put(&path, Expect::Any, "v")).await.unwrap();
    }
    store.commit(put("c/stays", Expect::Any, "v")).await.unwrap();
    let mut watch = store.watch(&pods(), "", store.revision()).unwrap();
    for _ in 0..3 {
        assert_eq!(watch.next().await.unwrap().kind, EventKind::Deleted);
    }
    assert_eq!(store.count(&pods(), ""), 1);
}

#[tokio::test]
async fn one_of_several_servers_cuts_history() {
    let Some(etcd) = etcd().await else { return };
    let store = etcd.store(contract::FORM, contract::small()).await.unwrap();
    store.commit(put("c/a", Expect::Any, "1")).await.unwrap();
    let one = upkeep::compact_once(&store.client, 0, 0).await.unwrap();
    let other = upkeep::compact_once(&store.client, 0, 0).await.unwrap();
    assert_eq!((one.0, other.0), (1, 1), "the second one only learns that it was done");
    let done = upkeep::compact_once(&store.client, one.0, one.1).await.unwrap();
    assert_eq!(done.0, 2);
    let format = &store.mirror.format;
    let cut = mirror::read(&store.client, format, Some(one.1 - 1)).await;
    assert!(matches!(cut, Err(CallError::Compacted)));
    mirror::read(&store.client, format, Some(one.1)).await.unwrap();
    assert_eq!(etcd.get("compact_rev_key").await, one.1.to_string());
}

#[tokio::test]
async fn encrypted_values_lie_in_etcd_and_nobody_reads_them_without_the_key() {
    let Some(etcd) = etcd().await else { return };
    let options = |encryption| Options {
        encryption,
        ..contract::small()
    };
    let one = etcd
        .store(contract::FORM, options(contract::sealed("1")))
        .await
        .unwrap();
    let other = etcd
        .store(contract::FORM, options(contract::sealed("1")))
        .await
        .unwrap();
    let wrote = one.commit(put("c/a", Expect::Any, "hidden")).await.unwrap();
    assert_eq!(text(&wrote.entry.value()), format!("hidden@{}", wrote.revision));
    assert!(
        etcd.get_bytes("/test//pods#c/a")
            .await
            .starts_with(b"k8s:enc:aesgcm:v1:1:")
    );
    other.catch_up().await.unwrap();
    assert_eq!(other.get(&key("c/a")).unwrap(), wrote.entry);
    let deleted = other.commit(delete("c/a", Expect::Any)).await.unwrap();
    assert_eq!(text(&deleted.entry.value()), format!("hidden@{}", deleted.revision));

    // somebody writes with another key: nobody who has not got it says anything of what is there
    let stranger = etcd
        .store(contract::FORM, options(contract::sealed("2")))
        .await
        .unwrap();
    let mut watch = one.watch(&pods(), "", deleted.revision).unwrap();
    stranger.commit(put("c/b", Expect::Any, "x")).await.unwrap();
    let behind = one.catch_up().await.unwrap_err();
    let refused = one.commit(put("c/c", Expect::Any, "x")).await.unwrap_err();
    assert!(matches!(refused, CommitError::Unreachable { .. }), "{refused}");
    for told in [behind.to_string(), refused.to_string()] {
        assert!(
            told.contains("in time") || told.contains("k8s:enc:aesgcm:v1:2"),
            "{told}"
        );
    }
    assert!(watch.try_next().unwrap().is_none());
    let closed = etcd
        .store(contract::FORM, options(contract::sealed("1")))
        .await
        .err()
        .unwrap();
    assert!(matches!(closed, EtcdError::Encrypted(_)), "{closed}");
    assert!(closed.to_string().contains("/test//pods#c/b"), "{closed}");
    // it goes on as soon as it can read what is there
    stranger.commit(put("c/d", Expect::Any, "x")).await.unwrap();
    etcd.delete_all("/test/").await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while one.catch_up().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let after = one.commit(put("c/c", Expect::Absent, "x")).await.unwrap();
    assert_eq!(watch.next().await.unwrap().entry, after.entry);
}

#[tokio::test]
async fn nobody_there_is_an_error_with_the_address() {
    let config = EtcdConfig {
        endpoints: vec!["http://127.0.0.1:1".into()],
        ..EtcdConfig::default()
    };
    let open = EtcdStore::open(&config, Arc::new(Flat), contract::FORM, contract::small());
    let error = tokio::time::timeout(Duration::from_secs(20), open)
        .await
        .unwrap()
        .err()
        .unwrap();
    assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
    for endpoint in ["nonsense", "unix:///x", "ftp://x"] {
        let config = EtcdConfig {
            endpoints: vec![endpoint.into()],
            ..EtcdConfig::default()
        };
        assert!(matches!(config.ways(), Err(EtcdError::Config(_))), "{endpoint}");
    }
}
