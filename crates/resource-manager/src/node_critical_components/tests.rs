use gardener_testkit::seed::{eventually, pass};
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::world;

async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Clone + serde::Serialize + DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(value).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

fn waiting_node(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"taints": [
        {"key": TAINT, "effect": "NoSchedule"},
        {"key": "own", "effect": "NoSchedule"},
    ]}})
}

async fn reasons(client: &kube::Client, node: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let mut list = events.list(&ListParams::default()).await.unwrap().items;
    list.retain(|event| event.involved_object.name.as_deref() == Some(node));
    list.sort_by_key(|event| event.first_timestamp.clone().map(|time| time.0));
    list.into_iter().filter_map(|event| event.reason).collect()
}

#[tokio::test(start_paused = true)]
async fn grm_45_nodes_open_when_critical_components_run() {
    let (_seed, _clusters, config) = world().await;
    let client = config.target.clone();
    let stop = CancellationToken::new();
    let nodes: Api<Node> = Api::all(client.clone());
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let csi_nodes: Api<CSINode> = Api::all(client.clone());
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    create(&accounts, json!({"metadata": {"name": "default"}})).await;
    let container = json!({"name": "c", "image": "i"});
    let set = create(
        &sets,
        json!({
            "metadata": {"name": "network", "labels": {LABEL: "true"}},
            "spec": {"selector": {"matchLabels": {"app": "network"}}, "template": {
                "metadata": {"labels": {LABEL: "true", "app": "network"}},
                "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
            }},
        }),
    )
    .await;
    create(&nodes, waiting_node("a")).await;
    tokio::spawn(run(config, stop.clone()));
    pass(1).await;
    assert_eq!(reasons(&client, "a").await, ["UnscheduledNodeCriticalDaemonSets"]);

    create(
        &pods,
        json!({
            "metadata": {
                "name": "network-a",
                "labels": {LABEL: "true", "app": "network"},
                "annotations": {"node.gardener.cloud/wait-for-csi-node-local": "csi.local"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "network", "uid": set.metadata.uid}],
            },
            "spec": {"nodeName": "a", "containers": [container]},
        }),
    )
    .await;
    pass(1).await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status("network-a", &PatchParams::default(), &Patch::Merge(ready))
        .await
        .unwrap();
    pass(1).await;
    assert!(waits(&nodes.get("a").await.unwrap()), "its driver is not registered");
    create(
        &csi_nodes,
        json!({"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "csi.local", "nodeID": "a"}]}}),
    )
    .await;
    // nothing tells of the driver but the next look
    pass(10).await;
    let node = eventually(&nodes, "a", |node| node.is_some_and(|node| !waits(node))).await;
    let kept = node.unwrap().spec.unwrap().taints.unwrap();
    assert!(kept.iter().any(|taint| taint.key == "own"), "{kept:?}");
    assert_eq!(
        reasons(&client, "a").await,
        [
            "UnscheduledNodeCriticalDaemonSets",
            "UnreadyNodeCriticalPods",
            "UnreadyRequiredCSIDrivers",
            "NodeCriticalComponentsReady"
        ]
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn grm_45_nodes_wait_no_longer_when_what_they_waited_for_is_gone() {
    let (_seed, _clusters, config) = world().await;
    let client = config.target.clone();
    let stop = CancellationToken::new();
    let nodes: Api<Node> = Api::all(client.clone());
    let sets: Api<DaemonSet> = Api::namespaced(client, NAMESPACE);
    let template = json!({
        "metadata": {"labels": {LABEL: "true"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]},
    });
    let set = json!({
        "metadata": {"name": "network", "labels": {LABEL: "true"}},
        "spec": {"selector": {"matchLabels": {LABEL: "true"}}, "template": template},
    });
    create(&sets, set).await;
    tokio::spawn(run(config, stop.clone()));
    create(&nodes, waiting_node("a")).await;
    pass(35).await;
    assert!(waits(&nodes.get("a").await.unwrap()));
    apply::delete(&sets, "network").await.unwrap();
    // the deletion itself is the reason to look, not the next round
    pass(1).await;
    assert!(!waits(&nodes.get("a").await.unwrap()));
    stop.cancel();
}
