//! Defaults and validation of secret bindings, [DEF-44], [VAL-SB1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::validation::{immutable, object_meta, object_meta_update};

/// References without namespace mean the binding's own.
pub fn default_secret_binding(binding: &mut SecretBinding) {
    let own = binding
        .metadata
        .namespace
        .clone()
        .filter(|namespace| !namespace.is_empty());
    if binding.secret_ref.namespace.as_deref().unwrap_or_default().is_empty() {
        binding.secret_ref.namespace = own.clone();
    }
    for quota in &mut binding.quotas {
        if quota.namespace.as_deref().unwrap_or_default().is_empty() {
            quota.namespace = own.clone();
        }
    }
}

/// Checks a secret binding that is to be created or stored again.
pub fn validate_secret_binding(binding: &SecretBinding) -> ErrorList {
    let mut errors = object_meta(&binding.metadata, true);
    if binding.secret_ref.name.as_deref().unwrap_or_default().is_empty() {
        errors.push(Error::required(&Path::new("secretRef.name"), "must provide a name"));
    }
    for (i, quota) in binding.quotas.iter().enumerate() {
        if quota.name.as_deref().unwrap_or_default().is_empty() {
            errors.push(Error::required(
                &Path::new("quotas").index(i).child("name"),
                "must provide a name",
            ));
        }
    }
    if let Some(provider) = &binding.provider
        && provider.r#type.is_empty()
    {
        errors.push(Error::required(
            &Path::new("provider.type"),
            "must specify a provider type",
        ));
    }
    errors
}

/// Checks what only creation asks for.
pub fn validate_secret_binding_creation(binding: &SecretBinding) -> ErrorList {
    let mut errors = validate_secret_binding(binding);
    if binding.provider.is_none() {
        errors.push(Error::required(&Path::new("provider"), "must specify a provider"));
    }
    errors
}

/// Checks a change of a secret binding.
pub fn validate_secret_binding_update(new: &SecretBinding, old: &SecretBinding) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(immutable(&new.secret_ref, &old.secret_ref, &Path::new("secretRef")));
    errors.extend(immutable(&new.quotas, &old.quotas, &Path::new("quotas")));
    if old.provider.is_some() {
        errors.extend(immutable(&new.provider, &old.provider, &Path::new("provider")));
    }
    errors.extend(validate_secret_binding(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_sb1_references_are_fixed() {
        let mut old: SecretBinding = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "a", "namespace": "garden-local"},
            "provider": {"type": "local"}, "secretRef": {"name": "keys"}}),
        )
        .unwrap();
        default_secret_binding(&mut old);
        assert!(validate_secret_binding_creation(&old).is_empty());
        let mut new = old.clone();
        new.secret_ref.name = Some("local".into());
        let texts: Vec<String> = validate_secret_binding_update(&new, &old)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            ["secretRef: Invalid value: {\"name\":\"local\",\"namespace\":\"garden-local\"}: field is immutable"]
        );
    }
}
