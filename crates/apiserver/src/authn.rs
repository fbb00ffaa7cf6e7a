//! Authentication: from a client certificate or a bearer token to a user.
//!
//! Certificates, tokens of the cluster's own and who comes without either are here; tokens of other issuers are in [`jwt`], which a [`configuration`]
//! describes, and those that only a webhook can read in [`webhook`].

pub mod configuration;
pub mod jwt;
pub mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{aggregate, go_quote};
use gardener_apimachinery::metrics::Text;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;
use x509_parser::x509::X509Name;

use crate::audit::Audited;
use crate::cluster::LogicalCluster;
use crate::definition::Lister;
use crate::delegation::TokenReviewer;
use crate::handle::Caller;
use crate::legacy_tokens::{self, LegacyClaims};
use crate::meta;
use crate::tokens::{self, Claims, LEEWAY, SigningKey, TokenError, VerifyingKey};
use crate::user::UserInfo;
use jwt::Issuers;
use webhook::TokenWebhook;

/// How callers from outside prove who they are, and how tokens for service accounts are made.
pub struct Authenticator {
    settings: RwLock<Settings>,
}

/// The settings of an [`Authenticator`]; they change when keys rotate.
#[derive(Clone, Default)]
pub struct Settings {
    /// Signs new tokens. Without one there are none.
    pub signer: Option<Arc<SigningKey>>,
    /// Keys of tokens that are accepted besides the signer's.
    pub accepted_keys: Vec<VerifyingKey>,
    /// Issuer of new tokens.
    pub issuer: String,
    /// Where others find the keys of tokens, if elsewhere than on this server; empty: here.
    pub keys_uri: String,
    /// Audiences: a token must be for one of them; new ones are for all of them unless they ask otherwise.
    pub audiences: Vec<String>,
    /// How long new tokens live.
    pub lifetimes: tokens::Lifetimes,
    /// Whether requests without credentials are let through as `system:anonymous`.
    pub anonymous: bool,
    /// The only paths of such requests, if there are any.
    pub anonymous_paths: Vec<String>,
    /// Tokens that are known as they are, with whom they stand for.
    pub static_tokens: BTreeMap<String, UserInfo>,
    /// Whether bootstrap tokens in Secrets of `kube-system` are accepted.
    pub bootstrap_tokens: bool,
    /// Issuers besides [`Settings::issuer`] whose tokens are accepted. Without any issuer it does not matter who issued a token.
    pub accepted_issuers: Vec<String>,
    /// What front proxies tell of their callers; without it they are not believed.
    pub front_proxies: Option<FrontProxies>,
    /// Other issuers whose tokens are accepted.
    pub issuers: Option<Arc<Issuers>>,
    /// A webhook that is asked about tokens that nobody else knows.
    pub webhook: Option<Arc<TokenWebhook>>,
    /// Another server that tells whose a bearer token is; with it none is read here.
    pub reviewer: Option<Arc<TokenReviewer>>,
    /// Whether the authorizer is asked about everything, as kube-apiserver does. Otherwise health and the version are told to who shows no
    /// credentials, too, and discovery to all who are authenticated.
    pub authorizes_all: bool,
}

/// Which front proxies are believed, and in which headers they tell for whom they ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxies {
    /// Common names of their certificates; all if empty.
    pub names: Vec<String>,
    /// Headers of the user's name; the first one that is there counts.
    pub user: Vec<String>,
    /// Headers of the user's uid; the first one that is there counts.
    pub uid: Vec<String>,
    /// Headers of the user's groups.
    pub groups: Vec<String>,
    /// What the names of headers with more facts begin with.
    pub extra_prefixes: Vec<String>,
}

impl FrontProxies {
    /// For whom a proxy with this certificate asks.
    fn user(&self, certificate: &[u8], headers: &HeaderMap) -> Option<UserInfo> {
        if !self.names.is_empty() {
            let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
            let name = common_name(parsed.subject())?;
            self.names.iter().any(|own| own == name).then_some(())?;
        }
        let all = |names: &[String]| -> Vec<String> {
            let values = names.iter().flat_map(|name| headers.get_all(name.as_str()));
            let values = values.filter_map(|value| value.to_str().ok());
            values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
        };
        let mut user = UserInfo {
            name: all(&self.user).into_iter().next()?,
            uid: all(&self.uid).into_iter().next().unwrap_or_default(),
            groups: all(&self.groups),
            ..UserInfo::default()
        };
        user.admit();
        for (name, value) in headers {
            let name = name.as_str();
            let prefix = |prefix: &&String| name.len() > prefix.len() && name.starts_with(&prefix.to_ascii_lowercase());
            let Some(prefix) = self.extra_prefixes.iter().find(prefix) else {
                continue;
            };
            let key = crate::request::decode_path(name.get(prefix.len()..).unwrap_or_default()).into_owned();
            let value = value.to_str().unwrap_or_default().to_owned();
            user.extra.entry(key).or_default().push(value);
        }
        Some(user)
    }
}

