//! Feature gates, admission plugins and APIs that Kubernetes versions know, [VAL-FG], [VAL-AP], [VAL-RC].

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};

use super::super::AdmissionPlugin;
use super::pod_security;
use crate::versions;

/// What is said where a version is none.
const NO_VERSION: &str = "invalid semantic version";

const GATES: &str = include_str!("tables/feature_gates.txt");
const PLUGINS: &str = include_str!("tables/admission_plugins.txt");
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

/// The rows of a table, by what they are about.
fn rows(table: &str) -> impl Iterator<Item = (&str, Row<'_>)> {
    table.lines().filter_map(|line| {
        let mut fields = line.split('|');
        let name = fields.next()?;
        let row = Row {
            added: fields.next().and_then(minor),
            removed: fields.next().and_then(minor),
            remark: fields.next().unwrap_or_default(),
        };
        Some((name, row))
    })
}

fn row<'a>(table: &'a str, name: &str) -> Option<Row<'a>> {
    rows(table).find_map(|(found, row)| (found == name).then_some(row))
}

impl Row<'_> {
    /// The versions of Kubernetes, in words.
    fn range(&self) -> String {
        let from = self.added.map(|added| format!("versions >= 1.{added}"));
        match (from, self.removed) {
            (Some(from), Some(removed)) => format!("{from}, < 1.{removed}"),
            (Some(from), None) => from,
            (None, Some(removed)) => format!("versions < 1.{removed}"),
            (None, None) => "all kubernetes versions".to_owned(),
        }
    }

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
    row(PLUGINS, name).is_some_and(|row| row.known_in(minor))
}

