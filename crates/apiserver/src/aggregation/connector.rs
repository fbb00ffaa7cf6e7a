//! Connections to servers behind the cluster: TLS to the address that the request's URI names, with the name that the server's certificate must
//! have. Idle ones are kept, HTTP/2 is spoken with those who can.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ProxyIdentity;
use crate::egress::{self, Egress, Network};
use crate::respond::Body;
use crate::tls;

/// Sends requests to one server.
pub(super) type HttpClient = Client<Connector, Body>;

/// After which silence of a server that speaks HTTP/2 it is asked whether it is there, and how long it may take to say so: as client-go.
const SILENCE: Duration = Duration::from_secs(30);
const PING_PATIENCE: Duration = Duration::from_secs(15);

/// A client for a server whose certificate has the name `host`.
///
/// # Errors
/// Certificates or keys that cannot be used.
pub(super) async fn client(
    host: &str,
    ca_bundle: &[u8],
    insecure: bool,
    identity: Option<&ProxyIdentity>,
    egress: Arc<Egress>,
) -> Result<HttpClient, String> {
    let identity = identity.map(|own| (own.certificate.as_bytes(), own.key.as_bytes()));
    let mut config = tls::client(ca_bundle, insecure, identity).await?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = Connector {
        tls: TlsConnector::from(Arc::new(config)),
        host: ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?,
        egress,
    };
    let client = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(SILENCE)
        .http2_keep_alive_timeout(PING_PATIENCE)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    Ok(client)
}

/// Connects to a server.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
    host: ServerName<'static>,
    egress: Arc<Egress>,
}

impl tower::Service<Uri> for Connector {
    type Response = Tls;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, Result<Tls, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { tls, host, egress } = self.clone();
        Box::pin(async move {
            let address = uri.authority().map(ToString::to_string).unwrap_or_default();
            let stream = egress.connect(Network::Cluster, &address).await?;
            Ok(Tls(TokioIo::new(tls.connect(host, stream).await?)))
        })
    }
}

/// A connection, which tells the client what it speaks.
pub(super) struct Tls(TokioIo<TlsStream<Box<dyn egress::Connection>>>);

impl Connection for Tls {
    fn connected(&self) -> Connected {
        let (_, session) = self.0.inner().get_ref();
        match session.alpn_protocol() {
            Some(b"h2") => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl Read for Tls {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Tls {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
