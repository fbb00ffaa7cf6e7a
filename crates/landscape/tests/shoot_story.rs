//! The life of a shoot, told in virtual time: create, hibernate, wake up, scale, delete.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "shoot_story/cleaning.rs"]
mod cleaning;
#[path = "shoot_story/versions.rs"]
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use gardener_apis::core::v1beta1::{BackupEntry, ControllerInstallation, Shoot};
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::machine::v1alpha1::Machine;
use gardener_landscape::apply::Manifest;
use gardener_landscape::manifests;
use gardener_testkit::landscape::Landscape;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

const CONTROL_PLANE: &str = "shoot--local--local";

/// The first shoot of a landscape, and what the stories do with it.
struct Story {
    landscape: Landscape,
    shoots: Api<Shoot>,
}

impl Story {
    async fn begin(number: u64) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        Self::create(Landscape::start(number).await, &manifests::shoot()).await
    }

    async fn create(landscape: Landscape, manifest: &Manifest) -> Self {
        let story = Self::apply(landscape, manifest).await;
        story.settled("created", "Create").await;
        story
    }

    async fn apply(landscape: Landscape, manifest: &Manifest) -> Self {
        landscape.apply(manifest).await;
        let shoots = Api::namespaced(landscape.garden(), "garden-local");
        Self { landscape, shoots }
    }

    async fn shoot(&self) -> Shoot {
        self.shoots.get("local").await.unwrap()
    }

    /// Waits for the end of an operation on the shoot's latest generation and for its health.
    async fn settled(&self, what: &str, operation: &str) {
        let wanted = |shoot: &Shoot| {
            let last = shoot.status.last_operation.clone().unwrap_or_default();
            let unhealthy = shoot
                .status
                .conditions
                .iter()
                .filter(|own| own.status != "True")
                .count();
            last.r#type == operation
                && last.state == "Succeeded"
                && shoot.metadata.generation == shoot.status.observed_generation
                && shoot.status.conditions.len() >= 4
                && unhealthy == 0
        };
        let look = || async {
            let shoot = self.shoot().await;
            match wanted(&shoot) {
                true => Ok(()),
                false => Err(format!(
                    "{:#?} {:#?} generation {:?}",
                    shoot.status.last_operation, shoot.status.conditions, shoot.metadata.generation
                )),
            }
        };
        self.landscape.until(what, look).await;
    }

    async fn patch(&self, patch: Value) {
        let params = PatchParams::default();
        self.shoots.patch("local", &params, &Patch::Merge(patch)).await.unwrap();
    }

    /// Sets the worker pools: name, minimum and maximum.
    async fn pools(&self, pools: &[(&str, i32)]) {
        let spec = serde_json::to_value(&self.shoot().await).unwrap();
        let template = spec["spec"]["provider"]["workers"][0].clone();
        let workers: Vec<Value> = pools
            .iter()
            .map(|(name, nodes)| {
                let mut pool = template.clone();
                pool["name"] = json!(name);
                pool["minimum"] = json!(nodes);
                pool["maximum"] = json!(nodes);
                pool
            })
            .collect();
        self.patch(json!({"spec": {"provider": {"workers": workers}}})).await;
    }

    /// Waits until the shoot has ready nodes as told: pool and number.
    async fn nodes(&self, wanted: &[(&str, usize)]) {
        let wanted: BTreeMap<String, usize> = wanted.iter().map(|(pool, count)| ((*pool).into(), *count)).collect();
        let look = || async {
            let nodes: Api<Node> = Api::all(self.landscape.shoot(CONTROL_PLANE));
            let nodes = nodes
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            let mut ready = BTreeMap::new();
            for node in &nodes.items {
                let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
                let is_ready = conditions
                    .into_iter()
                    .any(|own| own.type_ == "Ready" && own.status == "True");
                let labels = node.metadata.labels.clone().unwrap_or_default();
                let pool = labels.get("worker.gardener.cloud/pool").cloned().unwrap_or_default();
                if is_ready {
                    *ready.entry(pool).or_insert(0) += 1;
                }
            }
            match ready == wanted && nodes.items.len() == wanted.values().sum::<usize>() {
                true => Ok(()),
                false => Err(format!("{} nodes, ready {ready:?}", nodes.items.len())),
            }
        };
        self.landscape.until(&format!("nodes {wanted:?}"), look).await;
    }

    /// The names of a kind in the control plane's namespace.
    async fn in_control_plane<K>(&self) -> Vec<String>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.landscape.seed("local"), CONTROL_PLANE);
        let list = api.list(&ListParams::default()).await.unwrap();
        list.items.iter().map(kube::ResourceExt::name_any).collect()
    }

    /// The uids of the pods with a label.
    async fn pods(&self, client: Client, namespace: &str, label: &str) -> BTreeSet<String> {
        let api: Api<Pod> = Api::namespaced(client, namespace);
        let pods = api.list(&ListParams::default().labels(label)).await.unwrap();
        let uids = pods.items.into_iter().filter_map(|pod| pod.metadata.uid);
        uids.collect()
    }

    /// Maintenance asks for restarts by tasks, which are done once, [CP-F71], [UPD-47].
    async fn restart_by_tasks(&self) {
        let look = || async {
            let (seed, shoot) = (self.landscape.seed("local"), self.landscape.shoot(CONTROL_PLANE));
            [
                self.pods(seed.clone(), CONTROL_PLANE, "role=controller-manager").await,
                self.pods(shoot.clone(), "kube-system", "app=coredns").await,
                self.pods(shoot, "kube-system", "app=kube-proxy").await,
                self.pods(seed, CONTROL_PLANE, "role=scheduler").await,
            ]
        };
        let before = look().await;
        assert!(before.iter().all(|pods| !pods.is_empty()), "{before:?}");
        let tasks = "restartControlPlanePods,restartCoreAddons";
        let annotations = json!({"shoot.gardener.cloud/tasks": tasks, "gardener.cloud/operation": "reconcile"});
        self.patch(json!({"metadata": {"annotations": annotations}})).await;
        let restarted = || async {
            let after = look().await;
            let waiting = self.shoot().await.tasks().len();
            let pairs = before.iter().zip(&after);
            let same: Vec<bool> = pairs.map(|(before, after)| !before.is_disjoint(after)).collect();
            match waiting == 0 && same == [false, false, false, true] {
                true => Ok(()),
                false => Err(format!("{waiting} tasks wait; still the same: {same:?}")),
            }
        };
        self.landscape.until("restarted", restarted).await;
        self.settled("healthy after restarts", "Reconcile").await;
        let restarted = look().await;
        self.patch(json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}))
            .await;
        self.settled("reconciled again", "Reconcile").await;
        assert_eq!(look().await, restarted, "what was restarted once stays as it is");
    }

    async fn hibernate(&self) {
        self.patch(json!({"spec": {"hibernation": {"enabled": true}}})).await;
        self.hibernated().await;
    }

    /// Waits until the shoot sleeps, and looks at what is left of it.
    async fn hibernated(&self) {
        let look = || async {
            let shoot = self.shoot().await;
            let last = shoot.status.last_operation.clone().unwrap_or_default();
            let done = shoot.metadata.generation == shoot.status.observed_generation && last.state == "Succeeded";
            if !done || !shoot.status.hibernated {
                return Err(format!("{last:?} hibernated {}", shoot.status.hibernated));
            }
            let machines = self.in_control_plane::<Machine>().await;
            let open = self.landscape.shoot(CONTROL_PLANE).apiserver_version().await.is_ok();
            match machines.is_empty() && !open {
                true => Ok(()),
                false => Err(format!("{machines:?} open {open}")),
            }
        };
        self.landscape.until("hibernated", look).await;
        let seed = self.landscape.seed("local");
        let deployments: Api<Deployment> = Api::namespaced(seed.clone(), CONTROL_PLANE);
        for name in [
            "kube-apiserver",
            "kube-controller-manager",
            "machine-controller-manager",
        ] {
            if let Some(own) = deployments.get_opt(name).await.unwrap() {
                assert_eq!(own.spec.replicas, Some(0), "{name} runs in a hibernated shoot");
            }
        }
        let sets: Api<StatefulSet> = Api::namespaced(seed, CONTROL_PLANE);
        for set in sets.list(&ListParams::default()).await.unwrap() {
            assert_eq!(set.spec.replicas, Some(0), "{:?}", set.metadata.name);
        }
    }

    /// Says in the care controller's place that nothing speaks against hibernation, which is refused until then.
    async fn allow_hibernation(&self) {
        let mut met = self.shoot().await.status.constraints;
        met.iter_mut().for_each(|own| own.status = "True".to_owned());
        let (params, status) = (PatchParams::default(), json!({"status": {"constraints": met}}));
        let written = self.shoots.patch_status("local", &params, &Patch::Merge(status)).await;
        written.unwrap();
    }

    /// Has the shoot created, and answers how often it was told on the way that it is not yet. Asks for hibernation when that was told `moment`
    /// times.
    async fn begin_and_hibernate(moment: Option<usize>) -> (Self, usize) {
        let story = Self::apply(Landscape::start(1).await, &manifests::shoot()).await;
        let only = WatchParams::default().fields("metadata.name=local");
        let mut changes = story.shoots.watch(&only, "0").await.unwrap().boxed();
        let mut told = 0;
        while let Some(change) = changes.try_next().await.unwrap() {
            let WatchEvent::Modified(shoot) = change else { continue };
            match shoot.status.last_operation.unwrap_or_default().state.as_str() {
                "Processing" => {
                    told += 1;
                    if moment == Some(told + 1) {
                        story.allow_hibernation().await;
                    } else if moment.map(|moment| moment + 1) == Some(told) {
                        // that it is allowed was told once more
                        story.patch(json!({"spec": {"hibernation": {"enabled": true}}})).await;
                    }
                }
                "Succeeded" => {
                    assert!(!shoot.status.hibernated, "nothing has been hibernated");
                    return (story, told);
                }
                _ => {}
            }
        }
        panic!("the watch ended");
    }

    /// Waits until the installation of the shoot's extension tells whether it is required for its nodes [EXT-107].
    async fn is_required_for_workers(&self, required: bool) {
        let installations: Api<ControllerInstallation> = Api::all(self.landscape.garden());
        let look = || async {
            let all = installations.list(&ListParams::default()).await.unwrap();
            let conditions = all.iter().flat_map(|one| &one.status.conditions);
            let told: Vec<_> = conditions.filter(|condition| condition.r#type == "Required").collect();
            let is_told = told.iter().any(|condition| condition.message.contains("Worker/local"));
            match !told.is_empty() && is_told == required {
                true => Ok(()),
                false => Err(format!("{told:#?}")),
            }
        };
        self.landscape.until("told what is required", look).await;
    }

    async fn wake_up(&self) {
        self.patch(json!({"spec": {"hibernation": {"enabled": false}}})).await;
        self.settled("awake", "Reconcile").await;
    }

    /// How often somebody was not allowed something in the garden.
    async fn refusals(&self) -> usize {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let metrics = self.landscape.garden().request_text(request).await.unwrap();
        let attempts = |result: &str| {
            let counted = format!("authorization_attempts_total{{result={result:?}}} ");
            let count = metrics.lines().find_map(|line| line.strip_prefix(&counted));
            count.map_or(0, |count| count.parse().unwrap())
        };
        assert!(attempts("allowed") > 0, "{metrics}");
        attempts("no-opinion")
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.landscape.shoot(CONTROL_PLANE), "default")
    }

    async fn write_config_map(&self) {
        let mut note = ConfigMap::default();
        note.metadata.name = Some("note".into());
        note.data = Some([("kept".to_owned(), "yes".to_owned())].into());
        self.config_maps().create(&PostParams::default(), &note).await.unwrap();
    }

    async fn config_map_is_there(&self) {
        let note = self.config_maps().get("note").await.unwrap();
        assert_eq!(note.data.unwrap()["kept"], "yes");
    }

    async fn delete(&self) {
        let refusal = self.shoots.delete("local", &DeleteParams::default()).await.unwrap_err();
        assert!(
            refusal.to_string().contains("confirmation.gardener.cloud/deletion"),
            "{refusal}"
        );
        self.patch(json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}))
            .await;
        self.shoots.delete("local", &DeleteParams::default()).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(self.landscape.seed("local"));
        let entries: Api<BackupEntry> = Api::all(self.landscape.garden());
        let look = || async {
            if let Some(shoot) = self.shoots.get_opt("local").await.unwrap() {
                return Err(format!(
                    "{:#?} {:#?}",
                    shoot.status.last_operation, shoot.status.last_errors
                ));
            }
            if let Some(namespace) = namespaces.get_opt(CONTROL_PLANE).await.unwrap() {
                return Err(format!("{namespace:#?}"));
            }
            let entries = entries.list(&ListParams::default()).await.unwrap().items;
            match entries.is_empty() {
                true => Ok(()),
                false => Err(format!("{entries:#?}")),
            }
        };
        self.landscape.until("gone", look).await;
        assert_eq!(self.in_control_plane::<Secret>().await, Vec::<String>::new());
        assert_eq!(self.in_control_plane::<Lease>().await, Vec::<String>::new());
        assert_eq!(self.in_control_plane::<Machine>().await, Vec::<String>::new());
        let secrets: Api<Secret> = Api::namespaced(self.landscape.garden(), "garden-local");
        for secret in secrets.list(&ListParams::default()).await.unwrap() {
            let name = secret.metadata.name.unwrap();
            assert!(
                !name.starts_with("local."),
                "Secret {name} of the shoot stays in the garden"
            );
        }
        assert!(self.landscape.shoot(CONTROL_PLANE).apiserver_version().await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_shoot_is_created_hibernated_woken_up_and_deleted() {
    let story = Story::begin(1).await;
    story.nodes(&[("local", 1)]).await;
    story.write_config_map().await;
    story.hibernate().await;
    story.wake_up().await;
    story.nodes(&[("local", 1)]).await;
    story.config_map_is_there().await;
    story.delete().await;
    story.landscape.stop().await;
}

/// [CP-F16]: whatever became of an etcd that was reconciled once, the next operation has it made again.
#[tokio::test(start_paused = true)]
async fn an_etcd_that_was_lost_comes_back_with_its_data() {
    let story = Story::begin(1).await;
    story.write_config_map().await;
    let sets: Api<StatefulSet> = Api::namespaced(story.landscape.seed("local"), CONTROL_PLANE);
    sets.delete("etcd-main", &DeleteParams::default()).await.unwrap();
    let lost = || async {
        let etcds: Api<Etcd> = Api::namespaced(story.landscape.seed("local"), CONTROL_PLANE);
        let status = etcds.get("etcd-main").await.unwrap().status;
        match status.ready {
            Some(false) if sets.get_opt("etcd-main").await.unwrap().is_none() => Ok(()),
            _ => Err(format!("{status:#?}")),
        }
    };
    story.landscape.until("lost", lost).await;
    story
        .patch(json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}))
        .await;
    story.settled("reconciled", "Reconcile").await;
    sets.get("etcd-main").await.unwrap();
    story.config_map_is_there().await;
    story.landscape.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hibernated_shoot_is_deleted() {
    let story = Story::begin(1).await;
    story.is_required_for_workers(true).await;
    story.hibernate().await;
    story.delete().await;
    story.is_required_for_workers(false).await;
    // nobody goes on asking for what is gone
    let refusals = story.refusals().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(story.refusals().await, refusals);
    story.landscape.stop().await;
}

