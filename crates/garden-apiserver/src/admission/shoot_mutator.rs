//! Completes shoots from their cloud profile and seed, [ADM-20] – [ADM-28], [DEF-50] – [DEF-53], [DEF-61].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::Duration;
use gardener_apis::constants::{annotation, operation, task};
use gardener_apis::core::v1beta1::*;
use gardener_apis::validation::{cidr, family};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_rules::versions::{self, Listed, NoNumber, Wish};
use k8s_openapi::Resource;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

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
        if !matches!(attributes.operation, Operation::Create | Operation::Update) {
            return Ok(());
        }
        match attributes.subresource {
            "" | "binding" => complete(attributes),
            "status" => {
                // a specification that comes as it is stored is fine; of what is done with it only the annotation is kept
                if tells_no_other_spec(attributes) {
                    rotate_through_status(attributes);
                    return Ok(());
                }
                complete(attributes)
            }
            _ => Ok(()),
        }
    }
}

/// Operations that have the infrastructure deployed anew [ADM-26].
const ROTATIONS: [&str; 3] = [
    operation::ROTATE_SSH_KEYPAIR,
    operation::ROTATE_CREDENTIALS_START,
    operation::ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT,
];

/// Whether a change of a status has the specification that is stored.
fn tells_no_other_spec(attributes: &Attributes<'_>) -> bool {
    let (Some(object), Some(old)) = (&attributes.object, attributes.old) else {
        return true;
    };
    object.is_apart() || object.get("spec") == old.get("spec")
}

