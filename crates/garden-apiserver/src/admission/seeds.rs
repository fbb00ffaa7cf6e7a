//! Seeds keep their label and stay while they are used; bastions follow their shoot, [ADM-39], [ADM-42], [ADM-43].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apis::constants::{annotation, label};
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{put, typed, typed_old};
use crate::lookup;

/// [ADM-42].
pub(super) struct SeedValidator;

fn users(attributes: &Attributes<'_>) -> Vec<Shoot> {
    lookup::list::<Shoot>(attributes.context.lister, None)
        .into_iter()
        .filter(|shoot| {
            shoot.spec.seed_name.as_deref() == Some(attributes.name)
                || shoot.status.seed_name.as_deref() == Some(attributes.name)
        })
        .collect()
}

#[async_trait]
impl Admission for SeedValidator {
    fn name(&self) -> &'static str {
        "SeedValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.is("core.gardener.cloud", "seeds") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let name = attributes.name;
        if attributes.operation == Operation::Delete {
            return if users(attributes).is_empty() {
                Ok(())
            } else {
                Err(attributes.forbidden(&format!("cannot delete seed {name} since it is still used by shoot(s)")))
            };
        }
        let (Some(new), Some(old)) = (typed::<Seed>(attributes), typed_old::<Seed>(attributes)) else {
            return Ok(());
        };
        let removed: Vec<&str> = old
            .spec
            .provider
            .zones
            .iter()
            .filter(|zone| !new.spec.provider.zones.contains(zone))
            .map(String::as_str)
            .collect();
        let internal = |seed: &Seed| seed.spec.dns.internal.as_ref().map(|config| config.domain.clone());
        let domain_changed = internal(&new) != internal(&old);
        let domains: Vec<&str> = old
            .spec
            .dns
            .defaults
            .iter()
            .filter(|config| !new.spec.dns.defaults.iter().any(|own| own.domain == config.domain))
            .map(|config| config.domain.as_str())
            .collect();
        if removed.is_empty() && !domain_changed && domains.is_empty() {
            return Ok(());
        }
        let users = users(attributes);
        if users.is_empty() {
            return Ok(());
        }
        if !removed.is_empty() {
            return Err(attributes.forbidden(&format!(
                "cannot remove zones [{}] from Seed {name} as there are Shoots scheduled to this Seed",
                removed.join(" ")
            )));
        }
        if domain_changed {
            return Err(attributes.forbidden(&format!(
                "cannot change internal domain as the Seed {name:?} is still in use by shoots"
            )));
        }
        let used: Vec<&str> = domains
            .into_iter()
            .filter(|domain| {
                users.iter().any(|shoot| {
                    let own = shoot
                        .spec
                        .dns
                        .as_ref()
                        .and_then(|dns| dns.domain.as_deref())
                        .unwrap_or_default();
                    own.ends_with(&format!(".{domain}"))
                })
            })
            .collect();
        if !used.is_empty() {
            return Err(attributes.forbidden(&format!(
                "cannot remove default domains [{}] from Seed {name:?} as they are still being used by shoots",
                used.join(" ")
            )));
        }
        Ok(())
    }
}

/// [ADM-43].
pub(super) struct SeedMutator;

#[async_trait]
impl Admission for SeedMutator {
    fn name(&self) -> &'static str {
        "SeedMutator"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let Some(mut seed) = typed::<Seed>(attributes) else {
            return Ok(());
        };
        let name = seed.metadata.name.clone().unwrap_or_default();
        if name.is_empty() {
            return Ok(());
        }
        let labels = seed.metadata.labels.get_or_insert_default();
        labels.insert(format!("{}{name}", label::SEED_NAME_PREFIX), "true".into());
        put(attributes, &seed)
    }
}

/// [ADM-39].
pub(super) struct BastionPlugin;

#[async_trait]
impl Admission for BastionPlugin {
    fn name(&self) -> &'static str {
        "Bastion"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(mut bastion) = typed::<Bastion>(attributes) else {
            return Ok(());
        };
        let path = Path::new("spec.shootRef.name");
        let name = bastion.spec.shoot_ref.name.clone();
        if name.is_empty() {
            return Err(attributes.invalid(&[Error::required(&path, "shoot is required")]));
        }
        let refuse = |why: String| attributes.invalid(&[Error::invalid(&path, name.as_str(), why)]);
        let Some(shoot) = lookup::get::<Shoot>(attributes.context.lister, attributes.namespace, &name) else {
            return Err(refuse(format!("shoot {}/{name} not found", attributes.namespace)));
        };
        let creates = attributes.operation == Operation::Create;
        if creates && shoot.in_deletion() {
            return Err(refuse("shoot is in deletion".into()));
        }
        let Some(seed) = shoot.spec.seed_name.clone() else {
            return Err(refuse("shoot is not yet assigned to a seed".into()));
        };
        if !shoot.spec.ssh_access_enabled() {
            return Err(refuse("ssh access is disabled for worker nodes".into()));
        }
        bastion.spec.seed_name = Some(seed);
        bastion.spec.provider_type = Some(shoot.spec.provider.r#type.clone());
        if creates {
            let annotations = bastion.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::CREATED_BY.into(), attributes.context.user.name.clone());
        }
        let uid = shoot.metadata.uid.clone().unwrap_or_default();
        let owners = bastion.metadata.owner_references.get_or_insert_default();
        owners.retain(|owner| owner.controller != Some(true));
        owners.push(OwnerReference {
            api_version: "core.gardener.cloud/v1beta1".into(),
            kind: "Shoot".into(),
            name,
            uid,
            controller: Some(true),
            block_owner_deletion: Some(true),
        });
        put(attributes, &bastion)
    }
}
