//! Addresses of pods: a range per node, an address per pod.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::NodeKey;

/// The free addresses of one node.
pub(super) struct Addresses {
    range: IpNet,
    taken: BTreeSet<IpAddr>,
}

impl Addresses {
    pub fn new(range: IpNet) -> Self {
        Self {
            range,
            taken: BTreeSet::new(),
        }
    }

    /// Takes an address, `wanted` if it is free and in the range. None when all are taken.
    pub fn take(&mut self, wanted: Option<IpAddr>) -> Option<IpAddr> {
        if let Some(address) = wanted.filter(|address| self.range.contains(address))
            && self.taken.insert(address)
        {
            return Some(address);
        }
        // the first address of a range is the node's own
        let free = self
            .range
            .hosts()
            .skip(1)
            .find(|address| !self.taken.contains(address))?;
        self.taken.insert(free);
        Some(free)
    }

    pub fn release(&mut self, address: IpAddr) {
        self.taken.remove(&address);
    }
}

/// Ranges of nodes that bring none.
#[derive(Default)]
pub(super) struct Networks {
    taken: BTreeMap<NodeKey, IpNet>,
}

/// The largest third octet, and the second octets of the ranges handed out: 10.244.0.0/16 and on.
const FIRST: u8 = 244;

impl Networks {
    /// Notes that a node has a range.
    pub fn set(&mut self, node: &NodeKey, range: IpNet) {
        self.taken.insert(node.clone(), range);
    }

    /// A /24 that no other node of the cluster has.
    pub fn pick(&mut self, node: &NodeKey) -> Option<IpNet> {
        let taken: BTreeSet<IpNet> = self
            .taken
            .iter()
            .filter(|((cluster, _), _)| *cluster == node.0)
            .map(|(_, range)| *range)
            .collect();
        let ranges = (FIRST..=u8::MAX).flat_map(|second| (0..=u8::MAX).map(move |third| (second, third)));
        let free = ranges
            .filter_map(|(second, third)| IpNet::new(Ipv4Addr::new(10, second, third, 0).into(), 24).ok())
            .find(|range| !taken.contains(range))?;
        self.taken.insert(node.clone(), free);
        Some(free)
    }

    pub fn release(&mut self, node: &NodeKey) {
        self.taken.remove(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_once_until_released() {
        let mut addresses = Addresses::new("10.0.0.0/29".parse().unwrap());
        let first = addresses.take(None).unwrap();
        assert_eq!(first.to_string(), "10.0.0.2");
        assert_eq!(
            addresses.take(Some("10.0.0.6".parse().unwrap())).unwrap().to_string(),
            "10.0.0.6"
        );
        assert_eq!(addresses.take(Some(first)).unwrap().to_string(), "10.0.0.3");
        addresses.release(first);
        assert_eq!(addresses.take(Some("192.168.0.1".parse().unwrap())), Some(first));
        while addresses.take(None).is_some() {}
        assert_eq!(addresses.taken.len(), 5);
    }

    #[test]
    fn ranges_are_told_apart_within_a_cluster() {
        let mut networks = Networks::default();
        let node = |cluster: &str, name: &str| -> NodeKey { (cluster.into(), name.into()) };
        networks.set(&node("a", "1"), "10.244.0.0/24".parse().unwrap());
        assert_eq!(networks.pick(&node("a", "2")).unwrap().to_string(), "10.244.1.0/24");
        assert_eq!(networks.pick(&node("b", "1")).unwrap().to_string(), "10.244.0.0/24");
        networks.release(&node("a", "1"));
        assert_eq!(networks.pick(&node("a", "3")).unwrap().to_string(), "10.244.0.0/24");
    }
}
