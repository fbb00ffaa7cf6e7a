use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clap::Parser;
use futures::StreamExt;
use gardener_apimachinery::chance::Chance;
use gardener_apiserver::authn::Settings;
use gardener_apiserver::handle::Caller;
use gardener_apiserver::tokens::SigningKey;
use gardener_apiserver::webhooks::{Answer, Endpoint, Transport};
use gardener_apiserver::{Server, Shared, UserInfo, object};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_store::{MemoryStore, Options};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, users: [quiet]}
- {level: RequestResponse, omitStages: [RequestReceived], resources: [{resources: [configmaps]}]}
- {level: Request, omitStages: [RequestReceived], resources: [{resources: [pods]}]}
- {level: Metadata}
"#;

/// A command of these flags alone.
#[derive(Parser)]
#[command(args_override_self = true)]
struct Command {
    #[command(flatten)]
    flags: AuditFlags,
}

fn flags(folder: &Path, more: &[&str]) -> AuditFlags {
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY).unwrap();
    let own = [
        "test".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.join("audit.log").display()),
    ];
    let all = own.into_iter().chain(more.iter().map(|flag| (*flag).to_owned()));
    Command::parse_from(all).flags
}

/// A cluster whose requests are told.
struct Told {
    server: Server,
    auditing: Mutex<Option<Auditing>>,
    folder: tempfile::TempDir,
}

impl Told {
    async fn new(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let shared = Shared {
            store: Arc::new(MemoryStore::new(object::FORM, Options::default())),
            clock: clock.clone(),
            chance: Chance::seeded(1),
        };
        let server = Server::new(shared);
        let kubernetes = EmbeddedKubernetes::load().unwrap();
        let key = SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap();
        let settings = Settings {
            signer: Some(Arc::new(key)),
            ..Settings::default()
        };
        let mut config = kubernetes.config("v1.36.3", settings);
        let auditing = Auditing::open(&flags(folder.path(), more), &clock).unwrap();
        config.audit = auditing.audit();
        assert!(config.audit.is_some());
        let auditing = Mutex::new(Some(auditing));
        server.open("c", config);
        let told = Self {
            server,
            auditing,
            folder,
        };
        let default = json!({"metadata": {"name": "default"}});
        let headers = [("Content-Type", "application/json")];
        told.ask("admin", Method::POST, "/api/v1/namespaces", &headers, &default)
            .await;
        told.forget();
        told
    }

    /// What was told is not told again.
    fn forget(&self) {
        std::fs::write(self.folder.path().join("audit.log"), "").unwrap();
    }

    async fn ask(
        &self,
        user: &str,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let user = match user {
            "admin" => UserInfo::apiserver(),
            other => UserInfo::new(other, &["people"]),
        };
        self.ask_as(Some(user), method, path, headers, body).await
    }

    async fn ask_as(
        &self,
        user: Option<UserInfo>,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let caller = Caller {
            cluster: "c".to_owned(),
            user,
            outside: true,
            from: Some("10.1.2.3".parse().unwrap()),
            ..Caller::default()
        };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = request.body(Full::from(body)).unwrap();
        let response = self.server.serve(caller, request, None).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// What was told, and is not told again.
    fn events(&self) -> Vec<Value> {
        let path = self.folder.path().join("audit.log");
        let text = std::fs::read_to_string(path).unwrap();
        self.forget();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}})
}

