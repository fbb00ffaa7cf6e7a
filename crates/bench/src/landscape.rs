//! Runs a `gardener up`, and knows how to reach it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use gardener_apis::core::v1beta1::Shoot;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Time between two looks.
pub const LOOK: Duration = Duration::from_millis(20);

/// The binary to measure.
pub fn binary(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.join("gardener")));
    let candidates = match given {
        Some(path) => vec![path.to_owned()],
        None => beside
            .into_iter()
            .chain([PathBuf::from("target/release/gardener")])
            .collect(),
    };
    let found = candidates.iter().find(|path| path.is_file());
    found.cloned().with_context(|| {
        format!(
            "there is no binary at {candidates:?}: build it with `cargo build --release`, or name one with --binary"
        )
    })
}

/// A running `gardener up`; killed with this value.
pub struct Landscape {
    process: Child,
    kubeconfig: PathBuf,
    _dir: TempDir,
    /// When it was started.
    pub started: Instant,
}

impl Landscape {
    /// Starts the binary and waits for nothing. Its data is in `data_dir`, or in a folder that goes with this value.
    pub fn spawn(binary: &Path, data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let kubeconfig = dir.path().join("kubeconfig");
        let mut command = Command::new(binary);
        command
            .args([
                "up",
                "--no-shoot",
                "--listen",
                "127.0.0.1:0",
                "-o",
                "json",
                "--kubeconfig",
            ])
            .arg(&kubeconfig)
            .arg("--data-dir")
            .arg(data_dir.map_or_else(|| dir.path().join("data"), Path::to_owned));
        let started = Instant::now();
        let process = command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not start", binary.display()))?;
        Ok(Self {
            process,
            kubeconfig,
            _dir: dir,
            started,
        })
    }

    /// The process.
    pub fn pid(&self) -> anyhow::Result<u32> {
        self.process.id().context("gardener up has ended")
    }

    /// Kills the process as `kill -9` does, and waits until it is gone.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Waits until the garden answers `/readyz` with 200.
    pub async fn client(&mut self) -> anyhow::Result<Client> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut client: Option<Client> = None;
        loop {
            if let Some(status) = self.process.try_wait()? {
                bail!("gardener up has ended: {status}");
            }
            // written whole or not at all
            if client.is_none() && self.kubeconfig.exists() {
                client = Some(Client::try_from(self.config().await?)?);
            }
            if let Some(client) = &client
                && client
                    .request_text(http::Request::get("/readyz").body(Vec::new())?)
                    .await
                    .is_ok()
            {
                return Ok(client.clone());
            }
            if Instant::now() > deadline {
                bail!("the garden does not answer within a minute");
            }
            tokio::time::sleep(LOOK / 10).await;
        }
    }

    /// A client for the cluster to which `gardener kubeconfig <target>` leads.
    pub async fn cluster(&self, binary: &Path, target: &[&str]) -> anyhow::Result<Client> {
        let output = Command::new(binary)
            .arg("kubeconfig")
            .args(target)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .output()
            .await?;
        if !output.status.success() {
            bail!(
                "gardener kubeconfig {}: {}",
                target.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&String::from_utf8(output.stdout)?)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// How the garden is reached.
    pub async fn config(&self) -> anyhow::Result<Config> {
        let kubeconfig = kube::config::Kubeconfig::read_from(&self.kubeconfig)?;
        Ok(Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?)
    }

    /// Waits until Gardener's kinds can be applied: the cloud profile and the seed are there.
    pub async fn prepared(&self, client: &Client) -> anyhow::Result<()> {
        let seeds: Api<gardener_apis::core::v1beta1::Seed> = Api::all(client.clone());
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
}

/// Looks again and again until `holds`. Failed looks are looked at again.
pub async fn until(
    what: &str,
    patience: Duration,
    mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let outcome = holds().await;
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

/// Whether the last operation belongs to the present generation and succeeded.
pub fn is_settled(shoot: &Shoot) -> bool {
    shoot
        .status
        .last_operation
        .as_ref()
        .is_some_and(|operation| operation.state == "Succeeded")
        && shoot.status.observed_generation == shoot.metadata.generation
}
