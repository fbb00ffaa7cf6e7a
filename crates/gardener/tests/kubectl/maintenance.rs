//! The chapter of versions as its readers live it: operators offer versions, a shoot is maintained when somebody asks for it, its nodes follow, and
//! `gardener versions` and `gardener forecast` tell of it.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{Kubectl, Landscape};

const SHOOT: &str = include_str!("../examples/local/90-shoot.yaml");
/// When versions expire that are at their end.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// Offers Kubernetes versions, each with its end, and versions of the machine image.
fn profile_patch(kubernetes: &[(&str, Option<&str>)], images: &[&str]) -> String {
    let kubernetes = kubernetes.iter().map(|(version, expires)| match expires {
        Some(expires) => json!({"version": version, "classification": "deprecated", "expirationDate": expires}),
        None => json!({"version": version}),
    });
    let images = images
        .iter()
        .map(|version| json!({"version": version, "cri": [{"name": "containerd"}]}));
    let patch = json!({"spec": {
        "kubernetes": {"versions": kubernetes.collect::<Vec<Value>>()},
        "machineImages": [{"name": "local", "updateStrategy": "minor", "versions": images.collect::<Vec<Value>>()}],
    }});
    patch.to_string()
}

fn offer(patch: &str) -> [&str; 6] {
    ["patch", "cloudprofile", "local", "--type=merge", "-p", patch]
}

/// The example's shoot with another name and version.
fn manifest(name: &str, version: &str) -> String {
    let named = SHOOT.replace("name: local\n  namespace", &format!("name: {name}\n  namespace"));
    named.replace("  kubernetes:\n", &format!("  kubernetes:\n    version: {version}\n"))
}

/// Asks for maintenance and waits until it was done.
fn maintain(garden: &Kubectl) {
    garden.ok("annotate -n garden-local shoot local gardener.cloud/operation=maintain");
    garden.until("get -n garden-local shoot local -o json", |answer| {
        serde_json::from_str::<Value>(&answer.out).is_ok_and(|shoot| {
            shoot["metadata"]["annotations"]["gardener.cloud/operation"].is_null()
                && shoot["status"]["lastMaintenance"]["state"] == "Succeeded"
                && shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"]
                && shoot["status"]["lastOperation"]["state"] == "Succeeded"
        })
    });
}

/// Waits until the shoot's column and its nodes show these versions.
fn shows(garden: &Kubectl, shoot: &Kubectl, kubernetes: &str, image: &str) {
    let path = "get -n garden-local shoot local -o jsonpath={.spec.kubernetes.version}/{.spec.provider.workers[0].machine.image.version}";
    assert_eq!(garden.ok(path), format!("{kubernetes}/{image}"));
    let table = garden.ok("get -n garden-local shoot local");
    assert!(
        table.lines().next().is_some_and(|line| line.contains("K8S VERSION")),
        "{table}"
    );
    assert!(
        table.lines().nth(1).is_some_and(|line| line.contains(kubernetes)),
        "{table}"
    );
    let node = (format!("v{kubernetes}"), format!("local {image} (simulated)"));
    shoot.until("get nodes -o json", |answer| {
        let nodes: Value = serde_json::from_str(&answer.out).unwrap_or_default();
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let is_new = |own: &Value| {
            let info = &own["status"]["nodeInfo"];
            info["kubeletVersion"] == node.0 && info["osImage"] == node.1
        };
        nodes.len() == 1 && nodes.iter().all(is_new)
    });
    let nodes = shoot.ok("get nodes -o wide");
    assert!(nodes.contains(&node.0) && nodes.contains(&node.1), "{nodes}");
}

/// One of our commands on the running garden.
fn told(landscape: &Landscape, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gardener"));
    command
        .args(arguments)
        .arg("--kubeconfig")
        .arg(landscape.dir().join("kubeconfig"));
    command.output().expect("gardener starts")
}

