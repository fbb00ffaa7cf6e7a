//! Defaults and validation of secret bindings, [DEF-44], [VAL-SB1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::validation::{
    go_pointer, go_struct, immutable, immutable_as, immutable_references, name_and_namespace, object_meta,
    object_meta_update,
};

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
    let mut errors = object_meta(&binding.metadata, true, gardener_apimachinery::names::dns_subdomain);
    let (secret, at) = (&binding.secret_ref, Path::new("secretRef"));
    errors.extend(name_and_namespace(
        secret.name.as_deref(),
        secret.namespace.as_deref(),
        &at,
    ));
    for (i, quota) in binding.quotas.iter().enumerate() {
        let at = Path::new("quotas").index(i);
        errors.extend(name_and_namespace(
            quota.name.as_deref(),
            quota.namespace.as_deref(),
            &at,
        ));
    }
    errors
}

/// Checks what only creation asks for.
pub fn validate_secret_binding_creation(binding: &SecretBinding) -> ErrorList {
    let mut errors = validate_secret_binding(binding);
    let path = Path::new("provider");
    match &binding.provider {
        None => errors.push(Error::required(&path, "must specify a provider")),
        Some(provider) if provider.r#type.is_empty() => {
            errors.push(Error::required(&path.child("type"), "must specify a provider type"));
        }
        Some(_) => {}
    }
    errors
}

/// Checks a change of a secret binding.
pub fn validate_secret_binding_update(new: &SecretBinding, old: &SecretBinding) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(immutable(&new.secret_ref, &old.secret_ref, &Path::new("secretRef")));
    errors.extend(immutable_references(&new.quotas, &old.quotas, &Path::new("quotas")));
    if old.provider.is_some() {
        let shown = |provider: &SecretBindingProvider| go_struct(&[("Type", provider.r#type.as_str().into())]);
        let at = Path::new("provider");
        errors.extend(immutable_as(&new.provider, &old.provider, &at, |own| {
            go_pointer(own.as_ref(), shown)
        }));
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
