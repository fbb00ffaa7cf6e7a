//! `workloadidentities/token`, [GAPI-64]: tokens by which an infrastructure knows who works for a shoot or a seed. Who requests them for what is
//! gardenlet's matter; what infrastructures read of them is their issuer's discovery document, which others publish.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::chance::uid_of;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{ApiError, names};
use gardener_apis::constants::group::SEEDS;
use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, Seed, Shoot};
use gardener_apis::security::v1alpha1::{ContextObject, TokenRequest, TokenRequestStatus, WorkloadIdentity};
use gardener_apis::validation::{go_kind, invalid_each};
use gardener_apiserver::definition::{Context, Effect, Subresource};
use gardener_apiserver::meta;
use gardener_apiserver::tokens::SigningKey;
use gardener_schema::Schema;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lookup;

const GROUP: &str = "security.gardener.cloud";
/// Seconds that a token is valid unless the request says otherwise.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

/// Who signs the tokens.
pub struct TokenIssuer {
    /// The key.
    pub key: SigningKey,
    /// The issuer's URL, which tokens name.
    pub issuer: String,
    /// The shortest and the longest validity that is granted; other wishes are brought between them.
    pub validity: (Duration, Duration),
}

impl std::fmt::Debug for TokenIssuer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TokenIssuer")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// The subresource.
pub(crate) struct Token {
    /// None: tokens are not issued here.
    pub(crate) issuer: Option<Arc<TokenIssuer>>,
    /// What is known of the request's kind.
    pub(crate) schema: Option<Arc<Schema>>,
}

impl Token {
    fn issuer(&self) -> Result<&TokenIssuer, ApiError> {
        let issuer = self.issuer.as_deref();
        issuer.ok_or_else(|| failed("TokenIssuer is not set, WorkloadIdentity tokens cannot be issued"))
    }
}

/// Refuses a request that tells another name than the path. (That it is of the path's namespace is looked at for all objects.)
fn same_name(request: &TokenRequest, name: &str) -> Result<(), ApiError> {
    match request.metadata.name.as_deref() {
        Some(own) if !own.is_empty() && own != name => {
            let why = format!("TokenRequest name does not match WorkloadIdentity name: {name}");
            let wrong = Error::invalid(&Path::new("metadata").child("name"), own, why);
            // as upstream, which asks the request of what kind it is when that is no longer told
            Err(ApiError::invalid("", "", own, &[wrong]))
        }
        _ => Ok(()),
    }
}

/// What a token says.
#[derive(Serialize)]
struct Claims<'c> {
    iss: &'c str,
    sub: &'c str,
    aud: Audience<'c>,
    exp: i64,
    iat: i64,
    nbf: i64,
    jti: String,
    #[serde(rename = "gardener.cloud")]
    gardener: Gardener,
}

/// Whom a token is for; one alone is no list.
#[derive(Serialize)]
#[serde(untagged)]
enum Audience<'c> {
    One(&'c str),
    All(&'c [String]),
}

impl<'c> From<&'c [String]> for Audience<'c> {
    fn from(audiences: &'c [String]) -> Self {
        match audiences {
            [one] => Self::One(one),
            all => Self::All(all),
        }
    }
}

/// The objects that a token is about.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Gardener {
    workload_identity: Reference,
    #[serde(flatten)]
    about: About,
}

/// What a seed's gardenlet uses the identity for.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct About {
    #[serde(skip_serializing_if = "Option::is_none")]
    shoot: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_bucket: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_entry: Option<Reference>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Reference {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    uid: String,
}

impl Reference {
    fn of(metadata: &ObjectMeta) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Self {
            name: text(&metadata.name),
            namespace: text(&metadata.namespace),
            uid: text(&metadata.uid),
        }
    }
}

/// What upstream answers as it is, without a reason.
fn failed(why: impl Into<String>) -> ApiError {
    ApiError::new(500, "", why)
}

/// What is wrong with a request, [GAPI-64].
fn validate(request: &TokenRequest) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    let seconds = request.spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
    let at = path.child("expirationSeconds");
    if seconds < MIN_SECONDS {
        errors.push(Error::invalid(
            &at,
            seconds,
            "may not specify a duration shorter than 10 minutes",
        ));
    }
    if seconds > MAX_SECONDS {
        errors.push(Error::invalid(
            &at,
            seconds,
            "may not specify a duration longer than 2^32 seconds",
        ));
    }
    let Some(object) = &request.spec.context_object else {
        return errors;
    };
    let path = path.child("contextObject");
    for (name, value, why) in [
        ("apiVersion", &object.api_version, "must provide an apiVersion"),
        ("kind", &object.kind, "must provide a kind"),
        ("name", &object.name, "must provide a name"),
    ] {
        if value.is_empty() {
            errors.push(Error::required(&path.child(name), why));
        }
    }
    let at = path.child("name");
    errors.extend(invalid_each(&at, &object.name, names::dns_subdomain(&object.name)));
    if let Some(namespace) = object.namespace.as_deref() {
        let at = path.child("namespace");
        if namespace.is_empty() {
            errors.push(Error::required(&at, "namespace name cannot be empty"));
        }
        errors.extend(invalid_each(&at, namespace, names::dns_subdomain(namespace)));
    }
    errors
}

