//! The flow that removes a cluster [CP-35].

use std::time::Duration;

use gardener_flow::{Graph, TaskError};

use super::{DEFAULT, step};
use crate::components::cluster_autoscaler;
use crate::shoot::botanist::Botanist;

/// What decides which steps there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) workerless: bool,
    /// The control plane's namespace exists.
    pub(crate) namespace: bool,
    /// There is an API server, and the shoot may hold something.
    pub(crate) clean: bool,
    /// There is an Infrastructure.
    pub(crate) infrastructure: bool,
    pub(crate) credentials: bool,
    pub(crate) backup: bool,
}

impl Shape {
    pub(crate) async fn of(botanist: &Botanist) -> Result<Self, TaskError> {
        let namespace = botanist.has_namespace().await?;
        let api_server = botanist.live("kube-apiserver").await?;
        Ok(Self {
            workerless: botanist.is_workerless(),
            namespace,
            clean: namespace && api_server.is_some(),
            infrastructure: namespace && botanist.has_infrastructure().await?,
            credentials: botanist.has_credentials(),
            backup: botanist.has_backup(),
        })
    }
}

/// The graph.
pub(crate) fn graph<'a>(b: &'a Botanist, shape: Shape) -> Graph<'a> {
    let Shape {
        workerless: wl,
        namespace: ns,
        clean,
        infrastructure,
        ..
    } = shape;
    let ten_minutes = Duration::from_secs(600);
    let mut g = Graph::new("Shoot cluster deletion");

    // 1: make the control plane usable
    let bastions = step!(g, b, "Ensuring that the shoot has no Bastions", [], skip: !ns, check_no_bastions());
    let secrets = step!(g, b, "Initializing secrets management", [bastions], skip: !ns, initialize_secrets());
    let cluster = step!(g, b, "Syncing Cluster resource in Seed", [secrets], skip: !ns, retry: DEFAULT, sync_cluster());
    let account = step!(g, b, "Deploying cloud provider account secret", [secrets], skip: !ns || wl || !shape.credentials, deploy_cloud_provider_secret());
    let service = step!(g, b, "Deploying Kubernetes API server service in the Seed cluster", [secrets], skip: !clean, retry: DEFAULT, deploy_api_server_service());
    let address = step!(g, b, "Waiting until Kubernetes API LoadBalancer in the Seed cluster has reported readiness", [service], skip: !clean, wait_for_address());
    let etcd =
        step!(g, b, "Deploying main and events etcd", [secrets, account], skip: !clean, retry: DEFAULT, deploy_etcds());
    let etcd =
        step!(g, b, "Waiting until main and event etcd report readiness", [etcd], skip: !clean, wait_for_etcds());
    let api_server = step!(g, b, "Deploying Kubernetes API server", [etcd, address, cluster], skip: !clean, retry: DEFAULT, deploy_api_server());
    let api_server = step!(g, b, "Waiting until Kubernetes API server rolled out", [api_server], skip: !clean, wait_for_api_server());
    let resource_manager = step!(g, b, "Deploying gardener-resource-manager", [api_server], skip: !clean, retry: DEFAULT, deploy_resource_manager());
    let resource_manager = step!(g, b, "Waiting until gardener-resource-manager reports readiness", [resource_manager], skip: !clean, wait_for_resource_manager());
    let controllers = step!(g, b, "Deploying Kubernetes controller manager", [resource_manager], skip: !clean, retry: DEFAULT, deploy_controller_manager());
    // an attempt before this one may have got as far as removing it
    let access = step!(g, b, "Deploying Gardener shoot access resources", [secrets, resource_manager], skip: !clean, retry: DEFAULT, deploy_gardener_access());
    let client = step!(g, b, "Initializing connection to Shoot", [access], skip: !clean, retry: Duration::from_secs(120), connect());

    // 2: clean the shoot
    let autoscaler = step!(g, b, "Scaling down cluster autoscaler", [client], skip: !clean || wl, retry: DEFAULT, scale(cluster_autoscaler::NAME, 0));
    let webhooks = step!(g, b, "Cleaning up webhooks", [client, controllers, autoscaler], skip: !clean, retry: ten_minutes, clean_webhooks());
    let apis = step!(g, b, "Cleaning extended API groups", [webhooks], skip: !clean, retry: ten_minutes, clean_extended_apis());
    let cleaned = step!(g, b, "Cleaning Kubernetes resources", [apis], skip: !clean, retry: ten_minutes, clean_kubernetes_resources());

    // 3: nodes and what runs on them
    let network = step!(g, b, "Destroying shoot network plugin", [cleaned], skip: !ns || wl, destroy_network());
    let manager = step!(g, b, "Deploying machine-controller-manager", [cleaned], skip: !clean || wl, retry: DEFAULT, deploy_machine_controller_manager());
    let worker = step!(g, b, "Destroying shoot workers", [network, manager], skip: !ns || wl, destroy_worker());
    let manager = step!(g, b, "Destroying machine-controller-manager", [worker], skip: !ns || wl, retry: DEFAULT, destroy_machine_controller_manager());
    let configs = step!(g, b, "Destroying operating system configurations", [worker], skip: !ns || wl, destroy_operating_system_configs());
    let runtimes =
        step!(g, b, "Destroying container runtimes", [worker], skip: !ns || wl, destroy_container_runtimes());
    let early = step!(g, b, "Deleting extension resources before kube-apiserver", [cleaned, worker], skip: !ns, delete_extensions("BeforeKubeAPIServer"));
    let resources = step!(g, b, "Deleting managed resources", [worker, early, network, cleaned], skip: !clean, destroy_managed_resources());

    // 4: the control plane
    let plane = step!(g, b, "Destroying shoot control plane", [resources, configs, runtimes, manager], skip: !ns || wl, destroy_control_plane());
    let released =
        step!(g, b, "Releasing managed resources", [resources, plane], skip: !ns, release_managed_resources());
    let api_server =
        step!(g, b, "Destroying Kubernetes API server", [released, plane], skip: !ns, destroy_api_server());
    let late = step!(g, b, "Deleting extension resources after kube-apiserver", [api_server], skip: !ns, delete_extensions("AfterKubeAPIServer"));

    // 5, 6: what it stood on
    let ground = step!(g, b, "Destroying shoot infrastructure", [plane, api_server], skip: !infrastructure, destroy_infrastructure());
    let records = step!(g, b, "Destroying DNS records", [api_server], skip: !ns, destroy_records());

    // 7: what is left
    let etcd = step!(g, b, "Destroying main and events etcd", [api_server], skip: !ns, destroy_etcds());
    let gone = step!(g, b, "Deleting shoot namespace in Seed", [ground, records, etcd, late, released], skip: false, destroy_namespace());
    step!(g, b, "Deleting backup entry", [gone], skip: !shape.backup, retry: DEFAULT, delete_backup_entry());
    step!(g, b, "Deleting Cluster resource in Seed", [gone], skip: false, retry: DEFAULT, delete_cluster());
    step!(g, b, "Deleting copies of credentials", [gone], skip: false, retry: DEFAULT, delete_copies());
    g
}
