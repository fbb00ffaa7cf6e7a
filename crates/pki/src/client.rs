//! Client certificates as who uses them sees them: whose they are, how long they are good, and whether an authority would know them.

use x509_parser::prelude::{FromDer, X509Certificate};

/// What a client certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The user.
    pub common_name: String,
    /// The first second in which it is good, unix seconds.
    pub not_before: i64,
    /// The last second in which it is good, unix seconds.
    pub not_after: i64,
}

/// Why an authority would not let a client certificate in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// One of the two is no certificate.
    #[error("the {0} is no certificate in PEM")]
    Unreadable(&'static str),
    /// It is too early or too late.
    #[error("the certificate is good from {not_before} to {not_after} (unix seconds), now is {now}")]
    Time {
        /// The first second in which it is good.
        not_before: i64,
        /// The last second in which it is good.
        not_after: i64,
        /// What time it is.
        now: i64,
    },
    /// Somebody else signed it.
    #[error("the certificate is not signed by the authority")]
    Stranger,
}

/// Reads the first certificate of a PEM text. None when it is none, or its times are none.
pub fn read_client(pem: &str) -> Option<ClientCertificate> {
    let der = der(pem)?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
    Some(ClientCertificate {
        common_name: name.to_owned(),
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
    })
}

/// Checks a client certificate as a server does when a connection is made: who signed it, and when. Answers its DER form.
///
/// # Errors
/// [`Untrusted`].
pub fn verify_client(certificate: &str, authority: &str, now: i64) -> Result<Vec<u8>, Untrusted> {
    let leaf_der = der(certificate).ok_or(Untrusted::Unreadable("client certificate"))?;
    let authority_der = der(authority).ok_or(Untrusted::Unreadable("authority"))?;
    let unreadable = |what| move |_| Untrusted::Unreadable(what);
    let (_, leaf) = X509Certificate::from_der(&leaf_der).map_err(unreadable("client certificate"))?;
    let (_, authority) = X509Certificate::from_der(&authority_der).map_err(unreadable("authority"))?;
    let (not_before, not_after) = (
        leaf.validity().not_before.timestamp(),
        leaf.validity().not_after.timestamp(),
    );
    if now < not_before || now > not_after {
        return Err(Untrusted::Time {
            not_before,
            not_after,
            now,
        });
    }
    let signed = leaf.verify_signature(Some(authority.public_key())).is_ok();
    if leaf.issuer() != authority.subject() || !signed {
        return Err(Untrusted::Stranger);
    }
    Ok(leaf_der)
}

fn der(text: &str) -> Option<Vec<u8>> {
    let block = pem::parse(text).ok()?;
    (block.tag() == "CERTIFICATE").then(|| block.into_contents())
}

/// The public key of a signing request (PEM), as SubjectPublicKeyInfo in DER. None when it is none.
pub fn public_key_of_request(request: &[u8]) -> Option<Vec<u8>> {
    use x509_parser::certification_request::X509CertificationRequest;
    let (_, block) = x509_parser::pem::parse_x509_pem(request).ok()?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).ok()?;
    Some(parsed.certification_request_info.subject_pki.raw.to_vec())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Issued, Subject, authority, issue, request};

    const HOUR: Duration = Duration::from_secs(3600);

    fn client(by: &Issued) -> String {
        issue(&Subject::client("jane", &[]), by, 10_000, HOUR)
            .unwrap()
            .certificate
    }

    #[test]
    fn client_certificates_are_checked_as_servers_do() {
        let own = authority("ca", 10_000, HOUR * 10).unwrap();
        let namesake = authority("ca", 10_000, HOUR * 10).unwrap();
        let pem = client(&own);
        let read = read_client(&pem).unwrap();
        assert_eq!((read.common_name.as_str(), read.not_after), ("jane", 13_600));
        let check = |now| verify_client(&pem, &own.certificate, now).map(drop);
        assert_eq!(check(10_000), Ok(()));
        assert_eq!(check(13_600), Ok(()));
        assert!(matches!(check(13_601), Err(Untrusted::Time { .. })));
        assert!(matches!(check(read.not_before - 1), Err(Untrusted::Time { .. })));
        let stranger = verify_client(&client(&namesake), &own.certificate, 10_000);
        assert_eq!(stranger, Err(Untrusted::Stranger));
        assert_eq!(
            verify_client("nonsense", &own.certificate, 10_000),
            Err(Untrusted::Unreadable("client certificate"))
        );
        assert_eq!(
            verify_client(&pem, &own.key, 10_000),
            Err(Untrusted::Unreadable("authority"))
        );
    }

    #[test]
    fn requests_tell_their_public_key() {
        let (one, other) = (request(&Subject::client("a", &[])), request(&Subject::client("a", &[])));
        let key = |made: Result<Issued, crate::CertificateError>| {
            public_key_of_request(made.unwrap().certificate.as_bytes()).unwrap()
        };
        let (one, other) = (key(one), key(other));
        assert_ne!(one, other);
        // an elliptic curve key of P-256 with its description
        assert_eq!(one.len(), 91);
        assert_eq!(public_key_of_request(b"no request"), None);
    }
}
