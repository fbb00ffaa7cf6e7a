//! Roles and bindings of a project's members `[AUTH-50]`–`[AUTH-52]`.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::{Project, ProjectMember};
use gardener_controller::Read;
use gardener_controller::apply;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, ResourceExt};

use super::{own_by, owner};
use crate::Config;
use crate::manager::ReconcileError;

const GROUP: &str = "rbac.authorization.k8s.io";
/// The stem of the names of all roles.
const STEM: &str = "gardener.cloud:system:project";

fn subject(member: &ProjectMember) -> Subject {
    let group = if member.kind == "ServiceAccount" {
        None
    } else {
        member.api_group.clone().or_else(|| Some(GROUP.to_owned()))
    };
    Subject {
        api_group: group,
        kind: member.kind.clone(),
        name: member.name.clone(),
        namespace: member.namespace.clone(),
    }
}

/// Members with one of the given roles, each once, in the order of the project. Costs n log n for n members.
fn members(project: &Project, roles: &[&str]) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut seen = BTreeSet::new();
    for member in &project.spec.members {
        let has = |role: &str| roles.contains(&role);
        if has(&member.role) || member.roles.iter().any(|role| has(role)) {
            let own = subject(member);
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let same = (
                text(&own.api_group),
                own.kind.clone(),
                text(&own.namespace),
                own.name.clone(),
            );
            if seen.insert(same) {
                subjects.push(own);
            }
        }
    }
    subjects
}

fn rule(group: &str, resource: &str, name: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: Some(vec![name.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        non_resource_urls: None,
    }
}

/// A cluster role of the project itself: its suffix, who has it, and what it allows.
struct Own {
    suffix: &'static str,
    subjects: Vec<Subject>,
    namespace: bool,
    project: &'static [&'static str],
}

fn own_roles(project: &Project) -> Vec<Own> {
    vec![
        Own {
            suffix: "",
            subjects: project.spec.owner.iter().cloned().collect(),
            namespace: true,
            project: &["get", "patch", "manage-members", "update", "delete"],
        },
        Own {
            suffix: "-member",
            subjects: members(project, &["admin", "owner"]),
            namespace: true,
            project: &["get", "patch", "update", "delete"],
        },
        Own {
            suffix: "-uam",
            subjects: members(project, &["uam"]),
            namespace: false,
            project: &["get", "manage-members", "patch", "update"],
        },
        Own {
            suffix: "-viewer",
            subjects: members(project, &["viewer"]),
            namespace: true,
            project: &["get"],
        },
    ]
}

fn extension_roles(project: &Project) -> BTreeSet<String> {
    project
        .spec
        .members
        .iter()
        .flat_map(|member| std::iter::once(&member.role).chain(&member.roles))
        .filter_map(|role| role.strip_prefix("extension:"))
        .map(str::to_owned)
        .collect()
}

fn metadata(project: &Project, name: String, namespace: Option<&str>, role: &str) -> ObjectMeta {
    let labels = BTreeMap::from([
        (label::ROLE.to_owned(), role.to_owned()),
        (label::PROJECT_NAME.to_owned(), project.name_any()),
    ]);
    ObjectMeta {
        name: Some(name),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        owner_references: Some(vec![OwnerReference {
            block_owner_deletion: Some(false),
            ..owner(project)
        }]),
        ..ObjectMeta::default()
    }
}

/// Gives an object back what somebody took from its metadata.
fn repair(metadata: &mut ObjectMeta, wanted: &ObjectMeta) {
    let labels = wanted.labels.clone().unwrap_or_default();
    metadata.labels.get_or_insert_with(BTreeMap::new).extend(labels);
    for owner in wanted.owner_references.iter().flatten() {
        own_by(metadata, owner.clone());
    }
}

fn role_ref(name: &str) -> RoleRef {
    RoleRef {
        api_group: Some(GROUP.to_owned()),
        kind: "ClusterRole".to_owned(),
        name: name.to_owned(),
    }
}

