//! Projects get creator, owner and owning member, and a namespace of their own, [ADM-46], [ADM-53].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{Project, ProjectMember, RBAC_GROUP, ROLE_ADMIN, ROLE_OWNER};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::api::rbac::v1::Subject;

use super::{put, typed};
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
