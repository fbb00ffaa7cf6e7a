//! Whether what fails in a shoot fails for preserved nodes alone [ST-60]. Which nodes those are is told by [`super::nodes::is_preserved`].

use serde_json::Value;

use crate::health;

/// A workload of a ManagedResource, as it is in the shoot.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// `DaemonSet`, `Deployment` or `StatefulSet`; others are healthy here.
    pub kind: String,
    /// The object.
    pub object: Value,
    /// How many of its pods on preserved nodes are not ready; of a DaemonSet.
    pub unready_on_preserved: i64,
}

/// The kinds whose objects are looked at.
pub const KINDS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// Whether a failing ManagedResource with these workloads fails for preserved nodes alone.
pub fn explain(workloads: &[Workload]) -> bool {
    let mut explained = 0;
    for own in workloads {
        if health::check("apps", &own.kind, &own.object).is_ok() {
            continue;
        }
        let is_explained = own.kind == "DaemonSet"
            && own.unready_on_preserved > 0
            && health::is_available_without(&own.object, own.unready_on_preserved);
        if !is_explained {
            return false;
        }
        explained += 1;
    }
    explained > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn st_60_daemon_sets_on_preserved_nodes() {
        let set = |unavailable: i64, updated: i64, unready: i64| Workload {
            kind: "DaemonSet".to_owned(),
            object: json!({
                "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}},
                "status": {
                    "desiredNumberScheduled": 4, "currentNumberScheduled": 4, "updatedNumberScheduled": updated,
                    "numberUnavailable": unavailable,
                },
            }),
            unready_on_preserved: unready,
        };
        let replicas = |ready: i64| Workload {
            kind: "StatefulSet".to_owned(),
            object: json!({"spec": {"replicas": 1}, "status": {"readyReplicas": ready}}),
            unready_on_preserved: 0,
        };
        for (workloads, expected) in [
            (vec![], false),
            (vec![set(0, 4, 0), replicas(1)], false),
            (vec![set(1, 4, 1), replicas(1)], true),
            (vec![set(1, 4, 1), replicas(0)], false),
            (vec![set(2, 4, 1)], false),
            // one of them may be unavailable while it rolls out
            (vec![set(2, 3, 1)], true),
            (vec![set(1, 4, 1), set(1, 4, 0)], false),
        ] {
            assert_eq!(explain(&workloads), expected, "{workloads:?}");
        }
    }
}
