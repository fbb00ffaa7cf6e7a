//! Stories of an embedded cluster, in memory and in virtual time.

use std::sync::Arc;
use std::time::Duration;

use gardener_cluster::kubelet::{self, Kubelets, NodeConfig};
use gardener_cluster::{Config, Participants, Role, run};
use gardener_testkit::cluster::MemoryClusters;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct World {
    clusters: MemoryClusters,
    client: Client,
    kubelets: Kubelets,
    participants: Participants,
    stop: CancellationToken,
}

const NAME: &str = "seed";

impl World {
    async fn new() -> Self {
        Self::with(|_| {}, Vec::new()).await
    }

    async fn with(change: impl FnOnce(&mut Config), programs: Vec<Arc<dyn kubelet::Program>>) -> Self {
        let clusters = MemoryClusters::new();
        let client = clusters.open(NAME).await;
        let (participants, stop) = (Participants::default(), CancellationToken::new());
        let mut config = Config::new(clusters.server.clone(), participants.clone());
        config.root_ca = Arc::new(|cluster| Some(format!("CA of {cluster}")));
        change(&mut config);
        let mut kubelet = kubelet::Config::new(config.clock.clone());
        kubelet.programs = programs;
        tokio::spawn(run(config, stop.clone()));
        participants.join(NAME, Role::ControllerManager);
        participants.join(NAME, Role::Scheduler);
        let kubelets = Kubelets::new(kubelet, stop.clone());
        Self {
            clusters,
            client,
            kubelets,
            participants,
            stop,
        }
    }

    fn node(&self, name: &str, cpu: &str) -> NodeConfig {
        NodeConfig {
            cluster: NAME.into(),
            name: name.into(),
            labels: [("topology.kubernetes.io/zone".to_owned(), format!("zone-{name}"))].into(),
            taints: Vec::new(),
            capacity: [
                ("cpu".to_owned(), cpu.to_owned()),
                ("memory".to_owned(), "16Gi".to_owned()),
            ]
            .into(),
            addresses: vec![
                ("InternalIP".into(), "10.1.0.1".into()),
                ("Hostname".into(), name.into()),
            ],
            provider_id: None,
            kubelet_version: "v1.36.0".into(),
            os_image: "simulated".into(),
            runtime_version: "simulated://1".into(),
            architecture: "amd64".into(),
            client: self.clusters.client(NAME, "admin", &["system:masters"]),
            register: true,
            pod_cidr: None,
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn pods(&self) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default()).await.unwrap().items
    }
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn deployment(name: &str, replicas: i32, image: &str) -> Deployment {
    object(json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}},
    }}))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|own| own.type_ == "Ready" && own.status == "True")
}

