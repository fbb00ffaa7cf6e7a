//! What connections in both directions share of TLS: cryptography, the reading of authorities, and what handshakes prove.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, SignatureScheme};

use crate::trust::{self, Authorities, Servers};

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
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
