//! etcd-druid of a seed.

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Surroundings, Turns};

/// The program.
pub struct EtcdDruid {
    surroundings: Surroundings,
    turns: Turns,
}

impl EtcdDruid {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            turns: Turns::default(),
        }
    }
}

#[async_trait]
impl Program for EtcdDruid {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "etcd-druid"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let config = gardener_etcd_druid::Config {
            client: self.surroundings.own_client(&invocation),
            namespace: None,
            clock: self.surroundings.shared.clock.clone(),
            chance: self.surroundings.shared.chance.clone(),
        };
        self.turns
            .lead(&invocation, gardener_etcd_druid::run(config, invocation.stop.clone()))
            .await;
        0
    }
}
