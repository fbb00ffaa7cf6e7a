//! A controller-manager may die after any of its writes: the next one comes to the same end. Each scenario is run with a process that dies after its
//! first write, after its second, and so on, until one lives to the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gardener_controller_manager::Config;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::harness::*;
use crate::sets;

/// Which requests count, by method and path. Events never do.
type Counts = fn(&Method, &str) -> bool;

fn all(_: &Method, _: &str) -> bool {
    true
}

/// A client whose process is dead after so many writes: no answer comes any more, not even to the last of them.
fn mortal(client: Client, writes: usize, counts: Counts) -> (Client, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, counted) = (client.clone(), counted.clone());
        async move {
            let (method, path) = (request.method(), request.uri().path());
            let is_write = *method != Method::GET && !path.contains("/events") && counts(method, path);
            if counted.load(Ordering::SeqCst) >= writes {
                futures::future::pending::<()>().await;
            }
            if is_write {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            let answer = client.send(request).await;
            if is_write && counted.load(Ordering::SeqCst) >= writes {
                futures::future::pending::<()>().await;
            }
            answer
        }
    });
    (Client::new(service, "default"), done)
}

/// Runs a scenario with deaths after each number of writes that count. `prepare` sets the garden up, `live` lets time pass, `end` says how it ended,
/// which must not depend on deaths.
async fn with_deaths<P, L, E>(counts: Counts, prepare: P, live: L, end: E)
where
    P: AsyncFn(&Garden),
    L: AsyncFn(&Garden),
    E: AsyncFn(&Garden) -> Value,
{
    let mut expected = None;
    for writes in std::iter::once(usize::MAX).chain(1..) {
        let garden = Garden::with_project().await;
        prepare(&garden).await;
        let (client, done) = mortal(garden.client.clone(), writes, counts);
        let dying = garden.start(Config {
            garden: client,
            ..garden.manager()
        });
        live(&garden).await;
        dying.cancel();
        let lived = writes != usize::MAX && done.load(Ordering::SeqCst) < writes;
        if lived {
            assert!(writes > 2, "nothing was written");
            break;
        }
        let next = garden.start_manager();
        live(&garden).await;
        let found = end(&garden).await;
        next.cancel();
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert_eq!(&found, expected, "died after {writes} writes"),
        }
    }
}

async fn minute(garden: &Garden) {
    garden.pass("1m").await;
}

