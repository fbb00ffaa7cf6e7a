//! Asking the garden for a client certificate [AUTH-30], [AUTH-32]: the request, its name, and the wait for what becomes of it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gardener_apis::constants::group;
use gardener_controller::{RateLimit, Read};
use gardener_pki::{Issued, Subject};
use gardener_rules::csr_approval::API_CLIENT;
use gardener_rules::csr_approval::gardenlets::{SEED_USER_PREFIX, SHOOT_USER_PREFIX};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use sha2::{Digest, Sha512_256};
use tokio::time::{sleep, timeout};

/// What a gardenlet's certificate is good for [AUTH-30].
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];
/// How long a request is given.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How often is looked whether there is a certificate: bootstrap tokens may read a request, but not follow it.
const LOOKS: RateLimit = RateLimit {
    base: Duration::from_millis(20),
    max: Duration::from_secs(2),
};

/// Who a gardenlet is in the garden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The gardenlet of a seed.
    Seed(String),
    /// The gardenlet of a self-hosted shoot.
    SelfHostedShoot {
        /// Its namespace in the garden.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Holder {
    /// The subject of its certificates [AUTH-30].
    pub fn subject(&self) -> Subject {
        match self {
            Self::Seed(name) => Subject::client(&format!("{SEED_USER_PREFIX}{name}"), &[group::SEEDS]),
            Self::SelfHostedShoot { namespace, name } => {
                Subject::client(&format!("{SHOOT_USER_PREFIX}{namespace}:{name}"), &[group::SHOOTS])
            }
        }
    }

    /// What the names of its requests begin with.
    fn prefix(&self) -> &'static str {
        match self {
            Self::Seed(_) => "seed-csr-",
            Self::SelfHostedShoot { .. } => "shoot-csr-",
        }
    }
}

/// Why no certificate was issued.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The key or the request cannot be made.
    #[error(transparent)]
    Make(#[from] gardener_pki::CertificateError),
    /// The garden refuses.
    #[error("CertificateSigningRequest {name}: {source}")]
    Garden {
        /// The request.
        name: String,
        /// What it said.
        source: kube::Error,
    },
    /// It was decided that there will be none.
    #[error("CertificateSigningRequest {name} {what}, reason: {reason}, message: {message}")]
    Refused {
        /// The request.
        name: String,
        /// How.
        what: &'static str,
        /// The condition's reason.
        reason: String,
        /// The condition's message.
        message: String,
    },
    /// Somebody else has put another request in its place.
    #[error("csr {0:?} changed UIDs")]
    Replaced(String),
    /// Nothing was decided in time, or what was issued is no text.
    #[error("CertificateSigningRequest {name} was not answered with a certificate within {patience:?}")]
    Unanswered {
        /// The request.
        name: String,
        /// How long it was given.
        patience: Duration,
    },
}

/// A certificate that was issued on request.
pub(super) struct Granted {
    /// The certificate and its key.
    pub(super) pair: Issued,
    /// The name of the request.
    pub(super) request: String,
}

/// The name of a request: the same for the same key, subject and usages, and for no others.
fn name_of(prefix: &str, public_key: &[u8], subject: &Subject) -> String {
    let texts = std::iter::once(subject.common_name.as_str())
        .chain(subject.organizations.iter().map(String::as_str))
        .chain(USAGES)
        .map(str::as_bytes);
    let mut hash = Sha512_256::new();
    for part in std::iter::once(public_key).chain(texts) {
        // the sign is in no part after its encoding: two lists that differ are two texts
        hash.update(URL_SAFE_NO_PAD.encode(part));
        hash.update("|");
    }
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(hash.finalize()))
}

/// Asks for a certificate with a new key and waits for it, at most a quarter of an hour.
pub(super) async fn request(
    garden: &Client,
    holder: &Holder,
    validity: Option<Duration>,
) -> Result<Granted, RequestError> {
    let subject = holder.subject();
    let made = gardener_pki::request(&subject)?;
    let public_key = gardener_pki::public_key_of_request(made.certificate.as_bytes()).unwrap_or_default();
    let name = name_of(holder.prefix(), &public_key, &subject);
    let mut wanted = CertificateSigningRequest::default();
    wanted.metadata.name = Some(name.clone());
    wanted.spec = CertificateSigningRequestSpec {
        request: ByteString(made.certificate.into_bytes()),
        signer_name: API_CLIENT.to_owned(),
        usages: Some(USAGES.map(str::to_owned).into()),
        expiration_seconds: validity.map(|own| i32::try_from(own.as_secs()).unwrap_or(i32::MAX)),
        ..CertificateSigningRequestSpec::default()
    };
    let requests: Api<CertificateSigningRequest> = Api::all(garden.clone());
    let told = |source| RequestError::Garden {
        name: name.clone(),
        source,
    };
    let created = requests.create(&PostParams::default(), &wanted).await.map_err(told)?;
    tracing::info!(request = name, "asked for a client certificate");
    let unanswered = RequestError::Unanswered {
        name: name.clone(),
        patience: PATIENCE,
    };
    let certificate = match timeout(PATIENCE, answer(&requests, &created)).await {
        Ok(answer) => answer?,
        Err(_) => return Err(unanswered),
    };
    Ok(Granted {
        pair: Issued {
            certificate,
            key: made.key,
        },
        request: name,
    })
}

