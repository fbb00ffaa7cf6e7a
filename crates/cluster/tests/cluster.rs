//! Stories of an embedded cluster, in memory and in virtual time.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gardener_cluster::kubelet::{self, Kubelets, NodeConfig};
use gardener_cluster::{Config, Participants, Role, run};
use gardener_testkit::cluster::MemoryClusters;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
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
        config.pod_networks = Arc::new(|_| Some(vec![gardener_cluster::pod_network("10.244.0.0/16", None).unwrap()]));
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

impl World {
    /// Waits until the namespace has what its pods run as.
    async fn service_account(&self) {
        let accounts = self.api::<ServiceAccount>();
        eventually!("service account", accounts.get_opt("default").await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_in_secrets_are_good_while_secret_and_account_are_there() {
    let world = World::new().await;
    let (accounts, secrets) = (world.api::<ServiceAccount>(), world.api::<Secret>());
    let account: ServiceAccount = object(json!({"metadata": {"name": "robot"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let secret = |name: &str, account: &str| -> Secret {
        let annotations = json!({"kubernetes.io/service-account.name": account});
        object(
            json!({"metadata": {"name": name, "annotations": annotations}, "type": "kubernetes.io/service-account-token"}),
        )
    };
    for (name, account) in [("kept", "robot"), ("lost", "nobody")] {
        secrets
            .create(&PostParams::default(), &secret(name, account))
            .await
            .unwrap();
    }
    eventually!("no account, no token", secrets.get_opt("lost").await.unwrap().is_none());
    let filled = async || {
        let secret = secrets.get("kept").await.unwrap();
        secret.data.filter(|data| data.contains_key("token"))
    };
    eventually!("a token", filled().await.is_some());
    let data = filled().await.unwrap();
    assert_eq!(
        (&*data["namespace"].0, &*data["ca.crt"].0),
        (&b"default"[..], &b"CA of seed"[..])
    );
    let token = String::from_utf8(data["token"].0.clone()).unwrap();
    let reviews: Api<TokenReview> = Api::all(world.client.clone());
    let review = async || {
        let review = object(json!({"metadata": {}, "spec": {"token": token}}));
        let told = reviews.create(&PostParams::default(), &review).await.unwrap();
        told.status.unwrap()
    };
    let told = review().await;
    let user = told.user.unwrap();
    assert_eq!(
        user.username.as_deref(),
        Some("system:serviceaccount:default:robot"),
        "{:?}",
        told.error
    );
    let noted = async || {
        let labels = secrets.get("kept").await.unwrap().metadata.labels.unwrap_or_default();
        labels.contains_key("kubernetes.io/legacy-token-last-used")
    };
    eventually!("its use is noted", noted().await);
    let marked = json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2020-01-01"}}});
    secrets
        .patch("kept", &PatchParams::default(), &Patch::Merge(marked))
        .await
        .unwrap();
    let error = review().await.error.unwrap();
    assert!(error.contains("has been marked invalid"), "{error}");
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    eventually!(
        "it goes with the account",
        secrets.get_opt("kept").await.unwrap().is_none()
    );
    assert_eq!(
        review().await.error.as_deref(),
        Some("[invalid bearer token, Token has been invalidated]")
    );
    world.stop.cancel();
}

/// A token that was made by itself and that nobody uses goes in two steps, a year each; one that a pod mounts, or that somebody made, stays.
#[tokio::test(start_paused = true)]
async fn tokens_that_nobody_uses_go() {
    const INVALID: &str = "kubernetes.io/legacy-token-invalid-since";
    let world = World::new().await;
    let (accounts, secrets) = (world.api::<ServiceAccount>(), world.api::<Secret>());
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "kube-system");
    let tracking = "kube-apiserver-legacy-service-account-token-tracking";
    let tracking = object(json!({"metadata": {"name": tracking}, "data": {"since": "2020-01-01"}}));
    maps.create(&PostParams::default(), &tracking).await.unwrap();
    let robot = json!({"metadata": {"name": "robot"}, "secrets": [{"name": "unused"}, {"name": "mounted"}]});
    accounts.create(&PostParams::default(), &object(robot)).await.unwrap();
    for name in ["unused", "mounted", "made"] {
        let annotations = json!({"kubernetes.io/service-account.name": "robot"});
        let metadata = json!({"name": name, "annotations": annotations});
        let secret = object(json!({"metadata": metadata, "type": "kubernetes.io/service-account-token"}));
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    world.service_account().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "main", "image": "one"}],
        "volumes": [{"name": "token", "secret": {"secretName": "mounted"}}],
    }});
    world
        .api::<Pod>()
        .create(&PostParams::default(), &object(pod))
        .await
        .unwrap();
    let marks = async || {
        let all = secrets.list(&ListParams::default()).await.unwrap();
        let told = |secret: &Secret| (secret.name_any(), secret.labels().contains_key(INVALID));
        all.iter().map(told).collect::<Vec<_>>()
    };
    let stay = [("made".to_owned(), false), ("mounted".to_owned(), false)];
    let unused = |is_marked| [&stay[..], &[("unused".to_owned(), is_marked)]].concat();
    let day = Duration::from_secs(24 * 3600);
    tokio::time::advance(day * 364).await;
    tokio::time::sleep(day / 2).await;
    assert_eq!(marks().await, unused(false));
    tokio::time::sleep(day).await;
    eventually!("it is marked", marks().await == unused(true));
    tokio::time::advance(day * 364).await;
    tokio::time::sleep(day / 2).await;
    assert_eq!(marks().await, unused(true));
    tokio::time::sleep(day * 2).await;
    eventually!("it is deleted", marks().await == stay);
    world.stop.cancel();
}

/// After a start the scheduler of a cluster may run before its API server does.
#[tokio::test(start_paused = true)]
async fn pods_that_waited_are_scheduled_once_the_api_opens() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    world.service_account().await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    eventually!("node", nodes.get_opt("a").await.unwrap().is_some());
    world.participants.leave(NAME, Role::Scheduler);
    let pod = object(json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "one"}]}}));
    world.api::<Pod>().create(&PostParams::default(), &pod).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.clusters.server.close(NAME);
    world.participants.join(NAME, Role::Scheduler);
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.clusters.open(NAME).await;
    eventually!("scheduled and ready", world.pods().await.iter().all(is_ready));
    world.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn deployments_run_roll_scale_and_go() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    let deployments: Api<Deployment> = world.api();
    world.service_account().await;
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

