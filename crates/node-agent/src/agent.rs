//! The agent's life: first boot, certificates, operating system config, lease.

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::extensions::v1alpha1::OperatingSystemConfig;
use gardener_controller::apply as patching;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_pki::Issued;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Deserialize;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::certificates::{self, API_CLIENT, KUBELET_CLIENT};
use crate::disk::{Disk, DiskError, Files, path};
use crate::host::{Connect, Credentials, Host};
use crate::operating_system_config::{ConfigError, KUBELET_UNIT, changes, kubelet};
use crate::user_data::{self, UserDataError};

const SYSTEM: &str = "kube-system";
/// Key of the operating system config in its Secret [OSC-6].
const CONFIG_KEY: &str = "osc.yaml";
/// On the Secret: the checksum of the config [OSC-6].
const SECRET_CHECKSUM: &str = "checksum/data-script";
/// On the Node: the checksum of the config that was applied [GNA-11].
const NODE_CHECKSUM: &str = "checksum/cloud-config-data";
const VERSION_LABEL: &str = "worker.gardener.cloud/kubernetes-version";
const WORKER_ROLE: &str = "node-role.kubernetes.io/worker";
const LEASE_SECONDS: i32 = 40;
const LEASE_PERIOD: Duration = Duration::from_secs(10);
const SYNC_PERIOD: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(5);

/// A machine that is to be a node.
#[derive(Clone)]
pub struct Machine {
    /// Its host name, which is the node's name.
    pub host_name: String,
    /// The user data it was created with.
    pub user_data: String,
    /// Its disk.
    pub disk: Arc<dyn Disk>,
    /// Its units.
    pub host: Arc<dyn Host>,
    /// The way to the shoot's API.
    pub connect: Arc<dyn Connect>,
    /// What time it is.
    pub clock: Clock,
    /// Names of requests.
    pub chance: Chance,
}

