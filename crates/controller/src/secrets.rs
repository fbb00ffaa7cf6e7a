//! The secrets manager: makes, names, keeps, renews and removes the certificates, keys and passwords of a control plane
//! [CP-70..74], [CP-76]. Their copies for users [CP-75] and the phases of a rotation are not here.

mod config;
mod keys;
mod manager;
mod naming;
mod rules;

pub use config::{Certificate, Generate, Kind, Rotation, SecretConfig, SignedBy, Token, Usage};
pub use gardener_pki::CertificateError;
pub use manager::{Manager, ManagerError, Options};
pub use naming::{LABEL_ISSUED_AT, LABEL_NAME, LABEL_PERSIST, LABEL_VALID_UNTIL, label};
pub use rules::{Class, is_renewal_due};

/// Keys of the data of generated secrets.
pub mod data {
    /// The certificate of an authority.
    pub const CA_CERTIFICATE: &str = "ca.crt";
    /// The private key of an authority.
    pub const CA_KEY: &str = "ca.key";
    /// A certificate.
    pub const CERTIFICATE: &str = "tls.crt";
    /// A certificate's private key.
    pub const KEY: &str = "tls.key";
    /// The certificates of an authority's bundle.
    pub const BUNDLE: &str = "bundle.crt";
    /// The public keys of a service account key bundle.
    pub const KEY_BUNDLE: &str = "bundle.key";
    /// The private key of an SSH or service account key pair.
    pub const PRIVATE_KEY: &str = "id_rsa";
    /// The public key of an SSH or service account key pair.
    pub const PUBLIC_KEY: &str = "id_rsa.pub";
    /// The user of basic authentication.
    pub const USERNAME: &str = "username";
    /// The password of basic authentication.
    pub const PASSWORD: &str = "password";
    /// User and hashed password as web servers read them.
    pub const AUTH: &str = "auth";
    /// Static tokens as the Kubernetes API server reads them.
    pub const STATIC_TOKENS: &str = "static_tokens.csv";
    /// The name of an encryption key.
    pub const ENCRYPTION_KEY_NAME: &str = "key";
    /// An encryption key, base64 encoded.
    pub const ENCRYPTION_SECRET: &str = "secret";
    /// Who encrypts with a key; not there for `aescbc`.
    pub const ENCRYPTION_PROVIDER: &str = "provider";
}
