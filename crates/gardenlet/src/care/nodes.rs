//! Whether all nodes of a shoot are ready, and as many as wanted [ST-57], [ST-58]: what is read, step by step.

use gardener_apis::machine::v1alpha1::{Machine, MachineDeployment};
use gardener_controller::Read;
use gardener_rules::care::control_plane::has_prober;
use gardener_rules::care::nodes::Nodes;
use gardener_rules::care::scaling;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client};

use super::NODES;
use super::checks::{Sight, Stop};

const SYSTEM_NAMESPACE: &str = "kube-system";
/// Where kubelets show that they live.
const NODE_LEASES: &str = "kube-node-lease";

impl Sight<'_> {
    /// [ST-57]
    pub(super) async fn nodes(&self, client: &Client) -> Result<(), Stop> {
        self.check_extensions(NODES)?;
        let nodes: Vec<Node> = Api::all(client.clone()).read_list(&ListParams::default()).await?;
        let nodes = Nodes::new(&nodes);
        let configs = configs(client).await?;
        let of_preserved = nodes.are_well(self.shoot)?;
        nodes.have_configs(&self.shoot.spec.provider.workers, &configs)?;
        let leases = leases(client, SYSTEM_NAMESPACE).await?;
        nodes.have_agents(&leases, self.config.clock.now())?;
        nodes.have_units()?;
        self.scaling(&nodes).await?;
        if has_prober(self.seed) {
            let leases = self::leases(client, NODE_LEASES).await?;
            nodes.have_leases(&leases, self.config.clock.now())?;
        }
        of_preserved.map_or(Ok(()), |finding| Err(finding.into()))
    }

    /// [ST-58]
    async fn scaling(&self, nodes: &Nodes<'_>) -> Result<(), Stop> {
        let all = ListParams::default();
        let deployments: Vec<MachineDeployment> = self.in_control_plane(&all).await?;
        let count = scaling::count(nodes, &deployments);
        if count.is_as_wanted() {
            return Ok(());
        }
        let machines: Vec<Machine> = self.in_control_plane(&all).await?;
        Ok(count.check(nodes, &deployments, &machines)?)
    }
}

/// The Secrets with the configs of pools; what is in them nobody looks at.
async fn configs(client: &Client) -> Result<Vec<ObjectMeta>, Stop> {
    let api: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let selected = ListParams::default().labels("gardener.cloud/role=operating-system-config");
    let listed = api.list_metadata(&selected).await?;
    Ok(listed.items.into_iter().map(|own| own.metadata).collect())
}

async fn leases(client: &Client, namespace: &str) -> Result<Vec<Lease>, Stop> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    Ok(api.read_list(&ListParams::default()).await?)
}
