//! The server from start to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::encryption::{self, EncryptionConfigError};
use gardener_apiserver::kubernetes::{self, BootstrapError, EtcdLayout, RecordedError};
use gardener_apiserver::{ClusterConfig, Server, Shared, UserInfo, aggregation, object};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_store::{Encryption, EtcdConfig, EtcdError, EtcdStore, Provider, Scope, Store};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::{self, FileError, read_optional};
use crate::flags::Flags;
use crate::serving::{self, Serving, ServingError};
use crate::{CLUSTER, VERSION, upkeep};

/// How long until etcd is looked for again at the start.
const RETRY: Duration = Duration::from_millis(500);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that a flag names cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no serving certificate.
    #[error(transparent)]
    Serving(#[from] ServingError),
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
    /// The recordings in the program are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The cluster cannot be set up.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The port cannot be had.
    #[error("--secure-port: {address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Serves until `stop` is cancelled, then ends in order.
///
/// # Errors
/// [`RunError`], at the start only.
pub async fn run(flags: Flags, stop: CancellationToken) -> Result<(), RunError> {
    let (clock, chance) = (Clock::system(), Chance::from_system());
    serving::provide(&flags, &clock)?;
    let serving = Serving::open(&flags)?;
    let settings = access::settings(&flags)?;
    let encryption = encryption(&flags)?;
    // a port that is taken should be told before anything is written
    let port = u16::try_from(flags.secure_port).unwrap_or_default();
    let address = SocketAddr::new(flags.bind_address, port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| RunError::Listen { address, source })?;
    let kubernetes = EmbeddedKubernetes::load()?;
    let store = open_store(&flags, &kubernetes, encryption).await?;
    let shared = Shared {
        store: store.clone(),
        clock,
        chance,
    };
    let server = Server::new(shared);
    let config = with_flags(kubernetes.config(VERSION, settings), &flags);
    let cluster = server.open(CLUSTER, config);
    kubernetes::complete(&cluster).await?;
    let tasks = TaskTracker::new();
    let own = server.client(
        CLUSTER,
        UserInfo::new("system:apiserver", &[gardener_apiserver::user::MASTERS]),
    );
    if let Some(identity) = access::proxy_identity(&flags)? {
        cluster.aggregation().identify(identity);
    }
    let upkeep = upkeep::Upkeep::new(own.clone(), store.clone(), &flags, port);
    upkeep.once().await;
    let follower = Arc::clone(&cluster);
    let background = CancellationToken::new();
    let aside = |work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let background = background.clone();
        tasks.spawn(async move {
            background.run_until_cancelled(work).await;
        });
    };
    aside(Box::pin(async move { follower.follow_custom_resources().await }));
    let (front, stopped) = (Arc::clone(&cluster), background.clone());
    aside(Box::pin(async move { aggregation::run(front, own, stopped).await }));
    let entrances = serving.entrances.clone();
    aside(Box::pin(serving.follow()));
    let upkeep = Arc::new(upkeep);
    let keeper = Arc::clone(&upkeep);
    aside(Box::pin(async move { keeper.keep().await }));
    let closing = CancellationToken::new();
    tasks.spawn(gardener_apiserver::listen::listen(
        listener,
        server.clone(),
        entrances,
        closing.clone(),
    ));
    tracing::info!(%address, version = VERSION, "serving");

    stop.cancelled().await;
    tracing::info!("ending");
    cluster.end_soon();
    upkeep.leave().await;
    sleep(flags.shutdown_delay_duration.to_std()).await;
    background.cancel();
    closing.cancel();
    server.shut_down();
    tasks.close();
    tasks.wait().await;
    store.close().await;
    Ok(())
}

/// Who encrypts what. What servers tell each other is not encrypted, as with upstream, whose servers may tell it beside ours.
fn encryption(flags: &Flags) -> Result<Encryption, RunError> {
    let path = flags.encryption_provider_config.as_ref();
    let path = path.filter(|path| !path.as_os_str().is_empty());
    let Some((path, text)) = path.zip(read_optional("encryption-provider-config", path)?) else {
        return Ok(Encryption::default());
    };
    let encryption = encryption::parse(&text).map_err(|source| RunError::Encryption {
        path: path.clone(),
        source,
    })?;
    Ok(encryption.with(
        Scope::Topic(kubernetes::layout::server_leases()),
        vec![Provider::identity()],
    ))
}

/// Opens the store, as soon as etcd answers.
async fn open_store(
    flags: &Flags,
    kubernetes: &EmbeddedKubernetes,
    encryption: Encryption,
) -> Result<Arc<dyn Store>, RunError> {
    let text = |flag, path: &Option<PathBuf>| read_optional(flag, path.as_ref());
    let compaction = flags.etcd_compaction_interval.to_std();
    let config = EtcdConfig {
        endpoints: flags.etcd_servers.clone(),
        authorities: text("etcd-cafile", &flags.etcd_cafile)?,
        certificate: text("etcd-certfile", &flags.etcd_certfile)?,
        key: text("etcd-keyfile", &flags.etcd_keyfile)?,
        compaction_interval: (!compaction.is_zero()).then_some(compaction),
    };
    let event_time_to_live = flags.event_ttl.to_std();
    let layout = Arc::new(EtcdLayout::new(
        &flags.etcd_prefix,
        CLUSTER,
        kubernetes.resources(),
        event_time_to_live,
    ));
    let deadline = Instant::now() + flags.storage_initialization_timeout.to_std();
    loop {
        let options = gardener_store::Options {
            encryption: encryption.clone(),
            ..gardener_store::Options::default()
        };
        match EtcdStore::open(&config, layout.clone(), object::stamp, options).await {
            Ok(store) => return Ok(Arc::new(store)),
            Err(error @ EtcdError::Unreachable { .. }) if Instant::now() < deadline => {
                tracing::warn!(%error, "waiting for etcd");
                sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The cluster's setup as flags want it.
fn with_flags(mut config: ClusterConfig, flags: &Flags) -> ClusterConfig {
    config.authorizer = access::authorizer(flags);
    // pods here may run on real nodes
    config.admission = kubernetes::admission_plugins(true);
    let disabled = &flags.disable_admission_plugins;
    for plugin in &flags.enable_admission_plugins {
        if !config.admission.iter().any(|own| own.name() == plugin) {
            tracing::warn!(
                plugin,
                "--enable-admission-plugins: this plugin is not there yet and does nothing"
            );
        }
    }
    config
        .admission
        .retain(|plugin| !disabled.iter().any(|name| name == plugin.name()));
    config
}
