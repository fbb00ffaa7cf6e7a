//! The folder a store lies in: what the store needs of a file system. Tests put one there that fails, fills up and loses power.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::OpenError;

/// A folder that one store has for itself. Names of files are relative to it.
///
/// What is in a file is durable when its backend has synced it; that there is a file of a name, when the folder has.
pub(crate) trait Folder: Debug + Send + Sync {
    /// An open file.
    type File: StorageBackend;

    /// Where it is, for people.
    fn path(&self) -> &Path;
    /// The length of a file in bytes; none if there is no such file.
    fn length(&self, name: &str) -> io::Result<Option<u64>>;
    /// A new, empty file, that only this user can read.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// A file that is there, to read and write.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Gives a file another name, at once and in the place of the one that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes names durable.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the file system, held by a locked file in it.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing the file would not do: a process that is just being started has a copy of it until it runs its program, and the lock goes
        // with the last one. What cannot be unlocked is closed all the same.
        self.lock.unlock().ok();
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that something is in.
pub(super) fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    }
}

/// Makes a folder and those above it that are missing, so that they outlive a power loss: a file is lost with the folder it is in.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = above(folder);
    make(above)?;
    match std::fs::create_dir(folder) {
        // somebody else was faster, or it is none
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        other => other?,
    }
    sync(above)
}

impl Directory {
    /// Takes a folder, and makes it where it is missing.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while another store has it, [`OpenError::Unwritable`].
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Unwritable { path, source }
        };
        make(path).map_err(unwritable(path))?;
        let lock_path = path.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(unwritable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                lock,
            }),
            Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::InUse { dir: path.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => Err(unwritable(&lock_path)(source)),
        }
    }
}

fn backend(file: File) -> io::Result<FileBackend> {
    FileBackend::new(file).map_err(io::Error::other)
}

impl Folder for Directory {
    type File = FileBackend;

    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        match std::fs::metadata(self.path.join(name)) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> io::Result<FileBackend> {
        create(&self.path.join(name)).and_then(backend)
    }

    fn open(&self, name: &str) -> io::Result<FileBackend> {
        let file = File::options().read(true).write(true).open(self.path.join(name))?;
        backend(file)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        sync(&self.path)
    }
}

/// A new, empty file that only this user can read: it will hold what clusters keep secret.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_let_go_of_also_where_another_process_has_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let taken = Directory::take(dir.path()).unwrap();
        assert!(matches!(
            Directory::take(dir.path()),
            Err(OpenError::InUse { dir: told }) if told == dir.path()
        ));
        let of_child = taken.lock.try_clone().unwrap();
        drop(taken);
        Directory::take(dir.path()).unwrap();
        drop(of_child);
    }

    #[test]
    fn folders_are_made_with_those_above() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        make(&deep).unwrap();
        make(&deep).unwrap();
        assert!(deep.is_dir());
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(make(&dir.path().join("file")).is_err());
        assert!(make(&dir.path().join("file/below")).is_err());
    }
}
