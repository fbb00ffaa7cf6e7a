//! A task graph: tasks start when the tasks they depend on are done, with retries, skips, progress and collected errors.
//!
//! Knows nothing of Kubernetes. Runs all tasks within the caller's task, so that a run is repeatable under a paused clock.
#![forbid(unsafe_code)]

mod error;
mod graph;
mod progress;
mod task;

pub use error::{FlowError, TaskError, TaskFailure};
pub use graph::Graph;
pub use progress::{Progress, ProgressReporter, TaskState, TaskStatus};
pub use task::{Task, TaskId};
