//! When a machine is healthy and when it has failed [MCH-85]–[MCH-87].

use gardener_apis::machine::v1alpha1::Machine;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::deletion::{is_terminating, phase_of, preserved_until};
use super::phase;

/// Defaults where machines say nothing [MCH-84]; those that the seed documents name.
pub mod default {
    /// Seconds until a node must have joined.
    pub const CREATION_TIMEOUT: i64 = 20 * 60;
    /// Seconds until an unhealthy node makes its machine fail.
    pub const HEALTH_TIMEOUT: i64 = 10 * 60;
    /// Seconds until a drain is forced.
    pub const DRAIN_TIMEOUT: i64 = 2 * 60 * 60;
    /// How often an eviction is tried.
    pub const MAX_EVICT_RETRIES: i32 = 10;
    /// Conditions that make a node unhealthy when they hold.
    pub const NODE_CONDITIONS: &str = "KernelDeadlock,ReadonlyFilesystem,DiskPressure";
}

/// Whether a node with these conditions is healthy. `bad`: comma separated conditions that must be false where there are any.
pub fn is_healthy(conditions: &[NodeCondition], bad: &str) -> bool {
    let mut ready = false;
    for condition in conditions {
        if condition.type_ == "Ready" {
            ready = condition.status == "True";
        } else if bad.split(',').any(|one| one.trim() == condition.type_) && condition.status != "False" {
            return false;
        }
    }
    ready
}

/// Whether a node waits for its critical components.
pub fn waits_for_critical_components(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| {
        taint.key == gardener_apis::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY && taint.effect == "NoSchedule"
    })
}

/// What becomes of the phase of a machine with a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    Stay,
    /// The node has joined for the first time.
    Joined,
    /// The node is healthy again.
    Rejoined,
    /// The node is not healthy any more.
    Unhealthy,
    /// The node is gone.
    Missing,
}

/// What the node makes of a machine's phase [MCH-85].
pub fn transition(current: &str, knew_conditions: bool, node: Option<&Node>, bad: &str) -> Transition {
    if current.starts_with("InPlaceUpdating") || current == "InPlaceUpdateFailed" {
        return Transition::Stay;
    }
    let Some(node) = node else {
        return if current == phase::RUNNING && knew_conditions {
            Transition::Missing
        } else {
            Transition::Stay
        };
    };
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    match (current, is_healthy(conditions.unwrap_or_default(), bad)) {
        (phase::RUNNING, true) => Transition::Stay,
        (phase::PENDING, true) if waits_for_critical_components(node) => Transition::Stay,
        (phase::PENDING | "", true) => Transition::Joined,
        (_, true) => Transition::Rejoined,
        (phase::RUNNING, false) => Transition::Unhealthy,
        (_, false) => Transition::Stay,
    }
}

/// What time makes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// There is none.
    None,
    /// It is this far.
    In(SignedDuration),
    /// The node did not join in time.
    CreationMissed,
    /// The node was not healthy in time.
    HealthMissed,
}

/// Seconds of a machine's own timeout, or the default.
pub fn seconds(own: Option<gardener_apis::Duration>, default: i64) -> i64 {
    own.map_or(default, |own| i64::try_from(own.to_std().as_secs()).unwrap_or(i64::MAX))
}

/// How far the machine's deadline is [MCH-86].
pub fn deadline(machine: &Machine, now: Timestamp) -> Deadline {
    let status = machine.status.current_status.as_ref();
    let (since, timeout, missed) = match phase_of(machine) {
        phase::PENDING => (
            machine.metadata.creation_timestamp.as_ref(),
            seconds(machine.spec.creation_timeout, default::CREATION_TIMEOUT),
            Deadline::CreationMissed,
        ),
        phase::UNKNOWN if machine.spec.disable_health_timeout != Some(true) => (
            status.and_then(|status| status.last_update_time.as_ref()),
            seconds(machine.spec.health_timeout, default::HEALTH_TIMEOUT),
            Deadline::HealthMissed,
        ),
        _ => return Deadline::None,
    };
    let Some(since) = since else {
        return Deadline::None;
    };
    let left = SignedDuration::from_secs(timeout) - now.duration_since(since.0);
    if left.is_positive() { Deadline::In(left) } else { missed }
}

/// Whether another machine of the deployment is being replaced, so that this one may not fail too [MCH-87].
pub fn is_replacement_under_way<'a>(others: impl IntoIterator<Item = &'a Machine>, now: Timestamp) -> bool {
    others.into_iter().any(|machine| {
        is_terminating(machine)
            || (!matches!(phase_of(machine), phase::RUNNING | phase::UNKNOWN)
                && preserved_until(machine, now).is_none())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(conditions: &[(&str, &str)], critical: bool) -> Node {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let taints = if critical {
            json!([{"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}])
        } else {
            json!([])
        };
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "spec": {"taints": taints}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn machine(phase: &str, created: &str, since: &str) -> Machine {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "creationTimestamp": created}, "spec": {},
            "status": {"currentStatus": {"phase": phase, "lastUpdateTime": since}},
        }))
        .unwrap()
    }

    #[test]
    fn mch_85_phases_follow_the_node() {
        let ready = node(&[("Ready", "True")], false);
        let full = node(&[("Ready", "True"), ("DiskPressure", "Unknown")], false);
        let critical = node(&[("Ready", "True")], true);
        let empty = node(&[], false);
        let table = [
            ("Pending", Some(&ready), Transition::Joined),
            // MCH-C17
            ("Pending", Some(&critical), Transition::Stay),
            ("Running", Some(&critical), Transition::Stay),
            ("Unknown", Some(&critical), Transition::Rejoined),
            ("Unknown", Some(&ready), Transition::Rejoined),
            ("Running", Some(&full), Transition::Unhealthy),
            ("Running", Some(&empty), Transition::Unhealthy),
            ("Pending", Some(&empty), Transition::Stay),
            ("Running", None, Transition::Missing),
            ("Unknown", None, Transition::Stay),
        ];
        for (phase, node, expected) in table {
            assert_eq!(
                transition(phase, true, node, default::NODE_CONDITIONS),
                expected,
                "{phase}"
            );
        }
        assert_eq!(transition("Running", false, None, ""), Transition::Stay);
    }

    #[test]
    fn mch_86_deadlines() {
        let now = "2026-01-01T10:11:00Z".parse().unwrap();
        let at = |phase: &str| deadline(&machine(phase, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"), now);
        assert_eq!(at("Pending"), Deadline::In(SignedDuration::from_mins(9)));
        assert_eq!(at("Unknown"), Deadline::HealthMissed);
        assert_eq!(at("Running"), Deadline::None);
        let old = machine("Pending", "2026-01-01T09:50:00Z", "2026-01-01T10:00:00Z");
        assert_eq!(deadline(&old, now), Deadline::CreationMissed);
        let mut kept = machine("Unknown", "2026-01-01T09:50:00Z", "2026-01-01T09:50:00Z");
        kept.spec.disable_health_timeout = Some(true);
        assert_eq!(deadline(&kept, now), Deadline::None);
    }

    #[test]
    fn mch_c16_one_replacement_at_a_time() {
        let now = "2026-01-01T10:11:00Z".parse().unwrap();
        let at = |phase: &str| machine(phase, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z");
        assert!(!is_replacement_under_way(&[at("Running"), at("Unknown")], now));
        assert!(is_replacement_under_way(&[at("Running"), at("Terminating")], now));
        assert!(is_replacement_under_way(&[at("Pending")], now));
    }
}
