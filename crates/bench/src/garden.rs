//! `bench garden`: a garden of many Shoots under load, durable and through the whole chain of admission.
//!
//! `gardener run apiserver` serves it, so that no controller takes processor time. It is filled with Secrets and ShootStates first; then Shoots are
//! created and the status of some is updated, as many at a time as there are clients; then all are listed, and the server is started again, after a
//! stop and after a kill.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use gardener_apimachinery::pointer::Pointed;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::Figure;
use crate::landscape::{shoot, until};
use crate::load::{self, LISTS, Outcome, Server, answer, post, send, write};
use crate::restart;
use crate::running::Gardener;

/// How large the garden is.
#[derive(Args)]
pub struct Arguments {
    /// How many Shoots there are.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    shoots: u32,
    /// Bytes of a Shoot as the server answers it: they have as many pools as fit.
    #[arg(long, default_value_t = 10_000)]
    shoot_size: usize,
    /// ShootStates of about 100 kB.
    #[arg(long, default_value_t = 1_000)]
    shoot_states: u32,
    /// Secrets of about 1 kB.
    #[arg(long, default_value_t = 50_000)]
    secrets: u32,
    /// Of how many Shoots the status is updated; no more than there are.
    #[arg(long, default_value_t = 5_000)]
    updates: u32,
    /// How many clients send requests.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: u32,
}

const SHOOTS: &str = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-local/shoots";
const SHOOT_STATES: &str = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-local/shootstates";
const SECRETS: &str = "/api/v1/namespaces/garden-local/secrets";
/// No Shoot has more pools, however large it may be.
const MOST_POOLS: usize = 200;

/// What there is before the first Shoot.
const FURNITURE: [&str; 6] = [
    REGISTRATION,
    include_str!("../../landscape/manifests/11-project-local.yaml"),
    include_str!("../../landscape/manifests/20-cloudprofile.yaml"),
    include_str!("../../landscape/manifests/25-seed.yaml"),
    include_str!("../../landscape/manifests/39-secret-provider.yaml"),
    include_str!("../../landscape/manifests/40-credentialsbinding.yaml"),
];

/// That somebody is responsible for the types of the seed and the Shoots.
const REGISTRATION: &str = "
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata:
  name: provider-local
spec:
  resources:
  - {kind: BackupBucket, type: local}
  - {kind: BackupEntry, type: local}
  - {kind: ControlPlane, type: local}
  - {kind: DNSRecord, type: local}
  - {kind: Infrastructure, type: local}
  - {kind: Network, type: calico}
  - {kind: OperatingSystemConfig, type: local}
  - {kind: Worker, type: local}
";

/// Where objects of a kind of the furniture are created.
fn collection(kind: &str) -> anyhow::Result<&'static str> {
    Ok(match kind {
        "Namespace" => "/api/v1/namespaces",
        "ControllerRegistration" => "/apis/core.gardener.cloud/v1beta1/controllerregistrations",
        "Project" => "/apis/core.gardener.cloud/v1beta1/projects",
        "CloudProfile" => "/apis/core.gardener.cloud/v1beta1/cloudprofiles",
        "Seed" => "/apis/core.gardener.cloud/v1beta1/seeds",
        "Secret" => SECRETS,
        "CredentialsBinding" => "/apis/security.gardener.cloud/v1alpha1/namespaces/garden-local/credentialsbindings",
        _ => anyhow::bail!("no {kind} is known to be in a garden before its Shoots"),
    })
}

/// Fills a garden, and measures it.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let mut garden = Gardener::apiserver(binary, Some(folder.path()))?;
    let client = garden.client().await?;
    furnish(&client).await?;
    let server = Server::new(garden.config().await?, vec![garden.pid()?]);
    let workers = arguments.workers;
    let mut figures = Vec::new();
    let secrets = load::run(&server, workers, arguments.secrets, |number| {
        post(SECRETS, &secret(number))
    })
    .await;
    figures.extend(rates("Secrets created", &secrets.context("Secrets")?));
    let (pools, size) = pools_of(&client, arguments.shoot_size).await?;
    figures.push(Figure::new("Shoots", format!("{pools} pools, {size} bytes")));
    let shoots = load::run(&server, workers, arguments.shoots, move |number| {
        post(SHOOTS, &large_shoot(number, pools))
    })
    .await;
    figures.extend(rates("Shoots created", &shoots.context("Shoots")?));
    let states = load::run(&server, workers, arguments.shoot_states, |number| {
        post(SHOOT_STATES, &shoot_state(number))
    });
    figures.extend(rates("ShootStates created", &states.await.context("ShootStates")?));
    let listed = shoots_of(&client).await?;
    let updates = arguments.updates.min(arguments.shoots);
    let updated = load::run(&server, workers, updates, move |number| {
        let shoot = listed.get(number as usize).context("there are fewer Shoots")?;
        status_update(shoot, number)
    });
    figures.extend(rates(
        "status of Shoots updated",
        &updated.await.context("shoots/status")?,
    ));
    for (name, accept) in LISTS {
        let taken = load::median(7, async || load::list(&client, SHOOTS, accept).await).await?;
        figures.push(Figure::new(
            format!("list of all Shoots as {name}, median"),
            format!("{taken:.0} ms"),
        ));
    }
    figures.push(Figure::new(
        "resident memory with all of it",
        format!("{:.0} MiB", server.memory()?),
    ));
    garden.stop().await?;
    let (again, took) = restart::measure(binary, folder.path()).await?;
    figures.extend(took);
    let memory = Server::new(again.config().await?, vec![again.pid()?]).memory()?;
    figures.push(Figure::new(
        "resident memory after the restart",
        format!("{memory:.0} MiB"),
    ));
    Ok(figures)
}

