//! What recordings of kube-apiserver cannot tell: parameters of custom resources, what acts at once, what is compiled once, and what stays
//! within bounds. What policies answer is in `conformance/sequences/judging.yaml`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::testing::Api;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Api {
    async fn policy(&self, name: &str, more: &Value) {
        let mut spec = json!({"matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]},
        ]}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let policy = json!({"metadata": {"name": name}, "spec": spec});
        let path = format!("{GROUP}/validatingadmissionpolicies");
        self.create(&path, &policy).await.unwrap();
    }

    async fn bind(&self, name: &str, more: &Value) {
        let mut spec = json!({"policyName": name, "validationActions": ["Deny"]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let binding = json!({"metadata": {"name": name}, "spec": spec});
        let path = format!("{GROUP}/validatingadmissionpolicybindings");
        self.create(&path, &binding).await.unwrap();
    }

    /// Why a ConfigMap with these data is not created, if it is not.
    async fn refusal(&self, data: Value) -> Option<String> {
        let path = format!("{MAPS}?dryRun=All");
        let object = json!({"metadata": {"name": "a"}, "data": data});
        self.create(&path, &object).await.err()
    }
}

fn denied(policy: &str, why: &str) -> Option<String> {
    let by = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request");
    Some(format!("configmaps \"a\" is forbidden: {by}: {why}"))
}

#[tokio::test]
async fn a_refusal_is_a_status_with_a_cause() {
    let api = Api::open().await;
    let validations = json!([{"expression": "false", "message": "never", "reason": "Forbidden"}]);
    api.policy("p", &json!({"validations": validations})).await;
    api.bind("p", &json!({})).await;
    let object = json!({"metadata": {"generateName": "made-"}});
    let mut status = api.ask("POST", MAPS, &object).await.unwrap_err();
    let name = status["details"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    let why = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: never";
    status.as_object_mut().unwrap().remove("metadata");
    assert_eq!(
        status,
        json!({
            "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": format!("configmaps {name:?} is forbidden: {why}"),
            "details": {"name": name, "kind": "configmaps", "causes": [{"message": why}]},
        })
    );
}

#[tokio::test]
async fn what_changes_acts_at_once() {
    let api = Api::open().await;
    let of = |message: &str| json!([{"expression": "object.data.k == 'fine'", "message": message}]);
    let bad = || json!({"k": "bad"});
    let policy = format!("{GROUP}/validatingadmissionpolicies/p");
    let binding = format!("{GROUP}/validatingadmissionpolicybindings/p");
    // a binding may be there before its policy
    api.bind("p", &json!({})).await;
    assert_eq!(api.refusal(bad()).await, None);
    api.policy("p", &json!({"validations": of("one")})).await;
    assert_eq!(api.refusal(bad()).await, denied("p", "one"));
    assert_eq!(api.refusal(json!({"k": "fine"})).await, None);
    let patch = json!({"spec": {"validations": of("two")}});
    let patched = api.ask("PATCH", &policy, &patch).await.unwrap();
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(api.refusal(bad()).await, denied("p", "two"));
    let warn = json!({"spec": {"validationActions": ["Warn", "Audit"]}});
    api.ask("PATCH", &binding, &warn).await.unwrap();
    assert_eq!(api.refusal(bad()).await, None);
    let deny = json!({"spec": {"validationActions": ["Deny"]}});
    api.ask("PATCH", &binding, &deny).await.unwrap();
    assert!(api.refusal(bad()).await.is_some());
    api.ask("DELETE", &binding, &Value::Null).await.unwrap();
    assert_eq!(api.refusal(bad()).await, None);
}

#[tokio::test]
async fn parameters_may_be_custom_resources() {
    let api = Api::open().await;
    let validations = json!([{
        "expression": "int(object.data.n) <= params.spec.max",
        "messageExpression": "params.apiVersion + ': ' + string(params.spec.max)",
    }]);
    let kind = json!({"apiVersion": "rules.example.com/v1", "kind": "Limit"});
    api.policy("p", &json!({"validations": validations, "paramKind": kind}))
        .await;
    let reference = json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}});
    api.bind("p", &reference).await;
    let missing = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'";
    assert_eq!(api.refusal(json!({"n": "1"})).await.as_deref(), Some(missing));
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, stored: bool| json!({"name": name, "served": true, "storage": stored, "schema": schema});
    let definition = json!({"metadata": {"name": "limits.rules.example.com"}, "spec": {
        "group": "rules.example.com", "scope": "Namespaced", "names": {"plural": "limits", "kind": "Limit"},
        "versions": [version("v1", false), version("v2", true)],
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.create(definitions, &definition).await.unwrap();
    // no parameters: nothing is judged
    assert_eq!(api.refusal(json!({"n": "9"})).await, None);
    for (namespace, max) in [("default", 3), ("kube-system", 1)] {
        let path = format!("/apis/rules.example.com/v2/namespaces/{namespace}/limits");
        let limit = json!({"apiVersion": "rules.example.com/v2", "kind": "Limit", "metadata": {"name": "l"}, "spec": {"max": max}});
        api.create(&path, &limit).await.unwrap();
    }
    // those of the request's own namespace, in the policy's version
    assert_eq!(api.refusal(json!({"n": "2"})).await, None);
    let too_many = denied("p", "rules.example.com/v1: 3");
    assert_eq!(api.refusal(json!({"n": "4"})).await, too_many);
}

#[tokio::test]
async fn what_does_not_change_is_compiled_once() {
    let api = Api::open().await;
    let validations = || json!({"validations": [{"expression": "true"}]});
    for name in ["a", "b"] {
        api.policy(name, &validations()).await;
        api.bind(name, &json!({})).await;
    }
    assert_eq!(api.refusal(json!({})).await, None);
    let before = api.cluster.policies().policies(&api.cluster);
    assert_eq!(api.refusal(json!({})).await, None);
    let same = api.cluster.policies().policies(&api.cluster);
    assert!(Arc::ptr_eq(&before, &same));
    let patch = json!({"spec": {"failurePolicy": "Ignore"}});
    api.ask("PATCH", &format!("{GROUP}/validatingadmissionpolicies/b"), &patch)
        .await
        .unwrap();
    let after = api.cluster.policies().policies(&api.cluster);
    let kept: Vec<bool> = before
        .iter()
        .zip(after.iter())
        .map(|(a, b)| Arc::ptr_eq(a, b))
        .collect();
    assert_eq!(kept, [true, false]);
}

#[tokio::test]
async fn nothing_is_judged_where_nothing_is_bound() {
    let api = Api::open().await;
    api.policy("p", &json!({"validations": [{"expression": "false"}]}))
        .await;
    assert_eq!(api.refusal(json!({})).await, None);
    // not even compiled
    assert!(api.cluster.policies().policies.lock().last().is_empty());
}

#[tokio::test]
async fn who_judges_a_status_sees_the_whole_object() {
    let api = Api::open().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    api.create(deployments, &json!({"metadata": {"name": "d"}, "spec": spec}))
        .await
        .unwrap();
    let resources = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/status"], "operations": ["*"]}]);
    let expression = "object.status.replicas <= object.spec.replicas && object.spec == oldObject.spec";
    let more = json!({
        "matchConstraints": {"resourceRules": resources},
        "validations": [{"expression": expression, "message": "too many"}],
    });
    api.policy("p", &more).await;
    let at = format!("{deployments}/d/status");
    let write = async |replicas| {
        let written = api.ask("PATCH", &at, &json!({"status": {"replicas": replicas}})).await;
        written.map_err(|status| status["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(write(5).await.unwrap()["status"]["replicas"], 5, "nothing is bound yet");
    api.bind("p", &json!({})).await;
    let why = write(4).await.unwrap_err();
    assert!(why.ends_with("too many"), "{why}");
    assert_eq!(write(2).await.unwrap()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn variables_stay_within_bounds() {
    let api = Api::open().await;
    let chain = |length: usize| {
        let mut variables = vec![json!({"name": "v0", "expression": "1"})];
        let next = |at: usize| json!({"name": format!("v{at}"), "expression": format!("variables.v{} + 1", at - 1)});
        variables.extend((1..length).map(next));
        let last = format!("variables.v{} == {length}", length - 1);
        json!({"variables": variables, "validations": [{"expression": last}]})
    };
    // names for one another, and twice the same one
    let circle = json!({
        "variables": [
            {"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a"}, {"name": "a", "expression": "variables.b"},
        ],
        "validations": [{"expression": "variables.a == 1"}],
    });
    // each is within what one may cost, all together are not
    let costly = "object.data.text.matches('a')".to_owned() + &" || object.data.text.matches('a')".repeat(90);
    let many: Vec<Value> = (0..30)
        .map(|at| json!({"name": format!("v{at}"), "expression": costly}))
        .collect();
    let sum: Vec<String> = (0..30).map(|at| format!("variables.v{at}")).collect();
    let costly = json!({"variables": many, "validations": [{"expression": sum.join(" || ")}]});
    let spent = "validation failed due to running out of cost budget, no further validation rules will be run";
    for (name, more, wanted) in [
        ("short", chain(60), None),
        ("long", chain(3000), Some("variables stand in each other too deeply")),
        ("circle", circle, Some("it stands in itself")),
        ("costly", costly, Some(spent)),
    ] {
        api.policy(name, &more).await;
        api.bind(name, &json!({})).await;
        let refused = api.refusal(json!({"text": "b".repeat(100_000)})).await;
        match (wanted, &refused) {
            (None, None) => {}
            (Some(wanted), Some(refused)) if refused.contains(wanted) => {}
            _ => panic!("{name}: {refused:?}"),
        }
        let binding = format!("{GROUP}/validatingadmissionpolicybindings/{name}");
        api.ask("DELETE", &binding, &Value::Null).await.unwrap();
    }
}

/// The deepest that variables can stand in each other, with the deepest expressions that there are.
#[tokio::test]
async fn the_deepest_variables_have_room() {
    let api = Api::open().await;
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(38), "]".repeat(38) + &"[0]".repeat(38));
    let variables = |length: usize| {
        let next = |at: usize| json!({"name": format!("v{at}"), "expression": deep(&format!("variables.v{}", at - 1))});
        let first = json!({"name": "v0", "expression": "1"});
        let all: Vec<Value> = std::iter::once(first).chain((1..length).map(next)).collect();
        let last = format!("variables.v{} == 1", length - 1);
        json!({"variables": all, "validations": [{"expression": last}]})
    };
    api.policy("p", &variables(3)).await;
    api.bind("p", &json!({})).await;
    assert_eq!(api.refusal(json!({})).await, None);
    api.policy("q", &variables(4)).await;
    api.bind("q", &json!({})).await;
    let refused = api.refusal(json!({})).await.unwrap_or_default();
    assert!(
        refused.ends_with("variables stand in each other too deeply"),
        "{refused}"
    );
}
