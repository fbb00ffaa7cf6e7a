//! A namespace with machines, a target whose nodes the test makes ready, a driver that only writes down.

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apis::machine::v1alpha1::MachineClass;
use gardener_rules::machines::deletion::phase_of;
use gardener_testkit::seed::{Seed, eventually, pass};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::driver::{Code, DriverError, Made, Request};
use super::*;

const NAMESPACE: &str = "shoot--local--a";

/// Machines by name; every one is also a node of the one cluster there is, ready unless told otherwise.
struct Nodes {
    client: Client,
    made: parking_lot::Mutex<BTreeMap<String, String>>,
    ready: std::sync::atomic::AtomicBool,
}

fn made(name: &str) -> Made {
    Made {
        provider_id: format!("test:///{name}"),
        node_name: format!("node-{name}"),
    }
}

#[async_trait]
impl Driver for Nodes {
    async fn create(&self, request: &Request) -> Result<Made, DriverError> {
        let name = request.machine.name_any();
        let user_data = String::from_utf8(request.secret["userData"].0.clone()).unwrap();
        self.made.lock().insert(name.clone(), user_data);
        let made = made(&name);
        let node: Node = serde_json::from_value(json!({"metadata": {"name": made.node_name}})).unwrap();
        let api: Api<Node> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &node).await.unwrap();
        if self.ready.load(std::sync::atomic::Ordering::Relaxed) {
            set_ready(&self.client, &made.node_name, "True").await;
        }
        Ok(made)
    }
    async fn status(&self, request: &Request) -> Result<Made, DriverError> {
        let name = request.machine.name_any();
        if self.made.lock().contains_key(&name) {
            Ok(made(&name))
        } else {
            Err(DriverError::new(Code::NotFound, "no such machine"))
        }
    }
    async fn delete(&self, request: &Request) -> Result<(), DriverError> {
        self.made.lock().remove(&request.machine.name_any());
        Ok(())
    }
    async fn list(&self, _: &MachineClass) -> Result<BTreeMap<String, String>, DriverError> {
        Ok(BTreeMap::new())
    }
}

async fn set_ready(client: &Client, node: &str, status: &str) {
    let api: Api<Node> = Api::all(client.clone());
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    api.patch_status(node, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

async fn start(ready: bool) -> (Seed, Arc<Nodes>) {
    let seed = Seed::with_groups(&["machine.sapcloud.io"]).await;
    seed.namespace(NAMESPACE).await;
    let driver = Arc::new(Nodes {
        client: seed.client.clone(),
        made: Default::default(),
        ready: ready.into(),
    });
    let config = Config {
        client: seed.client.clone(),
        target: seed.client.clone(),
        namespace: NAMESPACE.into(),
        driver: driver.clone(),
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "class"}, "stringData": {"userData": "token <<BOOTSTRAP_TOKEN>> of <<MACHINE_NAME>>"},
    }))
    .unwrap();
    seed.api::<Secret>(NAMESPACE)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    for name in ["class-1", "class-2"] {
        let class: MachineClass = serde_json::from_value(json!({
            "metadata": {"name": name}, "providerSpec": {}, "secretRef": {"name": "class", "namespace": NAMESPACE},
        }))
        .unwrap();
        seed.api::<MachineClass>(NAMESPACE)
            .create(&PostParams::default(), &class)
            .await
            .unwrap();
    }
    tokio::spawn(run(config, CancellationToken::new()));
    (seed, driver)
}

async fn deploy(seed: &Seed, replicas: i32) -> Api<MachineDeployment> {
    let deployment: MachineDeployment = serde_json::from_value(json!({
        "metadata": {"name": "pool-z1"},
        "spec": {
            "replicas": replicas, "revisionHistoryLimit": 0, "selector": {"matchLabels": {"name": "pool-z1"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"name": "pool-z1"}},
                "spec": {
                    "class": {"kind": "MachineClass", "name": "class-1"},
                    "nodeTemplate": {"metadata": {"labels": {"pool": "a"}}},
                },
            },
        },
    }))
    .unwrap();
    let api: Api<MachineDeployment> = seed.api(NAMESPACE);
    api.create(&PostParams::default(), &deployment).await.unwrap();
    api
}

