//! machine-controller-manager of a shoot, with the driver of provider-local.

use std::sync::Arc;

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use gardener_provider_local::machine_driver::LocalDriver;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Surroundings, Turns, namespace};

const NAME: &str = "machine-controller-manager";

/// The program.
pub struct MachineControllerManager {
    surroundings: Surroundings,
    turns: Turns,
}

impl MachineControllerManager {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            turns: Turns::default(),
        }
    }
}

#[async_trait]
impl Program for MachineControllerManager {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == NAME
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let namespace = namespace(&invocation.pod);
        let client = self.surroundings.own_client(&invocation);
        let config = gardener_machine_controller_manager::Config {
            driver: Arc::new(LocalDriver::new(client.clone())),
            client,
            target: self.surroundings.account_client(&namespace, NAME),
            namespace,
            clock: self.surroundings.shared.clock.clone(),
            chance: self.surroundings.shared.chance.clone(),
        };
        let work = gardener_machine_controller_manager::run(config, invocation.stop.clone());
        self.turns.lead(&invocation, work).await;
        0
    }
}
