//! Who may give which rights away: nobody more than they have, unless they may `escalate` roles or `bind` to them.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{aggregate, go_quote};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::{GROUP, url_covers};
use crate::definition::Context;
use crate::meta;

/// Refuses a role whose rules its writer does not have. `old` is the role before.
///
/// # Errors
/// 403 that names what the writer lacks.
pub(crate) fn check_role(
    context: &Context<'_>,
    resource: &str,
    role: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let (namespace, name) = (meta::namespace(role), meta::name(role));
    let may = |verb: &str| {
        context
            .lister
            .allowed(context.user, verb, GROUP, resource, namespace, name)
    };
    if context.user.is_master() || old.is_some_and(|old| only_ends(role, old)) || may("escalate") {
        return Ok(());
    }
    let mut rules = rules_of(role.get("rules"));
    if role.get("aggregationRule").is_some_and(Value::is_object) {
        rules = everything();
        if lacking(context, namespace, &rules).is_some() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(ApiError::forbidden(GROUP, resource, name, why));
        }
    }
    refuse(context, resource, name, namespace, &rules)
}

/// Refuses a binding to a role whose rules its writer does not have. `old` is the binding before.
///
/// # Errors
/// 403 that names what the writer lacks, 404 for a role that is not there.
pub(crate) fn check_binding(
    context: &Context<'_>,
    resource: &str,
    binding: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if context.user.is_master() || old.is_some_and(|old| only_ends(binding, old)) {
        return Ok(());
    }
    let (namespace, role) = (meta::namespace(binding), meta::text(binding, "/roleRef/name"));
    let (roles, of_role) = match meta::text(binding, "/roleRef/kind") {
        "ClusterRole" => ("clusterroles", ""),
        _ => ("roles", namespace),
    };
    if context
        .lister
        .allowed(context.user, "bind", GROUP, roles, namespace, role)
    {
        return Ok(());
    }
    let Some(found) = context.lister.get(GROUP, roles, of_role, role) else {
        return Err(ApiError::not_found(GROUP, resource, role));
    };
    let rules = rules_of(found.get("rules"));
    refuse(context, resource, meta::name(binding), namespace, &rules)
}

/// Whether nothing changes but what lets the object end: owners, finalizers, and who wrote them.
fn only_ends(object: &Value, old: &Value) -> bool {
    let reduced = |object: &Value| {
        let mut object = object.clone();
        for key in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            meta::set(&mut object, key, None);
        }
        object
    };
    reduced(object) == reduced(old)
}

fn rules_of(rules: Option<&Value>) -> Vec<PolicyRule> {
    rules
        .and_then(|rules| serde_json::from_value(rules.clone()).ok())
        .unwrap_or_default()
}

fn everything() -> Vec<PolicyRule> {
    let all = || vec!["*".to_owned()];
    vec![
        PolicyRule {
            api_groups: Some(all()),
            resources: Some(all()),
            verbs: all(),
            ..PolicyRule::default()
        },
        PolicyRule {
            non_resource_urls: Some(all()),
            verbs: all(),
            ..PolicyRule::default()
        },
    ]
}

fn refuse(
    context: &Context<'_>,
    resource: &str,
    name: &str,
    namespace: &str,
    rules: &[PolicyRule],
) -> Result<(), ApiError> {
    let Some(lacking) = lacking(context, namespace, rules) else {
        return Ok(());
    };
    let groups: Vec<String> = context.user.groups.iter().map(|group| go_quote(group)).collect();
    let why = format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{lacking}",
        go_quote(&context.user.name),
        groups.join(" ")
    );
    Err(ApiError::forbidden(GROUP, resource, name, &why))
}

/// What of these rules the user does not have, a line per rule; none when they have all.
fn lacking(context: &Context<'_>, namespace: &str, rules: &[PolicyRule]) -> Option<String> {
    let (own, absent) = context.lister.rules_for(context.user, namespace);
    let missing: Vec<PolicyRule> = rules
        .iter()
        .flat_map(single_rules)
        .filter(|wanted| !own.iter().any(|own| covers(own, wanted)))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = compacted(missing).iter().map(shown).collect();
    let mut lacking = lines.into_iter().collect::<Vec<_>>().join("\n");
    if !absent.is_empty() {
        // who looks them up here has other words than the authorizer
        let absent = absent.iter().map(|role| {
            let (kind, name) = (role.kind.to_lowercase(), go_quote(&role.name));
            format!("{kind}s.{GROUP} {name} not found")
        });
        let absent: Vec<String> = absent.collect();
        lacking.push_str(&format!("; resolution errors: [{}]", aggregate(&absent)));
    }
    Some(lacking)
}

/// A rule as rules about one verb of one resource or URL each.
fn single_rules(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut single = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                let of_name = |name: Option<&String>| PolicyRule {
                    api_groups: Some(vec![group.clone()]),
                    resources: Some(vec![resource.clone()]),
                    verbs: vec![verb.clone()],
                    resource_names: name.map(|name| vec![name.clone()]),
                    non_resource_urls: None,
                };
                let names = rule.resource_names.as_deref().unwrap_or_default();
                if names.is_empty() {
                    single.push(of_name(None));
                }
                single.extend(names.iter().map(|name| of_name(Some(name))));
            }
        }
    }
    for url in rule.non_resource_urls.iter().flatten() {
        single.extend(rule.verbs.iter().map(|verb| PolicyRule {
            non_resource_urls: Some(vec![url.clone()]),
            verbs: vec![verb.clone()],
            ..PolicyRule::default()
        }));
    }
    single
}

