//! Whether a definition in one of the community's groups, which may have a public API only when that is approved, says that it is.

use serde_json::Value;

use crate::meta;

/// The annotation that tells it.
pub(crate) const ANNOTATION: &str = "api-approved.kubernetes.io";

/// What the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    /// Nothing.
    Missing,
    /// That nobody approved the API.
    Bypassed,
    /// Where the API was approved.
    Approved,
    /// Something else.
    Invalid,
}

/// What a definition's annotation says, and that in words. None: its group is not protected.
pub(crate) fn of(crd: &Value) -> Option<(Approval, String)> {
    let group = meta::text(crd, "/spec/group");
    let is_protected = |domain: &&str| {
        let rest = group.strip_suffix(*domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    ["k8s.io", "kubernetes.io"].iter().find(|domain| is_protected(domain))?;
    Some(said(told(crd)))
}

/// What an annotation says, and that in words.
pub(crate) fn said(annotation: &str) -> (Approval, String) {
    let url = url::Url::parse(annotation);
    match (annotation, url) {
        ("", _) => (
            Approval::Missing,
            format!(
                "protected groups must have approval annotation {ANNOTATION:?}, see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
        (text, _) if text.starts_with("unapproved") => (Approval::Bypassed, format!("not approved: {text:?}")),
        (text, Ok(url)) if url.has_host() => (Approval::Approved, format!("approved in {text}")),
        _ => (
            Approval::Invalid,
            format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
    }
}

/// The annotation; empty, if there is none.
pub(crate) fn told(crd: &Value) -> &str {
    let annotations = crd.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let annotation = annotations.and_then(|annotations| annotations.get(ANNOTATION));
    annotation.and_then(Value::as_str).unwrap_or_default()
}
