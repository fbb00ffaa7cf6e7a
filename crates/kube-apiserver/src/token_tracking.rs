//! Since when uses of tokens in Secrets are noted, as the ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking tells it:
//! kube-controller-manager takes away tokens that were not used since, and waits for that date.

use gardener_apimachinery::clock::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::civil::Date;
use kube::api::PostParams;
use kube::{Api, Client};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

/// Tells today's date, unless some date is told.
///
/// # Errors
/// The API refuses. Of two servers that write at once one is refused (409), and looks again later.
pub(crate) async fn provide(client: &Client, clock: &Clock) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let found = maps.get_opt(NAME).await?;
    let told = found.as_ref().and_then(|map| map.data.as_ref()?.get(SINCE));
    if told.is_some_and(|date| date.parse::<Date>().is_ok()) {
        return Ok(());
    }
    let today = clock.now().strftime("%Y-%m-%d").to_string();
    let data = Some([(SINCE.to_owned(), today)].into());
    match found {
        Some(map) => {
            let map = ConfigMap { data, ..map };
            maps.replace(NAME, &PostParams::default(), &map).await.map(drop)
        }
        None => {
            let metadata = ObjectMeta {
                name: Some(NAME.to_owned()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap {
                metadata,
                data,
                ..ConfigMap::default()
            };
            maps.create(&PostParams::default(), &map).await.map(drop)
        }
    }
}
