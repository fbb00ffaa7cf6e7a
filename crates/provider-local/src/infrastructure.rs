//! Infrastructure: there is none; the networks are as the shoot says, or, for an IPv6 shoot that names none, from unique local addresses.

use async_trait::async_trait;
use gardener_apis::core::v1beta1::Networking;
use gardener_apis::extensions::v1alpha1::{Cluster, Infrastructure};
use gardener_extension::{Actuator, ActuatorError, Context, Outcome, cluster};
use serde_json::json;

/// The network of nodes of shoots that do not name one.
const DEFAULT_NODES: &str = "10.0.0.0/16";
/// The networks of IPv6 shoots, disjoint from each other: nodes, pods, services.
const DEFAULT_IPV6: [&str; 3] = ["fd00:10:1:100::/56", "fd00:10:1::/56", "fd00:10:2::/112"];

/// The networks of nodes, pods and services; what is neither named nor the provider's to choose is left out.
fn networks(networking: Option<&Networking>) -> [Option<&str>; 3] {
    let named = networking.map(|own| [&own.nodes, &own.pods, &own.services]);
    let [nodes, pods, services] = named.map_or([None; 3], |named| named.map(Option::as_deref));
    let first_family = networking.and_then(|own| own.ip_families.first());
    if first_family.is_some_and(|family| family == "IPv6") {
        let [default_nodes, default_pods, default_services] = DEFAULT_IPV6;
        return [
            nodes.or(Some(default_nodes)),
            pods.or(Some(default_pods)),
            services.or(Some(default_services)),
        ];
    }
    [nodes.or(Some(DEFAULT_NODES)), pods, services]
}

pub(crate) struct Local;

#[async_trait]
impl Actuator<Infrastructure> for Local {
    async fn reconcile(
        &self,
        _: &Context,
        object: &Infrastructure,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let shoot = cluster.map(cluster::shoot).transpose()?;
        let networking = shoot.as_ref().and_then(|shoot| shoot.spec.networking.as_ref());
        let [nodes, pods, services] = networks(networking);
        Ok(Outcome::with_status(json!({
            "nodesCIDR": nodes,
            "networking": {
                "nodes": Vec::from_iter(nodes),
                "pods": Vec::from_iter(pods),
                "services": Vec::from_iter(services),
            },
            "providerStatus": {
                "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "InfrastructureStatus",
                "region": object.spec.region,
                "nodes": nodes,
            },
        })))
    }

    async fn delete(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_30_an_ipv6_shoot_without_networks_gets_disjoint_ones() {
        let networking = |families: &[&str], nodes: Option<&str>| Networking {
            ip_families: families.iter().map(|&family| family.to_owned()).collect(),
            nodes: nodes.map(str::to_owned),
            ..Networking::default()
        };
        let own = networking(&["IPv6"], Some("fd00::/56"));
        assert_eq!(
            networks(Some(&own)),
            [Some("fd00::/56"), Some("fd00:10:1::/56"), Some("fd00:10:2::/112")]
        );
        let own = networking(&["IPv4"], None);
        assert_eq!(networks(Some(&own)), [Some(DEFAULT_NODES), None, None]);
        assert_eq!(networks(None), [Some(DEFAULT_NODES), None, None]);
    }
}
