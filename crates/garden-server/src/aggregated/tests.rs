//! A server behind a kube-apiserver, both in this process: who comes in, who may do what, and what admission reads where it is served.

mod subresources;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::authn::{FrontProxies, Settings};
use gardener_apiserver::authz::{Attributes, Authorizer, Decision, Union};
use gardener_apiserver::elsewhere::Elsewhere;
use gardener_apiserver::handle::Caller;
use gardener_apiserver::{LogicalCluster, Server, Shared, UserInfo, kubernetes, object, user};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_store::{Key, Layout, MemoryStore, Options, Topic};
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde_json::{Value, json};

use super::flags::{self, Flags};
use super::run::{Clients, config, elsewhere, layout};

fn shared() -> Shared {
    Shared {
        store: Arc::new(MemoryStore::new(object::FORM, Options::default())),
        clock: Clock::system(),
        chance: Chance::seeded(1),
    }
}

fn flags(more: &str) -> Flags {
    let needed = "--etcd-servers=x --cluster-identity=g --tls-cert-file=c --tls-private-key-file=k";
    let arguments = format!("{needed} {more}");
    flags::parse(arguments.split(' ').map(str::to_owned)).unwrap().0
}

/// A kube-apiserver with a garden server behind it.
struct Pair {
    kubernetes: Client,
    garden: Server,
    elsewhere: Arc<Elsewhere>,
}

/// What was answered: the status code and the object or text.
type Answer = (u16, Value);

impl Pair {
    async fn open(flags: &Flags) -> Self {
        let pair = Self::with(flags, |own| own).await;
        pair.follow().await;
        pair
    }

    /// Follows the kube-apiserver's objects, and waits until they were read once.
    async fn follow(&self) {
        let following = Arc::clone(&self.elsewhere);
        tokio::spawn(async move { following.follow().await });
        self.elsewhere.complete().await;
    }

    /// A pair whose kube-apiserver asks the authorizer that is made of its own.
    async fn with(flags: &Flags, authorizer: impl FnOnce(Arc<dyn Authorizer>) -> Arc<dyn Authorizer>) -> Self {
        let server = Server::new(shared());
        let alice = UserInfo::new("alice", &["team"]);
        let settings = Settings {
            static_tokens: BTreeMap::from([("secret".to_owned(), alice)]),
            ..Settings::default()
        };
        let embedded = EmbeddedKubernetes::load().unwrap();
        let mut setup = embedded.config("1.36.0", settings);
        setup.authorizer = authorizer(setup.authorizer);
        kubernetes::bootstrap(&server.open("kubernetes", setup)).await.unwrap();
        let kubernetes = server.client("kubernetes", UserInfo::new("admin", &[user::MASTERS]));
        let clients = Clients {
            kubernetes: kubernetes.clone(),
            authentication: kubernetes.clone(),
            authorization: kubernetes.clone(),
        };
        let elsewhere = Arc::new(elsewhere(kubernetes.clone()).unwrap());
        let front_proxies = FrontProxies {
            names: vec!["aggregator".into()],
            user: vec!["X-Remote-User".into()],
            groups: vec!["X-Remote-Group".into()],
            ..FrontProxies::default()
        };
        let (config, _) = config(flags, &clients, Arc::clone(&elsewhere), Some(front_proxies)).unwrap();
        let garden = Server::new(shared());
        garden.open(super::CLUSTER, config);
        Self {
            kubernetes,
            garden,
            elsewhere,
        }
    }

    async fn ask(&self, caller: Caller, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.warned(caller, method, path, headers, body).await.0
    }

