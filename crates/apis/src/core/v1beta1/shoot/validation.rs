//! Validation of shoots, [VAL-S1] – [VAL-O12]: what can be said from the object and its old version alone.
//!
//! Not here: what needs other objects (cloud profile, seed, project); that is admission.

mod components;
mod control_planes;
mod image_patterns;
mod kubelet;
mod kubernetes;
mod kubernetes_features;
mod networking;
mod operations;
mod pod_security;
mod schedule;
mod spec;
mod update;
mod workerless;
mod workers;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};

use super::{Shoot, ShootStatus};
use crate::constants::{annotation, finalizer};
use crate::validation::object_meta_update;

/// Checks that seeds share with shoots.
pub(crate) mod spec_parts {
    pub(crate) use super::kubernetes::{vpa_feature_gates, vpa_max_allowed};
    pub(crate) use super::spec::{extensions, resources};
}

pub use kubernetes_features::{supports_admission_plugin, supports_feature_gate};
pub use schedule::maintenance_time;
pub use spec::validate_shoot_spec;
pub use update::validate_shoot_spec_update;
pub(crate) use update::{ACCEPTED_ISSUERS, keeps_accepted_issuers};

/// Checks a shoot that is to be created or stored again.
pub fn validate_shoot(shoot: &Shoot) -> ErrorList {
    let mut errors = meta::validate_object_meta(&shoot.metadata, true, shoot_name, &Path::new("metadata"));
    errors.extend(name_pattern(shoot.own_name(), &Path::new("metadata.name")));
    errors.extend(operations::validate_operations(shoot));
    errors.extend(spec::validate_shoot_spec(
        &shoot.metadata,
        &shoot.spec,
        false,
        &Path::new("spec"),
    ));
    errors.extend(spec::failure_tolerance(&shoot.spec, &Path::new("spec.controlPlane")));
    errors
}

/// Checks what only creation forbids, [VAL-S4], [VAL-U19].
pub fn validate_shoot_creation(shoot: &Shoot) -> ErrorList {
    let mut errors = validate_shoot(shoot);
    errors.extend(update::force_deletion(shoot, None));
    for (i, name) in shoot.metadata.finalizers.iter().flatten().enumerate() {
        if matches!(name.as_str(), finalizer::GARDENER | finalizer::REFERENCE_PROTECTION) {
            errors.push(Error::forbidden(
                &Path::new("metadata.finalizers").index(i),
                format!("finalizer {name:?} cannot be added on creation"),
            ));
        }
    }
    errors
}

/// Checks a change of a shoot's main resource; `new` also has to pass on its own.
pub fn validate_shoot_update(new: &Shoot, old: &Shoot) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    errors.extend(validate_shoot_spec_update(
        &new.spec,
        &old.spec,
        new.in_deletion(),
        &path,
    ));
    let encryption = Path::new("spec.kubernetes.kubeAPIServer.encryptionConfig");
    errors.extend(update::encryption(new, old, &encryption));
    let mut own = validate_shoot(new);
    if keeps_accepted_issuers(&new.spec, &old.spec) {
        let issuers = path.child(ACCEPTED_ISSUERS);
        own.retain(|error| !error.path.as_str().starts_with(issuers.as_str()));
    }
    errors.extend(own);
    errors.extend(update::validate_transitions(new, old));
    errors
}

/// Checks a change of a shoot's status, [VAL-U21].
pub fn validate_shoot_status_update(new: &Shoot, old: &Shoot) -> ErrorList {
    update::status_update(&new.status, &old.status)
}

/// The name of a shoot becomes part of DNS names and namespaces, so it has no dots.
fn shoot_name(name: &str) -> Vec<String> {
    names::dns_label(name)
}

/// [VAL-S1] beyond the DNS label.
fn name_pattern(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.contains("--") {
        errors.push(Error::invalid(
            path,
            name,
            "name may not contain two consecutive hyphens",
        ));
    }
    errors
}

/// The phase of a rotation; empty when it never ran.
pub(super) struct Phases<'a> {
    ca: &'a str,
    service_account_key: &'a str,
    etcd_encryption_key: &'a str,
}

impl<'a> Phases<'a> {
    fn of(status: &'a ShootStatus) -> Self {
        let rotation = status
            .credentials
            .as_ref()
            .and_then(|credentials| credentials.rotation.as_ref());
        Self {
            ca: rotation
                .and_then(|r| r.certificate_authorities.as_ref())
                .map_or("", |ca| ca.phase.as_str()),
            service_account_key: rotation
                .and_then(|r| r.service_account_key.as_ref())
                .map_or("", |key| key.phase.as_str()),
            etcd_encryption_key: rotation
                .and_then(|r| r.etcd_encryption_key.as_ref())
                .map_or("", |key| key.phase.as_str()),
        }
    }
}

/// The resources whose encryption the status reports.
pub(super) fn encrypted_in_status(status: &ShootStatus) -> &[String] {
    status
        .credentials
        .as_ref()
        .and_then(|credentials| credentials.encryption_at_rest.as_ref())
        .map_or(&[], |encryption| encryption.resources.as_slice())
}

/// The encryption provider that the status reports.
pub(super) fn encryption_provider_in_status(status: &ShootStatus) -> Option<&str> {
    let encryption = status.credentials.as_ref()?.encryption_at_rest.as_ref()?;
    Some(encryption.provider.r#type.as_str()).filter(|provider| !provider.is_empty())
}

/// The resources whose encryption the spec asks for.
pub(super) fn encrypted_in_spec(spec: &super::ShootSpec) -> &[String] {
    spec.kubernetes
        .kube_api_server
        .as_ref()
        .and_then(|config| config.encryption_config.as_ref())
        .map_or(&[], |encryption| encryption.resources.as_slice())
}

/// The names of resources without order and without the spellings `.` and `.apps` that mean the same.
pub(super) fn normalized(resources: &[String]) -> std::collections::BTreeSet<String> {
    resources
        .iter()
        .map(|resource| resource.strip_suffix('.').unwrap_or(resource).to_owned())
        .collect()
}

const OPERATION: &str = annotation::OPERATION;
const MAINTENANCE_OPERATION: &str = annotation::MAINTENANCE_OPERATION;

#[cfg(test)]
pub(super) mod tests;
