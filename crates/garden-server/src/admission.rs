//! Which admission plugins run, and how they are configured, by flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use gardener_apiserver::definition::Admission;
use gardener_garden_apiserver::Features;
use gardener_garden_apiserver::admission::{Configuration, ConfigurationError, OFF_BY_DEFAULT};
use gardener_kube_apiserver::access::{FileError, read};
use gardener_kube_apiserver::flags::AdmissionFlags;
use gardener_landscape::garden;
use serde::Deserialize;
use serde_json::Value;

/// Which plugins run, and with what.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct GardenAdmissionFlags {
    /// Which of them.
    #[command(flatten)]
    pub plugins: AdmissionFlags,
    /// What plugins are configured with: an AdmissionConfiguration of apiserver.config.k8s.io/v1.
    #[arg(long, value_name = "FILE")]
    pub admission_control_config_file: Option<PathBuf>,
}

/// Why plugins cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is no YAML, or has another shape.
    #[error("--admission-control-config-file: {}: {why}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A plugin's own document is not understood.
    #[error("--admission-control-config-file: {}: {source}", path.display())]
    Plugin {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ConfigurationError,
    },
}

/// `AdmissionConfiguration`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    plugins: Vec<Plugin>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    name: String,
    /// Where the document is; from the file's own folder on.
    #[serde(default)]
    path: String,
    /// The document itself.
    configuration: Option<Value>,
}

const FLAG: &str = "admission-control-config-file";
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
/// Kubernetes' own plugins that upstream can configure, and we cannot.
const WITHOUT_EFFECT: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

/// Reads the configuration of all plugins.
fn configuration(path: &Path) -> Result<Configuration, AdmissionError> {
    let shape = |path: &Path, why: String| AdmissionError::Shape {
        path: path.to_owned(),
        why,
    };
    let text = read(FLAG, path)?;
    let file: File = serde_saphyr::from_str(&text).map_err(|error| shape(path, error.to_string()))?;
    if !VERSIONS.contains(&file.api_version.as_str()) || file.kind != "AdmissionConfiguration" {
        let why = format!(
            "expected kind \"AdmissionConfiguration\" of {:?}, but it is kind {:?} of {:?}",
            VERSIONS[0], file.kind, file.api_version
        );
        return Err(shape(path, why));
    }
    let mut configuration = Configuration::default();
    for plugin in file.plugins {
        let (document, from) = match (plugin.configuration, plugin.path.as_str()) {
            (Some(document), _) => (document, path.to_owned()),
            (None, "") => continue,
            (None, own) => {
                let own = path.parent().unwrap_or(Path::new("")).join(own);
                let text = read(FLAG, &own)?;
                let document = serde_saphyr::from_str(&text).map_err(|error| shape(&own, error.to_string()))?;
                (document, own)
            }
        };
        if WITHOUT_EFFECT.contains(&plugin.name.as_str()) {
            tracing::warn!(
                plugin = plugin.name,
                "--{FLAG}: the configuration of this plugin has no effect"
            );
            continue;
        }
        let taken = configuration.take(&plugin.name, &document);
        taken.map_err(|source| AdmissionError::Plugin { path: from, source })?;
    }
    Ok(configuration)
}

/// The plugins that upstream knows, in their order, Kubernetes' own behind Gardener's [ADM-1].
pub(crate) const KNOWN: [&str; 32] = [
    "NamespaceLifecycle",
    "ResourceReferenceManager",
    "ExtensionValidator",
    "ExtensionLabels",
    "ShootTolerationRestriction",
    "ShootExposureClass",
    "ShootDNS",
    "ShootManagedSeed",
    "ShootNodeLocalDNSEnabledByDefault",
    "ShootDNSRewriting",
    "ShootQuotaValidator",
    "ShootMutator",
    "ShootValidator",
    "SeedValidator",
    "SeedMutator",
    "ControllerRegistrationResources",
    "NamespacedCloudProfileValidator",
    "ProjectMutator",
    "DeletionConfirmation",
    "FinalizerRemoval",
    "CustomVerbAuthorizer",
    "ShootVPAEnabledByDefault",
    "ShootResourceReservation",
    "ManagedSeed",
    "ManagedSeedShoot",
    "Bastion",
    "BackupBucketValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
];

fn named(names: &[String], plugin: &str) -> bool {
    names.iter().any(|name| name == plugin)
}

