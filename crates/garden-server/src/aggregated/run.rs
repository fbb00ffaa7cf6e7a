//! The server from start to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::{Authenticator, Settings};
use gardener_apiserver::authz::{Authorizer, OpenPaths, Union};
use gardener_apiserver::definition::Admission;
use gardener_apiserver::delegation::{AccessReviewer, TokenReviewer};
use gardener_apiserver::elsewhere::Elsewhere;
use gardener_apiserver::kubernetes::{EtcdLayout, RecordedError};
use gardener_apiserver::openapi::Documents;
use gardener_apiserver::{ClusterConfig, ResourceSet, Server, Shared};
use gardener_garden_apiserver::{definitions, openapi_documents};
use gardener_kube_apiserver::flags::AdmissionFlags;
use gardener_kube_apiserver::serving::{self, Serving, ServingError};
use gardener_kube_apiserver::storage::{self, StorageError};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_landscape::garden;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::CLUSTER;
use super::flags::{ADMISSION_PLUGINS, Flags, OFF_BY_DEFAULT};
use super::trust::{Trust, TrustError};
use crate::bootstrap::{self, Facts};

/// Host names of the server.
const HOSTS: [&str; 2] = ["gardener-apiserver.kube-system.svc", "localhost"];

/// Kinds of Kubernetes that admission reads: what objects refer to, where they are, and which webhooks are asked and where those are.
const ELSEWHERE: [(&str, &str); 7] = [
    ("", "namespaces"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
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
    /// It is not known whom to believe.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no serving certificate, or no port.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// There is no store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The recordings in the program are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The garden's recordings in the program are damaged.
    #[error(transparent)]
    Garden(#[from] gardener_garden_apiserver::RecordedError),
}

/// A client by a kubeconfig, or by what a pod has.
async fn client(flag: &'static str, path: Option<&Path>) -> Result<Client, RunError> {
    let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else {
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

/// Serves until `stop` is cancelled, then ends in order. `without_effect` are flags that were given, and do nothing.
///
/// # Errors
/// [`RunError`], at the start only.
pub async fn run(flags: Flags, without_effect: Vec<String>, stop: CancellationToken) -> Result<(), RunError> {
    for flag in without_effect {
        tracing::warn!(flag, "this flag is accepted, but has no effect");
    }
    let features = flags.features().unwrap_or_default();
    for feature in features.keys() {
        tracing::warn!(
            feature,
            "--feature-gates: this feature gate is accepted, but has no effect"
        );
    }
    let (clock, chance) = (Clock::system(), Chance::from_system());
    let kubernetes = client("kubeconfig", flags.kubeconfig.as_deref()).await?;
    let authentication = client("authentication-kubeconfig", flags.authentication_kubeconfig.as_deref()).await?;
    let authorization = client("authorization-kubeconfig", flags.authorization_kubeconfig.as_deref()).await?;
    // a port that is taken should be told before anything is waited for
    let (listener, address) = serving::bind(&flags.serving).await?;
    let trust = Trust::of(&flags.callers);
    let follows_trust = trust.is_asked_for() && !flags.authentication_skip_lookup;
    if follows_trust {
        match look(&trust, &flags, &authentication).await {
            Err(error) if flags.authentication_tolerate_lookup_failure => {
                tracing::warn!(%error, "front proxies are not believed until it is there");
            }
            other => other?,
        }
    }
    serving::provide(&flags.serving, &HOSTS, [], &clock)?;
    let bundles = trust.clone();
    let serving = Serving::open(CLUSTER, &flags.serving, move || bundles.bundles())?;
    let layout = EtcdLayout::new(
        &flags.etcd.etcd_prefix,
        CLUSTER,
        // all of Gardener's kinds lie below their group, as custom resources do
        &ResourceSet::default(),
        Duration::ZERO,
    );
    let encryption = storage::encryption(&flags.etcd)?.unwrap_or_default();
    let store = storage::open(&flags.etcd, Arc::new(layout), encryption).await?;
    let server = Server::new(Shared {
        store: store.clone(),
        clock,
        chance,
    });
    let keep = flags.authentication_token_webhook_cache_ttl.to_std();
    let authenticator = Arc::new(Authenticator::new(Settings {
        anonymous: true,
        front_proxies: trust.front_proxies(),
        reviewer: Some(Arc::new(TokenReviewer::new(authentication.clone(), keep))),
        ..Settings::default()
    }));
    let elsewhere = Arc::new(elsewhere(kubernetes.clone())?);
    let options = gardener_garden_apiserver::Options {
        admin_kubeconfig_max: flags.shoot_admin_kubeconfig_max_expiration.to_std(),
        viewer_kubeconfig_max: flags.shoot_viewer_kubeconfig_max_expiration.to_std(),
        ..gardener_garden_apiserver::Options::default()
    };
    let cluster = server.open(
        CLUSTER,
        ClusterConfig {
            resources: Arc::new(ResourceSet::new(definitions(&options)?)),
            custom_resources: false,
            admission: admission(&flags.admission),
            authenticator: Arc::clone(&authenticator),
            authorizer: authorizer(&flags, authorization),
            git_version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
            openapi: Arc::new(Documents::new(openapi_documents())),
            elsewhere: Some(Arc::clone(&elsewhere)),
        },
    );
    let (tasks, background) = (TaskTracker::new(), CancellationToken::new());
    let aside = |work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let background = background.clone();
        tasks.spawn(async move {
            background.run_until_cancelled(work).await;
        });
    };
    aside(Box::pin(async move { elsewhere.follow().await }));
    if follows_trust {
        aside(Box::pin(trust.follow(authentication, authenticator, serving.changes())));
    }
    let facts = Facts {
        identity: flags.cluster_identity.clone(),
        features,
    };
    aside(Box::pin(bootstrap::bootstrap(kubernetes, facts)));
    let entrances = serving.entrances.clone();
    aside(Box::pin(serving.follow()));
    let closing = CancellationToken::new();
    let listening = gardener_apiserver::listen::listen(listener, server.clone(), entrances, closing.clone());
    tasks.spawn(listening);
    tracing::info!(%address, "serving");

    stop.cancelled().await;
    tracing::info!("ending");
    cluster.end_soon();
    sleep(flags.serving.shutdown_delay_duration.to_std()).await;
    background.cancel();
    closing.cancel();
    server.shut_down();
    tasks.close();
    tasks.wait().await;
    store.close().await;
    Ok(())
}

/// Asks whom to believe; not for long where the server starts without an answer, too.
async fn look(trust: &Trust, flags: &Flags, client: &Client) -> Result<(), TrustError> {
    let patience = match flags.authentication_tolerate_lookup_failure {
        true => Duration::ZERO,
        false => flags.etcd.storage_initialization_timeout.to_std(),
    };
    trust.look(client, patience).await
}

fn elsewhere(client: Client) -> Result<Elsewhere, RecordedError> {
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

/// The plugins that flags leave, in their order. What upstream has besides is told.
fn admission(flags: &AdmissionFlags) -> Vec<Arc<dyn Admission>> {
    let named = |names: &[String], plugin: &str| names.iter().any(|name| name == plugin);
    let mut plugins = garden::admission_plugins();
    for plugin in ADMISSION_PLUGINS {
        let there = plugins.iter().any(|own| own.name() == plugin);
        let wanted = match OFF_BY_DEFAULT.contains(&plugin) {
            true => named(&flags.enable_admission_plugins, plugin),
            false => !named(&flags.disable_admission_plugins, plugin),
        };
        if wanted && !there {
            tracing::warn!(
                plugin,
                "this admission plugin is not there yet: what it would refuse or change is not"
            );
        }
    }
    // as upstream: enabled and disabled is disabled
    plugins.retain(|plugin| !named(&flags.disable_admission_plugins, plugin.name()));
    plugins
}
