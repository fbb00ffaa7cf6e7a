//! What a shoot's users left in it when it is deleted [CLN-1].

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{ApiResource, DynamicObject};

use super::*;

const WIDGETS: &str = "widgets.example.org";

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// Creates an object of any kind.
async fn create(client: &Client, plural: &str, value: Value) {
    let object = object(value);
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.rsplit_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: types.api_version.clone(),
        kind: types.kind.clone(),
        plural: plural.to_owned(),
    };
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// A workload with a volume in `default`, where no namespace takes it away.
async fn run_a_database(client: &Client) {
    let template = json!({
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "db", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
    });
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template,
            "volumeClaimTemplates": [claim],
        },
    });
    create(client, "statefulsets", set).await;
}

/// A custom resource with a finalizer of somebody who is not there any more.
async fn abandon_a_widget(client: &Client) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": WIDGETS},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    create(client, "customresourcedefinitions", definition).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default", "finalizers": ["example.org/gone"]},
    });
    create(client, "widgets", widget).await;
}

#[tokio::test(start_paused = true)]
async fn cln_1_workload_and_volumes_go_with_the_shoot() {
    let story = Story::begin(1).await;
    story.nodes(&[("local", 1)]).await;
    run_a_database(&story.landscape.shoot(CONTROL_PLANE)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    story.delete().await;
    story.landscape.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cln_10_what_nobody_finishes_is_made_to_go() {
    let story = Story::begin(1).await;
    abandon_a_widget(&story.landscape.shoot(CONTROL_PLANE)).await;
    // the owner does not want to wait for an hour
    let annotation = "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds";
    story
        .patch(json!({"metadata": {"annotations": {annotation: "30"}}}))
        .await;
    story.delete().await;
    let events: Api<Event> = Api::namespaced(story.landscape.garden(), "garden-local");
    let told = events.list(&ListParams::default()).await.unwrap();
    let deleted = told
        .iter()
        .any(|event| event.message.as_deref() == Some("Deleted Shoot cluster"));
    assert!(deleted, "the end of the deletion is told");
    story.landscape.stop().await;
}