/// Checks that gates exist in a version and are not locked at the other value.
pub(super) fn feature_gates(gates: &BTreeMap<String, bool>, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
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
        let Some(at_version) = versions::minor(version) else {
            errors.push(Error::invalid(&at, gate.as_str(), NO_VERSION));
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

/// Checks a list of admission plugins for a version.
pub(super) fn admission_plugins(plugins: &[AdmissionPlugin], version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(at_version) = versions::minor(version) else {
        errors.push(Error::internal(path, NO_VERSION));
        return errors;
    };
    for (i, plugin) in plugins.iter().enumerate() {
        let at = path.index(i);
        let name = plugin.name.as_str();
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a name"));
            return errors;
        }
        let Some(row) = row(PLUGINS, name) else {
            errors.push(Error::invalid(
                &at.child("name"),
                name,
                format!("unknown admission plugin {name:?}"),
            ));
            continue;
        };
        if !row.known_in(at_version) {
            errors.push(Error::forbidden(
                &at.child("name"),
                format!("admission plugin {name:?} is not supported in Kubernetes version {version}"),
            ));
            continue;
        }
        if plugin.config.is_some() && !row.remark.contains('C') {
            errors.push(Error::forbidden(
                &at.child("config"),
                format!("admission plugin {name:?} does not allow configuration"),
            ));
        }
        if plugin.disabled == Some(true) && row.remark.contains('R') {
            errors.push(Error::forbidden(
                &at,
                format!("admission plugin {name:?} cannot be disabled"),
            ));
        }
        if plugin.kubeconfig_secret_name.is_some() && !row.remark.contains('K') {
            errors.push(Error::forbidden(
                &at.child("kubeconfigSecretName"),
                format!("admission plugin {name:?} does not allow specifying external kubeconfig"),
            ));
        }
        if let Some(config) = plugin.config.as_ref().filter(|_| name == "PodSecurity") {
            errors.extend(pod_security::configuration(config, &at.child("config")));
        }
    }
    errors
}

/// Checks the switches of APIs for a version. What cannot do without a resource cannot do without its version either, and the other way round.
pub(super) fn runtime_config(apis: &BTreeMap<String, bool>, version: &str, workerless: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (api, enabled) in apis {
        let at = path.key(api);
        let (group_version, is_resource) = match api.split('/').collect::<Vec<_>>().as_slice() {
            ["v1", _] | [_, _, _] => (
                api.rsplit_once('/')
                    .map_or(api.as_str(), |(group_version, _)| group_version),
                true,
            ),
            [_] | [_, _] => (api.as_str(), false),
            _ => {
                let why = format!("invalid API Group format {}", go_quote(api));
                errors.push(Error::invalid(&at, api.as_str(), why));
                continue;
            }
        };
        let Some(own) = row(APIS, api) else {
            let what = match is_resource {
                true => "unknown API group version resource",
                false => "unknown API group version",
            };
            let why = format!("{what} {}", go_quote(api));
            errors.push(Error::invalid(&at, api.as_str(), why));
            continue;
        };
        let Some(at_version) = versions::minor(version) else {
            errors.push(Error::invalid(&at, api.as_str(), NO_VERSION));
            continue;
        };
        if !own.known_in(at_version) {
            let why = format!(
                "api {api:?} is not supported in Kubernetes version {version}, only supported in {}",
                own.range()
            );
            errors.push(Error::forbidden(&at, why));
            continue;
        }
        if *enabled {
            continue;
        }
        let (needed, whose) = match workerless {
            true => ('W', " for workerless clusters"),
            false => ('R', ""),
        };
        let is_needed = |row: &Row<'_>| row.remark.contains(needed);
        let missed: Vec<&str> = match is_resource {
            _ if is_needed(&own) => vec![api.as_str()],
            true => row(APIS, group_version)
                .filter(is_needed)
                .map(|_| group_version)
                .into_iter()
                .collect(),
            false => rows(APIS)
                .filter(|(name, row)| is_resource_of(name, group_version) && is_needed(row))
                .map(|(name, _)| name)
                .collect(),
        };
        errors.extend(missed.into_iter().map(|missed| {
            let why = format!("api {missed:?} cannot be disabled{whose}");
            Error::forbidden(&at, why)
        }));
    }
    errors
}

/// Whether an API is a resource of a group's version.
fn is_resource_of(api: &str, group_version: &str) -> bool {
    let resource = api.strip_prefix(group_version);
    resource.is_some_and(|resource| resource.starts_with('/'))
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
        let configured = |name: &str| AdmissionPlugin {
            config: Some(serde_json::json!({})),
            ..plugin(name, false)
        };
        let told = |one: AdmissionPlugin| {
            let errors = admission_plugins(&[one], "1.33.0", &Path::new("p"));
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told(configured("PodNodeSelector")), [""; 0]);
        assert_eq!(
            told(configured("Priority")),
            ["p[0].config: Forbidden: admission plugin \"Priority\" does not allow configuration"]
        );
        assert_eq!(told(configured("PodSecurity")).len(), 1, "it is read");
    }

    /// Answers of gardener-apiserver.
    #[test]
    fn val_rc_apis() {
        let check = |api: &str, enabled: bool, version: &str, workerless: bool| {
            let apis = BTreeMap::from([(api.to_owned(), enabled)]);
            let errors = runtime_config(&apis, version, workerless, &Path::new("r"));
            errors.iter().map(Error::body).collect::<Vec<_>>().join("; ")
        };
        let version = "1.33.0";
        for (api, enabled, workerless, expected) in [
            ("batch/v1", true, false, ""),
            ("batch/v1", false, false, ""),
            ("apps/v1", false, false, "Forbidden: api \"apps/v1\" cannot be disabled"),
            ("apps/v1", false, true, ""),
            ("v1", false, false, "Forbidden: api \"v1\" cannot be disabled"),
            (
                "v1",
                false,
                true,
                "Forbidden: api \"v1\" cannot be disabled for workerless clusters",
            ),
            (
                "v1/pods",
                false,
                true,
                "Forbidden: api \"v1\" cannot be disabled for workerless clusters",
            ),
            (
                "storage.k8s.io/v1/csinodes",
                false,
                false,
                "Forbidden: api \"storage.k8s.io/v1\" cannot be disabled",
            ),
            ("storage.k8s.io/v1/csinodes", false, true, ""),
            (
                "autoscaling/v2",
                false,
                false,
                "Forbidden: api \"autoscaling/v2/horizontalpodautoscalers\" cannot be disabled",
            ),
            (
                "discovery.k8s.io/v1",
                false,
                true,
                "Forbidden: api \"discovery.k8s.io/v1/endpointslices\" cannot be disabled for workerless clusters",
            ),
            (
                "resource.k8s.io/v1",
                true,
                false,
                "Forbidden: api \"resource.k8s.io/v1\" is not supported in Kubernetes version 1.33.0, only supported in versions >= 1.34",
            ),
            (
                "nonsense/v1",
                true,
                false,
                "Invalid value: \"nonsense/v1\": unknown API group version \"nonsense/v1\"",
            ),
            (
                "api/all",
                false,
                false,
                "Invalid value: \"api/all\": unknown API group version \"api/all\"",
            ),
            (
                "apps/v1/foo",
                true,
                false,
                "Invalid value: \"apps/v1/foo\": unknown API group version resource \"apps/v1/foo\"",
            ),
            (
                "v1/foo",
                true,
                false,
                "Invalid value: \"v1/foo\": unknown API group version resource \"v1/foo\"",
            ),
            (
                "a/b/c/d",
                true,
                false,
                "Invalid value: \"a/b/c/d\": invalid API Group format \"a/b/c/d\"",
            ),
        ] {
            assert_eq!(check(api, enabled, version, workerless), expected, "{api}");
        }
        assert_eq!(
            check("apps/v1", true, "one", false),
            "Invalid value: \"apps/v1\": invalid semantic version"
        );
    }
}