/// The status of ValidatingAdmissionPolicies tells where their expressions do not fit the kinds that their rules name.
#[tokio::test(start_paused = true)]
async fn policies_are_told_what_does_not_fit() {
    let world = World::new().await;
    let api: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
    let rule = |resources: Value| json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": resources});
    let policy = |rule: Value, expression: &str| {
        object::<ValidatingAdmissionPolicy>(json!({"metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "spec", "expression": "object.spec"}, {"name": "count", "expression": "object.spec.replicas"}],
            "validations": [{"expression": expression, "messageExpression": "string(params.datum)"}],
        }}))
    };
    let fine = "object.metadata.labels['a'] == 'b' && variables.spec.nope == variables.count && object.spec.template.spec.containers.all(c, c.image != '') && quantity(object.spec.template.spec.containers[0].resources.limits['cpu']).isLessThan(quantity('1')) && params.data.x == 'y' && oldObject == null";
    let undefined = |kind: &str, source: &str, at: usize, field: &str| {
        let dots = ".".repeat(at);
        format!(
            "apps/v1, Kind={kind}: ERROR: <input>:1:{}: undefined field '{field}'\n | {source}\n | {dots}^\n",
            at + 1
        )
    };
    let message = |kind: &str| undefined(kind, "string(params.datum)", 13, "datum");
    let odd = "object.spec.minReadySeconds == 1 && object.status.ready == 1";
    let told = |kind: &str| undefined(kind, odd, 49, "ready");
    for (generation, resources, expression, wanted) in [
        (1, json!(["deployments"]), fine, [None, Some(message("Deployment"))]),
        (
            2,
            json!(["statefulsets", "deployments", "deployments/scale", "none"]),
            odd,
            [
                Some(format!("{}\n{}", told("Deployment"), told("StatefulSet"))),
                Some(format!("{}\n{}", message("Deployment"), message("StatefulSet"))),
            ],
        ),
        // a wildcard names no kind
        (3, json!(["*"]), odd, [None, None]),
    ] {
        let spec = policy(rule(resources), expression);
        match generation {
            1 => drop(api.create(&PostParams::default(), &spec).await.unwrap()),
            _ => drop(
                api.patch("p", &PatchParams::default(), &Patch::Merge(&spec))
                    .await
                    .unwrap(),
            ),
        }
        let mut status;
        eventually!("the status", {
            status = api.get("p").await.unwrap().status;
            status.as_ref().and_then(|status| status.observed_generation) == Some(generation)
        });
        let checked = status.unwrap().type_checking.unwrap();
        let fields = [
            "spec.validations[0].expression",
            "spec.validations[0].messageExpression",
        ];
        let wanted = fields.into_iter().zip(wanted);
        let wanted: Vec<_> = wanted
            .filter_map(|(field, warning)| Some((field.to_owned(), warning?)))
            .collect();
        let found = checked.expression_warnings.into_iter().flatten();
        let found: Vec<_> = found.map(|own| (own.field_ref, own.warning)).collect();
        assert_eq!(found, wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn quotas_tell_how_many_objects_there_are() {
    let world = World::new().await;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), "default");
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "2000", "secrets": "5", "requests.cpu": "1"}}});
    quotas.create(&PostParams::default(), &object(quota)).await.unwrap();
    let used = || async {
        let status = quotas.get("q").await.unwrap().status.unwrap_or_default();
        serde_json::to_value(status).unwrap()
    };
    let all = json!({"count/secrets": "2k", "secrets": "5", "requests.cpu": "1"});
    let told = |count: &str| json!({"hard": all, "used": {"count/secrets": count, "secrets": count}});
    eventually!("none", used().await == told("0"));
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    for name in ["a", "b"] {
        let secret = object(json!({"metadata": {"name": name}}));
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    eventually!("two", used().await == told("2"));
    secrets.delete("a", &DeleteParams::default()).await.unwrap();
    eventually!("one", used().await == told("1"));
    let version = quotas.get("q").await.unwrap().metadata.resource_version;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(
        quotas.get("q").await.unwrap().metadata.resource_version,
        version,
        "nothing is written twice"
    );
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_room_and_for_their_volumes() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "1"));
    world.service_account().await;
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

