//! Forecasts of manifests: what they may leave out, and what is said when they cannot be foretold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use std::path::PathBuf;

use gardener_forecast::versions::list;
use gardener_forecast::{Forecast, ForecastError, Inventory, LeftOut, Options, Outcome, forecast};
use gardener_rules::maintenance::Settings;

const PROFILE: &str = r#"
apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: cp}
spec:
  type: local
  regions: [{name: here}]
  machineTypes: [{name: large, cpu: "2", gpu: "0", memory: 8Gi}]
  kubernetes:
    versions:
    - {version: 1.35.0, classification: preview}
    - {version: 1.34.3, classification: supported}
    - {version: 1.33.2, classification: deprecated, expirationDate: "2026-01-10T00:00:00Z"}
    - {version: 1.31.1, classification: deprecated, expirationDate: "2025-12-01T00:00:00Z"}
  machineImages:
  - name: os
    versions: [{version: 1.1.0}, {version: 1.0.0, expirationDate: "2025-12-01T00:00:00Z"}]
"#;

fn shoot(name: &str, profile: &str, version: &str, image: &str) -> String {
    let binding = match version.starts_with("1.34") {
        true => "credentialsBindingName",
        false => "secretBindingName",
    };
    format!(
        r#"
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {{name: {name}, namespace: garden-dev}}
spec:
  cloudProfile: {profile}
  {binding}: key
  region: here
  networking: {{type: calico, nodes: 10.0.0.0/16}}
  kubernetes: {{version: "{version}"}}
  maintenance: {{timeWindow: {{begin: 220000+0100, end: 230000+0100}}, autoUpdate: {{kubernetesVersion: false, machineImageVersion: false}}}}
  provider: {{type: local, workers: [{{name: pool, minimum: 1, maximum: 1, machine: {{type: large{image}}}}}]}}
"#
    )
}

fn read(documents: &[&str]) -> Result<Inventory, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("all.yaml"), documents.join("\n---\n")).unwrap();
    Inventory::of_manifests(&[folder.path().to_owned()]).map_err(|error| error.to_string())
}

fn foretell(inventory: &Inventory) -> Result<Forecast, ForecastError> {
    let options = Options {
        from: "2026-01-01T12:00:00Z".parse().unwrap(),
        days: 30,
        seed_number: 1,
        settings: Settings::default(),
    };
    forecast(inventory, &options)
}

const IMAGE: &str = ", image: {name: os, version: 1.0.0}";
const CP: &str = "{kind: CloudProfile, name: cp}";

#[test]
fn shoots_and_their_profile_are_enough() {
    let one = shoot("one", CP, "1.33.2", IMAGE);
    // pool's image and architecture are left to the garden
    let two = shoot("two", CP, "1.34", "");
    let inventory = read(&[PROFILE, &one, &two]).unwrap();
    let found = foretell(&inventory).unwrap();
    let told: Vec<(String, &str, String)> = found
        .entries
        .iter()
        .flat_map(|entry| {
            let day = entry.time.strftime("%d").to_string();
            entry
                .changes
                .iter()
                .map(move |change| (day.clone(), &*entry.shoot, change.to_string()))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("01".into(), "one", "pool \"pool\": os 1.0.0 → 1.1.0".to_owned()),
            ("10".into(), "one", "Kubernetes 1.33.2 → 1.34.3".to_owned()),
        ]
    );
    assert!(
        found
            .entries
            .iter()
            .all(|entry| entry.forced && entry.outcome == Outcome::Updated)
    );
    assert!(
        found.entries[1]
            .description
            .contains(".spec.secretBindingName was migrated"),
        "{:?}",
        found.entries[1]
    );
    assert_eq!(foretell(&inventory).unwrap(), found, "one number, one forecast");
}

