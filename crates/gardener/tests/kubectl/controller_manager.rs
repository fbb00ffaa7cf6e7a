//! `gardener run controller-manager` on a garden's API that runs alone: two replicas, of which one works.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use gardener_store::process::free_port;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use crate::alone::{Server, create_project};
use crate::harness::{Kubectl, Process};

/// A running controller-manager.
pub struct Replica {
    process: Process,
    health: u16,
    metrics: u16,
}

/// Times so short that nobody waits long for the next leader, and so long that a loaded machine keeps them.
const CONFIGURATION: &str = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
leaderElection: {leaseDuration: 10s, renewDeadline: 8s, retryPeriod: 500ms}
logFormat: text
";

impl Replica {
    /// Starts one on a garden's server, and waits until it is ready.
    pub fn start(dir: &TempDir, name: &str, server: &Server) -> Self {
        Self::start_by(Path::new(env!("CARGO_BIN_EXE_gardener")), dir, name, server)
    }

    fn start_by(program: &Path, dir: &TempDir, name: &str, server: &Server) -> Self {
        let (health, metrics) = (free_port(), free_port());
        let config = dir.path().join(format!("{name}-config.yaml"));
        let servers = format!(
            "server: {{healthProbes: {{bindAddress: 127.0.0.1, port: {health}}}, metrics: {{bindAddress: 127.0.0.1, port: {metrics}}}}}\n"
        );
        std::fs::write(&config, format!("{CONFIGURATION}{servers}")).expect("file");
        let mut command = Command::new(program);
        // a link's name says what to run
        if program == Path::new(env!("CARGO_BIN_EXE_gardener")) {
            command.args(["run", "controller-manager"]);
        }
        let process = Process::start(
            command
                .arg("--kubeconfig")
                .arg(&server.kubeconfig)
                .arg("--config")
                .arg(&config),
        );
        let replica = Self {
            process,
            health,
            metrics,
        };
        replica.until(replica.health, "/readyz", |answer| answer.ends_with("ok"));
        replica
    }

    /// Asks until an answer is as wanted.
    fn until(&self, port: u16, path: &str, wanted: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        let runtime = Builder::new_current_thread().enable_time().build().expect("runtime");
        let mut last = String::new();
        while since.elapsed().as_secs() < 60 {
            last = ask(port, path).unwrap_or_default();
            if wanted(&last) {
                return last;
            }
            runtime.block_on(async { sleep(Duration::from_millis(50)).await });
        }
        panic!("{path} was not as wanted for a minute: {last}")
    }

    /// Whether it is the one that works.
    pub fn leads(&self) -> bool {
        let text = ask(self.metrics, "/metrics").expect("metrics");
        text.contains("leader_election_master_status{name=\"gardener-controller-manager-leader-election\"} 1")
    }

    /// Ends it with a signal, and tells how it ended.
    pub fn end(&mut self, signal: &str) -> ExitStatus {
        self.process.end(signal)
    }
}

fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

const LEASE: &str =
    "get lease -n kube-system gardener-controller-manager-leader-election -o jsonpath={.spec.holderIdentity}";

/// Creates a project, and waits until a controller has made it ready.
pub fn is_set_up(kubectl: &Kubectl, project: &str) {
    create_project(kubectl, project);
    let phase = format!("get project {project} -o jsonpath={{.status.phase}}");
    kubectl.until(&phase, |answer| answer.out == "Ready");
}

/// Two replicas work on one garden, and survive losing one; the other way round, too.
pub fn two_replicas() {
    let dir = tempfile::tempdir().expect("folder");
    let server = Server::start(&dir, "one", &["--memory".to_owned()]);
    let link = dir.path().join("gardener-controller-manager");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gardener"), &link).expect("link");
    let mut first = Replica::start(&dir, "first", &server);
    is_set_up(&server.kubectl, "first");
    let mut second = Replica::start_by(&link, &dir, "second", &server);
    assert_eq!((first.leads(), second.leads()), (true, false));
    let holder = server.kubectl.ok(LEASE);
    let counted = "controller_runtime_reconcile_total{controller=\"project\",result=\"success\"} ";
    let metrics = ask(first.metrics, "/metrics").expect("metrics");
    assert!(
        metrics.contains(counted) && !metrics.contains(&format!("{counted}0\n")),
        "{metrics}"
    );

    assert_eq!(first.end("-KILL").signal(), Some(9));
    is_set_up(&server.kubectl, "second");
    assert!(second.leads());
    assert_ne!(server.kubectl.ok(LEASE), holder);

    let third = Replica::start(&dir, "third", &server);
    // who is told to end gives the lease back
    assert!(second.end("-TERM").success());
    is_set_up(&server.kubectl, "third");
    assert!(third.leads());
}

/// What cannot be followed is told before anything is done.
pub fn refusals() {
    let dir = tempfile::tempdir().expect("folder");
    let config = dir.path().join("config.yaml");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gardener"))
            .args(["run", "controller-manager"])
            .args(arguments)
            .env_remove("KUBECONFIG")
            .output()
            .expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    std::fs::write(&config, format!("{CONFIGURATION}controlers: {{}}\n")).expect("file");
    let told = run(&["--config", &config.display().to_string()]);
    assert!(
        told.contains("strict decoding error: unknown field \"controlers\""),
        "{told}"
    );
    let told = run(&["--kubeconfig=/nowhere/config"]);
    assert!(told.contains("/nowhere/config cannot be used"), "{told}");
}
