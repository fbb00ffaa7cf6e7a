//! Objects that gardener-resource-manager keeps for an extension: a ManagedResource and the secret with the objects.

use std::collections::BTreeMap;

use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::apply::{self, ApplyError};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, SecretReference};
use kube::{Api, Client};
use serde_json::Value;

/// What a ManagedResource carries.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Who applies it: empty for the shoot, `seed` for the seed.
    pub class: Option<String>,
    /// The objects.
    pub objects: Vec<Value>,
    /// Labels that every object gets.
    pub inject_labels: BTreeMap<String, String>,
    /// Whether the objects stay when the ManagedResource goes.
    pub keep_objects: bool,
}

/// Name of the secret of a ManagedResource.
pub fn secret_name(name: &str) -> String {
    format!("managedresource-{name}")
}

/// Deploys a ManagedResource and its secret.
///
/// # Errors
/// What the API says.
pub async fn deploy(client: &Client, namespace: &str, name: &str, content: &Content) -> Result<(), ApplyError> {
    let documents: Vec<String> = content.objects.iter().map(Value::to_string).collect();
    let data = BTreeMap::from([(
        "objects.yaml".to_owned(),
        ByteString(documents.join("\n---\n").into_bytes()),
    )]);
    let mut secret = Secret::default();
    secret.metadata.name = Some(secret_name(name));
    secret.type_ = Some("Opaque".to_owned());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    apply::create_or_patch(&secrets, secret, |secret| secret.data = Some(data.clone())).await?;
    let mut resource = ManagedResource::default();
    resource.metadata.name = Some(name.to_owned());
    let resources: Api<ManagedResource> = Api::namespaced(client.clone(), namespace);
    apply::create_or_patch(&resources, resource, |resource| {
        resource.spec.class = content.class.clone();
        resource.spec.inject_labels = content.inject_labels.clone();
        resource.spec.keep_objects = Some(content.keep_objects);
        resource.spec.secret_refs = vec![SecretReference {
            name: Some(secret_name(name)),
            namespace: None,
        }];
    })
    .await?;
    Ok(())
}

/// Deletes a ManagedResource and its secret. The objects go when gardener-resource-manager is done.
///
/// # Errors
/// What the API says.
pub async fn delete(client: &Client, namespace: &str, name: &str) -> Result<(), kube::Error> {
    let resources: Api<ManagedResource> = Api::namespaced(client.clone(), namespace);
    apply::delete(&resources, name).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    apply::delete(&secrets, &secret_name(name)).await?;
    Ok(())
}
