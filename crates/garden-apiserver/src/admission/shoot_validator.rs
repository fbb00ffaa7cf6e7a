//! Shoots fit their project, cloud profile and seed, [ADM-29] – [ADM-32l].

mod images;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apis::validation::{cidr, overlap};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use ipnet::IpNet;
use k8s_openapi::jiff::Timestamp;

use super::shoot_defaults::NO_PROJECT;
use super::{typed, typed_old};
use crate::lookup;

/// The plugin.
pub(super) struct ShootValidator;

/// The most characters that the names of project and shoot have together.
const NAMES_MAX: usize = 21;

#[async_trait]
impl Admission for ShootValidator {
    fn name(&self) -> &'static str {
        "ShootValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update)
            || !matches!(attributes.subresource, "" | "binding")
        {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let old = typed_old::<Shoot>(attributes);
        let lister = attributes.context.lister;
        let project =
            lookup::project_of(lister, attributes.namespace).ok_or_else(|| attributes.forbidden(NO_PROJECT))?;
        if old.is_none() {
            new_in_project(attributes, &shoot, &project)?;
        }
        let reference = shoot.spec.cloud_profile_reference();
        let profile =
            lookup::cloud_profile(lister, attributes.namespace, reference.as_ref()).map_err(ApiError::internal)?;
        scheduling(attributes, &shoot, old.as_ref(), &profile)?;
        if shoot.in_deletion() || old.as_ref().is_some_and(|old| old.spec == shoot.spec) {
            return Ok(());
        }
        let mut errors = networks(&shoot);
        errors.extend(provider(attributes, &shoot, &profile));
        errors.extend(kubernetes(&shoot, old.as_ref(), &profile, attributes.context.now));
        for (i, worker) in shoot.spec.provider.workers.iter().enumerate() {
            let path = Path::new("spec.provider.workers").index(i);
            errors.extend(pool(
                worker,
                old.as_ref(),
                &shoot,
                &profile,
                attributes.context.now,
                &path,
            ));
        }
        errors.extend(limits(&shoot, &profile));
        errors.extend(domain(attributes, &shoot, old.as_ref()));
        if errors.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        Err(attributes.forbidden(&text))
    }
}

/// [ADM-29], [VAL-S2].
fn new_in_project(attributes: &Attributes<'_>, shoot: &Shoot, project: &Project) -> Result<(), ApiError> {
    let name = project.metadata.name.as_deref().unwrap_or_default();
    if name.len() + shoot.own_name().len() > NAMES_MAX {
        let why = format!("the length of the shoot name and the project name must not exceed {NAMES_MAX} characters");
        return Err(attributes.invalid(&[Error::invalid(&Path::new("name"), shoot.own_name(), why)]));
    }
    if project.metadata.deletion_timestamp.is_some() {
        return Err(attributes.forbidden(&format!(
            "cannot create shoot '{}' in project '{name}' that is already marked for deletion",
            shoot.own_name()
        )));
    }
    Ok(())
}