/// A change of a status keeps the tasks that it is given [ADM-20].
fn rotate_through_status(attributes: &mut Attributes<'_>) {
    if !attributes.is(Shoot::GROUP, Shoot::URL_PATH_SEGMENT) {
        return;
    }
    let Some(object) = attributes.object.as_mut() else {
        return;
    };
    let text = |object: &Value, key: &str| {
        let annotations = object.at("/metadata/annotations").and_then(Value::as_object);
        let value = annotations.and_then(|annotations| annotations.get(key)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    let operations = text(object.read_part(), annotation::OPERATION);
    if !split_operations(&operations).iter().any(|own| ROTATIONS.contains(own)) {
        return;
    }
    let tasks = text(object.read_part(), annotation::SHOOT_TASKS);
    let mut tasks: Vec<&str> = tasks
        .split(',')
        .map(str::trim)
        .filter(|task| !task.is_empty())
        .collect();
    if !tasks.contains(&task::DEPLOY_INFRASTRUCTURE) {
        tasks.push(task::DEPLOY_INFRASTRUCTURE);
        if let Some(Value::Object(annotations)) = object.read_part_mut().at_mut("/metadata/annotations") {
            annotations.insert(annotation::SHOOT_TASKS.into(), tasks.join(",").into());
        }
    }
}

fn complete(attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
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
    let profile =
        lookup::cloud_profile(context.lister, attributes.namespace, Some(&reference)).map_err(ApiError::internal)?;
    let seed = match &shoot.spec.seed_name {
        Some(name) => Some(lookup::get::<Seed>(context.lister, "", name).ok_or_else(|| {
            let name = go_quote(name);
            ApiError::internal(format!(
                "could not find referenced seed {name}: seed.core.gardener.cloud {name} not found"
            ))
        })?),
        None => None,
    };
    if old.is_none() {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::CREATED_BY.into(), context.user.name.clone());
    }
    add_tasks(&mut shoot, old.as_deref());
    if let Some(old) = &old {
        mark_for_retry(&mut shoot, old);
    } else {
        default_rotation(&mut shoot);
    }
    if let Some(seed) = &seed {
        default_networks(&mut shoot, seed, context.chance);
    }
    let mut errors = default_versions(&mut shoot, &profile, context.now);
    default_architectures(&mut shoot, &profile);
    if !shoot.in_deletion() {
        errors.extend(default_images(&mut shoot, old.as_deref(), &profile, context.now));
    }
    if !errors.is_empty() {
        return Err(attributes.forbidden(&field::aggregate(&errors)));
    }
    put(attributes, shoot);
    Ok(())
}

/// [ADM-27].
fn mark_for_retry(shoot: &mut Shoot, old: &Shoot) {
    let maintenance = shoot.spec.maintenance.as_ref();
    let confined = maintenance.and_then(|maintenance| maintenance.confine_spec_update_rollout);
    let last = shoot.status.last_operation.as_ref();
    let failed = last.is_some_and(|last| last.state == "Failed");
    if confined == Some(true) && failed && shoot.spec != old.spec {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::SHOOT_NEEDS_RETRY.into(), "true".into());
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
fn default_networks(shoot: &mut Shoot, seed: &Seed, chance: u64) {
    let families: Vec<String> = shoot.spec.ip_families().into_iter().map(str::to_owned).collect();
    let fits =
        |range: &&String| cidr(range, &Path::root()).is_ok_and(|net| families.iter().any(|own| own == family(&net)));
    let workerless = shoot.is_workerless();
    let defaults = seed.spec.networks.shoot_defaults.as_ref();
    let networking = shoot.spec.networking.get_or_insert_default();
    if !workerless && networking.pods.is_none() {
        let own = defaults.and_then(|defaults| defaults.pods.as_ref());
        networking.pods = own.filter(fits).cloned();
    }
    if networking.services.is_none() {
        let own = defaults.and_then(|defaults| defaults.services.as_ref());
        networking.services = own.filter(fits).cloned();
        if networking.services.is_none() && workerless && families.iter().any(|own| own == "IPv6") {
            networking.services = Some(local_services(chance));
        }
    }
}

/// A range of unique local addresses by chance, in which services of a shoot without nodes may lie.
fn local_services(chance: u64) -> String {
    let [_, _, _, a, b, c, d, e] = chance.to_be_bytes();
    format!("fd{a:02x}:{b:02x}{c:02x}:{d:02x}{e:02x}::/112")
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

/// Completes the version of the control plane, and those of pools until one of them is none.
fn default_versions(shoot: &mut Shoot, profile: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let path = Path::new("spec");
    let listed = versions::kubernetes(profile, now);
    let mut errors = ErrorList::new();
    match full_version(
        shoot.spec.kubernetes_version(),
        &listed,
        &path.child("kubernetes.version"),
    ) {
        Ok(version) => shoot.spec.kubernetes.version = Some(version),
        Err(error) => errors.push(error),
    }
    for (i, worker) in shoot.spec.provider.workers.iter_mut().enumerate() {
        let own = worker.kubernetes.as_mut();
        let Some(version) = own.and_then(|kubernetes| kubernetes.version.as_mut()) else {
            continue;
        };
        let path = path.child("provider.workers").index(i).child("kubernetes.version");
        match full_version(version, &listed, &path) {
            Ok(full) => *version = full,
            Err(error) => {
                errors.push(error);
                break;
            }
        }
    }
    errors
}

/// The machine type of a pool, if the profile knows it.
fn machine_type<'a>(worker: &Worker, profile: &'a CloudProfileSpec) -> Option<&'a MachineType> {
    let mut known = profile.machine_types.iter();
    known.find(|machine| machine.name == worker.machine.r#type)
}

/// [ADM-24].
fn default_architectures(shoot: &mut Shoot, profile: &CloudProfileSpec) {
    for worker in &mut shoot.spec.provider.workers {
        if worker.machine.architecture.is_none() {
            let architecture = versions::default_architecture(machine_type(worker, profile));
            worker.machine.architecture = Some(architecture);
        }
    }
}

/// [ADM-25] for each pool.
fn default_images(shoot: &mut Shoot, old: Option<&Shoot>, profile: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let path = Path::new("spec.provider.workers");
    let mut errors = ErrorList::new();
    for (i, worker) in shoot.spec.provider.workers.iter_mut().enumerate() {
        let mut before = old.into_iter().flat_map(|old| &old.spec.provider.workers);
        let before = before.find(|before| before.name == worker.name);
        let earlier = before.and_then(|before| before.machine.image.as_ref());
        match default_image(worker, earlier, profile, now, &path.index(i)) {
            Ok(image) => worker.machine.image = Some(image),
            Err(error) => errors.push(error),
        }
    }
    errors
}

/// Whether what is wished for is the image that the pool has: its name, and no other version.
fn keeps(wish: &ShootMachineImage, earlier: &ShootMachineImage) -> bool {
    let version = wish.version.as_ref().filter(|version| !version.is_empty());
    wish.name == earlier.name && (version.is_none() || version == earlier.version.as_ref())
}

/// [ADM-25]: the image of a pool, given the one that it had.
fn default_image(
    worker: &Worker,
    earlier: Option<&ShootMachineImage>,
    profile: &CloudProfileSpec,
    now: Timestamp,
    path: &Path,
) -> Result<ShootMachineImage, Error> {
    let wish = worker.machine.image.as_ref();
    // [VER-51]: only maintenance brings a pool to another image than the one that it has
    match (earlier, wish) {
        (Some(earlier), None) => return Ok(earlier.clone()),
        (Some(earlier), Some(wish)) if keeps(wish, earlier) => {
            return Ok(ShootMachineImage {
                provider_config: wish.provider_config.clone(),
                ..earlier.clone()
            });
        }
        _ => {}
    }
    let wished_version = wish.and_then(|image| image.version.as_deref()).unwrap_or_default();
    let asked = wish.map(|image| format!("{}@{wished_version}", image.name));
    let asked = asked.unwrap_or_default();
    if profile.machine_images.is_empty() {
        let why = "the cloud profile does not contain any machine image - cannot create shoot cluster";
        return Err(Error::invalid(path, asked, why));
    }
    let architecture = worker.machine.architecture.as_deref().unwrap_or_default();
    let definitions = &profile.machine_capabilities;
    let supports = |version: &MachineImageVersion| versions::fits_architecture(version, definitions, architecture);
    let machine_type = machine_type(worker, profile);
    let can = |version: &MachineImageVersion, machine: &MachineType| {
        versions::fits_capabilities(version, definitions, machine)
    };
    let mut images = profile.machine_images.iter();
    let known = match wish.map(|image| image.name.as_str()).filter(|name| !name.is_empty()) {
        Some(name) => images
            .find(|known| known.name == name)
            .ok_or_else(|| Error::invalid(path, name, "image is not supported"))?,
        None => {
            let fits = |version: &MachineImageVersion| {
                supports(version) || machine_type.is_some_and(|machine| can(version, machine))
            };
            let why = || format!("no valid machine image found that supports architecture `{architecture}`");
            images
                .find(|known| known.versions.iter().any(fits))
                .ok_or_else(|| Error::invalid(path, asked.as_str(), why()))?
        }
    };
    let named = wish.filter(|wish| !wish.name.is_empty());
    if let Some(named) = named
        && known.versions.iter().any(|version| version.version == wished_version)
    {
        return Ok(named.clone());
    }
    let wanted = Wish::of(wished_version.strip_prefix('v').unwrap_or(wished_version));
    let prefix = match (wanted, wish) {
        (Ok(Wish::Exact), Some(wish)) => return Ok(wish.clone()),
        (Ok(Wish::Exact), None) => Vec::new(),
        (Ok(Wish::Prefix(prefix)), _) => prefix,
        (Err(NoNumber { part, why }), _) => {
            let why = format!(
                "{part} must be a semantic version: strconv.ParseUint: parsing {}: {why}",
                go_quote(part)
            );
            return Err(Error::invalid(path, wished_version, why));
        }
    };
    let updatable = |version: &MachineImageVersion| {
        let updates = version.in_place_updates.as_ref();
        !worker.is_in_place() || updates.is_some_and(|updates| updates.supported)
    };
    let capable = |version: &MachineImageVersion| machine_type.is_none_or(|machine| can(version, machine));
    let suitable = known.versions.iter();
    let suitable = suitable.filter(|version| supports(version) && capable(version) && updatable(version));
    let candidates = versions::machine_image(suitable, now);
    let found = versions::default_machine_image(&candidates, &prefix).ok_or_else(|| {
        let why =
            "failed to determine latest machine image from cloud profile: unable to determine latest expirable version";
        Error::invalid(path, asked, why)
    })?;
    Ok(ShootMachineImage {
        name: known.name.clone(),
        version: Some(found.text.to_owned()),
        provider_config: wish.and_then(|wish| wish.provider_config.clone()),
    })
}

/// [ADM-26].
fn add_tasks(shoot: &mut Shoot, old: Option<&Shoot>) {
    let dns = [
        task::DEPLOY_DNS_RECORD_INTERNAL,
        task::DEPLOY_DNS_RECORD_EXTERNAL,
        task::DEPLOY_DNS_RECORD_INGRESS,
    ];
    let mut wanted: Vec<&str> = Vec::new();
    match old {
        None => wanted.extend(task::ALL),
        Some(old) => {
            if old.hibernation_enabled() && !shoot.hibernation_enabled() {
                wanted.extend(task::ALL);
            }
            let operations = shoot.operations(annotation::OPERATION);
            // what was not told before is not another now
            let families = |shoot: &Shoot| shoot.spec.networking.as_ref().map_or(0, |own| own.ip_families.len());
            let ssh_access = |shoot: &Shoot| {
                let settings = shoot.spec.provider.workers_settings.as_ref();
                Some(settings?.ssh_access.as_ref()?.enabled)
            };
            let before = ssh_access(old);
            if shoot.spec.provider.infrastructure_config != old.spec.provider.infrastructure_config
                || (families(old) > 0 && families(old) < families(shoot))
                || (before.is_some() && before != ssh_access(shoot))
                || operations.iter().any(|operation| ROTATIONS.contains(operation))
            {
                wanted.push(task::DEPLOY_INFRASTRUCTURE);
            }
            if shoot.spec.dns != old.spec.dns {
                wanted.extend(dns);
            }
        }
    }
    shoot.add_tasks(wanted);
}
