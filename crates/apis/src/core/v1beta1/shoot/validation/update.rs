//! Changes of shoots, [VAL-U1] – [VAL-U21].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::link::Link;
use serde_json::Value;

use super::super::{KubeletConfig, Shoot, ShootSpec, ShootStatus, Worker};
use super::operations::is_ready;
use super::spec::cloud_profile;
use super::{OPERATION, Phases, encrypted_in_spec, encrypted_in_status, encryption_provider_in_status, normalized};
use crate::constants::{DEFAULT_SCHEDULER_NAME, annotation, operation};
use crate::validation::{
    IMMUTABLE, canonical_cidr, cidr, go_json, go_members, immutable, immutable_as, requested_changes,
};
use crate::versions;

/// Error codes that allow giving up a shoot, [VAL-U19].
const FORCE_DELETION_CODES: [&str; 5] = [
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
];

/// [VAL-U19].
pub(super) fn force_deletion(new: &Shoot, old: Option<&Shoot>) -> ErrorList {
    let path = Path::new("metadata.annotations").key(annotation::CONFIRMATION_FORCE_DELETION);
    let wanted = new.needs_force_deletion();
    let before = old.is_some_and(Shoot::needs_force_deletion);
    if !wanted {
        return if before {
            vec![Error::forbidden(
                &path,
                "force-deletion annotation cannot be removed once set",
            )]
        } else {
            ErrorList::new()
        };
    }
    if before {
        return ErrorList::new();
    }
    let mut errors = ErrorList::new();
    if !new.in_deletion() {
        errors.push(Error::forbidden(
            &path,
            "force-deletion annotation cannot be set when Shoot deletionTimestamp is nil",
        ));
    }
    let allowed = new
        .status
        .last_errors
        .iter()
        .flat_map(|error| &error.codes)
        .any(|code| FORCE_DELETION_CODES.contains(&code.as_str()));
    if !allowed {
        errors.push(Error::forbidden(
            &path,
            format!(
                "force-deletion annotation cannot be set when Shoot status does not contain one of these error codes: [{}]",
                FORCE_DELETION_CODES.join(" ")
            ),
        ));
    }
    errors
}

/// Checks a change of the spec, of a shoot's own or of a template's. `in_deletion`: whether the object is to go.
pub fn validate_shoot_spec_update(spec: &ShootSpec, before: &ShootSpec, in_deletion: bool, path: &Path) -> ErrorList {
    if in_deletion {
        return if spec == before {
            ErrorList::new()
        } else {
            vec![Error::forbidden(path, requested_changes("shoot", before, spec))]
        };
    }
    let mut errors = immutable(&spec.region, &before.region, &path.child("region"));
    errors.extend(cloud_profile(spec, path));
    errors.extend(zones(spec, before, &path.child("controlPlane.zones")));
    errors.extend(binding_names(spec, before, path));
    errors.extend(dns(spec, before, &path.child("dns")));
    let version = path.child("kubernetes.version");
    let (from, to) = (before.kubernetes_version(), spec.kubernetes_version());
    errors.extend(kubernetes_version(from, to, false, &version));
    errors.extend(masks(spec, before, &path.child("kubernetes.kubeControllerManager")));
    let workers = path.child("provider.workers");
    let switch = match (before.is_workerless(), spec.is_workerless()) {
        (false, true) => "cannot switch from a Shoot with workers to a workerless Shoot",
        (true, false) => "cannot switch from a workerless Shoot to a Shoot with workers",
        _ => "",
    };
    if !switch.is_empty() {
        errors.push(Error::forbidden(&workers, switch));
        return errors;
    }
    errors.extend(provider(spec, before, &path.child("provider")));
    for (i, worker) in spec.provider.workers.iter().enumerate() {
        let at = workers.index(i);
        let mut earlier = before.provider.workers.iter();
        // a new pool is compared as if it had been there
        let earlier = earlier.find(|earlier| earlier.name == worker.name).unwrap_or(worker);
        let (from, to) = (before.worker_version(earlier), spec.worker_version(worker));
        let may_skip = !worker.is_in_place();
        errors.extend(kubernetes_version(from, to, may_skip, &at.child("kubernetes.version")));
        if worker.is_in_place() {
            errors.extend(machine_image(worker, earlier, &at.child("machine.image.version")));
        }
    }
    errors.extend(networking(spec, before, &path.child("networking")));
    let scheduler_set =
        before.scheduler_name.is_none() && spec.scheduler_name.as_deref() == Some(DEFAULT_SCHEDULER_NAME);
    if !scheduler_set {
        errors.extend(immutable(
            &spec.scheduler_name,
            &before.scheduler_name,
            &path.child("schedulerName"),
        ));
    }
    errors
}