async fn available(api: &Api<MachineDeployment>, count: i32) -> MachineDeployment {
    let wanted = |deployment: Option<&MachineDeployment>| {
        deployment.is_some_and(|one| {
            let status = &one.status;
            (status.available_replicas, status.updated_replicas, status.replicas)
                == (Some(count), Some(count), Some(count))
                && status.observed_generation == one.metadata.generation
        })
    };
    eventually(api, "pool-z1", wanted).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn machines_come_and_go_with_the_deployment() {
    let (seed, driver) = start(true).await;
    let api = deploy(&seed, 3).await;
    available(&api, 3).await;
    let machines: Api<Machine> = seed.api(NAMESPACE);
    let all = machines.list(&Default::default()).await.unwrap().items;
    assert_eq!(all.len(), 3);
    for machine in &all {
        assert_eq!(phase_of(machine), "Running");
        let name = machine.name_any();
        let text = driver.made.lock()[&name].clone();
        assert!(
            text.starts_with("token ") && text.ends_with(&format!("of {name}")) && !text.contains("<<"),
            "{text}"
        );
        let node: Node = Api::all(seed.client.clone())
            .get(&format!("node-{name}"))
            .await
            .unwrap();
        assert_eq!(node.labels()["pool"], "a");
        assert_eq!(node.labels()["node.gardener.cloud/machine-name"], name);
    }
    // who has joined needs no token
    let tokens = seed
        .api::<Secret>("kube-system")
        .list(&Default::default())
        .await
        .unwrap();
    assert!(
        !tokens
            .items
            .iter()
            .any(|secret| secret.name_any().starts_with("bootstrap-token-"))
    );
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    api.patch("pool-z1", &PatchParams::default(), &scale).await.unwrap();
    available(&api, 1).await;
    assert_eq!(driver.made.lock().len(), 1);
    api.delete("pool-z1", &DeleteParams::default()).await.unwrap();
    eventually(&api, "pool-z1", |one| one.is_none()).await;
    assert!(driver.made.lock().is_empty());
    let nodes: Api<Node> = Api::all(seed.client.clone());
    assert!(nodes.list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn mch_c4_a_new_class_rolls_without_loss() {
    let (seed, _driver) = start(true).await;
    let api = deploy(&seed, 3).await;
    available(&api, 3).await;
    let before: Vec<String> = names(&seed).await;
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"class": {"name": "class-2"}}}}}));
    api.patch("pool-z1", &PatchParams::default(), &patch).await.unwrap();
    let machines: Api<Machine> = seed.api(NAMESPACE);
    for _ in 0..600 {
        let all = machines.list(&Default::default()).await.unwrap().items;
        let running = all.iter().filter(|machine| phase_of(machine) == "Running").count();
        assert!(
            all.len() <= 4 && running >= 3,
            "{} machines, {running} running",
            all.len()
        );
        pass(1).await;
    }
    available(&api, 3).await;
    let after = names(&seed).await;
    assert!(after.iter().all(|name| !before.contains(name)));
    let sets = seed
        .api::<MachineSet>(NAMESPACE)
        .list(&Default::default())
        .await
        .unwrap();
    assert_eq!(sets.items.len(), 1);
}

async fn names(seed: &Seed) -> Vec<String> {
    let machines: Api<Machine> = seed.api(NAMESPACE);
    let all = machines.list(&Default::default()).await.unwrap().items;
    all.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn mch_86_what_does_not_join_or_gets_ill_is_replaced() {
    let (seed, driver) = start(false).await;
    let api = deploy(&seed, 1).await;
    let machines: Api<Machine> = seed.api(NAMESPACE);
    pass(60).await;
    let first = names(&seed).await;
    assert_eq!(phase_of(&machines.get(&first[0]).await.unwrap()), "Pending");
    pass(21 * 60).await;
    let second = names(&seed).await;
    assert_ne!(first, second);
    set_ready(&seed.client, &format!("node-{}", second[0]), "True").await;
    available(&api, 1).await;
    driver.ready.store(true, std::sync::atomic::Ordering::Relaxed);
    set_ready(&seed.client, &format!("node-{}", second[0]), "Unknown").await;
    pass(5).await;
    assert_eq!(phase_of(&machines.get(&second[0]).await.unwrap()), "Unknown");
    pass(9 * 60).await;
    assert_eq!(names(&seed).await, second);
    pass(2 * 60).await;
    available(&api, 1).await;
    assert_ne!(names(&seed).await, second);
}
