//! The lease by which an extension shows that it lives [EXT-122].

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_controller::apply;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

/// Name of the lease.
pub const NAME: &str = "gardener-extension-heartbeat";
/// How often it is renewed.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(30);

/// Renews the lease of the extension `extension` in the namespace of its installation, until `stop`.
pub async fn run(client: Client, clock: Clock, namespace: &str, extension: &str, stop: CancellationToken) {
    let api: Api<Lease> = Api::namespaced(client, namespace);
    let beating = async {
        loop {
            if let Err(error) = beat(&api, &clock, extension).await {
                tracing::warn!(extension, %error, "the heartbeat could not be written");
            }
            tokio::time::sleep(RENEW_INTERVAL).await;
        }
    };
    stop.run_until_cancelled(beating).await;
}

async fn beat(api: &Api<Lease>, clock: &Clock, extension: &str) -> Result<(), apply::ApplyError> {
    let mut lease = Lease::default();
    lease.metadata.name = Some(NAME.to_owned());
    let spec = LeaseSpec {
        holder_identity: Some(extension.to_owned()),
        lease_duration_seconds: Some(30),
        renew_time: Some(clock.micro_time()),
        ..LeaseSpec::default()
    };
    apply::create_or_patch(api, lease, |lease| lease.spec = Some(spec.clone())).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use gardener_testkit::seed::{Seed, pass};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ext_122_the_lease_is_renewed() {
        let seed = Seed::with_groups(&[]).await;
        seed.namespace("extension-a").await;
        let stop = CancellationToken::new();
        let (client, clock, until) = (seed.client.clone(), seed.clock.clone(), stop.clone());
        tokio::spawn(async move { run(client, clock, "extension-a", "provider-a", until).await });
        let renewed = || async {
            let lease = seed.api::<Lease>("extension-a").get(NAME).await.unwrap();
            let spec = lease.spec.unwrap();
            assert_eq!(spec.holder_identity.as_deref(), Some("provider-a"));
            spec.renew_time.unwrap().0
        };
        pass(1).await;
        let first = renewed().await;
        pass(30).await;
        assert!(renewed().await > first);
        stop.cancel();
    }
}
