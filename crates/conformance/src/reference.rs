//! The real kube-apiserver with etcd: built from the Go module in `reference/`, which pins both, and run on free ports.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use gardener_store::process::free_port;
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Where the programs are built from, and the names they get.
const PROGRAMS: [(&str, &str); 2] = [
    ("go.etcd.io/etcd/server/v3", "etcd"),
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
];
/// What a release build would be told of itself.
const LINKED: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";
/// The token of an administrator.
pub const TOKEN: &str = "recorder";

/// A running kube-apiserver; ends with this value.
pub struct Reference {
    processes: Vec<Child>,
    _folder: TempDir,
    /// How an administrator reaches it.
    pub config: Config,
    /// An administrator's client.
    pub client: Client,
}

/// Where the programs are kept: a folder of this user's cache.
pub fn default_folder() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("gardener-conformance")
}

/// Where the programs are, if they are built; says so if they are not: tests that need them pass then.
pub fn built() -> Option<PathBuf> {
    let programs = default_folder();
    let there = PROGRAMS.iter().all(|(_, name)| programs.join(name).exists());
    if !there {
        eprintln!("skipped: {} holds no etcd and kube-apiserver", programs.display());
    }
    there.then_some(programs)
}

/// Builds what is not built yet. Go's own cache keeps later builds short.
///
/// # Errors
/// There is no Go, or a build fails.
pub async fn build(into: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("{} cannot be made", into.display()))?;
    for (package, name) in PROGRAMS {
        let status = Command::new("go")
            .args(["build", "-trimpath", "-ldflags", LINKED, "-o"])
            .arg(into.join(name))
            .arg(package)
            .current_dir(crate::sequence::root().join("reference"))
            .status()
            .await
            .context("`go` does not start: recording needs Go 1.26 or later")?;
        ensure!(status.success(), "{package} does not build");
    }
    Ok(())
}

fn started(program: PathBuf, arguments: &[String], log: &Path) -> anyhow::Result<Child> {
    let log = std::fs::File::create(log)?;
    Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))
}

/// A kube-apiserver's arguments, with the files that they name written into `folder`.
///
/// # Errors
/// The files cannot be written.
pub fn arguments(folder: &Path, etcd_url: &str, port: u16) -> anyhow::Result<Vec<String>> {
    let path = |name: &str| folder.join(name).display().to_string();
    // only the keys count; nobody looks when the certificate is valid
    let issuer = gardener_pki::authority("service-accounts", 0, Duration::from_secs(1))?;
    std::fs::write(path("sa.key"), &issuer.key)?;
    std::fs::write(path("sa.crt"), &issuer.certificate)?;
    std::fs::write(path("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))?;
    Ok(vec![
        format!("--etcd-servers={etcd_url}"),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", path("certificates")),
        format!("--token-auth-file={}", path("tokens.csv")),
        format!("--service-account-signing-key-file={}", path("sa.key")),
        format!("--service-account-key-file={}", path("sa.crt")),
        "--bind-address=127.0.0.1".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/12".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
    ])
}

impl Reference {
    /// Starts both programs and waits until the API server is ready.
    ///
    /// # Errors
    /// A program does not start, or is not ready within two minutes.
    pub async fn start(programs: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (etcd, peers) = (free_port(), free_port());
        let etcd_url = format!("http://127.0.0.1:{etcd}");
        let peer_url = format!("http://127.0.0.1:{peers}");
        let arguments = [
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
        ];
        let store = started(programs.join("etcd"), &arguments, &folder.path().join("etcd.log"))?;
        Self::serve(programs, &etcd_url, folder, vec![store], &[]).await
    }

    /// Starts kube-apiserver on an etcd that runs, and waits until it is ready.
    ///
    /// # Errors
    /// It does not start, or is not ready within two minutes.
    pub async fn start_on(programs: &Path, etcd_url: &str) -> anyhow::Result<Self> {
        Self::start_with(programs, etcd_url, &[]).await
    }

    /// As [`Reference::start_on`], with more arguments.
    ///
    /// # Errors
    /// As [`Reference::start_on`].
    pub async fn start_with(programs: &Path, etcd_url: &str, more: &[String]) -> anyhow::Result<Self> {
        Self::serve(programs, etcd_url, tempfile::tempdir()?, Vec::new(), more).await
    }

    async fn serve(
        programs: &Path,
        etcd_url: &str,
        folder: TempDir,
        mut processes: Vec<Child>,
        more: &[String],
    ) -> anyhow::Result<Self> {
        let secure = free_port();
        let mut arguments = arguments(folder.path(), etcd_url, secure)?;
        arguments.extend_from_slice(more);
        let log = folder.path().join("kube-apiserver.log");
        processes.push(started(programs.join("kube-apiserver"), &arguments, &log)?);
        let config = config(secure)?;
        let client = Client::try_from(config.clone())?;
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let ready = http::Request::get("/readyz").body(Vec::new())?;
            if client.request_text(ready).await.is_ok() {
                break;
            }
            for process in &mut processes {
                if let Some(status) = process.try_wait()? {
                    bail!(
                        "a server ended ({status}):\n{}",
                        std::fs::read_to_string(&log).unwrap_or_default()
                    );
                }
            }
            ensure!(
                Instant::now() < deadline,
                "kube-apiserver is not ready after two minutes"
            );
            sleep(Duration::from_millis(200)).await;
        }
        Ok(Self {
            processes,
            _folder: folder,
            config,
            client,
        })
    }

    /// The processes: etcd and kube-apiserver.
    ///
    /// # Errors
    /// One of them has ended.
    pub fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let pids = self.processes.iter().map(Child::id);
        pids.collect::<Option<_>>().context("a server has ended")
    }
}

/// How an administrator reaches a server on a port. The server makes a certificate for itself, which nobody knows: nothing but this process talks to it.
///
/// # Errors
/// The address is none.
pub fn config(port: u16) -> anyhow::Result<Config> {
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.accept_invalid_certs = true;
    // a refusal is an answer, too
    config.default_retry = false;
    config.auth_info.token = Some(TOKEN.to_owned().into());
    Ok(config)
}