/// [CP-62], [MCH-38]: there is no machine-controller-manager while a shoot sleeps, whatever becomes of its pools.
#[tokio::test(start_paused = true)]
async fn a_shoot_is_created_asleep_and_changed_in_its_sleep() {
    let mut manifest = manifests::shoot();
    let mut shoot: Value = serde_saphyr::from_str(&manifest.text).unwrap();
    shoot["spec"]["hibernation"] = json!({"enabled": true});
    manifest.text = shoot.to_string();
    let story = Story::apply(Landscape::start(1).await, &manifest).await;
    story.hibernated().await;
    story.pools(&[("local", 2), ("second", 1)]).await;
    story.hibernated().await;
    story.pools(&[("second", 2)]).await;
    story.hibernated().await;
    story.wake_up().await;
    story.nodes(&[("second", 2)]).await;
    story.delete().await;
    story.landscape.stop().await;
}

/// [CP-16]: an operation tells what it worked for, whatever is wanted by now. Were the shoot told hibernated here, the next operation would take
/// its control plane away and wait for ever for its machines to go.
#[tokio::test(start_paused = true)]
async fn hibernation_asked_for_as_an_operation_ends_is_left_to_the_next() {
    let (story, told) = Story::begin_and_hibernate(None).await;
    story.landscape.stop().await;
    let (story, again) = Story::begin_and_hibernate(Some(told)).await;
    assert_eq!(again, told + 2, "hibernation was asked for in between");
    story.hibernated().await;
    story.wake_up().await;
    story.nodes(&[("local", 1)]).await;
    story.landscape.stop().await;
}

