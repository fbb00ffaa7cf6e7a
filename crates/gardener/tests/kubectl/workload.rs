//! What people do in any Kubernetes cluster with nodes: run something, scale it, drain a node.

use crate::harness::{Kubectl, PATIENCE};

/// A deployment's life. The cluster must have a node that is ready.
pub fn all(cluster: &Kubectl) {
    cluster.ok("create deployment web --image=nginx --replicas=3");
    rolled_out(cluster, 3);
    cluster.ok("scale deployment web --replicas=5");
    rolled_out(cluster, 5);
    let victim = pods(cluster).remove(0);
    cluster.ok(&format!("delete {victim}"));
    rolled_out(cluster, 5);
    assert!(!pods(cluster).contains(&victim));
    let node = cluster.json("get pods -l app=web")["items"][0]["spec"]["nodeName"]
        .as_str()
        .expect("a node")
        .to_owned();
    cluster.ok(&format!("cordon {node}"));
    let row = cluster.ok(&format!("get node {node} --no-headers"));
    assert_eq!(row.split_whitespace().nth(1), Some("Ready,SchedulingDisabled"));
    // control planes on the only node of a seed are guarded by disruption budgets: only ours goes
    let before = on_node(cluster, &node);
    assert!(!before.is_empty());
    cluster.ok(&format!(
        "drain {node} --ignore-daemonsets --pod-selector=app=web {PATIENCE}"
    ));
    let after = on_node(cluster, &node);
    assert!(after.is_empty(), "a drained node keeps {after:?}");
    cluster.ok(&format!("uncordon {node}"));
    rolled_out(cluster, 5);
    cluster.ok(&format!("delete deployment web {PATIENCE}"));
    cluster.ok(&format!("wait pods -l app=web --for=delete {PATIENCE}"));
}

fn rolled_out(cluster: &Kubectl, replicas: u64) {
    cluster.ok(&format!("rollout status deployment web {PATIENCE}"));
    cluster.ok(&format!(
        "wait deployment web --for=jsonpath={{.status.readyReplicas}}={replicas} {PATIENCE}"
    ));
    let count = usize::try_from(replicas).expect("a small number");
    cluster.until("get pods -l app=web -o name", |answer| {
        answer.out.lines().count() == count
    });
}

fn pods(cluster: &Kubectl) -> Vec<String> {
    cluster
        .ok("get pods -l app=web -o name")
        .lines()
        .map(str::to_owned)
        .collect()
}

fn on_node(cluster: &Kubectl, node: &str) -> Vec<String> {
    let line = format!("get pods -l app=web -o name --field-selector=spec.nodeName={node}");
    cluster.ok(&line).lines().map(str::to_owned).collect()
}
