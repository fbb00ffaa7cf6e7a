//! What the garden refuses, with upstream's reasons, codes and words.

use serde_json::{Value, json};

use crate::harness::Kubectl;

const SHOOT: &str = include_str!("../examples/local/90-shoot.yaml");

/// Every refusal.
pub fn all(garden: &Kubectl) {
    unknown_field(garden);
    missing_project(garden);
    invalid(garden);
    unsupported_version(garden);
    unconfirmed_deletion(garden);
    another_seeds(garden);
}

/// What gardenlets are told that ask for what is another seed's [AUTH-4] [AUTH-20].
fn another_seeds(garden: &Kubectl) {
    const AS: [&str; 4] = [
        "--as",
        "gardener.cloud:system:seed:other",
        "--as-group",
        "gardener.cloud:system:seeds",
    ];
    let refused = |arguments: &[&str], input: &str| garden.refused(&[arguments, &AS].concat(), input);
    let words = refused(&["get", "shoots", "-A"], "");
    assert!(
        words.contains("(Forbidden)")
            && words.trim_end().ends_with(
                "User \"gardener.cloud:system:seed:other\" cannot list resource \"shoots\" in API group \"core.gardener.cloud\" at the cluster scope: \
                 must specify field or label selector for name other"
            ),
        "{words}"
    );
    let own = ["get", "shoots", "-A", "-l", "name.seed.gardener.cloud/other=true"];
    garden.ok_args(&[&own[..], &AS].concat());
    let words = refused(&["get", "lease", "local", "-n", "gardener-system-seed-lease"], "");
    assert!(
        words.contains("(Forbidden)")
            && words
                .trim_end()
                .ends_with("\"gardener-system-seed-lease\": no relationship found"),
        "{words}"
    );
    let bucket = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupBucket", "metadata": {"name": "x"},
        "spec": {"seedName": "local", "provider": {"type": "local", "region": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup-local"}},
    });
    let words = refused(&["create", "-f", "-"], &bucket.to_string());
    assert!(
        words.trim_end().ends_with(
            "admission webhook \"seed-restriction.gardener.cloud\" denied the request: object does not belong to seed \"other\""
        ),
        "{words}"
    );
}

fn unknown_field(garden: &Kubectl) {
    let manifest = SHOOT
        .replace("name: local\n  namespace", "name: typo\n  namespace")
        .replace("maxSurge", "maxSruge");
    let words = garden.refused(&["create", "-f", "-"], &manifest);
    assert!(
        words.contains("(BadRequest)")
            && words.contains("strict decoding error: unknown field \"spec.provider.workers[0].maxSruge\""),
        "{words}"
    );
    // kubectl patch does not ask for strict validation, as it offers no --validate
    garden.ok_args(&Kubectl::shoot_patch(r#"{"spec":{"regionn":"local"}}"#));
    let lenient = garden.run(&["create", "--validate=warn", "--dry-run=server", "-f", "-"], &manifest);
    assert!(
        lenient.success
            && lenient
                .err
                .contains("Warning: unknown field \"spec.provider.workers[0].maxSruge\""),
        "{}",
        lenient.err
    );
}

fn missing_project(garden: &Kubectl) {
    let manifest = SHOOT.replace("namespace: garden-local", "namespace: default");
    let words = garden.refused(&["create", "-f", "-"], &manifest);
    let expected =
        "shoots.core.gardener.cloud \"local\" is forbidden: Internal error occurred: could not find referenced project";
    assert!(words.contains("(Forbidden)") && words.contains(expected), "{words}");
    let manifest = SHOOT.replace("namespace: garden-local", "namespace: nowhere");
    let words = garden.refused(&["create", "-f", "-"], &manifest);
    assert!(
        words.contains("(NotFound)") && words.contains("namespaces \"nowhere\" not found"),
        "{words}"
    );
}

/// The Status object as the server sent it: kubectl tells it when it is talkative.
fn status(garden: &Kubectl, patch: &Value) -> Value {
    let patch = patch.to_string();
    let arguments = [&Kubectl::shoot_patch(&patch)[..], &["-v=8"]].concat();
    let words = garden.refused(&arguments, "");
    // the log holds the body as it is, as a quoted string, or, for it ends with a newline, in lines of its own: that differs with kubectl's version
    let (_, line) = words
        .rsplit_once("Response Body")
        .unwrap_or_else(|| panic!("no body in\n{words}"));
    let first = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        values.next().expect("a value").expect("JSON")
    };
    match line.split_once(" body=") {
        Some((_, lines)) if lines.starts_with('<') => first(lines.trim_start_matches('<')),
        Some((_, quoted)) => first(first(quoted).as_str().expect("a string")),
        None => first(line.trim_start_matches(": ")),
    }
}

fn invalid(garden: &Kubectl) {
    let cases = [
        (
            json!({"spec": {"kubernetes": {"version": "1.35.4"}}}),
            "FieldValueForbidden",
            "spec.kubernetes.version",
        ),
        (json!({"spec": {"region": "south"}}), "FieldValueInvalid", "spec.region"),
        (
            json!({"spec": {"provider": {"type": "other"}}}),
            "FieldValueInvalid",
            "spec.provider.type",
        ),
        (
            json!({"spec": {"purpose": "fun"}}),
            "FieldValueNotSupported",
            "spec.purpose",
        ),
    ];
    for (patch, reason, field) in cases {
        let status = status(garden, &patch);
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid")),
            "{status}"
        );
        let causes = status["details"]["causes"].as_array().expect("causes");
        let found = causes
            .iter()
            .any(|cause| cause["reason"] == reason && cause["field"] == field);
        assert!(found, "{patch}: no cause {reason} at {field} in {status}");
    }
}

/// What the cloud profile does not offer is refused by admission, not by validation: 403 with the field in the words.
fn unsupported_version(garden: &Kubectl) {
    let status = status(garden, &json!({"spec": {"kubernetes": {"version": "1.37.99"}}}));
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(403), &json!("Forbidden")),
        "{status}"
    );
    let words = "shoots.core.gardener.cloud \"local\" is forbidden: spec.kubernetes.version: Unsupported value: \"1.37.99\": supported values: ";
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|message| message.contains(words)),
        "{status}"
    );
}

fn unconfirmed_deletion(garden: &Kubectl) {
    for (arguments, words) in [
        (
            "delete -n garden-local shoot local",
            "shoots.core.gardener.cloud \"local\" is forbidden: must have a \"confirmation.gardener.cloud/deletion\" annotation to delete",
        ),
        (
            "delete project local",
            "projects.core.gardener.cloud \"local\" is forbidden: must have a \"confirmation.gardener.cloud/deletion\" annotation to delete",
        ),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let answer = garden.refused(&arguments, "");
        assert!(answer.contains("(Forbidden)") && answer.contains(words), "{answer}");
    }
}
