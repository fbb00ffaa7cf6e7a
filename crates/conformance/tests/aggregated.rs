//! gardener-apiserver's place behind a kube-apiserver: the real one, and ours. Where the programs were not built (`conformance record` does), these
//! tests say so and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use gardener_conformance::reference::{self, Reference};
use gardener_garden_server::aggregated;
use gardener_pki::{Issued, Subject};
use gardener_store::process::{Etcd, free_port};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const VERSIONS: [(&str, &str); 5] = [
    ("core.gardener.cloud", "v1"),
    ("core.gardener.cloud", "v1beta1"),
    ("operations.gardener.cloud", "v1alpha1"),
    ("security.gardener.cloud", "v1alpha1"),
    ("seedmanagement.gardener.cloud", "v1alpha1"),
];

/// Certificates and kubeconfigs.
struct Files {
    folder: tempfile::TempDir,
    serving: Issued,
}

impl Files {
    fn make() -> Self {
        let now = gardener_apimachinery::clock::Clock::system().now().as_second();
        let day = Duration::from_secs(24 * 3600);
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let proxies = gardener_pki::authority("proxies", now, day).unwrap();
        let proxy = gardener_pki::issue(&Subject::client("aggregator", &[]), &proxies, now, day).unwrap();
        let serving = gardener_pki::authority("serving", now, day).unwrap();
        let loopback = [IpAddr::from([127, 0, 0, 1])];
        let own = Subject::server(
            "gardener-apiserver",
            &["gardener-apiserver.kube-system.svc", "localhost"],
            &loopback,
        );
        let own = gardener_pki::issue(&own, &serving, now, day).unwrap();
        for (name, text) in [
            ("proxy-ca.crt", &proxies.certificate),
            ("proxy.crt", &proxy.certificate),
            ("proxy.key", &proxy.key),
            ("tls.crt", &own.certificate),
            ("tls.key", &own.key),
        ] {
            write(name, text);
        }
        Self { folder, serving }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// What makes a kube-apiserver an aggregator.
    fn aggregator(&self) -> Vec<String> {
        vec![
            format!("--proxy-client-cert-file={}", self.path("proxy.crt")),
            format!("--proxy-client-key-file={}", self.path("proxy.key")),
            format!("--requestheader-client-ca-file={}", self.path("proxy-ca.crt")),
            "--requestheader-allowed-names=aggregator".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        ]
    }

    fn kubeconfig(&self, url: &str) -> String {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {"token": reference::TOKEN}}],
            "clusters": [{"name": "it", "cluster": {"server": url, "insecure-skip-tls-verify": true}}],
        });
        std::fs::write(self.folder.path().join("kubeconfig"), config.to_string()).unwrap();
        self.path("kubeconfig")
    }
}

/// Our server, in this process.
struct Ours {
    port: u16,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), aggregated::RunError>>,
}

