//! How a gardenlet comes to its garden [AUTH-32]: by the kubeconfig in its seed, which it gets for itself with a bootstrap kubeconfig, and renews in time.
//!
//! [`run`] waits for a way in, then runs the gardenlet. A new certificate takes the old one's place under the running gardenlet ([`transport`]): nothing
//! that goes on is cut. [`token`] has the other side: who deploys a gardenlet makes its bootstrap kubeconfig [AUTH-33].

mod access;
mod certificate;
mod rotation;
pub mod token;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_controller::{ObjectRef, RateLimit, Read, apply as patching};
use gardener_garden_authorizer::bootstrap as names;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

pub use access::{AccessError, Credentials, GardenAccess};
pub use certificate::{Holder, RequestError};
pub use rotation::Validity;

use crate::Config;

/// The Secret in a seed's namespace `garden` with the kubeconfig of its gardenlet.
pub const KUBECONFIG_SECRET: &str = "gardenlet-kubeconfig";
/// The Secret in a seed's namespace `garden` with the kubeconfig by which its gardenlet asks for the first one.
pub const BOOTSTRAP_SECRET: &str = "gardenlet-kubeconfig-bootstrap";
/// The key of kubeconfigs in Secrets.
pub const KUBECONFIG: &str = "kubeconfig";

/// Where everybody may read the authority of the garden's API server.
const ROOT_CA: (&str, &str) = ("gardener-system-public", "kube-root-ca.crt");
/// How soon a way into the garden is looked for again.
const PAUSES: RateLimit = RateLimit {
    base: Duration::from_secs(1),
    max: Duration::from_secs(60),
};

/// Gives clients of the garden.
#[async_trait]
pub trait GardenClients: Send + Sync + 'static {
    /// A client that goes the way that a kubeconfig tells.
    ///
    /// # Errors
    /// Why it cannot be gone, e.g. because the certificate has expired.
    async fn client(&self, access: &GardenAccess) -> Result<Client, String>;
}

/// `gardenClientConnection` of GardenletConfiguration, and what is needed to make use of it.
#[derive(Clone)]
pub struct GardenConnection {
    /// A client of the seed.
    pub seed: Client,
    /// Who the gardenlet is in the garden.
    pub holder: Holder,
    /// Where the kubeconfig is kept in the seed.
    pub kubeconfig_secret: ObjectRef,
    /// Where the bootstrap kubeconfig is in the seed, if there may be one.
    pub bootstrap_kubeconfig: Option<ObjectRef>,
    /// How long certificates shall be good, and when they are renewed.
    pub validity: Validity,
    /// Clients for kubeconfigs.
    pub clients: Arc<dyn GardenClients>,
    /// What time it is.
    pub clock: Clock,
    /// When in its last days a certificate is renewed.
    pub chance: Chance,
}

impl GardenConnection {
    /// Secrets of the seed, in the namespace of one of them.
    fn secrets(&self, of: &ObjectRef) -> Api<Secret> {
        Api::namespaced(self.seed.clone(), &of.namespace)
    }
}

/// The kubeconfig that a gardenlet lives by: where it is, and when its certificate expires. Cheap to clone; all clones tell the same.
#[derive(Clone)]
pub struct GardenKubeconfig {
    /// The Secret in the seed.
    pub secret: ObjectRef,
    expires: Arc<RwLock<Option<Timestamp>>>,
}

impl GardenKubeconfig {
    /// When the client certificate expires; none if the kubeconfig has no certificate.
    pub fn expires(&self) -> Option<Timestamp> {
        *self.expires.read()
    }
}

