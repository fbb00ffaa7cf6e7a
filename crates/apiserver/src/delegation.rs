//! Authentication and authorization by another API server: what a server behind an aggregator does with callers that come to it directly, and with
//! all questions of who may do what. Answers are kept for some seconds, as upstream keeps them.

mod access;
pub(crate) mod cache;
mod token;

use std::time::Duration;

use kube::Client;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::retry;

pub use access::AccessReviewer;
pub use token::TokenReviewer;

/// How long answers are kept unless flags say otherwise.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(10);
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    /// The other server refuses, or cannot be reached.
    #[error(transparent)]
    Failed(#[from] kube::Error),
    /// It takes too long.
    #[error("another server did not answer a review in time")]
    Late,
}

impl ReviewError {
    /// Whether the other server cannot be reached, or has trouble of its own.
    fn passes(&self) -> bool {
        let passes = match self {
            Self::Failed(kube::Error::Api(status)) => status.code == 429 || status.code >= 500,
            Self::Failed(_) | Self::Late => true,
        };
        if passes {
            tracing::warn!(error = %self, "another server did not answer a review");
        }
        passes
    }
}

/// Creates a review and gives it with its answer. Asks again when the other server cannot be reached, or has trouble of its own.
async fn review<K>(client: &Client, review: &K) -> Result<K, ReviewError>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: kube::Api<K> = kube::Api::all(client.clone());
    let (api, parameters) = (&api, &PostParams::default());
    let attempt = || async move {
        let asked = tokio::time::timeout(PATIENCE, api.create(parameters, review));
        Ok(asked.await.map_err(|_| ReviewError::Late)??)
    };
    retry::repeated(attempt, ReviewError::passes).await
}
