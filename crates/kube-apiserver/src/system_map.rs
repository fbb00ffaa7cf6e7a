//! ConfigMaps of kube-system that all servers of a cluster keep together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// Writes what `wanted` makes of what a map says, if that is something else. No map says as much as an empty one.
///
/// # Errors
/// The API refuses. Of two servers that write at once one is refused (409), and looks again later.
pub(crate) async fn revise(
    client: &Client,
    name: &str,
    wanted: impl FnOnce(&BTreeMap<String, String>) -> BTreeMap<String, String>,
) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let found = maps.get_opt(name).await?;
    let before = found.as_ref().and_then(|map| map.data.clone()).unwrap_or_default();
    let wanted = wanted(&before);
    if before == wanted {
        return Ok(());
    }
    let (parameters, data) = (PostParams::default(), Some(wanted));
    match found {
        Some(map) => {
            let map = ConfigMap { data, ..map };
            maps.replace(name, &parameters, &map).await.map(drop)
        }
        None => {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap {
                metadata,
                data,
                ..ConfigMap::default()
            };
            maps.create(&parameters, &map).await.map(drop)
        }
    }
}
