//! The machine images of pools must be offered, suit the pool and its Kubernetes version, [ADM-32d], [ADM-32g], [VER-60] – [VER-64].

use std::cmp::Ordering;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apis::versions::{Constraint, parse};
use gardener_rules::versions::{compare_normalised, fits_architecture, fits_capabilities};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

/// Name and version of a pool's image.
fn named(worker: &Worker) -> Option<(&str, &str)> {
    let image = worker.machine.image.as_ref()?;
    Some((&image.name, image.version.as_deref().unwrap_or_default()))
}

fn listed<'a>(profile: &'a CloudProfileSpec, (name, version): (&str, &str)) -> Option<&'a MachineImageVersion> {
    let image = profile.machine_images.iter().find(|image| image.name == name)?;
    image.versions.iter().find(|known| known.version == version)
}

/// Whether a version may be taken at a time; one that is over only where a pool has been before, and not to go back [VER-61].
fn is_current(known: &MachineImageVersion, old: Option<&Worker>, now: Timestamp) -> bool {
    let before = old.and_then(named).map(|(_, before)| before);
    let order = || compare_normalised(&known.version, before?);
    match known.stage(now) {
        Stage::Unavailable => false,
        Stage::Expired => matches!(order(), Some(Ordering::Equal | Ordering::Greater)),
        _ => true,
    }
}

/// Whether a pool that is updated in place can get a version: a new one any that can, one that has nodes if the version knows theirs [VER-62].
fn in_place(image: &str, known: &MachineImageVersion, worker: &Worker, old: Option<&Worker>) -> bool {
    let Some(updates) = known.in_place_updates.as_ref().filter(|updates| updates.supported) else {
        return false;
    };
    let Some((_, before)) = old.and_then(named) else {
        return true;
    };
    let least = updates.min_version_for_update.as_deref();
    let reaches = least.and_then(|least| compare_normalised(least, before));
    named(worker).is_none_or(|(own, _)| own == image) && reaches.is_some_and(Ordering::is_le)
}

/// Whether the profile offers the image to the pool [ADM-32d], [VER-60].
pub(super) fn offered(
    worker: &Worker,
    old: Option<&Worker>,
    profile: &CloudProfileSpec,
    now: Timestamp,
    path: &Path,
) -> Option<Error> {
    let unchanged = old.is_some_and(|old| {
        old.machine.image == worker.machine.image && old.machine.architecture == worker.machine.architecture
    });
    if unchanged {
        return None;
    }
    let own = named(worker);
    let architecture = worker.machine.architecture.as_deref().unwrap_or("amd64");
    let fits = |known: &MachineImageVersion| fits_architecture(known, &profile.machine_capabilities, architecture);
    let images = profile.machine_images.iter();
    let images = images.filter(|image| own.is_none_or(|(name, _)| name == image.name));
    let mut offered: Vec<String> = images
        .flat_map(|image| image.versions.iter().map(move |version| (image, version)))
        .filter(|(image, version)| {
            let in_place = !worker.is_in_place() || in_place(&image.name, version, worker, old);
            is_current(version, old, now) && fits(version) && in_place
        })
        .map(|(image, version)| format!("{}:{}", image.name, version.version))
        .collect();
    offered.sort();
    let (name, version) = own.unwrap_or_default();
    let Some(known) = own.and_then(|own| listed(profile, own)) else {
        return Some(Error::not_supported(&path.child("version"), version, &offered));
    };
    let mut why = String::new();
    if !fits(known) {
        why.push_str(&format!("does not support CPU architecture {architecture:?}, "));
    }
    if !is_current(known, old, now) {
        why.push_str("is expired, ");
    }
    if worker.is_in_place() && !in_place(name, known, worker, old) {
        why.push_str(match old {
            Some(_) => "cannot be in-place updated from the current version, ",
            None => "does not support in-place updates, ",
        });
    }
    if why.is_empty() {
        return None;
    }
    let why = format!(
        "machine image version '{name}:{version}' {why}supported machine image versions are: [{}]",
        offered.join(" ")
    );
    Some(Error::literal(path, shown(worker), why))
}

/// A pool's image as upstream's messages show it.
fn shown(worker: &Worker) -> String {
    let image = worker.machine.image.as_ref();
    let version = image.and_then(|image| image.version.as_deref());
    json!({
        "Name": image.map(|image| image.name.as_str()).unwrap_or_default(),
        "ProviderConfig": image.and_then(|image| image.provider_config.as_ref()),
        "Version": version.unwrap_or_default(),
    })
    .to_string()
}

/// Whether the image can do what the machine type has, [ADM-32d].
pub(super) fn capabilities(worker: &Worker, profile: &CloudProfileSpec, path: &Path) -> Option<Error> {
    let definitions = &profile.machine_capabilities;
    let own = named(worker).filter(|_| !definitions.is_empty())?;
    let mut types = profile.machine_types.iter();
    let machine_type = types.find(|known| known.name == worker.machine.r#type)?;
    if fits_capabilities(listed(profile, own)?, definitions, machine_type) {
        return None;
    }
    let (name, version) = own;
    let shown: Vec<String> = machine_type
        .capabilities
        .iter()
        .map(|(name, values)| format!("{name}:[{}]", values.join(" ")))
        .collect();
    Some(Error::invalid(
        &path.child("version"),
        version,
        format!(
            "machine capabilities map[{}] of machine type {:?} are not supported by machine image {name}:{version}",
            shown.join(" "),
            worker.machine.r#type
        ),
    ))
}

/// Whether the image has the pool's container runtimes [VER-63].
pub(super) fn container_runtimes(worker: &Worker, profile: &CloudProfileSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(own), Some(cri)) = (named(worker), &worker.cri) else {
        return errors;
    };
    let Some(known) = listed(profile, own) else {
        return errors;
    };
    let (name, version) = own;
    let Some(offered) = known.cri.iter().find(|offered| offered.name == cri.name) else {
        let supported: Vec<&str> = known.cri.iter().map(|offered| offered.name.as_str()).collect();
        let why = format!(
            "machine image '{name}@{version}' does not support CRI '{}', supported values: [{}]",
            cri.name,
            supported.join(" ")
        );
        errors.push(Error::invalid(&path.child("name"), cri.name.as_str(), why));
        return errors;
    };
    let supported: Vec<&str> = offered
        .container_runtimes
        .iter()
        .map(|own| own.r#type.as_str())
        .collect();
    for (i, runtime) in cri.container_runtimes.iter().enumerate() {
        if !supported.contains(&runtime.r#type.as_str()) {
            let why = format!(
                "machine image '{name}@{version}' does not support container runtime '{}', supported values: [{}]",
                runtime.r#type,
                supported.join(" ")
            );
            let path = path.child("containerRuntimes").index(i).child("type");
            errors.push(Error::invalid(&path, runtime.r#type.as_str(), why));
        }
    }
    errors
}

/// Whether the image can run the pool's kubelets [VER-64].
pub(super) fn kubelet(worker: &Worker, kubelet: &str, profile: &CloudProfileSpec, path: &Path) -> Option<Error> {
    let own = named(worker)?;
    let constraint = listed(profile, own)?.kubelet_version_constraint.as_deref()?;
    let parsed = Constraint::parse(constraint).ok()?;
    if parse(kubelet).is_some_and(|kubelet| parsed.matches(&kubelet)) {
        return None;
    }
    let (name, version) = own;
    Some(Error::literal(
        path,
        shown(worker),
        format!(
            "machine image '{name}@{version}' does not support kubelet version '{kubelet}', supported kubelet versions by this machine image version: '{constraint}'"
        ),
    ))
}
