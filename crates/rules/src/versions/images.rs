//! Which versions of a machine image suit a pool [VER-58], [VER-77].

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{
    CapabilityDefinition, CloudProfileSpec, MachineImage, MachineImageVersion, MachineType, Worker,
};
use gardener_apis::versions::{Constraint, normalised, parse};

/// What a pool needs of an image.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// The pool.
    pub worker: &'a Worker,
    /// Its machine type.
    pub machine_type: Option<&'a MachineType>,
    /// The version of its kubelets.
    pub kubelet: &'a str,
}

/// An image of a profile, whatever the case of its name [VER-78].
pub fn image<'a>(profile: &'a CloudProfileSpec, name: &str) -> Option<&'a MachineImage> {
    let mut images = profile.machine_images.iter();
    images.find(|image| image.name.eq_ignore_ascii_case(name))
}

/// The architecture of a pool that names none: its machine type's, if that has one [VER-50].
pub fn default_architecture(machine_type: Option<&MachineType>) -> String {
    let own = machine_type.and_then(|machine| machine.architecture.clone());
    own.unwrap_or_else(|| DEFAULT_ARCHITECTURE.into())
}

/// What an image version runs on that says nothing [VER-2].
const DEFAULT_ARCHITECTURE: &str = "amd64";
/// The container runtime interface of pools and image versions that say nothing [VER-2], [VER-77].
const DEFAULT_CRI: &str = "containerd";

/// Whether a version runs on an architecture; its flavors say so, or, without any, the profile's definition, or the version itself.
pub fn fits_architecture(version: &MachineImageVersion, definitions: &[CapabilityDefinition], wanted: &str) -> bool {
    let has = |values: &[String]| values.iter().any(|value| value == wanted);
    if definitions.is_empty() {
        return match version.architectures.is_empty() {
            true => wanted == DEFAULT_ARCHITECTURE,
            false => has(&version.architectures),
        };
    }
    let defined = definitions.iter().find(|definition| definition.name == "architecture");
    let defined = defined.map_or(&[] as &[String], |definition| &definition.values);
    match version.capability_flavors.is_empty() {
        true => has(defined),
        false => version.capability_flavors.iter().any(|flavor| {
            let own = flavor.capabilities.get("architecture").map_or(defined, Vec::as_slice);
            has(own)
        }),
    }
}

/// Whether one of a version's flavors fits a machine type: in every defined capability they have a value in common.
pub fn fits_capabilities(
    version: &MachineImageVersion,
    definitions: &[CapabilityDefinition],
    machine_type: &MachineType,
) -> bool {
    let all = |own: &BTreeMap<String, Vec<String>>, definition: &CapabilityDefinition| -> Vec<String> {
        own.get(&definition.name).unwrap_or(&definition.values).clone()
    };
    version.capability_flavors.is_empty()
        || version.capability_flavors.iter().any(|flavor| {
            definitions.iter().all(|definition| {
                let wanted = all(&machine_type.capabilities, definition);
                let offered = all(&flavor.capabilities, definition);
                offered.iter().any(|value| wanted.contains(value))
            })
        })
}

fn fits_container_runtime(version: &MachineImageVersion, worker: &Worker) -> bool {
    let wanted = worker.cri.as_ref().map_or(DEFAULT_CRI, |cri| &cri.name);
    let runtimes = worker.cri.as_ref().map_or(&[] as &[_], |cri| &cri.container_runtimes);
    let Some(offered) = version.cri.iter().find(|cri| cri.name == wanted) else {
        return false;
    };
    runtimes.iter().all(|runtime| {
        let mut known = offered.container_runtimes.iter();
        known.any(|known| known.r#type == runtime.r#type)
    })
}

fn fits_kubelet(version: &MachineImageVersion, kubelet: &str) -> bool {
    let Some(constraint) = &version.kubelet_version_constraint else {
        return true;
    };
    match (Constraint::parse(constraint), parse(kubelet)) {
        (Ok(constraint), Some(kubelet)) => constraint.matches(&kubelet),
        _ => false,
    }
}

fn fits_in_place(version: &MachineImageVersion, worker: &Worker) -> bool {
    if !worker.is_in_place() {
        return true;
    }
    let Some(updates) = version.in_place_updates.as_ref().filter(|updates| updates.supported) else {
        return false;
    };
    let current = worker.machine.image.as_ref().and_then(|image| image.version.as_deref());
    let Some(current) = current else { return true };
    let least = updates.min_version_for_update.as_deref().and_then(normalised);
    version.version == current
        || least
            .zip(normalised(current))
            .is_some_and(|(least, current)| least <= current)
}

/// The versions of an image that suit a pool.
pub fn fitting<'a>(
    image: &'a MachineImage,
    definitions: &[CapabilityDefinition],
    needs: &Needs<'_>,
) -> Vec<&'a MachineImageVersion> {
    let architecture = needs.worker.machine.architecture.as_deref();
    let architecture = architecture.unwrap_or(DEFAULT_ARCHITECTURE);
    let fits = |version: &&MachineImageVersion| {
        let capable = definitions.is_empty()
            || needs
                .machine_type
                .is_none_or(|machine_type| fits_capabilities(version, definitions, machine_type));
        fits_architecture(version, definitions, architecture)
            && capable
            && fits_container_runtime(version, needs.worker)
            && fits_kubelet(version, needs.kubelet)
            && fits_in_place(version, needs.worker)
    };
    image.versions.iter().filter(fits).collect()
}
