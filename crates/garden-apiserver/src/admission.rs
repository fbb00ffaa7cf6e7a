//! Admission plugins of the garden, in upstream's order, [ADM-1]; each is in the pass or passes of upstream's, [ADM-3]. What they
//! read is complete before a request is served, [ADM-4]. Kubernetes' own plugins (namespaces, webhooks) are the machinery's.

mod backup_buckets;
mod cloud_profiles;
mod configuration;
mod confirmation;
mod custom_verbs;
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

use gardener_apiserver::definition::{Admission, Attributes};
use k8s_openapi::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::features::Features;

pub use configuration::{Configuration, ConfigurationError, OFF_BY_DEFAULT};

/// All plugins in the order in which they run, also those that run only where they are asked for [ADM-2].
pub fn plugins(configuration: &Configuration, features: &Features) -> Vec<Arc<dyn Admission>> {
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
    let validator = shoot_validator::ShootValidator {
        features: features.clone(),
    };
    let of_projects = namespaced_cloud_profiles::NamespacedCloudProfileValidator {
        features: features.clone(),
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
        Arc::new(validator),
        Arc::new(seeds::SeedValidator),
        Arc::new(seeds::SeedMutator),
        Arc::new(extensions::ControllerRegistrationResources),
        Arc::new(of_projects),
        Arc::new(projects::ProjectMutator),
        Arc::new(confirmation::DeletionConfirmation),
        Arc::new(confirmation::FinalizerRemoval),
        Arc::new(custom_verbs::CustomVerbAuthorizer),
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

/// The object of a write as its type, when the write is to that kind.
fn typed<K: Rules>(attributes: &Attributes<'_>) -> Option<Arc<K>> {
    let object = attributes
        .is(K::GROUP, K::URL_PATH_SEGMENT)
        .then_some(attributes.object.as_ref());
    object.flatten()?.typed().ok()
}

/// The stored object of a write as its type.
fn typed_old<K: Rules>(attributes: &Attributes<'_>) -> Option<Arc<K>> {
    let old = attributes.is(K::GROUP, K::URL_PATH_SEGMENT).then_some(attributes.old);
    old.flatten()?.typed().ok()
}

/// Puts a changed copy of the object that [`typed`] gave in its place. One that is as it was changes nothing.
fn put<K: Rules + PartialEq>(attributes: &mut Attributes<'_>, kind: K) {
    let Some(object) = &mut attributes.object else { return };
    if !object.typed::<K>().is_ok_and(|before| *before == kind) {
        object.set(Arc::new(kind));
    }
}

/// Kinds that plugins read by their types.
trait Rules: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<K: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static> Rules for K {}
