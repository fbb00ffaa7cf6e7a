//! A garden in memory and in virtual time without seeds, in which nothing works but what a test starts. With feature `landscape`.
#![allow(clippy::unwrap_used, clippy::panic)] // memory does not refuse

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::LogicalCluster;
use gardener_controller_manager::Config;
use gardener_landscape::garden::GARDEN;
use gardener_landscape::{Landscape, Options, Storage};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The namespace of the garden's project `local`.
pub const NAMESPACE: &str = "garden-local";

/// A garden. Needs a paused runtime of one thread.
pub struct Garden {
    landscape: Landscape,
    /// An administrator's client.
    pub client: Client,
    /// The virtual time.
    pub clock: Clock,
    number: u64,
}

impl Garden {
    /// Opens a garden at a time, e.g. `2026-01-01T00:00:00Z`; its chance is fixed by `number`. It has a registration of the types that
    /// [`shoot`] and [`cloud_profile`] use, and nothing else.
    pub async fn open(number: u64, start: &str) -> Self {
        let clock = Clock::starting_at(start.parse().unwrap());
        let landscape = Landscape::open(Options {
            store: Storage::Memory.open().unwrap(),
            clock: clock.clone(),
            chance: Chance::seeded(number),
            entry: None,
            seeds: 0,
        })
        .await
        .unwrap();
        let garden = Self {
            client: landscape.garden_client(),
            landscape,
            clock,
            number,
        };
        let registration = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": {"name": "all"},
            "spec": {"resources": [
                {"kind": "ControlPlane", "type": "local"}, {"kind": "Infrastructure", "type": "local"},
                {"kind": "Worker", "type": "local"}, {"kind": "Network", "type": "calico"},
                {"kind": "OperatingSystemConfig", "type": "os"}, {"kind": "OperatingSystemConfig", "type": "os-patch"},
                {"kind": "OperatingSystemConfig", "type": "os-minor"}, {"kind": "OperatingSystemConfig", "type": "os-major"},
            ]},
        });
        garden.create(registration).await.unwrap();
        garden
    }

    /// Creates the project `local` with its namespace and credentials. Where the controller-manager works the project becomes ready by itself; the
    /// namespace is made here for gardens in which it does not.
    pub async fn project(&self) {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {
                "gardener.cloud/role": "project", "project.gardener.cloud/name": "local"}}}),
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "local"},
                "spec": {"namespace": NAMESPACE}}),
        ];
        for object in objects.into_iter().chain(credentials()) {
            self.create(object).await.unwrap();
        }
    }

    /// How a controller-manager of the garden is configured. Its chance is the garden's, begun anew.
    pub fn manager(&self) -> Config {
        Config::new(self.client.clone(), self.clock.clone(), Chance::seeded(self.number))
    }

    /// Starts a controller-manager; it ends with the token.
    pub fn start_manager(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        tokio::spawn(gardener_controller_manager::run(self.manager(), stop.clone()));
        stop
    }

    /// Starts the maintenance of shoots alone; it ends with the token. With `foretells` it leaves out windows in which it would repeat itself.
    pub fn start_maintenance(&self, foretells: bool) -> CancellationToken {
        let stop = CancellationToken::new();
        let config = Config {
            foretells,
            ..self.manager()
        };
        tokio::spawn(gardener_controller_manager::run_maintenance(config, stop.clone()));
        stop
    }

    /// Starts all that changes shoots because time passes, and what stands in for gardenlets there; both end with the token.
    pub fn start_time(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        tokio::spawn(gardener_controller_manager::run_by_time(self.manager(), stop.clone()));
        self.stand_in_for_gardenlets(&stop);
        stop
    }

    /// Lets shoots' status tell what gardenlets would have others wait for, until `stop`.
    pub fn stand_in_for_gardenlets(&self, stop: &CancellationToken) {
        let (client, clock) = (self.client.clone(), self.clock.clone());
        tokio::spawn(gardener_landscape::gardenlet_stand_in::run(client, clock, stop.clone()));
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |pointer: &str| object.at(pointer).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        match text("/metadata/namespace") {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    /// Creates any object.
    ///
    /// # Errors
    /// What the garden says.
    pub async fn create(&self, object: Value) -> Result<Value, kube::Error> {
        let api = self.api(&object);
        let created = api
            .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
            .await?;
        Ok(serde_json::to_value(created).unwrap())
    }

    /// Applies any object as an operator does.
    ///
    /// # Errors
    /// What the garden says.
    pub async fn apply(&self, object: Value) -> Result<(), kube::Error> {
        let api = self.api(&object);
        let name = object.at("/metadata/name").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        let params = PatchParams::apply("operator").force();
        api.patch(&name, &params, &Patch::Apply(object)).await.map(|_| ())
    }

    /// Stores objects as they are, status included: neither admission nor validation see them.
    pub async fn put(&self, objects: Vec<Value>) {
        self.cluster().copy_in(objects).await.unwrap();
    }

    /// The garden's logical cluster.
    pub fn cluster(&self) -> Arc<LogicalCluster> {
        self.landscape.server.cluster(GARDEN).unwrap().0
    }

    /// The shoots of the project.
    pub fn shoots(&self) -> Api<Shoot> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Changes a shoot of the project by a merge patch.
    ///
    /// # Errors
    /// What the garden says.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<Shoot, kube::Error> {
        let patch = Patch::Merge(patch);
        self.shoots().patch(name, &PatchParams::default(), &patch).await
    }

    /// Changes a shoot's status by a merge patch, in gardenlet's place.
    pub async fn patch_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.shoots()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Reasons and messages of the events about a shoot of the project, with how often each happened.
    pub async fn events(&self, name: &str) -> Vec<(String, String, i32)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let events = events.list(&ListParams::default()).await.unwrap();
        let own = events.items.into_iter();
        own.filter(|event| event.involved_object.name.as_deref() == Some(name))
            .map(|event| {
                let text = |value: Option<String>| value.unwrap_or_default();
                (text(event.reason), text(event.message), event.count.unwrap_or(1))
            })
            .collect()
    }

    /// Lets virtual time pass, e.g. `10s`.
    pub async fn pass(&self, time: &str) {
        let time: SignedDuration = time.parse().unwrap();
        tokio::time::sleep(Duration::try_from(time).unwrap()).await;
    }

    /// Lets virtual time pass until a moment that is still to come.
    pub async fn until(&self, time: Timestamp) {
        let wait = time.duration_since(self.clock.now());
        tokio::time::sleep(Duration::try_from(wait).unwrap()).await;
    }

    /// Ends the garden.
    pub async fn close(self) {
        self.landscape.stop().await;
    }
}

