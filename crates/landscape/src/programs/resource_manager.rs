//! gardener-resource-manager: the seed's own one in the namespace `garden`, a shoot's in its technical namespace. The first replica to come works,
//! the others wait for it to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use gardener_resource_manager::{Config, DEFAULT_CLASS, SEED_CLASS};
use k8s_openapi::api::core::v1::{Container, Pod};
use parking_lot::Mutex;

use super::{Surroundings, namespace};

const NAME: &str = "gardener-resource-manager";
/// The namespace of a seed's own manager.
const GARDEN: &str = "garden";
const SYNC_PERIOD: Duration = Duration::from_secs(60);

/// The program.
pub struct ResourceManager {
    surroundings: Surroundings,
    turns: Mutex<BTreeMap<(String, String), Arc<tokio::sync::Mutex<()>>>>,
}

impl ResourceManager {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            turns: Mutex::default(),
        }
    }

    fn config(&self, invocation: &Invocation) -> Config {
        let namespace = namespace(&invocation.pod);
        let source = self.surroundings.own_client(invocation);
        let (clock, chance) = (
            self.surroundings.shared.clock.clone(),
            self.surroundings.shared.chance.clone(),
        );
        if namespace == GARDEN {
            return Config {
                target: source.clone(),
                source,
                namespace: None,
                class: SEED_CLASS.to_owned(),
                token_class: None,
                target_ca: None,
                clock,
                chance,
                sync_period: SYNC_PERIOD,
            };
        }
        Config {
            source,
            target: self.surroundings.account_client(&namespace, NAME),
            class: DEFAULT_CLASS.to_owned(),
            token_class: Some("shoot".to_owned()),
            target_ca: self.surroundings.authorities.root(&namespace),
            namespace: Some(namespace),
            clock,
            chance,
            sync_period: SYNC_PERIOD,
        }
    }
}

#[async_trait]
impl Program for ResourceManager {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == NAME
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let key = (invocation.cluster.clone(), namespace(&invocation.pod));
        let turn = self.turns.lock().entry(key).or_default().clone();
        let _ = invocation.ready.send(true);
        tokio::select! {
            () = invocation.stop.cancelled() => {}
            _leading = turn.lock() => {
                tokio::select! {
                    () = invocation.stop.cancelled() => {}
                    () = gardener_resource_manager::run(self.config(&invocation), invocation.stop.clone()) => {}
                }
            }
        }
        0
    }
}
