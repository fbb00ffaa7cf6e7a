//! The webhook that sequences script: the same one for every server. The reference asks it by HTTPS, ours by whatever way the test gives it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::pointer::Pointed;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

/// The name of the Service for which the webhook's certificate is valid too.
pub const SERVICE_HOST: &str = "webhook.default.svc";

/// How one webhook of a sequence answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The review's `response`, to which the uid is added where it has none; `{allowed: true}` without one.
    #[serde(default)]
    pub response: Option<Value>,
    /// A JSON patch to send with the response.
    #[serde(default)]
    pub patch: Option<Value>,
    /// A body in place of the review.
    #[serde(default)]
    pub text: Option<String>,
    /// The status code.
    #[serde(default)]
    pub status: Option<u16>,
    /// Seconds before the answer.
    #[serde(default)]
    pub delay: u64,
    /// For conversions: the operations done to every object, besides its new version.
    #[serde(default)]
    pub convert: Option<Value>,
}

#[derive(Default)]
struct Scripted {
    /// By path.
    scripts: BTreeMap<String, Script>,
    /// What was asked, by namespace of the sequence.
    asked: BTreeMap<String, Vec<Value>>,
}

/// Answers for all sequences.
#[derive(Clone, Default)]
pub struct Webhook {
    scripted: Arc<Mutex<Scripted>>,
    /// `https://host:port`.
    pub url: String,
    /// The authority of its certificate, as `caBundle` has it.
    pub ca_bundle: String,
}

impl Webhook {
    /// A webhook that is not reached by network.
    pub fn in_process() -> Self {
        Self {
            url: "https://127.0.0.1:9".to_owned(),
            ca_bundle: STANDARD.encode("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
            ..Self::default()
        }
    }

    /// Serves by HTTPS on a free port until the runtime ends.
    ///
    /// # Errors
    /// No port or no certificate can be had.
    pub async fn serve() -> anyhow::Result<Self> {
        let now = Clock::system().now().as_second() - 3600;
        let day = Duration::from_secs(86_400);
        let authority = gardener_pki::authority("webhooks", now, day)?;
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let subject = gardener_pki::Subject::server("webhook", &["localhost", SERVICE_HOST], &[local]);
        let issued = gardener_pki::issue(&subject, &authority, now, day)?;
        let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind((local, 0)).await?;
        let webhook = Self {
            url: format!("https://{}", listener.local_addr()?),
            ca_bundle: STANDARD.encode(&authority.certificate),
            ..Self::default()
        };
        let serving = webhook.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().connection(acceptor.clone(), stream));
            }
        });
        Ok(webhook)
    }

    async fn connection(self, acceptor: TlsAcceptor, stream: tokio::net::TcpStream) {
        let Ok(stream) = acceptor.accept(stream).await else {
            return;
        };
        let service = service_fn(|request: Request<Incoming>| {
            let webhook = self.clone();
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await?.to_bytes();
                let (status, body) = webhook.answer(&path, &body).await;
                let response = Response::builder()
                    .status(status)
                    .header(CONTENT_TYPE, "application/json");
                anyhow::Ok(response.body(Full::new(Bytes::from(body)))?)
            }
        });
        // a client that goes away is no failure of the webhook's
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    /// Sets the scripts of a sequence that plays in this namespace.
    pub fn script(&self, namespace: &str, scripts: &BTreeMap<String, Script>) {
        let mut scripted = self.scripted.lock();
        for (name, script) in scripts {
            scripted.scripts.insert(format!("/{namespace}/{name}"), script.clone());
        }
    }

    /// What a sequence's webhooks were asked since the last look, in order of their paths.
    pub fn take_asked(&self, namespace: &str) -> Vec<Value> {
        let mut asked = self.scripted.lock().asked.remove(namespace).unwrap_or_default();
        asked.sort_by_key(|one| one.get("webhook").map(Value::to_string));
        asked
    }

    /// Answers one call: status code and body.
    pub async fn answer(&self, path: &str, body: &[u8]) -> (u16, String) {
        let review: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let script = {
            let mut scripted = self.scripted.lock();
            let Some(script) = scripted.scripts.get(path).cloned() else {
                return (404, "404 page not found\n".to_owned());
            };
            // how often a server converts is its own matter
            if script.convert.is_none() {
                let namespace = path.split('/').nth(1).unwrap_or_default();
                let asked = scripted.asked.entry(namespace.to_owned()).or_default();
                asked.push(json!({"webhook": path, "review": review}));
            }
            script
        };
        if script.delay > 0 {
            tokio::time::sleep(Duration::from_secs(script.delay)).await;
        }
        let body = match &script.text {
            Some(text) => text.clone(),
            None => answered(&script, &review).unwrap_or_else(|error| format!("{error:#}")),
        };
        (script.status.unwrap_or(200), body)
    }
}

fn answered(script: &Script, review: &Value) -> anyhow::Result<String> {
    let uid = review.at("/request/uid").cloned().unwrap_or(Value::Null);
    let mut response = script.response.clone().unwrap_or_else(|| json!({"allowed": true}));
    let members = response.as_object_mut().context("a response is an object")?;
    members.entry("uid").or_insert(uid);
    if let Some(patch) = &script.patch {
        members.insert("patch".into(), STANDARD.encode(patch.to_string()).into());
        members.entry("patchType").or_insert_with(|| "JSONPatch".into());
    }
    if let Some(operations) = &script.convert {
        members.remove("allowed");
        members.entry("result").or_insert_with(|| json!({"status": "Success"}));
        let version = review.at("/request/desiredAPIVersion").cloned();
        let mut objects = review.at("/request/objects").cloned().unwrap_or_default();
        for object in objects.as_array_mut().into_iter().flatten() {
            if let (Some(members), Some(version)) = (object.as_object_mut(), &version) {
                members.insert("apiVersion".into(), version.clone());
            }
            for operation in operations.as_array().into_iter().flatten() {
                rename(object, operation);
            }
        }
        members.entry("convertedObjects").or_insert(objects);
    }
    let answer = json!({
        "apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": response,
    });
    Ok(answer.to_string())
}

/// `[from, to]`: members of the spec that change places; what is not there stays away.
fn rename(object: &mut Value, operation: &Value) {
    let name = |at: usize| operation.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let (one, other) = (name(0), name(1));
    let (first, second) = (spec.remove(&one), spec.remove(&other));
    spec.extend(first.map(|value| (other, value)));
    spec.extend(second.map(|value| (one, value)));
}
