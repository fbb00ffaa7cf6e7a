//! Writes kubeconfigs.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_pki::Issued;
use serde_json::{Value, json};

/// How a cluster is reached and who asks.
pub struct Access<'a> {
    /// Name of cluster, context and user.
    pub name: &'a str,
    /// URL of the API server.
    pub server: &'a str,
    /// The host name to ask for in TLS, when it is not the URL's.
    pub tls_server_name: Option<&'a str>,
    /// Certificate of the authority, PEM.
    pub authority: &'a str,
    /// The client's certificate and key.
    pub client: &'a Issued,
}

/// A kubeconfig with these ways in; the first is the current context.
pub fn kubeconfig(ways: &[Access<'_>]) -> Value {
    let clusters: Vec<Value> = ways
        .iter()
        .map(|way| {
            let mut cluster =
                json!({"certificate-authority-data": STANDARD.encode(way.authority), "server": way.server});
            if let (Some(cluster), Some(name)) = (cluster.as_object_mut(), way.tls_server_name) {
                cluster.insert("tls-server-name".into(), name.into());
            }
            json!({"name": way.name, "cluster": cluster})
        })
        .collect();
    let users: Vec<Value> = ways
        .iter()
        .map(|way| {
            json!({"name": way.name, "user": {
                "client-certificate-data": STANDARD.encode(&way.client.certificate),
                "client-key-data": STANDARD.encode(&way.client.key),
            }})
        })
        .collect();
    let contexts: Vec<Value> = ways
        .iter()
        .map(|way| json!({"name": way.name, "context": {"cluster": way.name, "user": way.name}}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Config",
        "current-context": ways.first().map_or("", |way| way.name),
        "clusters": clusters, "contexts": contexts, "users": users, "preferences": {},
    })
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