/// Whether flags want a plugin. As upstream, one that is both enabled and disabled is disabled.
fn wanted(flags: &AdmissionFlags, plugin: &str) -> bool {
    let by_default = !OFF_BY_DEFAULT.contains(&plugin) && plugin != "MutatingAdmissionPolicy";
    (by_default || named(&flags.enable_admission_plugins, plugin)) && !named(&flags.disable_admission_plugins, plugin)
}

/// The plugins that flags leave, in their order. What upstream has besides is told in the log.
///
/// # Errors
/// [`AdmissionError`].
pub(crate) fn left(
    flags: &GardenAdmissionFlags,
    features: &Features,
) -> Result<Vec<Arc<dyn Admission>>, AdmissionError> {
    let file = flags.admission_control_config_file.as_deref();
    let configuration = file.map(configuration).transpose()?.unwrap_or_default();
    let flags = &flags.plugins;
    let mut plugins = garden::admission_plugins(&configuration, features);
    for plugin in KNOWN.into_iter().filter(|plugin| wanted(flags, plugin)) {
        if !plugins.iter().any(|own| own.name() == plugin) {
            tracing::warn!(
                plugin,
                "this admission plugin is not there yet: what it would refuse or change is not"
            );
        }
    }
    plugins.retain(|plugin| wanted(flags, plugin.name()));
    Ok(plugins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_decide_which_plugins_run() {
        let names = |enabled: &str, disabled: &str| -> Vec<&'static str> {
            let list = |text: &str| {
                text.split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect()
            };
            let flags = GardenAdmissionFlags {
                plugins: AdmissionFlags {
                    enable_admission_plugins: list(enabled),
                    disable_admission_plugins: list(disabled),
                },
                admission_control_config_file: None,
            };
            left(&flags, &Features::default())
                .unwrap()
                .iter()
                .map(|plugin| plugin.name())
                .collect()
        };
        let all = names("", "");
        assert!(all.contains(&"ShootValidator") && all.contains(&"ValidatingAdmissionWebhook"));
        let left = names("ShootDNS", "ShootDNS,ShootValidator,ValidatingAdmissionWebhook");
        let missing: Vec<_> = all.iter().filter(|name| !left.contains(name)).collect();
        assert_eq!(missing, [&"ShootDNS", &"ShootValidator", &"ValidatingAdmissionWebhook"]);
        assert!(!all.contains(&"ShootDNSRewriting") && names("ShootDNSRewriting", "").contains(&"ShootDNSRewriting"));
        let enabled = names("MutatingAdmissionPolicy", "");
        assert!(!all.contains(&"MutatingAdmissionPolicy") && enabled.contains(&"MutatingAdmissionPolicy"));
        // those that upstream has, too, run in its order
        let order: Vec<_> = KNOWN.into_iter().filter(|name| all.contains(name)).collect();
        assert_eq!(
            all.iter()
                .filter(|name| KNOWN.contains(name))
                .copied()
                .collect::<Vec<_>>(),
            order
        );
    }

    #[test]
    fn plugins_are_configured_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let read = || configuration(&folder.path().join("admission.yaml")).map_err(|error| error.to_string());
        write(
            "suffixes.yaml",
            "{apiVersion: shootdnsrewriting.admission.gardener.cloud/v1alpha1, kind: Configuration, commonSuffixes: [a.b]}",
        );
        let file = |plugins: &str| {
            let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
            write("admission.yaml", &format!("{head}{plugins}"));
        };
        file(
            "- {name: ShootDNSRewriting, path: suffixes.yaml}\n- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration}}\n- {name: ShootDNS, path: ''}\n",
        );
        assert!(read().is_ok(), "{:?}", read());
        for (plugins, why) in [
            ("- {name: ShootDNSRewriting, path: gone.yaml}", "gone.yaml"),
            (
                "- {name: ShootDNS, configuration: {}}",
                "plugin \"ShootDNS\" takes no configuration",
            ),
            ("- {name: ShootDNSRewriting, more: 1}", "unknown field `more`"),
            (
                "- {name: ShootTolerationRestriction, path: suffixes.yaml}",
                "expected kind \"Configuration\" of \"shoottolerationrestriction.",
            ),
        ] {
            file(plugins);
            let error = read().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        write("admission.yaml", "{apiVersion: v1, kind: Secret}");
        assert!(read().unwrap_err().contains("expected kind \"AdmissionConfiguration\""));
    }
}