const CLASS: &str = "default";

async fn storage_class(world: &World) {
    let classes: Api<StorageClass> = Api::all(world.client.clone());
    let class = json!({"metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "example.com/volumes", "reclaimPolicy": "Delete"});
    classes.create(&PostParams::default(), &object(class)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stateful_sets_keep_their_volumes_until_the_claims_go() {
    let dropped: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&dropped);
    let world = World::with(
        |config| {
            config.on_volume_deleted = Arc::new(move |cluster, namespace, claim| {
                log.lock().unwrap().push(format!("{cluster}/{namespace}/{claim}"));
            });
        },
        Vec::new(),
    )
    .await;
    world.kubelets.add(world.node("a", "8"));
    storage_class(&world).await;
    let sets: Api<StatefulSet> = world.api();
    let set = json!({"metadata": {"name": "db"}, "spec": {
        "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "one"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
    }});
    sets.create(&PostParams::default(), &object(set)).await.unwrap();
    let ready = async || {
        let found = sets.get("db").await.unwrap();
        let status = found.status.unwrap_or_default();
        status.ready_replicas == found.spec.replicas
            && status.updated_replicas == found.spec.replicas
            && status.observed_generation == found.metadata.generation
            && status.current_revision == status.update_revision
    };
    eventually!("2 replicas", ready().await);
    let names: Vec<String> = world.pods().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["db-0", "db-1"]);
    let claims: Api<PersistentVolumeClaim> = world.api();
    assert_eq!(
        claims.get("data-db-1").await.unwrap().status.unwrap().phase.as_deref(),
        Some("Bound")
    );
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}}});
    sets.patch("db", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
    eventually!("updated", ready().await);
    assert!(
        world
            .pods()
            .await
            .iter()
            .all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("two"))
    );
    sets.delete("db", &DeleteParams::default()).await.unwrap();
    eventually!("pods gone", world.pods().await.is_empty());
    assert!(dropped.lock().unwrap().is_empty());
    claims.delete("data-db-1", &DeleteParams::default()).await.unwrap();
    eventually!("volume dropped", *dropped.lock().unwrap() == ["seed/default/data-db-1"]);
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    eventually!(
        "one volume left",
        volumes.list(&ListParams::default()).await.unwrap().items.len() == 1
    );
}

