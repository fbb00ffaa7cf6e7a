//! What only the disk backend must do: keep what it acknowledged, and refuse what it cannot open.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;
use redb::{Builder, StorageBackend};

use super::file::{FORMAT, StoreFile};
use super::*;
use crate::Expect;
use crate::contract::{delete, key, pods, put, small, stamp};

fn open(dir: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(dir, stamp, small())
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
    assert_eq!(&after.entries[0].value[..], b"w@3");
    assert_eq!((after.entries[0].version, store.revision()), (2, 4));
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
    assert_eq!(&deleted.unwrap().entry.value[..], b"w@5");
    assert_eq!(watch.next().await.unwrap().revision, 5);
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

/// A disk in memory that can lose power: what was not synced may be there or not, write by write.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Image>>);

#[derive(Debug, Default)]
struct Image {
    current: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<Step>,
    /// Operations until everything fails; never if absent.
    budget: Option<u64>,
}

#[derive(Debug)]
enum Step {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl Step {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Step::Length(length) => image.resize(*length, 0),
            Step::Write(at, data) => {
                if image.len() < at + data.len() {
                    image.resize(at + data.len(), 0);
                }
                image[*at..at + data.len()].copy_from_slice(data);
            }
        }
    }
}

impl Image {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.budget {
            Some(0) => Err(io::Error::other("the disk is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn step(&mut self, step: Step) -> io::Result<()> {
        self.spend()?;
        step.apply(&mut self.current);
        self.unsynced.push(step);
        Ok(())
    }
}

impl Disk {
    /// What is on the platter after a power loss; `survives` says which unsynced writes made it.
    fn after_crash(&self, mut survives: impl FnMut() -> bool) -> Disk {
        let image = self.0.lock();
        let mut left = image.synced.clone();
        for step in &image.unsynced {
            if matches!(step, Step::Length(_)) || survives() {
                step.apply(&mut left);
            }
        }
        Disk(Arc::new(Mutex::new(Image {
            current: left.clone(),
            synced: left,
            ..Image::default()
        })))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let image = self.0.lock();
        let at = offset as usize;
        let found = image.current.get(at..at + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().step(Step::Length(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut image = self.0.lock();
        image.spend()?;
        image.synced = image.current.clone();
        image.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.lock().step(Step::Write(offset as usize, data.to_vec()))
    }
}

/// Writes from several tasks until the disk fails; gives the largest acknowledged revision and how many writes were sent.
async fn write_until_failure(store: &Arc<DiskStore>) -> (Revision, u64) {
    let mut writers = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(store);
        writers.push(tokio::spawn(async move {
            let (mut acknowledged, mut sent) = (0, 0);
            loop {
                let path = format!("c/{writer}/{sent}");
                sent += 1;
                match store.commit(put(&path, Expect::Absent, "value")).await {
                    Ok(committed) => {
                        acknowledged = committed.revision;
                        assert!(store.get(&key(&path)).is_some());
                    }
                    Err(CommitError::Unavailable { .. }) => {
                        assert!(store.get(&key(&path)).is_none(), "half visible");
                        return (acknowledged, sent);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }));
    }
    let (mut acknowledged, mut sent) = (0, 0);
    for writer in writers {
        let (revision, tried) = writer.await.unwrap();
        acknowledged = acknowledged.max(revision);
        sent += tried;
    }
    (acknowledged, sent)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn after_a_power_loss_acknowledged_is_in_recovered_is_in_sent(budget in 0u64..400, seed in any::<u64>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let path = Path::new("simulated");
        let disk = Disk::default();
        let database = Builder::new().create_with_backend(disk.clone()).unwrap();
        let file = StoreFile::initialized(database, path).unwrap();
        let store = Arc::new(DiskStore::start(file, stamp, small(), path).unwrap());
        disk.0.lock().budget = Some(budget);
        let (acknowledged, sent) = runtime.block_on(write_until_failure(&store));
        prop_assert_eq!(store.revision(), acknowledged);

        let mut state = seed | 1;
        let left = disk.after_crash(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 2 == 0
        });
        let database = Builder::new().create_with_backend(left).unwrap();
        let (recovered, entries) = StoreFile::existing(database, path).load(stamp).unwrap();
        prop_assert!(acknowledged <= recovered && recovered <= sent, "{acknowledged} {recovered} {sent}");
        let mut revisions: Vec<Revision> = entries.iter().map(|entry| entry.mod_revision).collect();
        revisions.sort_unstable();
        prop_assert_eq!(revisions, (1..=recovered).collect::<Vec<_>>());
        for entry in entries {
            prop_assert_eq!(entry.value, stamp(&Bytes::from_static(b"value"), entry.mod_revision));
        }
    }
}
