//! What recordings of kube-apiserver cannot tell: how long webhooks may take.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Answer, Endpoint, Transport};
use crate::cluster::LogicalCluster;
use crate::handle::Caller;
use crate::in_flight::InFlight;
use crate::testing::Api;
use crate::user::{MASTERS, UserInfo};

/// Webhooks that take as many seconds as their URL says, then consent, and keep for how long they may take.
#[derive(Default)]
struct Slow(Mutex<Vec<(String, u64)>>);

#[async_trait]
impl Transport for Slow {
    async fn post(&self, _: &LogicalCluster, own: &Endpoint, most: Duration, body: Bytes) -> Result<Answer, String> {
        let (_, _, asked) = own.parts(most)?;
        let (path, told) = asked.trim_start_matches('/').split_once("?timeout=").unwrap();
        self.0
            .lock()
            .push((path.to_owned(), told.trim_end_matches('s').parse().unwrap()));
        let takes = path.rsplit('-').next().unwrap().parse().unwrap();
        tokio::time::sleep(Duration::from_secs(takes)).await;
        let review: Value = serde_json::from_slice(&body).unwrap();
        let response = json!({"uid": review["request"]["uid"], "allowed": true});
        let review = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
        Ok(Answer {
            status: 200,
            content_type: "application/json".to_owned(),
            body: review.to_string().into(),
        })
    }
}

/// A webhook of this name and patience.
fn hook((name, patience): &(&str, u64), failure_policy: &str) -> Value {
    json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": format!("https://h/{name}")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        "failurePolicy": failure_policy, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "timeoutSeconds": patience,
    })
}

#[tokio::test(start_paused = true)]
async fn webhooks_may_not_take_longer_than_the_caller_waits() {
    type Hooks = &'static [(&'static str, u64)];
    // the caller's patience, webhooks that change and that judge with theirs, and what each is told of it
    let cases: [(u64, Hooks, Hooks, Hooks, StatusCode); 4] = [
        (
            10,
            &[("a-0", 20), ("b-0", 5)],
            &[("c-0", 20), ("d-0", 5)],
            &[("a-0", 10), ("b-0", 5), ("c-0", 10), ("d-0", 5)],
            StatusCode::CREATED,
        ),
        (
            10,
            &[("a-1", 20), ("b-1", 5), ("c-1", 20)],
            &[("d-1", 5), ("e-1", 10), ("f-1", 20)],
            &[("a-1", 10), ("b-1", 5), ("c-1", 8), ("d-1", 5), ("e-1", 7), ("f-1", 7)],
            StatusCode::CREATED,
        ),
        // nobody is asked any more, though failures are ignored
        (
            3,
            &[("a-5", 4), ("b-1", 5)],
            &[("c-1", 5)],
            &[("a-5", 3)],
            StatusCode::GATEWAY_TIMEOUT,
        ),
        // however long he would wait
        (
            60,
            &[("a-20", 30), ("b-20", 30)],
            &[("c-1", 5)],
            &[("a-20", 30), ("b-20", 14)],
            StatusCode::GATEWAY_TIMEOUT,
        ),
    ];
    for (patience, mutating, validating, told, code) in cases {
        let (api, slow) = (Api::open().await, Arc::new(Slow::default()));
        api.cluster.webhooks().use_transport(slow.clone());
        for (plural, hooks) in [("mutating", mutating), ("validating", validating)] {
            let hooks: Vec<Value> = hooks.iter().map(|own| hook(own, "Ignore")).collect();
            let configuration = json!({"metadata": {"name": "x"}, "webhooks": hooks});
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}webhookconfigurations");
            api.create(&path, &configuration).await.unwrap();
        }
        let caller = Caller {
            cluster: "c".to_owned(),
            user: Some(UserInfo::new("admin", &[MASTERS])),
            ..Caller::default()
        };
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(b"{\"metadata\":{\"name\":\"m\"}}")))
            .unwrap();
        let limit = Some(Duration::from_secs(patience));
        let answer = api.server.serve(caller, request, limit).await;
        assert_eq!(answer.status(), code);
        if code == StatusCode::GATEWAY_TIMEOUT {
            let (form, message) = match patience {
                60 => (
                    "application/json",
                    "Timeout: request did not complete within requested timeout - context deadline exceeded",
                ),
                _ => (
                    "text/plain; charset=utf-8",
                    "Timeout: request did not complete within the allotted timeout",
                ),
            };
            assert_eq!(answer.headers()["content-type"], form);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let status: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(status["reason"], "Timeout");
            assert_eq!(status["message"], message);
            assert_eq!(status["details"], json!({}));
            // what goes on behind the answer
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        let told: Vec<_> = told
            .iter()
            .map(|(name, seconds)| ((*name).to_owned(), *seconds))
            .collect();
        assert_eq!(*slow.0.lock(), told);
        let stored = api
            .ask("GET", "/api/v1/namespaces/default/configmaps/m", &Value::Null)
            .await;
        assert_eq!(stored.is_ok(), code == StatusCode::CREATED);
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_beyond_those_that_are_served_at_once_is_refused() {
    let api = Api::open_with(|config| config.in_flight = Some(Arc::new(InFlight::new(0, 1)))).await;
    api.cluster.webhooks().use_transport(Arc::new(Slow::default()));
    let configuration = json!({"metadata": {"name": "x"}, "webhooks": [hook(&("a-20", 30), "Ignore")]});
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    api.create(path, &configuration).await.unwrap();
    let ask = |user: UserInfo, method: &str, name: &str| {
        let caller = Caller {
            cluster: "c".to_owned(),
            user: Some(user),
            outside: true,
            ..Caller::default()
        };
        let body = json!({"metadata": {"name": name}}).to_string();
        let request = Request::builder()
            .method(method)
            .uri("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        api.server.serve(caller, request, None)
    };
    let (admin, jane) = (UserInfo::new("admin", &[MASTERS]), UserInfo::new("jane", &[]));
    let slow = ask(admin.clone(), "POST", "m");
    let others = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let refused = ask(jane.clone(), "POST", "n").await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert!(refused.headers().get("x-kubernetes-pf-flowschema-uid").is_none());
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "Too many requests, please try again later.\n");
        // there are any number that read, and those who may do everything always may
        assert_eq!(ask(jane.clone(), "GET", "").await.status(), StatusCode::FORBIDDEN);
        assert_eq!(ask(admin.clone(), "POST", "o").await.status(), StatusCode::CREATED);
    };
    let (created, ()) = futures::join!(slow, others);
    assert_eq!(created.status(), StatusCode::CREATED);
    assert_eq!(ask(jane, "POST", "n").await.status(), StatusCode::FORBIDDEN);
}
