//! Feature gates, admission plugins and APIs that Kubernetes versions know, [VAL-FG], [VAL-AP], [VAL-RC].

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};

use super::super::AdmissionPlugin;
use crate::versions;

const GATES: &str = include_str!("tables/feature_gates.txt");
const APIS: &str = include_str!("tables/runtime_apis.txt");

/// One row of a table: the first minor version with it, the first without, and a remark.
struct Row<'a> {
    added: Option<u64>,
    removed: Option<u64>,
    remark: &'a str,
}

fn minor(text: &str) -> Option<u64> {
    text.strip_prefix("1.")?.parse().ok()
}

fn row<'a>(table: &'a str, name: &str) -> Option<Row<'a>> {
    table.lines().find_map(|line| {
        let mut fields = line.split('|');
        if fields.next() != Some(name) {
            return None;
        }
        Some(Row {
            added: fields.next().and_then(minor),
            removed: fields.next().and_then(minor),
            remark: fields.next().unwrap_or_default(),
        })
    })
}

impl Row<'_> {
    fn known_in(&self, minor: u64) -> bool {
        self.added.is_none_or(|added| minor >= added) && self.removed.is_none_or(|removed| minor < removed)
    }
}

/// Whether a Kubernetes version knows a feature gate; one that does not parse knows all.
pub fn supports_feature_gate(gate: &str, version: &str) -> bool {
    versions::minor(version).is_none_or(|minor| row(GATES, gate).is_some_and(|row| row.known_in(minor)))
}

/// Whether a Kubernetes version knows an admission plugin; one that does not parse knows all.
pub fn supports_admission_plugin(name: &str, version: &str) -> bool {
    let Some(minor) = versions::minor(version) else {
        return true;
    };
    match row(BOUND_PLUGINS, name) {
        Some(bound) => bound.known_in(minor),
        None => PLUGINS.split_whitespace().any(|known| known == name),
    }
}

/// Checks that gates exist in a version and are not locked at the other value.
pub(super) fn feature_gates(gates: &BTreeMap<String, bool>, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(at_version) = versions::minor(version) else {
        return errors;
    };
    for (gate, value) in gates {
        let at = path.child(gate);
        let Some(row) = row(GATES, gate) else {
            errors.push(Error::invalid(
                &at,
                gate.as_str(),
                format!("unknown feature gate {gate}"),
            ));
            continue;
        };
        if !row.known_in(at_version) {
            errors.push(Error::forbidden(
                &at,
                format!("not supported in Kubernetes version {version}"),
            ));
            continue;
        }
        if let Some((since, locked)) = row.remark.split_once('=')
            && minor(since).is_some_and(|since| at_version >= since)
            && locked != value.to_string()
        {
            errors.push(Error::forbidden(
                &at,
                format!("cannot set feature gate to {value}, feature is locked to {locked}"),
            ));
        }
    }
    errors
}

/// Plugins of every version, then those with bounds.
const PLUGINS: &str = "AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning \
    CertificateSubjectRestriction ClusterTrustBundleAttest DefaultIngressClass DefaultStorageClass \
    DefaultTolerationSeconds DenyServiceExternalIPs ExtendedResourceToleration LimitPodHardAntiAffinityTopology \
    LimitRanger NamespaceAutoProvision NamespaceExists OwnerReferencesPermissionEnforcement \
    PersistentVolumeClaimResize RuntimeClass ServiceAccount TaintNodesByCondition ValidatingAdmissionPolicy \
    EventRateLimit ImagePolicyWebhook MutatingAdmissionWebhook PodNodeSelector PodSecurity PodTolerationRestriction \
    ResourceQuota ValidatingAdmissionWebhook NamespaceLifecycle NodeRestriction Priority StorageObjectInUseProtection";
const BOUND_PLUGINS: &str = "JobValidation|1.36|\nMutatingAdmissionPolicy|1.32|\nNodeDeclaredFeatureValidator|1.35|\n\
    PersistentVolumeLabel||1.31\nPodGroupProtection|1.36|\nPodGroupWorkloadExists|1.36|\nPodResizeValidator|1.36|\n\
    PodTopologyLabels|1.33|";
const REQUIRED_PLUGINS: [&str; 7] = [
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeRestriction",
    "PodSecurity",
    "Priority",
    "StorageObjectInUseProtection",
    "ValidatingAdmissionWebhook",
];
const KUBECONFIG_PLUGINS: [&str; 3] = [
    "ValidatingAdmissionWebhook",
    "MutatingAdmissionWebhook",
    "ImagePolicyWebhook",
];

