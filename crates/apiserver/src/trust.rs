//! Whom certificates are believed, by the rules of Go's client: those that chain to an authority, and those that stand among the authorities
//! themselves, whether they may sign others or not. Many tests and small servers hand out their serving certificate as its own authority.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Version;

use crate::tls::Signatures;

/// Certificates that are believed, and those that chain to them.
pub(crate) struct Authorities {
    listed: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
}

/// What a certificate is to be good for.
#[derive(Clone, Copy)]
enum Purpose {
    Server,
    Client,
}

impl Authorities {
    /// Those of a bundle (PEM); what is no certificate is left out. `None` if nothing is left.
    pub(crate) fn of_bundle(bundle: &[u8]) -> Option<Self> {
        Self::of(CertificateDer::pem_slice_iter(bundle).flatten().collect())
    }

    /// These. `None` if none of them can be used.
    pub(crate) fn of(certificates: Vec<CertificateDer<'static>>) -> Option<Self> {
        let authorities = Self::made_of(certificates);
        (!authorities.roots.is_empty()).then_some(authorities)
    }

    /// Those of the system. Reads files.
    pub(crate) fn of_system() -> Self {
        Self::made_of(rustls_native_certs::load_native_certs().certs)
    }

    fn made_of(certificates: Vec<CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        Self {
            listed: certificates,
            roots: Arc::new(roots),
        }
    }

    /// Judges servers.
    pub(crate) fn of_servers(self, provider: &Arc<CryptoProvider>) -> Arc<Servers> {
        // without any authority nobody is believed
        let chains = WebPkiServerVerifier::builder_with_provider(self.roots, Arc::clone(provider)).build();
        Arc::new(Servers {
            believed: Believed::Those {
                listed: self.listed,
                chains: chains.ok(),
            },
            signatures: Signatures(Arc::clone(provider)),
        })
    }

    /// Judges clients.
    pub(crate) fn of_clients(self, provider: &Arc<CryptoProvider>) -> Clients {
        let chains = WebPkiClientVerifier::builder_with_provider(self.roots, Arc::clone(provider)).build();
        Clients {
            listed: self.listed,
            chains: chains.ok(),
        }
    }
}

/// Whether a certificate that is believed by itself may be used, now and for this.
fn usable(certificate: &CertificateDer<'_>, now: UnixTime, purpose: Purpose) -> Result<(), CertificateError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet);
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired);
    }
    let unknown = |extension: &ParsedExtension<'_>| matches!(extension, ParsedExtension::UnsupportedExtension { .. });
    if parsed
        .extensions()
        .iter()
        .any(|extension| extension.critical && unknown(extension.parsed_extension()))
    {
        return Err(CertificateError::UnhandledCriticalExtension);
    }
    let usage = parsed
        .extended_key_usage()
        .map_err(|_| CertificateError::BadEncoding)?
        .map(|extension| extension.value);
    let fits = usage.is_none_or(|usage| {
        usage.any
            || match purpose {
                Purpose::Server => usage.server_auth,
                Purpose::Client => usage.client_auth,
            }
    });
    if fits {
        Ok(())
    } else {
        Err(CertificateError::InvalidPurpose)
    }
}

/// Which servers are believed.
#[derive(Debug)]
enum Believed {
    /// Every one that has the key of its certificate.
    Anyone,
    Those {
        listed: Vec<CertificateDer<'static>>,
        chains: Option<Arc<WebPkiServerVerifier>>,
    },
}

/// Judges the certificates of servers.
#[derive(Debug)]
pub(crate) struct Servers {
    believed: Believed,
    signatures: Signatures,
}

impl Servers {
    /// Believes every server.
    pub(crate) fn anyone(provider: &Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self {
            believed: Believed::Anyone,
            signatures: Signatures(Arc::clone(provider)),
        })
    }
}