#[tokio::test(start_paused = true)]
async fn who_asked_for_what_is_told_with_its_outcome() {
    let told = Told::new(&[]).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "test/1"),
        ("Audit-ID", "id-1"),
        ("X-Forwarded-For", "192.0.2.1, 192.0.2.2"),
    ];
    let (code, created) = told.ask("admin", Method::POST, path, &headers, &config_map()).await;
    assert_eq!(code, 201, "{created}");
    let mut answered = created.clone();
    answered["metadata"].as_object_mut().unwrap().remove("managedFields");
    let expected = json!([{
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "id-1",
        "stage": "ResponseComplete", "requestURI": path, "verb": "create",
        "user": {"username": "system:apiserver", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["192.0.2.1", "192.0.2.2", "10.1.2.3"], "userAgent": "test/1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": config_map(), "responseObject": answered,
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z", "stageTimestamp": "2026-01-01T00:00:00.000000Z",
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }]);
    assert_eq!(json!(told.events()), expected);

    // one who may not
    let (code, refused) = told
        .ask("jane", Method::GET, &format!("{path}/a"), &[], &Value::Null)
        .await;
    assert_eq!(code, 403);
    let [event] = &told.events()[..] else { panic!() };
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
    assert_eq!(event["responseStatus"]["message"], refused["message"]);
    assert_eq!(event["responseObject"], refused);
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");

    // nothing is told of some
    told.ask("quiet", Method::GET, path, &[], &Value::Null).await;
    assert!(told.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn credentials_and_webhooks_that_fail_are_told() {
    let told = Told::new(&[]).await;
    let headers = [("Content-Type", "application/json")];
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "a"}});
    told.ask("admin", Method::POST, accounts, &headers, &account).await;
    told.events();
    let path = format!("{accounts}/a/token");
    let (code, issued) = told.ask("admin", Method::POST, &path, &headers, &json!({})).await;
    assert_eq!(code, 201, "{issued}");
    let [_, event] = &told.events()[..] else { panic!() };
    let credential = event["annotations"]["authentication.kubernetes.io/issued-credential-id"].as_str();
    assert!(credential.is_some_and(|id| id.starts_with("JTI=")), "{event}");
    // whoever shows it is told with the same
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().unwrap());
    let shown = [("Authorization", bearer.as_str())];
    told.ask_as(None, Method::GET, accounts, &shown, &Value::Null).await;
    let [_, event] = &told.events()[..] else { panic!() };
    let extra = &event["user"]["extra"]["authentication.kubernetes.io/credential-id"];
    assert_eq!(extra[0].as_str(), credential);

    let hooks = json!({"metadata": {"name": "x"}, "webhooks": [{
        "name": "h.example.com", "clientConfig": {"service": {"namespace": "default", "name": "none"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]});
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    told.ask("admin", Method::POST, path, &headers, &hooks).await;
    told.events();
    let maps = "/api/v1/namespaces/default/configmaps";
    told.ask("admin", Method::POST, maps, &headers, &config_map()).await;
    let [event] = &told.events()[..] else { panic!() };
    let annotations = &event["annotations"];
    assert_eq!(
        annotations["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"x","webhook":"h.example.com","mutated":false}"#
    );
    assert!(
        annotations
            .get("failed-open.mutation.webhook.admission.k8s.io/round_0_index_0")
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_told_at_the_levels_that_want_them() {
    let told = Told::new(&[]).await;
    let of = |events: Vec<Value>| {
        let all = events.into_iter().map(|event| {
            let has = |key: &str| event.get(key).is_some();
            (has("requestObject"), has("responseObject"))
        });
        all.collect::<Vec<_>>()
    };
    let json_body = [("Content-Type", "application/json")];
    let pods = "/api/v1/namespaces/default/pods";
    told.ask(
        "admin",
        Method::POST,
        pods,
        &json_body,
        &json!({"kind": "Pod", "apiVersion": "v1"}),
    )
    .await;
    assert_eq!(of(told.events()), [(true, false)]);
    told.ask(
        "admin",
        Method::POST,
        "/api/v1/namespaces",
        &json_body,
        &json!({"metadata": {"name": "n"}}),
    )
    .await;
    let events = told.events();
    assert_eq!(events[1]["objectRef"]["name"], "n");
    let stages: Vec<_> = events.iter().map(|event| event["stage"].clone()).collect();
    assert_eq!(
        stages,
        ["RequestReceived", "ResponseComplete"],
        "the rule leaves out less than the policy"
    );
    assert_eq!(of(events), [(false, false); 2]);
    let maps = "/api/v1/namespaces/default/configmaps";
    told.ask("admin", Method::POST, maps, &json_body, &config_map()).await;
    let patch = json!({"data": {"b": null}});
    let merge = [("Content-Type", "application/merge-patch+json")];
    told.ask("admin", Method::PATCH, &format!("{maps}/a"), &merge, &patch)
        .await;
    let events = told.events();
    assert_eq!(events[1]["requestObject"], patch);
    assert!(events[1]["responseObject"]["metadata"].get("managedFields").is_none());
    let table = [("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let protobuf = [("Accept", "application/vnd.kubernetes.protobuf")];
    for headers in [&table, &protobuf] {
        told.ask("admin", Method::GET, maps, headers, &Value::Null).await;
    }
    let kinds: Vec<_> = told
        .events()
        .iter()
        .map(|event| event["responseObject"]["kind"].clone())
        .collect();
    assert_eq!(kinds, ["Table", "ConfigMapList"]);
    told.ask(
        "admin",
        Method::DELETE,
        &format!("{maps}/a"),
        &json_body,
        &json!({"gracePeriodSeconds": 0}),
    )
    .await;
    let [event] = &told.events()[..] else { panic!() };
    assert_eq!(event["responseStatus"]["status"], "Success");
    assert_eq!(event["requestObject"], json!({"gracePeriodSeconds": 0}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_when_it_begins_and_when_it_ends() {
    let told = Told::new(&[]).await;
    let caller = Caller {
        cluster: "c".to_owned(),
        user: Some(UserInfo::apiserver()),
        ..Caller::default()
    };
    let path = "/api/v1/configmaps?watch=true&timeoutSeconds=5";
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let response = told.server.serve(caller, request, None).await;
    let stages = || {
        told.events()
            .iter()
            .map(|event| event["stage"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(stages(), ["ResponseStarted"]);
    let frames = response.into_body().into_data_stream();
    tokio::time::timeout(Duration::from_secs(60), frames.collect::<Vec<_>>())
        .await
        .unwrap();
    assert_eq!(stages(), ["ResponseComplete"]);
}

#[tokio::test(start_paused = true)]
async fn whom_nobody_believes_is_told_once_and_who_stands_for_another_is_told() {
    let told = Told::new(&[]).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let bearer = [("Authorization", "Bearer nonsense")];
    let (code, _) = told.ask_as(None, Method::GET, path, &bearer, &Value::Null).await;
    assert_eq!(code, 401);
    let [event] = &told.events()[..] else { panic!() };
    assert_eq!(
        (&event["stage"], &event["user"]),
        (&json!("ResponseStarted"), &json!({}))
    );
    assert_eq!(event["responseStatus"]["code"], 401);

    let other = [("Impersonate-User", "jane"), ("Impersonate-Group", "people")];
    told.ask("admin", Method::GET, path, &other, &Value::Null).await;
    let [event] = &told.events()[..] else { panic!() };
    assert_eq!(event["user"]["username"], "system:apiserver");
    let groups = json!(["people", "system:authenticated"]);
    assert_eq!(event["impersonatedUser"], json!({"username": "jane", "groups": groups}));
    let narrow = json!({"impersonationConstraint": "impersonate:user-info"});
    assert_eq!(event["authenticationMetadata"], narrow);
}

#[tokio::test(start_paused = true)]
async fn long_events_lose_their_objects_and_lines_can_be_text() {
    let told = Told::new(&[
        "--audit-log-truncate-enabled",
        "--audit-log-truncate-max-event-size=1000",
    ])
    .await;
    let mut map = config_map();
    map["data"]["b"] = "x".repeat(2000).into();
    let path = "/api/v1/namespaces/default/configmaps";
    let headers = [("Content-Type", "application/json")];
    told.ask("admin", Method::POST, path, &headers, &map).await;
    let [event] = &told.events()[..] else { panic!() };
    assert_eq!(event["annotations"]["audit.k8s.io/truncated"], "true");
    assert!(event.get("requestObject").is_none());

    let told = Told::new(&["--audit-log-format=legacy", "--audit-log-mode=batch"]).await;
    told.ask("jane", Method::GET, path, &[("User-Agent", "t")], &Value::Null)
        .await;
    let Told {
        server,
        auditing,
        folder,
    } = told;
    drop((server, auditing));
    let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    assert!(text.starts_with("2026-01-01T00:00:00Z AUDIT: id=\""), "{text}");
    let rest = r#" stage="ResponseComplete" ip="10.1.2.3" method="list" user="jane" groups="\"people\",\"system:authenticated\"" as="<self>" asgroups="<lookup>" user-agent="t" namespace="default" uri="/api/v1/namespaces/default/configmaps" response="403""#;
    assert!(text.trim_end().ends_with(rest), "{text}");
}

/// A server that takes events, after it has failed some times.
#[derive(Default)]
struct Receiver {
    failures: AtomicUsize,
    lists: Mutex<Vec<Value>>,
}

#[async_trait]
impl Transport for Receiver {
    async fn post(&self, _: &LogicalCluster, _: &Endpoint, _: Duration, body: Bytes) -> Result<Answer, String> {
        let fails = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(SeqCst, SeqCst, fails).is_ok() {
            return Err("connection refused".to_owned());
        }
        self.lists.lock().push(serde_json::from_slice(&body).unwrap());
        let status = 200;
        Ok(Answer {
            status,
            ..Answer::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_in_batches_and_what_is_left_at_the_end() {
    const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://log.example.com/events'}}]\n";
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let flag = format!("--audit-webhook-config-file={}", kubeconfig.display());
    let told = Told::new(&[&flag, "--audit-webhook-batch-max-size=3"]).await;
    let (cluster, _) = told.server.cluster("c").unwrap();
    let receiver = Arc::new(Receiver::default());
    receiver.failures.store(2, SeqCst);
    cluster
        .webhooks()
        .use_transport(Arc::clone(&receiver) as Arc<dyn Transport>);
    let stop = CancellationToken::new();
    let delivery = told.auditing.lock().take().unwrap().deliver(cluster, stop.clone());
    let delivery = tokio::spawn(delivery);
    // making the namespace was told in two events
    let path = "/api/v1/namespaces/default/configmaps";
    let counts = || {
        let lists = receiver.lists.lock();
        let counts = lists.iter().map(|list| list["items"].as_array().unwrap().len());
        counts.collect::<Vec<_>>()
    };
    for _ in 0..2 {
        told.ask("admin", Method::GET, path, &[], &Value::Null).await;
    }
    tokio::time::sleep(Duration::from_secs(24)).await;
    assert_eq!(counts(), [0; 0], "it is sent again after 10 and another 15 seconds");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counts(), [3], "a batch is full");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(counts(), [3, 1], "a batch has waited long enough");
    told.ask("admin", Method::GET, path, &[], &Value::Null).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    delivery.await.unwrap();
    assert_eq!(counts(), [3, 1, 1], "nothing is lost when the server ends");
    let lists = receiver.lists.lock();
    let kinds = (
        &lists[0]["kind"],
        &lists[0]["apiVersion"],
        &lists[0]["items"][2]["verb"],
    );
    assert_eq!(kinds, (&json!("EventList"), &json!("audit.k8s.io/v1"), &json!("list")));
}

#[test]
fn what_cannot_be_told_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let clock = || Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let told = |flags: &AuditFlags| Auditing::open(flags, &clock()).err().map(|error| error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _guard = runtime.enter();
    let good = flags(folder.path(), &[]);
    assert_eq!(told(&good), None);
    std::fs::write(
        folder.path().join("policy.yaml"),
        "apiVersion: audit.k8s.io/v1\nkind: Policy\n",
    )
    .unwrap();
    let why = told(&good).unwrap();
    assert!(
        why.starts_with("loading audit policy file: loaded illegal policy with 0 rules: from file "),
        "{why}"
    );
    std::fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    let nowhere = flags(folder.path(), &["--audit-webhook-config-file=/nowhere"]);
    assert!(told(&nowhere).is_some_and(|why| why.starts_with("--audit-webhook-config-file: /nowhere: ")));
    let missing = flags(folder.path(), &["--audit-policy-file=/nowhere"]);
    assert!(told(&missing).is_some_and(|why| why.starts_with("--audit-policy-file: /nowhere cannot be read")));
    let errors: BTreeMap<&str, &str> = [
        ("--audit-log-mode=loud", "invalid audit log mode loud"),
        ("--audit-log-format=xml", "invalid audit log format xml"),
        ("--audit-log-version=audit.k8s.io/v1beta1", "invalid group version"),
        (
            "--audit-log-maxage=-1",
            "--audit-log-maxage -1 can't be a negative number",
        ),
        (
            "--audit-log-truncate-max-event-size=0",
            "invalid audit truncate log max event size 0",
        ),
    ]
    .into();
    for (flag, expected) in errors {
        let errors = flags(folder.path(), &flag.split(' ').collect::<Vec<_>>()).errors();
        assert!(
            matches!(&errors[..], [one] if one.starts_with(expected)),
            "{flag}: {errors:?}"
        );
    }
}
