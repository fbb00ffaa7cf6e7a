//! The authorizers that a configuration names, and their exchange for those of another one while the server runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use gardener_apimachinery::metrics::Text;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::configuration::{Configuration, ConfigurationError, Configured, Kind};
use super::webhook::Webhook;
use super::{Attributes, Authorizer, Decision, Node, Undecided, Union, Unresolved};
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

    fn rules(&self, _: &LogicalCluster, _: &UserInfo, _: &str, visit: &mut dyn FnMut(&PolicyRule)) -> Vec<Unresolved> {
        if self.0 == Decision::Allow {
            super::everything().iter().for_each(visit);
        }
        Vec::new()
    }
}

/// An authorizer whose decisions are counted.
struct Counted {
    /// Type and name, as labels.
    labels: String,
    own: Arc<dyn Authorizer>,
    allowed: AtomicU64,
    denied: AtomicU64,
}

impl Counted {
    fn count(&self, allows: bool) {
        let counter = if allows { &self.allowed } else { &self.denied };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Authorizer for Counted {
    fn prepare(&self, cluster: &LogicalCluster) {
        self.own.prepare(cluster);
    }

    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let decided = self.own.authorize(cluster, attributes);
        match &decided {
            Decision::Allow => self.count(true),
            Decision::Deny(_) => self.count(false),
            Decision::NoOpinion(_) => {}
        }
        decided
    }

    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        let decided = self.own.ask(cluster, attributes).await;
        match &decided {
            Ok(Decision::Allow) => self.count(true),
            Ok(Decision::Deny(_)) | Err(Undecided { denies: true, .. }) => self.count(false),
            Ok(Decision::NoOpinion(_)) | Err(Undecided { denies: false, .. }) => {}
        }
        decided
    }

    fn rules(
        &self,
        cluster: &LogicalCluster,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<Unresolved> {
        self.own.rules(cluster, user, namespace, visit)
    }
}

/// The authorizers of one configuration.
struct Asked {
    configuration: Configuration,
    counted: Vec<Arc<Counted>>,
    union: Union,
}

impl Asked {
    fn of(configuration: Configuration) -> Result<Self, ChainError> {
        let authorizers = configuration.authorizers.iter().map(|configured| {
            let own = authorizer(configured)?;
            Ok::<_, ChainError>(Arc::new(Counted {
                labels: format!("type=\"{}\",name=\"{}\"", configured.kind.name(), configured.name),
                own,
                allowed: AtomicU64::new(0),
                denied: AtomicU64::new(0),
            }))
        });
        let counted = authorizers.collect::<Result<Vec<_>, _>>()?;
        let all = counted.iter().map(|own| Arc::clone(own) as Arc<dyn Authorizer>);
        Ok(Self {
            union: Union(all.collect()),
            counted,
            configuration,
        })
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

/// The types without webhooks.
fn types(configuration: &Configuration) -> BTreeSet<&'static str> {
    let kinds = configuration.authorizers.iter().map(|own| &own.kind);
    let built_in = kinds.filter(|kind| !matches!(kind, Kind::Webhook(_)));
    built_in.map(Kind::name).collect()
}

/// The authorizers of a configuration, which may be exchanged.
pub struct Chain {
    at_start: BTreeSet<&'static str>,
    current: ArcSwap<Asked>,
}

impl Chain {
    /// The authorizers of a configuration.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn new(configuration: Configuration) -> Result<Self, ChainError> {
        Ok(Self {
            at_start: types(&configuration),
            current: ArcSwap::from_pointee(Asked::of(configuration)?),
        })
    }

    /// Asks the authorizers of another configuration from now on. Gives whether it is another one than before. Types without webhooks are
    /// those of the start.
    ///
    /// # Errors
    /// [`ChainError`]; those of before are still asked.
    pub fn exchange(&self, configuration: Configuration) -> Result<bool, ChainError> {
        if self.current.load().configuration == configuration {
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
        self.current.store(Arc::new(Asked::of(configuration)?));
        Ok(true)
    }
}

#[async_trait]
impl Authorizer for Chain {
    fn prepare(&self, cluster: &LogicalCluster) {
        self.current.load().union.prepare(cluster);
    }

    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        self.current.load_full().union.authorize(cluster, attributes)
    }

    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        self.current.load_full().union.ask(cluster, attributes).await
    }

    fn tell(&self, out: &mut Text) {
        let current = self.current.load();
        let name = "apiserver_authorization_decisions_total";
        out.family(name, "counter", "Decisions by the authorizer that made them.");
        for own in &current.counted {
            for (decision, counter) in [("allowed", &own.allowed), ("denied", &own.denied)] {
                let number = counter.load(Ordering::Relaxed);
                if number > 0 {
                    out.sample(name, &format!("{},decision=\"{decision}\"", own.labels), number);
                }
            }
        }
    }

    fn rules(
        &self,
        cluster: &LogicalCluster,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<Unresolved> {
        self.current.load_full().union.rules(cluster, user, namespace, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn decisions_are_counted_where_they_are_made() {
        let cluster = LogicalCluster::in_memory();
        let configuration = |kinds: Vec<Kind>| Configuration {
            authorizers: kinds.into_iter().map(Configured::of_kind).collect(),
        };
        let chain = Chain::new(configuration(vec![Kind::AlwaysDeny, Kind::Node, Kind::AlwaysAllow])).unwrap();
        let user = UserInfo::new("a", &[]);
        let question = Attributes::of_resource(&user, "get", "", "pods", "", "");
        for _ in 0..2 {
            assert_eq!(chain.ask(&cluster, &question).await, Ok(Decision::Allow));
        }
        let mut text = Text::default();
        chain.tell(&mut text);
        let samples: Vec<String> = text.into_text().lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            samples,
            [
                "apiserver_authorization_decisions_total{type=\"AlwaysAllow\",name=\"alwaysallow\",decision=\"allowed\"} 2"
            ]
        );
        let mut rules = 0;
        let unresolved = chain.rules(&cluster, &user, "", &mut |_| rules += 1);
        assert_eq!((rules, unresolved.len()), (2, 0));
        let same = configuration(vec![Kind::AlwaysDeny, Kind::Node, Kind::AlwaysAllow]);
        assert!(!chain.exchange(same).unwrap());
        assert!(
            chain
                .exchange(configuration(vec![Kind::AlwaysAllow, Kind::Node, Kind::AlwaysDeny]))
                .unwrap()
        );
    }
}
