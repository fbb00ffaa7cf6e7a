//! A task, and how one run of it goes: attempts, retries, panics.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::TaskError;

/// A task within its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) usize);

impl TaskId {
    /// The task's place in [`crate::Progress::tasks`].
    pub fn index(self) -> usize {
        self.0
    }
}

type Work<'a> = Box<dyn FnMut() -> BoxFuture<'a, Result<(), TaskError>> + Send + 'a>;

/// Something to do in a flow.
pub struct Task<'a> {
    pub(crate) name: Arc<str>,
    pub(crate) after: Vec<TaskId>,
    pub(crate) skip: bool,
    retry: Option<Retry>,
    work: Work<'a>,
}

#[derive(Clone, Copy)]
struct Retry {
    interval: Duration,
    timeout: Duration,
}

impl<'a> Task<'a> {
    /// A task that is tried once. `work` is called anew for each attempt.
    pub fn new<F, W>(name: impl Into<Arc<str>>, mut work: W) -> Self
    where
        W: FnMut() -> F + Send + 'a,
        F: Future<Output = Result<(), TaskError>> + Send + 'a,
    {
        Self {
            name: name.into(),
            after: Vec::new(),
            skip: false,
            retry: None,
            work: Box::new(move || work().boxed()),
        }
    }

    /// The task starts when all of these are done or skipped.
    #[must_use]
    pub fn after(mut self, tasks: &[TaskId]) -> Self {
        self.after.extend_from_slice(tasks);
        self
    }

    /// If `skip`, the task does nothing but let those after it start; it does not count for progress [CP-20], [CP-21].
    #[must_use]
    pub fn skip_if(mut self, skip: bool) -> Self {
        self.skip |= skip;
        self
    }

    /// The task is tried again, `interval` after a failed attempt, until it succeeds, fails severely, or `timeout` has passed
    /// since it started [CP-23]. The attempt under way at that time is dropped.
    #[must_use]
    pub fn retry(mut self, interval: Duration, timeout: Duration) -> Self {
        self.retry = Some(Retry { interval, timeout });
        self
    }

    /// Runs the task to its end.
    pub(crate) async fn run(mut self) -> Result<(), TaskError> {
        let Some(Retry { interval, timeout }) = self.retry else {
            return attempt(&mut self.work).await;
        };
        let deadline = Instant::now() + timeout;
        let mut last = None;
        loop {
            match timeout_at(deadline, attempt(&mut self.work)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) if error.is_severe() => return Err(error),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {
                    return Err(last.unwrap_or_else(|| TaskError::new(format!("did not finish within {timeout:?}"))));
                }
            }
            // An attempt that could only start at the deadline is not made.
            let next = Instant::now() + interval;
            sleep_until(next.min(deadline)).await;
            if next >= deadline
                && let Some(error) = last.take()
            {
                return Err(error);
            }
        }
    }
}

async fn attempt(work: &mut Work<'_>) -> Result<(), TaskError> {
    // A panic in making the future counts like one in the future.
    let made = std::panic::catch_unwind(AssertUnwindSafe(work));
    let ended = match made {
        Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
        Err(panic) => Err(panic),
    };
    ended.unwrap_or_else(|panic| {
        Err(TaskError::new(panic_text(panic.as_ref()))
            .prefixed("panicked: ")
            .severe())
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
