//! What all controllers stand on: clients and event recorders per cluster, informers across clusters, and how a controller is wired.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::legacy_tokens;
use gardener_apiserver::user::MASTERS;
use gardener_apiserver::{ALL_CLUSTERS, Server, UserInfo};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Clustered, Controller, Informer, ObjectRef, Queue};
use ipnet::IpNet;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::expectations::Expectations;
use crate::topics::Topics;
use crate::{Participants, Role};
use crate::{pods, tidy};

/// Something of a cluster, by its name.
pub type OfCluster<T> = Arc<dyn Fn(&str) -> Option<T> + Send + Sync>;
/// Told of a claim whose volume was deleted: cluster, namespace, claim.
pub type VolumeDeleted = Arc<dyn Fn(&str, &str, &str) + Send + Sync>;

/// What the controllers need. Made by [`Config::new`].
#[derive(Clone)]
pub struct Config {
    /// Where the logical clusters are.
    pub server: Server,
    /// What time it is.
    pub clock: Clock,
    /// Names of pods.
    pub chance: Chance,
    /// Which clusters take part.
    pub participants: Participants,
    /// The certificates (PEM) that tell a cluster's API server; published as `kube-root-ca.crt`. Without one it is not published.
    pub root_ca: OfCluster<String>,
    /// The authority (certificate and key, PEM) that signs a cluster's certificate signing requests. Without one none are signed.
    pub signing_ca: OfCluster<(String, String)>,
    /// The networks that a cluster's nodes get shares of for their pods, with the prefix length of a share; one per address family. Without them
    /// nodes get none, as with upstream's `--allocate-node-cidrs=false`.
    pub pod_networks: OfCluster<Vec<(IpNet, u8)>>,
    /// Whether nodes' requests for serving certificates are approved (upstream leaves that to the administrator).
    pub approve_kubelet_serving: bool,
    /// Called when the volume behind a claim was deleted, so that whoever keeps its data can drop it.
    pub on_volume_deleted: VolumeDeleted,
}

impl Config {
    /// No root CA, no signing, no ranges for nodes, no approval of serving certificates, nobody told of volumes.
    pub fn new(server: Server, participants: Participants) -> Self {
        let (clock, chance) = (server.shared().clock.clone(), server.shared().chance.clone());
        Self {
            server,
            clock,
            chance,
            participants,
            root_ca: Arc::new(|_| None),
            signing_ca: Arc::new(|_| None),
            pod_networks: Arc::new(|_| None),
            approve_kubelet_serving: false,
            on_volume_deleted: Arc::new(|_, _, _| {}),
        }
    }
}

/// The name that the controllers act under.
pub(crate) const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// How soon a key whose decision was outdated comes again.
pub(crate) const OUTDATED: Duration = Duration::from_millis(20);
/// How soon a key comes again that the cluster's closed API kept from being worked on.
const UNAVAILABLE: Duration = Duration::from_secs(1);
/// The index of pods, replica sets and controller revisions by their controller's uid.
pub(crate) const BY_OWNER: &str = "owner";
/// The index of pods by node.
pub(crate) const BY_NODE: &str = "node";
/// The namespace of nodes' heartbeats.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";

/// An informer across clusters.
pub(crate) type Seen<K> = Informer<Clustered<K>>;

macro_rules! informers {
    ($($name:ident: $kind:ty $(= $fields:expr)? $(=> $tidy:expr)?),* $(,)?) => {
        /// Local copies across all clusters.
        pub(crate) struct Informers {
            $(pub $name: Seen<$kind>,)*
        }

        impl Informers {
            fn start(client: &Client, cancel: &CancellationToken) -> Self {
                Self {
                    $($name: {
                        let config = watcher::Config::default();
                        $(let config = config.fields($fields);)?
                        Informer::start_clustered(Api::all(client.clone()), config, cancel, informers!(@tidy $($tidy)?))
                    },)*
                }
            }

            /// Waits until every first list is complete.
            pub async fn synced(&self) {
                $(self.$name.synced().await;)*
            }
        }
    };
    (@tidy) => { |_| {} };
    (@tidy $tidy:expr) => { $tidy };
}