    /// Asks, and tells of what the answer warns.
    async fn warned(
        &self,
        caller: Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (Answer, Vec<String>) {
        let caller = Caller {
            cluster: super::CLUSTER.to_owned(),
            ..caller
        };
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let response = self
            .garden
            .serve(caller, request.body(Full::new(bytes)).unwrap(), None)
            .await;
        let status = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|own| own.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        ((status, body), warnings)
    }

    /// Asks as a member of `system:masters`.
    async fn admin(&self, method: &str, path: &str, body: &Value) -> Answer {
        let caller = Caller {
            user: Some(UserInfo::new("admin", &[user::MASTERS])),
            ..Caller::default()
        };
        self.ask(caller, method, path, &[], body).await
    }

    /// Asks with a bearer token.
    async fn token(&self, token: &str, path: &str) -> Answer {
        let header = format!("Bearer {token}");
        self.ask(
            Caller::default(),
            "GET",
            path,
            &[("authorization", &header)],
            &Value::Null,
        )
        .await
    }

    /// Creates an object in the kube-apiserver.
    async fn create(&self, collection: &str, object: &Value) {
        let request = http::Request::post(collection).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        self.kubernetes.request::<Value>(request).await.unwrap();
    }

    async fn delete(&self, path: &str) {
        let request = http::Request::delete(path).body(Vec::new()).unwrap();
        self.kubernetes.request::<Value>(request).await.unwrap();
    }

    async fn let_alice_list(&self) {
        let roles = "/apis/rbac.authorization.k8s.io/v1";
        let rules = json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["shoots"], "verbs": ["list"]}]);
        self.create(
            &format!("{roles}/clusterroles"),
            &json!({"metadata": {"name": "reader"}, "rules": rules}),
        )
        .await;
        let binding = json!({
            "metadata": {"name": "reader"}, "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "team"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        });
        self.create(&format!("{roles}/clusterrolebindings"), &binding).await;
    }
}

const SHOOTS: &str = "/apis/core.gardener.cloud/v1beta1/shoots";

#[tokio::test(flavor = "multi_thread")]
async fn the_kube_apiserver_says_who_may_do_what() {
    let pair = Pair::open(&flags("--authorization-webhook-cache-unauthorized-ttl=0s")).await;
    let (status, refused) = pair.token("secret", SHOOTS).await;
    assert_eq!(status, 403);
    let message = refused["message"].as_str().unwrap_or_default();
    let wanted = "shoots.core.gardener.cloud is forbidden: User \"alice\" cannot list resource \"shoots\" in API group \"core.gardener.cloud\" at the cluster scope";
    assert!(message.starts_with(wanted), "{message}");
    pair.let_alice_list().await;
    assert_eq!(pair.token("secret", SHOOTS).await.0, 200);
    // remembered for some seconds, as upstream
    pair.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/reader")
        .await;
    assert_eq!(pair.token("secret", SHOOTS).await.0, 200);
    assert_eq!(pair.token("secret", &format!("{SHOOTS}?watch=true")).await.0, 403);
    // nobody has this token
    assert_eq!(pair.token("other", SHOOTS).await.0, 401);
    // without any, who asks is nobody
    let nobody = async |path: &str| pair.ask(Caller::default(), "GET", path, &[], &Value::Null).await;
    let (status, refused) = nobody(SHOOTS).await;
    assert_eq!(status, 403);
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("system:anonymous"))
    );
    assert_eq!(nobody("/healthz").await, (200, "ok".into()));
    assert_eq!(nobody("/readyz").await, (200, "ok".into()));
    assert_eq!(nobody("/metrics").await.0, 403);
}

/// Lets everybody list the shoots of one seed, as a SeedAuthorizer does.
struct OfOneSeed;

