//! What runs in place of a container's process in embedded clusters: the components of control planes, one file each.
//!
//! A program reads what its pod says (arguments, mounted secrets) and reaches clusters by their APIs, as the real one would. All other containers
//! are simulated by the kubelet.

mod etcd;
mod etcd_druid;
mod files;
mod kube_apiserver;
mod kube_controller_manager;
mod machine;
mod machine_controller_manager;
mod provider_local;
mod resource_manager;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use gardener_apiserver::listen::Entrances;
use gardener_apiserver::{Server, Shared, UserInfo};
use gardener_cluster::Participants;
use gardener_cluster::kubelet::{Invocation, Kubelets, Program};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;

use crate::embedded::EmbeddedKubernetes;
use crate::services::Services;

pub use etcd::{Etcd, MAIN_CLAIM};
pub use etcd_druid::EtcdDruid;
pub use kube_apiserver::KubeApiserver;
pub use kube_controller_manager::{KubeControllerManager, KubeScheduler};
pub use machine::Machine;
pub use machine_controller_manager::MachineControllerManager;
pub use provider_local::ProviderLocal;
pub use resource_manager::ResourceManager;

/// What programs share.
#[derive(Clone)]
pub struct Surroundings {
    /// The API server with all logical clusters.
    pub server: Server,
    /// Store, clock and chance.
    pub shared: Shared,
    /// Kubernetes' kinds.
    pub kubernetes: EmbeddedKubernetes,
    /// Host names of the TLS listener; nothing listens where there is none.
    pub entrances: Entrances,
    /// Which clusters have controllers and a scheduler.
    pub participants: Participants,
    /// What the controllers of each cluster are set up with.
    pub controller_configs: ControllerConfigs,
    /// The kubelets that run the programs, for machines to be nodes; set as soon as they are there.
    pub kubelets: Arc<OnceLock<Kubelets>>,
    /// The programs behind Services.
    pub services: Services,
}

/// What the controllers of clusters are set up with, by the cluster's name. Clones share it.
#[derive(Clone, Default)]
pub struct ControllerConfigs {
    known: Arc<Mutex<BTreeMap<String, ControllerConfig>>>,
}

/// What a cluster's controllers publish, sign with and hand out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Certificates (PEM) that tell the API server; published as `kube-root-ca.crt`.
    pub root: String,
    /// Certificate and key (PEM) that sign client certificates.
    pub signing: (String, String),
    /// The networks that nodes get shares of for their pods, with the prefix length of a share; empty if nodes get none.
    pub pod_networks: Vec<(IpNet, u8)>,
}

impl ControllerConfigs {
    /// Sets what a cluster's controllers use.
    pub fn set(&self, cluster: &str, config: ControllerConfig) {
        self.known.lock().insert(cluster.to_owned(), config);
    }

    /// Forgets a cluster.
    pub fn remove(&self, cluster: &str) {
        self.known.lock().remove(cluster);
    }

    /// The certificates that tell a cluster's API server.
    pub fn root(&self, cluster: &str) -> Option<String> {
        self.known.lock().get(cluster).map(|own| own.root.clone())
    }

    /// The networks that a cluster's nodes get shares of.
    pub fn pod_networks(&self, cluster: &str) -> Option<Vec<(IpNet, u8)>> {
        let known = self.known.lock();
        known
            .get(cluster)
            .map(|own| own.pod_networks.clone())
            .filter(|networks| !networks.is_empty())
    }

    /// What signs a cluster's client certificates.
    pub fn signing(&self, cluster: &str) -> Option<(String, String)> {
        self.known.lock().get(cluster).map(|own| own.signing.clone())
    }
}

