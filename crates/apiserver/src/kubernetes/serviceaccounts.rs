//! Service accounts, and tokens that are made for them.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::meta::go_kind;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::checks::annotation;
use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;
use crate::tokens::{Claims, KubernetesClaims, Reference};

const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// Asks that pods mount no secrets but those that their account names.
pub(super) const ENFORCES_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Of a secret that an account names, only the name is kept.
fn keep_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
        secret.retain(|key, _| key == "name");
    }
}

/// Service accounts.
pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.prepare_create = |_, account| {
        keep_names(account);
        Ok(())
    };
    kind.prepare_update = |_, account, _| {
        keep_names(account);
        Ok(())
    };
    kind.warnings = |account, old| {
        let enforces = |account: &Value| annotation(account, ENFORCES_SECRETS).is_some();
        match enforces(account) && !old.is_some_and(enforces) {
            true => vec![format!(
                "metadata.annotations[{ENFORCES_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )],
            false => Vec::new(),
        }
    };
    kind
}

/// `serviceaccounts/token`.
pub(super) struct Token;

#[async_trait]
impl Subresource for Token {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        (GROUP, "v1", KIND)
    }

    fn notes_author(&self) -> bool {
        true
    }

    fn receive(&self, namespace: &str, request: &mut Value) {
        // what is not there is made below
        meta::metadata_mut(request);
        let asked = request.get("spec").cloned().unwrap_or_default();
        let member = |key: &str| asked.get(key).cloned().unwrap_or_default();
        let seconds = match member("expirationSeconds") {
            Value::Null => DEFAULT_SECONDS.into(),
            seconds => seconds,
        };
        meta::set(request, "namespace", Some(namespace.into()));
        if let Value::Object(members) = request {
            members.insert("apiVersion".into(), format!("{GROUP}/v1").into());
            members.insert("kind".into(), KIND.into());
            let spec = json!({
                "audiences": member("audiences"), "expirationSeconds": seconds, "boundObjectRef": member("boundObjectRef"),
            });
            members.insert("spec".into(), spec);
            members.insert("status".into(), nothing_yet());
        }
    }

    fn is_judged_first(&self) -> bool {
        false
    }

    fn examine(&self, _: &Context<'_>, name: &str, request: &mut Value) -> Result<(), ApiError> {
        let named = meta::name(request);
        if named.is_empty() || named == name {
            return Ok(());
        }
        let path = Path::new("metadata").child("name");
        let error = Error::invalid(&path, named, "must match the service account name if specified");
        Err(ApiError::invalid(GROUP, KIND, name, &[error]))
    }

    fn prepare(&self, context: &Context<'_>, account: &Value, request: &mut Value) -> Result<(), ApiError> {
        let name = meta::name(account);
        let (asked, uid) = (
            meta::text(request, "/metadata/uid"),
            meta::text(account, "/metadata/uid"),
        );
        if !asked.is_empty() && asked != uid {
            let why =
                format!("the UID in the token request ({asked}) does not match the UID of the service account ({uid})");
            return Err(ApiError::conflict(GROUP, KIND, name, &why));
        }
        for (key, value) in [
            ("name", name),
            ("namespace", meta::namespace(account)),
            ("uid", uid),
            ("creationTimestamp", &meta::rfc3339(context.now)),
        ] {
            meta::set(request, key, Some(value.into()));
        }
        if let Value::Object(members) = request {
            members.insert("status".into(), nothing_yet());
            let audiences = members.get_mut("spec").and_then(|spec| spec.get_mut("audiences"));
            if let Some(audiences) = audiences.filter(|asked| asked.as_array().is_none_or(Vec::is_empty)) {
                *audiences = context.lister.token_settings().audiences.into();
            }
        }
        let seconds = seconds(request);
        let path = Path::new("spec").child("expirationSeconds");
        let mut errors = ErrorList::new();
        if seconds < MIN_SECONDS {
            let why = "may not specify a duration less than 10 minutes";
            errors.push(Error::invalid(&path, seconds, why));
        }
        if seconds > MAX_SECONDS {
            let why = "may not specify a duration larger than 2^32 seconds";
            errors.push(Error::invalid(&path, seconds, why));
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(ApiError::invalid(GROUP, KIND, "", &errors)),
        }
    }

    async fn call(&self, context: &Context<'_>, _: &str, account: &Value, request: Value) -> Result<Effect, ApiError> {
        let settings = context.lister.token_settings();
        let Some(signer) = settings.signer else {
            return Err(ApiError::new(
                500,
                "InternalError",
                "this cluster has no key to sign service account tokens with",
            ));
        };
        let mut claims = KubernetesClaims {
            namespace: meta::namespace(account).to_owned(),
            serviceaccount: reference(account),
            ..KubernetesClaims::default()
        };
        if let Some(bound) = request.at("/spec/boundObjectRef").filter(|bound| bound.is_object()) {
            bind(context, account, bound, &mut claims)?;
        }
        let audiences = meta::elements(&request, "/spec/audiences").iter();
        let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
        let (now, asked) = (context.now.as_second(), seconds(&request));
        let for_cluster = audiences.iter().all(|audience| settings.audiences.contains(audience));
        let lifetime = settings.lifetimes.of(asked, claims.pod.is_some(), for_cluster);
        claims.warnafter = (lifetime.good != lifetime.told).then(|| now.saturating_add(lifetime.told));
        let jti = gardener_apimachinery::chance::uid_of(context.chance);
        let credential = format!("JTI={jti}");
        let token = signer
            .sign(&Claims {
                iss: settings.issuer,
                sub: format!(
                    "system:serviceaccount:{}:{}",
                    meta::namespace(account),
                    meta::name(account)
                ),
                aud: audiences,
                exp: now.saturating_add(lifetime.good),
                iat: now,
                nbf: now,
                jti,
                kubernetes: claims,
            })
            .map_err(ApiError::internal)?;
        let mut answer = request;
        if let Value::Object(members) = &mut answer {
            let end = meta::rfc3339(meta::later(context.now, lifetime.told));
            members.insert("status".into(), json!({"token": token, "expirationTimestamp": end}));
            if let Some(Value::Object(spec)) = members.get_mut("spec") {
                spec.insert("expirationSeconds".into(), lifetime.told.into());
            }
        }
        let shortened = (lifetime.told != asked).then(|| {
            let told = lifetime.told;
            format!("requested expiration of {asked} seconds shortened to {told} seconds")
        });
        Ok(Effect::Issue(answer, shortened, credential))
    }
}

