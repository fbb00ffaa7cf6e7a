//! The server from start to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::definition::Definition;
use gardener_apiserver::kubernetes::{
    self, BootstrapError, DefaultTolerationSeconds, EtcdLayout, RecordedError, ServiceAccountPlugin,
};
use gardener_apiserver::{ClusterConfig, Components, Server, Shared, UserInfo, aggregation};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_landscape::kubernetes_service;
use gardener_store::{Provider, Scope, Store};
use tokio_util::sync::CancellationToken;

use crate::access::{self, FileError};
use crate::admission_configuration::{AdmissionConfigurationError, WebhookIdentities};
use crate::audit::{AuditError, Auditing};
use crate::authentication::{Authentication, AuthenticationError};
use crate::authorization::{Authorization, AuthorizationError};
use crate::egress::{self, EgressFileError};
use crate::flags::Flags;
use crate::identity_lease::IdentityLease;
use crate::running::Running;
use crate::serving::{self, Bundles, Serving, ServingError};
use crate::storage::{self, StorageError};
use crate::{CLUSTER, VERSION, address_repair, identity_lease, upkeep};

/// Host names of a serving certificate that is made here.
const HOSTS: [&str; 4] = [
    "kubernetes.default.svc",
    "kubernetes.default",
    "kubernetes",
    "localhost",
];

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that a flag names cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no serving certificate.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// There is no store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Nobody can say whose tokens are accepted.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// It is not known which ways lead out.
    #[error(transparent)]
    Egress(#[from] EgressFileError),
    /// Nobody can say what is allowed.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// Plugins cannot be configured.
    #[error(transparent)]
    Admission(#[from] AdmissionConfigurationError),
    /// Requests cannot be told of.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The recordings in the program are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The cluster cannot be set up.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
}

/// Serves until `stop` is cancelled, then ends in order.
///
/// # Errors
/// [`RunError`], at the start only.
pub async fn run(flags: Flags, stop: CancellationToken) -> Result<(), RunError> {
    let (clock, chance) = (Clock::system(), Chance::from_system());
    let range = flags.service_cluster_ip_range.first().map(ToString::to_string);
    let service = range.and_then(|range| kubernetes_service::first_address(&range)?.parse().ok());
    serving::provide(&flags.serving, &HOSTS, service, &clock)?;
    let callers = flags.callers.clone();
    let serving = Serving::open(CLUSTER, &flags.serving, move || Bundles::read(&callers))?;
    let host = hostname::get().unwrap_or_default().to_string_lossy().into_owned();
    let mut settings = access::settings(&flags)?;
    let egress = egress::open(flags.egress_selector_config_file.as_ref()).await?;
    let name = identity_lease::name(&host);
    let authentication = Authentication::open(&flags, &mut settings, &name, egress.clone(), &clock)?;
    let authorization = Authorization::open(&flags.authorization)?;
    let auditing = Auditing::open(&flags.audit, &clock)?;
    let identities = WebhookIdentities::of_file(flags.admission.admission_control_config_file.as_deref())?;
    // a port that is taken should be told before anything is written
    let (listener, address) = serving::bind(&flags.serving).await?;
    let kubernetes = EmbeddedKubernetes::load()?;
    let store = open_store(&flags, &kubernetes).await?;
    let shared = Shared {
        store: store.clone(),
        clock: clock.clone(),
        chance: chance.clone(),
    };
    let server = Server::new(shared);
    let mut config = with_flags(kubernetes.config(VERSION, settings), &flags);
    narrow(&mut config, &flags);
    config.authorizer = authorization.authorizer();
    config.audit = auditing.audit();
    config.egress = egress.unwrap_or_default();
    let cluster = server.open(CLUSTER, config);
    identities.show(&cluster);
    cluster.announce(flags.serving.external_address());
    kubernetes::complete(&cluster).await?;
    let running = Running::new(server.clone(), Arc::clone(&cluster), store.clone());
    let own = server.client(CLUSTER, UserInfo::apiserver());
    if let Some(identity) = access::proxy_identity(&flags)? {
        cluster.aggregation().identify(identity);
    }
    let identity = IdentityLease::new(
        own.clone(),
        clock.clone(),
        host,
        &chance.uid(),
        SocketAddr::new(flags.serving.advertised(), flags.serving.port()).to_string(),
    );
    let upkeep = Arc::new(upkeep::Upkeep::new(own.clone(), store, &flags, clock.clone()));
    upkeep.once().await;
    let (follower, keeper) = (Arc::clone(&cluster), Arc::clone(&upkeep));
    let audited = Arc::clone(&cluster);
    running.aside(async move { follower.follow_custom_resources().await });
    running.aside(address_repair::run(own.clone(), clock, running.background()));
    running.aside(aggregation::run(cluster, own, running.background()));
    running.aside(async move { keeper.keep().await });
    let living = Arc::clone(&identity);
    running.aside(async move { living.keep().await });
    running.aside(authentication.follow());
    running.aside(authorization.follow());
    running.to_the_end(|stop| auditing.deliver(audited, stop));
    tracing::info!(%address, version = VERSION, "serving");
    let ending = &flags.serving.ending;
    let leave = async {
        tokio::join!(upkeep.leave(), identity.leave());
    };
    running.serve(listener, serving, stop, leave, ending).await;
    Ok(())
}

/// Opens the store. What servers tell each other is not encrypted, as with upstream, whose servers may tell it beside ours.
async fn open_store(flags: &Flags, kubernetes: &EmbeddedKubernetes) -> Result<Arc<dyn Store>, StorageError> {
    let encryption = storage::encryption(&flags.etcd)?.map(|encryption| {
        let leases = Scope::Topic(kubernetes::layout::server_leases());
        encryption.with(leases, vec![Provider::identity()])
    });
    let layout = EtcdLayout::new(
        &flags.etcd.etcd_prefix,
        CLUSTER,
        kubernetes.resources(),
        flags.event_ttl.to_std(),
    );
    storage::open(&flags.etcd, Arc::new(layout), encryption.unwrap_or_default()).await
}

/// Has the cluster serve no more than `--runtime-config` wants. (What is wrong with the flag was told when flags were read.)
fn narrow(config: &mut ClusterConfig, flags: &Flags) {
    let Ok(wanted) = flags.runtime_config() else { return };
    for (group, version) in wanted.asked() {
        let is_there =
            |definition: &Arc<Definition>| definition.group == group && definition.version(version).is_some();
        if !config.resources.iter().any(is_there) {
            tracing::warn!(group, version, "--runtime-config: this version is not there yet");
        }
    }
    let served = config
        .resources
        .only(|group, version, resource| wanted.serves(group, version, resource));
    config.resources = Arc::new(served);
}

/// The cluster's setup as flags want it.
fn with_flags(mut config: ClusterConfig, flags: &Flags) -> ClusterConfig {
    config.watch_timeout = flags.serving.ending.watch_timeout();
    config.flags = Some(Arc::new(flags.told.clone()));
    config.components = Components::Beside;
    config.in_flight = flags.serving.in_flight.places();
    config.seats = flags.serving.seats();
    config.allows_privileged = flags.allow_privileged;
    config.rejects_redirects = flags.aggregator_reject_forwarding_redirect;
    config.node_ports = flags.service_node_port_range.0.clone();
    // pods here may run on real nodes
    let accounts = ServiceAccountPlugin { mounts_tokens: true };
    let tolerations = DefaultTolerationSeconds {
        not_ready: flags.default_not_ready_toleration_seconds,
        unreachable: flags.default_unreachable_toleration_seconds,
    };
    config.admission = kubernetes::admission_plugins(accounts, tolerations);
    let (enabled, disabled) = (
        &flags.admission.enable_admission_plugins,
        &flags.admission.disable_admission_plugins,
    );
    for plugin in enabled {
        if !config.admission.iter().any(|own| own.name() == plugin) {
            tracing::warn!(
                plugin,
                "--enable-admission-plugins: this plugin is not there yet and does nothing"
            );
        }
    }
    config.admission.retain(|plugin| {
        let is_in = |names: &[String]| names.iter().any(|name| name == plugin.name());
        !is_in(disabled) && (kubernetes::is_on_by_default(plugin.name()) || is_in(enabled))
    });
    config
}
