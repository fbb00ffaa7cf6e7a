//! The lease by which the agent shows that it lives [GNA-30].

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_controller::apply::{self, ApplyError};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, ResourceExt};

const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const DURATION_SECONDS: i32 = 40;

/// Renews the lease of a node's agent, for ever.
pub(crate) async fn keep(client: &Client, clock: &Clock, node: &Node) {
    loop {
        if let Err(error) = renew(client, clock, node).await {
            tracing::debug!(node = node.name_any(), %error, "the lease could not be renewed");
        }
        tokio::time::sleep(RENEW_INTERVAL).await;
    }
}

async fn renew(client: &Client, clock: &Clock, node: &Node) -> Result<(), ApplyError> {
    let api: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let name = format!("gardener-node-agent-{}", node.name_any());
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.clone());
    lease.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.name_any(),
        uid: node.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    let spec = LeaseSpec {
        holder_identity: Some(name),
        lease_duration_seconds: Some(DURATION_SECONDS),
        renew_time: Some(clock.micro_time()),
        ..LeaseSpec::default()
    };
    apply::create_or_patch(&api, lease, |lease| lease.spec = Some(spec)).await?;
    Ok(())
}
