//! The steps of a deletion [CP-35]: cleaning the shoot, then taking the control plane apart.

use std::time::Duration;

use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1::{Bastion, ControlPlane, Infrastructure, Network, Worker};
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_controller::error_codes;
use gardener_controller::operation;
use gardener_controller::wait::{Patience, wait_deleted, wait_for_all};
use gardener_flow::TaskError;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource, ResourceExt};

use super::dns::Record;
use super::{Botanist, Done};
use crate::components::{kube_apiserver, machine_controller_manager};
use crate::extension::{self, ExtensionObject, Timing};
use crate::{apply, managed_resource};

/// Namespaces that every cluster has.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
const TEN_MINUTES: Duration = Duration::from_secs(600);

fn patience(timeout: Duration) -> Patience {
    Patience {
        recheck: timeout,
        timeout,
    }
}

/// Whether an object in a shoot is Gardener's own, which goes with its ManagedResource.
fn is_kept<K: Resource>(object: &K) -> bool {
    let labels = object.labels();
    let is = |key: &str, value: &str| labels.get(key).is_some_and(|one| one == value);
    is("shoot.gardener.cloud/no-cleanup", "true") || is("resources.gardener.cloud/managed-by", "gardener")
}

fn left<K: Resource>(objects: &[K], kind: &str, counts: impl Fn(&K) -> bool) -> Result<(), String> {
    let names: Vec<String> = objects
        .iter()
        .filter(|one| counts(one))
        .map(ResourceExt::name_any)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} {kind} objects are still present: [{}]",
        names.len(),
        names.join(" ")
    ))
}

fn stuck(why: String) -> TaskError {
    TaskError::new(why).with_codes([error_codes::CLEANUP_CLUSTER_RESOURCES])
}

async fn clean<K>(client: &Client, kind: &str, goes: impl Fn(&K) -> bool) -> Done
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    for object in api.read_list(&ListParams::default()).await? {
        if goes(&object) {
            api.delete(&object.name_any(), &DeleteParams::background())
                .await
                .map(drop)
                .or_else(absent)?;
        }
    }
    wait_for_all(&api, patience(TEN_MINUTES), |all| left(all, kind, &goes))
        .await
        .map_err(stuck)
}

async fn clean_namespaced<K>(client: &Client, kind: &str, goes: impl Fn(&K) -> bool) -> Done
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    for object in api.read_list(&ListParams::default()).await? {
        if goes(&object) {
            let one: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
            one.delete(&object.name_any(), &DeleteParams::background())
                .await
                .map(drop)
                .or_else(absent)?;
        }
    }
    wait_for_all(&api, patience(TEN_MINUTES), |all| left(all, kind, &goes))
        .await
        .map_err(stuck)
}

fn absent(error: kube::Error) -> Result<(), kube::Error> {
    if gardener_controller::apply::is_not_found(&error) {
        Ok(())
    } else {
        Err(error)
    }
}

impl Botanist {
    /// Whether the control plane's namespace exists.
    pub(crate) async fn has_namespace(&self) -> Result<bool, TaskError> {
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        let found = api.read_opt(&self.namespace).await?;
        Ok(found.is_some_and(|one| one.metadata.deletion_timestamp.is_none()))
    }

    /// Whether an Infrastructure exists.
    pub(crate) async fn has_infrastructure(&self) -> Result<bool, TaskError> {
        let api: Api<Infrastructure> = self.seed_api();
        Ok(api.read_opt(&self.shoot_name()).await?.is_some())
    }

    /// Nobody is connected to a node [CP-35].
    pub(crate) async fn check_no_bastions(&self) -> Done {
        let api: Api<Bastion> = self.seed_api();
        if api.read_list(&ListParams::default()).await?.is_empty() {
            return Ok(());
        }
        Err(TaskError::new("shoot has still Bastions"))
    }

    /// The users' webhooks, which could keep other things from going.
    pub(crate) async fn clean_webhooks(&self) -> Done {
        let client = self.shoot_client().await?;
        clean::<MutatingWebhookConfiguration>(&client, "MutatingWebhookConfiguration", |one| !is_kept(one)).await?;
        clean::<ValidatingWebhookConfiguration>(&client, "ValidatingWebhookConfiguration", |one| !is_kept(one)).await
    }

    /// The users' custom resources.
    pub(crate) async fn clean_extended_apis(&self) -> Done {
        let client = self.shoot_client().await?;
        clean::<CustomResourceDefinition>(&client, "CustomResourceDefinition", |one| !is_kept(one)).await
    }

    /// What costs money outside the cluster, and the users' namespaces.
    pub(crate) async fn clean_kubernetes_resources(&self) -> Done {
        let client = self.shoot_client().await?;
        let is_balancer =
            |one: &Service| one.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
        clean::<Namespace>(&client, "Namespace", |one| {
            !is_kept(one) && !SYSTEM_NAMESPACES.contains(&one.name_any().as_str())
        })
        .await?;
        clean_namespaced::<Service>(&client, "Service", |one| is_balancer(one) && !is_kept(one)).await?;
        clean_namespaced::<PersistentVolumeClaim>(&client, "PersistentVolumeClaim", |one| !is_kept(one)).await?;
        clean::<PersistentVolume>(&client, "PersistentVolume", |one| !is_kept(one)).await
    }

