//! What can be generated, and how it is to be kept.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

/// A secret to generate. Two configurations that differ give different secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretConfig {
    /// The configuration's name; the Secret's begins with it.
    pub name: String,
    /// What is generated.
    pub kind: Kind,
}

/// What is generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// A certificate authority, its own issuer.
    CertificateAuthority {
        /// The subject.
        common_name: String,
    },
    /// A certificate signed by an authority of the same manager.
    Certificate(Certificate),
    /// A P-256 key pair that signs service account tokens.
    ServiceAccountKey,
    /// An Ed25519 key pair in OpenSSH's form.
    SshKeyPair,
    /// User and random password.
    BasicAuth {
        /// The user.
        username: String,
        /// The number of characters of the password.
        password_length: usize,
    },
    /// Random tokens of static users.
    StaticTokens(Vec<Token>),
    /// A random key with a name of its own.
    EncryptionKey {
        /// Its size in bytes.
        length: usize,
        /// Who encrypts with it; empty for whom no other one can be meant.
        #[serde(skip_serializing_if = "String::is_empty")]
        provider: String,
    },
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Who may use it for what.
    pub usage: Usage,
    /// The subject; a client's user.
    pub common_name: String,
    /// The subject's organizations; a client's groups. At most two.
    pub organizations: Vec<String>,
    /// The names under which a server is reached.
    pub dns_names: Vec<String>,
    /// The addresses under which a server is reached.
    pub ip_addresses: Vec<IpAddr>,
    /// Whether the Secret also carries the authority's certificate.
    pub with_ca: bool,
}

impl Certificate {
    /// What is to be certified.
    pub(super) fn subject(&self) -> gardener_pki::Subject {
        gardener_pki::Subject {
            common_name: self.common_name.clone(),
            organizations: self.organizations.clone(),
            dns_names: self.dns_names.clone(),
            ip_addresses: self.ip_addresses.clone(),
            client: matches!(self.usage, Usage::Client | Usage::ServerAndClient),
            server: matches!(self.usage, Usage::Server | Usage::ServerAndClient),
        }
    }
}

/// Who may use a certificate for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Usage {
    /// To be recognized by servers.
    Client,
    /// To be recognized by clients.
    Server,
    /// Both.
    ServerAndClient,
}

/// A static user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// The user's name.
    pub username: String,
    /// The user's id.
    pub id: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// How a secret is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generate {
    /// Whether it belongs to the state that moves with the cluster [CP-72].
    pub persist: bool,
    /// What becomes of its predecessor.
    pub rotation: Rotation,
    /// For certificates: who signs.
    pub signed_by: Option<SignedBy>,
    /// How long certificates are valid; ten years if not given.
    pub validity: Option<Duration>,
    /// After which part of its validity, in percent, it is renewed; 80 if not given [CP-74].
    pub renew_after_percentage: Option<u8>,
}

/// What becomes of the predecessor of a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rotation {
    /// It goes.
    #[default]
    InPlace,
    /// It stays beside the new one until the rotation is completing or it has expired [CP-72].
    KeepOld {
        /// Whether the rotation is completing, so that the old one goes.
        ignore_old: bool,
    },
}

/// Who signs a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBy {
    /// The configuration's name of the authority.
    pub ca: String,
    /// Which of its certificates; none for what fits the certificate's usage [CP-73].
    pub class: Option<super::Class>,
}

impl SignedBy {
    /// By the certificate of the authority that fits the usage [CP-73].
    pub fn ca(name: impl Into<String>) -> Self {
        Self {
            ca: name.into(),
            class: None,
        }
    }
}

impl Kind {
    /// Whether this is an authority.
    pub fn is_ca(&self) -> bool {
        matches!(self, Self::CertificateAuthority { .. })
    }
}
