//! The bootstrap kubeconfig that whoever deploys a gardenlet gives it [AUTH-33]: when one is needed, and the token or service account behind it.

use std::collections::BTreeMap;

use gardener_apimachinery::clock::Clock;
use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::Seed;
use gardener_controller::{ObjectRef, Read, apply as patching};
use gardener_garden_authorizer::bootstrap::{self as names, Bootstrapped};
use gardener_garden_authorizer::names::SELF_HOSTED_PREFIX;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{BOOTSTRAP_SECRET, Credentials, GardenAccess, KUBECONFIG_SECRET};

/// How long a bootstrap token is good.
const TOKEN_VALIDITY: SignedDuration = SignedDuration::from_hours(24);
/// How long the token of a service account is good, in seconds.
const SERVICE_ACCOUNT_TOKEN_SECONDS: i64 = 600;
/// Where bootstrap tokens are.
const KUBE_SYSTEM: &str = "kube-system";
const SECRET_LENGTH: usize = 16;
const SECRET_CHARACTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// By what a gardenlet shows itself when it asks for its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A bootstrap token.
    Token,
    /// A service account; for ManagedSeeds only.
    ServiceAccount,
}

/// For whose gardenlet a bootstrap kubeconfig is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beneficiary {
    /// The kind of the object that describes the gardenlet.
    pub kind: Bootstrapped,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Whether the object asks by annotation for a new kubeconfig.
    pub renews: bool,
}

/// A way into the garden without credentials, and what is needed to make some.
#[derive(Clone)]
pub struct Garden {
    /// A client that may create tokens.
    pub client: Client,
    /// URL of the API server.
    pub server: String,
    /// Its authority, PEM.
    pub authority: Option<String>,
    /// What time it is.
    pub clock: Clock,
}

/// Why no bootstrap kubeconfig was made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// An API refuses.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// An object cannot be written.
    #[error(transparent)]
    Write(#[from] patching::ApplyError),
    /// The token that is there has an expiration that is none.
    #[error("the expiration {0:?} of the bootstrap token is no time as of RFC 3339")]
    Expiration(String),
    /// The garden gave no token.
    #[error("the garden gave no token for service account {0}")]
    NoToken(ObjectRef),
}

/// Whether an annotated object asks for a new kubeconfig of its gardenlet.
pub fn asks_to_renew<K: ResourceExt>(object: &K) -> bool {
    let asked = object.annotations().get(annotation::OPERATION).map(String::as_str);
    asked == Some(operation::RENEW_KUBECONFIG)
}

/// What becomes of a gardenlet's kubeconfig before it is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It has one: it needs no other.
    Nothing,
    /// It has none and needs a bootstrap kubeconfig.
    Bootstrap,
    /// What it has must go; then it needs a bootstrap kubeconfig.
    BootstrapAnew,
}

/// Whether a gardenlet needs a bootstrap kubeconfig [AUTH-33]. It has `kubeconfig` or not; `expires` is when its certificate does, as far as known.
pub fn need(kubeconfig: bool, expires: Option<Timestamp>, renews: bool, now: Timestamp) -> Need {
    let expired = expires.is_some_and(|expires| expires < now);
    match (expired || renews, kubeconfig) {
        (true, _) => Need::BootstrapAnew,
        (false, false) => Need::Bootstrap,
        (false, true) => Need::Nothing,
    }
}

/// Makes sure that a gardenlet that is deployed into `target`, namespace `namespace`, can get into the garden: if it needs a bootstrap kubeconfig, one
/// is made and put there. `seed` is its Seed as far as there is one. Answers what was needed.
///
/// # Errors
/// [`TokenError`].
pub async fn prepare(
    garden: &Garden,
    target: &Client,
    namespace: &str,
    beneficiary: &Beneficiary,
    by: By,
    seed: Option<&Seed>,
) -> Result<Need, TokenError> {
    let secrets: Api<Secret> = Api::namespaced(target.clone(), namespace);
    let stored = secrets.read_opt(KUBECONFIG_SECRET).await?;
    let expires = seed.and_then(|seed| Some(seed.status.client_certificate_expiration_timestamp.as_ref()?.0));
    let need = need(stored.is_some(), expires, beneficiary.renews, garden.clock.now());
    if need == Need::Nothing {
        return Ok(need);
    }
    if need == Need::BootstrapAnew {
        patching::delete(&secrets, KUBECONFIG_SECRET).await?;
    }
    let token = match by {
        By::Token => bootstrap_token(garden, beneficiary).await?,
        By::ServiceAccount => service_account_token(garden, beneficiary).await?,
    };
    let access = GardenAccess {
        server: garden.server.clone(),
        authority: garden.authority.clone(),
        tls_server_name: None,
        credentials: Credentials::Token(token),
    };
    let mut initial = Secret::default();
    initial.metadata.name = Some(BOOTSTRAP_SECRET.to_owned());
    initial.metadata.namespace = Some(namespace.to_owned());
    let data = access.secret_data();
    patching::create_or_patch(&secrets, initial, |secret| secret.data = Some(data.clone())).await?;
    Ok(need)
}

