//! The one TLS listener of a landscape: the host name a client asks for (SNI) leads to a logical cluster, whose own certificate answers and
//! whose own client CAs are believed. Clients that name no host get the default cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY, USER_AGENT};
use http::{HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::RwLock;
use rustls::DistinguishedName;
use rustls::server::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::LazyConfigAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authn::certificate_user;
use crate::cors::{self, Origins};
use crate::handle::Caller;
use crate::respond;
use crate::server::Server;
use crate::tls::{AnyClient, Signatures};
use crate::user::UserInfo;
use crate::{time_limit, trust};

pub use crate::tls::{Protocols, UnknownProtocol};

/// How much is encrypted for a client before it is sent. There are many clients, and slow ones keep it.
const TLS_BUFFER: usize = 32 << 10;
/// How long a client may take to shake hands.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many bytes of headers a request may have; with HTTP/2 those that count for its members are more.
const HEADERS_LIMIT: usize = 1 << 20;
const HEADERS_LIMIT_OF_HTTP_2: u32 = (1 << 20) + 320;
/// How many headers a request by HTTP/1.1 may have. Upstream counts their bytes alone; here room for so many is made for each request.
const HEADERS: usize = 1000;
/// How long a connection by HTTP/1.1 is kept without a request. Headers that come more slowly than that end it, too: upstream gives those 32 seconds, but
/// here it is one time for both, and clients that keep connections believe in this one.
const IDLE: Duration = Duration::from_secs(90);
/// After which silence it is looked whether the other end of a connection is there.
const TCP_SILENCE: Duration = Duration::from_secs(180);

/// Why a certificate, key or CA cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EntranceError {
    /// The PEM text is no certificate or key.
    #[error("{what} is not valid PEM: {why}")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What the reader said.
        why: String,
    },
    /// Certificate and key do not go together, or there are no usable CAs.
    #[error("the serving certificate cannot be used: {0}")]
    Tls(String),
}

/// The CAs (PEM) of certificates that are believed; without any none is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Believed<'a> {
    /// Those of clients.
    pub clients: Option<&'a str>,
    /// Those of proxies, who may tell in headers whom they ask for.
    pub front_proxies: Option<&'a str>,
}

/// The way into one cluster.
#[derive(Clone)]
pub struct Entrance {
    cluster: Arc<str>,
    config: Arc<ServerConfig>,
    authorities: Arc<Authorities>,
}

/// Whose certificates are believed of whom.
struct Authorities {
    clients: Option<trust::Clients>,
    front_proxies: Option<trust::Clients>,
}

impl Authorities {
    /// The names of all, each once.
    fn names(&self) -> Vec<DistinguishedName> {
        let judges = self.clients.iter().chain(&self.front_proxies);
        let all = judges.flat_map(|judges| judges.names());
        let by_name: BTreeMap<Vec<u8>, DistinguishedName> = all.map(|name| (name.as_ref().to_vec(), name)).collect();
        by_name.into_values().collect()
    }

    /// What a client's certificates say of it. As with kube-apiserver a certificate that nobody answers for does not end the handshake: its
    /// request is refused, unless it shows something else that is believed.
    fn judge(&self, chain: &[CertificateDer<'_>]) -> Shown {
        let Some((own, others)) = chain.split_first() else {
            return Shown::default();
        };
        let believed = |judges: &Option<trust::Clients>| {
            let believes = judges.as_ref()?.believe(own, others, UnixTime::now());
            believes.then(|| own.as_ref().to_vec())
        };
        let user = believed(&self.clients).map(|certificate| certificate_user(&certificate));
        Shown {
            refused: !matches!(user, Some(Ok(_))),
            user: user.and_then(Result::ok).flatten(),
            front_proxy: believed(&self.front_proxies),
        }
    }
}

/// What a connection shows of its client.
#[derive(Clone, Default)]
struct Shown {
    user: Option<UserInfo>,
    front_proxy: Option<Vec<u8>>,
    refused: bool,
}

impl Entrance {
    /// An entrance with a serving certificate (chain and key, PEM) and the CAs (PEM) of client certificates.
    ///
    /// # Errors
    /// When any of them cannot be used.
    pub fn new(cluster: &str, certificate: &str, key: &str, client_ca: &str) -> Result<Self, EntranceError> {
        let believed = Believed {
            clients: Some(client_ca),
            front_proxies: None,
        };
        Self::open(cluster, certificate, key, believed, &Protocols::default())
    }

