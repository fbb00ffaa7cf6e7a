//! Which admission plugins run, by flags.

use std::sync::Arc;

use gardener_apiserver::definition::Admission;
use gardener_kube_apiserver::flags::AdmissionFlags;
use gardener_landscape::garden;

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

/// Plugins that run only when they are asked for [ADM-2].
const OFF_BY_DEFAULT: [&str; 3] = [
    "ShootNodeLocalDNSEnabledByDefault",
    "ShootDNSRewriting",
    "MutatingAdmissionPolicy",
];

fn named(names: &[String], plugin: &str) -> bool {
    names.iter().any(|name| name == plugin)
}

/// Whether flags want a plugin. As upstream, one that is both enabled and disabled is disabled.
fn wanted(flags: &AdmissionFlags, plugin: &str) -> bool {
    let by_default = !OFF_BY_DEFAULT.contains(&plugin);
    (by_default || named(&flags.enable_admission_plugins, plugin)) && !named(&flags.disable_admission_plugins, plugin)
}

/// The plugins that flags leave, in their order. What upstream has besides is told in the log.
pub(crate) fn left(flags: &AdmissionFlags) -> Vec<Arc<dyn Admission>> {
    let mut plugins = garden::admission_plugins();
    for plugin in KNOWN.into_iter().filter(|plugin| wanted(flags, plugin)) {
        if !plugins.iter().any(|own| own.name() == plugin) {
            tracing::warn!(
                plugin,
                "this admission plugin is not there yet: what it would refuse or change is not"
            );
        }
    }
    plugins.retain(|plugin| wanted(flags, plugin.name()));
    plugins
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
                enable_admission_plugins: list(enabled),
                disable_admission_plugins: list(disabled),
            };
            left(&flags).iter().map(|plugin| plugin.name()).collect()
        };
        let all = names("", "");
        assert!(all.contains(&"ShootValidator") && all.contains(&"ValidatingAdmissionWebhook"));
        let left = names("ShootDNS", "ShootDNS,ShootValidator,ValidatingAdmissionWebhook");
        let missing: Vec<_> = all.iter().filter(|name| !left.contains(name)).collect();
        assert_eq!(missing, [&"ShootDNS", &"ShootValidator", &"ValidatingAdmissionWebhook"]);
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
}
