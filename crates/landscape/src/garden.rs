//! Opens the garden: Gardener's kinds and the Kubernetes kinds a garden needs.

use std::sync::Arc;

use gardener_apiserver::authn::{Authenticator, Settings};
use gardener_apiserver::authz::{Authorizer, Union};
use gardener_apiserver::definition::Admission;
use gardener_apiserver::kubernetes::resource_quota::ResourceQuota;
use gardener_apiserver::kubernetes::{self, NamespaceLifecycle};
use gardener_apiserver::openapi::Documents;
use gardener_apiserver::policies::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy};
use gardener_apiserver::rbac::Rbac;
use gardener_apiserver::webhooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
use gardener_apiserver::{ClusterConfig, LogicalCluster, ResourceSet, Server};
use gardener_garden_apiserver::authorization::GardenletAuthorizer;
use gardener_garden_apiserver::kubeconfig::EntryPoint;
use gardener_garden_apiserver::{Features, PUBLISHER, admission, definitions, openapi_documents};

use crate::apply::Manifest;
use crate::embedded::{EmbeddedKubernetes, set_up};
use crate::identity::Identity;
use crate::landscape::LandscapeError;

/// Name of the garden's logical cluster.
pub const GARDEN: &str = "garden";
/// Host name of the garden.
pub const HOST: &str = "api.garden.local.gardener.cloud";
/// What the garden's `/version` tells: the Kubernetes version whose machinery it speaks.
pub const VERSION: &str = "1.36.0";

/// The identity of an embedded garden.
pub const IDENTITY: &str = "gardener-local";

/// What every garden has besides its kinds: its identity, and who may do what [AUTH-50], [AUTH-54].
pub fn objects(identity: &str) -> Manifest {
    let text = include_str!("../manifests/garden.yaml");
    let own = |identity: &str| format!("\n  cluster-identity: {}\n", serde_json::Value::from(identity));
    Manifest {
        origin: "garden.yaml".to_owned(),
        text: text.replacen(&own(IDENTITY), &own(identity), 1),
    }
}

/// All admission plugins that a garden may have, in their order [ADM-1]; [`admission::OFF_BY_DEFAULT`] and the built-in webhooks among them.
pub fn admission_plugins(configuration: &admission::Configuration, features: &Features) -> Vec<Arc<dyn Admission>> {
    let mut plugins: Vec<Arc<dyn Admission>> = vec![Arc::new(NamespaceLifecycle)];
    plugins.extend(admission::plugins(configuration, features));
    plugins.extend(admission::webhooks::plugins(configuration.resource_size()));
    plugins.push(Arc::new(MutatingAdmissionPolicy));
    plugins.push(Arc::new(MutatingAdmissionWebhook));
    plugins.push(Arc::new(ValidatingAdmissionPolicy));
    plugins.push(Arc::new(ValidatingAdmissionWebhook));
    plugins.push(Arc::new(ResourceQuota::new(configuration.limited_resources())));
    plugins
}

/// Those that run where nobody says which.
fn default_plugins(features: &Features) -> Vec<Arc<dyn Admission>> {
    let mut plugins = admission_plugins(&admission::Configuration::default(), features);
    plugins.retain(|plugin| !admission::OFF_BY_DEFAULT.contains(&plugin.name()));
    plugins
}

/// Opens the garden and makes sure that it has what a fresh garden has. `entry` is the URL of the TLS listener, when there is one.
///
/// # Errors
/// [`LandscapeError`].
pub async fn open(
    server: &Server,
    kubernetes: &EmbeddedKubernetes,
    identity: &Identity,
    entry: Option<&str>,
) -> Result<Arc<LogicalCluster>, LandscapeError> {
    let options = gardener_garden_apiserver::Options {
        entry_point: entry.map(|url| EntryPoint { url: url.to_owned() }),
        ..gardener_garden_apiserver::Options::default()
    };
    let settings = identity.authentication(&format!("https://{HOST}"));
    let config = config(kubernetes, settings, &options).map_err(|error| LandscapeError::Garden(error.to_string()))?;
    let cluster = server.open(GARDEN, config);
    set_up(server, &cluster).await?;
    Ok(cluster)
}

/// The setup of a garden: Gardener's kinds beside those of Kubernetes, all plugins, and who may do what: gardenlets by what belongs to whom,
/// everybody by roles.
///
/// # Errors
/// The recordings in the program are damaged.
pub fn config(
    kubernetes: &EmbeddedKubernetes,
    settings: Settings,
    options: &gardener_garden_apiserver::Options,
) -> Result<ClusterConfig, gardener_garden_apiserver::RecordedError> {
    let own = definitions(options)?;
    let resources = ResourceSet::new(kubernetes::for_garden(kubernetes.resources()).chain(own));
    let documents = Documents::new(kubernetes::recorded_documents()).published_by(PUBLISHER, openapi_documents());
    let authorizer: Arc<dyn Authorizer> =
        Arc::new(Union(vec![Arc::new(GardenletAuthorizer::default()), Arc::new(Rbac)]));
    Ok(ClusterConfig {
        admission: default_plugins(&options.features),
        ..ClusterConfig::new(
            (Arc::new(resources), Arc::new(documents)),
            Arc::new(Authenticator::new(settings)),
            authorizer,
            format!("v{VERSION}"),
        )
    })
}
