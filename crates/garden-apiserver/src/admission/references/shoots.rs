//! What a shoot's spec names.

use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::Attributes;

use super::{CONFIG_MAP, CORE, Kind, SECRET, SECURITY, SEED, exists, kind, referred, resolves, resources, text};
use crate::lookup;

/// Checks what changed.
pub(super) fn check(attributes: &Attributes<'_>, shoot: &Shoot, old: Option<&Shoot>) -> Result<(), ApiError> {
    let (spec, before) = (&shoot.spec, old.map(|old| &old.spec));
    if before == Some(spec) {
        return Ok(());
    }
    let (lister, namespace) = (attributes.context.lister, attributes.namespace);
    let reference = spec.cloud_profile_reference();
    if before.and_then(|old| old.cloud_profile_reference()) != reference {
        lookup::cloud_profile(lister, namespace, reference.as_ref()).map_err(|why| {
            attributes.forbidden(&format!(
                "could not find cloudProfileSpec from the shoot cloudProfile reference: {why}"
            ))
        })?;
    }
    let named = |new: &Option<String>, old: Option<&Option<String>>, kind: Kind, namespace: &str| match new {
        Some(name) if Some(new) != old => exists(attributes, kind, namespace, name),
        _ => Ok(()),
    };
    named(&spec.seed_name, before.map(|old| &old.seed_name), SEED, "")?;
    named(
        &spec.secret_binding_name,
        before.map(|old| &old.secret_binding_name),
        kind(
            CORE,
            "secretbindings",
            "SecretBinding",
            "secretbinding.core.gardener.cloud",
        ),
        namespace,
    )?;
    named(
        &spec.credentials_binding_name,
        before.map(|old| &old.credentials_binding_name),
        kind(
            SECURITY,
            "credentialsbindings",
            "CredentialsBinding",
            "credentialsbinding.security.gardener.cloud",
        ),
        namespace,
    )?;
    named(
        &spec.exposure_class_name,
        before.map(|old| &old.exposure_class_name),
        kind(
            CORE,
            "exposureclasses",
            "ExposureClass",
            "exposureclass.core.gardener.cloud",
        ),
        "",
    )?;
    let known = before.map(|old| old.resources.as_slice()).unwrap_or_default();
    resources(attributes, namespace, &spec.resources, known)?;
    if before.map(|old| &old.dns) != Some(&spec.dns) {
        let providers = spec.dns.iter().flat_map(|dns| &dns.providers);
        for reference in providers.filter_map(|provider| provider.credentials_ref.as_ref()) {
            if let Some(kind) = referred(text(&reference.api_version), &reference.kind) {
                let what = format!("credentials reference of type {}", kind.kind);
                resolves(attributes, &what, kind, namespace, &reference.name)?;
            }
        }
    }
    let server = |kubernetes: &Kubernetes| kubernetes.kube_api_server.clone().unwrap_or_default();
    let before = before.map(|old| server(&old.kubernetes));
    api_server(attributes, &server(&spec.kubernetes), &before.unwrap_or_default())
}

/// What the shoot's kube-apiserver is configured with.
fn api_server(
    attributes: &Attributes<'_>,
    new: &KubeAPIServerConfig,
    old: &KubeAPIServerConfig,
) -> Result<(), ApiError> {
    let namespace = attributes.namespace;
    if new.admission_plugins != old.admission_plugins {
        for plugin in &new.admission_plugins {
            if let Some(secret) = &plugin.kubeconfig_secret_name {
                let what = format!("admission plugin kubeconfig secret reference for {:?}", plugin.name);
                resolves(attributes, &what, SECRET, namespace, secret)?;
            }
        }
    }
    if let Some(own) = &new.structured_authentication
        && new.structured_authentication != old.structured_authentication
    {
        let what = "structured authentication config map reference";
        resolves(attributes, what, CONFIG_MAP, namespace, &own.config_map_name)?;
    }
    if let Some(own) = &new.structured_authorization
        && new.structured_authorization != old.structured_authorization
    {
        let what = "structured authorization config map reference";
        resolves(attributes, what, CONFIG_MAP, namespace, &own.config_map_name)?;
        for kubeconfig in &own.kubeconfigs {
            let what = "structured authorization kubeconfig secret reference";
            resolves(attributes, what, SECRET, namespace, &kubeconfig.secret_name)?;
        }
    }
    Ok(())
}
