//! What an object refers to must exist and be readable for the user, [ADM-50], [ADM-51].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_apiserver::meta;

use super::{typed, typed_old};

/// The plugin.
pub(super) struct ResourceReferenceManager;

const CORE: &str = "core.gardener.cloud";
const SECURITY: &str = "security.gardener.cloud";

/// Group and resource of a reference by API version and kind.
fn resource_of(api_version: &str, kind: &str) -> Option<(&'static str, &'static str, &'static str)> {
    match (api_version.split('/').next().unwrap_or_default(), kind) {
        ("v1", "Secret") => Some(("", "secrets", "secrets")),
        ("v1", "ConfigMap") => Some(("", "configmaps", "configmaps")),
        (SECURITY, "WorkloadIdentity") => Some((
            SECURITY,
            "workloadidentities",
            "workloadidentity.security.gardener.cloud",
        )),
        _ => None,
    }
}

fn exists(
    attributes: &Attributes<'_>,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
    shown: &str,
) -> Result<(), ApiError> {
    match attributes.context.lister.get(group, resource, namespace, name) {
        Some(_) => Ok(()),
        None => Err(attributes.forbidden(&format!("{shown} {name:?} not found"))),
    }
}

fn readable(attributes: &Attributes<'_>, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
    attributes
        .context
        .lister
        .allowed(attributes.context.user, "get", group, resource, namespace, name)
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

fn shoot(attributes: &Attributes<'_>, shoot: &Shoot) -> Result<(), ApiError> {
    let old = typed_old::<Shoot>(attributes);
    let before = old.as_ref().map(|old| &old.spec);
    let spec = &shoot.spec;
    let namespace = attributes.namespace;
    let check = |new: &Option<String>,
                 old: Option<&Option<String>>,
                 group: &str,
                 resource: &str,
                 namespace: &str,
                 shown: &str| {
        match new {
            Some(name) if Some(new) != old => exists(attributes, group, resource, namespace, name, shown),
            _ => Ok(()),
        }
    };
    check(
        &spec.seed_name,
        before.map(|old| &old.seed_name),
        CORE,
        "seeds",
        "",
        "seed.core.gardener.cloud",
    )?;
    check(
        &spec.secret_binding_name,
        before.map(|old| &old.secret_binding_name),
        CORE,
        "secretbindings",
        namespace,
        "secretbinding.core.gardener.cloud",
    )?;
    check(
        &spec.credentials_binding_name,
        before.map(|old| &old.credentials_binding_name),
        SECURITY,
        "credentialsbindings",
        namespace,
        "credentialsbinding.security.gardener.cloud",
    )?;
    check(
        &spec.exposure_class_name,
        before.map(|old| &old.exposure_class_name),
        CORE,
        "exposureclasses",
        "",
        "exposureclass.core.gardener.cloud",
    )?;
    if before.map(|old| &old.dns) != Some(&spec.dns) {
        for reference in spec
            .dns
            .iter()
            .flat_map(|dns| &dns.providers)
            .filter_map(|provider| provider.credentials_ref.as_ref())
        {
            if let Some((group, resource, shown)) = resource_of(text(&reference.api_version), &reference.kind)
                && attributes
                    .context
                    .lister
                    .get(group, resource, namespace, &reference.name)
                    .is_none()
            {
                return Err(attributes.forbidden(&format!(
                    "failed to resolve credentials reference of type {}: {shown} {:?} not found",
                    reference.kind, reference.name
                )));
            }
        }
    }
    let known = before.map(|old| old.resources.as_slice()).unwrap_or_default();
    for own in spec.resources.iter().filter(|own| !known.contains(own)) {
        let reference = &own.resource_ref;
        let Some((group, resource, shown)) = resource_of(text(&reference.api_version), &reference.kind) else {
            continue;
        };
        if !readable(attributes, group, resource, namespace, &reference.name) {
            return Err(attributes.forbidden("shoot cannot reference a resource you are not allowed to read"));
        }
        if attributes
            .context
            .lister
            .get(group, resource, namespace, &reference.name)
            .is_none()
        {
            return Err(attributes.forbidden(&format!(
                "failed to resolve resource reference {:?}: {shown} {:?} not found",
                own.name, reference.name
            )));
        }
    }
    Ok(())
}

fn binding(
    attributes: &Attributes<'_>,
    kind: &str,
    credentials: Option<(&'static str, &'static str, &'static str)>,
    namespace: &str,
    name: &str,
    quotas: &[k8s_openapi::api::core::v1::ObjectReference],
) -> Result<(), ApiError> {
    if let Some((group, resource, shown)) = credentials {
        if !readable(attributes, group, resource, namespace, name) {
            let word = if resource == "secrets" {
                "Secret"
            } else {
                "WorkloadIdentity"
            };
            return Err(attributes.forbidden(&format!("{kind} cannot reference a {word} you are not allowed to read")));
        }
        exists(attributes, group, resource, namespace, name, shown)?;
    }
    for quota in quotas {
        let (namespace, name) = (text(&quota.namespace), text(&quota.name));
        if !readable(attributes, CORE, "quotas", namespace, name) {
            return Err(attributes.forbidden(&format!("{kind} cannot reference a quota you are not allowed to read")));
        }
        exists(attributes, CORE, "quotas", namespace, name, "quota.core.gardener.cloud")?;
    }
    Ok(())
}

#[async_trait]
impl Admission for ResourceReferenceManager {
    fn name(&self) -> &'static str {
        "ResourceReferenceManager"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update)
            || !matches!(attributes.subresource, "" | "binding")
            || attributes.object.as_ref().is_some_and(meta::is_deleting)
        {
            return Ok(());
        }
        if let Some(own) = typed::<Shoot>(attributes) {
            return shoot(attributes, &own);
        }
        if let Some(own) = typed::<SecretBinding>(attributes) {
            let old = typed_old::<SecretBinding>(attributes);
            if old.is_some_and(|old| old.secret_ref == own.secret_ref && old.quotas == own.quotas) {
                return Ok(());
            }
            let (namespace, name) = (text(&own.secret_ref.namespace), text(&own.secret_ref.name));
            return binding(
                attributes,
                "SecretBinding",
                resource_of("v1", "Secret"),
                namespace,
                name,
                &own.quotas,
            );
        }
        if let Some(own) = typed::<CredentialsBinding>(attributes) {
            let old = typed_old::<CredentialsBinding>(attributes);
            if old.is_some_and(|old| old.credentials_ref == own.credentials_ref && old.quotas == own.quotas) {
                return Ok(());
            }
            let reference = &own.credentials_ref;
            let resource = resource_of(text(&reference.api_version), text(&reference.kind));
            let (namespace, name) = (text(&reference.namespace), text(&reference.name));
            return binding(attributes, "CredentialsBinding", resource, namespace, name, &own.quotas);
        }
        if let Some(own) = typed::<BackupBucket>(attributes) {
            if typed_old::<BackupBucket>(attributes).is_some_and(|old| old.spec == own.spec) {
                return Ok(());
            }
            if let Some(seed) = &own.spec.seed_name {
                exists(attributes, CORE, "seeds", "", seed, "seed.core.gardener.cloud")?;
            }
            if let Some(reference) = &own.spec.credentials_ref
                && let Some((group, resource, shown)) = resource_of(text(&reference.api_version), text(&reference.kind))
            {
                exists(
                    attributes,
                    group,
                    resource,
                    text(&reference.namespace),
                    text(&reference.name),
                    shown,
                )?;
            }
        }
        if let Some(own) = typed::<BackupEntry>(attributes) {
            let old = typed_old::<BackupEntry>(attributes);
            if let Some(seed) = &own.spec.seed_name
                && old.is_none_or(|old| old.spec.seed_name.as_ref() != Some(seed))
            {
                exists(attributes, CORE, "seeds", "", seed, "seed.core.gardener.cloud")?;
            }
        }
        if let Some(own) = typed::<ControllerRegistration>(attributes) {
            let missing: Vec<String> = own
                .spec
                .deployment
                .iter()
                .flat_map(|deployment| &deployment.deployment_refs)
                .filter(|reference| {
                    attributes
                        .context
                        .lister
                        .get(CORE, "controllerdeployments", "", &reference.name)
                        .is_none()
                })
                .map(|reference| {
                    format!(
                        "\t* controllerdeployments.core.gardener.cloud {:?} not found\n",
                        reference.name
                    )
                })
                .collect();
            if !missing.is_empty() {
                let word = if missing.len() == 1 { "error" } else { "errors" };
                return Err(attributes.forbidden(&format!(
                    "{} {word} occurred:\n{}\n",
                    missing.len(),
                    missing.concat()
                )));
            }
        }
        Ok(())
    }
}
