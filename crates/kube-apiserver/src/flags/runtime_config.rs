//! `--runtime-config`: which of the built-in APIs are served, as upstream reads it.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::meta::parse_bool;

/// Groups and versions that kube-apiserver knows, whether it serves them or not.
const REGISTERED: [(&str, &[&str]); 26] = [
    ("", &["v1"]),
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];

/// Versions without which the server cannot do its work, or which it serves apart from others.
const NEEDED: [(&str, &str); 5] = [
    ("", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
];

/// Names of many versions at once, the weakest first.
const MANY: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

/// What of the built-in APIs is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// By the names of [`MANY`].
    many: BTreeMap<&'static str, bool>,
    /// By group and version.
    versions: BTreeMap<(String, String), bool>,
    /// By group, version and resource.
    resources: BTreeMap<(String, String, String), bool>,
}

impl RuntimeConfig {
    /// Reads pairs of an API and whether it is wanted.
    ///
    /// # Errors
    /// What is wrong with them, in upstream's words where it has some.
    pub fn read(pairs: &[String]) -> Result<Self, Vec<String>> {
        let mut wanted: BTreeMap<String, String> = BTreeMap::new();
        for pair in pairs.iter().filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = match key.trim() {
                "api/legacy" => continue,
                "v1" | "api/v1" => "/v1",
                key if key.starts_with("v1/") || key.starts_with("api/v1/") => "/v1",
                key => key,
            };
            wanted.insert(key.to_owned(), value.trim().to_owned());
        }
        if wanted.len() == 1 && wanted.get("api/all").is_some_and(|value| value == "false") {
            return Err(vec!["invalid runtime-config with only api/all=false".to_owned()]);
        }
        let mut config = Self::default();
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        let mut errors = Vec::new();
        for (key, value) in &wanted {
            match config.add(key, value) {
                Ok(()) => {}
                Err(Refusal::UnknownGroup(version)) => {
                    unknown.insert(version);
                }
                Err(Refusal::Invalid(why)) => errors.push(why),
            }
        }
        if !unknown.is_empty() {
            let unknown: Vec<String> = unknown.into_iter().collect();
            errors.push(format!("unknown api groups {}", unknown.join(",")));
        }
        if errors.is_empty() {
            errors = config.conflicts();
        }
        match errors.is_empty() {
            true => Ok(config),
            false => Err(errors),
        }
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        if let Some(many) = MANY.into_iter().find(|own| *own == key) {
            let value = match value {
                "true" => true,
                "false" => false,
                other => return Err(Refusal::Invalid(format!("invalid value {key}={other}"))),
            };
            self.many.insert(many, value);
            return Ok(());
        }
        let parts: Vec<&str> = key.split('/').collect();
        let (group, version, resource) = match parts.as_slice() {
            [group, version] => (*group, *version, None),
            [group, version, resource] => (*group, *version, Some(*resource)),
            _ => return Err(Refusal::Invalid(format!("runtime-config invalid key {key}"))),
        };
        let registered = REGISTERED.iter().find(|(own, _)| *own == group);
        let Some((_, versions)) = registered else {
            return Err(Refusal::UnknownGroup(format!("{group}/{version}")));
        };
        if !versions.contains(&version) {
            return Err(Refusal::Invalid(format!(
                "group version {group}/{version} that has not been registered"
            )));
        }
        let is_wanted = match value {
            "" => true,
            text => parse_bool(text).ok_or_else(|| {
                let syntax = format!("strconv.ParseBool: parsing {}: invalid syntax", go_quote(text));
                Refusal::Invalid(format!("invalid value of {key}: {text}, err: {syntax}"))
            })?,
        };
        let version = (group.to_owned(), version.to_owned());
        let Some(resource) = resource else {
            self.versions.insert(version, is_wanted);
            return Ok(());
        };
        if resource.to_lowercase() != resource {
            let why = "group/version/resource and resource is always lowercase plural";
            let told = go_quote(resource);
            return Err(Refusal::Invalid(format!("invalid key {key}: {why}, not {told}")));
        }
        self.resources
            .insert((version.0, version.1, resource.to_owned()), is_wanted);
        Ok(())
    }

    /// What is switched off that must be there.
    fn conflicts(&self) -> Vec<String> {
        const FAIRNESS: (&str, &str) = ("flowcontrol.apiserver.k8s.io", "v1");
        let mut errors: Vec<String> = NEEDED
            .iter()
            .filter(|(group, version)| !self.serves_version(group, version))
            .map(|(group, version)| {
                format!("--runtime-config: {group}/{version} cannot be switched off, for the server needs it")
            })
            .collect();
        let partly = self.resources.iter().filter(|(_, wanted)| !**wanted);
        let partly = partly.filter(|((group, version, _), _)| NEEDED.contains(&(group, version)));
        errors.extend(partly.map(|((group, version, resource), _)| {
            format!("--runtime-config: {group}/{version}/{resource} cannot be switched off, for the server needs it")
        }));
        if !self.serves_version(FAIRNESS.0, FAIRNESS.1) {
            let version = self.versions.get(&(FAIRNESS.0.to_owned(), FAIRNESS.1.to_owned()));
            let named = match (version, self.many.get("api/ga")) {
                (Some(false), _) => "flowcontrol.apiserver.k8s.io/v1",
                (_, Some(false)) => "api/ga",
                _ => "api/all",
            };
            errors.push(format!(
                "--runtime-config={named}=false conflicts with --enable-priority-and-fairness=true"
            ));
        }
        errors
    }

    /// What is said of many versions of which this is one; nothing unless something is.
    fn said_of_many(&self, version: &str) -> Option<bool> {
        let is_one = |name: &str| match name {
            "api/ga" => stability(version) == Some(""),
            "api/beta" => stability(version) == Some("beta"),
            "api/alpha" => stability(version) == Some("alpha"),
            _ => true,
        };
        let said = MANY.iter().filter(|name| is_one(name));
        said.filter_map(|name| self.many.get(name)).next_back().copied()
    }

    fn serves_version(&self, group: &str, version: &str) -> bool {
        let named = self.versions.get(&(group.to_owned(), version.to_owned())).copied();
        named.or_else(|| self.said_of_many(version)).unwrap_or(true)
    }

    /// Whether a resource is served that is served unless somebody says otherwise.
    pub fn serves(&self, group: &str, version: &str, resource: &str) -> bool {
        let key = (group.to_owned(), version.to_owned(), resource.to_owned());
        let named = self.resources.get(&key).copied();
        named.unwrap_or_else(|| self.serves_version(group, version))
    }

    /// Groups and versions that are asked for by their names.
    pub fn asked(&self) -> BTreeSet<(&str, &str)> {
        let versions = self.versions.iter().filter(|(_, wanted)| **wanted);
        let versions = versions.map(|((group, version), _)| (group.as_str(), version.as_str()));
        let resources = self.resources.iter().filter(|(_, wanted)| **wanted);
        let resources = resources.map(|((group, version, _), _)| (group.as_str(), version.as_str()));
        versions.chain(resources).collect()
    }
}

