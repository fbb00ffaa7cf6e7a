//! Since when uses of tokens in Secrets are noted, as the ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking tells it:
//! kube-controller-manager takes away tokens that were not used since, and waits for that date.

use gardener_apimachinery::clock::Clock;
use k8s_openapi::jiff::civil::Date;
use kube::Client;

use crate::system_map;

const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

/// Tells today's date, unless some date is told.
///
/// # Errors
/// As [`system_map::revise`].
pub(crate) async fn provide(client: &Client, clock: &Clock) -> Result<(), kube::Error> {
    let revised = system_map::revise(client, NAME, |before| {
        let is_told = before.get(SINCE).is_some_and(|date| date.parse::<Date>().is_ok());
        match is_told {
            true => before.clone(),
            false => [(SINCE.to_owned(), clock.now().strftime("%Y-%m-%d").to_string())].into(),
        }
    });
    revised.await
}