informers! {
    namespaces: Namespace,
    pods: Pod => tidy::pod_for_controllers,
    nodes: Node,
    node_leases: Lease = "metadata.namespace=kube-node-lease",
    services: Service,
    service_accounts: ServiceAccount,
    service_ranges: ServiceCIDR,
    root_ca_maps: ConfigMap = "metadata.name=kube-root-ca.crt",
    bootstrap_tokens: Secret = "type=bootstrap.kubernetes.io/token",
    token_secrets: Secret = &format!("type={}", legacy_tokens::SECRET_TYPE),
    claims: PersistentVolumeClaim,
    volumes: PersistentVolume,
    storage_classes: StorageClass,
    deployments: Deployment => |object| tidy::template(&mut object.spec.template),
    replica_sets: ReplicaSet => |object| object.spec.template.iter_mut().for_each(tidy::template),
    stateful_sets: StatefulSet => |object| tidy::template(&mut object.spec.template),
    daemon_sets: DaemonSet => |object| tidy::template(&mut object.spec.template),
    revisions: ControllerRevision,
    jobs: Job,
    endpoint_slices: EndpointSlice,
    endpoints: Endpoints,
    budgets: PodDisruptionBudget,
    signing_requests: CertificateSigningRequest,
    quotas: ResourceQuota,
    admission_policies: ValidatingAdmissionPolicy,
}

/// A key of something in a logical cluster.
pub(crate) trait InCluster: Ord + Clone + Debug + Send + Sync + 'static {
    /// The cluster's name.
    fn cluster(&self) -> &str;
}

impl InCluster for ObjectRef {
    fn cluster(&self) -> &str {
        &self.cluster
    }
}

/// A logical cluster as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole(pub Arc<str>);

impl InCluster for Whole {
    fn cluster(&self) -> &str {
        &self.0
    }
}

/// What all controllers stand on.
pub(crate) struct Environment {
    pub config: Config,
    pub informers: Informers,
    /// Pods and claims that were asked for and that the informers do not show yet.
    pub expectations: Expectations,
    /// EndpointSlices that were asked for and that the informer does not show yet.
    pub slice_expectations: Expectations,
    /// Every object of every kind, as far as garbage collection and namespaces need it.
    pub topics: Topics,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    clients: Mutex<BTreeMap<String, Client>>,
    recorders: Mutex<BTreeMap<(String, &'static str), Recorder>>,
}

fn by_owner<K: Resource>(object: &Clustered<K>) -> Vec<String> {
    pods::controller_of(object.object.meta())
        .map(|owner| owner.uid.clone())
        .into_iter()
        .collect()
}

impl Environment {
    pub fn new(config: Config, stop: CancellationToken) -> Self {
        let all = config.server.client(ALL_CLUSTERS, Self::user());
        let informers = Informers::start(&all, &stop);
        informers.pods.add_index(BY_OWNER, by_owner);
        informers.pods.add_index(BY_NODE, |pod| {
            let node = pod.object.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            node.map(|node| format!("{}/{node}", pod.cluster)).into_iter().collect()
        });
        informers.replica_sets.add_index(BY_OWNER, by_owner);
        informers.revisions.add_index(BY_OWNER, by_owner);
        let expectations = Expectations::default();
        expectations.follow(&informers.pods);
        let slice_expectations = Expectations::default();
        slice_expectations.follow(&informers.endpoint_slices);
        let tasks = TaskTracker::new();
        Self {
            informers,
            expectations,
            slice_expectations,
            topics: Topics::new(config.server.clone(), stop.clone(), tasks.clone()),
            config,
            stop,
            tasks,
            clients: Mutex::default(),
            recorders: Mutex::default(),
        }
    }

    fn user() -> UserInfo {
        UserInfo::new(CONTROLLER_MANAGER, &[MASTERS])
    }

    pub fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// The client into a cluster.
    pub fn client(&self, cluster: &str) -> Client {
        let mut clients = self.clients.lock();
        let client = clients
            .entry(cluster.to_owned())
            .or_insert_with(|| self.config.server.client(cluster, Self::user()));
        client.clone()
    }

    /// The objects of a cluster-scoped kind.
    pub fn cluster_api<K>(&self, cluster: &str) -> Api<K>
    where
        K: Resource<Scope = ClusterResourceScope, DynamicType = ()>,
    {
        Api::all(self.client(cluster))
    }

