//! Certificate signing requests: who asked is noted, and approval is a subresource of its own.

pub(super) mod key_pairs;
mod pem;

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use super::checks::{list, number, text};
use super::strategy::Kind;
use crate::meta;
use crate::selectable::Selectable;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.name = |_| Vec::new();
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
    kind.prepare_status = |context, request, old| {
        keep_decisions(request, old);
        note_times(request, old, &meta::rfc3339(context.now));
    };
    kind.validate_status = |request, old| validate_change(request, old, Part::Status);
    // changes the conditions `Approved` and `Denied`, and metadata
    kind.views = &["approval"];
    kind.update_view = |_, context, request, old| {
        note_times(request, old, &meta::rfc3339(context.now));
        keep_all_but_conditions(request, old);
        validate_change(request, old, Part::Approval)
    };
    kind.whole_first = true;
    kind.left_alone = |subresource| match subresource {
        "" => &["spec"],
        "status" => &["status.conditions"],
        "approval" => &["spec", "status.certificate"],
        _ => &[],
    };
    kind.fields = const { &[Selectable::text("spec.signerName", "/spec/signerName")] };
    kind
}

/// For whom a certificate is asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Requested {
    /// The last of the subject's common names; empty without any.
    pub(super) common_name: String,
    /// The subject's organizations.
    pub(super) organizations: Vec<String>,
}

/// For whom a request asks; none where it cannot be read.
pub(super) fn requested(request: &Value) -> Option<Requested> {
    let pem = STANDARD.decode(meta::text(request, "/spec/request")).ok()?;
    let block = pem::blocks(&pem).next()?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.content).ok()?;
    let subject = &parsed.certification_request_info.subject;
    let names = subject.iter_common_name().filter_map(|own| own.as_str().ok());
    let organizations = subject.iter_organization().filter_map(|own| own.as_str().ok());
    Some(Requested {
        common_name: names.last().unwrap_or_default().to_owned(),
        organizations: organizations.map(str::to_owned).collect(),
    })
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
pub(super) fn wrong_request(encoded: &str) -> Option<&'static str> {
    const NO_REQUEST: &str = "PEM block type must be CERTIFICATE REQUEST";
    let Ok(pem) = STANDARD.decode(encoded) else {
        return Some(NO_REQUEST);
    };
    let Some(block) = pem::blocks(&pem)
        .next()
        .filter(|block| block.label == "CERTIFICATE REQUEST")
    else {
        return Some(NO_REQUEST);
    };
    match X509CertificationRequest::from_der(&block.content) {
        Ok((rest, _)) => (!rest.is_empty()).then_some("asn1: syntax error: trailing data"),
        Err(_) if block.content.is_empty() => Some("asn1: syntax error: sequence truncated"),
        Err(_) if is_truncated(&block.content, MAX_NESTING) => Some("asn1: syntax error: data truncated"),
        Err(_) => Some("asn1: structure error: malformed certificate request"),
    }
}

/// Why a request's signature is not that of its own key, if so. What cannot be verified here, such as by short keys or rare curves, is taken.
fn wrong_signature(encoded: &str) -> Option<&'static str> {
    const SHORTEST: usize = 2048;
    let pem = STANDARD.decode(encoded).ok()?;
    let block = pem::blocks(&pem).next()?;
    let (_, request) = X509CertificationRequest::from_der(&block.content).ok()?;
    let Err(X509Error::SignatureVerificationError) = request.verify_signature() else {
        return None;
    };
    match request.certification_request_info.subject_pki.parsed().ok()? {
        PublicKey::RSA(key) if key.key_size() < SHORTEST => None,
        PublicKey::RSA(_) => Some("crypto/rsa: verification error"),
        PublicKey::EC(_) => Some("x509: ECDSA verification failure"),
        _ => Some("x509: Ed25519 verification failure"),
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
    let encoded = text(spec, "request");
    if let Some(why) = wrong_request(encoded).or_else(|| wrong_signature(encoded)) {
        let shown = spec.get("request").cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&path.child("request"), shown, why));
    }
    let usages: Vec<&str> = list(spec, "usages").iter().filter_map(Value::as_str).collect();
    let at = path.child("usages");
    if usages.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            errors.push(Error::not_supported(&at.index(index), *usage, &USAGES));
        }
        if !seen.insert(usage) {
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

/// Conditions that are what they are when they are there.
const DECIDED: [&str; 3] = ["Approved", "Denied", "Failed"];
/// Conditions that only an approval sets.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// What of a request a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Status,
    Approval,
}

fn conditions(request: &Value) -> &[Value] {
    meta::elements(request, "/status/conditions")
}

fn of_type<'a>(request: &'a Value, own: &str) -> Vec<&'a Value> {
    let all = conditions(request).iter();
    all.filter(|condition| text(condition, "type") == own).collect()
}

/// Leaves decisions as they were, where as many are there as before.
fn keep_decisions(request: &mut Value, old: &Value) {
    for own in DECISIONS {
        let before = of_type(old, own);
        if before.len() != of_type(request, own).len() {
            continue;
        }
        let list = request.at_mut("/status/conditions").and_then(Value::as_array_mut);
        let now = list
            .into_iter()
            .flatten()
            .filter(|condition| text(condition, "type") == own);
        for (now, before) in now.zip(before) {
            *now = before.clone();
        }
    }
}

/// Leaves all but the conditions as it was.
fn keep_all_but_conditions(request: &mut Value, old: &Value) {
    let conditions = request.at("/status/conditions").cloned();
    let conditions = conditions.filter(|own| own.as_array().is_some_and(|own| !own.is_empty()));
    let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(status) = &mut status {
        status.remove("conditions");
        status.extend(conditions.map(|own| ("conditions".to_owned(), own)));
    }
    if let Value::Object(members) = request {
        members.insert("status".into(), status);
        members.extend(old.get("spec").map(|spec| ("spec".to_owned(), spec.clone())));
    }
}

