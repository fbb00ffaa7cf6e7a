//! The spec of a shoot as a whole, [VAL-S5] – [VAL-S19a]; calls the parts.

use gardener_apimachinery::type_meta::is_no_group_version;
use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::{NamedResourceReference, ShootSpec};
use super::{components, control_planes, kubernetes, networking, schedule, workerless, workers};
use crate::constants::GARDEN_NAMESPACE;
use crate::core::v1beta1::Extension;
use crate::validation::{go_kind, invalid_each, no_group_version, seed_selector, shown, tolerations};
use crate::versions;

/// Checks a shoot's spec at a path. `in_template`: the spec of a ManagedSeedSet's shoot template, where a binding's
/// and a cloud profile's existence are judged later.
pub fn validate_shoot_spec(meta: &ObjectMeta, spec: &ShootSpec, in_template: bool, path: &Path) -> ErrorList {
    let version = spec.kubernetes_version();
    let mut errors = cloud_profile(spec, path);
    errors.extend(workers::validate_provider(
        spec,
        meta,
        in_template,
        &path.child("provider"),
    ));
    errors.extend(components::addons(spec, in_template, &path.child("addons")));
    errors.extend(networking::dns(spec, version, &path.child("dns")));
    errors.extend(extensions(&spec.extensions, &path.child("extensions")));
    errors.extend(resources(&spec.resources, &path.child("resources"), true));
    errors.extend(kubernetes::validate_kubernetes(spec, &path.child("kubernetes")));
    errors.extend(networking::networking(spec, &path.child("networking")));
    errors.extend(schedule::maintenance(spec, &path.child("maintenance")));
    errors.extend(components::monitoring(spec, &path.child("monitoring")));
    errors.extend(schedule::hibernation(meta, spec, &path.child("hibernation")));
    if spec.region.is_empty() {
        errors.push(Error::required(&path.child("region"), "must specify a region"));
    }
    if spec.is_workerless() {
        errors.extend(workerless::bindings(spec, path));
    } else if !spec.is_self_hosted() {
        errors.extend(bindings(spec, version, path));
    }
    if spec.seed_name.as_deref() == Some("") {
        errors.push(Error::invalid(
            &path.child("seedName"),
            "",
            "seed name must not be empty when providing the key",
        ));
    }
    if let Some(selector) = &spec.seed_selector {
        errors.extend(seed_selector(selector, &path.child("seedSelector")));
    }
    errors.extend(purpose(meta, spec, in_template, &path.child("purpose")));
    // [VAL-S14]
    errors.extend(tolerations(&spec.tolerations, &path.child("tolerations")));
    errors.extend(components::system_components(spec, &path.child("systemComponents")));
    // [VAL-S15]
    if let Some(class) = &spec.exposure_class_name {
        let found = names::dns_subdomain(class).into_iter();
        let found = found.map(|why| format!("exposureClassName is not a valid DNS subdomain: {}", go_quote(&why)));
        errors.extend(invalid_each(&path.child("exposureClassName"), class, found.collect()));
    }
    errors.extend(control_planes::self_hosted(meta, spec, path));
    // [VAL-S16]
    if let Some(scheduler) = &spec.scheduler_name {
        errors.extend(invalid_each(
            &path.child("schedulerName"),
            scheduler,
            names::dns_label(scheduler),
        ));
    }
    errors.extend(control_plane(spec, &path.child("controlPlane")));
    errors
}

pub(super) fn cloud_profile(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = spec.cloud_profile_name.as_deref();
    if name.is_some_and(|name| !name.is_empty()) && versions::at_least(spec.kubernetes_version(), 34) {
        errors.push(Error::forbidden(
            &path.child("cloudProfileName"),
            "for Kubernetes version >= 1.34, cloudProfileName field is no longer supported, use spec.cloudProfile.name instead",
        ));
    }
    let path = path.child("cloudProfile");
    let reference = spec.cloud_profile.as_ref();
    let reference = reference.map(|reference| (reference.kind.as_str(), reference.name.as_str()));
    let reference = reference.or(name.map(|name| ("CloudProfile", name)));
    match reference.filter(|(_, name)| !name.is_empty()) {
        None => errors.push(Error::required(&path.child("name"), "must specify a cloud profile")),
        Some(("CloudProfile" | "NamespacedCloudProfile", _)) => {}
        Some((kind, _)) => errors.push(Error::not_supported(
            &path.child("kind"),
            kind,
            &["CloudProfile", "NamespacedCloudProfile"],
        )),
    }
    errors
}

