//! What who writes an extension implements.

use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::extensions::v1alpha1::Cluster;
use gardener_controller::apply::ApplyError;
use kube::Client;
use serde_json::Value;

use crate::ExtensionKind;

/// What an actuator works with.
#[derive(Clone)]
pub struct Context {
    /// The seed.
    pub client: Client,
    /// What time it is.
    pub clock: Clock,
    /// Names and keys.
    pub chance: Chance,
}

/// What came of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// A JSON merge patch of the status, written together with the success; null for nothing.
    pub status: Value,
    /// When the object is to be looked at again without being asked.
    pub requeue_after: Option<Duration>,
}

impl Outcome {
    /// A success that says this in the status.
    pub fn with_status(status: Value) -> Self {
        Self {
            status,
            requeue_after: None,
        }
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{description}")]
pub struct ActuatorError {
    /// For people: what was expected, what came.
    pub description: String,
    /// Gardener's error codes [EXT-5].
    pub codes: Vec<String>,
}

impl ActuatorError {
    /// A failure without code.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            codes: Vec::new(),
        }
    }

    /// A failure with a code.
    pub fn with_code(description: impl Into<String>, code: &str) -> Self {
        Self {
            description: description.into(),
            codes: vec![code.to_owned()],
        }
    }
}

impl From<kube::Error> for ActuatorError {
    fn from(error: kube::Error) -> Self {
        Self::new(match error {
            kube::Error::Api(status) => status.message,
            other => other.to_string(),
        })
    }
}

impl From<ApplyError> for ActuatorError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Api(error) => error.into(),
            other => Self::new(other.to_string()),
        }
    }
}

impl From<crate::cluster::UnreadableError> for ActuatorError {
    fn from(error: crate::cluster::UnreadableError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<serde_json::Error> for ActuatorError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// What is done for one kind. Every operation may be called again after it failed or was cut off at any point.
#[async_trait]
pub trait Actuator<K: ExtensionKind>: Send + Sync + 'static {
    /// Makes the world be as the object says.
    async fn reconcile(
        &self,
        context: &Context,
        object: &K,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError>;

    /// Takes away what was made.
    async fn delete(&self, context: &Context, object: &K, cluster: Option<&Cluster>) -> Result<(), ActuatorError>;

    /// Takes away what can be, and gives up the rest.
    async fn force_delete(
        &self,
        context: &Context,
        object: &K,
        cluster: Option<&Cluster>,
    ) -> Result<(), ActuatorError> {
        self.delete(context, object, cluster).await
    }

    /// Lets go of the object without touching what was made outside of the seed. By default there is nothing to do.
    async fn migrate(&self, _context: &Context, _object: &K, _cluster: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }

    /// Takes the object over with the state in its status. By default that is to reconcile [EXT-11].
    async fn restore(
        &self,
        context: &Context,
        object: &K,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        self.reconcile(context, object, cluster).await
    }
}
