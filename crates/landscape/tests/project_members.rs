//! What the members of a project may do in it by their roles, and what those may do who run the garden: AUTH-50 to AUTH-54.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::time::Duration;

use gardener_apis::core::v1beta1::Project;
use gardener_apiserver::UserInfo;
use gardener_testkit::landscape::Landscape;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

const CORE: &str = "core.gardener.cloud";
const OWN: &str = "garden-local";

/// Whether a user may do something, as the API itself tells them. `resource` is `<resource>[/<subresource>]`.
async fn may(
    landscape: &Landscape,
    user: &str,
    verb: &str,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let asked = json!({"spec": {"resourceAttributes": {
        "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name}}});
    let client = landscape
        .server()
        .client("garden", UserInfo::new(user, &["system:authenticated"]));
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
    let review = serde_json::from_value(asked).unwrap();
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

#[tokio::test(start_paused = true)]
async fn auth_50_members_may_do_what_their_roles_say() {
    let landscape = Landscape::start(1).await;
    let member = |name: &str, role: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name, "role": role});
    let roles = ["admin", "viewer", "uam", "serviceaccountmanager"];
    let members: Vec<_> = roles.iter().map(|role| member(role, role)).collect();
    let projects: Api<Project> = Api::all(landscape.garden());
    projects
        .patch(
            "local",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {"members": members}})),
        )
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    // verb, group, resource, namespace, name: who may
    type Case = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static [&'static str],
    );
    let cases: &[Case] = &[
        ("create", CORE, "shoots", OWN, "", &["admin"]),
        ("delete", CORE, "shoots", OWN, "x", &["admin"]),
        ("list", CORE, "shoots", OWN, "", &["admin", "viewer"]),
        ("list", CORE, "shoots", "garden-other", "", &[]),
        ("list", CORE, "shoots", "", "", &[]),
        ("update", CORE, "shoots/status", OWN, "x", &[]),
        ("update", CORE, "shoots/binding", OWN, "x", &[]),
        ("create", CORE, "shoots/adminkubeconfig", OWN, "x", &["admin"]),
        (
            "create",
            CORE,
            "shoots/viewerkubeconfig",
            OWN,
            "x",
            &["admin", "viewer"],
        ),
        ("get", "", "secrets", OWN, "x", &["admin"]),
        ("list", "", "configmaps", OWN, "", &["admin", "viewer"]),
        ("create", "", "configmaps", OWN, "", &["admin"]),
        ("get", CORE, "internalsecrets", OWN, "x", &[]),
        ("get", CORE, "shootstates", OWN, "x", &[]),
        ("list", CORE, "namespacedcloudprofiles", OWN, "", &["admin", "viewer"]),
        ("deletecollection", CORE, "namespacedcloudprofiles", OWN, "", &[]),
        (
            "create",
            "security.gardener.cloud",
            "workloadidentities",
            OWN,
            "",
            &["admin"],
        ),
        (
            "get",
            "security.gardener.cloud",
            "workloadidentities",
            OWN,
            "x",
            &["admin"],
        ),
        (
            "create",
            "security.gardener.cloud",
            "workloadidentities/token",
            OWN,
            "x",
            &[],
        ),
        ("create", "operations.gardener.cloud", "bastions", OWN, "", &["admin"]),
        (
            "create",
            "rbac.authorization.k8s.io",
            "rolebindings",
            OWN,
            "",
            &["admin"],
        ),
        (
            "get",
            "",
            "serviceaccounts",
            OWN,
            "x",
            &["admin", "viewer", "serviceaccountmanager"],
        ),
        ("create", "", "serviceaccounts", OWN, "", &["serviceaccountmanager"]),
        (
            "create",
            "",
            "serviceaccounts/token",
            OWN,
            "x",
            &["serviceaccountmanager"],
        ),
        ("get", CORE, "projects", "", "local", &["admin", "viewer", "uam"]),
        ("get", CORE, "projects", "", "garden", &[]),
        ("patch", CORE, "projects", "", "local", &["admin", "uam"]),
        ("delete", CORE, "projects", "", "local", &["admin"]),
        ("manage-members", CORE, "projects", "", "local", &["uam"]),
        ("create", CORE, "projects", "", "", &[]),
        ("get", "", "namespaces", OWN, OWN, &["admin", "viewer"]),
        (
            "list",
            CORE,
            "cloudprofiles",
            "",
            "",
            &["admin", "viewer", "uam", "serviceaccountmanager", "stranger"],
        ),
        ("update", CORE, "cloudprofiles", "", "x", &[]),
    ];
    for (verb, group, resource, namespace, name, expected) in cases {
        for user in roles.iter().chain(&["stranger"]) {
            let found = may(&landscape, user, verb, group, resource, namespace, name).await;
            assert_eq!(
                found,
                expected.contains(user),
                "{user}: {verb} {resource}.{group} {name} in {namespace:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn auth_54_cva_6_operators_get_what_the_aggregated_roles_collect() {
    let landscape = Landscape::start(1).await;
    let bindings: Api<ClusterRoleBinding> = Api::all(landscape.garden());
    for (user, role) in [("operator", "administrators"), ("watcher", "viewers")] {
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("gardener.cloud:system:{role}")},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let binding = serde_json::from_value(binding).unwrap();
        bindings.create(&PostParams::default(), &binding).await.unwrap();
    }
    let roles: Api<ClusterRole> = Api::all(landscape.garden());
    let extension = json!({
        "metadata": {"name": "extension", "labels": {"gardener.cloud/role": "admin"}},
        "rules": [{"apiGroups": ["extension.example"], "resources": ["things"], "verbs": ["get"]}],
    });
    let extension = serde_json::from_value(extension).unwrap();
    roles.create(&PostParams::default(), &extension).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("manage-members", CORE, "projects", &["operator"]),
        ("modify-spec-tolerations-whitelist", CORE, "projects", &["operator"]),
        (
            "modify-spec-machineimages",
            CORE,
            "namespacedcloudprofiles",
            &["operator"],
        ),
        ("mark-self-hosted", CORE, "shoots", &["operator"]),
        ("list", CORE, "shoots", &["operator", "watcher"]),
        ("update", CORE, "seeds", &["operator"]),
        ("list", CORE, "seeds", &["operator", "watcher"]),
        (
            "list",
            "seedmanagement.gardener.cloud",
            "managedseeds",
            &["operator", "watcher"],
        ),
        ("get", "", "secrets", &["operator"]),
        ("create", "security.gardener.cloud", "workloadidentities", &["operator"]),
        ("create", "security.gardener.cloud", "workloadidentities/token", &[]),
        ("get", "security.gardener.cloud", "workloadidentities", &["operator"]),
        (
            "approve",
            "certificates.k8s.io",
            "certificatesigningrequests",
            &["operator"],
        ),
        ("get", "extension.example", "things", &["operator"]),
        ("delete", "", "nodes", &[]),
    ];
    for (verb, group, resource, expected) in cases {
        for user in ["operator", "watcher"] {
            let found = may(&landscape, user, verb, group, resource, "", "").await;
            assert_eq!(found, expected.contains(&user), "{user}: {verb} {resource}.{group}");
        }
    }
}
