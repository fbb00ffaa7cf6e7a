//! What is read before anything is foretold: of a garden by its API, page by page, or of manifests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gardener_apis::core::v1beta1::{
    CloudProfile, ControllerRegistration, NamespacedCloudProfile, Project, Quota, SecretBinding, Seed, Shoot,
    default_cloud_profile, default_namespaced_cloud_profile,
};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apiserver::definition::Definition;
use gardener_garden_apiserver::{RecordedError, definitions};
use gardener_landscape::apply::{self, ApplyError, Manifest};
use gardener_rules::cloud_profiles::{merged, uses_namespaced};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many objects one request asks for.
const PAGE: u32 = 500;

/// Why nothing can be foretold.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ApplyError),
    /// An object of a manifest is not of its kind.
    #[error("{origin}: {kind} {name:?} cannot be read: {why}")]
    Malformed {
        /// File of the manifest.
        origin: String,
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A group of the garden does not have such a kind.
    #[error("{origin}: {name:?}: {api_version} has no kind {kind:?}")]
    NoKind {
        /// File of the manifest.
        origin: String,
        /// Group and version.
        api_version: String,
        /// The kind that is none.
        kind: String,
        /// Name of the object.
        name: String,
    },
    /// What a garden has is not known.
    #[error("the kinds of a garden are not known: {0}")]
    Kinds(#[from] RecordedError),
    /// The manifests are about something else.
    #[error("neither CloudProfiles nor Shoots are in {0}: give the manifests of both with -f")]
    Nothing(String),
    /// The garden does not answer.
    #[error("the garden does not tell its {resource}: {why}")]
    Garden {
        /// Plural name.
        resource: &'static str,
        /// The answer's code, where there was an answer.
        code: Option<u16>,
        /// What it says instead.
        why: String,
    },
}

/// Where an inventory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A garden: its objects have been accepted.
    Garden,
    /// Manifests: its objects have yet to be completed and judged.
    Manifests,
}

/// Objects of a garden, as far as maintenance and admission look at them; each list by namespace and name.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the lists are called like the kinds
pub struct Inventory {
    /// Where the objects come from.
    pub origin: Origin,
    pub cloud_profiles: Vec<CloudProfile>,
    pub namespaced_cloud_profiles: Vec<NamespacedCloudProfile>,
    pub projects: Vec<Project>,
    pub seeds: Vec<Seed>,
    pub controller_registrations: Vec<ControllerRegistration>,
    pub secret_bindings: Vec<SecretBinding>,
    pub credentials_bindings: Vec<CredentialsBinding>,
    pub quotas: Vec<Quota>,
    pub shoots: Vec<Shoot>,
}

impl Inventory {
    /// An inventory without objects.
    pub fn empty(origin: Origin) -> Self {
        Self {
            origin,
            cloud_profiles: Vec::new(),
            namespaced_cloud_profiles: Vec::new(),
            projects: Vec::new(),
            seeds: Vec::new(),
            controller_registrations: Vec::new(),
            secret_bindings: Vec::new(),
            credentials_bindings: Vec::new(),
            quotas: Vec::new(),
            shoots: Vec::new(),
        }
    }

    /// Reads a garden, or what of it concerns one namespace. Who may not read projects, seeds, registrations, bindings
    /// or quotas gets a forecast all the same.
    ///
    /// # Errors
    /// When cloud profiles or shoots are not told.
    pub async fn of_garden(client: &Client, namespace: Option<&str>) -> Result<Self, InventoryError> {
        let mut inventory = Self {
            origin: Origin::Garden,
            cloud_profiles: list(Api::all(client.clone())).await?,
            namespaced_cloud_profiles: if_told(list(scoped(client, namespace)).await)?,
            projects: if_told(list(Api::all(client.clone())).await)?,
            seeds: if_told(list(Api::all(client.clone())).await)?,
            controller_registrations: if_told(list(Api::all(client.clone())).await)?,
            secret_bindings: if_told(list(scoped(client, namespace)).await)?,
            credentials_bindings: if_told(list(scoped(client, namespace)).await)?,
            quotas: if_told(list(Api::all(client.clone())).await)?,
            shoots: list(scoped(client, namespace)).await?,
        };
        inventory.complete();
        Ok(inventory)
    }

