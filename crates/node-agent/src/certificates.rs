//! Asks the shoot for client certificates [GNA-3].

use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_pki::{Issued, Subject};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::PostParams;
use kube::{Api, Client};

/// How long an agent's certificate is asked for: 720 h.
const AGENT_VALIDITY_SECONDS: i32 = 720 * 3600;
/// How long a request is waited for before another is made.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Signs clients of the API.
pub(crate) const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// Signs kubelets.
pub(crate) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// No certificate was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// No request could be made.
    #[error(transparent)]
    Make(#[from] gardener_pki::CertificateError),
    /// The API refused.
    #[error("the certificate signing request was refused: {0}")]
    Api(#[from] kube::Error),
    /// Nobody signed.
    #[error("the certificate signing request {name} was not signed: {why}")]
    Unsigned {
        /// Which request.
        name: String,
        /// What was said last.
        why: String,
    },
}

fn verdict(request: Option<&CertificateSigningRequest>) -> Verdict<String, String> {
    let Some(request) = request else {
        return Verdict::Pending("it is not there".to_owned());
    };
    let Some(status) = &request.status else {
        return Verdict::Pending("nobody approved it".to_owned());
    };
    let said = |kind: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions
            .filter(|condition| condition.type_ == kind)
            .map(|condition| condition.message.clone().unwrap_or_default())
            .next()
    };
    for kind in ["Denied", "Failed"] {
        if let Some(message) = said(kind) {
            return Verdict::Hopeless(format!("{kind}: {message}"));
        }
    }
    match &status.certificate {
        Some(pem) => Verdict::Ready(String::from_utf8_lossy(&pem.0).into_owned()),
        None if said("Approved").is_some() => Verdict::Pending("approved, but not signed".to_owned()),
        None => Verdict::Pending("nobody approved it".to_owned()),
    }
}

/// Asks for a certificate and waits for it.
///
/// # Errors
/// [`RequestError`].
pub(crate) async fn request(
    client: &Client,
    chance: &Chance,
    signer: &str,
    user: &str,
    group: &str,
) -> Result<Issued, RequestError> {
    let asked = gardener_pki::request(&Subject::client(user, &[group]))?;
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let mut object = CertificateSigningRequest::default();
    let prefix = if signer == API_CLIENT {
        "node-agent-csr"
    } else {
        "node-csr"
    };
    let name = format!("{prefix}-{}", chance.hex(16));
    object.metadata.name = Some(name.clone());
    object.spec = CertificateSigningRequestSpec {
        request: ByteString(asked.certificate.into_bytes()),
        signer_name: signer.to_owned(),
        usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
        expiration_seconds: (signer == API_CLIENT).then_some(AGENT_VALIDITY_SECONDS),
        ..CertificateSigningRequestSpec::default()
    };
    api.create(&PostParams::default(), &object).await?;
    let patience = Patience::of(TIMEOUT);
    let certificate = wait_for(&api, &name, patience, verdict)
        .await
        .map_err(|error| RequestError::Unsigned {
            name,
            why: error.to_string(),
        })?;
    Ok(Issued {
        certificate,
        key: asked.key,
    })
}
