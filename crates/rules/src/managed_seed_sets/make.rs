//! Shoots and managed seeds of replicas, made of the set's templates.

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::Shoot;
use gardener_apis::seedmanagement::v1alpha1::{ManagedSeed, ManagedSeedSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

/// Stands for a replica's name in domains of templates.
const PLACEHOLDER: &str = "replica-name";

/// Whose the objects are.
pub type Owner = OwnerReference;

fn metadata(set: &ManagedSeedSet, template: &ObjectMeta, ordinal: i32, owner: Owner) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!(
            "{}-{ordinal}",
            set.metadata.name.as_deref().unwrap_or_default()
        )),
        namespace: set.metadata.namespace.clone(),
        labels: template.labels.clone(),
        annotations: template.annotations.clone(),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The shoot of a replica.
pub fn shoot(set: &ManagedSeedSet, ordinal: i32, owner: Owner) -> Shoot {
    let template = &set.spec.shoot_template;
    let metadata = metadata(set, &template.metadata, ordinal, owner);
    let mut spec = template.spec.clone();
    if let Some(domain) = spec.dns.as_mut().and_then(|dns| dns.domain.as_mut()) {
        *domain = domain.replace(PLACEHOLDER, metadata.name.as_deref().unwrap_or_default());
    }
    Shoot {
        metadata,
        spec: spec.into(),
        ..Shoot::default()
    }
}

/// The managed seed of a replica.
pub fn managed_seed(set: &ManagedSeedSet, ordinal: i32, owner: Owner) -> ManagedSeed {
    let template = &set.spec.template;
    let metadata = metadata(set, &template.metadata, ordinal, owner);
    let name = metadata.name.clone().unwrap_or_default();
    let mut managed_seed = ManagedSeed {
        metadata,
        ..ManagedSeed::default()
    };
    managed_seed.spec.gardenlet = template.spec.gardenlet.clone();
    managed_seed.spec.shoot.get_or_insert_default().name.clone_from(&name);
    let config = managed_seed.spec.gardenlet.config.as_mut();
    if let Some(Value::String(domain)) = config.and_then(|own| own.at_mut("/seedConfig/spec/ingress/domain")) {
        *domain = domain.replace(PLACEHOLDER, &name);
    }
    managed_seed
}
