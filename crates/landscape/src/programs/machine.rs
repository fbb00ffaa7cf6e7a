//! The machines of provider-local: pods of the seed in which a node agent runs, and for which a kubelet of this process stands.
//!
//! A machine's disk is a Secret beside its pod, owned by it: it outlives the process, and goes with the machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gardener_apiserver::Server;
use gardener_cluster::kubelet::{Invocation, Kubelets, NodeConfig, Program};
use gardener_controller::apply;
use gardener_node_agent::{Connect, Credentials, Disk, DiskError, Files, Host, Kubelet};
use gardener_provider_local::machine_driver::{
    CAPACITY_ANNOTATION, CONTAINER, LABELS, OPERATING_SYSTEM_ANNOTATION, USER_DATA_PATH,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, Pod, Secret, Taint};
use kube::{Api, Client, Resource, ResourceExt};

use super::{Surroundings, files, namespace};

/// Key of the disk's files in its Secret.
const DISK_KEY: &str = "disk.json";
/// What a machine has whose class does not tell.
const CAPACITY: [(&str, &str); 3] = [("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "50Gi")];

/// The program.
pub struct Machine {
    surroundings: Surroundings,
}

impl Machine {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings }
    }
}

#[async_trait]
impl Program for Machine {
    fn runs(&self, pod: &Pod, container: &Container) -> bool {
        let is_machine = |(key, value): &(&str, &str)| pod.labels().get(*key).is_some_and(|own| own == value);
        container.name == CONTAINER && LABELS.iter().all(is_machine)
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let Some(kubelets) = self.surroundings.kubelets.get().cloned() else {
            tracing::error!("a machine starts before the kubelets of this process");
            return 1;
        };
        let client = self.surroundings.node_client(&invocation);
        let mounted = files::Files::new(client.clone(), &invocation.pod, &invocation.container);
        let user_data = match mounted.read(USER_DATA_PATH).await {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(pod = invocation.pod.name_any(), %error, "the machine has no user data");
                return 1;
            }
        };
        let shoot = namespace(&invocation.pod);
        let address = invocation.pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let node = invocation.pod.name_any();
        let machine = gardener_node_agent::Machine {
            host_name: node.clone(),
            user_data,
            disk: Arc::new(SecretDisk {
                client,
                pod: Arc::clone(&invocation.pod),
            }),
            host: Arc::new(EmbeddedHost {
                kubelets: kubelets.clone(),
                cluster: shoot.clone(),
                pod: Arc::clone(&invocation.pod),
                address,
            }),
            connect: Arc::new(InProcess {
                server: self.surroundings.server.clone(),
                cluster: shoot.clone(),
            }),
            clock: self.surroundings.shared.clock.clone(),
            chance: self.surroundings.shared.chance.clone(),
        };
        // nobody listens when the kubelet ends at the same time
        let _ = invocation.ready.send(true);
        gardener_node_agent::run(machine, invocation.stop.clone()).await;
        kubelets.remove(&shoot, &node);
        0
    }
}

/// Reaches the API server of the shoot inside this process, with the credentials that would be shown to it from outside.
struct InProcess {
    server: Server,
    cluster: String,
}

impl Connect for InProcess {
    fn connect(&self, _: &str, _: &str, credentials: &Credentials) -> Result<Client, String> {
        match credentials {
            Credentials::Token(token) => Ok(self.server.client_with_token(&self.cluster, token)),
            Credentials::Certificate(own) => {
                let certificate = pem::parse(&own.certificate).map_err(|error| error.to_string())?;
                Ok(self
                    .server
                    .client_with_certificate(&self.cluster, certificate.contents()))
            }
        }
    }
}

struct SecretDisk {
    client: Client,
    pod: Arc<Pod>,
}

impl SecretDisk {
    fn api(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &namespace(&self.pod))
    }

    fn name(&self) -> String {
        format!("{}-disk", self.pod.name_any())
    }
}

#[async_trait]
impl Disk for SecretDisk {
    async fn load(&self) -> Result<Option<Files>, DiskError> {
        let secret = self
            .api()
            .get_opt(&self.name())
            .await
            .map_err(|error| DiskError(error.to_string()))?;
        // the disk of a former machine of this name is not this machine's
        let own = secret.filter(|secret| {
            let uid = self.pod.uid().unwrap_or_default();
            secret.owner_references().iter().any(|owner| owner.uid == uid)
        });
        let Some(bytes) = own.and_then(|secret| secret.data?.remove(DISK_KEY)) else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes.0).map_err(|error| DiskError(error.to_string()))
    }

    async fn save(&self, files: &Files) -> Result<(), DiskError> {
        let text = serde_json::to_vec(files).map_err(|error| DiskError(error.to_string()))?;
        let mut initial = Secret::default();
        initial.metadata.name = Some(self.name());
        initial.metadata.namespace = Some(namespace(&self.pod));
        let owner = self.pod.owner_ref(&()).map(|owner| vec![owner]);
        apply::create_or_patch(&self.api(), initial, |secret| {
            secret.metadata.owner_references = owner.clone();
            secret.data = Some(BTreeMap::from([(DISK_KEY.to_owned(), ByteString(text.clone()))]));
        })
        .await
        .map(|_| ())
        .map_err(|error| DiskError(error.to_string()))
    }
}

/// What the node tells of its operating system.
fn os_image(pod: &Pod) -> String {
    let system = pod.annotations().get(OPERATING_SYSTEM_ANNOTATION);
    let system = system.map_or("Gardener embedded node", String::as_str);
    format!("{system} (simulated)")
}

/// A machine whose kubelet is one of this process.
struct EmbeddedHost {
    kubelets: Kubelets,
    cluster: String,
    pod: Arc<Pod>,
    address: Option<String>,
}

#[async_trait]
impl Host for EmbeddedHost {
    async fn start_kubelet(&self, kubelet: Kubelet, client: Client) {
        self.kubelets.remove(&self.cluster, &kubelet.node);
        let mut capacity: BTreeMap<String, String> = CAPACITY
            .iter()
            .map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned()))
            .collect();
        let told = self.pod.annotations().get(CAPACITY_ANNOTATION);
        let told: BTreeMap<String, String> = told
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let of_nodes = |name: &str| CAPACITY.iter().any(|(own, _)| *own == name);
        capacity.extend(told.into_iter().filter(|(name, _)| of_nodes(name)));
        capacity.insert("pods".to_owned(), kubelet.max_pods.to_string());
        let mut addresses: Vec<(String, String)> = self
            .address
            .iter()
            .map(|address| ("InternalIP".to_owned(), address.clone()))
            .collect();
        addresses.push(("Hostname".to_owned(), kubelet.node.clone()));
        self.kubelets.add(NodeConfig {
            cluster: self.cluster.clone(),
            provider_id: Some(format!("local:///{}", kubelet.node)),
            name: kubelet.node,
            labels: kubelet.labels,
            taints: kubelet
                .taints
                .into_iter()
                .map(|taint| Taint {
                    key: taint.key,
                    value: taint.value,
                    effect: taint.effect,
                    time_added: None,
                })
                .collect(),
            capacity,
            addresses,
            kubelet_version: kubelet.version,
            os_image: os_image(&self.pod),
            runtime_version: "simulated://1.0.0".to_owned(),
            architecture: "amd64".to_owned(),
            client,
            register: true,
            pod_cidr: None,
        });
    }
}