/// An object that a context names, if it is the very one.
fn same(object: &ContextObject, found: Option<&ObjectMeta>, resource: &str) -> Result<Reference, String> {
    let missing = || format!("{resource}.core.gardener.cloud {:?} not found", object.name);
    let found = Reference::of(found.ok_or_else(missing)?);
    match found.uid == object.uid {
        true => Ok(found),
        false => Err(format!(
            "uid of contextObject ({}) and real world {} resource ({}) differ",
            object.uid, object.kind, found.uid
        )),
    }
}

/// What a request says it needs the token for. Nobody but seeds is believed.
fn about(context: &Context<'_>, object: Option<&ContextObject>) -> Result<About, String> {
    let Some(object) = object.filter(|_| context.user.is_in(SEEDS)) else {
        return Ok(About::default());
    };
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let seed = |name: Option<&str>| -> Result<Option<Reference>, String> {
        let Some(name) = name else { return Ok(None) };
        let found: Option<Seed> = lookup::get(context.lister, "", name);
        let found = found.ok_or_else(|| format!("seed.core.gardener.cloud {name:?} not found"))?;
        Ok(Some(Reference::of(&found.metadata)))
    };
    let project = |namespace: &str| {
        let found = lookup::project_of(context.lister, namespace);
        found
            .map(|project| Reference::of(&project.metadata))
            .ok_or_else(|| format!("projects.core.gardener.cloud {namespace:?} not found"))
    };
    let is_core = object.api_version.split('/').next() == Some("core.gardener.cloud");
    match object.kind.as_str() {
        "Shoot" if is_core => {
            let found: Option<Shoot> = lookup::get(context.lister, namespace, &object.name);
            let shoot = same(object, found.as_ref().map(|own| &own.metadata), "shoot")?;
            Ok(About {
                seed: seed(found.as_ref().and_then(|own| own.spec.seed_name.as_deref()))?,
                project: Some(project(namespace)?),
                shoot: Some(shoot),
                ..About::default()
            })
        }
        "Seed" if is_core => {
            let found: Option<Seed> = lookup::get(context.lister, "", &object.name);
            Ok(About {
                seed: Some(same(object, found.as_ref().map(|own| &own.metadata), "seed")?),
                ..About::default()
            })
        }
        "BackupBucket" if is_core => {
            let found: Option<BackupBucket> = lookup::get(context.lister, "", &object.name);
            let bucket = same(object, found.as_ref().map(|own| &own.metadata), "backupbucket")?;
            Ok(About {
                seed: seed(found.as_ref().and_then(|own| own.spec.seed_name.as_deref()))?,
                backup_bucket: Some(bucket),
                ..About::default()
            })
        }
        "BackupEntry" if is_core => {
            let found: Option<BackupEntry> = lookup::get(context.lister, namespace, &object.name);
            let entry = same(object, found.as_ref().map(|own| &own.metadata), "backupentry")?;
            let found = found.unwrap_or_default();
            let bucket: Option<BackupBucket> = lookup::get(context.lister, "", &found.spec.bucket_name);
            let missing = || {
                format!(
                    "backupbucket.core.gardener.cloud {:?} not found",
                    found.spec.bucket_name
                )
            };
            let owner = shoot_of(context, &found);
            Ok(About {
                seed: seed(found.spec.seed_name.as_deref())?,
                backup_bucket: Some(Reference::of(&bucket.ok_or_else(missing)?.metadata)),
                backup_entry: Some(entry),
                project: owner.as_ref().map(|_| project(namespace)).transpose()?,
                shoot: owner,
            })
        }
        kind => Err(format!(
            "unsupported GVK for context object: {}",
            go_kind(&object.api_version, kind)
        )),
    }
}

/// The shoot whose backups an entry holds, if it is still the same: the entry's name tells its technical ID and uid.
fn shoot_of(context: &Context<'_>, entry: &BackupEntry) -> Option<Reference> {
    let owners = entry.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.kind == "Shoot")?;
    let namespace = entry.metadata.namespace.as_deref().unwrap_or_default();
    let shoot: Shoot = lookup::get(context.lister, namespace, &owner.name)?;
    let name = entry.metadata.name.as_deref().unwrap_or_default();
    let (technical_id, uid) = name.strip_prefix("source-").unwrap_or(name).rsplit_once("--")?;
    let own = Reference::of(&shoot.metadata);
    (technical_id == shoot.status.technical_id && uid == own.uid).then_some(own)
}