impl Authenticator {
    /// An authenticator.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: RwLock::new(settings),
        }
    }

    /// Replaces the settings.
    pub fn set(&self, settings: Settings) {
        *self.settings.write() = settings;
    }

    /// The settings now.
    pub fn settings(&self) -> Settings {
        self.settings.read().clone()
    }

    /// Tells what was counted of other issuers' tokens.
    pub(crate) fn tell(&self, out: &mut Text) {
        let issuers = self.settings.read().issuers.clone();
        if let Some(issuers) = issuers {
            issuers.tell(out);
        }
    }

    /// Whether health, version and discovery are told without asking the authorizer.
    pub(crate) fn tells_itself(&self) -> bool {
        let settings = self.settings.read();
        !settings.authorizes_all && settings.anonymous_paths.is_empty()
    }

    /// Who sent a request for a path, by the certificates that TLS has verified and by what its headers say. `remarks` takes what there is to say of
    /// them.
    ///
    /// # Errors
    /// 401 for credentials that are wrong, and for none where anonymous access is off.
    pub async fn authenticate(
        &self,
        cluster: &LogicalCluster,
        caller: &Caller,
        path: &str,
        headers: &HeaderMap,
        remarks: &mut Remarks,
    ) -> Result<UserInfo, ApiError> {
        let (anonymous, reviewer) = {
            let settings = self.settings.read();
            if let Some(certificate) = &caller.front_proxy
                && let Some(front_proxies) = &settings.front_proxies
                && let Some(user) = front_proxies.user(certificate, headers)
            {
                return Ok(user);
            }
            let paths = &settings.anonymous_paths;
            let anonymous = settings.anonymous && (paths.is_empty() || paths.iter().any(|own| own == path));
            (anonymous, settings.reviewer.clone())
        };
        if let Some(user) = &caller.certificate {
            return Ok(user.clone());
        }
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(token) = header.and_then(bearer_token) {
            return match reviewer {
                Some(reviewer) => reviewer.user(token).await,
                None => {
                    let found = self.token_user(cluster, token, &[], remarks).await;
                    found.map(|(user, _)| user).map_err(|_| ApiError::unauthorized())
                }
            };
        }
        if anonymous && !caller.refused_certificate {
            Ok(UserInfo::anonymous())
        } else {
            Err(ApiError::unauthorized())
        }
    }

    /// Whom a bearer token stands for, and for which audiences it is good. Empty `audiences` mean the cluster's own.
    ///
    /// # Errors
    /// Why it stands for nobody.
    pub async fn token_user(
        &self,
        cluster: &LogicalCluster,
        token: &str,
        audiences: &[String],
        remarks: &mut Remarks,
    ) -> Result<(UserInfo, Vec<String>), Rejected> {
        let settings = self.settings();
        let mut refusals = Vec::new();
        match own_user(&settings, cluster, token, audiences, remarks) {
            Ok(found) => return Ok(found),
            Err(Rejected::Unknown) => {}
            Err(Rejected::Because(whys)) => refusals = whys,
        }
        let wanted = match audiences.is_empty() {
            true => &*settings.audiences,
            false => audiences,
        };
        if let Some(issuers) = &settings.issuers {
            // tokens of other issuers are for the cluster itself, whatever their audiences are
            let for_cluster = common(&settings.audiences, wanted);
            if !for_cluster.is_empty() || wanted.is_empty() {
                match issuers.user(token, cluster.clock().now()).await {
                    Some(Ok(user)) => return Ok((user, for_cluster)),
                    Some(Err(why)) => refusals.push(why),
                    None => {}
                }
            }
        }
        if let Some(webhook) = &settings.webhook {
            match webhook.user(cluster, token, wanted, &settings.audiences).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(why) => refusals.push(why),
            }
        }
        Err(match refusals.is_empty() {
            true => Rejected::Unknown,
            false => Rejected::Because(refusals),
        })
    }
}

