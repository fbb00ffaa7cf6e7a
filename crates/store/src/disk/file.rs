//! The file format: what the tables are, how a file is made, opened and written.
//!
//! `store.redb` holds two tables: `meta` (format version and newest revision) and `entries`
//! (topic, path → created, written, version, value as given or as encrypted)

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use redb::{Builder, Database, DatabaseError, Durability, StorageError, TableDefinition};

use super::OpenError;
use super::folder::Folder;
use super::sums;
use crate::{Event, EventKind, Options};

/// The format this program writes.
pub(super) const FORMAT: u64 = 1;

pub(super) const FILE: &str = "store.redb";
pub(super) const NEW_FILE: &str = "store.redb.new";
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Created, last written, version, value as given.
pub(super) type Row<'a> = (u64, u64, u64, &'a [u8]);
pub(super) const ENTRIES: TableDefinition<'_, (&str, &str), Row<'_>> = TableDefinition::new("entries");
pub(super) const META_FORMAT: &str = "format";
pub(super) const META_REVISION: &str = "revision";

/// An open store file.
#[derive(Debug)]
pub(super) struct StoreFile {
    pub(super) database: Database,
    path: PathBuf,
    // after the database, so that it is closed before
    _folder: Option<Box<dyn Debug + Send + Sync>>,
}

/// A folder whose store file gets its sums when it is let go.
#[derive(Debug)]
struct Summed<F: Folder>(F);

impl<F: Folder> Drop for Summed<F> {
    fn drop(&mut self) {
        if let Err(error) = sums::keep(&self.0) {
            tracing::debug!(%error, "no sums of the store's file were kept: it will be checked when it is next opened");
        }
    }
}

/// Opens the store file of a folder; makes one where there is none.
pub(super) fn open<F: Folder + 'static>(folder: F, options: &Options) -> Result<StoreFile, OpenError> {
    let path = folder.path().join(FILE);
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Unwritable { path, source }
    };
    if folder.length(FILE).map_err(unwritable(&path))?.is_none() {
        // Made under another name: whatever bears the real name was once whole, so that an empty file is damage.
        let new = folder.path().join(NEW_FILE);
        if folder.length(NEW_FILE).map_err(unwritable(&new))?.is_some() {
            folder.remove(NEW_FILE).map_err(unwritable(&new))?;
        }
        let database = Builder::new()
            .create_with_backend(folder.create(NEW_FILE).map_err(unwritable(&new))?)
            .map_err(|error| classify(error, &new, folder.path()))?;
        drop(StoreFile::initialized(database, &new)?);
        folder.rename(NEW_FILE, FILE).map_err(unwritable(&path))?;
        folder.sync().map_err(unwritable(folder.path()))?;
    }
    let check = match sums::unchanged(&folder) {
        true => Check::Not,
        false => Check::Pages,
    };
    let database = existing(&folder, FILE, &path, check, options)?;
    Ok(StoreFile {
        database,
        path,
        _folder: Some(Box::new(Summed(folder))),
    })
}

/// What of a file is checked before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Every page. Everything is read at start anyway; unchecked, damage would show as a panic later.
    Pages,
    /// Nothing: its bytes are those that the database left.
    Not,
}

/// The database in a file that is there; errors are told of `path`.
pub(super) fn existing<F: Folder>(
    folder: &F,
    name: &str,
    path: &Path,
    check: Check,
    options: &Options,
) -> Result<Database, OpenError> {
    let unwritable = |source| OpenError::Unwritable {
        path: path.to_owned(),
        source,
    };
    if folder.length(name).map_err(unwritable)? == Some(0) {
        return Err(damaged(path, "it is empty"));
    }
    let file = folder.open(name).map_err(unwritable)?;
    let mut builder = Builder::new();
    builder.set_cache_size(options.disk_cache_bytes);
    builder.set_check_integrity_on_open(check == Check::Pages);
    guarded(path, || {
        builder
            .create_with_backend(file)
            .map_err(|error| classify(error, path, folder.path()))
    })
}

/// Runs what reads a file that may be damaged: where the database gives up with a panic, that is damage too.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged(path, "reading it fails an internal check")))
}

pub(super) fn damaged(path: &Path, reason: impl ToString) -> OpenError {
    OpenError::Damaged {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn classify(error: DatabaseError, path: &Path, dir: &Path) -> OpenError {
    use std::io::ErrorKind;
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::InUse { dir: dir.to_owned() }
        }
        DatabaseError::Storage(StorageError::Io(source))
            if !matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            OpenError::Unwritable {
                path: path.to_owned(),
                source,
            }
        }
        other => damaged(path, other),
    }
}

/// A value as it is stored, or the deletion's note that there is none any more.
pub(super) type Given = Option<Bytes>;

impl StoreFile {
    /// Makes the tables of a new, empty database.
    pub(super) fn initialized(database: Database, path: &Path) -> Result<Self, OpenError> {
        let file = Self {
            database,
            path: path.to_owned(),
            _folder: None,
        };
        file.initialize()
            .map_err(|error| OpenError::Unwritable {
                path: path.to_owned(),
                source: std::io::Error::other(error),
            })
            .map(|()| file)
    }

    /// A database that has its tables.
    #[cfg(test)]
    pub(super) fn existing(database: Database, path: &Path) -> Self {
        Self {
            database,
            path: path.to_owned(),
            _folder: None,
        }
    }

    /// Where it is, for people.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn initialize(&self) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert(META_FORMAT, FORMAT)?;
            meta.insert(META_REVISION, 0)?;
            transaction.open_table(ENTRIES)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Makes events durable in one transaction: back when the disk has them. With each comes its value as it is stored.
    pub(super) fn persist(&self, events: &[(Event, Given)]) -> Result<(), redb::Error> {
        let Some((last, _)) = events.last() else {
            return Ok(());
        };
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut table = transaction.open_table(ENTRIES)?;
            for (event, given) in events {
                let entry = &event.entry;
                let key = (entry.key.topic.as_str(), &*entry.key.path);
                match (event.kind, given) {
                    (EventKind::Created | EventKind::Updated, Some(value)) => {
                        let row = (entry.create_revision, entry.mod_revision, entry.version(), &value[..]);
                        table.insert(key, row)?;
                    }
                    _ => {
                        table.remove(key)?;
                    }
                }
            }
            transaction.open_table(META)?.insert(META_REVISION, last.revision)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Writes another format version, as a newer program would.
    #[cfg(test)]
    pub(super) fn set_format(&self, format: u64) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.open_table(META)?.insert(META_FORMAT, format)?;
        transaction.commit()?;
        Ok(())
    }
}
