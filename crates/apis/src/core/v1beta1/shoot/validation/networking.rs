//! Networking and DNS, [VAL-N1] – [VAL-N4], [VAL-D1] – [VAL-D4].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;

use super::super::ShootSpec;
use super::workerless;
use crate::validation::{canonical_cidr, cidr, family, go_kind, invalid_each, ip_families};
use crate::versions;

/// `spec.networking`.
pub(super) fn networking(spec: &ShootSpec, path: &Path) -> ErrorList {
    let Some(networking) = &spec.networking else {
        return if spec.is_workerless() {
            ErrorList::new()
        } else {
            vec![Error::required(
                path,
                "networking should not be nil for a Shoot with workers",
            )]
        };
    };
    let mut errors = ErrorList::new();
    if spec.is_workerless() {
        errors.extend(workerless::networking(spec, path));
    } else {
        match networking.r#type.as_deref().unwrap_or_default() {
            "" => errors.push(Error::required(&path.child("type"), "networking type must be provided")),
            kind if !names::label_value(kind).is_empty() => {
                errors.push(Error::invalid(
                    &path.child("type"),
                    kind,
                    "type must be a valid label name",
                ));
            }
            _ => {}
        }
    }
    let family_errors = ip_families(&networking.ip_families, &path.child("ipFamilies"));
    let families_fine = family_errors.is_empty();
    errors.extend(family_errors);
    let mut ranges = vec![("services", &networking.services)];
    if !spec.is_workerless() {
        ranges = vec![
            ("nodes", &networking.nodes),
            ("pods", &networking.pods),
            ("services", &networking.services),
        ];
    }
    for (name, range) in ranges {
        let Some(text) = range.as_deref() else { continue };
        let at = path.child(name);
        match cidr(text, &at) {
            Err(error) => errors.push(error),
            Ok(net) => {
                if families_fine
                    && let [only] = networking.ip_families.as_slice()
                    && family(&net) != only
                {
                    errors.push(Error::invalid(&at, text, format!("must be a valid {only} address")));
                } else {
                    errors.extend(canonical_cidr(&net, text, &at));
                }
            }
        }
    }
    errors
}

/// `spec.dns`.
pub(super) fn dns(spec: &ShootSpec, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(dns) = &spec.dns else { return errors };
    if let Some(domain) = &dns.domain {
        errors.extend(invalid_each(
            &path.child("domain"),
            domain,
            names::dns_subdomain(domain),
        ));
    }
    let primary = dns.providers.iter().find(|provider| provider.primary == Some(true));
    if let Some(provider) = primary
        && provider.r#type.as_deref() != Some("unmanaged")
        && dns.domain.is_none()
    {
        errors.push(Error::required(
            &path.child("domain"),
            "domain must be set when primary provider type is not set to \"unmanaged\"",
        ));
    }
    let mut primaries = 0;
    for (i, provider) in dns.providers.iter().enumerate() {
        let at = path.child("providers").index(i);
        let is_primary = provider.primary == Some(true);
        primaries += usize::from(is_primary);
        if is_primary && primaries > 1 {
            errors.push(Error::forbidden(
                &at.child("primary"),
                "multiple primary DNS providers are not supported",
            ));
        }
        let kind = provider.r#type.as_deref();
        if provider.credentials_ref.is_some() && kind.is_none_or(str::is_empty) {
            errors.push(Error::required(
                &at.child("type"),
                "type must be set when credentialsRef is set",
            ));
        }
        if kind == Some("unmanaged") && provider.credentials_ref.is_some() {
            errors.push(Error::invalid(
                &at.child("credentialsRef"),
                crate::validation::shown(&provider.credentials_ref),
                "credentialsRef must not be set when type is \"unmanaged\"",
            ));
        }
        if !is_primary && provider.credentials_ref.is_none() && kind != Some("unmanaged") {
            errors.push(Error::required(
                &at.child("credentialsRef"),
                "non-primary DNS providers must specify `credentialsRef`",
            ));
        }
        if let Some(reference) = &provider.credentials_ref {
            errors.extend(credentials(reference, &at.child("credentialsRef")));
            let same = |other: &&super::super::DNSProvider| {
                other.credentials_ref.as_ref() == Some(reference) && other.r#type == provider.r#type
            };
            if dns.providers.iter().take(i).any(|other| same(&other)) {
                errors.push(Error::invalid(
                    &at,
                    crate::validation::shown(provider),
                    "combination of .credentialsRef and .type must be unique across dns providers",
                ));
            }
        }
        errors.extend(secret_name(provider, version, &at.child("secretName")));
    }
    errors
}

/// [VAL-D3].
fn credentials(reference: &k8s_openapi::api::autoscaling::v1::CrossVersionObjectReference, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let version = reference.api_version.as_deref().unwrap_or_default();
    if version.is_empty() {
        errors.push(Error::required(&path.child("apiVersion"), "must provide an apiVersion"));
    }
    if reference.kind.is_empty() {
        errors.push(Error::required(&path.child("kind"), "must provide a kind"));
    }
    if reference.name.is_empty() {
        errors.push(Error::required(&path.child("name"), "must provide a name"));
    }
    const SUPPORTED: [(&str, &str); 3] = [
        ("v1", "Secret"),
        ("core.gardener.cloud/v1beta1", "InternalSecret"),
        ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
    ];
    if !SUPPORTED.contains(&(version, reference.kind.as_str())) {
        let texts: Vec<String> = SUPPORTED.iter().map(|(version, kind)| go_kind(version, kind)).collect();
        errors.push(Error::not_supported(path, go_kind(version, &reference.kind), &texts));
    }
    errors
}

/// [VAL-D2].
fn secret_name(provider: &super::super::DNSProvider, version: &str, path: &Path) -> ErrorList {
    let Some(name) = provider.secret_name.as_deref() else {
        return ErrorList::new();
    };
    if versions::at_least(version, 35) {
        return vec![Error::forbidden(
            path,
            "for Kubernetes versions >= 1.35, secretName field is no longer supported, use credentialsRef instead",
        )];
    }
    match &provider.credentials_ref {
        None => vec![Error::forbidden(
            path,
            "must not be set when `credentialsRef` is not set",
        )],
        Some(reference) if reference.kind != "Secret" => {
            vec![Error::forbidden(
                path,
                "must not be set when `credentialsRef` does not refer to secret resource",
            )]
        }
        Some(reference) if reference.name != name => {
            vec![Error::invalid(
                path,
                name,
                "must refer to the same secret as `credentialsRef`",
            )]
        }
        Some(_) => ErrorList::new(),
    }
}
