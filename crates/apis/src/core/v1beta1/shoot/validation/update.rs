//! Changes of shoots, [VAL-U1] – [VAL-U21].

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use serde_json::Value;

use super::super::{Shoot, ShootSpec, ShootStatus, Worker};
use super::{OPERATION, Phases, encrypted_in_spec, encrypted_in_status, encryption_provider_in_status, normalized};
use crate::constants::{DEFAULT_SCHEDULER_NAME, annotation, operation};
use crate::validation::{IMMUTABLE, cidr, family, immutable, requested_changes, shown};
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
    if !new.in_deletion() {
        return vec![Error::forbidden(
            &path,
            "force-deletion annotation cannot be set when Shoot deletionTimestamp is nil",
        )];
    }
    let allowed = new
        .status
        .last_errors
        .iter()
        .flat_map(|error| &error.codes)
        .any(|code| FORCE_DELETION_CODES.contains(&code.as_str()));
    if allowed {
        ErrorList::new()
    } else {
        vec![Error::forbidden(
            &path,
            format!(
                "force-deletion annotation cannot be set when Shoot status does not contain one of these error codes: [{}]",
                FORCE_DELETION_CODES.join(" ")
            ),
        )]
    }
}

/// Checks a change of the spec.
pub fn validate_shoot_spec_update(new: &Shoot, old: &Shoot) -> ErrorList {
    let path = Path::new("spec");
    let (spec, before) = (&new.spec, &old.spec);
    if new.in_deletion() {
        return if spec == before {
            ErrorList::new()
        } else {
            vec![Error::forbidden(&path, requested_changes("shoot", before, spec))]
        };
    }
    let mut errors = immutable(&spec.region, &before.region, &path.child("region"));
    errors.extend(binding_names(spec, before, &path));
    errors.extend(provider(new, old, &path.child("provider")));
    errors.extend(dns(spec, before, &path.child("dns")));
    errors.extend(kubernetes(new, old, &path.child("kubernetes")));
    errors.extend(networking(spec, before, &path.child("networking")));
    errors.extend(hibernation(new, old, &path.child("hibernation")));
    errors.extend(control_plane(new, old, &path.child("controlPlane")));
    errors.extend(node_local_dns(
        spec,
        before,
        &path.child("systemComponents.nodeLocalDNS"),
    ));
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

/// [VAL-U5].
fn binding_names(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let migrates = spec.secret_binding_name.is_none()
        && before.credentials_binding_name.is_none()
        && spec.credentials_binding_name.is_some();
    if before.secret_binding_name.is_some() && !migrates {
        errors.extend(immutable(
            &spec.secret_binding_name,
            &before.secret_binding_name,
            &path.child("secretBindingName"),
        ));
    }
    if before.secret_binding_name.is_none()
        && before.credentials_binding_name.is_some()
        && spec.secret_binding_name.is_some()
    {
        errors.extend(immutable(
            &spec.secret_binding_name,
            &before.secret_binding_name,
            &path.child("secretBindingName"),
        ));
    }
    if before.credentials_binding_name.is_some() && spec.credentials_binding_name.is_none() {
        errors.push(Error::forbidden(
            &path.child("credentialsBindingName"),
            "the field cannot be unset",
        ));
    }
    errors
}

/// [VAL-U7] – [VAL-U11].
fn provider(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let (spec, before) = (&new.spec, &old.spec);
    let mut errors = ErrorList::new();
    let at = path.child("workers");
    match (before.is_workerless(), spec.is_workerless()) {
        (false, true) => {
            errors.push(Error::forbidden(
                &at,
                "cannot switch from a Shoot with workers to a workerless Shoot",
            ));
            return errors;
        }
        (true, false) => {
            errors.push(Error::forbidden(
                &at,
                "cannot switch from a workerless Shoot to a Shoot with workers",
            ));
            return errors;
        }
        _ => {}
    }
    errors.extend(immutable(
        &spec.provider.r#type,
        &before.provider.r#type,
        &path.child("type"),
    ));
    if spec.is_self_hosted() != before.is_self_hosted() {
        errors.push(Error::forbidden(
            &at,
            "cannot switch a Shoot between self-hosted and hosted mode",
        ));
    }
    for (i, worker) in spec.provider.workers.iter().enumerate() {
        let Some(earlier) = before
            .provider
            .workers
            .iter()
            .find(|earlier| earlier.name == worker.name)
        else {
            continue;
        };
        let at = at.index(i);
        let (from, to) = (before.worker_version(earlier), spec.worker_version(worker));
        let version = at.child("kubernetes.version");
        if versions::compare(to, from).is_lt() {
            errors.push(Error::forbidden(
                &version,
                "kubernetes version downgrade is not supported",
            ));
        } else if worker.is_in_place() && skips_minor(from, to) {
            errors.push(Error::forbidden(
                &version,
                "kubernetes version upgrade cannot skip a minor version",
            ));
        }
        errors.extend(strategy(worker, earlier, &at));
        errors.extend(pending_update(new, old, worker, earlier, &at));
    }
    errors
}

fn skips_minor(from: &str, to: &str) -> bool {
    match (versions::parse(from), versions::parse(to)) {
        (Some(from), Some(to)) => to.major == from.major && to.minor > from.minor + 1,
        _ => false,
    }
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
        (true, true) => {
            let mut fixed = |same: bool, field: &str, what: &str, value: Value| {
                if !same {
                    errors.push(Error::invalid(
                        &path.child(field),
                        value,
                        format!("{what} cannot be changed if update strategy is AutoInPlaceUpdate/ManualInPlaceUpdate"),
                    ));
                }
            };
            fixed(
                worker.machine.r#type == before.machine.r#type,
                "machine.type",
                "machine type",
                shown(&worker.machine.r#type),
            );
            let image = |worker: &Worker| worker.machine.image.as_ref().map(|image| image.name.clone());
            fixed(
                image(worker) == image(before),
                "machine.image.name",
                "machine image name",
                shown(&image(worker)),
            );
            let cri = |worker: &Worker| worker.cri.as_ref().map(|cri| cri.name.clone());
            fixed(cri(worker) == cri(before), "cri.name", "CRI name", shown(&cri(worker)));
            fixed(
                worker.volume == before.volume,
                "volume",
                "volume",
                shown(&worker.volume),
            );
            let version = |worker: &Worker| worker.machine.image.as_ref().and_then(|image| image.version.clone());
            if let (Some(to), Some(from)) = (version(worker), version(before))
                && versions::compare(&to, &from).is_lt()
            {
                errors.push(Error::forbidden(
                    &path.child("machine.image.version"),
                    "machine image version downgrade is not supported when the update strategy is AutoInPlaceUpdate or ManualInPlaceUpdate",
                ));
            }
        }
        (false, false) => {}
    }
    errors
}

/// [VAL-U11].
fn pending_update(new: &Shoot, old: &Shoot, worker: &Worker, before: &Worker, path: &Path) -> ErrorList {
    let Some(pending) = old
        .status
        .in_place_updates
        .as_ref()
        .and_then(|updates| updates.pending_worker_updates.as_ref())
    else {
        return ErrorList::new();
    };
    let listed =
        pending.auto_in_place_update.contains(&worker.name) || pending.manual_in_place_update.contains(&worker.name);
    let changed = worker != before
        || new.spec.kubernetes.version != old.spec.kubernetes.version
        || new.spec.kubernetes.kubelet != old.spec.kubernetes.kubelet;
    let forced = new.operations(OPERATION).contains(&operation::FORCE_IN_PLACE_UPDATE);
    if listed && changed && !forced {
        vec![Error::forbidden(
            path,
            format!(
                "the worker pool {} is currently undergoing an in-place update. No changes are allowed to the worker pool, the Shoot Kubernetes version, or the Shoot kubelet configuration. You can force an update with annotating the Shoot with 'gardener.cloud/operation=force-in-place-update'",
                go_quote(&worker.name)
            ),
        )]
    } else {
        ErrorList::new()
    }
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
            Some(provider) if provider.r#type != primary.r#type => {
                errors.push(Error::forbidden(&at, "changing primary provider type is not allowed"));
            }
            Some(_) => {}
        }
    }
    errors
}

