//! The landscape of a `gardener up`: when it is prepared, and its shoots.

use std::time::Duration;

use anyhow::{Context, bail};
use gardener_apis::core::v1beta1::{Seed, Shoot};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::running::LOOK;

/// Waits until Gardener's kinds can be applied: the cloud profile and the seed are there.
pub async fn prepared(client: &Client) -> anyhow::Result<()> {
    let seeds: Api<Seed> = Api::all(client.clone());
    until("the seed is ready", Duration::from_secs(120), async || {
        Ok(seeds.get_opt("local").await?.is_some_and(|seed| {
            seed.status
                .conditions
                .iter()
                .any(|c| c.r#type == "GardenletReady" && c.status == "True")
        }))
    })
    .await
}

/// How long a look may take: without this bound an answer that never comes would not be told.
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// Looks again and again until `holds`. Failed looks are looked at again.
pub async fn until(
    what: &str,
    patience: Duration,
    mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let outcome = tokio::time::timeout(LONGEST_LOOK, holds())
            .await
            .unwrap_or_else(|_| bail!("a look was not answered within {} s", LONGEST_LOOK.as_secs()));
        if let Ok(true) = outcome {
            return Ok(());
        }
        if Instant::now() > deadline {
            let why = outcome.err().map(|error| format!(": {error:#}")).unwrap_or_default();
            bail!("waited {} s in vain until {what}{why}", patience.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The manifest of a shoot of the local landscape with `nodes` nodes.
pub fn shoot(name: &str, nodes: u32) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {
            "name": name,
            "namespace": "garden-local",
            "annotations": {"shoot.gardener.cloud/cloud-config-execution-max-delay-seconds": "0"},
        },
        "spec": {
            "cloudProfile": {"name": "local"},
            "credentialsBindingName": "local",
            "region": "local",
            "networking": {"type": "calico", "nodes": "10.0.0.0/16"},
            "provider": {"type": "local", "workers": [{
                "name": "local",
                "machine": {"type": "local"},
                "cri": {"name": "containerd"},
                "minimum": nodes,
                "maximum": nodes + 2,
                "maxSurge": 1,
                "maxUnavailable": 0,
            }]},
        },
    })
}

/// The shoots of the project `local`.
pub fn shoots(client: &Client) -> Api<Shoot> {
    Api::namespaced(client.clone(), "garden-local")
}

/// Applies a shoot.
pub async fn apply(client: &Client, shoot: &Value) -> anyhow::Result<()> {
    let name = shoot["metadata"]["name"].as_str().context("a shoot needs a name")?;
    shoots(client)
        .patch(name, &PatchParams::apply("bench").force(), &Patch::Apply(shoot))
        .await?;
    Ok(())
}

/// Whether the last operation belongs to the present generation and succeeded, and all conditions are True.
pub fn is_healthy(shoot: &Shoot) -> bool {
    is_settled(shoot)
        && shoot.status.conditions.len() >= 4
        && shoot
            .status
            .conditions
            .iter()
            .all(|condition| condition.status == "True")
}

/// What of a shoot tells whether it is healthy: its last operation, and the conditions that are not True.
pub fn health(shoot: &Shoot) -> String {
    let operation = shoot.status.last_operation.as_ref().map_or_else(
        || "no operation yet".to_owned(),
        |o| format!("{} {} {} %: {}", o.r#type, o.state, o.progress, o.description),
    );
    let name = shoot.metadata.name.as_deref().unwrap_or_default();
    let (wanted, seen) = (shoot.metadata.generation, shoot.status.observed_generation);
    let mut told = vec![format!("{name}: {operation}, generation {wanted:?}, observed {seen:?}")];
    let ill = shoot
        .status
        .conditions
        .iter()
        .filter(|condition| condition.status != "True");
    told.extend(ill.map(|c| format!("{} is {} ({}: {})", c.r#type, c.status, c.reason, c.message)));
    told.join(", ")
}

/// Whether the last operation belongs to the present generation and succeeded.
pub fn is_settled(shoot: &Shoot) -> bool {
    shoot
        .status
        .last_operation
        .as_ref()
        .is_some_and(|operation| operation.state == "Succeeded")
        && shoot.status.observed_generation == shoot.metadata.generation
}
