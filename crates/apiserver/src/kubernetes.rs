//! Kubernetes' own kinds, from what a real kube-apiserver told of itself: names and verbs from its discovery, schemas from its OpenAPI
//! documents, columns from its tables. What the kinds add beyond that is in the modules below, by topic.

mod addresses;
mod admission;
mod admission_policies;
mod autoscaling;
mod bootstrap;
mod certificates;
mod checks;
mod claims;
mod crds;
mod default_classes;
mod defaults;
mod devices;
mod difference;
mod drivers;
mod endpoints;
mod events;
mod flowcontrol;
mod images;
mod in_use_protection;
mod internal;
mod jobs;
mod json_text;
pub mod layout;
mod leases;
mod namespaces;
mod networking;
mod node_restriction;
mod nodes;
mod older;
mod pods;
mod policies;
mod printers;
mod recorded;
mod resource_names;
pub mod resource_quota;
mod roles;
mod runtime_class;
mod secret_references;
mod serviceaccounts;
mod services;
mod storage;
mod strategy;
mod topology_labels;
mod volumes;
mod webhooks;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_schema::{Definitions, ParseError};
use gardener_store::Topic;
use serde::Deserialize;
use serde_json::Value;

pub use admission::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, DefaultTolerationSeconds,
    NamespaceLifecycle, Priority, ServiceAccountPlugin, is_on_by_default, plugins as admission_plugins,
};
pub use bootstrap::{BOOTSTRAP_NAMESPACES, BootstrapError, bootstrap, complete};
pub(crate) use bootstrap::{node_rules, recorded_spec};
pub use events::EVENT_TIME_TO_LIVE;
pub use layout::EtcdLayout;
pub(crate) use networking::domain_prefixed;
pub(crate) use pods::annotations::is_mirror;
pub use services::{MADE_FOR_SERVICES, address_family, gives_address, ip_address_labels};

use crate::cluster::ResourceSet;
use crate::definition::{Column, Columns, Definition, Scale, Version};
use crate::openapi::Documents;

/// Groups and resources of a garden; an empty list means all resources of the group.
const GARDEN: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "namespaces",
            "secrets",
            "configmaps",
            "serviceaccounts",
            "events",
            "resourcequotas",
            "limitranges",
        ],
    ),
    ("events.k8s.io", &[]),
    ("coordination.k8s.io", &[]),
    ("rbac.authorization.k8s.io", &[]),
    ("certificates.k8s.io", &[]),
    ("admissionregistration.k8s.io", &[]),
    ("apiregistration.k8s.io", &[]),
    ("apiextensions.k8s.io", &[]),
];

#[derive(Deserialize)]
struct GroupList {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Named,
    versions: Vec<GroupVersion>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: ResponseKind,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

#[derive(Deserialize)]
struct RecordedColumn {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    priority: i32,
    /// In our words; set where kube-apiserver says something.
    #[serde(default)]
    description: String,
}

/// Why the recorded documents cannot be used: they are part of the program, so this is a defect of the build.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// A document is no JSON of the expected form.
    #[error("a recorded Kubernetes document cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A schema cannot be read.
    #[error("a recorded Kubernetes schema cannot be read: {0}")]
    Schema(#[from] ParseError),
}

/// The verbs of Kubernetes, in the form that definitions hold.
pub fn known_verb(verb: &str) -> Option<&'static str> {
    const VERBS: [&str; 8] = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    VERBS.into_iter().find(|own| *own == verb)
}

/// Columns as recorded, by `<group>/<version>/<resource>` (`v1/<resource>` for the core group).
///
/// # Errors
/// When the text is no such recording.
pub fn recorded_columns(text: &str) -> Result<BTreeMap<String, Vec<Column>>, serde_json::Error> {
    let recorded: BTreeMap<String, Vec<RecordedColumn>> = serde_json::from_str(text)?;
    let column = |own: RecordedColumn| Column {
        name: own.name,
        type_: own.type_,
        format: own.format,
        description: own.description,
        priority: own.priority,
    };
    Ok(recorded
        .into_iter()
        .map(|(key, columns)| (key, columns.into_iter().map(column).collect()))
        .collect())
}

