//! Many clients watch while one object changes again and again: how long after a change each of them knows.

use std::time::Duration;

use futures::StreamExt;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::verbs::PATH;
use crate::load::{Server, quantile, send};

/// How long changes are made.
const LENGTH: Duration = Duration::from_secs(5);
/// Clients that make the changes.
const WRITERS: u32 = 8;
/// How long watchers are waited for after the last change.
const PATIENCE: Duration = Duration::from_secs(30);
/// What stands before the time of a change in its object.
const MARK: &[u8] = b"sent-";

/// How late watchers were.
pub struct Lag {
    /// Milliseconds between the request and its event, sorted.
    taken: Vec<f64>,
    /// Changes made a second.
    pub rate: f64,
    /// The server's resident memory with all watchers, in MiB.
    pub memory: f64,
}

impl Lag {
    /// The milliseconds within which a share of the events came.
    pub fn within(&self, share: f64) -> f64 {
        quantile(&self.taken, share)
    }
}

/// Watches with `watchers` clients while `changes` changes a second are made.
pub async fn measure(server: &Server, watchers: u32, changes: u32) -> anyhow::Result<Lag> {
    let began = Instant::now();
    let client = server.client()?;
    for writer in 0..WRITERS {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("watched-{writer}")}});
        let request = Request::post(PATH)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(object.to_string().into_bytes()))?;
        send(&client, request).await?;
    }
    let (seen, mut lags) = mpsc::unbounded_channel();
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        let response = server
            .client()?
            .send(
                Request::get(format!("{PATH}?watch=1&resourceVersion={}", revision(&client).await?))
                    .body(Body::empty())?,
            )
            .await?;
        let seen = seen.clone();
        watching.spawn(async move {
            let mut frames = response.into_body().into_data_stream();
            let mut marks = Marks::default();
            while let Some(Ok(bytes)) = frames.next().await {
                let now = began.elapsed().as_micros() as u64;
                for sent in marks.take(&bytes) {
                    let _ = seen.send(now.saturating_sub(sent) as f64 / 1000.0);
                }
            }
        });
    }
    drop(seen);
    let made = change(server, changes, began).await?;
    let expected = u64::from(made) * u64::from(watchers);
    let mut taken = Vec::new();
    while (taken.len() as u64) < expected {
        match timeout(PATIENCE, lags.recv()).await {
            Ok(Some(lag)) => taken.push(lag),
            _ => anyhow::bail!("watchers saw {} of {expected} events", taken.len()),
        }
    }
    let memory = server.memory()?;
    watching.shutdown().await;
    taken.sort_by(f64::total_cmp);
    Ok(Lag {
        taken,
        rate: f64::from(made) / LENGTH.as_secs_f64(),
        memory,
    })
}

/// The collection's revision.
async fn revision(client: &Client) -> anyhow::Result<String> {
    let list: serde_json::Value = client
        .request(Request::get(format!("{PATH}?limit=1")).body(Vec::new())?)
        .await?;
    Ok(list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// Makes changes at the rate asked for, if the server can take it. Answers how many.
async fn change(server: &Server, changes: u32, began: Instant) -> anyhow::Result<u32> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let client = server.client()?;
        writers.spawn(async move {
            let mut clock = interval(Duration::from_secs(1) * WRITERS / changes);
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let started = Instant::now();
            let mut made = 0;
            while started.elapsed() < LENGTH {
                clock.tick().await;
                let sent = began.elapsed().as_micros();
                let patch = json!({"data": {"time": format!("sent-{sent:020}")}});
                let request = Request::patch(format!("{PATH}/watched-{writer}"))
                    .header(CONTENT_TYPE, "application/merge-patch+json")
                    .body(Body::from(patch.to_string().into_bytes()))?;
                send(&client, request).await?;
                made += 1;
            }
            anyhow::Ok(made)
        });
    }
    let mut made = 0;
    while let Some(writer) = writers.join_next().await {
        made += writer??;
    }
    Ok(made)
}

/// Finds the times of changes in the pieces of a watch, wherever the pieces are cut.
#[derive(Default)]
struct Marks {
    rest: Vec<u8>,
}

impl Marks {
    /// The times whose marks end in this piece.
    fn take(&mut self, piece: &[u8]) -> Vec<u64> {
        const LENGTH: usize = MARK.len() + 20;
        self.rest.extend_from_slice(piece);
        let mut found = Vec::new();
        let mut behind = self.rest.len().saturating_sub(LENGTH - 1);
        for (at, window) in self.rest.windows(LENGTH).enumerate() {
            let digits = window
                .strip_prefix(MARK)
                .and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(time) = digits.and_then(|digits| digits.parse().ok()) {
                found.push(time);
                behind = behind.max(at + LENGTH);
            }
        }
        self.rest.drain(..behind);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_wherever_pieces_are_cut() {
        let frames =
            b"{\"data\":{\"time\":\"sent-00000000000000001234\"}}\n{\"time\":\"sent-00000000000000005678\"} sent-";
        for size in 1..frames.len() {
            let mut marks = Marks::default();
            let found: Vec<u64> = frames.chunks(size).flat_map(|piece| marks.take(piece)).collect();
            assert_eq!(found, [1234, 5678], "pieces of {size}");
        }
    }
}
