//! One operation on one shoot: what is known of it, and the steps that the flows are put together from. One file per group of components.

mod access;
mod cleanup;
mod control_plane;
mod copies;
mod dns;
mod encryption;
mod extensions;
mod garden;
mod hibernation;
mod network;
mod removal;
mod required_extensions;
mod restart;
mod secrets;
mod system;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;

use gardener_apis::core::v1beta1::{Project, Seed, Shoot};
use gardener_apis::extensions::v1alpha1::{Infrastructure, Worker};
use gardener_controller::Read;
use gardener_controller::apply as patching;
use gardener_controller::secrets::Manager;
use gardener_flow::TaskError;
use gardener_rules::shoot_operation::OperationType;
use gardener_rules::shoot_replicas::{self, Live, Situation};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::RwLock;
use serde_json::Value;

use crate::Config;
use crate::apply;
use crate::components::{Cluster, SecretNames};
use crate::managed_resource::{self, Content};

pub(crate) use dns::Record;
pub(crate) use garden::sync_cluster_of;

/// How tasks end.
pub(crate) type Done = Result<(), TaskError>;

/// A domain under which records are made.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// The domain.
    pub(crate) name: String,
    /// The type of the DNS provider.
    pub(crate) provider: String,
    /// The zone, if it is known.
    pub(crate) zone: Option<String>,
    /// Credentials, as the extension reads them.
    pub(crate) credentials: std::collections::BTreeMap<String, k8s_openapi::ByteString>,
}

/// What is learned while the flow runs.
#[derive(Default)]
struct State {
    secrets: SecretNames,
    infrastructure: Option<Infrastructure>,
    worker: Option<Worker>,
    /// The address of the entrance to the API server.
    address: Option<String>,
    /// By pool: name and checksum of the node agent secret.
    pool_secrets: std::collections::BTreeMap<String, (String, String)>,
    situation: Situation,
}

/// One operation on one shoot.
pub(crate) struct Botanist {
    pub(crate) config: Config,
    pub(crate) operation: OperationType,
    pub(crate) project: Project,
    pub(crate) seed: Seed,
    pub(crate) cloud_profile: Value,
    /// The technical ID.
    pub(crate) namespace: String,
    pub(crate) garden_identity: String,
    pub(crate) internal: Option<Domain>,
    pub(crate) external: Option<Domain>,
    pub(crate) manager: Manager,
    /// The types of enabled extensions, with their life-cycle.
    pub(crate) extensions: Vec<extensions::Wanted>,
    shoot: RwLock<Arc<Shoot>>,
    state: RwLock<State>,
    /// Held while the shoot is written, so that no older answer replaces a newer one.
    writing: tokio::sync::Mutex<()>,
}

/// What components are rendered from, held together.
pub(crate) struct View<'a> {
    botanist: &'a Botanist,
    pub(crate) shoot: Arc<Shoot>,
    secrets: SecretNames,
}

impl View<'_> {
    pub(crate) fn cluster(&self) -> Cluster<'_> {
        let internal_host = self.botanist.internal_host();
        Cluster {
            namespace: &self.botanist.namespace,
            shoot: &self.shoot,
            seed: &self.botanist.seed,
            secrets: &self.secrets,
            external_host: self.botanist.external_host(),
            issuers: issuers(&self.shoot, &internal_host),
            internal_host,
        }
    }
}

/// The issuers of service account tokens, the one that signs first [CP-113].
fn issuers(shoot: &Shoot, internal_host: &str) -> Vec<String> {
    let server = shoot.spec.kubernetes.kube_api_server.as_ref();
    let own = server
        .and_then(|one| one.service_account_config.as_ref())
        .and_then(|one| one.issuer.clone());
    let default = format!("https://{internal_host}");
    own.into_iter().chain([default]).collect()
}

impl Botanist {
    pub(crate) fn garden(&self) -> &Client {
        &self.config.garden
    }

    pub(crate) fn seed_client(&self) -> &Client {
        &self.config.seed
    }

