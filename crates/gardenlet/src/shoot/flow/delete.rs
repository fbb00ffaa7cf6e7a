//! The flow that removes a cluster [CP-35].

use std::time::Duration;

use gardener_flow::{Graph, TaskError};

use super::{DEFAULT, step};
use crate::shoot::botanist::{Botanist, Record};

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
    /// What the control plane extension runs is needed for the cleaning: load balancers and volumes go by it.
    pub(crate) control_plane_needed: bool,
}

impl Shape {
    pub(crate) async fn of(botanist: &Botanist) -> Result<Self, TaskError> {
        let namespace = botanist.has_namespace().await?;
        let api_server = botanist.live("kube-apiserver").await?;
        let infrastructure = namespace && botanist.has_infrastructure().await?;
        Ok(Self {
            workerless: botanist.is_workerless(),
            namespace,
            clean: namespace && api_server.is_some() && (infrastructure || botanist.is_workerless()),
            infrastructure,
            credentials: botanist.has_credentials(),
            backup: botanist.has_backup(),
            control_plane_needed: infrastructure,
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
    let wakes = clean && !wl && shape.control_plane_needed;
    let mut g = Graph::new("Shoot cluster deletion");

    // 1: make the control plane usable
    let secrets = step!(g, b, "Initializing secrets management", [], skip: !ns, retry: DEFAULT, initialize_secrets());
    let cluster = step!(g, b, "Reconciling extensions.gardener.cloud/v1alpha1.Cluster resource", [secrets], skip: !ns, retry: DEFAULT, sync_cluster());
    let account = step!(g, b, "Deploying cloud provider account secret", [secrets], skip: !ns || wl || !shape.credentials, deploy_cloud_provider_secret());
    let references = step!(g, b, "Deploying referenced resources", [secrets], skip: !ns, retry: DEFAULT, deploy_referenced_resources());
    let service = step!(g, b, "Deploying Kubernetes API server service in the Seed cluster", [secrets], skip: !clean, retry: DEFAULT, deploy_api_server_service());
    let address = step!(g, b, "Waiting until Kubernetes API LoadBalancer in the Seed cluster has reported readiness", [service], skip: !clean, wait_for_address());
    let record = step!(g, b, "Deploying internal domain DNS record", [references, address, cluster], skip: !clean, deploy_record(Record::Internal));
    let etcd =
        step!(g, b, "Deploying main and events etcd", [secrets, account], skip: !clean, retry: DEFAULT, deploy_etcds());
    let etcd =
        step!(g, b, "Waiting until main and event etcd report readiness", [etcd], skip: !clean, wait_for_etcds());
    let api_server = step!(g, b, "Deploying Kubernetes API server", [etcd, address, cluster], skip: !clean, retry: DEFAULT, deploy_api_server());
    let api_server = step!(g, b, "Waiting until Kubernetes API server reports readiness", [api_server], skip: !clean, wait_for_api_server());
    let resource_manager = step!(g, b, "Deploying gardener-resource-manager", [api_server], skip: !clean, retry: DEFAULT, deploy_resource_manager());
    let resource_manager = step!(g, b, "Waiting until gardener-resource-manager reports readiness", [resource_manager], skip: !clean, wait_for_resource_manager());
    let plane = step!(g, b, "Deploying Shoot control plane", [resource_manager, account, references], skip: !wakes, retry: DEFAULT, deploy_control_plane());
    let plane = step!(g, b, "Waiting until Shoot control plane has been reconciled", [plane], skip: !wakes, wait_for_control_plane());
    // an attempt before this one may have got as far as removing it
    let access = step!(g, b, "Deploying Gardener shoot access resources", [secrets, resource_manager], skip: !clean, retry: DEFAULT, deploy_gardener_access());
    let client = step!(g, b, "Initializing connection to Shoot", [access, record, api_server], skip: !clean, retry: Duration::from_secs(120), connect());
    let controllers = step!(g, b, "Deploying Kubernetes controller manager", [resource_manager, plane, client], skip: !clean, retry: DEFAULT, deploy_controller_manager());

    // 2: clean the shoot
    let autoscaler = step!(g, b, "Deleting cluster autoscaler", [client], skip: !ns || wl, retry: DEFAULT, destroy_cluster_autoscaler());
    let webhooks = step!(g, b, "Cleaning up webhooks", [client, resource_manager], skip: !clean, retry: ten_minutes, clean_webhooks());
    let controllers = step!(g, b, "Waiting until kube-controller-manager is active", [client, webhooks, controllers], skip: !clean, wait_for_controller_manager());
    let apis = step!(g, b, "Cleaning extended API groups", [client, autoscaler, controllers], skip: !clean || b.skips_cleanup(), retry: ten_minutes, clean_extended_apis());
    let cleaned = step!(g, b, "Cleaning Kubernetes resources", [apis], skip: !clean, retry: ten_minutes, clean_kubernetes_resources());

    // 3: nodes and what runs on them
    let network = step!(g, b, "Destroying shoot network plugin", [cleaned], skip: !ns || wl, destroy_network());
    let network = step!(g, b, "Waiting until shoot network plugin has been destroyed", [network], skip: !ns || wl, wait_for_end_of_network());
    let manager = step!(g, b, "Deploying machine-controller-manager", [cleaned], skip: !clean || wl, retry: DEFAULT, deploy_machine_controller_manager());
    let worker = step!(g, b, "Destroying shoot workers", [manager], skip: !ns || wl, destroy_worker());
    let worker = step!(g, b, "Waiting until shoot worker nodes have been terminated", [worker], skip: !ns || wl, wait_for_end_of_worker());
    let manager = step!(g, b, "Deleting machine-controller-manager", [worker], skip: !ns || wl, retry: DEFAULT, destroy_machine_controller_manager());
    let configs = step!(g, b, "Deleting operating system config resources", [worker], skip: !ns || wl, delete_stale_operating_system_configs());
    let configs = step!(g, b, "Waiting until all operating system config resources are deleted", [configs], skip: !ns || wl, wait_for_stale_operating_system_configs());
    let resources = step!(g, b, "Deleting managed resources", [cleaned, worker], skip: !clean, retry: DEFAULT, destroy_managed_resources());
    let resources = step!(g, b, "Waiting until managed resources have been deleted", [resources], skip: !clean, wait_for_end_of_managed_resources());
    let early = step!(g, b, "Deleting extension resources before kube-apiserver", [cleaned, configs, resources], skip: !ns, retry: DEFAULT, delete_extensions("BeforeKubeAPIServer"));
    let early = step!(g, b, "Waiting until extension resources that should be handled before kube-apiserver have been deleted", [early], skip: !ns, wait_for_end_of_extensions("BeforeKubeAPIServer"));
    let runtimes = step!(g, b, "Deleting container runtime resources", [client, cleaned], skip: !ns || wl, retry: DEFAULT, delete_stale_container_runtimes());
    let runtimes = step!(g, b, "Waiting until stale container runtime resources are deleted", [runtimes], skip: !ns || wl, wait_for_stale_container_runtimes());

    // 4: the control plane
    let plane = step!(g, b, "Destroying shoot control plane", [resources, early, network, configs, runtimes, manager], skip: !ns || wl, destroy_control_plane());
    let plane = step!(g, b, "Waiting until shoot control plane has been destroyed", [plane], skip: !ns || wl, wait_for_end_of_control_plane());
    let released = step!(g, b, "Waiting until shoot managed resources have been deleted", [resources, plane, early], skip: !ns, retry: DEFAULT, release_managed_resources(clean));
    let api_server = step!(g, b, "Deleting Kubernetes API server", [released, plane], skip: !ns, retry: DEFAULT, destroy_api_server());
    let api_server = step!(g, b, "Waiting until Kubernetes API server has been deleted", [api_server], skip: !ns, wait_for_end_of_api_server());
    let late = step!(g, b, "Deleting extension resources after kube-apiserver", [api_server], skip: !ns, retry: DEFAULT, delete_extensions("AfterKubeAPIServer"));
    let late = step!(g, b, "Waiting until extension resources that should be handled after kube-apiserver have been deleted", [late], skip: !ns, wait_for_end_of_extensions("AfterKubeAPIServer"));
    let service = step!(g, b, "Destroying Kubernetes API server service", [api_server], skip: !ns, retry: DEFAULT, destroy_api_server_service());

    // 5, 6: what it stood on
    let ground = step!(g, b, "Destroying shoot infrastructure", [plane, released], skip: !infrastructure, destroy_infrastructure());
    let ground = step!(g, b, "Waiting until shoot infrastructure has been deleted", [ground], skip: !infrastructure, wait_for_end_of_infrastructure());
    let external =
        step!(g, b, "Destroying external domain DNS record", [api_server], skip: !ns, destroy_record(Record::External));

    // 7: what is left
    let internal = step!(g, b, "Destroying internal domain DNS record", [ground, external, late, service], skip: !ns, destroy_record(Record::Internal));
    let etcd = step!(g, b, "Destroying main and events etcd", [ground, external, late, service], skip: !ns, retry: DEFAULT, destroy_etcds());
    let etcd = step!(g, b, "Waiting until main and event etcd have been destroyed", [etcd], skip: !ns, wait_for_end_of_etcds());
    let gone = step!(g, b, "Deleting shoot namespace in Seed", [internal, etcd], skip: false, retry: DEFAULT, destroy_namespace());
    let gone = step!(g, b, "Waiting until shoot namespace in Seed has been deleted", [gone], skip: false, wait_for_end_of_namespace());
    step!(g, b, "Deleting backup entry", [gone], skip: !shape.backup, retry: DEFAULT, delete_backup_entry());
    step!(g, b, "Deleting Cluster resource in Seed", [gone], skip: false, retry: DEFAULT, delete_cluster());
    step!(g, b, "Deleting copies of credentials", [gone], skip: false, retry: DEFAULT, delete_copies());
    g
}
