//! Credentials of backups suit their provider, [ADM-64], and buckets stay while backups are in them, [ADM-54].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::BackupBucket;
use gardener_apis::security::v1alpha1::WorkloadIdentity;
use gardener_apiserver::definition::{Admission, Attributes};
use k8s_openapi::api::core::v1::ObjectReference;

use super::typed;
use crate::lookup;

/// [ADM-64].
pub(super) struct BackupBucketValidator;

#[async_trait]
impl Admission for BackupBucketValidator {
    fn name(&self) -> &'static str {
        "BackupBucketValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(bucket) = typed::<BackupBucket>(attributes) else {
            return Ok(());
        };
        let own = &bucket.spec.provider.r#type;
        match target_system(attributes, bucket.spec.credentials_ref.as_ref())? {
            Some(other) if other != *own => Err(attributes.forbidden(&format!(
                "BackupBucket using backup of type {own:?} cannot use WorkloadIdentity of type {other:?}"
            ))),
            _ => Ok(()),
        }
    }
}

/// For whose API the workload identity is that a reference means; nothing if it means another kind of credentials.
///
/// # Errors
/// There is none of that name.
pub(super) fn target_system(
    attributes: &Attributes<'_>,
    reference: Option<&ObjectReference>,
) -> Result<Option<String>, ApiError> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let is_identity = |reference: &&ObjectReference| {
        reference.api_version.as_deref() == Some("security.gardener.cloud/v1alpha1")
            && reference.kind.as_deref() == Some("WorkloadIdentity")
    };
    let Some(reference) = reference.filter(is_identity) else {
        return Ok(None);
    };
    let (namespace, name) = (text(&reference.namespace), text(&reference.name));
    match lookup::get::<WorkloadIdentity>(attributes.context.lister, &namespace, &name) {
        Some(identity) => Ok(Some(identity.spec.target_system.r#type)),
        None => Err(ApiError::internal(format!(
            "workloadidentity.security.gardener.cloud {name:?} not found"
        ))),
    }
}
