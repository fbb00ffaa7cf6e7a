//! The node's client certificate: a signing request made with the bootstrap token [GNA-3].

use std::time::Duration;

use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_pki::{Subject, request as signing_request};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::{Api, Client, ResourceExt};

use crate::{AgentError, Credentials};

/// Who signs certificates of kubelets.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Seconds a certificate is asked for.
const EXPIRATION: i32 = 720 * 3600;
const PATIENCE: Patience = Patience {
    recheck: Duration::from_secs(300),
    timeout: Duration::from_secs(3600),
};

/// Asks for a certificate of `system:node:<node>` and waits for it. Nobody else has the key: an interrupted request is made anew.
pub(crate) async fn request(client: &Client, node: &str) -> Result<Credentials, AgentError> {
    let subject = Subject::client(&format!("system:node:{node}"), &["system:nodes"]);
    let made = signing_request(&subject).map_err(|error| AgentError::Key(error.to_string()))?;
    let mut object = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(made.certificate.into_bytes()),
            signer_name: SIGNER.to_owned(),
            expiration_seconds: Some(EXPIRATION),
            usages: Some(["digital signature", "client auth"].map(str::to_owned).to_vec()),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    object.metadata.generate_name = Some("node-csr-".to_owned());
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let created = api.create(&Default::default(), &object).await?;
    let certificate = wait_for(&api, &created.name_any(), PATIENCE, |object| {
        let Some(status) = object.and_then(|object| object.status.as_ref()) else {
            return Verdict::Pending("the signing request is not approved".to_owned());
        };
        let refused = status
            .conditions
            .iter()
            .flatten()
            .find(|one| matches!(&*one.type_, "Denied" | "Failed"));
        if let Some(refused) = refused {
            return Verdict::Hopeless(format!(
                "the signing request is refused: {}",
                refused.message.as_deref().unwrap_or_default()
            ));
        }
        match &status.certificate {
            Some(certificate) => Verdict::Ready(certificate.0.clone()),
            None => Verdict::Pending("the certificate is not signed".to_owned()),
        }
    })
    .await
    .map_err(|error| AgentError::Certificate(error.to_string()))?;
    Ok(Credentials::Certificate {
        certificate: String::from_utf8_lossy(&certificate).into_owned(),
        key: made.key,
    })
}