/// Why a pair is not understood.
enum Refusal {
    UnknownGroup(String),
    Invalid(String),
}

/// `beta` of `v1beta2`, nothing of `v1`; none of what is no such version.
fn stability(version: &str) -> Option<&str> {
    let rest = version.strip_prefix('v')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let behind = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let number = rest.strip_suffix(behind)?;
    if !is_number(number) {
        return None;
    }
    let word = behind.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let second = behind.strip_prefix(word)?;
    (word.is_empty() || is_number(second)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RuntimeConfig, Vec<String>> {
        let pairs: Vec<String> = text.split(',').map(str::to_owned).collect();
        RuntimeConfig::read(&pairs)
    }

    #[test]
    fn the_narrower_wish_counts() {
        let table = [
            ("", "apps", "v1", "deployments", true),
            ("api/all=true", "apps", "v1", "deployments", true),
            ("apps/v1=false", "apps", "v1", "deployments", false),
            ("apps/v1=false", "batch", "v1", "jobs", true),
            (
                "apps/v1=false,apps/v1/deployments=true",
                "apps",
                "v1",
                "deployments",
                true,
            ),
            (
                "apps/v1=false,apps/v1/deployments=true",
                "apps",
                "v1",
                "daemonsets",
                false,
            ),
            ("apps/v1/deployments=0", "apps", "v1", "deployments", false),
            ("apps/v1/deployments=0", "apps", "v1", "daemonsets", true),
            (
                "autoscaling/v1=f",
                "autoscaling",
                "v2",
                "horizontalpodautoscalers",
                true,
            ),
            ("api/beta=false", "apps", "v1", "deployments", true),
            (
                "api/beta=false,networking.k8s.io/v1beta1",
                "networking.k8s.io",
                "v1beta1",
                "x",
                true,
            ),
            (
                "api/beta=false,api/all=true",
                "networking.k8s.io",
                "v1beta1",
                "x",
                false,
            ),
            ("api/legacy=false,v1=true", "", "v1", "pods", true),
        ];
        for (text, group, version, resource, expected) in table {
            let config = read(text).unwrap();
            assert_eq!(config.serves(group, version, resource), expected, "{text}");
        }
        let asked = read("resource.k8s.io/v1beta1=true,storage.k8s.io/v1beta1/x=true,apps/v1=false").unwrap();
        let expected = [("resource.k8s.io", "v1beta1"), ("storage.k8s.io", "v1beta1")];
        assert_eq!(asked.asked().into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_cannot_be_followed_is_told() {
        let table = [
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            ("api/beta=yes", "invalid value api/beta=yes"),
            ("nothing=true", "runtime-config invalid key nothing"),
            ("a/v1=true,b/v1=true", "unknown api groups a/v1,b/v1"),
            (
                "batch/v2alpha1=true",
                "group version batch/v2alpha1 that has not been registered",
            ),
            (
                "batch/v1=no",
                r#"invalid value of batch/v1: no, err: strconv.ParseBool: parsing "no": invalid syntax"#,
            ),
            (
                "batch/v1/Jobs=true",
                r#"invalid key batch/v1/Jobs: group/version/resource and resource is always lowercase plural, not "Jobs""#,
            ),
            (
                "v1=false",
                "--runtime-config: /v1 cannot be switched off, for the server needs it",
            ),
            (
                "apiregistration.k8s.io/v1/apiservices=false",
                "--runtime-config: apiregistration.k8s.io/v1/apiservices cannot be switched off, for the server needs it",
            ),
            (
                "flowcontrol.apiserver.k8s.io/v1=false",
                "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).unwrap_err(), [expected], "{text}");
        }
        assert!(read("api/ga=false").unwrap_err().len() > NEEDED.len());
    }

    #[test]
    fn versions_say_how_stable_they_are() {
        let table = [
            ("v1", Some("")),
            ("v1beta2", Some("beta")),
            ("v2alpha1", Some("alpha")),
            ("v", None),
            ("v1beta", None),
            ("internal", None),
        ];
        for (version, expected) in table {
            assert_eq!(stability(version), expected, "{version}");
        }
    }
}
