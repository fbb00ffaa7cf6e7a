//! Which requests a webhook or a policy is for: rules, selectors, and equal resources in other versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorObject;
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::definition::{Attributes, Definition, Lister, Operation};
use crate::meta;
use crate::object::Head;
use crate::reviews;

/// The group of webhooks' configurations, policies and bindings.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Which requests a webhook, a policy or a policy's binding is for.
pub(crate) struct Constraints {
    /// One of them must hold; `None`: whatever is requested.
    pub(crate) rules: Option<Vec<NamedRuleWithOperations>>,
    /// None of them may hold.
    pub(crate) excluded: Vec<NamedRuleWithOperations>,
    /// Whether requests for other versions of a resource are left alone.
    pub(crate) exact: bool,
    pub(crate) namespaces: LabelSelector,
    pub(crate) objects: LabelSelector,
}

impl Constraints {
    /// What a policy or a binding says. One that names no resource is for all.
    pub(crate) fn of(resources: &MatchResources) -> Self {
        Self {
            rules: resources.resource_rules.clone().filter(|rules| !rules.is_empty()),
            excluded: resources.exclude_resource_rules.clone().unwrap_or_default(),
            exact: resources.match_policy.as_deref() == Some("Exact"),
            namespaces: selector(resources.namespace_selector.as_ref()),
            objects: selector(resources.object_selector.as_ref()),
        }
    }

    /// Whether requests for a resource, or for its subresource, may be concerned by what the rules name alone. Most rules are for few resources,
    /// so that most requests need not be looked at any further.
    pub(crate) fn may_concern(&self, definition: &Definition, subresource: &str) -> bool {
        let Some(rules) = &self.rules else { return true };
        // who shows the same objects in another group calls them by the same name
        let in_group = |rule: &NamedRuleWithOperations| !self.exact || has(&rule.api_groups, &definition.group);
        let mut rules = rules.iter();
        rules.any(|rule| in_group(rule) && names(rule, &definition.plural, subresource))
    }
}

/// Whether a list of a rule has a name, or stands for all.
fn has(list: &Option<Vec<String>>, wanted: &str) -> bool {
    let mut list = list.iter().flatten();
    list.any(|one| one == "*" || one == wanted)
}

/// Whether a rule is for a resource of this name, and this subresource of it.
fn names(rule: &NamedRuleWithOperations, plural: &str, subresource: &str) -> bool {
    let mut patterns = rule.resources.iter().flatten();
    patterns.any(|pattern| {
        let (own, part) = pattern.split_once('/').unwrap_or((pattern, ""));
        (own == "*" || own == plural) && (part == "*" || part == subresource)
    })
}

/// A selector that is not there selects everything.
pub(crate) fn selector(selector: Option<&SelectorObject>) -> LabelSelector {
    selector.map(LabelSelector::from).unwrap_or_default()
}

/// The form in which a webhook or a policy sees a request.
#[derive(Clone)]
pub(crate) struct Invocation {
    /// The resource as the rule names it; `None`: as the request names it.
    pub(crate) equivalent: Option<Arc<Definition>>,
    pub(crate) version: String,
}

impl Invocation {
    pub(crate) fn definition<'a>(&'a self, attributes: &'a Attributes<'_>) -> &'a Definition {
        self.equivalent.as_deref().unwrap_or(attributes.definition)
    }

    /// Whether both see objects in one form.
    pub(crate) fn is_same_form(&self, other: &Self) -> bool {
        let group = |own: &Self| own.equivalent.as_ref().map(|definition| definition.group.clone());
        self.version == other.version && group(self) == group(other)
    }
}

/// The upper-case word of an operation.
pub(crate) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

/// The name of a request. What is deleted with its collection is not named.
pub(crate) fn name<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    match attributes.with_collection {
        true => "",
        false => attributes.name,
    }
}

/// The namespace of a request; that of a request for a namespace is its own name.
pub(crate) fn namespace<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    if attributes.is("", "namespaces") {
        attributes.name
    } else {
        attributes.namespace
    }
}

/// Whether webhooks are never asked about a resource: those that would decide about themselves, and what policies are made of.
pub(crate) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    const EXEMPT: [&str; 6] = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    attributes.definition.group == GROUP && EXEMPT.contains(&attributes.definition.plural.as_str())
}

/// Whether policies do not judge a resource: policies and their bindings; and reviews, as a cluster in which nobody may ask what he may do
/// could not be repaired.
pub(crate) fn is_beyond_policies(attributes: &Attributes<'_>) -> bool {
    let plural = attributes.definition.plural.as_str();
    is_exempt(attributes) && !plural.ends_with("webhookconfigurations") || reviews::is_one(attributes.definition)
}

/// Whether a request is concerned, and in which form.
///
/// # Errors
/// 404 when the namespace that a selector judges does not exist.
pub(crate) fn invocation(
    cluster: &LogicalCluster,
    constraints: &Constraints,
    attributes: &Attributes<'_>,
) -> Result<Option<Invocation>, ApiError> {
    if !constraints.may_concern(attributes.definition, attributes.subresource) {
        return Ok(None);
    }
    let in_namespace = in_selected_namespace(cluster, constraints, attributes);
    if matches!(in_namespace, Ok(false)) || !is_selected_object(constraints, attributes) {
        return Ok(None);
    }
    let equivalent = !constraints.exact;
    if matched(cluster, &constraints.excluded, equivalent, attributes).is_some() {
        return Ok(None);
    }
    let found = match &constraints.rules {
        Some(rules) => matched(cluster, rules, equivalent, attributes),
        None => Some(Invocation {
            equivalent: None,
            version: attributes.version.to_owned(),
        }),
    };
    let Some(found) = found else {
        return Ok(None);
    };
    in_namespace?;
    Ok(Some(found))
}