/// [VAL-U2], [VAL-U6], [VAL-U17].
fn kubernetes(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let (spec, before) = (&new.spec, &old.spec);
    let mut errors = ErrorList::new();
    let at = path.child("version");
    let (from, to) = (before.kubernetes_version(), spec.kubernetes_version());
    if to.is_empty() {
        errors.push(Error::invalid(
            &at,
            to,
            "cannot validate kubernetes version upgrade because it is unset",
        ));
    } else if versions::compare(to, from).is_lt() {
        errors.push(Error::forbidden(&at, "kubernetes version downgrade is not supported"));
    } else if skips_minor(from, to) {
        errors.push(Error::forbidden(
            &at,
            "kubernetes version upgrade cannot skip a minor version",
        ));
    }
    if !spec.is_workerless() && !before.is_workerless() {
        let masks = |spec: &ShootSpec| {
            let config = spec.kubernetes.kube_controller_manager.as_ref();
            (
                config.and_then(|config| config.node_cidr_mask_size),
                config.and_then(|config| config.node_cidr_mask_size_i_pv6),
            )
        };
        let (mask, mask6) = masks(spec);
        let (old_mask, old_mask6) = masks(before);
        let at = path.child("kubeControllerManager");
        errors.extend(immutable(&mask, &old_mask, &at.child("nodeCIDRMaskSize")));
        if old_mask6.is_some() {
            errors.extend(immutable(&mask6, &old_mask6, &at.child("nodeCIDRMaskSizeIPv6")));
        }
    }
    errors.extend(encryption(new, old, &path.child("kubeAPIServer.encryptionConfig")));
    errors
}

