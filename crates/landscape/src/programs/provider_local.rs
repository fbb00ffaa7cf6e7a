//! provider-local in a seed.

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Surroundings, Turns, namespace};

/// The program.
pub struct ProviderLocal {
    surroundings: Surroundings,
    turns: Turns,
}

impl ProviderLocal {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            turns: Turns::default(),
        }
    }
}

#[async_trait]
impl Program for ProviderLocal {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "provider-local"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let config = gardener_provider_local::Config {
            client: self.surroundings.own_client(&invocation),
            namespace: Some(namespace(&invocation.pod)),
            clock: self.surroundings.shared.clock.clone(),
            chance: self.surroundings.shared.chance.clone(),
        };
        let work = gardener_provider_local::run(config, invocation.stop.clone());
        self.turns.lead(&invocation, work).await;
        0
    }
}
