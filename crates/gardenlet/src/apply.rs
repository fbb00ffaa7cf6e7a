//! Writing manifests: server-side apply as `gardenlet`, so that only what gardenlet says is gardenlet's, and what it no longer says goes.

use futures::{FutureExt, StreamExt};
use gardener_apimachinery::pointer::Pointed;
use gardener_controller::Raw;
use gardener_controller::apply::{apply_named, is_not_found};
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of everything gardenlet applies.
pub const FIELD_MANAGER: &str = "gardenlet";

/// How many manifests are written at a time.
const CONCURRENCY: usize = 16;

/// Why a manifest was not written.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It names no kind or no object.
    #[error("the manifest lacks {0}: it has to name apiVersion, kind and metadata.name")]
    Incomplete(&'static str),
    /// The API refused it.
    #[error("{kind} {name:?}: {source}")]
    Api {
        /// Its kind.
        kind: String,
        /// Its namespace and name.
        name: String,
        /// Why.
        source: Box<kube::Error>,
    },
}

fn text<'a>(manifest: &'a Value, pointer: &str) -> Option<&'a str> {
    manifest.at(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// What a manifest names.
struct Named<'a> {
    api: Api<DynamicObject>,
    kind: &'a str,
    name: &'a str,
}

fn named<'a>(client: &Client, manifest: &'a Value) -> Result<Named<'a>, ManifestError> {
    let api_version = text(manifest, "/apiVersion").ok_or(ManifestError::Incomplete("apiVersion"))?;
    let kind = text(manifest, "/kind").ok_or(ManifestError::Incomplete("kind"))?;
    let name = text(manifest, "/metadata/name").ok_or(ManifestError::Incomplete("metadata.name"))?;
    let types = TypeMeta {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    let kind_of = GroupVersionKind::try_from(&types).map_err(|_| ManifestError::Incomplete("a readable apiVersion"))?;
    let resource = ApiResource::from_gvk(&kind_of);
    let api = match text(manifest, "/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok(Named { api, kind, name })
}

fn refused(manifest: &Value, kind: &str, name: &str, source: kube::Error) -> ManifestError {
    let name = match text(manifest, "/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    ManifestError::Api {
        kind: kind.to_owned(),
        name,
        source: Box::new(source),
    }
}

/// Makes the cluster hold what a manifest says. Writes nothing if it does already.
///
/// # Errors
/// [`ManifestError`].
pub async fn apply(client: &Client, manifest: &Value) -> Result<Raw, ManifestError> {
    let Named { api, kind, name } = named(client, manifest)?;
    let applied = apply_named(&api, FIELD_MANAGER, name, manifest).await;
    applied.map_err(|error| refused(manifest, kind, name, error))
}

/// As [`apply`], of several manifests at a time; the first error counts, but all are tried.
///
/// # Errors
/// [`ManifestError`].
pub async fn apply_all(client: &Client, manifests: &[Value]) -> Result<Vec<Raw>, ManifestError> {
    let writes: Vec<_> = manifests
        .iter()
        .map(|manifest| apply(client, manifest).boxed())
        .collect();
    let written: Vec<_> = futures::stream::iter(writes).buffered(CONCURRENCY).collect().await;
    written.into_iter().collect()
}

/// Deletes what a manifest names (its other content is not read); what is gone is fine.
///
/// # Errors
/// [`ManifestError`].
pub async fn delete(client: &Client, manifest: &Value) -> Result<(), ManifestError> {
    let Named { api, kind, name } = named(client, manifest)?;
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(refused(manifest, kind, name, error)),
    }
}

/// Deletes several; the first error counts, but all are tried.
///
/// # Errors
/// [`ManifestError`].
pub async fn delete_all(client: &Client, manifests: &[Value]) -> Result<(), ManifestError> {
    let mut outcome = Ok(());
    for manifest in manifests {
        if let (Ok(()), Err(error)) = (&outcome, delete(client, manifest).await) {
            outcome = Err(error);
        }
    }
    outcome
}

/// The manifest that names an object and says nothing else, for [`delete`].
pub fn name(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut manifest = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let (Some(namespace), Some(metadata)) = (namespace, manifest.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    manifest
}
