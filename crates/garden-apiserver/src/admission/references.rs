//! What an object refers to must exist and be readable for the user, [ADM-50] – [ADM-54], [ADM-56].

mod bindings;
mod shoots;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apis::seedmanagement::v1alpha1::{Gardenlet, ManagedSeed};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_apiserver::meta;

use super::{cloud_profiles, errors_occurred, typed, typed_old};
use crate::lookup;

/// The plugin.
pub(super) struct ResourceReferenceManager;

const CORE: &str = "core.gardener.cloud";
const SECURITY: &str = "security.gardener.cloud";

/// A kind of credentials or configuration: where its objects are, and how it is told that one is missing.
#[derive(Clone, Copy)]
struct Kind {
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    shown: &'static str,
}

const fn kind(group: &'static str, resource: &'static str, kind: &'static str, shown: &'static str) -> Kind {
    Kind {
        group,
        resource,
        kind,
        shown,
    }
}

const SECRET: Kind = kind("", "secrets", "Secret", "secrets");
const CONFIG_MAP: Kind = kind("", "configmaps", "ConfigMap", "configmaps");
const INTERNAL_SECRET: Kind = kind(
    CORE,
    "internalsecrets",
    "InternalSecret",
    "internalsecrets.core.gardener.cloud",
);
const WORKLOAD_IDENTITY: Kind = kind(
    SECURITY,
    "workloadidentities",
    "WorkloadIdentity",
    "workloadidentities.security.gardener.cloud",
);
const SEED: Kind = kind(CORE, "seeds", "Seed", "seed.core.gardener.cloud");

/// The kind of credentials or configuration that a reference is of.
fn referred(api_version: &str, name: &str) -> Option<Kind> {
    let known = match api_version {
        "v1" => [SECRET, CONFIG_MAP].as_slice(),
        "security.gardener.cloud/v1alpha1" => &[WORKLOAD_IDENTITY],
        "core.gardener.cloud/v1beta1" => &[INTERNAL_SECRET],
        _ => &[],
    };
    known.iter().copied().find(|own| own.kind == name)
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

fn is_there(attributes: &Attributes<'_>, kind: Kind, namespace: &str, name: &str) -> bool {
    let found = attributes
        .context
        .lister
        .get(kind.group, kind.resource, namespace, name);
    found.is_some()
}

fn not_found(kind: Kind, name: &str) -> String {
    // a kind that is told in the plural is told by a request for its object, others by who remembers them
    let unaskable = lookup::unaskable(name).filter(|_| kind.shown.starts_with(kind.resource));
    unaskable.unwrap_or_else(|| format!("{} {name:?} not found", kind.shown))
}

fn exists(attributes: &Attributes<'_>, kind: Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
    match is_there(attributes, kind, namespace, name) {
        true => Ok(()),
        false => Err(attributes.forbidden(&not_found(kind, name))),
    }
}

/// As [`exists`], with what could not be resolved told before.
fn resolves(attributes: &Attributes<'_>, what: &str, kind: Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
    match is_there(attributes, kind, namespace, name) {
        true => Ok(()),
        false => Err(attributes.forbidden(&format!("failed to resolve {what}: {}", not_found(kind, name)))),
    }
}

fn readable(attributes: &Attributes<'_>, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
    let context = attributes.context;
    context
        .lister
        .allowed(context.user, "get", group, resource, namespace, name)
}

/// `spec.resources` of shoots and seeds: all of them, if one changed [ADM-51].
fn resources(
    attributes: &Attributes<'_>,
    namespace: &str,
    new: &[NamedResourceReference],
    old: &[NamedResourceReference],
) -> Result<(), ApiError> {
    if new == old {
        return Ok(());
    }
    for own in new {
        let reference = &own.resource_ref;
        let (api_version, name) = (text(&reference.api_version), reference.name.as_str());
        let Some(kind) = referred(api_version, &reference.kind) else {
            return Err(attributes.forbidden(&format!(
                "resource reference {:?} could not be resolved for API resource with version {api_version:?} and kind {:?}",
                own.name, reference.kind
            )));
        };
        if !readable(attributes, kind.group, kind.resource, namespace, name) {
            return Err(attributes.forbidden("cannot reference a resource you are not allowed to read"));
        }
        let what = format!("resource reference {:?}", own.name);
        resolves(attributes, &what, kind, namespace, name)?;
    }
    Ok(())
}

/// Kinds in whose deletion somebody still needs what they refer to: backups are removed by their seed, extensions by what deploys them.
const REMOVED_BY_WHAT_THEY_NAME: [&str; 3] = ["backupbuckets", "backupentries", "controllerregistrations"];

/// Whether an object in deletion still has to name what is there. Others may lose what they refer to, for nothing is made of it any more.
fn needs_to_the_end(attributes: &Attributes<'_>) -> bool {
    let mut kinds = REMOVED_BY_WHAT_THEY_NAME.iter();
    kinds.any(|kind| attributes.is(CORE, kind))
}

#[async_trait]
impl Admission for ResourceReferenceManager {
    fn name(&self) -> &'static str {
        "ResourceReferenceManager"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation == Operation::Delete {
            return match attributes.is(CORE, "backupbuckets") && attributes.subresource.is_empty() {
                true => empty_bucket(attributes),
                false => Ok(()),
            };
        }
        if !matches!(attributes.subresource, "" | "binding") {
            return Ok(());
        }
        let is_going = attributes.object.as_deref().is_some_and(meta::is_deleting);
        if is_going && !needs_to_the_end(attributes) {
            return Ok(());
        }
        if let Some(own) = typed::<Shoot>(attributes) {
            return shoots::check(attributes, &own, typed_old::<Shoot>(attributes).as_deref());
        }
        if let Some(own) = typed::<SecretBinding>(attributes) {
            return bindings::secret_binding(attributes, &own).await;
        }
        if let Some(own) = typed::<CredentialsBinding>(attributes) {
            return bindings::credentials_binding(attributes, &own).await;
        }
        if let Some(own) = typed::<Seed>(attributes) {
            let old = typed_old::<Seed>(attributes);
            let before = old.map(|old| old.spec.resources.clone()).unwrap_or_default();
            return resources(attributes, GARDEN_NAMESPACE, &own.spec.resources, &before);
        }
        if let Some(own) = typed::<Project>(attributes) {
            return project_namespace(attributes, &own);
        }
        if let Some(own) = typed::<BackupBucket>(attributes) {
            return bucket(attributes, &own);
        }
        if let Some(own) = typed::<BackupEntry>(attributes) {
            return entry(attributes, &own);
        }
        if let Some(own) = typed::<ControllerRegistration>(attributes) {
            return deployments(attributes, &own);
        }
        if attributes.operation == Operation::Update && attributes.subresource.is_empty() {
            cloud_profiles::check(attributes)?;
        }
        if typed::<Gardenlet>(attributes).is_some()
            && lookup::get::<ManagedSeed>(attributes.context.lister, attributes.namespace, attributes.name).is_some()
        {
            return Err(exclusive(attributes, "Gardenlet", "ManagedSeed"));
        }
        if typed::<ManagedSeed>(attributes).is_some()
            && lookup::get::<Gardenlet>(attributes.context.lister, attributes.namespace, attributes.name).is_some()
        {
            return Err(exclusive(attributes, "ManagedSeed", "Gardenlet"));
        }
        Ok(())
    }
}

