//! A garden and a seed in memory and virtual time, with everything beside gardenlet played by simple stand-ins: they say of every object
//! at once that all is well.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::authn::{Authenticator, Settings as Authentication};
use gardener_apiserver::authz::Union;
use gardener_apiserver::kubernetes::{self, NamespaceLifecycle};
use gardener_apiserver::rbac::Rbac;
use gardener_apiserver::{ClusterConfig, Server, Shared, UserInfo};
use gardener_gardenlet::ShootClients;
use gardener_store::MemoryStore;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

pub struct World {
    pub server: Server,
    pub clock: Clock,
    pub chance: Chance,
}

/// One client for every shoot: the cluster `shoot`.
pub struct OneShoot(pub Client);

#[async_trait]
impl ShootClients for OneShoot {
    async fn client(&self, _: &str) -> Result<Client, String> {
        Ok(self.0.clone())
    }
}

pub fn dynamic(client: &Client, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

const GARDEN_KINDS: [(&str, &str, &str, &str, bool); 12] = [
    ("core.gardener.cloud", "v1beta1", "Shoot", "shoots", true),
    ("core.gardener.cloud", "v1beta1", "Seed", "seeds", false),
    ("core.gardener.cloud", "v1beta1", "Project", "projects", false),
    ("core.gardener.cloud", "v1beta1", "CloudProfile", "cloudprofiles", false),
    (
        "core.gardener.cloud",
        "v1beta1",
        "SecretBinding",
        "secretbindings",
        true,
    ),
    (
        "core.gardener.cloud",
        "v1beta1",
        "InternalSecret",
        "internalsecrets",
        true,
    ),
    ("core.gardener.cloud", "v1beta1", "BackupBucket", "backupbuckets", false),
    ("core.gardener.cloud", "v1beta1", "BackupEntry", "backupentries", true),
    (
        "core.gardener.cloud",
        "v1beta1",
        "ControllerRegistration",
        "controllerregistrations",
        false,
    ),
    (
        "core.gardener.cloud",
        "v1beta1",
        "ControllerInstallation",
        "controllerinstallations",
        false,
    ),
    (
        "core.gardener.cloud",
        "v1",
        "ControllerDeployment",
        "controllerdeployments",
        false,
    ),
    ("operations.gardener.cloud", "v1alpha1", "Bastion", "bastions", true),
];

fn definition((group, version, kind, plural, namespaced): (&str, &str, &str, &str, bool)) -> Value {
    let open = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    // what gardenlet selects by
    let text = json!({"type": "string"});
    let (fields, schema) = match kind {
        "ControllerInstallation" => {
            let spec = open(json!({"seedRef": open(json!({"name": text}))}));
            (json!([{"jsonPath": ".spec.seedRef.name"}]), open(json!({"spec": spec})))
        }
        "Bastion" => {
            let spec = open(json!({"seedName": text, "shootRef": open(json!({"name": text}))}));
            let fields = json!([{"jsonPath": ".spec.seedName"}, {"jsonPath": ".spec.shootRef.name"}]);
            (fields, open(json!({"spec": spec})))
        }
        _ => (json!([]), open(json!({}))),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "selectableFields": fields,
                "subresources": if kind == "InternalSecret" || kind == "ControllerDeployment" { json!({}) } else { json!({"status": {}}) },
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

impl World {
    pub async fn new() -> Self {
        let clock = Clock::starting_at("2026-03-01T10:00:00Z".parse().unwrap());
        let chance = Chance::seeded(7);
        let store = MemoryStore::new(gardener_apiserver::object::FORM, gardener_store::Options::default());
        let server = Server::new(Shared {
            store: Arc::new(store),
            clock: clock.clone(),
            chance: chance.clone(),
        });
        let (resources, documents) = kubernetes::resources().unwrap();
        let (resources, documents) = (Arc::new(resources), Arc::new(documents));
        for name in ["garden", "seed", "shoot"] {
            let config = ClusterConfig {
                admission: vec![Arc::new(NamespaceLifecycle)],
                ..ClusterConfig::new(
                    (resources.clone(), documents.clone()),
                    Arc::new(Authenticator::new(Authentication::default())),
                    Arc::new(Union(vec![Arc::new(Rbac)])),
                    "v1.35.0",
                )
            };
            let cluster = server.open(name, config);
            kubernetes::bootstrap(&cluster).await.unwrap();
        }
        let world = Self { server, clock, chance };
        let garden = world.client("garden");
        let definitions = dynamic(&garden, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
        for kind in GARDEN_KINDS {
            let object: DynamicObject = serde_json::from_value(definition(kind)).unwrap();
            definitions.create(&PostParams::default(), &object).await.unwrap();
        }
        for (kind, namespace, object) in [
            ("Namespace", None, json!({"metadata": {"name": "garden"}})),
            (
                "Namespace",
                None,
                json!({"metadata": {"name": "gardener-system-seed-lease"}}),
            ),
            (
                "Namespace",
                None,
                json!({"metadata": {"name": "garden-dev", "labels": {"project.gardener.cloud/name": "dev"}}}),
            ),
            (
                "ConfigMap",
                Some("kube-system"),
                json!({"metadata": {"name": "cluster-identity"}, "data": {"cluster-identity": "landscape"}}),
            ),
            (
                "Secret",
                Some("garden"),
                json!({"metadata": {"name": "domain"}, "data": {}}),
            ),
            (
                "Secret",
                Some("garden-dev"),
                json!({"metadata": {"name": "account"}, "data": {"key": "dmFsdWU="}}),
            ),
        ] {
            world.create("garden", "", "v1", kind, namespace, object).await;
        }
        let core = "core.gardener.cloud";
        world
            .create(
                "garden",
                core,
                "v1beta1",
                "Project",
                None,
                json!({"metadata": {"name": "dev"}, "spec": {"namespace": "garden-dev"}}),
            )
            .await;
        world.create("garden", core, "v1beta1", "CloudProfile", None, json!({"metadata": {"name": "local"}, "spec": {"type": "local", "machineTypes": [{"name": "local", "cpu": "4", "gpu": "0", "memory": "8Gi"}]}})).await;
        world.create("garden", core, "v1beta1", "SecretBinding", Some("garden-dev"), json!({"metadata": {"name": "account"}, "secretRef": {"name": "account", "namespace": "garden-dev"}, "provider": {"type": "local"}})).await;
        world
    }

    pub fn client(&self, cluster: &str) -> Client {
        self.server.client(cluster, UserInfo::new("test", &["system:masters"]))
    }

    pub async fn create(
        &self,
        cluster: &str,
        group: &str,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> DynamicObject {
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut object = object;
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        dynamic(&self.client(cluster), group, version, kind, namespace)
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    pub async fn get(
        &self,
        cluster: &str,
        group: &str,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Value {
        let found = dynamic(&self.client(cluster), group, version, kind, namespace)
            .get(name)
            .await
            .unwrap();
        serde_json::to_value(found).unwrap()
    }

    /// Registers an extension for these kinds and types, and installs it in the seed, where it is well.
    pub async fn install_extension(&self, name: &str, resources: &[(&str, &str)]) {
        let core = "core.gardener.cloud";
        let of = |(kind, own_type): &(&str, &str)| json!({"kind": kind, "type": own_type});
        let resources: Vec<Value> = resources.iter().map(of).collect();
        let registration = json!({"metadata": {"name": name}, "spec": {"resources": resources}});
        self.create("garden", core, "v1beta1", "ControllerRegistration", None, registration)
            .await;
        let spec = json!({"seedRef": {"name": "local"}, "registrationRef": {"name": name}});
        let installation = json!({"metadata": {"name": name}, "spec": spec});
        self.create("garden", core, "v1beta1", "ControllerInstallation", None, installation)
            .await;
        let now = self.clock.time();
        let is = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "x", "message": "x", "lastTransitionTime": now, "lastUpdateTime": now});
        let conditions = json!([
            is("Installed", "True"),
            is("Healthy", "True"),
            is("Progressing", "False")
        ]);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        dynamic(&self.client("garden"), core, "v1beta1", "ControllerInstallation", None)
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Plays etcd-druid, the extensions, the resource manager and the workload controllers of the seed, for ever.
    pub async fn stand_in(&self) {
        let seed = self.client("seed");
        let kinds = [
            ("apps", "v1", "Deployment"),
            ("druid.gardener.cloud", "v1alpha1", "Etcd"),
            ("resources.gardener.cloud", "v1alpha1", "ManagedResource"),
            ("extensions.gardener.cloud", "v1alpha1", "Infrastructure"),
            ("extensions.gardener.cloud", "v1alpha1", "ControlPlane"),
            ("extensions.gardener.cloud", "v1alpha1", "Network"),
            ("extensions.gardener.cloud", "v1alpha1", "DNSRecord"),
            ("extensions.gardener.cloud", "v1alpha1", "OperatingSystemConfig"),
            ("extensions.gardener.cloud", "v1alpha1", "Worker"),
        ];
        loop {
            for (group, version, kind) in kinds {
                let api = dynamic(&seed, group, version, kind, None);
                let Ok(listed) = api.list(&ListParams::default()).await else {
                    continue;
                };
                for object in listed.items {
                    let namespaced = dynamic(&seed, group, version, kind, object.namespace().as_deref());
                    self.serve(&namespaced, kind, &object).await;
                }
            }
            self.finalize_namespaces(&seed).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn finalize_namespaces(&self, seed: &Client) {
        let api = dynamic(seed, "", "v1", "Namespace", None);
        for mut namespace in api.list(&ListParams::default()).await.unwrap().items {
            if namespace.metadata.deletion_timestamp.is_some() {
                namespace.data["spec"] = json!({"finalizers": []});
                let name = namespace.name_any();
                api.replace_subresource("finalize", &name, &PostParams::default(), &namespace)
                    .await
                    .ok();
            }
        }
    }

    async fn serve(&self, api: &Api<DynamicObject>, kind: &str, object: &DynamicObject) {
        let name = object.name_any();
        let parameters = PatchParams::default();
        let generation = object.metadata.generation;
        if object.metadata.deletion_timestamp.is_some() {
            let patch = json!({"metadata": {"finalizers": null}});
            api.patch(&name, &parameters, &Patch::Merge(patch)).await.ok();
            return;
        }
        let asked = object.annotations().contains_key("gardener.cloud/operation");
        let observed = object.data.at("/status/observedGeneration").and_then(Value::as_i64);
        if !asked && observed == generation {
            return;
        }
        if asked {
            let patch = json!({"metadata": {"annotations": {"gardener.cloud/operation": null}}});
            api.patch(&name, &parameters, &Patch::Merge(patch)).await.unwrap();
        }
        let now = self.clock.time();
        let succeeded = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done", "lastUpdateTime": now});
        let mut status = match kind {
            "Deployment" => {
                let replicas = object.data.at("/spec/replicas").cloned().unwrap_or_else(|| json!(1));
                json!({
                    "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas, "readyReplicas": replicas,
                    "conditions": [{"type": "Available", "status": "True"}],
                })
            }
            "Etcd" => json!({"ready": true}),
            "ManagedResource" => {
                let holds = |kind: &str| json!({"type": kind, "status": "True", "reason": "x", "message": "x", "lastTransitionTime": now, "lastUpdateTime": now});
                let mut at_rest = holds("ResourcesProgressing");
                at_rest["status"] = "False".into();
                let conditions = [holds("ResourcesApplied"), holds("ResourcesHealthy"), at_rest];
                json!({"conditions": conditions})
            }
            _ => json!({"lastOperation": succeeded}),
        };
        match kind {
            "Infrastructure" => status["nodesCIDR"] = "10.250.0.0/16".into(),
            "Worker" => {
                status["machineDeployments"] = json!([{"name": "one", "minimum": 1, "maximum": 2}]);
                status["machineDeploymentsLastUpdateTime"] = json!(now);
            }
            "OperatingSystemConfig" if name.ends_with("-init") => {
                status["cloudConfig"] =
                    json!({"secretRef": {"name": format!("osc-{name}"), "namespace": object.namespace()}});
            }
            _ => {}
        }
        status["observedGeneration"] = json!(generation);
        api.patch_status(&name, &parameters, &Patch::Merge(json!({"status": status})))
            .await
            .unwrap();
    }

    #[allow(dead_code)]
    pub async fn delete(
        &self,
        cluster: &str,
        group: &str,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) {
        dynamic(&self.client(cluster), group, version, kind, namespace)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
}