#[tokio::test(start_paused = true)]
async fn lost_nodes_lose_their_pods_and_services_follow() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    world.kubelets.add(world.node("b", "8"));
    let services: Api<Service> = world.api();
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    services.create(&PostParams::default(), &object(service)).await.unwrap();
    world.service_account().await;
    let agent = json!({"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": {"app": "agent"}},
        "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}}});
    world
        .api::<DaemonSet>()
        .create(&PostParams::default(), &object(agent))
        .await
        .unwrap();
    world
        .api::<Deployment>()
        .create(&PostParams::default(), &deployment("web", 4, "i"))
        .await
        .unwrap();
    let ready_endpoints = async || -> usize {
        let slices: Api<EndpointSlice> = world.api();
        let slices = slices
            .list(&ListParams::default().labels("kubernetes.io/service-name=web"))
            .await
            .unwrap();
        let endpoints = slices.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        endpoints
            .filter(|own| own.conditions.as_ref().and_then(|own| own.ready) == Some(true))
            .count()
    };
    eventually!("4 endpoints", ready_endpoints().await == 4);
    eventually!("agents", {
        let status = world.api::<DaemonSet>().get("agent").await.unwrap().status.unwrap();
        status.number_available == Some(2) && status.updated_number_scheduled == Some(2)
    });
    let on = async |node: &str| -> usize {
        let pods = world
            .api::<Pod>()
            .list(&ListParams::default().labels("app=web"))
            .await
            .unwrap()
            .items;
        pods.iter()
            .filter(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node))
            .count()
    };
    assert_eq!(on("a").await, 2);
    world.kubelets.remove(NAME, "a");
    let nodes: Api<Node> = Api::all(world.client.clone());
    let ready = async |name: &str| -> String {
        let status = nodes.get(name).await.unwrap().status.unwrap();
        status
            .conditions
            .unwrap()
            .into_iter()
            .find(|own| own.type_ == "Ready")
            .unwrap()
            .status
    };
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(ready("a").await, "True");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(ready("a").await, "Unknown");
    assert_eq!(ready("b").await, "True");
    eventually!("2 endpoints", ready_endpoints().await == 2);
    // evicted after five minutes; the others take over
    eventually!("4 endpoints again", ready_endpoints().await == 4);
    assert_eq!(on("b").await, 4);
    nodes.delete("a", &DeleteParams::default()).await.unwrap();
    eventually!("pods of the node gone", on("a").await == 0);
}

