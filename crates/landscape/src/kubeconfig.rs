//! Writes kubeconfigs of administrators.

use std::path::{Path, PathBuf};

use gardener_apimachinery::kubeconfig::{Cluster, User, kubeconfig};
use gardener_pki::Issued;
use serde_json::Value;

/// A kubeconfig that leads to a cluster with a client certificate.
pub fn with_certificate(name: &str, cluster: Cluster<'_>, client: &Issued) -> Value {
    let user = User::Certificate {
        certificate: &client.certificate,
        key: &client.key,
    };
    kubeconfig(name, cluster, user)
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

/// Writes a file that only its owner may read, with the folders above it.
///
/// # Errors
/// The system refuses.
pub fn write_private(path: &Path, text: &str) -> Result<(), WriteError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    // written beside and renamed: a reader never sees half a file
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}
