//! Networking and DNS, [VAL-N1] – [VAL-N4], [VAL-D1] – [VAL-D4].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use k8s_openapi::api::autoscaling::v1::CrossVersionObjectReference;
use k8s_openapi::api::core::v1::ObjectReference;

use super::super::{DNSProvider, ShootSpec};
use super::workerless;
use crate::validation::{
    Credentials, canonical_cidr, cidr, credentials_ref, family, go_json, go_members, invalid_each, ip_families,
};
use crate::versions;

/// What stands before a networking type in the label that tells it.
const NETWORKING_LABEL: &str = "networking.extensions.gardener.cloud/";

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
            kind if !names::qualified_name(&format!("{NETWORKING_LABEL}{kind}")).is_empty() => {
                errors.push(Error::literal(
                    &path.child("type"),
                    go_json(kind),
                    "type must be a valid label name",
                ));
            }
            _ => {}
        }
    }
    let family_errors = ip_families(&networking.ip_families, &path.child("ipFamilies"));
    if !family_errors.is_empty() {
        errors.extend(family_errors);
        return errors;
    }
    // of two families any range may have either
    let only = match networking.ip_families.as_slice() {
        [] => Some("IPv4"),
        [only] => Some(only.as_str()),
        _ => None,
    };
    for (name, range) in [
        ("nodes", &networking.nodes),
        ("pods", &networking.pods),
        ("services", &networking.services),
    ] {
        let Some(text) = range.as_deref() else { continue };
        let at = path.child(name);
        match cidr(text, &at) {
            Err(error) => errors.push(error),
            Ok(net) => {
                if let Some(only) = only
                    && family(&net) != only
                {
                    let shown = net.trunc().addr().to_canonical().to_string();
                    errors.push(Error::invalid(&at, shown, format!("must be a valid {only} address")));
                }
                errors.extend(canonical_cidr(&net, text, &at));
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
    if let Some(kind) = primary.and_then(|provider| provider.r#type.as_deref())
        && kind != "unmanaged"
        && dns.domain.is_none()
    {
        errors.push(Error::required(
            &path.child("domain"),
            "domain must be set when primary provider type is not set to \"unmanaged\"",
        ));
    }
    let mut used: Vec<(&str, &CrossVersionObjectReference)> = Vec::new();
    let mut primaries = 0;
    for (i, provider) in dns.providers.iter().enumerate() {
        let at = path.child("providers").index(i);
        errors.extend(credentials(provider, version, &at));
        let (kind, reference) = (provider.r#type.as_deref(), provider.credentials_ref.as_ref());
        if let (Some(kind), Some(reference)) = (kind, reference) {
            if used.contains(&(kind, reference)) {
                let version = reference.api_version.as_deref().unwrap_or_default();
                let shown = go_members(&[
                    ("providerType", go_json(&kind)),
                    ("gvk", go_json(&format!("{version}/{}", reference.kind))),
                    ("name", go_json(&reference.name)),
                ]);
                let why = "combination of .credentialsRef and .type must be unique across dns providers";
                errors.push(Error::literal(&at, shown, why));
                continue;
            }
            used.push((kind, reference));
        }
        let is_primary = provider.primary == Some(true);
        primaries += usize::from(is_primary);
        if is_primary && primaries > 1 {
            errors.push(Error::forbidden(
                &at.child("primary"),
                "multiple primary DNS providers are not supported",
            ));
            continue;
        }
        match reference {
            Some(reference) if kind == Some("unmanaged") => errors.push(Error::literal(
                &at.child("credentialsRef"),
                shown_reference(reference),
                "credentialsRef must not be set when type is \"unmanaged\"",
            )),
            Some(_) if kind.is_none() => errors.push(Error::required(
                &at.child("type"),
                "type must be set when credentialsRef is set",
            )),
            None if !is_primary => errors.push(Error::required(
                &at.child("credentialsRef"),
                "non-primary DNS providers must specify `credentialsRef`",
            )),
            _ => {}
        }
    }
    errors
}

fn shown_reference(reference: &CrossVersionObjectReference) -> String {
    let mut members = vec![("kind", go_json(&reference.kind)), ("name", go_json(&reference.name))];
    if let Some(version) = reference.api_version.as_ref().filter(|version| !version.is_empty()) {
        members.push(("apiVersion", go_json(version)));
    }
    go_members(&members)
}

/// [VAL-D2], [VAL-D3]: the credentials of a provider, and their older name.
fn credentials(provider: &DNSProvider, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("secretName");
    let name = provider.secret_name.as_deref();
    let is_over = versions::at_least(version, 35);
    let is_not_over = versions::before(version, 35);
    if name.is_some() && is_over {
        errors.push(Error::forbidden(
            &at,
            "for Kubernetes versions >= 1.35, secretName field is no longer supported",
        ));
    }
    let Some(reference) = &provider.credentials_ref else {
        if name.is_some() && is_not_over {
            errors.push(Error::forbidden(
                &at,
                "must not be set when `credentialsRef` is not set",
            ));
        }
        return errors;
    };
    let whole = ObjectReference {
        api_version: reference.api_version.clone(),
        kind: Some(reference.kind.clone()),
        name: Some(reference.name.clone()),
        ..ObjectReference::default()
    };
    errors.extend(credentials_ref(
        &whole,
        Credentials::AnySecretOrWorkloadIdentity,
        false,
        &path.child("credentialsRef"),
    ));
    if reference.api_version.as_deref() == Some("v1") && reference.kind == "Secret" {
        if is_not_over && name != Some(reference.name.as_str()) {
            errors.push(Error::forbidden(
                &at,
                "must refer to the same secret as `credentialsRef`",
            ));
        }
    } else if name.is_some_and(|name| !name.is_empty()) {
        errors.push(Error::forbidden(
            &at,
            "must not be set when `credentialsRef` does not refer to secret resource",
        ));
    }
    errors
}