#[async_trait]
impl Subresource for Token {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        (GROUP, "v1alpha1", "TokenRequest")
    }

    fn schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    fn examine(&self, _: &Context<'_>, name: &str, body: &mut Value) -> Result<(), ApiError> {
        self.issuer()?;
        let request = TokenRequest::deserialize(&*body).map_err(|why| ApiError::bad_request(why.to_string()))?;
        same_name(&request, name)
    }

    async fn call(&self, context: &Context<'_>, _: &str, parent: &Value, body: Value) -> Result<Effect, ApiError> {
        let issuer = self.issuer()?;
        let mut request = TokenRequest::deserialize(&body).map_err(|why| ApiError::bad_request(why.to_string()))?;
        let own = |key: &str| Some(meta::text(parent, key).to_owned());
        request.metadata.name = own("/metadata/name");
        request.metadata.namespace = own("/metadata/namespace");
        let errors = validate(&request);
        if !errors.is_empty() {
            return Err(ApiError::invalid(GROUP, "TokenRequest", "", &errors));
        }
        let identity = WorkloadIdentity::deserialize(parent).map_err(|why| ApiError::internal(why.to_string()))?;
        let about = about(context, request.spec.context_object.as_ref()).map_err(|why| {
            let why = format!("failed to resolve context object: {why}");
            failed(why)
        })?;
        let wish = request.spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
        let whole = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(MAX_SECONDS);
        let (least, most) = (whole(issuer.validity.0), whole(issuer.validity.1));
        let seconds = wish.min(most).max(least);
        let now = context.now.as_second();
        let claims = Claims {
            iss: &issuer.issuer,
            sub: &identity.status.sub,
            aud: identity.spec.audiences.as_slice().into(),
            exp: now.saturating_add(seconds),
            iat: now,
            nbf: now,
            jti: uid_of(context.chance),
            gardener: Gardener {
                workload_identity: Reference::of(&identity.metadata),
                about,
            },
        };
        let token = issuer
            .key
            .sign(&claims)
            .map_err(|why| ApiError::internal(why.to_string()))?;
        request.api_version = Some(format!("{GROUP}/v1alpha1"));
        request.kind = Some("TokenRequest".to_owned());
        request.spec.expiration_seconds = Some(wish);
        request.metadata.creation_timestamp = Some(Time(context.now));
        request.metadata.managed_fields = None;
        request.status = TokenRequestStatus {
            expiration_timestamp: context
                .now
                .checked_add(SignedDuration::from_secs(seconds))
                .ok()
                .map(Time),
            token,
        };
        let answer = serde_json::to_value(&request).map_err(|why| ApiError::internal(why.to_string()))?;
        Ok(Effect::Answer(answer, None))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use gardener_apiserver::UserInfo;
    use serde_json::json;

    use super::*;
    use crate::tests::garden::Garden;

    fn token() -> Token {
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let hour = Duration::from_secs(3600);
        Token {
            issuer: Some(Arc::new(TokenIssuer {
                key: SigningKey::from_pem(&key).unwrap(),
                issuer: "https://issuer.example.org".into(),
                validity: (hour, 48 * hour),
            })),
            schema: None,
        }
    }

    fn garden(groups: &[&str]) -> Garden {
        let mut garden = Garden::new();
        garden.user = UserInfo::new("someone", groups);
        let core = "core.gardener.cloud";
        let meta = |namespace: &str, name: &str, uid: &str| json!({"namespace": namespace, "name": name, "uid": uid});
        let put = |garden: &mut Garden, resource: &str, object: Value| garden.put(core, resource, object);
        put(
            &mut garden,
            "shoots",
            json!({"metadata": meta("garden-p", "s", "1"), "spec": {"seedName": "a"}, "status": {"technicalID": "shoot--p--s"}}),
        );
        put(&mut garden, "seeds", json!({"metadata": {"name": "a", "uid": "2"}}));
        put(
            &mut garden,
            "projects",
            json!({"metadata": {"name": "p", "uid": "3"}, "spec": {"namespace": "garden-p"}}),
        );
        put(
            &mut garden,
            "backupbuckets",
            json!({"metadata": {"name": "b", "uid": "4"}, "spec": {"seedName": "a"}}),
        );
        let mut entry = meta("garden-p", "shoot--p--s--1", "5");
        entry["ownerReferences"] =
            json!([{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "s", "uid": "1"}]);
        put(
            &mut garden,
            "backupentries",
            json!({"metadata": entry, "spec": {"bucketName": "b", "seedName": "a"}}),
        );
        garden
    }

    async fn ask(garden: &Garden, token: &Token, mut body: Value) -> Result<Value, ApiError> {
        let parent = json!({
            "metadata": {"name": "i", "namespace": "garden-p", "uid": "9"},
            "spec": {"audiences": ["cloud"], "targetSystem": {"type": "x"}},
            "status": {"sub": "gardener.cloud:workloadidentity:garden-p:i:9"},
        });
        token.examine(&garden.context(), "i", &mut body)?;
        match token.call(&garden.context(), "create", &parent, body).await? {
            Effect::Answer(answer, None) => Ok(answer),
            _ => panic!("nothing is stored"),
        }
    }

    fn claims(answer: &Value) -> Value {
        let token = meta::text(answer, "/status/token");
        let payload = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn gapi_64_tokens_tell_whose_they_are() {
        let (garden, token) = (garden(&[]), token());
        let answer = ask(&garden, &token, json!({"spec": {"expirationSeconds": 600}}))
            .await
            .unwrap();
        let told = claims(&answer);
        let from = told["iat"].as_i64().unwrap();
        assert_eq!(told["exp"], from + 3600, "shorter wishes are prolonged");
        assert_eq!(told["aud"], json!("cloud"), "as gardener-apiserver tells one alone");
        assert_eq!(told["sub"], "gardener.cloud:workloadidentity:garden-p:i:9");
        let identity = json!({"name": "i", "namespace": "garden-p", "uid": "9"});
        assert_eq!(told["gardener.cloud"], json!({"workloadIdentity": identity}));
        assert_eq!(answer["status"]["expirationTimestamp"], "2026-05-01T11:00:00Z");
        assert_eq!(answer["metadata"]["name"], "i");
    }

    #[tokio::test]
    async fn gapi_64_only_seeds_tell_what_tokens_are_for() {
        let entry = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry", "namespace": "garden-p", "name": "shoot--p--s--1", "uid": "5"});
        let shoot = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "namespace": "garden-p", "name": "s", "uid": "1"});
        let ask_for = async |groups: &[&str], object: &Value| {
            let answer = ask(&garden(groups), &token(), json!({"spec": {"contextObject": object}})).await;
            answer.map(|answer| claims(&answer)["gardener.cloud"].clone())
        };
        let told = ask_for(&[], &shoot).await.unwrap();
        assert_eq!(told.as_object().unwrap().len(), 1);
        let told = ask_for(&[SEEDS], &shoot).await.unwrap();
        assert_eq!(told["shoot"], json!({"name": "s", "namespace": "garden-p", "uid": "1"}));
        assert_eq!(told["seed"], json!({"name": "a", "uid": "2"}));
        assert_eq!(told["project"], json!({"name": "p", "uid": "3"}));
        let told = ask_for(&[SEEDS], &entry).await.unwrap();
        assert_eq!(told["backupBucket"], json!({"name": "b", "uid": "4"}));
        assert_eq!(
            (&told["shoot"]["uid"], &told["backupEntry"]["uid"]),
            (&json!("1"), &json!("5"))
        );
        let mut other = shoot.clone();
        other["uid"] = "7".into();
        let error = ask_for(&[SEEDS], &other).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to resolve context object: uid of contextObject (7) and real world Shoot resource (1) differ"
        );
    }

    #[tokio::test]
    async fn gapi_64_what_is_refused() {
        let garden = garden(&[]);
        let table = [
            (
                json!({"expirationSeconds": 599}),
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration shorter than 10 minutes",
            ),
            (
                json!({"expirationSeconds": (1_i64 << 32) + 1}),
                "may not specify a duration longer than 2^32 seconds",
            ),
            (
                json!({"contextObject": {"kind": "Shoot", "name": "s"}}),
                "spec.contextObject.apiVersion: Required value: must provide an apiVersion",
            ),
            (
                json!({"contextObject": {"apiVersion": "a/v1", "kind": "Shoot", "name": "s", "namespace": ""}}),
                "namespace name cannot be empty",
            ),
        ];
        for (spec, expected) in table {
            let error = ask(&garden, &token(), json!({"spec": spec})).await.unwrap_err();
            assert!(error.code() == 422 && error.to_string().contains(expected), "{error}");
        }
        let error = ask(&garden, &token(), json!({"metadata": {"name": "other"}}))
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("TokenRequest name does not match WorkloadIdentity name: i"),
            "{error}"
        );
        let error = ask(
            &garden,
            &Token {
                issuer: None,
                schema: None,
            },
            json!({}),
        )
        .await
        .unwrap_err();
        assert_eq!(error.code(), 500);
        assert_eq!(
            error.to_string(),
            "TokenIssuer is not set, WorkloadIdentity tokens cannot be issued"
        );
    }
}
