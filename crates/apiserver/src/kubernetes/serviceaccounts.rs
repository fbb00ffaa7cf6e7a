//! Service accounts and the tokens that are made for them.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::meta::go_kind;
use serde_json::{Value, json};

use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;
use crate::tokens::{Claims, KubernetesClaims, Reference};

const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

fn refused(name: &str, error: Error) -> ApiError {
    ApiError::invalid("authentication.k8s.io", "TokenRequest", name, &[error])
}

pub(super) fn kind(kind: Kind) -> Kind {
    kind
}

/// `serviceaccounts/token`.
pub(super) struct Token;

#[async_trait]
impl Subresource for Token {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("authentication.k8s.io", "v1", "TokenRequest")
    }

    async fn call(&self, context: &Context<'_>, _: &str, account: &Value, body: Value) -> Result<Effect, ApiError> {
        let settings = context.lister.token_settings();
        let Some(signer) = settings.signer else {
            return Err(ApiError::new(
                500,
                "InternalError",
                "this cluster has no key to sign service account tokens with",
            ));
        };
        let named = meta::name(&body);
        if !named.is_empty() && named != meta::name(account) {
            let path = Path::new("metadata").child("name");
            let error = Error::invalid(&path, named, "must match the service account name if specified");
            return Err(refused(meta::name(account), error));
        }
        let seconds = body
            .pointer("/spec/expirationSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(DEFAULT_SECONDS);
        let wrong = match seconds {
            ..MIN_SECONDS => Some("may not specify a duration less than 10 minutes"),
            seconds if seconds > MAX_SECONDS => Some("may not specify a duration larger than 2^32 seconds"),
            _ => None,
        };
        if let Some(why) = wrong {
            let path = Path::new("spec").child("expirationSeconds");
            return Err(refused(named, Error::invalid(&path, seconds, why)));
        }
        let asked: Vec<String> = body
            .pointer("/spec/audiences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let audiences = if asked.is_empty() {
            settings.audiences.clone()
        } else {
            asked
        };
        let bound = body
            .pointer("/spec/boundObjectRef")
            .filter(|value| value.is_object())
            .cloned();
        let mut claims = KubernetesClaims {
            namespace: meta::namespace(account).to_owned(),
            serviceaccount: Reference {
                name: meta::name(account).to_owned(),
                uid: meta::text(account, "/metadata/uid").to_owned(),
            },
            ..KubernetesClaims::default()
        };
        if let Some(bound) = &bound {
            bind(context, account, bound, &mut claims)?;
        }
        let now = context.now.as_second();
        let token = signer
            .sign(&Claims {
                iss: settings.issuer,
                sub: format!(
                    "system:serviceaccount:{}:{}",
                    meta::namespace(account),
                    meta::name(account)
                ),
                aud: audiences.clone(),
                exp: now + seconds,
                iat: now,
                nbf: now,
                jti: format!("{:016x}", context.chance),
                kubernetes: claims,
            })
            .map_err(ApiError::internal)?;
        let mut metadata = json!({"name": meta::name(account), "namespace": meta::namespace(account), "creationTimestamp": meta::rfc3339(context.now)});
        if let Some(managed) = body.pointer("/metadata/managedFields").cloned() {
            metadata["managedFields"] = managed;
        }
        if let Some(uid) = account.pointer("/metadata/uid") {
            metadata["uid"] = uid.clone();
        }
        let spec = json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound});
        let status = json!({"token": token, "expirationTimestamp": meta::rfc3339(meta::later(context.now, seconds))});
        Ok(Effect::Answer(
            json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata, "spec": spec, "status": status}),
        ))
    }
}

fn bind(context: &Context<'_>, account: &Value, bound: &Value, claims: &mut KubernetesClaims) -> Result<(), ApiError> {
    let (kind, name, uid) = (
        meta::text(bound, "/kind"),
        meta::text(bound, "/name"),
        meta::text(bound, "/uid"),
    );
    let resource = match kind {
        "Pod" => "pods",
        "Secret" => "secrets",
        other => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {}",
                go_kind(meta::text(bound, "/apiVersion"), other)
            )));
        }
    };
    let object = context
        .lister
        .get("", resource, meta::namespace(account), name)
        .ok_or_else(|| ApiError::not_found("", resource, name))?;
    let own = meta::text(&object, "/metadata/uid");
    if !uid.is_empty() && uid != own {
        return Err(ApiError::conflict(
            "",
            resource,
            name,
            &format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    if kind == "Pod" && meta::text(&object, "/spec/serviceAccountName") != meta::name(account) {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            meta::name(account)
        )));
    }
    let reference = Some(Reference {
        name: name.to_owned(),
        uid: own.to_owned(),
    });
    if kind == "Pod" {
        claims.pod = reference
    } else {
        claims.secret = reference
    }
    Ok(())
}
