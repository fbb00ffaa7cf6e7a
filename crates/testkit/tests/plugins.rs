//! Admission plugins that act on what the whole cluster has: sequences of requests that are played at the same time would disturb each other.
#![allow(clippy::unwrap_used)] // memory does not refuse

use std::fmt::Debug;

use gardener_testkit::cluster::MemoryClusters;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Creates an object, and tells of a refusal.
async fn create<K: Clone + DeserializeOwned + Serialize + Debug>(api: &Api<K>, object: Value) -> Result<K, String> {
    let object = serde_json::from_value(object).unwrap();
    let created = api.create(&PostParams::default(), &object).await;
    created.map_err(|error| error.to_string())
}

#[tokio::test]
async fn claims_and_ingresses_get_the_newest_default_class() {
    let clusters = MemoryClusters::new();
    let client = clusters.open("classes").await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
    let class_of = async |name: &str, extra: Value| {
        let mut claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        json_patch::merge(&mut claim, &extra);
        create(&claims, claim).await.unwrap().spec.unwrap().storage_class_name
    };
    assert_eq!(class_of("before", json!({})).await, None);

    let storage: Api<StorageClass> = Api::all(client.clone());
    for (name, annotation) in [
        ("b", "storageclass.beta.kubernetes.io/is-default-class"),
        ("a", "storageclass.kubernetes.io/is-default-class"),
        ("0", "storageclass.kubernetes.io/other"),
    ] {
        let class =
            json!({"metadata": {"name": name, "annotations": {annotation: "true"}}, "provisioner": "example.com/p"});
        create(&storage, class).await.unwrap();
    }
    assert_eq!(class_of("none", json!({})).await.as_deref(), Some("a"));
    assert_eq!(
        class_of("own", json!({"spec": {"storageClassName": ""}}))
            .await
            .as_deref(),
        Some("")
    );
    let annotated = json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}});
    assert_eq!(class_of("annotated", annotated).await, None);

    let classes: Api<IngressClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "i", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "example.com/c"}});
    create(&classes, class).await.unwrap();
    let ingresses: Api<Ingress> = Api::namespaced(client, "default");
    for (name, annotations, expected) in [
        ("a", json!({}), Some("i")),
        ("b", json!({"kubernetes.io/ingress.class": "other"}), None),
    ] {
        let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
        let ingress =
            json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"defaultBackend": backend}});
        let created = create(&ingresses, ingress).await.unwrap();
        assert_eq!(created.spec.unwrap().ingress_class_name.as_deref(), expected, "{name}");
    }
}

#[tokio::test]
async fn pods_are_told_where_their_node_is() {
    let clusters = MemoryClusters::new();
    let client = clusters.open("topology").await;
    let labels = json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "x"});
    let nodes: Api<Node> = Api::all(client.clone());
    create(&nodes, json!({"metadata": {"name": "n", "labels": labels}}))
        .await
        .unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    // one that the controller made already is as good
    let _ = create(&accounts, json!({"metadata": {"name": "default"}})).await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let labels = |pod: Pod| {
        let labels = pod.metadata.labels.unwrap_or_default();
        labels
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
    };
    let wanted = [
        "own=1",
        "topology.kubernetes.io/region=r",
        "topology.kubernetes.io/zone=z",
    ];
    let pod = |name: &str, spec: Value| {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"own": "1", "topology.kubernetes.io/zone": "wrong"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        json_patch::merge(&mut pod["spec"], &spec);
        pod
    };
    let created = create(&pods, pod("a", json!({"nodeName": "n"}))).await.unwrap();
    assert_eq!(labels(created), wanted);

    create(&pods, pod("b", json!({}))).await.unwrap();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n"}});
    pods.create_subresource::<Value, Value>("binding", "b", &PostParams::default(), &binding)
        .await
        .unwrap();
    assert_eq!(labels(pods.get("b").await.unwrap()), wanted);

    let gated = json!({"schedulingGates": [{"name": "g"}]});
    create(&pods, pod("gated", gated)).await.unwrap();
    let mut binding = binding;
    binding["metadata"]["name"] = "gated".into();
    let refused = pods
        .create_subresource::<Value, Value>("binding", "gated", &PostParams::default(), &binding)
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("pod gated has non-empty .spec.schedulingGates"),
        "{refused}"
    );
}

#[tokio::test]
async fn one_priority_class_is_the_default() {
    let clusters = MemoryClusters::new();
    let client = clusters.open("priorities").await;
    let classes: Api<PriorityClass> = Api::all(client);
    let class = |name: &str, default: bool| json!({"metadata": {"name": name}, "value": 7, "globalDefault": default});
    create(&classes, class("a", true)).await.unwrap();
    let refused = create(&classes, class("b", true)).await.unwrap_err();
    let why = "is forbidden: PriorityClass a is already marked as default. Only one default can exist";
    assert!(refused.contains(why), "{refused}");

    let mut other = create(&classes, class("c", false)).await.unwrap();
    other.global_default = Some(true);
    let refused = classes.replace("c", &PostParams::default(), &other).await.unwrap_err();
    assert!(refused.to_string().contains(why), "{refused}");
    let mut own = classes.get("a").await.unwrap();
    own.description = Some("x".to_owned());
    classes.replace("a", &PostParams::default(), &own).await.unwrap();
}