/// The certificate, as soon as it is issued.
async fn answer(
    requests: &Api<CertificateSigningRequest>,
    created: &CertificateSigningRequest,
) -> Result<String, RequestError> {
    let name = created.name_any();
    let mut looks = 0;
    loop {
        let found = requests.read(&name).await.map_err(|source| RequestError::Garden {
            name: name.clone(),
            source,
        })?;
        if found.metadata.uid != created.metadata.uid {
            return Err(RequestError::Replaced(name));
        }
        if let Some(certificate) = judge(&found)? {
            return Ok(certificate);
        }
        sleep(LOOKS.delay(looks)).await;
        looks += 1;
    }
}

/// The certificate of a request; none if it is not issued yet. Only an approved request's certificate counts.
fn judge(request: &CertificateSigningRequest) -> Result<Option<String>, RequestError> {
    let Some(status) = &request.status else {
        return Ok(None);
    };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    for (type_, what) in [("Denied", "is denied"), ("Failed", "failed")] {
        if let Some(condition) = find(type_) {
            return Err(RequestError::Refused {
                name: request.name_any(),
                what,
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
            });
        }
    }
    let issued = status.certificate.as_ref().filter(|_| find("Approved").is_some());
    let issued = issued.filter(|certificate| !certificate.0.is_empty());
    Ok(issued.map(|certificate| String::from_utf8_lossy(&certificate.0).into_owned()))
}

#[cfg(test)]
mod tests {
    use gardener_rules::csr_approval::{Request, gardenlets};
    use k8s_openapi::api::certificates::v1::{CertificateSigningRequestCondition, CertificateSigningRequestStatus};

    use super::*;

    #[test]
    fn auth_30_requests_have_the_shapes_that_are_approved() {
        let read = |holder: &Holder| {
            let made = gardener_pki::request(&holder.subject()).unwrap();
            Request::read(made.certificate.as_bytes(), "", &USAGES.map(str::to_owned)).unwrap()
        };
        assert_eq!(gardenlets::seed_client(&read(&Holder::Seed("a".into()))), Ok("a"));
        let shoot = Holder::SelfHostedShoot {
            namespace: "garden-dev".into(),
            name: "a".into(),
        };
        assert_eq!(gardenlets::shoot_client(&read(&shoot)), Ok(("garden-dev", "a")));
        assert_eq!(
            (shoot.prefix(), Holder::Seed("a".into()).prefix()),
            ("shoot-csr-", "seed-csr-")
        );
    }

    #[test]
    fn auth_32_names_belong_to_key_subject_and_usages() {
        let subject = |name: &str, groups: &[&str]| Subject::client(name, groups);
        let name = |key: &[u8], subject: &Subject| name_of("seed-csr-", key, subject);
        let own = name(b"key", &subject("a", &["b"]));
        // printf '%s|' "$(printf key | base64)" … of key, a, b and the usages, by `openssl dgst -sha512-256`
        assert_eq!(own, name(b"key", &subject("a", &["b"])));
        // 32 bytes in base64 without padding
        assert_eq!(own.len(), "seed-csr-".len() + 43);
        for other in [
            name(b"kez", &subject("a", &["b"])),
            name(b"key", &subject("ab", &[])),
            name(b"key", &subject("", &["a", "b"])),
            name(b"key", &subject("a", &["c"])),
        ] {
            assert_ne!(own, other);
        }
    }

    #[test]
    fn auth_32_only_approved_requests_have_certificates() {
        let request = |conditions: &[&str], certificate: &str| CertificateSigningRequest {
            status: Some(CertificateSigningRequestStatus {
                certificate: Some(ByteString(certificate.into())),
                conditions: Some(
                    conditions
                        .iter()
                        .map(|type_| CertificateSigningRequestCondition {
                            type_: (*type_).to_owned(),
                            reason: Some("R".into()),
                            message: Some("M".into()),
                            ..CertificateSigningRequestCondition::default()
                        })
                        .collect(),
                ),
            }),
            ..CertificateSigningRequest::default()
        };
        let told = |conditions: &[&str], certificate: &str| {
            judge(&request(conditions, certificate)).map_err(|error| error.to_string())
        };
        assert_eq!(judge(&CertificateSigningRequest::default()).unwrap(), None);
        assert_eq!(told(&["Approved"], ""), Ok(None));
        assert_eq!(told(&[], "pem"), Ok(None));
        assert_eq!(told(&["Approved"], "pem"), Ok(Some("pem".into())));
        for (type_, what) in [("Denied", "is denied"), ("Failed", "failed")] {
            assert_eq!(
                told(&["Approved", type_], "pem"),
                Err(format!("CertificateSigningRequest  {what}, reason: R, message: M"))
            );
        }
    }
}
