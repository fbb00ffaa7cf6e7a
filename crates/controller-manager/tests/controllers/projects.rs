//! Projects [GCM-1]–[GCM-7].

use std::sync::Arc;

use gardener_apimachinery::duration::Duration;
use gardener_controller_manager::Config;
use gardener_controller_manager::configuration::{Controllers, read};
use serde_json::json;

use crate::harness::*;

const ROLE_BINDING: (&str, &str) = ("rbac.authorization.k8s.io/v1", "RoleBinding");
const QUOTA: (&str, &str) = ("v1", "ResourceQuota");

fn configured(garden: &Garden, controllers: &str) -> Config {
    let head = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration";
    let (configuration, _) = read(&format!("{head}\ncontrollers: {controllers}")).unwrap();
    Config {
        controllers: Arc::new(configuration.controllers),
        ..garden.manager()
    }
}

#[tokio::test(start_paused = true)]
async fn w45_gcm_1_2_4_5_a_project_gets_its_namespace_roles_and_quota() {
    let garden = Garden::open().await;
    let quota = "{project: {quotas: [{config: {spec: {hard: {count/pods: '1'}}}, projectSelector: {matchLabels: {other: x}}}, \
        {config: {metadata: {labels: {a: b}}, spec: {hard: {count/secrets: '50', count/shoots.core.gardener.cloud: '20'}}}}]}}";
    let stop = garden.start(configured(&garden, quota));
    garden
        .create(json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": "dev"}}))
        .await
        .unwrap();
    garden.pass("10s").await;
    let project = garden.get(CORE, "Project", "", "dev").await.unwrap();
    assert_eq!(project["status"]["phase"], "Ready", "{project}");
    assert_eq!(
        project["status"]["observedGeneration"],
        project["metadata"]["generation"]
    );
    let namespace = project["spec"]["namespace"].as_str().unwrap().to_owned();
    assert!(
        namespace.starts_with("garden-dev-") && namespace.len() == "garden-dev-".len() + 5,
        "{namespace}"
    );
    let made = garden.get("v1", "Namespace", "", &namespace).await.unwrap();
    assert_eq!(made["metadata"]["labels"]["project.gardener.cloud/name"], "dev");
    assert_eq!(
        made["metadata"]["annotations"]["namespace.gardener.cloud/project"],
        project["metadata"]["uid"]
    );
    assert_eq!(
        made["metadata"]["annotations"]["namespace.gardener.cloud/created-by-project-controller"],
        "true"
    );
    assert_eq!(garden.reasons("default", "dev").await, ["NamespaceReconcileSuccessful"]);

    // [GCM-5]: 20 shoots need 80 secrets
    let own = garden.get("v1", "ResourceQuota", &namespace, "gardener").await.unwrap();
    assert_eq!(
        own["spec"]["hard"],
        json!({"count/secrets": "80", "count/shoots.core.gardener.cloud": "20"})
    );
    assert_eq!(own["metadata"]["labels"]["a"], "b");
    assert_eq!(
        own["metadata"]["annotations"],
        json!({"quota.gardener.cloud/secrets-per-shoot": "4"})
    );
    assert_eq!(own["metadata"]["ownerReferences"][0]["name"], "dev");
    // [GCM-4]: what an operator changed stays, and comes back if it goes
    let changed = json!({"spec": {"hard": {"count/secrets": "900", "count/shoots.core.gardener.cloud": "30"}}});
    garden.merge(QUOTA, &namespace, "gardener", changed).await;
    // [GCM-1]: bindings are repaired
    let member = "gardener.cloud:system:project-member";
    let bindings = garden.api(ROLE_BINDING.0, ROLE_BINDING.1, &namespace);
    bindings.delete(member, &Default::default()).await.unwrap();
    garden
        .merge(
            ROLE_BINDING,
            &namespace,
            "gardener.cloud:system:project-viewer",
            json!({"subjects": [
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}]}),
        )
        .await;
    garden.pass("10s").await;
    assert!(
        garden
            .get(ROLE_BINDING.0, ROLE_BINDING.1, &namespace, member)
            .await
            .is_some()
    );
    let viewers = garden
        .field(
            ROLE_BINDING,
            &namespace,
            "gardener.cloud:system:project-viewer",
            "/subjects",
        )
        .await;
    assert!(viewers.as_array().is_none_or(Vec::is_empty), "{viewers}");
    let limits = garden.field(QUOTA, &namespace, "gardener", "/spec/hard").await;
    assert_eq!(
        limits,
        json!({"count/secrets": "900", "count/shoots.core.gardener.cloud": "30"})
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_2_3_namespaces_of_others_are_left_alone_and_adopted_ones_kept() {
    let garden = Garden::open().await;
    let stop = garden.start_manager();
    let namespace = |name: &str, labels: serde_json::Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let own = json!({"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"});
    garden.create(namespace("garden-dev", own)).await.unwrap();
    garden.create(namespace("garden-bare", json!({}))).await.unwrap();
    let project = |name: &str, namespace: &str| json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": name}, "spec": {"namespace": namespace}});
    garden.create(project("dev", "garden-dev")).await.unwrap();
    garden.create(project("bare", "garden-bare")).await.unwrap();
    garden.pass("10s").await;
    assert_eq!(garden.field(PROJECT, "", "dev", "/status/phase").await, "Ready");
    assert_eq!(garden.field(PROJECT, "", "bare", "/status/phase").await, "Failed");
    assert_eq!(garden.reasons("default", "bare").await[0], "NamespaceReconcileFailed");
    garden.delete(PROJECT, "", "dev").await;
    garden.pass("10s").await;
    assert!(garden.get(CORE, "Project", "", "dev").await.is_none());
    let left = garden.get("v1", "Namespace", "", "garden-dev").await.unwrap();
    assert_eq!(left["metadata"]["annotations"], serde_json::Value::Null, "{left}");
    assert_eq!(
        left["metadata"]["labels"],
        json!({"kubernetes.io/metadata.name": "garden-dev"})
    );
    assert_eq!(left["metadata"]["ownerReferences"], serde_json::Value::Null);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_6_7_who_is_not_used_is_deleted_in_the_end() {
    let garden = Garden::with_project().await;
    let mut controllers = Controllers::default();
    let project = &mut controllers.project;
    (
        project.minimum_lifetime_days,
        project.stale_grace_period_days,
        project.stale_expiration_time_days,
    ) = (1, 1, 2);
    project.stale_sync_period = Duration::from_secs(3600);
    let config = Config {
        controllers: Arc::new(controllers),
        ..garden.manager()
    };
    let stop = garden.start(config);
    garden.create(shoot("one")).await.unwrap();
    garden.pass("1m").await;
    let told = async || garden.field(PROJECT, "", "local", "/status").await;
    assert!(told().await["lastActivityTimestamp"].as_str().unwrap() < "2026-01-01T00:01:00Z");
    garden.until("2026-01-02T12:00:00Z".parse().unwrap()).await;
    assert_eq!(
        told().await["staleSinceTimestamp"],
        serde_json::Value::Null,
        "a shoot is a use"
    );
    garden.delete(SHOOT, NS, "one").await;
    garden.let_go(SHOOT, NS, "one").await;
    garden.pass("1m").await;
    assert_eq!(
        told().await["lastActivityTimestamp"],
        "2026-01-02T12:00:00Z",
        "a deletion is one, too"
    );
    garden.until("2026-01-03T14:00:00Z".parse().unwrap()).await;
    let since = told().await["staleSinceTimestamp"].as_str().unwrap().to_owned();
    assert!(since.starts_with("2026-01-03T1"), "{since}");
    garden.until("2026-01-04T16:00:00Z".parse().unwrap()).await;
    let date = told().await["staleAutoDeleteTimestamp"].as_str().unwrap().to_owned();
    assert!(date.starts_with("2026-01-05T1"), "{date}");
    garden.until("2026-01-05T16:00:00Z".parse().unwrap()).await;
    assert!(garden.get(CORE, "Project", "", "local").await.is_none());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn adm_1_a_resource_quota_bounds_the_objects_of_a_namespace() {
    let garden = Garden::open().await;
    for name in ["a", "b"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        garden.create(namespace).await.unwrap();
    }
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "a"},
        "spec": {"hard": {"count/configmaps": "3", "count/projects.core.gardener.cloud": "0", "count/quotas.core.gardener.cloud": "1"}}});
    garden.create(quota).await.unwrap();
    let map = |namespace: &str, number: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c-{number}"), "namespace": namespace}});
    // all at once, and none is there yet when the last is looked at
    let all = futures::future::join_all((0..8).map(|number| garden.create(map("a", number)))).await;
    let refused: Vec<String> = all
        .into_iter()
        .filter_map(|created| created.err().map(|error| error.to_string()))
        .collect();
    assert_eq!(refused.len(), 5, "{refused:?}");
    assert!(
        refused.iter().all(|why| why.contains(
            "is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"
        )),
        "{refused:?}"
    );
    // of another namespace, or another kind
    garden.create(map("b", 0)).await.unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"}});
    garden.create(secret).await.unwrap();
    // who goes makes room, for one
    garden.delete(("v1", "ConfigMap"), "a", "c-0").await;
    garden.create(map("a", 8)).await.unwrap();
    garden.create(map("a", 9)).await.unwrap_err();
    // Gardener's kinds, too; what was refused for another reason takes no room
    let own = |name: &str, days: i32| {
        json!({"apiVersion": CORE, "kind": "Quota", "metadata": {"name": name, "namespace": "a"},
            "spec": {"clusterLifetimeDays": days, "scope": {"apiVersion": CORE, "kind": "Project"}, "metrics": {}}})
    };
    garden.create(own("bad", -1)).await.unwrap_err();
    garden.create(own("one", 1)).await.unwrap();
    let refused = garden.create(own("two", 1)).await.unwrap_err().to_string();
    assert!(
        refused.contains("quotas.core.gardener.cloud \"two\" is forbidden: exceeded quota: q, requested: count/quotas.core.gardener.cloud=1"),
        "{refused}"
    );
}
