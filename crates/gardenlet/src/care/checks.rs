//! The checks behind the conditions: what is read, and which failing step decides [ST-50..57].

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{Condition, Shoot};
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_controller::error_codes;
use gardener_rules::care::{self as rules, Finding};
use gardener_rules::worker_pool;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};

use super::api_server::ApiServer;
use super::{API_SERVER, CONTROL_PLANE, NODES, OBSERVABILITY, SYSTEM, Verdict, is_hibernated, namespace};
use crate::Config;
use crate::extension::ExtensionObject;
use crate::health;

const MELTDOWN: &str = "dependency-watchdog.gardener.cloud/meltdown-protection-active";

/// What the checks look at.
struct Sight<'a> {
    config: &'a Config,
    shoot: &'a Shoot,
    namespace: String,
    resources: Vec<ManagedResource>,
    extensions: Result<Vec<Extended>, String>,
}

/// What an extension says of the shoot.
struct Extended {
    kind: String,
    name: String,
    conditions: Vec<Condition>,
}

/// A check's end before its last step.
enum Stop {
    Finding(Finding),
    Unreadable(String),
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

fn verdict(checked: Result<(), Stop>, reason: &'static str, message: &'static str) -> Verdict {
    match checked {
        Ok(()) => Verdict::Holds(reason, message),
        Err(Stop::Finding(finding)) => Verdict::Fails(finding),
        Err(Stop::Unreadable(why)) => Verdict::Unknown(why),
    }
}

/// All checks of a shoot.
pub(super) async fn all<'k>(
    config: &Config,
    shoot: &Shoot,
    wanted: &[&'k str],
    server: &ApiServer,
) -> Vec<(&'k str, Verdict)> {
    let every = |verdict: Verdict| wanted.iter().map(|kind| (*kind, verdict.clone())).collect();
    if is_hibernated(shoot) {
        return every(Verdict::Holds(
            "ConditionNotChecked",
            "Shoot cluster has been hibernated.",
        ));
    }
    let namespace = namespace(shoot);
    let api: Api<ManagedResource> = Api::namespaced(config.seed.clone(), &namespace);
    let resources = match api.read_list(&ListParams::default()).await {
        Ok(listed) => listed,
        Err(error) => {
            let text = format!("Failed listing ManagedResources: {error}");
            return every(Verdict::Fails(Finding::new("ManagedResourceListingFailed", text)));
        }
    };
    let extensions = extensions(config, &namespace).await;
    let sight = Sight {
        config,
        shoot,
        namespace,
        resources,
        extensions: extensions.map_err(|error| error.to_string()),
    };
    let client = sight.shoot_client(server);
    let mut verdicts = Vec::new();
    for kind in wanted {
        let verdict = match (*kind, &client) {
            (API_SERVER, Ok(client)) => api_server(client).await,
            (API_SERVER, Err(_)) => Verdict::Fails(Finding::new(
                "APIServerDown",
                "Could not reach API server during client initialization.",
            )),
            (CONTROL_PLANE, _) => verdict(
                sight.control_plane().await,
                "ControlPlaneRunning",
                "All control plane components are healthy.",
            ),
            (OBSERVABILITY, _) => verdict(
                sight.observability().await,
                "ObservabilityComponentsRunning",
                "All observability components are healthy.",
            ),
            (NODES, Ok(client)) => verdict(sight.nodes(client).await, "EveryNodeReady", "All nodes are ready."),
            (SYSTEM, Ok(client)) => verdict(
                sight.system(client).await,
                "SystemComponentsRunning",
                "All system components are healthy.",
            ),
            (_, Err(why)) => Verdict::Unknown(why.clone()),
            (_, Ok(_)) => continue,
        };
        verdicts.push((*kind, verdict));
    }
    verdicts
}

/// What the extensions of a shoot say, in the order in which it counts.
async fn extensions(config: &Config, namespace: &str) -> Result<Vec<Extended>, kube::Error> {
    let mut all: Vec<Extended> = extended::<extensions::ControlPlane>(config, namespace).await?.collect();
    all.extend(extended::<extensions::Extension>(config, namespace).await?);
    all.extend(extended::<extensions::Network>(config, namespace).await?);
    all.extend(extended::<extensions::Worker>(config, namespace).await?);
    Ok(all)
}

async fn extended<K>(config: &Config, namespace: &str) -> Result<impl Iterator<Item = Extended> + use<K>, kube::Error>
where
    K: ExtensionObject + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(config.seed.clone(), namespace);
    let listed = api.read_list(&ListParams::default()).await?;
    Ok(listed.into_iter().map(|object| Extended {
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        conditions: object.conditions().to_vec(),
    }))
}