#[tokio::test(start_paused = true)]
async fn a_project_is_set_up() {
    let prepare = async |garden: &Garden| {
        let project = json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": "dev", "uid": "uid-dev", "creationTimestamp": START},
            "spec": {"members": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "a", "role": "admin", "roles": ["extension:x"]}]}});
        garden.put(vec![project]).await;
    };
    with_deaths(all, prepare, minute, async |garden| {
        let project = garden.get(CORE, "Project", "", "dev").await.unwrap();
        let namespace = project["spec"]["namespace"].as_str().unwrap().to_owned();
        let bindings = garden
            .names(("rbac.authorization.k8s.io/v1", "RoleBinding"), &namespace)
            .await;
        let mut namespaces = garden.names(("v1", "Namespace"), "").await;
        namespaces.retain(|name| name.starts_with("garden-dev"));
        json!([
            project["status"]["phase"],
            namespaces,
            bindings,
            project["metadata"]["finalizers"]
        ])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_is_woken_up_once() {
    let prepare = async |garden: &Garden| {
        let mut one = shoot("one");
        one["spec"]["hibernation"] = json!({"enabled": true, "schedules": [{"end": "0 6 * * *"}]});
        one["status"] = json!({"lastHibernationTriggerTime": "2025-12-31T20:00:00Z", "seedName": "a"});
        garden.put(vec![one]).await;
        garden.until("2026-01-01T06:01:00Z".parse().unwrap()).await;
    };
    with_deaths(all, prepare, minute, async |garden| {
        let shoot = garden.get(CORE, "Shoot", NS, "one").await.unwrap();
        let told = shoot["status"]["lastHibernationTriggerTime"]
            .as_str()
            .unwrap_or_default();
        json!([
            shoot["spec"]["hibernation"]["enabled"],
            told.starts_with("2026-01-01T06:0"),
            shoot["metadata"]["generation"]
        ])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_whose_time_is_over_is_deleted() {
    let prepare = async |garden: &Garden| {
        garden
            .create(
                json!({"apiVersion": CORE, "kind": "Quota", "metadata": {"name": "q", "namespace": NS},
            "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "clusterLifetimeDays": 7, "metrics": {}}}),
            )
            .await
            .unwrap();
        garden.create(json!({"apiVersion": SECURITY, "kind": "CredentialsBinding", "metadata": {"name": "limited", "namespace": NS},
            "provider": {"type": "local"}, "quotas": [{"name": "q", "namespace": NS}],
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": NS}})).await.unwrap();
        let mut old = shoot("old");
        old["metadata"]["creationTimestamp"] = json!("2025-12-24T00:00:00Z");
        old["metadata"]["finalizers"] = json!(["gardener"]);
        old["spec"]["credentialsBindingName"] = json!("limited");
        garden.put(vec![old]).await;
    };
    with_deaths(all, prepare, minute, async |garden| {
        let shoot = garden.get(CORE, "Shoot", NS, "old").await.unwrap();
        let secret = garden.get("v1", "Secret", NS, "key").await.unwrap();
        let mut finalizers = secret["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        finalizers.sort_by_key(Value::to_string);
        json!([
            shoot["metadata"]["deletionTimestamp"].is_string(),
            finalizers,
            secret["metadata"]["labels"]
        ])
    })
    .await;
}

/// [VER-88]: whoever goes on comes to the same versions, the same binding, and says that it is done.
#[tokio::test(start_paused = true)]
async fn a_shoot_is_maintained() {
    let prepare = async |garden: &Garden| {
        let versions = json!([{"version": "1.34.3"},
            {"version": "1.33.1", "classification": "deprecated", "expirationDate": "2025-12-31T00:00:00Z"}]);
        let images = json!([{"name": "os", "versions": [{"version": "1.0.0"}]}]);
        let profile = gardener_testkit::garden::cloud_profile(versions, images);
        garden.apply(profile).await.unwrap();
        let secret = json!({"name": "old", "namespace": NS});
        garden
            .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret}))
            .await
            .unwrap();
        garden
            .create(
                json!({"apiVersion": CORE, "kind": "SecretBinding", "metadata": {"name": "old", "namespace": NS},
                "provider": {"type": "local"}, "secretRef": secret}),
            )
            .await
            .unwrap();
        let mut one = shoot("one");
        let spec = one["spec"].as_object_mut().unwrap();
        spec.remove("credentialsBindingName");
        spec.insert("secretBindingName".into(), json!("old"));
        // whoever starts now maintains it [VER-80]
        one["spec"]["maintenance"]["timeWindow"] = json!({"begin": "000000+0000", "end": "010000+0000"});
        one["status"] = json!({"seedName": "a", "lastOperation": operation("Create", "Succeeded")});
        garden.put(vec![one]).await;
    };
    let counts: Counts = |_, path| path.contains("/shoots/") || path.contains("/credentialsbindings");
    with_deaths(counts, prepare, minute, async |garden| {
        let shoot = garden.get(CORE, "Shoot", NS, "one").await.unwrap();
        let mut bindings = garden.names((SECURITY, "CredentialsBinding"), NS).await;
        bindings.retain(|name| name.starts_with("force"));
        let last = &shoot["status"]["lastMaintenance"];
        let (version, state) = (&shoot["spec"]["kubernetes"]["version"], &last["state"]);
        assert_eq!((version, state), (&json!("1.34.3"), &json!("Succeeded")));
        json!([
            version,
            shoot["spec"]["credentialsBindingName"],
            bindings,
            state,
            last["description"],
        ])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_set_has_as_many_replicas_as_it_should() {
    let prepare = async |garden: &Garden| {
        garden.put(vec![sets::project_of_garden()]).await;
        for object in sets::credentials_in_garden() {
            garden.create(object).await.unwrap();
        }
        garden.create(sets::set(2)).await.unwrap();
    };
    let counts: Counts =
        |method, path| path.contains("managedseed") || (method == Method::POST && path.ends_with("/shoots"));
    let live = async |garden: &Garden| {
        for _ in 0..12 {
            garden.pass("5s").await;
            sets::gardenlet_works(garden).await;
        }
    };
    with_deaths(counts, prepare, live, async |garden| {
        let status = garden.field(sets::SET, "garden", "set", "/status").await;
        let (shoots, seeds) = (
            garden.names(SHOOT, "garden").await,
            garden.names(sets::MANAGED_SEED, "garden").await,
        );
        json!([
            shoots,
            seeds,
            status["replicas"],
            status["readyReplicas"],
            status["nextReplicaNumber"]
        ])
    })
    .await;
}
