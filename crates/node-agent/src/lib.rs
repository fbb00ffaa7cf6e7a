//! gardener-node-agent: what runs inside a machine. With the user data's bootstrap token it gets a certificate, reads what its pool is to run,
//! hands that to the kubelet, and tells on the node what it applied.
//!
//! Registering the node and running pods is the kubelet's business: the [`NodeHost`] that is handed in.
#![forbid(unsafe_code)]

mod agent;
mod certificate;
mod lease;
pub mod osc;
pub mod user_data;

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apimachinery::clock::Clock;
use k8s_openapi::api::core::v1::Taint;
use kube::Client;
use tokio_util::sync::CancellationToken;

pub use agent::AgentError;
pub use user_data::Bootstrap;

/// By what a machine shows who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A bootstrap token, `<id>.<secret>`.
    Token(String),
    /// A client certificate and its key, PEM.
    Certificate {
        /// The certificate.
        certificate: String,
        /// The key.
        key: String,
    },
}

/// What the kubelet of a machine is to be.
#[derive(Clone, PartialEq)]
pub struct NodeSpec {
    /// The node's name.
    pub name: String,
    /// The kubelet's version, without `v`.
    pub kubernetes_version: String,
    /// Labels the node registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints the node registers with.
    pub taints: Vec<Taint>,
    /// The kubelet's identity, `system:node:<name>`.
    pub credentials: Credentials,
    /// Where the API is.
    pub server: String,
    /// The API's certificate authority, PEM.
    pub certificate_authority: String,
}

/// A host that cannot do what it is asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostError(pub String);

/// The machine around the agent: its network and its kubelet.
#[async_trait]
pub trait NodeHost: Send + Sync + 'static {
    /// A way to the API as whom the credentials show.
    ///
    /// # Errors
    /// When there is none.
    fn client(&self, bootstrap: &Bootstrap, credentials: &Credentials) -> Result<Client, HostError>;

    /// Starts the kubelet, or restarts it when it is to be different.
    async fn join(&self, node: NodeSpec) -> Result<(), HostError>;

    /// Stops the kubelet.
    async fn leave(&self);
}

/// How a machine runs.
pub struct Machine<H> {
    /// The user data, placeholders filled.
    pub user_data: String,
    /// The name of the node.
    pub node_name: String,
    /// The machine around.
    pub host: H,
    /// What time it is.
    pub clock: Clock,
}

/// Runs what runs inside a machine, until `stop`; then the kubelet stops as well.
///
/// # Errors
/// [`AgentError`] when the user data is no user data. What may pass is tried again.
pub async fn run_machine<H: NodeHost>(machine: Machine<H>, stop: CancellationToken) -> Result<(), AgentError> {
    agent::run(machine, stop).await
}

#[cfg(test)]
mod tests;
