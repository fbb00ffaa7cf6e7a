//! Authentication and authorization by another API server: what a server behind an aggregator does with callers that come to it directly, and with
//! all questions of who may do what. Answers are kept for some seconds, as upstream keeps them.

mod access;
mod cache;
mod token;

use std::time::Duration;

use kube::Client;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

pub use access::AccessReviewer;
pub use token::TokenReviewer;

/// How long answers are kept unless flags say otherwise.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(10);
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a question is asked that is not answered.
const ATTEMPTS: u32 = 5;
/// How long until a question is asked for the second time; then half as long again each time.
const RETRY: Duration = Duration::from_millis(500);

/// Creates a review and gives it with its answer. Asks again when the other server cannot be reached, or has trouble of its own.
async fn review<K>(client: &Client, review: &K) -> Result<K, kube::Error>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: kube::Api<K> = kube::Api::all(client.clone());
    let mut pause = RETRY;
    for _ in 1..ATTEMPTS {
        let parameters = PostParams::default();
        let asked = tokio::time::timeout(PATIENCE, api.create(&parameters, review));
        match asked.await {
            Ok(Ok(answered)) => return Ok(answered),
            Ok(Err(kube::Error::Api(status))) if status.code != 429 && status.code < 500 => {
                return Err(kube::Error::Api(status));
            }
            Ok(Err(error)) => tracing::warn!(%error, "another server did not answer a review"),
            Err(_) => tracing::warn!("another server did not answer a review in time"),
        }
        sleep(pause).await;
        pause = pause * 3 / 2;
    }
    api.create(&PostParams::default(), review).await
}
