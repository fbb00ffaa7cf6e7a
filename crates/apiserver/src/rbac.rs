//! Role-based access control on the cluster's own Roles and bindings.

pub(crate) mod escalation;

use std::sync::Arc;

use gardener_apimachinery::field::{aggregate, go_quote};
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use serde::Deserialize;

use crate::authz::{Attributes, Authorizer, Decision, Unresolved};
use crate::cluster::LogicalCluster;
use crate::object::{self, Head};
use crate::user::UserInfo;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The authorizer.
pub struct Rbac;

#[derive(Deserialize)]
struct Role {
    #[serde(default)]
    rules: Option<Vec<PolicyRule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
    role_ref: RoleRef,
}

impl Authorizer for Rbac {
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let visited = visit_rules(cluster, attributes.user, attributes.namespace, &mut |rule| {
            rule_allows(rule, attributes)
        });
        match visited {
            Visited { stopped: true, .. } => Decision::Allow,
            Visited { absent, .. } if absent.is_empty() => Decision::NoOpinion(String::new()),
            Visited { absent, .. } => Decision::NoOpinion(format!("RBAC: {}", aggregate(&told(&absent)))),
        }
    }

    fn rules(
        &self,
        cluster: &LogicalCluster,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<Unresolved> {
        let visited = visit_rules(cluster, user, namespace, &mut |rule| {
            visit(rule);
            false
        });
        let absent = (!visited.absent.is_empty()).then(|| Unresolved {
            why: aggregate(&told(&visited.absent)),
            is_incomplete: false,
        });
        absent.into_iter().collect()
    }
}

/// How a visit of rules ended.
#[derive(Debug, Default)]
pub struct Visited {
    /// Whether the visitor said stop.
    pub stopped: bool,
    /// Which roles are bound but not there.
    pub absent: Vec<RoleRef>,
}

/// Visits the rules that apply to a user in a namespace (and cluster-wide) until the visitor says stop.
pub fn visit_rules(
    cluster: &LogicalCluster,
    user: &UserInfo,
    namespace: &str,
    visit: &mut dyn FnMut(&PolicyRule) -> bool,
) -> Visited {
    let mut visited = Visited::default();
    visit_bindings(cluster, user, "clusterrolebindings", "", visit, &mut visited);
    if !visited.stopped && !namespace.is_empty() {
        visit_bindings(cluster, user, "rolebindings", namespace, visit, &mut visited);
    }
    visited
}

fn visit_bindings(
    cluster: &LogicalCluster,
    user: &UserInfo,
    resource: &str,
    namespace: &str,
    visit: &mut dyn FnMut(&PolicyRule) -> bool,
    visited: &mut Visited,
) {
    let Some(definition) = cluster.find(GROUP, resource) else {
        return;
    };
    for entry in cluster.entries(&definition, namespace) {
        let binding = Head::of(&entry, &definition).derive(|| object::parse::<Binding>(&entry));
        let Some(binding) = binding.as_ref() else { continue };
        if !binding
            .subjects
            .iter()
            .flatten()
            .any(|subject| subject_is(subject, user, namespace))
        {
            continue;
        }
        match rules_of(cluster, &binding.role_ref, namespace) {
            Some(rules) if rules.iter().any(&mut *visit) => {
                visited.stopped = true;
                return;
            }
            Some(_) => {}
            None => visited.absent.push(binding.role_ref.clone()),
        }
    }
}

/// How upstream's authorizer tells that bound roles are not there.
fn told(absent: &[RoleRef]) -> Vec<String> {
    let absent = absent.iter();
    absent
        .map(|role| {
            let (kind, name) = (role.kind.to_lowercase(), go_quote(&role.name));
            format!("{kind}.{GROUP} {name} not found")
        })
        .collect()
}