/// Those audiences that are wanted, too.
fn common(audiences: &[String], wanted: &[String]) -> Vec<String> {
    let common = audiences.iter().filter(|audience| wanted.contains(audience));
    common.cloned().collect()
}

/// Whom a token stands for that the cluster itself issued, or knows as it is.
fn own_user(
    settings: &Settings,
    cluster: &LogicalCluster,
    token: &str,
    audiences: &[String],
    remarks: &mut Remarks,
) -> Result<(UserInfo, Vec<String>), Rejected> {
    let wanted = if audiences.is_empty() {
        settings.audiences.clone()
    } else {
        audiences.to_vec()
    };
    // tokens that name no audience are for the cluster itself
    let for_cluster = common(&settings.audiences, &wanted);
    if !for_cluster.is_empty() || wanted.is_empty() {
        if let Some(user) = settings.static_tokens.get(token) {
            return Ok((user.clone(), for_cluster));
        }
        if settings.bootstrap_tokens
            && let Some(user) = bootstrap_user(cluster, token)
        {
            return Ok((user, for_cluster));
        }
    }
    let mut keys = settings.accepted_keys.clone();
    keys.extend(settings.signer.iter().map(|signer| signer.public.clone()));
    let misses = |token_audiences: &[String]| {
        let shown = |audiences: &[String]| {
            let quoted: Vec<String> = audiences.iter().map(|own| go_quote(own)).collect();
            format!("[{}]", quoted.join(" "))
        };
        Rejected::because(format!(
            "token audiences {} is invalid for the target audiences {}",
            shown(token_audiences),
            shown(&wanted)
        ))
    };
    let issuer = tokens::issuer(token);
    if issuer.as_deref() == Some(legacy_tokens::ISSUER) {
        let claims: LegacyClaims = tokens::signed(token, &keys)?;
        if for_cluster.is_empty() && !settings.audiences.is_empty() {
            return Err(misses(&settings.audiences));
        }
        return legacy_tokens::user(cluster, token, &claims, remarks).map(|user| (user, for_cluster));
    }
    let issuers = || std::iter::once(&settings.issuer).chain(&settings.accepted_issuers);
    let is_known = |issuer: &str| issuers().all(|own| own.is_empty()) || issuers().any(|own| own == issuer);
    if !issuer.is_some_and(|issuer| is_known(&issuer)) {
        return Err(Rejected::Unknown);
    }
    let claims = tokens::verify(token, &keys, cluster.clock().now())?;
    let good_for = common(&claims.aud, &wanted);
    if good_for.is_empty() && !wanted.is_empty() {
        return Err(misses(&claims.aud));
    }
    service_account_user(cluster, &claims, remarks).map(|user| (user, good_for))
}

/// The token in an `Authorization` header. One of another kind, or without a token, says nothing of who asks.
fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// What there is to say of credentials, whether they are believed or not.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Sentences for who showed them.
    pub(crate) warnings: Vec<String>,
    /// What audit logs tell, by its name in `authentication.k8s.io`.
    annotations: Vec<(&'static str, String)>,
}

impl Remarks {
    /// Has audit logs tell something; `name` is in `authentication.k8s.io`.
    pub(crate) fn annotate(&mut self, name: &'static str, told: String) {
        self.annotations.push((name, told));
    }

    /// Tells audit logs what they are to tell.
    pub(crate) fn tell(&mut self, audited: &Audited) {
        for (name, told) in self.annotations.drain(..) {
            audited.annotate(format!("authentication.k8s.io/{name}"), told);
        }
    }
}

/// What is told of a token that should have been replaced by now, though it is still good.
fn staleness(claims: &Claims, now: Timestamp) -> Option<String> {
    let since = claims.kubernetes.warnafter.filter(|since| *since != 0)?;
    (now > Timestamp::from_second(since).ok()?).then(|| {
        let seconds = now.as_second().saturating_sub(since);
        let subject = &claims.sub;
        format!("subject: {subject}, seconds after warning threshold: {seconds}")
    })
}

/// Why a token stands for nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Nobody knows it.
    #[error("invalid bearer token")]
    Unknown,
    /// Somebody knows it, but it is not good any more, or not for this: what each of them says.
    #[error("{}", aggregate(.0))]
    Because(Vec<String>),
}

impl Rejected {
    /// Refused by one that knows it.
    pub(crate) fn because(why: String) -> Self {
        Self::Because(vec![why])
    }

    /// As a TokenReview tells it: whoever looks for static tokens has something to say, too.
    pub fn for_review(&self) -> String {
        let mut whys = vec![Self::Unknown.to_string()];
        if let Self::Because(more) = self {
            whys.extend_from_slice(more);
        }
        aggregate(&whys)
    }
}

