//! What gardener-admission-controller's webhooks refuse and change, built in [ADM-70] – [ADM-79]: a garden whose Kubernetes kinds are served by the
//! same program has no second one to ask. Each is called as its webhook, and says so in what it refuses.

mod configurations;
mod namespaces;
pub mod resource_size;
mod restrictions;
mod secrets;

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{label, role};
use gardener_apiserver::definition::{Admission, Attributes};
use gardener_apiserver::webhooks;

pub use resource_size::{Limit, Mode, ResourceSize, Subject};

/// All of them, those that change objects first. They run where webhooks run: behind all other plugins.
pub fn plugins(sizes: ResourceSize) -> Vec<Arc<dyn Admission>> {
    vec![
        Arc::new(secrets::ProviderLabels),
        Arc::new(namespaces::NamespaceDeletion),
        Arc::new(secrets::KubeconfigSecrets),
        Arc::new(secrets::InternalDomain),
        Arc::new(configurations::AuditPolicies),
        Arc::new(configurations::Authentication),
        Arc::new(configurations::Authorization),
        Arc::new(secrets::ShootKubeconfigs),
        Arc::new(secrets::UpdateRestriction),
        Arc::new(sizes),
        Arc::new(restrictions::SeedRestriction),
        Arc::new(restrictions::ShootRestriction),
    ]
}

/// A refusal as the webhook's client gets it.
fn denied(name: &str, why: ApiError) -> ApiError {
    webhooks::refusal(name, Some(why.status().clone()))
}

/// Whether a namespace is a project's.
fn is_project(attributes: &Attributes<'_>, namespace: &str) -> bool {
    let found = attributes.context.lister.namespace(namespace);
    let labels = found.as_ref().and_then(|namespace| namespace.at("/metadata/labels"));
    labels.and_then(|labels| labels.get(label::ROLE)?.as_str()) == Some(role::PROJECT)
}
