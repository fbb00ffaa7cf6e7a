//! A garden with its controllers, and objects for it.

use std::ops::Deref;

use gardener_apimachinery::pointer::Pointed;
use gardener_controller_manager::Config;
use gardener_testkit::garden::{self, NAMESPACE};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// When gardens of tests begin.
pub const START: &str = "2026-01-01T00:00:00Z";
pub const CORE: &str = "core.gardener.cloud/v1beta1";
pub const SECURITY: &str = "security.gardener.cloud/v1alpha1";
pub const SEEDMANAGEMENT: &str = "seedmanagement.gardener.cloud/v1alpha1";

pub struct Garden {
    own: garden::Garden,
}

impl Deref for Garden {
    type Target = garden::Garden;

    fn deref(&self) -> &garden::Garden {
        &self.own
    }
}

impl Garden {
    pub async fn open() -> Self {
        let own = garden::Garden::open(1, START).await;
        let registration = json!({"apiVersion": CORE, "kind": "ControllerRegistration", "metadata": {"name": "dns"},
            "spec": {"resources": [{"kind": "DNSRecord", "type": "local"}]}});
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "domain", "namespace": "garden"}}),
            registration,
        ] {
            own.create(object).await.unwrap();
        }
        Self { own }
    }

    /// As [`Garden::open`], with the project `local`, its credentials, and a cloud profile.
    pub async fn with_project() -> Self {
        let garden = Self::open().await;
        garden.project().await;
        let images = json!([{"name": "os", "versions": [{"version": "1.0.0"}]}]);
        garden
            .create(garden::cloud_profile(json!([{"version": "1.33.1"}]), images))
            .await
            .unwrap();
        garden
    }

    /// Starts the controllers as configured.
    pub fn start(&self, config: Config) -> CancellationToken {
        let stop = CancellationToken::new();
        tokio::spawn(gardener_controller_manager::run(config, stop.clone()));
        stop
    }

    pub fn api(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    /// An object; none if it is not there.
    pub async fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let found = self.api(api_version, kind, namespace).get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// One field of an object; null if either is not there.
    pub async fn field(&self, kind: (&str, &str), namespace: &str, name: &str, pointer: &str) -> Value {
        let object = self.get(kind.0, kind.1, namespace, name).await;
        object
            .and_then(|object| object.at(pointer).cloned())
            .unwrap_or_default()
    }

    pub async fn names(&self, kind: (&str, &str), namespace: &str) -> Vec<String> {
        let list = self
            .api(kind.0, kind.1, namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        list.items.into_iter().map(|own| own.metadata.name.unwrap()).collect()
    }

    pub async fn merge(&self, kind: (&str, &str), namespace: &str, name: &str, patch: Value) {
        let api = self.api(kind.0, kind.1, namespace);
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.unwrap();
    }

    pub async fn merge_status(&self, kind: (&str, &str), namespace: &str, name: &str, status: Value) {
        let (api, patch) = (self.api(kind.0, kind.1, namespace), json!({"status": status}));
        let patched = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.unwrap();
    }

    /// Deletes an object as an administrator who has confirmed it.
    pub async fn delete(&self, kind: (&str, &str), namespace: &str, name: &str) {
        let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
        self.merge(kind, namespace, name, confirmed).await;
        let deleted = self
            .api(kind.0, kind.1, namespace)
            .delete(name, &Default::default())
            .await;
        deleted.unwrap();
    }

    /// Takes all finalizers from an object, in the place of whoever put them there. One that is gone is fine.
    pub async fn let_go(&self, kind: (&str, &str), namespace: &str, name: &str) {
        if self.get(kind.0, kind.1, namespace, name).await.is_some() {
            self.merge(kind, namespace, name, json!({"metadata": {"finalizers": null}}))
                .await;
        }
    }

    /// The finalizers of an object.
    pub async fn finalizers(&self, kind: (&str, &str), namespace: &str, name: &str) -> Vec<String> {
        let told = self.field(kind, namespace, name, "/metadata/finalizers").await;
        let told = told.as_array().cloned().unwrap_or_default();
        told.iter().filter_map(|own| own.as_str().map(str::to_owned)).collect()
    }

    /// Reasons of the events about an object.
    pub async fn reasons(&self, namespace: &str, name: &str) -> Vec<String> {
        let list = self
            .api("v1", "Event", namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        let events = list
            .items
            .into_iter()
            .filter(|own| own.data["involvedObject"]["name"] == name);
        events
            .map(|own| own.data["reason"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// A shoot of the project `local` that is on seed `one`, as gardenlet would have it.
    pub async fn shoot_on(&self, name: &str, seed: &str) {
        let mut shoot = shoot(name);
        shoot["spec"]["seedName"] = json!(seed);
        shoot["status"] = json!({"seedName": seed, "technicalID": format!("shoot--local--{name}"), "gardener": {"id": "", "name": "", "version": "v1"},
            "observedGeneration": 1, "lastOperation": operation("Create", "Succeeded")});
        self.put(vec![shoot]).await;
    }
}

pub const SHOOT: (&str, &str) = (CORE, "Shoot");
pub const SEED: (&str, &str) = (CORE, "Seed");
pub const PROJECT: (&str, &str) = (CORE, "Project");

pub fn operation(kind: &str, state: &str) -> Value {
    json!({"type": kind, "state": state, "description": "", "progress": 100, "lastUpdateTime": START})
}

pub fn shoot(name: &str) -> Value {
    let pools = json!([garden::pool("pool", ("os", "1.0.0"), None)]);
    let window = ("030000+0000", "040000+0000");
    let mut shoot = garden::shoot(name, "1.33.1", window, (false, false), pools);
    shoot["spec"]["kubernetes"]["verticalPodAutoscaler"] = json!({"enabled": true});
    shoot["spec"]["networking"]["pods"] = json!("100.96.0.0/11");
    shoot["spec"]["networking"]["services"] = json!("100.64.0.0/13");
    shoot["metadata"]["creationTimestamp"] = json!(START);
    shoot["metadata"]["uid"] = json!(format!("uid-{name}"));
    shoot["metadata"]["generation"] = json!(1);
    shoot
}

pub fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "message": "so", "lastTransitionTime": START, "lastUpdateTime": START})
}

/// The spec of a seed with this domain for its ingress.
pub fn seed_spec(domain: &str) -> Value {
    let credentials = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "domain"});
    json!({
        "provider": {"type": "local", "region": "local"},
        "networks": {"nodes": "10.0.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
        "dns": {"provider": {"type": "local", "credentialsRef": credentials},
            "internal": {"type": "local", "domain": "internal.local", "credentialsRef": credentials}},
        "ingress": {"domain": domain, "controller": {"kind": "nginx"}},
    })
}

/// What a gardenlet is configured with for a seed with this domain for its ingress.
pub fn gardenlet(domain: &str) -> Value {
    json!({"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
        "seedConfig": {"metadata": {"labels": {"set": "own"}}, "spec": seed_spec(domain)}})
}

/// A seed whose gardenlet works.
pub fn seed(name: &str) -> Value {
    json!({
        "apiVersion": CORE, "kind": "Seed",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1, "creationTimestamp": START},
        "spec": seed_spec(&format!("{name}.example.com")),
        "status": {"observedGeneration": 1, "gardener": {"id": "", "name": "", "version": "v1"},
            "conditions": [condition("GardenletReady", "True"), condition("SeedSystemComponentsHealthy", "True")]},
    })
}

/// A gardenlet's lease, renewed at a time.
pub fn lease(seed: &str, time: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": seed, "namespace": "gardener-system-seed-lease"},
        "spec": {"holderIdentity": seed, "renewTime": time.replace('Z', ".000000Z")},
    })
}

pub const NS: &str = NAMESPACE;
