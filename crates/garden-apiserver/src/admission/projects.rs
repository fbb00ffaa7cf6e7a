//! Projects get creator, owner and owning member; some changes need a verb of their own, [ADM-46], [ADM-53], [ADM-61].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{
    NamespacedCloudProfile, Project, ProjectMember, RBAC_GROUP, ROLE_ADMIN, ROLE_OWNER,
};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::api::rbac::v1::Subject;

use super::{put, typed, typed_old};
use crate::lookup;

/// [ADM-46].
pub(super) struct ProjectMutator;

#[async_trait]
impl Admission for ProjectMutator {
    fn name(&self) -> &'static str {
        "ProjectMutator"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(project) = typed::<Project>(attributes) else {
            return Ok(());
        };
        let is_deleted = project.metadata.deletion_timestamp.is_some();
        if attributes.operation == Operation::Update && is_deleted {
            return Ok(());
        }
        let mut project = Project::clone(&project);
        let spec = &mut project.spec;
        if attributes.operation == Operation::Create {
            spec.created_by = Some(Subject {
                api_group: Some(RBAC_GROUP.into()),
                kind: "User".into(),
                name: attributes.context.user.name.clone(),
                namespace: None,
            });
            if spec.owner.is_none() {
                let member = spec
                    .members
                    .iter()
                    .find(|member| member.all_roles().iter().any(|role| role == ROLE_OWNER));
                spec.owner = match member {
                    Some(member) => Some(Subject {
                        api_group: member.api_group.clone(),
                        kind: member.kind.clone(),
                        name: member.name.clone(),
                        namespace: member.namespace.clone(),
                    }),
                    None => spec.created_by.clone(),
                };
            }
        }
        if let Some(owner) = &spec.owner
            && !spec.members.iter().any(|member| member.is(owner))
        {
            spec.members.push(ProjectMember::of(owner, &[ROLE_ADMIN, ROLE_OWNER]));
        }
        put(attributes, project);
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(project) = typed::<Project>(attributes) else {
            return Ok(());
        };
        let Some(namespace) = project.spec.namespace.as_deref() else {
            return Ok(());
        };
        let other = lookup::project_of(attributes.context.lister, namespace);
        if other.is_some_and(|other| other.metadata.name != project.metadata.name) {
            return Err(attributes.forbidden(&format!("namespace {namespace:?} is already used by another project")));
        }
        Ok(())
    }
}

/// [ADM-61], [CVA-1] – [CVA-5].
pub(super) struct CustomVerbAuthorizer;

impl CustomVerbAuthorizer {
    fn ask(attributes: &Attributes<'_>, verb: &str, text: &str) -> Result<(), ApiError> {
        let user = attributes.context.user;
        let definition = attributes.definition;
        let allowed = attributes.context.lister.allowed(
            user,
            verb,
            &definition.group,
            &definition.plural,
            attributes.namespace,
            attributes.name,
        );
        if allowed {
            return Ok(());
        }
        Err(attributes.forbidden(&format!(
            "user {:?} is not allowed to {text} for {:?}",
            user.name, definition.plural
        )))
    }
}

/// The human members, in a form that can be compared.
fn people(project: &Project) -> Vec<ProjectMember> {
    let mut members: Vec<ProjectMember> = project
        .spec
        .members
        .iter()
        .filter(|member| member.kind != "ServiceAccount" && !member.name.starts_with("system:serviceaccount:"))
        .cloned()
        .collect();
    members.sort_by(|one, other| (&one.kind, &one.name).cmp(&(&other.kind, &other.name)));
    members
}

#[async_trait]
impl Admission for CustomVerbAuthorizer {
    fn name(&self) -> &'static str {
        "CustomVerbAuthorizer"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update) || !attributes.subresource.is_empty()
        {
            return Ok(());
        }
        if let Some(new) = typed::<Project>(attributes) {
            let old = typed_old::<Project>(attributes).unwrap_or_default();
            // as upstream, which takes tolerations that come or go as a whole for a whitelist, even an empty one
            let whitelist = |project: &Project| project.spec.tolerations.as_ref().map(|both| both.whitelist.clone());
            if whitelist(&new) != whitelist(&old) {
                Self::ask(
                    attributes,
                    "modify-spec-tolerations-whitelist",
                    "modify .spec.tolerations.whitelist",
                )?;
            }
            // Whoever creates a project, or owns it, manages its members.
            let user = &attributes.context.user.name;
            let owns = old
                .spec
                .owner
                .as_ref()
                .is_some_and(|owner| owner.kind == "User" && owner.name == *user);
            if attributes.operation == Operation::Update && !owns {
                if people(&new) != people(&old) {
                    Self::ask(
                        attributes,
                        "manage-members",
                        "manage human users or groups in .spec.members",
                    )?;
                }
                if new.spec.owner != old.spec.owner {
                    Self::ask(attributes, "manage-members", "manage owner in .spec.owner")?;
                }
            }
        }
        if let Some(new) = typed::<NamespacedCloudProfile>(attributes) {
            let old = typed_old::<NamespacedCloudProfile>(attributes).unwrap_or_default();
            if new.spec.kubernetes != old.spec.kubernetes {
                Self::ask(attributes, "modify-spec-kubernetes", "modify .spec.kubernetes")?;
            }
            if new.spec.machine_images != old.spec.machine_images {
                Self::ask(attributes, "modify-spec-machineimages", "modify .spec.machineImages")?;
            }
            if new.spec.provider_config != old.spec.provider_config {
                Self::ask(attributes, "modify-spec-providerconfig", "modify .spec.providerConfig")?;
            }
        }
        Ok(())
    }
}
