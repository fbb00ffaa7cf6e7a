//! How etcd is reached.

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// How etcd is reached, and how often its history is cut.
#[derive(Clone, Debug, Default)]
pub struct EtcdConfig {
    /// Client URLs of the members, `http://…` or `https://…`. One of them is used as long as it answers.
    pub endpoints: Vec<String>,
    /// The authorities (PEM) whose certificates are believed.
    pub authorities: Option<String>,
    /// The client certificate with its chain (PEM).
    pub certificate: Option<String>,
    /// The client certificate's key (PEM).
    pub key: Option<String>,
    /// How often the history of etcd is cut; never if none. Of several servers on one etcd only one does it each time.
    pub compaction_interval: Option<Duration>,
}

/// Why a store on etcd cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EtcdError {
    /// The settings cannot be used.
    #[error("etcd cannot be reached with these settings: {0}")]
    Config(String),
    /// A value is encrypted and cannot be read.
    #[error("{0}")]
    Encrypted(Arc<str>),
    /// etcd does not answer, or not as it should.
    #[error("etcd at {endpoints} does not answer ({reason}): check that it runs and that address and certificates fit")]
    Unreachable {
        /// Where it was looked for.
        endpoints: String,
        /// What went wrong.
        reason: Arc<str>,
    },
}

/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the other side may be silent before it is asked whether it is there; as kube-apiserver does.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long it may take to answer that.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

impl EtcdConfig {
    /// One way to each member.
    pub(super) fn ways(&self) -> Result<Vec<Endpoint>, EtcdError> {
        if self.endpoints.is_empty() {
            return Err(EtcdError::Config("there is no server to ask".into()));
        }
        self.endpoints.iter().map(|endpoint| self.way(endpoint)).collect()
    }

    fn way(&self, endpoint: &str) -> Result<Endpoint, EtcdError> {
        let wrong = |why: &dyn std::fmt::Display| EtcdError::Config(format!("server {endpoint:?}: {why}"));
        let url = url::Url::parse(endpoint).map_err(|error| wrong(&error))?;
        let way = Endpoint::from_shared(endpoint.to_owned())
            .map_err(|error| wrong(&error))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        match url.scheme() {
            "http" => Ok(way),
            "https" => {
                let mut tls = ClientTlsConfig::new();
                if let Some(authorities) = &self.authorities {
                    tls = tls.ca_certificate(Certificate::from_pem(authorities));
                }
                match (&self.certificate, &self.key) {
                    (Some(certificate), Some(key)) => tls = tls.identity(Identity::from_pem(certificate, key)),
                    (None, None) => {}
                    _ => return Err(EtcdError::Config("client certificate and key go together".into())),
                }
                way.tls_config(tls)
                    .map_err(|error| wrong(&crate::etcd::client::told(&error)))
            }
            other => Err(wrong(&format_args!("scheme {other:?} is neither http nor https"))),
        }
    }
}
