//! Completes shoots from their cloud profile and seed, [ADM-20] – [ADM-28], [DEF-50] – [DEF-53], [DEF-61].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_apis::Duration;
use gardener_apis::constants::{annotation, operation, task};
use gardener_apis::core::v1beta1::*;
use gardener_apis::validation::{cidr, family};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_rules::versions::{self, Listed, NoNumber, Wish};
use k8s_openapi::jiff::Timestamp;

use super::{put, typed, typed_old};
use crate::lookup;

/// The plugin.
pub(super) struct ShootMutator;

#[async_trait]
impl Admission for ShootMutator {
    fn name(&self) -> &'static str {
        "ShootMutator"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update)
            || !matches!(attributes.subresource, "" | "binding")
        {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let mut shoot = Shoot::clone(&shoot);
        let old = typed_old::<Shoot>(attributes);
        let context = attributes.context;
        let named = shoot.spec.cloud_profile_name.as_deref();
        if old.is_none() && named.is_some_and(|name| !name.is_empty()) && shoot.spec.cloud_profile.is_some() {
            return Err(ApiError::unclassified(
                "new shoot can only specify either cloudProfileName or cloudProfile reference",
            ));
        }
        let Some(reference) = shoot.spec.cloud_profile_reference() else {
            // the validation says what is missing
            return Ok(());
        };
        let profile = lookup::cloud_profile(context.lister, attributes.namespace, Some(&reference))
            .map_err(ApiError::internal)?;
        if old.is_none() {
            let annotations = shoot.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::CREATED_BY.into(), context.user.name.clone());
            default_rotation(&mut shoot);
        }
        if let Some(name) = shoot.spec.seed_name.clone().filter(|name| !name.is_empty())
            && let Some(seed) = lookup::get::<Seed>(context.lister, "", &name)
        {
            default_networks(&mut shoot, &seed);
        }
        default_versions(&mut shoot, &profile, context.now)
            .map_err(|error| attributes.forbidden(&error.to_string()))?;
        if !shoot.in_deletion() {
            for i in 0..shoot.spec.provider.workers.len() {
                complete_machine(&mut shoot, i, old.as_deref(), &profile, context.now)
                    .map_err(|error| attributes.forbidden(&error.to_string()))?;
            }
        }
        add_tasks(&mut shoot, old.as_deref());
        if let Some(old) = &old {
            let confined = shoot
                .spec
                .maintenance
                .as_ref()
                .and_then(|maintenance| maintenance.confine_spec_update_rollout)
                .unwrap_or_default();
            let failed = shoot
                .status
                .last_operation
                .as_ref()
                .is_some_and(|last| last.state == "Failed");
            if confined && failed && shoot.spec != old.spec {
                let annotations = shoot.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::SHOOT_NEEDS_RETRY.into(), "true".into());
            }
        }
        put(attributes, shoot);
        Ok(())
    }
}

/// [ADM-28].
fn default_rotation(shoot: &mut Shoot) {
    let credentials = shoot
        .spec
        .maintenance
        .get_or_insert_default()
        .auto_rotation
        .get_or_insert_default()
        .credentials
        .get_or_insert_default();
    credentials
        .etcd_encryption_key
        .get_or_insert_with(|| MaintenanceRotationConfig {
            rotation_period: Some(Duration::from_secs(672 * 3600)),
        });
}

/// [ADM-22].
fn default_networks(shoot: &mut Shoot, seed: &Seed) {
    let Some(defaults) = &seed.spec.networks.shoot_defaults else {
        return;
    };
    let families: Vec<String> = shoot.spec.ip_families().into_iter().map(str::to_owned).collect();
    let fits =
        |range: &&String| cidr(range, &Path::root()).is_ok_and(|net| families.iter().any(|own| own == family(&net)));
    let workerless = shoot.is_workerless();
    let networking = shoot.spec.networking.get_or_insert_default();
    if !workerless && networking.pods.is_none() {
        networking.pods = defaults.pods.as_ref().filter(fits).cloned();
    }
    if networking.services.is_none() {
        networking.services = defaults.services.as_ref().filter(fits).cloned();
    }
}

