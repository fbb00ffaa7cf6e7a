//! Whether the nodes of a shoot are as its pools want them [ST-57], [ST-60], [ST-61]. Whether there are as many as wanted is judged in [`super::scaling`].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apis::core::v1beta1::{Shoot, Worker};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::worker_pool;

const POOL: &str = "worker.gardener.cloud/pool";
/// On a node: the Secret with the config that it follows.
const SECRET_NAME: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
/// On that Secret: the checksum of the config.
const DESIRED_CHECKSUM: &str = "checksum/data-script";
/// On a node: the checksum of the config that was applied last.
const APPLIED_CHECKSUM: &str = "checksum/cloud-config-data";
/// On nodes that are to be replaced.
const REPLACED: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";
/// Begins the names of the leases of node agents.
const AGENT_LEASE: &str = "gardener-node-agent-";
/// From how many expired leases in a hundred on the dependency-watchdog may soon think that the way to the nodes is broken.
const MANY_EXPIRED: usize = 20;

const CONFIGURATION_PROBLEM: &str = "ERR_CONFIGURATION_PROBLEM";

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|own| own.type_ == kind)
}

/// Whether a node is kept although it does not do its work: its machine failed, and somebody wants to look at it [ST-60].
pub fn is_preserved(node: &Node) -> bool {
    let status = |kind: &str| condition(node, kind).map(|own| own.status.as_str());
    status("NodePreserved") == Some("True") && matches!(status("Ready"), Some("False" | "Unknown"))
}

/// The nodes of a shoot's pools.
pub struct Nodes<'a> {
    /// In the order in which they were listed; those of no pool are left out.
    all: Vec<&'a Node>,
}

impl<'a> Nodes<'a> {
    /// Those of the nodes that belong to a pool.
    pub fn new(listed: &'a [Node]) -> Self {
        let of_pools = listed.iter().filter(|node| label(&node.metadata, POOL).is_some());
        Self {
            all: of_pools.collect(),
        }
    }