/// Where the other issuers of tokens stand in a spec.
pub(crate) const ACCEPTED_ISSUERS: &str = "kubernetes.kubeAPIServer.serviceAccountConfig.acceptedIssuers";

/// Whether the accepted issuers stand as they did; then they are not looked at again.
pub(crate) fn keeps_accepted_issuers(new: &ShootSpec, old: &ShootSpec) -> bool {
    fn of(spec: &ShootSpec) -> Option<&[String]> {
        let config = spec.kubernetes.kube_api_server.as_ref()?;
        Some(config.service_account_config.as_ref()?.accepted_issuers.as_slice())
    }
    of(new).is_some_and(|issuers| of(old) == Some(issuers))
}

/// Checks of a change that follow those of the object itself.
pub(super) fn validate_transitions(new: &Shoot, old: &Shoot) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = failure_tolerance(new, old, &path.child("controlPlane"));
    errors.extend(hibernation(new, old, &path.child("hibernation")));
    errors.extend(force_deletion(new, Some(old)));
    errors.extend(node_local_dns(
        &new.spec,
        &old.spec,
        &path.child("systemComponents.nodeLocalDNS"),
    ));
    let workers = new.spec.provider.workers.iter().enumerate();
    for (i, worker) in workers.filter(|(_, worker)| worker.is_in_place()) {
        let mut earlier = old.spec.provider.workers.iter();
        if let Some(earlier) = earlier.find(|earlier| earlier.name == worker.name) {
            let at = path.child("provider.workers").index(i);
            errors.extend(pending_update(new, old, worker, earlier, &at));
        }
    }
    errors
}

/// [VAL-U5].
fn binding_names(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let named = spec
        .credentials_binding_name
        .as_deref()
        .is_some_and(|name| !name.is_empty());
    if before.credentials_binding_name.is_some() && !named {
        errors.push(Error::forbidden(
            &path.child("credentialsBindingName"),
            "the field cannot be unset",
        ));
    }
    let migrates = before.secret_binding_name.is_some() && spec.secret_binding_name.is_none() && named;
    if !migrates {
        errors.extend(immutable(
            &spec.secret_binding_name,
            &before.secret_binding_name,
            &path.child("secretBindingName"),
        ));
    }
    errors
}

