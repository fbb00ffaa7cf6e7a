//! Webhooks by HTTPS: connections that are kept for the next call, and failures in the words of Go's client.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::call::{Answer, Endpoint, Transport};
use super::service::ServiceResolver;
use crate::cluster::LogicalCluster;
use crate::tls;

/// Largest answer that is read.
const ANSWER_LIMIT: usize = 10 * 1024 * 1024;
/// How long a connection is kept without a call.
const IDLE: Duration = Duration::from_secs(90);
/// How many connections to one webhook are kept.
const IDLE_CONNECTIONS: usize = 8;
/// How many authorities' configurations are kept.
const CONFIGURATIONS: usize = 200;

type Sender = SendRequest<Full<Bytes>>;

/// Posts to webhooks by HTTPS.
pub struct HttpTransport {
    resolver: Arc<dyn ServiceResolver>,
    configurations: Mutex<BTreeMap<Vec<u8>, Arc<ClientConfig>>>,
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

    /// The TLS configuration for these authorities; the system's without any.
    async fn configuration(&self, ca_bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
        if let Some(known) = self.configurations.lock().get(ca_bundle) {
            return Ok(Arc::clone(known));
        }
        let authorities = tls::authorities(ca_bundle).await?;
        let provider = tls::provider();
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(authorities.of_servers(&provider))
            .with_no_client_auth();
        let config = Arc::new(config);
        let mut configurations = self.configurations.lock();
        if configurations.len() >= CONFIGURATIONS {
            configurations.clear();
        }
        configurations.insert(ca_bundle.to_vec(), Arc::clone(&config));
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
        let config = self.configuration(&endpoint.ca_bundle).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = TcpStream::connect(&address)
            .await
            .map_err(|error| dial_error(&address, &error))?;
        // a call is one small write; a failure to set this costs only time
        let _ = stream.set_nodelay(true);
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| tls_error(host, &error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // how the connection ended shows in the calls on it
            let _ = connection.await;
        });
        Ok(sender)
    }
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
        let port = if port == 0 { 443 } else { port };
        let host_header = match port {
            443 => host.clone(),
            port => format!("{host}:{port}"),
        };
        loop {
            let (kept, mut sender) = match self.kept(endpoint) {
                Some(sender) => (true, sender),
                None => (false, self.connect(cluster, endpoint, &host, port).await?),
            };
            let request = http::Request::post(&path)
                .header(HOST, &host_header)
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json, */*")
                .header(USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(body.clone()))
                .map_err(|error| error.to_string())?;
            let response = match sender.send_request(request).await {
                Ok(response) => response,
                // the other side closed a connection that nobody used: that says nothing about this call
                Err(error) if kept && (error.is_closed() || error.is_canceled() || error.is_incomplete_message()) => {
                    continue;
                }
                Err(error) if error.is_incomplete_message() => return Err("EOF".to_owned()),
                Err(error) => return Err(error.to_string()),
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
