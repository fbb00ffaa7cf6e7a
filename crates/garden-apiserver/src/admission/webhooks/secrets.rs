//! Secrets that others rely on: kubeconfigs say nothing that would run or read on the reader's side, domains stay while they are used, what the
//! system writes is the system's, and credentials tell whose they are, [ADM-71], [ADM-72], [ADM-74], [ADM-75], [ADM-79].

use std::collections::BTreeSet;

use async_trait::async_trait;
use base64::Engine;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{GARDEN_NAMESPACE, SEED_NAMESPACE_PREFIX, annotation, group, label, role};
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_apiserver::meta;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::{Value, json};

use super::{denied, is_project};
use crate::lookup;

fn is_secret(attributes: &Attributes<'_>) -> bool {
    attributes.is("", "secrets") && attributes.subresource.is_empty()
}

fn label_of(object: Option<&Value>, key: &str) -> Option<String> {
    let labels = meta::string_map(object?.at("/metadata/labels"));
    labels.get(key).cloned()
}

/// The content of a secret's key `kubeconfig`.
fn kubeconfig(secret: Option<&Value>) -> Option<Vec<u8>> {
    let text = secret?.at("/data/kubeconfig")?.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// [ADM-71].
pub(super) struct KubeconfigSecrets;

const VALID: &str = "[client-certificate-data client-key-data token username password]";

/// What of a user's credentials would make the reader open files, run programs or be somebody else.
fn unsupported(user: &str, own: &AuthInfo) -> Option<String> {
    let what = if own.client_certificate.is_some() {
        "client certificate files are"
    } else if own.client_key.is_some() {
        "client key files are"
    } else if own.token_file.is_some() {
        "token files are"
    } else if own.impersonate.is_some() || own.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty()) {
        return Some(format!(
            "impersonation is not supported, these are the valid fields: {VALID}"
        ));
    } else if own
        .auth_provider
        .as_ref()
        .is_some_and(|provider| !provider.config.is_empty())
    {
        "auth provider configurations are"
    } else if own.exec.is_some() {
        "exec configurations are"
    } else {
        return None;
    };
    Some(format!(
        "{what} not supported (user {user:?}), these are the valid fields: {VALID}"
    ))
}

/// What is wrong with a kubeconfig.
fn misuse(config: &Kubeconfig) -> Option<String> {
    let users = config.auth_infos.iter();
    let mut found = users.filter_map(|user| unsupported(&user.name, user.auth_info.as_ref()?));
    found.next()
}

#[async_trait]
impl Admission for KubeconfigSecrets {
    fn name(&self) -> &'static str {
        "validate-kubeconfig-secrets.gardener.cloud"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let concerned = is_secret(attributes)
            && attributes.operation != Operation::Delete
            && !attributes.context.user.is_in(group::SEEDS)
            && is_project(attributes, attributes.namespace);
        if !concerned {
            return Ok(());
        }
        let Some(content) = kubeconfig(attributes.object.as_deref()) else {
            return Ok(());
        };
        let unreadable = |why: String| denied(self.name(), ApiError::bad_request(why));
        let text = String::from_utf8(content).map_err(|error| unreadable(error.to_string()))?;
        // a text without anything is a kubeconfig without anything
        let config: Kubeconfig = match text.trim().is_empty() {
            true => Kubeconfig::default(),
            false => Kubeconfig::from_yaml(&text).map_err(|error| unreadable(error.to_string()))?,
        };
        let Some(why) = misuse(&config) else { return Ok(()) };
        let shown = base64::engine::general_purpose::STANDARD.encode(&text);
        let why = format!("secret contains invalid kubeconfig: {why}");
        let error = Error::invalid(&Path::new("data.kubeconfig"), shown, why);
        Err(denied(self.name(), attributes.invalid(&[error])))
    }
}

/// [ADM-74].
pub(super) struct ShootKubeconfigs;

#[async_trait]
impl Admission for ShootKubeconfigs {
    fn name(&self) -> &'static str {
        "shoot-kubeconfig-secret-ref.gardener.cloud"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !is_secret(attributes)
            || attributes.operation != Operation::Update
            || kubeconfig(attributes.object.as_deref()).is_some_and(|content| !content.is_empty())
            || !is_project(attributes, attributes.namespace)
        {
            return Ok(());
        }
        let name = attributes.name;
        let uses = |shoot: &Shoot| {
            let Some(server) = &shoot.spec.kubernetes.kube_api_server else {
                return false;
            };
            let mut plugins = server.admission_plugins.iter();
            let mut webhooks = server.structured_authorization.iter().flat_map(|own| &own.kubeconfigs);
            plugins.any(|plugin| plugin.kubeconfig_secret_name.as_deref() == Some(name))
                || webhooks.any(|webhook| webhook.secret_name == name)
        };
        let shoots = lookup::list::<Shoot>(attributes.context.lister, Some(attributes.namespace));
        let users: Vec<&str> = shoots.iter().filter(|shoot| uses(shoot)).map(Shoot::own_name).collect();
        if users.is_empty() {
            return Ok(());
        }
        let why = format!(
            "data kubeconfig can't be removed from secret or set to empty because secret is in use by shoots: [{}]",
            users.join(", ")
        );
        Err(denied(self.name(), ApiError::forbidden("", "Secret", name, &why)))
    }
}

