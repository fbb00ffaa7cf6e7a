//! node-ipam-controller: gives each node a share of the cluster's pod networks. Not the addresses of pods, which are the kubelet's to give.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_controller::events::Severity;
use gardener_controller::{Action, ObjectRef, Queue, Read, apply};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

/// How soon a node that got nothing asks again: another node may have gone.
const AGAIN: Duration = Duration::from_secs(10);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed(&environment.informers.nodes, &queue, Role::ControllerManager, |node| {
        lacks_range(&node.object).then(|| key_of(node)).into_iter().collect()
    });
    // One after the other, for what one node gets the next must not.
    environment.reconcile("node-ipam", Role::ControllerManager, 1, queue, reconcile);
}

fn lacks_range(node: &Node) -> bool {
    node.spec.as_ref().is_none_or(|spec| spec.pod_cidr.is_none())
}

/// The first share of `network` with a prefix of `length` bits that overlaps with none of `taken`.
fn free_share(network: IpNet, length: u8, taken: &[IpNet]) -> Option<IpNet> {
    let overlaps = |one: &IpNet, other: &IpNet| one.contains(other) || other.contains(one);
    let mut shares = network.subnets(length).ok()?;
    shares.find(|share| !taken.iter().any(|other| overlaps(share, other)))
}

/// The shares of all nodes.
fn taken(nodes: &[Node]) -> Vec<IpNet> {
    let specs = nodes.iter().filter_map(|node| node.spec.as_ref());
    let ranges = specs.flat_map(|spec| spec.pod_cidr.iter().chain(spec.pod_cidrs.iter().flatten()));
    ranges.filter_map(|range| range.parse().ok()).collect()
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(networks) = (environment.config.pod_networks)(&key.cluster) else {
        return Ok(Action::Done);
    };
    let api: Api<Node> = environment.cluster_api(&key.cluster);
    let nodes = api.read_list(&ListParams::default()).await?;
    let Some(node) = nodes
        .iter()
        .find(|node| node.metadata.name.as_deref() == Some(&key.name))
    else {
        return Ok(Action::Done);
    };
    if !lacks_range(node) {
        return Ok(Action::Done);
    }
    let taken = taken(&nodes);
    let shares: Option<Vec<String>> = networks
        .iter()
        .map(|&(network, length)| free_share(network, length, &taken).map(|share| share.to_string()))
        .collect();
    let Some(shares) = shares.filter(|shares| !shares.is_empty()) else {
        let message = format!("Node {} status is now: CIDRNotAvailable", key.name);
        environment
            .event(
                "cidrAllocator",
                &key.cluster,
                node,
                Severity::Normal,
                "CIDRNotAvailable",
                &message,
            )
            .await;
        return Ok(Action::RequeueAfter(AGAIN));
    };
    apply::patch_locked(&api, node, |node| {
        let spec = node.spec.get_or_insert_default();
        spec.pod_cidr = shares.first().cloned();
        spec.pod_cidrs = Some(shares.clone());
    })
    .await?;
    Ok(Action::Done)
}

/// A network from its text, and the prefix length of a node's share: `length`, or upstream's default for the family.
///
/// # Errors
/// When the text is no network.
pub fn pod_network(text: &str, length: Option<u8>) -> Result<(IpNet, u8), ipnet::AddrParseError> {
    let network: IpNet = text.parse()?;
    let usual = match network.addr() {
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 64,
    };
    Ok((network, length.unwrap_or(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn shares_do_not_overlap_and_end() {
        let (network, length) = pod_network("10.3.0.0/22", None).unwrap();
        let mut taken = vec![net("10.3.1.0/25"), net("10.4.0.0/16")];
        let mut given = Vec::new();
        while let Some(share) = free_share(network, length, &taken) {
            given.push(share.to_string());
            taken.push(share);
        }
        assert_eq!(given, ["10.3.0.0/24", "10.3.2.0/24", "10.3.3.0/24"]);
    }

    #[test]
    fn lengths_follow_the_family_or_what_is_asked() {
        assert_eq!(
            pod_network("fd00:10:1::/56", None).unwrap(),
            (net("fd00:10:1::/56"), 64)
        );
        assert_eq!(pod_network("10.0.0.0/8", Some(25)).unwrap().1, 25);
        assert!(pod_network("", None).is_err());
        assert_eq!(
            free_share(net("10.0.0.0/25"), 24, &[]),
            None,
            "a share larger than the network"
        );
    }
}
