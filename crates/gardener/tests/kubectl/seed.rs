//! What people do in an embedded seed.

use crate::harness::{Landscape, PATIENCE};
use crate::workload;

/// Everything on a seed of its own.
pub fn all(landscape: &Landscape) {
    let seed = landscape.cluster(&["seed", "local"]);
    seed.ok(&format!("wait node --all --for=condition=Ready {PATIENCE}"));
    let nodes = seed.ok("get nodes -o wide --no-headers");
    assert!(
        nodes
            .lines()
            .all(|line| line.split_whitespace().nth(1) == Some("Ready")),
        "{nodes}"
    );
    let namespaces = seed.ok("get ns -o name");
    for name in ["garden", "istio-system", "kube-system"] {
        assert!(
            namespaces.lines().any(|line| line == format!("namespace/{name}")),
            "{namespaces}"
        );
    }
    workload::all(&seed);
    seed.ok(&format!("wait pods -n garden --all --for=condition=Ready {PATIENCE}"));
}