/// Waits in virtual time until `check` holds.
macro_rules! eventually {
    ($what:expr, $check:expr) => {{
        let mut waited = 0;
        while !$check {
            assert!(waited < 6000, "never: {}", $what);
            waited += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }};
}

#[tokio::test(start_paused = true)]
async fn deployments_run_roll_scale_and_go() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    let deployments: Api<Deployment> = world.api();
    eventually!(
        "service account",
        world
            .api::<ServiceAccount>()
            .get_opt("default")
            .await
            .unwrap()
            .is_some()
    );
    deployments
        .create(&PostParams::default(), &deployment("web", 3, "one"))
        .await
        .unwrap();
    let ready = async || {
        let found = deployments.get("web").await.unwrap();
        let status = found.status.unwrap_or_default();
        status.observed_generation == found.metadata.generation
            && status.available_replicas == found.spec.replicas
            && status.updated_replicas == found.spec.replicas
            && status.replicas == found.spec.replicas
    };
    eventually!("3 replicas", ready().await);
    let pods = world.pods().await;
    assert!(pods.len() == 3 && pods.iter().all(is_ready), "{pods:#?}");
    let ips: std::collections::BTreeSet<_> = pods
        .iter()
        .map(|pod| pod.status.as_ref().unwrap().pod_ip.clone().unwrap())
        .collect();
    assert_eq!(ips.len(), 3);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}}});
    deployments
        .patch("web", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
    eventually!("rolled", ready().await);
    let pods = world.pods().await;
    assert!(
        pods.iter()
            .all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("two"))
    );
    let found = deployments.get("web").await.unwrap();
    assert_eq!(found.annotations()["deployment.kubernetes.io/revision"], "2");
    let conditions = found.status.unwrap().conditions.unwrap();
    let reasons: Vec<_> = conditions.iter().map(|own| own.reason.clone().unwrap()).collect();
    assert!(reasons.contains(&"NewReplicaSetAvailable".into()) && reasons.contains(&"MinimumReplicasAvailable".into()));
    deployments
        .patch(
            "web",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {"replicas": 5}})),
        )
        .await
        .unwrap();
    eventually!("scaled", ready().await);
    assert_eq!(world.pods().await.len(), 5);
    deployments.delete("web", &DeleteParams::foreground()).await.unwrap();
    eventually!("gone", deployments.get_opt("web").await.unwrap().is_none());
    assert!(world.pods().await.is_empty());
    assert!(
        world
            .api::<ReplicaSet>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    world.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn namespaces_go_with_all_their_content() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces
        .create(&PostParams::default(), &object(json!({"metadata": {"name": "n"}})))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "n");
    eventually!("root CA", maps.get_opt("kube-root-ca.crt").await.unwrap().is_some());
    assert_eq!(
        maps.get("kube-root-ca.crt").await.unwrap().data.unwrap()["ca.crt"],
        "CA of seed"
    );
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), "n");
    deployments
        .create(&PostParams::default(), &deployment("web", 2, "one"))
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "n");
    let held: ConfigMap = object(json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}));
    maps.create(&PostParams::default(), &held).await.unwrap();
    eventually!(
        "pods",
        pods.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .iter()
            .filter(|pod| is_ready(pod))
            .count()
            == 2
    );
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    eventually!(
        "pods gone",
        pods.list(&ListParams::default()).await.unwrap().items.is_empty()
    );
    let told = || async {
        let found = namespaces.get("n").await.unwrap();
        let conditions = found.status.unwrap().conditions.unwrap_or_default();
        conditions
            .into_iter()
            .find(|own| own.type_ == "NamespaceFinalizersRemaining")
            .and_then(|own| own.message)
    };
    eventually!(
        "told",
        told()
            .await
            .is_some_and(|message| message.contains("example.com/hold in 1"))
    );
    maps.patch(
        "held",
        &PatchParams::default(),
        &Patch::Merge(json!({"metadata": {"finalizers": null}})),
    )
    .await
    .unwrap();
    eventually!("namespace gone", namespaces.get_opt("n").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_room_and_for_their_volumes() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "1"));
    eventually!(
        "service account",
        world
            .api::<ServiceAccount>()
            .get_opt("default")
            .await
            .unwrap()
            .is_some()
    );
    let pods: Api<Pod> = world.api();
    let pod = |name: &str, cpu: &str| -> Pod {
        object(json!({"metadata": {"name": name}, "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        }}))
    };
    let nodes: Api<Node> = Api::all(world.client.clone());
    let tainted = async || {
        nodes
            .get_opt("a")
            .await
            .unwrap()
            .is_none_or(|node| node.spec.unwrap().taints.is_some())
    };
    eventually!("node ready", !tainted().await);
    pods.create(&PostParams::default(), &pod("fits", "800m")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    pods.create(&PostParams::default(), &pod("large", "800m"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let messages = async || -> Vec<String> {
        let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        events.into_iter().filter_map(|event| event.message).collect()
    };
    let told = messages().await;
    assert!(
        told.contains(&"0/1 nodes are available: 1 Insufficient cpu.".to_owned()),
        "{told:?}"
    );
    assert!(
        told.contains(&"Successfully assigned default/fits to a".to_owned()),
        "{told:?}"
    );
    assert!(
        told.iter().any(|one| one.contains("secret \"s\" not found")),
        "{told:?}"
    );
    world
        .api::<Secret>()
        .create(&PostParams::default(), &object(json!({"metadata": {"name": "s"}})))
        .await
        .unwrap();
    eventually!("fits runs", is_ready(&pods.get("fits").await.unwrap()));
    pods.delete("fits", &DeleteParams::default()).await.unwrap();
    eventually!("large runs", is_ready(&pods.get("large").await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_in_clusters_that_do_not_take_part() {
    let world = World::new().await;
    let other = world.clusters.open("other").await;
    let accounts: Api<ServiceAccount> = Api::namespaced(other, "default");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(accounts.get_opt("default").await.unwrap().is_none());
    world.participants.join("other", Role::ControllerManager);
    eventually!("service account", accounts.get_opt("default").await.unwrap().is_some());
}
