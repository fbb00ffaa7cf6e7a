//! The keys of an embedded cluster: its authority, and the key that signs service account tokens.
//!
//! They are kept in the store beside the cluster's objects, outside every API, so that a restart finds them and a client's kubeconfig stays good.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::authn::Settings;
use gardener_apiserver::listen::{Entrance, EntranceError};
use gardener_apiserver::tokens::{KeyError, SigningKey};
use gardener_apiserver::{Shared, UserInfo};
use gardener_pki::{CertificateError, Issued, Subject};
use gardener_store::{Change, CommitError, Expect, Key, Topic};
use serde::{Deserialize, Serialize};

/// Authorities live ten years, as upstream's.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Certificates of administrators and servers live a year; new ones are made at every start.
const CERTIFICATE_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a cluster's keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A token key could not be made or read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store refused.
    #[error("the keys of cluster {cluster:?} cannot be stored: {source}")]
    Store {
        /// Whose keys.
        cluster: String,
        /// What the store said.
        source: CommitError,
    },
    /// What is stored is no set of keys.
    #[error("the stored keys of cluster {cluster:?} cannot be read: {source}")]
    Damaged {
        /// Whose keys.
        cluster: String,
        /// What the reader said.
        source: serde_json::Error,
    },
    /// The keys do not make a TLS entrance.
    #[error(transparent)]
    Entrance(#[from] EntranceError),
}

#[derive(Serialize, Deserialize)]
struct Stored {
    certificate: String,
    key: String,
    token_key: String,
}

/// The keys of one embedded cluster.
#[derive(Clone)]
pub struct Identity {
    cluster: String,
    /// The authority of servers and clients alike.
    pub authority: Issued,
    token_key: Arc<SigningKey>,
    shared: Shared,
}

impl Identity {
    /// The keys of a cluster, made on first use.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub async fn of(shared: &Shared, cluster: &str) -> Result<Self, IdentityError> {
        let key = Key::new(
            Topic::new("landscape.gardener.cloud", "identities"),
            format!("{cluster}/keys"),
        );
        let entry = match shared.store.get(&key) {
            Some(entry) => entry,
            None => {
                let authority =
                    gardener_pki::authority("kubernetes", shared.clock.now().as_second(), AUTHORITY_VALIDITY)?;
                let stored = Stored {
                    certificate: authority.certificate,
                    key: authority.key,
                    token_key: SigningKey::generate_pem()?,
                };
                let value = serde_json::to_vec(&stored).map_err(|source| IdentityError::Damaged {
                    cluster: cluster.to_owned(),
                    source,
                })?;
                let put = Change::Put {
                    key,
                    expect: Expect::Absent,
                    value: value.into(),
                };
                let failed = |source| IdentityError::Store {
                    cluster: cluster.to_owned(),
                    source,
                };
                match shared.store.commit(put).await {
                    Ok(done) => done.entry,
                    // somebody else was first: theirs are the keys
                    Err(CommitError::Conflict {
                        current: Some(current), ..
                    }) => current,
                    Err(error) => return Err(failed(error)),
                }
            }
        };
        let stored: Stored = serde_json::from_slice(&entry.value()).map_err(|source| IdentityError::Damaged {
            cluster: cluster.to_owned(),
            source,
        })?;
        Ok(Self {
            cluster: cluster.to_owned(),
            authority: Issued {
                certificate: stored.certificate,
                key: stored.key,
            },
            token_key: Arc::new(SigningKey::from_pem(&stored.token_key)?),
            shared: shared.clone(),
        })
    }

    fn now(&self) -> i64 {
        self.shared.clock.now().as_second()
    }

    /// How the cluster authenticates callers and makes tokens.
    pub fn authentication(&self, issuer: &str) -> Settings {
        Settings {
            signer: Some(self.token_key.clone()),
            issuer: issuer.to_owned(),
            audiences: vec![issuer.to_owned(), "kubernetes".to_owned(), "gardener".to_owned()],
            bootstrap_tokens: true,
            ..Settings::default()
        }
    }

    /// A client certificate of a user.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn client_certificate(&self, user: &UserInfo, validity: Option<Duration>) -> Result<Issued, IdentityError> {
        let groups: Vec<&str> = user
            .groups
            .iter()
            .map(String::as_str)
            .filter(|group| *group != gardener_apiserver::user::AUTHENTICATED)
            .collect();
        let subject = Subject::client(&user.name, &groups);
        Ok(gardener_pki::issue(
            &subject,
            &self.authority,
            self.now(),
            validity.unwrap_or(CERTIFICATE_VALIDITY),
        )?)
    }

    /// A serving certificate for the given host names.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn serving_certificate(&self, dns_names: &[&str], addresses: &[IpAddr]) -> Result<Issued, IdentityError> {
        let subject = Subject::server("kube-apiserver", dns_names, addresses);
        Ok(gardener_pki::issue(
            &subject,
            &self.authority,
            self.now(),
            CERTIFICATE_VALIDITY,
        )?)
    }

    /// The way in by TLS for the given host names.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn entrance(&self, dns_names: &[&str], addresses: &[IpAddr]) -> Result<Entrance, IdentityError> {
        let serving = self.serving_certificate(dns_names, addresses)?;
        Ok(Entrance::new(
            &self.cluster,
            &serving.certificate,
            &serving.key,
            &self.authority.certificate,
        )?)
    }
}