impl Surroundings {
    /// A client of the cluster in which a pod runs, as the pod's service account.
    pub(crate) fn own_client(&self, invocation: &Invocation) -> kube::Client {
        let namespace = namespace(&invocation.pod);
        let account = invocation
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.service_account_name.clone())
            .unwrap_or_else(|| "default".to_owned());
        self.server
            .client(&invocation.cluster, UserInfo::service_account(&namespace, &account, ""))
    }

    /// A client of the cluster in which a pod runs, for what its kubelet does on its behalf, such as reading mounted secrets.
    pub(crate) fn node_client(&self, invocation: &Invocation) -> kube::Client {
        self.server.client(
            &invocation.cluster,
            UserInfo::new(
                &format!("system:node:{}", invocation.node),
                &["system:nodes", gardener_apiserver::user::MASTERS],
            ),
        )
    }

    /// A client of another cluster as a service account of its `kube-system`.
    pub(crate) fn account_client(&self, cluster: &str, account: &str) -> kube::Client {
        self.server
            .client(cluster, UserInfo::service_account("kube-system", account, ""))
    }

    /// A client of a shoot as its gardener-resource-manager, which brings its own rights along: as by its bootstrap kubeconfig, it may do
    /// everything, for nobody else can give it its role.
    pub(crate) fn resource_manager_client(&self, cluster: &str) -> kube::Client {
        let mut user = UserInfo::service_account("kube-system", "gardener-resource-manager", "");
        user.groups.push(gardener_apiserver::user::MASTERS.to_owned());
        self.server.client(cluster, user)
    }

    /// All programs, for an engine of kubelets.
    pub fn programs(&self) -> Vec<Arc<dyn Program>> {
        vec![
            Arc::new(Etcd),
            Arc::new(EtcdDruid::new(self.clone())),
            Arc::new(KubeApiserver::new(self.clone())),
            Arc::new(KubeControllerManager::new(self.clone())),
            Arc::new(KubeScheduler::new(self.clone())),
            Arc::new(Machine::new(self.clone())),
            Arc::new(MachineControllerManager::new(self.clone())),
            Arc::new(ProviderLocal::new(self.clone())),
            Arc::new(ResourceManager::new(self.clone())),
        ]
    }
}

/// The namespace of a pod.
pub(crate) fn namespace(pod: &Pod) -> String {
    pod.metadata.namespace.clone().unwrap_or_default()
}

/// Counts the running replicas of a component per cluster, so that the last one to end switches it off.
#[derive(Default)]
pub(crate) struct Replicas {
    running: Mutex<BTreeMap<String, usize>>,
}

impl Replicas {
    /// One more replica runs.
    pub(crate) fn enter(&self, cluster: &str) {
        *self.running.lock().entry(cluster.to_owned()).or_default() += 1;
    }

    /// A replica ended. Answers whether it was the last.
    pub(crate) fn leave(&self, cluster: &str) -> bool {
        let mut running = self.running.lock();
        let Some(count) = running.get_mut(cluster) else {
            return true;
        };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            running.remove(cluster);
        }
        last
    }
}

/// Who leads among the replicas of a component: the first to come works, the others wait for it to end.
#[derive(Default)]
pub(crate) struct Turns {
    by_place: Mutex<BTreeMap<Place, Arc<tokio::sync::Mutex<()>>>>,
}

/// Cluster and namespace.
type Place = (String, String);

impl Turns {
    /// Says that the container is ready, and works when it is this replica's turn, until the work or the container ends.
    pub(crate) async fn lead(&self, invocation: &Invocation, work: impl Future<Output = ()>) {
        let key = (invocation.cluster.clone(), namespace(&invocation.pod));
        let turn = self.by_place.lock().entry(key).or_default().clone();
        // nobody listens when the kubelet ends at the same time
        let _ = invocation.ready.send(true);
        tokio::select! {
            biased;
            () = invocation.stop.cancelled() => {}
            _leading = turn.lock() => {
                tokio::select! {
                    biased;
                    () = invocation.stop.cancelled() => {}
                    () = work => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_replica_switches_off() {
        let replicas = Replicas::default();
        replicas.enter("a");
        replicas.enter("a");
        replicas.enter("b");
        assert!(!replicas.leave("a"));
        assert!(replicas.leave("a"));
        assert!(replicas.leave("b"));
    }
}