    /// As [`Entrance::new`], for clients that speak one of these protocols.
    ///
    /// # Errors
    /// When a certificate, key or CA cannot be used.
    pub fn open(
        cluster: &str,
        certificate: &str,
        key: &str,
        believed: Believed<'_>,
        protocols: &Protocols,
    ) -> Result<Self, EntranceError> {
        let certificates = |what: &'static str, pem: &str| {
            CertificateDer::pem_slice_iter(pem.as_bytes())
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| EntranceError::Pem {
                    what,
                    why: error.to_string(),
                })
        };
        let chain = certificates("the serving certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| EntranceError::Pem {
            what: "the serving key",
            why: error.to_string(),
        })?;
        let tls = |error: &dyn std::fmt::Display| EntranceError::Tls(error.to_string());
        let provider = protocols.provider();
        let judges = |what: &'static str, pem: Option<&str>| {
            let Some(pem) = pem else { return Ok(None) };
            let trusted = trust::Authorities::of(certificates(what, pem)?);
            let trusted = trusted.ok_or_else(|| tls(&format!("{what} holds no certificate that can be used")))?;
            Ok(Some(trusted.of_clients(&provider)))
        };
        let authorities = Authorities {
            clients: judges("the client CA bundle", believed.clients)?,
            front_proxies: judges("the CA bundle of front proxies", believed.front_proxies)?,
        };
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(protocols.versions())
            .map_err(|error| tls(&error))?;
        let config = match authorities.clients.is_some() || authorities.front_proxies.is_some() {
            true => config.with_client_cert_verifier(Arc::new(AnyClient {
                signatures: Signatures(provider),
                authorities: authorities.names(),
            })),
            false => config.with_no_client_auth(),
        };
        let mut config = config.with_single_cert(chain, key).map_err(|error| tls(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            cluster: cluster.into(),
            config: Arc::new(config),
            authorities: Arc::new(authorities),
        })
    }
}

/// Host names and where they lead. Cheap to clone.
#[derive(Clone, Default)]
pub struct Entrances {
    inner: Arc<RwLock<Hosts>>,
}

#[derive(Default)]
struct Hosts {
    by_name: BTreeMap<String, Entrance>,
    fallback: Option<Entrance>,
    /// Whether unknown host names lead to the fallback, too.
    one_for_all: bool,
}

impl Entrances {
    /// Leads a host name to a cluster, in place of where it led before; `*.domain` stands for all names one label below a domain.
    pub fn set(&self, host: &str, entrance: Entrance) {
        self.inner.write().by_name.insert(host.to_ascii_lowercase(), entrance);
    }

    /// Leads clients that name no host, or an unknown one, to a cluster.
    pub fn set_fallback(&self, entrance: Entrance) {
        self.inner.write().fallback = Some(entrance);
    }

    /// Leads all clients, whatever host they name, to a cluster, unless a name leads elsewhere.
    pub fn set_for_all(&self, entrance: Entrance) {
        let mut hosts = self.inner.write();
        hosts.fallback = Some(entrance);
        hosts.one_for_all = true;
    }

    /// Closes every host name that leads to a cluster.
    pub fn remove_cluster(&self, cluster: &str) {
        self.inner
            .write()
            .by_name
            .retain(|_, entrance| entrance.cluster.as_ref() != cluster);
    }

    fn find(&self, host: Option<&str>) -> Option<Entrance> {
        let hosts = self.inner.read();
        match host {
            None | Some("localhost") => hosts.fallback.clone(),
            Some(host) => {
                let host = host.to_ascii_lowercase();
                let any = host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
                let named = hosts.by_name.get(&host);
                let named = named.or_else(|| hosts.by_name.get(&any?));
                named.or(hosts.fallback.as_ref().filter(|_| hosts.one_for_all)).cloned()
            }
        }
    }
}

/// How a listener ends, and what connections hear before. Clones belong to the same listener.
#[derive(Clone)]
pub struct Closing {
    /// What each answer says of secure transport, if anything.
    pub transport_security: Option<HeaderValue>,
    /// The origins whose web pages may read answers.
    pub origins: Origins,
    /// Share of the requests by HTTP/2 after which a client is told to go on by another connection, so that clients spread over servers.
    pub goaway_chance: f64,
    /// How long requests that run may take to end.
    pub patience: Duration,
    /// How long a request may take that is no watch and the like; for ever if none.
    pub request_timeout: Option<Duration>,
    refusing: CancellationToken,
    stop: CancellationToken,
    running: TaskTracker,
}

impl Closing {
    /// The listener ends when this is cancelled.
    pub fn on(stop: CancellationToken) -> Self {
        Self {
            transport_security: None,
            origins: Origins::default(),
            goaway_chance: 0.0,
            patience: Duration::from_secs(5),
            request_timeout: None,
            refusing: CancellationToken::new(),
            stop,
            running: TaskTracker::new(),
        }
    }

    /// Refuses new requests from now on, and asks their clients to come back later, while connections are still taken.
    pub fn refuse(&self) {
        self.refusing.cancel();
    }

    /// Waits until no request runs, watches not counted; for as long as requests may take.
    pub async fn idle(&self) {
        self.running.close();
        let _ = tokio::time::timeout(self.patience, self.running.wait()).await;
    }

    /// Takes no connections from now on, and ends those that are there when their requests have ended.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether a client is to go on by another connection.
    fn sends_away(&self, server: &Server, version: http::Version) -> bool {
        version == http::Version::HTTP_2
            && self.goaway_chance > 0.0
            && server.shared().chance.fraction() < self.goaway_chance
    }
}

/// What is asked is still answered when other requests are refused: whether the server is well.
const NEVER_REFUSED: [&str; 4] = ["/readyz", "/livez", "/healthz", "/metrics"];