/// [VAL-U7] – [VAL-U10].
fn provider(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = immutable(&spec.provider.r#type, &before.provider.r#type, &path.child("type"));
    let at = path.child("workers");
    for (i, worker) in spec.provider.workers.iter().enumerate() {
        let mut earlier = before.provider.workers.iter();
        if let Some(earlier) = earlier.find(|earlier| earlier.name == worker.name) {
            errors.extend(strategy(worker, earlier, &at.index(i)));
            errors.extend(backup(worker, earlier, &at.index(i).child("controlPlane.backup")));
        }
    }
    fn pool(spec: &ShootSpec) -> Option<&String> {
        let mut workers = spec.provider.workers.iter();
        Some(&workers.find(|worker| worker.control_plane.is_some())?.name)
    }
    let why = match (pool(before), pool(spec)) {
        (Some(from), Some(to)) if from != to => "cannot change control plane worker pool",
        (Some(_), None) | (None, Some(_)) => "cannot switch a Shoot between self-hosted and hosted mode",
        _ => return errors,
    };
    errors.push(Error::forbidden(&at, why));
    errors
}

/// Where a pool's control plane stores its backups.
fn backup(worker: &Worker, before: &Worker, path: &Path) -> ErrorList {
    let of = |worker: &Worker| worker.control_plane.as_ref().and_then(|own| own.backup.clone());
    let Some(earlier) = of(before) else {
        return ErrorList::new();
    };
    let Some(backup) = of(worker) else {
        return vec![Error::invalid(path, Value::Null, IMMUTABLE)];
    };
    let mut errors = immutable(&backup.provider, &earlier.provider, &path.child("provider"));
    errors.extend(immutable(&backup.region, &earlier.region, &path.child("region")));
    errors
}

/// [VAL-U2]: no way back, and no minor version left out unless pools may.
fn kubernetes_version(from: &str, to: &str, may_skip: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if to.is_empty() {
        errors.push(Error::invalid(
            path,
            to,
            "cannot validate kubernetes version upgrade because it is unset",
        ));
        return errors;
    }
    let Some(to) = versions::normalised(to) else {
        errors.push(Error::invalid(path, to, "invalid semantic version"));
        return errors;
    };
    let Some(from) = versions::normalised(from) else {
        return errors;
    };
    if to < from {
        errors.push(Error::forbidden(path, "kubernetes version downgrade is not supported"));
    }
    if !may_skip && (to.major, to.minor) >= (from.major, from.minor + 2) {
        errors.push(Error::forbidden(
            path,
            "kubernetes version upgrade cannot skip a minor version",
        ));
    }
    errors
}

/// The version of the image of a pool that is updated in place does not sink.
fn machine_image(worker: &Worker, before: &Worker, path: &Path) -> Option<Error> {
    let version = |worker: &Worker| worker.machine.image.as_ref().and_then(|image| image.version.clone());
    let to = version(worker).unwrap_or_default();
    if to.is_empty() {
        let why = "cannot validate machine image version upgrade because it is unset";
        let image = worker.machine.image.as_ref().map(|image| {
            go_members(&[
                ("Name", go_json(&image.name)),
                ("ProviderConfig", go_json(&image.provider_config)),
                ("Version", go_json(&to)),
            ])
        });
        return Some(Error::literal(path, image.unwrap_or_else(|| "null".into()), why));
    }
    let (from, to) = (versions::normalised(&version(before)?)?, versions::normalised(&to)?);
    let why = "machine image version downgrade is not supported when the update strategy is AutoInPlaceUpdate or ManualInPlaceUpdate";
    (to < from).then(|| Error::forbidden(path, why))
}

/// [VAL-U9], [VAL-U10].
fn strategy(worker: &Worker, before: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("updateStrategy");
    match (before.is_in_place(), worker.is_in_place()) {
        (true, false) => errors.push(Error::invalid(
            &at,
            worker.strategy(),
            "update strategy cannot be changed from AutoInPlaceUpdate/ManualInPlaceUpdate to AutoRollingUpdate",
        )),
        (false, true) => errors.push(Error::invalid(
            &at,
            worker.strategy(),
            "update strategy cannot be changed from AutoRollingUpdate to AutoInPlaceUpdate/ManualInPlaceUpdate",
        )),
        (true, true) if worker.update_strategy == before.update_strategy => errors.extend(fixed(worker, before, path)),
        _ => {}
    }
    errors
}

/// What stays in a pool that is updated in place.
fn fixed(worker: &Worker, before: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let finding = |field: &str, what: &str, shown: String| {
        let why = format!("{what} cannot be changed if update strategy is AutoInPlaceUpdate/ManualInPlaceUpdate");
        Error::literal(&path.child(field), shown, why)
    };
    let (to, from) = (&worker.machine, &before.machine);
    if to.r#type != from.r#type {
        errors.push(finding("machine.type", "machine type", go_quote(&to.r#type)));
    }
    if let (Some(to), Some(from)) = (&to.image, &from.image)
        && to.name != from.name
    {
        errors.push(finding("machine.image.name", "machine image name", go_quote(&to.name)));
    }
    if let (Some(to), Some(from)) = (&worker.cri, &before.cri)
        && to.name != from.name
    {
        errors.push(finding("cri.name", "CRI name", go_quote(&to.name)));
    }
    if worker.volume != before.volume {
        let volume = worker.volume.as_ref().map(|volume| {
            go_members(&[
                ("Name", go_json(&volume.name)),
                ("Type", go_json(&volume.r#type)),
                ("VolumeSize", go_json(&volume.size)),
                ("Encrypted", go_json(&volume.encrypted)),
            ])
        });
        errors.push(finding("volume", "volume", volume.unwrap_or_else(|| "null".into())));
    }
    errors
}

/// [VAL-U11].
fn pending_update(new: &Shoot, old: &Shoot, worker: &Worker, before: &Worker, path: &Path) -> Option<Error> {
    if new.annotation(OPERATION) == Some(operation::FORCE_IN_PLACE_UPDATE) {
        return None;
    }
    let pending = new.status.in_place_updates.as_ref()?.pending_worker_updates.as_ref()?;
    let listed =
        pending.auto_in_place_update.contains(&worker.name) || pending.manual_in_place_update.contains(&worker.name);
    fn kubelet<'a>(spec: &'a ShootSpec, worker: &'a Worker) -> Option<&'a KubeletConfig> {
        let own = worker.kubernetes.as_ref().and_then(|own| own.kubelet.as_ref());
        own.or(spec.kubernetes.kubelet.as_ref())
    }
    let changed = worker != before
        || versions::parse(new.spec.worker_version(worker)) != versions::parse(old.spec.worker_version(before))
        || kubelet(&new.spec, worker) != kubelet(&old.spec, before);
    (listed && changed).then(|| {
        Error::forbidden(
            path,
            format!(
                "the worker pool {} is currently undergoing an in-place update. No changes are allowed to the worker pool, the Shoot Kubernetes version, or the Shoot kubelet configuration. You can force an update with annotating the Shoot with 'gardener.cloud/operation=force-in-place-update'",
                go_quote(&worker.name)
            ),
        )
    })
}

/// [VAL-U13].
fn dns(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(earlier) = &before.dns else { return errors };
    let Some(dns) = &spec.dns else {
        return vec![Error::invalid(path, Value::Null, IMMUTABLE)];
    };
    if earlier.domain.is_some() {
        errors.extend(immutable(&dns.domain, &earlier.domain, &path.child("domain")));
    }
    if spec.seed_name.is_some()
        && let Some(primary) = before.primary_dns_provider()
    {
        let at = path.child("providers");
        match spec.primary_dns_provider() {
            None => errors.push(Error::forbidden(&at, "removing a primary provider is not allowed")),
            Some(provider) if provider.r#type.is_none() && primary.r#type.is_some() => {
                errors.push(Error::forbidden(
                    &at,
                    "removing the primary provider type is not allowed",
                ));
            }
            Some(provider) if primary.r#type.is_some() && provider.r#type != primary.r#type => {
                errors.push(Error::forbidden(&at, "changing primary provider type is not allowed"));
            }
            Some(_) => {}
        }
    }
    errors
}

/// [VAL-U6].
fn masks(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let masks = |spec: &ShootSpec| {
        let config = spec.kubernetes.kube_controller_manager.as_ref();
        (
            config.and_then(|config| config.node_cidr_mask_size),
            config.and_then(|config| config.node_cidr_mask_size_i_pv6),
        )
    };
    let ((mask, mask6), (old_mask, old_mask6)) = (masks(spec), masks(before));
    let mut errors = immutable(&mask, &old_mask, &path.child("nodeCIDRMaskSize"));
    if old_mask6.is_some() {
        errors.extend(immutable(&mask6, &old_mask6, &path.child("nodeCIDRMaskSizeIPv6")));
    }
    errors
}

/// [VAL-U17].
pub(super) fn encryption(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    fn provider(spec: &ShootSpec) -> &str {
        let config = spec.kubernetes.kube_api_server.as_ref();
        let config = config.and_then(|config| config.encryption_config.as_ref());
        config
            .and_then(|config| config.provider.r#type.as_deref())
            .unwrap_or_default()
    }
    let status = &new.status;
    let (to, from) = (provider(&new.spec), provider(&old.spec));
    let resources_before = normalized(encrypted_in_spec(&old.spec));
    let resources_change = normalized(encrypted_in_spec(&new.spec)) != resources_before;
    let provider_change = to != from;
    let phase = Phases::of(status).etcd_encryption_key;
    let rolling = resources_before != normalized(encrypted_in_status(status))
        || encryption_provider_in_status(status).unwrap_or_default() != from;
    for (changes, at, what) in [
        (resources_change, path.child("resources"), "resources"),
        (provider_change, path.child("provider.type"), "provider type"),
    ] {
        if !changes {
            continue;
        }
        if what == "provider type" && !is_ready(status) {
            errors.push(Error::forbidden(
                &at,
                "provider type cannot be changed if resource was not yet created successfully or is not ready for reconciliation",
            ));
        }
        if !matches!(phase, "" | "Completed") {
            errors.push(Error::forbidden(
                &at,
                format!(
                    "{what} cannot be changed when .status.credentials.rotation.etcdEncryptionKey.phase is not \"Completed\""
                ),
            ));
        }
        if rolling {
            errors.push(Error::forbidden(
                &at,
                format!(
                    "{what} cannot be changed because a previous encryption configuration change is currently being rolled out"
                ),
            ));
        }
        if new.hibernation_enabled() {
            errors.push(Error::forbidden(
                &at,
                format!("{what} cannot be changed when shoot is in hibernation"),
            ));
        }
    }
    if provider_change && resources_change {
        errors.push(Error::forbidden(
            &path.child("provider.type"),
            "provider type and resources cannot be changed simultaneously",
        ));
    }
    errors
}

/// [VAL-U2] – [VAL-U4].
fn networking(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(earlier) = &before.networking else {
        return errors;
    };
    let Some(networking) = &spec.networking else {
        let why = "networking cannot be set to nil if it's already set";
        return vec![Error::forbidden(path, why)];
    };
    errors.extend(immutable_as(
        &networking.r#type,
        &earlier.r#type,
        &path.child("type"),
        go_json,
    ));
    for (name, new, old) in [
        ("pods", &networking.pods, &earlier.pods),
        ("services", &networking.services, &earlier.services),
    ] {
        if old.is_some() {
            errors.extend(immutable(new, old, &path.child(name)));
        }
    }
    let (to, from) = (&networking.ip_families, &earlier.ip_families);
    let one = |families: &[String]| families == ["IPv4"];
    let dual = |families: &[String]| families == ["IPv4", "IPv6"];
    let allowed = to == from || (one(from) && dual(to)) || (dual(from) && one(to));
    if !allowed {
        errors.push(Error::forbidden(
            &path.child("ipFamilies"),
            format!(
                "unsupported IP family update: oldIPFamilies=[{}], newIPFamilies=[{}]",
                from.join(" "),
                to.join(" ")
            ),
        ));
    }
    errors
}

/// [VAL-U18].
fn hibernation(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.hibernation_enabled() || !new.hibernation_enabled() {
        return errors;
    }
    let at = path.child("enabled");
    let phases = Phases::of(&new.status);
    if matches!(phases.etcd_encryption_key, "Preparing" | "Completing") {
        errors.push(Error::forbidden(
            &at,
            format!(
                "shoot cannot be hibernated when .status.credentials.rotation.etcdEncryptionKey.phase is {}",
                go_quote(phases.etcd_encryption_key)
            ),
        ));
    }
    if matches!(
        phases.service_account_key,
        "Preparing" | "PreparingWithoutWorkersRollout" | "Completing"
    ) {
        errors.push(Error::forbidden(
            &at,
            format!(
                "shoot cannot be hibernated when .status.credentials.rotation.serviceAccountKey.phase is {}",
                go_quote(phases.service_account_key)
            ),
        ));
    }
    if normalized(encrypted_in_spec(&old.spec)) != normalized(encrypted_in_status(&old.status)) {
        errors.push(Error::forbidden(
            &at,
            "shoot cannot be hibernated when spec.kubernetes.kubeAPIServer.encryptionConfig.resources and status.credentials.encryptionAtRest.resources are not equal",
        ));
    }
    errors
}

/// [VAL-U15].
fn failure_tolerance(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("highAvailability.failureTolerance.type");
    let (from, to) = (old.spec.failure_tolerance(), new.spec.failure_tolerance());
    let asleep = new.hibernation_enabled() || new.status.hibernated;
    if from.is_none() && to.is_some() && asleep {
        errors.push(Error::forbidden(
            &at,
            "Shoot is currently hibernated and cannot be scaled up to HA. Please make sure your cluster has woken up before scaling it up to HA",
        ));
    }
    if let Some(from) = from
        && new.spec.seed_name.is_some()
    {
        errors.extend(immutable(&to.unwrap_or_default(), &from, &at));
    }
    errors
}

/// [VAL-U16]: zones may be given up, or become more with the failure tolerance.
fn zones(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> Option<Error> {
    fn zones(spec: &ShootSpec) -> &[String] {
        spec.control_plane.as_ref().map_or(&[], |plane| plane.zones.as_slice())
    }
    let (to, from) = (zones(spec), zones(before));
    if to == from || to.is_empty() {
        return None;
    }
    let of_zones = |spec: &ShootSpec| spec.failure_tolerance() == Some("zone");
    let expands = !of_zones(before) && of_zones(spec) && !from.is_empty();
    let why = match (expands, from.iter().all(|zone| to.contains(zone))) {
        (true, true) => return None,
        (true, false) => "existing zones cannot be removed when expanding for zone failure tolerance upgrade",
        (false, _) => IMMUTABLE,
    };
    Some(Error::forbidden(path, why))
}

/// [VAL-U12].
fn node_local_dns(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let enabled = |spec: &ShootSpec| {
        spec.system_components
            .as_ref()
            .and_then(|components| components.node_local_dns.as_ref())
            .is_some_and(|dns| dns.enabled)
    };
    let proxy = before.kubernetes.kube_proxy.as_ref();
    let ipvs = proxy.is_some_and(|proxy| proxy.enabled == Some(true) && proxy.mode.as_deref() == Some("IPVS"));
    let bound = before
        .provider
        .workers
        .iter()
        .any(|worker| worker.is_in_place() && (!versions::at_least(before.worker_version(worker), 34) || ipvs));
    if enabled(spec) != enabled(before) && bound {
        vec![Error::forbidden(
            path,
            "the node-local-dns setting cannot be changed if the shoot has at least one worker pool with an update strategy of either AutoInPlaceUpdate or ManualInPlaceUpdate, and is running a Kubernetes version below 1.34.0 or if kube-proxy runs in IPVS mode.",
        )]
    } else {
        ErrorList::new()
    }
}

/// The URL of a shoot's API server: upstream shows the part that is wrong.
fn advertised_url(url: &str, path: &Path) -> ErrorList {
    const FORM: &str = "; desired format: https://host[:port]";
    let link = match Link::parse(url) {
        Ok(link) => link,
        Err(why) => return vec![Error::required(path, format!("url must be a valid URL: {why}{FORM}"))],
    };
    let part =
        |is_wrong: bool, part: &str, why: &str| is_wrong.then(|| Error::invalid(path, part, format!("{why}{FORM}")));
    let (user, fragment, query) = (link.user(), link.fragment(), link.query());
    let found = [
        part(
            link.scheme() != "https",
            link.scheme(),
            "'https' is the only allowed URL scheme",
        ),
        part(link.host().is_empty(), "", "host must be provided"),
        part(
            user.is_some(),
            user.unwrap_or_default(),
            "user information is not permitted in the URL",
        ),
        part(!fragment.is_empty(), fragment, "fragments are not permitted in the URL"),
        part(
            !query.is_empty(),
            query,
            "query parameters are not permitted in the URL",
        ),
    ];
    found.into_iter().flatten().collect()
}

/// [VAL-U21].
pub(super) fn status_update(new: &ShootStatus, old: &ShootStatus) -> ErrorList {
    let path = Path::new("status");
    let mut errors = ErrorList::new();
    if !old.uid.is_empty() {
        errors.extend(immutable(&new.uid, &old.uid, &path.child("uid")));
    }
    if !old.technical_id.is_empty() {
        errors.extend(immutable(
            &new.technical_id,
            &old.technical_id,
            &path.child("technicalID"),
        ));
    }
    if old.cluster_identity.is_some() {
        errors.extend(immutable(
            &new.cluster_identity,
            &old.cluster_identity,
            &path.child("clusterIdentity"),
        ));
    }
    let mut seen = BTreeSet::new();
    for (i, address) in new.advertised_addresses.iter().enumerate() {
        let at = path.child("advertisedAddresses").index(i);
        if address.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "field must not be empty"));
        } else if !seen.insert(&address.name) {
            errors.push(Error::duplicate(&at.child("name"), address.name.as_str()));
        } else {
            errors.extend(advertised_url(&address.url, &at.child("url")));
        }
    }
    if let Some(networking) = &new.networking {
        for (name, ranges) in [
            ("nodes", &networking.nodes),
            ("pods", &networking.pods),
            ("services", &networking.services),
            ("egressCIDRs", &networking.egress_cidrs),
        ] {
            let at = path.child("networking").child(name);
            for (i, range) in ranges.iter().enumerate() {
                let at = at.index(i);
                match cidr(range, &at) {
                    Err(error) => errors.push(error),
                    Ok(net) => errors.extend(canonical_cidr(&net, range, &at)),
                }
            }
        }
    }
    errors
}
