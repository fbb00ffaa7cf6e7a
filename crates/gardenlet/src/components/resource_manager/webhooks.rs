//! Which objects a seed's API server shows to the gardener-resource-manager before they are written or deleted [EXT-130], [EXT-131].

use gardener_apis::constants::label::DELETION_PROTECTED;
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1::*;
use gardener_apis::validation::extension_object::{DELETION_PROTECTION_PATH, webhook_path};
use k8s_openapi::Resource;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::NAME;

/// A kind that is judged.
struct Judged {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    path: String,
}

impl Judged {
    fn of<K: Resource>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            plural: K::URL_PATH_SEGMENT,
            path: webhook_path::<K>(),
        }
    }
}

/// The kinds that are judged; Etcds stand among the extensions, as upstream has it.
fn judged() -> [Judged; 13] {
    [
        Judged::of::<BackupBucket>(),
        Judged::of::<BackupEntry>(),
        Judged::of::<Bastion>(),
        Judged::of::<ContainerRuntime>(),
        Judged::of::<ControlPlane>(),
        Judged::of::<DNSRecord>(),
        Judged::of::<Etcd>(),
        Judged::of::<Extension>(),
        Judged::of::<Infrastructure>(),
        Judged::of::<Network>(),
        Judged::of::<OperatingSystemConfig>(),
        Judged::of::<SelfHostedShootExposure>(),
        Judged::of::<Worker>(),
    ]
}

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
    let rule = |group: &str, versions: &[&str], plurals: &[&str], operations: &[&str]| json!({"apiGroups": [group], "apiVersions": versions, "resources": plurals, "operations": operations});
    let judged = judged();
    let of_extensions = judged.iter().filter(|own| own.group == Worker::GROUP);
    let extensions: Vec<&str> = of_extensions.map(|own| own.plural).collect();
    let definitions = (
        CustomResourceDefinition::GROUP,
        CustomResourceDefinition::URL_PATH_SEGMENT,
    );
    let mut webhooks = vec![
        webhook(
            "crd-deletion-protection.resources.gardener.cloud",
            DELETION_PROTECTION_PATH,
            vec![rule(definitions.0, &["v1beta1", "v1"], &[definitions.1], &["DELETE"])],
            json!({"matchLabels": {DELETION_PROTECTED: "true"}}),
        ),
        webhook(
            "cr-deletion-protection.resources.gardener.cloud",
            DELETION_PROTECTION_PATH,
            vec![
                rule(Etcd::GROUP, &[Etcd::VERSION], &[Etcd::URL_PATH_SEGMENT], &["DELETE"]),
                rule(Worker::GROUP, &[Worker::VERSION], &extensions, &["DELETE"]),
            ],
            json!({}),
        ),
    ];
    webhooks.extend(judged.iter().map(|own| {
        let name = format!("validation.extensions.{}.resources.gardener.cloud", own.plural);
        let rules = vec![rule(own.group, &[own.version], &[own.plural], &["CREATE", "UPDATE"])];
        webhook(&name, &own.path, rules, json!({}))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_130_ext_131_the_webhooks_of_a_seed() {
        let configuration = validating_webhooks("garden", "Q0E=");
        let webhooks = configuration["webhooks"].as_array().expect("webhooks");
        let told: Vec<String> = webhooks
            .iter()
            .map(|own| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let name = text(&own["name"]);
                let name = name.strip_suffix(".resources.gardener.cloud").expect("a name");
                let rules = own["rules"].as_array().expect("rules").iter();
                let resources: Vec<String> = rules
                    .flat_map(|rule| rule["resources"].as_array().expect("resources"))
                    .map(text)
                    .collect();
                let path = text(&own["clientConfig"]["service"]["path"]);
                format!("{name} {path} {}", resources.join(","))
            })
            .collect();
        let expected = [
            "crd-deletion-protection /webhooks/validate-crd-deletion customresourcedefinitions",
            "cr-deletion-protection /webhooks/validate-crd-deletion etcds,backupbuckets,backupentries,bastions,containerruntimes,controlplanes,dnsrecords,extensions,infrastructures,networks,operatingsystemconfigs,selfhostedshootexposures,workers",
            "validation.extensions.backupbuckets /validate-extensions-gardener-cloud-v1alpha1-backupbucket backupbuckets",
            "validation.extensions.backupentries /validate-extensions-gardener-cloud-v1alpha1-backupentry backupentries",
            "validation.extensions.bastions /validate-extensions-gardener-cloud-v1alpha1-bastion bastions",
            "validation.extensions.containerruntimes /validate-extensions-gardener-cloud-v1alpha1-containerruntime containerruntimes",
            "validation.extensions.controlplanes /validate-extensions-gardener-cloud-v1alpha1-controlplane controlplanes",
            "validation.extensions.dnsrecords /validate-extensions-gardener-cloud-v1alpha1-dnsrecord dnsrecords",
            "validation.extensions.etcds /validate-druid-gardener-cloud-v1alpha1-etcd etcds",
            "validation.extensions.extensions /validate-extensions-gardener-cloud-v1alpha1-extension extensions",
            "validation.extensions.infrastructures /validate-extensions-gardener-cloud-v1alpha1-infrastructure infrastructures",
            "validation.extensions.networks /validate-extensions-gardener-cloud-v1alpha1-network networks",
            "validation.extensions.operatingsystemconfigs /validate-extensions-gardener-cloud-v1alpha1-operatingsystemconfig operatingsystemconfigs",
            "validation.extensions.selfhostedshootexposures /validate-extensions-gardener-cloud-v1alpha1-selfhostedshootexposure selfhostedshootexposures",
            "validation.extensions.workers /validate-extensions-gardener-cloud-v1alpha1-worker workers",
        ];
        assert_eq!(told, expected);
    }
}
