//! The webhooks of a cluster as its configurations tell them, compiled once per change. A request costs one look at whether anything
//! changed.

use std::sync::Arc;
use std::time::Duration;

use gardener_store::Entry;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, NamedRuleWithOperations, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};

use super::Registered;
use super::call::Endpoint;
use crate::cluster::LogicalCluster;
use crate::intercept::conditions;
use crate::intercept::expressions::Expression;
use crate::intercept::matching::{Constraints, selector};
use crate::object;

/// How long a webhook may take that does not say.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The two kinds of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutating,
    Validating,
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }
}

/// One webhook.
pub(crate) struct Hook {
    /// Name of the webhook.
    pub(super) name: String,
    /// Name of its configuration.
    pub(super) configuration: String,
    /// Tells webhooks apart: configuration, name, and which of that name.
    pub(super) uid: String,
    pub(super) endpoint: Endpoint,
    /// Which requests it is asked about.
    pub(crate) constraints: Constraints,
    /// Whether a call that fails refuses the request.
    pub(super) fails_closed: bool,
    pub(super) conditions: Vec<Expression>,
    /// Whether a request that stores nothing may be asked about.
    pub(super) in_dry_run: bool,
    pub(super) timeout: Duration,
    pub(super) review_versions: Vec<String>,
    /// Whether it is asked again about what later webhooks changed.
    pub(super) reinvocable: bool,
}

/// The newest webhooks of a kind of configurations, by name of their configuration.
pub(super) fn current(registered: &mut Registered, cluster: &LogicalCluster, kind: Kind) -> Arc<Vec<Hook>> {
    let configurations = ("admissionregistration.k8s.io", kind.plural());
    let Registered { hooks, identities } = registered;
    hooks.current(cluster, configurations, |entries| {
        // entries come by path, which ends in the name
        let mut all: Vec<Hook> = entries.iter().flat_map(|entry| self::hooks(entry, kind)).collect();
        for hook in &mut all {
            hook.endpoint.credentials = identities.shown_to(&hook.endpoint);
        }
        all
    })
}

fn hooks(entry: &Entry, kind: Kind) -> Vec<Hook> {
    let mut hooks: Vec<Hook> = Vec::new();
    let found = match kind {
        Kind::Mutating => object::parse::<MutatingWebhookConfiguration>(entry).map(|configuration| {
            let webhooks = configuration.webhooks.unwrap_or_default();
            (
                configuration.metadata.name,
                webhooks.into_iter().map(mutating).collect(),
            )
        }),
        Kind::Validating => object::parse::<ValidatingWebhookConfiguration>(entry).map(|configuration| {
            let webhooks = configuration.webhooks.unwrap_or_default();
            (
                configuration.metadata.name,
                webhooks.into_iter().map(validating).collect::<Vec<_>>(),
            )
        }),
    };
    let Some((configuration, parsed)) = found else {
        return hooks;
    };
    let configuration = configuration.unwrap_or_default();
    for mut hook in parsed {
        let same = hooks.iter().filter(|other| other.name == hook.name).count();
        hook.uid = format!("{configuration}/{}/{same}", hook.name);
        hook.configuration.clone_from(&configuration);
        hooks.push(hook);
    }
    hooks
}

fn mutating(webhook: MutatingWebhook) -> Hook {
    let reinvocable = webhook.reinvocation_policy.as_deref() == Some("IfNeeded");
    let common = ValidatingWebhook {
        admission_review_versions: webhook.admission_review_versions,
        client_config: webhook.client_config,
        failure_policy: webhook.failure_policy,
        match_conditions: webhook.match_conditions,
        match_policy: webhook.match_policy,
        name: webhook.name,
        namespace_selector: webhook.namespace_selector,
        object_selector: webhook.object_selector,
        rules: webhook.rules,
        side_effects: webhook.side_effects,
        timeout_seconds: webhook.timeout_seconds,
    };
    Hook {
        reinvocable,
        ..validating(common)
    }
}

fn validating(webhook: ValidatingWebhook) -> Hook {
    let rules = webhook.rules.unwrap_or_default().into_iter();
    Hook {
        uid: String::new(),
        configuration: String::new(),
        endpoint: endpoint(webhook.client_config),
        constraints: Constraints {
            rules: Some(rules.map(unnamed).collect()),
            excluded: Vec::new(),
            exact: webhook.match_policy.as_deref() == Some("Exact"),
            namespaces: selector(webhook.namespace_selector.as_ref()),
            objects: selector(webhook.object_selector.as_ref()),
        },
        fails_closed: webhook.failure_policy.as_deref() != Some("Ignore"),
        conditions: webhook
            .match_conditions
            .iter()
            .flatten()
            .map(|condition| conditions::compile(&condition.expression, false))
            .collect(),
        in_dry_run: matches!(webhook.side_effects.as_str(), "None" | "NoneOnDryRun"),
        timeout: webhook
            .timeout_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(TIMEOUT, Duration::from_secs),
        review_versions: webhook.admission_review_versions,
        reinvocable: false,
        name: webhook.name,
    }
}

/// A rule for objects of any name.
fn unnamed(rule: RuleWithOperations) -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        api_groups: rule.api_groups,
        api_versions: rule.api_versions,
        operations: rule.operations,
        resource_names: None,
        resources: rule.resources,
        scope: rule.scope,
    }
}

/// Where a webhook of this client configuration is.
fn endpoint(config: WebhookClientConfig) -> Endpoint {
    Endpoint {
        url: config.url,
        service: config.service.map(|service| super::ServiceReference {
            namespace: service.namespace,
            name: service.name,
            path: service.path.unwrap_or_default(),
            port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        }),
        ca_bundle: config.ca_bundle.map(|bundle| bundle.0).unwrap_or_default(),
        ..Endpoint::default()
    }
}
