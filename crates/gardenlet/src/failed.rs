//! Why gardenlet's controllers of seeds, shoots and installations could not do their work. What of it becomes a status is theirs.
//! And when what failed is tried again.

use std::time::Duration;

use gardener_controller::apply::ApplyError;
use gardener_controller::secrets::ManagerError;
use gardener_controller::{ObjectRef, Queue, RateLimit};
use gardener_flow::TaskError;

use crate::apply::ManifestError;

/// Why a reconciliation did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Write(#[from] ApplyError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{0}")]
    Task(TaskError),
    #[error(transparent)]
    Secret(#[from] ManagerError),
    /// What else there is to say.
    #[error("{0}")]
    Because(String),
}

// a task's error holds any other, so it cannot be one itself
impl From<TaskError> for Failed {
    fn from(error: TaskError) -> Self {
        Self::Task(error)
    }
}

/// A queue whose keys, where they failed, wait from 200 ms to two minutes: of backups and installations.
pub(crate) fn queue() -> Queue<ObjectRef> {
    Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(120),
    })
}
