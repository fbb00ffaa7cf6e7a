//! The server notes in FlowSchemas whether the levels that they refer to exist.
#![allow(clippy::unwrap_used)] // memory does not refuse

use gardener_testkit::cluster::MemoryClusters;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// What the condition is once it tells what it should, or at last.
async fn dangling(schemas: &Api<FlowSchema>, name: &str, wanted: &str) -> Option<String> {
    let mut told = None;
    for _ in 0..1000 {
        let schema = schemas.get(name).await.unwrap();
        let conditions = schema.status.and_then(|status| status.conditions).unwrap_or_default();
        let own = conditions.into_iter().find(|own| own.type_ == "Dangling");
        told = own.and_then(|own| own.status);
        if told.as_deref() == Some(wanted) {
            break;
        }
        tokio::task::yield_now().await;
    }
    told
}

#[tokio::test]
async fn dangling_follows_the_levels() {
    let clusters = MemoryClusters::new();
    let client = clusters.open("flows").await;
    let (schemas, levels): (Api<FlowSchema>, Api<PriorityLevelConfiguration>) =
        (Api::all(client.clone()), Api::all(client));
    let schema: FlowSchema = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {"priorityLevelConfiguration": {"name": "late"}, "rules": [{
            "subjects": [{"kind": "User", "user": {"name": "u"}}], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        }]},
    }))
    .unwrap();
    schemas.create(&PostParams::default(), &schema).await.unwrap();
    assert_eq!(dangling(&schemas, "a", "True").await.as_deref(), Some("True"));
    let level: PriorityLevelConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "late"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    }))
    .unwrap();
    levels.create(&PostParams::default(), &level).await.unwrap();
    assert_eq!(dangling(&schemas, "a", "False").await.as_deref(), Some("False"));
    levels.delete("late", &DeleteParams::default()).await.unwrap();
    assert_eq!(dangling(&schemas, "a", "True").await.as_deref(), Some("True"));
    // those that every cluster has are noted from the start
    assert_eq!(dangling(&schemas, "exempt", "False").await.as_deref(), Some("False"));
}
