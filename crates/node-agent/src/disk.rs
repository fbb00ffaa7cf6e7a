//! The machine's disk: its files, and what outlives a restart of the agent.

use std::collections::BTreeMap;

use async_trait::async_trait;

/// Files by path.
pub type Files = BTreeMap<String, String>;

/// The disk could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the machine's disk cannot be used: {0}")]
pub struct DiskError(pub String);

/// Keeps the machine's files.
#[async_trait]
pub trait Disk: Send + Sync + 'static {
    /// All files; none for a new machine.
    ///
    /// # Errors
    /// [`DiskError`].
    async fn load(&self) -> Result<Option<Files>, DiskError>;

    /// Writes all files.
    ///
    /// # Errors
    /// [`DiskError`].
    async fn save(&self, files: &Files) -> Result<(), DiskError>;
}

/// Where the agent keeps its things.
pub(crate) mod path {
    /// The agent's configuration.
    pub(crate) const CONFIG: &str = "/var/lib/gardener-node-agent/config.yaml";
    /// The machine's name.
    pub(crate) const MACHINE_NAME: &str = "/var/lib/gardener-node-agent/machine-name";
    /// The token to ask for certificates with.
    pub(crate) const BOOTSTRAP_TOKEN: &str = "/var/lib/gardener-node-agent/credentials/bootstrap-token";
    /// The agent's certificate and key.
    pub(crate) const AGENT_CERTIFICATE: &str = "/var/lib/gardener-node-agent/credentials/client.crt";
    /// The key.
    pub(crate) const AGENT_KEY: &str = "/var/lib/gardener-node-agent/credentials/client.key";
    /// The configuration that was applied last.
    pub(crate) const LAST_APPLIED: &str = "/var/lib/gardener-node-agent/last-applied-osc.yaml";
    /// The kubelet's certificate.
    pub(crate) const KUBELET_CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    /// The kubelet's key.
    pub(crate) const KUBELET_KEY: &str = "/var/lib/kubelet/pki/kubelet-client.key";
    /// The kubelet's configuration.
    pub(crate) const KUBELET_CONFIG: &str = "/var/lib/kubelet/config/kubelet";
    /// The kubelet's program.
    pub(crate) const KUBELET: &str = "/opt/bin/kubelet";
}
