//! The steps of a deletion that take the control plane apart [CP-35]. Cleaning the shoot before that is in `cleanup`.

use std::time::Duration;

use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1::{ControlPlane, Infrastructure, Network, Worker};
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_controller::operation;
use gardener_controller::wait::{Patience, wait_deleted};
use gardener_flow::TaskError;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use super::{Botanist, Done};
use crate::components::{cluster_autoscaler, kube_apiserver, machine_controller_manager};
use crate::extension::{self, ExtensionObject, Timing};
use crate::shoot::flow::DEFAULT;
use crate::{apply, managed_resource};

/// The ManagedResource of what the resource manager needs itself.
const RESOURCE_MANAGER: &str = "shoot-core-gardener-resource-manager";
const TEN_MINUTES: Duration = Duration::from_secs(600);

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
        let (shoot, garden) = (self.shoot(), self.garden().clone());
        let api: Api<Bastion> = Api::namespaced(garden, shoot.project_namespace());
        let (seed, name) = (&self.config.seed_name, shoot.own_name());
        // gardenlets may only ask for those of their seed
        let own = ListParams::default().fields(&format!("spec.seedName={seed},spec.shootRef.name={name}"));
        match api.list_metadata(&own.limit(1)).await?.items.is_empty() {
            true => Ok(()),
            false => Err(TaskError::new("shoot has still Bastions")),
        }
    }

    /// Deletes the shoot's one extension object of a kind.
    async fn destroy<K: ExtensionObject + Resource<Scope = NamespaceResourceScope>>(&self) -> Done {
        Ok(extension::delete::<K>(&self.seed_api(), &self.shoot_name(), &self.config.clock).await?)
    }

    /// Waits until it is gone.
    async fn wait_destroyed<K>(&self, timing: Timing) -> Done
    where
        K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    {
        extension::wait_gone::<K>(&self.seed_api(), &self.shoot_name(), timing).await
    }

    pub(crate) async fn destroy_network(&self) -> Done {
        self.destroy::<Network>().await
    }

    pub(crate) async fn wait_for_end_of_network(&self) -> Done {
        self.wait_destroyed::<Network>(Timing::SHORT).await
    }

    pub(crate) async fn destroy_worker(&self) -> Done {
        self.destroy::<Worker>().await
    }

    pub(crate) async fn wait_for_end_of_worker(&self) -> Done {
        self.wait_destroyed::<Worker>(Timing::LONG).await
    }

    pub(crate) async fn destroy_control_plane(&self) -> Done {
        self.destroy::<ControlPlane>().await
    }

    pub(crate) async fn wait_for_end_of_control_plane(&self) -> Done {
        self.wait_destroyed::<ControlPlane>(Timing::SHORT).await
    }

    pub(crate) async fn destroy_infrastructure(&self) -> Done {
        self.destroy::<Infrastructure>().await
    }

    pub(crate) async fn wait_for_end_of_infrastructure(&self) -> Done {
        self.wait_destroyed::<Infrastructure>(Timing::INFRASTRUCTURE).await
    }

    /// Removes a component of the control plane by what it is made of.
    pub(crate) async fn destroy_machine_controller_manager(&self) -> Done {
        let manifests = machine_controller_manager::manifests(&self.view().cluster(), 0);
        Ok(apply::delete_all(self.seed_client(), &manifests).await?)
    }

    pub(crate) async fn destroy_cluster_autoscaler(&self) -> Done {
        let manifests = cluster_autoscaler::manifests(&self.view().cluster(), 0, &Default::default());
        Ok(apply::delete_all(self.seed_client(), &manifests).await?)
    }

    /// The names of the ManagedResources that Gardener put into the shoot. What the resource manager needs itself goes with the control plane, what
    /// extensions put there with them [EXT-175].
    async fn managed_resources(&self) -> Result<Vec<String>, TaskError> {
        let api: Api<ManagedResource> = self.seed_api();
        let listed = api.read_list(&ListParams::default().labels("origin=gardener")).await?;
        let of_shoot = listed.iter().filter(|one| one.spec.class.is_none());
        let names = of_shoot.map(ResourceExt::name_any);
        Ok(names.filter(|name| name != RESOURCE_MANAGER).collect())
    }

    pub(crate) async fn destroy_managed_resources(&self) -> Done {
        for name in self.managed_resources().await? {
            managed_resource::delete(self.seed_client(), &self.namespace, &name).await?;
        }
        Ok(())
    }

    pub(crate) async fn wait_for_end_of_managed_resources(&self) -> Done {
        for name in self.managed_resources().await? {
            managed_resource::wait_gone(self.seed_client(), &self.namespace, &name, TEN_MINUTES).await?;
        }
        Ok(())
    }

    /// Waits until what is in the shoot is gone, whoever put it there; where there is no API server any more that it could be removed from, it is let
    /// go. What the resource manager needs itself stays: the API server that it is in goes next.
    pub(crate) async fn release_managed_resources(&self, is_reachable: bool) -> Done {
        let api: Api<ManagedResource> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let of_shoot: Vec<&ManagedResource> = listed.iter().filter(|one| one.spec.class.is_none()).collect();
        for resource in &of_shoot {
            let name = resource.name_any();
            if !is_reachable || name == RESOURCE_MANAGER {
                gardener_controller::apply::patch(&api, *resource, |one| one.spec.keep_objects = Some(true)).await?;
                managed_resource::delete(self.seed_client(), &self.namespace, &name).await?;
            }
        }
        for resource in of_shoot {
            managed_resource::wait_gone(self.seed_client(), &self.namespace, &resource.name_any(), DEFAULT).await?;
        }
        Ok(())
    }

    pub(crate) async fn destroy_api_server(&self) -> Done {
        let manifests = kube_apiserver::workload(&self.view().cluster(), 1, 1, Vec::new());
        Ok(apply::delete_all(self.seed_client(), &manifests).await?)
    }

    pub(crate) async fn wait_for_end_of_api_server(&self) -> Done {
        let api: Api<k8s_openapi::api::apps::v1::Deployment> = self.seed_api();
        Ok(wait_deleted(&api, kube_apiserver::NAME, Patience::of(Duration::from_secs(300))).await?)
    }

    pub(crate) async fn destroy_api_server_service(&self) -> Done {
        let service = kube_apiserver::service(&self.view().cluster());
        Ok(apply::delete_all(self.seed_client(), &[service]).await?)
    }

    async fn etcds(&self) -> Result<Vec<Etcd>, TaskError> {
        let api: Api<Etcd> = self.seed_api();
        Ok(api.read_list(&ListParams::default()).await?)
    }

    pub(crate) async fn destroy_etcds(&self) -> Done {
        let api: Api<Etcd> = self.seed_api();
        let now = self.now();
        for etcd in self.etcds().await? {
            gardener_controller::apply::patch(&api, &etcd, |etcd| {
                operation::confirm_deletion(etcd.annotations_mut(), now);
            })
            .await?;
            gardener_controller::apply::delete(&api, &etcd.name_any()).await?;
        }
        Ok(())
    }

    pub(crate) async fn wait_for_end_of_etcds(&self) -> Done {
        let api: Api<Etcd> = self.seed_api();
        for etcd in self.etcds().await? {
            wait_deleted(&api, &etcd.name_any(), Patience::of(Duration::from_secs(300))).await?;
        }
        Ok(())
    }

    /// The namespace and everything that is still in it.
    pub(crate) async fn destroy_namespace(&self) -> Done {
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        gardener_controller::apply::delete(&api, &self.namespace).await?;
        Ok(())
    }

    pub(crate) async fn wait_for_end_of_namespace(&self) -> Done {
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        Ok(wait_deleted(&api, &self.namespace, Patience::of(Duration::from_secs(900))).await?)
    }

    pub(crate) async fn delete_cluster(&self) -> Done {
        let cluster = apply::name("extensions.gardener.cloud/v1alpha1", "Cluster", None, &self.namespace);
        Ok(apply::delete(self.seed_client(), &cluster).await?)
    }
}