/// Whether a request is refused when new ones are. As upstream's, servers that ask themselves are not.
fn is_refused<B>(request: &http::Request<B>) -> bool {
    let agent = request.headers().get(USER_AGENT).map(|agent| agent.as_bytes());
    let is_server = agent.is_some_and(|agent| agent.starts_with(b"kube-apiserver/"));
    !is_server && !NEVER_REFUSED.iter().any(|path| request.uri().path().starts_with(path))
}

/// Accepts connections until it is to stop, then lets the running requests end, and cuts off what does not end in time.
pub async fn listen(listener: TcpListener, server: Server, entrances: Entrances, closing: Closing) {
    let (tracker, cut) = (TaskTracker::new(), CancellationToken::new());
    loop {
        let accepted = tokio::select! {
            () = closing.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (server, entrances, closing) = (server.clone(), entrances.clone(), closing.clone());
                // its place would be taken three times if it stood in what runs it
                let connection = Box::pin(connection(stream, peer, server, entrances, closing));
                let cut = cut.clone();
                tracker.spawn(async move { cut.run_until_cancelled(connection).await });
            }
            Err(error) => {
                // too many open files and the like: the next attempt may do
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // who comes now is not kept waiting
    drop(listener);
    tracker.close();
    if tokio::time::timeout(closing.patience, tracker.wait()).await.is_err() {
        tracing::warn!(
            connections = tracker.len(),
            "requests did not end in time and are cut off"
        );
        cut.cancel();
        tracker.wait().await;
    }
}

/// Takes `/clusters/<name>` off the path when it names the cluster that the connection leads to. Kubeconfigs of clusters behind the same
/// address differ by it: clients such as kubectl keep what they discovered by URL.
fn strip_cluster<B>(request: &mut http::Request<B>, cluster: &str) {
    let Some(rest) = request
        .uri()
        .path_and_query()
        .and_then(|path| path.as_str().strip_prefix("/clusters/")?.strip_prefix(cluster))
    else {
        return;
    };
    let path = match rest.chars().next() {
        Some('/') => rest.to_owned(),
        None | Some('?') => format!("/{rest}"),
        Some(_) => return,
    };
    let mut parts = request.uri().clone().into_parts();
    // what was a path is one without its beginning
    parts.path_and_query = path.parse().ok();
    if let Ok(uri) = http::Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, server: Server, entrances: Entrances, closing: Closing) {
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new().with_time(TCP_SILENCE);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    let handshake = async {
        let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
        let host = start.client_hello().server_name().map(str::to_owned);
        let Some(entrance) = entrances.find(host.as_deref()) else {
            return Err(std::io::Error::other(format!(
                "no cluster is reached by the name {host:?}"
            )));
        };
        let stream = start.into_stream(entrance.config.clone()).await?;
        Ok((stream, entrance))
    };
    let handshake = closing
        .stop
        .run_until_cancelled(tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake));
    let Some(shaken) = handshake.await else { return };
    let (mut stream, entrance) = match shaken {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!(%peer, "TLS handshake took too long");
            return;
        }
    };
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER));
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let shown = entrance.authorities.judge(chain);
    let caller = Caller {
        cluster: entrance.cluster.to_string(),
        user: None,
        certificate: shown.user,
        front_proxy: shown.front_proxy,
        refused_certificate: shown.refused,
        outside: true,
        from: Some(peer.ip()),
        ..Caller::default()
    };
    let (leaving, stop) = (CancellationToken::new(), closing.stop.clone());
    let leave = leaving.clone();
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        let (server, caller) = (server.clone(), caller.clone());
        strip_cluster(&mut request, &caller.cluster);
        let refused = closing.refusing.is_cancelled() && is_refused(&request);
        if refused || closing.sends_away(&server, request.version()) {
            leave.cancel();
        }
        let running = closing.running.token();
        let transport_security = closing.transport_security.clone();
        let origin = closing.origins.allowed(request.headers());
        let limit = closing.request_timeout.and_then(|most| time_limit::of(&request, most));
        async move {
            let one_by_one = request.version() < http::Version::HTTP_2;
            let only_asks_whether = origin.is_some() && request.method() == Method::OPTIONS;
            let mut response = match refused {
                true => respond::ending(),
                false if only_asks_whether => respond::empty(StatusCode::NO_CONTENT),
                false => server.serve(caller, request, limit).await,
            };
            // it may be on its way before the connection hears that it ends
            if refused && one_by_one {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            if let Some(origin) = origin {
                cors::allow(origin, response.headers_mut());
            }
            if let Some(told) = transport_security {
                response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert(told);
            }
            drop(running);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(HEADERS_LIMIT)
        .max_headers(HEADERS);
    builder.http2().max_header_list_size(HEADERS_LIMIT_OF_HTTP_2);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(%peer, %error, "connection ended with an error");
            }
        }
        // HTTP/2's clients are told by GOAWAY, HTTP/1's by `Connection: close`; what runs ends
        () = async { tokio::select! { () = stop.cancelled() => {}, () = leaving.cancelled() => {} } } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

#[cfg(test)]
mod tests;
