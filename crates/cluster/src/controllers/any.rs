//! Writes to objects of kinds that are known at run time only.

use std::sync::Arc;

use gardener_apiserver::definition::Definition;
use http::{Method, Request};
use serde_json::Value;

use crate::environment::Environment;
use crate::error::Error;

/// The path of an object in the version it is stored in, or with an empty name of its collection.
fn path(definition: &Definition, namespace: &str, name: &str) -> String {
    let version = definition
        .stored_version()
        .map_or("v1", |version| version.name.as_str());
    let mut path = if definition.group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{}/{version}", definition.group)
    };
    if definition.namespaced && !namespace.is_empty() {
        path.push_str("/namespaces/");
        path.push_str(namespace);
    }
    path.push('/');
    path.push_str(&definition.plural);
    if !name.is_empty() {
        path.push('/');
        path.push_str(name);
    }
    path
}

async fn send(
    environment: &Environment,
    cluster: &str,
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<Value, Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(serde_json::to_vec(body)?)?;
    Ok(environment.client(cluster).request(request).await?)
}

/// Deletes one object (or, with an empty name, the whole collection) with these options.
pub(super) async fn delete(
    environment: &Environment,
    cluster: &str,
    definition: &Arc<Definition>,
    namespace: &str,
    name: &str,
    options: &Value,
) -> Result<(), Error> {
    let path = path(definition, namespace, name);
    send(environment, cluster, Method::DELETE, &path, "application/json", options).await?;
    Ok(())
}

/// Applies a JSON merge patch to one object.
pub(super) async fn merge(
    environment: &Environment,
    cluster: &str,
    definition: &Arc<Definition>,
    namespace: &str,
    name: &str,
    patch: &Value,
) -> Result<(), Error> {
    let path = path(definition, namespace, name);
    send(
        environment,
        cluster,
        Method::PATCH,
        &path,
        "application/merge-patch+json",
        patch,
    )
    .await?;
    Ok(())
}
