//! Which admission plugins run, and how they are configured, by flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gardener_apiserver::definition::Admission;
use gardener_garden_apiserver::Features;
use gardener_garden_apiserver::admission::{Configuration, ConfigurationError, OFF_BY_DEFAULT};
use gardener_kube_apiserver::admission_configuration::{AdmissionConfigurationError, WebhookIdentities, documents};
use gardener_kube_apiserver::flags::AdmissionFlags;
use gardener_landscape::garden;

/// Why plugins cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] AdmissionConfigurationError),
    /// A plugin's own document is not understood.
    #[error("--admission-control-config-file: {}: {source}", path.display())]
    Plugin {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ConfigurationError,
    },
}

/// Reads the configuration of all plugins, and what those that ask webhooks show them.
fn configuration(path: &Path) -> Result<(Configuration, WebhookIdentities), AdmissionError> {
    let (mut configuration, mut identities) = (Configuration::default(), WebhookIdentities::default());
    for own in documents(path)? {
        if identities.take(&own)? {
            continue;
        }
        let taken = configuration.take(&own.plugin, &own.document);
        taken.map_err(|source| AdmissionError::Plugin { path: own.path, source })?;
    }
    Ok((configuration, identities))
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

/// The plugins that flags leave, in their order, and what those that ask webhooks show them. What upstream has besides is told in the log.
///
/// # Errors
/// [`AdmissionError`].
pub(crate) fn left(
    flags: &AdmissionFlags,
    features: &Features,
) -> Result<(Vec<Arc<dyn Admission>>, WebhookIdentities), AdmissionError> {
    let file = flags.admission_control_config_file.as_deref();
    let (configuration, identities) = file.map(configuration).transpose()?.unwrap_or_default();
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
    Ok((plugins, identities))
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
            let flags = AdmissionFlags {
                admission_control_config_file: None,
                enable_admission_plugins: list(enabled),
                disable_admission_plugins: list(disabled),
            };
            let (plugins, _) = left(&flags, &Features::default()).unwrap();
            plugins.iter().map(|plugin| plugin.name()).collect()
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
