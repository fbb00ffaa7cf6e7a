//! Rules for what profiles say that machines and images can do, [VAL-CP16].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;

/// The member of a path that a key names, which may be empty.
fn member(path: &Path, key: &str) -> Path {
    if key.is_empty() { path.key("") } else { path.child(key) }
}

/// Checks the definitions of capabilities.
pub(super) fn definitions(definitions: &[CapabilityDefinition], rules: ProfileRules, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if definitions.is_empty() {
        return errors;
    }
    if !rules.capabilities {
        errors.push(Error::forbidden(
            path,
            "machineCapabilities are not allowed with disabled CloudProfileCapabilities feature gate",
        ));
    }
    let mut defined = Capabilities::new();
    for (i, definition) in definitions.iter().enumerate() {
        let at = path.index(i).child("name");
        if defined.contains_key(&definition.name) {
            errors.push(Error::duplicate(&at, definition.name.as_str()));
        }
        if definition.name.starts_with("gardener-") {
            errors.push(Error::forbidden(
                &at,
                "the \"gardener-\" prefix is reserved for Gardener-core capabilities",
            ));
        }
        defined.insert(definition.name.clone(), definition.values.clone());
    }
    let at = path.child(ARCHITECTURE);
    match defined.get(ARCHITECTURE) {
        None => errors.push(Error::required(&at, "architecture capability is required")),
        Some(values) => {
            let unknown = values.iter().filter(|value| !ARCHITECTURES.contains(&value.as_str()));
            let why = format!("allowed architectures are: {}", ARCHITECTURES.join(", "));
            errors.extend(unknown.map(|value| Error::invalid(&at, value.as_str(), why.as_str())));
        }
    }
    for (key, values) in &defined {
        let found = unprefixed(key);
        if key.is_empty() {
            errors.push(Error::required(path, "capability keys must not be empty"));
        } else if !found.is_empty() {
            let why = format!("capability key must be qualified name: {}", found.join(", "));
            errors.push(Error::invalid(path, key.as_str(), why));
        }
        let at = member(path, key);
        if values.is_empty() {
            errors.push(Error::required(&at, "capability values must not be empty"));
        }
        for (i, value) in values.iter().enumerate() {
            let at = at.index(i);
            let found = unprefixed(value);
            if value.is_empty() {
                errors.push(Error::required(&at, "capability values must not be empty"));
            } else if !found.is_empty() {
                let why = format!("capability value must be qualified name: {}", found.join(", "));
                errors.push(Error::invalid(&at, value.as_str(), why));
            }
        }
    }
    errors
}

/// Only what is defined may be named.
pub(super) fn known(own: &Capabilities, defined: &Capabilities, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, values) in own {
        let Some(supported) = defined.get(key) else {
            let keys: Vec<&str> = defined.keys().map(String::as_str).collect();
            errors.push(Error::not_supported(path, key.as_str(), &keys));
            continue;
        };
        for (i, value) in values.iter().enumerate() {
            if !supported.contains(value) {
                let at = member(path, key).index(i);
                errors.push(Error::not_supported(&at, value.as_str(), supported));
            }
        }
    }
    errors
}