    /// Reads manifests: files, or folders of them. Kinds that do not matter here are passed over, but not kinds that a garden should know and does not.
    ///
    /// # Errors
    /// [`InventoryError`].
    pub fn of_manifests(paths: &[PathBuf]) -> Result<Self, InventoryError> {
        let mut inventory = Self::empty(Origin::Manifests);
        for path in paths {
            for manifest in apply::read(path)? {
                inventory.take(&manifest)?;
            }
        }
        if inventory.cloud_profiles.is_empty() && inventory.shoots.is_empty() {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(InventoryError::Nothing(paths.join(", ")));
        }
        inventory.complete();
        Ok(inventory)
    }

    /// Takes the objects of a manifest.
    ///
    /// # Errors
    /// [`InventoryError`].
    pub fn take(&mut self, manifest: &Manifest) -> Result<(), InventoryError> {
        let mut known = None;
        for mut object in apply::objects(manifest)? {
            let types = object.types.clone().unwrap_or_default();
            let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
            let origin = &manifest.origin;
            let namespaced = !matches!(
                &*types.kind,
                "CloudProfile" | "Project" | "Seed" | "ControllerRegistration"
            );
            if namespaced {
                object.metadata.namespace.get_or_insert_with(|| "default".to_owned());
            }
            // where the group was forgotten, that is told where the version is looked at
            match (group, &*types.kind) {
                ("core.gardener.cloud" | "", "CloudProfile") => add(&mut self.cloud_profiles, object, origin)?,
                ("core.gardener.cloud" | "", "NamespacedCloudProfile") => {
                    add(&mut self.namespaced_cloud_profiles, object, origin)?;
                }
                ("core.gardener.cloud" | "", "Project") => add(&mut self.projects, object, origin)?,
                ("core.gardener.cloud" | "", "Seed") => add(&mut self.seeds, object, origin)?,
                ("core.gardener.cloud" | "", "ControllerRegistration") => {
                    add(&mut self.controller_registrations, object, origin)?;
                }
                ("core.gardener.cloud" | "", "SecretBinding") => add(&mut self.secret_bindings, object, origin)?,
                ("security.gardener.cloud" | "", "CredentialsBinding") => {
                    add(&mut self.credentials_bindings, object, origin)?;
                }
                ("core.gardener.cloud" | "", "Quota") => add(&mut self.quotas, object, origin)?,
                ("core.gardener.cloud" | "", "Shoot") => add(&mut self.shoots, object, origin)?,
                (group, kind) if !may_be_passed_over(&mut known, group, kind)? => {
                    return Err(InventoryError::NoKind {
                        origin: origin.clone(),
                        api_version: types.api_version.clone(),
                        kind: types.kind.clone(),
                        name: object.metadata.name.unwrap_or_default(),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Brings the lists in order, and fills in what namespaced profiles make of their parents where nobody has yet.
    pub(crate) fn complete(&mut self) {
        sort(&mut self.cloud_profiles);
        sort(&mut self.namespaced_cloud_profiles);
        sort(&mut self.projects);
        sort(&mut self.seeds);
        sort(&mut self.controller_registrations);
        sort(&mut self.secret_bindings);
        sort(&mut self.credentials_bindings);
        sort(&mut self.quotas);
        sort(&mut self.shoots);
        if self.origin == Origin::Manifests {
            // what a garden would have filled in before it made one profile of two
            self.cloud_profiles.iter_mut().for_each(default_cloud_profile);
            let children = self.namespaced_cloud_profiles.iter_mut();
            children.for_each(default_namespaced_cloud_profile);
        }
        for child in &mut self.namespaced_cloud_profiles {
            let mut parents = self.cloud_profiles.iter();
            let parent = parents.find(|own| own.metadata.name.as_deref() == Some(&*child.spec.parent.name));
            if child.status.cloud_profile_spec.kubernetes.versions.is_empty()
                && let Some(parent) = parent
            {
                child.status.cloud_profile_spec = merged(&parent.spec, &child.spec);
            }
        }
    }

    /// The shoots whose cloud profile is not there.
    pub fn without_profile(&self) -> Vec<LeftOut> {
        let missing = self.shoots.iter().filter(|shoot| !self.has_profile_of(shoot));
        missing.map(LeftOut::of).collect()
    }

    /// Takes those shoots out, and tells which they were.
    pub fn leave_out_without_profile(&mut self) -> Vec<LeftOut> {
        let left_out = self.without_profile();
        let shoots = std::mem::take(&mut self.shoots);
        self.shoots = shoots.into_iter().filter(|shoot| self.has_profile_of(shoot)).collect();
        left_out
    }

    fn has_profile_of(&self, shoot: &Shoot) -> bool {
        match shoot.spec.cloud_profile_reference() {
            Some(reference) if reference.kind == "NamespacedCloudProfile" => {
                let mut profiles = self.namespaced_cloud_profiles.iter();
                profiles.any(|own| uses_namespaced(shoot, own) && !own.status.cloud_profile_spec.r#type.is_empty())
            }
            Some(reference) => {
                let mut profiles = self.cloud_profiles.iter();
                profiles.any(|own| own.metadata.name.as_deref() == Some(&*reference.name))
            }
            None => false,
        }
    }
}

/// A shoot of which nothing can be foretold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// `namespace/name`.
    pub shoot: String,
    /// Kind and name of the cloud profile that is not there.
    pub missing: String,
}

impl LeftOut {
    fn of(shoot: &Shoot) -> Self {
        let named = shoot.spec.cloud_profile_reference();
        Self {
            shoot: format!("{}/{}", shoot.project_namespace(), shoot.own_name()),
            missing: named.map_or_else(|| "none".to_owned(), |own| format!("{} {:?}", own.kind, own.name)),
        }
    }
}

fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Whether an object that is not looked at here may be there all the same: it is of a group that is none of a garden's own, or of a kind in it.
/// `known` keeps a garden's definitions once they are read.
fn may_be_passed_over(
    known: &mut Option<Vec<Arc<Definition>>>,
    group: &str,
    kind: &str,
) -> Result<bool, RecordedError> {
    if !group.ends_with(".gardener.cloud") {
        return Ok(true);
    }
    let definitions = match known {
        Some(known) => known,
        none => none.insert(definitions(&gardener_garden_apiserver::Options::default())?),
    };
    let mut of_group = definitions.iter().filter(|own| own.group == group).peekable();
    let is_foreign = of_group.peek().is_none();
    Ok(is_foreign || of_group.any(|own| own.versions.iter().any(|version| version.kind == kind)))
}

/// A kind that can be read.
trait Kind: Resource + Metadata<Ty = ObjectMeta> + DeserializeOwned + Clone + std::fmt::Debug {}

impl<K: Resource + Metadata<Ty = ObjectMeta> + DeserializeOwned + Clone + std::fmt::Debug> Kind for K {}

async fn list<K: Kind>(api: Api<K>) -> Result<Vec<K>, InventoryError> {
    let mut found = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // the pages went out of date: all is read at once
            Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                found.clear();
                params = ListParams::default();
                continue;
            }
            Err(error) => return Err(untold::<K>(&error)),
        };
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn untold<K: Resource>(error: &kube::Error) -> InventoryError {
    InventoryError::Garden {
        resource: K::URL_PATH_SEGMENT,
        code: match error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        },
        why: told(error),
    }
}

/// An error's words and its causes'.
fn told(error: &kube::Error) -> String {
    let mut text = gardener_controller::api_error(error);
    let mut cause = std::error::Error::source(error);
    while let Some(own) = cause {
        let words = own.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = own.source();
    }
    text
}

/// What somebody may read who may not read everything.
fn if_told<K>(found: Result<Vec<K>, InventoryError>) -> Result<Vec<K>, InventoryError> {
    match found {
        Err(InventoryError::Garden {
            code: Some(403 | 404), ..
        }) => Ok(Vec::new()),
        other => other,
    }
}

fn add<K: Kind>(list: &mut Vec<K>, object: DynamicObject, origin: &str) -> Result<(), InventoryError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let malformed = |why: String| InventoryError::Malformed {
        origin: origin.to_owned(),
        kind: K::KIND.to_owned(),
        name: name.clone(),
        why,
    };
    let version = object.types.as_ref().map_or("", |types| &types.api_version);
    if version != K::API_VERSION {
        let expected = K::API_VERSION;
        return Err(malformed(format!("apiVersion is {version:?}, expected {expected:?}")));
    }
    let value = serde_json::to_value(object).map_err(|error| malformed(error.to_string()))?;
    list.push(serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?);
    Ok(())
}

/// By namespace and name; of two of one name the later counts, as if one had been applied after the other.
fn sort<K: Kind>(list: &mut Vec<K>) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let by_name: BTreeMap<(String, String), K> = list
        .drain(..)
        .map(|object| {
            let metadata = object.metadata();
            ((text(&metadata.namespace), text(&metadata.name)), object)
        })
        .collect();
    list.extend(by_name.into_values());
}
