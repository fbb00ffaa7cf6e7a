//! What stands on etcd, on the etcd that recordings are made with: the store's contract, and one etcd under two API servers. Where the programs
//! were not built (`conformance record` does), these tests say so and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "etcd/encryption.rs"]
mod encryption;

use std::sync::Arc;

use gardener_conformance::reference::{self, Reference};
use gardener_store::contract;
use gardener_store::process::{Etcd, free_port};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn the_store_keeps_its_contract() {
            let Some(programs) = reference::built() else { return };
            $({
                let etcd = Etcd::start(&programs.join("etcd")).await.unwrap();
                let options = contract::options(stringify!($name));
                let store = etcd.store(contract::FORM, options).await.unwrap();
                contract::$name(Arc::new(store)).await;
            })*
        }
    };
}
gardener_store::for_each_contract!(suite);

/// One of our servers, in this process.
struct Ours {
    client: Client,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), gardener_kube_apiserver::RunError>>,
    _folder: tempfile::TempDir,
}

impl Ours {
    async fn start(etcd: &Etcd) -> Self {
        Self::start_with(etcd, &[]).await
    }

    /// Why it does not start with more arguments.
    async fn refused(etcd: &Etcd, more: &[String]) -> String {
        let (folder, flags, _) = Self::flags(etcd, more);
        let ended = gardener_kube_apiserver::run(flags, CancellationToken::new()).await;
        drop(folder);
        ended.unwrap_err().to_string()
    }

    fn flags(etcd: &Etcd, more: &[String]) -> (tempfile::TempDir, gardener_kube_apiserver::flags::Flags, u16) {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut arguments = reference::arguments(folder.path(), &etcd.url, port).unwrap();
        arguments.extend_from_slice(more);
        (folder, gardener_kube_apiserver::flags::parse(arguments).unwrap(), port)
    }

    async fn start_with(etcd: &Etcd, more: &[String]) -> Self {
        let (folder, flags, port) = Self::flags(etcd, more);
        let stop = CancellationToken::new();
        let task = tokio::spawn(gardener_kube_apiserver::run(flags, stop.clone()));
        let client = Client::try_from(reference::config(port).unwrap()).unwrap();
        while client.request_text(get("/readyz")).await.is_err() {
            assert!(!task.is_finished(), "the server ended");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Self {
            client,
            stop,
            task,
            _folder: folder,
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn get(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).unwrap()
}

async fn read(client: &Client, path: &str) -> Value {
    client
        .request(get(path))
        .await
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn create(client: &Client, collection: &str, object: &Value) -> Value {
    let request = http::Request::post(collection).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
    client
        .request(request)
        .await
        .unwrap_or_else(|error| panic!("{collection}: {error}"))
}

const NAMESPACED: &str = "namespaces/default";

/// Objects of many kinds, by their collection.
fn objects(name: &str) -> Vec<(String, Value)> {
    let metadata = json!({"name": name, "labels": {"a": "b"}});
    let pod = json!({"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "100m"}}}]});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": pod});
    let mut job = pod.clone();
    job["restartPolicy"] = "Never".into();
    let selector = json!({"matchLabels": {"app": "web"}});
    [
        (
            "/api/v1",
            "configmaps",
            json!({"data": {"k": "v"}, "binaryData": {"b": "AAE="}}),
        ),
        ("/api/v1", "secrets", json!({"stringData": {"k": "v"}})),
        (
            "/api/v1",
            "services",
            json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}),
        ),
        (
            "/api/v1",
            "persistentvolumeclaims",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        (
            "/apis/apps/v1",
            "deployments",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "/apis/apps/v1",
            "statefulsets",
            json!({"spec": {"selector": selector, "serviceName": "x", "template": template}}),
        ),
        (
            "/apis/batch/v1",
            "cronjobs",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1",
            "roles",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "/apis/coordination.k8s.io/v1",
            "leases",
            json!({"spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.123456Z"}}),
        ),
        (
            "/apis/networking.k8s.io/v1",
            "ingresses",
            json!({"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
        ),
        (
            "/apis/policy/v1",
            "poddisruptionbudgets",
            json!({"spec": {"minAvailable": "50%", "selector": selector}}),
        ),
        (
            "/apis/example.com/v1",
            "things",
            json!({"data": {"metadata": {"x": 1}}}),
        ),
    ]
    .into_iter()
    .map(|(api, resource, mut object)| {
        object["metadata"] = metadata.clone();
        if resource == "things" {
            object["apiVersion"] = "example.com/v1".into();
            object["kind"] = "Thing".into();
        }
        (format!("{api}/{NAMESPACED}/{resource}"), object)
    })
    .collect()
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"data": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
                }},
                "additionalPrinterColumns": [{"name": "X", "type": "integer", "jsonPath": ".data.metadata.x"}],
            }],
        },
    })
}