impl ServerCertVerifier for Servers {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Believed::Those { listed, chains } = &self.believed else {
            return Ok(ServerCertVerified::assertion());
        };
        if listed.iter().any(|listed| listed == own) {
            usable(own, now, Purpose::Server)?;
            verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let chains = chains.as_ref().ok_or(CertificateError::UnknownIssuer)?;
        chains.verify_server_cert(own, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}

/// Judges the certificates of clients, whose keys the handshake has proved.
pub(crate) struct Clients {
    listed: Vec<CertificateDer<'static>>,
    chains: Option<Arc<dyn ClientCertVerifier>>,
}

impl Clients {
    /// The names of the authorities.
    pub(crate) fn names(&self) -> impl Iterator<Item = DistinguishedName> {
        let listed = self.listed.iter();
        listed.filter_map(|authority| {
            let (_, parsed) = X509Certificate::from_der(authority).ok()?;
            Some(parsed.subject().as_raw().to_vec().into())
        })
    }

    /// Whether a certificate is believed; `others` came with it.
    pub(crate) fn believe(&self, own: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: UnixTime) -> bool {
        if self.listed.iter().any(|listed| listed == own) {
            return usable(own, now, Purpose::Client).is_ok();
        }
        let chains = self.chains.as_ref();
        chains.is_some_and(|chains| chains.verify_client_cert(own, others, now).is_ok())
            || self
                .listed
                .iter()
                .any(|authority| signed_in_first_version(own, authority, now))
    }
}

/// A certificate of X.509's first version, which has no extensions. Go reads it, rustls does not.
fn first_version<'c>(certificate: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    (parsed.version() == X509Version::V1).then_some(parsed)
}

/// The key of a certificate of the first version.
pub(crate) fn key_of_first_version(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    first_version(certificate).map(|parsed| SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec()))
}

