//! Applies manifests, as `kubectl apply --server-side` would: several documents a file, several files a folder.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

/// The field manager of what `gardener up` applies.
pub const FIELD_MANAGER: &str = "gardener-up";

/// Why a manifest was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no YAML, or no Kubernetes object.
    #[error("{origin}: document {number} is no Kubernetes object: {why}")]
    Malformed {
        /// File or name of the text.
        origin: String,
        /// Which document, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
    /// The API refused.
    #[error("{origin}: {kind} {name}: {why}")]
    Refused {
        /// File or name of the text.
        origin: String,
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// What the API said.
        why: String,
    },
}

/// A manifest: where it comes from, and its text.
pub struct Manifest {
    /// File name, for messages.
    pub origin: String,
    /// YAML documents.
    pub text: String,
}

/// Reads a file, or all `.yaml`, `.yml` and `.json` files of a folder in the order of their names.
///
/// # Errors
/// When something cannot be read.
pub fn read(path: &Path) -> Result<Vec<Manifest>, ApplyError> {
    let failed = |source| ApplyError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
            {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).map_err(|source| ApplyError::Read {
            path: file.clone(),
            source,
        })?;
        Ok(Manifest {
            origin: file.display().to_string(),
            text,
        })
    };
    files.into_iter().map(read).collect()
}

/// The objects of a manifest, in order; empty documents are left out, lists are taken apart.
///
/// # Errors
/// Names the document that is no object.
pub fn objects(manifest: &Manifest) -> Result<Vec<DynamicObject>, ApplyError> {
    let malformed = |number: usize, why: String| ApplyError::Malformed {
        origin: manifest.origin.clone(),
        number,
        why,
    };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&manifest.text).map_err(|error| malformed(1, error.to_string()))?;
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        if document.is_null() {
            continue;
        }
        for object in items(document) {
            let object = DynamicObject::deserialize(object).map_err(|error| malformed(index + 1, error.to_string()))?;
            if object.types.is_none() || object.metadata.name.is_none() {
                return Err(malformed(
                    index + 1,
                    "apiVersion, kind and metadata.name are needed".into(),
                ));
            }
            objects.push(object);
        }
    }
    Ok(objects)
}

/// The items of a list, as `kubectl get -o yaml` writes it (`List`) and servers do (`ShootList`, whose items go without their kind); any other
/// document is its only item.
fn items(mut document: Value) -> Vec<Value> {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    let Some(item_kind) = kind.strip_suffix("List").map(str::to_owned) else {
        return vec![document];
    };
    let api_version = document.get("apiVersion").cloned();
    let Some(Value::Array(mut items)) = document.get_mut("items").map(Value::take) else {
        return vec![document];
    };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(api_version) = &api_version
            && !item_kind.is_empty()
        {
            item.entry("apiVersion").or_insert_with(|| api_version.clone());
            item.entry("kind").or_insert_with(|| item_kind.clone().into());
        }
    }
    items
}

/// Applies the objects of a manifest one after the other. Answers what was applied as `Kind name`.
///
/// # Errors
/// The first refusal.
pub async fn apply(client: &Client, manifest: &Manifest) -> Result<Vec<String>, ApplyError> {
    let mut applied = Vec::new();
    // many objects of a manifest are of few kinds
    let mut known: BTreeMap<(String, String), (ApiResource, Scope)> = BTreeMap::new();
    for object in objects(manifest)? {
        let types = object.types.clone().unwrap_or_default();
        let name = object.name_any();
        let refused = |source: kube::Error| ApplyError::Refused {
            origin: manifest.origin.clone(),
            kind: types.kind.clone(),
            name: name.clone(),
            why: match source {
                kube::Error::Api(status) => status.message,
                other => other.to_string(),
            },
        };
        let (resource, scope) = match known.entry((types.api_version.clone(), types.kind.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
                let kind = GroupVersionKind::gvk(group, version, &types.kind);
                let found = kube::discovery::pinned_kind(client, &kind).await;
                let (resource, capabilities) = found.map_err(refused)?;
                unknown.insert((resource, capabilities.scope))
            }
        };
        let api: Api<DynamicObject> = match (scope, object.namespace()) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), resource),
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, resource),
            (Scope::Namespaced, None) => Api::namespaced_with(client.clone(), "default", resource),
        };
        api.patch(
            &name,
            &PatchParams::apply(FIELD_MANAGER).force(),
            &Patch::Apply(&object),
        )
        .await
        .map_err(refused)?;
        applied.push(format!("{} {name}", types.kind));
    }
    Ok(applied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart() {
        let manifest = |text: &str| Manifest {
            origin: "x.yaml".into(),
            text: text.into(),
        };
        let two = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n";
        let names: Vec<String> = objects(&manifest(two))
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        assert_eq!(names, ["a", "b"]);
        let lists = "kind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: Namespace, metadata: {name: c}}]\n---\nkind: NamespaceList\napiVersion: v1\nitems: [{metadata: {name: d}}]\n";
        let listed = objects(&manifest(lists)).unwrap();
        let listed: Vec<(String, String)> = listed
            .iter()
            .map(|object| (object.types.clone().unwrap().kind, object.name_any()))
            .collect();
        assert_eq!(
            listed,
            [("Namespace".into(), "c".into()), ("Namespace".into(), "d".into())]
        );
        let error = objects(&manifest("apiVersion: v1\nkind: Namespace\n"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "x.yaml: document 1 is no Kubernetes object: apiVersion, kind and metadata.name are needed"
        );
    }
}
