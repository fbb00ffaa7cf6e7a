use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::conditions;
use gardener_testkit::seed::{eventually, pass};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};

use super::*;
use crate::fixtures::{NAMESPACE, world};
use crate::managed_resource::{APPLIED, HEALTHY, PROGRESSING};

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind))
}

fn managed(resource: &ApiResource, object: Value) -> Arc<Managed> {
    let mut managed: Managed = serde_json::from_value(object).unwrap();
    managed.judge(resource);
    Arc::new(managed)
}

#[test]
fn grm_25_changes_count_that_change_health() {
    let resource = resource("apps/v1", "StatefulSet");
    let set = |ready: i64, label: &str| {
        let metadata = json!({"name": "a", "generation": 1, "labels": {"a": label}, "annotations": {ORIGIN: "c:n/m"}});
        let status = json!({"observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": 2});
        managed(
            &resource,
            json!({"metadata": metadata, "spec": {"replicas": 2}, "status": status}),
        )
    };
    assert_eq!(
        set(1, "x").health.unhealthy.as_deref(),
        Some("not enough ready replicas (1/2)")
    );
    assert_eq!(set(2, "x").health, Health::default());
    assert_eq!(set(2, "x").origin(), Some(ObjectRef::new("n", "m")));
    let applied = |old, new| Change::Applied { old, new };
    assert!(matters(&applied(None, set(2, "x"))));
    assert!(matters(&applied(Some(set(1, "x")), set(2, "x"))));
    assert!(!matters(&applied(Some(set(2, "x")), set(2, "y"))));
    assert!(matters(&Change::Deleted(set(2, "x"))));
}

#[test]
fn grm_27_what_is_to_be_skipped_is_healthy_and_other_kinds_are_when_they_are_there() {
    let skipped = json!({"metadata": {"name": "a", "annotations": {SKIP: "true"}}, "spec": {"replicas": 1}});
    assert_eq!(
        managed(&resource("apps/v1", "Deployment"), skipped).health,
        Health::default()
    );
    let map = json!({"metadata": {"name": "a"}, "data": {"a": "b"}});
    assert_eq!(managed(&resource("v1", "ConfigMap"), map).health, Health::default());
}

#[test]
fn writes_are_waited_for() {
    let resource = resource("v1", "ConfigMap");
    let at = |version: &str| {
        managed(
            &resource,
            json!({"metadata": {"name": "a", "resourceVersion": version}}),
        )
    };
    let (notes, place) = (Written::default(), ObjectRef::cluster_scoped("a"));
    for (seen, left) in [("9", true), ("10", false)] {
        notes.lock().insert(place.clone(), 10);
        let change = Change::Applied {
            old: None,
            new: at(seen),
        };
        forget_written(&notes, &place, &change);
        assert_eq!(notes.lock().contains_key(&place), left, "{seen}");
    }
    notes.lock().insert(place.clone(), 10);
    forget_written(&notes, &place, &Change::Deleted(at("11")));
    assert!(notes.lock().is_empty());
}

/// Status and reason of a condition.
fn told(resource: Option<&ManagedResource>, kind: &str) -> (String, String) {
    let found = resource.and_then(|resource| conditions::get(&resource.status.conditions, kind));
    found.map_or_else(Default::default, |own| (own.status.clone(), own.reason.clone()))
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// Within seconds, not with the next sync period: that is a minute.
#[tokio::test(start_paused = true)]
async fn grm_25_health_follows_the_objects() {
    let (seed, _clusters, config) = world().await;
    let target = config.target.clone();
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: default}, data: {a: b}}\n---\n\
        {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1, \
        selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, \
        spec: {containers: [{name: c, image: i}]}}}}\n";
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "objects"}, "stringData": {"objects.yaml": manifest}}))
            .unwrap();
    seed.api(NAMESPACE)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let resources: Api<ManagedResource> = seed.api(NAMESPACE);
    let resource: ManagedResource =
        serde_json::from_value(json!({"metadata": {"name": "own"}, "spec": {"secretRefs": [{"name": "objects"}]}}))
            .unwrap();
    resources.create(&PostParams::default(), &resource).await.unwrap();
    // somebody else's, taken over although it was not known
    let maps: Api<ConfigMap> = Api::namespaced(target.clone(), "default");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "map"}, "data": {"a": "old"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(crate::run(config, stop.clone()));

    let is = |kind: &'static str, wanted: (String, String)| {
        move |resource: Option<&ManagedResource>| told(resource, kind) == wanted
    };
    eventually(&resources, "own", is(HEALTHY, pair("False", "DeploymentUnhealthy"))).await;
    assert_eq!(maps.get("map").await.unwrap().data.unwrap()["a"], "b");
    let deployments: Api<Deployment> = Api::namespaced(target.clone(), "default");
    let status = json!({"status": {"observedGeneration": 1, "replicas": 1, "conditions": [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]}});
    let parameters = PatchParams::default();
    deployments
        .patch_status("web", &parameters, &Patch::Merge(status))
        .await
        .unwrap();
    pass(1).await;
    let now = resources.get("own").await.unwrap();
    assert_eq!(told(Some(&now), APPLIED), pair("True", "ApplySucceeded"));
    assert_eq!(told(Some(&now), HEALTHY), pair("True", "ResourcesHealthy"));
    assert_eq!(told(Some(&now), PROGRESSING), pair("False", "ResourcesRolledOut"));

    // what is gone is missed, and comes again
    let old = maps.get("map").await.unwrap();
    maps.delete("map", &DeleteParams::default()).await.unwrap();
    pass(1).await;
    assert_ne!(maps.get("map").await.unwrap().metadata.uid, old.metadata.uid);
    let now = resources.get("own").await.unwrap();
    assert_eq!(told(Some(&now), HEALTHY), pair("True", "ResourcesHealthy"));

    // nobody collects what a Deployment leaves behind here: it stays on its way, the other does not
    resources.delete("own", &DeleteParams::default()).await.unwrap();
    eventually(&maps, "map", |found| found.is_none()).await;
    pass(1).await;
    let now = resources.get("own").await.unwrap();
    assert_eq!(told(Some(&now), APPLIED), pair("Progressing", "DeletionPending"));
    let released = json!({"metadata": {"finalizers": null}});
    deployments
        .patch("web", &parameters, &Patch::Merge(released))
        .await
        .unwrap();
    // heard of, and not found out when it is looked at again
    pass(1).await;
    assert_eq!(resources.get_opt("own").await.unwrap(), None);
    stop.cancel();
}
