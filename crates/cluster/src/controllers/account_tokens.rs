//! Tokens in Secrets of type `kubernetes.io/service-account-token`: they are made for the account that the Secret names, and go with it.

use std::sync::Arc;

use gardener_apiserver::legacy_tokens::{ACCOUNT, ACCOUNT_UID, LegacyClaims};
use gardener_controller::{Action, Clustered, ObjectRef, Queue, Read, apply};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

/// The index of these Secrets by cluster, namespace and account.
const BY_ACCOUNT: &str = "account";

fn index_key(cluster: &str, namespace: &str, account: &str) -> String {
    format!("{cluster}/{namespace}/{account}")
}

fn annotation<'s>(secret: &'s Secret, key: &str) -> &'s str {
    let annotations = secret.metadata.annotations.as_ref();
    annotations.and_then(|own| own.get(key)).map_or("", String::as_str)
}

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    informers
        .token_secrets
        .add_index(BY_ACCOUNT, |secret: &Clustered<Secret>| {
            let namespace = secret.object.namespace().unwrap_or_default();
            vec![index_key(
                &secret.cluster,
                &namespace,
                annotation(&secret.object, ACCOUNT),
            )]
        });
    environment.feed(&informers.token_secrets, &queue, role, |secret| vec![key_of(secret)]);
    let secrets = informers.token_secrets.clone();
    environment.feed(&informers.service_accounts, &queue, role, move |account| {
        let namespace = account.object.namespace().unwrap_or_default();
        let of_account = index_key(&account.cluster, &namespace, &account.object.name_any());
        let secrets = secrets.by_index(BY_ACCOUNT, &of_account);
        secrets.iter().map(|secret| key_of(secret)).collect()
    });
    environment.reconcile("serviceaccount-token", role, 5, queue, reconcile);
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let found = environment.informers.token_secrets.get(&key);
    let Some(found) = found.filter(|found| found.object.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::Done);
    };
    let secret = &found.object;
    let api: Api<Secret> = environment.api(&key);
    let Some(account) = account(&environment, &key, secret).await? else {
        apply::delete_locked(&api, secret).await?;
        return Ok(Action::Done);
    };
    let (name, uid) = (account.name_any(), account.uid().unwrap_or_default());
    let has = |entry: &str| {
        secret
            .data
            .as_ref()
            .and_then(|data| data.get(entry))
            .is_some_and(|own| !own.0.is_empty())
    };
    let cluster = environment.config.server.cluster(&key.cluster);
    let signer = cluster.and_then(|(cluster, _)| cluster.config().authenticator.settings().signer);
    let token = match signer.filter(|_| !has("token")) {
        Some(signer) => {
            let claims = LegacyClaims::new(&key.namespace, &name, &uid, &key.name);
            Some(signer.sign(&claims)?)
        }
        None => None,
    };
    let root = (environment.config.root_ca)(&key.cluster);
    apply::patch(&api, secret, |secret| {
        let data = secret.data.get_or_insert_default();
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        if let Some(root) = &root {
            data.insert("ca.crt".to_owned(), bytes(root));
        }
        data.entry("namespace".to_owned())
            .or_insert_with(|| bytes(&key.namespace));
        if let Some(token) = &token {
            data.insert("token".to_owned(), bytes(token));
        }
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNT.to_owned(), name.clone());
        annotations.insert(ACCOUNT_UID.to_owned(), uid.clone());
    })
    .await?;
    Ok(Action::Done)
}

/// The account that a Secret is for, if it is there. Whether it is not, the API tells: the informer may not know of it yet.
async fn account(environment: &Environment, key: &ObjectRef, secret: &Secret) -> Result<Option<ServiceAccount>, Error> {
    let (name, uid) = (annotation(secret, ACCOUNT), annotation(secret, ACCOUNT_UID));
    let fits = |account: &ServiceAccount| uid.is_empty() || account.metadata.uid.as_deref() == Some(uid);
    let place = ObjectRef {
        name: name.into(),
        ..key.clone()
    };
    if let Some(known) = environment
        .informers
        .service_accounts
        .get(&place)
        .filter(|known| fits(&known.object))
    {
        return Ok(Some(known.object.clone()));
    }
    let api: Api<ServiceAccount> = environment.api(&place);
    Ok(api.read_opt(name).await?.filter(fits))
}
