//! What must be over in a shoot before its control plane may stop [CP-120]: what would be told of it later is as it is told then.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gardener_apis::core::v1beta1::Shoot;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespaces whose pods are not the users' doing.
const NOT_USERS: [&str; 2] = ["kube-system", "kubernetes-dashboard"];

fn place(metadata: &ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Whether there are no nodes any more.
///
/// # Errors
/// There are.
pub fn no_nodes(nodes: &[Node]) -> Result<(), String> {
    match nodes.is_empty() {
        true => Ok(()),
        false => Err("not all nodes have been deleted in the shoot cluster".to_owned()),
    }
}

/// A pod that runs: what is told of it, and whether it is its user's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// In words.
    pub message: String,
    /// Whether the pod is a user's.
    pub is_users: bool,
}

/// Whether no pod runs any more.
///
/// # Errors
/// The first that does.
pub fn no_pods(pods: &[Pod]) -> Result<(), Running> {
    let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let Some(pod) = pods.iter().find(runs) else {
        return Ok(());
    };
    let (namespace, name) = place(&pod.metadata);
    let place = format!("{namespace}/{name}");
    Err(Running {
        message: format!(
            "waiting until there are no running Pods in the shoot cluster, there is still at least one running Pod in the shoot cluster: {place:?}"
        ),
        is_users: !NOT_USERS.contains(&namespace),
    })
}

/// The networks of a shoot's pods.
fn networks(shoot: &Shoot) -> Vec<IpNet> {
    let told = shoot.status.networking.iter().flat_map(|own| &own.pods);
    let wanted = shoot.spec.networking.iter().filter_map(|own| own.pods.as_ref());
    told.chain(wanted).filter_map(|own| own.parse().ok()).collect()
}

/// Whether no service leads to a pod any more. What people write themselves into endpoints does not count.
///
/// # Errors
/// The first that does.
pub fn no_endpoints(shoot: &Shoot, services: &[Service], endpoints: &[Endpoints]) -> Result<(), String> {
    let networks = networks(shoot);
    let is_by_hand = |service: &&Service| {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_none_or(|selector| selector.is_empty())
    };
    let by_hand: BTreeSet<(&str, &str)> = services
        .iter()
        .filter(is_by_hand)
        .map(|service| place(&service.metadata))
        .collect();
    let leads_to_pod = |own: &&Endpoints| {
        let addresses = own
            .subsets
            .iter()
            .flatten()
            .flat_map(|subset| subset.addresses.iter().flatten());
        let mut addresses = addresses.filter_map(|own| own.ip.parse::<IpAddr>().ok());
        addresses.any(|address| networks.iter().any(|network| network.contains(&address)))
    };
    let mut reconciled = endpoints.iter().filter(|own| !by_hand.contains(&place(&own.metadata)));
    match reconciled.find(leads_to_pod) {
        None => Ok(()),
        Some(own) => {
            let (namespace, name) = place(&own.metadata);
            let place = format!("{namespace}/{name}");
            Err(format!(
                "waiting until there are no running Pods in the shoot cluster, there is still at least one Endpoint containing pod IPs in the shoot cluster: {place:?}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cp_120_pods() {
        let pod = |namespace: &str, phase: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"namespace": namespace, "name": "p"}, "status": {"phase": phase},
            }))
            .unwrap()
        };
        assert_eq!(
            no_pods(&[pod("a", "Pending"), pod("a", "Failed"), pod("a", "Succeeded")]),
            Ok(())
        );
        for (namespace, expected) in [("a", true), ("kube-system", false), ("kubernetes-dashboard", false)] {
            let found = no_pods(&[pod("a", "Pending"), pod(namespace, "Running")]).unwrap_err();
            assert_eq!(found.is_users, expected, "{namespace}");
            assert!(found.message.ends_with(&format!(": \"{namespace}/p\"")), "{found:?}");
        }
    }

    #[test]
    fn cp_120_endpoints() {
        let shoot: Shoot = serde_json::from_value(json!({
            "spec": {"networking": {"pods": "10.3.0.0/16"}},
            "status": {"networking": {"pods": ["2001:db8::/64"]}},
        }))
        .unwrap();
        let endpoints = |name: &str, address: &str| -> Endpoints {
            let subsets = json!([{"addresses": [{"ip": address}]}]);
            serde_json::from_value(json!({"metadata": {"namespace": "n", "name": name}, "subsets": subsets})).unwrap()
        };
        let service = |name: &str, selector: serde_json::Value| -> Service {
            serde_json::from_value(
                json!({"metadata": {"namespace": "n", "name": name}, "spec": {"selector": selector}}),
            )
            .unwrap()
        };
        let services = [service("own", json!({"a": "b"})), service("by-hand", json!(null))];
        for (name, address, is_left) in [
            ("own", "10.3.1.1", true),
            ("own", "2001:db8::7", true),
            ("own", "10.4.0.1", false),
            ("nobody's", "10.3.1.1", true),
            ("by-hand", "10.3.1.1", false),
        ] {
            let found = no_endpoints(&shoot, &services, &[endpoints(name, address)]);
            assert_eq!(found.is_err(), is_left, "{name} {address}");
        }
        assert!(no_nodes(&[]).is_ok() && no_nodes(&[Node::default()]).is_err());
    }
}
