//! What people do in the garden.

use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::harness::{Kubectl, Landscape, PATIENCE};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples/local");

/// The resources are found, by all the names they have.
pub fn discovery(garden: &Kubectl) {
    let resources = garden.ok("api-resources --no-headers");
    for wanted in [
        [
            "cloudprofiles",
            "cprofile,cpfl",
            "core.gardener.cloud/v1beta1",
            "false",
            "CloudProfile",
        ],
        [
            "exposureclasses",
            "expclass,expcls",
            "core.gardener.cloud/v1beta1",
            "false",
            "ExposureClass",
        ],
        [
            "credentialsbindings",
            "cb",
            "security.gardener.cloud/v1alpha1",
            "true",
            "CredentialsBinding",
        ],
        [
            "managedseeds",
            "ms",
            "seedmanagement.gardener.cloud/v1alpha1",
            "true",
            "ManagedSeed",
        ],
        ["namespaces", "ns", "v1", "false", "Namespace"],
    ] {
        let found = resources.lines().any(|line| line.split_whitespace().eq(wanted));
        assert!(found, "{wanted:?} is missing in\n{resources}");
    }
    let shoots = ["shoots", "core.gardener.cloud/v1beta1", "true", "Shoot"];
    assert!(
        resources.lines().any(|line| line.split_whitespace().eq(shoots)),
        "{resources}"
    );
    assert_eq!(garden.ok("get --raw /readyz"), "ok");
    garden.ok("get seeds");
    let metrics = garden.ok("get --raw /metrics");
    for line in [
        "# TYPE apiserver_request_total counter",
        "apiserver_request_total{verb=\"LIST\",dry_run=\"\",group=\"core.gardener.cloud\",version=\"v1beta1\",resource=\"seeds\",subresource=\"\",scope=\"cluster\",component=\"apiserver\",code=\"200\"} ",
        "apiserver_longrunning_requests{verb=\"WATCH\",group=\"core.gardener.cloud\",version=\"v1beta1\",resource=\"shoots\"",
        "apiserver_resource_objects{group=\"core.gardener.cloud\",resource=\"seeds\"} 1\n",
        "authentication_attempts{result=\"success\"} ",
        "authorization_attempts_total{result=\"allowed\"} ",
        "apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"admit\"} ",
        "process_start_time_seconds ",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    assert!(
        garden
            .ok("api-versions")
            .lines()
            .any(|line| line == "core.gardener.cloud/v1beta1")
    );
    assert!(garden.ok("version").contains("Server Version: v1."));
    assert!(garden.ok("auth whoami").contains("system:masters"));
}

/// Every file of the local examples is taken as it is, in order, and again without a change.
pub fn examples_unedited(garden: &Kubectl) {
    let mut files: Vec<_> = std::fs::read_dir(Path::new(EXAMPLES))
        .expect("examples")
        .map(|entry| entry.expect("entry").path().display().to_string())
        .collect();
    files.sort();
    assert_eq!(files.len(), 14);
    for file in &files {
        garden.ok_args(&["apply", "-f", file]);
    }
    // seeds and shoots are left out: components write them meanwhile
    for file in files
        .iter()
        .filter(|file| !file.contains("-shoot") && !file.contains("-seed"))
    {
        applied_again(garden, file);
    }
    let names = garden.ok("get shoots -n garden-local -o name");
    let expected = ["local", "local-ip6", "local-wl"].map(|name| format!("shoot.core.gardener.cloud/{name}"));
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
}

/// Applies a file that was applied before, which changes nothing that people ask for.
pub fn applied_again(garden: &Kubectl, file: &str) {
    let generations = || {
        garden.ok_args(&[
            "get",
            "-f",
            file,
            "-o",
            "jsonpath={.metadata.generation} {.items[*].metadata.generation}",
        ])
    };
    let before = generations();
    garden.ok_args(&["apply", "-f", file]);
    assert_eq!(generations(), before, "{file} applied again is a change");
}

fn header(garden: &Kubectl, line: &str) -> Vec<String> {
    let table = garden.ok(line);
    let header = table.lines().next().expect("a header");
    // columns are parted by three spaces, names may have one
    header
        .split("  ")
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Tables have Gardener's columns [GAPI-10], [GAPI-12], [GAPI-13].
pub fn tables(garden: &Kubectl) {
    assert_eq!(
        header(garden, "get shoots -A"),
        [
            "NAMESPACE",
            "NAME",
            "CLOUDPROFILE",
            "PROVIDER",
            "REGION",
            "K8S VERSION",
            "HIBERNATION",
            "LAST OPERATION",
            "STATUS",
            "AGE"
        ]
    );
    assert_eq!(
        header(garden, "get shoots -A -o wide"),
        [
            "NAMESPACE",
            "NAME",
            "CLOUDPROFILE",
            "PROVIDER",
            "REGION",
            "SEED",
            "K8S VERSION",
            "HIBERNATION",
            "LAST OPERATION",
            "STATUS",
            "PURPOSE",
            "GARDENER VERSION",
            "APISERVER",
            "CONTROL",
            "OBSERVABILITY",
            "NODES",
            "SYSTEM",
            "AGE"
        ]
    );
    assert_eq!(
        header(garden, "get seeds"),
        [
            "NAME",
            "STATUS",
            "LAST OPERATION",
            "PROVIDER",
            "REGION",
            "AGE",
            "VERSION",
            "K8S VERSION"
        ]
    );
    assert_eq!(
        header(garden, "get projects"),
        ["NAME", "NAMESPACE", "STATUS", "OWNER", "CREATOR", "AGE"]
    );
    assert_eq!(header(garden, "get cpfl"), ["NAME", "PROVIDER", "AGE"]);
}

/// `describe` shows the object with its events, `explain` knows the fields.
pub fn describe_and_explain(garden: &Kubectl) {
    garden.ok(&format!(
        "wait -n garden-local shoot/local-wl --for=jsonpath={{.spec.seedName}}=local {PATIENCE}"
    ));
    let described = garden.until("describe shoot -n garden-local local-wl", |answer| {
        answer.out.contains("SchedulingSuccessful")
    });
    for part in [
        "Cloud Profile:",
        "gardener.cloud/created-by: gardener-up:admin",
        "Scheduled to seed \"local\"",
    ] {
        assert!(
            described.out.contains(part),
            "{part:?} is missing in\n{}",
            described.out
        );
    }
    let explained = garden.ok("explain shoot.spec.provider.workers");
    for part in [
        "FIELD: workers <[]Worker>",
        "maxSurge\t<IntOrString>",
        "minimum\t<integer> -required-",
    ] {
        assert!(explained.contains(part), "{part:?} is missing in\n{explained}");
    }
}

/// Patches of the three types; Gardener's kinds take a strategic merge patch as their Go types tell.
pub fn patches(garden: &Kubectl) {
    let shoot = ["patch", "-n", "garden-local", "shoot", "local", "--type"];
    let patch = |kind: &str, text: &str| garden.ok_args(&[&shoot[..], &[kind, "-p", text]].concat());
    patch("merge", r#"{"metadata":{"labels":{"by":"merge"}}}"#);
    patch(
        "json",
        r#"[{"op":"test","path":"/metadata/labels/by","value":"merge"},{"op":"replace","path":"/metadata/labels/by","value":"json"}]"#,
    );
    assert_eq!(
        garden.json("get -n garden-local shoot local")["metadata"]["labels"]["by"],
        "json"
    );
    patch("strategic", r#"{"metadata":{"labels":{"by":"strategic"}}}"#);
    garden.ok_args(&["create", "-n", "garden-local", "serviceaccount", "robot"]);
    let secrets = |name: &str| {
        let patch = format!(r#"{{"secrets":[{{"name":"{name}"}}]}}"#);
        garden.ok_args(&[
            "patch",
            "-n",
            "garden-local",
            "serviceaccount",
            "robot",
            "--type",
            "strategic",
            "-p",
            &patch,
        ]);
    };
    secrets("first");
    secrets("second");
    let robot = garden.json("get -n garden-local serviceaccount robot");
    let names: Vec<_> = robot["secrets"]
        .as_array()
        .expect("secrets")
        .iter()
        .map(|secret| &secret["name"])
        .collect();
    assert_eq!(
        names,
        ["second", "first"],
        "a strategic merge patch merges lists by their key"
    );
}

/// Labels, annotations, an editor.
pub fn edits(garden: &Kubectl, landscape: &Landscape) {
    garden.ok("label -n garden-local shoot local tier=gold");
    garden.ok("annotate -n garden-local shoot local note=hello");
    assert_eq!(
        garden.ok("get shoots -n garden-local -l tier=gold -o name").trim(),
        "shoot.core.gardener.cloud/local"
    );
    garden.ok("label -n garden-local shoot local tier-");
    let editor = landscape.file(
        "editor",
        "#!/bin/sh\nexec sed -i 's/registryBurst: 20/registryBurst: 21/' \"$1\"\n",
    );
    let status = std::process::Command::new("chmod")
        .args(["+x", &editor])
        .status()
        .expect("chmod");
    assert!(status.success());
    let output = garden
        .command(&["edit", "-n", "garden-local", "shoot", "local"])
        .env("KUBE_EDITOR", &editor)
        .output()
        .expect("kubectl starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shoot = garden.json("get -n garden-local shoot local");
    assert_eq!(shoot["spec"]["kubernetes"]["kubelet"]["registryBurst"], 21);
    assert_eq!(shoot["metadata"]["annotations"]["note"], "hello");
    assert_eq!(shoot["metadata"]["labels"].get("tier"), None);
}

/// Server-side apply keeps managers apart; `diff` tells what would change, and changes nothing.
pub fn server_side_apply_and_diff(garden: &Kubectl, landscape: &Landscape) {
    let class = |handler: &str| {
        format!(
            "apiVersion: core.gardener.cloud/v1beta1\nkind: ExposureClass\nmetadata:\n  name: applied\n  labels:\n    colour: {handler}\nhandler: local\n"
        )
    };
    let (red, blue) = (
        landscape.file("red.yaml", &class("red")),
        landscape.file("blue.yaml", &class("blue")),
    );
    garden.ok_args(&["apply", "--server-side", "--field-manager=one", "-f", &red]);
    let conflict = garden.refused(&["apply", "--server-side", "--field-manager=two", "-f", &blue], "");
    assert!(
        conflict.contains("Apply failed with 1 conflict: conflict with \"one\""),
        "{conflict}"
    );
    assert!(conflict.contains(".metadata.labels.colour"), "{conflict}");
    garden.ok_args(&[
        "apply",
        "--server-side",
        "--field-manager=two",
        "--force-conflicts",
        "-f",
        &blue,
    ]);
    let object = garden.json("get exposureclass applied --show-managed-fields");
    let managers: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .expect("managedFields")
        .iter()
        .filter(|entry| entry["operation"] == "Apply")
        .map(|entry| &entry["manager"])
        .collect();
    assert_eq!(managers, ["one", "two"]);
    let differing = garden.run(&["diff", "--server-side", "--field-manager=two", "-f", &red], "");
    assert!(
        !differing.success && differing.out.contains("+    colour: red"),
        "{}{}",
        differing.out,
        differing.err
    );
    garden.ok_args(&["diff", "--server-side", "--field-manager=two", "-f", &blue]);
    assert_eq!(
        garden.json("get exposureclass applied")["metadata"]["labels"]["colour"],
        "blue"
    );
    garden.ok("delete exposureclass applied");
}

/// A watch sees what changes after it began; `wait` sees a condition.
pub fn watch(garden: &Kubectl) {
    garden.ok("create cm -n garden-local watched --from-literal=step=1");
    let mut process = garden
        .command(&[
            "get",
            "cm",
            "-n",
            "garden-local",
            "watched",
            "-w",
            "-o",
            "jsonpath={.data.step}{\"\\n\"}",
        ])
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(process.stdout.take().expect("standard output")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "1");
    garden.ok_args(&[
        "patch",
        "cm",
        "-n",
        "garden-local",
        "watched",
        "-p",
        r#"{"data":{"step":"2"}}"#,
    ]);
    assert_eq!(lines.next().expect("a line").expect("text"), "2");
    process.kill().expect("kubectl ends");
    process.wait().expect("kubectl ends");
    garden.ok("delete cm -n garden-local watched");
    garden.ok(&format!("wait seed/local --for=condition=GardenletReady {PATIENCE}"));
    garden.ok(&format!(
        "wait -n garden-local shoot/local-wl --for=jsonpath={{.status.lastOperation.state}}=Succeeded {PATIENCE}"
    ));
}

/// Who may do what.
pub fn access(garden: &Kubectl) {
    assert_eq!(
        garden
            .ok("auth can-i create shoots.core.gardener.cloud -n garden-local")
            .trim(),
        "yes"
    );
    let nobody = garden.run(
        &[
            "auth",
            "can-i",
            "delete",
            "shoots",
            "-n",
            "garden-local",
            "--as",
            "nobody",
        ],
        "",
    );
    assert!(!nobody.success && nobody.out.trim() == "no");
    let refused = garden.refused(&["get", "shoots", "-n", "garden-local", "--as", "nobody"], "");
    let words = "Error from server (Forbidden): shoots.core.gardener.cloud is forbidden: User \"nobody\" cannot list resource \"shoots\" in API group \"core.gardener.cloud\" in the namespace \"garden-local\"";
    assert!(refused.starts_with(words), "{refused}");
}