/// Checks a list of admission plugins for a version.
pub(super) fn admission_plugins(plugins: &[AdmissionPlugin], version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(at_version) = versions::minor(version) else {
        errors.push(Error::internal(path, "invalid semantic version"));
        return errors;
    };
    for (i, plugin) in plugins.iter().enumerate() {
        let at = path.index(i);
        let name = plugin.name.as_str();
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a name"));
            return errors;
        }
        let bound = row(BOUND_PLUGINS, name);
        let plain = PLUGINS.split_whitespace().any(|known| known == name);
        if !plain && bound.is_none() {
            errors.push(Error::invalid(
                &at.child("name"),
                name,
                format!("unknown admission plugin {name:?}"),
            ));
            continue;
        }
        if bound.is_some_and(|row| !row.known_in(at_version)) {
            errors.push(Error::forbidden(
                &at.child("name"),
                format!("admission plugin {name:?} is not supported in Kubernetes version {version}"),
            ));
            continue;
        }
        if plugin.disabled == Some(true) && REQUIRED_PLUGINS.contains(&name) {
            errors.push(Error::forbidden(
                &at,
                format!("admission plugin {name:?} cannot be disabled"),
            ));
        }
        if plugin.kubeconfig_secret_name.is_some() && !KUBECONFIG_PLUGINS.contains(&name) {
            errors.push(Error::forbidden(
                &at.child("kubeconfigSecretName"),
                format!("admission plugin {name:?} does not allow specifying external kubeconfig"),
            ));
        }
    }
    errors
}

/// Checks the switches of APIs for a version.
pub(super) fn runtime_config(apis: &BTreeMap<String, bool>, version: &str, workerless: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(at_version) = versions::minor(version) else {
        return errors;
    };
    for (api, enabled) in apis {
        let at = path.key(api);
        // These switch whole classes of APIs.
        if api.starts_with("api/") {
            continue;
        }
        let Some(row) = row(APIS, api) else {
            let what = match api.split('/').collect::<Vec<_>>().as_slice() {
                ["v1", _] | [_, _, _] => "unknown API group version resource",
                [_] | [_, _] => "unknown API group version",
                _ => "invalid API Group format",
            };
            let why = format!("{what} {}", go_quote(api));
            errors.push(Error::invalid(&at, api.as_str(), why));
            continue;
        };
        if !row.known_in(at_version) {
            errors.push(Error::forbidden(
                &at,
                format!("api {api:?} is not supported in Kubernetes version {version}"),
            ));
            continue;
        }
        if !enabled && row.remark.contains(if workerless { 'W' } else { 'R' }) {
            errors.push(Error::forbidden(&at, format!("api {api:?} cannot be disabled")));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_fg_gates_by_version() {
        let check = |gate: &str, value: bool, version: &str| {
            feature_gates(&BTreeMap::from([(gate.to_owned(), value)]), version, &Path::new("g"))
                .first()
                .map(ToString::to_string)
        };
        assert_eq!(check("AllAlpha", true, "1.36.0"), None);
        assert_eq!(
            check("Nonsense", true, "1.36.0").unwrap(),
            "g.Nonsense: Invalid value: \"Nonsense\": unknown feature gate Nonsense"
        );
        assert_eq!(
            check("AppArmor", true, "1.33.1").unwrap(),
            "g.AppArmor: Forbidden: not supported in Kubernetes version 1.33.1"
        );
        assert_eq!(check("APIServerTracing", true, "1.34.0"), None);
        assert!(
            check("APIServerTracing", false, "1.34.0")
                .unwrap()
                .contains("locked to true")
        );
        assert_eq!(check("APIServerTracing", false, "1.33.0"), None);
    }

    #[test]
    fn val_ap_plugins() {
        let plugin = |name: &str, disabled: bool| AdmissionPlugin {
            name: name.into(),
            disabled: disabled.then_some(true),
            ..AdmissionPlugin::default()
        };
        let check = |one: AdmissionPlugin, version: &str| admission_plugins(&[one], version, &Path::new("p")).len();
        assert_eq!(check(plugin("PodNodeSelector", false), "1.36.0"), 0);
        assert_eq!(check(plugin("PodSecurity", true), "1.36.0"), 1);
        assert_eq!(check(plugin("JobValidation", false), "1.35.0"), 1);
        assert_eq!(check(plugin("JobValidation", false), "1.36.0"), 0);
        assert_eq!(check(plugin("Nonsense", false), "1.36.0"), 1);
        assert_eq!(check(plugin("PodSecurity", false), "1.33."), 1);
    }

    #[test]
    fn val_rc_apis() {
        let check = |api: &str, enabled: bool, version: &str, workerless: bool| {
            runtime_config(
                &BTreeMap::from([(api.to_owned(), enabled)]),
                version,
                workerless,
                &Path::new("r"),
            )
            .len()
        };
        assert_eq!(check("batch/v1", true, "1.35.0", false), 0);
        assert_eq!(check("apps/v1", false, "1.35.0", false), 1);
        assert_eq!(check("apps/v1", false, "1.35.0", true), 0);
        assert_eq!(check("v1", false, "1.35.0", true), 1);
        assert_eq!(check("autoscaling/v2beta1", true, "1.36.0", false), 1);
        assert_eq!(check("nonsense/v1", true, "1.36.0", false), 1);
    }
}