/// Notes when conditions were told, and since when they are what they are.
fn note_times(request: &mut Value, old: &Value, now: &str) {
    let list = request.at_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        let is_same = |before: &&Value| {
            ["type", "status"]
                .iter()
                .all(|key| text(before, key) == text(condition, key))
                && !text(before, "lastTransitionTime").is_empty()
        };
        let since = conditions(old).iter().find(is_same);
        let since = since
            .map_or(now, |before| text(before, "lastTransitionTime"))
            .to_owned();
        let Some(members) = condition.as_object_mut() else {
            continue;
        };
        for (key, time) in [("lastUpdateTime", now), ("lastTransitionTime", since.as_str())] {
            if members.get(key).is_none_or(Value::is_null) {
                members.insert(key.to_owned(), time.into());
            }
        }
        members.retain(|key, value| !matches!(key.as_str(), "reason" | "message") || value != "");
    }
}

/// What is wrong with a change of a request's status. What was wrong before may stay so.
fn validate_change(request: &Value, old: &Value, part: Part) -> ErrorList {
    let mut errors = validate_conditions(request, old);
    let path = Path::new("status");
    let at = path.child("conditions");
    let (own, before) = (
        meta::text(request, "/status/certificate"),
        meta::text(old, "/status/certificate"),
    );
    if own != before
        && wrong_certificate(before).is_none()
        && let Some(why) = wrong_certificate(own)
    {
        errors.push(Error::invalid(&path.child("certificate"), "<certificate data>", why));
    }
    for own in DECIDED {
        if of_type(request, own).len() < of_type(old, own).len() {
            let why = format!("updates may not remove a condition of type {}", go_quote(own));
            errors.push(Error::forbidden(&at, why));
        }
    }
    for own in DECISIONS {
        if part != Part::Approval && of_type(request, own).len() > of_type(old, own).len() {
            let why = format!("updates may not add a condition of type {}", go_quote(own));
            errors.push(Error::forbidden(&at, why));
        }
    }
    if own != before {
        let at = path.child("certificate");
        match part {
            Part::Approval => errors.push(Error::forbidden(&at, "updates may not set certificate content")),
            Part::Status if !before.is_empty() => {
                errors.push(Error::forbidden(
                    &at,
                    "updates may not modify existing certificate content",
                ));
            }
            Part::Status => {}
        }
    }
    errors
}

fn validate_conditions(request: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("conditions");
    let before: Vec<&str> = conditions(old)
        .iter()
        .map(|condition| text(condition, "type"))
        .collect();
    let known: BTreeSet<&str> = before.iter().copied().collect();
    let repeated_before = known.len() < before.len();
    let had_both = DECISIONS.iter().all(|decision| known.contains(decision));
    let mut others = BTreeSet::new();
    for (index, condition) in conditions(request).iter().enumerate() {
        let (ty, status, at) = (text(condition, "type"), text(condition, "status"), path.index(index));
        if ty.is_empty() && !known.contains("") {
            errors.push(Error::required(&at.child("type"), ""));
        }
        let allowed: &[&str] = match DECIDED.contains(&ty) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            errors.push(Error::required(&at.child("status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(Error::not_supported(&at.child("status"), status, allowed));
        }
        let opposite = DECISIONS.iter().find(|other| **other != ty);
        if !had_both && DECISIONS.contains(&ty) && opposite.is_some_and(|other| others.contains(*other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(&path, ty, why));
        }
        if !others.insert(ty) && !repeated_before {
            errors.push(Error::duplicate(&at.child("type"), ty));
        }
    }
    errors
}

/// What is wrong with certificates in PEM, if anything.
fn wrong_certificate(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let mut blocks = 0;
    for block in pem::blocks(&pem) {
        if block.label != "CERTIFICATE" {
            let label = go_quote(&block.label);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        blocks += 1;
        if X509Certificate::from_der(&block.content).is_err() {
            return Some("x509: malformed certificate".to_owned());
        }
    }
    (blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
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

    #[test]
    fn requests_are_signed_by_their_own_key() {
        let made = gardener_pki::request(&gardener_pki::Subject::client("u", &["g"])).unwrap();
        let block = pem::blocks(made.certificate.as_bytes()).next().unwrap();
        let text = |content: &[u8]| {
            let body = STANDARD.encode(content);
            STANDARD.encode(format!(
                "-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n"
            ))
        };
        assert_eq!(wrong_signature(&text(&block.content)), None);
        // the user's name is another one than that which was signed
        let at = block.content.windows(3).position(|own| own == [0x0c, 1, b'u']).unwrap();
        let mut forged = block.content;
        forged[at + 2] = b'v';
        assert_eq!(wrong_request(&text(&forged)), None);
        assert_eq!(
            wrong_signature(&text(&forged)),
            Some("x509: ECDSA verification failure")
        );
    }

    #[test]
    fn certificates_have_no_headers() {
        let made = gardener_pki::authority("a", 0, std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(wrong_certificate(&STANDARD.encode(&made.certificate)), None);
        let headed = made.certificate.replacen("-----\n", "-----\nk: v\n\n", 1).replacen(
            "-----\r\n",
            "-----\r\nk: v\r\n\r\n",
            1,
        );
        assert_eq!(
            wrong_certificate(&STANDARD.encode(headed)).as_deref(),
            Some("no PEM block headers are permitted")
        );
    }
}
