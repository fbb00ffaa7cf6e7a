//! Which schema a request belongs to.

use serde_json::{Value, json};

use super::*;

fn level(name: &str) -> Value {
    json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name, "uid": format!("level-{name}")},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}})
}

fn schema(name: &str, precedence: i32, level: &str, subject: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name, "uid": name},
        "spec": {
            "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level},
            "rules": [{
                "subjects": [subject],
                "resourceRules": [
                    {"verbs": ["get"], "apiGroups": ["*"], "resources": ["pods", "pods/status"], "namespaces": ["a"]},
                    {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"], "clusterScope": true},
                ],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version", "/apis/*"]}],
            }],
        },
    })
}

/// Schema and level of a request, by their uids; none, where it is one of those that nobody else wants.
fn found(cluster: &Arc<LogicalCluster>, request: &Attributes<'_>) -> Option<(String, String)> {
    let user = Arc::new(request.user.clone());
    let incoming = Incoming {
        asks: request,
        query: &Query::default(),
        method: &Method::GET,
        uri: &Uri::from_static("/"),
        user: &user,
    };
    let (flow, _) = cluster.flow_control()?.enter(cluster, &incoming)?;
    let mut headers = HeaderMap::new();
    flow.tell(&mut headers);
    let told = |name: &HeaderName| headers[name].to_str().unwrap().to_owned();
    Some((told(&SCHEMA_UID), told(&LEVEL_UID))).filter(|(schema, _)| !schema.is_empty())
}

#[tokio::test]
async fn requests_are_of_the_first_schema_that_fits() {
    let cluster = LogicalCluster::in_memory();
    let account = json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}});
    let objects = vec![
        level("there"),
        schema("b", 10, "there", json!({"kind": "User", "user": {"name": "jane"}})),
        schema("a", 20, "there", json!({"kind": "User", "user": {"name": "jane"}})),
        schema("c", 5, "missing", json!({"kind": "User", "user": {"name": "*"}})),
        schema("d", 30, "there", json!({"kind": "Group", "group": {"name": "readers"}})),
        schema("e", 40, "there", account),
    ];
    cluster.copy_in(objects).await.unwrap();
    let of = |user: &UserInfo, verb: &str, group: &str, resource: &str, namespace: &str| {
        let request = Attributes::of_resource(user, verb, group, resource, namespace, "x");
        found(&cluster, &request).map(|(schema, _)| schema)
    };
    let jane = UserInfo::new("jane", &["readers"]);
    let joe = UserInfo::new("joe", &["readers"]);
    let robot = UserInfo::service_account("n", "robot", "");
    let other = UserInfo::service_account("nn", "robot", "");
    assert_eq!(of(&jane, "get", "", "pods", "a").as_deref(), Some("b"));
    assert_eq!(of(&joe, "get", "", "pods/status", "a").as_deref(), Some("d"));
    assert_eq!(of(&robot, "get", "x", "pods", "a").as_deref(), Some("e"));
    for (verb, group, resource, namespace) in [
        ("list", "", "pods", "a"),
        ("get", "", "pods/log", "a"),
        ("get", "", "pods", "b"),
        ("get", "", "pods", ""),
        ("get", "apps", "deployments", "b"),
    ] {
        assert_eq!(of(&joe, verb, group, resource, namespace), None, "{verb} {resource}");
    }
    assert_eq!(of(&joe, "list", "apps", "deployments/scale", "").as_deref(), Some("d"));
    assert_eq!(of(&other, "get", "", "pods", "a"), None);
    let path = |path: &str| {
        let request = Attributes {
            path,
            is_resource: false,
            ..Attributes::of_resource(&joe, "get", "", "", "", "")
        };
        found(&cluster, &request).is_some()
    };
    assert!(path("/version") && path("/version/x") && path("/apis/apps"));
    assert!(!path("/apis") && !path("/versions"));
    // a level that comes to be counts from then on
    cluster.copy_in(vec![level("missing")]).await.unwrap();
    let request = Attributes::of_resource(&other, "get", "", "pods", "a", "x");
    assert_eq!(
        found(&cluster, &request),
        Some(("c".to_owned(), "level-missing".to_owned()))
    );
}