/// Those kinds that a garden needs `[GAPI-3]`: no nodes, pods or workloads.
pub fn for_garden(all: &ResourceSet) -> impl Iterator<Item = Arc<Definition>> + '_ {
    all.iter()
        .filter(|definition| {
            GARDEN.iter().any(|(group, list)| {
                *group == definition.group && (list.is_empty() || list.contains(&definition.plural.as_str()))
            })
        })
        .cloned()
}

/// The OpenAPI documents of Kubernetes' groups, by path.
pub fn recorded_documents() -> impl Iterator<Item = (String, &'static str)> {
    recorded::OPENAPI.iter().map(|(path, text)| ((*path).to_owned(), *text))
}

/// Kubernetes' kinds as resources, with their OpenAPI documents.
///
/// # Errors
/// When the recorded documents are damaged.
pub fn resources() -> Result<(ResourceSet, Documents), RecordedError> {
    let parsed: Vec<Value> = recorded::OPENAPI
        .iter()
        .map(|(_, text)| serde_json::from_str(text))
        .collect::<Result<_, _>>()?;
    let schemas = Definitions::from_openapi(&parsed)?;
    let columns = recorded_columns(recorded::TABLES)?;
    let core: GroupList = serde_json::from_str(recorded::DISCOVERY_CORE)?;
    let named: GroupList = serde_json::from_str(recorded::DISCOVERY_GROUPS)?;
    let mut definitions: BTreeMap<(String, String), Definition> = BTreeMap::new();
    for group in core.items.into_iter().chain(named.items) {
        let name = group.metadata.name;
        for version in group.versions {
            for resource in version.resources {
                // what is only posted, as reviews are, is no kind of objects
                if !resource.verbs.iter().any(|verb| verb == "get") {
                    continue;
                }
                add(&mut definitions, &name, &version.version, resource, &schemas, &columns);
            }
        }
    }
    let documents = Documents::new(recorded_documents());
    Ok((ResourceSet::new(definitions.into_values().map(Arc::new)), documents))
}

fn add(
    definitions: &mut BTreeMap<(String, String), Definition>,
    group: &str,
    version: &str,
    resource: Resource,
    schemas: &Definitions,
    columns: &BTreeMap<String, Vec<Column>>,
) {
    let has = |name: &str| resource.subresources.iter().any(|own| own.subresource == name);
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let kind = resource.response_kind.kind;
    let key = (group.to_owned(), resource.resource.clone());
    let first = !definitions.contains_key(&key);
    let own_version = Version {
        name: version.to_owned(),
        list_kind: format!("{kind}List"),
        schema: schemas.for_kind(group, version, &kind),
        prunes: true,
        completes: true,
        served: true,
        // HorizontalPodAutoscaler is the one kind with two versions; autoscaling/v2 comes first and is stored
        stored: first,
        status: has("status"),
        scale: has("scale").then(|| Scale {
            spec_replicas: "spec.replicas".into(),
            status_replicas: "status.replicas".into(),
            selector: Some("spec.selector".into()),
            is_missed: false,
            is_judged: true,
        }),
        columns: Columns::Row(
            columns
                .get(&format!("{group_version}/{}", resource.resource))
                .cloned()
                .unwrap_or_else(crate::table::default_columns),
        ),
        kind,
    };
    if let Some(existing) = definitions.get_mut(&key) {
        existing.versions.push(own_version);
        return;
    }
    // events of both groups are the same objects
    let topic = if resource.resource == "events" {
        Topic::new("", "events")
    } else {
        Topic::new(group, &resource.resource)
    };
    let definition = Definition {
        group: group.to_owned(),
        singular: resource.singular_resource,
        short_names: resource.short_names,
        categories: resource.categories,
        namespaced: resource.scope == "Namespaced",
        topic,
        verbs: resource.verbs.iter().filter_map(|verb| known_verb(verb)).collect(),
        strategy: strategy::of(group, &resource.resource),
        subresources: strategy::subresources(group, &resource.resource),
        versions: vec![own_version],
        plural: resource.resource,
    };
    definitions.insert(key, definition);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_resource_is_served_with_a_schema() {
        let (all, _) = resources().unwrap();
        assert!(all.iter().count() > 55, "{}", all.iter().count());
        for definition in all.iter() {
            for version in &definition.versions {
                assert!(version.schema.is_some(), "{}/{}", definition.group, definition.plural);
            }
        }
        let garden = ResourceSet::new(for_garden(&all));
        assert!(garden.get("", "pods").is_none() && garden.get("", "secrets").is_some());
    }
}
