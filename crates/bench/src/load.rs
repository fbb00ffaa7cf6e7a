//! Load: requests sent by several clients at once, and how the server took them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use futures::TryStreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::process;

/// Forms of a list of all.
pub const LISTS: [(&str, &str); 3] = [
    ("JSON", "application/json"),
    ("Table", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    (
        "metadata",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ),
];
/// A server under load.
pub struct Server {
    config: kube::Config,
    pids: Vec<u32>,
}

impl Server {
    /// The server that `config` leads to, and its processes.
    pub fn new(config: kube::Config, pids: Vec<u32>) -> Self {
        Self { config, pids }
    }

    /// A client with connections of its own.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Processor time that its processes have taken, in seconds.
    fn processor_time(&self) -> anyhow::Result<f64> {
        self.pids.iter().map(|pid| process::processor_time(*pid)).sum()
    }

    /// The resident memory of its processes, in MiB.
    pub fn memory(&self) -> anyhow::Result<f64> {
        self.pids.iter().map(|pid| process::memory(*pid)).sum()
    }
}

/// Sends requests number 0 to `requests` by `workers` clients. Each takes the next one when it has its answer. All are made before time is
/// taken: making them is not the server's work, though it would have the same processors.
pub async fn run(
    server: &Server,
    workers: u32,
    requests: u32,
    request: impl Fn(u32) -> anyhow::Result<Request<Body>>,
) -> anyhow::Result<Outcome> {
    let waiting = (0..requests).map(request).collect::<anyhow::Result<Vec<_>>>()?;
    let waiting = Arc::new(Mutex::new(waiting.into_iter()));
    let mut clients = Vec::new();
    for _ in 0..workers {
        let client = server.client()?;
        // the handshake is not what is measured
        client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
        clients.push(client);
    }
    let (started, before) = (Instant::now(), server.processor_time()?);
    let mut working = JoinSet::new();
    for client in clients {
        let waiting = waiting.clone();
        working.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let next = waiting.lock().next();
                let Some(request) = next else {
                    return anyhow::Ok(taken);
                };
                let started = Instant::now();
                send(&client, request).await?;
                taken.push(started.elapsed().as_secs_f64() * 1000.0);
            }
        });
    }
    let mut taken = Vec::new();
    while let Some(worker) = working.join_next().await {
        taken.extend(worker??);
    }
    taken.sort_by(f64::total_cmp);
    Ok(Outcome {
        taken,
        elapsed: started.elapsed(),
        processor_time: server.processor_time()? - before,
    })
}

/// The median of the times that `times` equal requests take, in milliseconds.
pub async fn median(times: u32, mut request: impl AsyncFnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        request().await?;
        taken.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    taken.sort_by(f64::total_cmp);
    Ok(quantile(&taken, 0.5))
}

/// How it went.
pub struct Outcome {
    /// Milliseconds each request took, sorted.
    taken: Vec<f64>,
    elapsed: Duration,
    /// Processor time the server took, in seconds.
    processor_time: f64,
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

/// Sends a request and reads its answer, piece by piece: to keep a long one whole takes a client longer than to read it.
pub async fn send(client: &Client, request: Request<Body>) -> anyhow::Result<()> {
    let response = client.send(request).await?;
    if !response.status().is_success() {
        return whole(response).await.map(drop);
    }
    let mut pieces = response.into_body().into_data_stream();
    while pieces.try_next().await?.is_some() {}
    Ok(())
}

/// The answer to a request.
pub async fn answer(client: &Client, request: Request<Body>) -> anyhow::Result<Bytes> {
    whole(client.send(request).await?).await
}

async fn whole(response: Response<Body>) -> anyhow::Result<Bytes> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

/// A request that creates an object.
pub fn post(path: &str, object: &Value) -> anyhow::Result<Request<Body>> {
    write(Request::post(path), object)
}

/// A request whose body is an object.
pub fn write(request: http::request::Builder, object: &Value) -> anyhow::Result<Request<Body>> {
    let body = Body::from(serde_json::to_vec(object)?);
    Ok(request.header(CONTENT_TYPE, "application/json").body(body)?)
}

/// Reads all objects of a collection in a form.
pub async fn list(client: &Client, path: &str, accept: &str) -> anyhow::Result<()> {
    send(client, Request::get(path).header(ACCEPT, accept).body(Body::empty())?).await
}

/// The value below which a share of the sorted `values` is.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    values.get(at.min(last)).copied().unwrap_or_default()
}
