//! The machine images of pools must be offered, suit the pool and its Kubernetes version, [ADM-32d], [ADM-32g], [VER-60] – [VER-64].

use std::cmp::Ordering;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apis::versions::{Constraint, parse};
use gardener_rules::versions::{compare_normalised, fits_architecture};
use k8s_openapi::jiff::Timestamp;

/// Name and version of a pool's image.
fn named(worker: &Worker) -> Option<(&str, &str)> {
    let image = worker.machine.image.as_ref()?;
    Some((&image.name, image.version.as_deref().unwrap_or_default()))
}

fn listed<'a>(profile: &'a CloudProfileSpec, (name, version): (&str, &str)) -> Option<&'a MachineImageVersion> {
    let image = profile.machine_images.iter().find(|image| image.name == name)?;
    image.versions.iter().find(|known| known.version == version)
}

/// Whether an expired version may be taken: where a pool has been before, and not to go back [VER-61].
fn expired_is_fine(old: Option<&Worker>, version: &str) -> bool {
    let before = old.and_then(named).map(|(_, before)| before);
    let order = before.and_then(|before| compare_normalised(version, before));
    matches!(order, Some(Ordering::Equal | Ordering::Greater))
}

/// What stands against updating a pool in place; nothing, if it is not one of those [VER-62].
fn in_place(worker: &Worker, old: Option<&Worker>, version: &MachineImageVersion) -> Option<&'static str> {
    if !worker.is_in_place() {
        return None;
    }
    let updates = version.in_place_updates.as_ref().filter(|updates| updates.supported);
    let before = old.and_then(named).map(|(_, before)| before);
    let Some(before) = before else {
        return updates.is_none().then_some("does not support in-place updates, ");
    };
    let least = updates.and_then(|updates| updates.min_version_for_update.as_deref());
    let reaches = least
        .and_then(|least| compare_normalised(least, before))
        .is_some_and(Ordering::is_le);
    (!reaches).then_some("cannot be in-place updated from the current version, ")
}

/// Whether the profile offers the image to the pool [VER-60].
pub(super) fn offered(
    worker: &Worker,
    old: Option<&Worker>,
    profile: &CloudProfileSpec,
    now: Timestamp,
    path: &Path,
) -> Option<Error> {
    let own = named(worker)?;
    let (name, version) = own;
    let architecture = worker.machine.architecture.as_deref().unwrap_or("amd64");
    let fits = |known: &MachineImageVersion| fits_architecture(known, &profile.machine_capabilities, architecture);
    let offered: Vec<String> = profile
        .machine_images
        .iter()
        .flat_map(|image| image.versions.iter().map(move |version| (image, version)))
        .filter(|(_, version)| version.stage(now).is_active() && fits(version))
        .map(|(image, version)| format!("{}:{}", image.name, version.version))
        .collect();
    let shown = format!("{name}:{version}");
    let Some(known) = listed(profile, own) else {
        return Some(Error::not_supported(&path.child("version"), shown.as_str(), &offered));
    };
    let mut why = String::new();
    if !fits(known) {
        why.push_str(&format!("does not support CPU architecture {architecture:?}, "));
    }
    match known.stage(now) {
        Stage::Unavailable => why.push_str("is unavailable, "),
        Stage::Expired if !expired_is_fine(old, version) => why.push_str("is expired, "),
        _ => {}
    }
    why.push_str(in_place(worker, old, known).unwrap_or_default());
    if why.is_empty() {
        return None;
    }
    let offered = offered.join(" ");
    Some(Error::invalid(
        path,
        shown.as_str(),
        format!("machine image version '{shown}' {why}supported machine image versions are: [{offered}]"),
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
            "machine image '{name}@{version}' does not support CRI '{}', supported values: {supported:?}",
            cri.name
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
                "machine image '{name}@{version}' does not support container runtime '{}', supported values: {supported:?}",
                runtime.r#type
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
    Some(Error::invalid(
        path,
        format!("{name}:{version}").as_str(),
        format!(
            "machine image '{name}@{version}' does not support kubelet version '{kubelet}', supported kubelet versions by this machine image version: '{constraint}'"
        ),
    ))
}
