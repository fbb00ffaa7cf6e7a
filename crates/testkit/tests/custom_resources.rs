//! Kinds that come while others come.
#![allow(clippy::unwrap_used)] // memory does not refuse

use gardener_testkit::seed::Seed;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
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
