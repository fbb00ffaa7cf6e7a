//! The flow that creates a cluster and brings it to its spec [CP-F1..71].

use std::time::Duration;

use gardener_flow::Graph;

use super::{DEFAULT, step};
use crate::shoot::botanist::{Botanist, Record};

/// What decides which steps there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) workerless: bool,
    /// `spec.hibernation.enabled`.
    pub(crate) hibernation: bool,
    /// The annotation `skip-readiness`.
    pub(crate) skip_readiness: bool,
    pub(crate) credentials: bool,
    pub(crate) backup: bool,
    /// `spec.networking.nodes` is known.
    pub(crate) nodes_known: bool,
    /// A rotation of authorities or of the service account key is preparing.
    pub(crate) rotation_preparing: bool,
    /// All that is encrypted is written anew, with a label.
    pub(crate) labels_encrypted: bool,
    /// The labels go.
    pub(crate) unlabels_encrypted: bool,
    /// How long deploying the API server is tried: it waits for the first of two steps while the key of etcd is preparing [CP-F20].
    pub(crate) api_server_patience: Duration,
}

impl Shape {
    pub(crate) fn of(botanist: &Botanist) -> Self {
        let shoot = botanist.shoot();
        let rotation = shoot
            .status
            .credentials
            .as_ref()
            .and_then(|one| one.rotation.clone())
            .unwrap_or_default();
        let is_preparing = |phase: &str| phase.starts_with("Preparing");
        let key = rotation.etcd_encryption_key.as_ref().map(|one| one.phase.as_str());
        let phases = [
            rotation.certificate_authorities.map(|one| one.phase),
            rotation.service_account_key.map(|one| one.phase),
        ];
        Self {
            workerless: botanist.is_workerless(),
            hibernation: botanist.is_hibernation_enabled(),
            skip_readiness: botanist.skips_readiness(),
            credentials: botanist.has_credentials(),
            backup: botanist.has_backup(),
            nodes_known: shoot.spec.networking.as_ref().is_some_and(|one| one.nodes.is_some()),
            rotation_preparing: phases.iter().flatten().any(|phase| is_preparing(phase)),
            labels_encrypted: botanist.encryption().labels(),
            unlabels_encrypted: botanist.encryption().unlabels(),
            api_server_patience: match key.is_some_and(is_preparing) {
                true => Duration::from_secs(300),
                false => DEFAULT,
            },
        }
    }
}

