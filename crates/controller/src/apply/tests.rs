use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::*;
use crate::fake::Fake;

fn config_map(value: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some("a".into()),
            namespace: Some("n".into()),
            ..Default::default()
        },
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..Default::default()
    }
}

fn set(value: &'static str) -> impl Fn(&mut ConfigMap) {
    move |object| {
        let data = object.data.get_or_insert_default();
        data.insert("key".into(), value.into());
    }
}

#[tokio::test]
async fn what_changes_nothing_is_not_sent() {
    let fake = Fake::new();
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let path = "/api/v1/namespaces/n/configmaps";
    let empty = config_map("");
    let (_, outcome) = create_or_patch(&api, empty.clone(), set("1")).await.unwrap();
    assert_eq!(outcome, Outcome::Created);
    assert_eq!(fake.writes(), [format!("POST {path}")]);
    for (value, expected, writes) in [
        ("1", Outcome::Unchanged, vec![]),
        ("2", Outcome::Updated, vec![format!("PATCH {path}/a")]),
        ("2", Outcome::Unchanged, vec![]),
    ] {
        let (object, outcome) = create_or_patch(&api, empty.clone(), set(value)).await.unwrap();
        assert_eq!((outcome, fake.writes()), (expected, writes));
        assert_eq!(object.data.unwrap()["key"], value);
    }
    for (value, expected, writes) in [
        ("2", Outcome::Unchanged, vec![]),
        ("3", Outcome::Updated, vec![format!("PUT {path}/a")]),
    ] {
        let (_, outcome) = create_or_update(&api, empty.clone(), set(value)).await.unwrap();
        assert_eq!((outcome, fake.writes()), (expected, writes));
    }
    assert!(delete(&api, "a").await.unwrap());
    assert!(!delete(&api, "a").await.unwrap());
}

#[tokio::test]
async fn finalizers_are_guarded_by_the_version() {
    let fake = Fake::new();
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let stale = api.create(&PostParams::default(), &config_map("1")).await.unwrap();
    let (object, outcome) = add_finalizer(&api, &stale, "gardener").await.unwrap();
    assert_eq!(outcome, Outcome::Updated);
    assert!(has_finalizer(&object, "gardener"));
    let (_, outcome) = add_finalizer(&api, &object, "gardener").await.unwrap();
    assert_eq!(outcome, Outcome::Unchanged);
    let refused = add_finalizer(&api, &stale, "other").await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let outcome = remove_finalizer(&api, &object, "gardener").await.unwrap();
    assert_eq!(outcome, Outcome::Updated);
    delete(&api, "a").await.unwrap();
    let outcome = remove_finalizer(&api, &object, "gardener").await.unwrap();
    assert_eq!(outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn status_goes_to_its_subresource() {
    let fake = Fake::new();
    let path = "/api/v1/namespaces/n/pods/a";
    fake.put(
        path,
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}),
    );
    let api: Api<Pod> = Api::namespaced(fake.client(), "n");
    let pod = api.get("a").await.unwrap();
    let mutate = |pod: &mut Pod| pod.status.get_or_insert_default().phase = Some("Running".into());
    let (pod, outcome) = patch_status(&api, &pod, mutate).await.unwrap();
    assert_eq!(outcome, Outcome::Updated);
    assert_eq!(fake.writes(), [format!("PATCH {path}/status")]);
    let (_, outcome) = patch_status_locked(&api, &pod, mutate).await.unwrap();
    assert_eq!(outcome, Outcome::Unchanged);
}
