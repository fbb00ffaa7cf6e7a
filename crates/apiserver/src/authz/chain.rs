//! The authorizers that a configuration names, and their exchange for those of another one while the server runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::configuration::{Configuration, ConfigurationError, Configured, Kind};
use super::webhook::Webhook;
use super::{Attributes, Authorizer, Decision, Node, Undecided, Union};
use crate::cluster::LogicalCluster;
use crate::rbac::Rbac;
use crate::user::UserInfo;
use crate::webhooks::KubeconfigError;

/// Why no authorizers can be made of a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// A webhook cannot be found.
    #[error("authorizer {name:?}: {}: {source}", path.display())]
    Kubeconfig {
        /// The webhook's name.
        name: String,
        /// The kubeconfig.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// A match condition is wrong.
    #[error("authorizer {name:?}: {why}")]
    Condition {
        /// The webhook's name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The configuration does not fit the one at the start.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// Says the same to everybody.
pub(super) struct Always(pub(super) Decision);

impl Authorizer for Always {
    fn authorize(&self, _: &LogicalCluster, _: &Attributes<'_>) -> Decision {
        self.0.clone()
    }

    fn rules(
        &self,
        _: &LogicalCluster,
        _: &UserInfo,
        _: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<&'static str> {
        if self.0 == Decision::Allow {
            super::everything().iter().for_each(visit);
        }
        Vec::new()
    }
}

fn authorizer(own: &Configured) -> Result<Arc<dyn Authorizer>, ChainError> {
    Ok(match &own.kind {
        Kind::AlwaysAllow => Arc::new(Always(Decision::Allow)),
        Kind::AlwaysDeny => Arc::new(Always(Decision::NoOpinion("Everything is forbidden.".to_owned()))),
        Kind::Node => Arc::new(Node),
        Kind::Rbac => Arc::new(Rbac),
        Kind::Webhook(webhook) => Arc::new(Webhook::new(&own.name, webhook)?),
    })
}

fn union(configuration: &Configuration) -> Result<Union, ChainError> {
    let authorizers = configuration.authorizers.iter().map(authorizer);
    Ok(Union(authorizers.collect::<Result<_, _>>()?))
}

/// The types without webhooks.
fn types(configuration: &Configuration) -> BTreeSet<&'static str> {
    let kinds = configuration.authorizers.iter().map(|own| &own.kind);
    let built_in = kinds.filter(|kind| !matches!(kind, Kind::Webhook(_)));
    built_in.map(Kind::name).collect()
}

/// The authorizers of a configuration, which may be exchanged.
pub struct Chain {
    at_start: BTreeSet<&'static str>,
    current: ArcSwap<(Configuration, Union)>,
}

impl Chain {
    /// The authorizers of a configuration.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn new(configuration: Configuration) -> Result<Self, ChainError> {
        let authorizers = union(&configuration)?;
        Ok(Self {
            at_start: types(&configuration),
            current: ArcSwap::from_pointee((configuration, authorizers)),
        })
    }

    /// Asks the authorizers of another configuration from now on. Gives whether it is another one than before. Types without webhooks are
    /// those of the start.
    ///
    /// # Errors
    /// [`ChainError`]; those of before are still asked.
    pub fn exchange(&self, configuration: Configuration) -> Result<bool, ChainError> {
        if self.current.load().0 == configuration {
            return Ok(false);
        }
        let now = types(&configuration);
        let missing: Vec<&str> = self.at_start.difference(&now).copied().collect();
        if !missing.is_empty() {
            let why = format!("missing required types: [{}]", missing.join(" "));
            return Err(ConfigurationError::Unfit(vec![why]).into());
        }
        if let Some(new) = now
            .difference(&self.at_start)
            .find(|kind| matches!(**kind, "Node" | "RBAC"))
        {
            let why = format!("authorizer type {new} is not allowed if it was not enabled at initial server startup");
            return Err(ConfigurationError::Unfit(vec![why]).into());
        }
        let authorizers = union(&configuration)?;
        self.current.store(Arc::new((configuration, authorizers)));
        Ok(true)
    }
}

#[async_trait]
impl Authorizer for Chain {
    fn prepare(&self, cluster: &LogicalCluster) {
        self.current.load().1.prepare(cluster);
    }

    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        self.current.load_full().1.authorize(cluster, attributes)
    }

    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        self.current.load_full().1.ask(cluster, attributes).await
    }

    fn rules(
        &self,
        cluster: &LogicalCluster,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<&'static str> {
        self.current.load_full().1.rules(cluster, user, namespace, visit)
    }
}