/// Whether a rule allows all that a single rule does.
fn covers(own: &PolicyRule, wanted: &PolicyRule) -> bool {
    let all = |own: &[String], wanted: Option<&Vec<String>>| {
        let has_all = own.iter().any(|own| own == "*");
        has_all || wanted.into_iter().flatten().all(|wanted| own.contains(wanted))
    };
    let part = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let resources = part(&own.resources);
    let names = part(&own.resource_names);
    let resource_is_covered = |wanted: &String| {
        let of_all = |sub: &str| resources.contains(&format!("*/{sub}"));
        resources.iter().any(|own| own == "*" || own == wanted)
            || wanted.split_once('/').is_some_and(|(_, sub)| of_all(sub))
    };
    let url_is_covered = |wanted: &String| {
        let mut urls = own.non_resource_urls.iter().flatten();
        urls.any(|own| url_covers(own, wanted))
    };
    let names_are_covered = match &wanted.resource_names {
        _ if names.is_empty() => true,
        None => false,
        Some(wanted) => wanted.iter().all(|wanted| names.contains(wanted)),
    };
    all(&own.verbs, Some(&wanted.verbs))
        && all(&part(&own.api_groups), wanted.api_groups.as_ref())
        && wanted.resources.iter().flatten().all(resource_is_covered)
        && names_are_covered
        && wanted.non_resource_urls.iter().flatten().all(url_is_covered)
}

/// The same rights in fewer rules: verbs of one resource stand together.
fn compacted(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    type Subject = (Option<Vec<String>>, Option<Vec<String>>, Option<Vec<String>>);
    let mut by_resource: BTreeMap<Subject, PolicyRule> = BTreeMap::new();
    let mut others = Vec::new();
    for rule in rules {
        if rule.non_resource_urls.is_some() {
            others.push(rule);
            continue;
        }
        let subject = (
            rule.api_groups.clone(),
            rule.resources.clone(),
            rule.resource_names.clone(),
        );
        match by_resource.get_mut(&subject) {
            None => drop(by_resource.insert(subject, rule)),
            Some(known) => {
                let new: Vec<String> = rule
                    .verbs
                    .into_iter()
                    .filter(|verb| !known.verbs.contains(verb))
                    .collect();
                known.verbs.extend(new);
            }
        }
    }
    others.extend(by_resource.into_values());
    others
}

/// A rule as upstream tells it.
fn shown(rule: &PolicyRule) -> String {
    let verbs = Some(rule.verbs.clone());
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &verbs),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, list)| Some((name, list.as_ref().filter(|list| !list.is_empty())?)))
        .map(|(name, list)| {
            let quoted: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
            format!("{name}:[{}]", quoted.join(" "))
        })
        .collect();
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
        let list = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(list(groups)),
            resources: Some(list(resources)),
            resource_names: (!names.is_empty()).then(|| list(names)),
            verbs: list(verbs),
            non_resource_urls: None,
        }
    }

    #[test]
    fn what_covers_what() {
        for (own, wanted, expected) in [
            (
                rule(&["*"], &["*"], &[], &["*"]),
                rule(&["a"], &["b"], &["c"], &["get"]),
                true,
            ),
            (
                rule(&["a"], &["b"], &[], &["get"]),
                rule(&["a"], &["b"], &["c"], &["get"]),
                true,
            ),
            (
                rule(&["a"], &["b"], &["c"], &["get"]),
                rule(&["a"], &["b"], &[], &["get"]),
                false,
            ),
            (
                rule(&["a"], &["b"], &["c"], &["get"]),
                rule(&["a"], &["b"], &["d"], &["get"]),
                false,
            ),
            (
                rule(&["a"], &["*/log"], &[], &["get"]),
                rule(&["a"], &["b/log"], &[], &["get"]),
                true,
            ),
            (
                rule(&["a"], &["b"], &[], &["get"]),
                rule(&["a"], &["b/log"], &[], &["get"]),
                false,
            ),
            (
                rule(&["a"], &["b"], &[], &["get"]),
                rule(&["a"], &["b"], &[], &["list"]),
                false,
            ),
        ] {
            assert_eq!(covers(&own, &wanted), expected, "{own:?} {wanted:?}");
        }
    }

    #[test]
    fn what_is_missing_is_told_in_few_lines() {
        let rules = single_rules(&rule(&["", "apps"], &["pods"], &["x"], &["get", "list"]));
        let lines: Vec<String> = compacted(rules).iter().map(shown).collect();
        assert_eq!(
            lines,
            [
                "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"x\"], Verbs:[\"get\" \"list\"]}",
                "{APIGroups:[\"apps\"], Resources:[\"pods\"], ResourceNames:[\"x\"], Verbs:[\"get\" \"list\"]}",
            ]
        );
    }
}
