//! Which garden this is. The seed's own identity is told when the seed is set up.

use gardener_controller::Read;
use gardener_flow::TaskError;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use crate::Config;

/// The garden's identity.
///
/// # Errors
/// It cannot be read, or nobody told it.
pub(crate) async fn of_garden(config: &Config) -> Result<String, TaskError> {
    let api: Api<ConfigMap> = Api::namespaced(config.garden.clone(), "kube-system");
    let found = api.read_opt("cluster-identity").await?.and_then(|map| map.data);
    found
        .and_then(|data| data.get("cluster-identity").cloned())
        .ok_or_else(|| {
            TaskError::new("the garden has no ConfigMap kube-system/cluster-identity with key cluster-identity")
        })
}
