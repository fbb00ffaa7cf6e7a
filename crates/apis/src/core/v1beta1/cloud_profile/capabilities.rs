//! What machine types and images can do, and how that goes along with their older field for architectures, [VAL-CP16].

use super::*;

/// What something can do: values by the name of the capability.
pub type Capabilities = BTreeMap<String, Vec<String>>;

const ARCHITECTURE: &str = "architecture";
const DEFAULT_ARCHITECTURE: &str = "amd64";

impl CloudProfileSpec {
    /// The capabilities that the profile defines; of two with one name the later.
    pub fn capabilities(&self) -> Capabilities {
        let own = self.machine_capabilities.iter();
        own.map(|own| (own.name.clone(), own.values.clone())).collect()
    }
}

/// Values that are given; what is left out can be all that is defined.
fn or_defined<'a>(own: &'a Capabilities, defined: &'a [CapabilityDefinition], name: &str) -> &'a [String] {
    let Some(definition) = defined.iter().rfind(|definition| definition.name == name) else {
        return &[];
    };
    own.get(name).unwrap_or(&definition.values)
}

impl MachineType {
    /// The architecture by the capabilities, or else by the field; empty if neither says one.
    pub fn architecture_of(&self, defined: &[CapabilityDefinition]) -> String {
        match or_defined(&self.capabilities, defined, ARCHITECTURE) {
            [only] => only.clone(),
            _ => self.architecture.clone().unwrap_or_default(),
        }
    }
}

impl MachineImageVersion {
    /// Whether the version runs on an architecture.
    pub fn supports_architecture(&self, defined: &Capabilities, architecture: &str) -> bool {
        let has = |values: &Vec<String>| values.iter().any(|value| value == architecture);
        if defined.is_empty() {
            return has(&self.architectures);
        }
        let mut flavors = self.capability_flavors.iter();
        flavors.any(|flavor| flavor.capabilities.get(ARCHITECTURE).is_some_and(has))
            || defined.get(ARCHITECTURE).is_some_and(has)
    }
}

/// The architectures that flavors name, sorted.
pub(super) fn architectures_of_flavors(flavors: &[MachineImageFlavor]) -> Vec<String> {
    let named = flavors
        .iter()
        .filter_map(|flavor| flavor.capabilities.get(ARCHITECTURE));
    let mut named: Vec<String> = named.flatten().cloned().collect();
    named.sort();
    named.dedup();
    named
}

/// Brings architectures and capabilities into line: as a profile comes to define capabilities, its images and types get those that
/// their architectures mean; from then on architectures that are left out follow the capabilities; a profile that defines none any
/// more loses them. `old` is none where a profile is new.
pub fn sync_architectures(spec: &mut CloudProfileSpec, old: Option<&CloudProfileSpec>) {
    let defined = spec.machine_capabilities.clone();
    let had = old.is_some_and(|old| !old.machine_capabilities.is_empty());
    let several = defined
        .iter()
        .rfind(|definition| definition.name == ARCHITECTURE)
        .is_some_and(|definition| definition.values.len() > 1);
    if !had && several {
        capabilities_from_architectures(spec);
    }
    if defined.is_empty() {
        if had {
            let versions = spec.machine_images.iter_mut().flat_map(|image| &mut image.versions);
            versions.for_each(|version| version.capability_flavors.clear());
            spec.machine_types.iter_mut().for_each(|own| own.capabilities.clear());
        }
        return;
    }
    for version in spec.machine_images.iter_mut().flat_map(|image| &mut image.versions) {
        if version.architectures.is_empty() {
            let whole = [MachineImageFlavor::default()];
            let flavors = match version.capability_flavors.as_slice() {
                [] => &whole[..],
                flavors => flavors,
            };
            let named = flavors
                .iter()
                .flat_map(|flavor| or_defined(&flavor.capabilities, &defined, ARCHITECTURE));
            let mut named: Vec<String> = named.cloned().collect();
            named.sort();
            named.dedup();
            version.architectures = named;
        }
    }
    for machine in &mut spec.machine_types {
        if machine.architecture.is_none()
            && let [only] = or_defined(&machine.capabilities, &defined, ARCHITECTURE)
        {
            machine.architecture = Some(only.clone());
        }
    }
}

fn capabilities_from_architectures(spec: &mut CloudProfileSpec) {
    let only = |architecture: String| Capabilities::from([(ARCHITECTURE.to_owned(), vec![architecture])]);
    for version in spec.machine_images.iter_mut().flat_map(|image| &mut image.versions) {
        if version.capability_flavors.is_empty() {
            let mut architectures = version.architectures.clone();
            if architectures.is_empty() {
                architectures.push(DEFAULT_ARCHITECTURE.into());
            }
            let flavors = architectures.into_iter().map(|architecture| MachineImageFlavor {
                capabilities: only(architecture),
            });
            version.capability_flavors = flavors.collect();
        }
    }
    for machine in &mut spec.machine_types {
        if machine.capabilities.is_empty() {
            let architecture = machine.architecture.clone();
            machine.capabilities = only(architecture.unwrap_or_else(|| DEFAULT_ARCHITECTURE.into()));
        }
    }
}
