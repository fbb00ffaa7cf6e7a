//! Pools that carry the control plane of their own shoot, [VAL-P25], [VAL-P27].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::{Backup, Exposure, ShootSpec, WorkerControlPlane};
use crate::constants::GARDEN_NAMESPACE;
use crate::validation::{self, Credentials, credentials_ref, go_json, go_members, invalid_each};

/// What a pool says about the control plane, as upstream's internal type is shown.
pub(super) fn shown(control_plane: &WorkerControlPlane) -> String {
    let optional = |shown: Option<String>| shown.unwrap_or_else(|| "null".to_owned());
    go_members(&[
        ("Backup", optional(control_plane.backup.as_ref().map(shown_backup))),
        (
            "Exposure",
            optional(control_plane.exposure.as_ref().map(shown_exposure)),
        ),
    ])
}

fn shown_backup(backup: &Backup) -> String {
    go_members(&[
        ("Provider", go_json(&backup.provider)),
        ("ProviderConfig", go_json(&backup.provider_config)),
        ("Region", go_json(&backup.region)),
        ("CredentialsRef", go_json(&backup.credentials_ref)),
    ])
}

fn shown_exposure(exposure: &Exposure) -> String {
    let extension = exposure.extension.as_ref().map(|extension| {
        go_members(&[
            ("Type", go_json(&extension.r#type)),
            ("ProviderConfig", go_json(&extension.provider_config)),
        ])
    });
    let dns = exposure.dns.as_ref().map(|_| "{}".to_owned());
    go_members(&[
        ("Extension", extension.unwrap_or_else(|| "null".into())),
        ("DNS", dns.unwrap_or_else(|| "null".into())),
    ])
}

/// Checks what a pool says about the control plane.
pub(super) fn validate_pool(
    control_plane: &WorkerControlPlane,
    spec: &ShootSpec,
    meta: &ObjectMeta,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(backup) = &control_plane.backup {
        errors.extend(validate_backup(backup, spec, meta, &path.child("backup")));
    }
    let Some(exposure) = &control_plane.exposure else {
        return errors;
    };
    let at = path.child("exposure");
    if exposure.dns.is_some() && exposure.extension.is_some() {
        errors.push(Error::literal(
            &at,
            shown_exposure(exposure),
            "cannot have dns and extension set at the same time",
        ));
    }
    if let Some(extension) = &exposure.extension {
        let at = at.child("type");
        match extension.r#type.as_deref().unwrap_or_default() {
            "" => errors.push(Error::required(&at, "must specify a provider type")),
            kind => errors.extend(invalid_each(&at, kind, names::dns_label(kind))),
        }
    }
    errors
}

fn validate_backup(backup: &Backup, spec: &ShootSpec, meta: &ObjectMeta, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if backup.provider.is_empty() {
        errors.push(Error::required(
            &path.child("provider"),
            "must provide a backup cloud provider name",
        ));
    }
    if backup.provider != spec.provider.r#type && backup.region.as_deref().unwrap_or_default().is_empty() {
        errors.push(Error::required(
            &path.child("region"),
            "region must be specified for if backup provider is different from shoot provider used in `spec.provider.type`",
        ));
    }
    let at = path.child("credentialsRef");
    let Some(reference) = &backup.credentials_ref else {
        errors.push(Error::required(
            &at,
            "must be set to refer a Secret or WorkloadIdentity",
        ));
        return errors;
    };
    errors.extend(credentials_ref(
        reference,
        Credentials::AnySecretOrWorkloadIdentity,
        true,
        &at,
    ));
    if reference.namespace.as_deref().unwrap_or_default() != meta.namespace.as_deref().unwrap_or_default() {
        errors.push(Error::forbidden(
            &at.child("namespace"),
            "must reference credentials in the same namespace as the Shoot",
        ));
    }
    if reference.api_version.as_deref() == Some("security.gardener.cloud/v1alpha1")
        && reference.kind.as_deref() == Some("WorkloadIdentity")
    {
        errors.push(Error::forbidden(
            &at,
            "support for WorkloadIdentity as backup credentials is not yet implemented",
        ));
    }
    errors
}

/// Checks a shoot that carries its control plane itself; nothing where it does not.
pub(super) fn self_hosted(meta: &ObjectMeta, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let workers = spec.provider.workers.iter().enumerate();
    let Some((i, pool)) = workers.into_iter().find(|(_, worker)| worker.control_plane.is_some()) else {
        return errors;
    };
    if let Some(seed) = &spec.seed_name {
        errors.push(Error::invalid(
            &path.child("seedName"),
            seed.as_str(),
            "cannot set seedName for self-hosted shoots",
        ));
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    if namespace != GARDEN_NAMESPACE {
        errors.push(Error::invalid(
            &Path::new("metadata.namespace"),
            namespace,
            format!("self-hosted shoots must be in the {GARDEN_NAMESPACE:?} namespace"),
        ));
    }
    let at = path.child("provider.workers").index(i);
    if pool.minimum != pool.maximum || pool.minimum != 1 {
        errors.push(Error::invalid(
            &at.child("minimum"),
            pool.minimum,
            "self-hosted shoots only support minimum=maximum=1 for the control plane worker pool (might change in the future)",
        ));
    }
    let available = spec
        .control_plane
        .as_ref()
        .is_some_and(|control_plane| control_plane.high_availability.is_some());
    let maximum = |errors: &mut ErrorList, wanted: i32, when: &str| {
        if pool.maximum != wanted {
            errors.push(Error::invalid(
                &at.child("maximum"),
                pool.maximum,
                format!("control plane worker pool must have maximum={wanted} when high availability is {when}"),
            ));
        }
    };
    if !available {
        maximum(&mut errors, 1, "not configured");
        return errors;
    }
    maximum(&mut errors, 3, "configured");
    for (name, value) in [("maxSurge", &pool.max_surge), ("maxUnavailable", &pool.max_unavailable)] {
        let is_one = match value {
            Some(IntOrString::Int(number)) => *number == 1,
            Some(IntOrString::String(text)) => text.parse() == Ok(1),
            None => false,
        };
        if !is_one {
            let value = value.as_ref().map(validation::shown).unwrap_or_default();
            errors.push(Error::invalid(
                &at.child(name),
                value,
                format!("control plane worker pool must have {name}=1 when high availability is configured"),
            ));
        }
    }
    if spec.failure_tolerance() == Some("zone") && pool.zones.len() != 3 {
        errors.push(Error::invalid(
            &at.child("zones"),
            validation::shown(&pool.zones),
            "control plane worker pool must have exactly 3 zones when failure tolerance type is zone",
        ));
    }
    errors
}
