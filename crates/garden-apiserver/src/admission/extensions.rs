//! Only registered extension types may be used, and each has one primary controller, [ADM-34], [ADM-45].

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{
    BackupBucket, BackupEntry, ControllerRegistration, ControllerResource, Seed, Shoot,
};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_rules::registrations::{Need, needs_of_shoot};

use super::{errors_occurred, typed, typed_old};
use crate::lookup;

/// [ADM-34].
pub(super) struct ExtensionValidator;

fn seed_needs(seed: &Seed) -> Vec<Need> {
    let spec = &seed.spec;
    let mut needs = vec![Need::new(
        "ControlPlane",
        &spec.provider.r#type,
        "provider",
        "spec.provider.type",
    )];
    if let Some(backup) = &spec.backup {
        for kind in ["BackupBucket", "BackupEntry"] {
            needs.push(Need::new(
                kind,
                &backup.provider,
                "backup provider",
                "spec.backup.provider",
            ));
        }
    }
    if let Some(provider) = spec.dns.provider.as_ref().filter(|_| spec.ingress.is_some()) {
        needs.push(Need::new(
            "DNSRecord",
            &provider.r#type,
            "extension",
            "spec.dns.provider.type",
        ));
    }
    for (i, extension) in spec.extensions.iter().enumerate() {
        needs.push(Need::new(
            "Extension",
            &extension.r#type,
            "extension",
            format!("spec.extensions[{i}].type"),
        ));
    }
    needs
}

/// What is wrong with needs that nobody meets; `uses` tells who has them.
fn unregistered(
    uses: &str,
    cluster: &str,
    needs: &[Need],
    registrations: &[Arc<ControllerRegistration>],
    workerless: bool,
) -> Vec<String> {
    let resources = || {
        registrations
            .iter()
            .flat_map(|registration| &registration.spec.resources)
    };
    let mut errors = Vec::new();
    for need in needs {
        let known = resources().any(|resource| {
            resource.kind == need.kind
                && resource.r#type == need.r#type
                && resource.primary != Some(false)
                && (need.kind != "Extension" || resource.cluster_compatibility.iter().any(|own| own == cluster))
        });
        if !known {
            errors.push(format!(
                "given {uses} non-registered {} type: {} ({:?})",
                need.word, need.path, need.r#type
            ));
        }
    }
    if workerless {
        for need in needs.iter().filter(|need| need.kind == "Extension") {
            let supported = resources().any(|resource| {
                resource.kind == "Extension"
                    && resource.r#type == need.r#type
                    && resource.workerless_supported == Some(true)
            });
            if !supported {
                errors.push(format!(
                    "given Shoot is workerless and uses non-supported extension type: {} ({:?})",
                    need.path, need.r#type
                ));
            }
        }
    }
    errors
}

#[async_trait]
impl Admission for ExtensionValidator {
    fn name(&self) -> &'static str {
        "ExtensionValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let may_change_spec = matches!(attributes.subresource, "" | "binding");
        if !matches!(attributes.operation, Operation::Create | Operation::Update) || !may_change_spec {
            return Ok(());
        }
        let registrations = || lookup::registrations(attributes.context.lister);
        let errors = if let Some(shoot) = typed::<Shoot>(attributes) {
            if typed_old::<Shoot>(attributes).is_some_and(|old| old.spec == shoot.spec) {
                return Ok(());
            }
            unregistered(
                "Shoot uses",
                "shoot",
                &needs_of_shoot(&shoot),
                &registrations(),
                shoot.is_workerless(),
            )
        } else if let Some(seed) = typed::<Seed>(attributes) {
            if typed_old::<Seed>(attributes).is_some_and(|old| old.spec == seed.spec) {
                return Ok(());
            }
            unregistered("Seed uses", "seed", &seed_needs(&seed), &registrations(), false)
        } else if let Some(bucket) = typed::<BackupBucket>(attributes) {
            if typed_old::<BackupBucket>(attributes).is_some_and(|old| old.spec == bucket.spec) {
                return Ok(());
            }
            let kind = &bucket.spec.provider.r#type;
            let needs = [Need::new("BackupBucket", kind, "provider", "spec.provider.type")];
            let errors = unregistered("BackupBucket uses", "seed", &needs, &registrations(), false);
            return errors.first().map_or(Ok(()), |error| Err(attributes.forbidden(error)));
        } else if let Some(entry) = typed::<BackupEntry>(attributes) {
            if typed_old::<BackupEntry>(attributes).is_some_and(|old| old.spec == entry.spec) {
                return Ok(());
            }
            let name = &entry.spec.bucket_name;
            let bucket = lookup::get::<BackupBucket>(attributes.context.lister, "", name);
            let bucket = bucket.ok_or_else(|| ApiError::not_found("core.gardener.cloud", "backupbucket", name))?;
            let kind = &bucket.spec.provider.r#type;
            let needs = [Need::new("BackupEntry", kind, "provider", "spec.bucketName")];
            let errors = unregistered(
                "BackupEntry references bucket using",
                "seed",
                &needs,
                &registrations(),
                false,
            );
            return errors.first().map_or(Ok(()), |error| Err(attributes.forbidden(error)));
        } else {
            Vec::new()
        };
        if errors.is_empty() {
            Ok(())
        } else {
            Err(attributes.forbidden(&errors_occurred(&errors)))
        }
    }
}

/// [ADM-45], [EXT-91].
pub(super) struct ControllerRegistrationResources;

#[async_trait]
impl Admission for ControllerRegistrationResources {
    fn name(&self) -> &'static str {
        "ControllerRegistrationResources"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(own) = typed::<ControllerRegistration>(attributes) else {
            return Ok(());
        };
        let is_primary = |resource: &&ControllerResource| resource.primary != Some(false);
        // as upstream, which remembers of each kind but the type that it finds last
        let mut taken = BTreeMap::new();
        for other in lookup::registrations(attributes.context.lister) {
            if other.metadata.name != own.metadata.name {
                let resources = other.spec.resources.iter().filter(is_primary);
                taken.extend(resources.map(|resource| (resource.kind.clone(), resource.r#type.clone())));
            }
        }
        for resource in own.spec.resources.iter().filter(is_primary) {
            if taken.get(&resource.kind) == Some(&resource.r#type) {
                return Err(attributes.forbidden(&format!(
                    "another ControllerRegistration resource already exists that controls resource {}/{} primarily",
                    resource.kind, resource.r#type
                )));
            }
        }
        Ok(())
    }
}
