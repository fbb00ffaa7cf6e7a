//! The server from start to stop.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::kubeconfig::{Authority, Cluster};
use gardener_apiserver::kubernetes::{self, BootstrapError, EtcdLayout, RecordedError};
use gardener_apiserver::{Server, Shared, UserInfo, user};
use gardener_kube_apiserver::access::{self, FileError, read};
use gardener_kube_apiserver::running::Running;
use gardener_kube_apiserver::serving::{Bundles, Serving, ServingError};
use gardener_kube_apiserver::storage;
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_landscape::garden::{self, GARDEN, HOST};
use gardener_landscape::identity::{Identity, IdentityError};
use gardener_landscape::kubeconfig::{self, WriteError};
use gardener_landscape::{Storage, StorageError, apply};
use gardener_store::Store;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::flags::Flags;
use crate::admission::AdmissionError;
use crate::bootstrap;

/// Who has the kubeconfig that is written.
const ADMINISTRATOR: &str = "garden-administrator";
/// How long until what a garden has is written again when that did not work.
const RETRY: Duration = Duration::from_secs(2);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that a flag names cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Admission plugins cannot be configured.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The port cannot be had.
    #[error("--listen: {address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no store in memory or in a folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is no store in etcd.
    #[error(transparent)]
    Etcd(#[from] storage::StorageError),
    /// The garden's keys cannot be had.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// There is no serving certificate.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The recordings of Kubernetes' kinds are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The recordings of Gardener's kinds are damaged.
    #[error(transparent)]
    Garden(#[from] gardener_garden_apiserver::RecordedError),
    /// The garden cannot be set up.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The kubeconfig cannot be written.
    #[error("--kubeconfig: {0}")]
    Kubeconfig(#[from] WriteError),
    /// The kubeconfig cannot be made.
    #[error("--kubeconfig: {0}")]
    Yaml(Box<dyn std::error::Error + Send + Sync>),
}

/// Serves until `stop` is cancelled, then ends in order.
///
/// # Errors
/// [`RunError`], at the start only.
pub async fn run(flags: Flags, stop: CancellationToken) -> Result<(), RunError> {
    let (clock, chance) = (Clock::system(), Chance::from_system());
    // a port that is taken should be told before anything is written
    let listen = |source| RunError::Listen {
        address: flags.listen,
        source,
    };
    let listener = TcpListener::bind(flags.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let embedded = EmbeddedKubernetes::load()?;
    let store = open_store(&flags, &embedded).await?;
    let shared = Shared {
        store: store.clone(),
        clock,
        chance,
    };
    let identity = Identity::of(&shared, GARDEN).await?;
    let serving = serving(&flags, address, &identity)?;
    let server = Server::new(shared);
    let mut settings = identity.authentication(&format!("https://{HOST}"));
    settings.front_proxies = access::front_proxies(&flags.callers);
    let options = flags.garden.options();
    let mut config = garden::config(&embedded, settings, &options)?;
    let (plugins, identities) = crate::admission::left(&flags.admission, &options.features)?;
    config.admission = plugins;
    let cluster = server.open(GARDEN, config);
    identities.show(&cluster);
    kubernetes::complete(&cluster).await?;
    let running = Running::new(server.clone(), Arc::clone(&cluster), store);
    running.aside(async move { cluster.follow_custom_resources().await });
    let own = server.client(GARDEN, UserInfo::apiserver());
    running.aside(furnish(own, flags.cluster_identity.clone()));
    if let Some(path) = &flags.kubeconfig {
        write_kubeconfig(path, &flags, address, &identity)?;
        tracing::info!(kubeconfig = %path.display(), "written");
    }
    tracing::info!(%address, "serving");
    running
        .serve(listener, serving, stop, std::future::ready(()), &flags.ending)
        .await;
    Ok(())
}

async fn open_store(flags: &Flags, embedded: &EmbeddedKubernetes) -> Result<Arc<dyn Store>, RunError> {
    if flags.memory {
        return Ok(Storage::Memory.open()?);
    }
    if let Some(folder) = &flags.data_dir {
        return Ok(Storage::Disk(folder.clone()).open()?);
    }
    // Gardener's kinds lie below their groups, as custom resources do
    let layout = EtcdLayout::new(
        &flags.etcd.etcd_prefix,
        GARDEN,
        embedded.resources(),
        flags.event_ttl.to_std(),
    );
    let encryption = storage::encryption(&flags.etcd)?;
    if encryption.is_none() {
        tracing::warn!(
            "Secrets, InternalSecrets and ShootStates lie in etcd as they are: --encryption-provider-config encrypts them"
        );
    }
    Ok(storage::open(&flags.etcd, Arc::new(layout), encryption.unwrap_or_default()).await?)
}

/// The host by which clients come.
fn host(flags: &Flags, address: SocketAddr) -> String {
    flags.external_hostname.clone().unwrap_or_else(|| match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    })
}

fn serving(flags: &Flags, address: SocketAddr, identity: &Identity) -> Result<Serving, RunError> {
    let (authority, callers) = (identity.authority.certificate.clone(), flags.callers.clone());
    let bundles = move || {
        let named = Bundles::read(&callers)?;
        Ok(Bundles {
            clients: Some(format!("{authority}{}", named.clients.unwrap_or_default())),
            ..named
        })
    };
    if let (Some(certificate), Some(key)) = (flags.tls_cert_file.clone(), flags.tls_private_key_file.clone()) {
        let files = move || {
            Ok((
                read("tls-cert-file", &certificate)?,
                read("tls-private-key-file", &key)?,
            ))
        };
        return Ok(Serving::with(GARDEN, files, bundles)?);
    }
    let loopback = [
        IpAddr::from([127, 0, 0, 1]),
        IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
    ];
    let mut addresses: Vec<IpAddr> = loopback.to_vec();
    let named = flags.external_hostname.as_deref();
    let own = [Some(address.ip()), named.and_then(|host| host.parse().ok())];
    for ip in own.into_iter().flatten().filter(|ip| !ip.is_unspecified()) {
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    let names: Vec<&str> = ["localhost", HOST]
        .into_iter()
        .chain(named.filter(|host| host.parse::<IpAddr>().is_err()))
        .collect();
    let issued = identity.serving_certificate(&names, &addresses)?;
    let made = move || Ok((issued.certificate.clone(), issued.key.clone()));
    Ok(Serving::with(GARDEN, made, bundles)?)
}

fn write_kubeconfig(path: &Path, flags: &Flags, address: SocketAddr, identity: &Identity) -> Result<(), RunError> {
    let client = identity.client_certificate(&UserInfo::new(ADMINISTRATOR, &[user::MASTERS]), None)?;
    // whoever gave a certificate gave what is to be believed
    let authority = match &flags.tls_cert_file {
        Some(file) => read("tls-cert-file", file)?,
        None => identity.authority.certificate.clone(),
    };
    let cluster = Cluster {
        server: format!("https://{}:{}", host(flags, address), address.port()),
        tls_server_name: None,
        authority: Authority::Certificate(&authority),
    };
    let config = kubeconfig::with_certificate(GARDEN, cluster, &client);
    let text = serde_saphyr::to_string(&config).map_err(|error| RunError::Yaml(error.into()))?;
    Ok(kubeconfig::write_private(path, &text)?)
}

/// Makes sure of what every garden has: its namespaces, its identity, its roles. Tries until it works.
async fn furnish(client: Client, identity: String) {
    bootstrap::bootstrap(client.clone(), identity).await;
    while let Err(error) = furnish_once(&client).await {
        tracing::warn!(error, "the garden's own objects cannot be made; will be tried again");
        sleep(RETRY).await;
    }
}

async fn furnish_once(client: &Client) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces
        .get_opt("garden")
        .await
        .map_err(|error| error.to_string())?
        .is_none()
    {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some("garden".to_owned());
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        bootstrap::ignore_existing(created).map_err(|error| error.to_string())?;
    }
    // the identity of before stays
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let map = maps.get(bootstrap::IDENTITY).await.map_err(|error| error.to_string())?;
    let identity = map.data.and_then(|mut data| data.remove(bootstrap::IDENTITY));
    let manifest = garden::objects(identity.as_deref().unwrap_or_default());
    let applied = apply::apply(client, &manifest).await;
    applied.map(drop).map_err(|error| error.to_string())
}
