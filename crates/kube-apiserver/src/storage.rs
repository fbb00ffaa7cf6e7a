//! The store on etcd, by flags.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::encryption::{self, EncryptionConfigError};
use gardener_apiserver::object;
use gardener_store::{DividedStore, Encryption, EtcdConfig, EtcdError, EtcdStore, Layout, Store};
use tokio::time::{Instant, sleep};

use crate::access::{FileError, read_optional};
use crate::flags::EtcdFlags;
use crate::flags::etcd_overrides::{self, EtcdOverride};

/// How long until etcd is looked for again at the start.
const RETRY: Duration = Duration::from_millis(500);

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A file that a flag names cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The encryption configuration cannot be used.
    #[error("--encryption-provider-config: {}: {source}", path.display())]
    Encryption {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: EncryptionConfigError,
    },
    /// etcd cannot be used.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

/// Who encrypts what; none without a configuration.
///
/// # Errors
/// The configuration cannot be used.
pub fn encryption(flags: &EtcdFlags) -> Result<Option<Encryption>, StorageError> {
    let path = flags.encryption_provider_config.as_ref();
    let Some((path, text)) = path.zip(read_optional("encryption-provider-config", path)?) else {
        return Ok(None);
    };
    let encryption = encryption::parse(&text).map_err(|source| StorageError::Encryption {
        path: path.clone(),
        source,
    })?;
    Ok(Some(encryption))
}

/// Opens the store, as soon as etcd answers, and those of resources that have an etcd of their own.
///
/// # Errors
/// [`StorageError`].
pub async fn open(
    flags: &EtcdFlags,
    layout: Arc<dyn Layout>,
    encryption: Encryption,
) -> Result<Arc<dyn Store>, StorageError> {
    let open = |servers| open_at(servers, flags, &layout, &encryption);
    let main = open(flags.etcd_servers.clone()).await?;
    // what is wrong with the flag was told when flags were read
    let overrides = etcd_overrides::read(&flags.etcd_servers_overrides).unwrap_or_default();
    if overrides.is_empty() {
        return Ok(main);
    }
    let mut apart = Vec::with_capacity(overrides.len());
    for EtcdOverride { topics, servers } in overrides {
        apart.push((topics, open(servers).await?));
    }
    Ok(Arc::new(DividedStore::new(main, apart)))
}

async fn open_at(
    endpoints: Vec<String>,
    flags: &EtcdFlags,
    layout: &Arc<dyn Layout>,
    encryption: &Encryption,
) -> Result<Arc<dyn Store>, StorageError> {
    let text = |flag, path: &Option<PathBuf>| read_optional(flag, path.as_ref());
    let compaction = flags.etcd_compaction_interval.to_std();
    let config = EtcdConfig {
        endpoints,
        authorities: text("etcd-cafile", &flags.etcd_cafile)?,
        certificate: text("etcd-certfile", &flags.etcd_certfile)?,
        key: text("etcd-keyfile", &flags.etcd_keyfile)?,
        compaction_interval: (!compaction.is_zero()).then_some(compaction),
    };
    let deadline = Instant::now() + flags.storage_initialization_timeout.to_std();
    loop {
        let options = gardener_store::Options {
            encryption: encryption.clone(),
            ..gardener_store::Options::default()
        };
        match EtcdStore::open(&config, layout.clone(), object::FORM, options).await {
            Ok(store) => return Ok(Arc::new(store)),
            Err(error @ EtcdError::Unreachable { .. }) if Instant::now() < deadline => {
                tracing::warn!(%error, "waiting for etcd");
                sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