/// [ADM-29a], [ADM-29b], [ADM-29d].
fn scheduling(
    attributes: &Attributes<'_>,
    shoot: &Shoot,
    old: Option<&Shoot>,
    profile: &CloudProfileSpec,
) -> Result<(), ApiError> {
    let before = old.and_then(|old| old.spec.seed_name.as_deref());
    let now = shoot.spec.seed_name.as_deref();
    let context = attributes.context;
    match (old, before, now) {
        (None, _, Some(_)) => {
            let may = context.lister.allowed(
                context.user,
                "update",
                "core.gardener.cloud",
                "shoots/binding",
                attributes.namespace,
                attributes.name,
            );
            if !may {
                return Err(attributes.forbidden(&format!(
                    "user {:?} is not allowed to set .spec.seedName for \"shoots\"",
                    context.user.name
                )));
            }
        }
        (Some(_), Some(before), None) => {
            return Err(attributes.forbidden(&format!(
                "spec.seedName is already set to '{before}' and cannot be changed to 'nil'"
            )));
        }
        (Some(_), _, Some(now)) if before != Some(now) && attributes.subresource != "binding" => {
            return Err(attributes.forbidden(&format!(
                "spec.seedName '{}' cannot be changed to '{now}' by patching the shoot, please use the shoots/binding subresource",
                before.unwrap_or("nil")
            )));
        }
        (Some(_), Some(before), Some(now)) if attributes.subresource == "binding" && before == now => {
            return Err(ApiError::internal(
                "update of binding rejected, shoot is already assigned to the same seed",
            ));
        }
        _ => {}
    }
    let Some(name) = now.filter(|now| before != Some(*now)) else {
        return Ok(());
    };
    let Some(seed) = lookup::get::<Seed>(context.lister, "", name) else {
        return Ok(());
    };
    if seed.metadata.deletion_timestamp.is_some() {
        return Err(attributes.forbidden(&format!(
            "cannot schedule shoot '{}' on seed '{name}' that is already marked for deletion",
            shoot.own_name()
        )));
    }
    let tolerated = seed.spec.taints.iter().all(|taint| {
        shoot
            .spec
            .tolerations
            .iter()
            .any(|own| own.key == taint.key && (own.value.is_none() || own.value == taint.value))
    });
    if !tolerated {
        return Err(attributes.forbidden("forbidden to use a seed whose taints are not tolerated by the shoot"));
    }
    let restricted = shoot.spec.access_restrictions.iter().all(|own| {
        seed.spec
            .access_restrictions
            .iter()
            .any(|offered| offered.name == own.name)
    });
    if !restricted {
        return Err(
            attributes.forbidden("forbidden to use a seed which doesn't support the access restrictions of the shoot")
        );
    }
    let zones = seed.spec.provider.zones.len();
    if shoot.spec.failure_tolerance() == Some("zone") && zones < 3 {
        return Err(attributes.forbidden(&format!(
            "cannot schedule shoot '{}' with failure tolerance of zone on seed '{name}' with only {zones} zones, at least 3 zones are required",
            shoot.own_name()
        )));
    }
    if let Some(selector) = &profile.seed_selector {
        let types = &selector.provider_types;
        if !types.is_empty()
            && !types
                .iter()
                .any(|kind| kind == "*" || *kind == seed.spec.provider.r#type)
        {
            return Err(attributes.forbidden(&format!(
                "cannot schedule shoot '{}' on seed '{name}' because none of the provider types in the seed selector of cloud profile is matching the provider type of the seed",
                shoot.own_name()
            )));
        }
    }
    Ok(())
}

/// [ADM-30].
fn networks(shoot: &Shoot) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec.networking");
    let Some(networking) = &shoot.spec.networking else {
        return errors;
    };
    let parse = |text: &Option<String>| text.as_deref().and_then(|text| cidr(text, &path).ok());
    let nets: [(&str, Option<IpNet>); 3] = [
        ("pods", parse(&networking.pods)),
        ("services", parse(&networking.services)),
        ("nodes", parse(&networking.nodes)),
    ];
    if shoot.spec.ip_families().contains(&"IPv4") {
        for (one, other, at, why) in [
            (
                0,
                1,
                "services",
                "shoot pod network intersects with shoot service network",
            ),
            (0, 2, "pods", "shoot pod network intersects with shoot node network"),
            (
                1,
                2,
                "services",
                "shoot service network intersects with shoot node network",
            ),
        ] {
            if let (Some((_, Some(first))), Some((_, Some(second)))) = (nets.get(one), nets.get(other))
                && overlap(first, second)
            {
                let shown = if at == "services" && one == 0 { second } else { first };
                errors.push(Error::invalid(&path.child(at), shown.to_string(), why));
            }
        }
        if shoot.spec.seed_name.is_some() {
            if networking.pods.is_none() && !shoot.is_workerless() {
                errors.push(Error::required(&path.child("pods"), "pods is required"));
            }
            if networking.services.is_none() {
                errors.push(Error::required(&path.child("services"), "services is required"));
            }
        }
    }
    for (name, net) in &nets {
        if let Some(net) = net
            && let Some(range) = reserved_range(net)
        {
            let what = name.trim_end_matches('s');
            errors.push(Error::invalid(
                &path.child(name),
                net.to_string(),
                format!("shoot {what} network intersects with {range}"),
            ));
        }
    }
    errors
}

