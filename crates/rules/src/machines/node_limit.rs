//! How many nodes a shoot can have at most [MCH-126].

use std::collections::BTreeMap;

use ipnet::IpNet;

/// What of a shoot's networks bounds its nodes.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// The ranges of pods.
    pub pods: Vec<IpNet>,
    /// The ranges of nodes.
    pub nodes: Vec<IpNet>,
    /// The length of the prefix of a node's share of the pods' range: IPv4.
    pub node_mask_v4: Option<u8>,
    /// The same for IPv6.
    pub node_mask_v6: Option<u8>,
    /// Whether the shoot has both families: then IPv4, which is always the smaller one, bounds alone.
    pub is_dual_stack: bool,
}

/// Numbers per family, the smallest of which bounds.
#[derive(Default)]
struct PerFamily(BTreeMap<bool, i64>);

impl PerFamily {
    fn add(&mut self, network: &IpNet, count: i64) {
        let sum = self.0.entry(network.addr().is_ipv4()).or_default();
        *sum = sum.saturating_add(count);
    }

    fn smallest(self) -> Option<i64> {
        self.0.into_values().min()
    }
}

/// Two to the power of the difference of two prefixes; as many as there can be where no number holds it.
fn shares(longer: u8, shorter: u8) -> i64 {
    let bits = longer.saturating_sub(shorter);
    1_i64
        .checked_shl(u32::from(bits))
        .filter(|_| bits < 63)
        .unwrap_or(i64::MAX)
}

fn of_pods(networks: &Networks) -> Option<i64> {
    let mut counts = PerFamily::default();
    for network in &networks.pods {
        let is_v4 = network.addr().is_ipv4();
        if networks.is_dual_stack && !is_v4 {
            continue;
        }
        let mask = match is_v4 {
            true => networks.node_mask_v4,
            false => networks.node_mask_v6,
        };
        counts.add(network, shares(mask?, network.prefix_len()));
    }
    counts.smallest()
}

fn of_nodes(networks: &Networks) -> Option<i64> {
    let mut counts = PerFamily::default();
    for network in &networks.nodes {
        let all = shares(network.max_prefix_len(), network.prefix_len());
        // the first and the last address of an IPv4 network are nobody's
        let usable = if network.addr().is_ipv4() {
            all.saturating_sub(2)
        } else {
            all
        };
        counts.add(network, usable);
    }
    counts.smallest()
}

/// The most nodes of a shoot, 0 if nothing bounds them: by its networks, and by what its CloudProfile allows. A profile that came to allow less
/// than there are `machines` does not take any away.
pub fn max_nodes_total(networks: &Networks, allowed: Option<i32>, machines: usize) -> i64 {
    let by_profile = allowed.map(|allowed| i64::from(allowed).max(i64::try_from(machines).unwrap_or(i64::MAX)));
    // networks that are not known yet bound nothing
    let by_networks = match networks.pods.is_empty() {
        true => [None, None],
        false => [of_pods(networks), of_nodes(networks)],
    };
    let bounds = by_networks.into_iter().chain([by_profile]).flatten();
    bounds.filter(|bound| *bound > 0).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(pods: &[&str], nodes: &[&str]) -> Networks {
        let read = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Networks {
            pods: read(pods),
            nodes: read(nodes),
            node_mask_v4: Some(24),
            node_mask_v6: Some(80),
            is_dual_stack: pods.len() == 2 && pods[1].contains(':'),
        }
    }

    /// MCH-C24 and what stands around it.
    #[test]
    fn mch_126_the_smallest_bound_counts() {
        let cases = [
            ((&["100.64.0.0/16"][..], &["10.250.0.0/25"][..]), None, 0, 126),
            ((&["100.64.0.0/16"], &["10.250.0.0/16"]), None, 0, 256),
            ((&["100.64.0.0/16"], &[]), None, 0, 256),
            // of two ranges of a family both count, of two families only IPv4
            ((&["100.64.0.0/16", "100.65.0.0/17"], &["10.250.0.0/16"]), None, 0, 384),
            (
                (
                    &["100.64.0.0/16", "2001:db8::/48"],
                    &["10.250.0.0/16", "2001:db8:1::/64"],
                ),
                None,
                0,
                256,
            ),
            ((&["2001:db8::/64"], &["2001:db8:1::/64"]), None, 0, 65536),
            // the profile allows less, but nothing of what is there goes
            ((&["100.64.0.0/16"], &["10.250.0.0/16"]), Some(100), 0, 100),
            ((&["100.64.0.0/16"], &["10.250.0.0/16"]), Some(100), 120, 120),
            // nothing is known
            ((&[], &["10.250.0.0/25"]), None, 0, 0),
            ((&[], &[]), Some(7), 0, 7),
        ];
        for ((pods, nodes), allowed, machines, wanted) in cases {
            let found = max_nodes_total(&networks(pods, nodes), allowed, machines);
            assert_eq!(found, wanted, "{pods:?} {nodes:?} {allowed:?} {machines}");
        }
    }

    #[test]
    fn mch_126_numbers_do_not_overflow() {
        let mut large = networks(&["::/0"], &["::/0"]);
        large.node_mask_v6 = Some(128);
        assert_eq!(max_nodes_total(&large, None, 0), i64::MAX);
        large.node_mask_v6 = None;
        assert_eq!(max_nodes_total(&large, None, 0), i64::MAX);
    }
}
