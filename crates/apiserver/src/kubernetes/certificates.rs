//! Certificate signing requests: who asked is noted, and approval is a subresource of its own.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use super::checks::{list, number, text};
use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.name = meta::path_segment;
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
    kind.validate = validate;
    kind.whole_first = true;
    kind.left_alone = |subresource| match subresource {
        "" => &["spec"],
        "status" => &["status.conditions"],
        "approval" => &["spec", "status.certificate"],
        _ => &[],
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

/// What certificates may be for.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A signer of a version that is no more.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// What is wrong with a request, if anything.
fn wrong_request(encoded: &str) -> Option<&'static str> {
    const NO_REQUEST: &str = "PEM block type must be CERTIFICATE REQUEST";
    let Ok(pem) = STANDARD.decode(encoded) else {
        return Some(NO_REQUEST);
    };
    let Ok((_, pem)) = parse_x509_pem(&pem) else {
        return Some(NO_REQUEST);
    };
    if pem.label != "CERTIFICATE REQUEST" {
        return Some(NO_REQUEST);
    }
    match X509CertificationRequest::from_der(&pem.contents) {
        Ok((rest, _)) => (!rest.is_empty()).then_some("asn1: syntax error: trailing data"),
        Err(_) if pem.contents.is_empty() => Some("asn1: syntax error: sequence truncated"),
        Err(_) if is_truncated(&pem.contents, MAX_NESTING) => Some("asn1: syntax error: data truncated"),
        Err(_) => Some("asn1: structure error: malformed certificate request"),
    }
}

/// How deep parts of a request may stand in each other to be looked at.
const MAX_NESTING: usize = 32;

/// Whether DER says that something is longer than it is.
fn is_truncated(mut data: &[u8], nesting: usize) -> bool {
    while let Some((tag, rest)) = data.split_first() {
        let Some((length, rest)) = rest.split_first() else {
            return true;
        };
        let (length, rest) = match length {
            short @ 0..0x80 => (usize::from(*short), rest),
            long => {
                let Some((digits, rest)) = rest.split_at_checked(usize::from(long & 0x7f)) else {
                    return true;
                };
                let length = digits.iter().fold(0_usize, |length, digit| {
                    length.saturating_mul(256).saturating_add(usize::from(*digit))
                });
                (length, rest)
            }
        };
        let Some((content, behind)) = rest.split_at_checked(length) else {
            return true;
        };
        let is_constructed = tag & 0x20 != 0;
        if is_constructed && nesting > 0 && is_truncated(content, nesting - 1) {
            return true;
        }
        data = behind;
    }
    false
}

/// A segment of a signer's name: parts between dots, of which the first wrong one is told.
fn segment(segment: &str, check: fn(&str) -> Vec<String>, at: &Path, errors: &mut ErrorList) {
    let mut wrong = segment.split('.').map(|part| (part, check(part)));
    if let Some((part, wrong)) = wrong.find(|(_, wrong)| !wrong.is_empty()) {
        let part = go_quote(part);
        errors.extend(
            wrong
                .into_iter()
                .map(|why| Error::invalid(at, segment, format!("validating label {part}: {why}"))),
        );
    }
}

fn validate(request: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (request.get("spec").unwrap_or(&none), Path::new("spec"));
    if let Some(why) = wrong_request(text(spec, "request")) {
        let shown = spec.get("request").cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&path.child("request"), shown, why));
    }
    let usages: Vec<&str> = list(spec, "usages").iter().filter_map(Value::as_str).collect();
    let at = path.child("usages");
    if usages.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            errors.push(Error::not_supported(&at.index(index), *usage, &USAGES));
        }
        if usages.iter().take(index).any(|other| other == usage) {
            errors.push(Error::duplicate(&at.index(index), *usage));
        }
    }
    let (signer, at) = (text(spec, "signerName"), path.child("signerName"));
    match signer.split_once('/').filter(|(_, name)| !name.contains('/')) {
        _ if signer.is_empty() => errors.push(Error::required(&at, "")),
        Some((domain, name)) => {
            segment(domain, meta::dns1123_label, &at, &mut errors);
            if !domain.contains('.') {
                let why = "should be a domain with at least two segments separated by dots";
                errors.push(Error::invalid(&at, domain, why));
            }
            segment(name, meta::dns1123_subdomain, &at, &mut errors);
        }
        None => {
            let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(Error::invalid(&at, signer, why));
        }
    }
    if signer == LEGACY_SIGNER {
        let why = "the legacy signerName is not allowed via this API version";
        errors.push(Error::invalid(&at, signer, why));
    }
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(Error::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    errors
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
            .at("/status/conditions")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_the_end_are_told() {
        for (der, expected) in [
            ([0x30, 0x03, 0x02, 0x01, 0x05].as_slice(), false),
            (&[0x30, 0x04, 0x02, 0x01, 0x05], true),
            (&[0x30, 0x03, 0x02, 0x02, 0x05], true),
            (&[0x30, 0x81], true),
            (&[0x30], true),
            (&[0x04, 0x02, 0x30, 0x09], false),
        ] {
            assert_eq!(is_truncated(der, MAX_NESTING), expected, "{der:?}");
        }
    }
}