/// [VAL-U17].
fn encryption(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let provider = |spec: &ShootSpec| {
        spec.kubernetes
            .kube_api_server
            .as_ref()
            .and_then(|config| config.encryption_config.as_ref())
            .and_then(|config| config.provider.r#type.clone())
            .unwrap_or_else(|| "aescbc".into())
    };
    let (to, from) = (provider(&new.spec), provider(&old.spec));
    let resources_change = normalized(encrypted_in_spec(&new.spec)) != normalized(encrypted_in_spec(&old.spec));
    let provider_change = to != from;
    let phase = Phases::of(&old.status).etcd_encryption_key;
    let rolling = normalized(encrypted_in_spec(&old.spec)) != normalized(encrypted_in_status(&old.status))
        || encryption_provider_in_status(&old.status).is_some_and(|provider| provider != from);
    let hibernated = new.hibernation_enabled() || old.status.hibernated;
    for (changes, at, what) in [
        (resources_change, path.child("resources"), "resources"),
        (provider_change, path.child("provider.type"), "provider type"),
    ] {
        if !changes {
            continue;
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
        if hibernated {
            errors.push(Error::forbidden(
                &at,
                format!("{what} cannot be changed when shoot is in hibernation"),
            ));
        }
    }
    if provider_change && resources_change {
        errors.push(Error::forbidden(
            path,
            "provider type and resources cannot be changed simultaneously",
        ));
    }
    errors
}

/// [VAL-U2] – [VAL-U4].
fn networking(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(networking), Some(earlier)) = (&spec.networking, &before.networking) else {
        return errors;
    };
    if earlier.r#type.is_some() {
        errors.extend(immutable(&networking.r#type, &earlier.r#type, &path.child("type")));
    }
    for (name, new, old) in [
        ("pods", &networking.pods, &earlier.pods),
        ("services", &networking.services, &earlier.services),
    ] {
        if old.is_some() {
            errors.extend(immutable(new, old, &path.child(name)));
        }
    }
    let (to, from) = (spec.ip_families(), before.ip_families());
    let dual = |families: &[&str]| families == ["IPv4", "IPv6"];
    let allowed = to == from || (from == ["IPv4"] && dual(&to)) || (dual(&from) && to == ["IPv4"]);
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
    let phases = Phases::of(&old.status);
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

/// [VAL-U15], [VAL-U16].
fn control_plane(new: &Shoot, old: &Shoot, path: &Path) -> ErrorList {
    let (spec, before) = (&new.spec, &old.spec);
    let mut errors = ErrorList::new();
    let at = path.child("highAvailability.failureTolerance.type");
    let scheduled = before.seed_name.is_some();
    match (before.failure_tolerance(), spec.failure_tolerance()) {
        (Some(from), to) if scheduled => errors.extend(immutable(&to, &Some(from), &at)),
        (None, Some(_)) if scheduled && (spec.hibernation_enabled() || old.status.hibernated) => {
            errors.push(Error::forbidden(
                &at,
                "Shoot is currently hibernated and cannot be scaled up to HA. Please make sure your cluster has woken up before scaling it up to HA",
            ));
        }
        _ => {}
    }
    let zones = |spec: &ShootSpec| {
        spec.control_plane
            .as_ref()
            .map(|plane| plane.zones.clone())
            .unwrap_or_default()
    };
    let (to, from) = (zones(spec), zones(before));
    if !from.is_empty() && !to.is_empty() && to != from {
        let at = path.child("zones");
        let expands = from.len() == 1 && to.len() == 3 && spec.failure_tolerance() == Some("zone");
        if !expands {
            errors.push(Error::forbidden(&at, IMMUTABLE));
        } else if !from.iter().all(|zone| to.contains(zone)) {
            errors.push(Error::forbidden(
                &at,
                "existing zones cannot be removed when expanding for zone failure tolerance upgrade",
            ));
        }
    }
    errors
}

/// [VAL-U12].
fn node_local_dns(spec: &ShootSpec, before: &ShootSpec, path: &Path) -> ErrorList {
    let enabled = |spec: &ShootSpec| {
        spec.system_components
            .as_ref()
            .and_then(|components| components.node_local_dns.as_ref())
            .is_some_and(|dns| dns.enabled)
    };
    let ipvs = before
        .kubernetes
        .kube_proxy
        .as_ref()
        .and_then(|proxy| proxy.mode.as_deref())
        == Some("IPVS");
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
    for (i, address) in new.advertised_addresses.iter().enumerate() {
        let at = path.child("advertisedAddresses").index(i);
        if address.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "field must not be empty"));
        } else if new
            .advertised_addresses
            .iter()
            .take(i)
            .any(|earlier| earlier.name == address.name)
        {
            errors.push(Error::duplicate(&at.child("name"), address.name.as_str()));
        }
        let authority = address
            .url
            .strip_prefix("https://")
            .map(|rest| rest.split('/').next().unwrap_or_default())
            .unwrap_or_default();
        if authority.is_empty() || address.url.contains(['?', '#', '@']) {
            errors.push(Error::invalid(
                &at.child("url"),
                address.url.as_str(),
                "url must be of the form https://<host>[:<port>] without user info, query or fragment",
            ));
        }
    }
    if let Some(networking) = &new.networking {
        for (name, ranges) in [
            ("pods", &networking.pods),
            ("services", &networking.services),
            ("nodes", &networking.nodes),
        ] {
            let at = path.child("networking").child(name);
            let mut families: Vec<&str> = Vec::new();
            for (i, range) in ranges.iter().enumerate() {
                match cidr(range, &at.index(i)) {
                    Err(error) => errors.push(error),
                    Ok(net) => families.push(family(&net)),
                }
            }
        }
    }
    errors
}