/// Makes roles and bindings as the project wants them.
pub(super) async fn apply(config: &Config, project: &Project, namespace: &str) -> Result<(), ReconcileError> {
    let roles: Api<ClusterRole> = Api::all(config.garden.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(config.garden.clone());
    for own in own_roles(project) {
        let name = format!("{STEM}{}:{}", own.suffix, project.name_any());
        let mut rules = Vec::new();
        if own.namespace {
            rules.push(rule("", "namespaces", namespace, &["get"]));
        }
        rules.push(rule(
            "core.gardener.cloud",
            "projects",
            &project.name_any(),
            own.project,
        ));
        let wanted = metadata(project, name.clone(), None, &format!("project{}", own.suffix));
        apply::create_or_patch(
            &roles,
            ClusterRole {
                metadata: wanted.clone(),
                ..ClusterRole::default()
            },
            |role| {
                repair(&mut role.metadata, &wanted);
                role.rules = Some(rules.clone());
            },
        )
        .await?;
        let initial = ClusterRoleBinding {
            metadata: wanted.clone(),
            role_ref: role_ref(&name),
            ..ClusterRoleBinding::default()
        };
        apply::create_or_patch(&bindings, initial, |binding| {
            repair(&mut binding.metadata, &wanted);
            binding.subjects = Some(own.subjects.clone());
        })
        .await?;
    }
    for (suffix, subjects) in [
        ("-member", members(project, &["admin", "owner"])),
        (
            "-serviceaccountmanager",
            members(project, &["serviceaccountmanager", "owner"]),
        ),
        ("-viewer", members(project, &["viewer"])),
    ] {
        let name = format!("{STEM}{suffix}");
        bind(config, project, namespace, &name, &format!("project{suffix}"), subjects).await?;
    }
    let wanted = extension_roles(project);
    for role in &wanted {
        let name = extension_role_name(project, role);
        let metadata = metadata(project, name.clone(), None, "extension-project-role");
        let initial = ClusterRole {
            metadata: metadata.clone(),
            ..ClusterRole::default()
        };
        let selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
            match_labels: Some(BTreeMap::from([(
                "rbac.gardener.cloud/aggregate-to-extension-role".to_owned(),
                role.clone(),
            )])),
            match_expressions: None,
        };
        let aggregation = k8s_openapi::api::rbac::v1::AggregationRule {
            cluster_role_selectors: Some(vec![selector]),
        };
        apply::create_or_patch(&roles, initial, |role| {
            repair(&mut role.metadata, &metadata);
            role.aggregation_rule = Some(aggregation.clone());
        })
        .await?;
        bind(
            config,
            project,
            namespace,
            &name,
            "extension-project-role",
            members(project, &[&format!("extension:{role}")]),
        )
        .await?;
    }
    delete_stale_extension_roles(config, project, namespace, &wanted).await
}

fn extension_role_name(project: &Project, role: &str) -> String {
    format!("gardener.cloud:extension:project:{}:{role}", project.name_any())
}

async fn bind(
    config: &Config,
    project: &Project,
    namespace: &str,
    name: &str,
    role: &str,
    subjects: Vec<Subject>,
) -> Result<(), ReconcileError> {
    let api: Api<RoleBinding> = Api::namespaced(config.garden.clone(), namespace);
    let metadata = metadata(project, name.to_owned(), Some(namespace), role);
    let initial = RoleBinding {
        metadata: metadata.clone(),
        role_ref: role_ref(name),
        ..RoleBinding::default()
    };
    apply::create_or_patch(&api, initial, |binding| {
        repair(&mut binding.metadata, &metadata);
        binding.subjects = Some(subjects.clone());
    })
    .await?;
    Ok(())
}

async fn delete_stale_extension_roles(
    config: &Config,
    project: &Project,
    namespace: &str,
    wanted: &BTreeSet<String>,
) -> Result<(), ReconcileError> {
    let names: BTreeSet<String> = wanted.iter().map(|role| extension_role_name(project, role)).collect();
    let selector = kube::api::ListParams::default().labels(&format!(
        "{}=extension-project-role,{}={}",
        label::ROLE,
        label::PROJECT_NAME,
        project.name_any()
    ));
    let roles: Api<ClusterRole> = Api::all(config.garden.clone());
    for role in roles
        .read_list(&selector)
        .await?
        .iter()
        .filter(|role| !names.contains(&role.name_any()))
    {
        apply::delete(&roles, &role.name_any()).await?;
    }
    let bindings: Api<RoleBinding> = Api::namespaced(config.garden.clone(), namespace);
    for binding in bindings
        .read_list(&selector)
        .await?
        .iter()
        .filter(|binding| !names.contains(&binding.name_any()))
    {
        apply::delete(&bindings, &binding.name_any()).await?;
    }
    Ok(())
}

/// Removes the cluster-wide roles and bindings of a project that goes. Those in its namespace go with it, or by their owner.
pub(super) async fn delete(config: &Config, project: &Project) -> Result<(), ReconcileError> {
    let selector = kube::api::ListParams::default().labels(&format!("{}={}", label::PROJECT_NAME, project.name_any()));
    // others may have labelled theirs likewise
    let is_own = |owners: &[OwnerReference]| {
        owners
            .iter()
            .any(|owner| Some(&owner.uid) == project.metadata.uid.as_ref())
    };
    let roles: Api<ClusterRole> = Api::all(config.garden.clone());
    let found = roles.read_list(&selector).await?;
    for role in found.iter().filter(|role| is_own(role.owner_references())) {
        apply::delete(&roles, &role.name_any()).await?;
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(config.garden.clone());
    let found = bindings.read_list(&selector).await?;
    for binding in found.iter().filter(|binding| is_own(binding.owner_references())) {
        apply::delete(&bindings, &binding.name_any()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_52_subjects_are_told_once() {
        let member = |name: &str, role: &str, roles: &[&str]| ProjectMember {
            kind: "User".into(),
            name: name.into(),
            role: role.into(),
            roles: roles.iter().map(|own| (*own).to_owned()).collect(),
            ..ProjectMember::default()
        };
        let mut project = Project::default();
        project.spec.members = vec![
            member("a", "admin", &["owner"]),
            member("b", "viewer", &["extension:x"]),
            member("a", "admin", &[]),
        ];
        let names = |roles: &[&str]| {
            members(&project, roles)
                .into_iter()
                .map(|own| own.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["admin", "owner"]), ["a"]);
        assert_eq!(names(&["viewer"]), ["b"]);
        assert_eq!(extension_roles(&project).into_iter().collect::<Vec<_>>(), ["x"]);
    }
}
