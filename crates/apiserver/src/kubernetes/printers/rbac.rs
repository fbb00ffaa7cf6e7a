//! Rows of roles, bindings and certificate signing requests.

use gardener_apimachinery::duration::{Duration, human};
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{age, created, items, name};
use crate::meta;

pub(in crate::kubernetes) fn role(_: Timestamp, role: &Value) -> Vec<Value> {
    vec![name(role), created(role)]
}

pub(in crate::kubernetes) fn binding(now: Timestamp, binding: &Value) -> Vec<Value> {
    let role = format!(
        "{}/{}",
        meta::text(binding, "/roleRef/kind"),
        meta::text(binding, "/roleRef/name")
    );
    let of = |kind: &str| {
        let texts: Vec<String> = items(binding, "/subjects")
            .filter(|subject| meta::text(subject, "/kind") == kind)
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", meta::text(subject, "/namespace"), meta::text(subject, "/name")),
                _ => meta::text(subject, "/name").to_owned(),
            })
            .collect();
        Value::from(texts.join(", "))
    };
    vec![
        name(binding),
        role.into(),
        age(now, binding).into(),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

pub(in crate::kubernetes) fn certificate_signing_request(now: Timestamp, request: &Value) -> Vec<Value> {
    let is = |kind: &str| items(request, "/status/conditions").any(|condition| meta::text(condition, "/type") == kind);
    let mut condition = if is("Denied") {
        "Denied".to_owned()
    } else if is("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if is("Failed") {
        condition.push_str(",Failed");
    }
    if !meta::text(request, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let asked = request
        .at("/spec/expirationSeconds")
        .and_then(Value::as_i64)
        .map_or_else(|| "<none>".to_owned(), |seconds| human(Duration::from_secs(seconds)));
    vec![
        name(request),
        age(now, request).into(),
        meta::text(request, "/spec/signerName").into(),
        meta::text(request, "/spec/username").into(),
        asked.into(),
        condition.into(),
    ]
}
