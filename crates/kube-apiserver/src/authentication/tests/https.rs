//! Servers by HTTPS on this machine: an issuer of tokens, and a webhook that reads them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::tokens::SigningKey;
use gardener_pki::{Issued, Subject};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

/// What is asked: path, bearer token and body.
struct Asked {
    path: String,
    bearer: Option<String>,
    body: Bytes,
}

/// Status code and body.
type Answer = (u16, String);

fn authority() -> Issued {
    let now = Clock::system().now().as_second() - 3600;
    gardener_pki::authority("issuers", now, Duration::from_secs(86_400)).unwrap()
}

/// Serves by HTTPS on a free port until the runtime ends; gives the port.
async fn serve(authority: &Issued, answer: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> u16 {
    let now = Clock::system().now().as_second() - 3600;
    let subject = Subject::server("localhost", &["localhost"], &[]);
    let issued = gardener_pki::issue(&subject, authority, now, Duration::from_secs(86_400)).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listener = tokio::net::TcpListener::bind((local, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(|request: Request<Incoming>| {
                    let answer = Arc::clone(&answer);
                    async move {
                        let (parts, body) = request.into_parts();
                        let bearer = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
                        let asked = Asked {
                            path: parts.uri.path().to_owned(),
                            bearer: bearer
                                .and_then(|value| value.strip_prefix("Bearer "))
                                .map(str::to_owned),
                            body: body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
                        };
                        let (status, body) = answer(asked);
                        let response = Response::builder()
                            .status(status)
                            .header("content-type", "application/json");
                        Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
                    }
                });
                // how the connection ends is the client's matter
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    port
}

fn key() -> SigningKey {
    SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap()
}

struct State {
    url: String,
    discovery: String,
    key: Arc<SigningKey>,
    fails: bool,
    /// By path: the token that must be shown, and the text.
    texts: BTreeMap<String, (Option<String>, String)>,
    asked: Vec<String>,
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Answer {
        self.asked.push(asked.path.clone());
        if self.fails {
            return (500, "it is broken".to_owned());
        }
        if let Some((bearer, text)) = self.texts.get(&asked.path) {
            return match bearer.is_none() || *bearer == asked.bearer {
                true => (200, text.clone()),
                false => (401, String::new()),
            };
        }
        let url = &self.url;
        match asked.path.as_str() {
            path if path == self.discovery => (
                200,
                json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string(),
            ),
            "/keys" => (
                200,
                json!({"keys": [self.key.public.jwk(), {"kty": "OKP", "kid": "x"}]}).to_string(),
            ),
            _ => (404, String::new()),
        }
    }
}

/// An issuer of tokens.
pub(super) struct Issuer {
    /// Its name, under which it is reached.
    pub(super) url: String,
    /// The authority of its certificate.
    pub(super) authority: String,
    signer: Issued,
    state: Arc<Mutex<State>>,
}

impl Issuer {
    pub(super) async fn serve() -> Self {
        Self::of(authority()).await
    }

    /// Another issuer, whose certificate has the same authority.
    pub(super) async fn beside(&self) -> Self {
        let signer = Issued {
            certificate: self.signer.certificate.clone(),
            key: self.signer.key.clone(),
        };
        Self::of(signer).await
    }

    async fn of(signer: Issued) -> Self {
        let state = Arc::new(Mutex::new(State {
            url: String::new(),
            discovery: "/.well-known/openid-configuration".to_owned(),
            key: Arc::new(key()),
            fails: false,
            texts: BTreeMap::new(),
            asked: Vec::new(),
        }));
        let answering = Arc::clone(&state);
        let port = serve(&signer, move |asked| answering.lock().answer(&asked)).await;
        let url = format!("https://localhost:{port}");
        state.lock().url.clone_from(&url);
        Self {
            url,
            authority: signer.certificate.clone(),
            signer,
            state,
        }
    }

    /// A token with these claims, and with those that every token has.
    pub(super) fn signed(&self, key: &SigningKey, claims: &Value) -> String {
        let now = super::clock().now().as_second();
        let mut all = json!({"iss": self.url, "iat": now, "exp": now + 600});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        key.sign(&all).unwrap()
    }

    pub(super) fn token(&self, claims: &Value) -> String {
        let key = Arc::clone(&self.state.lock().key);
        self.signed(&key, claims)
    }

    /// A token that says that the issuer's key signed it, which did not.
    pub(super) fn forged(&self, claims: &Value) -> String {
        let mut other = key();
        other.public.id.clone_from(&self.state.lock().key.public.id);
        self.signed(&other, claims)
    }

    /// Takes another key, and gives the old one.
    pub(super) fn rotate(&self) -> Arc<SigningKey> {
        std::mem::replace(&mut self.state.lock().key, Arc::new(key()))
    }

    /// Whether it answers nothing but errors.
    pub(super) fn fail(&self, fails: bool) {
        self.state.lock().fails = fails;
    }

    /// Serves its discovery document at another path.
    pub(super) fn serve_discovery_at(&self, path: &str) {
        path.clone_into(&mut self.state.lock().discovery);
    }

    /// Serves a text to who shows this token.
    pub(super) fn serve_text(&self, path: &str, bearer: Option<&str>, text: &str) {
        let served = (bearer.map(str::to_owned), text.to_owned());
        self.state.lock().texts.insert(path.to_owned(), served);
    }

    /// The paths that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.state.lock().asked.clone()
    }
}

/// A token and the audiences that it should be for.
type Question = (String, Vec<String>);

/// A webhook that reads tokens: `gina` is gina's, `error` nobody can tell, others are nobody's.
pub(super) struct Reviewer {
    port: u16,
    authority: String,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Reviewer {
    /// A webhook that reads this version of TokenReview.
    pub(super) async fn serve(version: &str) -> Self {
        let (authority, asked) = (authority(), Arc::new(Mutex::new(Vec::new())));
        let (noted, api_version) = (Arc::clone(&asked), format!("authentication.k8s.io/{version}"));
        let port = serve(&authority, move |asked| {
            let review: Value = serde_json::from_slice(&asked.body).unwrap();
            if review["apiVersion"] != api_version || asked.bearer.as_deref() != Some("shown") {
                return (400, String::new());
            }
            let token = review["spec"]["token"].as_str().unwrap().to_owned();
            let audiences = serde_json::from_value(review["spec"]["audiences"].clone()).unwrap();
            let status = match token.as_str() {
                "gina" => {
                    json!({"authenticated": true, "user": {"username": "gina", "groups": ["readers-of-webhook"]}})
                }
                "error" => json!({"error": "it cannot be told"}),
                _ => json!({"authenticated": false}),
            };
            noted.lock().push((token, audiences));
            (
                200,
                json!({"apiVersion": api_version, "kind": "TokenReview", "status": status}).to_string(),
            )
        });
        Self {
            port: port.await,
            authority: authority.certificate,
            asked,
        }
    }

    /// What leads to it.
    pub(super) fn kubeconfig(&self) -> String {
        let authority = data_encoding::BASE64.encode(self.authority.as_bytes());
        let server = format!("https://localhost:{}/review", self.port);
        json!({
            "kind": "Config", "apiVersion": "v1", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": "shown"}}],
        })
        .to_string()
    }

    /// What it was asked.
    pub(super) fn asked(&self) -> Vec<Question> {
        self.asked.lock().clone()
    }
}
