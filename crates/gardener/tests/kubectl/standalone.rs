//! `gardener run kube-apiserver` on an etcd of the test.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gardener_store::process::{Etcd, free_port};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::harness::{Kubectl, Process};

/// Keys in their old forms are not made here; the tests in Go use them.
fn service_account_key(path: &Path) {
    let key = gardener_pki::authority("service-accounts", 0, std::time::Duration::from_secs(1)).expect("key");
    std::fs::write(path, key.key).expect("file");
}

/// An etcd, and a folder for all servers on it.
pub struct Place {
    _runtime: Runtime,
    etcd: Etcd,
    dir: TempDir,
}

impl Place {
    /// Starts etcd.
    pub fn new(etcd: &Path) -> Self {
        let runtime = Runtime::new().expect("runtime");
        let etcd = runtime.block_on(Etcd::start(etcd)).expect("etcd starts");
        let dir = tempfile::tempdir().expect("folder");
        service_account_key(&dir.path().join("sa.key"));
        std::fs::write(dir.path().join("tokens.csv"), "secret,admin,1,\"system:masters\"\n").expect("file");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gardener"), dir.path().join("kube-apiserver")).expect("link");
        Self {
            _runtime: runtime,
            etcd,
            dir,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A running server.
pub struct Server<'p> {
    place: &'p Place,
    process: Process,
    port: u16,
    name: &'static str,
}

impl<'p> Server<'p> {
    /// Starts a server by its link, or by its command, and waits until it is ready.
    pub fn start(place: &'p Place, name: &'static str, port: u16, by_link: bool) -> Self {
        let mut command = match by_link {
            true => Command::new(place.path("kube-apiserver")),
            false => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_gardener"));
                command.args(["run", "kube-apiserver"]);
                command
            }
        };
        let shown = |name: &str| place.path(name).display().to_string();
        command
            .arg(format!("--etcd-servers={}", place.etcd.url))
            .args(["--secure-port", &port.to_string()])
            .arg(format!("--cert-dir={}", shown(name)))
            .arg(format!("--token-auth-file={}", shown("tokens.csv")))
            .arg(format!("--service-account-key-file={}", shown("sa.key")))
            .arg(format!("--service-account-signing-key-file={}", shown("sa.key")))
            .args([
                "--bind-address=127.0.0.1",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://x",
            ])
            .args(["--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"]);
        let server = Self {
            place,
            process: Process::start(&mut command),
            port,
            name,
        };
        server.kubectl().until("get --raw /readyz", |answer| answer.out == "ok");
        server
    }

    /// `kubectl` for it, which believes the certificate that it made.
    pub fn kubectl(&self) -> Kubectl {
        let kubeconfig = format!("{}.yaml", self.name);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n\
             users: [{{name: it, user: {{token: secret}}}}]\n\
             clusters: [{{name: it, cluster: {{server: \"https://127.0.0.1:{}\", certificate-authority: {}/apiserver.crt}}}}]\n",
            self.port,
            self.place.path(self.name).display()
        );
        std::fs::write(self.place.path(&kubeconfig), text).expect("file");
        Kubectl::new("kubectl".into(), self.place.path(&kubeconfig), self.place.path("cache"))
    }
}

const DEFINITION: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

/// Two servers on one etcd show each other's writes; one is killed and goes on where it was.
pub fn two_servers(place: &Place) {
    let port = free_port();
    let mut one = Server::start(place, "one", port, true);
    let mut other = Server::start(place, "other", free_port(), false);
    let (first, second) = (one.kubectl(), other.kubectl());
    first.ok("create cm shared --from-literal=step=0");
    assert_eq!(second.ok("get cm shared -o jsonpath={.data.step}"), "0");

    let mut watching = second
        .command(&["get", "cm", "shared", "-w", "-o", "jsonpath={.data.step}{\"\\n\"}"])
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("standard output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!(line(), "0");
    let write = |kubectl: &Kubectl, step: &str| {
        let patch = format!(r#"{{"data":{{"step":"{step}"}}}}"#);
        kubectl.ok_args(&["patch", "cm", "shared", "-p", &patch]);
    };
    write(&first, "1");
    assert_eq!(line(), "1");

    assert_eq!(one.process.end("-9").signal(), Some(9));
    write(&second, "2");
    assert_eq!(line(), "2");
    let one = Server::start(place, "one", port, true);
    let first = one.kubectl();
    assert_eq!(first.ok("get cm shared -o jsonpath={.data.step}"), "2");
    write(&first, "3");
    assert_eq!(line(), "3");
    // the watch was not ended meanwhile
    watching.kill().expect("kubectl ends");
    watching.wait().expect("kubectl ends");

    // definitions that one takes are served by the other
    first.ok_input(&["create", "-f", "-"], DEFINITION);
    second.until("get things", |answer| answer.success);
    second.ok_input(
        &["create", "-f", "-"],
        r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "data": {"metadata": {"x": 1}}}"#,
    );
    assert_eq!(first.ok("get thing a -o jsonpath={.data.metadata.x}"), "1");
    assert_eq!(first.ok("get ns -o name").lines().count(), 4);
    assert_eq!(first.ok("get svc kubernetes -o jsonpath={.spec.clusterIP}"), "10.0.0.1");

    // a server that is told to end does so in order
    assert_eq!(other.process.end("-TERM").code(), Some(0));
    assert_eq!(first.ok("get --raw /readyz/etcd"), "ok");
}

/// What cannot be followed is told, and nothing is started.
pub fn refused_arguments() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gardener"));
        let output = command
            .args(["run", "kube-apiserver"])
            .args(arguments)
            .output()
            .expect("gardener starts");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&[]).contains("--etcd-servers must be specified"));
    assert!(run(&["--etcd-servres=x"]).contains("'--etcd-servers'"));
    let help = Command::new(env!("CARGO_BIN_EXE_gardener"))
        .args(["run", "kube-apiserver", "--help"])
        .output()
        .expect("gardener starts");
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("Accepted without effect"));
}
