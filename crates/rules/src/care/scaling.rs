//! Whether a shoot has as many nodes as its machines are wanted [ST-58].

use std::collections::BTreeMap;

use gardener_apis::machine::v1alpha1::{Machine, MachineDeployment};
use k8s_openapi::api::core::v1::Node;

use super::Finding;
use super::nodes::{Nodes, condition, is_preserved};

/// How many nodes there are, and how many there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Nodes that the machine-controller-manager looks after.
    registered: usize,
    /// Those that may take pods.
    ready: usize,
    /// Those that are kept though they do not work.
    preserved: usize,
    /// Machines that are wanted.
    desired: usize,
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

fn is_ready(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Counts nodes and the machines that are wanted.
pub fn count(nodes: &Nodes<'_>, deployments: &[MachineDeployment]) -> Count {
    let wanted = deployments
        .iter()
        .filter(|own| own.metadata.deletion_timestamp.is_none())
        .filter_map(|own| usize::try_from(own.spec.replicas?).ok());
    let works = |node: &&Node| !is_preserved(node) && !is_cordoned(node) && is_ready(node);
    Count {
        registered: nodes.managed().count(),
        ready: nodes.managed().filter(works).count(),
        preserved: nodes.managed().filter(|node| is_preserved(node)).count(),
        desired: wanted.sum(),
    }
}

impl Count {
    /// Whether there are as many as wanted: then nobody need look at machines.
    pub fn is_as_wanted(self) -> bool {
        self.registered == self.desired && self.ready + self.preserved == self.desired
    }

    /// Whether machines come and go as they should where there are not as many nodes as wanted.
    ///
    /// # Errors
    /// What is wrong, or what is waited for.
    pub fn check(
        self,
        nodes: &Nodes<'_>,
        deployments: &[MachineDeployment],
        machines: &[Machine],
    ) -> Result<(), Finding> {
        if self.is_as_wanted() {
            return Ok(());
        }
        let up = |reason: &str| self.up(machines).map_err(|why| Finding::new(reason, why));
        if rolls_out(deployments) {
            up("NodesRollOutScalingUp")?;
        }
        if self.registered < self.desired {
            up("NodesScalingUp")?;
        }
        if self.ready + self.preserved < self.desired {
            up("NodesRollOutScalingUp")?;
        }
        if self.registered > self.desired {
            let down = self.down(nodes, machines);
            down.map_err(|why| Finding::new("NodesScalingDown", why))?;
        }
        Ok(())
    }

    fn up(self, machines: &[Machine]) -> Result<(), String> {
        let Self { ready, desired, .. } = self;
        if ready >= desired {
            return Ok(());
        }
        if machines.len() < desired {
            return Err(format!(
                "not enough machine objects created yet ({}/{desired})",
                machines.len()
            ));
        }
        let (mut pending, mut erroneous) = (0, 0);
        for machine in machines.iter().filter(|own| !is_kept(own)) {
            let phase = machine
                .status
                .current_status
                .as_ref()
                .and_then(|own| own.phase.as_deref());
            match phase.unwrap_or_default() {
                "Running" | "Available" => {}
                "Pending" | "" => pending += 1,
                _ => erroneous += 1,
            }
        }
        if erroneous > 0 {
            return Err(format!("{} erroneous", machines_are(erroneous)));
        }
        if pending == 0 {
            return Err(format!(
                "not enough ready worker nodes registered in the cluster ({ready}/{desired})"
            ));
        }
        Err(format!(
            "{} provisioning and should join the cluster soon",
            machines_are(pending)
        ))
    }

    fn down(self, nodes: &Nodes<'_>, machines: &[Machine]) -> Result<(), String> {
        let by_node: BTreeMap<&str, &Machine> = machines.iter().filter_map(|own| Some((node_of(own)?, own))).collect();
        let mut draining = 0;
        for node in nodes.managed().filter(|node| is_cordoned(node)) {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let Some(machine) = by_node.get(name) else {
                return Err(format!("machine object for cordoned node {name:?} not found"));
            };
            match (is_kept(machine), machine.metadata.deletion_timestamp.is_some()) {
                (true, _) => {}
                (false, true) => draining += 1,
                (false, false) => {
                    return Err(format!(
                        "cordoned non-preserved node {name:?} found but corresponding machine object does not have a deletion timestamp"
                    ));
                }
            }
        }
        let Self {
            registered, desired, ..
        } = self;
        if registered - draining > desired {
            return Err(format!(
                "too many worker nodes are registered. Exceeding maximum desired machine count ({registered}/{desired})"
            ));
        }
        if draining == 0 {
            return Ok(());
        }
        Err(format!(
            "{} waiting to be completely drained from pods. If this persists, check your pod disruption budgets and pending finalizers. Please note, that nodes that fail to be drained will be deleted automatically",
            machines_are(draining)
        ))
    }
}

/// Whether machines are replaced. Failed ones end the look: what they fail at is told by themselves.
fn rolls_out(deployments: &[MachineDeployment]) -> bool {
    let sound = deployments
        .iter()
        .take_while(|own| own.status.failed_machines.is_empty());
    let mut conditions = sound.flat_map(|own| &own.status.conditions);
    conditions.any(|own| {
        own.r#type == "Progressing" && own.status == "True" && own.reason.as_deref() != Some("NewMachineSetAvailable")
    })
}

/// Whether a machine is kept for some time though it failed.
fn is_kept(machine: &Machine) -> bool {
    let status = machine.status.current_status.as_ref();
    status.is_some_and(|own| own.preserve_expiry_time.is_some())
}

fn node_of(machine: &Machine) -> Option<&str> {
    let name = machine.metadata.labels.as_ref()?.get("node")?;
    (!name.is_empty()).then_some(name)
}

fn machines_are(count: usize) -> String {
    match count {
        1 => "1 machine is".to_owned(),
        more => format!("{more} machines are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Nodes by name and what they are: `ready`, `cordoned`, `unready`, `preserved`.
    fn nodes(of: &[(&str, &str)]) -> Vec<Node> {
        let node = |(name, state): &(&str, &str)| {
            let ready = if matches!(*state, "ready" | "cordoned") {
                "True"
            } else {
                "False"
            };
            let kept = if *state == "preserved" { "True" } else { "False" };
            serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": "p"}},
                "spec": {"unschedulable": matches!(*state, "cordoned" | "preserved")},
                "status": {"conditions": [{"type": "Ready", "status": ready}, {"type": "NodePreserved", "status": kept}]},
            }))
            .unwrap()
        };
        of.iter().map(node).collect()
    }

    fn deployment(replicas: i32, status: Value) -> MachineDeployment {
        serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {"replicas": replicas}, "status": status}))
            .unwrap()
    }

    /// Machines by node and phase; `going` and `kept` are no phases.
    fn machines(of: &[(&str, &str)]) -> Vec<Machine> {
        let machine = |(node, state): &(&str, &str)| {
            let phase = if matches!(*state, "going" | "kept") {
                "Terminating"
            } else {
                state
            };
            let mut object = json!({
                "metadata": {"name": "m", "labels": {"node": node}},
                "status": {"currentStatus": {"phase": phase}},
            });
            match *state {
                "going" => object["metadata"]["deletionTimestamp"] = json!("2026-03-01T10:00:00Z"),
                "kept" => object["status"]["currentStatus"]["preserveExpiryTime"] = json!("2026-03-01T10:00:00Z"),
                _ => {}
            }
            serde_json::from_value(object).unwrap()
        };
        of.iter().map(machine).collect()
    }

    #[test]
    fn st_58_worked_cases() {
        let rolling =
            |reason: &str| json!({"conditions": [{"type": "Progressing", "status": "True", "reason": reason}]});
        let failed = || json!({"failedMachines": [{"name": "m"}]});
        let still = || json!({});
        let (one, two) = (&[("a", "ready")][..], &[("a", "ready"), ("b", "ready")][..]);
        type Pairs = &'static [(&'static str, &'static str)];
        type Case<'a> = (
            &'a str,
            Vec<MachineDeployment>,
            &'a [(&'a str, &'a str)],
            Pairs,
            Option<(&'a str, &'a str)>,
        );
        let table: Vec<Case<'_>> = vec![
            ("as wanted", vec![deployment(1, still())], one, &[], None),
            (
                "W-N6",
                vec![deployment(2, still())],
                one,
                &[("a", "Running")],
                Some(("NodesScalingUp", "not enough machine objects created yet (1/2)")),
            ),
            (
                "W-N7",
                vec![deployment(2, still())],
                one,
                &[("a", "Running"), ("", "Pending")],
                Some((
                    "NodesScalingUp",
                    "1 machine is provisioning and should join the cluster soon",
                )),
            ),
            (
                "W-N8",
                vec![deployment(2, still())],
                one,
                &[("a", "Running"), ("", "Failed")],
                Some(("NodesScalingUp", "1 machine is erroneous")),
            ),
            (
                "W-N9",
                vec![deployment(1, still())],
                two,
                &[],
                Some((
                    "NodesScalingDown",
                    "too many worker nodes are registered. Exceeding maximum desired machine count (2/1)",
                )),
            ),
            (
                "W-N10",
                vec![deployment(1, still())],
                &[("a", "ready"), ("b", "cordoned")],
                &[("a", "Running"), ("b", "going")],
                Some((
                    "NodesScalingDown",
                    "1 machine is waiting to be completely drained from pods. If this persists, check your pod disruption budgets and pending finalizers. Please note, that nodes that fail to be drained will be deleted automatically",
                )),
            ),
            (
                "several",
                vec![deployment(3, still())],
                one,
                &[("a", "Running"), ("", "Pending"), ("", "")],
                Some((
                    "NodesScalingUp",
                    "2 machines are provisioning and should join the cluster soon",
                )),
            ),
            (
                "nodes that do not join",
                vec![deployment(2, still())],
                one,
                &[("a", "Running"), ("b", "Running")],
                Some((
                    "NodesScalingUp",
                    "not enough ready worker nodes registered in the cluster (1/2)",
                )),
            ),
            (
                "a node that is not ready",
                vec![deployment(2, still())],
                &[("a", "ready"), ("b", "unready")],
                &[("a", "Running"), ("b", "Unknown")],
                Some(("NodesRollOutScalingUp", "1 machine is erroneous")),
            ),
            (
                "a rollout comes first",
                vec![deployment(2, rolling("ReplicaSetUpdated"))],
                one,
                &[("a", "Running")],
                Some(("NodesRollOutScalingUp", "not enough machine objects created yet (1/2)")),
            ),
            (
                "a rollout that is over",
                vec![deployment(2, rolling("NewMachineSetAvailable"))],
                one,
                &[("a", "Running")],
                Some(("NodesScalingUp", "not enough machine objects created yet (1/2)")),
            ),
            (
                "failed machines end the look for rollouts",
                vec![deployment(0, failed()), deployment(2, rolling("ReplicaSetUpdated"))],
                one,
                &[("a", "Running")],
                Some(("NodesScalingUp", "not enough machine objects created yet (1/2)")),
            ),
            (
                "a rollout with enough nodes",
                vec![deployment(1, rolling("ReplicaSetUpdated"))],
                &[("a", "ready"), ("b", "cordoned")],
                &[("a", "Running")],
                Some(("NodesScalingDown", "machine object for cordoned node \"b\" not found")),
            ),
            (
                "cordoned by somebody",
                vec![deployment(1, still())],
                &[("a", "ready"), ("b", "cordoned")],
                &[("a", "Running"), ("b", "Running")],
                Some((
                    "NodesScalingDown",
                    "cordoned non-preserved node \"b\" found but corresponding machine object does not have a deletion timestamp",
                )),
            ),
            (
                "preserved instead of one that works",
                vec![deployment(2, still())],
                &[("a", "ready"), ("b", "preserved")],
                &[],
                None,
            ),
            (
                "kept ones count",
                vec![deployment(1, still())],
                &[("a", "ready"), ("b", "preserved")],
                &[("a", "Running"), ("b", "kept")],
                Some((
                    "NodesScalingDown",
                    "too many worker nodes are registered. Exceeding maximum desired machine count (2/1)",
                )),
            ),
        ];
        for (id, deployments, of, with, expected) in table {
            let (nodes, machines) = (nodes(of), machines(with));
            let nodes = Nodes::new(&nodes);
            let found = count(&nodes, &deployments).check(&nodes, &deployments, &machines);
            let expected = expected.map(|(reason, message)| Finding::new(reason, message));
            assert_eq!(found.err(), expected, "{id}");
        }
    }

    #[test]
    fn st_58_what_goes_is_not_wanted() {
        let mut going = deployment(3, json!({}));
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T10:00:00Z".parse().unwrap(),
        ));
        let nodes = nodes(&[("a", "ready")]);
        let counted = count(&Nodes::new(&nodes), &[going, deployment(1, json!({}))]);
        assert!(counted.is_as_wanted(), "{counted:?}");
    }
}