#[test]
fn what_cannot_go_on_fails_once_in_the_forecast() {
    let inventory = read(&[PROFILE, &shoot("old", CP, "1.31.1", "")]).unwrap();
    let found = foretell(&inventory).unwrap();
    let [only] = found.entries.as_slice() else {
        panic!("{:?}", found.entries)
    };
    assert_eq!((only.outcome, only.forced), (Outcome::Failed, true));
    let why = only.failure_reason.as_ref().unwrap();
    assert!(
        why.contains("could not determine higher suitable version than \"1.31.1\""),
        "{why}"
    );
}

#[test]
fn namespaced_profiles_move_ends_of_life() {
    let child = r#"
apiVersion: core.gardener.cloud/v1beta1
kind: NamespacedCloudProfile
metadata: {name: own, namespace: garden-dev}
spec:
  parent: {kind: CloudProfile, name: cp}
  kubernetes: {versions: [{version: 1.33.2, expirationDate: "2026-01-20T00:00:00Z"}]}
"#;
    let own = "{kind: NamespacedCloudProfile, name: own}";
    let inventory = read(&[PROFILE, child, &shoot("one", own, "1.33.2", "")]).unwrap();
    let found = foretell(&inventory).unwrap();
    assert_eq!(found.entries.len(), 1, "{:?}", found.entries);
    assert_eq!(found.entries[0].time.strftime("%d").to_string(), "20");

    let profiles = list(&inventory, "2026-01-01T00:00:00Z".parse().unwrap());
    let told: Vec<String> = profiles
        .iter()
        .flat_map(|profile| {
            profile.versions.iter().map(|own| {
                let expires = own
                    .expires
                    .map_or_else(|| "-".into(), |time| time.strftime("%m-%d").to_string());
                format!(
                    "{} {} {} {expires} {}",
                    profile.name, own.version, own.classification, own.shoots
                )
            })
        })
        .filter(|line| line.contains("1.33") || line.contains("1.31"))
        .collect();
    assert_eq!(
        told,
        [
            "cp 1.33.2 deprecated 01-10 1",
            "cp 1.31.1 expired 12-01 0",
            "own 1.33.2 deprecated 01-20 1",
            "own 1.31.1 expired 12-01 0",
        ]
    );
}

#[test]
fn what_is_wrong_is_said() {
    let nowhere = Inventory::of_manifests(&[PathBuf::from("nowhere.yaml")]);
    assert!(
        nowhere
            .unwrap_err()
            .to_string()
            .starts_with("nowhere.yaml: No such file")
    );
    for (text, expected) in [
        ("a: [", "all.yaml: document 1 is no Kubernetes object"),
        (
            "kind: Secret\napiVersion: v1\nmetadata: {name: a}",
            "neither CloudProfiles nor Shoots are in",
        ),
        (
            "kind: Shoot\napiVersion: core.gardener.cloud/v1\nmetadata: {name: a}",
            "Shoot \"a\" cannot be read: apiVersion is \"core.gardener.cloud/v1\", expected \"core.gardener.cloud/v1beta1\"",
        ),
        (
            "kind: Shoot\napiVersion: core.gardener.cloud/v1beta1\nmetadata: {name: a}\nspec: {kubernetes: 3}",
            "Shoot \"a\" cannot be read: ",
        ),
    ] {
        let error = read(&[text]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let lost = read(&[&shoot("one", "{kind: CloudProfile, name: gone}", "1.33.2", "")]).unwrap();
    let missing = LeftOut {
        shoot: "garden-dev/one".to_owned(),
        missing: "CloudProfile \"gone\"".to_owned(),
    };
    assert_eq!(lost.without_profile(), [missing]);
    for (shoot, expected) in [
        (
            shoot("one", CP, "1.30", ""),
            "couldn't find a suitable version for 1.30",
        ),
        (
            shoot("one", CP, "1.34.3", IMAGE).replace("begin: 220000+0100", "begin: \"1000\""),
            "spec.maintenance.timeWindow",
        ),
    ] {
        let error = foretell(&read(&[PROFILE, &shoot]).unwrap()).unwrap_err().to_string();
        assert!(
            error.starts_with("a garden would refuse Shoot garden-dev/one: "),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
}
