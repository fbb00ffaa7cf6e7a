//! Keeps tokens for service accounts of the target in secrets of the source `[EXT-180]` `[GRM-35]`–`[GRM-37]`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::duration::Duration as Span;
use gardener_apimachinery::pointer::Pointed;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::managed_resource::api;

const PREFIX: &str = "serviceaccount.resources.gardener.cloud";
const PURPOSE: &str = "resources.gardener.cloud/purpose=token-requestor";
const CONCURRENCY: usize = 5;
/// Validity of tokens that ask for none.
const DEFAULT_VALIDITY: Duration = Duration::from_secs(12 * 3600);
/// However long a token is valid, it is renewed within this time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Why a token could not be kept.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error(transparent)]
    Apply(#[from] apply::ApplyError),
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    #[error("secret {secret}: annotation {PREFIX}/{annotation} is needed")]
    Annotation { secret: String, annotation: &'static str },
    #[error("secret {secret}: its kubeconfig cannot be read: {why}")]
    Kubeconfig { secret: String, why: String },
    #[error("the target answered a token request without a token")]
    NoToken,
}

/// Runs the controller, when this manager makes tokens at all.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let Some(class) = config.token_class.clone() else {
        stop.cancelled().await;
        return;
    };
    let selector = watcher::Config::default().labels(&format!("{PURPOSE},resources.gardener.cloud/class={class}"));
    let secrets: Informer<Secret> = Informer::start(api(&config), selector, &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    secrets.feed(&queue, |secret| [ObjectRef::of(secret)]);
    secrets.synced().await;
    let config = Arc::new(config);
    Controller::new("token-requestor", CONCURRENCY, queue)
        .run(stop, move |key| {
            let config = config.clone();
            async move { reconcile(&config, &key).await }
        })
        .await;
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret
        .annotations()
        .get(&format!("{PREFIX}/{key}"))
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

fn target_secret(secret: &Secret) -> Option<(String, String)> {
    let own = |key: &str| {
        secret
            .annotations()
            .get(&format!("token-requestor.resources.gardener.cloud/target-secret-{key}"))
            .cloned()
    };
    Some((own("namespace")?, own("name")?))
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, TokenError> {
    let secrets: Api<Secret> = Api::namespaced(config.source.clone(), &key.namespace);
    let Some(secret) = secrets.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if secret.metadata.deletion_timestamp.is_some() {
        return Ok(Action::Done);
    }
    let needed = |name: &'static str| {
        annotation(&secret, name).ok_or_else(|| TokenError::Annotation {
            secret: key.to_string(),
            annotation: name,
        })
    };
    let (name, namespace) = (needed("name")?.to_owned(), needed("namespace")?.to_owned());
    let now = config.clock.now();
    let renewal = annotation(&secret, "token-renew-timestamp").and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let elsewhere = target_secret(&secret);
    let holder = match &elsewhere {
        Some((namespace, name)) => {
            Api::<Secret>::namespaced(config.target.clone(), namespace)
                .read_opt(name)
                .await?
        }
        None => Some(secret.clone()),
    };
    let current =
        holder.as_ref().is_some_and(has_token) && holder.as_ref().is_some_and(|holder| has_ca(config, &secret, holder));
    if let Some(renewal) = renewal.filter(|renewal| *renewal > now && current) {
        let left = Duration::from_secs(u64::try_from(renewal.as_second() - now.as_second()).unwrap_or(0));
        return Ok(Action::RequeueAfter(left));
    }
    ensure_account(config, &secret, &namespace, &name).await?;
    let validity = annotation(&secret, "token-expiration-duration")
        .and_then(|text| text.parse::<Span>().ok())
        .map_or(DEFAULT_VALIDITY, Span::to_std);
    let accounts: Api<ServiceAccount> = Api::namespaced(config.target.clone(), &namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: i64::try_from(validity.as_secs()).ok(),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(&name, &PostParams::default(), &request)
        .await?;
    let status = answer.status.ok_or(TokenError::NoToken)?;
    let (token, expiration) = status
        .token
        .zip(status.expiration_timestamp)
        .ok_or(TokenError::NoToken)?;
    let lifetime =
        Duration::from_secs(u64::try_from(expiration.0.as_second() - now.as_second()).unwrap_or(0)).min(LONGEST);
    let renew_after = lifetime.mul_f64(0.8 + 0.05 * config.chance.fraction());
    let renew_at =
        now + k8s_openapi::jiff::SignedDuration::from_secs(i64::try_from(renew_after.as_secs()).unwrap_or(0));
    write(
        config,
        &secrets,
        &secret,
        elsewhere.as_ref(),
        &token,
        &renew_at.to_string(),
    )
    .await?;
    Ok(Action::RequeueAfter(renew_after))
}

fn data<'a>(secret: &'a Secret, key: &str) -> Option<&'a ByteString> {
    secret.data.as_ref()?.get(key)
}

fn has_token(secret: &Secret) -> bool {
    match data(secret, "kubeconfig") {
        Some(kubeconfig) => String::from_utf8_lossy(&kubeconfig.0).contains("token:"),
        None => data(secret, "token").is_some_and(|token| !token.0.is_empty()),
    }
}

