//! The ways out of a server: straight, or through a proxy that is asked by HTTP's CONNECT, as an EgressSelectorConfiguration says
//! ([`configuration`]). Aggregated servers and webhooks of Services are in the cluster's network; webhooks by URL and issuers in the control plane's.

pub mod configuration;

use std::io;
use std::path::PathBuf;

use gardener_apimachinery::field::go_quote;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Longest answer of a proxy, in bytes, before the tunnel begins; as Go's.
const LONGEST: u64 = 1 << 20;

/// Where a connection leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// To servers beside this one.
    ControlPlane,
    /// To what runs in the cluster.
    Cluster,
}

/// A connection, by whatever way.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection for S {}

/// The ways out of a server; straight ones, unless somebody says otherwise.
#[derive(Clone, Default)]
pub struct Egress {
    control_plane: Option<Proxy>,
    cluster: Option<Proxy>,
}

/// A proxy.
#[derive(Clone)]
struct Proxy {
    place: Place,
    /// What is spoken with it by TLS, and which name its certificate must have.
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Where a proxy listens.
#[derive(Clone, Debug)]
enum Place {
    /// Host and port.
    Tcp(String),
    /// A socket's file.
    Unix(PathBuf),
}

impl Egress {
    /// Opens a connection to an address, host and port, of a network.
    ///
    /// # Errors
    /// The address or the proxy cannot be reached, or the proxy refuses.
    pub(crate) async fn connect(&self, network: Network, address: &str) -> io::Result<Box<dyn Connection>> {
        let proxy = match network {
            Network::ControlPlane => &self.control_plane,
            Network::Cluster => &self.cluster,
        };
        match proxy {
            None => Ok(Box::new(straight(address).await?)),
            Some(proxy) => proxy.connect(address).await,
        }
    }
}

async fn straight(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // a call is one small write; a failure to set this costs only time
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

impl Proxy {
    async fn connect(&self, address: &str) -> io::Result<Box<dyn Connection>> {
        let (mut stream, told): (Box<dyn Connection>, _) = match &self.place {
            Place::Tcp(proxy) => (Box::new(straight(proxy).await?), proxy.clone()),
            Place::Unix(file) => (Box::new(UnixStream::connect(file).await?), file.display().to_string()),
        };
        if let Some((connector, name)) = &self.tls {
            stream = Box::new(connector.connect(name.clone(), stream).await?);
        }
        tunnel(&mut stream, &told, address).await?;
        Ok(stream)
    }
}

/// Asks a proxy for a way to an address.
async fn tunnel(stream: &mut Box<dyn Connection>, proxy: &str, address: &str) -> io::Result<()> {
    let question = format!("CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    stream.flush().await?;
    let unread = |why: String| {
        io::Error::other(format!(
            "reading HTTP response from CONNECT to {address} via proxy {proxy} failed: {why}"
        ))
    };
    let mut answer = Vec::new();
    // byte for byte: what follows is the tunnel's, whose other end may speak first
    let mut limited = stream.take(LONGEST);
    while !answer.ends_with(b"\r\n\r\n") {
        match limited.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(unread("unexpected EOF".to_owned()));
            }
            Err(error) => return Err(unread(error.to_string())),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let first = text.lines().next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split_once(' '));
    let Some((_, status)) = status else {
        return Err(unread(format!("malformed HTTP response {}", go_quote(first))));
    };
    match status.split(' ').next() {
        Some("200") => Ok(()),
        code => Err(io::Error::other(format!(
            "proxy error from {proxy} while dialing {address}, code {}: {status}",
            code.unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gardener_apimachinery::clock::Clock;
    use gardener_pki::Subject;
    use parking_lot::Mutex;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio::io::duplex;

    use super::*;

    /// What comes of an answer, and what the proxy was asked.
    async fn answered(answer: &str) -> (Result<String, String>, String) {
        let (own, mut proxy) = duplex(1 << 16);
        proxy.write_all(answer.as_bytes()).await.unwrap();
        let mut stream: Box<dyn Connection> = Box::new(own);
        let made = tunnel(&mut stream, "proxy:1", "10.0.0.1:443").await;
        let mut asked = vec![0; 1 << 10];
        let length = proxy.read(&mut asked).await.unwrap();
        drop(proxy);
        let found = match made {
            Ok(()) => {
                let mut rest = String::new();
                stream.read_to_string(&mut rest).await.unwrap();
                Ok(rest)
            }
            Err(error) => Err(error.to_string()),
        };
        (found, String::from_utf8_lossy(&asked[..length]).into_owned())
    }

    #[tokio::test]
    async fn what_follows_the_answer_is_the_tunnels() {
        let (found, asked) = answered("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello").await;
        assert_eq!(found.as_deref(), Ok("hello"));
        assert_eq!(asked, "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    }

    #[tokio::test]
    async fn refusals_are_told() {
        for (answer, expected) in [
            (
                "HTTP/1.1 403 Forbidden\r\n\r\n",
                "proxy error from proxy:1 while dialing 10.0.0.1:443, code 403: 403 Forbidden",
            ),
            (
                "SSH-2.0\r\n\r\n",
                "reading HTTP response from CONNECT to 10.0.0.1:443 via proxy proxy:1 failed: malformed HTTP response \"SSH-2.0\"",
            ),
        ] {
            assert_eq!(answered(answer).await.0, Err(expected.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_proxy_that_does_not_come_to_an_end_is_left() {
        let (own, mut proxy) = duplex(1 << 16);
        let flooding = tokio::spawn(async move { while proxy.write_all(&[b'x'; 1 << 12]).await.is_ok() {} });
        let mut stream: Box<dyn Connection> = Box::new(own);
        let error = tunnel(&mut stream, "p", "a:1").await.unwrap_err().to_string();
        assert!(error.ends_with("failed: unexpected EOF"), "{error}");
        drop(stream);
        flooding.await.unwrap();
    }

    /// A proxy's connection: takes what it is asked for, and goes there.
    async fn serve(mut stream: Box<dyn Connection>, asked: Arc<Mutex<Vec<String>>>) {
        let mut question = Vec::new();
        while !question.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            question.push(byte);
        }
        let question = String::from_utf8(question).unwrap();
        let address = question.split(' ').nth(1).unwrap().to_owned();
        asked.lock().push(address.clone());
        let answer = b"HTTP/1.1 200 OK\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        let mut target = TcpStream::connect(address).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut target).await;
    }

    /// A server that sends back what it gets; answers its address.
    async fn echo() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        address
    }

    /// What comes back from an address of a network.
    async fn echoed(egress: &Egress, network: Network, address: &str) -> io::Result<String> {
        let mut stream = egress.connect(network, address).await?;
        stream.write_all(b"hello").await?;
        let mut back = [0; 5];
        stream.read_exact(&mut back).await?;
        Ok(String::from_utf8_lossy(&back).into_owned())
    }

    async fn egress(connection: &str) -> Egress {
        let text = format!(
            "{{apiVersion: apiserver.k8s.io/v1beta1, kind: EgressSelectorConfiguration, egressSelections: [{{name: cluster, connection: {connection}}}, {{name: etcd, connection: {{proxyProtocol: Direct}}}}]}}"
        );
        let read = configuration::Configuration::read(&text, |file| std::path::Path::new(file).exists()).unwrap();
        read.egress().await.unwrap()
    }

    #[tokio::test]
    async fn a_proxy_by_a_socket_leads_into_the_clusters_network_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proxy");
        let listener = tokio::net::UnixListener::bind(&file).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(Box::new(stream), Arc::clone(&told)));
            }
        });
        let transport = format!(
            "{{proxyProtocol: HTTPConnect, transport: {{uds: {{udsName: {}}}}}}}",
            file.display()
        );
        let (egress, address) = (egress(&transport).await, echo().await);
        assert_eq!(echoed(&egress, Network::ControlPlane, &address).await.unwrap(), "hello");
        assert_eq!(*asked.lock(), Vec::<String>::new());
        assert_eq!(echoed(&egress, Network::Cluster, &address).await.unwrap(), "hello");
        assert_eq!(*asked.lock(), [address]);
    }

    #[tokio::test]
    async fn a_proxy_by_tls_sees_who_asks() {
        let now = Clock::system().now().as_second() - 3600;
        let day = std::time::Duration::from_secs(86_400);
        let authority = gardener_pki::authority("proxies", now, day).unwrap();
        let server = gardener_pki::issue(&Subject::server("vpn", &["vpn"], &[]), &authority, now, day).unwrap();
        let client = gardener_pki::issue(&Subject::client("kube-apiserver", &[]), &authority, now, day).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap())
            .unwrap();
        let provider = crate::tls::provider();
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(server.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(server.key.as_bytes()).unwrap(),
            )
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, told) = (acceptor.clone(), Arc::clone(&told));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(Box::new(stream), told).await;
                    }
                });
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (ca, certificate, key) = (
            file("ca", &authority.certificate),
            file("certificate", &client.certificate),
            file("key", &client.key),
        );
        let transport = |name: &str| {
            format!(
                "{{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: 'https://127.0.0.1:{port}', tlsConfig: {{caBundle: {ca}, clientCert: {certificate}, clientKey: {key}, tlsServerName: {name}}}}}}}}}"
            )
        };
        let address = echo().await;
        let own = egress(&transport("vpn")).await;
        assert_eq!(echoed(&own, Network::Cluster, &address).await.unwrap(), "hello");
        assert_eq!(asked.lock().as_slice(), std::slice::from_ref(&address));
        let other = egress(&transport("other")).await;
        let error = echoed(&other, Network::Cluster, &address)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("certificate"), "{error}");
        assert_eq!(asked.lock().len(), 1);
    }
}
