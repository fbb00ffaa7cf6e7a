//! Clients by real connections, and how they are told that a server ends.

use std::pin::pin;

use bytes::Bytes;
use futures::channel::mpsc;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_pki::Subject;
use gardener_store::{MemoryStore, Options};
use http::{HeaderName, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::{http1, http2};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::authn::{Authenticator, Settings};
use crate::authz::configuration::{Configured, Kind};
use crate::authz::{Chain, Configuration};
use crate::tls;
use crate::webhooks::{Authorization, Credentials, Endpoint, EndpointResolver, HttpTransport, Transport};
use crate::{ClusterConfig, Shared, UserInfo, kubernetes, object};

type Outgoing = BoxBody<Bytes, std::convert::Infallible>;

/// A server that lets everybody do everything, while it listens.
struct Listening {
    server: Server,
    closing: Closing,
    address: SocketAddr,
    authority: String,
    /// Certificate and key of alice.
    client: (String, String),
    task: JoinHandle<()>,
}

impl Listening {
    async fn start(change: impl FnOnce(&mut Closing)) -> Self {
        Self::speaking(Protocols::default(), change).await
    }

    async fn speaking(protocols: Protocols, change: impl FnOnce(&mut Closing)) -> Self {
        let day = Duration::from_secs(24 * 3600);
        let now = Clock::system().now().as_second();
        let authority = gardener_pki::authority("ca", now, day).unwrap();
        let subject = Subject::server("localhost", &["localhost"], &[]);
        let own = gardener_pki::issue(&subject, &authority, now, day).unwrap();
        let client = gardener_pki::issue(&Subject::client("alice", &["dev"]), &authority, now, day).unwrap();
        let (resources, documents) = kubernetes::resources().unwrap();
        let server = Server::new(Shared {
            store: Arc::new(MemoryStore::new(object::FORM, Options::default())),
            clock: Clock::system(),
            chance: Chance::seeded(1),
        });
        let everything = Configuration {
            authorizers: vec![Configured::of_kind(Kind::AlwaysAllow)],
        };
        let settings = Settings {
            anonymous: true,
            static_tokens: [("secret".to_owned(), UserInfo::new("bob", &[]))].into(),
            ..Settings::default()
        };
        let config = ClusterConfig::new(
            (Arc::new(resources), Arc::new(documents)),
            Arc::new(Authenticator::new(settings)),
            Arc::new(Chain::new(everything).unwrap()),
            "v1.36.0",
        );
        server.open("c", config);
        let entrances = Entrances::default();
        let believed = Believed {
            clients: Some(&authority.certificate),
            front_proxies: None,
        };
        let entrance = Entrance::open("c", &own.certificate, &own.key, believed, &protocols);
        entrances.set_for_all(entrance.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut closing = Closing::on(CancellationToken::new());
        change(&mut closing);
        let task = tokio::spawn(listen(listener, server.clone(), entrances, closing.clone()));
        Self {
            server,
            closing,
            address,
            authority: authority.certificate,
            client: (client.certificate, client.key),
            task,
        }
    }

    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let mut config = tls::client(self.authority.as_bytes(), false, None).await.unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }

    async fn http1(&self) -> (http1::SendRequest<Outgoing>, JoinHandle<hyper::Result<()>>) {
        let stream = TokioIo::new(self.connect("http/1.1").await);
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        (sender, tokio::spawn(connection))
    }

    async fn http2(&self) -> (http2::SendRequest<Outgoing>, JoinHandle<hyper::Result<()>>) {
        let stream = TokioIo::new(self.connect("h2").await);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake(stream)
            .await
            .unwrap();
        (sender, tokio::spawn(connection))
    }
}

fn get(path: &str) -> Request<Outgoing> {
    let uri = format!("https://localhost{path}");
    Request::get(uri)
        .header("host", "localhost")
        .body(Empty::new().boxed())
        .unwrap()
}

/// A creation whose body comes as it is sent.
fn slow_creation() -> (Request<Outgoing>, mpsc::UnboundedSender<Bytes>) {
    let (sender, receiver) = mpsc::unbounded();
    let frames = futures::StreamExt::map(receiver, |bytes| Ok(Frame::data(bytes)));
    let request = Request::post("https://localhost/api/v1/namespaces")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(BodyExt::boxed(StreamBody::new(frames)))
        .unwrap();
    sender.unbounded_send(Bytes::from_static(b"{\"metadata\":")).unwrap();
    (request, sender)
}

const REST: &[u8] = b"{\"name\":\"a\"}}";

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn creation() -> Request<Outgoing> {
    let body = Full::new(Bytes::from_static(b"{\"metadata\":{\"name\":\"b\"}}"));
    Request::post("https://localhost/api/v1/namespaces")
        .header("content-type", "application/json")
        .body(body.boxed())
        .unwrap()
}

#[tokio::test]
async fn requests_may_have_many_and_large_headers() {
    let own = Listening::start(|_| {}).await;
    let (mut one, _first) = own.http1().await;
    let (mut two, _second) = own.http2().await;
    for (count, size) in [(500, 100), (1, 900 << 10)] {
        let with_headers = || {
            let mut request = get("/version");
            for number in 0..count {
                let name = HeaderName::try_from(format!("x-{number}")).unwrap();
                request
                    .headers_mut()
                    .insert(name, HeaderValue::try_from("a".repeat(size)).unwrap());
            }
            request
        };
        let answers = [
            one.send_request(with_headers()).await.unwrap(),
            two.send_request(with_headers()).await.unwrap(),
        ];
        for answer in answers {
            assert_eq!(answer.status(), StatusCode::OK, "{count} headers of {size} bytes");
            text(answer).await;
        }
    }
}

#[tokio::test]
async fn webhooks_are_shown_what_a_kubeconfig_says() {
    let own = Listening::start(|_| {}).await;
    let (cluster, _) = own.server.cluster("c").unwrap();
    let transport = HttpTransport::new(Arc::new(EndpointResolver));
    // a server tells whom it takes the caller for
    let path = "apis/authentication.k8s.io/v1/selfsubjectreviews";
    let endpoint = |host: &str, credentials: Credentials| Endpoint {
        url: Some(format!("https://{host}:{}/{path}", own.address.port())),
        ca_bundle: own.authority.clone().into_bytes(),
        credentials,
        service: None,
    };
    let ask = async |endpoint: &Endpoint| {
        let answer = transport.post(&cluster, endpoint, Duration::from_secs(10), Bytes::from_static(b"{}"));
        let answer = answer.await?;
        let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        Ok::<_, String>(
            told["status"]["userInfo"]["username"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let (certificate, key) = own.client.clone();
    let nobody = Credentials::default;
    for (credentials, expected) in [
        (nobody(), "system:anonymous"),
        (
            Credentials {
                identity: Some((certificate.into_bytes(), key.into_bytes())),
                ..nobody()
            },
            "alice",
        ),
        (
            Credentials {
                authorization: Authorization::Header("Bearer secret".into()),
                ..nobody()
            },
            "bob",
        ),
        (
            Credentials {
                authorization: Authorization::TokenFile(token.clone()),
                ..nobody()
            },
            "bob",
        ),
    ] {
        assert_eq!(ask(&endpoint("localhost", credentials)).await.as_deref(), Ok(expected));
    }
    // the certificate is for another name than the address
    let error = ask(&endpoint("127.0.0.1", nobody())).await.unwrap_err();
    assert!(
        error.starts_with("tls: failed to verify certificate: x509: "),
        "{error}"
    );
    for credentials in [
        Credentials {
            server_name: "localhost".into(),
            ..nobody()
        },
        Credentials {
            insecure: true,
            ..nobody()
        },
    ] {
        assert!(ask(&endpoint("127.0.0.1", credentials)).await.is_ok());
    }
    std::fs::remove_file(&token).unwrap();
    let of_file = Credentials {
        authorization: Authorization::TokenFile(token),
        ..nobody()
    };
    assert!(
        ask(&endpoint("localhost", of_file))
            .await
            .unwrap_err()
            .starts_with("failed to read token file")
    );
}

/// A client that remembers whose certificates a server asked for, and shows none.
#[derive(Debug, Default)]
struct Asked(parking_lot::Mutex<Vec<Vec<u8>>>);

impl ResolvesClientCert for Asked {
    fn resolve(&self, names: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.lock().extend(names.iter().map(|name| name.to_vec()));
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn clients_are_told_whose_certificates_are_believed() {
    let own = Listening::start(|_| {}).await;
    let asked = Arc::new(Asked::default());
    let mut config = tls::client(own.authority.as_bytes(), false, None).await.unwrap();
    config.client_auth_cert_resolver = asked.clone();
    let stream = TcpStream::connect(own.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    assert!(stream.is_ok());
    let (_, authority) = x509_parser::pem::parse_x509_pem(own.authority.as_bytes()).unwrap();
    let authority = authority.parse_x509().unwrap();
    assert_eq!(*asked.0.lock(), [authority.subject().as_raw()]);
}

#[tokio::test]
async fn who_shows_wrong_credentials_is_told_nothing() {
    let listening = Listening::start(|_| {}).await;
    let (mut client, _connection) = listening.http1().await;
    for path in ["/healthz", "/readyz?verbose", "/version", "/api"] {
        for (token, code) in [(None, 200), (Some("secret"), 200), (Some("wrong"), 401)] {
            let mut request = get(path);
            if let Some(token) = token {
                let value = format!("Bearer {token}").parse().unwrap();
                request.headers_mut().insert(http::header::AUTHORIZATION, value);
            }
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.status(), code, "{path} with {token:?}");
            response.into_body().collect().await.unwrap();
        }
    }
}

#[tokio::test]
async fn each_answer_tells_of_secure_transport_where_that_is_said() {
    let own =
        Listening::start(|closing| closing.transport_security = Some(HeaderValue::from_static("max-age=7"))).await;
    let (mut sender, _connection) = own.http2().await;
    for path in ["/api/v1/namespaces", "/api/v1/namespaces/absent", "/nowhere"] {
        let answer = sender.send_request(get(path)).await.unwrap();
        assert_eq!(answer.headers()["strict-transport-security"], "max-age=7", "{path}");
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers() {
    let own = Listening::start(|closing| {
        closing.origins = Origins::matching(&[r"//example\.com(:|$)".to_owned()]).unwrap();
    })
    .await;
    let (mut sender, _connection) = own.http2().await;
    let mut ask = async |method: Method, origin: &'static str| {
        let mut request = get("/api/v1/namespaces");
        *request.method_mut() = method;
        let headers = request.headers_mut();
        headers.insert("origin", HeaderValue::from_static(origin));
        let answer = sender.send_request(request).await.unwrap();
        let allowed = answer.headers().get("access-control-allow-origin").cloned();
        (answer.status(), allowed)
    };
    let page = Some(HeaderValue::from_static("https://example.com"));
    assert_eq!(
        ask(Method::GET, "https://example.com").await,
        (StatusCode::OK, page.clone())
    );
    assert_eq!(
        ask(Method::OPTIONS, "https://example.com").await,
        (StatusCode::NO_CONTENT, page)
    );
    assert_eq!(ask(Method::GET, "https://other.com").await, (StatusCode::OK, None));
    assert_ne!(
        ask(Method::OPTIONS, "https://other.com").await.0,
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn clients_speak_the_protocols_that_are_allowed() {
    use rustls::{CipherSuite, version};
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
    let anything = Protocols::named("", &[]).unwrap();
    let one_suite = Protocols::named("VersionTLS12", &[suite.to_owned()]).unwrap();
    let newest = Protocols::named("VersionTLS13", &[]).unwrap();
    let old = &[&version::TLS12];
    for (protocols, expected) in [
        (anything, Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
        (one_suite, Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
        (newest, None),
    ] {
        let own = Listening::speaking(protocols, |_| {}).await;
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(own.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(old)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(own.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let suite = shaken
            .ok()
            .and_then(|stream| stream.get_ref().1.negotiated_cipher_suite());
        assert_eq!(suite.map(|suite| suite.suite()), expected);
    }
}

#[tokio::test]
async fn requests_have_a_time() {
    let own = Listening::start(|closing| closing.request_timeout = Some(Duration::from_secs(60))).await;
    let (mut sender, _connection) = own.http2().await;
    let (mut request, _rest) = slow_creation();
    *request.uri_mut() = "https://localhost/api/v1/namespaces?timeout=20ms".parse().unwrap();
    let late = sender.send_request(request).await.unwrap();
    assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(late.headers()["content-type"], "text/plain; charset=utf-8");
    let told: serde_json::Value = serde_json::from_str(&text(late).await).unwrap();
    assert_eq!(
        told["message"],
        "Timeout: request did not complete within the allotted timeout"
    );
    assert_eq!(told["reason"], "Timeout");
    // watches have a time of their own
    let watched = sender.send_request(get("/api/v1/namespaces?watch=true&timeout=1ns&timeoutSeconds=1"));
    assert_eq!(watched.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn clients_by_http2_are_sent_away_by_chance() {
    let stays = Listening::start(|_| {}).await;
    let (mut sender, _connection) = stays.http2().await;
    for _ in 0..3 {
        assert_eq!(
            sender.send_request(get("/version")).await.unwrap().status(),
            StatusCode::OK
        );
    }
    let leaves = Listening::start(|closing| closing.goaway_chance = 1.0).await;
    let (mut sender, connection) = leaves.http2().await;
    // what was asked is answered, and the connection ends without an error
    assert!(
        text(sender.send_request(get("/version")).await.unwrap())
            .await
            .contains("v1.36.0")
    );
    connection.await.unwrap().unwrap();
    assert!(sender.send_request(get("/version")).await.is_err());
    // others know no GOAWAY
    let (mut sender, _connection) = leaves.http1().await;
    for _ in 0..3 {
        let response = sender.send_request(get("/version")).await.unwrap();
        assert_eq!(response.headers().get(CONNECTION), None);
        text(response).await;
    }
}

#[tokio::test]
async fn requests_that_run_end_and_connections_with_them() {
    let own = Listening::start(|closing| closing.patience = Duration::from_secs(60)).await;
    let (mut idle, idle_connection) = own.http1().await;
    text(idle.send_request(get("/version")).await.unwrap()).await;
    let (mut first, first_connection) = own.http1().await;
    let (mut second, second_connection) = own.http2().await;
    let (by_http1, mut rest_of_first) = slow_creation();
    let (by_http2, mut rest_of_second) = slow_creation();
    let mut by_http1 = pin!(first.send_request(by_http1));
    let by_http2 = second.send_request(by_http2);
    let by_http2 = tokio::spawn(by_http2);
    // both requests have come in when they are counted
    while own.closing.running.len() < 2 {
        assert!(futures::poll!(by_http1.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    own.closing.stop();
    idle_connection.await.unwrap().unwrap();
    while TcpStream::connect(own.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    for rest in [&mut rest_of_first, &mut rest_of_second] {
        rest.unbounded_send(Bytes::from_static(REST)).unwrap();
        rest.close_channel();
    }
    let answered = by_http1.await.unwrap();
    assert_eq!(answered.headers().get(CONNECTION).unwrap(), "close");
    let statuses = [answered.status(), by_http2.await.unwrap().unwrap().status()];
    assert!(
        statuses.contains(&StatusCode::CREATED) && statuses.contains(&StatusCode::CONFLICT),
        "{statuses:?}"
    );
    drop(answered);
    drop(first);
    first_connection.await.unwrap().unwrap();
    second_connection.await.unwrap().unwrap();
    own.task.await.unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let own = Listening::start(|closing| closing.patience = Duration::from_millis(50)).await;
    let (mut sender, _connection) = own.http1().await;
    let (request, _rest) = slow_creation();
    let request = tokio::spawn(sender.send_request(request));
    while own.closing.running.is_empty() {
        tokio::task::yield_now().await;
    }
    own.closing.stop();
    own.task.await.unwrap();
    assert!(request.await.unwrap().is_err());
}

#[tokio::test]
async fn watches_end_with_what_has_happened() {
    let own = Listening::start(|closing| closing.patience = Duration::from_secs(60)).await;
    let (mut sender, connection) = own.http2().await;
    let watched = sender.send_request(get("/api/v1/namespaces?watch=true&resourceVersion=0"));
    let watched = watched.await.unwrap();
    assert_eq!(
        sender.send_request(creation()).await.unwrap().status(),
        StatusCode::CREATED
    );
    own.server.end_watches(Duration::ZERO);
    own.closing.stop();
    let told = text(watched).await;
    assert!(
        told.starts_with("{\"type\":\"ADDED\"") && told.ends_with("}\n"),
        "{told}"
    );
    connection.await.unwrap().unwrap();
    own.task.await.unwrap();
}

#[tokio::test]
async fn clients_are_asked_to_come_back_later() {
    let own = Listening::start(|_| {}).await;
    let (mut before, _connection) = own.http1().await;
    let (request, rest) = slow_creation();
    let running = tokio::spawn(before.send_request(request));
    while own.closing.running.is_empty() {
        tokio::task::yield_now().await;
    }
    own.closing.refuse();
    let (mut sender, connection) = own.http1().await;
    let refused = sender.send_request(get("/version")).await.unwrap();
    let header = |name: &str| refused.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(
        (refused.status(), header("retry-after"), header("connection")),
        (StatusCode::TOO_MANY_REQUESTS, "5".into(), "close".into())
    );
    assert_eq!(
        text(refused).await,
        "The apiserver is shutting down, please try again later.\n"
    );
    connection.await.unwrap().unwrap();
    let (mut sender, connection) = own.http2().await;
    let refused = sender.send_request(get("/version")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers().get(CONNECTION), None);
    drop(refused);
    connection.await.unwrap().unwrap();
    // who looks after the server, and servers themselves, are not refused
    let (mut sender, _connection) = own.http1().await;
    assert_eq!(text(sender.send_request(get("/livez")).await.unwrap()).await, "ok");
    let mut request = get("/version");
    request
        .headers_mut()
        .insert(USER_AGENT, HeaderValue::from_static("kube-apiserver/v1.36.3"));
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
    // what ran before ends
    let mut idle = pin!(own.closing.idle());
    assert!(futures::poll!(idle.as_mut()).is_pending());
    rest.unbounded_send(Bytes::from_static(REST)).unwrap();
    rest.close_channel();
    assert_eq!(running.await.unwrap().unwrap().status(), StatusCode::CREATED);
    idle.await;
}

#[test]
fn the_own_cluster_is_taken_off_the_path() {
    let cases = [
        ("/api?limit=1", "/api?limit=1"),
        ("/clusters/seed-a/api/v1?limit=1", "/api/v1?limit=1"),
        ("/clusters/seed-a", "/"),
        ("/clusters/seed-a?x=1", "/?x=1"),
        ("/clusters/seed-ab/api", "/clusters/seed-ab/api"),
        ("/clusters/other/api", "/clusters/other/api"),
    ];
    for (given, wanted) in cases {
        let mut request = http::Request::get(given).body(()).unwrap();
        strip_cluster(&mut request, "seed-a");
        assert_eq!(request.uri().to_string(), wanted);
    }
}