impl Authorizer for OfOneSeed {
    fn authorize(&self, _: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let asked = (
            attributes.resource,
            attributes.field_selector,
            attributes.label_selector,
        );
        match asked == ("shoots", "spec.seedName=a", "b in (c,d)") {
            true => Decision::Allow,
            false => Decision::NoOpinion("not of one seed".to_owned()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_are_part_of_the_question() {
    let pair = Pair::with(&flags(""), |own| Arc::new(Union(vec![Arc::new(OfOneSeed), own]))).await;
    let narrow = format!("{SHOOTS}?fieldSelector=spec.seedName%3Da&labelSelector=b+in+(c,d)");
    assert_eq!(pair.token("secret", &narrow).await.0, 200);
    let (status, refused) = pair.token("secret", SHOOTS).await;
    assert_eq!(status, 403);
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.ends_with("not of one seed")),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_may_be_open_to_everybody() {
    let pair = Pair::open(&flags("--authorization-always-allow-paths=/metrics,/apis/*")).await;
    let nobody = async |path: &str| pair.ask(Caller::default(), "GET", path, &[], &Value::Null).await.0;
    assert_eq!(nobody("/metrics").await, 200);
    assert_eq!(nobody("/apis/core.gardener.cloud/v1beta1").await, 200);
    // a resource is none
    assert_eq!(nobody(SHOOTS).await, 403);
    assert_eq!(nobody("/openapi/v2").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxies_tell_for_whom_they_ask() {
    let pair = Pair::open(&flags("")).await;
    pair.let_alice_list().await;
    let authority =
        gardener_pki::authority("proxies", Clock::system().now().as_second(), Duration::from_secs(3600)).unwrap();
    let certificate = |name: &str| {
        let subject = gardener_pki::Subject::client(name, &[]);
        let issued = gardener_pki::issue(
            &subject,
            &authority,
            Clock::system().now().as_second(),
            Duration::from_secs(3600),
        );
        pem::parse(issued.unwrap().certificate).unwrap().into_contents()
    };
    let headers = [("x-remote-user", "bob"), ("x-remote-group", "team")];
    let ask = async |name: &str, headers: &[(&str, &str)]| {
        let caller = Caller {
            front_proxy: Some(certificate(name)),
            ..Caller::default()
        };
        pair.ask(caller, "GET", SHOOTS, headers, &Value::Null).await.0
    };
    assert_eq!(ask("aggregator", &headers).await, 200);
    assert_eq!(ask("aggregator", &headers[..1]).await, 403);
    // another one is not believed: who asks is nobody
    assert_eq!(ask("somebody", &headers).await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_reads_where_things_are_served() {
    let pair = Pair::open(&flags("")).await;
    let bindings = |namespace: &str| format!("/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/secretbindings");
    let binding = |name: &str, secret: &str| {
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": {"name": name},
            "secretRef": {"name": secret, "namespace": "garden-a"}, "provider": {"type": "local"},
        })
    };
    let (status, answer) = pair.admin("POST", &bindings("garden-a"), &binding("one", "s")).await;
    assert_eq!(
        (status, &answer["message"]),
        (404, &"namespaces \"garden-a\" not found".into())
    );
    // what was made just now is found, whether it was heard of or not
    for round in 0..20 {
        let (namespace, secret) = (
            format!("garden-{round}"),
            json!({"metadata": {"name": format!("s{round}")}}),
        );
        if round == 0 {
            pair.create("/api/v1/namespaces", &json!({"metadata": {"name": "garden-a"}}))
                .await;
        }
        pair.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))
            .await;
        pair.create("/api/v1/namespaces/garden-a/secrets", &secret).await;
        let wanted = binding("one", &format!("s{round}"));
        let (status, answer) = pair.admin("POST", &bindings(&namespace), &wanted).await;
        assert_eq!(status, 201, "{answer}");
    }
    let (status, answer) = pair.admin("POST", &bindings("garden-a"), &binding("two", "none")).await;
    assert_eq!(status, 403);
    assert!(
        answer["message"]
            .as_str()
            .is_some_and(|text| text.contains("\"none\" not found")),
        "{answer}"
    );
}

/// Policies of the kube-apiserver judge the garden's objects, too, with parameters and namespaces that are there.
#[tokio::test(flavor = "multi_thread")]
async fn policies_are_followed() {
    for (more, acts) in [
        ("", true),
        ("--disable-admission-plugins=ValidatingAdmissionPolicy", false),
    ] {
        let pair = Pair::open(&flags(more)).await;
        let policies = "/apis/admissionregistration.k8s.io/v1";
        let rules = json!([{"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["projects"]}]);
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "object.metadata.name in params.data.names.split(',')", "message": "not a name of ours"}],
        }});
        let names = json!({"metadata": {"name": "names"}, "data": {"names": "a,b"}});
        pair.create("/api/v1/namespaces/default/configmaps", &names).await;
        pair.create(&format!("{policies}/validatingadmissionpolicies"), &policy)
            .await;
        let reference = json!({"name": "names", "namespace": "default", "parameterNotFoundAction": "Deny"});
        let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}});
        pair.create(&format!("{policies}/validatingadmissionpolicybindings"), &binding)
            .await;
        let project = |name: &str| json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": name}});
        let projects = "/apis/core.gardener.cloud/v1beta1/projects?dryRun=All";
        // the copy is a moment behind
        let mut answer = pair.admin("POST", projects, &project("c")).await;
        for _ in 0..200 {
            if answer.0 != 201 || !acts {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer = pair.admin("POST", projects, &project("c")).await;
        }
        let why = "projects.core.gardener.cloud \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not a name of ours";
        match acts {
            true => assert_eq!((answer.0, &answer.1["message"]), (422, &why.into())),
            false => assert_eq!(answer.0, 201, "{}", answer.1),
        }
        assert_eq!(pair.admin("POST", projects, &project("a")).await.0, 201);
    }
}