#[test]
fn runs_with_one_number_have_one_event_log() {
    // a runtime of its own for each run: the second must not go on where the first one's timers stand
    let run = |number| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let story = Story::begin(number).await;
            story.hibernate().await;
            story.wake_up().await;
            let log = story.landscape.event_log();
            story.landscape.stop().await;
            log
        })
    };
    let (one, two) = (run(7), run(7));
    let different = one.iter().zip(&two).position(|(one, two)| one != two);
    if let Some(at) = different {
        let tell = |log: &[String]| log[at.saturating_sub(3)..log.len().min(at + 6)].join("\n");
        panic!("line {at} differs:\n{}\n---\n{}", tell(&one), tell(&two));
    }
    assert_eq!(one.len(), two.len());
}

#[tokio::test(start_paused = true)]
async fn pools_grow_shrink_come_and_go() {
    let story = Story::begin(1).await;
    story.pools(&[("local", 3)]).await;
    story.settled("scaled up", "Reconcile").await;
    story.restart_by_tasks().await;
    story.nodes(&[("local", 3)]).await;
    story.pools(&[("local", 1)]).await;
    story.settled("scaled down", "Reconcile").await;
    story.nodes(&[("local", 1)]).await;
    story.pools(&[("local", 1), ("second", 2)]).await;
    story.settled("second pool added", "Reconcile").await;
    story.nodes(&[("local", 1), ("second", 2)]).await;
    story.pools(&[("local", 1)]).await;
    story.settled("second pool removed", "Reconcile").await;
    story.nodes(&[("local", 1)]).await;
    story.landscape.stop().await;
}

