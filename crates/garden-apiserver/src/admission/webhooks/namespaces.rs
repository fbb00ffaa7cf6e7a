//! Namespaces of projects go with their projects, [ADM-70].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_apiserver::meta;
use k8s_openapi::Resource;

use super::denied;
use crate::lookup;

/// The plugin.
pub(super) struct NamespaceDeletion;

#[async_trait]
impl Admission for NamespaceDeletion {
    fn name(&self) -> &'static str {
        "validate-namespace-deletion.gardener.cloud"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let deletes = attributes.operation == Operation::Delete
            && attributes.is("", "namespaces")
            && attributes.subresource.is_empty();
        if !deletes || attributes.old_json().is_some_and(meta::is_deleting) {
            return Ok(());
        }
        let (lister, name) = (attributes.context.lister, attributes.name);
        let Some(project) = lookup::project_of(lister, name) else {
            return Ok(());
        };
        let why = if project.metadata.deletion_timestamp.is_none() {
            format!(
                "direct deletion of namespace {name:?} is not permitted (you must delete the corresponding project {:?})",
                project.metadata.name.as_deref().unwrap_or_default()
            )
        } else if lister
            .list(Shoot::GROUP, Shoot::URL_PATH_SEGMENT, Some(name))
            .is_empty()
        {
            return Ok(());
        } else {
            format!("deletion of namespace {name:?} is not permitted (it still contains Shoots)")
        };
        Err(denied(self.name(), ApiError::forbidden("", "Namespace", name, &why)))
    }
}
