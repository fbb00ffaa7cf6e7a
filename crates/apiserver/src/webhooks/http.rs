//! Webhooks by HTTPS (and by HTTP, where a kubeconfig says so): connections that are kept for the next call, and failures in the words of Go's client.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::call::{Answer, Authorization, Credentials, Endpoint, Transport};
use super::service::ServiceResolver;
use crate::cluster::LogicalCluster;
use crate::egress::{Egress, Network};
use crate::tls;

/// Largest answer that is read.
const ANSWER_LIMIT: usize = 10 * 1024 * 1024;
/// How long a connection is kept without a call.
const IDLE: Duration = Duration::from_secs(90);
/// How many connections to one webhook are kept.
const IDLE_CONNECTIONS: usize = 8;
/// How many authorities' configurations are kept.
const CONFIGURATIONS: usize = 200;

pub(super) type Sender = SendRequest<Full<Bytes>>;
/// The authorities of a webhook, and what is shown to it.
type Shown = (Vec<u8>, Credentials);

/// Posts to webhooks by HTTPS.
pub struct HttpTransport {
    resolver: Arc<dyn ServiceResolver>,
    configurations: Mutex<BTreeMap<Shown, Arc<ClientConfig>>>,
    idle: Mutex<BTreeMap<Endpoint, Vec<(Instant, Sender)>>>,
}

