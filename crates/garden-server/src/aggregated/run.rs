//! The server from start to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::{Authenticator, FrontProxies, Settings};
use gardener_apiserver::authz::{Authorizer, OpenPaths, Union};
use gardener_apiserver::delegation::{AccessReviewer, TokenReviewer};
use gardener_apiserver::elsewhere::Elsewhere;
use gardener_apiserver::kubernetes::{EtcdLayout, RecordedError};
use gardener_apiserver::openapi::Documents;
use gardener_apiserver::{ClusterConfig, ResourceSet, Server, Shared};
use gardener_garden_apiserver::{PUBLISHER, definitions, openapi_documents};
use gardener_kube_apiserver::admission_configuration::WebhookIdentities;
use gardener_kube_apiserver::audit::{AuditError, Auditing};
use gardener_kube_apiserver::egress::{self, EgressFileError};
use gardener_kube_apiserver::running::Running;
use gardener_kube_apiserver::serving::{self, Serving, ServingError};
use gardener_kube_apiserver::storage::{self, StorageError};
use gardener_landscape::embedded::EmbeddedKubernetes;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

use super::CLUSTER;
use super::flags::Flags;
use super::trust::{Trust, TrustError};
use crate::admission::{self, AdmissionError};
use crate::bootstrap;

/// Host names of the server.
const HOSTS: [&str; 2] = ["gardener-apiserver.kube-system.svc", "localhost"];