    /// The objects of a namespaced kind in the namespace of `at`.
    pub fn api<K>(&self, at: &ObjectRef) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(&at.cluster), &at.namespace)
    }

    /// Whether the namespace of a key is being deleted: nothing can be created there any more.
    pub fn is_ending(&self, key: &ObjectRef) -> bool {
        let place = ObjectRef::cluster_scoped(key.namespace.as_str()).in_cluster(key.cluster.as_str());
        let namespace = self.informers.namespaces.get(&place);
        namespace.is_some_and(|namespace| namespace.object.metadata.deletion_timestamp.is_some())
    }

    /// Writes an event about an object.
    pub async fn event<K: Resource<DynamicType = ()>>(
        &self,
        component: &'static str,
        cluster: &str,
        about: &K,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        let recorder = {
            let mut recorders = self.recorders.lock();
            let recorder = recorders
                .entry((cluster.to_owned(), component))
                .or_insert_with(|| Recorder::new(self.client(cluster), self.config.clock.clone(), component));
            recorder.clone()
        };
        recorder
            .publish(&object_reference(about, &()), severity, reason, message)
            .await;
    }

    /// Puts into `queue` what `keys` gives for every changed object of a participating cluster, and for all objects of a cluster that
    /// joins.
    pub fn feed<K>(
        &self,
        informer: &Seen<K>,
        queue: &Queue<ObjectRef>,
        role: Role,
        keys: impl Fn(&Clustered<K>) -> Vec<ObjectRef> + Send + Sync + 'static,
    ) where
        K: Watched<DynamicType = ()>,
    {
        self.feed_if(informer, queue, role, |_| true, keys);
    }

    /// As [`Environment::feed`], for the changes that `wanted` lets through.
    pub fn feed_if<K>(
        &self,
        informer: &Seen<K>,
        queue: &Queue<ObjectRef>,
        role: Role,
        wanted: impl Fn(&Change<Clustered<K>>) -> bool + Send + Sync + 'static,
        keys: impl Fn(&Clustered<K>) -> Vec<ObjectRef> + Send + Sync + 'static,
    ) where
        K: Watched<DynamicType = ()>,
    {
        let participants = self.config.participants.clone();
        let keys = Arc::new(keys);
        let (on_join, joined, source) = (Arc::clone(&keys), queue.clone(), informer.clone());
        self.config.participants.on_join(move |cluster, role_joined| {
            if role_joined == role {
                for object in source.list_cluster(cluster) {
                    on_join(&object).into_iter().for_each(|key| joined.add(key));
                }
            }
        });
        let takes_part =
            move |change: &Change<Clustered<K>>| participants.has(&change.object().cluster, role) && wanted(change);
        informer.feed_gathered(queue, takes_part, move |object| keys(object));
    }

    /// Reconciles the keys of a queue, in clusters that take part, until the process stops.
    pub fn reconcile<K, F, R>(
        self: &Arc<Self>,
        name: &'static str,
        role: Role,
        concurrency: usize,
        queue: Queue<K>,
        reconcile: F,
    ) where
        K: InCluster,
        F: Fn(Arc<Self>, K) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Error>> + Send + 'static,
    {
        let environment = Arc::clone(self);
        let stop = self.stop.clone();
        let controller = Controller::new(name, concurrency, queue).run(stop, move |key: K| {
            let takes_part = environment.config.participants.has(key.cluster(), role);
            let work = takes_part.then(|| reconcile(Arc::clone(&environment), key));
            async move {
                let Some(work) = work else { return Ok(Action::Done) };
                match work.await {
                    Err(error) if error.is_outdated() => {
                        tracing::trace!(controller = name, %error, "decided on outdated objects");
                        Ok(Action::RequeueAfter(OUTDATED))
                    }
                    // A cluster joins with its kube-scheduler, whose API may open only later. Once it has left, the key is done.
                    Err(error) if error.is_unavailable() => Ok(Action::RequeueAfter(UNAVAILABLE)),
                    other => other,
                }
            }
        });
        self.tasks.spawn(controller);
    }
}

/// Where an object of an informer is.
pub(crate) fn key_of<K: Resource + Debug>(object: &Clustered<K>) -> ObjectRef
where
    K::DynamicType: Default,
{
    ObjectRef::new(
        object.object.meta().namespace.clone().unwrap_or_default(),
        object.object.name_any(),
    )
    .in_cluster(&object.cluster)
}

/// Where the controller of an object is, if it is of `kind`.
pub(crate) fn owner_key<K: Resource>(object: &Clustered<K>, kind: &str) -> Vec<ObjectRef> {
    let meta = object.object.meta();
    pods::controller_of(meta)
        .filter(|owner| owner.kind == kind)
        .map(|owner| {
            ObjectRef::new(meta.namespace.clone().unwrap_or_default(), owner.name.clone()).in_cluster(&object.cluster)
        })
        .into_iter()
        .collect()
}
