//! Bindings and the credentials they bind `[GCM-12]` `[GCM-13]`: bound credentials carry a finalizer and labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::SecretBinding;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::{Action, Controller, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::Users;
use crate::{CONCURRENCY, Config, ReconcileError};

const SECRET_BINDING_LABEL: &str = "reference.gardener.cloud/secretbinding";
const CREDENTIALS_BINDING_LABEL: &str = "reference.gardener.cloud/credentialsbinding";
const PROVIDER_LABEL: &str = "provider.shoot.gardener.cloud/";

/// Which of the two kinds a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Secret,
    Credentials,
}

impl Kind {
    fn finalizer(self) -> &'static str {
        match self {
            Self::Secret => finalizer::SECRET_BINDING,
            Self::Credentials => finalizer::CREDENTIALS_BINDING,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Secret => SECRET_BINDING_LABEL,
            Self::Credentials => CREDENTIALS_BINDING_LABEL,
        }
    }
}

/// The credentials of a binding: namespace and name of a Secret.
type Credentials = Option<(String, String)>;

fn of_secret_binding(binding: &SecretBinding) -> Credentials {
    let namespace = binding
        .secret_ref
        .namespace
        .clone()
        .filter(|own| !own.is_empty())
        .or_else(|| binding.namespace())?;
    Some((namespace, binding.secret_ref.name.clone()?))
}

fn of_credentials_binding(binding: &CredentialsBinding) -> Credentials {
    if binding.credentials_ref.kind.as_deref() != Some("Secret") {
        return None;
    }
    let namespace = binding
        .credentials_ref
        .namespace
        .clone()
        .filter(|own| !own.is_empty())
        .or_else(|| binding.namespace())?;
    Some((namespace, binding.credentials_ref.name.clone()?))
}

pub(super) async fn run(config: &Config, users: &Arc<Users>, stop: &CancellationToken) {
    let queue: Queue<(Kind, ObjectRef)> = Queue::new();
    users
        .secret_bindings
        .feed(&queue, |binding| [(Kind::Secret, ObjectRef::of(binding))]);
    users
        .credentials_bindings
        .feed(&queue, |binding| [(Kind::Credentials, ObjectRef::of(binding))]);
    {
        let queue = queue.clone();
        users.shoots.on_change(move |change| {
            if let gardener_controller::Change::Deleted(shoot) = change {
                let key = |name: &String| ObjectRef::new(shoot.project_namespace(), name.clone());
                shoot
                    .spec
                    .secret_binding_name
                    .iter()
                    .for_each(|name| queue.add((Kind::Secret, key(name))));
                shoot
                    .spec
                    .credentials_binding_name
                    .iter()
                    .for_each(|name| queue.add((Kind::Credentials, key(name))));
            }
        });
    }
    let (config, users) = (config.clone(), users.clone());
    Controller::new("bindings", CONCURRENCY, queue)
        .run(stop.clone(), move |(kind, key)| {
            let (config, users) = (config.clone(), users.clone());
            async move { reconcile(&config, &users, kind, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, users: &Users, kind: Kind, key: &ObjectRef) -> Result<Action, ReconcileError> {
    match kind {
        Kind::Secret => {
            let api: Api<SecretBinding> = Api::namespaced(config.garden.clone(), &key.namespace);
            let Some(binding) = api.get_opt(&key.name).await? else {
                return Ok(Action::Done);
            };
            let provider = binding
                .provider
                .as_ref()
                .map(|own| own.r#type.clone())
                .unwrap_or_default();
            if binding.metadata.deletion_timestamp.is_none() {
                apply::add_finalizer(&api, &binding, finalizer::GARDENER).await?;
                return mark(config, kind, of_secret_binding(&binding), &provider).await;
            }
            release(config, users, kind, key, of_secret_binding(&binding)).await?;
            apply::remove_finalizer(&api, &binding, finalizer::GARDENER).await?;
        }
        Kind::Credentials => {
            let api: Api<CredentialsBinding> = Api::namespaced(config.garden.clone(), &key.namespace);
            let Some(binding) = api.get_opt(&key.name).await? else {
                return Ok(Action::Done);
            };
            if binding.metadata.deletion_timestamp.is_none() {
                apply::add_finalizer(&api, &binding, finalizer::GARDENER).await?;
                return mark(config, kind, of_credentials_binding(&binding), &binding.provider.r#type).await;
            }
            release(config, users, kind, key, of_credentials_binding(&binding)).await?;
            apply::remove_finalizer(&api, &binding, finalizer::GARDENER).await?;
        }
    }
    Ok(Action::Done)
}

/// Puts finalizer and labels on bound credentials.
async fn mark(config: &Config, kind: Kind, credentials: Credentials, provider: &str) -> Result<Action, ReconcileError> {
    let Some((namespace, name)) = credentials else {
        return Ok(Action::Done);
    };
    let api: Api<Secret> = Api::namespaced(config.garden.clone(), &namespace);
    let secret = api.get(&name).await?;
    apply::patch_locked(&api, &secret, |secret| {
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.insert(kind.label().to_owned(), "true".to_owned());
        if !provider.is_empty() {
            labels.insert(format!("{PROVIDER_LABEL}{provider}"), "true".to_owned());
        }
        let finalizers = secret.metadata.finalizers.get_or_insert_with(Vec::new);
        if !finalizers.iter().any(|own| own == kind.finalizer()) {
            finalizers.push(kind.finalizer().to_owned());
        }
    })
    .await?;
    Ok(Action::Done)
}

/// Frees credentials that no other binding binds, unless a shoot still uses this binding.
async fn release(
    config: &Config,
    users: &Users,
    kind: Kind,
    key: &ObjectRef,
    credentials: Credentials,
) -> Result<(), ReconcileError> {
    let name = Some(&key.name);
    let using = super::shoots(users, |shoot| {
        let own = match kind {
            Kind::Secret => &shoot.spec.secret_binding_name,
            Kind::Credentials => &shoot.spec.credentials_binding_name,
        };
        shoot.project_namespace() == key.namespace && own.as_ref() == name
    });
    if !using.is_empty() {
        return Err(ReconcileError::Blocked(format!(
            "the binding is still used by shoots [{}]",
            using.join(" ")
        )));
    }
    let Some((namespace, secret_name)) = credentials.clone() else {
        return Ok(());
    };
    let others = match kind {
        Kind::Secret => users
            .secret_bindings
            .list()
            .iter()
            .any(|own| ObjectRef::of(own.as_ref()) != *key && of_secret_binding(own) == credentials),
        Kind::Credentials => users
            .credentials_bindings
            .list()
            .iter()
            .any(|own| ObjectRef::of(own.as_ref()) != *key && of_credentials_binding(own) == credentials),
    };
    if others {
        return Ok(());
    }
    let api: Api<Secret> = Api::namespaced(config.garden.clone(), &namespace);
    let Some(secret) = api.get_opt(&secret_name).await? else {
        return Ok(());
    };
    let unbound = !secret
        .labels()
        .iter()
        .any(|(own, _)| (own == SECRET_BINDING_LABEL || own == CREDENTIALS_BINDING_LABEL) && own != kind.label());
    apply::patch_locked(&api, &secret, |secret| {
        if let Some(labels) = &mut secret.metadata.labels {
            labels.remove(kind.label());
            if unbound {
                labels.retain(|own, _| !own.starts_with(PROVIDER_LABEL));
            }
        }
        if let Some(finalizers) = &mut secret.metadata.finalizers {
            finalizers.retain(|own| own != kind.finalizer());
        }
    })
    .await?;
    Ok(())
}