/// Why there is no way into the garden yet.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The seed does not answer as it should.
    #[error("secrets of the seed: {0}")]
    Seed(#[source] kube::Error),
    /// A Secret cannot be written.
    #[error(transparent)]
    Write(#[from] patching::ApplyError),
    /// Nobody has put a bootstrap kubeconfig there yet.
    #[error("bootstrap secret {0} does not contain a kubeconfig, cannot bootstrap")]
    NoBootstrapKubeconfig(ObjectRef),
    /// There is none, and none is to be asked for.
    #[error(
        "secret {0} contains no kubeconfig, and no bootstrapKubeconfig is configured by which one could be asked for"
    )]
    NoKubeconfig(ObjectRef),
    /// What is there is no kubeconfig.
    #[error("kubeconfig in secret {secret}: {source}")]
    Kubeconfig {
        /// The Secret.
        secret: ObjectRef,
        /// What is wrong.
        source: AccessError,
    },
    /// The garden cannot be reached with a kubeconfig.
    #[error("the garden cannot be reached by the kubeconfig in secret {secret}: {why}")]
    Unreachable {
        /// The Secret.
        secret: ObjectRef,
        /// What was said.
        why: String,
    },
    /// No certificate was issued.
    #[error("unable to bootstrap the kubeconfig for the Garden cluster: {0}")]
    Request(#[from] RequestError),
}

/// Runs a gardenlet until `stop`, as soon as it has a way into the garden. `configure` makes its configuration, given a client of the garden and the
/// kubeconfig that is behind it.
pub async fn run(
    connection: GardenConnection,
    configure: impl FnOnce(Client, GardenKubeconfig) -> Config,
    stop: CancellationToken,
) {
    let Some(Some(way)) = stop.run_until_cancelled(way_in(&connection)).await else {
        return;
    };
    let (garden, switch) = transport::switchable(way.client);
    let kubeconfig = GardenKubeconfig {
        secret: connection.kubeconfig_secret.clone(),
        expires: Arc::new(RwLock::new(way.access.expires())),
    };
    if let Some(request) = way.requested
        && let Err(error) = delete_bootstrap_credentials(&garden, &request).await
    {
        // they expire by themselves
        tracing::warn!(%error, "the credentials of the bootstrap cannot be deleted");
    }
    let config = configure(garden.clone(), kubeconfig.clone());
    let rotation = rotation::Rotation {
        connection,
        garden,
        switch,
        expires: kubeconfig.expires,
    };
    let ending = stop.clone();
    tokio::join!(
        crate::run(config, stop),
        ending.run_until_cancelled(rotation.run(way.access))
    );
}

/// A way into the garden.
struct Way {
    access: GardenAccess,
    client: Client,
    /// The signing request by which it was got just now.
    requested: Option<String>,
}

/// Looks for a way into the garden until there is one.
async fn way_in(connection: &GardenConnection) -> Option<Way> {
    let mut failures = 0;
    loop {
        match find(connection).await {
            Ok(way) => return Some(way),
            Err(error) => {
                tracing::warn!(%error, "there is no way into the garden yet");
                tokio::time::sleep(PAUSES.delay(failures)).await;
                failures += 1;
            }
        }
    }
}

/// The kubeconfig in a Secret of the seed; none if the Secret or its key is missing.
async fn read(connection: &GardenConnection, secret: &ObjectRef) -> Result<Option<GardenAccess>, BootstrapError> {
    let found = connection.secrets(secret).read_opt(&secret.name).await;
    let found = found.map_err(BootstrapError::Seed)?;
    access_in(found.as_ref(), secret)
}

fn access_in(found: Option<&Secret>, secret: &ObjectRef) -> Result<Option<GardenAccess>, BootstrapError> {
    let text = found.and_then(|found| found.data.as_ref()?.get(KUBECONFIG));
    let Some(text) = text.filter(|text| !text.0.is_empty()) else {
        return Ok(None);
    };
    let wrong = |source| BootstrapError::Kubeconfig {
        secret: secret.clone(),
        source,
    };
    GardenAccess::read(&text.0).map(Some).map_err(wrong)
}

/// Keeps a kubeconfig in the seed. Whoever asked for it has it now.
async fn store(connection: &GardenConnection, access: &GardenAccess) -> Result<(), BootstrapError> {
    let secret = &connection.kubeconfig_secret;
    let mut initial = Secret::default();
    initial.metadata.name = Some(secret.name.clone());
    initial.metadata.namespace = Some(secret.namespace.clone());
    let data = access.secret_data();
    patching::create_or_patch(&connection.secrets(secret), initial, |secret| {
        if let Some(annotations) = &mut secret.metadata.annotations {
            annotations.remove(gardener_apis::constants::annotation::OPERATION);
        }
        secret.data = Some(data.clone());
    })
    .await?;
    Ok(())
}

