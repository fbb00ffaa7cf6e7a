//! Local kubelets: one engine that is the kubelet of every embedded node.
//!
//! Containers that a [`Program`] takes are run by it, inside this process; all others are simulated: they have a state, but no process.
//! All state is in the API: an engine that starts anew takes over the pods that run on its nodes. Knows pods and nodes, and nothing of what
//! programs do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_controller::events::Recorder;
use gardener_controller::{Controller, Informer, ObjectRef, Queue};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

mod addresses;
mod containers;
mod heartbeat;
mod mounts;
mod pod;
mod program;
mod status;

pub use heartbeat::SIMULATED_LABEL;
pub use program::{Invocation, Program};

use addresses::Addresses;
use pod::PodWork;

/// How the engine behaves.
#[derive(Clone)]
pub struct Config {
    /// What time it is.
    pub clock: Clock,
    /// What runs containers that are not simulated. The first that takes a container runs it.
    pub programs: Vec<Arc<dyn Program>>,
    /// How long a simulated container takes to start.
    pub start: Duration,
    /// How long a simulated container takes to end when asked; with a `preStop` hook that sleeps, that time is added.
    pub end: Duration,
    /// How long a simulated container runs that is to end by itself and does not say how long.
    pub run: Duration,
}

impl Config {
    /// No programs; simulated containers start within 200 ms and end at once.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            programs: Vec::new(),
            start: Duration::from_millis(200),
            end: Duration::ZERO,
            run: Duration::from_secs(1),
        }
    }
}

/// A node to be a kubelet for.
#[derive(Clone)]
pub struct NodeConfig {
    /// The logical cluster it belongs to; tells apart nodes of one name.
    pub cluster: String,
    /// The Node's name.
    pub name: String,
    /// Labels that the Node registers with, besides the standard ones.
    pub labels: BTreeMap<String, String>,
    /// Taints that the Node registers with.
    pub taints: Vec<k8s_openapi::api::core::v1::Taint>,
    /// What the node has: `cpu`, `memory`, `pods`, … as quantities.
    pub capacity: BTreeMap<String, String>,
    /// Pairs of type (`InternalIP`, `Hostname`, …) and address.
    pub addresses: Vec<(String, String)>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `v1.36.0`.
    pub kubelet_version: String,
    /// Told in the node's information.
    pub os_image: String,
    /// Told in the node's information, e.g. `containerd://2.1.0`.
    pub runtime_version: String,
    /// Told in the node's information and as label, e.g. `amd64`.
    pub architecture: String,
    /// How the node reaches its cluster: a client with the node's identity.
    pub client: Client,
    /// Whether the kubelet creates the Node object; without it the Node must exist.
    pub register: bool,
    /// The range of its pods' addresses. Without one the Node's `podCIDR` counts; pods wait until the cluster's controller manager has set it.
    pub pod_cidr: Option<String>,
}

/// A pod on a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodKey {
    node: NodeKey,
    pod: ObjectRef,
}

/// Cluster and name of a node.
type NodeKey = (Arc<str>, Arc<str>);

struct NodeState {
    key: NodeKey,
    config: NodeConfig,
    pods: Informer<Pod>,
    work: Mutex<BTreeMap<ObjectRef, Arc<tokio::sync::Mutex<PodWork>>>>,
    addresses: Mutex<Option<Addresses>>,
    heart: tokio::sync::Mutex<heartbeat::Heart>,
    recorder: Recorder,
    stop: CancellationToken,
}

struct Engine {
    config: Config,
    nodes: Mutex<BTreeMap<NodeKey, Arc<NodeState>>>,
    pods: Queue<PodKey>,
    heartbeats: Queue<NodeKey>,
    stop: CancellationToken,
}

/// The kubelets of this process. Clones are handles on the same engine.
#[derive(Clone)]
pub struct Kubelets {
    engine: Arc<Engine>,
}

/// How many pods and how many nodes are worked on at a time.
const CONCURRENCY: usize = 32;

impl Kubelets {
    /// Starts an engine without nodes. It ends, with all programs, when `stop` is cancelled. Must be called inside a tokio runtime.
    pub fn new(config: Config, stop: CancellationToken) -> Self {
        let engine = Arc::new(Engine {
            config,
            nodes: Mutex::default(),
            pods: Queue::new(),
            heartbeats: Queue::new(),
            stop: stop.clone(),
        });
        let own = Arc::clone(&engine);
        let pods = Controller::new("kubelet", CONCURRENCY, engine.pods.clone());
        tokio::spawn(pods.run(stop.clone(), move |key| pod::sync(Arc::clone(&own), key)));
        let own = Arc::clone(&engine);
        let heartbeats = Controller::new("kubelet-heartbeat", CONCURRENCY, engine.heartbeats.clone());
        tokio::spawn(heartbeats.run(stop, move |key| heartbeat::beat(Arc::clone(&own), key)));
        Self { engine }
    }

    /// Becomes the kubelet of a node, in place of one of the same cluster and name.
    pub fn add(&self, config: NodeConfig) {
        self.remove(&config.cluster, &config.name);
        let key: NodeKey = (config.cluster.as_str().into(), config.name.as_str().into());
        let stop = self.engine.stop.child_token();
        let selected = watcher::Config::default().fields(&format!("spec.nodeName={}", config.name));
        let informer = Informer::start_tidied(Api::all(config.client.clone()), selected, &stop, crate::tidy::pod);
        let clock = self.engine.config.clock.clone();
        let node = Arc::new(NodeState {
            key: key.clone(),
            recorder: Recorder::new(config.client.clone(), clock, "kubelet"),
            pods: informer.clone(),
            config,
            work: Mutex::default(),
            addresses: Mutex::default(),
            heart: tokio::sync::Mutex::default(),
            stop,
        });
        self.engine.nodes.lock().insert(key.clone(), node);
        let place = key.clone();
        informer.feed(&self.engine.pods, move |pod: &Pod| {
            vec![PodKey {
                node: place.clone(),
                pod: ObjectRef::of(pod),
            }]
        });
        self.engine.heartbeats.add(key);
    }

    /// Stops to be the kubelet of a node: its programs end, nothing is written any more. What the API says of its pods stays.
    pub fn remove(&self, cluster: &str, name: &str) {
        let key: NodeKey = (cluster.into(), name.into());
        let removed = self.engine.nodes.lock().remove(&key);
        if let Some(node) = removed {
            node.stop.cancel();
        }
    }

    /// The nodes, as pairs of cluster and name.
    pub fn nodes(&self) -> Vec<(String, String)> {
        let nodes = self.engine.nodes.lock();
        nodes
            .keys()
            .map(|(cluster, name)| (cluster.to_string(), name.to_string()))
            .collect()
    }
}

impl Engine {
    fn node(&self, key: &NodeKey) -> Option<Arc<NodeState>> {
        self.nodes.lock().get(key).cloned()
    }
}
