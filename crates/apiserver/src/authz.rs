//! Authorization: whether a user may do something. [`Authorizer`]s answer one after the other; RBAC is in [`crate::rbac`], what nodes may do in
//! [`node`], what other servers say in [`webhook`]. A [`configuration`] tells which of them a [`chain`] asks.

pub mod chain;
mod conditions;
pub mod configuration;
pub mod node;
pub(crate) mod review;
mod webhook;

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, go_quote};
use gardener_apimachinery::metrics::Text;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::cluster::LogicalCluster;
use crate::rbac;
use crate::user::UserInfo;

pub use chain::{Chain, ChainError};
pub use configuration::Configuration;
pub use node::Node;
pub use node::related::refers_to_secret;

/// What is asked to be allowed.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a UserInfo,
    /// `get`, `list`, …
    pub verb: &'a str,
    /// API group of the resource.
    pub group: &'a str,
    /// API version of the resource.
    pub version: &'a str,
    /// Resource.
    pub resource: &'a str,
    /// Subresource; may be empty.
    pub subresource: &'a str,
    /// Namespace; empty across namespaces and for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name; empty for collections.
    pub name: &'a str,
    /// Path, when it is no resource.
    pub path: &'a str,
    /// Whether a resource is asked for, or a path.
    pub is_resource: bool,
    /// The field selector of a list, a watch or a deletion of several, as the request tells it.
    pub field_selector: &'a str,
    /// Their label selector.
    pub label_selector: &'a str,
}

impl<'a> Attributes<'a> {
    /// A question about a resource in whatever version; `resource` may name a subresource, `pods/status`.
    pub fn of_resource(
        user: &'a UserInfo,
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Self {
            user,
            verb,
            group,
            version: "*",
            resource,
            subresource,
            namespace,
            name,
            path: "",
            is_resource: true,
            field_selector: "",
            label_selector: "",
        }
    }
}

/// An authorizer's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes; nobody else is asked.
    Allow,
    /// No, and nobody else is asked; with the reason.
    Deny(String),
    /// Somebody else may know; with what was missing, may be empty.
    NoOpinion(String),
}

/// Why an authorizer could not decide, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// What went wrong.
    pub why: String,
    /// Whether it is a refusal; otherwise somebody else may know.
    pub denies: bool,
}

impl Undecided {
    /// What becomes of it where nobody asks why.
    pub(crate) fn decision(self) -> Decision {
        match self.denies {
            true => Decision::Deny(self.why),
            false => Decision::NoOpinion(self.why),
        }
    }
}

impl From<Undecided> for ApiError {
    fn from(undecided: Undecided) -> Self {
        Self::internal(undecided.why)
    }
}

/// Why not all rules of a user can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// What went wrong.
    pub why: String,
    /// Whether there may be more that is allowed; otherwise what is missing allows nothing.
    pub is_incomplete: bool,
}

impl Unresolved {
    /// An authorizer that cannot tell its rules.
    pub(crate) fn silent(why: &str) -> Self {
        Self {
            why: why.to_owned(),
            is_incomplete: true,
        }
    }
}

/// Decides.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Answers one question about one cluster. One that asks another server blocks the thread; who can wait calls [`Authorizer::ask`].
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision;

    /// Reads what it needs to know of a cluster. Called once, before the cluster is served.
    fn prepare(&self, _: &LogicalCluster) {}

    /// As [`Authorizer::authorize`], where it can be waited for an answer.
    ///
    /// # Errors
    /// When another server would have to answer, and does not.
    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        Ok(self.authorize(cluster, attributes))
    }

    /// Tells what it has counted, in families of their own.
    fn tell(&self, _: &mut Text) {}

    /// Tells the rules by which it allows a user something in a namespace and cluster-wide. Gives what it could not tell.
    fn rules(&self, _: &LogicalCluster, _: &UserInfo, _: &str, _: &mut dyn FnMut(&PolicyRule)) -> Vec<Unresolved> {
        Vec::new()
    }
}

/// Why somebody may do what was allowed, as upstream tells it. None, where there is nothing to tell: who may do everything needs no reason.
pub(crate) fn why_allowed(cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Option<String> {
    match attributes.user.is_master() {
        true => None,
        false => rbac::reason(cluster, attributes),
    }
}

/// The rules of those who may do everything: with resources, and with other paths.
pub(crate) fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    [
        PolicyRule {
            verbs: all(),
            api_groups: Some(all()),
            resources: Some(all()),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: all(),
            non_resource_urls: Some(all()),
            ..PolicyRule::default()
        },
    ]
}

/// Asks authorizers in order until one has an opinion. Members of `system:masters` may do everything.
pub struct Union(pub Vec<Arc<dyn Authorizer>>);

#[async_trait]
impl Authorizer for Union {
    fn prepare(&self, cluster: &LogicalCluster) {
        self.0.iter().for_each(|authorizer| authorizer.prepare(cluster));
    }

    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_master() {
            return Decision::Allow;
        }
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.authorize(cluster, attributes) {
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
                decided => return decided,
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }

    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        if attributes.user.is_master() {
            return Ok(Decision::Allow);
        }
        let (mut reasons, mut failed) = (Vec::new(), Vec::new());
        for authorizer in &self.0 {
            match authorizer.ask(cluster, attributes).await {
                Ok(Decision::NoOpinion(reason)) if reason.is_empty() => {}
                Ok(Decision::NoOpinion(reason)) => reasons.push(reason),
                Err(Undecided { why, denies: false }) => failed.push(why),
                decided => return decided,
            }
        }
        // nobody allowed it; whether somebody would have is not known if not all could be asked
        match failed.is_empty() {
            true => Ok(Decision::NoOpinion(reasons.join("\n"))),
            false => Err(Undecided {
                why: field::aggregate(&failed),
                denies: false,
            }),
        }
    }

    fn rules(
        &self,
        cluster: &LogicalCluster,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&PolicyRule),
    ) -> Vec<Unresolved> {
        let all = self.0.iter();
        all.flat_map(|own| own.rules(cluster, user, namespace, visit)).collect()
    }
}

/// Lets everybody read some paths that are no resources, with whatever verb. A path may end in `*`, which stands for whatever follows.
pub struct OpenPaths(pub Vec<String>);

impl Authorizer for OpenPaths {
    fn authorize(&self, _: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let path = attributes.path.trim_start_matches('/');
        let open = |own: &String| match own.trim_start_matches('/') {
            own if own.ends_with('*') => path.starts_with(own.trim_end_matches('*')),
            own => own == path,
        };
        match !attributes.is_resource && self.0.iter().any(open) {
            true => Decision::Allow,
            false => Decision::NoOpinion(String::new()),
        }
    }
}

/// A text that no browser takes for HTML.
pub(crate) fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The 403 message of a refused request, without the resource's name in front.
pub fn forbidden_message(attributes: &Attributes<'_>, reason: &str) -> String {
    let (user, verb) = (go_quote(&attributes.user.name), attributes.verb);
    let message = if attributes.is_resource {
        let resource = if attributes.subresource.is_empty() {
            attributes.resource.to_owned()
        } else {
            format!("{}/{}", attributes.resource, attributes.subresource)
        };
        let place = if attributes.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {}", go_quote(attributes.namespace))
        };
        let (resource, group) = (go_quote(&resource), go_quote(attributes.group));
        format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
    } else {
        format!("User {user} cannot {verb} path {}", go_quote(attributes.path))
    };
    let mut message = without_markup(&message);
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(reason);
    }
    message
}