/// Why the agent cannot go on; it is tried again.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    UserData(#[from] UserDataError),
    #[error("file {0} is missing on the machine")]
    MissingFile(&'static str),
    #[error("the configuration of the agent cannot be read: {0}")]
    Configuration(String),
    #[error("the API server cannot be reached: {0}")]
    Connect(String),
    #[error(transparent)]
    Request(#[from] certificates::RequestError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("Secret {SYSTEM}/{0} has no readable key {CONFIG_KEY}: {1}")]
    Secret(String, String),
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Apply(#[from] patching::ApplyError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    api_server: ApiServer,
    controllers: Controllers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiServer {
    server: String,
    #[serde(default)]
    ca_bundle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Controllers {
    operating_system_config: ConfigController,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigController {
    secret_name: String,
}

struct Agent {
    machine: Machine,
    files: tokio::sync::Mutex<Files>,
    /// Told when the machine has become a node.
    joined: tokio::sync::Notify,
}

/// Runs a machine until `stop`: makes it a node, and keeps it as its config says.
pub async fn run(machine: Machine, stop: CancellationToken) {
    let work = async {
        let agent = loop {
            match boot(&machine).await {
                Ok(agent) => break Arc::new(agent),
                Err(error) => wait(&machine, &error).await,
            }
        };
        let (configuration, client) = loop {
            match agent.bootstrap().await {
                Ok(done) => break done,
                Err(error) => wait(&machine, &error).await,
            }
        };
        tokio::join!(
            agent.clone().follow(client.clone(), configuration, &stop),
            agent.renew_lease(&client)
        );
    };
    stop.run_until_cancelled(work).await;
}

async fn wait(machine: &Machine, error: &AgentError) {
    tracing::info!(machine = machine.host_name, %error, "the machine is not a node yet");
    tokio::time::sleep(RETRY).await;
}

/// First boot writes the user data's files; later ones find them.
async fn boot(machine: &Machine) -> Result<Agent, AgentError> {
    let files = match machine.disk.load().await? {
        Some(files) => files,
        None => {
            let files = user_data::files(&machine.user_data)?;
            machine.disk.save(&files).await?;
            files
        }
    };
    Ok(Agent {
        machine: machine.clone(),
        files: tokio::sync::Mutex::new(files),
        joined: tokio::sync::Notify::new(),
    })
}

impl Agent {
    async fn file(&self, path: &'static str) -> Result<String, AgentError> {
        let files = self.files.lock().await;
        files.get(path).cloned().ok_or(AgentError::MissingFile(path))
    }

    async fn write(&self, change: impl FnOnce(&mut Files)) -> Result<(), AgentError> {
        let mut files = self.files.lock().await;
        let mut new = files.clone();
        change(&mut new);
        if new != *files {
            self.machine.disk.save(&new).await?;
            *files = new;
        }
        Ok(())
    }

    async fn configuration(&self) -> Result<Configuration, AgentError> {
        let text = self.file(path::CONFIG).await?;
        serde_saphyr::from_str(&text).map_err(|error| AgentError::Configuration(error.to_string()))
    }

    fn connect(&self, configuration: &Configuration, credentials: &Credentials) -> Result<Client, AgentError> {
        let own = &configuration.api_server;
        let client = self.machine.connect.connect(&own.server, &own.ca_bundle, credentials);
        client.map_err(AgentError::Connect)
    }

    async fn certificate(&self, certificate: &'static str, key: &'static str) -> Option<Issued> {
        Some(Issued {
            certificate: self.file(certificate).await.ok()?,
            key: self.file(key).await.ok()?,
        })
    }

    /// The agent's own certificate, asked for with the bootstrap token if there is none yet [GNA-3].
    async fn bootstrap(&self) -> Result<(Configuration, Client), AgentError> {
        let configuration = self.configuration().await?;
        let own = match self.certificate(path::AGENT_CERTIFICATE, path::AGENT_KEY).await {
            Some(own) => own,
            None => {
                let token = Credentials::Token(self.file(path::BOOTSTRAP_TOKEN).await?.trim().to_owned());
                let client = self.connect(&configuration, &token)?;
                let machine = self.file(path::MACHINE_NAME).await?;
                let user = format!("gardener.cloud:node-agent:machine:{}", machine.trim());
                let chance = &self.machine.chance;
                let group = "gardener.cloud:node-agents";
                let own = certificates::request(&client, chance, API_CLIENT, &user, group).await?;
                self.write(|files| {
                    files.insert(path::AGENT_CERTIFICATE.to_owned(), own.certificate.clone());
                    files.insert(path::AGENT_KEY.to_owned(), own.key.clone());
                })
                .await?;
                own
            }
        };
        let client = self.connect(&configuration, &Credentials::Certificate(own))?;
        Ok((configuration, client))
    }

    /// Applies the operating system config whenever it changes [GNA-10].
    async fn follow(self: Arc<Self>, client: Client, configuration: Configuration, stop: &CancellationToken) {
        let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
            base: Duration::from_secs(1),
            max: Duration::from_secs(60),
        });
        let api: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
        let name = format!(
            "metadata.name={}",
            configuration.controllers.operating_system_config.secret_name
        );
        let secrets: Informer<Secret> = Informer::start(api, watcher::Config::default().fields(&name), stop);
        secrets.feed(&queue, |secret| [ObjectRef::of(secret)]);
        let started = Arc::new(tokio::sync::Mutex::new(false));
        let configuration = Arc::new(configuration);
        Controller::new("operatingsystemconfig", 1, queue)
            .run(stop.clone(), move |place| {
                let (agent, client, secrets) = (Arc::clone(&self), client.clone(), secrets.clone());
                let (configuration, started) = (Arc::clone(&configuration), Arc::clone(&started));
                async move {
                    let Some(secret) = secrets.get(&place) else {
                        return Ok(Action::Done);
                    };
                    let mut started = started.lock().await;
                    agent.apply(&client, &configuration, &secret, &mut started).await
                }
            })
            .await;
    }

    /// Brings the machine to the config of a Secret [GNA-11]. `started` tells whether the kubelet runs in this life of the agent.
    async fn apply(
        &self,
        client: &Client,
        configuration: &Configuration,
        secret: &Secret,
        started: &mut bool,
    ) -> Result<Action, AgentError> {
        let host = &self.machine.host_name;
        let new = read(secret)?;
        let last: Option<OperatingSystemConfig> = match self.file(path::LAST_APPLIED).await {
            Ok(text) => serde_saphyr::from_str(&text).ok(),
            Err(_) => None,
        };
        let changes = changes(last.as_ref(), &new, host)?;
        self.write(|files| {
            files.extend(changes.files.clone());
            files.retain(|path, _| !changes.removed_files.contains(path));
        })
        .await?;
        if !*started || changes.units.contains(KUBELET_UNIT) {
            self.start_kubelet(configuration, &new).await?;
            *started = true;
        }
        let text = serde_json::to_string(&new).map_err(|error| AgentError::Configuration(error.to_string()))?;
        self.write(|files| {
            files.insert(path::LAST_APPLIED.to_owned(), text);
        })
        .await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let Some(node) = nodes.read_opt(host).await? else {
            // the kubelet registers it in a moment
            return Ok(Action::RequeueAfter(Duration::from_millis(200)));
        };
        self.write(|files| {
            files.remove(path::BOOTSTRAP_TOKEN);
        })
        .await?;
        let checksum = secret.annotations().get(SECRET_CHECKSUM).cloned().unwrap_or_default();
        let version = {
            let files = self.files.lock().await;
            kubelet(&new, &files, host)?.version
        };
        let is_new = node.annotations().get(NODE_CHECKSUM) != Some(&checksum);
        if !node.annotations().contains_key(NODE_CHECKSUM) {
            self.joined.notify_one();
        }
        let (node, _) = patching::patch(&nodes, &node, |node| {
            node.labels_mut().insert(WORKER_ROLE.to_owned(), String::new());
            node.labels_mut()
                .insert(VERSION_LABEL.to_owned(), version.trim_start_matches('v').to_owned());
            node.annotations_mut()
                .insert(NODE_CHECKSUM.to_owned(), checksum.clone());
        })
        .await?;
        if is_new {
            let recorder = Recorder::new(client.clone(), self.machine.clock.clone(), "gardener-node-agent");
            let about = object_reference(&node, &());
            let message = "Operating system config has been applied successfully";
            recorder.publish(&about, Severity::Normal, "OSCApplied", message).await;
        }
        Ok(Action::RequeueAfter(SYNC_PERIOD))
    }

    async fn start_kubelet(
        &self,
        configuration: &Configuration,
        config: &OperatingSystemConfig,
    ) -> Result<(), AgentError> {
        let host = &self.machine.host_name;
        let own = match self.certificate(path::KUBELET_CERTIFICATE, path::KUBELET_KEY).await {
            Some(own) => own,
            None => {
                let token = Credentials::Token(self.file(path::BOOTSTRAP_TOKEN).await?.trim().to_owned());
                let client = self.connect(configuration, &token)?;
                let user = format!("system:node:{host}");
                let chance = &self.machine.chance;
                let own = certificates::request(&client, chance, KUBELET_CLIENT, &user, "system:nodes").await?;
                self.write(|files| {
                    files.insert(path::KUBELET_CERTIFICATE.to_owned(), own.certificate.clone());
                    files.insert(path::KUBELET_KEY.to_owned(), own.key.clone());
                })
                .await?;
                own
            }
        };
        let client = self.connect(configuration, &Credentials::Certificate(own))?;
        let kubelet = {
            let files = self.files.lock().await;
            kubelet(config, &files, host)?
        };
        self.machine.host.start_kubelet(kubelet, client).await;
        Ok(())
    }

    /// Shows that the agent lives [GNA-30]; as soon as there is a node, for who looks after nodes misses it from then on.
    async fn renew_lease(&self, client: &Client) {
        let nodes: Api<Node> = Api::all(client.clone());
        let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM);
        let host = &self.machine.host_name;
        let mut tick = interval(LEASE_PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.joined.notified() => {}
                _ = tick.tick() => {}
            }
            let renewed = async {
                let Some(node) = nodes.read_opt(host).await? else {
                    return Ok(());
                };
                let now = self.machine.clock.micro_time();
                let mut initial = Lease::default();
                initial.metadata.name = Some(format!("gardener-node-agent-{host}"));
                initial.metadata.namespace = Some(SYSTEM.to_owned());
                patching::create_or_patch(&leases, initial, |lease| {
                    lease.metadata.owner_references = node.owner_ref(&()).map(|owner| vec![owner]);
                    let spec = lease.spec.get_or_insert_default();
                    spec.holder_identity = Some(host.clone());
                    spec.lease_duration_seconds = Some(LEASE_SECONDS);
                    spec.renew_time = Some(now.clone());
                })
                .await
                .map(|_| ())
                .map_err(AgentError::from)
            };
            if let Err(error) = renewed.await {
                tracing::info!(node = host, %error, "the node agent's lease is not renewed");
            }
        }
    }
}

fn read(secret: &Secret) -> Result<OperatingSystemConfig, AgentError> {
    let refused = |why: String| AgentError::Secret(secret.name_any(), why);
    let data = secret.data.as_ref().and_then(|data| data.get(CONFIG_KEY));
    let bytes = data.ok_or_else(|| refused("there is no such key".to_owned()))?;
    let text = std::str::from_utf8(&bytes.0).map_err(|error| refused(error.to_string()))?;
    serde_saphyr::from_str(text).map_err(|error| refused(error.to_string()))
}
