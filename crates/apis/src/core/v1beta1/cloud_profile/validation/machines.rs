//! Rules for machine types and volume types, [VAL-CP10], [VAL-CP11].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::validation::{non_negative_quantity, shown};

/// Checks the machine types of a profile that stands for itself.
pub(super) fn whole_profiles_types(types: &[MachineType], defined: &Capabilities, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if types.is_empty() {
        errors.push(Error::required(path, "must provide at least one machine type"));
    }
    errors.extend(validate_machine_types(types, defined, path));
    if defined.is_empty() {
        for (i, machine) in types.iter().enumerate() {
            let at = path.index(i);
            if machine.architecture.as_deref().unwrap_or_default().is_empty() {
                errors.push(Error::required(
                    &at.child("architecture"),
                    "must provide an architecture",
                ));
            }
            if !machine.capabilities.is_empty() {
                errors.push(Error::forbidden(&at.child("capabilities"), UNDEFINED));
            }
        }
    }
    errors
}

/// Checks machine types, [VAL-CP10].
pub(in crate::core::v1beta1) fn validate_machine_types(
    types: &[MachineType],
    defined: &Capabilities,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, machine) in types.iter().enumerate() {
        let at = path.index(i);
        let name = at.child("name");
        if machine.name.is_empty() {
            errors.push(Error::required(&name, "must provide a name"));
        } else {
            errors.extend(unprefixed_name("machine type name", &machine.name, &name));
        }
        if !seen.insert(&machine.name) {
            errors.push(Error::duplicate(&name, machine.name.as_str()));
            continue;
        }
        errors.extend(non_negative_quantity(&machine.cpu, &at.child("cpu")));
        errors.extend(non_negative_quantity(&machine.gpu, &at.child("gpu")));
        errors.extend(non_negative_quantity(&machine.memory, &at.child("memory")));
        errors.extend(architecture(machine, !defined.is_empty(), &at));
        if !defined.is_empty() {
            let at = at.child("capabilities");
            errors.extend(capabilities::known(&machine.capabilities, defined, &at));
        }
        if let Some(storage) = &machine.storage {
            errors.extend(machine_storage(storage, &at.child("storage")));
        }
    }
    errors
}

/// The architecture of a type and the one among its capabilities, [VER-30].
fn architecture(machine: &MachineType, capabilities: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let own = machine.architecture.as_deref().unwrap_or_default();
    let at = path.child(ARCHITECTURE);
    if capabilities && let Some(values) = machine.capabilities.get(ARCHITECTURE) {
        match values.as_slice() {
            [] => {}
            [value] => {
                if !own.is_empty() && own != value {
                    errors.push(Error::invalid(
                        &at,
                        value.as_str(),
                        format!(
                            "machine type architecture ({own}) conflicts with the capability architecture ({value})"
                        ),
                    ));
                }
            }
            values => errors.push(Error::invalid(
                &path.child("capabilities.architecture"),
                shown(&values),
                "must not define more than one architecture",
            )),
        }
    }
    if !own.is_empty() && !ARCHITECTURES.contains(&own) {
        errors.push(Error::not_supported(&at, own, &ARCHITECTURES));
    }
    errors
}

fn machine_storage(storage: &MachineTypeStorage, path: &Path) -> ErrorList {
    let invalid = |why: &str| {
        let shown = go_members(&[
            ("Class", go_json(&storage.class)),
            ("StorageSize", go_json(&storage.size)),
            ("Type", go_json(&storage.r#type)),
            ("MinSize", go_json(&storage.min_size)),
        ]);
        vec![Error::literal(path, shown, why)]
    };
    match (&storage.size, &storage.min_size) {
        (None, None) => invalid("must either configure \"size\" or \"minSize\""),
        (Some(_), Some(_)) => invalid("not allowed to configure both \"size\" and \"minSize\""),
        (Some(size), None) => non_negative_quantity(size, &path.child("size")),
        (None, Some(size)) => non_negative_quantity(size, &path.child("minSize")),
    }
}

/// Checks volume types, [VAL-CP11].
pub(in crate::core::v1beta1) fn validate_volume_types(types: &[VolumeType], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, volume) in types.iter().enumerate() {
        let at = path.index(i);
        let name = at.child("name");
        if volume.name.is_empty() {
            errors.push(Error::required(&name, "must provide a name"));
        } else {
            errors.extend(unprefixed_name("volume type name", &volume.name, &name));
        }
        if !seen.insert(&volume.name) {
            errors.push(Error::duplicate(&name, volume.name.as_str()));
            break;
        }
        let class = at.child("class");
        if volume.class.is_empty() {
            errors.push(Error::required(&class, "must provide a class"));
        } else {
            errors.extend(unprefixed_name("volume class", &volume.class, &class));
        }
        if let Some(size) = &volume.min_size {
            errors.extend(non_negative_quantity(size, &at.child("minSize")));
        }
    }
    errors
}