/// Kinds of Kubernetes that admission reads: what objects refer to, where they are how many there may be, which webhooks are asked and where those
/// are, and which policies hold.
const ELSEWHERE: [(&str, &str); 10] = [
    ("", "namespaces"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
];

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A kube-apiserver cannot be asked.
    #[error("--{flag}: {}: {source}", path.display())]
    Kubeconfig {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No kube-apiserver is named, and this runs in none's cluster.
    #[error("--{flag} is not given, and this runs in no cluster: {source}")]
    NoCluster {
        /// The flag.
        flag: &'static str,
        /// What is missing.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Admission plugins cannot be configured.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// It is not known whom to believe.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no serving certificate, or no port.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// There is no store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It is not known which ways lead out.
    #[error(transparent)]
    Egress(#[from] EgressFileError),
    /// Requests cannot be told of.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The recordings in the program are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The garden's recordings in the program are damaged.
    #[error(transparent)]
    Garden(#[from] gardener_garden_apiserver::RecordedError),
}

/// A client by a kubeconfig, or by what a pod has.
async fn client(flag: &'static str, path: Option<&Path>) -> Result<Client, RunError> {
    let Some(path) = path else {
        let no_cluster = |source: Box<dyn std::error::Error + Send + Sync>| RunError::NoCluster { flag, source };
        let config = kube::Config::incluster().map_err(|error| no_cluster(error.into()))?;
        return Client::try_from(config).map_err(|error| no_cluster(error.into()));
    };
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| RunError::Kubeconfig {
        flag,
        path: path.to_owned(),
        source,
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| wrong(error.into()))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| wrong(error.into()))?;
    Client::try_from(config).map_err(|error| wrong(error.into()))
}

/// The kube-apiserver, as whom flags say for what.
pub(super) struct Clients {
    /// Whose objects admission reads.
    pub(super) kubernetes: Client,
    /// Who tells whose bearer tokens are.
    pub(super) authentication: Client,
    /// Who says what is allowed.
    pub(super) authorization: Client,
}

impl Clients {
    async fn of(flags: &Flags) -> Result<Self, RunError> {
        let authentication = flags.authentication_kubeconfig.as_deref();
        let authorization = flags.authorization_kubeconfig.as_deref();
        Ok(Self {
            kubernetes: client("kubeconfig", flags.kubeconfig.as_deref()).await?,
            authentication: client("authentication-kubeconfig", authentication).await?,
            authorization: client("authorization-kubeconfig", authorization).await?,
        })
    }
}

/// The setup of the one cluster, and who asks its webhooks.
pub(super) fn config(
    flags: &Flags,
    clients: &Clients,
    elsewhere: Arc<Elsewhere>,
    front_proxies: Option<FrontProxies>,
) -> Result<(ClusterConfig, WebhookIdentities), RunError> {
    let keep = flags.authentication_token_webhook_cache_ttl.to_std();
    let authenticator = Arc::new(Authenticator::new(Settings {
        anonymous: true,
        front_proxies,
        reviewer: Some(Arc::new(TokenReviewer::new(clients.authentication.clone(), keep))),
        ..Settings::default()
    }));
    let options = flags.garden.options();
    let (admission, identities) = admission::left(&flags.admission, &options.features)?;
    let config = ClusterConfig {
        custom_resources: false,
        admission,
        elsewhere: Some(elsewhere),
        watch_timeout: flags.serving.ending.watch_timeout(),
        in_flight: flags.serving.in_flight.places(),
        seats: flags.serving.seats(),
        ..ClusterConfig::new(
            (
                Arc::new(ResourceSet::new(definitions(&options)?)),
                Arc::new(Documents::default().published_by(PUBLISHER, openapi_documents())),
            ),
            authenticator,
            authorizer(flags, clients.authorization.clone()),
            gardener_apis::constants::VERSION,
        )
    };
    Ok((config, identities))
}

/// Serves until `stop` is cancelled, then ends in order. `without_effect` are flags that were given, and do nothing.
///
/// # Errors
/// [`RunError`], at the start only.
pub async fn run(flags: Flags, without_effect: Vec<String>, stop: CancellationToken) -> Result<(), RunError> {
    for flag in without_effect {
        tracing::warn!(flag, "this flag is accepted, but has no effect");
    }
    let (clock, chance) = (Clock::system(), Chance::from_system());
    let clients = Clients::of(&flags).await?;
    let auditing = Auditing::open(&flags.audit, &clock)?;
    let egress = egress::open(flags.egress_selector_config_file.as_ref()).await?;
    // a port that is taken should be told before anything is waited for
    let (listener, address) = serving::bind(&flags.serving).await?;
    let trust = Trust::of(&flags.callers);
    let follows_trust = trust.is_asked_for() && !flags.authentication_skip_lookup;
    if follows_trust {
        match look(&trust, &flags, &clients.authentication).await {
            Err(error) if flags.authentication_tolerate_lookup_failure => {
                tracing::warn!(%error, "front proxies are not believed until it is there");
            }
            other => other?,
        }
    }
    serving::provide(&flags.serving, &HOSTS, [], &clock)?;
    let bundles = trust.clone();
    let serving = Serving::open(CLUSTER, &flags.serving, move || bundles.bundles())?;
    let layout = layout(&flags.etcd.etcd_prefix);
    let encryption = storage::encryption(&flags.etcd)?.unwrap_or_default();
    let store = storage::open(&flags.etcd, Arc::new(layout), encryption).await?;
    let server = Server::new(Shared {
        store: store.clone(),
        clock,
        chance,
    });
    let elsewhere = Arc::new(elsewhere(clients.kubernetes.clone())?);
    let (mut config, identities) = config(&flags, &clients, Arc::clone(&elsewhere), trust.front_proxies())?;
    config.audit = auditing.audit();
    config.egress = egress.unwrap_or_default();
    let authenticator = Arc::clone(&config.authenticator);
    let cluster = server.open(CLUSTER, config);
    identities.show(&cluster);
    let running = Running::new(server, Arc::clone(&cluster), store);
    running.to_the_end(|stop| auditing.deliver(cluster, stop));
    running.aside(async move { elsewhere.follow().await });
    if follows_trust {
        running.aside(trust.follow(clients.authentication, authenticator, serving.changes()));
    }
    running.aside(bootstrap::bootstrap(clients.kubernetes, flags.cluster_identity.clone()));
    tracing::info!(%address, "serving");
    running
        .serve(listener, serving, stop, std::future::ready(()), &flags.serving.ending)
        .await;
    Ok(())
}

/// Where objects lie in etcd: all below their group, as custom resources do.
pub(super) fn layout(prefix: &str) -> EtcdLayout {
    EtcdLayout::new(prefix, CLUSTER, &ResourceSet::default(), Duration::ZERO)
}

/// Asks whom to believe; not for long where the server starts without an answer, too.
async fn look(trust: &Trust, flags: &Flags, client: &Client) -> Result<(), TrustError> {
    let patience = match flags.authentication_tolerate_lookup_failure {
        true => Duration::ZERO,
        false => flags.etcd.storage_initialization_timeout.to_std(),
    };
    trust.look(client, patience).await
}

pub(super) fn elsewhere(client: Client) -> Result<Elsewhere, RecordedError> {
    let kubernetes = EmbeddedKubernetes::load()?;
    let all = kubernetes.resources();
    let read = ELSEWHERE
        .iter()
        .filter_map(|(group, plural)| all.get(group, plural).cloned());
    Ok(Elsewhere::new(CLUSTER, ResourceSet::new(read), client))
}

fn authorizer(flags: &Flags, client: Client) -> Arc<dyn Authorizer> {
    let open = OpenPaths(flags.authorization_always_allow_paths.clone());
    let reviewer = AccessReviewer::new(
        client,
        flags.authorization_webhook_cache_authorized_ttl.to_std(),
        flags.authorization_webhook_cache_unauthorized_ttl.to_std(),
    );
    Arc::new(Union(vec![Arc::new(open), Arc::new(reviewer)]))
}
