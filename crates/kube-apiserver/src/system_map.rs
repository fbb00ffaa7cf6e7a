//! ConfigMaps of kube-system that all servers of a cluster keep together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use crate::write::write;

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
    let exists = found.is_some();
    let mut map = found.unwrap_or_default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some(wanted);
    write(&maps, name, exists, &map).await
}