impl HttpTransport {
    /// A transport that finds Services by `resolver`.
    pub fn new(resolver: Arc<dyn ServiceResolver>) -> Self {
        Self {
            resolver,
            configurations: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    /// The TLS configuration for an endpoint: its authorities (the system's without any), and what is shown to it.
    async fn configuration(&self, endpoint: &Endpoint) -> Result<Arc<ClientConfig>, String> {
        let key = (endpoint.ca_bundle.clone(), endpoint.credentials.clone());
        if let Some(known) = self.configurations.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let credentials = &endpoint.credentials;
        let identity = credentials.identity.as_ref().map(|(chain, key)| (&**chain, &**key));
        let config = Arc::new(tls::client(&endpoint.ca_bundle, credentials.insecure, identity).await?);
        let mut configurations = self.configurations.lock();
        if configurations.len() >= CONFIGURATIONS {
            configurations.clear();
        }
        configurations.insert(key, Arc::clone(&config));
        Ok(config)
    }

    /// A kept connection that is still open.
    fn kept(&self, endpoint: &Endpoint) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let connections = idle.get_mut(endpoint)?;
        while let Some((since, sender)) = connections.pop() {
            if sender.is_ready() && since.elapsed() < IDLE {
                return Some(sender);
            }
        }
        idle.remove(endpoint);
        None
    }

    fn keep(&self, endpoint: &Endpoint, sender: Sender) {
        let mut idle = self.idle.lock();
        // a webhook that is never called again must not keep its connections for ever
        idle.retain(|_, connections| {
            connections.retain(|(since, sender)| since.elapsed() < IDLE && !sender.is_closed());
            !connections.is_empty()
        });
        let connections = idle.entry(endpoint.clone()).or_default();
        if connections.len() < IDLE_CONNECTIONS {
            connections.push((Instant::now(), sender));
        }
    }

    async fn connect(
        &self,
        cluster: &LogicalCluster,
        endpoint: &Endpoint,
        host: &str,
        port: u16,
    ) -> Result<Sender, String> {
        let address = match &endpoint.service {
            Some(service) => self.resolver.resolve(cluster, service)?,
            None if host.contains(':') => format!("[{host}]:{port}"),
            None => format!("{host}:{port}"),
        };
        let network = match endpoint.service {
            Some(_) => Network::Cluster,
            None => Network::ControlPlane,
        };
        let egress = &cluster.config().egress;
        if endpoint.is_plain() {
            return dial((egress, network), &address, None).await;
        }
        let config = self.configuration(endpoint).await?;
        let host = match endpoint.credentials.server_name.as_str() {
            "" => host,
            other => other,
        };
        dial((egress, network), &address, Some((&config, host))).await
    }
}

/// Opens a connection to an address of a network; by TLS with this configuration, to a server of this name, if there is one.
///
/// # Errors
/// Why there is no connection, in the words of Go's client.
pub(super) async fn dial(
    (egress, network): (&Egress, Network),
    address: &str,
    tls: Option<(&Arc<ClientConfig>, &str)>,
) -> Result<Sender, String> {
    let stream = egress.connect(network, address).await;
    let stream = stream.map_err(|error| dial_error(address, &error))?;
    let Some((config, host)) = tls else {
        return speak(stream).await;
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
    speak(stream.map_err(|error| tls_error(host, &error))?).await
}

/// Begins to speak HTTP on a stream.
async fn speak<S>(stream: S) -> Result<Sender, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    tokio::spawn(async move {
        // how the connection ended shows in the calls on it
        let _ = connection.await;
    });
    Ok(sender)
}

/// Why a call failed.
pub(super) fn told(error: hyper::Error) -> String {
    let cause = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
    match cause {
        Some(cause) if cause.kind() == io::ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The header that says who asks.
async fn authorization(endpoint: &Endpoint) -> Result<Option<HeaderValue>, String> {
    let value = match &endpoint.credentials.authorization {
        Authorization::None => return Ok(None),
        Authorization::Header(value) => value.clone(),
        Authorization::TokenFile(path) => {
            let token = tokio::fs::read_to_string(path).await;
            let token = token.map_err(|error| format!("failed to read token file {path:?}: {error}"))?;
            format!("Bearer {}", token.trim())
        }
    };
    let mut value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[async_trait]
impl Transport for HttpTransport {
    async fn post(
        &self,
        cluster: &LogicalCluster,
        endpoint: &Endpoint,
        timeout: Duration,
        body: Bytes,
    ) -> Result<Answer, String> {
        let (host, port, path) = endpoint.parts(timeout)?;
        let usual = if endpoint.is_plain() { 80 } else { 443 };
        let port = if port == 0 { usual } else { port };
        let host_header = match port == usual {
            true => host.clone(),
            false => format!("{host}:{port}"),
        };
        let authorization = authorization(endpoint).await?;
        loop {
            let (kept, mut sender) = match self.kept(endpoint) {
                Some(sender) => (true, sender),
                None => (false, self.connect(cluster, endpoint, &host, port).await?),
            };
            let mut request = http::Request::post(&path)
                .header(HOST, &host_header)
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json, */*")
                .header(USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(body.clone()))
                .map_err(|error| error.to_string())?;
            if let Some(authorization) = authorization.clone() {
                request.headers_mut().insert(AUTHORIZATION, authorization);
            }
            let response = match sender.send_request(request).await {
                Ok(response) => response,
                // the other side closed a connection that nobody used: that says nothing about this call
                Err(error) if kept && (error.is_closed() || error.is_canceled() || error.is_incomplete_message()) => {
                    continue;
                }
                Err(error) if error.is_incomplete_message() => return Err("EOF".to_owned()),
                Err(error) => return Err(told(error)),
            };
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_LIMIT).collect().await;
            let body = body.map_err(|error| {
                format!("unexpected error when reading response body. Please retry. Original error: {error}")
            })?;
            if sender.ready().await.is_ok() {
                self.keep(endpoint, sender);
            }
            let content_type = parts.headers.get(CONTENT_TYPE);
            return Ok(Answer {
                status: parts.status.as_u16(),
                content_type: content_type
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
                    .to_owned(),
                body: body.to_bytes(),
            });
        }
    }
}

fn dial_error(address: &str, error: &io::Error) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {address}: connect: connection refused"),
        io::ErrorKind::HostUnreachable => format!("dial tcp {address}: connect: no route to host"),
        io::ErrorKind::NetworkUnreachable => format!("dial tcp {address}: connect: network is unreachable"),
        io::ErrorKind::TimedOut => format!("dial tcp {address}: i/o timeout"),
        // a proxy's word
        io::ErrorKind::Other => error.to_string(),
        // only looking up a name fails without a number of the system's
        _ if error.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {address}: {error}"),
    }
}

fn tls_error(host: &str, error: &io::Error) -> String {
    let verify = |why: String| format!("tls: failed to verify certificate: x509: {why}");
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            verify("certificate signed by unknown authority".to_owned())
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            verify(format!("certificate is not valid for {host}"))
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })) => {
            let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
            verify(match names.is_empty() {
                true => format!("certificate is not valid for any names, but wanted to match {host}"),
                false => format!("certificate is valid for {}, not {host}", names.join(", ")),
            })
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => verify("certificate has expired or is not yet valid".to_owned()),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        )) => verify("certificate specifies an incompatible key usage".to_owned()),
        _ => error.to_string(),
    }
}

/// `DnsName("a.b")` without its wrapping.
fn plain(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}