    /// Objects in the control plane's namespace.
    pub(crate) fn seed_api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.config.seed.clone(), &self.namespace)
    }

    pub(crate) async fn shoot_client(&self) -> Result<Client, TaskError> {
        self.config.shoots.client(&self.namespace).await.map_err(TaskError::new)
    }

    pub(crate) fn shoot(&self) -> Arc<Shoot> {
        Arc::clone(&self.shoot.read())
    }

    pub(crate) fn shoot_name(&self) -> String {
        self.shoot().name_any()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            botanist: self,
            shoot: self.shoot(),
            secrets: self.state.read().secrets.clone(),
        }
    }

    pub(crate) fn is_workerless(&self) -> bool {
        self.shoot().spec.provider.workers.is_empty()
    }

    /// `spec.hibernation.enabled`.
    pub(crate) fn is_hibernation_enabled(&self) -> bool {
        is_hibernation_enabled(&self.shoot())
    }

    pub(crate) fn internal_host(&self) -> String {
        match &self.internal {
            Some(domain) => format!("api.{}.{}.{}", self.shoot_name(), self.project.name_any(), domain.name),
            None => format!("kube-apiserver.{}.svc", self.namespace),
        }
    }

    pub(crate) fn external_host(&self) -> Option<String> {
        let shoot = self.shoot();
        let domain = shoot.spec.dns.as_ref()?.domain.clone()?;
        Some(format!("api.{domain}"))
    }

    /// Whether a task is requested by the shoot's annotation [UPD-47].
    pub(crate) fn has_task(&self, task: &str) -> bool {
        self.shoot().tasks().contains(&task)
    }

    /// Whether waits for readiness are left out.
    pub(crate) fn skips_readiness(&self) -> bool {
        self.shoot()
            .annotations()
            .contains_key("shoot.gardener.cloud/skip-readiness")
    }

    /// Writes manifests into the seed.
    pub(crate) async fn apply(&self, manifests: &[Value]) -> Done {
        apply::apply_all(self.seed_client(), manifests).await?;
        Ok(())
    }

    /// Writes objects into the shoot, by a ManagedResource.
    pub(crate) async fn deploy_to_shoot(&self, name: &str, objects: &[Value]) -> Done {
        let content = Content {
            namespace: &self.namespace,
            name,
            class: None,
            objects,
            labels: &[],
            keep_objects: false,
        };
        Ok(managed_resource::deploy(self.seed_client(), &content).await?)
    }

    /// Changes the shoot's status in the garden.
    pub(crate) async fn patch_status(&self, mutate: impl Fn(&mut Shoot)) -> Done {
        let _writing = self.writing.lock().await;
        let current = self.shoot();
        let api: Api<Shoot> = Api::namespaced(self.garden().clone(), &current.namespace().unwrap_or_default());
        let (patched, _) = patching::patch_status(&api, &current, mutate).await?;
        self.replace(patched);
        Ok(())
    }

    /// Changes the shoot itself in the garden.
    pub(crate) async fn patch_shoot(&self, mutate: impl Fn(&mut Shoot)) -> Done {
        let _writing = self.writing.lock().await;
        let current = self.shoot();
        let api: Api<Shoot> = Api::namespaced(self.garden().clone(), &current.namespace().unwrap_or_default());
        let (patched, _) = patching::patch(&api, &current, mutate).await?;
        self.replace(patched);
        Ok(())
    }

    /// Fills in the nodes' network; the generation that comes of it is observed at once, for this operation works with it.
    pub(crate) async fn learn_nodes(&self, nodes: String) -> Done {
        let observed = self.shoot().status.observed_generation;
        self.patch_shoot(|shoot| shoot.spec.networking.get_or_insert_default().nodes = Some(nodes.clone()))
            .await?;
        let after = self.shoot().metadata.generation;
        // one more than was observed: nobody else has changed the spec since, which this operation does not work for
        if after == observed.map(|generation| generation + 1) {
            self.patch_status(|shoot| shoot.status.observed_generation = after)
                .await?;
        }
        Ok(())
    }

    /// Takes the metadata, spec and status of a newer version, but keeps working for the spec it began with.
    fn replace(&self, patched: Shoot) {
        let mut shoot = self.shoot.write();
        let mut next = patched;
        let mut spec = shoot.spec.clone();
        // What the flow itself finds out belongs to the spec it works for.
        spec.networking.clone_from(&next.spec.networking);
        next.spec = spec;
        *shoot = Arc::new(next);
    }

    /// Removes a task from the shoot's annotation.
    pub(crate) async fn remove_task(&self, task: &str) -> Done {
        if !self.has_task(task) {
            return Ok(());
        }
        self.patch_shoot(|shoot| shoot.remove_task(task)).await
    }

    /// The live replicas of a Deployment; none if there is none.
    pub(crate) async fn live(&self, name: &str) -> Result<Option<Live>, TaskError> {
        let api: Api<Deployment> = self.seed_api();
        let found = api.read_opt(name).await?;
        Ok(found.map(|deployment| Live {
            replicas: deployment.spec.replicas.unwrap_or(1),
            protected: deployment
                .annotations()
                .contains_key("dependency-watchdog.gardener.cloud/meltdown-protection-active"),
        }))
    }

    /// What replicas are decided from; reads how many API servers are desired now.
    pub(crate) async fn learn_situation(&self) -> Done {
        let api_server = self.live("kube-apiserver").await?.map(|live| live.replicas);
        let shoot = self.shoot();
        self.state.write().situation = Situation {
            is_first: matches!(self.operation, OperationType::Create | OperationType::Restore),
            is_restore: self.operation == OperationType::Restore,
            is_delete: self.operation == OperationType::Delete,
            hibernation_enabled: is_hibernation_enabled(&shoot) && self.operation != OperationType::Delete,
            hibernated: shoot.status.hibernated && self.operation != OperationType::Delete,
            api_server,
        };
        Ok(())
    }

    pub(crate) fn situation(&self) -> Situation {
        self.state.read().situation
    }

    /// The replicas of a controller [CP-60].
    pub(crate) async fn controller_replicas(&self, name: &str, default: i32) -> Result<i32, TaskError> {
        let live = self.live(name).await?.unwrap_or_default();
        Ok(shoot_replicas::controller(&self.situation(), live, default))
    }

    /// A Secret's value as text.
    pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
        let value = secret.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok()
    }

    /// The types of enabled extensions.
    pub(crate) fn extension_types(&self) -> BTreeSet<String> {
        self.extensions.iter().map(|one| one.kind.clone()).collect()
    }
}

/// `spec.hibernation.enabled`.
pub(crate) fn is_hibernation_enabled(shoot: &Shoot) -> bool {
    shoot.spec.hibernation.as_ref().and_then(|one| one.enabled) == Some(true)
}