/// The graph.
pub(crate) fn graph<'a>(b: &'a Botanist, name: &'static str, shape: Shape) -> Graph<'a> {
    let Shape {
        workerless: wl,
        hibernation: hib,
        skip_readiness: sr,
        ..
    } = shape;
    let mut g = Graph::new(name);
    let two_minutes = Duration::from_secs(120);

    let namespace =
        step!(g, b, "Deploying control plane namespace", [], skip: false, retry: DEFAULT, deploy_namespace());
    let identity = step!(g, b, "Ensuring Shoot cluster identity", [namespace], skip: false, retry: DEFAULT, ensure_cluster_identity());
    let cloud_provider = step!(g, b, "Deploying cloud provider account secret", [namespace], skip: wl || !shape.credentials, deploy_cloud_provider_secret());
    let secrets = step!(g, b, "Initializing secrets management", [namespace], skip: false, initialize_secrets());
    let cluster = step!(g, b, "Reconciling extensions.gardener.cloud/v1alpha1.Cluster resource", [secrets], skip: false, retry: DEFAULT, sync_cluster());
    let references = step!(g, b, "Deploying referenced resources", [namespace], skip: false, retry: DEFAULT, deploy_referenced_resources());

    let infrastructure = step!(g, b, "Deploying Shoot infrastructure", [secrets, cluster, cloud_provider, references], skip: wl, deploy_infrastructure());
    let infrastructure = step!(g, b, "Waiting until Shoot infrastructure has been reconciled", [infrastructure], skip: wl, wait_for_infrastructure());
    // Networks that only the infrastructure knows have to be known before anything is rendered with them.
    let networks = if shape.nodes_known { secrets } else { infrastructure };

    let service = step!(g, b, "Deploying Kubernetes API server service in the Seed cluster", [namespace, secrets, identity, networks], skip: false, retry: DEFAULT, deploy_api_server_service());
    let address = step!(g, b, "Waiting until Kubernetes API server service in the Seed cluster has reported readiness", [service], skip: hib, wait_for_address());
    let advertised = step!(g, b, "Ensuring advertised addresses for the Shoot", [secrets, address], skip: false, advertise_addresses());
    let internal_record = step!(g, b, "Deploying internal domain DNS record", [references, address, cluster], skip: hib, deploy_record(Record::Internal));
    step!(g, b, "Deploying external domain DNS record", [references, address, cluster], skip: hib, deploy_record(Record::External));

    let entry = step!(g, b, "Deploying BackupEntry for ETCD data", [namespace], skip: !shape.backup, retry: DEFAULT, deploy_backup_entry());
    let entry = step!(g, b, "Waiting until the BackupEntry for ETCD data has been reconciled", [entry], skip: !shape.backup || sr, wait_for_backup_entry());
    let etcd = step!(g, b, "Deploying main and events ETCDs", [secrets, cloud_provider, entry], skip: false, retry: DEFAULT, deploy_etcds());
    let etcd = step!(g, b, "Waiting until main and event ETCDs have been reconciled", [etcd], skip: hib || sr, wait_for_etcds());

    let before = b.has_extensions("BeforeKubeAPIServer");
    let early = step!(g, b, "Deploying extension resources before kube-apiserver", [secrets, cluster, cloud_provider, references, infrastructure], skip: hib || !before, retry: DEFAULT, deploy_extensions("BeforeKubeAPIServer"));
    let early = step!(g, b, "Waiting until extension resources handled before kube-apiserver are ready", [early], skip: hib || sr || !before, wait_for_extensions("BeforeKubeAPIServer"));
    let api_server = step!(g, b, "Deploying Kubernetes API server", [secrets, etcd, address, early, networks], skip: false, retry: shape.api_server_patience, deploy_api_server());
    let api_server = step!(g, b, "Waiting until Kubernetes API server rolled out", [api_server], skip: hib || sr, wait_for_api_server());

    let resource_manager = step!(g, b, "Deploying gardener-resource-manager", [namespace, secrets, api_server], skip: false, retry: DEFAULT, deploy_resource_manager());
    let resource_manager = step!(g, b, "Waiting until gardener-resource-manager reports readiness", [resource_manager], skip: hib || sr, wait_for_resource_manager());
    let control_plane = step!(g, b, "Deploying shoot control plane components", [secrets, cloud_provider, resource_manager, infrastructure, references], skip: wl, deploy_control_plane());
    let control_plane = step!(g, b, "Waiting until shoot control plane has been reconciled", [control_plane], skip: wl || sr, wait_for_control_plane());
    let namespaces = step!(g, b, "Deploying shoot namespaces system component", [resource_manager], skip: false, retry: DEFAULT, deploy_namespaces());
    let namespaces = step!(g, b, "Waiting until shoot namespaces have been reconciled", [namespaces], skip: hib || sr, wait_for_namespaces());
    let vpn = step!(g, b, "Deploying vpn-seed-server", [secrets, namespace, resource_manager], skip: wl, retry: DEFAULT, deploy_vpn());
    let access = step!(g, b, "Deploying Gardener shoot access resources", [secrets, resource_manager], skip: false, retry: DEFAULT, deploy_gardener_access());
    let client = step!(g, b, "Initializing connection to Shoot", [internal_record, access, api_server], skip: hib, retry: two_minutes, connect());
    let labelled = step!(g, b, "Labeling resources after modification of encryption config or to encrypt them with new ETCD encryption key", [client], skip: hib || !shape.labels_encrypted, retry: Duration::from_secs(600), label_encrypted());
    step!(g, b, "Removing label from resources after modification of encryption config or rotation of ETCD encryption key", [client, labelled], skip: hib || !shape.unlabels_encrypted, retry: Duration::from_secs(600), unlabel_encrypted());
    let scheduler = step!(g, b, "Deploying Kubernetes scheduler", [secrets, resource_manager], skip: wl, retry: DEFAULT, deploy_scheduler());
    let controller_manager = step!(g, b, "Deploying Kubernetes controller manager", [secrets, cloud_provider, resource_manager], skip: false, retry: DEFAULT, deploy_controller_manager());
    step!(g, b, "Deploying Kubernetes vertical pod autoscaler", [secrets, resource_manager], skip: wl, retry: DEFAULT, deploy_vertical_pod_autoscaler());
    step!(g, b, "Restarting control plane pods", [controller_manager, control_plane], skip: !b.restarts_control_plane_pods(), restart_control_plane_pods());
    let controller_manager = step!(g, b, "Waiting until kube-controller-manager reports readiness", [controller_manager], skip: !shape.rotation_preparing || sr, wait_for_controller_manager());

    let (deploying, waiting) = match hib {
        true => (
            "Hibernating extension resources before kube-apiserver hibernation",
            "Waiting until extension resources hibernated before kube-apiserver hibernation are ready",
        ),
        false => (
            "Deploying extension resources after kube-apiserver",
            "Waiting until extension resources handled after kube-apiserver are ready",
        ),
    };
    let after = b.has_extensions("AfterKubeAPIServer");
    let late = step!(g, b, deploying, [references, client], skip: !after, retry: DEFAULT, deploy_extensions("AfterKubeAPIServer"));
    let late = step!(g, b, waiting, [late], skip: !after || sr, wait_for_extensions("AfterKubeAPIServer"));

    let configs = step!(g, b, "Deploying OperatingSystemConfig resources for worker pools", [secrets, cloud_provider, resource_manager, references, infrastructure, control_plane, late], skip: wl, retry: DEFAULT, deploy_operating_system_configs());
    let configs = step!(g, b, "Waiting until OperatingSystemConfig for worker pools have been reconciled", [configs], skip: wl, wait_for_operating_system_configs());

    let system = step!(g, b, "Deploying shoot system resources", [resource_manager, references, configs, control_plane, late, client], skip: hib, deploy_system());
    step!(g, b, "Deploying shoot cluster identity", [resource_manager, identity, configs], skip: hib, retry: DEFAULT, deploy_cluster_identity());
    let network = step!(g, b, "Deploying shoot network plugin", [infrastructure, resource_manager, namespaces, control_plane, late, client], skip: wl, deploy_network());
    let network = step!(g, b, "Waiting until shoot network plugin has been reconciled", [network], skip: wl || sr, wait_for_network());
    step!(g, b, "Deploying CoreDNS system component", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_coredns());
    step!(g, b, "Deploying kube-proxy system component", [resource_manager, namespaces, scheduler, client], skip: wl || hib, retry: DEFAULT, deploy_kube_proxy());
    step!(g, b, "Deploying metrics-server system component", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_metrics_server());
    let vpn_shoot = step!(g, b, "Deploying vpn-shoot system component", [resource_manager, namespaces, scheduler, client, vpn], skip: wl || hib, retry: DEFAULT, deploy_vpn_shoot());
    step!(g, b, "Deploying node-problem-detector system component", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_daemon("node-problem-detector"));
    step!(g, b, "Deploying apiserver-proxy", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_daemon("apiserver-proxy"));
    step!(g, b, "Deploying blackbox-exporter", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_blackbox_exporter());
    step!(g, b, "Deploying node-exporter", [resource_manager, namespaces, client], skip: wl || hib, retry: DEFAULT, deploy_daemon("node-exporter"));

    let node_agent = step!(g, b, "Deploying managed resources for the gardener-node-agent", [resource_manager, identity, configs], skip: wl || hib, retry: DEFAULT, deploy_node_agent());
    let autoscaler_down = step!(g, b, "Scaling down cluster autoscaler", [node_agent], skip: !hib || wl, retry: DEFAULT, scale(crate::components::cluster_autoscaler::NAME, 0));
    let machine_manager = step!(g, b, "Deploying machine-controller-manager", [secrets, cloud_provider, resource_manager, infrastructure, client, configs, autoscaler_down, controller_manager], skip: wl, retry: Duration::from_secs(60), deploy_machine_controller_manager());
    let worker = step!(g, b, "Configuring worker pools", [resource_manager, infrastructure, machine_manager, system, node_agent, configs, network], skip: wl, deploy_worker());
    let deployments = step!(g, b, "Waiting until worker resource status is updated with latest machine deployments", [worker], skip: wl || hib, wait_for_machine_deployments());
    let with_workers = b.has_extensions("AfterWorker");
    let last = step!(g, b, "Deploying extension resources after workers", [deployments], skip: wl || !with_workers, deploy_extensions("AfterWorker"));
    step!(g, b, "Waiting until extension resources handled after workers are ready", [last], skip: wl || sr || !with_workers, wait_for_extensions("AfterWorker"));
    step!(g, b, "Deploying cluster-autoscaler", [deployments], skip: wl || hib, retry: DEFAULT, deploy_cluster_autoscaler());
    let worker = step!(g, b, "Waiting until worker pools have been reconciled", [worker, deployments], skip: wl || sr, wait_for_worker());
    step!(g, b, "Scaling down machine-controller-manager", [worker], skip: !hib || wl, retry: DEFAULT, scale(crate::components::machine_controller_manager::NAME, 0));
    // what machines still have is kept: only after the rollout it is known what is stale
    let stale = step!(g, b, "Delete stale OperatingSystemConfig resources", [worker], skip: wl, delete_stale_operating_system_configs());
    step!(g, b, "Waiting until stale OperatingSystemConfig resources are deleted", [stale], skip: wl || hib || sr, wait_for_stale_operating_system_configs());

    let tunnel = step!(g, b, "Waiting until the Kubernetes API server can connect to the Shoot workers", [vpn_shoot, network, worker], skip: wl || hib || sr, wait_for_tunnel());
    step!(g, b, "Waiting until all shoot worker nodes have updated the operating system config", [worker, tunnel], skip: wl || hib, wait_for_nodes());
    let monitoring = step!(g, b, "Reconciling Shoot monitoring stack", [client, tunnel, worker], skip: false, retry: two_minutes, deploy_monitoring());

    let asleep = step!(g, b, "Hibernating control plane", [client, monitoring, worker, late, advertised], skip: !hib, retry: Duration::from_secs(900), hibernate_control_plane());
    // who is there before the API server sleeps after it
    let early = step!(g, b, "Hibernating extension resources after kube-apiserver hibernation", [asleep], skip: !hib || !before, retry: DEFAULT, deploy_extensions("BeforeKubeAPIServer"));
    step!(g, b, "Waiting until extension resources hibernated after kube-apiserver hibernation are ready", [early], skip: !hib || sr || !before, wait_for_extensions("BeforeKubeAPIServer"));
    step!(g, b, "Destroying external domain DNS record if hibernated", [asleep], skip: !hib, destroy_record(Record::External));
    step!(g, b, "Destroying internal domain DNS record if hibernated", [asleep], skip: !hib, destroy_record(Record::Internal));
    let stale = step!(g, b, "Deleting stale extension resources", [client], skip: false, retry: DEFAULT, delete_stale_extensions());
    step!(g, b, "Waiting until stale extension resources are deleted", [stale], skip: hib || sr, wait_for_stale_extensions());
    let runtimes = step!(g, b, "Deploying container runtime resources", [client, references], skip: wl, retry: DEFAULT, deploy_container_runtimes());
    let runtimes = step!(g, b, "Waiting until container runtime resources are ready", [runtimes], skip: wl || sr, wait_for_container_runtimes());
    let runtimes = step!(g, b, "Deleting stale container runtime resources", [runtimes], skip: wl, retry: DEFAULT, delete_stale_container_runtimes());
    step!(g, b, "Waiting until stale container runtime resources are deleted", [runtimes], skip: wl || hib || sr, wait_for_stale_container_runtimes());
    g
}
