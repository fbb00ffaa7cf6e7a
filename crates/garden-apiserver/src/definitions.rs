//! The garden's resources: names and verbs from the recorded discovery of a real server, schemas from its OpenAPI documents, columns
//! from its tables, strategies from [`crate::kinds`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::*;
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_apis::seedmanagement::v1alpha1::{Gardenlet, ManagedSeed, ManagedSeedSet};
use gardener_apiserver::definition::{Columns, Definition, Scale, Strategy, Subresource, Version};
use gardener_apiserver::kubernetes::{known_verb, recorded_columns};
use gardener_apiserver::openapi::Publisher;
use gardener_schema::{Definitions, ParseError};
use gardener_store::Topic;
use serde::Deserialize;
use serde_json::Value;

use crate::features::Features;
use crate::kind::TypedStrategy;
use crate::kubeconfig::{Access, EntryPoint, Kubeconfig};
use crate::workload_identity_tokens::{Token, TokenIssuer};

const DISCOVERY: &str = include_str!("../recorded/discovery.json");
const TABLES: &str = include_str!("../recorded/tables.json");
const OPENAPI: [(&str, &str); 5] = [
    (
        "apis/core.gardener.cloud/v1",
        include_str!("../recorded/openapi-v3/core.gardener.cloud_v1.json"),
    ),
    (
        "apis/core.gardener.cloud/v1beta1",
        include_str!("../recorded/openapi-v3/core.gardener.cloud_v1beta1.json"),
    ),
    (
        "apis/operations.gardener.cloud/v1alpha1",
        include_str!("../recorded/openapi-v3/operations.gardener.cloud_v1alpha1.json"),
    ),
    (
        "apis/security.gardener.cloud/v1alpha1",
        include_str!("../recorded/openapi-v3/security.gardener.cloud_v1alpha1.json"),
    ),
    (
        "apis/seedmanagement.gardener.cloud/v1alpha1",
        include_str!("../recorded/openapi-v3/seedmanagement.gardener.cloud_v1alpha1.json"),
    ),
];

/// Settings of the garden API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the one listener is that serves all logical clusters; with it kubeconfigs need no DNS.
    pub entry_point: Option<EntryPoint>,
    /// The longest validity of administrators' kubeconfigs for shoots; longer wishes are cut.
    pub admin_kubeconfig_max: Duration,
    /// The longest validity of viewers' kubeconfigs for shoots; longer wishes are cut.
    pub viewer_kubeconfig_max: Duration,
    /// How often a shoot's credentials should be rotated; its owner is told when they were not [VAL-X1].
    pub credentials_rotation: Duration,
    /// What is switched on [GAPI-7].
    pub features: Features,
    /// Who signs the tokens of WorkloadIdentities; without one there are none.
    pub workload_identities: Option<Arc<TokenIssuer>>,
}

impl Default for Options {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            entry_point: None,
            admin_kubeconfig_max: day,
            viewer_kubeconfig_max: day,
            credentials_rotation: 90 * day,
            features: Features::default(),
            workload_identities: None,
        }
    }
}

/// Why the recorded documents cannot be used: they are part of the program, so this is a defect of the build.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// A document is no JSON of the expected form.
    #[error("a recorded document of the garden API cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A schema cannot be read.
    #[error("a recorded schema of the garden API cannot be read: {0}")]
    Schema(#[from] ParseError),
    /// A resource has no rules.
    #[error("resource {0} of the recorded discovery has no strategy")]
    Unknown(String),
}

#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}
#[derive(Deserialize)]
struct Group {
    metadata: Named,
    versions: Vec<GroupVersion>,
}
#[derive(Deserialize)]
struct Named {
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
    response_kind: Kind,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<Sub>,
}
#[derive(Deserialize)]
struct Kind {
    kind: String,
}
#[derive(Deserialize)]
struct Sub {
    subresource: String,
}

fn typed<K: crate::kind::GardenKind>(options: &Options) -> Arc<dyn Strategy> {
    Arc::new(TypedStrategy::<K>::new(
        options.credentials_rotation,
        options.features.clone(),
    ))
}

fn strategy(resource: &str, options: &Options) -> Option<Arc<dyn Strategy>> {
    Some(match resource {
        "backupbuckets" => typed::<BackupBucket>(options),
        "backupentries" => typed::<BackupEntry>(options),
        "bastions" => typed::<Bastion>(options),
        "cloudprofiles" => typed::<CloudProfile>(options),
        "controllerdeployments" => typed::<ControllerDeployment>(options),
        "controllerinstallations" => typed::<ControllerInstallation>(options),
        "controllerregistrations" => typed::<ControllerRegistration>(options),
        "credentialsbindings" => typed::<CredentialsBinding>(options),
        "exposureclasses" => typed::<ExposureClass>(options),
        "gardenlets" => typed::<Gardenlet>(options),
        "internalsecrets" => typed::<InternalSecret>(options),
        "managedseeds" => typed::<ManagedSeed>(options),
        "managedseedsets" => typed::<ManagedSeedSet>(options),
        "namespacedcloudprofiles" => typed::<NamespacedCloudProfile>(options),
        "projects" => typed::<Project>(options),
        "quotas" => typed::<Quota>(options),
        "secretbindings" => typed::<SecretBinding>(options),
        "seeds" => typed::<Seed>(options),
        "shoots" => typed::<Shoot>(options),
        "shootstates" => typed::<ShootState>(options),
        "workloadidentities" => typed::<WorkloadIdentity>(options),
        _ => return None,
    })
}

