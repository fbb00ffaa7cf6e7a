//! Why a store on disk cannot be opened.

use std::path::PathBuf;

use crate::{CipherError, Key};

/// Why a store on disk cannot be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or written.
    #[error(
        "cannot write to {}: {source}; choose another data directory or give this user write access to it",
        path.display()
    )]
    Unwritable {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has the store open.
    #[error(
        "another `gardener up` is running on this data directory ({}): stop it, or choose another data directory",
        dir.display()
    )]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// A snapshot cannot be restored where there is a store.
    #[error("there is a store in {} already: restore the snapshot into an empty folder", dir.display())]
    Occupied {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file is not a store, or not a whole one.
    #[error(
        "{} is damaged ({reason}): restore it from a backup, or move it away to start with an empty landscape",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A value is encrypted and cannot be read.
    #[error("{} cannot be read: {key}: {reason}; start with the encryption configuration that it was written with", path.display())]
    Encrypted {
        /// The file.
        path: PathBuf,
        /// The first key that cannot be read.
        key: Key,
        /// What is wrong.
        reason: CipherError,
    },
    /// A newer program wrote the file.
    #[error(
        "{} has format {found}, this program knows formats up to {supported}: use the newer `gardener` that wrote it",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The newest format version this program reads.
        supported: u64,
    },
}
