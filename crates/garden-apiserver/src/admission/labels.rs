//! Labels that name the extension types an object needs, [ADM-33], [DEF-62].

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::label::{
    EXTENSION_CONTAINER_RUNTIME_PREFIX, EXTENSION_DNS_RECORD_PREFIX, EXTENSION_EXTENSION_PREFIX,
    EXTENSION_NETWORKING_PREFIX, EXTENSION_OPERATING_SYSTEM_CONFIG_PREFIX, EXTENSION_PROVIDER_PREFIX,
    EXTENSION_SELF_HOSTED_SHOOT_EXPOSURE_PREFIX,
};
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_apiserver::definition::{Admission, Attributes, Draft, Lister, Operation};
use gardener_apiserver::meta;
use serde_json::{Value, json};

use super::typed;
use crate::lookup;

const PREFIXES: [&str; 7] = [
    EXTENSION_PROVIDER_PREFIX,
    EXTENSION_EXTENSION_PREFIX,
    EXTENSION_CONTAINER_RUNTIME_PREFIX,
    EXTENSION_DNS_RECORD_PREFIX,
    EXTENSION_NETWORKING_PREFIX,
    EXTENSION_OPERATING_SYSTEM_CONFIG_PREFIX,
    EXTENSION_SELF_HOSTED_SHOOT_EXPOSURE_PREFIX,
];

