//! What kube-apiserver says of an audit policy (`audit.k8s.io/v1`).

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apis::validation::shown;
use serde::Deserialize;

const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];
const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];

/// `Policy`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Policy {
    rules: Vec<Rule>,
    omit_stages: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    level: String,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// All that is wrong with it.
pub(super) fn validate(policy: &Policy) -> ErrorList {
    let mut errors = stages(&policy.omit_stages, &Path::new("omitStages"));
    for (i, own) in policy.rules.iter().enumerate() {
        errors.extend(rule(own, &Path::new("rules").index(i)));
    }
    errors
}

fn stages(stages: &[String], path: &Path) -> ErrorList {
    let unknown = stages
        .iter()
        .enumerate()
        .filter(|(_, own)| !STAGES.contains(&own.as_str()));
    let why = format!("allowed stages are {}", STAGES.join(","));
    unknown
        .map(|(i, own)| Error::invalid(&path.index(i), own.as_str(), why.as_str()))
        .collect()
}

fn rule(rule: &Rule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let level = path.child("level");
    if rule.level.is_empty() {
        errors.push(Error::required(&level, ""));
    } else if !LEVELS.contains(&rule.level.as_str()) {
        errors.push(Error::not_supported(&level, rule.level.as_str(), &LEVELS));
    }
    let urls = path.child("nonResourceURLs");
    for (i, url) in rule.non_resource_urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        if !url.starts_with('/') {
            let why = "non-resource URL rules must begin with a '/' character";
            errors.push(Error::invalid(&urls.index(i), url.as_str(), why));
        }
        if url.strip_suffix('*').unwrap_or(url).contains('*') {
            let why = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(Error::invalid(&urls.index(i), url.as_str(), why));
        }
    }
    // as with kube-apiserver, it is not told which of them it is
    let resources = path.child("resources");
    for own in &rule.resources {
        if !own.group.is_empty() && own.group != "*" {
            let wrong = names::dns_subdomain(&own.group);
            if !wrong.is_empty() {
                let path = resources.child("group");
                errors.push(Error::invalid(&path, own.group.as_str(), wrong.join(",")));
            }
        }
        if !own.resource_names.is_empty() && own.resources.is_empty() {
            let why = "using resourceNames requires at least one resource";
            let path = resources.child("resourceNames");
            errors.push(Error::invalid(&path, shown(&own.resource_names), why));
        }
    }
    errors.extend(stages(&rule.omit_stages, &path.child("omitStages")));
    let regular = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if regular && !rule.non_resource_urls.is_empty() {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(Error::invalid(&urls, shown(&rule.non_resource_urls), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_73_what_a_policy_may_say() {
        let check = |text: &str| -> Vec<String> {
            let policy: Policy = serde_saphyr::from_str(text).unwrap();
            validate(&policy).iter().map(ToString::to_string).collect()
        };
        let good = "omitStages: [RequestReceived]\nrules:\n- level: None\n  nonResourceURLs: ['*', /healthz*]\n- level: Metadata\n  resources: [{group: '', resources: [secrets], resourceNames: [a]}, {group: '*'}]\n";
        assert!(check(good).is_empty(), "{:?}", check(good));
        for (text, why) in [
            (
                "omitStages: [x]",
                "omitStages[0]: Invalid value: \"x\": allowed stages are RequestReceived,",
            ),
            ("rules: [{}]", "rules[0].level: Required value"),
            ("rules: [{level: Most}]", "rules[0].level: Unsupported value: \"Most\""),
            ("rules: [{level: None, nonResourceURLs: [x]}]", "must begin with a '/'"),
            (
                "rules: [{level: None, nonResourceURLs: [/a*b]}]",
                "must be the final character",
            ),
            (
                "rules: [{level: None, resources: [{group: a/v1}]}]",
                "rules[0].resources.group: Invalid value",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "requires at least one resource",
            ),
            (
                "rules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]",
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
        ] {
            let found = check(text);
            assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
        }
    }
}