/// The bootstrap token for a gardenlet: the one that is there as long as it is good, else a new one with the same id.
async fn bootstrap_token(garden: &Garden, beneficiary: &Beneficiary) -> Result<String, TokenError> {
    let Beneficiary {
        kind, namespace, name, ..
    } = beneficiary;
    // those of self-hosted shoots are found by the shoot's name
    let id = names::token_id(namespace, name.strip_prefix(SELF_HOSTED_PREFIX).unwrap_or(name));
    let secrets: Api<Secret> = Api::namespaced(garden.client.clone(), KUBE_SYSTEM);
    let secret_name = format!("{}{id}", names::TOKEN_SECRET_PREFIX);
    let stored = secrets.read_opt(&secret_name).await?;
    let text = |key: &str| {
        let value = stored.as_ref()?.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok()
    };
    let known = text("token-secret").filter(|secret| is_token_secret(secret));
    if let Some(expiration) = text("expiration") {
        let expires: Timestamp = expiration.parse().map_err(|_| TokenError::Expiration(expiration))?;
        if expires >= garden.clock.now()
            && let Some(secret) = &known
        {
            return Ok(format!("{id}.{secret}"));
        }
    }
    let secret = known.unwrap_or_else(new_token_secret);
    let expires = garden
        .clock
        .now()
        .saturating_add(TOKEN_VALIDITY)
        .unwrap_or(Timestamp::MAX);
    let data: BTreeMap<String, ByteString> = [
        ("description", names::description(*kind, namespace, name)),
        ("token-id", id.clone()),
        ("token-secret", secret.clone()),
        ("expiration", expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("usage-bootstrap-signing", "true".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
    .into();
    let mut initial = Secret::default();
    initial.metadata.name = Some(secret_name);
    initial.metadata.namespace = Some(KUBE_SYSTEM.to_owned());
    patching::create_or_patch(&secrets, initial, |secret| {
        secret.type_ = Some("bootstrap.kubernetes.io/token".to_owned());
        secret.data = Some(data.clone());
    })
    .await?;
    Ok(format!("{id}.{secret}"))
}

fn is_token_secret(text: &str) -> bool {
    text.len() == SECRET_LENGTH && text.bytes().all(|byte| SECRET_CHARACTERS.contains(&byte))
}

/// Drawn by the operating system: nobody may foretell it.
fn new_token_secret() -> String {
    let mut generator: StdRng = rand::make_rng();
    draw(&mut generator)
}

fn draw(generator: &mut impl Rng) -> String {
    (0..SECRET_LENGTH)
        .filter_map(|_| SECRET_CHARACTERS.get(generator.random_range(0..SECRET_CHARACTERS.len())))
        .map(|byte| char::from(*byte))
        .collect()
}

/// A token of a service account that is made for a ManagedSeed and may only ask for a certificate.
async fn service_account_token(garden: &Garden, beneficiary: &Beneficiary) -> Result<String, TokenError> {
    let namespace = &beneficiary.namespace;
    let name = names::service_account(&beneficiary.name);
    let accounts: Api<ServiceAccount> = Api::namespaced(garden.client.clone(), namespace);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.clone());
    account.metadata.namespace = Some(namespace.clone());
    patching::create_or_patch(&accounts, account, |_| {}).await?;
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(SERVICE_ACCOUNT_TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let given = accounts
        .create_token_request(&name, &PostParams::default(), &request)
        .await?;
    let token = given
        .status
        .and_then(|status| status.token)
        .filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| TokenError::NoToken(ObjectRef::new(namespace.as_str(), name.as_str())))?;
    let bindings: Api<ClusterRoleBinding> = Api::all(garden.client.clone());
    let mut binding = ClusterRoleBinding::default();
    binding.metadata.name = Some(names::binding(namespace, &beneficiary.name));
    // a role cannot be changed: it is told at the creation
    binding.role_ref = RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "ClusterRole".to_owned(),
        name: names::BOOTSTRAPPER_ROLE.to_owned(),
    };
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name,
        namespace: Some(namespace.clone()),
        ..Subject::default()
    };
    patching::create_or_patch(&bindings, binding, |binding| {
        binding.subjects = Some(vec![subject.clone()]);
    })
    .await?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn auth_33_a_bootstrap_kubeconfig_is_made_only_when_it_is_needed() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let cases = [
            (true, None, false, Need::Nothing),
            (true, Some(101), false, Need::Nothing),
            (true, Some(100), false, Need::Nothing),
            (true, Some(99), false, Need::BootstrapAnew),
            (true, Some(101), true, Need::BootstrapAnew),
            (false, None, false, Need::Bootstrap),
            (false, Some(101), false, Need::Bootstrap),
            (false, Some(99), false, Need::BootstrapAnew),
            (false, None, true, Need::BootstrapAnew),
        ];
        for (kubeconfig, expires, renews, expected) in cases {
            let found = need(kubeconfig, expires.map(at), renews, at(100));
            assert_eq!(found, expected, "{kubeconfig} {expires:?} {renews}");
        }
    }

    #[test]
    fn auth_33_tokens_look_like_tokens() {
        let mut generator = StdRng::seed_from_u64(1);
        let (one, other) = (draw(&mut generator), draw(&mut generator));
        assert!(is_token_secret(&one) && is_token_secret(&other) && one != other);
        assert!(!is_token_secret("0123456789ABCDEF") && !is_token_secret("0123"));
        assert_ne!(new_token_secret(), new_token_secret());
    }
}