/// [VAL-S9], [VAL-S10].
fn bindings(spec: &ShootSpec, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let secret = spec.secret_binding_name.as_deref().unwrap_or_default();
    let credentials = spec.credentials_binding_name.as_deref().unwrap_or_default();
    let at = path.child("secretBindingName");
    match (secret.is_empty(), credentials.is_empty()) {
        (true, true) => {
            errors.push(Error::required(&at, "must be set when credentialsBindingName is not"));
        }
        (false, false) => errors.push(Error::forbidden(&at, "is incompatible with credentialsBindingName")),
        _ => {}
    }
    if !secret.is_empty() && versions::at_least(version, 34) {
        errors.push(Error::forbidden(
            &at,
            "for Kubernetes versions >= 1.34, secretBindingName field is no longer supported, use spec.credentialsBindingName instead",
        ));
    }
    errors
}

/// [VAL-S13].
fn purpose(meta: &ObjectMeta, spec: &ShootSpec, in_template: bool, path: &Path) -> ErrorList {
    let Some(purpose) = spec.purpose.as_deref() else {
        return ErrorList::new();
    };
    let mut allowed = vec!["development", "evaluation", "production", "testing"];
    if in_template || meta.namespace.as_deref() == Some(GARDEN_NAMESPACE) {
        allowed.insert(2, "infrastructure");
    }
    if allowed.contains(&purpose) {
        ErrorList::new()
    } else {
        vec![Error::not_supported(path, purpose, &allowed)]
    }
}

/// [VAL-S17].
pub(super) fn failure_tolerance(spec: &ShootSpec, path: &Path) -> Option<Error> {
    let availability = spec.control_plane.as_ref()?.high_availability.as_ref()?;
    let tolerance = availability.failure_tolerance.r#type.as_str();
    let path = path.child("highAvailability.failureTolerance.type");
    (!matches!(tolerance, "node" | "zone")).then(|| Error::not_supported(&path, tolerance, &["node", "zone"]))
}

/// [VAL-S18].
fn control_plane(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let zones = spec.control_plane.as_ref().map_or(&[][..], |own| own.zones.as_slice());
    if zones.is_empty() {
        return errors;
    }
    let at = path.child("zones");
    let mut seen = BTreeSet::new();
    for (i, zone) in zones.iter().enumerate() {
        if !seen.insert(zone) {
            errors.push(Error::duplicate(&at.index(i), zone.as_str()));
        }
    }
    let (wanted, why) = match spec.failure_tolerance() {
        Some("zone") => (
            3,
            "exactly 3 unique zones must be specified when failure tolerance type is 'zone'",
        ),
        _ => (
            1,
            "exactly 1 zone must be specified when failure tolerance type is not 'zone'",
        ),
    };
    let different: std::collections::BTreeSet<&String> = zones.iter().collect();
    if different.len() != wanted {
        errors.push(Error::invalid(&at, shown(&zones), why));
    }
    errors
}

/// [VAL-S19]; also for seeds.
pub(crate) fn extensions(extensions: &[Extension], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, extension) in extensions.iter().enumerate() {
        let at = path.index(i).child("type");
        let kind = extension.r#type.as_str();
        if kind.is_empty() {
            errors.push(Error::required(&at, "field must not be empty"));
        } else {
            errors.extend(invalid_each(&at, kind, names::dns_label(kind)));
        }
        if !seen.insert(kind) {
            errors.push(Error::duplicate(&at, kind));
        }
    }
    errors
}

/// Named resources, [VAL-S19a]: of shoots and seeds with WorkloadIdentities, which upstream refuses elsewhere (`identities` = false). [VAL-SD18] says that
/// seeds have none; upstream's own suites refer to them.
pub(crate) fn resources(resources: &[NamedResourceReference], path: &Path, identities: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, resource) in resources.iter().enumerate() {
        let at = path.index(i);
        let repeated = !seen.insert(&resource.name);
        if resource.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "field must not be empty"));
        } else if repeated {
            errors.push(Error::duplicate(&at.child("name"), resource.name.as_str()));
        }
        let reference = &resource.resource_ref;
        let at = at.child("resourceRef");
        let version = reference.api_version.as_deref().unwrap_or_default();
        if version.is_empty() {
            errors.push(Error::required(&at.child("apiVersion"), "must provide an apiVersion"));
        }
        if reference.kind.is_empty() {
            errors.push(Error::required(&at.child("kind"), "must provide a kind"));
        }
        let mut supported = vec![("v1", "Secret"), ("v1", "ConfigMap")];
        if identities {
            supported.push(("security.gardener.cloud/v1alpha1", "WorkloadIdentity"));
        }
        if is_no_group_version(version) {
            errors.push(no_group_version(&at, (&reference.kind, &reference.name, version)));
        } else if !supported.contains(&(version, reference.kind.as_str())) {
            let texts: Vec<String> = supported.iter().map(|(version, kind)| go_kind(version, kind)).collect();
            errors.push(Error::not_supported(&at, go_kind(version, &reference.kind), &texts));
        }
        if reference.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a name"));
        }
    }
    errors
}
