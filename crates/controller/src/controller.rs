//! The loop that takes keys from a queue and reconciles them.

use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Queue;
use crate::monitor::{Counts, Ended, Monitor};

/// After how many failures in a row somebody should look. One or two are what optimistic writing looks like: somebody else was faster.
const WORTH_A_WARNING: u32 = 3;

/// What is to happen with a key that was reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    Done,
    /// It comes again after this time, if nothing changes before.
    RequeueAfter(Duration),
}

/// Reconciles the keys of a queue, several at a time, one key never twice at a time.
pub struct Controller<K> {
    name: Arc<str>,
    concurrency: usize,
    queue: Queue<K>,
    counts: Arc<Counts>,
}

impl<K> Controller<K>
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
{
    /// A controller; `concurrency` counts from 1.
    pub fn new(name: impl Into<Arc<str>>, concurrency: usize, queue: Queue<K>) -> Self {
        Self {
            name: name.into(),
            concurrency: concurrency.max(1),
            queue,
            counts: Arc::default(),
        }
    }

    /// Lets a monitor tell of this controller.
    #[must_use]
    pub fn watched_by(mut self, monitor: &Monitor) -> Self {
        self.counts = monitor.counts(&self.name);
        self
    }

    /// Reconciles until `cancel` is called or the queue is closed; what is under way then is dropped.
    ///
    /// An error or a panic is logged and the key comes again after its back-off.
    pub async fn run<F, R, E>(self, cancel: CancellationToken, reconcile: F)
    where
        F: Fn(K) -> R,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let mut working = JoinSet::new();
        let waiting = self.queue.clone();
        self.counts.start(self.concurrency, move || waiting.len());
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(_) = working.join_next() => {}
                key = self.queue.next(), if working.len() < self.concurrency => {
                    let Some(key) = key else { break };
                    // Making the future may panic as well as the future itself.
                    let made = std::panic::catch_unwind(AssertUnwindSafe(|| reconcile(key.clone()).boxed()));
                    let (name, queue, counts) = (Arc::clone(&self.name), self.queue.clone(), Arc::clone(&self.counts));
                    let since = Instant::now();
                    counts.begin();
                    working.spawn(async move {
                        let ended = match made {
                            Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                            Err(panic) => Err(panic),
                        };
                        let how = match &ended {
                            Ok(Ok(Action::Done)) => Ended::Success,
                            Ok(Ok(Action::RequeueAfter(_))) => Ended::RequeueAfter,
                            Ok(Err(_)) => Ended::Error,
                            Err(_) => Ended::Panic,
                        };
                        counts.end(how, since.elapsed());
                        match ended {
                            Ok(Ok(action)) => settle(&queue, &key, action),
                            Ok(Err(error)) => fail(&name, &queue, &key, &error),
                            Err(_) => fail(&name, &queue, &key, &"the reconciler panicked"),
                        }
                        queue.done(&key);
                    });
                }
            }
        }
        working.shutdown().await;
        self.counts.stop();
    }
}

fn settle<K: Ord + Clone>(queue: &Queue<K>, key: &K, action: Action) {
    queue.forget(key);
    if let Action::RequeueAfter(delay) = action {
        queue.add_after(key.clone(), delay);
    }
}

fn fail<K: Ord + Clone + Debug>(name: &str, queue: &Queue<K>, key: &K, error: &dyn Display) {
    let again = queue.add_rate_limited(key.clone());
    let failures = queue.failures(key);
    if failures < WORTH_A_WARNING {
        tracing::info!(controller = name, ?key, %error, ?again, "reconciling failed");
    } else {
        tracing::warn!(controller = name, ?key, %error, ?again, failures, "reconciling fails again and again");
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::time::{Instant, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn one_key_never_runs_twice_and_concurrency_is_bounded() {
        let queue = Queue::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let cancel = CancellationToken::new();
        let start = Instant::now();
        let running = {
            let log = Arc::clone(&log);
            let controller = Controller::new("test", 2, queue.clone());
            tokio::spawn(controller.run(cancel.clone(), move |key: &str| {
                let log = Arc::clone(&log);
                async move {
                    log.lock().push((key, start.elapsed().as_secs()));
                    sleep(SECOND * 10).await;
                    Ok::<_, String>(Action::Done)
                }
            }))
        };
        for key in ["a", "b", "c"] {
            queue.add(key);
        }
        sleep(SECOND).await;
        queue.add("a");
        sleep(SECOND * 60).await;
        assert_eq!(*log.lock(), [("a", 0), ("b", 0), ("c", 10), ("a", 10)]);
        assert!(queue.is_idle());
        cancel.cancel();
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn errors_and_panics_come_again_after_the_back_off_and_success_resets_it() {
        let queue = Queue::with_limit(crate::RateLimit {
            base: SECOND,
            max: SECOND * 60,
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let running = {
            let log = Arc::clone(&log);
            let closing = queue.clone();
            let controller = Controller::new("test", 1, queue.clone());
            tokio::spawn(controller.run(CancellationToken::new(), move |_: u8| {
                log.lock().push(start.elapsed().as_secs());
                let attempt = log.lock().len();
                assert_ne!(attempt, 2, "a panic");
                let closing = closing.clone();
                async move {
                    match attempt {
                        1 | 5 => Err("an error"),
                        3 => panic!("a panic"),
                        4 => Ok(Action::RequeueAfter(SECOND * 30)),
                        _ => {
                            closing.close();
                            Ok(Action::Done)
                        }
                    }
                }
            }))
        };
        queue.add(1);
        running.await.unwrap();
        assert_eq!(*log.lock(), [0, 1, 3, 7, 37, 38]);
    }
}
