//! Requests on ConfigMaps of 1.5 kB, sent by several clients at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Server, quantile};

/// Where the ConfigMaps are.
pub const PATH: &str = "/api/v1/namespaces/bench/configmaps";
/// Forms of a list of all.
pub const LISTS: [(&str, &str); 3] = [
    ("JSON", "application/json"),
    ("Table", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    (
        "metadata",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ),
];
/// Bytes of data in an object.
const SIZE: usize = 1500;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Get,
    Update,
    Patch,
    Apply,
}

impl Verb {
    /// In the order in which they are measured.
    pub const ALL: [Self; 5] = [Self::Create, Self::Get, Self::Update, Self::Patch, Self::Apply];

    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Update => "update",
            Self::Patch => "merge patch",
            Self::Apply => "apply",
        }
    }

    /// The request for the object of a number; `turn` makes each write another.
    fn request(self, object: u32, turn: u32) -> anyhow::Result<Request<Body>> {
        let path = format!("{PATH}/object-{object}");
        let text = "x".repeat(SIZE);
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("object-{object}"), "namespace": "bench", "labels": {"app": "bench", "part": (object % 10).to_string()}},
            "data": {"turn": turn.to_string(), "text": text},
        });
        let (method, path, content_type, body) = match self {
            Self::Create => ("POST", PATH.to_owned(), "application/json", Some(whole)),
            Self::Get => ("GET", path, "application/json", None),
            Self::Update => ("PUT", path, "application/json", Some(whole)),
            Self::Patch => (
                "PATCH",
                path,
                "application/merge-patch+json",
                Some(json!({"data": {"turn": turn.to_string()}})),
            ),
            Self::Apply => (
                "PATCH",
                format!("{path}?fieldManager=bench&force=true"),
                "application/apply-patch+yaml",
                Some(whole),
            ),
        };
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        Ok(Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, content_type)
            .header(ACCEPT, "application/json")
            .body(Body::from(body))?)
    }
}

/// Requests of one kind.
#[derive(Clone, Copy)]
pub struct Load {
    /// What is asked.
    pub verb: Verb,
    /// How often.
    pub requests: u32,
    /// How many objects there are.
    pub objects: u32,
    /// By how many clients.
    pub workers: u32,
}

/// How it went.
pub struct Outcome {
    /// Milliseconds each request took, sorted.
    taken: Vec<f64>,
    elapsed: Duration,
    /// Processor time the server took, in seconds.
    pub processor_time: f64,
}

impl Outcome {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.taken.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Requests for a second of the server's processor time. Linux counts that in hundredths of a second.
    pub fn per_processor_second(&self) -> f64 {
        self.taken.len() as f64 / self.processor_time.max(0.01)
    }

    /// The milliseconds within which a share of the requests was answered.
    pub fn within(&self, share: f64) -> f64 {
        quantile(&self.taken, share)
    }
}

impl Load {
    /// Sends all requests.
    pub async fn run(self, server: &Server) -> anyhow::Result<Outcome> {
        let next = Arc::new(AtomicU32::new(0));
        let mut clients = Vec::new();
        for _ in 0..self.workers {
            let client = server.client()?;
            // the handshake is not what is measured
            client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
            clients.push(client);
        }
        let started = Instant::now();
        let mut workers = JoinSet::new();
        for client in clients {
            let next = next.clone();
            workers.spawn(async move {
                let mut taken = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= self.requests {
                        return anyhow::Ok(taken);
                    }
                    let request = self.verb.request(self.object(number), number)?;
                    let started = Instant::now();
                    send(&client, request).await?;
                    taken.push(started.elapsed().as_secs_f64() * 1000.0);
                }
            });
        }
        let mut taken = Vec::new();
        while let Some(worker) = workers.join_next().await {
            taken.extend(worker??);
        }
        taken.sort_by(f64::total_cmp);
        Ok(Outcome {
            taken,
            elapsed: started.elapsed(),
            processor_time: 0.0,
        })
    }

    /// Each object once for creations, else all over the place but each worker another.
    fn object(self, number: u32) -> u32 {
        match self.verb {
            Verb::Create => number,
            _ => number.wrapping_mul(7919) % self.objects,
        }
    }
}

/// Sends a request and reads its answer.
pub async fn send(client: &Client, request: Request<Body>) -> anyhow::Result<()> {
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(())
}

/// Makes the namespace.
pub async fn namespace(client: &Client) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
    let request = Request::post("/api/v1/namespaces")
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(namespace.to_string().into_bytes()))?;
    send(client, request).await.context("the namespace cannot be made")
}

/// Lists all ConfigMaps in a form.
pub async fn list(client: &Client, accept: &str) -> anyhow::Result<()> {
    let request = Request::get(PATH).header(ACCEPT, accept).body(Body::empty())?;
    send(client, request).await
}
