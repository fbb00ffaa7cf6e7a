//! FlowSchemas: which requests they mean, and what tells the flows of one apart.

use std::sync::Arc;

use http::HeaderValue;
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject,
};

use super::config::header;
use crate::authz::Attributes;
use crate::rbac::has;
use crate::user::UserInfo;

/// Where no precedence is told.
const DEFAULT_PRECEDENCE: i32 = 1000;

/// A FlowSchema.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: Arc<str>,
    pub(super) uid: HeaderValue,
    /// The level of priority that it names.
    pub(super) level: Arc<str>,
    /// In which order it is tried; the lower, the earlier.
    pub(super) precedence: i32,
    pub(super) distinguishes: Distinguishes,
    rules: Vec<PolicyRulesWithSubjects>,
}

/// What distinguishes the flows of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distinguishes {
    /// Nothing: they are one.
    Nothing,
    /// Who asks.
    Users,
    /// The namespace that is asked for.
    Namespaces,
}

impl Distinguishes {
    /// What distinguishes a request.
    pub(super) fn by<'r>(self, user: &'r UserInfo, namespace: &'r str) -> &'r str {
        match self {
            Self::Nothing => "",
            Self::Users => &user.name,
            Self::Namespaces => namespace,
        }
    }
}

impl Schema {
    /// What an object says. None for one that nobody has stored.
    pub(super) fn read(schema: FlowSchema) -> Option<Self> {
        let spec = schema.spec;
        let method = spec.distinguisher_method.as_ref().map(|method| method.type_.as_str());
        Some(Self {
            name: schema.metadata.name?.into(),
            uid: header(schema.metadata.uid)?,
            level: spec.priority_level_configuration.name.into(),
            precedence: spec.matching_precedence.unwrap_or(DEFAULT_PRECEDENCE),
            distinguishes: match method {
                Some("ByUser") => Distinguishes::Users,
                Some("ByNamespace") => Distinguishes::Namespaces,
                _ => Distinguishes::Nothing,
            },
            rules: spec.rules.unwrap_or_default(),
        })
    }
}

impl Schema {
    /// Whether a request is of this schema.
    pub(super) fn fits(&self, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| {
            let fits = || match request.is_resource {
                true => {
                    let mut rules = rule.resource_rules.iter().flatten();
                    rules.any(|rule| is_of_resource(rule, request))
                }
                false => {
                    let mut rules = rule.non_resource_rules.iter().flatten();
                    rules.any(|rule| is_of_path(rule, request))
                }
            };
            rule.subjects.iter().any(|subject| is_by(subject, request.user)) && fits()
        })
    }
}

fn is_by(subject: &Subject, user: &UserInfo) -> bool {
    let by_user = || {
        subject
            .user
            .as_ref()
            .is_some_and(|own| own.name == "*" || own.name == user.name)
    };
    let by_group = || {
        let group = subject.group.as_ref();
        group.is_some_and(|own| own.name == "*" || user.is_in(&own.name))
    };
    let by_account = || {
        let Some(own) = &subject.service_account else {
            return false;
        };
        user.account()
            .is_some_and(|(namespace, account)| namespace == own.namespace && (own.name == "*" || own.name == account))
    };
    match subject.kind.as_str() {
        "User" => by_user(),
        "Group" => by_group(),
        "ServiceAccount" => by_account(),
        _ => false,
    }
}

fn is_of_resource(rule: &ResourcePolicyRule, request: &Attributes<'_>) -> bool {
    let own = |resource: &str| match resource.split_once('/') {
        Some((resource, subresource)) => (resource, subresource) == (request.resource, request.subresource),
        None => resource == "*" || (resource == request.resource && request.subresource.is_empty()),
    };
    let resource = || rule.resources.iter().any(|resource| own(resource));
    let place = || match request.namespace {
        "" => rule.cluster_scope == Some(true),
        namespace => has(rule.namespaces.as_deref().unwrap_or_default(), namespace),
    };
    has(&rule.verbs, request.verb) && resource() && has(&rule.api_groups, request.group) && place()
}

fn is_of_path(rule: &NonResourcePolicyRule, request: &Attributes<'_>) -> bool {
    let path = request.path;
    let fits = |own: &String| {
        let below = own.strip_suffix('*').unwrap_or(own);
        let below = below.strip_suffix('/').unwrap_or(below);
        let is_below = || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
        own == "*" || own == path || is_below()
    };
    has(&rule.verbs, request.verb) && rule.non_resource_urls.iter().any(fits)
}
