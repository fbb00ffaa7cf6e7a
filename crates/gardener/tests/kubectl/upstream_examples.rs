//! Gardener's own example manifests, unedited: which of them a garden takes, and what it says to the others. What it says was asked of
//! gardener-apiserver 1.150, too.

use std::path::Path;

use crate::garden::applied_again;
use crate::harness::Kubectl;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples/upstream");

/// What becomes of a manifest.
enum Outcome {
    /// It is taken.
    Applied,
    /// `kubectl` cannot read it: there is text in it where fields belong.
    Unreadable,
    /// It is a component's configuration or the like, and no API has such a kind.
    NoKind(&'static str),
    /// The garden says this.
    Refused(&'static [&'static str]),
}

use Outcome::{Applied, NoKind, Refused, Unreadable};

/// Data that the reader is to fill in.
const NO_BASE64: Outcome = Refused(&["cannot be handled as a Secret: illegal base64 data at input byte 6"]);
/// A label that Gardener makes of the provider's name, which the reader is to fill in.
const NO_LABEL: Outcome = Refused(&[
    "metadata.labels: Invalid value: \"provider.extensions.gardener.cloud/<some-provider-name>\": name part must consist of alphanumeric characters",
]);

const EXAMPLES: [(&str, Outcome); 38] = [
    ("00-namespace-garden-dev", Applied),
    ("00-namespace-garden", Applied),
    ("05-project-dev", Applied),
    ("10-secret-alerting", NO_BASE64),
    ("10-secret-default-domain", Applied),
    ("10-secret-internal-domain-unmanaged", Applied),
    ("10-secret-internal-domain", Applied),
    ("10-secret-remote-write", NO_BASE64),
    ("10-secret-shoot-service-account-issuer", Applied),
    (
        "100-bastion",
        Refused(&["spec.shootRef.name: Invalid value: \"example-shoot\": shoot garden-dev/example-shoot not found"]),
    ),
    ("11-internal-secret", Applied),
    ("20-admissionconfig", NoKind("AdmissionConfiguration")),
    (
        "20-componentconfig-gardener-admission-controller",
        NoKind("AdmissionControllerConfiguration"),
    ),
    (
        "20-componentconfig-gardener-controller-manager",
        NoKind("ControllerManagerConfiguration"),
    ),
    (
        "20-componentconfig-gardener-scheduler",
        NoKind("SchedulerConfiguration"),
    ),
    ("20-componentconfig-gardenlet", NoKind("GardenletConfiguration")),
    ("21-encryptionconfiguration", NoKind("EncryptionConfiguration")),
    ("25-controllerdeployment", Applied),
    ("25-controllerinstallation", Applied),
    ("25-controllerregistration", Applied),
    ("30-cloudprofile", NO_LABEL),
    ("31-scheduler-region-configmap", Applied),
    (
        "35-namespacedcloudprofile",
        Refused(&[
            "(InternalError)",
            "cloudprofile.core.gardener.cloud \"local\" not found",
        ]),
    ),
    ("40-secret-seed", NO_BASE64),
    ("45-secret-seed-backup", Applied),
    (
        "50-seed",
        Refused(&[
            "metadata.labels: Invalid value: \"provider.extensions.gardener.cloud/<provider-name>\"",
            "spec.settings.topologyAwareRouting.enabled: Forbidden: topology-aware routing can only be enabled on multi-zone Seed clusters",
        ]),
    ),
    ("55-gardenlet", Unreadable),
    (
        "55-managedseed-gardenlet",
        Refused(&["spec.shoot.name: Invalid value: \"crazy-botany\": shoot garden/crazy-botany not found"]),
    ),
    (
        "57-managedseedset",
        Refused(&[
            "spec.template.spec.gardenlet.config.seedConfig.spec.dns.internal: Required value: internal DNS configuration is required",
            "spec.shootTemplate.spec.provider.workers: Invalid value: null: workers cannot be empty in the Shoot template for a ManagedSeedSet",
            "spec.shootTemplate.spec.cloudProfile.name: Required value: must specify a cloud profile",
            "spec.shootTemplate.spec.provider.type: Required value: must specify a provider type",
            "spec.shootTemplate.spec.kubernetes.version: Required value: kubernetes version must not be empty",
            "spec.shootTemplate.spec.region: Required value: must specify a region",
        ]),
    ),
    (
        "60-quota",
        Refused(&["(NotFound)", "namespaces \"garden-trial\" not found"]),
    ),
    ("70-secret-provider", Applied),
    ("70-workloadidentity-provider", NO_LABEL),
    ("80-credentialsbinding", NO_LABEL),
    ("80-secretbinding", NO_LABEL),
    ("81-exposureclass", Applied),
    (
        "90-shoot",
        Refused(&[
            "could not find referenced cloud profile: cloudprofile.core.gardener.cloud \"cloudprofile1\" not found",
        ]),
    ),
    ("95-configmap-custom-audit-policy", Applied),
    ("95-secret-service-account-signing-key", NO_BASE64),
];

/// Every file is applied in order, to a garden that has nothing of its own; what is taken is taken again without a change.
pub fn all(garden: &Kubectl) {
    let files = std::fs::read_dir(FOLDER).expect("examples").count();
    assert_eq!(files, EXAMPLES.len());
    // a project would have it
    garden.ok("create namespace garden-local");
    for (name, outcome) in &EXAMPLES {
        let file = Path::new(FOLDER).join(format!("{name}.yaml")).display().to_string();
        let refused = || garden.refused(&["apply", "-f", &file], "");
        match outcome {
            Applied => {
                garden.ok_args(&["apply", "-f", &file]);
                applied_again(garden, &file);
            }
            Unreadable => {
                let words = refused();
                assert!(words.contains("error parsing"), "{name}: {words}");
            }
            NoKind(kind) => {
                let words = refused();
                let expected = format!("no matches for kind \"{kind}\"");
                assert!(words.contains(&expected), "{name}: {words}");
            }
            Refused(parts) => {
                let words = refused();
                // in their order
                let mut rest = words.as_str();
                for part in *parts {
                    match rest.split_once(part) {
                        Some((_, behind)) => rest = behind,
                        None => panic!("{name}: {part:?} is not in its place in {words}"),
                    }
                }
            }
        }
    }
}
