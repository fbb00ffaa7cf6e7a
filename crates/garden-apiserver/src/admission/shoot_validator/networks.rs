//! The networks of a shoot are apart from each other and from those that the seed needs, [ADM-30], [VAL-N5].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apis::validation::overlap;
use gardener_rules::scheduling::touched;
use ipnet::IpNet;

use super::Check;

/// What both networks are called, in which of them it is told, and how.
const APART: [(&str, &str, &str, &str); 3] = [
    (
        "pods",
        "services",
        "services",
        "shoot pod network intersects with shoot service network",
    ),
    (
        "pods",
        "nodes",
        "pods",
        "shoot pod network intersects with shoot node network",
    ),
    (
        "services",
        "nodes",
        "services",
        "shoot service network intersects with shoot node network",
    ),
];

fn parsed(text: &str) -> Option<IpNet> {
    text.parse().ok()
}

impl Check<'_> {
    /// All that is wrong with them.
    pub(super) fn networks(&self) -> ErrorList {
        let (shoot, path) = (self.shoot, Path::new("spec.networking"));
        let Some(networking) = &shoot.spec.networking else {
            return ErrorList::new();
        };
        let text = |name: &str| match name {
            "pods" => networking.pods.as_deref(),
            "services" => networking.services.as_deref(),
            _ => networking.nodes.as_deref(),
        };
        let families = shoot.spec.ip_families();
        let mut errors = ErrorList::new();
        if families.contains(&"IPv4") {
            for (one, other, at, why) in APART {
                let (first, second) = (text(one).and_then(parsed), text(other).and_then(parsed));
                let meet = first
                    .zip(second)
                    .is_some_and(|(first, second)| overlap(&first, &second));
                if let Some(told) = text(at).filter(|_| meet) {
                    errors.push(Error::invalid(&path.child(at), told, why));
                }
            }
        }
        let Some(seed) = self.seed else { return errors };
        if networking.pods.is_none() && !shoot.is_workerless() && families.contains(&"IPv4") {
            errors.push(Error::required(&path.child("pods"), "pods is required"));
        }
        let needs_services = families.contains(&"IPv4") || (shoot.is_workerless() && families.contains(&"IPv6"));
        if networking.services.is_none() && needs_services {
            errors.push(Error::required(&path.child("services"), "services is required"));
        }
        let before = self.old.and_then(|old| old.spec.seed_name.as_ref());
        if families.contains(&"IPv4") && before != shoot.spec.seed_name.as_ref() {
            for (name, kind) in [("nodes", "node"), ("services", "service"), ("pods", "pod")] {
                errors.extend(
                    text(name)
                        .into_iter()
                        .flat_map(|own| meets(own, kind, seed, &path.child(name))),
                );
            }
            errors.extend(self.networks_in_use(seed));
        }
        errors
    }

    /// The networks that the shoot told in its status must suit a new seed, too.
    fn networks_in_use(&self, seed: &Seed) -> ErrorList {
        let mut errors = ErrorList::new();
        let Some(status) = &self.shoot.status.networking else {
            return errors;
        };
        let path = Path::new("status.networking");
        let kinds = [
            ("nodes", "node", &status.nodes, false),
            ("services", "service", &status.services, true),
            ("pods", "pod", &status.pods, !self.shoot.is_workerless()),
        ];
        if kinds.iter().all(|(_, _, own, _)| own.is_empty()) {
            return errors;
        }
        for (name, kind, own, needed) in kinds {
            let path = path.child(name);
            errors.extend(own.iter().flat_map(|own| meets(own, kind, seed, &path)));
            if own.is_empty() && needed {
                errors.push(Error::required(&path, format!("{kind}s is required")));
            }
        }
        errors
    }
}

/// What stands against a network on the seed.
fn meets(own: &str, kind: &str, seed: &Seed, path: &Path) -> ErrorList {
    let against = parsed(own).map(|net| touched(kind, &net, seed)).unwrap_or_default();
    let against = against.into_iter();
    against.map(|why| Error::invalid(path, own, why)).collect()
}
