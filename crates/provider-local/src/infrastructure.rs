//! Infrastructure: there is none; the networks are as the shoot says.

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Cluster, Infrastructure};
use gardener_extension::{Actuator, ActuatorError, Context, Outcome, cluster};
use serde_json::json;

/// The network of nodes of shoots that do not name one.
const DEFAULT_NODES: &str = "10.0.0.0/16";

pub(crate) struct Local;

#[async_trait]
impl Actuator<Infrastructure> for Local {
    async fn reconcile(
        &self,
        _: &Context,
        object: &Infrastructure,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let shoot = cluster.map(cluster::shoot).transpose()?;
        let networking = shoot.as_ref().and_then(|shoot| shoot.spec.networking.as_ref());
        let nodes = networking
            .and_then(|networking| networking.nodes.as_deref())
            .unwrap_or(DEFAULT_NODES);
        let list = |one: Option<&str>| -> Vec<String> { one.map(str::to_owned).into_iter().collect() };
        Ok(Outcome::with_status(json!({
            "nodesCIDR": nodes,
            "networking": {
                "nodes": [nodes],
                "pods": list(networking.and_then(|networking| networking.pods.as_deref())),
                "services": list(networking.and_then(|networking| networking.services.as_deref())),
            },
            "providerStatus": {
                "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "InfrastructureStatus",
                "region": object.spec.region,
                "nodes": nodes,
            },
        })))
    }

    async fn delete(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }
}
