//! Defaults and validation of credentials bindings, [DEF-44], [VAL-CB1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::validation::{
    Credentials, credentials_ref, go_struct, immutable_as, immutable_references, name_and_namespace, object_meta,
    object_meta_update, reference_in_order,
};

/// References without namespace mean the binding's own.
pub fn default_credentials_binding(binding: &mut CredentialsBinding) {
    let own = binding
        .metadata
        .namespace
        .clone()
        .filter(|namespace| !namespace.is_empty());
    if binding
        .credentials_ref
        .namespace
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        binding.credentials_ref.namespace = own.clone();
    }
    for quota in &mut binding.quotas {
        if quota.namespace.as_deref().unwrap_or_default().is_empty() {
            quota.namespace = own.clone();
        }
    }
}

/// Checks the type of a provider that bindings and identities name: set, and only one.
pub(in crate::security::v1alpha1) fn provider_type(kind: &str, path: &Path) -> ErrorList {
    if kind.is_empty() {
        vec![Error::required(path, "must specify a provider type")]
    } else if kind.contains(',') {
        vec![Error::invalid(path, kind, "multiple providers specified")]
    } else {
        ErrorList::new()
    }
}

/// Checks a credentials binding that is to be created or stored again.
pub fn validate_credentials_binding(binding: &CredentialsBinding) -> ErrorList {
    let mut errors = object_meta(&binding.metadata, true, gardener_apimachinery::names::dns_subdomain);
    errors.extend(credentials_ref(
        &binding.credentials_ref,
        Credentials::AnySecretOrWorkloadIdentity,
        true,
        &Path::new("credentialsRef"),
    ));
    errors.extend(provider_type(&binding.provider.r#type, &Path::new("provider.type")));
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

/// Checks a change of a credentials binding.
pub fn validate_credentials_binding_update(new: &CredentialsBinding, old: &CredentialsBinding) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let at = Path::new("credentialsRef");
    errors.extend(immutable_as(
        &new.credentials_ref,
        &old.credentials_ref,
        &at,
        reference_in_order,
    ));
    errors.extend(immutable_references(&new.quotas, &old.quotas, &Path::new("quotas")));
    let at = Path::new("provider");
    errors.extend(immutable_as(&new.provider, &old.provider, &at, |provider| {
        go_struct(&[("Type", provider.r#type.as_str().into())])
    }));
    errors.extend(validate_credentials_binding(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_cb1_recorded_refusal() {
        let binding: CredentialsBinding = serde_json::from_value(serde_json::json!({"metadata": {"name": "c1", "namespace": "garden-local"},
            "provider": {"type": "a,b"}, "credentialsRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "", "namespace": "garden-local"}}))
        .unwrap();
        let texts: Vec<String> = validate_credentials_binding(&binding)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts.len(), 4, "{texts:#?}");
        assert_eq!(texts[0], "credentialsRef.name: Required value: must provide a name");
        assert!(texts[1].starts_with("credentialsRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain"));
        assert_eq!(
            texts[2],
            "credentialsRef: Unsupported value: \"&ObjectReference{Kind:ConfigMap,Namespace:garden-local,Name:,UID:,APIVersion:v1,ResourceVersion:,FieldPath:,}\": supported values: \"/v1, Kind=Secret\", \"core.gardener.cloud/v1beta1, Kind=InternalSecret\", \"security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity\""
        );
        assert_eq!(
            texts[3],
            "provider.type: Invalid value: \"a,b\": multiple providers specified"
        );
    }
}
