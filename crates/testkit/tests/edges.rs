//! Which crate may use which: the rows of the table in ARCHITECTURE.md, from top to bottom. A row may use rows above it, never those below; what a
//! row must not know at all is named besides.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Rows from top to bottom; crates of one row do not use each other.
const ROWS: [&[&str]; 20] = [
    &["gardener-apimachinery"],
    &["gardener-pki"],
    &["gardener-apis"],
    &["gardener-rules"],
    &["gardener-garden-authorizer"],
    &["gardener-cel"],
    &["gardener-schema"],
    &["gardener-merge"],
    &["gardener-store"],
    &["gardener-apiserver"],
    &["gardener-garden-apiserver"],
    &["gardener-controller", "gardener-flow"],
    &[
        "gardener-cluster",
        "gardener-controller-manager",
        "gardener-etcd-druid",
        "gardener-extension",
        "gardener-gardenlet",
        "gardener-machine-controller-manager",
        "gardener-node-agent",
        "gardener-resource-manager",
        "gardener-scheduler",
    ],
    &["gardener-provider-local"],
    &["gardener-landscape"],
    &["gardener-forecast", "gardener-kube-apiserver"],
    &["gardener-garden-server"],
    &["gardener-testkit", "gardener"],
    &["gardener-conformance"],
    &["gardener-bench"],
];

/// Pairs that must not meet, whatever their rows say: components meet at the API only, and the API machinery knows no kind of Gardener.
const STRANGERS: [(&str, &str); 6] = [
    ("gardener-apiserver", "gardener-apis"),
    ("gardener-store", "gardener-apis"),
    ("gardener-cluster", "gardener-rules"),
    ("gardener-gardenlet", "gardener-apiserver"),
    ("gardener-controller-manager", "gardener-apiserver"),
    ("gardener-provider-local", "gardener-apiserver"),
];

/// Crates that nothing of ours may bring in: C toolchains, and a second TLS stack.
const BANNED: [&str; 4] = ["openssl-sys", "aws-lc-sys", "native-tls", "chrono"];

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        // in a member's folder that member would be the default
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Our crates and those of ours that they use outside of tests.
fn edges(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let ours = |name: &str| name == "gardener" || name.starts_with("gardener-");
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .filter(|package| ours(&text(package, "name")) && package["source"].is_null())
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter(|own| own["kind"].is_null() && ours(&text(own, "name")));
            (text(package, "name"), used.map(|own| text(own, "name")).collect())
        })
        .collect()
}

#[test]
fn rooms_use_only_rooms_above_them() {
    let metadata = metadata();
    let edges = edges(&metadata);
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let mut wrong = Vec::new();
    for (name, used) in &edges {
        let Some(own) = row(name) else {
            wrong.push(format!("{name} stands in no row"));
            continue;
        };
        for other in used {
            if row(other).is_none_or(|other| other >= own) {
                wrong.push(format!("{name} must not use {other}"));
            }
            if STRANGERS.contains(&(name.as_str(), other.as_str())) {
                wrong.push(format!("{name} and {other} must not meet"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let named: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.iter().copied()).collect();
    let there: BTreeSet<&str> = edges.keys().map(String::as_str).collect();
    assert_eq!(named, there, "rows and workspace tell different crates");
}

#[test]
fn banned_crates_stay_out() {
    let lock = include_str!("../../../Cargo.lock");
    for banned in BANNED {
        let line = format!("name = \"{banned}\"");
        assert!(
            !lock.lines().any(|own| own == line),
            "{banned} came in: `cargo tree -i {banned}` tells by whom"
        );
    }
}

/// The README's first command, `cargo run --release -- up`, names no program.
#[test]
fn cargo_run_runs_the_product() {
    let metadata = metadata();
    let default = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let chosen = packages.iter().filter(|package| default.contains(&package["id"]));
    let targets = chosen.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let programs = targets.filter(|target| target["kind"] == serde_json::json!(["bin"]));
    let names: Vec<_> = programs.filter_map(|target| target["name"].as_str()).collect();
    assert_eq!(names, ["gardener"]);
}
