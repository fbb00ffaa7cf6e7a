//! Addresses of the pods of one node.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

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
}
