//! What only the disk backend must do: keep what it acknowledged, and refuse what it cannot open.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use redb::Builder;

use super::faults::{Disk, Fault};
use super::file::{FORMAT, StoreFile};
use super::*;
use crate::contract::{FORM, delete, key, pods, put, small};
use crate::{Encryption, Expect, Provider, Scope, SecretKey};

fn open(dir: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(dir, FORM, small())
}

#[tokio::test]
async fn reopening_keeps_everything_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new").join("data");
    let store = open(&dir).unwrap();
    for path in ["c/n/a", "c/n/b"] {
        store.commit(put(path, Expect::Any, "v")).await.unwrap();
    }
    store.commit(put("c/n/a", Expect::Any, "w")).await.unwrap();
    store.commit(delete("c/n/b", Expect::Any)).await.unwrap();
    let before = store.list(&pods(), "", &ListOptions::default()).unwrap();
    drop(store);

    let store = open(&dir).unwrap();
    let after = store.list(&pods(), "", &ListOptions::default()).unwrap();
    assert_eq!(after, before);
    assert_eq!(&after.entries[0].value()[..], b"w@3");
    assert_eq!((after.entries[0].version(), store.revision()), (2, 4));
    // What happened before is not known any more, what happens from now on is.
    assert_eq!(
        store.watch(&pods(), "", 3).unwrap_err(),
        ReadError::Compacted {
            requested: 3,
            oldest: 4
        }
    );
    let mut watch = store.watch(&pods(), "", 4).unwrap();
    let deleted = store.commit(delete("c/n/a", Expect::Revision(3))).await;
    assert_eq!(&deleted.unwrap().entry.value()[..], b"w@5");
    assert_eq!(watch.next().await.unwrap().revision, 5);
}

/// More than several threads are handed at once, in rows and in bytes.
#[tokio::test]
async fn many_and_large_values_of_several_topics_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let store = DiskStore::open(dir.path(), FORM, Options::default()).unwrap();
    let topics = ["a", "b", "c"].map(|resource| Topic::new("", resource));
    for (topic, (count, length)) in topics.iter().zip([(1500, 1), (60, 50_000), (700, 100)]) {
        let changes = (0..count).map(|number| Change::Put {
            key: Key::new(topic.clone(), format!("c/n/{number}")),
            expect: Expect::Absent,
            value: number.to_string().repeat(length).into(),
        });
        store.commit_all(changes.collect()).await.unwrap();
    }
    let all = |store: &DiskStore| {
        topics
            .clone()
            .map(|topic| store.list(&topic, "", &ListOptions::default()).unwrap())
    };
    let (before, revision) = (all(&store), store.revision());
    drop(store);
    let store = DiskStore::open(dir.path(), FORM, Options::default()).unwrap();
    assert_eq!((all(&store), store.revision()), (before, revision));
}

#[tokio::test]
async fn a_second_open_is_refused_until_the_first_one_closes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let refused = open(dir.path()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("another `gardener up`"));
    store.close().await;
    open(dir.path()).unwrap();
}

#[test]
fn a_directory_that_cannot_be_is_unwritable() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let refused = open(&file.join("data")).unwrap_err();
    assert!(matches!(refused, OpenError::Unwritable { .. }), "{refused}");
}