impl From<TokenError> for Rejected {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Malformed => Self::Unknown,
            TokenError::Signature => Self::because("go-jose/go-jose: error in cryptographic primitive".to_owned()),
            TokenError::Expired => Self::because("service account token has expired".to_owned()),
            TokenError::NotYet => Self::because("service account token is not valid yet".to_owned()),
            TokenError::OfTheFuture => Self::because("service account token is issued in the future".to_owned()),
        }
    }
}

/// The member of a subject that is the user's unique id, which is Kubernetes' own.
const UID_OF_CERTIFICATES: &str = "1.3.6.1.4.1.57683.2";

/// A certificate whose user's unique id cannot be used: there are several, it is empty, or no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one unique id that is a text and not empty in the subject of the client certificate, found others")]
pub struct WrongUid;

/// The identity in a client certificate: the last common name, its unique id, if it has one, and a group per organization. As with kube-apiserver
/// the digest of the certificate tells by what the user came. None where nobody is named.
///
/// # Errors
/// When it names a user whose unique id cannot be used; such a certificate is refused.
pub fn certificate_user(der: &[u8]) -> Result<Option<UserInfo>, WrongUid> {
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(der) else {
        return Ok(None);
    };
    let subject = certificate.subject();
    let Some(name) = common_name(subject).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let mut uids = subject
        .iter_attributes()
        .filter(|attribute| attribute.attr_type().to_id_string() == UID_OF_CERTIFICATES);
    let uid = match (uids.next(), uids.next()) {
        (None, _) => "",
        (Some(uid), None) => uid.as_str().ok().filter(|uid| !uid.is_empty()).ok_or(WrongUid)?,
        (Some(_), Some(_)) => return Err(WrongUid),
    };
    let groups: Vec<&str> = subject
        .iter_organization()
        .filter_map(|organization| organization.as_str().ok())
        .collect();
    let mut user = UserInfo::new(name, &groups);
    user.uid = uid.to_owned();
    let digest = format!("X509SHA256={}", sha256_in_hex(der));
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![digest]);
    Ok(Some(user))
}

/// The common name of a subject: of several the last one, as Go has it.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    subject.iter_common_name().filter_map(|name| name.as_str().ok()).last()
}

