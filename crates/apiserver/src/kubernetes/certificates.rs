//! Certificate signing requests: who asked is noted, and approval is a subresource of its own.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.prepare_create = |context, request| {
        let Some(members) = request.as_object_mut() else {
            return Ok(());
        };
        members.insert("status".into(), json!({}));
        let spec = members.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("username".into(), context.user.name.clone().into());
            spec.insert("groups".into(), json!(context.user.groups));
            for (key, value) in [("uid", json!(context.user.uid)), ("extra", json!(context.user.extra))] {
                let empty = value.as_str().is_some_and(str::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                if empty {
                    spec.remove(key);
                } else {
                    spec.insert(key.into(), value);
                }
            }
        }
        Ok(())
    };
    kind.prepare_update = |_, request, old| {
        if let (Some(members), Some(spec)) = (request.as_object_mut(), old.get("spec")) {
            members.insert("spec".into(), spec.clone());
        }
        Ok(())
    };
    kind.validate = |request| {
        let spec = Path::new("spec");
        let mut errors = Vec::new();
        if meta::text(request, "/spec/request").is_empty() {
            errors.push(Error::invalid(
                &spec.child("request"),
                "",
                "PEM block type must be CERTIFICATE REQUEST",
            ));
        }
        if meta::text(request, "/spec/signerName").is_empty() {
            errors.push(Error::required(&spec.child("signerName"), ""));
        }
        if request
            .pointer("/spec/usages")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            errors.push(Error::required(&spec.child("usages"), "usages are required"));
        }
        errors
    };
    kind.fields = |request| vec![("spec.signerName".into(), meta::text(request, "/spec/signerName").into())];
    kind
}

/// The organizations of the subject that a request names; none where it cannot be read.
pub(super) fn organizations(request: &Value) -> Vec<String> {
    let encoded = meta::text(request, "/spec/request");
    let Ok(pem) = STANDARD.decode(encoded) else {
        return Vec::new();
    };
    let Ok((_, pem)) = parse_x509_pem(&pem) else {
        return Vec::new();
    };
    let Ok((_, parsed)) = X509CertificationRequest::from_der(&pem.contents) else {
        return Vec::new();
    };
    let subject = &parsed.certification_request_info.subject;
    let texts = subject.iter_organization().filter_map(|own| own.as_str().ok());
    texts.map(str::to_owned).collect()
}

/// `certificatesigningrequests/approval`: changes the conditions `Approved` and `Denied`.
pub(super) struct Approval;

#[async_trait]
impl Subresource for Approval {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("certificates.k8s.io", "v1", "CertificateSigningRequest")
    }

    fn verbs(&self) -> &'static [&'static str] {
        &["get", "patch", "update"]
    }

    async fn call(&self, context: &Context<'_>, verb: &str, request: &Value, body: Value) -> Result<Effect, ApiError> {
        if verb == "get" {
            return Ok(Effect::Answer(request.clone()));
        }
        let signer = meta::text(request, "/spec/signerName");
        let group = "certificates.k8s.io";
        if !context.user.is_master() && !super::admission::may_for_signer(context, "approve", signer) {
            return Err(ApiError::forbidden(
                group,
                "certificatesigningrequests",
                meta::name(request),
                &format!("user not permitted to approve requests with signerName {signer:?}"),
            ));
        }
        let mut conditions = body
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for key in ["lastUpdateTime", "lastTransitionTime"] {
                if condition.get(key).is_none_or(Value::is_null) {
                    condition.insert(key.into(), meta::rfc3339(context.now).into());
                }
            }
            condition.entry("status").or_insert_with(|| json!("True"));
        }
        let mut request = request.clone();
        if let Some(status) = request
            .as_object_mut()
            .map(|members| members.entry("status").or_insert_with(|| json!({})))
            && let Some(status) = status.as_object_mut()
        {
            status.insert("conditions".into(), json!(conditions));
        }
        Ok(Effect::Store(request))
    }
}