#[tokio::test]
async fn damage_is_told_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = open(dir.path()).unwrap();
    for number in 0..200 {
        let path = format!("c/n/{number}");
        store.commit(put(&path, Expect::Any, "value")).await.unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut noisy = whole.clone();
    // Values lie in the pages: changing one byte of each `value` breaks checksums, not the structure.
    let marks: Vec<usize> = (0..noisy.len() - 5)
        .filter(|&at| &noisy[at..at + 5] == b"value")
        .collect();
    assert!(!marks.is_empty());
    for at in marks {
        noisy[at] = b'V';
    }
    let damages: [(&str, Vec<u8>); 5] = [
        ("empty", vec![]),
        ("not a database", b"apiVersion: v1\nkind: List\n".repeat(400)),
        ("cut after the head", whole[..4096].to_vec()),
        ("cut in the middle", whole[..whole.len() / 2].to_vec()),
        ("changed values", noisy),
    ];
    for (what, bytes) in damages {
        std::fs::write(&path, &bytes).unwrap();
        match open(dir.path()) {
            Err(OpenError::Damaged { path: told, .. }) => assert_eq!(told, path, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(std::fs::read(&path).unwrap().is_empty(), bytes.is_empty());
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(open(dir.path()).unwrap().count(&pods(), ""), 200);
}

/// Only a file that was closed, and that nobody touched since, is read without the database's check.
#[tokio::test]
async fn a_file_is_checked_unless_it_is_as_it_was_closed() {
    let disk = Disk::new(3);
    let open = || DiskStore::open_in(disk.clone(), FORM, small()).unwrap();
    let store = open();
    store.commit(put("c/n/a", Expect::Any, "v")).await.unwrap();
    assert!(!sums::unchanged(&disk), "it is open for the first time");
    store.close().await;
    assert!(sums::unchanged(&disk), "it was closed");
    let store = open();
    store.commit(put("c/n/b", Expect::Any, "v")).await.unwrap();
    assert!(!sums::unchanged(&disk), "it is open");
    disk.lose_power();
    // its process is gone, too
    std::mem::forget(store);
    assert!(!sums::unchanged(&disk), "it was not closed");
    let store = open();
    assert_eq!(store.count(&pods(), ""), 2);
    store.close().await;
    assert!(sums::unchanged(&disk), "it was closed again");
    assert_eq!(open().count(&pods(), ""), 2);
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let path = dir.path().join("store.redb");
    let file = StoreFile::existing(Builder::new().open(&path).unwrap(), &path);
    file.set_format(FORMAT + 1).unwrap();
    drop(file);
    match open(dir.path()) {
        Err(OpenError::NewerFormat { found, supported, .. }) => assert_eq!((found, supported), (FORMAT + 1, FORMAT)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn encrypted_values_are_nowhere_on_disk_and_keys_can_be_exchanged() {
    let dir = tempfile::tempdir().unwrap();
    let open = |encryption: Encryption| DiskStore::open(dir.path(), FORM, Options { encryption, ..small() });
    let on_disk = |text: &str| {
        let file = std::fs::read(dir.path().join("store.redb")).unwrap();
        file.windows(text.len()).any(|part| part == text.as_bytes())
    };
    let store = open(Encryption::default()).unwrap();
    store.commit(put("c/old", Expect::Any, "plaintext")).await.unwrap();
    drop(store);
    assert!(on_disk("plaintext"));
    // a store that is not encrypted gets a key: what was there stays readable, new values are encrypted
    let first = || Provider::secretbox(&[secret_key("first")]).unwrap();
    let only = |providers| Encryption::default().with(Scope::Topic(pods()), providers);
    let store = open(only(vec![first(), Provider::identity()])).unwrap();
    let old = store.get(&key("c/old")).unwrap();
    assert_eq!((&old.value()[..], old.is_stale()), (&b"plaintext@1"[..], true));
    let new = store.commit(put("c/new", Expect::Any, "hidden")).await.unwrap();
    assert_eq!(
        (&new.entry.value()[..], new.entry.is_stale()),
        (&b"hidden@2"[..], false)
    );
    store.commit(put("c/old", Expect::Any, "plaintext")).await.unwrap();
    assert!(!store.get(&key("c/old")).unwrap().is_stale());
    drop(store);
    assert!(!on_disk("hidden"));
    // the next key writes, both read
    let keys = [secret_key("second"), secret_key("first")];
    let store = open(only(vec![Provider::secretbox(&keys).unwrap()])).unwrap();
    let kept = store.get(&key("c/new")).unwrap();
    assert_eq!((&kept.value()[..], kept.is_stale()), (&b"hidden@2"[..], true));
    for path in ["c/new", "c/old"] {
        store.commit(put(path, Expect::Present, "again")).await.unwrap();
    }
    drop(store);
    // and the first one can go
    drop(open(only(vec![Provider::secretbox(&keys[..1]).unwrap()])).unwrap());
    for wrong in [Encryption::default(), only(vec![first()])] {
        let refused = open(wrong).unwrap_err();
        assert!(matches!(&refused, OpenError::Encrypted { .. }), "{refused}");
        assert!(refused.to_string().contains("k8s:enc:secretbox:v1:second"), "{refused}");
    }
}

fn secret_key(name: &str) -> SecretKey {
    SecretKey {
        name: name.to_owned(),
        secret: name.repeat(32).into_bytes()[..32].to_vec().into(),
    }
}

#[tokio::test]
async fn a_value_that_looks_encrypted_is_not_stored_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let refused = store.commit(put("c/a", Expect::Any, "k8s:enc:x:v1:y:")).await;
    assert!(matches!(refused, Err(CommitError::Cipher { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_one_state_while_writes_go_on_and_a_store_is_made_from_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let store = Arc::new(DiskStore::open(&path("store"), FORM, wide()).unwrap());
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (writing, ended) = (Arc::clone(&store), Arc::clone(&over));
    let writer = tokio::spawn(async move {
        let mut number = 0;
        while !ended.load(std::sync::atomic::Ordering::SeqCst) {
            number += 1;
            let value = number.to_string();
            let changes = ["c/a", "c/b"].map(|path| put(path, Expect::Any, &value)).to_vec();
            writing.commit_all(changes).await.unwrap();
        }
    });
    let mut before = 0;
    for number in 0..5 {
        while store.revision() < before + 20 {
            tokio::task::yield_now().await;
        }
        let acknowledged = store.revision();
        let file = path("snapshot");
        let revision = store.snapshot(&file).await.unwrap();
        assert!(revision >= acknowledged && revision % 2 == 0, "{revision}");
        before = revision;
        let restored = path(&format!("restored-{number}"));
        DiskStore::restore(&file, &restored, 1000).unwrap();
        let refused = DiskStore::restore(&file, &restored, 0).unwrap_err();
        assert!(matches!(refused, OpenError::Occupied { .. }), "{refused}");
        let copy = DiskStore::open(&restored, FORM, wide()).unwrap();
        assert_eq!(copy.revision(), revision + 1000);
        let entries = copy.list(&pods(), "", &ListOptions::default()).unwrap().entries;
        let then = ListOptions {
            at: Some(revision),
            ..ListOptions::default()
        };
        assert_eq!(entries, store.list(&pods(), "", &then).unwrap().entries);
        let next = copy.commit(put("c/a", Expect::Present, "next")).await.unwrap();
        assert_eq!(next.revision, revision + 1001);
    }
    over.store(true, std::sync::atomic::Ordering::SeqCst);
    writer.await.unwrap();
    store.close().await;
    assert!(matches!(
        store.snapshot(&path("late")).await,
        Err(SnapshotError::Closed)
    ));
    assert!(!path("late").exists() && !path("snapshot.new").exists());
    for damage in [&b""[..], b"nonsense"] {
        std::fs::write(path("damaged"), damage).unwrap();
        let refused = DiskStore::restore(&path("damaged"), &path("none"), 0).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        assert!(!path("none").join("store.redb").exists());
    }
    let refused = DiskStore::restore(&path("missing"), &path("none"), 0).unwrap_err();
    assert!(refused.to_string().contains("missing"), "{refused}");
}

/// What came of writers that wrote until the disk failed.
#[derive(Debug, Default)]
struct Written {
    acknowledged: Vec<Revision>,
    /// Transactions that were sent, each with all its paths.
    sent: Vec<Vec<String>>,
}

/// Writes from several tasks until the disk fails, in transactions of one to three keys.
async fn write_until_failure(store: &Arc<DiskStore>) -> Written {
    let mut writers = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(store);
        writers.push(tokio::spawn(async move {
            let mut written = Written::default();
            loop {
                let number = written.sent.len();
                let paths: Vec<_> = (0..=number % 3)
                    .map(|part| format!("c/{writer}/{number}/{part}"))
                    .collect();
                written.sent.push(paths.clone());
                let value = "value".repeat(1 + number % 13);
                let changes = paths.iter().map(|path| put(path, Expect::Absent, &value)).collect();
                match store.commit_all(changes).await {
                    Ok(committed) => {
                        written.acknowledged.extend(committed.iter().map(|one| one.revision));
                        assert!(paths.iter().all(|path| store.get(&key(path)).is_some()));
                    }
                    Err(CommitError::Unavailable { .. }) => {
                        assert!(paths.iter().all(|path| store.get(&key(path)).is_none()), "visible");
                        return written;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }));
    }
    let mut all = Written::default();
    for writer in writers {
        let written = writer.await.unwrap();
        all.acknowledged.extend(written.acknowledged);
        all.sent.extend(written.sent);
    }
    all.acknowledged.sort_unstable();
    all
}

fn wide() -> Options {
    Options {
        events_per_topic: 10_000,
        max_value: 1 << 10,
        ..small()
    }
}

fn on(disk: &Disk) -> Result<DiskStore, OpenError> {
    DiskStore::open_in(disk.clone(), FORM, wide())
}

/// Compares what is there after a power loss with what was written.
fn recovered(disk: &Disk, written: &Written) -> Result<(), TestCaseError> {
    disk.lose_power();
    let store = on(disk).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let entries = store.list(&pods(), "", &ListOptions::default()).unwrap().entries;
    // no revision is missing, none is there twice
    let mut revisions: Vec<_> = entries.iter().map(|entry| entry.mod_revision).collect();
    revisions.sort_unstable();
    prop_assert_eq!(&revisions, &(1..=store.revision()).collect::<Vec<_>>());
    prop_assert!(written.acknowledged.len() <= revisions.len());
    prop_assert_eq!(&written.acknowledged, &revisions[..written.acknowledged.len()]);
    let mut there = 0;
    for paths in &written.sent {
        let found = paths.iter().filter(|path| store.get(&key(path)).is_some()).count();
        prop_assert!(found == 0 || found == paths.len(), "{} of {:?}", found, paths);
        there += found;
    }
    prop_assert_eq!(there, entries.len());
    Ok(())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn after_a_fault_and_a_power_loss_all_acknowledged_is_there_and_the_rest_is_whole(
        operations in 0u64..400,
        fault in prop_oneof![
            Just(Fault::Gone), Just(Fault::TornWrite), Just(Fault::FailedSync), Just(Fault::Panic)
        ],
        seed in any::<u64>(),
    ) {
        let disk = Disk::new(seed);
        let store = Arc::new(on(&disk).unwrap());
        disk.fail_after(operations, fault);
        let mut watch = store.watch(&pods(), "", 0).unwrap();
        let written = runtime().block_on(write_until_failure(&store));
        // nobody has seen more than what was acknowledged
        prop_assert_eq!(store.revision(), written.acknowledged.last().copied().unwrap_or_default());
        let mut told = Vec::new();
        while let Some(event) = watch.try_next().unwrap() {
            told.push(event.revision);
        }
        prop_assert_eq!(&told, &written.acknowledged);
        recovered(&disk, &written)?;
    }

    #[test]
    fn a_disk_that_was_full_is_as_it_was_once_there_is_room(blocks in 0usize..40, seed in any::<u64>()) {
        let disk = Disk::new(seed);
        let store = Arc::new(on(&disk).unwrap());
        disk.limit(Some(blocks));
        let written = runtime().block_on(write_until_failure(&store));
        let refused = runtime().block_on(store.commit(put("c/later", Expect::Any, "v"))).unwrap_err();
        prop_assert!(matches!(refused, CommitError::Unavailable { .. }), "{}", refused);
        prop_assert!(refused.to_string().contains("free space"), "{}", refused);
        drop(store);
        // without a power loss: the program is started again when there is room
        disk.limit(None);
        let store = on(&disk).unwrap();
        let last = written.acknowledged.last().copied().unwrap_or_default();
        prop_assert!(store.revision() >= last);
        runtime().block_on(store.commit(put("d/later", Expect::Absent, "v"))).unwrap();
        runtime().block_on(store.commit(delete("d/later", Expect::Present))).unwrap();
    }

    #[test]
    fn a_store_whose_making_was_cut_short_is_made_anew(operations in 0u64..60, seed in any::<u64>()) {
        let disk = Disk::new(seed);
        disk.fail_after(operations, Fault::Gone);
        match on(&disk) {
            // what was made in time keeps what it is told
            Ok(store) => {
                let written = runtime().block_on(write_until_failure(&Arc::new(store)));
                recovered(&disk, &written)?;
            }
            Err(refused) => {
                prop_assert!(matches!(refused, OpenError::Unwritable { .. }), "{}", refused);
                recovered(&disk, &Written::default())?;
            }
        }
        let store = on(&disk).unwrap();
        runtime().block_on(store.commit(put("d/first", Expect::Absent, "v"))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_what_a_slow_disk_has_not_yet_and_waiting_writers_share_a_sync() {
    let disk = Disk::new(1);
    let store = Arc::new(on(&disk).unwrap());
    store.commit(put("c/before", Expect::Any, "v")).await.unwrap();
    disk.slow_down(Duration::from_millis(30));
    let before = disk.syncs();
    let mut watch = store.watch(&pods(), "", 1).unwrap();
    let writers: Vec<_> = (0..40)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit(put(&format!("c/{number}"), Expect::Absent, "v")).await })
        })
        .collect();
    // one sync at least is under way: reads answer, and show nothing new
    while disk.syncs() == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.revision(), 1);
    assert!(watch.try_next().unwrap().is_none());
    assert!(store.get(&key("c/before")).is_some());
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(store.revision(), 41);
    assert!(
        disk.syncs() - before <= 12,
        "{} syncs for 40 writers",
        disk.syncs() - before
    );
}
