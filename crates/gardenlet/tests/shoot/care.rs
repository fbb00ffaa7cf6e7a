//! How care looks at a shoot, and what it takes away in it.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use kube::Client;
use kube::api::{Patch, PatchParams};

use super::*;

const NAMESPACE: Option<&str> = Some("shoot--dev--my");
const EXTENSIONS: &str = "extensions.gardener.cloud";
const POOL: &str = "worker.gardener.cloud/pool";

impl Landscape {
    /// A condition of the shoot: status, reason and message.
    async fn condition(&self, kind: &str) -> (String, String, String) {
        let shoot = self.shoot().await;
        let all = shoot["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = all.into_iter().find(|own| own["type"] == kind).unwrap_or_default();
        let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Waits until care tells this of a condition, and answers its message.
    async fn told(&self, kind: &str, status: &str, reason: &str) -> String {
        let mut last = Default::default();
        for _ in 0..4000 {
            last = self.condition(kind).await;
            if (last.0.as_str(), last.1.as_str()) == (status, reason) {
                return last.2;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited for {kind} {status} {reason}, got {last:?}");
    }

    async fn patch_status(&self, cluster: &str, of: (&str, &str, &str, Option<&str>, &str), status: Value) {
        let (group, version, kind, namespace, name) = of;
        let api = dynamic(&self.world.client(cluster), group, version, kind, namespace);
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates the shoot, and what its nodes would make of themselves: one that is well, with all that shows it.
    async fn create_with_a_node(&mut self) {
        let world = &self.world;
        world
            .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
            .await;
        self.wait("Create", "Succeeded").await;
        let secret = json!({
            "metadata": {
                "name": "key", "namespace": "kube-system", "labels": {"gardener.cloud/role": "operating-system-config", POOL: "one"},
                "annotations": {"checksum/data-script": "new"},
            },
        });
        world
            .create("shoot", "", "v1", "Secret", Some("kube-system"), secret)
            .await;
        let node = json!({
            "metadata": {"name": "node", "labels": {POOL: "one"}, "annotations": {"checksum/cloud-config-data": "new"}},
        });
        world.create("shoot", "", "v1", "Node", None, node).await;
        self.ready("True", "v1.35.0").await;
        for (namespace, name) in [("kube-system", "gardener-node-agent-node"), ("kube-node-lease", "node")] {
            let spec = json!({"leaseDurationSeconds": 86400, "renewTime": "2026-03-01T10:00:00.000000Z"});
            let lease = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
            world
                .create("shoot", "coordination.k8s.io", "v1", "Lease", Some(namespace), lease)
                .await;
        }
        let deployment = json!({
            "metadata": {"name": "one", "namespace": "shoot--dev--my"},
            "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"class": {"kind": "MachineClass", "name": "one"}}}},
        });
        world
            .create(
                "seed",
                "machine.sapcloud.io",
                "v1alpha1",
                "MachineDeployment",
                NAMESPACE,
                deployment,
            )
            .await;
        let pod = json!({
            "metadata": {"name": "tunnel", "namespace": "kube-system", "labels": {"type": "tunnel", "app": "vpn-shoot"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        world.create("shoot", "", "v1", "Pod", Some("kube-system"), pod).await;
        let tunnel = ("", "v1", "Pod", Some("kube-system"), "tunnel");
        self.patch_status("shoot", tunnel, json!({"phase": "Running"})).await;
        for (kind, reason) in [
            ("APIServerAvailable", "HealthzRequestSucceeded"),
            ("ControlPlaneHealthy", "ControlPlaneRunning"),
            ("ObservabilityComponentsHealthy", "ObservabilityComponentsRunning"),
            ("EveryNodeReady", "EveryNodeReady"),
            ("SystemComponentsHealthy", "SystemComponentsRunning"),
        ] {
            self.told(kind, "True", reason).await;
        }
        if let Some(playing) = self.playing.take() {
            playing.abort();
        }
    }

    async fn ready(&self, status: &str, kubelet: &str) {
        let info = json!({
            "kubeletVersion": kubelet, "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
            "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
        });
        let ready = json!([{"type": "Ready", "status": status, "reason": "r", "message": "m"}]);
        let node = ("", "v1", "Node", None, "node");
        self.patch_status("shoot", node, json!({"conditions": ready, "nodeInfo": info}))
            .await;
    }

    async fn version(&self) -> Value {
        self.shoot().await["metadata"]["resourceVersion"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn st_24_41_a_healthy_shoot_is_written_only_when_something_changes() {
    let mut landscape = Landscape::start().await;
    landscape.create_with_a_node().await;
    let types: Vec<Value> = landscape.shoot().await["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["type"].clone())
        .collect();
    let order = [
        "APIServerAvailable",
        "ControlPlaneHealthy",
        "ObservabilityComponentsHealthy",
        "EveryNodeReady",
        "SystemComponentsHealthy",
    ];
    assert_eq!(types, order);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = landscape.version().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(landscape.version().await, before);
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn st_57_nodes_are_looked_at_step_by_step() {
    let mut landscape = Landscape::start().await;
    landscape.create_with_a_node().await;
    let (world, nodes) = (&landscape.world, "EveryNodeReady");
    let shoot_client = world.client("shoot");
    let all_nodes = dynamic(&shoot_client, "", "v1", "Node", None);
    let annotate = async |checksum: Value| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"checksum/cloud-config-data": checksum}}}));
        all_nodes.patch("node", &Default::default(), &patch).await.unwrap();
    };
    landscape.ready("False", "v1.35.0").await;
    let message = landscape.told(nodes, "False", "NodeUnhealthy").await;
    assert!(
        message.starts_with("Node \"node\" in worker group \"one\" is unhealthy: condition \"Ready\""),
        "{message}"
    );
    // what is wrong with a node itself comes first
    annotate(json!("old")).await;
    landscape.ready("True", "v1.35.0").await;
    let message = landscape.told(nodes, "False", "OperatingSystemConfigOutdated").await;
    assert!(
        message.contains("is outdated (current: old, desired: new)"),
        "{message}"
    );
    annotate(json!("new")).await;
    let leases = dynamic(&shoot_client, "coordination.k8s.io", "v1", "Lease", Some("kube-system"));
    let seconds = |seconds: i32| Patch::Merge(json!({"spec": {"leaseDurationSeconds": seconds}}));
    let agent = "gardener-node-agent-node";
    leases.patch(agent, &Default::default(), &seconds(1)).await.unwrap();
    let message = landscape.told(nodes, "False", "NodeAgentUnhealthy").await;
    assert_eq!(message, "gardener-node-agent stopped running on node \"node\"");
    leases.patch(agent, &Default::default(), &seconds(86400)).await.unwrap();
    let machines = dynamic(
        &world.client("seed"),
        "machine.sapcloud.io",
        "v1alpha1",
        "MachineDeployment",
        NAMESPACE,
    );
    let replicas = |count: i32| Patch::Merge(json!({"spec": {"replicas": count}}));
    machines.patch("one", &Default::default(), &replicas(2)).await.unwrap();
    let message = landscape.told(nodes, "False", "NodesScalingUp").await;
    assert_eq!(message, "not enough machine objects created yet (0/2)");
    machines.patch("one", &Default::default(), &replicas(1)).await.unwrap();
    let kubelets = dynamic(
        &shoot_client,
        "coordination.k8s.io",
        "v1",
        "Lease",
        Some("kube-node-lease"),
    );
    kubelets.patch("node", &Default::default(), &seconds(1)).await.unwrap();
    landscape.told(nodes, "False", "TooManyExpiredNodeLeases").await;
    kubelets
        .patch("node", &Default::default(), &seconds(86400))
        .await
        .unwrap();
    landscape.told(nodes, "True", "EveryNodeReady").await;
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn st_63_65_extensions_are_believed_as_long_as_they_live() {
    let mut landscape = Landscape::start().await;
    landscape.create_with_a_node().await;
    let (world, nodes) = (&landscape.world, "EveryNodeReady");
    let tell = async |status: &str| {
        let now = world.clock.time();
        let condition = json!({
            "type": nodes, "status": status, "reason": "HealthCheckX", "message": "m", "codes": ["ERR_INFRA_DEPENDENCIES"],
            "lastTransitionTime": now, "lastUpdateTime": now,
        });
        let worker = (EXTENSIONS, "v1alpha1", "Worker", NAMESPACE, "my");
        landscape
            .patch_status("seed", worker, json!({"conditions": [condition]}))
            .await;
    };
    // who says something without a heartbeat is not believed
    tell("True").await;
    let message = landscape
        .told(nodes, "Unknown", "WorkerOutdatedHealthCheckReport")
        .await;
    assert!(message.contains("0001-01-01 00:00:00 +0000 UTC"), "W-X3 {message}");
    let home = "extension-provider-local";
    world
        .create("seed", "", "v1", "Namespace", None, json!({"metadata": {"name": home}}))
        .await;
    let lease = json!({
        "metadata": {"name": "gardener-extension-heartbeat", "namespace": home},
        "spec": {"renewTime": world.clock.micro_time()},
    });
    world
        .create("seed", "coordination.k8s.io", "v1", "Lease", Some(home), lease)
        .await;
    landscape.told(nodes, "True", "EveryNodeReady").await;
    tell("False").await;
    let message = landscape.told(nodes, "False", "WorkerUnhealthyReport").await;
    assert_eq!(
        message,
        "Worker extension (shoot--dev--my/my) reports failing health check: m"
    );
    tell("Progressing").await;
    landscape.told(nodes, "Progressing", "WorkerHealthCheckX").await;
    // it says no more
    tokio::time::sleep(Duration::from_secs(240)).await;
    let message = landscape
        .told(nodes, "Unknown", "WorkerOutdatedHealthCheckReport")
        .await;
    assert!(message.contains("(last updated: "), "W-X2 {message}");
    // nobody is responsible: what is said does not count
    world
        .delete(
            "garden",
            CORE,
            "v1beta1",
            "ControllerRegistration",
            None,
            "provider-local",
        )
        .await;
    landscape.told(nodes, "True", "EveryNodeReady").await;
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn st_42_stale_pods_are_collected() {
    let mut landscape = Landscape::start().await;
    landscape.create_with_a_node().await;
    let world = &landscape.world;
    let client = world.client("shoot");
    for (namespace, name, reason) in [
        ("kube-system", "evicted", "Evicted"),
        ("kube-system", "failed", "Error"),
        ("default", "users", "Evicted"),
    ] {
        let pod = json!({
            "metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        world.create("shoot", "", "v1", "Pod", Some(namespace), pod).await;
        let of = ("", "v1", "Pod", Some(namespace), name);
        landscape
            .patch_status("shoot", of, json!({"phase": "Failed", "reason": reason}))
            .await;
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let left = async |namespace: &str| -> Vec<String> {
        let pods = dynamic(&client, "", "v1", "Pod", Some(namespace));
        let listed = pods.list(&Default::default()).await.unwrap();
        let left = listed
            .items
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none());
        left.map(ResourceExt::name_any).collect()
    };
    assert_eq!(left("kube-system").await, ["failed", "tunnel"]);
    assert_eq!(left("default").await, ["users"]);
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn st_110_113_webhooks_are_remediated_if_asked_for() {
    let mut settings = Settings::default();
    settings.shoot_care.webhook_remediator_enabled = true;
    let mut landscape = Landscape::start_with(settings).await;
    landscape.create_with_a_node().await;
    let (group, kind) = ("admissionregistration.k8s.io", "MutatingWebhookConfiguration");
    let client = landscape.world.client("shoot");
    let webhook = |name: &str, labels: Value| {
        json!({
            "metadata": {"name": name, "labels": labels},
            "webhooks": [{
                "name": "pods.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                "clientConfig": {"url": "https://webhook.example.org"}, "timeoutSeconds": 30,
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            }],
        })
    };
    let created = landscape
        .world
        .create("shoot", group, "v1", kind, None, webhook("own", json!({})))
        .await;
    let (hibernation, maintenance) = ("HibernationPossible", "MaintenancePreconditionsSatisfied");
    let are = |reason: &'static str| [(hibernation, "False", reason), (maintenance, "False", reason)];
    landscape.constraints(&are("RemediatedWebhooks")).await;
    let webhooks = dynamic(&client, group, "v1", kind, None);
    let changed = webhooks.get("own").await.unwrap();
    assert_ne!(changed.metadata.resource_version, created.metadata.resource_version);
    let own = &changed.data["webhooks"][0];
    assert_eq!(
        (&own["timeoutSeconds"], &own["failurePolicy"]),
        (&json!(15), &json!("Fail"))
    );
    assert_eq!(
        own["namespaceSelector"]["matchExpressions"].as_array().unwrap().len(),
        3
    );
    let warning = changed.annotations()["gardener.cloud/warning"].clone();
    assert!(warning.ends_with("NotIn [kube-system]}]"), "{warning}");
    tokio::time::sleep(Duration::from_secs(300)).await;
    let later = webhooks.get("own").await.unwrap();
    assert_eq!(
        later.metadata.resource_version, changed.metadata.resource_version,
        "W-R7"
    );

    webhooks.delete("own", &Default::default()).await.unwrap();
    let excluded = json!({"remediation.webhook.shoot.gardener.cloud/exclude": "true"});
    landscape
        .world
        .create("shoot", group, "v1", kind, None, webhook("kept", excluded))
        .await;
    landscape.constraints(&are("ProblematicWebhooks")).await;
    let kept = webhooks.get("kept").await.unwrap();
    assert_eq!(kept.data["webhooks"][0]["timeoutSeconds"], 30, "W-R6");
    landscape.stop.cancel();
}

/// A shoot that does not let anybody in for a time.
struct Closable {
    client: Client,
    is_closed: AtomicBool,
}

#[async_trait]
impl ShootClients for Closable {
    async fn client(&self, _: &str) -> Result<Client, String> {
        if self.is_closed.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Ok(self.client.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn st_40_52_who_does_not_answer_is_told_of_all_the_same() {
    let world = Arc::new(World::new().await);
    let shoots = Arc::new(Closable {
        client: world.client("shoot"),
        is_closed: AtomicBool::new(false),
    });
    let mut settings = Settings::default();
    let minute = Duration::from_secs(60);
    settings.shoot_care.condition_thresholds = vec![("APIServerAvailable".to_owned(), minute)];
    let mut landscape = Landscape::start_in(world, settings, shoots.clone()).await;
    landscape.create_with_a_node().await;
    shoots.is_closed.store(true, Ordering::Relaxed);
    landscape
        .told("APIServerAvailable", "Progressing", "APIServerDown")
        .await;
    let message = landscape.told("EveryNodeReady", "Unknown", "ConditionCheckError").await;
    assert_eq!(
        message,
        "Could not initialize Shoot client for health check: context deadline exceeded"
    );
    let control_plane = landscape.condition("ControlPlaneHealthy").await;
    assert_eq!(control_plane.0, "True", "{control_plane:?}");
    landscape.told("APIServerAvailable", "False", "APIServerDown").await;
    shoots.is_closed.store(false, Ordering::Relaxed);
    landscape
        .told("APIServerAvailable", "True", "HealthzRequestSucceeded")
        .await;
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn st_79_who_is_back_says_so_with_the_next_heartbeat() {
    let landscape = Landscape::start().await;
    let world = &landscape.world;
    let ready = async || {
        let seed = world.get("garden", CORE, "v1beta1", "Seed", None, "local").await;
        let all = seed["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = all
            .into_iter()
            .find(|own| own["type"] == "GardenletReady")
            .unwrap_or_default();
        own["status"].as_str().unwrap_or_default().to_owned()
    };
    for _ in 0..200 {
        if ready().await == "True" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seeds = dynamic(&world.client("garden"), CORE, "v1beta1", "Seed", None);
    let mut seed = seeds.get("local").await.unwrap();
    let conditions = seed.data["status"]["conditions"].as_array_mut().unwrap();
    for own in conditions.iter_mut().filter(|own| own["type"] == "GardenletReady") {
        own["status"] = json!("Unknown");
    }
    seeds.replace_status("local", &Default::default(), &seed).await.unwrap();
    assert_eq!(ready().await, "Unknown");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(ready().await, "True");
    landscape.stop.cancel();
}