    async fn destroy<K: ExtensionObject + Resource<Scope = NamespaceResourceScope>>(&self, timing: Timing) -> Done {
        let api: Api<K> = self.seed_api();
        let name = self.shoot_name();
        extension::delete(&api, &name, &self.config.clock).await?;
        extension::wait_gone(&api, &name, timing).await
    }

    pub(crate) async fn destroy_network(&self) -> Done {
        self.destroy::<Network>(Timing::SHORT).await
    }

    pub(crate) async fn destroy_worker(&self) -> Done {
        self.destroy::<Worker>(Timing::LONG).await
    }

    pub(crate) async fn destroy_control_plane(&self) -> Done {
        self.destroy::<ControlPlane>(Timing::SHORT).await
    }

    pub(crate) async fn destroy_infrastructure(&self) -> Done {
        self.destroy::<Infrastructure>(Timing::INFRASTRUCTURE).await
    }

    pub(crate) async fn destroy_operating_system_configs(&self) -> Done {
        self.delete_operating_system_configs(|_| true).await
    }

    pub(crate) async fn destroy_container_runtimes(&self) -> Done {
        self.delete_container_runtimes(&[]).await
    }

    pub(crate) async fn destroy_machine_controller_manager(&self) -> Done {
        let manifests = machine_controller_manager::manifests(&self.view().cluster(), 0);
        Ok(apply::delete_all(self.seed_client(), &manifests).await?)
    }

    /// What ManagedResources put into the shoot. What the resource manager needs itself goes with the control plane.
    pub(crate) async fn destroy_managed_resources(&self) -> Done {
        let api: Api<ManagedResource> = self.seed_api();
        let mut going = Vec::new();
        for resource in api.read_list(&ListParams::default()).await? {
            if resource.spec.class.is_none() && resource.name_any() != "shoot-core-gardener-resource-manager" {
                managed_resource::delete(self.seed_client(), &self.namespace, &resource.name_any()).await?;
                going.push(resource.name_any());
            }
        }
        for name in going {
            managed_resource::wait_gone(self.seed_client(), &self.namespace, &name, TEN_MINUTES).await?;
        }
        Ok(())
    }

    /// The resource manager's own content stays: the API server that it is in goes next.
    pub(crate) async fn release_managed_resources(&self) -> Done {
        let api: Api<ManagedResource> = self.seed_api();
        for resource in api.read_list(&ListParams::default()).await? {
            gardener_controller::apply::patch(&api, &resource, |one| one.spec.keep_objects = Some(true)).await?;
            managed_resource::delete(self.seed_client(), &self.namespace, &resource.name_any()).await?;
            managed_resource::wait_gone(self.seed_client(), &self.namespace, &resource.name_any(), TEN_MINUTES).await?;
        }
        Ok(())
    }

    pub(crate) async fn destroy_api_server(&self) -> Done {
        let mut manifests = kube_apiserver::workload(&self.view().cluster(), 1, 1, Vec::new());
        manifests.push(kube_apiserver::service(&self.view().cluster()));
        apply::delete_all(self.seed_client(), &manifests).await?;
        let api: Api<k8s_openapi::api::apps::v1::Deployment> = self.seed_api();
        Ok(wait_deleted(&api, kube_apiserver::NAME, patience(Duration::from_secs(300))).await?)
    }

    pub(crate) async fn destroy_records(&self) -> Done {
        self.destroy_record(Record::External).await?;
        self.destroy_record(Record::Internal).await
    }

    pub(crate) async fn destroy_etcds(&self) -> Done {
        let api: Api<Etcd> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let now = self.now();
        for etcd in &listed {
            gardener_controller::apply::patch(&api, etcd, |etcd| {
                operation::confirm_deletion(etcd.annotations_mut(), now);
            })
            .await?;
            gardener_controller::apply::delete(&api, &etcd.name_any()).await?;
        }
        for etcd in &listed {
            wait_deleted(&api, &etcd.name_any(), patience(Duration::from_secs(300))).await?;
        }
        Ok(())
    }

    /// The namespace and everything that is still in it.
    pub(crate) async fn destroy_namespace(&self) -> Done {
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        gardener_controller::apply::delete(&api, &self.namespace).await?;
        Ok(wait_deleted(&api, &self.namespace, patience(Duration::from_secs(900))).await?)
    }

    pub(crate) async fn delete_cluster(&self) -> Done {
        let cluster = apply::name("extensions.gardener.cloud/v1alpha1", "Cluster", None, &self.namespace);
        Ok(apply::delete(self.seed_client(), &cluster).await?)
    }
}