/// [ADM-32], [ADM-32a].
fn provider(attributes: &Attributes<'_>, shoot: &Shoot, profile: &CloudProfileSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec.provider.type");
    let own = shoot.spec.provider.r#type.as_str();
    if profile.r#type != own {
        errors.push(Error::invalid(
            &path,
            own,
            format!(
                "provider type in shoot must equal provider type of referenced CloudProfile: {:?}",
                profile.r#type
            ),
        ));
    }
    let lister = attributes.context.lister;
    if let Some(name) = &shoot.spec.credentials_binding_name
        && let Some(binding) = lookup::get::<CredentialsBinding>(lister, attributes.namespace, name)
        && !binding.provider.r#type.split(',').any(|kind| kind == own)
    {
        errors.push(Error::invalid(
            &path,
            own,
            format!(
                "provider type in shoot must match provider type of referenced CredentialsBinding: {:?}",
                binding.provider.r#type
            ),
        ));
    }
    if let Some(name) = &shoot.spec.secret_binding_name
        && let Some(binding) = lookup::get::<SecretBinding>(lister, attributes.namespace, name)
        && let Some(provider) = &binding.provider
        && !provider.r#type.split(',').any(|kind| kind == own)
    {
        errors.push(Error::invalid(
            &path,
            own,
            format!(
                "provider type in shoot must match provider type of referenced SecretBinding: {:?}",
                provider.r#type
            ),
        ));
    }
    let Some(region) = profile.regions.iter().find(|region| region.name == shoot.spec.region) else {
        let known: Vec<&str> = profile.regions.iter().map(|region| region.name.as_str()).collect();
        errors.push(Error::not_supported(
            &Path::new("spec.region"),
            shoot.spec.region.as_str(),
            &known,
        ));
        return errors;
    };
    for (i, restriction) in shoot.spec.access_restrictions.iter().enumerate() {
        if !region
            .access_restrictions
            .iter()
            .any(|offered| offered.name == restriction.name)
        {
            let known: Vec<&str> = region
                .access_restrictions
                .iter()
                .map(|offered| offered.name.as_str())
                .collect();
            errors.push(Error::not_supported(
                &Path::new("spec.accessRestrictions").index(i),
                restriction.name.as_str(),
                &known,
            ));
        }
    }
    errors
}

/// [ADM-32b], [VER-42], [VER-43]: whoever runs a version may go to an expired one, as forced updates must.
fn version(version: &str, is_new: bool, profile: &CloudProfileSpec, now: Timestamp, path: &Path) -> Option<Error> {
    let known = profile
        .kubernetes
        .versions
        .iter()
        .find(|known| known.version == version);
    let fits = known.is_some_and(|known| match known.stage(now) {
        Stage::Unavailable => false,
        Stage::Expired => !is_new,
        _ => true,
    });
    if fits {
        return None;
    }
    let offered: Vec<String> = profile
        .kubernetes
        .versions
        .iter()
        .filter(|known| known.stage(now).is_active())
        .map(|known| match known.stage(now) {
            Stage::Preview => format!("{} (preview)", known.version),
            _ => known.version.clone(),
        })
        .collect();
    Some(Error::not_supported(path, version, &offered))
}

fn kubernetes(shoot: &Shoot, old: Option<&Shoot>, profile: &CloudProfileSpec, now: Timestamp) -> ErrorList {
    let own = shoot.spec.kubernetes_version();
    if old.is_some_and(|old| old.spec.kubernetes_version() == own) {
        return ErrorList::new();
    }
    version(own, old.is_none(), profile, now, &Path::new("spec.kubernetes.version"))
        .into_iter()
        .collect()
}

