//! Which pods of a shoot are in the way: they will not run again, and nobody else takes them away soon [ST-42].

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How a pod is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// As anybody deletes a pod.
    Asked,
    /// At once: it should be gone for long.
    Forced,
}

/// How long after its time a pod that terminates is stuck.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Whether a pod is to be taken away, and how.
pub fn removal(pod: &Pod, now: Timestamp) -> Option<Removal> {
    if let Some(ends) = &pod.metadata.deletion_timestamp {
        // it goes already
        return (now.duration_since(ends.0) > STUCK_AFTER).then_some(Removal::Forced);
    }
    let status = pod.status.as_ref()?;
    let reason = status.reason.as_deref().unwrap_or_default();
    let is_stale = reason.starts_with("OutOf")
        || ["Evicted", "NodeAffinity", "NodeLost", "Preempting"]
            .iter()
            .any(|word| reason.contains(word));
    let mut conditions = status.conditions.iter().flatten();
    let is_disrupted = conditions.any(|own| own.type_ == "DisruptionTarget" && own.status == "True");
    let has_ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let is_replaced = owners
        .any(|owner| owner.controller == Some(true) && owner.kind == "ReplicaSet" && owner.api_version == "apps/v1");
    (is_stale || is_disrupted || has_ended && is_replaced).then_some(Removal::Asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn st_42_what_is_collected() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let owned =
            |kind: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true}]);
        let pod = |metadata: Value, status: Value| json!({"metadata": metadata, "status": status});
        let ends = |text: &str| json!({"deletionTimestamp": format!("2026-03-01T{text}Z")});
        let reason = |reason: &str| pod(json!({}), json!({"phase": "Failed", "reason": reason}));
        let disrupted =
            |status: &str| json!({"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": status}]});
        let table = [
            (pod(json!({}), json!({"phase": "Running"})), None),
            (pod(ends("09:54:59"), json!({})), Some(Removal::Forced)),
            (pod(ends("09:55:00"), json!({})), None),
            (reason("Evicted"), Some(Removal::Asked)),
            (reason("PodEvictedByTaint"), Some(Removal::Asked)),
            (reason("NodeAffinity"), Some(Removal::Asked)),
            (reason("NodeLost"), Some(Removal::Asked)),
            (reason("Preempting"), Some(Removal::Asked)),
            (reason("OutOfcpu"), Some(Removal::Asked)),
            (reason("RunsOutOf"), None),
            (pod(json!({}), disrupted("True")), Some(Removal::Asked)),
            (pod(json!({}), disrupted("False")), None),
            (
                pod(
                    json!({"ownerReferences": owned("ReplicaSet")}),
                    json!({"phase": "Succeeded"}),
                ),
                Some(Removal::Asked),
            ),
            (
                pod(
                    json!({"ownerReferences": owned("ReplicaSet")}),
                    json!({"phase": "Running"}),
                ),
                None,
            ),
            (
                pod(json!({"ownerReferences": owned("Job")}), json!({"phase": "Failed"})),
                None,
            ),
        ];
        for (pod, expected) in table {
            let own: Pod = serde_json::from_value(pod.clone()).unwrap();
            assert_eq!(removal(&own, now), expected, "{pod}");
        }
    }
}