impl Ours {
    /// Starts with the arguments that Gardener's own tests give, and waits until it is healthy.
    async fn start(files: &Files, etcd: &Etcd, url: &str, port: u16) -> Self {
        let kubeconfig = files.kubeconfig(url);
        let arguments = [
            "--bind-address=127.0.0.1".to_owned(),
            format!("--etcd-servers={}", etcd.url),
            format!("--tls-cert-file={}", files.path("tls.crt")),
            format!("--tls-private-key-file={}", files.path("tls.key")),
            format!("--secure-port={port}"),
            "--cluster-identity=envtest".to_owned(),
            "--authorization-always-allow-paths=/healthz".to_owned(),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--kubeconfig={kubeconfig}"),
            "--disable-admission-plugins=ExtensionValidator,ShootDNS".to_owned(),
        ];
        let (flags, without_effect) = aggregated::flags::parse(arguments).unwrap();
        assert!(without_effect.is_empty());
        let stop = CancellationToken::new();
        let task = tokio::spawn(aggregated::run(flags, without_effect, stop.clone()));
        let mut config = reference::config(port).unwrap();
        config.auth_info.token = None;
        let client = Client::try_from(config).unwrap();
        while client.request_text(get("/healthz")).await.is_err() {
            assert!(!task.is_finished(), "the server ended: {:?}", task.await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { port, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn get(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).unwrap()
}

fn post(collection: &str, object: &Value) -> http::Request<Vec<u8>> {
    let request = http::Request::post(collection).header("content-type", "application/json");
    request.body(serde_json::to_vec(object).unwrap()).unwrap()
}

async fn read(client: &Client, path: &str) -> Value {
    let answered = client.request(get(path)).await;
    answered.unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn create(client: &Client, collection: &str, object: &Value) -> Value {
    let answered = client.request(post(collection, object)).await;
    answered.unwrap_or_else(|error| panic!("{collection}: {error}"))
}

/// Code and message of a refused request.
async fn refused(client: &Client, request: http::Request<Vec<u8>>) -> (u16, String) {
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("it was not refused: {other:?}"),
    }
}

/// Asks until something holds.
async fn until(what: &str, client: &Client, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..600 {
        match client.request::<Value>(get(path)).await {
            Ok(found) if holds(&found) => return found,
            Ok(found) => last = found,
            Err(error) => last = error.to_string().into(),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: {last}");
}

/// Registers the server as Gardener's own tests do, and waits until it is available and discovered.
async fn register(front: &Client, files: &Files, port: u16) {
    let service = json!({
        "metadata": {"name": "gardener-apiserver"}, "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    create(front, "/api/v1/namespaces/kube-system/services", &service).await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let bundle = base64::engine::general_purpose::STANDARD.encode(&files.serving.certificate);
    for (group, version) in VERSIONS {
        let object = json!({
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100, "caBundle": bundle,
                "service": {"name": "gardener-apiserver", "namespace": "kube-system", "port": port},
            },
        });
        create(front, services, &object).await;
    }
    for (group, version) in VERSIONS {
        let available = |found: &Value| {
            let conditions = found["status"]["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|own| own["type"] == "Available" && own["status"] == "True")
        };
        until(
            "is available",
            front,
            &format!("{services}/{version}.{group}"),
            available,
        )
        .await;
        let served = |found: &Value| found["resources"].as_array().is_some_and(|list| !list.is_empty());
        until("is discovered", front, &format!("/apis/{group}/{version}"), served).await;
    }
}

const CORE: &str = "/apis/core.gardener.cloud/v1beta1";

fn project(name: &str) -> Value {
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": name}})
}

async fn namespace(front: &Client, name: &str) {
    create(front, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
}

/// What an administrator does, and somebody with a role.
async fn works(front: &Client) {
    let identity = until(
        "is written",
        front,
        "/api/v1/namespaces/kube-system/configmaps/cluster-identity",
        |_| true,
    )
    .await;
    assert_eq!(identity["data"]["cluster-identity"], "envtest");
    namespace(front, "garden-a").await;
    create(front, &format!("{CORE}/projects"), &project("a")).await;
    // what is referred to was made just now, and is served elsewhere
    for name in ["one", "two", "three"] {
        create(
            front,
            "/api/v1/namespaces/garden-a/secrets",
            &json!({"metadata": {"name": name}}),
        )
        .await;
        let binding = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": {"name": name},
            "secretRef": {"name": name, "namespace": "garden-a"}, "provider": {"type": "local"},
        });
        create(front, &format!("{CORE}/namespaces/garden-a/secretbindings"), &binding).await;
    }
    let nowhere = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": {"name": "four"},
        "secretRef": {"name": "four", "namespace": "garden-a"}, "provider": {"type": "local"},
    });
    let bindings = |namespace: &str| format!("{CORE}/namespaces/{namespace}/secretbindings");
    let (code, message) = refused(front, post(&bindings("garden-a"), &nowhere)).await;
    assert!(
        code == 403 && message.contains("\"four\" not found"),
        "{code} {message}"
    );
    let (code, message) = refused(front, post(&bindings("garden-b"), &nowhere)).await;
    assert_eq!((code, message.as_str()), (404, "namespaces \"garden-b\" not found"));
    // tables come through
    let table =
        http::Request::get(format!("{CORE}/projects")).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = front.request(table.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(table["columnDefinitions"][1]["name"], "Namespace");
    // who asks is told on, and the aggregator says what is allowed
    let alice = |path: &str| {
        http::Request::get(path)
            .header("impersonate-user", "alice")
            .body(Vec::new())
            .unwrap()
    };
    let (code, message) = refused(front, alice(&bindings("garden-a"))).await;
    let wanted = "User \"alice\" cannot list resource \"secretbindings\" in API group \"core.gardener.cloud\" in the namespace \"garden-a\"";
    assert!(code == 403 && message.contains(wanted), "{message}");
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["secretbindings"], "verbs": ["list"]}]);
    create(
        front,
        &format!("{roles}/clusterroles"),
        &json!({"metadata": {"name": "reader"}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
    });
    create(front, &format!("{roles}/namespaces/garden-a/rolebindings"), &binding).await;
    let mut tries = 0;
    let listed = loop {
        match front.request::<Value>(alice(&bindings("garden-a"))).await {
            Ok(listed) => break listed,
            // refusals are remembered for ten seconds
            Err(error) => assert!(tries < 300, "{error}"),
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    let (code, _) = refused(front, alice(&bindings("default"))).await;
    assert_eq!(code, 403);
    // schemas are merged
    let swagger = until("has schemas", front, "/openapi/v2", |found| {
        found["paths"]
            .as_object()
            .is_some_and(|paths| paths.contains_key(&format!("{CORE}/shoots")))
    });
    assert!(swagger.await["definitions"].as_object().unwrap().len() > 500);
    let documents = until("has documents", front, "/openapi/v3", |found| {
        found["paths"].get("apis/core.gardener.cloud/v1beta1").is_some()
    });
    let url = documents.await["paths"]["apis/core.gardener.cloud/v1beta1"]["serverRelativeURL"].clone();
    let document = read(front, url.as_str().unwrap()).await;
    assert!(
        document["paths"]
            .get(format!("{CORE}/namespaces/{{namespace}}/shoots"))
            .is_some()
    );
}

/// The server's etcd is one that upstream wrote, and is left as upstream would have.
async fn keeps_upstreams_form(front: &Client, etcd: &Etcd) {
    let place = "/registry-gardener/core.gardener.cloud/projects/theirs";
    let theirs = json!({
        "kind": "Project", "apiVersion": "core.gardener.cloud/v1beta1",
        "metadata": {"name": "theirs", "uid": "8d3b0d5e-6d5c-4b6e-9a39-4a3c2d5d2f10", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"createdBy": {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "x"}}, "status": {},
    });
    etcd.put(place, &format!("{theirs}\n")).await;
    let path = format!("{CORE}/projects/theirs");
    let found = until("is found", front, &path, |_| true).await;
    assert_eq!(found["spec"]["createdBy"]["name"], "x");
    let patch = http::Request::patch(&path).header("content-type", "application/merge-patch+json");
    let patch = patch.body(br#"{"metadata":{"labels":{"a":"b"}}}"#.to_vec()).unwrap();
    front.request::<Value>(patch).await.unwrap();
    let stored: Value = serde_json::from_str(&etcd.get(place).await).unwrap();
    assert_eq!(
        (&stored["kind"], &stored["apiVersion"]),
        (&"Project".into(), &"core.gardener.cloud/v1beta1".into())
    );
    assert_eq!(stored["metadata"]["labels"]["a"], "b");
    assert_eq!(stored["metadata"]["uid"], theirs["metadata"]["uid"]);
    assert!(stored["metadata"].get("resourceVersion").is_none(), "{stored}");
    // of two versions, v1 is stored
    let deployment = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerDeployment", "metadata": {"name": "d"},
        "type": "helm", "providerConfig": {"chart": "Y2hhcnQ="},
    });
    create(front, &format!("{CORE}/controllerdeployments"), &deployment).await;
    let stored = etcd
        .get("/registry-gardener/core.gardener.cloud/controllerdeployments/d")
        .await;
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        (&stored["apiVersion"], &stored["helm"]["rawChart"]),
        (&"core.gardener.cloud/v1".into(), &"Y2hhcnQ=".into())
    );
}

async fn behind(front: &Client, files: &Files, etcd: &Etcd, url: &str) {
    let ours = Ours::start(files, etcd, url, free_port()).await;
    let port = ours.port;
    register(front, files, port).await;
    works(front).await;
    keeps_upstreams_form(front, etcd).await;
    // a server that comes again has what was there
    ours.end().await;
    let ours = Ours::start(files, etcd, url, port).await;
    until("is there again", front, &format!("{CORE}/projects/theirs"), |found| {
        found["metadata"]["labels"]["a"] == "b"
    })
    .await;
    ours.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_kube_apiserver() {
    let Some(programs) = reference::built() else { return };
    let (files, etcd) = (Files::make(), Etcd::start(&programs.join("etcd")).await.unwrap());
    let theirs = Reference::start_with(&programs, &etcd.url, &files.aggregator())
        .await
        .unwrap();
    let url = theirs.config.cluster_url.to_string();
    behind(&theirs.client, &files, &etcd, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_our_kube_apiserver() {
    let Some(programs) = reference::built() else { return };
    let (files, etcd) = (Files::make(), Etcd::start(&programs.join("etcd")).await.unwrap());
    let port = free_port();
    let mut arguments = reference::arguments(files.folder.path(), &etcd.url, port).unwrap();
    arguments.extend(files.aggregator());
    let stop = CancellationToken::new();
    let flags = gardener_kube_apiserver::flags::parse(arguments).unwrap();
    let task = tokio::spawn(gardener_kube_apiserver::run(flags, stop.clone()));
    let config = reference::config(port).unwrap();
    let front = Client::try_from(config.clone()).unwrap();
    while front.request_text(get("/readyz")).await.is_err() {
        assert!(!task.is_finished(), "the server ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    behind(&front, &files, &etcd, &config.cluster_url.to_string()).await;
    stop.cancel();
    task.await.unwrap().unwrap();
}
