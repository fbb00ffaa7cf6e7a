//! Why gardenlet's controllers of seeds, shoots and installations could not do their work. What of it becomes a status is theirs.

use gardener_controller::apply::ApplyError;
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
