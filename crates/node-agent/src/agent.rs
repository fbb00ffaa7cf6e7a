//! The agent itself: certificate, OperatingSystemConfig, kubelet, node.

use std::time::Duration;

use gardener_apis::extensions::v1alpha1::OperatingSystemConfig;
use gardener_controller::apply::{self, ApplyError};
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_controller::{Informer, ObjectRef, Queue};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::osc::{self, VERSION_LABEL};
use crate::user_data::{self, Bootstrap, UserDataError};
use crate::{Credentials, HostError, Machine, NodeHost, NodeSpec, certificate, lease};

/// Annotation of a node: what of the OperatingSystemConfig was applied [GNA-11].
const APPLIED: &str = "checksum/cloud-config-data";
/// Annotation of the secret: what is to be applied [OSC-6].
const CHECKSUM: &str = "checksum/data-script";
/// Key of the secret.
const OSC_KEY: &str = "osc.yaml";
const ROLE_LABEL: &str = "node-role.kubernetes.io/worker";
/// How long what failed waits.
const RETRY: Duration = Duration::from_secs(5);
/// How often everything is looked at without a reason [GNA-6].
const SYNC_PERIOD: Duration = Duration::from_secs(600);
/// How long a node may take to appear before the kubelet is started anew.
const NODE_PATIENCE: Patience = Patience {
    recheck: Duration::from_secs(60),
    timeout: Duration::from_secs(120),
};

/// Why a machine does not run as it should.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The user data is no user data.
    #[error(transparent)]
    UserData(#[from] UserDataError),
    /// There is no key.
    #[error("a key cannot be made: {0}")]
    Key(String),
    /// There is no certificate.
    #[error("no certificate: {0}")]
    Certificate(String),
    /// The machine cannot do what it is asked to.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The API refused.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The API refused.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// What is to run cannot be read.
    #[error("the OperatingSystemConfig in secret {secret} cannot be read: {why}")]
    Osc {
        /// The secret.
        secret: String,
        /// What is wrong.
        why: String,
    },
    /// The node does not appear.
    #[error("the node did not register: {0}")]
    Node(String),
}

struct Agent<'a, H> {
    machine: &'a Machine<H>,
    bootstrap: Bootstrap,
    credentials: Credentials,
    client: Client,
}

pub(crate) async fn run<H: NodeHost>(machine: Machine<H>, stop: CancellationToken) -> Result<(), AgentError> {
    let bootstrap = user_data::read(&machine.user_data)?;
    let working = async {
        let (credentials, client) = loop {
            match identify(&machine, &bootstrap).await {
                Ok(found) => break found,
                Err(error) => {
                    tracing::warn!(node = machine.node_name, %error, "the machine cannot join yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        let agent = Agent {
            machine: &machine,
            bootstrap,
            credentials,
            client,
        };
        agent.follow(&stop).await;
    };
    stop.run_until_cancelled(working).await;
    machine.host.leave().await;
    Ok(())
}

async fn identify<H: NodeHost>(
    machine: &Machine<H>,
    bootstrap: &Bootstrap,
) -> Result<(Credentials, Client), AgentError> {
    let token = Credentials::Token(bootstrap.token.clone());
    let client = machine.host.client(bootstrap, &token)?;
    let credentials = certificate::request(&client, &machine.node_name).await?;
    let client = machine.host.client(bootstrap, &credentials)?;
    Ok((credentials, client))
}

impl<H: NodeHost> Agent<'_, H> {
    /// Applies the secret now and at every change.
    async fn follow(&self, stop: &CancellationToken) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "kube-system");
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.bootstrap.secret_name));
        let queue: Queue<()> = Queue::new();
        let secret: Informer<Secret> = Informer::start(secrets, config, stop);
        secret.feed(&queue, |_| [()]);
        let place = ObjectRef::new("kube-system", &*self.bootstrap.secret_name);
        let mut joined: Option<NodeSpec> = None;
        let applying = async {
            while let Some(key) = queue.next().await {
                if let Some(secret) = secret.get(&place) {
                    match self.apply(&secret, &mut joined).await {
                        Ok(()) => queue.add_after(key, SYNC_PERIOD),
                        Err(error) => {
                            tracing::warn!(node = self.machine.node_name, %error, "the OperatingSystemConfig is not applied");
                            queue.add_after(key, RETRY);
                        }
                    }
                }
                queue.done(&key);
            }
        };
        tokio::join!(applying, self.keep_lease());
    }

    async fn keep_lease(&self) {
        loop {
            if let Ok(node) = self.node().await {
                lease::keep(&self.client, &self.machine.clock, &node).await;
            }
        }
    }

    /// The node, once it is there.
    async fn node(&self) -> Result<Node, AgentError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let found = wait_for(&nodes, &self.machine.node_name, NODE_PATIENCE, |node| match node {
            Some(node) => Verdict::Ready(node.clone()),
            None => Verdict::Pending("it is not there".to_owned()),
        });
        found.await.map_err(|error| AgentError::Node(error.to_string()))
    }

    fn read(&self, secret: &Secret) -> Result<OperatingSystemConfig, AgentError> {
        let failed = |why: String| AgentError::Osc {
            secret: secret.name_any(),
            why,
        };
        let data = secret.data.as_ref().and_then(|data| data.get(OSC_KEY));
        let data = data.ok_or_else(|| failed(format!("there is no key {OSC_KEY}")))?;
        let text = std::str::from_utf8(&data.0).map_err(|error| failed(error.to_string()))?;
        serde_saphyr::from_str(text).map_err(|error| failed(error.to_string()))
    }

    /// [GNA-11], as far as a machine without processes goes: the kubelet is as said, and the node tells what was applied.
    async fn apply(&self, secret: &Secret, joined: &mut Option<NodeSpec>) -> Result<(), AgentError> {
        let kubelet = osc::kubelet(&self.read(secret)?).map_err(|why| AgentError::Osc {
            secret: secret.name_any(),
            why,
        })?;
        let spec = NodeSpec {
            name: self.machine.node_name.clone(),
            kubernetes_version: kubelet.version.clone(),
            labels: kubelet.labels,
            taints: kubelet.taints,
            credentials: self.credentials.clone(),
            server: self.bootstrap.server.clone(),
            certificate_authority: self.bootstrap.certificate_authority.clone(),
        };
        // only what changes the kubelet restarts it [GNA-C2]
        if joined.as_ref() != Some(&spec) {
            self.machine.host.join(spec.clone()).await?;
            *joined = Some(spec);
        }
        let checksum = secret.annotations().get(CHECKSUM).cloned();
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = self.node().await?;
        apply::patch(&nodes, &node, |node| {
            node.labels_mut().entry(ROLE_LABEL.into()).or_default();
            if !kubelet.version.is_empty() {
                node.labels_mut().insert(VERSION_LABEL.into(), kubelet.version);
            }
            if let Some(checksum) = checksum {
                node.annotations_mut().insert(APPLIED.into(), checksum);
            }
        })
        .await?;
        Ok(())
    }
}
