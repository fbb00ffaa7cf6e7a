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
            "kind: Shoot\napiVersion: v1beta1\nmetadata: {name: a}",
            "Shoot \"a\" cannot be read: apiVersion is \"v1beta1\", expected \"core.gardener.cloud/v1beta1\"",
        ),
        (
            "kind: Shoots\napiVersion: core.gardener.cloud/v1beta1\nmetadata: {name: a}",
            "all.yaml: \"a\": core.gardener.cloud/v1beta1 has no kind \"Shoots\"",
        ),
        (
            "kind: Shoot\nmetadata: {name: a}",
            "apiVersion, kind and metadata.name are needed",
        ),
        ("", "neither CloudProfiles nor Shoots are in"),
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

/// What admission asks of a garden when a version changes, and a forecast does not read, was accepted by that garden.
#[test]
fn what_shoots_need_of_their_garden_is_there() {
    let with = |name: &str| {
        let server = format!(
            "kubernetes: {{kubeAPIServer: {{auditConfig: {{auditPolicy: {{configMapRef: {{name: {name}}}}}}}, structuredAuthentication: {{configMapName: {name}}}, \
             structuredAuthorization: {{configMapName: {name}, kubeconfigs: [{{authorizerName: a, secretName: {name}}}]}}}}, version"
        );
        let shoot = shoot(name, CP, "1.33.2", "").replace("kubernetes: {version", &server);
        shoot.replace(
            "namespace: garden-dev}",
            "namespace: garden-dev, annotations: {authentication.gardener.cloud/issuer: managed}}",
        )
    };
    let inventory = read(&[PROFILE, &with("unread")]).unwrap();
    let found = foretell(&inventory).unwrap();
    let told: Vec<_> = found
        .entries
        .iter()
        .map(|own| (own.outcome, own.changes.len(), &own.failure_reason))
        .collect();
    assert_eq!(told, [(Outcome::Updated, 1, &None)]);
}

/// What else a folder may have is passed over; a garden without shoots has no future.
#[test]
fn other_kinds_and_no_shoots() {
    let others = "kind: BackupBucket\napiVersion: core.gardener.cloud/v1beta1\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\n\
                  kind: Garden\napiVersion: operator.gardener.cloud/v1alpha1\nmetadata: {name: a}\n---\nkind: Project\napiVersion: example.com/v1\nmetadata: {name: a}";
    let inventory = read(&[PROFILE, others]).unwrap();
    assert!(inventory.projects.is_empty());
    let found = foretell(&inventory).unwrap();
    assert_eq!((found.shoots, found.entries.len()), (0, 0));
    let nobody: Vec<usize> = list(&inventory, found.from)[0]
        .versions
        .iter()
        .map(|own| own.shoots)
        .collect();
    assert_eq!(nobody, [0; 6]);
}

/// [ST-172], [GCM-42]: what is no maintenance comes at its own time, and what is over is maintained no more.
#[test]
fn schedules_and_quotas_are_foretold() {
    let mut sleepy = shoot("sleepy", CP, "1.34.3", "");
    sleepy = sleepy.replace(
        "  region: here",
        "  region: here\n  hibernation: {schedules: [{start: '0 20 * * 1', end: '0 6 * * 2', location: Europe/Berlin}]}",
    );
    let trial = shoot("trial", CP, "1.33.2", "").replace("secretBindingName: key", "secretBindingName: limited");
    let trial = trial.replace(
        "{name: trial,",
        "{name: trial, creationTimestamp: '2025-12-30T00:00:00Z',",
    );
    let told = shoot("told", CP, "1.33.2", "").replace(
        "{name: told,",
        "{name: told, annotations: {shoot.gardener.cloud/expiration-timestamp: '2026-01-08T00:30:00Z'},",
    );
    let quota = r#"
apiVersion: core.gardener.cloud/v1beta1
kind: Quota
metadata: {name: week, namespace: garden}
spec: {clusterLifetimeDays: 7, metrics: {}, scope: {apiVersion: core.gardener.cloud/v1beta1, kind: Project}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: SecretBinding
metadata: {name: limited, namespace: garden-dev}
provider: {type: local}
secretRef: {name: key, namespace: garden-dev}
quotas: [{name: week, namespace: garden}]
"#;
    let inventory = read(&[PROFILE, quota, &sleepy, &trial, &told]).unwrap();
    let found = foretell(&inventory).unwrap();
    let of = |shoot: &str| -> Vec<(String, Outcome)> {
        let own = found.entries.iter().filter(|entry| entry.shoot == shoot);
        own.map(|entry| (entry.time.to_string(), entry.outcome)).collect()
    };
    let sleep: Vec<(String, Outcome)> = [5, 12, 19, 26]
        .into_iter()
        .flat_map(|monday| {
            [
                (format!("2026-01-{monday:02}T19:00:00Z"), Outcome::Hibernated),
                (format!("2026-01-{:02}T05:00:00Z", monday + 1), Outcome::WokenUp),
            ]
        })
        .collect();
    assert_eq!(of("sleepy"), sleep);
    // looked at once an hour, from noon on: at its very end it is not over yet
    assert_eq!(of("trial"), [("2026-01-06T01:00:00Z".to_owned(), Outcome::Deleted)]);
    let end = found.entries.iter().find(|entry| entry.shoot == "told").unwrap();
    assert_eq!(
        (end.time.to_string().as_str(), end.outcome),
        ("2026-01-08T01:00:00Z", Outcome::Deleted)
    );
    assert_eq!(
        end.description,
        "The lifetime that its quota allows ended at 2026-01-08T00:30:00Z"
    );
    assert_eq!(of("told").len(), 1, "who is gone is not updated on the tenth");
    let calendar = gardener_forecast::calendar::calendar(&found);
    for line in [
        "SUMMARY:garden-dev/sleepy: hibernates",
        "SUMMARY:garden-dev/told: is deleted",
        "CATEGORIES:END",
    ] {
        assert!(calendar.contains(&format!("\r\n{line}\r\n")), "{line}");
    }
}

/// Shoots know nothing of each other: so many times the shoots are so many times the entries, and so many times the work. How long a forecast of
/// `GARDENER_TEST_FORECAST_SHOOTS=<number>` takes for 90 days the test run tells; a third of them sleep at night.
#[test]
fn many_shoots() {
    let number: usize = std::env::var("GARDENER_TEST_FORECAST_SHOOTS").map_or(6, |text| text.parse().unwrap());
    let shoots: Vec<String> = (0..number)
        .map(|i| {
            let one = shoot(&format!("s{i}"), CP, "1.33.2", IMAGE);
            match i % 3 {
                0 => one.replace(
                    "  region: here",
                    "  region: here\n  hibernation: {schedules: [{start: '0 20 * * 1-5', end: '0 6 * * 1-5'}]}",
                ),
                _ => one,
            }
        })
        .collect();
    let mut documents: Vec<&str> = shoots.iter().map(String::as_str).collect();
    documents.push(PROFILE);
    let inventory = read(&documents).unwrap();
    let options = Options {
        from: "2026-01-01T12:00:00Z".parse().unwrap(),
        days: 90,
        seed_number: 1,
        settings: Settings::default(),
    };
    let found = forecast(&inventory, &options).unwrap();
    let turns = found
        .entries
        .iter()
        .filter(|entry| !entry.outcome.is_of_maintenance())
        .count();
    let maintained = found.entries.len() - turns;
    // an image and a Kubernetes version each; 64 working days with two turns
    let sleepers = number.div_ceil(3);
    assert_eq!((maintained, turns), (2 * number, 128 * sleepers));
}
