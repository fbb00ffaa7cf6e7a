//! Admission plugins of the garden, in upstream's order, [ADM-1]. Kubernetes' own plugins (namespaces, webhooks) are the machinery's.

mod backup_buckets;
mod cloud_profiles;
mod configuration;
mod confirmation;
mod dns;
mod extensions;
mod labels;
mod managed_seeds;
mod namespaced_cloud_profiles;
mod projects;
mod quotas;
mod references;
mod seeds;
mod shoot_defaults;
mod shoot_mutator;
mod shoot_validator;
mod tolerations;
pub mod webhooks;

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apiserver::definition::{Admission, Attributes};
use k8s_openapi::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use configuration::{Configuration, ConfigurationError, OFF_BY_DEFAULT};

/// All plugins in the order in which they run, also those that run only where they are asked for [ADM-2].
pub fn plugins(configuration: &Configuration) -> Vec<Arc<dyn Admission>> {
    let tolerations = tolerations::ShootTolerationRestriction {
        defaults: configuration.tolerations.defaults.clone(),
        allowed: configuration.tolerations.whitelist.clone(),
    };
    let rewriting = shoot_defaults::ShootDnsRewriting {
        common_suffixes: configuration.dns_rewriting.common_suffixes.clone(),
    };
    let reservation = shoot_defaults::ShootResourceReservation {
        by_machine: configuration.resource_reservation.by_machine(),
    };
    vec![
        Arc::new(references::ResourceReferenceManager),
        Arc::new(extensions::ExtensionValidator),
        Arc::new(labels::ExtensionLabels),
        Arc::new(tolerations),
        Arc::new(shoot_defaults::ShootExposureClass),
        Arc::new(dns::ShootDns),
        Arc::new(managed_seeds::ShootManagedSeed),
        Arc::new(shoot_defaults::ShootNodeLocalDnsEnabledByDefault),
        Arc::new(rewriting),
        Arc::new(quotas::ShootQuotaValidator),
        Arc::new(shoot_mutator::ShootMutator),
        Arc::new(shoot_validator::ShootValidator),
        Arc::new(seeds::SeedValidator),
        Arc::new(seeds::SeedMutator),
        Arc::new(extensions::ControllerRegistrationResources),
        Arc::new(namespaced_cloud_profiles::NamespacedCloudProfileValidator),
        Arc::new(projects::ProjectMutator),
        Arc::new(confirmation::DeletionConfirmation),
        Arc::new(confirmation::FinalizerRemoval),
        Arc::new(projects::CustomVerbAuthorizer),
        Arc::new(shoot_defaults::ShootVpaEnabledByDefault),
        Arc::new(reservation),
        Arc::new(managed_seeds::ManagedSeedPlugin),
        Arc::new(managed_seeds::ManagedSeedShoot),
        Arc::new(seeds::BastionPlugin),
        Arc::new(backup_buckets::BackupBucketValidator),
    ]
}

/// Several refusals as one text, as upstream's plugins write it.
fn errors_occurred(errors: &[String]) -> String {
    let count = match errors.len() {
        1 => "1 error occurred:".to_owned(),
        many => format!("{many} errors occurred:"),
    };
    let lines: Vec<String> = errors.iter().map(|error| format!("\t* {error}\n")).collect();
    format!("{count}\n{}\n", lines.concat())
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
