//! ControlPlane: what a shoot on local machines needs in it, which is a storage class.

use std::time::Duration;

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Cluster, ControlPlane};
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_controller::wait::{Patience, wait_deleted};
use gardener_extension::managed_resource::{self, Content};
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};
use kube::{Api, ResourceExt};
use serde_json::json;

/// Name of the ManagedResource with the storage classes.
const STORAGE_CLASSES: &str = "extension-controlplane-storageclasses";
const DELETION: Patience = Patience {
    recheck: Duration::from_secs(60),
    timeout: Duration::from_secs(120),
};

pub(crate) struct Local;

#[async_trait]
impl Actuator<ControlPlane> for Local {
    async fn reconcile(
        &self,
        context: &Context,
        object: &ControlPlane,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let content = Content {
            objects: vec![json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "default", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "rancher.io/local-path",
                "volumeBindingMode": "WaitForFirstConsumer",
                "reclaimPolicy": "Delete",
            })],
            ..Content::default()
        };
        let namespace = object.namespace().unwrap_or_default();
        managed_resource::deploy(&context.client, &namespace, STORAGE_CLASSES, &content).await?;
        Ok(Outcome::default())
    }

    async fn delete(&self, context: &Context, object: &ControlPlane, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        managed_resource::delete(&context.client, &namespace, STORAGE_CLASSES).await?;
        let api: Api<ManagedResource> = Api::namespaced(context.client.clone(), &namespace);
        let gone = wait_deleted(&api, STORAGE_CLASSES, DELETION).await;
        gone.map_err(|error| ActuatorError::new(error.to_string()))
    }

    /// Nobody may be left to take the objects out of the shoot.
    async fn force_delete(
        &self,
        context: &Context,
        object: &ControlPlane,
        _: Option<&Cluster>,
    ) -> Result<(), ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        Ok(managed_resource::delete(&context.client, &namespace, STORAGE_CLASSES).await?)
    }

    /// The objects stay in the shoot, which the other seed takes over.
    async fn migrate(
        &self,
        context: &Context,
        object: &ControlPlane,
        _: Option<&Cluster>,
    ) -> Result<(), ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<ManagedResource> = Api::namespaced(context.client.clone(), &namespace);
        if let Some(resource) = api.read_opt(STORAGE_CLASSES).await? {
            gardener_controller::apply::patch(&api, &resource, |resource| resource.spec.keep_objects = Some(true))
                .await?;
        }
        self.delete(context, object, None).await
    }
}
