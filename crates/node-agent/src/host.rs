//! What the agent needs of the machine it runs on and of the network around it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kube::Client;
use serde::Deserialize;

/// How a client shows who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A bearer token.
    Token(String),
    /// A client certificate and its key, PEM.
    Certificate(gardener_pki::Issued),
}

/// Reaches the shoot's API server.
pub trait Connect: Send + Sync + 'static {
    /// A client of the API server at this URL, whose certificate is told by these authorities (PEM).
    ///
    /// # Errors
    /// Why there can be none.
    fn connect(&self, server: &str, authority: &str, credentials: &Credentials) -> Result<Client, String>;
}

/// A taint that the kubelet registers its node with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(default)]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// How the kubelet is to run: what its unit and its configuration say.
#[derive(Clone, Debug, PartialEq)]
pub struct Kubelet {
    /// The node's name: the machine's host name.
    pub node: String,
    /// `v1.36.0`.
    pub version: String,
    /// Labels to register with.
    pub labels: BTreeMap<String, String>,
    /// Taints to register with.
    pub taints: Vec<Taint>,
    /// How many pods it takes.
    pub max_pods: u32,
}

/// The machine: what units of the operating system do beyond files.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Starts the kubelet, or starts it anew with another configuration.
    async fn start_kubelet(&self, kubelet: Kubelet, client: Client);
}
