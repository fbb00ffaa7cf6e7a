//! ContainerRuntime: local machines run whatever runtime class there is.

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Cluster, ContainerRuntime};
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};

pub(crate) struct Local;

#[async_trait]
impl Actuator<ContainerRuntime> for Local {
    async fn reconcile(
        &self,
        _: &Context,
        _: &ContainerRuntime,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        Ok(Outcome::default())
    }

    async fn delete(&self, _: &Context, _: &ContainerRuntime, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }
}
