//! Opens the garden: Gardener's kinds and the Kubernetes kinds a garden needs.

use std::net::SocketAddr;
use std::sync::Arc;

use gardener_apiserver::{LogicalCluster, Server};

use crate::embedded::EmbeddedKubernetes;
use crate::identity::Identity;
use crate::landscape::LandscapeError;

/// Name of the garden's logical cluster.
pub const GARDEN: &str = "garden";
/// Host name of the garden.
pub const HOST: &str = "api.garden.local.gardener.cloud";
/// What the garden's `/version` tells: the Kubernetes version whose machinery it speaks.
pub const VERSION: &str = "1.36.0";

/// Opens the garden and makes sure that it has what a fresh garden has.
///
/// # Errors
/// [`LandscapeError`].
pub async fn open(
    server: &Server,
    kubernetes: &EmbeddedKubernetes,
    identity: &Identity,
    _entry: Option<SocketAddr>,
) -> Result<Arc<LogicalCluster>, LandscapeError> {
    let settings = identity.authentication(&format!("https://{HOST}"));
    Ok(kubernetes.open(server, GARDEN, VERSION, settings).await?)
}
