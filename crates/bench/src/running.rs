//! Runs a `gardener`, and knows how to reach it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use kube::{Client, Config};
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

/// A running `gardener`; killed with this value.
pub struct Gardener {
    process: Child,
    kubeconfig: PathBuf,
    _dir: TempDir,
    /// When it was started.
    pub started: Instant,
}

impl Gardener {
    /// Starts `gardener up` and waits for nothing. Its data is in `data_dir`, or in a folder that goes with this value.
    pub fn up(binary: &Path, data_dir: Option<&Path>) -> anyhow::Result<Self> {
        Self::spawn(binary, &["up", "--no-shoot", "-o", "json"], data_dir)
    }

    /// Starts `gardener run apiserver`, a garden without controllers, and waits for nothing. Its data is where that of [`Self::up`] is.
    pub fn apiserver(binary: &Path, data_dir: Option<&Path>) -> anyhow::Result<Self> {
        Self::spawn(binary, &["run", "apiserver", "--v", "0"], data_dir)
    }

    fn spawn(binary: &Path, command: &[&str], data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let kubeconfig = dir.path().join("kubeconfig");
        let started = Instant::now();
        let process = Command::new(binary)
            .args(command)
            .args(["--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .arg("--data-dir")
            .arg(data_dir.map_or_else(|| dir.path().join("data"), Path::to_owned))
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
        self.process.id().context("gardener has ended")
    }

    /// Kills the process as `kill -9` does, and waits until it is gone.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Asks the process to stop, as Ctrl-C does, and waits until it is gone.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.pid()?.to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().await?;
        anyhow::ensure!(asked.success(), "process {pid} cannot be stopped: {asked}");
        let status = self.process.wait().await?;
        anyhow::ensure!(status.success(), "gardener stopped: {status}");
        Ok(())
    }

    /// Waits until the garden answers `/readyz` with 200.
    pub async fn client(&mut self) -> anyhow::Result<Client> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut client: Option<Client> = None;
        loop {
            if let Some(status) = self.process.try_wait()? {
                bail!("gardener has ended: {status}");
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
}