/// Parameters of kinds that are not followed are asked for where they are served.
#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_policies_may_be_of_any_kind() {
    let pair = Pair::open(&flags("")).await;
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let rules = json!([{"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["projects"]}]);
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Names"}, "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "params.kind == 'Names' && object.metadata.name in params.spec.names", "message": "not a name of ours"}],
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "names.rules.example.com"}, "spec": {
        "group": "rules.example.com", "scope": "Cluster", "names": {"plural": "names", "kind": "Names"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
    }});
    let names = |name: &str, own: &str| {
        json!({
            "apiVersion": "rules.example.com/v1", "kind": "Names",
            "metadata": {"name": name, "labels": {"all": "of-them"}}, "spec": {"names": ["a", own]},
        })
    };
    let bound = async |name: &str, reference: Value| {
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}});
        pair.create(&format!("{policies}/validatingadmissionpolicybindings"), &binding)
            .await;
    };
    let ask = async |name: &str| {
        let projects = "/apis/core.gardener.cloud/v1beta1/projects?dryRun=All";
        let project =
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": name}});
        let (_, answer) = pair.admin("POST", projects, &project).await;
        answer["message"].as_str().unwrap_or_default().to_owned()
    };
    // the copies of policies and bindings are a moment behind
    let refused_at_last = async |name: &str, why: &str| {
        let mut refused = ask(name).await;
        for _ in 0..200 {
            if refused.ends_with(why) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            refused = ask(name).await;
        }
        panic!("{refused:?} in place of {why:?}");
    };
    pair.create(&format!("{policies}/validatingadmissionpolicies"), &policy)
        .await;
    bound("named", json!({"name": "one", "parameterNotFoundAction": "Deny"})).await;
    let missing = "failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Names'";
    refused_at_last("a", missing).await;
    pair.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
        .await;
    let none = "no params found for policy binding with `Deny` parameterNotFoundAction";
    refused_at_last("a", none).await;
    for (name, own) in [("one", "b"), ("two", "c")] {
        pair.create("/apis/rules.example.com/v1/names", &names(name, own)).await;
    }
    assert_eq!((ask("a").await, ask("b").await), (String::new(), String::new()));
    let refused = |name: &str| format!("with binding '{name}' denied request: not a name of ours");
    refused_at_last("c", &refused("named")).await;
    let all = json!({"selector": {"matchLabels": {"all": "of-them"}}, "parameterNotFoundAction": "Deny"});
    bound("selected", all).await;
    refused_at_last("b", &refused("selected")).await;
    assert_eq!(ask("a").await, "");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_admission_can_read() {
    let pair = Pair::with(&flags(""), |own| own).await;
    let project = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "a"}});
    let projects = "/apis/core.gardener.cloud/v1beta1/projects";
    let (status, refused) = pair.admin("POST", projects, &project).await;
    let message = "projects.core.gardener.cloud is forbidden: not yet ready to handle request";
    assert_eq!((status, &refused["message"]), (403, &message.into()));
    assert_eq!(pair.admin("GET", projects, &Value::Null).await.0, 200);
    let readyz = async || pair.admin("GET", "/readyz", &Value::Null).await;
    let (status, told) = readyz().await;
    assert!(
        status == 500
            && told
                .as_str()
                .is_some_and(|text| text.contains("[-]informer-sync failed")),
        "{told}"
    );
    // who waits goes on as soon as all was read
    let (created, ()) = tokio::join!(pair.admin("POST", projects, &project), pair.follow());
    assert_eq!(created.0, 201, "{}", created.1);
    assert_eq!(readyz().await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_gardeners_groups_are_served() {
    let pair = Pair::open(&flags("")).await;
    let (_, groups) = pair.admin("GET", "/apis", &Value::Null).await;
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|group| group["name"].as_str())
        .collect();
    let wanted = ["core", "operations", "security", "seedmanagement"].map(|name| format!("{name}.gardener.cloud"));
    assert_eq!(names, wanted);
    let secrets = "/api/v1/namespaces/default/secrets";
    let review = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (method, path) in [("GET", secrets), ("POST", secrets), ("POST", review)] {
        assert_eq!(pair.admin(method, path, &json!({})).await.0, 404, "{method} {path}");
    }
    let (status, swagger) = pair.admin("GET", "/openapi/v2", &Value::Null).await;
    assert_eq!(status, 200);
    let paths = swagger["paths"].as_object().unwrap();
    assert!(paths.contains_key(SHOOTS));
    let others = paths.keys().filter(|path| !path.contains("gardener.cloud"));
    assert_eq!(others.collect::<Vec<_>>(), ["/apis/", "/version/"]);
    let (_, documents) = pair.admin("GET", "/openapi/v3", &Value::Null).await;
    let documents = documents["paths"].as_object().unwrap();
    let of_groups = documents.keys().filter(|path| path.contains("gardener.cloud")).count();
    // those of versions and of their groups
    assert_eq!(of_groups, 5 + names.len());
    assert_eq!(documents.len(), of_groups + 2);
}

