//! The end of all watches of a cluster when its server ends: spread over some time, so that not all clients come back at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::respond::Body;

/// How many watches end in a second at least, as with upstream.
const SLOWEST: f64 = 200.0;

/// The end of a cluster's watches.
pub(crate) struct WatchEnd {
    /// Cancelled when the cluster is closed, too: a watch listens to one of both only.
    begun: CancellationToken,
    /// How long one watch outlasts the one before it.
    step: Mutex<Duration>,
    /// The watches that there are.
    running: TaskTracker,
    /// How many know when they end.
    told: AtomicU32,
}

/// A watch that runs; it counts until this value goes.
pub(crate) struct RunningWatch {
    end: Arc<WatchEnd>,
    _counted: TaskTrackerToken,
}

impl RunningWatch {
    /// Counts a watch.
    pub(crate) fn begin(end: &Arc<WatchEnd>) -> Self {
        Self {
            end: Arc::clone(end),
            _counted: end.running.token(),
        }
    }

    /// Waits until watches end, or the cluster is closed, and gives how much longer this one may last. To be asked once.
    pub(crate) async fn rest(&self) -> Duration {
        self.end.begun.cancelled().await;
        let before = self.end.told.fetch_add(1, Ordering::Relaxed);
        self.end.step.lock().saturating_mul(before)
    }
}

impl WatchEnd {
    /// The end of a cluster's watches, which comes with the cluster's at the latest.
    pub(crate) fn of(closed: &CancellationToken) -> Self {
        Self {
            begun: closed.child_token(),
            step: Mutex::default(),
            running: TaskTracker::new(),
            told: AtomicU32::new(0),
        }
    }

    /// Ends all watches, the last of them after `period` at the latest.
    pub(crate) fn begin_within(&self, period: Duration) {
        let running = self.running.len() as f64;
        let in_a_second = match period.is_zero() {
            true => f64::INFINITY,
            false => (running / period.as_secs_f64()).max(SLOWEST),
        };
        *self.step.lock() = Duration::from_secs_f64(1.0 / in_a_second);
        self.begun.cancel();
    }

    /// Waits until no watch runs.
    pub(crate) async fn ended(&self) {
        self.running.close();
        self.running.wait().await;
    }
}

/// The stream of a watch that another server answers, which ends with this server's own.
pub(crate) fn ending(body: Body, end: &Arc<WatchEnd>) -> Body {
    let running = RunningWatch::begin(end);
    let over = async move {
        let rest = running.rest().await;
        tokio::time::sleep(rest).await;
    };
    StreamBody::new(BodyStream::new(body).take_until(Box::pin(over))).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn watches_end_one_after_the_other() {
        for (watches, period, last) in [(1001, 2, 2000), (5, 60, 20), (5, 0, 0)] {
            let end = Arc::new(WatchEnd::of(&CancellationToken::new()));
            let running: Vec<_> = (0..watches).map(|_| RunningWatch::begin(&end)).collect();
            end.begin_within(Duration::from_secs(period));
            let mut rests = Vec::new();
            for watch in &running {
                rests.push(watch.rest().await.as_millis());
            }
            assert_eq!(rests[0], 0);
            assert!(rests.is_sorted());
            // the first one ends at once, so that the last one keeps within the period
            let found = rests[rests.len() - 1];
            assert!(found.abs_diff(last) <= 2, "{watches} in {period}s: {found}ms");
            drop(running);
            end.ended().await;
        }
    }
}
