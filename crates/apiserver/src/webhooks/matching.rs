//! Which webhooks a request concerns: rules, selectors, and equal resources in other versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use serde_json::Value;

use super::registered::Hook;
use crate::cluster::LogicalCluster;
use crate::definition::{Attributes, Definition, Operation};
use crate::meta;
use crate::object::Head;

/// The form in which a webhook is asked about a request.
#[derive(Clone)]
pub(super) struct Invocation {
    /// The resource as the webhook knows it; `None`: as the request names it.
    pub(super) equivalent: Option<Arc<Definition>>,
    pub(super) version: String,
}

impl Invocation {
    pub(super) fn definition<'a>(&'a self, attributes: &'a Attributes<'_>) -> &'a Definition {
        self.equivalent.as_deref().unwrap_or(attributes.definition)
    }

    /// Whether both see objects in one form.
    pub(super) fn is_same_form(&self, other: &Self) -> bool {
        let group = |own: &Self| own.equivalent.as_ref().map(|definition| definition.group.clone());
        self.version == other.version && group(self) == group(other)
    }
}

/// The upper-case word of an operation.
pub(super) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

/// The namespace of a request; that of a request for a namespace is its own name.
pub(super) fn namespace<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    if attributes.is("", "namespaces") {
        attributes.name
    } else {
        attributes.namespace
    }
}

/// Whether webhooks are never asked about a resource: those that would decide about themselves.
pub(super) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    const EXEMPT: [&str; 6] = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    attributes.definition.group == "admissionregistration.k8s.io"
        && EXEMPT.contains(&attributes.definition.plural.as_str())
}

/// Whether and how a webhook is to be asked.
///
/// # Errors
/// 404 when the namespace that a selector judges does not exist.
pub(super) fn invocation(
    cluster: &LogicalCluster,
    hook: &Hook,
    attributes: &Attributes<'_>,
) -> Result<Option<Invocation>, ApiError> {
    let in_namespace = in_selected_namespace(cluster, hook, attributes);
    if matches!(in_namespace, Ok(false)) || !is_selected_object(hook, attributes) {
        return Ok(None);
    }
    let Some(found) = matched(cluster, hook, attributes) else {
        return Ok(None);
    };
    in_namespace?;
    Ok(Some(found))
}

fn matched(cluster: &LogicalCluster, hook: &Hook, attributes: &Attributes<'_>) -> Option<Invocation> {
    let definition = attributes.definition;
    let own = Resource {
        group: &definition.group,
        version: attributes.version,
        plural: &definition.plural,
    };
    if hook.rules.iter().any(|rule| matches(rule, &own, attributes)) {
        return Some(Invocation {
            equivalent: None,
            version: attributes.version.to_owned(),
        });
    }
    if hook.exact {
        return None;
    }
    let siblings = cluster.siblings(definition);
    hook.rules.iter().find_map(|rule| {
        let own = definition.versions.iter().map(|version| (definition, None, version));
        let others = siblings.iter().flat_map(|sibling| {
            let versions = sibling.versions.iter();
            versions.map(move |version| (&**sibling, Some(sibling), version))
        });
        own.chain(others)
            .filter(|(definition, sibling, version)| {
                let resource = Resource {
                    group: &definition.group,
                    version: &version.name,
                    plural: &definition.plural,
                };
                let is_own = sibling.is_none() && version.name == attributes.version;
                version.served && !is_own && matches(rule, &resource, attributes)
            })
            .map(|(_, sibling, version)| Invocation {
                equivalent: sibling.cloned(),
                version: version.name.clone(),
            })
            .next()
    })
}

struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
}

fn matches(rule: &RuleWithOperations, resource: &Resource<'_>, attributes: &Attributes<'_>) -> bool {
    let has = |list: &Option<Vec<String>>, wanted: &str| {
        let list = list.iter().flatten();
        list.into_iter().any(|one| one == "*" || one == wanted)
    };
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    let namespaced = !is_namespace && !namespace(attributes).is_empty();
    let in_scope = match rule.scope.as_deref() {
        None | Some("*") => true,
        Some("Namespaced") => namespaced,
        Some("Cluster") => !namespaced,
        Some(_) => false,
    };
    in_scope
        && has(&rule.operations, word(attributes.operation))
        && has(&rule.api_groups, resource.group)
        && has(&rule.api_versions, resource.version)
        && rule.resources.iter().flatten().any(|pattern| {
            let (plural, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (plural == "*" || plural == resource.plural)
                && (subresource == "*" || subresource == attributes.subresource)
        })
}

fn in_selected_namespace(cluster: &LogicalCluster, hook: &Hook, attributes: &Attributes<'_>) -> Result<bool, ApiError> {
    let name = namespace(attributes);
    let about_namespaces = attributes.definition.plural == "namespaces";
    if hook.namespaces.is_empty() || name.is_empty() && !about_namespaces {
        return Ok(true);
    }
    let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
    if about_namespaces && attributes.subresource.is_empty() && is_written {
        return Ok(hook.namespaces.matches(&labels(attributes.object.as_deref())));
    }
    let head = cluster.head("", "namespaces", "", name);
    let head = head.ok_or_else(|| ApiError::not_found("", "namespaces", name))?;
    Ok(hook.namespaces.matches(&head.labels))
}

fn is_selected_object(hook: &Hook, attributes: &Attributes<'_>) -> bool {
    if hook.objects.is_empty() {
        return true;
    }
    let selected = |object: Option<&Value>| object.is_some() && hook.objects.matches(&labels(object));
    selected(attributes.object.as_deref()) || selected(attributes.old_json())
}

fn labels(object: Option<&Value>) -> BTreeMap<String, String> {
    meta::string_map(object.and_then(|object| object.pointer("/metadata/labels")))
}

impl LogicalCluster {
    /// Definitions of other groups that show the same objects.
    fn siblings(&self, definition: &Definition) -> Vec<Arc<Definition>> {
        let own = |other: &Definition| other.group == definition.group && other.plural == definition.plural;
        let resources = self.config().resources.iter();
        resources
            .filter(|other| other.topic == definition.topic && !own(other))
            .cloned()
            .collect()
    }

    /// The head of an object.
    fn head(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Head>> {
        let definition = self.find(group, plural)?;
        let entry = self.store().get(&self.key(&definition, namespace, name))?;
        Some(Head::of(&entry, &definition))
    }
}
