//! Deciding about certificate signing requests: a condition that says approved or denied, written by the subresource for it.

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::PostParams;
use kube::{Api, ResourceExt};

/// Whether a request is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Approved,
    /// It is denied.
    Denied,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "Approved",
            Self::Denied => "Denied",
        }
    }
}

/// Whether nothing is decided about a request yet.
pub fn is_open(request: &CertificateSigningRequest) -> bool {
    let status = request.status.as_ref();
    let mut conditions = status.and_then(|own| own.conditions.as_ref()).into_iter().flatten();
    status.is_none_or(|own| own.certificate.is_none())
        && !conditions.any(|condition| matches!(condition.type_.as_str(), "Approved" | "Denied"))
}

/// Writes what is decided about a request.
///
/// # Errors
/// When the API refuses.
pub async fn decide(
    api: &Api<CertificateSigningRequest>,
    mut request: CertificateSigningRequest,
    verdict: Verdict,
    (reason, message): (&str, String),
    now: Time,
) -> Result<(), kube::Error> {
    let name = request.name_any();
    tracing::info!(
        request = name,
        verdict = verdict.as_str(),
        message,
        "decided about a certificate signing request"
    );
    let status = request.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: verdict.as_str().to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now),
    });
    api.replace_subresource("approval", &name, &PostParams::default(), &request)
        .await
        .map(drop)
}
