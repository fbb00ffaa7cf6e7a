//! The graph of tasks and its run.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{FlowError, Progress, ProgressReporter, Task, TaskError, TaskFailure, TaskId, TaskState, TaskStatus};

/// Tasks and their dependencies. A task can only depend on tasks added before it, so there are no cycles.
pub struct Graph<'a> {
    name: Arc<str>,
    tasks: Vec<Task<'a>>,
    defect: Option<String>,
}

impl<'a> Graph<'a> {
    /// An empty graph of a flow such as `Shoot cluster reconciliation`.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            tasks: Vec::new(),
            defect: None,
        }
    }

    /// Adds a task.
    pub fn add(&mut self, task: Task<'a>) -> TaskId {
        let id = TaskId(self.tasks.len());
        if self.tasks.iter().any(|other| other.name == task.name) {
            self.defect = Some(format!("two tasks have the name {:?}", task.name));
        }
        if task.after.iter().any(|other| *other >= id) {
            self.defect = Some(format!("{:?} waits for a task of another graph", task.name));
        }
        self.tasks.push(task);
        id
    }

    /// The flow before it starts: the tree of tasks.
    pub fn progress(&self) -> Progress {
        let statuses = self.tasks.iter().map(|task| TaskStatus {
            name: Arc::clone(&task.name),
            after: task.after.clone().into(),
            state: if task.skip {
                TaskState::Skipped
            } else {
                TaskState::Pending
            },
        });
        Progress::of(Arc::clone(&self.name), statuses.collect())
    }

    /// Runs the flow to its end: until every task is done or can never start [CP-20].
    ///
    /// # Errors
    /// [`FlowError`]: tasks failed, or `cancel` was called.
    pub async fn run(self, reporter: &ProgressReporter, cancel: &CancellationToken) -> Result<(), FlowError> {
        if let Some(reason) = self.defect {
            return Err(FlowError::Malformed {
                flow: self.name.to_string(),
                reason,
            });
        }
        let statuses = self.progress().tasks;
        let run = Run {
            waiting: statuses.iter().map(waits_for).collect(),
            tasks: self.tasks.into_iter().map(Some).collect(),
            name: self.name,
            statuses,
            running: FuturesUnordered::new(),
            failures: Vec::new(),
            reporter,
            changed: true,
            telling: None,
            next_report: Instant::now(),
        };
        run.finish(cancel).await
    }
}

fn waits_for(task: &TaskStatus) -> BTreeSet<TaskId> {
    task.after.iter().copied().collect()
}

type Ended = (TaskId, Result<(), TaskError>);

struct Run<'a, 'r> {
    name: Arc<str>,
    tasks: Vec<Option<Task<'a>>>,
    statuses: Vec<TaskStatus>,
    /// For each task the tasks it still waits for.
    waiting: Vec<BTreeSet<TaskId>>,
    running: FuturesUnordered<BoxFuture<'r, Ended>>,
    failures: Vec<TaskFailure>,
    reporter: &'r ProgressReporter,
    /// Whether something happened that was not reported.
    changed: bool,
    telling: Option<BoxFuture<'static, ()>>,
    next_report: Instant,
}

impl<'a: 'r, 'r> Run<'a, 'r> {
    async fn finish(mut self, cancel: &CancellationToken) -> Result<(), FlowError> {
        self.start_ready();
        let mut canceled = false;
        while !self.running.is_empty() {
            self.tell();
            let may_tell_later = self.changed && self.telling.is_none() && self.reporter.report.is_some();
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    canceled = true;
                    break;
                }
                () = finished(&mut self.telling) => self.telling = None,
                () = sleep_until(self.next_report), if may_tell_later => {}
                Some((id, result)) = self.running.next() => self.ended(id, result),
            }
        }
        // Dropping the futures ends the tasks that a cancellation left running.
        self.running.clear();
        if let Some(telling) = self.telling.take() {
            telling.await;
        }
        if self.changed
            && let Some(report) = &self.reporter.report
        {
            report(self.progress()).await;
        }
        let flow = self.name.to_string();
        let failures = self.failures;
        if canceled {
            Err(FlowError::Canceled { flow, failures })
        } else if failures.is_empty() {
            Ok(())
        } else {
            Err(FlowError::Failed { flow, failures })
        }
    }

    fn progress(&self) -> Progress {
        Progress::of(Arc::clone(&self.name), self.statuses.clone())
    }

    /// Starts a report if there is something to tell and it is time.
    fn tell(&mut self) {
        if !self.changed || self.telling.is_some() || Instant::now() < self.next_report {
            return;
        }
        if let Some(report) = &self.reporter.report {
            self.telling = Some(report(self.progress()));
            self.next_report = Instant::now() + self.reporter.period;
            self.changed = false;
        }
    }

    /// Starts every pending task that waits for nothing, in the order in which they were added.
    fn start_ready(&mut self) {
        // One pass is enough: a skipped task can only let later ones start.
        for at in 0..self.tasks.len() {
            let ready = self.waiting.get(at).is_some_and(BTreeSet::is_empty);
            if !ready {
                continue;
            }
            let Some(task) = self.tasks.get_mut(at).and_then(Option::take) else {
                continue;
            };
            let id = TaskId(at);
            if task.skip {
                self.release(id);
                continue;
            }
            self.set(id, TaskState::Running);
            let reporter = self.reporter;
            self.running.push(Box::pin(async move {
                let name = Arc::clone(&task.name);
                let result = task.run().await;
                if let (Ok(()), Some(succeeded)) = (&result, &reporter.succeeded) {
                    succeeded(name).await;
                }
                (id, result)
            }));
        }
    }

    fn set(&mut self, id: TaskId, state: TaskState) {
        if let Some(status) = self.statuses.get_mut(id.0) {
            status.state = state;
        }
        self.changed = true;
    }

    fn release(&mut self, id: TaskId) {
        for waiting in &mut self.waiting {
            waiting.remove(&id);
        }
    }

    fn ended(&mut self, id: TaskId, result: Result<(), TaskError>) {
        match result {
            Ok(()) => {
                self.set(id, TaskState::Succeeded);
                self.release(id);
                self.start_ready();
            }
            Err(error) => {
                self.set(id, TaskState::Failed(error.to_string()));
                if let Some(status) = self.statuses.get(id.0) {
                    self.failures.push(TaskFailure {
                        task: status.name.to_string(),
                        error,
                    });
                }
            }
        }
    }
}

/// Waits for a report under way; for ever if there is none.
async fn finished(telling: &mut Option<BoxFuture<'static, ()>>) {
    match telling {
        Some(telling) => telling.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