/// [ADM-32b] – [ADM-32g] of one pool.
fn pool(
    worker: &Worker,
    before: Option<&Shoot>,
    shoot: &Shoot,
    profile: &CloudProfileSpec,
    now: Timestamp,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let earlier = before.map(|shoot| {
        (
            shoot,
            shoot.spec.provider.workers.iter().find(|own| own.name == worker.name),
        )
    });
    let old = earlier.and_then(|(_, old)| old);
    if let Some(own) = worker
        .kubernetes
        .as_ref()
        .and_then(|kubernetes| kubernetes.version.as_deref())
    {
        // so does upstream: a new pool is compared with the control plane
        let version_before = earlier.map(|(shoot, old)| match old {
            Some(old) => shoot.spec.worker_version(old),
            None => shoot.spec.kubernetes_version(),
        });
        if version_before != Some(own) {
            let path = path.child("kubernetes.version");
            errors.extend(version(own, old.is_none(), profile, now, &path));
        }
    }
    let region = profile.regions.iter().find(|region| region.name == shoot.spec.region);
    errors.extend(machine_type(worker, old, profile, region, &path.child("machine.type")));
    let unchanged = |old: &Worker| {
        old.machine.image == worker.machine.image && old.machine.architecture == worker.machine.architecture
    };
    if !old.is_some_and(unchanged) {
        errors.extend(images::offered(worker, old, profile, now, &path.child("machine.image")));
    }
    if old.is_none_or(|old| old.machine.image != worker.machine.image || old.cri != worker.cri) {
        errors.extend(images::container_runtimes(worker, profile, &path.child("cri")));
    }
    errors.extend(images::kubelet(
        worker,
        shoot.spec.worker_version(worker),
        profile,
        &path.child("machine.image"),
    ));
    if let Some(volume) = &worker.volume
        && let Some(kind) = &volume.r#type
        && old.is_none_or(|old| old.volume.as_ref().and_then(|volume| volume.r#type.as_ref()) != Some(kind))
    {
        let usable: Vec<&str> = profile
            .volume_types
            .iter()
            .filter(|known| known.usable != Some(false))
            .map(|known| known.name.as_str())
            .collect();
        if !usable.contains(&kind.as_str()) {
            errors.push(Error::not_supported(&path.child("volume.type"), kind.as_str(), &usable));
        }
    }
    if let Some(region) = region
        && old.is_none_or(|old| old.zones != worker.zones)
    {
        let known: Vec<&str> = region.zones.iter().map(|zone| zone.name.as_str()).collect();
        for (i, zone) in worker.zones.iter().enumerate() {
            let at = path.child("zones").index(i);
            if known.is_empty() {
                errors.push(Error::invalid(
                    &at,
                    zone.as_str(),
                    "this region does not support availability zones, please do not configure them",
                ));
            } else if !known.contains(&zone.as_str()) {
                errors.push(Error::not_supported(&at, zone.as_str(), &known));
            } else if worker.zones.iter().take(i).any(|earlier| earlier == zone) {
                errors.push(Error::duplicate(&at, zone.as_str()));
            }
        }
    }
    errors
}

/// [ADM-32c].
fn machine_type(
    worker: &Worker,
    old: Option<&Worker>,
    profile: &CloudProfileSpec,
    region: Option<&Region>,
    path: &Path,
) -> Option<Error> {
    let unchanged = old.is_some_and(|old| {
        old.machine.r#type == worker.machine.r#type && old.machine.architecture == worker.machine.architecture
    });
    if unchanged {
        return None;
    }
    let own = worker.machine.r#type.as_str();
    let usable: Vec<&str> = profile
        .machine_types
        .iter()
        .filter(|known| known.usable != Some(false) && known.architecture == worker.machine.architecture)
        .map(|known| known.name.as_str())
        .collect();
    let Some(known) = profile.machine_types.iter().find(|known| known.name == own) else {
        return Some(Error::not_supported(path, own, &usable));
    };
    let blocked = region.is_some_and(|region| {
        region.zones.iter().any(|zone| {
            worker.zones.contains(&zone.name) && zone.unavailable_machine_types.iter().any(|name| name == own)
        })
    });
    let architecture = worker.machine.architecture.as_deref().unwrap_or_default();
    let why = if known.architecture.is_some() && known.architecture != worker.machine.architecture {
        format!("machine type {own:?} does not support CPU architecture {architecture:?}")
    } else if known.usable == Some(false) {
        format!("machine type {own:?} is unusable")
    } else if blocked {
        format!("machine type {own:?} is unavailable in at least one zone")
    } else {
        return None;
    };
    Some(Error::invalid(
        path,
        own,
        format!("{why}, supported types are [{}]", usable.join(" ")),
    ))
}

/// [ADM-32k].
fn limits(shoot: &Shoot, profile: &CloudProfileSpec) -> Option<Error> {
    let limit = profile.limits.as_ref()?.max_nodes_total?;
    let total: i64 = shoot
        .spec
        .provider
        .workers
        .iter()
        .map(|worker| i64::from(worker.minimum))
        .sum();
    (total > i64::from(limit)).then(|| {
        Error::forbidden(
            &Path::new("spec.provider.workers"),
            format!(
                "the total minimum node count of all worker pools must not exceed the limit of {limit} configured in the CloudProfile"
            ),
        )
    })
}

/// [ADM-32l]. A domain that a shoot has already was looked at when it came: all shoots are read for that.
fn domain(attributes: &Attributes<'_>, shoot: &Shoot, old: Option<&Shoot>) -> Option<Error> {
    let domain_of = |shoot: &Shoot| shoot.spec.dns.as_ref()?.domain.clone();
    let own = domain_of(shoot)?;
    let own = own.as_str();
    if old.and_then(domain_of).as_deref() == Some(own) {
        return None;
    }
    let path = Path::new("spec.dns.domain");
    lookup::list::<Shoot>(attributes.context.lister, None)
        .iter()
        .filter(|other| (other.project_namespace(), other.own_name()) != (shoot.project_namespace(), shoot.own_name()))
        .filter_map(domain_of)
        .find_map(|other| {
            if other == own {
                Some(Error::duplicate(&path, own))
            } else if own.ends_with(&format!(".{other}")) || other.ends_with(&format!(".{own}")) {
                Some(Error::forbidden(
                    &path,
                    "the domain is already used by another shoot or it is a subdomain of an already used domain",
                ))
            } else {
                None
            }
        })
}
