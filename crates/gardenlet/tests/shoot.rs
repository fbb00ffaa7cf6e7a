//! A shoot's life, with stand-ins for everything that is not gardenlet's.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

#[path = "shoot/backup.rs"]
mod backup;
#[path = "shoot/care.rs"]
mod care;
#[path = "shoot/falling_asleep.rs"]
mod falling_asleep;
#[path = "shoot/required_extensions.rs"]
mod required_extensions;
#[path = "shoot/world.rs"]
mod world;

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{Gardener, Seed};
use gardener_gardenlet::{Config, Settings, ShootClients};
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use world::{OneShoot, World, dynamic};

const CORE: &str = "core.gardener.cloud";

fn seed() -> Seed {
    serde_json::from_value(json!({
        "metadata": {"name": "local"},
        "spec": {
            "provider": {"type": "local", "region": "local", "zones": ["a"]},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "ingress": {"domain": "ingress.local", "controller": {"kind": "nginx"}},
            "dns": {
                "internal": {"type": "local", "domain": "internal.local", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "domain"}},
                "defaults": [{"type": "local", "domain": "external.local", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "domain"}}],
            },
        },
    }))
    .unwrap()
}

fn shoot(workers: bool) -> Value {
    let pool = json!([{
        "name": "one", "minimum": 1, "maximum": 2, "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
        "cri": {"name": "containerd"},
    }]);
    json!({
        "metadata": {"name": "my", "namespace": "garden-dev", "labels": {"name.seed.gardener.cloud/local": "true"}},
        "spec": {
            "seedName": "local", "secretBindingName": "account", "region": "local",
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "kubernetes": {"version": "1.35.0"},
            "provider": {"type": "local", "workers": if workers { pool } else { json!([]) }},
            "networking": {"type": "calico", "pods": "10.3.0.0/16", "services": "10.4.0.0/16"},
            "dns": {"domain": "my.dev.external.local"},
        },
    })
}

/// What the extension of the shoots here is responsible for.
const RESOURCES: [(&str, &str); 6] = [
    ("ControlPlane", "local"),
    ("DNSRecord", "local"),
    ("Infrastructure", "local"),
    ("Network", "calico"),
    ("OperatingSystemConfig", "local"),
    ("Worker", "local"),
];

struct Landscape {
    world: Arc<World>,
    stop: CancellationToken,
    /// Who plays what is beside gardenlet. They look around all the time: a test that lets much time pass sends them home when they are done.
    playing: Option<tokio::task::JoinHandle<()>>,
}

impl Landscape {
    async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    async fn start_with(settings: Settings) -> Self {
        let world = Arc::new(World::new().await);
        let shoots = Arc::new(OneShoot(world.client("shoot")));
        Self::start_in(world, settings, shoots).await
    }

