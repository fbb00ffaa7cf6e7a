//! Snapshots: a store's state in a file of its own, taken while the store goes on, and stores made from such files.
//!
//! A snapshot is a store file. What is encrypted in the store is encrypted in it, with the same keys.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, ReadableDatabase, ReadableTable};

use super::OpenError;
use super::file::{self, Check, ENTRIES, FILE, FORMAT, META, META_FORMAT, META_REVISION, NEW_FILE, StoreFile};
use super::folder::{self, Directory, Folder};
use crate::{Options, Revision};

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The snapshot's file cannot be written.
    #[error("the snapshot {} cannot be written: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store cannot be read.
    #[error("the store cannot be read: {reason}")]
    Unreadable {
        /// What the database said.
        reason: String,
    },
    /// The store was closed.
    #[error("the store is closed: take snapshots while it is open, or copy its file")]
    Closed,
}

impl StoreFile {
    /// Writes what the store holds now into a file. It appears at once and whole, or not at all.
    pub(super) fn copy_to(&self, path: &Path) -> Result<Revision, SnapshotError> {
        let unwritable = |source| SnapshotError::Unwritable {
            path: path.to_owned(),
            source,
        };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        let file = folder::create(&beside).map_err(unwritable)?;
        let done = self.copy_into(file).map_err(|error| match error {
            redb::Error::Io(source) => unwritable(source),
            other => SnapshotError::Unreadable {
                reason: other.to_string(),
            },
        });
        let done = done.and_then(|revision| {
            std::fs::rename(&beside, path).map_err(unwritable)?;
            folder::sync(folder::above(path)).map_err(unwritable)?;
            Ok(revision)
        });
        if done.is_err() {
            // the first error is what matters
            std::fs::remove_file(&beside).ok();
        }
        done
    }

    fn copy_into(&self, file: File) -> Result<Revision, redb::Error> {
        // sees what is there now, whatever is written meanwhile
        let from = self.database.begin_read()?;
        let backend = FileBackend::new(file)?;
        let copy = Builder::new().create_with_backend(backend)?;
        let to = copy.begin_write()?;
        let revision = {
            let meta = from.open_table(META)?;
            let mut copied = to.open_table(META)?;
            for row in meta.iter()? {
                let (name, number) = row?;
                copied.insert(name.value(), number.value())?;
            }
            let entries = from.open_table(ENTRIES)?;
            let mut copied = to.open_table(ENTRIES)?;
            for row in entries.iter()? {
                let (key, row) = row?;
                copied.insert(key.value(), row.value())?;
            }
            let revision = meta.get(META_REVISION)?.map(|revision| revision.value());
            revision.unwrap_or_default()
        };
        to.commit()?;
        Ok(revision)
    }
}

/// Makes the store of a folder from a snapshot.
pub(super) fn restore(snapshot: &Path, dir: &Path, advance: Revision) -> Result<(), OpenError> {
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Unwritable { path, source }
    };
    let folder = Directory::take(dir)?;
    let path = dir.join(FILE);
    if folder.length(FILE).map_err(unwritable(&path))?.is_some() {
        return Err(OpenError::Occupied { dir: dir.to_owned() });
    }
    let new = dir.join(NEW_FILE);
    if folder.length(NEW_FILE).map_err(unwritable(&new))?.is_some() {
        folder.remove(NEW_FILE).map_err(unwritable(&new))?;
    }
    let copy = || -> io::Result<()> {
        let mut from = File::open(snapshot)?;
        let mut to = folder::create(&new)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    };
    copy().map_err(unwritable(snapshot))?;
    let advanced =
        file::existing(&folder, NEW_FILE, snapshot, Check::Pages, &Options::default()).and_then(|database| {
            let done = || -> Result<Option<u64>, redb::Error> {
                let change = database.begin_write()?;
                let format = {
                    let mut meta = change.open_table(META)?;
                    let format = meta.get(META_FORMAT)?.map(|format| format.value());
                    let revision = meta.get(META_REVISION)?.map_or(0, |revision| revision.value());
                    meta.insert(META_REVISION, revision.saturating_add(advance))?;
                    format
                };
                change.commit()?;
                Ok(format)
            };
            match done() {
                Ok(Some(format)) if format <= FORMAT => Ok(()),
                Ok(Some(found)) => Err(OpenError::NewerFormat {
                    path: snapshot.to_owned(),
                    found,
                    supported: FORMAT,
                }),
                Ok(None) => Err(file::damaged(snapshot, "it is not a store of this program")),
                Err(error) => Err(file::damaged(snapshot, error)),
            }
        });
    if let Err(error) = advanced {
        // the first error is what matters
        folder.remove(NEW_FILE).ok();
        return Err(error);
    }
    folder.rename(NEW_FILE, FILE).map_err(unwritable(&path))?;
    folder.sync().map_err(unwritable(dir))
}
