//! The credentials of a shoot stay the same, or change by somebody who may read both; plugins of its API server find theirs, [ADM-29g], [ADM-32j].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;

use super::Check;
use crate::lookup;

/// Group and resource of what a binding refers to.
fn resource(binding: &CredentialsBinding) -> Option<(&'static str, &'static str)> {
    match binding.credentials_ref.api_version.as_deref()? {
        "v1" => Some(("", "secrets")),
        "security.gardener.cloud/v1alpha1" => Some(("security.gardener.cloud", "workloadidentities")),
        "core.gardener.cloud/v1beta1" => Some(("core.gardener.cloud", "internalsecrets")),
        _ => None,
    }
}

impl Check<'_> {
    /// [ADM-29g].
    pub(super) fn credentials(&self) -> Result<(), ApiError> {
        let Some(old) = self.old else { return Ok(()) };
        let before = (
            old.spec.secret_binding_name.as_deref(),
            old.spec.credentials_binding_name.as_deref(),
        );
        let spec = &self.shoot.spec;
        match (
            before,
            spec.secret_binding_name.as_deref(),
            spec.credentials_binding_name.as_deref(),
        ) {
            ((Some(from), None), None, Some(to)) => self.same_secret(from, to),
            ((_, Some(from)), _, Some(to)) if from != to => {
                self.may_read(&self.binding(from, "previously")?, "previously")?;
                self.may_read(&self.binding(to, "newly")?, "newly")
            }
            _ => Ok(()),
        }
    }

    fn binding(&self, name: &str, which: &str) -> Result<CredentialsBinding, ApiError> {
        let found = lookup::get::<CredentialsBinding>(self.attributes.context.lister, self.attributes.namespace, name);
        found.ok_or_else(|| {
            ApiError::internal(format!(
                "could not retrieve {which} referenced credentials binding: credentialsbinding.security.gardener.cloud {name:?} not found"
            ))
        })
    }

    fn same_secret(&self, from: &str, to: &str) -> Result<(), ApiError> {
        let (lister, namespace) = (self.attributes.context.lister, self.attributes.namespace);
        let Some(before) = lookup::get::<SecretBinding>(lister, namespace, from) else {
            return Err(ApiError::internal(format!(
                "could not retrieve previously referenced secret binding: secretbinding.core.gardener.cloud {from:?} not found"
            )));
        };
        let own = self.binding(to, "newly")?.credentials_ref;
        let same = own.kind.as_deref() == Some("Secret")
            && own.api_version.as_deref() == Some("v1")
            && own.name == before.secret_ref.name
            && own.namespace == before.secret_ref.namespace;
        match same {
            true => Ok(()),
            false => Err(self.attributes.forbidden(
                "it is not allowed to change the referenced Secret when migrating from SecretBindingName to CredentialsBindingName",
            )),
        }
    }

    /// Whoever may not read credentials must neither take them for a shoot, nor leave what was made with them behind.
    fn may_read(&self, binding: &CredentialsBinding, which: &str) -> Result<(), ApiError> {
        let context = self.attributes.context;
        let Some((group, resource)) = resource(binding) else {
            return Err(self.attributes.forbidden(
                "unknown credentials ref: CredentialsBinding is referencing neither a Secret nor an InternalSecret nor a WorkloadIdentity",
            ));
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let reference = &binding.credentials_ref;
        let (namespace, name) = (text(&reference.namespace), text(&reference.name));
        match context
            .lister
            .allowed(context.user, "get", group, resource, &namespace, &name)
        {
            true => Ok(()),
            false => Err(self.attributes.forbidden(&format!(
                "user {:?} is not allowed to read the {which} referenced {} {:?}",
                context.user.name,
                text(&reference.kind),
                format!("{namespace}/{name}")
            ))),
        }
    }

    /// [ADM-32j].
    pub(super) fn admission_plugins(&self) -> ErrorList {
        let spec = &self.shoot.spec;
        let path = Path::new("spec.kubernetes.kubeAPIServer.admissionPlugins");
        let plugins = spec
            .kubernetes
            .kube_api_server
            .iter()
            .flat_map(|server| &server.admission_plugins);
        let mut errors = ErrorList::new();
        for (i, plugin) in plugins.enumerate() {
            let Some(name) = plugin.kubeconfig_secret_name.as_deref() else {
                continue;
            };
            let path = path.index(i).child("kubeconfigSecretName");
            let is_secret = |own: &NamedResourceReference| {
                let reference = &own.resource_ref;
                reference.api_version.as_deref() == Some("v1") && reference.kind == "Secret" && reference.name == name
            };
            if !spec.resources.iter().any(is_secret) {
                let why = "secret should be referenced in shoot .spec.resources";
                errors.push(Error::invalid(&path, name, why));
                continue;
            }
            errors.extend(self.kubeconfig(name, &path));
        }
        errors
    }

    fn kubeconfig(&self, name: &str, path: &Path) -> Option<Error> {
        let namespace = self.attributes.namespace;
        let Some(secret) = self.attributes.context.lister.get("", "secrets", namespace, name) else {
            return Some(Error::internal(
                path,
                format!(
                    "unable to get the referenced secret: namespace: {namespace}, name: {name}, error: secret {name:?} not found"
                ),
            ));
        };
        secret.at("/data/kubeconfig").is_none().then(|| {
            let why = format!(
                "referenced kubeconfig secret doesn't contain kubeconfig: namespace: {namespace}, name: {name}"
            );
            Error::invalid(path, name, why)
        })
    }
}