async fn client_of(
    connection: &GardenConnection,
    access: &GardenAccess,
    secret: &ObjectRef,
) -> Result<Client, BootstrapError> {
    let unreachable = |why| BootstrapError::Unreachable {
        secret: secret.clone(),
        why,
    };
    connection.clients.client(access).await.map_err(unreachable)
}

/// The kubeconfig that is there, or a new one.
async fn find(connection: &GardenConnection) -> Result<Way, BootstrapError> {
    let secret = &connection.kubeconfig_secret;
    let (access, requested) = match read(connection, secret).await? {
        Some(access) => (access, None),
        None => {
            let (access, request) = bootstrap(connection).await?;
            (access, Some(request))
        }
    };
    let client = client_of(connection, &access, secret).await?;
    let Some(authority) = changed_authority(&client, &access).await else {
        return Ok(Way {
            access,
            client,
            requested,
        });
    };
    tracing::info!("the garden's authority has changed");
    let access = GardenAccess { authority, ..access };
    store(connection, &access).await?;
    Ok(Way {
        client: client_of(connection, &access, secret).await?,
        access,
        requested,
    })
}

/// The garden's authority, if it tells another one than a kubeconfig. Gardens that tell none keep the one that was given.
async fn changed_authority(garden: &Client, access: &GardenAccess) -> Option<Option<String>> {
    let (namespace, name) = ROOT_CA;
    let api: Api<ConfigMap> = Api::namespaced(garden.clone(), namespace);
    let told = match api.read_opt(name).await {
        Ok(found) => found?.data?.remove("ca.crt")?,
        Err(error) => {
            tracing::warn!(%error, "the garden's authority cannot be read");
            return None;
        }
    };
    let told = (!matches!(told.as_str(), "none" | "null" | "")).then_some(told);
    (told != access.authority).then_some(told)
}

/// Asks for a certificate with the bootstrap kubeconfig, and keeps what comes of it. Answers the name of the request, too.
async fn bootstrap(connection: &GardenConnection) -> Result<(GardenAccess, String), BootstrapError> {
    let own = connection.bootstrap_kubeconfig.as_ref();
    let own = own.ok_or_else(|| BootstrapError::NoKubeconfig(connection.kubeconfig_secret.clone()))?;
    let first = read(connection, own)
        .await?
        .ok_or_else(|| BootstrapError::NoBootstrapKubeconfig(own.clone()))?;
    let client = client_of(connection, &first, own).await?;
    let issued = certificate::request(&client, &connection.holder, connection.validity.validity).await?;
    let access = GardenAccess {
        credentials: Credentials::Certificate(issued.pair),
        ..first
    };
    store(connection, &access).await?;
    let deleted = patching::delete(&connection.secrets(own), &own.name).await;
    deleted.map_err(BootstrapError::Seed)?;
    tracing::info!(request = issued.request, "the gardenlet has its own kubeconfig");
    Ok((access, issued.request))
}

/// Deletes what a request was made with: its token's Secret, or its service account with the binding of that [AUTH-33].
async fn delete_bootstrap_credentials(garden: &Client, request: &str) -> Result<(), kube::Error> {
    let requests: Api<CertificateSigningRequest> = Api::all(garden.clone());
    let user = requests.read(request).await?.spec.username.unwrap_or_default();
    if let Some(id) = user.strip_prefix(names::TOKEN_USER_PREFIX) {
        let secrets: Api<Secret> = Api::namespaced(garden.clone(), "kube-system");
        patching::delete(&secrets, &format!("{}{id}", names::TOKEN_SECRET_PREFIX)).await?;
    } else if let Some((namespace, name)) = service_account_of(&user) {
        let accounts: Api<ServiceAccount> = Api::namespaced(garden.clone(), namespace);
        patching::delete(&accounts, name).await?;
        let bindings: Api<ClusterRoleBinding> = Api::all(garden.clone());
        patching::delete(&bindings, &format!("{}{namespace}:{name}", names::BINDING_PREFIX)).await?;
    }
    Ok(())
}

/// Namespace and name of the service account that a user is.
fn service_account_of(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}
