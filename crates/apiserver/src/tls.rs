//! What connections in both directions share of TLS: cryptography, the reading of authorities, and what handshakes prove.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion,
};

use crate::trust::{self, Authorities, Servers};

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A protocol or cipher suite that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownProtocol {
    /// A version.
    #[error("unknown tls version {0:?}: expected VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13")]
    Version(String),
    /// A cipher suite.
    #[error("Cipher suite {0} not supported or doesn't exist")]
    Suite(String),
}

/// Which protocols clients may speak. TLS before 1.2 is never spoken, and those of its cipher suites neither that are no longer safe.
#[derive(Clone, Debug, Default)]
pub struct Protocols {
    only_newest: bool,
    /// Suites of TLS 1.2, by name; all if empty. Those of TLS 1.3 cannot be chosen, as with Go's servers.
    suites: Vec<String>,
}

static ONLY_NEWEST: &[&SupportedProtocolVersion] = &[&TLS13];

/// The names of cipher suites that Go's servers know, and that are not known here.
const OTHER_SUITES: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// A cipher suite's name, which has two spellings for some.
fn canonical(name: &str) -> String {
    name.replace("POLY1305_SHA256", "POLY1305")
}

/// What a cipher suite is called in Go.
fn name_of(suite: &SupportedCipherSuite) -> String {
    // the names of TLS 1.3's suites tell the protocol here
    canonical(&format!("{:?}", suite.suite()).replace("TLS13_", "TLS_"))
}

impl Protocols {
    /// Those of `--tls-min-version` and `--tls-cipher-suites`.
    ///
    /// # Errors
    /// A version or suite that is not known to Go.
    pub fn named(oldest: &str, suites: &[String]) -> Result<Self, UnknownProtocol> {
        let only_newest = match oldest {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => false,
            "VersionTLS13" => true,
            other => return Err(UnknownProtocol::Version(other.to_owned())),
        };
        let own: Vec<String> = provider().cipher_suites.iter().map(name_of).collect();
        let is_known = |suite: &str| own.contains(&canonical(suite)) || OTHER_SUITES.contains(&suite);
        match suites.iter().find(|suite| !is_known(suite)) {
            Some(unknown) => Err(UnknownProtocol::Suite(unknown.clone())),
            None => Ok(Self {
                only_newest,
                suites: suites.iter().map(|suite| canonical(suite)).collect(),
            }),
        }
    }

    /// The cryptography of connections that clients open.
    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = rustls::crypto::ring::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || self.suites.is_empty() || self.suites.contains(&name_of(suite)));
        Arc::new(provider)
    }

    /// The versions of TLS.
    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.only_newest {
            true => ONLY_NEWEST,
            false => rustls::ALL_VERSIONS,
        }
    }
}

/// The authorities of a bundle (PEM); the system's where it is empty.
///
/// # Errors
/// A bundle without a usable certificate, in the words of Go's client.
pub(crate) async fn authorities(ca_bundle: &[u8]) -> Result<Authorities, String> {
    if ca_bundle.is_empty() {
        let loaded = tokio::task::spawn_blocking(Authorities::of_system).await;
        return loaded.map_err(|error| error.to_string());
    }
    Authorities::of_bundle(ca_bundle)
        .ok_or_else(|| "unable to load root certificates: unable to parse bytes as PEM block".to_owned())
}

/// How to speak with a server whose certificate one of the authorities in `ca_bundle` (PEM) signed, or with any if `insecure`; `identity` is the
/// certificate and key (PEM) to show.
///
/// # Errors
/// Certificates or keys that cannot be used.
pub(crate) async fn client(
    ca_bundle: &[u8],
    insecure: bool,
    identity: Option<(&[u8], &[u8])>,
) -> Result<ClientConfig, String> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verifier = match insecure {
        true => Servers::anyone(&provider),
        false => authorities(ca_bundle).await?.of_servers(&provider),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some((certificate, key)) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = CertificateDer::pem_slice_iter(certificate).flatten().collect();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| error.to_string())?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| error.to_string())
}

/// Checks that the other side of a handshake has the key of its certificate; whom the certificate belongs to, others judge.
#[derive(Debug)]
pub(crate) struct Signatures(pub(crate) Arc<CryptoProvider>);

impl Signatures {
    pub(crate) fn tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    pub(crate) fn tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms).or_else(|refused| {
            // certificates of the first version, as plain `openssl x509 -req` makes them, are not read there; their keys are keys like others
            let key = trust::key_of_first_version(certificate).ok_or(refused)?;
            rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
        })
    }

    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes any certificate whose key a client has: the entrance judges it when the client is known.
#[derive(Debug)]
pub(crate) struct AnyClient {
    pub(crate) signatures: Signatures,
    /// The authorities that clients are told, so that they can choose among certificates.
    pub(crate) authorities: Vec<DistinguishedName>,
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
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