fn wants_ca(secret: &Secret) -> bool {
    annotation(secret, "inject-ca-bundle").is_some_and(|text| text == "true")
}

fn has_ca(config: &Config, secret: &Secret, holder: &Secret) -> bool {
    let Some(ca) = config.target_ca.as_ref().filter(|_| wants_ca(secret)) else {
        return true;
    };
    data(holder, "kubeconfig").is_some() || data(holder, "bundle.crt").is_some_and(|own| own.0 == ca.as_bytes())
}

async fn ensure_account(config: &Config, secret: &Secret, namespace: &str, name: &str) -> Result<(), TokenError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(config.target.clone(), namespace);
    let labels: Option<BTreeMap<String, String>> =
        annotation(secret, "labels").and_then(|text| serde_json::from_str(text).ok());
    let initial = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    apply::create_or_patch(&accounts, initial, |account| {
        account.automount_service_account_token = Some(false);
        if let Some(labels) = &labels {
            account.metadata.labels = Some(labels.clone());
        }
    })
    .await?;
    Ok(())
}

/// Writes token and bundle where they belong, and when the token is to be renewed.
async fn write(
    config: &Config,
    secrets: &Api<Secret>,
    secret: &Secret,
    elsewhere: Option<&(String, String)>,
    token: &str,
    renew_at: &str,
) -> Result<(), TokenError> {
    let ca = config.target_ca.clone().filter(|_| wants_ca(secret));
    let mut own = secret.data.clone().unwrap_or_default();
    if let Some((namespace, name)) = elsewhere {
        let api: Api<Secret> = Api::namespaced(config.target.clone(), namespace);
        let initial = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        apply::create_or_patch(&api, initial, |target| {
            let data = target.data.get_or_insert_with(BTreeMap::new);
            data.insert("token".into(), ByteString(token.as_bytes().to_vec()));
            if let Some(ca) = &ca {
                data.insert("bundle.crt".into(), ByteString(ca.as_bytes().to_vec()));
            }
        })
        .await?;
        for key in ["token", "bundle.crt", "kubeconfig"] {
            own.remove(key);
        }
    } else if let Some(kubeconfig) = own.get("kubeconfig") {
        let text = with_token(&String::from_utf8_lossy(&kubeconfig.0), token, ca.as_deref()).map_err(|why| {
            TokenError::Kubeconfig {
                secret: secret.name_any(),
                why,
            }
        })?;
        own.insert("kubeconfig".into(), ByteString(text.into_bytes()));
    } else {
        own.insert("token".into(), ByteString(token.as_bytes().to_vec()));
        if let Some(ca) = &ca {
            own.insert("bundle.crt".into(), ByteString(ca.as_bytes().to_vec()));
        }
    }
    apply::patch_locked(secrets, secret, |secret| {
        secret.data = Some(own);
        secret
            .annotations_mut()
            .insert(format!("{PREFIX}/token-renew-timestamp"), renew_at.to_owned());
    })
    .await?;
    Ok(())
}

/// A kubeconfig whose current user has this token, and whose current cluster this authority.
fn with_token(kubeconfig: &str, token: &str, ca: Option<&str>) -> Result<String, String> {
    use base64::Engine;
    use serde_json::{Value, json};
    let mut config: Value = serde_saphyr::from_str(kubeconfig).map_err(|error| error.to_string())?;
    let current = config
        .get("current-context")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let named = |config: &Value, list: &str, name: &str| {
        config.get(list).and_then(Value::as_array).and_then(|list| {
            list.iter()
                .position(|own| own.get("name").and_then(Value::as_str) == Some(name))
        })
    };
    let context = named(&config, "contexts", &current).ok_or_else(|| format!("there is no context {current:?}"))?;
    let member = |config: &Value, key: &str| {
        config
            .at(&format!("/contexts/{context}/context/{key}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (user, cluster) = (member(&config, "user"), member(&config, "cluster"));
    let user_at = named(&config, "users", &user).ok_or_else(|| format!("there is no user {user:?}"))?;
    if let Some(user) = config
        .at_mut(&format!("/users/{user_at}"))
        .and_then(Value::as_object_mut)
    {
        user.insert("user".into(), json!({"token": token}));
    }
    if let (Some(ca), Some(at)) = (ca, named(&config, "clusters", &cluster))
        && let Some(cluster) = config
            .at_mut(&format!("/clusters/{at}/cluster"))
            .and_then(Value::as_object_mut)
    {
        cluster.insert(
            "certificate-authority-data".into(),
            base64::engine::general_purpose::STANDARD.encode(ca).into(),
        );
    }
    serde_saphyr::to_string(&config).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grm_36_the_current_user_gets_the_token() {
        let before = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: s}}]\nusers: [{name: u, user: {}}, {name: other, user: {token: x}}]\n";
        let after: serde_json::Value = serde_saphyr::from_str(&with_token(before, "tok", Some("ca")).unwrap()).unwrap();
        assert_eq!(after["users"][0]["user"]["token"], "tok");
        assert_eq!(after["users"][1]["user"]["token"], "x");
        assert_eq!(after["clusters"][0]["cluster"]["certificate-authority-data"], "Y2E=");
        assert!(with_token("current-context: none", "t", None).is_err());
    }
}
