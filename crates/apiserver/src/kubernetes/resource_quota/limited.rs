//! Kinds that may only be made where some quota limits their number: what an operator configures of the plugin, and what of it a namespace lacks.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde::Deserialize;

use super::names;

/// The plugin's own document.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitedResources {
    /// What is limited. No kind, if there is none.
    limited_resources: Option<Vec<LimitedResource>>,
}

/// A kind that is limited.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LimitedResource {
    /// Its group; empty for the core group.
    api_group: String,
    /// Its plural name.
    resource: String,
    /// Parts of entries' names: those that contain one of them have to be in a quota.
    match_contains: Option<Vec<String>>,
    /// Scopes that have to be in a quota. Numbers of objects have no scopes, so they ask for nothing.
    match_scopes: Option<Vec<MatchScope>>,
}

/// A requirement on scopes of quotas.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct MatchScope {
    scope_name: String,
    operator: String,
    values: Option<Vec<String>>,
}

impl LimitedResources {
    /// What is wrong with the document.
    pub fn validate(&self) -> ErrorList {
        let path = Path::new("limitedResources");
        let nameless = self
            .each()
            .enumerate()
            .filter(|(_, limited)| limited.resource.is_empty());
        nameless
            .map(|(index, _)| Error::required(&path.index(index).child("resource"), ""))
            .collect()
    }

    fn each(&self) -> impl Iterator<Item = &LimitedResource> {
        self.limited_resources.iter().flatten()
    }

    /// The entries that quotas have to have, so that an object of a kind may be made.
    pub(super) fn demanded(&self, group: &str, resource: &str) -> BTreeSet<String> {
        let parts: Vec<&String> = self
            .each()
            .filter(|limited| limited.api_group == group && limited.resource == resource)
            .flat_map(|limited| limited.match_contains.iter().flatten())
            .collect();
        let demanded = |name: &String| parts.iter().any(|part| name.contains(part.as_str()));
        names(group, resource).into_iter().filter(demanded).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(limited: &serde_json::Value) -> LimitedResources {
        serde_json::from_value(json!({"limitedResources": limited})).unwrap()
    }

    #[test]
    fn parts_of_names_demand_entries() {
        let limited = read(&json!([
            {"apiGroup": "core.gardener.cloud", "resource": "shoots", "matchContains": ["shoots.", "cpu"]},
            {"resource": "secrets", "matchContains": ["secrets"]},
            {"resource": "configmaps", "matchContains": ["count/"]},
            {"resource": "services", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
        ]));
        for (group, resource, entries) in [
            (
                "core.gardener.cloud",
                "shoots",
                vec!["count/shoots.core.gardener.cloud"],
            ),
            ("", "shoots", vec![]),
            ("", "secrets", vec!["count/secrets", "secrets"]),
            ("", "configmaps", vec!["count/configmaps"]),
            ("", "services", vec![]),
        ] {
            let demanded = limited.demanded(group, resource);
            assert!(demanded.iter().eq(&entries), "{resource}: {demanded:?}");
        }
        for nothing in [json!(null), json!([]), json!([{"resource": "secrets"}])] {
            assert!(read(&nothing).demanded("", "secrets").is_empty(), "{nothing}");
        }
    }

    #[test]
    fn what_is_limited_has_a_name() {
        let errors = read(&json!([{"resource": "secrets"}, {"apiGroup": "a"}])).validate();
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["limitedResources[1].resource: Required value"]);
    }
}