    async fn start_in(world: Arc<World>, settings: Settings, shoots: Arc<dyn ShootClients>) -> Self {
        let mut landscape = Self::alone_in(world, settings, shoots);
        let world = Arc::clone(&landscape.world);
        world.install_extension("provider-local", &RESOURCES).await;
        let playing = world.clone();
        landscape.playing = Some(tokio::spawn(async move { playing.stand_in().await }));
        // The one Deployment in the shoot that gardenlet looks at.
        world
            .create("shoot", "apps", "v1", "Deployment", Some("kube-system"), json!({
                "metadata": {"name": "vpn-shoot", "namespace": "kube-system"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
            }))
            .await;
        let api = dynamic(&world.client("shoot"), "apps", "v1", "Deployment", Some("kube-system"));
        let status =
            json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}});
        api.patch_status("vpn-shoot", &Default::default(), &kube::api::Patch::Merge(status))
            .await
            .unwrap();
        landscape
    }

    /// gardenlet without anything beside it.
    async fn alone(settings: Settings) -> Self {
        let world = Arc::new(World::new().await);
        let shoots = Arc::new(OneShoot(world.client("shoot")));
        Self::alone_in(world, settings, shoots)
    }

    fn alone_in(world: Arc<World>, settings: Settings, shoots: Arc<dyn ShootClients>) -> Self {
        let stop = CancellationToken::new();
        let config = Config {
            garden: world.client("garden"),
            garden_kubeconfig: None,
            seed: world.client("seed"),
            shoots,
            seed_name: "local".to_owned(),
            seed_template: Some(seed()),
            identity: Gardener {
                id: "id".into(),
                name: "gardenlet".into(),
                version: "v1".into(),
            },
            clock: world.clock.clone(),
            chance: world.chance.clone(),
            settings,
        };
        tokio::spawn(gardener_gardenlet::run(config, stop.clone()));
        let playing = None;
        Self { world, stop, playing }
    }

    async fn shoot(&self) -> Value {
        self.world
            .get("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), "my")
            .await
    }

    /// Waits until the last operation is in a state.
    async fn wait(&self, kind: &str, state: &str) -> Value {
        self.until(|shoot| {
            let last = &shoot["status"]["lastOperation"];
            last["type"] == kind && last["state"] == state
        })
        .await
    }

    /// Waits until the shoot is as wanted.
    async fn until(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2000 {
            let shoot = self.shoot().await;
            if is_wanted(&shoot) {
                return shoot;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:#}", self.shoot().await["status"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shoot_is_created() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    let shoot = landscape.wait("Create", "Succeeded").await;
    let status = &shoot["status"];
    assert_eq!(status["technicalID"], "shoot--dev--my");
    assert_eq!(status["lastOperation"]["progress"], 100);
    assert_eq!(status["networking"]["nodes"], json!(["10.250.0.0/16"]));
    assert_eq!(
        status["advertisedAddresses"][0],
        json!({"name": "external", "url": "https://api.my.dev.external.local"})
    );
    assert_eq!(shoot["metadata"]["finalizers"], json!(["gardener"]));
    let namespace = Some("shoot--dev--my");
    for name in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "gardener-resource-manager",
        "machine-controller-manager",
    ] {
        landscape
            .world
            .get("seed", "apps", "v1", "Deployment", namespace, name)
            .await;
    }
    let worker = landscape
        .world
        .get(
            "seed",
            "extensions.gardener.cloud",
            "v1alpha1",
            "Worker",
            namespace,
            "my",
        )
        .await;
    let pool = &worker["spec"]["pools"][0];
    assert!(
        pool["userDataSecretRef"]["name"]
            .as_str()
            .unwrap()
            .starts_with("osc-gardener-node-agent-one-")
    );
    assert_eq!(pool["nodeTemplate"]["capacity"]["cpu"], "4");
    landscape
        .world
        .get("garden", "", "v1", "ConfigMap", Some("garden-dev"), "my.ca-cluster")
        .await;
    let cluster = landscape
        .world
        .get(
            "seed",
            "extensions.gardener.cloud",
            "v1alpha1",
            "Cluster",
            None,
            "shoot--dev--my",
        )
        .await;
    assert_eq!(cluster["spec"]["shoot"]["kind"], "Shoot");
    assert_eq!(
        cluster["spec"]["shoot"]["status"]["lastOperation"]["state"],
        "Succeeded"
    );
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn cp_31_a_workerless_shoot_has_no_nodes_side() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(false))
        .await;
    landscape.wait("Create", "Succeeded").await;
    let namespace = Some("shoot--dev--my");
    let seed = landscape.world.client("seed");
    for kind in [
        "Worker",
        "Infrastructure",
        "Network",
        "OperatingSystemConfig",
        "ControlPlane",
    ] {
        let api = dynamic(&seed, "extensions.gardener.cloud", "v1alpha1", kind, namespace);
        assert!(api.list(&Default::default()).await.unwrap().items.is_empty(), "{kind}");
    }
    let deployments = dynamic(&seed, "apps", "v1", "Deployment", namespace);
    assert!(deployments.get_opt("kube-scheduler").await.unwrap().is_none());
    assert!(deployments.get_opt("kube-apiserver").await.unwrap().is_some());
    landscape.stop.cancel();
}

/// What a control plane must have is there, whatever its owner chooses [ST-54].
#[tokio::test(start_paused = true)]
async fn cp_f39_requests_of_pods_are_scaled_if_that_is_wanted() {
    let landscape = Landscape::start().await;
    let mut mine = shoot(true);
    mine["spec"]["kubernetes"]["verticalPodAutoscaler"] = json!({"enabled": true});
    let world = &landscape.world;
    world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), mine)
        .await;
    landscape.wait("Create", "Succeeded").await;
    let healthy = |shoot: &Value| {
        let mut all = shoot["status"]["conditions"].as_array().into_iter().flatten();
        all.any(|own| own["type"] == "ControlPlaneHealthy" && own["status"] == "True")
    };
    landscape.until(healthy).await;
    let deployments = dynamic(
        &world.client("seed"),
        "apps",
        "v1",
        "Deployment",
        Some("shoot--dev--my"),
    );
    let names = ["vpa-admission-controller", "vpa-recommender", "vpa-updater"];
    for name in names {
        assert!(deployments.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    let shoots = dynamic(&world.client("garden"), CORE, "v1beta1", "Shoot", Some("garden-dev"));
    let patch = json!({"spec": {"kubernetes": {"verticalPodAutoscaler": {"enabled": false}}}});
    let patch = kube::api::Patch::Merge(patch);
    shoots.patch("my", &Default::default(), &patch).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    landscape.wait("Reconcile", "Succeeded").await;
    for name in names {
        assert!(deployments.get_opt(name).await.unwrap().is_none(), "{name}");
    }
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn cp_35_nothing_of_a_deleted_shoot_is_left() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    landscape.wait("Create", "Succeeded").await;
    landscape
        .world
        .delete("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), "my")
        .await;
    let shoots = dynamic(
        &landscape.world.client("garden"),
        CORE,
        "v1beta1",
        "Shoot",
        Some("garden-dev"),
    );
    for _ in 0..2000 {
        if shoots.get_opt("my").await.unwrap().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if let Some(left) = shoots.get_opt("my").await.unwrap() {
        panic!("{:#}", left.data["status"]);
    }
    let (garden, seed) = (landscape.world.client("garden"), landscape.world.client("seed"));
    assert!(
        dynamic(&seed, "", "v1", "Namespace", None)
            .get_opt("shoot--dev--my")
            .await
            .unwrap()
            .is_none()
    );
    let clusters = dynamic(&seed, "extensions.gardener.cloud", "v1alpha1", "Cluster", None);
    assert!(clusters.list(&Default::default()).await.unwrap().items.is_empty());
    for kind in ["Secret", "ConfigMap"] {
        let left = dynamic(&garden, "", "v1", kind, Some("garden-dev"))
            .list(&Default::default())
            .await
            .unwrap();
        let names: Vec<String> = left.items.into_iter().filter_map(|one| one.metadata.name).collect();
        assert!(names.iter().all(|name| !name.starts_with("my.")), "{names:?}");
    }
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn cp_120_a_shoot_sleeps_and_wakes_up() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    landscape.wait("Create", "Succeeded").await;
    let shoots = dynamic(
        &landscape.world.client("garden"),
        CORE,
        "v1beta1",
        "Shoot",
        Some("garden-dev"),
    );
    for (enabled, replicas) in [(true, [0, 0, 0]), (false, [1, 1, 2])] {
        let patch = json!({"spec": {"hibernation": {"enabled": enabled}}});
        shoots
            .patch("my", &Default::default(), &kube::api::Patch::Merge(patch))
            .await
            .unwrap();
        for _ in 0..2000 {
            let shoot = landscape.shoot().await;
            let is_done = shoot["status"]["hibernated"].as_bool().unwrap_or_default() == enabled;
            if is_done && shoot["status"]["lastOperation"]["state"] == "Succeeded" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let shoot = landscape.wait("Reconcile", "Succeeded").await;
        assert_eq!(
            shoot["status"]["hibernated"].as_bool().unwrap_or_default(),
            enabled,
            "{:#}",
            shoot["status"]
        );
        let names = ["kube-apiserver", "kube-controller-manager", "gardener-resource-manager"];
        for (name, expected) in names.into_iter().zip(replicas) {
            let deployment = landscape
                .world
                .get("seed", "apps", "v1", "Deployment", Some("shoot--dev--my"), name)
                .await;
            assert_eq!(
                deployment["spec"]["replicas"], expected,
                "{name} with hibernation {enabled}"
            );
        }
        let etcd = landscape
            .world
            .get(
                "seed",
                "druid.gardener.cloud",
                "v1alpha1",
                "Etcd",
                Some("shoot--dev--my"),
                "etcd-main",
            )
            .await;
        assert_eq!(etcd["spec"]["replicas"], i32::from(!enabled));
    }
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_without_changes_writes_nothing_but_requests() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    landscape.wait("Create", "Succeeded").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let seed = landscape.world.client("seed");
    let versions = async || {
        let mut found = Vec::new();
        for (group, version, kind) in [
            ("", "v1", "Secret"),
            ("", "v1", "ConfigMap"),
            ("", "v1", "Service"),
            ("apps", "v1", "Deployment"),
            ("resources.gardener.cloud", "v1alpha1", "ManagedResource"),
            ("druid.gardener.cloud", "v1alpha1", "Etcd"),
            ("extensions.gardener.cloud", "v1alpha1", "DNSRecord"),
            ("extensions.gardener.cloud", "v1alpha1", "Infrastructure"),
        ] {
            let api = dynamic(&seed, group, version, kind, Some("shoot--dev--my"));
            for one in api.list(&Default::default()).await.unwrap().items {
                found.push(format!(
                    "{kind} {} {}",
                    one.metadata.name.unwrap(),
                    one.metadata.resource_version.unwrap()
                ));
            }
        }
        found
    };
    let before = versions().await;
    let shoots = dynamic(
        &landscape.world.client("garden"),
        CORE,
        "v1beta1",
        "Shoot",
        Some("garden-dev"),
    );
    let patch = kube::api::Patch::Merge(json!({"spec": {"schedulerName": "another"}}));
    shoots.patch("my", &Default::default(), &patch).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    landscape.wait("Reconcile", "Succeeded").await;
    let after = versions().await;
    let changed: Vec<&String> = after.iter().filter(|one| !before.contains(one)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    landscape.stop.cancel();
}

impl Landscape {
    /// Asks for operations with a change of the spec, as the garden's API server counts it, and waits until that is done.
    async fn reconcile(&self, operations: Option<&str>, change: &str) -> Value {
        let garden = self.world.client("garden");
        let shoots = dynamic(&garden, CORE, "v1beta1", "Shoot", Some("garden-dev"));
        let annotations = json!({"gardener.cloud/operation": operations});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"schedulerName": change}});
        let patch = kube::api::Patch::Merge(patch);
        shoots.patch("my", &Default::default(), &patch).await.unwrap();
        for _ in 0..4000 {
            let shoot = self.shoot().await;
            let observed = shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"];
            if observed && shoot["status"]["lastOperation"]["state"] == "Succeeded" {
                return shoot;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:#}", self.shoot().await["status"]);
    }

    /// The data of a Secret of the shoot in the garden.
    async fn copy(&self, suffix: &str) -> Value {
        let name = format!("my.{suffix}");
        let found = self.world.get("garden", "", "v1", "Secret", Some("garden-dev"), &name);
        found.await["data"].clone()
    }

    /// The names of the keys with which the API server encrypts, the one that writes first; the annotations of its Deployment about them; and the label of
    /// a Secret in the shoot.
    async fn keys(&self) -> (Vec<String>, Vec<String>, Value) {
        use base64::Engine;
        let namespace = Some("shoot--dev--my");
        let name = "kube-apiserver-etcd-encryption-configuration";
        let secret = self.world.get("seed", "", "v1", "Secret", namespace, name).await;
        let text = secret["data"]["encryption-configuration.yaml"].as_str().unwrap();
        let text = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let configuration: Value = serde_json::from_slice(&text).unwrap();
        let keys = configuration["resources"][0]["providers"][0]["aescbc"]["keys"]
            .as_array()
            .unwrap();
        let keys = keys
            .iter()
            .map(|key| key["secret"].as_str().unwrap().to_owned())
            .collect();
        let deployment = self
            .world
            .get("seed", "apps", "v1", "Deployment", namespace, "kube-apiserver")
            .await;
        let annotations = deployment["metadata"]["annotations"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let prefix = "credentials.gardener.cloud/";
        let marks = annotations
            .keys()
            .filter_map(|key| key.strip_prefix(prefix))
            .map(str::to_owned)
            .collect();
        let own = self
            .world
            .get("shoot", "", "v1", "Secret", Some("default"), "mine")
            .await;
        (
            keys,
            marks,
            own["metadata"]["labels"]["credentials.gardener.cloud/key-name"].clone(),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn cp_80_81_92_credentials_are_rotated_once() {
    let landscape = Landscape::start().await;
    let mut mine = shoot(true);
    mine["spec"]["kubernetes"]["kubeAPIServer"] =
        json!({"encryptionConfig": {"resources": ["configmaps", "widgets.none"], "provider": {"type": "aescbc"}}});
    landscape
        .world
        .create(
            "shoot",
            "",
            "v1",
            "Secret",
            Some("default"),
            json!({"metadata": {"name": "mine"}}),
        )
        .await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), mine)
        .await;
    landscape.wait("Create", "Succeeded").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let created = landscape.shoot().await;
    assert_eq!(
        created["status"]["credentials"],
        json!({"encryptionAtRest": {"resources": ["configmaps", "widgets.none"], "provider": {"type": "aescbc"}}}),
        "[ST-161]"
    );
    let (first, marks, label) = landscape.keys().await;
    assert_eq!((first.len(), marks.len(), label), (1, 0, Value::Null));
    let (ssh, monitoring) = (landscape.copy("ssh-keypair").await, landscape.copy("monitoring").await);

    let all = "rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key;rotate-ca-start";
    let prepared = landscape.reconcile(Some(all), "one").await;
    let left = &prepared["metadata"]["annotations"]["gardener.cloud/operation"];
    assert_eq!(*left, Value::Null, "what is handled goes [CP-15]");
    let events = dynamic(&landscape.world.client("garden"), "", "v1", "Event", Some("garden-dev"));
    let told = events.list(&Default::default()).await.unwrap();
    let unsupported = |event: &&DynamicObject| event.data["reason"] == "OperationNotSupported";
    let told: Vec<_> = told.items.iter().filter(unsupported).collect();
    assert_eq!(told.len(), 1, "what cannot be handled is told, and goes too");
    let message = told[0].data["message"].as_str().unwrap();
    assert!(message.contains("rotate-ca-start"), "{message}");
    let rotation = prepared["status"]["credentials"]["rotation"].clone();
    for one in ["sshKeypair", "observability"] {
        let (begun, ended) = (
            &rotation[one]["lastInitiationTime"],
            &rotation[one]["lastCompletionTime"],
        );
        assert!(begun.is_string() && ended.as_str() >= begun.as_str(), "{rotation:#}");
    }
    assert_eq!(rotation["etcdEncryptionKey"]["phase"], "Prepared");
    assert_eq!(landscape.copy("ssh-keypair.old").await, ssh);
    let (new_ssh, new_monitoring) = (landscape.copy("ssh-keypair").await, landscape.copy("monitoring").await);
    assert_ne!(new_ssh, ssh);
    assert_eq!(new_monitoring["username"], monitoring["username"]);
    assert_ne!(new_monitoring["password"], monitoring["password"]);
    let (both, marks, label) = landscape.keys().await;
    assert_eq!(
        (both.len(), &both[1]),
        (2, &first[0]),
        "the new key writes, the old one still reads"
    );
    assert_eq!(marks, ["new-encryption-key-populated", "resources-labeled"]);
    assert!(label.is_string(), "rewritten with the new key: {label}");

    let completed = landscape.reconcile(None, "two").await;
    let after = completed["status"]["credentials"]["rotation"].clone();
    assert_eq!(after["etcdEncryptionKey"]["phase"], "Completed", "[CP-C8]");
    assert!(after["etcdEncryptionKey"]["lastCompletionTime"].is_string());
    assert_eq!(landscape.keys().await, (vec![both[0].clone()], vec![], Value::Null));

    let later = landscape.reconcile(None, "three").await;
    assert_eq!(
        later["status"]["credentials"]["rotation"], after,
        "nothing is rotated twice"
    );
    assert_eq!(landscape.copy("ssh-keypair").await, new_ssh);
    assert_eq!(landscape.copy("ssh-keypair.old").await, ssh);
    assert_eq!(landscape.copy("monitoring").await, new_monitoring);
    assert_eq!(landscape.keys().await.0, [both[0].clone()]);
    landscape.stop.cancel();
}

impl Landscape {
    /// Waits until care tells constraints for which this holds: type, status and reason of each.
    async fn constraints(&self, wanted: &[(&str, &str, &str)]) {
        let mut told = Vec::new();
        for _ in 0..4000 {
            let shoot = self.shoot().await;
            let text = |own: &Value, key: &str| own[key].as_str().unwrap_or_default().to_owned();
            let constraints = shoot["status"]["constraints"].as_array().cloned().unwrap_or_default();
            let of = |own: &Value| (text(own, "type"), text(own, "status"), text(own, "reason"));
            told = constraints.iter().map(of).collect();
            let same = |(own, wanted): (&(String, String, String), &(&str, &str, &str))| {
                (own.0.as_str(), own.1.as_str(), own.2.as_str()) == *wanted
            };
            if told.len() == wanted.len() && told.iter().zip(wanted).all(same) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{told:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn st_80_81_care_tells_what_restricts() {
    let landscape = Landscape::start().await;
    landscape
        .world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    landscape.wait("Create", "Succeeded").await;
    let (hibernation, maintenance) = ("HibernationPossible", "MaintenancePreconditionsSatisfied");
    // W-C1
    let fine = "NoProblematicWebhooks";
    landscape
        .constraints(&[(hibernation, "True", fine), (maintenance, "True", fine)])
        .await;
    let webhook = json!({
        "metadata": {"name": "all-pods"},
        "webhooks": [{
            "name": "pods.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": "https://webhook.example.org"},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        }],
    });
    let group = "admissionregistration.k8s.io";
    let kind = "ValidatingWebhookConfiguration";
    landscape.world.create("shoot", group, "v1", kind, None, webhook).await;
    let bad = "ProblematicWebhooks";
    landscape
        .constraints(&[(hibernation, "False", bad), (maintenance, "False", bad)])
        .await;
    landscape
        .world
        .delete("shoot", group, "v1", kind, None, "all-pods")
        .await;
    landscape
        .constraints(&[(hibernation, "True", fine), (maintenance, "True", fine)])
        .await;
    // W-C2
    let seed = landscape.world.client("seed");
    let merge = kube::api::Patch::Merge::<Value>;
    let secrets = dynamic(&seed, "", "v1", "Secret", Some("shoot--dev--my"));
    let authority = kube::api::ListParams::default().labels("name=ca");
    let authority = secrets.list(&authority).await.unwrap().items.remove(0);
    let label = |key: &str| authority.labels()[key].clone();
    let until = label("issued-at-time").parse::<i64>().unwrap() + 364 * 24 * 3600;
    for (until, expected) in [
        (until.to_string(), Some(("False", "ExpiringCACertificates"))),
        (label("valid-until-time"), None),
    ] {
        let patch = merge(json!({"metadata": {"labels": {"valid-until-time": until}}}));
        secrets
            .patch(&authority.name_any(), &Default::default(), &patch)
            .await
            .unwrap();
        let expiring = expected.map(|(status, reason)| ("CACertificateValiditiesAcceptable", status, reason));
        let all = [(hibernation, "True", fine), (maintenance, "True", fine)];
        landscape
            .constraints(&all.into_iter().chain(expiring).collect::<Vec<_>>())
            .await;
    }
    // W-C4
    let deployments = dynamic(&seed, "apps", "v1", "Deployment", Some("shoot--dev--my"));
    let server = deployments.get("kube-apiserver").await.unwrap();
    let replicas = server.data["spec"]["replicas"].clone();
    let unchecked = "ConstraintNotChecked";
    for (replicas, status, reason) in [(json!(0), "False", unchecked), (replicas, "True", fine)] {
        let patch = merge(json!({"spec": {"replicas": replicas}}));
        deployments
            .patch("kube-apiserver", &Default::default(), &patch)
            .await
            .unwrap();
        landscape
            .constraints(&[(hibernation, status, reason), (maintenance, status, reason)])
            .await;
    }
    // W-C3
    let garden = landscape.world.client("garden");
    let shoots = dynamic(&garden, CORE, "v1beta1", "Shoot", Some("garden-dev"));
    let patch = kube::api::Patch::Merge(json!({"spec": {"hibernation": {"enabled": true}}}));
    shoots.patch("my", &Default::default(), &patch).await.unwrap();
    let asleep = [
        hibernation,
        maintenance,
        "CACertificateValiditiesAcceptable",
        "CRDsWithProblematicConversionWebhooks",
    ];
    landscape
        .constraints(&asleep.map(|kind| (kind, "True", "ConstraintNotChecked")))
        .await;
    landscape.stop.cancel();
}
