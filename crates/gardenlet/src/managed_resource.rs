//! ManagedResources that gardenlet writes: the object, the Secret with its content, and how it is waited for.

use std::time::Duration;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::wait::{Patience, Verdict, wait_deleted, wait_for};
use gardener_flow::TaskError;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::apply::{self, ManifestError};
use crate::health;

/// A ManagedResource to write.
pub struct Content<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its class: `seed` for objects in the seed, none for objects in the shoot [EXT-145].
    pub class: Option<&'a str>,
    /// What it holds.
    pub objects: &'a [Value],
    /// Labels beside `origin=gardener`.
    pub labels: &'a [(&'a str, &'a str)],
    /// Whether its objects stay when it goes.
    pub keep_objects: bool,
}

/// The key of an object in the Secret.
fn key(object: &Value) -> String {
    let part = |pointer: &str| object.at(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace, name) = (part("/kind"), part("/metadata/namespace"), part("/metadata/name"));
    let raw = format!("{}__{namespace}__{name}.yaml", kind.to_ascii_lowercase());
    raw.replace([':', '/'], "_")
}

/// The Secret and the ManagedResource, in the order in which they are written.
pub fn manifests(content: &Content<'_>) -> [Value; 2] {
    use base64::Engine;
    let secret_name = format!("managedresource-{}", content.name);
    let mut data = serde_json::Map::new();
    for object in content.objects {
        // JSON is YAML.
        let text = base64::engine::general_purpose::STANDARD.encode(object.to_string());
        data.insert(key(object), text.into());
    }
    let mut labels = serde_json::Map::new();
    labels.insert("origin".to_owned(), "gardener".into());
    for (name, value) in content.labels {
        labels.insert((*name).to_owned(), (*value).into());
    }
    let mut spec = json!({"secretRefs": [{"name": secret_name}], "keepObjects": content.keep_objects});
    let inject = match content.class {
        Some(class) => ("class", json!(class)),
        // What is in a shoot tells its users that it is Gardener's.
        None => ("injectLabels", json!({"shoot.gardener.cloud/no-cleanup": "true"})),
    };
    if let Some(spec) = spec.as_object_mut() {
        spec.insert(inject.0.to_owned(), inject.1);
    }
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": secret_name, "namespace": content.namespace, "labels": {"origin": "gardener"}},
            "data": data,
        }),
        json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": content.name, "namespace": content.namespace, "labels": labels},
            "spec": spec,
        }),
    ]
}

/// Writes a ManagedResource.
///
/// # Errors
/// [`ManifestError`].
pub async fn deploy(client: &Client, content: &Content<'_>) -> Result<(), ManifestError> {
    for manifest in manifests(content) {
        apply::apply(client, &manifest).await?;
    }
    Ok(())
}

/// Waits until a ManagedResource is applied and healthy [EXT-174].
///
/// # Errors
/// The last check that failed.
pub async fn wait_healthy(client: &Client, namespace: &str, name: &str, timeout: Duration) -> Result<(), TaskError> {
    let api: Api<ManagedResource> = Api::namespaced(client.clone(), namespace);
    let judge = |found: Option<&ManagedResource>| match found.map(health::managed_resource) {
        None => Verdict::Pending(format!("managed resource {namespace}/{name} not found")),
        Some(Ok(())) => Verdict::Ready(()),
        Some(Err(why)) => Verdict::Pending(why),
    };
    Ok(wait_for(&api, name, Patience::of(timeout), judge).await?)
}

/// Deletes a ManagedResource and its Secret.
///
/// # Errors
/// [`ManifestError`].
pub async fn delete(client: &Client, namespace: &str, name: &str) -> Result<(), ManifestError> {
    let kind = "ManagedResource";
    let resource = apply::name("resources.gardener.cloud/v1alpha1", kind, Some(namespace), name);
    apply::delete(client, &resource).await?;
    let secret = apply::name("v1", "Secret", Some(namespace), &format!("managedresource-{name}"));
    apply::delete(client, &secret).await
}

/// Waits until a ManagedResource is gone.
///
/// # Errors
/// It is still there.
pub async fn wait_gone(client: &Client, namespace: &str, name: &str, timeout: Duration) -> Result<(), TaskError> {
    let api: Api<ManagedResource> = Api::namespaced(client.clone(), namespace);
    Ok(wait_deleted(&api, name, Patience::of(timeout)).await?)
}

/// The ManagedResources of a namespace.
pub fn informer(
    client: &Client,
    namespace: &str,
    stop: &tokio_util::sync::CancellationToken,
) -> gardener_controller::Informer<ManagedResource> {
    let api = Api::namespaced(client.clone(), namespace);
    gardener_controller::Informer::start(api, kube::runtime::watcher::Config::default(), stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_140_each_object_has_a_key_of_its_own() {
        let object =
            |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}});
        let objects = [object("one"), object("system:two")];
        let [secret, resource] = manifests(&Content {
            namespace: "shoot--x--y",
            name: "m",
            class: None,
            objects: &objects,
            labels: &[],
            keep_objects: false,
        });
        let keys: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["configmap__a__one.yaml", "configmap__a__system_two.yaml"]);
        assert_eq!(resource["spec"]["secretRefs"][0]["name"], secret["metadata"]["name"]);
        assert_eq!(resource["metadata"]["labels"]["origin"], "gardener");
    }
}