/// [ST-53]
async fn api_server(client: &Client) -> Verdict {
    let request = http_get("/healthz");
    let answered = match request {
        Ok(request) => client
            .request_text(request)
            .await
            .map(drop)
            .map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match answered {
        Ok(()) => Verdict::Holds(
            "HealthzRequestSucceeded",
            "API server /healthz endpoint responded with success status code.",
        ),
        Err(error) => {
            let text = format!("Request to API server /healthz endpoint failed. ({error})");
            Verdict::Fails(Finding::new("HealthzRequestFailed", text))
        }
    }
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, http::Error> {
    http::Request::get(path).body(Vec::new())
}

impl Sight<'_> {
    /// The shoot's API, if its server runs [ST-43], [ST-52].
    fn shoot_client(&self, server: &ApiServer) -> Result<Client, String> {
        match server {
            ApiServer::Runs(Ok(client)) => return Ok(client.clone()),
            ApiServer::Runs(Err(why)) => {
                return Err(format!("Could not initialize Shoot client for health check: {why}"));
            }
            ApiServer::Unknown(why) => return Err(why.clone()),
            ApiServer::Rests => {}
        }
        let last = self
            .shoot
            .status
            .last_operation
            .as_ref()
            .map(|last| last.r#type.as_str());
        Err(match last {
            None | Some("Create") => "Shoot control plane has not been fully created yet.",
            Some("Delete") => "Shoot control plane has already been or is about to be deleted.",
            Some(_) => "Shoot control plane is not running at the moment.",
        }
        .to_owned())
    }

    fn is_workerless(&self) -> bool {
        self.shoot.spec.provider.workers.is_empty()
    }

    async fn deployments(&self, role: &str) -> Result<Vec<Deployment>, Stop> {
        let api: Api<Deployment> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        let parameters = ListParams::default().labels(&format!("gardener.cloud/role={role}"));
        Ok(api.read_list(&parameters).await?)
    }

    fn check_deployments(found: &[Deployment], required: &[&str]) -> Result<(), Finding> {
        let names: BTreeSet<String> = found.iter().map(ResourceExt::name_any).collect();
        let mut missing: Vec<&str> = required.iter().copied().filter(|name| !names.contains(*name)).collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            let text = format!("Missing required deployments: [{}]", missing.join(" "));
            return Err(Finding::new("DeploymentMissing", text));
        }
        for one in found {
            health::deployment(one).map_err(|why| {
                Finding::new(
                    "DeploymentUnhealthy",
                    format!("Deployment {:?} is unhealthy: {why}", one.name_any()),
                )
            })?;
        }
        Ok(())
    }

    fn check_resources(&self, counts: impl Fn(&ManagedResource, &str) -> bool) -> Result<(), Finding> {
        for resource in &self.resources {
            let label = resource
                .labels()
                .get("care.gardener.cloud/condition-type")
                .map_or("", String::as_str);
            if counts(resource, label) {
                rules::managed_resource(resource)?;
            }
        }
        Ok(())
    }

    /// What extensions say about a condition [EXT-120], [EXT-121].
    fn check_extensions(&self, wanted: &str) -> Result<(), Stop> {
        let extensions = self.extensions.as_ref().map_err(|why| Stop::Unreadable(why.clone()))?;
        for Extended { kind, name, conditions } in extensions {
            let told: Option<&Condition> = conditions.iter().find(|one| one.r#type == wanted);
            match told {
                Some(one) if one.status == "Progressing" => {
                    let mut finding = Finding::new(format!("{kind}{}", one.reason), &one.message);
                    finding.codes.clone_from(&one.codes);
                    return Err(finding.into());
                }
                Some(one) if one.status != "True" => {
                    let text = format!(
                        "{kind} extension ({}/{name}) reports failing health check: {}",
                        self.namespace, one.message
                    );
                    let mut finding = Finding::new(format!("{kind}UnhealthyReport"), text);
                    finding.codes.clone_from(&one.codes);
                    return Err(finding.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// [ST-54]
    async fn control_plane(&self) -> Result<(), Stop> {
        self.check_extensions(CONTROL_PLANE)?;
        let api: Api<Etcd> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        let etcds = api
            .read_list(&ListParams::default().labels("gardener.cloud/role=controlplane"))
            .await?;
        let names: BTreeSet<String> = etcds.iter().map(ResourceExt::name_any).collect();
        let missing: Vec<&str> = ["etcd-events", "etcd-main"]
            .into_iter()
            .filter(|name| !names.contains(*name))
            .collect();
        if !missing.is_empty() {
            let text = format!("Missing required etcds: [{}]", missing.join(" "));
            return Err(Finding::new("EtcdMissing", text).into());
        }
        for etcd in &etcds {
            let name = etcd.name_any();
            if etcd.status.ready != Some(true) {
                let text = format!("Etcd extension resource {name:?} is unhealthy: etcd {name:?} is not ready yet");
                return Err(Finding::new("EtcdUnhealthy", text).into());
            }
        }
        let mut required = vec!["gardener-resource-manager", "kube-apiserver", "kube-controller-manager"];
        if !self.is_workerless() {
            required.extend(["kube-scheduler", "machine-controller-manager"]);
            if self
                .shoot
                .spec
                .provider
                .workers
                .iter()
                .any(|pool| pool.maximum > pool.minimum)
            {
                required.push("cluster-autoscaler");
            }
        }
        let deployments = self.deployments("controlplane").await?;
        Self::check_deployments(&deployments, &required)?;
        let scaled: Vec<String> = deployments
            .iter()
            .filter(|one| one.annotations().contains_key(MELTDOWN))
            .map(ResourceExt::name_any)
            .collect();
        if !scaled.is_empty() {
            let text = format!(
                "The following deployments have been scaled down to 0 replicas by dependency-watchdog-prober: {}",
                scaled.join(", ")
            );
            return Err(Finding::new("ControllersScaledDown", text).into());
        }
        self.check_resources(|one, label| one.spec.class.is_some() && matches!(label, "" | CONTROL_PLANE))?;
        Ok(())
    }

    /// [ST-55]
    async fn observability(&self) -> Result<(), Stop> {
        self.check_extensions(OBSERVABILITY)?;
        if self.shoot.spec.purpose.as_deref() != Some("testing") {
            let required: &[&str] = if self.is_workerless() {
                &[]
            } else {
                &["kube-state-metrics"]
            };
            Self::check_deployments(&self.deployments("monitoring").await?, required)?;
        }
        self.check_resources(|_, label| label == OBSERVABILITY)?;
        Ok(())
    }

    /// [ST-56]
    async fn system(&self, client: &Client) -> Result<(), Stop> {
        self.check_extensions(SYSTEM)?;
        self.check_resources(|one, label| one.spec.class.is_none() || label == SYSTEM)?;
        if self.is_workerless() {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
        let tunnels = pods.read_list(&ListParams::default().labels("type=tunnel")).await?;
        if tunnels.is_empty() {
            let text = "no tunnels are currently deployed to perform health-check on";
            return Err(Finding::new("NoTunnelDeployed", text).into());
        }
        let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        if !tunnels.iter().any(runs) {
            let text =
                "Tunnel connection has not been established (no running vpn-shoot pod found yet in the shoot cluster)";
            return Err(Finding::new("TunnelConnectionBroken", text).into());
        }
        Ok(())
    }

    /// [ST-57], the steps 1 and 2
    async fn nodes(&self, client: &Client) -> Result<(), Stop> {
        self.check_extensions(NODES)?;
        let api: Api<Node> = Api::all(client.clone());
        let nodes = api.read_list(&ListParams::default()).await?;
        for pool in &self.shoot.spec.provider.workers {
            let desired = worker_pool::kubernetes_version(self.shoot, pool);
            let of_pool: Vec<&Node> = nodes
                .iter()
                .filter(|node| node.labels().get("worker.gardener.cloud/pool") == Some(&pool.name))
                .collect();
            for node in &of_pool {
                check_node(node, &pool.name, desired)?;
            }
            let (have, minimum) = (of_pool.len(), usize::try_from(pool.minimum).unwrap_or_default());
            if have < minimum {
                let text = format!(
                    "Not enough worker nodes registered in worker pool {:?} to meet minimum desired machine count. ({have}/{minimum}).",
                    pool.name
                );
                return Err(Finding::new("MissingNodes", text).into());
            }
        }
        Ok(())
    }
}

fn check_node(node: &Node, pool: &str, desired: &str) -> Result<(), Finding> {
    let name = node.name_any();
    if let Err(why) = rules::node(node) {
        let mut finding = Finding::new(
            "NodeUnhealthy",
            format!("Node {name:?} in worker group {pool:?} is unhealthy: {why}"),
        );
        if rules::is_user_error(&why) {
            finding.codes.push(error_codes::CONFIGURATION_PROBLEM.to_owned());
        }
        return Err(finding);
    }
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let kubelet = info.map(|info| info.kubelet_version.clone()).unwrap_or_default();
    match rules::is_version_mismatch(&kubelet, desired) {
        Ok(false) => Ok(()),
        Ok(true) => {
            let text = format!(
                "The kubelet version for node {name:?} ({kubelet}) does not match the desired Kubernetes version (v{desired})"
            );
            Err(Finding::new("KubeletVersionMismatch", text))
        }
        Err(error) => {
            let text = format!("Error checking the kubelet version of node {name:?} ({kubelet:?}): {error}");
            Err(Finding::new("VersionParseError", text))
        }
    }
}