#[test]
fn keys_lie_where_gardener_apiserver_has_them() {
    let layout = layout("/registry-gardener");
    let table = [
        (
            "core.gardener.cloud",
            "shoots",
            "garden-local/local",
            "/registry-gardener/core.gardener.cloud/shoots/garden-local/local",
        ),
        (
            "core.gardener.cloud",
            "seeds",
            "local",
            "/registry-gardener/core.gardener.cloud/seeds/local",
        ),
        (
            "core.gardener.cloud",
            "controllerdeployments",
            "x",
            "/registry-gardener/core.gardener.cloud/controllerdeployments/x",
        ),
        (
            "security.gardener.cloud",
            "workloadidentities",
            "n/w",
            "/registry-gardener/security.gardener.cloud/workloadidentities/n/w",
        ),
        (
            "operations.gardener.cloud",
            "bastions",
            "n/b",
            "/registry-gardener/operations.gardener.cloud/bastions/n/b",
        ),
        (
            "seedmanagement.gardener.cloud",
            "managedseeds",
            "garden/m",
            "/registry-gardener/seedmanagement.gardener.cloud/managedseeds/garden/m",
        ),
    ];
    for (group, resource, path, place) in table {
        let key = Key::new(Topic::new(group, resource), format!("garden/{path}"));
        assert_eq!(layout.place(&key).as_deref(), Some(place));
        assert_eq!(layout.key_at(place), Some(key));
    }
    assert_eq!(layout.key_at("/registry/core.gardener.cloud/shoots/n/s"), None);
    // upstream's encoder ends a line
    let key = Key::new(Topic::new("core.gardener.cloud", "seeds"), "garden/a");
    let theirs = b"{\"kind\":\"Seed\",\"apiVersion\":\"core.gardener.cloud/v1beta1\",\"metadata\":{\"name\":\"a\"},\"spec\":{}}\n";
    let ours = r#"{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","metadata":{"name":"a"},"spec":{}}"#;
    assert_eq!(layout.read(&key, &Bytes::from_static(theirs)).unwrap(), ours);
}
