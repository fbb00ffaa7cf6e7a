//! A Worker, machine-controller-manager with the local driver, and a test that plays the machines.

use std::sync::Arc;

use gardener_machine_controller_manager as mcm;
use gardener_testkit::seed::{Seed, eventually, pass};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{DeleteParams, PostParams};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::machine_driver::LocalDriver;

const NAMESPACE: &str = "shoot--local--a";

async fn start() -> Seed {
    let seed = Seed::with_groups(&[
        "extensions.gardener.cloud",
        "machine.sapcloud.io",
        "resources.gardener.cloud",
    ])
    .await;
    seed.namespace(NAMESPACE).await;
    let config = crate::Config {
        client: seed.client.clone(),
        namespace: None,
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    tokio::spawn(crate::run(config, CancellationToken::new()));
    let config = mcm::Config {
        client: seed.client.clone(),
        target: seed.client.clone(),
        namespace: NAMESPACE.into(),
        driver: Arc::new(LocalDriver::new(seed.client.clone())),
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    tokio::spawn(mcm::run(config, CancellationToken::new()));
    tokio::spawn(play_machines(seed.client.clone()));
    for (name, key) in [("cloudprovider", "none"), ("osc-result", "cloud_config")] {
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": name}, "stringData": {key: "#cloud-config <<MACHINE_NAME>>"},
        }))
        .unwrap();
        seed.api::<Secret>(NAMESPACE)
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }
    seed
}

/// Every machine pod is a ready node, as long as it is there.
async fn play_machines(client: Client) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let nodes: Api<Node> = Api::all(client);
    loop {
        for pod in pods
            .list(&ListParams::default().labels("app=machine"))
            .await
            .unwrap()
            .items
        {
            let name = pod.name_any();
            if nodes.get_opt(&name).await.unwrap().is_none() {
                let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
                nodes.create(&PostParams::default(), &node).await.unwrap();
                let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
                nodes
                    .patch_status(&name, &PatchParams::default(), &Patch::Merge(ready))
                    .await
                    .unwrap();
            }
        }
        pass(5).await;
    }
}

fn worker(secret: &str, minimum: i32, maximum: i32) -> Worker {
    serde_json::from_value(json!({
        "metadata": {"name": "a", "annotations": {"gardener.cloud/operation": "reconcile"}},
        "spec": {
            "type": "local", "region": "local", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "local", "machineType": "local", "minimum": minimum, "maximum": maximum, "maxSurge": 1, "maxUnavailable": 0,
                "machineImage": {"name": "local", "version": "1.0.0"}, "userDataSecretRef": {"name": "osc-result", "key": "cloud_config"},
                "nodeAgentSecretName": secret, "labels": {"worker.gardener.cloud/pool": "local"}, "zones": ["0", "1"],
                "kubernetesVersion": "1.36.0", "architecture": "amd64",
            }],
        },
    }))
    .unwrap()
}

async fn succeeded(seed: &Seed, generation: i64) -> Worker {
    let api: Api<Worker> = seed.api(NAMESPACE);
    let done = |worker: Option<&Worker>| {
        worker.is_some_and(|worker| {
            worker.status.observed_generation == Some(generation)
                && worker
                    .status
                    .last_operation
                    .as_ref()
                    .is_some_and(|last| last.state == "Succeeded")
        })
    };
    eventually(&api, "a", done).await.unwrap()
}

async fn pod_names(seed: &Seed) -> Vec<String> {
    let pods = seed.api::<Pod>(NAMESPACE).list(&Default::default()).await.unwrap();
    pods.items.iter().map(ResourceExt::name_any).collect()
}

async fn hibernate(seed: &Seed, enabled: bool) {
    let api: Api<Cluster> = Api::all(seed.client.clone());
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some(NAMESPACE.into());
    apply::create_or_patch(&api, cluster, |cluster| {
        cluster.spec.cloud_profile = json!({});
        cluster.spec.shoot = json!({"spec": {"hibernation": {"enabled": enabled}}});
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn mch_36_a_worker_has_its_machines_rolls_sleeps_and_goes() {
    let seed = start().await;
    let api: Api<Worker> = seed.api(NAMESPACE);
    api.create(&PostParams::default(), &worker("gardener-node-agent-local-1", 3, 4))
        .await
        .unwrap();
    let first = succeeded(&seed, 1).await;
    let published: Vec<(String, i32, i32)> = first
        .status
        .machine_deployments
        .iter()
        .map(|one| (one.name.clone(), one.minimum, one.maximum))
        .collect();
    let name = |zone: &str| format!("{NAMESPACE}-local-{zone}");
    assert_eq!(published, [(name("z1"), 2, 2), (name("z2"), 1, 2)]);
    assert!(first.status.machine_deployments_last_update_time.is_some());
    let pods = pod_names(&seed).await;
    assert_eq!(pods.len(), 3);
    let secret = seed
        .api::<Secret>(NAMESPACE)
        .get(&format!("{}-userdata", pods[0]))
        .await
        .unwrap();
    let text = String::from_utf8(secret.data.unwrap()["userdata"].0.clone()).unwrap();
    assert_eq!(
        format!("machine-{}", text.trim_start_matches("#cloud-config ")),
        pods[0]
    );

    // a new secret of the node agent is a new class, and new machines
    let classes: Api<MachineClass> = seed.api(NAMESPACE);
    let before = classes.list(&Default::default()).await.unwrap().items;
    let mut patch = serde_json::to_value(worker("gardener-node-agent-local-2", 3, 4)).unwrap();
    patch.as_object_mut().unwrap().remove("status");
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    succeeded(&seed, 2).await;
    let rolled = pod_names(&seed).await;
    assert!(rolled.len() == 3 && rolled.iter().all(|pod| !pods.contains(pod)));
    let after = classes.list(&Default::default()).await.unwrap().items;
    assert!(
        after.len() == 2
            && after
                .iter()
                .all(|class| !before.iter().any(|old| old.name_any() == class.name_any()))
    );

    // MCH-38, MCH-C23
    let annotate = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    hibernate(&seed, true).await;
    api.patch("a", &PatchParams::default(), &Patch::Merge(&annotate))
        .await
        .unwrap();
    pass(60).await;
    succeeded(&seed, 2).await;
    assert!(pod_names(&seed).await.is_empty());
    hibernate(&seed, false).await;
    api.patch("a", &PatchParams::default(), &Patch::Merge(&annotate))
        .await
        .unwrap();
    pass(60).await;
    succeeded(&seed, 2).await;
    assert_eq!(pod_names(&seed).await.len(), 3);

    api.delete("a", &DeleteParams::default()).await.unwrap();
    eventually(&api, "a", |worker| worker.is_none()).await;
    assert!(pod_names(&seed).await.is_empty());
    assert!(classes.list(&Default::default()).await.unwrap().items.is_empty());
}