/// Whether an authority signed a certificate of the first version that can be used now.
fn signed_in_first_version(own: &CertificateDer<'_>, authority: &CertificateDer<'_>, now: UnixTime) -> bool {
    let (Some(parsed), Ok((_, issuer))) = (first_version(own), X509Certificate::from_der(authority)) else {
        return false;
    };
    issuer.is_ca()
        && parsed.issuer() == issuer.subject()
        && parsed.verify_signature(Some(issuer.public_key())).is_ok()
        && usable(own, now, Purpose::Client).is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gardener_pki::Subject;

    use super::*;

    const NOW: i64 = 1_800_000_000;
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn at(seconds: i64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds.try_into().unwrap()))
    }

    #[test]
    fn a_certificate_is_believed_by_its_authority_and_by_itself() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authority = gardener_pki::authority("ca", NOW, DAY).unwrap();
        let issue = |subject: &Subject| gardener_pki::issue(subject, &authority, NOW, DAY).unwrap().certificate;
        let (server, other) = (
            issue(&Subject::server("a", &["localhost"], &[])),
            issue(&Subject::server("b", &["localhost"], &[])),
        );
        let client = issue(&Subject::client("alice", &[]));
        let judge = |bundle: &str, certificate: &str, name: &str, when: i64| {
            let servers = Authorities::of_bundle(bundle.as_bytes()).unwrap().of_servers(&provider);
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let verified = servers.verify_server_cert(&der(certificate), &[], &name, &[], at(when));
            match verified {
                Ok(_) => "believed".to_owned(),
                Err(rustls::Error::InvalidCertificate(why)) => format!("{why:?}")
                    .split([' ', '(', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                Err(other) => other.to_string(),
            }
        };
        let (host, later) = ("localhost", NOW + 2 * 24 * 3600);
        for (bundle, certificate, name, when, wanted) in [
            (&authority.certificate, &server, host, NOW, "believed"),
            (&server, &server, host, NOW, "believed"),
            (&server, &server, "elsewhere", NOW, "NotValidForNameContext"),
            (&server, &server, host, later, "Expired"),
            (&server, &other, host, NOW, "UnknownIssuer"),
            (&client, &client, host, NOW, "InvalidPurpose"),
        ] {
            assert_eq!(judge(bundle, certificate, name, when), wanted, "{name} at {when}");
        }
        let clients = |bundle: &str, certificate: &str| {
            let clients = Authorities::of_bundle(bundle.as_bytes()).unwrap().of_clients(&provider);
            clients.believe(&der(certificate), &[], at(NOW))
        };
        assert!(clients(&client, &client) && clients(&authority.certificate, &client));
        assert!(!clients(&server, &server) && !clients(&server, &client));
        assert!(Authorities::of_bundle(b"no certificate").is_none());
    }

    /// Made by `openssl req -x509` and `openssl x509 -req`, which makes certificates of the first version; good until the year 2126.
    const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBfzCCASWgAwIBAgIURH55K3nv14z0hPpLE/aZaW8hS18wCgYIKoZIzj0EAwIw\n\
        FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyMjEzMTEwOFoYDzIxMjYxMDI5\n\
        MTMxMTA4WjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO\n\
        PQMBBwNCAARALqJj9NwoZpxwoyUhnFikdXeJF/1yJr0kFch5BqqH42PTATBmZwL5\n\
        Q/7OZnGL2wFqzILBi5zzsai4XjpvD2fno1MwUTAdBgNVHQ4EFgQUpHmpxTOKhLdJ\n\
        TF5U8V2hd72prEYwHwYDVR0jBBgwFoAUpHmpxTOKhLdJTF5U8V2hd72prEYwDwYD\n\
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBC1ZiPfMePOuUdmixI5jH1\n\
        z7KzCJmbNJsQIRTAuJOhxQIhAKLilmxx8l0gr0GDKNZw0rZ5yggjlI2VzPhclu0r\n\
        W17d\n\
        -----END CERTIFICATE-----\n\
";
    const FIRST_VERSION: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBODCB4AIUS8UUIfSYl/RDYWLnfnAP7zxQpRIwCgYIKoZIzj0EAwIwFDESMBAG\n\
        A1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyMjEzMTEwOFoYDzIxMjYxMDI5MTMxMTA4\n\
        WjApMRcwFQYDVQQKDA5zeXN0ZW06bWFzdGVyczEOMAwGA1UEAwwFYWxpY2UwWTAT\n\
        BgcqhkjOPQIBBggqhkjOPQMBBwNCAAQEEPv74T8y8pVMYbTHG62QTvI/UTOQsgGW\n\
        uzgq7Tu4FVD9Um0MwHXtdwjJpL9UfS/sOWmYu8KFBCCJQfBhfqwMMAoGCCqGSM49\n\
        BAMCA0cAMEQCIHmbc0KUcPa2XVU8ngaK2TztKU/xq+K+hqsDuAK9ggTwAiAZ3BLi\n\
        k0CO27Mf0VvhJldZgmhhno1lwaXZG+uTjd4h4g==\n\
        -----END CERTIFICATE-----\n\
";

    #[test]
    fn certificates_of_the_first_version_are_believed_too() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let believed = |bundle: &str, when: i64| {
            let clients = Authorities::of_bundle(bundle.as_bytes()).unwrap().of_clients(&provider);
            clients.believe(&der(FIRST_VERSION), &[], at(when))
        };
        assert!(believed(AUTHORITY, NOW));
        assert!(!believed(AUTHORITY, NOW - 100 * 24 * 3600), "it is not valid yet");
        assert!(!believed(AUTHORITY, 5_000_000_000), "it has expired");
        let same_name = gardener_pki::authority("authority", NOW, DAY).unwrap();
        assert!(!believed(&same_name.certificate, NOW), "another key has signed it");
        assert!(key_of_first_version(&der(FIRST_VERSION)).is_some());
        assert!(key_of_first_version(&der(AUTHORITY)).is_none());
    }
}
