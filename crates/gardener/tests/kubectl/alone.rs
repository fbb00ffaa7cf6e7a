//! `gardener run apiserver`: a garden's API alone.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use gardener_store::process::Etcd;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::controller_manager::{Replica, is_set_up};
use crate::harness::{Kubectl, Process};

/// A running server, with `kubectl` for it.
pub struct Server {
    process: Process,
    /// `kubectl` of an administrator.
    pub kubectl: Kubectl,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
}

impl Server {
    /// Starts a server on a free port, and waits until it is ready.
    pub fn start(dir: &TempDir, name: &str, arguments: &[String]) -> Self {
        let kubeconfig: PathBuf = dir.path().join(format!("{name}.yaml"));
        let process = Process::start(
            Command::new(env!("CARGO_BIN_EXE_gardener"))
                .args(["run", "apiserver", "--listen=127.0.0.1:0", "--kubeconfig"])
                .arg(&kubeconfig)
                .args(arguments),
        );
        let cache = dir.path().join(format!("cache-{name}"));
        let server = Self {
            process,
            kubectl: Kubectl::new("kubectl".into(), kubeconfig.clone(), cache),
            kubeconfig,
        };
        server.kubectl.until("get --raw /readyz", |answer| answer.out == "ok");
        // what every garden has comes right after the start
        server
            .kubectl
            .until("get clusterrole gardener.cloud:system:project-member", |answer| {
                answer.success
            });
        server
    }
}

const PROJECT: &str =
    r#"{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "NAME"}}"#;

/// Creates a project.
pub fn create_project(kubectl: &Kubectl, name: &str) {
    kubectl.ok_input(&["create", "-f", "-"], &PROJECT.replace("NAME", name));
}

/// A garden in a folder is there again after its server was killed.
pub fn in_a_folder() {
    let dir = tempfile::tempdir().expect("folder");
    let data = [format!("--data-dir={}", dir.path().join("data").display())];
    let mut server = Server::start(&dir, "one", &data);
    create_project(&server.kubectl, "first");
    assert_eq!(
        server.kubectl.ok("auth whoami -o jsonpath={.status.userInfo.username}"),
        "garden-administrator"
    );
    let identity = "get cm -n kube-system cluster-identity -o jsonpath={.data.cluster-identity}";
    assert_eq!(server.kubectl.ok(identity), "gardener-local");
    let refused = server
        .kubectl
        .refused(&["create", "-f", "-"], &PROJECT.replace("NAME", "much-too-long"));
    assert!(refused.contains("may not be more than 10 bytes"), "{refused}");
    assert_eq!(server.process.end("-9").signal(), Some(9));

    let more = [
        data.as_slice(),
        &[
            "--cluster-identity=other".to_owned(),
            "--disable-admission-plugins=ProjectMutator".to_owned(),
        ],
    ]
    .concat();
    let mut server = Server::start(&dir, "two", &more);
    assert_eq!(
        server.kubectl.ok("get projects -o name").trim(),
        "project.core.gardener.cloud/first"
    );
    assert_eq!(server.kubectl.ok(identity), "gardener-local");
    let creator = |name: &str| {
        server
            .kubectl
            .ok(&format!("get project {name} -o jsonpath={{.spec.createdBy.name}}"))
    };
    create_project(&server.kubectl, "second");
    assert_eq!(
        (creator("first").as_str(), creator("second").as_str()),
        ("garden-administrator", "")
    );
    assert_eq!(server.process.end("-TERM").code(), Some(0));
}

/// Two servers on one etcd have one garden, and each has a controller-manager; one of each is killed, and the others go on.
pub fn in_etcd(etcd: &std::path::Path) {
    let (runtime, dir) = (Runtime::new().expect("runtime"), tempfile::tempdir().expect("folder"));
    let etcd = runtime.block_on(Etcd::start(etcd)).expect("etcd starts");
    let servers = [format!("--etcd-servers={}", etcd.url)];
    let mut one = Server::start(&dir, "one", &servers);
    let mut leading = Replica::start(&dir, "leading", &one);
    is_set_up(&one.kubectl, "first");
    let other = Server::start(&dir, "other", &servers);
    let waiting = Replica::start(&dir, "waiting", &other);
    assert_eq!((leading.leads(), waiting.leads()), (true, false));
    assert_eq!(names_of_projects(&other), ["first"]);
    let refused = other
        .kubectl
        .refused(&["create", "-f", "-"], &PROJECT.replace("NAME", "first"));
    assert!(refused.contains("\"first\" already exists"), "{refused}");

    let mut watching = other
        .kubectl
        .command(&["get", "projects", "-w", "-o", "name"])
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("standard output")).lines();
    let mut seen = |name: &str| {
        let wanted = format!("project.core.gardener.cloud/{name}");
        assert!(lines.any(|line| line.expect("text") == wanted), "{wanted}");
    };
    seen("first");
    assert_eq!(one.process.end("-9").signal(), Some(9));
    assert_eq!(leading.end("-9").signal(), Some(9));
    is_set_up(&other.kubectl, "second");
    assert!(waiting.leads());
    seen("second");

    let one = Server::start(&dir, "one", &servers);
    assert_eq!(names_of_projects(&one), ["first", "second"]);
    // the controller-manager that is left hears of what the other server took
    is_set_up(&one.kubectl, "third");
    seen("third");
    watching.kill().expect("kubectl ends");
    watching.wait().expect("kubectl ends");
}

fn names_of_projects(server: &Server) -> Vec<String> {
    let names = server.kubectl.ok("get projects -o jsonpath={.items[*].metadata.name}");
    names.split(' ').map(str::to_owned).collect()
}

/// What cannot be followed is told, and nothing is started.
pub fn refused_arguments() {
    let run = |component: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gardener"));
        let output = command
            .args(["run", component])
            .args(arguments)
            .output()
            .expect("gardener starts");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run("apiserver", &[]).contains("one of --memory, --data-dir and --etcd-servers must be given"));
    assert!(run("apiserver", &["--memory", "--no-such"]).contains("'--no-such'"));
    assert!(
        run(
            "apiserver",
            &["--memory", "--tls-cert-file=/no", "--tls-private-key-file=/no"]
        )
        .contains("/no")
    );
    assert!(run("gardener-apiserver", &[]).contains("--cluster-identity must be specified"));
    let needed = [
        "--etcd-servers=http://x",
        "--cluster-identity=g",
        "--tls-cert-file=/no",
        "--tls-private-key-file=/no",
    ];
    let nowhere = [needed.as_slice(), &["--secure-port=1", "--kubeconfig=/no/kubeconfig"]].concat();
    assert!(run("gardener-apiserver", &nowhere).contains("--kubeconfig: /no/kubeconfig"));
}