/// [ADM-72].
pub(super) struct InternalDomain;

fn is_internal_domain(secret: Option<&Value>) -> bool {
    label_of(secret, label::ROLE).as_deref() == Some(role::INTERNAL_DOMAIN)
}

/// The domain of a domain secret, which tells its provider, too.
fn domain(secret: Option<&Value>) -> Result<String, &'static str> {
    let annotations = meta::string_map(secret.and_then(|secret| secret.at("/metadata/annotations")));
    if annotations.is_empty() {
        return Err("domain secret has no annotations");
    }
    let domain = annotations.get(annotation::DNS_DOMAIN);
    let domain = domain.ok_or("missing dns domain annotation on domain secret")?;
    match annotations.contains_key(annotation::DNS_PROVIDER) {
        true => Ok(domain.clone()),
        false => Err("missing dns provider annotation on domain secret"),
    }
}

impl InternalDomain {
    fn check(attributes: &Attributes<'_>, seed: Option<&str>) -> Result<(), ApiError> {
        let (lister, name) = (attributes.context.lister, attributes.name);
        let forbidden = |why: &str| Err(ApiError::forbidden("", "Secret", name, why));
        let in_use = || {
            let used = |shoot: &Shoot| seed.is_none_or(|seed| shoot.spec.seed_name.as_deref() == Some(seed));
            lookup::list::<Shoot>(lister, None).iter().any(used)
        };
        let other_exists = || {
            let secrets = lister.list("", "secrets", Some(attributes.namespace));
            secrets
                .iter()
                .any(|other| meta::name(other) != name && is_internal_domain(Some(other)))
        };
        let conflict = |what: &str| {
            let why = format!(
                "cannot {what} because there can be only one secret with the 'internal-domain' secret role per namespace"
            );
            Err(ApiError::conflict("", "Secret", name, &why))
        };
        match attributes.operation {
            Operation::Create if other_exists() => conflict("create internal domain secret"),
            Operation::Create => domain(attributes.object.as_deref())
                .map(drop)
                .map_err(ApiError::bad_request),
            Operation::Delete if in_use() => {
                forbidden("cannot delete internal domain secret because there are still shoots left in the system")
            }
            Operation::Update => {
                if !is_internal_domain(attributes.old_json())
                    && is_internal_domain(attributes.object.as_deref())
                    && other_exists()
                {
                    return conflict("update secret");
                }
                let before = domain(attributes.old_json()).map_err(ApiError::internal)?;
                let now = domain(attributes.object.as_deref()).map_err(ApiError::internal)?;
                match before != now && in_use() {
                    true => forbidden("cannot change domain because there are still shoots left in the system"),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Admission for InternalDomain {
    fn name(&self) -> &'static str {
        "internal-domain-secret.gardener.cloud"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let labelled = || is_internal_domain(attributes.object.as_deref()) || is_internal_domain(attributes.old_json());
        if !is_secret(attributes) || !labelled() {
            return Ok(());
        }
        let seed = attributes.namespace.strip_prefix(SEED_NAMESPACE_PREFIX);
        match seed.is_some() || attributes.namespace == GARDEN_NAMESPACE {
            true => Self::check(attributes, seed).map_err(|why| denied(self.name(), why)),
            false => Ok(()),
        }
    }
}

/// [ADM-75].
pub(super) struct UpdateRestriction;

#[async_trait]
impl Admission for UpdateRestriction {
    fn name(&self) -> &'static str {
        "update-restriction.gardener.cloud"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let resource = match attributes.subresource.is_empty() && attributes.definition.group.is_empty() {
            true => attributes.definition.plural.as_str(),
            false => return Ok(()),
        };
        let restricted =
            |object: Option<&Value>| label_of(object, label::UPDATE_RESTRICTION).as_deref() == Some("true");
        if !["secrets", "configmaps"].contains(&resource)
            || !(restricted(attributes.object.as_deref()) || restricted(attributes.old_json()))
            || [group::SEEDS, group::SHOOTS]
                .iter()
                .any(|group| attributes.context.user.is_in(group))
        {
            return Ok(());
        }
        let user = attributes.context.user.name.as_str();
        let operation = match (attributes.operation, user) {
            (Operation::Delete, "system:serviceaccount:kube-system:generic-garbage-collector")
            | (Operation::Update, "system:serviceaccount:kube-system:gardener-internal") => return Ok(()),
            (Operation::Create, _) => "CREATE",
            (Operation::Update, _) => "UPDATE",
            (Operation::Delete, _) => "DELETE",
            (Operation::Connect, _) => return Ok(()),
        };
        let why = format!("user {user:?} is not allowed to {operation} system {resource}");
        Err(denied(self.name(), ApiError::new(403, "Forbidden", why)))
    }
}

/// [ADM-79].
pub(super) struct ProviderLabels;

/// The types of providers for which bindings use these credentials.
fn providers(attributes: &Attributes<'_>, (api_version, kind): (&str, &str), name: &str) -> BTreeSet<String> {
    let (lister, namespace) = (attributes.context.lister, attributes.namespace);
    let is = |own: &Option<String>, wanted: &str| own.as_deref() == Some(wanted);
    let mut found = BTreeSet::new();
    for binding in lookup::credentials_bindings(lister) {
        let own = &binding.credentials_ref;
        if is(&own.api_version, api_version)
            && is(&own.kind, kind)
            && is(&own.name, name)
            && is(&own.namespace, namespace)
        {
            found.insert(binding.provider.r#type.clone());
        }
    }
    if kind == "Secret" {
        for binding in lookup::secret_bindings(lister) {
            let own = &binding.secret_ref;
            if is(&own.name, name) && is(&own.namespace, namespace) {
                let types = binding.provider.iter().flat_map(|provider| provider.r#type.split(','));
                found.extend(types.filter(|own| !own.is_empty()).map(str::to_owned));
            }
        }
    }
    found
}

/// Whether the object of a write is in a project's namespace.
fn is_of_project(attributes: &Attributes<'_>) -> bool {
    let namespace = attributes
        .context
        .lister
        .get("", "namespaces", "", attributes.namespace);
    label_of(namespace.as_deref(), label::ROLE).as_deref() == Some("project")
}

#[async_trait]
impl Admission for ProviderLabels {
    fn name(&self) -> &'static str {
        "sync-provider-secret-labels.gardener.cloud"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let kind = if attributes.is("", "secrets") {
            ("v1", "Secret")
        } else if attributes.is("core.gardener.cloud", "internalsecrets") {
            ("core.gardener.cloud/v1beta1", "InternalSecret")
        } else {
            return Ok(());
        };
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let Some(object) = attributes
            .object
            .as_deref()
            .filter(|_| writes && is_of_project(attributes))
        else {
            return Ok(());
        };
        let providers = providers(attributes, kind, meta::name(object));
        if providers.is_empty() {
            return Ok(());
        }
        let wanted: BTreeSet<String> = providers
            .iter()
            .map(|own| format!("{}{own}", label::SHOOT_PROVIDER_PREFIX))
            .collect();
        let labels = meta::string_map(object.at("/metadata/labels"));
        let there: BTreeSet<String> = labels
            .iter()
            .filter(|(key, value)| key.starts_with(label::SHOOT_PROVIDER_PREFIX) && *value == "true")
            .map(|(key, _)| key.clone())
            .collect();
        if wanted == there
            && !labels
                .iter()
                .any(|(key, _)| key.starts_with(label::SHOOT_PROVIDER_PREFIX) && !there.contains(key))
        {
            return Ok(());
        }
        if let Some(object) = attributes.object.as_mut() {
            let labels = meta::metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.retain(|key, _| !key.starts_with(label::SHOOT_PROVIDER_PREFIX));
                labels.extend(wanted.into_iter().map(|key| (key, "true".into())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_71_kubeconfigs_run_nothing_and_open_nothing() {
        let config = |user: &str| {
            let text = format!("apiVersion: v1\nkind: Config\nusers: [{{name: it, user: {user}}}]\n");
            Kubeconfig::from_yaml(&text).unwrap()
        };
        for fine in [
            "{token: x}",
            "{username: a, password: b}",
            "{client-certificate-data: QQ==, client-key-data: QQ==}",
        ] {
            assert_eq!(misuse(&config(fine)), None, "{fine}");
        }
        for (user, why) in [
            (
                "{client-certificate: /x}",
                "client certificate files are not supported (user \"it\")",
            ),
            ("{client-key: /x}", "client key files are not supported"),
            ("{tokenFile: /x}", "token files are not supported"),
            ("{as: root}", "impersonation is not supported"),
            (
                "{auth-provider: {name: gcp, config: {a: b}}}",
                "auth provider configurations are not supported",
            ),
            (
                "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}",
                "exec configurations are not supported",
            ),
        ] {
            let found = misuse(&config(user)).unwrap_or_default();
            assert!(found.contains(why) && found.ends_with(VALID), "{user}: {found}");
        }
    }
}