fn json_of(landscape: &Landscape, arguments: &[&str]) -> Value {
    let output = told(landscape, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// From one patch to the next, by force to the next minor, and what is refused on the way.
pub fn all(landscape: &Landscape) {
    let garden = landscape.garden();
    let begin = profile_patch(&[("1.36.0", None), ("1.35.4", None), ("1.34.1", None)], &["1.0.0"]);
    garden.ok_args(&offer(&begin));
    garden.ok_input(&["apply", "-f", "-"], &manifest("local", "1.34.1"));
    garden.until(
        "get -n garden-local shoot local -o jsonpath={.status.lastOperation.state}",
        |answer| answer.out == "Succeeded",
    );
    let shoot = landscape.cluster(&["shoot", "garden-local/local"]);
    shows(&garden, &shoot, "1.34.1", "1.0.0");

    let patch = profile_patch(
        &[("1.36.0", None), ("1.35.4", None), ("1.34.3", None), ("1.34.1", None)],
        &["1.0.0"],
    );
    garden.ok_args(&offer(&patch));
    maintain(&garden);
    shows(&garden, &shoot, "1.34.3", "1.0.0");

    let end = [
        ("1.36.0", None),
        ("1.35.4", None),
        ("1.34.3", Some(LONG_AGO)),
        ("1.34.1", Some(LONG_AGO)),
    ];
    garden.ok_args(&offer(&profile_patch(&end, &["1.1.0", "1.0.0"])));
    let words = garden.refused(&["apply", "-f", "-"], &manifest("late", "1.34.3"));
    assert!(
        words.contains("spec.kubernetes.version: Unsupported value: \"1.34.3\""),
        "{words}"
    );
    let words = garden.refused(
        &Kubectl::shoot_patch(r#"{"spec": {"kubernetes": {"version": "1.36.0"}}}"#),
        "",
    );
    assert!(
        words.contains("kubernetes version upgrade cannot skip a minor version"),
        "{words}"
    );
    foretold(landscape);
    maintain(&garden);
    shows(&garden, &shoot, "1.35.4", "1.1.0");
    let events = garden.ok("get events -n garden-local --field-selector involvedObject.name=local");
    for words in [
        "KubernetesVersionMaintenance",
        "Control Plane: Updated Kubernetes version from \"1.34.1\" to \"1.34.3\". Reason: Automatic update of Kubernetes version configured.",
        "Control Plane: Updated Kubernetes version from \"1.34.3\" to \"1.35.4\". Reason: Kubernetes version expired - force update required.",
        "MachineImageVersionMaintenance",
        "Worker pool \"local\": Updated machine image \"local\" from \"1.0.0\" to \"1.1.0\".",
    ] {
        assert!(events.contains(words), "{words} is not in\n{events}");
    }
    let described = garden.ok("describe -n garden-local shoot local");
    assert!(
        described.contains("All maintenance operations successful."),
        "{described}"
    );
    let words = garden.refused(&offer(&profile_patch(&[("1.36.0", None)], &["1.1.0"])), "");
    assert!(
        words.contains("version is still in use by shoot 'garden-local/local'"),
        "{words}"
    );
    versions(landscape);
}

/// What is to come is told, and nothing is written on the way.
fn foretold(landscape: &Landscape) {
    let garden = landscape.garden();
    let before = garden.ok("get -n garden-local shoot local -o jsonpath={.metadata.generation}/{.spec}");
    let forecast = json_of(
        landscape,
        &["forecast", "-n", "garden-local", "--days", "2", "-o", "json"],
    );
    let entries = forecast["entries"].as_array().cloned().unwrap_or_default();
    let [entry] = entries.as_slice() else {
        panic!("one maintenance is to come: {forecast:#}");
    };
    assert_eq!(
        (&entry["shoot"], &entry["outcome"], &entry["forced"]),
        (&json!("local"), &json!("Updated"), &json!(true))
    );
    let steps = |change: &Value| {
        format!(
            "{} {}",
            change["what"].as_str().unwrap_or_default(),
            change["to"].as_str().unwrap_or_default()
        )
    };
    let steps: Vec<String> = entry["changes"].as_array().into_iter().flatten().map(steps).collect();
    assert_eq!(steps, ["Kubernetes 1.35.4", "local 1.1.0"]);
    let output = told(landscape, &["forecast", "--days", "2", "-o", "ics"]);
    let calendar = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && calendar.starts_with("BEGIN:VCALENDAR\r\n"),
        "{calendar}"
    );
    assert!(
        calendar.contains("SUMMARY:garden-local/local: forced update: "),
        "{calendar}"
    );
    let output = told(landscape, &["forecast", "--days", "2"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("Kubernetes 1.34.3 → 1.35.4"), "{table}");
    assert_eq!(
        garden.ok("get -n garden-local shoot local -o jsonpath={.metadata.generation}/{.spec}"),
        before
    );
}

/// What is offered, and who uses it.
fn versions(landscape: &Landscape) {
    let profiles = json_of(landscape, &["versions", "-o", "json"]);
    let listed = profiles[0]["versions"].as_array().cloned().unwrap_or_default();
    let row = |own: &Value| {
        let text = |key: &str| own[key].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {} {}",
            text("of"),
            text("version"),
            text("classification"),
            text("expires"),
            own["shoots"]
        )
    };
    let rows: Vec<String> = listed.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            "Kubernetes 1.36.0 supported - 0".to_owned(),
            "Kubernetes 1.35.4 supported - 1".to_owned(),
            format!("Kubernetes 1.34.3 expired {LONG_AGO} 0"),
            format!("Kubernetes 1.34.1 expired {LONG_AGO} 0"),
            "local 1.1.0 supported - 1".to_owned(),
            "local 1.0.0 supported - 0".to_owned(),
        ]
    );
    let table = told(landscape, &["versions"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.starts_with("PROFILE"), "{table}");
}