fn rates(what: &str, outcome: &Outcome) -> [Figure; 3] {
    [
        Figure::new(what, format!("{:.0} /s", outcome.rate())),
        Figure::new(
            format!("{what}, 99 % within"),
            format!("{:.1} ms", outcome.within(0.99)),
        ),
        Figure::new(
            format!("{what}, for a second of the server's processor time"),
            format!("{:.0}", outcome.per_processor_second()),
        ),
    ]
}

/// Makes the project with its namespace, a cloud profile, a seed and credentials.
async fn furnish(client: &Client) -> anyhow::Result<()> {
    for manifest in FURNITURE {
        for document in serde_saphyr::from_multiple::<Value>(manifest)? {
            let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
            let path = collection(kind)?;
            // the authorizer and admission learn of what is new by their watches
            until(&format!("{kind} is created"), Duration::from_secs(10), async || {
                send(client, post(path, &document)?).await?;
                Ok(true)
            })
            .await?;
        }
    }
    Ok(())
}

fn secret(number: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("secret-{number}"), "namespace": "garden-local"},
        "stringData": {"credentials": "x".repeat(1000)},
    })
}

/// How many pools a Shoot has that is answered in as many bytes at most, and the bytes of its answer. Nothing is stored.
async fn pools_of(client: &Client, size: usize) -> anyhow::Result<(usize, usize)> {
    let mut fits = None;
    for pools in 1..=MOST_POOLS {
        let trial = post(&format!("{SHOOTS}?dryRun=All"), &large_shoot(0, pools))?;
        let answered = answer(client, trial).await?.len();
        if answered > size && fits.is_some() {
            break;
        }
        fits = Some((pools, answered));
    }
    fits.context("a Shoot has a pool at least")
}

fn large_shoot(number: u32, pools: usize) -> Value {
    let mut shoot = shoot(&format!("shoot-{number}"), 1);
    let pool = |number: usize| {
        json!({
            "name": format!("pool-{number}"), "minimum": 1, "maximum": 3, "maxSurge": 1, "maxUnavailable": 0,
            "cri": {"name": "containerd"}, "machine": {"type": "local"},
            "labels": {"example.com/pool": format!("pool-{number}"), "example.com/purpose": "measurement", "example.com/team": "garden"},
            "annotations": {"example.com/description": "x".repeat(400)},
            "taints": [{"key": "example.com/pool", "value": format!("pool-{number}"), "effect": "NoSchedule"}],
            "kubernetes": {"kubelet": {"maxPods": 110, "kubeReserved": {"cpu": "80m", "memory": "1Gi", "pid": "20k"}, "evictionHard": {"memoryAvailable": "100Mi", "imageFSAvailable": "5%", "nodeFSAvailable": "5%"}}},
        })
    };
    if let Some(workers) = shoot.at_mut("/spec/provider/workers") {
        *workers = (0..pools).map(pool).collect();
    }
    shoot
}

fn shoot_state(number: u32) -> Value {
    let data = |index: usize| json!({"name": format!("secret-{index}"), "type": "secret", "labels": {"persist": "true"}, "data": {"key": "x".repeat(9_900)}});
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ShootState",
        "metadata": {"name": format!("shoot-{number}"), "namespace": "garden-local"},
        "spec": {"gardener": (0..10).map(data).collect::<Vec<_>>()},
    })
}

async fn shoots_of(client: &Client) -> anyhow::Result<Vec<Value>> {
    let body = answer(client, Request::get(SHOOTS).body(Body::empty())?).await?;
    let mut list: Value = serde_json::from_slice(&body)?;
    match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        other => anyhow::bail!("a list has items, not {other:?}"),
    }
}

/// What a gardenlet writes while it reconciles.
fn status_update(shoot: &Value, number: u32) -> anyhow::Result<Request<Body>> {
    let mut shoot = shoot.clone();
    let name = shoot.at("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let path = format!("{SHOOTS}/{name}/status");
    let now = "2026-01-01T00:00:00Z";
    let condition = |name: &str| json!({"type": name, "status": "True", "reason": "Measured", "message": "All is well.", "lastTransitionTime": now, "lastUpdateTime": now});
    let conditions = [
        "APIServerAvailable",
        "ControlPlaneHealthy",
        "ObservabilityComponentsHealthy",
        "EveryNodeReady",
        "SystemComponentsHealthy",
    ];
    if let Some(object) = shoot.as_object_mut() {
        object.insert(
            "status".to_owned(),
            json!({
                "gardener": {"id": "measured", "name": "gardenlet", "version": "v1.150.0"},
                "hibernated": false, "technicalID": format!("shoot--local--{number}"), "uid": "measured",
                "observedGeneration": 1,
                "lastOperation": {"type": "Reconcile", "state": "Processing", "progress": 42, "description": "Deploying the control plane", "lastUpdateTime": now},
                "conditions": conditions.map(condition),
            }),
        );
    }
    write(Request::put(path), &shoot)
}