/// Credentials `key` of the project: a Secret, and bindings of both kinds.
pub fn credentials() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": NAMESPACE}}),
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding",
                "metadata": {"name": "key", "namespace": NAMESPACE},
                "provider": {"type": "local"}, "secretRef": {"name": "key", "namespace": NAMESPACE}}),
        json!({"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
                "metadata": {"name": "key", "namespace": NAMESPACE}, "provider": {"type": "local"},
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": NAMESPACE}}),
    ]
}

/// A CloudProfile `local` with a machine type `large`, these Kubernetes versions, and these machine images.
pub fn cloud_profile(kubernetes: Value, images: Value) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "local"},
        "spec": {
            "type": "local", "regions": [{"name": "local"}],
            "machineTypes": [{"name": "large", "cpu": "2", "gpu": "0", "memory": "8Gi",
                "storage": {"class": "standard", "type": "ssd", "size": "50Gi"}}],
            "kubernetes": {"versions": kubernetes}, "machineImages": images,
        },
    })
}

/// A shoot of the project with these pools, maintained in a window such as `030000+0000`–`040000+0000`.
pub fn shoot(name: &str, version: &str, window: (&str, &str), auto_update: (bool, bool), workers: Value) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "credentialsBindingName": "key", "region": "local",
            "networking": {"type": "calico", "nodes": "10.0.0.0/16"},
            "kubernetes": {"version": version},
            "maintenance": {
                "autoUpdate": {"kubernetesVersion": auto_update.0, "machineImageVersion": auto_update.1},
                "timeWindow": {"begin": window.0, "end": window.1},
            },
            "provider": {"type": "local", "workers": workers},
        },
    })
}

/// A pool of a shoot, with a Kubernetes version of its own or without.
pub fn pool(name: &str, image: (&str, &str), kubernetes: Option<&str>) -> Value {
    let mut pool = json!({
        "name": name, "minimum": 1, "maximum": 1,
        "machine": {"type": "large", "image": {"name": image.0, "version": image.1}},
    });
    if let (Some(version), Some(members)) = (kubernetes, pool.as_object_mut()) {
        members.insert("kubernetes".to_owned(), json!({"version": version}));
    }
    pool
}