/// [VER-84], [CP-80..82], [CP-92]: what is due is rotated once, with maintenance, gardenlet and nodes at work.
#[tokio::test(start_paused = true)]
async fn credentials_are_rotated_by_themselves_and_once() {
    let story = Story::begin(1).await;
    let copy = async |suffix: &str| {
        let secrets: Api<Secret> = Api::namespaced(story.landscape.garden(), "garden-local");
        secrets.get(&format!("local.{suffix}")).await.unwrap().data
    };
    let (ssh, passwords) = (copy("ssh-keypair").await, copy("monitoring").await);
    let half_an_hour = json!({"rotationPeriod": "30m"});
    let automatic =
        json!({"sshKeypair": half_an_hour, "observability": half_an_hour, "etcdEncryptionKey": half_an_hour});
    story
        .patch(json!({"spec": {"maintenance": {"autoRotation": {"credentials": automatic}}}}))
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(31 * 60)).await;
    story.settled("half an hour old", "Reconcile").await;
    let maintain = || story.patch(json!({"metadata": {"annotations": {"gardener.cloud/operation": "maintain"}}}));
    maintain().await;
    let rotation = async || {
        let credentials = story.shoot().await.status.credentials.unwrap_or_default();
        serde_json::to_value(credentials.rotation.unwrap_or_default()).unwrap()
    };
    let completed = || async {
        let told = rotation().await;
        let done = told["etcdEncryptionKey"]["phase"] == "Completed"
            && told["sshKeypair"]["lastCompletionTime"].is_string()
            && told["observability"]["lastCompletionTime"].is_string();
        match done {
            true => Ok(()),
            false => Err(format!("{told:#}")),
        }
    };
    story.landscape.until("rotated", completed).await;
    story.settled("healthy with new credentials", "Reconcile").await;
    let told = rotation().await;
    let last = story.shoot().await.status.last_maintenance.unwrap();
    assert!(last.description.contains("SSH keypair rotation started"), "{last:?}");
    assert_eq!(copy("ssh-keypair.old").await, ssh);
    let (new_ssh, new_passwords) = (copy("ssh-keypair").await, copy("monitoring").await);
    assert!(new_ssh != ssh && new_passwords != passwords);
    let labelled: Api<Secret> = Api::all(story.landscape.shoot(CONTROL_PLANE));
    let labelled = labelled
        .list(&ListParams::default().labels("credentials.gardener.cloud/key-name"))
        .await;
    assert!(
        labelled.unwrap().items.is_empty(),
        "the labels by which all was written anew are gone"
    );
    maintain().await;
    let taken = || async {
        match story.shoot().await.operations("gardener.cloud/operation").is_empty() {
            true => Ok(()),
            false => Err("maintenance has not come yet".to_owned()),
        }
    };
    story.landscape.until("maintained again", taken).await;
    story.settled("as before", "Reconcile").await;
    assert_eq!(rotation().await, told, "it is not due again");
    assert_eq!(copy("ssh-keypair").await, new_ssh);
}
