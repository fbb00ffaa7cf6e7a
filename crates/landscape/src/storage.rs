//! Where a landscape's objects are kept, and the key with which secret ones are encrypted there.
//!
//! Beside a store on disk lies `encryption.yaml`, an EncryptionConfiguration as kube-apiserver reads it, made with a new key where it is missing. It
//! keeps secret ones secret in copies of the store's file: in backups, snapshots, disks that are thrown away without it. It does not keep them from
//! who can read the folder, for the key is there, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gardener_apiserver::encryption::{self, EncryptionConfigError};
use gardener_apiserver::object;
use gardener_store::{DiskStore, MemoryStore, OpenError, SecretKey, Store};

/// The file that holds the keys.
pub const ENCRYPTION_FILE: &str = "encryption.yaml";
/// What is encrypted in a landscape whose file was made here.
const SECRET: [&str; 3] = [
    "secrets",
    "internalsecrets.core.gardener.cloud",
    "shootstates.core.gardener.cloud",
];

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory: gone with the process.
    Memory,
    /// In a folder.
    Disk(PathBuf),
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store is encrypted, and the key is gone.
    #[error("{source}. The key was in {}, which is missing: put it back", path.display())]
    KeyMissing {
        /// Where the key should be.
        path: PathBuf,
        /// What the store said.
        source: OpenError,
    },
    /// The file with the keys cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file with the keys is wrong.
    #[error("{}: {source}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: EncryptionConfigError,
    },
}

impl Storage {
    /// Opens the store. Of one folder there is only one store at a time.
    ///
    /// # Errors
    /// When the folder cannot be used, another process uses it, the store is damaged, or its keys are missing.
    pub fn open(&self) -> Result<Arc<dyn Store>, StorageError> {
        match self {
            Self::Memory => {
                let options = gardener_store::Options::default();
                Ok(Arc::new(MemoryStore::new(object::FORM, options)))
            }
            Self::Disk(dir) => open(dir),
        }
    }
}

fn open(dir: &Path) -> Result<Arc<dyn Store>, StorageError> {
    let path = dir.join(ENCRYPTION_FILE);
    let file = |source| StorageError::File {
        path: path.clone(),
        source,
    };
    let (text, is_new) = match std::fs::read_to_string(&path) {
        Ok(text) => (text, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = SecretKey::random("key1").map_err(|error| file(io::Error::other(error)))?;
            (encryption::generate(&SECRET, &key), true)
        }
        // told by the store, in its words
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => (String::new(), false),
        Err(error) => return Err(file(error)),
    };
    let encryption = match text.as_str() {
        "" if !path.is_file() => gardener_store::Encryption::default(),
        text => encryption::parse(text).map_err(|source| StorageError::Configuration {
            path: path.clone(),
            source,
        })?,
    };
    let options = gardener_store::Options {
        encryption,
        ..gardener_store::Options::default()
    };
    let store = DiskStore::open(dir, object::FORM, options).map_err(|error| match error {
        source @ OpenError::Encrypted { .. } if is_new => StorageError::KeyMissing {
            path: path.clone(),
            source,
        },
        other => other.into(),
    })?;
    // Nothing is encrypted with a new key before it is on disk; and it is there only if it is needed.
    if is_new {
        keep(dir, &text).map_err(file)?;
    }
    Ok(Arc::new(store))
}

/// Writes the file with the keys, for its user only, so that it outlives a power loss.
fn keep(dir: &Path, text: &str) -> io::Result<()> {
    let (path, beside) = (dir.join(ENCRYPTION_FILE), dir.join("encryption.yaml.new"));
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, &path)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use bytes::Bytes;
    use gardener_store::{Change, Expect, Key, Topic};

    use super::*;

    fn key(resource: &str) -> Key {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        Key::new(Topic::new(group, resource), "garden/n/x")
    }

    async fn put(store: &Arc<dyn Store>, resource: &str, value: &'static str) {
        let change = Change::Put {
            key: key(resource),
            expect: Expect::Any,
            value: Bytes::from_static(value.as_bytes()),
        };
        store.commit(change).await.unwrap();
    }

    async fn close(store: Arc<dyn Store>) {
        store.close().await;
    }

    #[tokio::test]
    async fn secrets_are_encrypted_with_a_key_beside_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let on_disk = |text: &str| {
            let file = std::fs::read(dir.path().join("store.redb")).unwrap();
            file.windows(text.len()).any(|part| part == text.as_bytes())
        };
        let storage = Storage::Disk(dir.path().to_owned());
        // a store of before there was a key
        let store = DiskStore::open(dir.path(), object::FORM, gardener_store::Options::default()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        put(&store, "secrets", "{\"old\":1}").await;
        close(store).await;

        let store = storage.open().unwrap();
        let keys = dir.path().join(ENCRYPTION_FILE);
        assert_eq!(std::fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(store.get(&key("secrets")).unwrap().value().starts_with(b"{\"old\""));
        put(&store, "secrets", "{\"secret\":1}").await;
        put(&store, "internalsecrets.core.gardener.cloud", "{\"internal\":1}").await;
        put(&store, "shootstates.core.gardener.cloud", "{\"state\":1}").await;
        put(&store, "configmaps", "{\"public\":1}").await;
        put(&store, "shoots.core.gardener.cloud", "{\"shoot\":1}").await;
        close(store).await;
        assert!(on_disk("\"public\":1") && on_disk("\"shoot\":1"));
        for kept in ["\"secret\":1", "\"internal\":1", "\"state\":1"] {
            assert!(!on_disk(kept), "{kept}");
        }

        let text = std::fs::read_to_string(&keys).unwrap();
        let store = storage.open().unwrap();
        assert!(store.get(&key("secrets")).unwrap().value().starts_with(b"{\"secret\""));
        close(store).await;
        assert_eq!(std::fs::read_to_string(&keys).unwrap(), text, "made once");

        // a lost key is not replaced by another one
        std::fs::remove_file(&keys).unwrap();
        let refused = storage.open().err().unwrap();
        assert!(matches!(refused, StorageError::KeyMissing { .. }), "{refused}");
        assert!(!keys.exists());
        std::fs::write(&keys, "").unwrap();
        let refused = storage.open().err().unwrap();
        assert!(matches!(refused, StorageError::Configuration { .. }), "{refused}");
        std::fs::write(&keys, text).unwrap();
        close(storage.open().unwrap()).await;
    }
}