/// By what a user came, in what is known of it beside its name: which certificate or token it was.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The SHA-256 of some bytes, as text.
pub(crate) fn sha256_in_hex(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The service account of a token, while it and what the token is bound to are there.
fn service_account_user(
    cluster: &LogicalCluster,
    claims: &Claims,
    remarks: &mut Remarks,
) -> Result<UserInfo, Rejected> {
    let own = &claims.kubernetes;
    let because = |why: String| Err(Rejected::because(why));
    let (namespace, name) = (own.namespace.as_str(), own.serviceaccount.name.as_str());
    let is_gone = |object: &Value| {
        let deleted: Option<Timestamp> = meta::text(object, "/metadata/deletionTimestamp").parse().ok();
        deleted.is_some_and(|deleted| deleted < meta::later(cluster.clock().now(), -LEEWAY))
    };
    let Some(account) = cluster.get("", "serviceaccounts", namespace, name) else {
        return because(format!("serviceaccounts {} not found", go_quote(name)));
    };
    let uid = meta::text(&account, "/metadata/uid");
    if !own.serviceaccount.uid.is_empty() && uid != own.serviceaccount.uid {
        let claimed = &own.serviceaccount.uid;
        return because(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if is_gone(&account) {
        return because(format!("service account {namespace}/{name} has been deleted"));
    }
    // a pod's token may name the pod's node, which need not be there
    let node = own.node.as_ref().filter(|_| own.pod.is_none());
    for (kind, resource, namespace, bound) in [
        ("secret", "secrets", namespace, own.secret.as_ref()),
        ("pod", "pods", namespace, own.pod.as_ref()),
        ("node", "nodes", "", node),
    ] {
        let Some(bound) = bound else { continue };
        let Some(object) = cluster.get("", resource, namespace, &bound.name) else {
            return because("service account token has been invalidated".to_owned());
        };
        let uid = meta::text(&object, "/metadata/uid");
        if !bound.uid.is_empty() && uid != bound.uid {
            let claimed = &bound.uid;
            return because(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"
            ));
        }
        if is_gone(&object) {
            return because("service account token has been invalidated".to_owned());
        }
    }
    if let Some(told) = staleness(claims, cluster.clock().now()) {
        remarks.annotate("stale-token", told);
    }
    let mut user = UserInfo::service_account(namespace, name, &own.serviceaccount.uid);
    let mut tell = |key: &str, value: String| {
        if !value.is_empty() {
            user.extra
                .insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        }
    };
    if !claims.jti.is_empty() {
        tell("credential-id", format!("JTI={}", claims.jti));
    }
    for (kind, bound) in [("pod", &own.pod), ("node", &own.node)] {
        if let Some(bound) = bound {
            tell(&format!("{kind}-name"), bound.name.clone());
            tell(&format!("{kind}-uid"), bound.uid.clone());
        }
    }
    Ok(user)
}

/// The identity of a bootstrap token `<id>.<secret>`, kept as Secret `bootstrap-token-<id>` in `kube-system`.
fn bootstrap_user(cluster: &LogicalCluster, token: &str) -> Option<UserInfo> {
    let (id, secret) = token.split_once('.')?;
    if id.len() != 6 || secret.len() != 16 {
        return None;
    }
    let object = cluster.get("", "secrets", "kube-system", &format!("bootstrap-token-{id}"))?;
    let data = |key: &str| -> Option<String> {
        let text = object.get("data")?.get(key).and_then(Value::as_str)?;
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).ok()?).ok()
    };
    let valid = meta::text(&object, "/type") == "bootstrap.kubernetes.io/token"
        && data("token-id").as_deref() == Some(id)
        && data("token-secret").as_deref() == Some(secret)
        && data("usage-bootstrap-authentication").as_deref() == Some("true")
        && !meta::is_deleting(&object)
        && data("expiration").is_none_or(|text| meta::parse_time(&text).is_some_and(|end| end > cluster.clock().now()));
    if !valid {
        return None;
    }
    let extra = data("auth-extra-groups").unwrap_or_default();
    let mut groups = vec!["system:bootstrappers"];
    groups.extend(
        extra
            .split(',')
            .filter(|group| group.starts_with("system:bootstrappers:")),
    );
    Some(UserInfo::new(&format!("system:bootstrap:{id}"), &groups))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    /// A certificate of a subject of these members.
    fn certificate(members: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in members {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn certificates_tell_who_comes_and_by_what() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let der = certificate(&[
            (DnType::CommonName, "alice"),
            (DnType::OrganizationName, "dev"),
            (uid(), "7"),
        ]);
        let alice = certificate_user(&der).unwrap().unwrap();
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "7"));
        assert!(alice.is_in("dev"));
        let digest = alice.extra[CREDENTIAL_ID][0].strip_prefix("X509SHA256=").unwrap();
        assert_eq!(digest, sha256_in_hex(&der));
        assert_eq!(digest.len(), 64);
        let plain = certificate(&[(DnType::CommonName, "alice")]);
        assert_eq!(certificate_user(&plain).unwrap().unwrap().uid, "");
        let empty = certificate(&[(DnType::CommonName, "alice"), (uid(), "")]);
        assert_eq!(certificate_user(&empty), Err(WrongUid));
        // who is nobody needs no id
        let nobody = certificate(&[(DnType::OrganizationName, "dev"), (uid(), "")]);
        assert_eq!(certificate_user(&nobody), Ok(None));
        assert_eq!(
            sha256_in_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn tokens_that_should_have_been_replaced_are_told() {
        let told = |warnafter: Option<i64>, millisecond: i64| {
            let mut claims = Claims {
                sub: "system:serviceaccount:n:a".into(),
                ..Claims::default()
            };
            claims.kubernetes.warnafter = warnafter;
            staleness(&claims, Timestamp::from_millisecond(millisecond).unwrap())
        };
        let text = "subject: system:serviceaccount:n:a, seconds after warning threshold: 7";
        assert_eq!(told(Some(100), 107_900).as_deref(), Some(text));
        for (warnafter, millisecond) in [(Some(100), 100_000), (Some(0), 1), (None, 1)] {
            assert_eq!(told(warnafter, millisecond), None);
        }
    }

    #[test]
    fn headers_without_a_bearer_token_say_nothing() {
        for (header, token) in [
            ("Bearer a", Some("a")),
            ("bearer a", Some("a")),
            ("  BEARER a b ", Some("a")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearer  a", None),
            ("Basic YTpi", None),
            ("", None),
        ] {
            assert_eq!(bearer_token(header), token, "{header:?}");
        }
    }
}
