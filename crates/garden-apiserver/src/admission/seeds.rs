//! Seeds keep their label and stay while they are used; bastions follow their shoot, [ADM-39], [ADM-42], [ADM-43].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, label};
use gardener_apis::core::v1beta1::{Seed, SeedSpec, Shoot, maintain_seed_labels};
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_apis::seedmanagement::v1alpha1::ManagedSeed;
use gardener_apiserver::definition::{Admission, Attributes, Lister, Operation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::backup_buckets::target_system;
use super::dns::global_domains;
use super::{put, typed, typed_old};
use crate::lookup;

/// [ADM-42].
pub(super) struct SeedValidator;

/// The shoots on a seed, and those that are still leaving it.
pub(super) fn users(lister: &dyn Lister, seed: &str) -> Vec<Shoot> {
    let is = |name: &Option<String>| name.as_deref() == Some(seed);
    let mut shoots = lookup::list::<Shoot>(lister, None);
    shoots.retain(|shoot| is(&shoot.spec.seed_name) || is(&shoot.status.seed_name));
    shoots
}

/// The zones that a change takes away from a seed with shoots.
pub(super) fn removed_zones<'a>(new: &SeedSpec, old: &'a SeedSpec, users: &[Shoot]) -> Vec<&'a str> {
    let zones = old.provider.zones.iter().filter(|_| !users.is_empty());
    let removed = zones.filter(|zone| !new.provider.zones.contains(zone));
    let mut removed: Vec<&str> = removed.map(String::as_str).collect();
    removed.sort_unstable();
    removed
}

/// Whether a change takes another internal domain for a seed with shoots.
pub(super) fn changes_internal_domain(new: &SeedSpec, old: &SeedSpec, users: &[Shoot]) -> bool {
    let both = new.dns.internal.as_ref().zip(old.dns.internal.as_ref());
    !users.is_empty() && both.is_some_and(|(new, old)| new.domain != old.domain)
}

/// Why the default domains of a seed may not change so: shoots have one that would no longer be there.
pub(super) fn changed_default_domains(
    lister: &dyn Lister,
    (new, old): (&SeedSpec, &SeedSpec),
    users: &[Shoot],
    seed: &str,
) -> Option<String> {
    let domains = |spec: &SeedSpec| -> Vec<String> {
        let defaults = spec.dns.defaults.iter();
        defaults.map(|config| config.domain.clone()).collect()
    };
    let is_used = |domain: &String| {
        let end = format!(".{domain}");
        let own = |shoot: &Shoot| shoot.spec.dns.as_ref().and_then(|dns| dns.domain.clone());
        users.iter().filter_map(own).any(|own| own.ends_with(&end))
    };
    let (kept, before) = (domains(new), domains(old));
    let lost = |all: Vec<String>| -> Vec<String> {
        let gone = all.into_iter().filter(|domain| !kept.contains(domain));
        gone.filter(|domain| is_used(domain)).collect()
    };
    let was_global = before.is_empty() && !kept.is_empty();
    let removed = lost(before);
    if !removed.is_empty() {
        return Some(format!(
            "cannot remove default domains [{}] from Seed {seed:?} as they are still being used by shoots",
            removed.join(" ")
        ));
    }
    let global = || global_domains(lister).into_iter().map(|global| global.domain).collect();
    let missing = if was_global { lost(global()) } else { Vec::new() };
    (!missing.is_empty()).then(|| {
        format!(
            "cannot configure explicit default domains for Seed {seed:?} without including domains [{}] that are currently being used by shoots",
            missing.join(" ")
        )
    })
}

/// A refusal as upstream's tells it: by the kind.
fn forbidden(name: &str, why: &str) -> ApiError {
    ApiError::forbidden("core.gardener.cloud", "Seed", name, why)
}

