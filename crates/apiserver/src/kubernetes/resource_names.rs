//! Names of resources that Kubernetes knows: what pods take, quotas limit and nodes have.

use crate::meta;

/// Resources of which there are parts.
const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Things that are counted, of which there is no half.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Names that no quota uses as they are.
const OTHERS: [&str; 3] = ["storage", "count/pods", "deviceclass.resource.k8s.io/devices"];

/// Whether a resource of quotas counts things, of which there is no half.
fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name)
}

/// Kubernetes' own resources.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that others have added, and that quotas can limit.
pub(super) fn is_extended(name: &str) -> bool {
    let of_quotas = || meta::qualified_name(&format!("requests.{name}"));
    !is_native(name) && !name.starts_with("requests.") && of_quotas().is_empty()
}

/// Whether amounts of a resource are whole.
pub(super) fn is_whole(name: &str) -> bool {
    is_counted(name) || is_extended(name)
}

/// Whether a resource is memory in large pages.
pub(super) fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether a quota limits a resource by its plain name.
pub(super) fn is_of_quotas(name: &str) -> bool {
    MEASURED.contains(&name) || is_counted(name) || is_huge(name) || name.strip_prefix("requests.").is_some_and(is_huge)
}

/// Whether a name without a domain is one of Kubernetes' own.
pub(super) fn is_standard(name: &str) -> bool {
    MEASURED.contains(&name) || is_counted(name) || OTHERS.contains(&name) || is_huge(name)
}
