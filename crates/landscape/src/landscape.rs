//! A running landscape: the store, the API server with its logical clusters, and the components, from start to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::kubeconfig::{Authority, Cluster};
use gardener_apiserver::kubernetes::{BootstrapError, RecordedError};
use gardener_apiserver::listen::{Closing, Entrances};
use gardener_apiserver::{Server, Shared, UserInfo};
use gardener_store::Store;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::apply;
use crate::embedded::EmbeddedKubernetes;
use crate::garden::{self, GARDEN};
use crate::identity::{Identity, IdentityError};
use crate::kubeconfig;
use crate::{manifests, registration};

/// Name of administrators of embedded clusters.
pub const ADMINISTRATOR: &str = "gardener-up:admin";

/// How a landscape is started.
pub struct Options {
    /// Where objects are kept.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Clock,
    /// Uids, names, jitter.
    pub chance: Chance,
    /// The address of the TLS listener, when there is one: kubeconfigs lead there.
    pub entry: Option<SocketAddr>,
    /// Seeds to run.
    pub seeds: u32,
}

/// Why a landscape does not start.
#[derive(Debug, thiserror::Error)]
pub enum LandscapeError {
    /// Keys cannot be had.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Objects of a fresh cluster cannot be stored.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The recordings in the program are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// A manifest of the first landscape was refused.
    #[error(transparent)]
    Apply(#[from] crate::apply::ApplyError),
    /// The garden's own definitions cannot be loaded.
    #[error("the garden's definitions cannot be loaded: {0}")]
    Garden(String),
}

/// A landscape whose garden answers.
pub struct Landscape {
    /// The API server.
    pub server: Server,
    /// Store, clock and chance.
    pub shared: Shared,
    /// Host names of the TLS listener.
    pub entrances: Entrances,
    pub(crate) kubernetes: EmbeddedKubernetes,
    pub(crate) garden: Identity,
    pub(crate) options: Options,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Landscape {
    /// Opens the garden. From then on the garden's API answers; components start with [`Landscape::run`].
    ///
    /// # Errors
    /// [`LandscapeError`].
    pub async fn open(options: Options) -> Result<Self, LandscapeError> {
        let shared = Shared {
            store: options.store.clone(),
            clock: options.clock.clone(),
            chance: options.chance.clone(),
        };
        let server = Server::new(shared.clone());
        let kubernetes = EmbeddedKubernetes::load()?;
        let identity = Identity::of(&shared, GARDEN).await?;
        garden::open(
            &server,
            &kubernetes,
            &identity,
            options.entry.map(|entry| url(Some(entry))).as_deref(),
        )
        .await?;
        let entrances = Entrances::default();
        if options.entry.is_some() {
            let addresses = ["127.0.0.1", "::1"].iter().filter_map(|text| text.parse().ok());
            let own = options
                .entry
                .iter()
                .map(SocketAddr::ip)
                .filter(|ip| !ip.is_unspecified());
            let addresses: Vec<_> = addresses.chain(own).collect();
            entrances.set_fallback(identity.entrance(&["localhost", garden::HOST], &addresses)?);
            entrances.set(
                garden::HOST,
                identity.entrance(&["localhost", garden::HOST], &addresses)?,
            );
        }
        Ok(Self {
            server,
            shared,
            entrances,
            kubernetes,
            garden: identity,
            options,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Serves the TLS listener until the landscape stops.
    pub fn listen(&self, listener: tokio::net::TcpListener) {
        let work = gardener_apiserver::listen::listen(
            listener,
            self.server.clone(),
            self.entrances.clone(),
            Closing::on(self.stop.clone()),
        );
        self.tasks.spawn(work);
    }

    /// Starts all components and opens the embedded seeds.
    ///
    /// # Errors
    /// [`LandscapeError`].
    pub async fn run(&self) -> Result<(), LandscapeError> {
        let manager = gardener_controller_manager::Config::new(
            self.component("gardener-controller-manager"),
            self.shared.clock.clone(),
            self.shared.chance.clone(),
        );
        self.tasks
            .spawn(gardener_controller_manager::run(manager, self.stop.clone()));
        let scheduler = gardener_scheduler::Config {
            garden: self.component("gardener-scheduler"),
            clock: self.shared.clock.clone(),
            strategy: gardener_rules::scheduling::Strategy::default(),
            concurrency: 5,
        };
        self.tasks.spawn(gardener_scheduler::run(scheduler, self.stop.clone()));
        let embedded = self.start_embedded();
        self.garden_takes_part(&embedded);
        apply::apply(&self.garden_client(), &garden::objects(garden::IDENTITY)).await?;
        let namespaces = &manifests::landscape(self.options.seeds)[..1];
        for manifest in namespaces {
            apply::apply(&self.garden_client(), manifest).await?;
        }
        for seed in manifests::seed_names(self.options.seeds) {
            self.open_seed(&embedded, &seed).await?;
            self.start_gardenlet(&seed).await?;
        }
        let registration = registration::manifest().map_err(|error| LandscapeError::Garden(error.to_string()))?;
        apply::apply(&self.garden_client(), &registration).await?;
        Ok(())
    }

    /// A client of the garden for one of Gardener's own components.
    fn component(&self, name: &str) -> kube::Client {
        self.server.client(
            GARDEN,
            UserInfo::new(
                &format!("gardener.cloud:system:{name}"),
                &[gardener_apiserver::user::MASTERS],
            ),
        )
    }

    /// A client of the garden for an administrator.
    pub fn garden_client(&self) -> kube::Client {
        self.client(GARDEN)
    }

    /// A client of any logical cluster for an administrator.
    pub fn client(&self, cluster: &str) -> kube::Client {
        self.server.client(cluster, administrator())
    }

    /// A kubeconfig for an administrator of the garden; needs the TLS listener.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn garden_kubeconfig(&self) -> Result<Value, LandscapeError> {
        let client = self.garden.client_certificate(&administrator(), None)?;
        let cluster = Cluster {
            server: self.url(),
            tls_server_name: None,
            authority: Authority::Certificate(&self.garden.authority.certificate),
        };
        Ok(kubeconfig::with_certificate(GARDEN, cluster, &client))
    }

    /// The listener's URL.
    pub fn url(&self) -> String {
        url(self.options.entry)
    }

    /// A kubeconfig for an administrator of an embedded seed.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub async fn seed_kubeconfig(&self, seed: &str) -> Result<Value, LandscapeError> {
        let name = seed_cluster(seed);
        let identity = Identity::of(&self.shared, &name).await?;
        let client = identity.client_certificate(&administrator(), None)?;
        let host = seed_host(seed);
        let cluster = Cluster {
            server: format!("{}/clusters/{name}", self.url()),
            tls_server_name: Some(&host),
            authority: Authority::Certificate(&identity.authority.certificate),
        };
        Ok(kubeconfig::with_certificate(&name, cluster, &client))
    }

    /// Ends everything: components first, then requests, then the store.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(Duration::from_secs(10), self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some components did not end in time");
        }
        self.server.shut_down();
        self.shared.store.close().await;
    }
}

fn url(entry: Option<SocketAddr>) -> String {
    match entry {
        Some(entry) if entry.ip().is_unspecified() => format!("https://127.0.0.1:{}", entry.port()),
        Some(entry) => format!("https://{entry}"),
        None => format!("https://{}", garden::HOST),
    }
}

/// The user behind administrators' kubeconfigs of embedded clusters.
pub fn administrator() -> UserInfo {
    UserInfo::new(ADMINISTRATOR, &[gardener_apiserver::user::MASTERS])
}

/// The logical cluster of a seed.
pub fn seed_cluster(seed: &str) -> String {
    format!("seed-{seed}")
}

/// The host name by which the listener leads to a seed.
pub fn seed_host(seed: &str) -> String {
    format!("api.{}.seed.local.gardener.cloud", seed)
}

/// The Secret in the garden's namespace `garden` that holds an embedded seed's kubeconfig.
pub fn seed_kubeconfig_secret(seed: &str) -> String {
    format!("seed-{seed}-kubeconfig")
}
