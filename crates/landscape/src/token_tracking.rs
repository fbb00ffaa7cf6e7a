//! Since when a cluster's API notes uses of tokens in Secrets, as the ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking tells it:
//! kube-controller-manager takes away tokens that were not used for long, and counts from that date.

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::legacy_tokens::{SINCE, TRACKING, day_at, day_of};
use gardener_controller::apply;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};

/// Tells today's date, unless some date is told. That it cannot be told now is logged, and keeps nobody from serving.
pub async fn provide(client: &Client, clock: &Clock) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let initial = ConfigMap {
        metadata: ObjectMeta {
            name: Some(TRACKING.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let told = apply::create_or_update(&maps, initial, |map| {
        let data = map.data.get_or_insert_default();
        if data.get(SINCE).and_then(|date| day_of(date)).is_none() {
            data.insert(SINCE.to_owned(), day_at(clock.now()).to_string());
        }
    });
    match told.await {
        Ok(_) => {}
        // another server tells it
        Err(error) if error.is_conflict() => {}
        Err(error) => tracing::warn!(%error, "it cannot be told since when uses of tokens are noted"),
    }
}