/// The types of kind Extension that a cluster has: those it asks for and those enabled for all, without those it switches off.
pub(crate) fn enabled_extensions(
    own: &[Extension],
    registrations: &[Arc<ControllerRegistration>],
    cluster: &str,
    workerless: bool,
) -> BTreeSet<String> {
    let mut types: BTreeSet<String> = registrations
        .iter()
        .flat_map(|registration| &registration.spec.resources)
        .filter(|resource| {
            resource.kind == "Extension"
                && resource.auto_enable.iter().any(|enabled| enabled == cluster)
                && (!workerless || resource.workerless_supported == Some(true))
        })
        .map(|resource| resource.r#type.clone())
        .collect();
    for extension in own {
        if extension.disabled == Some(true) {
            types.remove(&extension.r#type);
        } else {
            types.insert(extension.r#type.clone());
        }
    }
    types
}

fn shoot_labels(shoot: &Shoot, lister: &dyn Lister) -> BTreeSet<String> {
    let spec = &shoot.spec;
    let mut labels = BTreeSet::from([format!("{EXTENSION_PROVIDER_PREFIX}{}", spec.provider.r#type)]);
    let extensions = enabled_extensions(
        &spec.extensions,
        &lookup::registrations(lister),
        "shoot",
        shoot.is_workerless(),
    );
    labels.extend(
        extensions
            .iter()
            .map(|kind| format!("{EXTENSION_EXTENSION_PREFIX}{kind}")),
    );
    for worker in &spec.provider.workers {
        for runtime in worker.cri.iter().flat_map(|cri| &cri.container_runtimes) {
            labels.insert(format!("{EXTENSION_CONTAINER_RUNTIME_PREFIX}{}", runtime.r#type));
        }
        if let Some(image) = &worker.machine.image {
            labels.insert(format!("{EXTENSION_OPERATING_SYSTEM_CONFIG_PREFIX}{}", image.name));
        }
        let exposure = worker.control_plane.as_ref().and_then(|own| own.exposure.as_ref());
        let extension = exposure.and_then(|exposure| exposure.extension.as_ref());
        if let Some(kind) = extension.and_then(|extension| extension.r#type.as_deref()) {
            labels.insert(format!("{EXTENSION_SELF_HOSTED_SHOOT_EXPOSURE_PREFIX}{kind}"));
        }
    }
    for provider in spec.dns.iter().flat_map(|dns| &dns.providers) {
        if let Some(kind) = provider.r#type.as_deref().filter(|kind| *kind != "unmanaged") {
            labels.insert(format!("{EXTENSION_DNS_RECORD_PREFIX}{kind}"));
        }
    }
    if let Some(kind) = spec
        .networking
        .as_ref()
        .and_then(|networking| networking.r#type.as_deref())
    {
        labels.insert(format!("{EXTENSION_NETWORKING_PREFIX}{kind}"));
    }
    labels
}

fn seed_labels(seed: &Seed, lister: &dyn Lister) -> BTreeSet<String> {
    let spec = &seed.spec;
    let mut labels = BTreeSet::from([format!("{EXTENSION_PROVIDER_PREFIX}{}", spec.provider.r#type)]);
    if let Some(backup) = &spec.backup {
        labels.insert(format!("{EXTENSION_PROVIDER_PREFIX}{}", backup.provider));
    }
    if let Some(provider) = &spec.dns.provider {
        labels.insert(format!("{EXTENSION_DNS_RECORD_PREFIX}{}", provider.r#type));
    }
    let extensions = enabled_extensions(&spec.extensions, &lookup::registrations(lister), "seed", false);
    labels.extend(
        extensions
            .iter()
            .map(|kind| format!("{EXTENSION_EXTENSION_PREFIX}{kind}")),
    );
    labels
}

/// The shoot of a write, if it is one to a shoot; of one that leaves the specification unread, with what labels are made of.
fn shoot_of(attributes: &Attributes<'_>) -> Option<Arc<Shoot>> {
    const LABELLED: &[&str] = &["dns", "extensions", "networking", "provider"];
    let apart = attributes.object.as_ref().filter(|object| object.is_apart());
    match apart.filter(|_| attributes.is("core.gardener.cloud", "shoots")) {
        Some(object) => object.read_with(Some(LABELLED)).ok().map(Arc::new),
        None => typed(attributes),
    }
}

/// The labels that the object of a write must have; none when its kind has no such labels.
fn wanted(attributes: &Attributes<'_>) -> Result<Option<BTreeSet<String>>, ApiError> {
    let lister = attributes.context.lister;
    let provider = |kind: &str| Ok(Some(BTreeSet::from([format!("{EXTENSION_PROVIDER_PREFIX}{kind}")])));
    if let Some(shoot) = shoot_of(attributes) {
        return Ok(Some(shoot_labels(&shoot, lister)));
    }
    if let Some(seed) = typed::<Seed>(attributes) {
        return Ok(Some(seed_labels(&seed, lister)));
    }
    if let Some(profile) = typed::<CloudProfile>(attributes) {
        return provider(&profile.spec.r#type);
    }
    if let Some(profile) = typed::<NamespacedCloudProfile>(attributes) {
        let parent = &profile.spec.parent;
        if parent.kind != "CloudProfile" {
            return Err(ApiError::bad_request("invalid parent kind"));
        }
        return match lookup::get::<CloudProfile>(lister, "", &parent.name) {
            Some(parent) => provider(&parent.spec.r#type),
            None => Err(ApiError::internal(format!(
                "cloudprofile.core.gardener.cloud {:?} not found",
                parent.name
            ))),
        };
    }
    if let Some(bucket) = typed::<BackupBucket>(attributes) {
        return provider(&bucket.spec.provider.r#type);
    }
    if let Some(entry) = typed::<BackupEntry>(attributes) {
        return match lookup::get::<BackupBucket>(lister, "", &entry.spec.bucket_name) {
            Some(bucket) => provider(&bucket.spec.provider.r#type),
            None => Err(ApiError::internal(format!(
                "backupbucket.core.gardener.cloud {:?} not found",
                entry.spec.bucket_name
            ))),
        };
    }
    if let Some(binding) = typed::<SecretBinding>(attributes) {
        // one binding may be of several providers
        let types = |own: &SecretBindingProvider| {
            let types = own.r#type.split(',');
            types.map(|kind| format!("{EXTENSION_PROVIDER_PREFIX}{kind}")).collect()
        };
        return Ok(binding.provider.as_ref().map(types));
    }
    if let Some(binding) = typed::<CredentialsBinding>(attributes) {
        return provider(&binding.provider.r#type);
    }
    if let Some(identity) = typed::<WorkloadIdentity>(attributes) {
        return provider(&identity.spec.target_system.r#type);
    }
    Ok(None)
}

/// Whether an object has its labels without a look at its specification: that is as it was when it got them. Behind that the image of a shoot's
/// nodes may have been chosen, which waits for the next write, and registrations may have come or gone that are enabled for all; who has other
/// extensions than those has to be looked at.
fn is_labelled(object: &Draft, lister: &dyn Lister) -> bool {
    if !object.is_apart() {
        return false;
    }
    let labels = meta::string_map(object.read_part().at("/metadata/labels"));
    let extensions = labels
        .keys()
        .filter_map(|key| key.strip_prefix(EXTENSION_EXTENSION_PREFIX));
    let has_those_of_all =
        |cluster| extensions.eq(enabled_extensions(&[], &lookup::registrations(lister), cluster, false).iter());
    let mut keys = labels.keys();
    let mut has_image = || keys.any(|key| key.starts_with(EXTENSION_OPERATING_SYSTEM_CONFIG_PREFIX));
    match object.read_part().get("kind").and_then(Value::as_str) {
        Some("Shoot") => has_image() && has_those_of_all("shoot"),
        Some("Seed") => has_those_of_all("seed"),
        _ => true,
    }
}

/// [ADM-33].
pub(super) struct ExtensionLabels;

#[async_trait]
impl Admission for ExtensionLabels {
    fn name(&self) -> &'static str {
        "ExtensionLabels"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let is_parent = matches!(attributes.subresource, "" | "status" | "binding");
        if !matches!(attributes.operation, Operation::Create | Operation::Update) || !is_parent {
            return Ok(());
        }
        let lister = attributes.context.lister;
        if attributes
            .object
            .as_ref()
            .is_some_and(|object| is_labelled(object, lister))
        {
            return Ok(());
        }
        let Some(wanted) = wanted(attributes)? else {
            return Ok(());
        };
        let Some(object) = attributes.object.as_mut() else {
            return Ok(());
        };
        let labels = meta::string_map(object.read_part().at("/metadata/labels")).into_iter();
        let own = labels.filter(|(key, _)| PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
        if own.eq(wanted.iter().map(|key| (key.clone(), "true".to_owned()))) {
            return Ok(());
        }
        let labels = meta::metadata_mut(object.read_part_mut())
            .entry("labels")
            .or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.retain(|key, _| !PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
            for key in wanted {
                labels.insert(key, "true".into());
            }
        }
        Ok(())
    }
}