async fn served(client: &Client, path: &str) {
    while client.request_text(get(path)).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Both servers on one etcd read the same of what either of them wrote.
#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_goes_from_kube_apiserver_to_us_and_back() {
    let Some(programs) = reference::built() else { return };
    let etcd = Etcd::start(&programs.join("etcd")).await.unwrap();
    let theirs = Reference::start_on(&programs, &etcd.url).await.unwrap();
    create(
        &theirs.client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition(),
    )
    .await;
    served(&theirs.client, &format!("/apis/example.com/v1/{NAMESPACED}/things")).await;
    for (collection, object) in objects("theirs") {
        create(&theirs.client, &collection, &object).await;
    }
    let ours = Ours::start(&etcd).await;
    for (collection, object) in objects("ours") {
        create(&ours.client, &collection, &object).await;
    }
    for (collection, _) in objects("") {
        for name in ["theirs", "ours"] {
            let path = format!("{collection}/{name}");
            let (one, other) = (read(&theirs.client, &path).await, read(&ours.client, &path).await);
            assert_eq!(one, other, "{path}");
        }
    }
    // which kube-apiserver stores in a version that it does not serve any more
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    assert_eq!(read(&theirs.client, path).await, read(&ours.client, path).await);
    let wrong = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "wrong"}, "data": "none"});
    let things = format!("/apis/example.com/v1/{NAMESPACED}/things");
    let refused = async |client: &Client| {
        let request = http::Request::post(&things).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&wrong).unwrap()).unwrap();
        client.request::<Value>(request).await.unwrap_err().to_string()
    };
    assert_eq!(refused(&theirs.client).await, refused(&ours.client).await);
    // what one deletes is gone for the other
    for (collection, _) in objects("") {
        let delete = |name: &str| {
            http::Request::delete(format!("{collection}/{name}"))
                .body(Vec::new())
                .unwrap()
        };
        let _: Value = ours.client.request(delete("theirs")).await.unwrap();
        let _: Value = theirs.client.request(delete("ours")).await.unwrap();
    }
    for (collection, _) in objects("") {
        for name in ["theirs", "ours"] {
            let path = format!("{collection}/{name}");
            let left = |client: &Client| {
                let (client, path) = (client.clone(), path.clone());
                async move { client.request::<Value>(get(&path)).await.ok() }
            };
            let (one, other) = (left(&theirs.client).await, left(&ours.client).await);
            assert_eq!(one, other, "{path}");
            // a claim waits for those who protect it
            let protected = one.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string());
            assert_eq!(protected, collection.ends_with("claims"), "{path}");
        }
    }
    ours.end().await;
}

/// Both servers keep the same resources apart, and read and watch there what either of them wrote.
#[tokio::test(flavor = "multi_thread")]
async fn resources_have_an_etcd_of_their_own() {
    let Some(programs) = reference::built() else { return };
    let (etcd, apart) = (
        Etcd::start(&programs.join("etcd")).await.unwrap(),
        Etcd::start(&programs.join("etcd")).await.unwrap(),
    );
    let flag = format!(
        "--etcd-servers-overrides=/events#{0},coordination.k8s.io/leases#{0}",
        apart.url
    );
    let theirs = Reference::start_with(&programs, &etcd.url, std::slice::from_ref(&flag))
        .await
        .unwrap();
    let ours = Ours::start_with(&etcd, &[flag]).await;
    let (events, leases) = (
        format!("/api/v1/{NAMESPACED}/events"),
        format!("/apis/coordination.k8s.io/v1/{NAMESPACED}/leases"),
    );
    let about = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    for (client, name) in [(&theirs.client, "theirs"), (&ours.client, "ours")] {
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
        let first = create(client, &events, &event).await;
        create(client, &leases, &lease).await;
        let revision: u64 = first["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        let key = format!("/registry/events/default/{name}");
        assert_eq!(etcd.get_bytes(&key).await, b"", "{name}");
        assert_ne!(apart.get_bytes(&key).await, b"", "{name}");
        // each etcd counts by itself
        let pods = read(client, &format!("/api/v1/{NAMESPACED}/pods")).await;
        let of_pods: u64 = pods["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert!(of_pods > revision, "{name}: {of_pods} {revision}");
    }
    // servers tell of themselves, too
    let own_events = format!("{events}?fieldSelector=involvedObject.name%3Dp");
    for path in [
        own_events.clone(),
        format!("/apis/events.k8s.io/v1/{NAMESPACED}/events/theirs"),
        format!("{leases}/ours"),
    ] {
        let (mut one, mut other) = (read(&theirs.client, &path).await, read(&ours.client, &path).await);
        for list in [&mut one, &mut other] {
            // which server leases are renewed meanwhile
            list["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        }
        assert_eq!(one, other, "{path}");
    }
    let listed = read(&ours.client, &own_events).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let from = listed["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "later"}, "involvedObject": about});
    create(&theirs.client, &events, &event).await;
    let watch = format!("{own_events}&watch=true&timeoutSeconds=2&resourceVersion={from}");
    let seen = ours.client.request_text(get(&watch)).await.unwrap();
    assert!(
        seen.starts_with("{\"type\":\"ADDED\"") && seen.contains("\"later\""),
        "{seen}"
    );
    let again: Value = ours
        .client
        .request(
            http::Request::delete(format!("{events}/later"))
                .body(Vec::new())
                .unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(again["status"], "Success");
    ours.end().await;
}

/// A definition that somebody wrote who ended before its names were settled, in the version in which upstream stores them.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_come_by_the_store_are_served() {
    let Some(programs) = reference::built() else { return };
    let etcd = Etcd::start(&programs.join("etcd")).await.unwrap();
    let ours = Ours::start(&etcd).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com", "uid": "0ac4b5ea-4d2d-4b8e-8a3e-4b6b0e1e5a11", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "group": "example.com", "version": "v1", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "validation": {"openAPIV3Schema": {"type": "object", "properties": {"foo": {}}}},
        },
    });
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/foos.example.com";
    etcd.put(key, &definition.to_string()).await;
    let foos = format!("/apis/example.com/v1/{NAMESPACED}/foos");
    served(&ours.client, &foos).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com";
    let status = read(&ours.client, path).await["status"].clone();
    assert_eq!(status["acceptedNames"]["singular"], "foo", "{status}");
    for kind in ["NamesAccepted", "Established"] {
        let conditions = status["conditions"].as_array().unwrap();
        let of_kind = conditions.iter().find(|own| own["type"] == kind);
        assert_eq!(of_kind.unwrap()["status"], "True", "{status}");
    }
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "foo": 1});
    create(&ours.client, &foos, &foo).await;
    ours.end().await;
}