fn nothing_yet() -> Value {
    json!({"token": "", "expirationTimestamp": null})
}

fn seconds(request: &Value) -> i64 {
    let seconds = request.at("/spec/expirationSeconds").and_then(Value::as_i64);
    seconds.unwrap_or(DEFAULT_SECONDS)
}

fn reference(object: &Value) -> Reference {
    Reference {
        name: meta::name(object).to_owned(),
        uid: meta::text(object, "/metadata/uid").to_owned(),
    }
}

fn bind(context: &Context<'_>, account: &Value, bound: &Value, claims: &mut KubernetesClaims) -> Result<(), ApiError> {
    let (api_version, kind, name) = (
        meta::text(bound, "/apiVersion"),
        meta::text(bound, "/kind"),
        meta::text(bound, "/name"),
    );
    let of_core = !api_version.contains('/');
    let (resource, namespace) = match kind {
        "Pod" if of_core => ("pods", meta::namespace(account)),
        "Secret" if of_core => ("secrets", meta::namespace(account)),
        "Node" if of_core => ("nodes", ""),
        other => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {}",
                go_kind(api_version, other)
            )));
        }
    };
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let object = context.lister.get("", resource, namespace, name);
    let object = object.ok_or_else(|| ApiError::not_found("", resource, name))?;
    if kind == "Pod" && meta::text(&object, "/spec/serviceAccountName") != meta::name(account) {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
            go_quote(meta::name(account))
        )));
    }
    let own = reference(&object);
    let wanted = meta::text(bound, "/uid");
    if !wanted.is_empty() && wanted != own.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict("", kind, name, &why));
    }
    match kind {
        "Pod" => {
            let node = meta::text(&object, "/spec/nodeName");
            if !node.is_empty() {
                let found = context.lister.get("", "nodes", "", node);
                claims.node = Some(found.map(|node| reference(&node)).unwrap_or_else(|| Reference {
                    name: node.to_owned(),
                    uid: String::new(),
                }));
            }
            claims.pod = Some(own);
        }
        "Secret" => claims.secret = Some(own),
        _ => claims.node = Some(own),
    }
    Ok(())
}
