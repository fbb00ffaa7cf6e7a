//! Whether what the system of a shoot needs runs in it [ST-56], and whether what does not fails for preserved nodes alone [ST-60].

use gardener_apis::machine::v1alpha1::MachineDeployment;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_rules::care::Finding;
use gardener_rules::care::nodes::is_preserved;
use gardener_rules::care::preserved::{self, Workload};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, Selector};
use kube::{Api, Client, ResourceExt};

use super::SYSTEM;
use super::checks::{Sight, Stop};

/// The end of the tunnel that is in the shoot.
const TUNNEL: &str = "vpn-shoot";

impl Sight<'_> {
    /// [ST-56]
    pub(super) async fn system(&self, client: &Client) -> Result<(), Stop> {
        self.check_extensions(SYSTEM)?;
        // who is preserved is asked when it matters for the first time
        let mut preserved: Option<Vec<String>> = None;
        for resource in self.resources(|one, label| one.spec.class.is_none() || label == SYSTEM) {
            let Err(finding) = self.check_resource(resource) else {
                continue;
            };
            let preserved = match &mut preserved {
                Some(known) => known,
                unknown => unknown.insert(self.preserved_nodes(client).await),
            };
            if preserved.is_empty() || !is_explained(client, resource, preserved).await {
                return Err(finding.into());
            }
        }
        if self.shoot.is_workerless() {
            return Ok(());
        }
        self.tunnel(client).await
    }

    /// Nothing is sent through the tunnel: that its end in the shoot runs is all that is asked for.
    async fn tunnel(&self, client: &Client) -> Result<(), Stop> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
        let tunnels = pods.list_metadata(&ListParams::default().labels("type=tunnel")).await?;
        if tunnels.items.is_empty() {
            let text = "no tunnels are currently deployed to perform health-check on";
            return Err(Finding::new("NoTunnelDeployed", text).into());
        }
        let ends = ListParams::default().labels(&format!("app={TUNNEL}"));
        let ends = pods.read_list(&ends).await?;
        let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        if !ends.iter().any(runs) {
            let text = format!(
                "Tunnel connection has not been established (no running {TUNNEL} pod found yet in the shoot cluster)"
            );
            return Err(Finding::new("TunnelConnectionBroken", text).into());
        }
        Ok(())
    }

    /// The names of preserved nodes, if failed machines are preserved; none if that cannot be read.
    async fn preserved_nodes(&self, client: &Client) -> Vec<String> {
        if self.shoot.is_workerless() {
            return Vec::new();
        }
        let deployments: Result<Vec<MachineDeployment>, Stop> = self.in_control_plane(&ListParams::default()).await;
        let has_some = |own: &MachineDeployment| own.status.preserved_failed_replicas.unwrap_or_default() > 0;
        if !deployments.is_ok_and(|all| all.iter().any(has_some)) {
            return Vec::new();
        }
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes.read_list(&ListParams::default()).await.unwrap_or_default();
        let preserved = nodes.iter().filter(|node| is_preserved(node));
        preserved.map(ResourceExt::name_any).collect()
    }
}

/// Whether a ManagedResource fails for preserved nodes alone; not if that cannot be read.
async fn is_explained(client: &Client, resource: &ManagedResource, preserved: &[String]) -> bool {
    match workloads(client, resource, preserved).await {
        Ok(workloads) => preserved::explain(&workloads),
        Err(error) => {
            tracing::warn!(resource = resource.name_any(), %error, "why it fails cannot be read");
            false
        }
    }
}

async fn workloads(
    client: &Client,
    resource: &ManagedResource,
    nodes: &[String],
) -> Result<Vec<Workload>, kube::Error> {
    let mut found = Vec::new();
    for own in &resource.status.resources {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let kind = text(&own.kind);
        if !preserved::KINDS.contains(&kind.as_str()) {
            continue;
        }
        let as_it_is = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", &kind));
        let (namespace, name) = (text(&own.namespace), text(&own.name));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &as_it_is);
        let object = serde_json::to_value(api.get(&name).await?).map_err(kube::Error::SerdeError)?;
        let unready_on_preserved = match kind.as_str() {
            "DaemonSet" => unready(client, &namespace, &name, nodes).await?,
            _ => 0,
        };
        found.push(Workload {
            kind,
            object,
            unready_on_preserved,
        });
    }
    Ok(found)
}

/// How many pods of a DaemonSet on some nodes are not ready.
async fn unready(client: &Client, namespace: &str, name: &str, nodes: &[String]) -> Result<i64, kube::Error> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), namespace);
    let set = sets.read(name).await?;
    let Ok(selector) = Selector::try_from(set.spec.selector) else {
        return Ok(0);
    };
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.read_list(&ListParams::default().labels_from(&selector)).await?;
    let is_there = |pod: &&Pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_some_and(|node| nodes.contains(node))
    };
    let is_ready = |pod: &Pod| {
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|own| own.type_ == "Ready" && own.status == "True")
    };
    let count = pods.iter().filter(is_there).filter(|pod| !is_ready(pod)).count();
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}