/// How upstream tells which binding allows what is asked; none when none does.
pub fn reason(cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Option<String> {
    let of = |resource: &str, namespace: &str| {
        let definition = cluster.find(GROUP, resource)?;
        cluster.entries(&definition, namespace).iter().find_map(|entry| {
            let binding = Head::of(entry, &definition).derive(|| object::parse::<Binding>(entry));
            let binding = binding.as_ref().as_ref()?;
            let mut subjects = binding.subjects.iter().flatten();
            let subject = subjects.find(|subject| subject_is(subject, attributes.user, namespace))?;
            let rules = rules_of(cluster, &binding.role_ref, namespace)?;
            rules.iter().any(|rule| rule_allows(rule, attributes)).then_some(())?;
            let name = entry.key.path.rsplit('/').next().unwrap_or_default();
            let (kind, binding_name) = match namespace {
                "" => ("ClusterRoleBinding", name.to_owned()),
                namespace => ("RoleBinding", format!("{name}/{namespace}")),
            };
            let who = match (subject.kind.as_str(), subject.namespace.as_deref()) {
                ("ServiceAccount", Some(own)) if !own.is_empty() => format!("{}/{own}", subject.name),
                ("ServiceAccount", _) => format!("{}/{namespace}", subject.name),
                _ => subject.name.clone(),
            };
            let (role_kind, role) = (&binding.role_ref.kind, &binding.role_ref.name);
            Some(format!(
                "RBAC: allowed by {kind} {binding_name:?} of {role_kind} {role:?} to {} {who:?}",
                subject.kind
            ))
        })
    };
    of("clusterrolebindings", "").or_else(|| match attributes.namespace {
        "" => None,
        namespace => of("rolebindings", namespace),
    })
}

fn subject_is(subject: &Subject, user: &UserInfo, binding_namespace: &str) -> bool {
    match subject.kind.as_str() {
        "User" => subject.name == user.name,
        "Group" => user.is_in(&subject.name),
        "ServiceAccount" => {
            let namespace = subject
                .namespace
                .as_deref()
                .filter(|namespace| !namespace.is_empty())
                .unwrap_or(binding_namespace);
            user.account() == Some((namespace, subject.name.as_str()))
        }
        _ => false,
    }
}

fn rules_of(cluster: &LogicalCluster, reference: &RoleRef, namespace: &str) -> Option<Vec<PolicyRule>> {
    let (resource, namespace) = if reference.kind == "ClusterRole" {
        ("clusterroles", "")
    } else {
        ("roles", namespace)
    };
    role_rules(cluster, resource, namespace, &reference.name)
}

/// The rules of a Role or ClusterRole; `None` when there is no such role.
pub fn role_rules(cluster: &LogicalCluster, resource: &str, namespace: &str, name: &str) -> Option<Vec<PolicyRule>> {
    let definition = cluster.find(GROUP, resource)?;
    let entry = cluster.store().get(&cluster.key(&definition, namespace, name))?;
    let role: Arc<Option<Role>> = Head::of(&entry, &definition).derive(|| object::parse::<Role>(&entry));
    Some(role.as_ref().as_ref()?.rules.clone().unwrap_or_default())
}

/// Whether a list has a value, or stands for all.
pub(crate) fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|own| own == "*" || own == value)
}

/// Whether a path that is no resource's, or a pattern of some, is meant by another pattern: it may end in `*`, which stands for whatever follows.
pub(crate) fn url_covers(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|stem| path.starts_with(stem))
}

/// Whether one rule allows what is asked.
pub fn rule_allows(rule: &PolicyRule, attributes: &Attributes<'_>) -> bool {
    if !has(&rule.verbs, attributes.verb) {
        return false;
    }
    if !attributes.is_resource {
        let mut urls = rule.non_resource_urls.iter().flatten();
        return urls.any(|url| url_covers(url, attributes.path));
    }
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    has(groups, attributes.group)
        && resource_matches(
            rule.resources.as_deref().unwrap_or_default(),
            attributes.resource,
            attributes.subresource,
        )
        && (names.is_empty() || names.iter().any(|name| name == attributes.name))
}

/// Whether a rule's resources are those asked for. A resource may be told with its subresource in one, as some who ask do.
fn resource_matches(list: &[String], resource: &str, subresource: &str) -> bool {
    let is_whole = |own: &str| match subresource {
        "" => own == resource,
        _ => own
            .strip_prefix(resource)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest == subresource),
    };
    let is_any_with = |own: &str| !subresource.is_empty() && own.strip_prefix("*/") == Some(subresource);
    list.iter().any(|own| own == "*" || is_whole(own) || is_any_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> PolicyRule {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        PolicyRule {
            verbs: own(verbs),
            api_groups: Some(own(groups)),
            resources: Some(own(resources)),
            resource_names: Some(own(names)),
            non_resource_urls: None,
        }
    }

    #[test]
    fn rules_match_as_upstream() {
        let user = UserInfo::new("a", &[]);
        let ask = |verb, resource, subresource, name| Attributes {
            user: &user,
            verb,
            group: "apps",
            version: "v1",
            resource,
            subresource,
            namespace: "n",
            name,
            path: "",
            is_resource: true,
            field_selector: "",
            label_selector: "",
        };
        assert!(rule_allows(
            &rule(&["*"], &["*"], &["*"], &[]),
            &ask("get", "deployments", "scale", "x")
        ));
        assert!(!rule_allows(
            &rule(&["get"], &["apps"], &["deployments"], &[]),
            &ask("get", "deployments", "scale", "x")
        ));
        assert!(rule_allows(
            &rule(&["get"], &["apps"], &["*/scale"], &[]),
            &ask("get", "deployments", "scale", "x")
        ));
        assert!(rule_allows(
            &rule(&["get"], &["apps"], &["deployments"], &["x"]),
            &ask("get", "deployments", "", "x")
        ));
        assert!(!rule_allows(
            &rule(&["get"], &["apps"], &["deployments"], &["x"]),
            &ask("get", "deployments", "", "y")
        ));
        assert!(!rule_allows(
            &rule(&["get"], &[""], &["deployments"], &[]),
            &ask("get", "deployments", "", "y")
        ));
    }

    #[test]
    fn service_account_subjects_default_to_the_bindings_namespace() {
        let user = UserInfo::service_account("ns", "sa", "");
        let subject = |namespace: Option<&str>| Subject {
            kind: "ServiceAccount".into(),
            name: "sa".into(),
            namespace: namespace.map(str::to_owned),
            api_group: None,
        };
        assert!(subject_is(&subject(Some("ns")), &user, ""));
        assert!(subject_is(&subject(None), &user, "ns"));
        assert!(!subject_is(&subject(Some("other")), &user, "ns"));
    }
}