struct Counting(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl kubelet::Program for Counting {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "kube-apiserver"
    }

    async fn run(&self, invocation: kubelet::Invocation) -> i32 {
        let tell = |what: &str| {
            self.0
                .lock()
                .unwrap()
                .push(format!("{what} {}", invocation.pod.name_any()))
        };
        tell("start");
        tokio::time::sleep(Duration::from_secs(3)).await;
        invocation.ready.send_replace(true);
        let crashes = invocation
            .container
            .args
            .as_ref()
            .is_some_and(|args| args.contains(&"crash".to_owned()));
        if crashes {
            return 1;
        }
        invocation.stop.cancelled().await;
        tell("stop");
        0
    }
}

#[tokio::test(start_paused = true)]
async fn programs_run_are_taken_over_and_end() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let world = World::with(|_| {}, vec![Arc::new(Counting(Arc::clone(&log)))]).await;
    world.kubelets.add(world.node("a", "8"));
    world.service_account().await;
    let pods: Api<Pod> = world.api();
    let pod = json!({"metadata": {"name": "api"}, "spec": {"containers": [{"name": "kube-apiserver", "image": "i"}]}});
    pods.create(&PostParams::default(), &object(pod)).await.unwrap();
    eventually!(
        "runs",
        pods.get("api").await.unwrap().status.unwrap().phase.as_deref() == Some("Running")
    );
    assert!(!is_ready(&pods.get("api").await.unwrap()));
    eventually!("ready", is_ready(&pods.get("api").await.unwrap()));
    // the process dies and comes again: the pod is as it was
    world.kubelets.remove(NAME, "a");
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.kubelets.add(world.node("a", "8"));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = pods.get("api").await.unwrap().status.unwrap();
    assert_eq!(status.container_statuses.unwrap()[0].restart_count, 0);
    pods.delete("api", &DeleteParams::default()).await.unwrap();
    eventually!("gone", pods.get_opt("api").await.unwrap().is_none());
    assert_eq!(*log.lock().unwrap(), ["start api", "stop api", "start api", "stop api"]);
    let crashing = json!({"metadata": {"name": "bad"}, "spec": {"containers": [{"name": "kube-apiserver", "image": "i", "args": ["crash"]}]}});
    pods.create(&PostParams::default(), &object(crashing)).await.unwrap();
    eventually!("backs off", {
        let status = pods
            .get("bad")
            .await
            .unwrap()
            .status
            .unwrap()
            .container_statuses
            .unwrap_or_default();
        let waiting = status
            .first()
            .and_then(|own| own.state.as_ref()?.waiting.as_ref()?.reason.clone());
        waiting.as_deref() == Some("CrashLoopBackOff") && status[0].restart_count >= 2
    });
}

