//! What runs a container inside this process instead of simulating it.

use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One run of a container.
pub struct Invocation {
    /// The logical cluster of the node.
    pub cluster: String,
    /// The node's name.
    pub node: String,
    /// The pod, as it was when the container started, its address included.
    pub pod: Arc<Pod>,
    /// The container.
    pub container: Container,
    /// Cancelled when the container is to end.
    pub stop: CancellationToken,
    /// Whether the container is ready; false at first.
    pub ready: watch::Sender<bool>,
}

/// Runs containers inside this process.
#[async_trait]
pub trait Program: Send + Sync {
    /// Whether this program runs the container.
    fn runs(&self, pod: &Pod, container: &Container) -> bool;

    /// Runs the container until it ends by itself or `invocation.stop` is cancelled. Answers the exit code. When the grace period is over
    /// the future is dropped.
    async fn run(&self, invocation: Invocation) -> i32;
}
