//! A shoot's life: created, used, hibernated, woken up, scaled, deleted.

use std::collections::BTreeSet;

use base64::Engine;
use serde_json::{Value, json};

use crate::harness::{Kubectl, Landscape, PATIENCE};
use crate::workload;

const SHOOT: &str = include_str!("../examples/local/90-shoot.yaml");
const ADMINISTRATION: &str = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-local/shoots/local/adminkubeconfig";

/// From the manifest to nothing.
pub fn life(landscape: &Landscape) {
    let (garden, seed) = (landscape.garden(), landscape.cluster(&["seed", "local"]));
    let (garden_before, seed_before) = (objects(&garden), objects(&seed));
    garden.ok_input(&["apply", "-f", "-"], SHOOT);
    succeeded(&garden, "Create");
    for condition in [
        "APIServerAvailable",
        "ControlPlaneHealthy",
        "ObservabilityComponentsHealthy",
        "EveryNodeReady",
        "SystemComponentsHealthy",
    ] {
        garden.ok(&format!(
            "wait -n garden-local shoot/local --for=condition={condition} {PATIENCE}"
        ));
    }
    let shoot = landscape.cluster(&["shoot", "garden-local/local"]);
    shoot.ok(&format!("wait node --all --for=condition=Ready {PATIENCE}"));
    workload::all(&shoot);
    administration(landscape, &garden);
    shoot.ok("create configmap kept --from-literal=across=hibernation");
    hibernate(&garden, true);
    let answer = shoot.run(&["get", "nodes", "--request-timeout=5s"], "");
    assert!(!answer.success, "a hibernated shoot answers:\n{}", answer.out);
    hibernate(&garden, false);
    shoot.ok(&format!("wait node --all --for=condition=Ready {PATIENCE}"));
    assert_eq!(shoot.json("get configmap kept")["data"]["across"], "hibernation");
    pools(&garden, &shoot);
    delete(&garden);
    gone(&garden, &garden_before);
    gone(&seed, &seed_before);
}

/// Waits until the operation for the present generation has succeeded. Each look compares one object's two
/// generations: the scheduler's binding makes a new one at any moment after the creation.
fn succeeded(garden: &Kubectl, operation: &str) {
    let done = |shoot: &Value| {
        shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"]
            && shoot["status"]["lastOperation"]["state"] == "Succeeded"
    };
    let answer = garden.until("get -n garden-local shoot local -o json", |answer| {
        serde_json::from_str(&answer.out).is_ok_and(|shoot| done(&shoot))
    });
    let shoot: Value = serde_json::from_str(&answer.out).expect("JSON");
    let operation_done = &shoot["status"]["lastOperation"];
    assert_eq!(
        (&operation_done["type"], &operation_done["progress"]),
        (&json!(operation), &json!(100))
    );
}

fn merge(garden: &Kubectl, patch: &Value) {
    garden.ok_args(&Kubectl::shoot_patch(&patch.to_string()));
}

fn hibernate(garden: &Kubectl, enabled: bool) {
    merge(garden, &json!({"spec": {"hibernation": {"enabled": enabled}}}));
    succeeded(garden, "Reconcile");
    let shoot = garden.json("get -n garden-local shoot local");
    assert_eq!(shoot["status"]["hibernated"].as_bool().unwrap_or(false), enabled);
}

/// The subresource, asked for with kubectl alone.
fn administration(landscape: &Landscape, garden: &Kubectl) {
    let request = json!({"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "AdminKubeconfigRequest", "spec": {"expirationSeconds": 600}});
    let answer = garden.ok_input(&["create", "--raw", ADMINISTRATION, "-f", "-"], &request.to_string());
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let encoded = answer["status"]["kubeconfig"].as_str().expect("a kubeconfig");
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .expect("base64");
    landscape.file("administrator.yaml", &String::from_utf8(bytes).expect("text"));
    let administrator = landscape.kubectl("administrator.yaml");
    assert_eq!(administrator.ok("auth can-i * *").trim(), "yes");
    assert!(administrator.ok("auth whoami").contains("gardener-up:admin"));
}

/// Waits until the shoot has so many nodes of a pool, all ready.
fn nodes(shoot: &Kubectl, pool: &str, count: usize) {
    let line = format!("get nodes -l worker.gardener.cloud/pool={pool} --no-headers");
    shoot.until(&line, |answer| {
        answer.success
            && answer.out.lines().count() == count
            && answer
                .out
                .lines()
                .all(|line| line.split_whitespace().nth(1) == Some("Ready"))
    });
}

fn pools(garden: &Kubectl, shoot: &Kubectl) {
    let manifest = garden.json("get -n garden-local shoot local");
    let mut local = manifest["spec"]["provider"]["workers"][0].clone();
    nodes(shoot, "local", 1);
    local["minimum"] = json!(2);
    merge(garden, &json!({"spec": {"provider": {"workers": [local]}}}));
    succeeded(garden, "Reconcile");
    nodes(shoot, "local", 2);
    let mut second = local.clone();
    second["name"] = json!("second");
    second["minimum"] = json!(1);
    merge(garden, &json!({"spec": {"provider": {"workers": [local, second]}}}));
    succeeded(garden, "Reconcile");
    nodes(shoot, "second", 1);
    merge(garden, &json!({"spec": {"provider": {"workers": [local]}}}));
    succeeded(garden, "Reconcile");
    nodes(shoot, "second", 0);
    nodes(shoot, "local", 2);
}

fn delete(garden: &Kubectl) {
    let words = garden.refused(&["delete", "-n", "garden-local", "shoot", "local"], "");
    assert!(
        words.contains("must have a \"confirmation.gardener.cloud/deletion\" annotation to delete"),
        "{words}"
    );
    garden.ok("annotate -n garden-local shoot local confirmation.gardener.cloud/deletion=true");
    garden.ok("delete -n garden-local shoot local --timeout=300s");
}

/// Every object but those that come and go by themselves.
fn objects(cluster: &Kubectl) -> BTreeSet<String> {
    let resources = cluster.ok("api-resources --verbs=list -o name");
    let passing = [
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "endpointslices.discovery.k8s.io",
        "endpoints",
    ];
    let listed: Vec<&str> = resources.lines().filter(|name| !passing.contains(name)).collect();
    let path = r#"jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}"#;
    let names = cluster.ok_args(&["get", &listed.join(","), "-A", "--ignore-not-found", "-o", path]);
    names.lines().map(str::to_owned).collect()
}

/// Waits until nothing is there that was not there before.
fn gone(cluster: &Kubectl, before: &BTreeSet<String>) {
    let mut left: Vec<String> = Vec::new();
    for _ in 0..60 {
        left = objects(cluster).difference(before).cloned().collect();
        if left.is_empty() {
            return;
        }
    }
    panic!("left behind: {left:#?}");
}
