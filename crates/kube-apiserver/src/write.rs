//! Writes of objects that servers of a cluster keep together.

use kube::Api;
use kube::api::PostParams;

/// Replaces an object that was found, or creates one that was not.
///
/// # Errors
/// The API refuses. Of two servers that write at once one is refused (409).
pub(crate) async fn write<K>(api: &Api<K>, name: &str, exists: bool, object: &K) -> Result<(), kube::Error>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let parameters = PostParams::default();
    match exists {
        true => api.replace(name, &parameters, object).await.map(drop),
        false => api.create(&parameters, object).await.map(drop),
    }
}