/// [ADM-56].
fn exclusive(attributes: &Attributes<'_>, own: &str, other: &str) -> ApiError {
    ApiError::unclassified(format!(
        "cannot create {own} {}/{} since there is already a {other} object with the same name",
        attributes.namespace, attributes.name
    ))
}

/// [ADM-54].
fn empty_bucket(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let entries = lookup::list::<BackupEntry>(attributes.context.lister, None);
    let inside: Vec<String> = entries
        .iter()
        .filter(|entry| entry.spec.bucket_name == attributes.name)
        .map(|entry| format!("{}/{}", text(&entry.metadata.namespace), text(&entry.metadata.name)))
        .collect();
    match inside.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(&format!(
            "cannot delete BackupBucket because BackupEntries are still referencing it, backupEntryNames: {}",
            inside.join(",")
        ))),
    }
}

/// [ADM-53].
fn project_namespace(attributes: &Attributes<'_>, project: &Project) -> Result<(), ApiError> {
    let had = typed_old::<Project>(attributes).is_some_and(|old| old.spec.namespace.is_some());
    let Some(namespace) = project.spec.namespace.as_deref().filter(|_| !had) else {
        return Ok(());
    };
    let lister = attributes.context.lister;
    let found = lister.with_field(CORE, "projects", "spec.namespace", namespace);
    match found.iter().any(|other| meta::name(other) != attributes.name) {
        true => Err(attributes.forbidden(&format!("namespace {namespace:?} is already used by another project"))),
        false => Ok(()),
    }
}

fn bucket(attributes: &Attributes<'_>, bucket: &BackupBucket) -> Result<(), ApiError> {
    let before = typed_old::<BackupBucket>(attributes).and_then(|old| old.spec.seed_name.clone());
    if let Some(seed) = bucket
        .spec
        .seed_name
        .as_ref()
        .filter(|seed| before.as_ref() != Some(*seed))
    {
        exists(attributes, SEED, "", seed)?;
    }
    let Some(reference) = &bucket.spec.credentials_ref else {
        return Err(attributes.forbidden("spec.credentialsRef must be set or defaulted"));
    };
    match referred(text(&reference.api_version), text(&reference.kind)) {
        Some(kind) if ["Secret", "WorkloadIdentity"].contains(&kind.kind) => {
            exists(attributes, kind, text(&reference.namespace), text(&reference.name))
        }
        _ => Err(attributes
            .forbidden("unknown credentials ref: BackupBucket is referencing neither a Secret nor a WorkloadIdentity")),
    }
}

fn entry(attributes: &Attributes<'_>, entry: &BackupEntry) -> Result<(), ApiError> {
    let old = typed_old::<BackupEntry>(attributes)
        .map(|old| old.spec.clone())
        .unwrap_or_default();
    if let Some(seed) = &entry.spec.seed_name
        && old.seed_name.as_ref() != Some(seed)
    {
        exists(attributes, SEED, "", seed)?;
    }
    let bucket = kind(
        CORE,
        "backupbuckets",
        "BackupBucket",
        "backupbucket.core.gardener.cloud",
    );
    match old.bucket_name == entry.spec.bucket_name {
        true => Ok(()),
        false => exists(attributes, bucket, "", &entry.spec.bucket_name),
    }
}

fn deployments(attributes: &Attributes<'_>, registration: &ControllerRegistration) -> Result<(), ApiError> {
    let shown = "controllerdeployments.core.gardener.cloud";
    let deployment = kind(CORE, "controllerdeployments", "ControllerDeployment", shown);
    let references = registration.spec.deployment.iter().flat_map(|own| &own.deployment_refs);
    let missing: Vec<String> = references
        .filter(|reference| !is_there(attributes, deployment, "", &reference.name))
        .map(|reference| not_found(deployment, &reference.name))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(&errors_occurred(&missing))),
    }
}
