//! Kinds that come while others come.
#![allow(clippy::unwrap_used)] // memory does not refuse

use futures::StreamExt;
use gardener_testkit::seed::Seed;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

fn definition(number: usize) -> CustomResourceDefinition {
    let plural = format!("things{number}");
    serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": format!("thing{number}"), "kind": format!("Thing{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn definitions_that_come_at_once_are_all_served() {
    const ROUNDS: usize = 40;
    const AT_ONCE: usize = 4;
    let seed = Seed::with_groups(&[]).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(seed.client.clone());
    for round in 0..ROUNDS {
        let numbers = round * AT_ONCE..(round + 1) * AT_ONCE;
        let creations = numbers.clone().map(|number| {
            let definitions = definitions.clone();
            tokio::spawn(async move { definitions.create(&PostParams::default(), &definition(number)).await })
        });
        for created in creations.collect::<Vec<_>>() {
            created.await.unwrap().unwrap();
        }
        for number in numbers {
            let kind = GroupVersionKind::gvk("example.com", "v1", &format!("Thing{number}"));
            let resource = ApiResource::from_gvk_with_plural(&kind, &format!("things{number}"));
            let api: Api<DynamicObject> = Api::all_with(seed.client.clone(), &resource);
            assert_eq!(
                api.list(&ListParams::default()).await.unwrap().items.len(),
                0,
                "{kind:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_watch_ends_when_its_kind_is_no_longer_what_it_was() {
    let seed = Seed::with_groups(&[]).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(seed.client.clone());
    definitions
        .create(&PostParams::default(), &definition(0))
        .await
        .unwrap();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Thing0"), "things0");
    let things: Api<DynamicObject> = Api::all_with(seed.client.clone(), &resource);
    let watch = things.watch(&WatchParams::default(), "0").await.unwrap();
    let added = watch.filter_map(|event| async move {
        match event.unwrap() {
            WatchEvent::Added(thing) => thing.metadata.name,
            _ => None,
        }
    });
    let mut added = Box::pin(added);
    let change = async |change| {
        let name = "things0.example.com";
        definitions
            .patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await
            .unwrap();
    };
    // what is said of the definition does not matter to its objects
    change(json!({"metadata": {"labels": {"a": "b"}}})).await;
    for name in ["one", "two"] {
        let thing = DynamicObject::new(name, &resource);
        things.create(&PostParams::default(), &thing).await.unwrap();
    }
    assert_eq!(added.next().await.as_deref(), Some("one"));
    change(json!({"spec": {"names": {"shortNames": ["th"]}}})).await;
    // what came before is told first
    assert_eq!(added.next().await.as_deref(), Some("two"));
    assert_eq!(added.next().await, None);
}