fn change(attributes: &Attributes<'_>, new: &Seed, old: &Seed) -> Result<(), ApiError> {
    let has_label = |seed: &Seed| {
        let labels = seed.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(label::SEED_SELF_HOSTED))
    };
    if has_label(old) && !has_label(new) {
        return Err(attributes.forbidden(&format!(
            "label {:?} cannot be removed from a Seed",
            label::SEED_SELF_HOSTED
        )));
    }
    let (new, old) = (&new.spec, &old.spec);
    if new.provider.zones == old.provider.zones && new.dns == old.dns {
        return Ok(());
    }
    let (lister, name) = (attributes.context.lister, attributes.name);
    let users = users(lister, name);
    let zones = removed_zones(new, old, &users);
    if !zones.is_empty() {
        let why = format!(
            "cannot remove zones [{}] from Seed {name} as there are Shoots scheduled to this Seed",
            zones.join(" ")
        );
        return Err(forbidden(name, &why));
    }
    if changes_internal_domain(new, old, &users) {
        let why = format!("cannot change internal domain as the Seed {name:?} is still in use by shoots");
        return Err(forbidden(name, &why));
    }
    match changed_default_domains(lister, (new, old), &users, name) {
        Some(why) => Err(forbidden(name, &why)),
        None => Ok(()),
    }
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
            return match users(attributes.context.lister, name).is_empty() {
                true => Ok(()),
                false => {
                    Err(attributes.forbidden(&format!("cannot delete seed {name} since it is still used by shoot(s)")))
                }
            };
        }
        let Some(new) = typed::<Seed>(attributes) else {
            return Ok(());
        };
        if let Some(old) = typed_old::<Seed>(attributes) {
            change(attributes, &new, &old)?;
        }
        let Some(backup) = &new.spec.backup else {
            return Ok(());
        };
        match target_system(attributes, backup.credentials_ref.as_ref())? {
            Some(other) if other != backup.provider => Err(attributes.forbidden(&format!(
                "seed using backup of type {:?} cannot use WorkloadIdentity of type {other:?}",
                backup.provider
            ))),
            _ => Ok(()),
        }
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
        let Some(seed) = typed::<Seed>(attributes) else {
            return Ok(());
        };
        let mut seed = Seed::clone(&seed);
        let name = seed.metadata.name.clone().unwrap_or_default();
        let lister = attributes.context.lister;
        let mut seeds = vec![name.clone()];
        // a managed seed is seen by the gardenlet that has its shoot
        let managed = lookup::get::<ManagedSeed>(lister, GARDEN_NAMESPACE, &name);
        if let Some(own) = managed.and_then(|managed| managed.spec.shoot) {
            let shoot = lookup::get::<Shoot>(lister, GARDEN_NAMESPACE, &own.name).ok_or_else(|| {
                ApiError::unclassified(format!(
                    "failed to get shoot {} for managed seed {name:?}: shoot.core.gardener.cloud {:?} not found",
                    own.name, own.name
                ))
            })?;
            seeds.extend(shoot.spec.seed_name);
        }
        let seeds: Vec<Option<&str>> = seeds.iter().map(|seed| Some(seed.as_str())).collect();
        maintain_seed_labels(&mut seed.metadata, &seeds);
        put(attributes, seed);
        Ok(())
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
        let Some(bastion) = typed::<Bastion>(attributes) else {
            return Ok(());
        };
        let mut bastion = Bastion::clone(&bastion);
        let path = Path::new("spec.shootRef.name");
        let name = bastion.spec.shoot_ref.name.clone();
        if name.is_empty() {
            return Err(attributes.invalid(&[Error::required(&path, "shoot is required")]));
        }
        let refuse = |why: String| attributes.invalid(&[Error::invalid(&path, name.as_str(), why)]);
        let Some(shoot) = lookup::named_shoot(attributes.context.lister, attributes.namespace, &name)? else {
            return Err(refuse(format!("shoot {}/{name} not found", attributes.namespace)));
        };
        let creates = attributes.operation == Operation::Create;
        if creates && shoot.in_deletion() {
            return Err(refuse("shoot is in deletion".into()));
        }
        let Some(seed) = shoot.spec.seed_name.clone() else {
            return Err(refuse("shoot is not yet assigned to a seed".into()));
        };
        if bastion.metadata.deletion_timestamp.is_none() && !shoot.spec.ssh_access_enabled() {
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
        if !owners.iter().any(|owner| owner.uid == uid) {
            owners.push(OwnerReference {
                api_version: "core.gardener.cloud/v1beta1".into(),
                kind: "Shoot".into(),
                name,
                uid,
                controller: Some(true),
                block_owner_deletion: Some(true),
            });
        }
        put(attributes, bastion);
        Ok(())
    }
}
