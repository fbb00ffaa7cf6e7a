//! Events for another server, which gets them in batches. Requests do not wait for it: what it does not take in time is lost, and the log tells so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Event, Sink};
use crate::cluster::LogicalCluster;
use crate::retry;
use crate::webhooks::{self, Endpoint, KubeconfigError};

/// How long one batch may take to be sent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the last batch may take, when the server ends.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// How events are put together.
#[derive(Clone, Copy, Debug)]
pub struct Batching {
    /// How many events may wait.
    pub buffer: usize,
    /// How many events a batch has at most.
    pub size: usize,
    /// How long the first event of a batch waits for others.
    pub wait: Duration,
    /// How long until a batch is sent for the second time; then half as long again each time.
    pub backoff: Duration,
    /// How many bytes of JSON an event may have before objects are left out of it.
    pub longest: Option<usize>,
}

/// Takes events in.
struct Webhook {
    waiting: mpsc::Sender<String>,
    longest: Option<usize>,
}

/// Sends the events on that a webhook takes in.
pub struct Delivery {
    endpoint: Endpoint,
    events: mpsc::Receiver<String>,
    batching: Batching,
}

/// A sink for the server that a kubeconfig leads to, and what delivers to it.
///
/// # Errors
/// [`KubeconfigError`].
pub fn webhook(kubeconfig: &Path, batching: Batching) -> Result<(Arc<dyn Sink>, Delivery), KubeconfigError> {
    let (waiting, events) = mpsc::channel(batching.buffer.max(1));
    let sink = Webhook {
        waiting,
        longest: batching.longest,
    };
    let delivery = Delivery {
        endpoint: Endpoint::of_kubeconfig(kubeconfig)?,
        events,
        batching,
    };
    Ok((Arc::new(sink), delivery))
}

impl Sink for Webhook {
    fn take(&self, event: &Event) -> bool {
        let taken = match event.bounded(self.longest, Event::json) {
            Some(text) => self.waiting.try_send(text).map_err(|error| error.to_string()),
            None => Err("it is too long, even without objects".to_owned()),
        };
        if let Err(why) = taken {
            tracing::error!(why, "an audit event could not be sent");
        }
        true
    }
}

impl Delivery {
    /// Delivers until `stop` is cancelled; what waits then is still sent, once.
    pub async fn run(mut self, cluster: Arc<LogicalCluster>, stop: CancellationToken) {
        while let Some(first) = stop.run_until_cancelled(self.events.recv()).await.flatten() {
            let batch = self.batch(first, &stop).await;
            if stop.run_until_cancelled(self.send(&cluster, &batch)).await.is_none() {
                self.send_last(&cluster, batch).await;
                return;
            }
        }
        self.send_last(&cluster, Vec::new()).await;
    }

    /// The first event, with those that come soon after it.
    async fn batch(&mut self, first: String, stop: &CancellationToken) -> Vec<String> {
        let mut batch = vec![first];
        let filled = async {
            while batch.len() < self.batching.size
                && let Some(event) = self.events.recv().await
            {
                batch.push(event);
            }
        };
        // whatever ends it, there is a batch
        let _ = stop.run_until_cancelled(timeout(self.batching.wait, filled)).await;
        batch
    }

    async fn send(&self, cluster: &LogicalCluster, batch: &[String]) {
        let attempt = || self.post(cluster, batch, PATIENCE);
        let again = |why: &String| {
            let events = batch.len();
            tracing::warn!(events, why, "audit events could not be sent and are sent again");
            true
        };
        let sent = retry::repeated_after(self.batching.backoff, attempt, again).await;
        lost(batch, sent);
    }

    /// Sends what is left, before the server ends.
    async fn send_last(&mut self, cluster: &LogicalCluster, mut batch: Vec<String>) {
        while let Ok(event) = self.events.try_recv() {
            batch.push(event);
        }
        if !batch.is_empty() {
            lost(&batch, self.post(cluster, &batch, LAST_PATIENCE).await);
        }
    }

    async fn post(&self, cluster: &LogicalCluster, batch: &[String], patience: Duration) -> Result<(), String> {
        let list = format!(
            "{{\"kind\":\"EventList\",\"apiVersion\":\"audit.k8s.io/v1\",\"metadata\":{{}},\"items\":[{}]}}",
            batch.join(",")
        );
        let posted = webhooks::post(cluster, &self.endpoint, patience, Bytes::from(list)).await;
        let answer = posted.map_err(|unanswered| unanswered.why)?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(format!("it answered with status code {status}")),
        }
    }
}

/// Tells the log if a batch was not sent.
fn lost(batch: &[String], sent: Result<(), String>) {
    if let Err(why) = sent {
        tracing::error!(events = batch.len(), why, "audit events could not be sent and are lost");
    }
}