    fn of<'n>(&'n self, pool: &'n str) -> impl Iterator<Item = &'a Node> + 'n {
        let all = self.all.iter().copied();
        all.filter(move |node| label(&node.metadata, POOL) == Some(pool))
    }

    /// Those that the machine-controller-manager looks after.
    pub(super) fn managed(&self) -> impl Iterator<Item = &'a Node> + '_ {
        let all = self.all.iter().copied();
        all.filter(|node| annotation(&node.metadata, NOT_MANAGED) != Some("1"))
    }

    /// Those of them that are to do their work.
    fn working(&self) -> impl Iterator<Item = &'a Node> + '_ {
        self.managed().filter(|node| !is_preserved(node))
    }

    /// Whether the nodes of all pools are well and have the right version, and each pool has as many as it must have. What is wrong with preserved nodes
    /// alone is answered, not refused: it is told only if nothing else is wrong.
    ///
    /// # Errors
    /// What is wrong first, pool by pool.
    pub fn are_well(&self, shoot: &Shoot) -> Result<Option<Finding>, Finding> {
        let mut of_preserved = None;
        for pool in &shoot.spec.provider.workers {
            let desired = worker_pool::kubernetes_version(shoot, pool);
            for node in self.of(&pool.name) {
                let Err(mut finding) = check(node, &pool.name, desired) else {
                    continue;
                };
                if !is_preserved(node) {
                    return Err(finding);
                }
                finding.message.push_str(" (node and backing machine preserved by MCM)");
                of_preserved.get_or_insert(finding);
            }
            let (have, minimum) = (self.of(&pool.name).count(), pool.minimum);
            if i64::try_from(have).unwrap_or(i64::MAX) < i64::from(minimum) {
                let text = format!(
                    "Not enough worker nodes registered in worker pool {:?} to meet minimum desired machine count. ({have}/{minimum}).",
                    pool.name
                );
                return Err(Finding::new("MissingNodes", text));
            }
        }
        Ok(of_preserved)
    }

    /// Whether all nodes have applied the config of their pool. `secrets` are the Secrets with those configs.
    ///
    /// # Errors
    /// All that is outdated.
    pub fn have_configs(&self, pools: &[Worker], secrets: &[ObjectMeta]) -> Result<(), Finding> {
        let by_pool: BTreeMap<&str, &ObjectMeta> = secrets
            .iter()
            .filter_map(|secret| Some((label(secret, POOL)?, secret)))
            .collect();
        let mut outdated = Vec::new();
        for pool in pools {
            let Some(secret) = by_pool.get(pool.name.as_str()) else {
                outdated.push(format!(
                    "missing operating system config secret metadata for worker pool {:?}",
                    pool.name
                ));
                continue;
            };
            let desired = annotation(secret, DESIRED_CHECKSUM).unwrap_or_default();
            let applied = self.of(&pool.name).map(|node| has_config(node, name(secret), desired));
            outdated.extend(applied.filter_map(Result::err));
        }
        match outdated.is_empty() {
            true => Ok(()),
            false => Err(Finding::new("OperatingSystemConfigOutdated", listed(&outdated))),
        }
    }

    /// Whether the agents of all nodes show that they live. `leases` are those of kube-system.
    ///
    /// # Errors
    /// The first that does not.
    pub fn have_agents(&self, leases: &[Lease], now: Timestamp) -> Result<(), Finding> {
        let unhealthy = |text: String| Err(Finding::new("NodeAgentUnhealthy", text));
        let by_node: BTreeMap<&str, &Lease> = leases
            .iter()
            .filter_map(|lease| Some((name(&lease.metadata).strip_prefix(AGENT_LEASE)?, lease)))
            .collect();
        for node in self.working().map(|node| name(&node.metadata)) {
            match by_node.get(node) {
                None => return unhealthy(format!("gardener-node-agent is not running on node {node:?}")),
                Some(lease) if is_expired(lease, now) => {
                    return unhealthy(format!("gardener-node-agent stopped running on node {node:?}"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Whether the units of all nodes run, as far as nodes tell it.
    ///
    /// # Errors
    /// All nodes on which they do not.
    pub fn have_units(&self) -> Result<(), Finding> {
        let unready = self.working().filter_map(|node| {
            let units = condition(node, "SystemdUnitsReady").filter(|own| own.status != "True")?;
            let message = units.message.as_deref().unwrap_or_default();
            Some(format!("node {:?}: {message}", name(&node.metadata)))
        });
        let unready: Vec<String> = unready.collect();
        if unready.is_empty() {
            return Ok(());
        }
        let text = format!("systemd units are not healthy on {}", unready.join("; "));
        Err(Finding::new("SystemdUnitsNotReady", text))
    }

    /// Whether so few kubelets are silent that the dependency-watchdog will think of nothing. `leases` are those of kube-node-lease.
    ///
    /// # Errors
    /// There are too many.
    pub fn have_leases(&self, leases: &[Lease], now: Timestamp) -> Result<(), Finding> {
        let nodes: BTreeSet<&str> = self
            .all
            .iter()
            .filter(|node| !is_preserved(node))
            .map(|node| name(&node.metadata))
            .collect();
        if leases.is_empty() || nodes.is_empty() {
            return Ok(());
        }
        let of_nodes = leases.iter().filter(|lease| nodes.contains(name(&lease.metadata)));
        let expired = of_nodes.filter(|lease| is_expired(lease, now)).count();
        let percent = 100 * expired / leases.len();
        if percent < MANY_EXPIRED {
            return Ok(());
        }
        let text = format!(
            "{percent}% of all Leases in kube-node-lease namespace are expired - dependency-watchdog-prober might start scaling down controllers"
        );
        Err(Finding::new("TooManyExpiredNodeLeases", text))
    }
}

fn is_expired(lease: &Lease, now: Timestamp) -> bool {
    let spec = lease.spec.as_ref();
    let Some(renewed) = spec.and_then(|spec| spec.renew_time.as_ref()) else {
        return true;
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    now.duration_since(renewed.0) > SignedDuration::from_secs(seconds.into())
}

/// Several errors in one text, as upstream writes them.
fn listed(errors: &[String]) -> String {
    let points: Vec<String> = errors.iter().map(|error| format!("\n\t* {error}")).collect();
    let count = match errors.len() {
        1 => "1 error".to_owned(),
        more => format!("{more} errors"),
    };
    format!("{count} occurred:{}\n\n", points.concat())
}

/// Whether a node has applied the config with this checksum, in the Secret of this name. One that will be replaced, or is preserved, need not [GNA-14].
///
/// # Errors
/// What it has instead.
pub fn has_config(node: &Node, secret: &str, desired: &str) -> Result<(), String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut taints = taints.filter(|taint| taint.key == REPLACED && taint.effect == "PreferNoSchedule");
    let follows_another = label(&node.metadata, SECRET_NAME).is_some_and(|own| own != secret);
    if taints.next().is_some() || follows_another || is_preserved(node) {
        return Ok(());
    }
    let own = name(&node.metadata);
    let about = format!("the last successfully applied operating system config on node {own:?}");
    match annotation(&node.metadata, APPLIED_CHECKSUM) {
        None => Err(format!("{about} hasn't been reported yet")),
        Some(current) if current != desired => {
            Err(format!("{about} is outdated (current: {current}, desired: {desired})"))
        }
        Some(_) => Ok(()),
    }
}

fn check(node: &Node, pool: &str, desired: &str) -> Result<(), Finding> {
    let own = name(&node.metadata);
    if let Err(why) = is_healthy(node) {
        let text = format!("Node {own:?} in worker group {pool:?} is unhealthy: {why}");
        let mut finding = Finding::new("NodeUnhealthy", text);
        if is_user_error(&why) {
            finding.codes.push(CONFIGURATION_PROBLEM.to_owned());
        }
        return Err(finding);
    }
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let kubelet = info.map(|info| info.kubelet_version.as_str()).unwrap_or_default();
    match is_version_mismatch(kubelet, desired) {
        Ok(false) => Ok(()),
        Ok(true) => {
            let text = format!(
                "The kubelet version for node {own:?} ({kubelet}) does not match the desired Kubernetes version (v{desired})"
            );
            Err(Finding::new("KubeletVersionMismatch", text))
        }
        Err(error) => {
            let text = format!("Error checking for same major minor Kubernetes version for node {own:?}: {error}");
            Err(Finding::new("VersionParseError", text))
        }
    }
}

/// Whether a node is healthy [ST-61].
///
/// # Errors
/// What is wrong.
fn is_healthy(node: &Node) -> Result<(), String> {
    for (kind, expected, required) in [
        ("Ready", "True", true),
        ("DiskPressure", "False", false),
        ("MemoryPressure", "False", false),
        ("NetworkUnavailable", "False", false),
        ("PIDPressure", "False", false),
    ] {
        match condition(node, kind) {
            None if required => return Err(format!("condition {kind:?} is missing")),
            Some(one) if one.status != expected => {
                return Err(format!(
                    "condition {kind:?} has invalid status {} (expected {expected}) due to {}: {}",
                    one.status,
                    one.reason.as_deref().unwrap_or_default(),
                    one.message.as_deref().unwrap_or_default()
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether what ails a node is its user's doing: then the condition has a code [ST-57].
fn is_user_error(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    [
        "kubelethasinsufficientmemory",
        "kubelethasdiskpressure",
        "kubelethasinsufficientpid",
    ]
    .iter()
    .any(|one| why.contains(one))
}

/// Whether a kubelet's version is not what its pool wants; a pending minor update and a newer kubelet are fine [ST-57].
fn is_version_mismatch(kubelet: &str, desired: &str) -> Result<bool, semver::Error> {
    let kubelet = semver::Version::parse(kubelet.trim_start_matches('v'))?;
    let desired = semver::Version::parse(desired.trim_start_matches('v'))?;
    let same_minor = (kubelet.major, kubelet.minor) == (desired.major, desired.minor);
    Ok(same_minor && desired > kubelet)
}

#[cfg(test)]
mod tests;
