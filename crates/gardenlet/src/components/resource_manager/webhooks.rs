//! Which objects a seed's API server shows to the gardener-resource-manager before they are written or deleted [EXT-130], [EXT-131].

use serde_json::{Value, json};

use super::NAME;

const EXTENSIONS: (&str, &str) = ("extensions.gardener.cloud", "v1alpha1");
const DRUID: (&str, &str) = ("druid.gardener.cloud", "v1alpha1");

/// The kinds that are judged: plural name and path; Etcds stand between them, as upstream has it.
const JUDGED: [(&str, (&str, &str)); 13] = [
    ("backupbuckets", EXTENSIONS),
    ("backupentries", EXTENSIONS),
    ("bastions", EXTENSIONS),
    ("containerruntimes", EXTENSIONS),
    ("controlplanes", EXTENSIONS),
    ("dnsrecords", EXTENSIONS),
    ("etcds", DRUID),
    ("extensions", EXTENSIONS),
    ("infrastructures", EXTENSIONS),
    ("networks", EXTENSIONS),
    ("operatingsystemconfigs", EXTENSIONS),
    ("selfhostedshootexposures", EXTENSIONS),
    ("workers", EXTENSIONS),
];

/// The webhooks of a seed; `ca_bundle` (base64 of PEM) tells the manager's certificate.
pub fn validating_webhooks(namespace: &str, ca_bundle: &str) -> Value {
    let webhook = |name: &str, path: &str, rules: Vec<Value>, selected: Value| {
        json!({
            "name": name,
            "admissionReviewVersions": ["v1beta1", "v1"],
            "clientConfig": {"caBundle": ca_bundle, "service": {"name": NAME, "namespace": namespace, "path": path}},
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "namespaceSelector": {},
            "objectSelector": selected,
            "rules": rules,
            "sideEffects": "None",
            "timeoutSeconds": 10,
        })
    };
    let rule = |(group, version): (&str, &str), plurals: &[&str], operations: &[&str]| json!({"apiGroups": [group], "apiVersions": [version], "resources": plurals, "operations": operations});
    let of_extensions = JUDGED.iter().filter(|(_, group)| *group == EXTENSIONS);
    let extensions: Vec<&str> = of_extensions.map(|(plural, _)| *plural).collect();
    let deletion = "/webhooks/validate-crd-deletion";
    let definitions = json!({
        "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1beta1", "v1"], "resources": ["customresourcedefinitions"],
        "operations": ["DELETE"],
    });
    let mut webhooks = vec![
        webhook(
            "crd-deletion-protection.resources.gardener.cloud",
            deletion,
            vec![definitions],
            json!({"matchLabels": {"gardener.cloud/deletion-protected": "true"}}),
        ),
        webhook(
            "cr-deletion-protection.resources.gardener.cloud",
            deletion,
            vec![
                rule(DRUID, &["etcds"], &["DELETE"]),
                rule(EXTENSIONS, &extensions, &["DELETE"]),
            ],
            json!({}),
        ),
    ];
    webhooks.extend(JUDGED.iter().map(|(plural, group)| {
        let name = format!("validation.extensions.{plural}.resources.gardener.cloud");
        let (domain, version) = group;
        let path = format!("/validate-{}-{version}-{}", domain.replace('.', "-"), singular(plural));
        webhook(
            &name,
            &path,
            vec![rule(*group, &[plural], &["CREATE", "UPDATE"])],
            json!({}),
        )
    }));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": NAME,
            "labels": {"app": NAME, "remediation.webhook.shoot.gardener.cloud/exclude": "true"},
        },
        "webhooks": webhooks,
    })
}

/// The lower-case name of a kind by its plural.
fn singular(plural: &str) -> String {
    match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    }
}