/// The highest supported Kubernetes version with the given beginning, [ADM-23], [VER-40], [VER-41].
fn full_version(text: &str, listed: &[Listed<'_>], path: &Path) -> Result<String, Error> {
    let prefix = match Wish::of(text) {
        Ok(Wish::Exact) => return Ok(text.to_owned()),
        Ok(Wish::Prefix(prefix)) => prefix,
        Err(wrong) => return Err(Error::invalid(path, wrong.part, "must be a semantic version")),
    };
    let found = versions::default_kubernetes(listed, &prefix).map(|found| found.text.to_owned());
    found.ok_or_else(|| {
        let why = format!(
            "couldn't find a suitable version for {text}. Suitable versions have a non-expired expiration date and are no 'preview' versions. 'Preview'-classified versions have to be selected explicitly"
        );
        Error::invalid(path, text, why)
    })
}

fn default_versions(shoot: &mut Shoot, profile: &CloudProfileSpec, now: Timestamp) -> Result<(), Error> {
    let path = Path::new("spec");
    let listed = versions::kubernetes(profile, now);
    let own = shoot.spec.kubernetes_version();
    let version = full_version(own, &listed, &path.child("kubernetes.version"))?;
    shoot.spec.kubernetes.version = Some(version);
    for (i, worker) in shoot.spec.provider.workers.iter_mut().enumerate() {
        if let Some(version) = worker
            .kubernetes
            .as_mut()
            .and_then(|kubernetes| kubernetes.version.as_mut())
        {
            let path = path.child("provider.workers").index(i).child("kubernetes.version");
            *version = full_version(version, &listed, &path)?;
        }
    }
    Ok(())
}

/// Whether what is wished for is the image that the pool has: its name, and no other version.
fn keeps(wish: &ShootMachineImage, earlier: &ShootMachineImage) -> bool {
    let version = wish.version.as_ref().filter(|version| !version.is_empty());
    wish.name == earlier.name && (version.is_none() || version == earlier.version.as_ref())
}

/// [ADM-24], [ADM-25]: architecture and image of a pool.
fn complete_machine(
    shoot: &mut Shoot,
    index: usize,
    old: Option<&Shoot>,
    profile: &CloudProfileSpec,
    now: Timestamp,
) -> Result<(), Error> {
    let path = Path::new("spec.provider.workers").index(index);
    let Some(worker) = shoot.spec.provider.workers.get_mut(index) else {
        return Ok(());
    };
    let machine_type = profile
        .machine_types
        .iter()
        .find(|machine| machine.name == worker.machine.r#type);
    let architecture = worker
        .machine
        .architecture
        .get_or_insert_with(|| versions::default_architecture(machine_type))
        .clone();
    let earlier = old
        .and_then(|old| {
            old.spec
                .provider
                .workers
                .iter()
                .find(|earlier| earlier.name == worker.name)
        })
        .and_then(|earlier| earlier.machine.image.clone());
    let image = worker.machine.image.clone();
    // [VER-51]: only maintenance brings a pool to another image than the one that it has
    match (earlier, &image) {
        (Some(earlier), None) => {
            worker.machine.image = Some(earlier);
            return Ok(());
        }
        (Some(earlier), Some(wish)) if keeps(wish, &earlier) => {
            worker.machine.image = Some(ShootMachineImage {
                provider_config: wish.provider_config.clone(),
                ..earlier
            });
            return Ok(());
        }
        _ => {}
    }
    if profile.machine_images.is_empty() {
        let wish = worker.machine.image.as_ref();
        let wish = wish.map(|image| format!("{}@{}", image.name, image.version.as_deref().unwrap_or_default()));
        return Err(Error::invalid(
            &path,
            wish.unwrap_or_default(),
            "the cloud profile does not contain any machine image - cannot create shoot cluster",
        ));
    }
    let definitions = &profile.machine_capabilities;
    let supports = |version: &MachineImageVersion| versions::fits_architecture(version, definitions, &architecture);
    let capable = |version: &MachineImageVersion| {
        definitions.is_empty()
            || machine_type.is_none_or(|machine| versions::fits_capabilities(version, definitions, machine))
    };
    let name = image
        .as_ref()
        .map(|image| image.name.clone())
        .filter(|name| !name.is_empty());
    let known = match &name {
        Some(name) => profile
            .machine_images
            .iter()
            .find(|known| known.name == *name)
            .ok_or_else(|| Error::invalid(&path, name.as_str(), "image is not supported"))?,
        None => profile
            .machine_images
            .iter()
            .find(|known| match machine_type {
                Some(_) => known.versions.iter().any(capable),
                None => known.versions.iter().any(supports),
            })
            .ok_or_else(|| {
                Error::invalid(
                    &path,
                    worker.name.as_str(),
                    format!("no valid machine image found that supports architecture `{architecture}`"),
                )
            })?,
    };
    let wish = image
        .as_ref()
        .and_then(|image| image.version.clone())
        .unwrap_or_default();
    let listed = known.versions.iter().any(|version| version.version == wish);
    let prefix = match Wish::of(wish.strip_prefix('v').unwrap_or(&wish)) {
        _ if listed && !wish.is_empty() => Wish::Exact,
        Ok(prefix) => prefix,
        Err(NoNumber { part, why }) => {
            let why = format!(
                "{part} must be a semantic version: strconv.ParseUint: parsing {}: {why}",
                go_quote(part)
            );
            return Err(Error::invalid(&path, wish.as_str(), why));
        }
    };
    let version = match prefix {
        Wish::Exact => wish,
        Wish::Prefix(prefix) => {
            let in_place = worker.is_in_place();
            let updatable = |version: &MachineImageVersion| {
                let updates = version.in_place_updates.as_ref();
                !in_place || updates.is_some_and(|updates| updates.supported)
            };
            let suitable = known.versions.iter();
            let suitable = suitable.filter(|version| supports(version) && capable(version) && updatable(version));
            let candidates = versions::machine_image(suitable, now);
            let found = versions::default_machine_image(&candidates, &prefix).map(|found| found.text.to_owned());
            found.ok_or_else(|| {
                let asked = image.as_ref().map(|image| format!("{}@{wish}", image.name));
                Error::invalid(
                    &path,
                    asked.unwrap_or_default(),
                    "failed to determine latest machine image from cloud profile: unable to determine latest expirable version",
                )
            })?
        }
    };
    worker.machine.image = Some(ShootMachineImage {
        name: known.name.clone(),
        version: Some(version),
        provider_config: image.and_then(|image| image.provider_config),
    });
    Ok(())
}

/// [ADM-26].
fn add_tasks(shoot: &mut Shoot, old: Option<&Shoot>) {
    let mut wanted: Vec<&str> = Vec::new();
    match old {
        None => wanted.extend(task::ALL),
        Some(old) => {
            if old.hibernation_enabled() && !shoot.hibernation_enabled() {
                wanted.extend(task::ALL);
            }
            let operations = shoot.operations(annotation::OPERATION);
            let rotates = [
                operation::ROTATE_SSH_KEYPAIR,
                operation::ROTATE_CREDENTIALS_START,
                operation::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
            ];
            if shoot.spec.provider.infrastructure_config != old.spec.provider.infrastructure_config
                || shoot.spec.ip_families().len() > old.spec.ip_families().len()
                || shoot.spec.ssh_access_enabled() != old.spec.ssh_access_enabled()
                || operations.iter().any(|operation| rotates.contains(operation))
            {
                wanted.push(task::DEPLOY_INFRASTRUCTURE);
            }
            if shoot.spec.dns != old.spec.dns {
                wanted.extend([
                    task::DEPLOY_DNS_RECORD_INTERNAL,
                    task::DEPLOY_DNS_RECORD_EXTERNAL,
                    task::DEPLOY_DNS_RECORD_INGRESS,
                ]);
            }
        }
    }
    shoot.add_tasks(wanted);
}