fn subresources(
    resource: &str,
    options: &Options,
    schemas: &Definitions,
) -> BTreeMap<&'static str, Arc<dyn Subresource>> {
    let mut own: BTreeMap<&'static str, Arc<dyn Subresource>> = BTreeMap::new();
    if resource == "workloadidentities" {
        let issuer = options.workload_identities.clone();
        let schema = schemas.for_kind("security.gardener.cloud", "v1alpha1", "TokenRequest");
        own.insert("token", Arc::new(Token { issuer, schema }));
    }
    if resource == "shoots" {
        for (name, access, longest) in [
            ("adminkubeconfig", Access::Admin, options.admin_kubeconfig_max),
            ("viewerkubeconfig", Access::Viewer, options.viewer_kubeconfig_max),
        ] {
            own.insert(
                name,
                Arc::new(Kubeconfig {
                    access,
                    schema: schemas.for_kind("authentication.gardener.cloud", "v1alpha1", access.kind()),
                    longest,
                    entry_point: options.entry_point.clone(),
                }),
            );
        }
    }
    own
}

/// The garden's own resources. A garden serves them beside those of Kubernetes ([GAPI-3]).
///
/// # Errors
/// When the recorded documents are damaged.
pub fn definitions(options: &Options) -> Result<Vec<Arc<Definition>>, RecordedError> {
    let documents: Vec<Value> = OPENAPI
        .iter()
        .map(|(_, text)| serde_json::from_str(text))
        .collect::<Result<_, _>>()?;
    let schemas = Definitions::from_openapi(&documents)?;
    let columns = recorded_columns(TABLES)?;
    let groups: Groups = serde_json::from_str(DISCOVERY)?;
    let mut all: BTreeMap<(String, String), Definition> = BTreeMap::new();
    for group in groups.items {
        let group_name = group.metadata.name;
        for version in group.versions {
            for resource in version.resources {
                let has = |name: &str| resource.subresources.iter().any(|own| own.subresource == name);
                let key = (group_name.clone(), resource.resource.clone());
                let kind = resource.response_kind.kind.clone();
                // Of the two versions of ControllerDeployment, v1 is stored.
                let stored = resource.resource != "controllerdeployments" || version.version == "v1";
                let own = Version {
                    name: version.version.clone(),
                    list_kind: format!("{kind}List"),
                    schema: schemas.for_kind(&group_name, &version.version, &kind),
                    prunes: true,
                    completes: false,
                    served: true,
                    stored,
                    status: has("status"),
                    // [GAPI-6]
                    scale: has("scale").then(|| Scale {
                        spec_replicas: "spec.replicas".into(),
                        status_replicas: "status.replicas".into(),
                        selector: Some("spec.selector".into()),
                        is_missed: true,
                        is_judged: false,
                    }),
                    columns: Columns::Row(
                        columns
                            .get(&format!("{group_name}/{}/{}", version.version, resource.resource))
                            .cloned()
                            .unwrap_or_else(gardener_apiserver::table::default_columns),
                    ),
                    kind,
                };
                if let Some(existing) = all.get_mut(&key) {
                    existing.versions.push(own);
                    // v1beta1 is preferred, [GAPI-1].
                    existing.versions.sort_by_key(|version| version.name == "v1");
                    continue;
                }
                let strategy = strategy(&resource.resource, options)
                    .ok_or_else(|| RecordedError::Unknown(resource.resource.clone()))?;
                all.insert(
                    key,
                    Definition {
                        group: group_name.clone(),
                        subresources: subresources(&resource.resource, options, &schemas),
                        strategy,
                        singular: resource.singular_resource,
                        short_names: resource.short_names,
                        categories: resource.categories,
                        namespaced: resource.scope == "Namespaced",
                        topic: Topic::new(&group_name, &resource.resource),
                        verbs: resource.verbs.iter().filter_map(|verb| known_verb(verb)).collect(),
                        versions: vec![own],
                        plural: resource.resource,
                    },
                );
            }
        }
    }
    Ok(all.into_values().map(Arc::new).collect())
}

/// What they say of whose they are.
pub const PUBLISHER: Publisher = Publisher {
    title: "Gardener",
    version: gardener_apis::constants::VERSION,
};

/// The OpenAPI v3 documents of the garden's groups by path, for the machinery's `openapi::Documents`.
pub fn openapi_documents() -> impl Iterator<Item = (String, &'static str)> {
    OPENAPI.iter().map(|(path, text)| ((*path).to_owned(), *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_4_every_resource_has_schema_columns_and_rules() {
        let all = definitions(&Options::default()).unwrap();
        assert_eq!(all.len(), 21);
        for definition in &all {
            assert!(definition.stored_version().is_some(), "{}", definition.plural);
            for version in &definition.versions {
                assert!(version.schema.is_some(), "{}", definition.plural);
            }
        }
        let deployments = all
            .iter()
            .find(|definition| definition.plural == "controllerdeployments")
            .unwrap();
        assert_eq!(deployments.versions[0].name, "v1beta1");
        assert_eq!(deployments.stored_version().unwrap().name, "v1");
    }
}
