//! Admission plugins of the garden, in upstream's order, [ADM-1]. Kubernetes' own plugins (namespaces, webhooks) are the machinery's.

mod cloud_profiles;
mod confirmation;
mod dns;
mod extensions;
mod labels;
mod projects;
mod references;
mod seeds;
mod shoot_defaults;
mod shoot_mutator;
mod shoot_validator;

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apiserver::definition::{Admission, Attributes};
use k8s_openapi::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// All plugins in the order in which they run.
pub fn plugins() -> Vec<Arc<dyn Admission>> {
    vec![
        Arc::new(references::ResourceReferenceManager),
        Arc::new(cloud_profiles::CloudProfileVersions),
        Arc::new(extensions::ExtensionValidator),
        Arc::new(labels::ExtensionLabels),
        Arc::new(shoot_defaults::ShootTolerationRestriction),
        Arc::new(shoot_defaults::ShootExposureClass),
        Arc::new(dns::ShootDns),
        Arc::new(shoot_mutator::ShootMutator),
        Arc::new(shoot_validator::ShootValidator),
        Arc::new(seeds::SeedValidator),
        Arc::new(seeds::SeedMutator),
        Arc::new(extensions::ControllerRegistrationResources),
        Arc::new(projects::ProjectMutator),
        Arc::new(confirmation::DeletionConfirmation),
        Arc::new(confirmation::FinalizerRemoval),
        Arc::new(projects::CustomVerbAuthorizer),
        Arc::new(shoot_defaults::ShootVpaEnabledByDefault),
        Arc::new(shoot_defaults::ShootResourceReservation),
        Arc::new(seeds::BastionPlugin),
    ]
}

/// The object of a write as its type, when the write is to that kind. Many plugins ask; it is decoded once.
fn typed<K: Resource + DeserializeOwned + Clone + Send + Sync + 'static>(attributes: &Attributes<'_>) -> Option<K> {
    if !attributes.is(K::GROUP, K::URL_PATH_SEGMENT) {
        return None;
    }
    let decoded = attributes.object.decoded(|object| K::deserialize(object).ok())?;
    Some(K::clone(&decoded))
}

/// The stored object of a write as its type.
fn typed_old<K: Resource + DeserializeOwned + Clone + Send + Sync + 'static>(attributes: &Attributes<'_>) -> Option<K> {
    if !attributes.is(K::GROUP, K::URL_PATH_SEGMENT) {
        return None;
    }
    let old = attributes.old?;
    let decoded = attributes.old_decoded.get_or(|| K::deserialize(old).ok())?;
    Some(K::clone(&decoded))
}

/// Puts an object back, if it was changed since [`typed`] gave it.
fn put<K>(attributes: &mut Attributes<'_>, kind: &K) -> Result<(), ApiError>
where
    K: Serialize + DeserializeOwned + PartialEq + Clone + Send + Sync + 'static,
{
    let before = attributes.object.decoded(|object| K::deserialize(object).ok());
    if before.is_some_and(|before| *before == *kind) {
        return Ok(());
    }
    let object = serde_json::to_value(kind).map_err(ApiError::internal)?;
    attributes.object.set_decoded(object, kind.clone());
    Ok(())
}
