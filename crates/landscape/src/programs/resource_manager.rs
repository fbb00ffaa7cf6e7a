//! gardener-resource-manager: the seed's own one in the namespace `garden`, a shoot's in its technical namespace. The first replica to come works,
//! the others wait for it to end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gardener_apiserver::webhooks::Answer;
use gardener_cluster::kubelet::{Invocation, Program};
use gardener_resource_manager::webhooks::Webhooks;
use gardener_resource_manager::{Config, DEFAULT_CLASS, SEED_CLASS};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Surroundings, Turns, namespace};
use crate::services::Service;

const NAME: &str = "gardener-resource-manager";
/// The namespace of a seed's own manager.
const GARDEN: &str = "garden";
const SYNC_PERIOD: Duration = Duration::from_secs(60);

/// The program.
pub struct ResourceManager {
    surroundings: Surroundings,
    turns: Turns,
}

impl ResourceManager {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            turns: Turns::default(),
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
            target: self.surroundings.resource_manager_client(&namespace),
            class: DEFAULT_CLASS.to_owned(),
            token_class: Some("shoot".to_owned()),
            target_ca: self.surroundings.controller_configs.root(&namespace),
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
        let config = self.config(&invocation);
        // unlike the controllers, every replica answers
        let judge = Arc::new(Judge(Webhooks::new(config.source.clone())));
        let namespace = namespace(&invocation.pod);
        let services = &self.surroundings.services;
        let _answering = services.answer(&invocation.cluster, &namespace, NAME, judge);
        let work = async {
            gardener_resource_manager::run(config, invocation.stop.clone()).await;
        };
        self.turns.lead(&invocation, work).await;
        0
    }
}

/// Webhooks behind a Service.
struct Judge(Webhooks);

#[async_trait]
impl Service for Judge {
    async fn post(&self, path: &str, body: Bytes) -> Answer {
        let answer = self.0.answer(path, &body).await;
        Answer {
            status: answer.status,
            content_type: answer.content_type.to_owned(),
            body: answer.body.into(),
        }
    }
}