#[tokio::test(start_paused = true)]
async fn jobs_run_to_their_end_and_budgets_hold_evictions() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    world.service_account().await;
    let jobs: Api<Job> = world.api();
    let job = json!({"metadata": {"name": "once"}, "spec": {"completions": 3, "parallelism": 2, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "command": ["sleep", "20"]}]}}}});
    jobs.create(&PostParams::default(), &object(job)).await.unwrap();
    eventually!("complete", {
        let status = jobs.get("once").await.unwrap().status.unwrap_or_default();
        status.conditions.iter().flatten().any(|own| own.type_ == "Complete") && status.succeeded == Some(3)
    });
    world
        .api::<Deployment>()
        .create(&PostParams::default(), &deployment("web", 2, "i"))
        .await
        .unwrap();
    let budgets: Api<PodDisruptionBudget> = world.api();
    let budget = json!({"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&PostParams::default(), &object(budget)).await.unwrap();
    let allowed = async || budgets.get("web").await.unwrap().status.unwrap().disruptions_allowed;
    eventually!("one allowed", allowed().await == Some(1));
    let web = world
        .api::<Pod>()
        .list(&ListParams::default().labels("app=web"))
        .await
        .unwrap()
        .items;
    let pods: Api<Pod> = world.api();
    pods.evict(&web[0].name_any(), &Default::default()).await.unwrap();
    eventually!("none allowed", allowed().await == Some(0));
    assert!(pods.evict(&web[1].name_any(), &Default::default()).await.is_err());
    eventually!("one allowed again", allowed().await == Some(1));
    pods.evict(&web[1].name_any(), &Default::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nodes_get_certificates_with_bootstrap_tokens() {
    let validity = Duration::from_secs(3600 * 24);
    let ca = gardener_pki::authority("ca", 1_767_000_000, validity * 3650).unwrap();
    let world = World::with(
        |config| config.signing_ca = Arc::new(move |_| Some((ca.certificate.clone(), ca.key.clone()))),
        Vec::new(),
    )
    .await;
    let bootstrap = world.clusters.client(
        NAME,
        "system:bootstrap:abcdef",
        &["system:bootstrappers", "system:masters"],
    );
    let asked = gardener_pki::request(&gardener_pki::Subject::client("system:node:a", &["system:nodes"])).unwrap();
    let mut request: CertificateSigningRequest = object(json!({"metadata": {"name": "a"}, "spec": {
        "request": "", "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"]}}));
    request.spec.request.0 = asked.certificate.into_bytes();
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrap);
    requests.create(&PostParams::default(), &request).await.unwrap();
    eventually!(
        "signed",
        requests
            .get("a")
            .await
            .unwrap()
            .status
            .is_some_and(|own| own.certificate.is_some())
    );
    let other = world.clusters.client(NAME, "jane", &["system:masters"]);
    let requests: Api<CertificateSigningRequest> = Api::all(other);
    request.metadata.name = Some("b".into());
    requests.create(&PostParams::default(), &request).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        requests
            .get("b")
            .await
            .unwrap()
            .status
            .unwrap_or_default()
            .conditions
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn service_ranges_stay_until_their_addresses_are_given_back() {
    let world = World::new().await;
    let ranges: Api<ServiceCIDR> = Api::all(world.client.clone());
    let more = json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["192.168.9.0/29"]}});
    ranges.create(&PostParams::default(), &object(more)).await.unwrap();
    let ready = async || {
        let status = ranges.get("more").await.unwrap().status.unwrap_or_default();
        let condition = status.conditions.unwrap_or_default().into_iter().next()?;
        Some((condition.status, condition.reason))
    };
    eventually!("ready", ready().await == Some(("True".into(), String::new())));
    assert_eq!(
        ranges.get("more").await.unwrap().finalizers(),
        ["networking.k8s.io/service-cidr-finalizer"]
    );
    let services: Api<Service> = world.api();
    let service = |name: &str, address: &str| -> Service {
        object(json!({"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}))
    };
    let create =
        async |name: &str, address: &str| services.create(&PostParams::default(), &service(name, address)).await;
    create("first", "192.168.9.1").await.unwrap();
    ranges.delete("more", &DeleteParams::default()).await.unwrap();
    eventually!(
        "not ready",
        ready().await == Some(("False".into(), "Terminating".into()))
    );
    create("second", "192.168.9.2").await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        ranges.get_opt("more").await.unwrap().is_some(),
        "an address of it is in use"
    );
    services.delete("first", &DeleteParams::default()).await.unwrap();
    eventually!("gone", ranges.get_opt("more").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_cluster_writes_nothing_but_leases() {
    let world = World::new().await;
    world.kubelets.add(world.node("a", "8"));
    world.service_account().await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let services: Api<Service> = world.api();
    services.create(&PostParams::default(), &object(service)).await.unwrap();
    let deployments: Api<Deployment> = world.api();
    deployments
        .create(&PostParams::default(), &deployment("web", 3, "i"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let store = world.clusters.server.shared().store.clone();
    let before = store.revision();
    tokio::time::sleep(Duration::from_secs(200)).await;
    // one lease, renewed every ten seconds
    assert_eq!(store.revision() - before, 20);
}
