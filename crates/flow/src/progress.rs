//! What a flow tells about itself while it runs.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::TaskId;

/// Where a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Waits for the tasks it depends on; for ever if one of them failed.
    Pending,
    /// Is being done.
    Running,
    /// Is done.
    Succeeded,
    /// Ended with this error.
    Failed(String),
    /// Was not to be done.
    Skipped,
}

/// A task as a viewer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// Its name.
    pub name: Arc<str>,
    /// The tasks it waits for.
    pub after: Arc<[TaskId]>,
    /// Where it is.
    pub state: TaskState,
}

/// Where a flow is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The flow's name.
    pub flow: Arc<str>,
    /// floor(100 · succeeded / tasks that are not skipped) [CP-21].
    pub percent: i32,
    /// For `status.lastOperation.description` [CP-21].
    pub description: String,
    /// The names of the running tasks, sorted.
    pub running: Vec<Arc<str>>,
    /// All tasks, in the order in which they were added: the tree of tasks.
    pub tasks: Vec<TaskStatus>,
}

impl Progress {
    /// What a flow with these tasks tells [CP-21].
    pub fn of(flow: Arc<str>, tasks: Vec<TaskStatus>) -> Self {
        let number = |state: &TaskState| tasks.iter().filter(|task| task.state == *state).count();
        let succeeded = number(&TaskState::Succeeded);
        let all = tasks.len() - number(&TaskState::Skipped);
        let percent = (100 * succeeded)
            .checked_div(all)
            .and_then(|percent| i32::try_from(percent).ok())
            .unwrap_or(100);
        let mut running: Vec<Arc<str>> = tasks
            .iter()
            .filter(|task| task.state == TaskState::Running)
            .map(|task| Arc::clone(&task.name))
            .collect();
        running.sort();
        let description = match percent {
            0 => format!("Starting {flow}"),
            100 => format!("{flow} finished"),
            _ => running.join(", "),
        };
        Self {
            flow,
            percent,
            description,
            running,
            tasks,
        }
    }
}

type Report = Box<dyn Fn(Progress) -> BoxFuture<'static, ()> + Send + Sync>;
type Succeeded = Box<dyn Fn(Arc<str>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Whom a flow tells how far it is. The flow goes on while a report is being written; what changes meanwhile is told in the
/// next one, and the last state is always told.
#[derive(Default)]
pub struct ProgressReporter {
    pub(crate) report: Option<Report>,
    pub(crate) succeeded: Option<Succeeded>,
    pub(crate) period: Duration,
}

impl ProgressReporter {
    /// Tells nobody.
    pub fn none() -> Self {
        Self::default()
    }

    /// Tells `report` of every change.
    pub fn new<F>(report: impl Fn(Progress) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            report: Some(Box::new(move |progress| report(progress).boxed())),
            ..Self::default()
        }
    }

    /// Tells at most once per period, beginning at once (`controllers.shoot.progressReportPeriod`) [CP-21].
    #[must_use]
    pub fn at_most_every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Calls `succeeded` with the name of each task that succeeds, before the tasks after it start [CP-22].
    #[must_use]
    pub fn on_success<F>(mut self, succeeded: impl Fn(Arc<str>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.succeeded = Some(Box::new(move |name| succeeded(name).boxed()));
        self
    }
}