fn matched(
    cluster: &LogicalCluster,
    rules: &[NamedRuleWithOperations],
    equivalent: bool,
    attributes: &Attributes<'_>,
) -> Option<Invocation> {
    let definition = attributes.definition;
    let own = Resource {
        group: &definition.group,
        version: attributes.version,
        plural: &definition.plural,
    };
    if rules.iter().any(|rule| matches(rule, &own, attributes)) {
        return Some(Invocation {
            equivalent: None,
            version: attributes.version.to_owned(),
        });
    }
    if !equivalent || rules.is_empty() {
        return None;
    }
    let siblings = cluster.siblings(definition);
    rules.iter().find_map(|rule| {
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

fn matches(rule: &NamedRuleWithOperations, resource: &Resource<'_>, attributes: &Attributes<'_>) -> bool {
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
        && names(rule, resource.plural, attributes.subresource)
        && match rule.resource_names.as_deref() {
            None | Some([]) => true,
            Some(names) => names.iter().any(|own| own == name(attributes)),
        }
}

fn in_selected_namespace(
    cluster: &LogicalCluster,
    constraints: &Constraints,
    attributes: &Attributes<'_>,
) -> Result<bool, ApiError> {
    let name = namespace(attributes);
    let about_namespaces = attributes.definition.plural == "namespaces";
    if constraints.namespaces.is_empty() || name.is_empty() && !about_namespaces {
        return Ok(true);
    }
    let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
    if about_namespaces && attributes.subresource.is_empty() && is_written {
        return Ok(constraints.namespaces.matches(&labels(attributes.object.as_deref())));
    }
    if let Some(head) = cluster.head("", "namespaces", "", name) {
        return Ok(constraints.namespaces.matches_by(|key| head.label(key)));
    }
    // a copy of another server's namespaces may lag behind
    let found = cluster.namespace(name);
    let found = found.ok_or_else(|| ApiError::not_found("", "namespaces", name))?;
    Ok(constraints.namespaces.matches(&labels(Some(&found))))
}

fn is_selected_object(constraints: &Constraints, attributes: &Attributes<'_>) -> bool {
    if constraints.objects.is_empty() {
        return true;
    }
    let selected = |object: Option<&Value>| object.is_some() && constraints.objects.matches(&labels(object));
    selected(attributes.object.as_deref()) || selected(attributes.old_json())
}

fn labels(object: Option<&Value>) -> BTreeMap<String, String> {
    meta::string_map(object.and_then(|object| object.at("/metadata/labels")))
}

impl LogicalCluster {
    /// Definitions of other groups that show the same objects.
    fn siblings(&self, definition: &Definition) -> Vec<Arc<Definition>> {
        let named = self.config().resources.named(&definition.plural).iter();
        named
            .filter(|other| other.topic == definition.topic && other.group != definition.group)
            .cloned()
            .collect()
    }

    /// The head of an object.
    fn head(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Head>> {
        let (definition, store) = self.readable(group, plural)?;
        let entry = store.get(&self.key(&definition, namespace, name))?;
        Some(Head::of(&entry, &definition))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubernetes;

    #[test]
    fn rules_name_what_they_may_be_for() {
        let (resources, _) = kubernetes::resources().unwrap();
        let deployments = resources.get("apps", "deployments").unwrap();
        for (groups, named, policy, object, status) in [
            (json!(["apps"]), json!(["deployments"]), "Exact", true, false),
            (json!(["apps"]), json!(["pods", "deployments/*"]), "Exact", true, true),
            (json!(["apps"]), json!(["deployments/status"]), "Exact", false, true),
            (json!(["*"]), json!(["*"]), "Exact", true, false),
            (json!(["*"]), json!(["*/status"]), "Exact", false, true),
            (json!(["*"]), json!(["*/*"]), "Exact", true, true),
            (json!(["extensions"]), json!(["deployments"]), "Exact", false, false),
            // another group may show the same objects
            (json!(["extensions"]), json!(["deployments"]), "Equivalent", true, false),
            (
                json!(["apps"]),
                json!(["pods", "deployments/scale"]),
                "Equivalent",
                false,
                false,
            ),
        ] {
            let rule = json!({"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": named});
            let resources = json!({"resourceRules": [rule], "matchPolicy": policy});
            let constraints = Constraints::of(&serde_json::from_value(resources).unwrap());
            let found = ["", "status"].map(|subresource| constraints.may_concern(deployments, subresource));
            assert_eq!(found, [object, status], "{groups} {named} {policy}");
        }
        let all = Constraints::of(&MatchResources::default());
        assert!(all.may_concern(deployments, "status"));
    }

    #[test]
    fn who_shows_the_same_objects_calls_them_by_the_same_name() {
        let (resources, _) = kubernetes::resources().unwrap();
        let mut names = BTreeMap::new();
        for definition in resources.iter() {
            let known = names.entry(definition.topic.clone()).or_insert(&definition.plural);
            assert_eq!(**known, definition.plural);
        }
        let events = |group| resources.get(group, "events").unwrap().topic.clone();
        assert_eq!(events(""), events("events.k8s.io"));
    }
}
