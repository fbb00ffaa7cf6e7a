//! A server that is configured by flags and files, and those that it asks by HTTPS: issuers, and a webhook for tokens.

mod https;

use std::path::Path;

use gardener_apimachinery::chance::Chance;
use gardener_apiserver::handle::Caller;
use gardener_apiserver::{LogicalCluster, Server, Shared, UserInfo, kubernetes, object};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_store::{MemoryStore, Options};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;
use crate::flags::parse;
use crate::{CLUSTER, VERSION, access};
use https::{Issuer, Reviewer};

/// A server, and what follows its configuration.
struct Case {
    server: Server,
    cluster: Arc<LogicalCluster>,
    authentication: Authentication,
    folder: tempfile::TempDir,
}

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

impl Case {
    /// A server of these flags; `FOLDER` in them is where `files` are.
    async fn open(flags: &str, files: &[(&str, &str)]) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let key = gardener_apiserver::tokens::SigningKey::generate_pem().unwrap();
        std::fs::write(folder.path().join("sa.key"), key).unwrap();
        std::fs::write(folder.path().join("tokens.csv"), "secret,bob,2\n").unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let all = format!(
            "--etcd-servers=http://127.0.0.1:2379 --service-account-issuer=https://own --service-account-key-file=FOLDER/sa.key \
             --service-account-signing-key-file=FOLDER/sa.key --token-auth-file=FOLDER/tokens.csv --authorization-mode=RBAC {flags}"
        );
        let all = all.replace("FOLDER", &path);
        let flags = parse(all.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string())?;
        let mut settings = access::settings(&flags).unwrap();
        let authentication = Authentication::open(&flags, &mut settings, "apiserver-a", None, &clock());
        let authentication = authentication.map_err(|error| error.to_string())?;
        let server = Server::new(Shared {
            store: Arc::new(MemoryStore::new(object::FORM, Options::default())),
            clock: clock(),
            chance: Chance::seeded(1),
        });
        let mut config = EmbeddedKubernetes::load().unwrap().config(VERSION, settings);
        let authorization = crate::authorization::Authorization::open(&flags.authorization).unwrap();
        config.authorizer = authorization.authorizer();
        let cluster = server.open(CLUSTER, config);
        kubernetes::complete(&cluster).await.unwrap();
        Ok(Self {
            server,
            cluster,
            authentication,
            folder,
        })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn send(&self, user: Option<UserInfo>, token: Option<&str>, path: &str, body: Option<Value>) -> (u16, Value) {
        let caller = Caller {
            cluster: CLUSTER.to_owned(),
            user,
            outside: true,
            ..Caller::default()
        };
        let method = if body.is_some() { "POST" } else { "GET" };
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(Full::from(body)).unwrap();
        let response = self.server.serve(caller, request, None).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (code, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The status code of a request.
    async fn get(&self, token: Option<&str>, path: &str) -> u16 {
        self.send(None, token, path, None).await.0
    }

    async fn admin(&self, path: &str, body: Value) -> Value {
        let (code, answer) = self.send(Some(UserInfo::apiserver()), None, path, Some(body)).await;
        assert_eq!(code, 201, "{answer}");
        answer
    }

    /// Whom a token stands for: the name and groups, or the status code.
    async fn who(&self, token: &str) -> Result<Value, u16> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        match self.send(None, Some(token), path, Some(review)).await {
            (201, answer) => Ok(answer["status"]["userInfo"].clone()),
            (code, _) => Err(code),
        }
    }

    /// What a TokenReview tells of a token.
    async fn review(&self, token: &str, audiences: &[&str]) -> Value {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": audiences},
        });
        let answer = self.admin("/apis/authentication.k8s.io/v1/tokenreviews", review).await;
        answer["status"].clone()
    }

    async fn refusal(&self, token: &str) -> String {
        assert_eq!(self.who(token).await, Err(401));
        let status = self.review(token, &[]).await;
        assert_eq!(status.get("authenticated"), None, "{status}");
        status["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Lets a group read pods.
    async fn let_read(&self, group: &str) {
        let role = json!({
            "metadata": {"name": "pods"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        });
        self.admin("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
            .await;
        let binding = json!({
            "metadata": {"name": "pods"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pods"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        });
        self.admin("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
            .await;
    }

    fn metrics(&self) -> String {
        self.cluster.metrics().text(&self.cluster)
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

const PODS: &str = "/api/v1/pods";

#[tokio::test]
async fn an_issuer_of_flags_is_believed() {
    let issuer = Issuer::serve().await;
    let flags = format!(
        "--oidc-issuer-url={} --oidc-client-id=api --oidc-ca-file=FOLDER/ca.pem --oidc-groups-claim=roles --oidc-groups-prefix=o: \
         --oidc-signing-algs=ES256 --oidc-required-claim=hd=example.com",
        issuer.url
    );
    let case = Case::open(&flags, &[("ca.pem", &issuer.authority)]).await.unwrap();
    case.let_read("o:dev").await;
    assert_eq!(
        issuer.asked(),
        Vec::<String>::new(),
        "nobody is asked before there is a token"
    );
    let good = json!({"sub": "alice", "aud": ["x", "api"], "roles": ["dev"], "hd": "example.com"});
    let with = |change: Value| {
        let mut claims = good.clone();
        claims
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        claims
    };
    let token = issuer.token(&good);
    let alice = case.who(&token).await.unwrap();
    assert_eq!(alice["username"], format!("{}#alice", issuer.url));
    assert_eq!(alice["groups"], json!(["o:dev", "system:authenticated"]));
    assert_eq!(case.get(Some(&token), PODS).await, 200);
    let other = issuer.token(&with(json!({"sub": "carol", "roles": "guests"})));
    assert_eq!(case.get(Some(&other), PODS).await, 403);
    let discovery = "/.well-known/openid-configuration";
    assert_eq!(issuer.asked(), [discovery, "/keys"], "keys are kept");
    // the audiences of its tokens are its own matter: for the API they are good for the API's
    let status = case.review(&token, &["https://own", "y"]).await;
    assert_eq!(
        (&status["authenticated"], &status["audiences"]),
        (&json!(true), &json!(["https://own"]))
    );
    assert_eq!(case.review(&token, &["y"]).await["error"], "invalid bearer token");

    let now = clock().now().as_second();
    for (change, expected) in [
        (
            json!({"aud": "other"}),
            r#"oidc: verify token: oidc: expected audience "api" got ["other"]"#,
        ),
        (
            json!({"exp": now - 3600}),
            "oidc: verify token: oidc: token is expired (Token Expiry: 2025-12-31 23:00:00 +0000 UTC)",
        ),
        (json!({"nbf": now + 600}), "before the nbf (not before) time"),
        (
            json!({"hd": "evil.example.com"}),
            "oidc: required claim hd value does not match",
        ),
        (
            json!({"sub": 1}),
            "cannot unmarshal number into Go struct field idToken.sub of type string",
        ),
    ] {
        let found = case.refusal(&issuer.token(&with(change.clone()))).await;
        assert!(
            found.starts_with("[invalid bearer token, oidc: ") && found.contains(expected),
            "{change}: {found}"
        );
    }
    let forged = issuer.forged(&good);
    assert!(
        case.refusal(&forged)
            .await
            .contains("failed to verify id token signature")
    );
    let elsewhere = issuer.token(&with(json!({"iss": "https://elsewhere"})));
    assert_eq!(case.refusal(&elsewhere).await, "invalid bearer token", "it is nobody's");
    for nonsense in ["x", "a.b.c", &"a".repeat(10_000)] {
        assert_eq!(case.refusal(nonsense).await, "invalid bearer token");
    }
    assert_eq!(case.who("secret").await.unwrap()["username"], "bob");

    // the issuer takes another key, and then does not answer
    let old = issuer.rotate();
    assert!(case.who(&issuer.token(&with(json!({"sub": "dave"})))).await.is_ok());
    let refused = case.refusal(&issuer.signed(&old, &with(json!({"sub": "erin"})))).await;
    assert!(refused.contains("failed to verify id token signature"), "{refused}");
    issuer.fail(true);
    assert!(
        case.who(&issuer.token(&with(json!({"sub": "frank"})))).await.is_ok(),
        "its keys are known"
    );
    let refused = case.refusal(&issuer.signed(&old, &good)).await;
    assert!(
        refused.contains("fetching keys oidc: get keys failed 500 Internal Server Error"),
        "{refused}"
    );
    let text = case.metrics();
    for told in [
        "apiserver_authentication_jwt_authenticator_latency_seconds_count{result=\"success\",jwt_issuer_hash=\"sha256:",
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds{result=\"failure\",jwt_issuer_hash=\"sha256:",
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{",
    ] {
        assert!(text.contains(told), "{told}");
    }
    assert!(
        !text.contains("apiserver_authentication_config_controller"),
        "there is no file"
    );
}

#[tokio::test]
async fn an_issuer_that_cannot_be_trusted_is_not() {
    let (issuer, stranger) = (Issuer::serve().await, Issuer::serve().await);
    let flags = format!(
        "--oidc-issuer-url={} --oidc-client-id=api --oidc-ca-file=FOLDER/ca.pem --oidc-signing-algs=ES256",
        issuer.url
    );
    let case = Case::open(&flags, &[("ca.pem", &stranger.authority)]).await.unwrap();
    let token = issuer.token(&json!({"sub": "alice", "aud": "api"}));
    assert_eq!(
        case.refusal(&token).await,
        "[invalid bearer token, oidc: authenticator not initialized]"
    );
    assert_eq!(issuer.asked(), Vec::<String>::new());
    // only RS256 may sign, unless flags say otherwise
    let flags = flags.replace(" --oidc-signing-algs=ES256", "");
    let case = Case::open(&flags, &[("ca.pem", &issuer.authority)]).await.unwrap();
    let refused = case.refusal(&token).await;
    assert!(
        refused.contains(r#"oidc: id token signed with unsupported algorithm, expected ["RS256"] got "ES256""#),
        "{refused}"
    );
}

fn configuration(jwt: &str, more: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{jwt}]\n{more}\n")
}

fn of_issuer(issuer: &Issuer, audience: &str, more: &str) -> String {
    let authority = issuer.authority.replace('\n', "\\n");
    format!(
        "{{issuer: {{url: '{}', discoveryURL: '{}/elsewhere', audiences: [{audience}, other], audienceMatchPolicy: MatchAny, certificateAuthority: \"{authority}\"}}, {more}}}",
        issuer.url, issuer.url
    )
}

const MAPPINGS: &str = "claimMappings: {username: {expression: \"'o:' + claims.sub\"}, groups: {expression: \"claims.roles.map(r, 'o:' + r)\"}, \
    uid: {claim: id}, extra: [{key: example.com/tenant, valueExpression: claims.tenant}]}, \
    claimValidationRules: [{expression: 'claims.exp - claims.iat <= 3600', message: 'tokens are good for an hour at most'}], \
    userValidationRules: [{expression: \"user.username != 'o:root'\", message: 'nobody is root'}]";

#[tokio::test]
async fn a_file_tells_whom_to_believe_and_is_read_again() {
    let issuer = Issuer::serve().await;
    issuer.serve_discovery_at("/elsewhere");
    let anonymous = "anonymous: {enabled: true, conditions: [{path: /livez}]}";
    let file = configuration(&of_issuer(&issuer, "api", MAPPINGS), anonymous);
    let mut case = Case::open("--authentication-config=FOLDER/config.yaml", &[("config.yaml", &file)])
        .await
        .unwrap();
    case.let_read("o:dev").await;
    let now = clock().now().as_second();
    let good = json!({"sub": "alice", "aud": "api", "roles": ["dev"], "id": "7", "tenant": "t", "iat": now, "exp": now + 3600, "jti": "j"});
    let with = |change: Value| {
        let mut claims = good.clone();
        claims
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        claims
    };
    let token = issuer.token(&good);
    let expected = json!({
        "username": "o:alice", "uid": "7", "groups": ["o:dev", "system:authenticated"],
        "extra": {"example.com/tenant": ["t"], "authentication.kubernetes.io/credential-id": ["JTI=j"]},
    });
    assert_eq!(case.who(&token).await.unwrap(), expected);
    assert_eq!(case.review(&token, &[]).await["user"], expected);
    assert_eq!(case.get(Some(&token), PODS).await, 200);
    assert_eq!(issuer.asked(), ["/elsewhere", "/keys"]);
    for (change, expected) in [
        (
            json!({"exp": now + 3601}),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.iat <= 3600' failed: tokens are good for an hour at most",
        ),
        (
            json!({"sub": "root"}),
            "oidc: error evaluating user info validation rule: validation expression 'user.username != 'o:root'' failed: nobody is root",
        ),
        (
            json!({"roles": [1]}),
            "oidc: error evaluating group claim expression: expression ",
        ),
        (
            json!({"aud": "x"}),
            r#"oidc: expected audience in ["api" "other"] got ["x"]"#,
        ),
    ] {
        let found = case.refusal(&issuer.token(&with(change))).await;
        assert!(found.contains(expected), "{found}");
    }
    // who comes without credentials, and where
    assert_eq!(case.get(None, "/livez").await, 200);
    for path in ["/readyz", "/version", PODS] {
        assert_eq!(case.get(None, path).await, 401, "{path}");
    }
    assert_eq!(case.get(Some("nonsense"), "/livez").await, 401);

    assert!(!case.authentication.renew().await.unwrap(), "nothing has changed");
    let path = case.path("config.yaml");
    for (text, expected) in [
        (
            "nonsense".to_owned(),
            "failed to load authentication configuration from file",
        ),
        (configuration("{}", anonymous), "jwt[0].issuer.url: Required value"),
        (
            configuration(&of_issuer(&issuer, "api", MAPPINGS), "anonymous: {enabled: true}"),
            "anonymous: Forbidden: changed from initial configuration file",
        ),
    ] {
        write(&path, &text);
        let error = case.authentication.renew().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!case.authentication.renew().await.unwrap(), "it is told once");
        assert!(
            case.who(&issuer.token(&with(json!({"sub": expected})))).await.is_ok(),
            "that of before is used"
        );
    }
    write(&path, &configuration(&of_issuer(&issuer, "new", MAPPINGS), anonymous));
    assert!(case.authentication.renew().await.unwrap());
    assert_eq!(case.who(&token).await, Err(401), "what was known is forgotten");
    assert!(case.who(&issuer.token(&with(json!({"aud": "new"})))).await.is_ok());
    write(&path, &configuration("", anonymous));
    assert!(case.authentication.renew().await.unwrap());
    assert_eq!(
        case.refusal(&issuer.token(&with(json!({"aud": "new"})))).await,
        "invalid bearer token"
    );
    let text = case.metrics();
    for (status, number) in [("success", 2), ("failure", 3)] {
        let told = format!(
            "apiserver_authentication_config_controller_automatic_reloads_total{{status=\"{status}\",apiserver_id_hash=\"sha256:"
        );
        let line = text.lines().find(|line| line.starts_with(&told)).unwrap();
        assert!(line.ends_with(&format!(" {number}")), "{line}");
    }
    assert!(text.contains("apiserver_authentication_config_controller_last_config_info{"));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(
        case.authentication.renew().await,
        Err(AuthenticationError::File(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn issuers_that_do_not_answer_take_nobodys_place() {
    let mut case = Case::open(
        "--authentication-config=FOLDER/config.yaml",
        &[("config.yaml", &configuration("", ""))],
    )
    .await
    .unwrap();
    let unreachable =
        "{issuer: {url: 'https://127.0.0.1:1', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}";
    write(&case.path("config.yaml"), &configuration(unreachable, ""));
    for _ in 0..2 {
        let begun = tokio::time::Instant::now();
        let error = case.authentication.renew().await.unwrap_err().to_string();
        assert!(
            error.starts_with("oidc: authenticator for issuer \"https://127.0.0.1:1\" is not healthy: "),
            "{error}"
        );
        assert!(begun.elapsed() >= Duration::from_secs(50), "it is tried again");
    }
}

#[tokio::test]
async fn claims_that_are_elsewhere_are_found() {
    let issuer = Issuer::serve().await;
    let other = issuer.beside().await;
    let flags = format!(
        "--oidc-issuer-url={} --oidc-client-id=api --oidc-ca-file=FOLDER/ca.pem --oidc-groups-claim=groups --oidc-signing-algs=ES256",
        issuer.url
    );
    let case = Case::open(&flags, &[("ca.pem", &issuer.authority)]).await.unwrap();
    let token = |sub: &str, path: &str| {
        issuer.token(&json!({
            "sub": sub, "aud": "api", "_claim_names": {"groups": "s"},
            "_claim_sources": {"s": {"endpoint": format!("{}{path}", other.url), "access_token": "open"}},
        }))
    };
    other.serve_text(
        "/groups",
        Some("open"),
        &other.token(&json!({"aud": "api", "groups": ["dev", "ops"]})),
    );
    other.serve_text(
        "/for-others",
        None,
        &other.token(&json!({"aud": "x", "groups": ["dev"]})),
    );
    other.serve_text("/without", None, &other.token(&json!({"aud": "api"})));
    other.serve_text(
        "/forged",
        None,
        &other.forged(&json!({"aud": "api", "groups": ["dev"]})),
    );
    other.serve_text("/nonsense", None, "nonsense");
    let alice = case.who(&token("alice", "/groups")).await.unwrap();
    assert_eq!(alice["groups"], json!(["dev", "ops", "system:authenticated"]));
    assert!(case.who(&token("alice", "/groups")).await.is_ok());
    let nowhere = json!({"sub": "bob", "aud": "api", "_claim_names": null, "_claim_sources": null});
    let bob = case.who(&issuer.token(&nowhere)).await.unwrap();
    assert_eq!(bob["groups"], json!(["system:authenticated"]));
    for (path, expected) in [
        ("/for-others", "verify distributed claim token: oidc: expected audience"),
        ("/without", "did not contain claim: groups"),
        ("/forged", "failed to verify id token signature"),
        ("/nonsense", "malformed token"),
        (
            "/none",
            "while getting distributed claim \"groups\": error while getting distributed claim JWT: 404 Not Found",
        ),
    ] {
        let found = case.refusal(&token("alice", path)).await;
        assert!(
            found.contains("oidc: could not expand distributed claims: ") && found.contains(expected),
            "{found}"
        );
    }
}

#[tokio::test]
async fn a_webhook_reads_tokens_that_nobody_else_knows() {
    for version in ["v1", "v1beta1"] {
        let reviewer = Reviewer::serve(version).await;
        let flags = format!(
            "--authentication-token-webhook-config-file=FOLDER/kubeconfig --authentication-token-webhook-version={version}"
        );
        let case = Case::open(&flags, &[("kubeconfig", &reviewer.kubeconfig())])
            .await
            .unwrap();
        case.let_read("readers-of-webhook").await;
        for _ in 0..3 {
            let gina = case.who("gina").await.unwrap();
            assert_eq!(gina["username"], "gina");
            assert_eq!(gina["groups"], json!(["readers-of-webhook", "system:authenticated"]));
            assert_eq!(case.get(Some("gina"), PODS).await, 200);
            assert_eq!(case.who("nobody").await, Err(401));
        }
        assert_eq!(
            reviewer.asked(),
            [("gina", vec!["https://own"]), ("nobody", vec!["https://own"])].map(|(token, audiences)| {
                (
                    token.to_owned(),
                    audiences.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                )
            })
        );
        assert_eq!(case.refusal("error").await, "[invalid bearer token, it cannot be told]");
        assert_eq!(case.who("secret").await.unwrap()["username"], "bob");
        assert_eq!(
            reviewer.asked().len(),
            4,
            "errors are not kept, and who is known is not asked about"
        );
        let status = case.review("gina", &["vault", "https://own"]).await;
        assert_eq!(
            (&status["user"]["username"], &status["audiences"]),
            (&json!("gina"), &json!(["https://own"]))
        );
        assert_eq!(case.get(None, "/livez").await, 200);
    }
}

#[tokio::test]
async fn what_cannot_be_used_keeps_the_server_from_starting() {
    let config = |text: &str| configuration(text, "anonymous: {enabled: true}");
    let egress = "{issuer: {url: 'https://i', audiences: [a], egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ''}}}";
    let own = "{issuer: {url: 'https://own', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}";
    let kubeconfig = "{kind: Config, apiVersion: v1, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://h'}}]}";
    for (flags, text, expected) in [
        ("--authentication-config=FOLDER/none", String::new(), "cannot be read"),
        (
            "--authentication-config=FOLDER/file",
            String::new(),
            "empty config data",
        ),
        (
            "--authentication-config=FOLDER/file --anonymous-auth=false",
            config(""),
            "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file",
        ),
        (
            "--authentication-config=FOLDER/file",
            config(own),
            "invalid authentication configuration: jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]",
        ),
        (
            "--authentication-config=FOLDER/file",
            config(egress),
            "oidc: egress lookup required with egress selector type \"cluster\"",
        ),
        (
            "--oidc-issuer-url=http://i --oidc-client-id=a",
            String::new(),
            "invalid authentication configuration: jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https",
        ),
        (
            "--oidc-issuer-url=https://i --oidc-client-id=a --oidc-signing-algs=RS256,HS256",
            String::new(),
            "oidc: unsupported signing alg: \"HS256\"",
        ),
        (
            "--oidc-issuer-url=https://i --oidc-client-id=a --oidc-ca-file=FOLDER/file",
            "no certificate".to_owned(),
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\"",
        ),
        (
            "--authentication-token-webhook-config-file=FOLDER/file --authentication-token-webhook-version=v2",
            kubeconfig.to_owned(),
            "unsupported authentication webhook version \"v2\", supported versions are \"v1\", \"v1beta1\"",
        ),
        (
            "--authentication-token-webhook-config-file=FOLDER/file",
            "{kind: Config, apiVersion: v1}".to_owned(),
            "needs a current-context",
        ),
    ] {
        let error = Case::open(flags, &[("file", &text)]).await.err().unwrap();
        assert!(error.contains(expected), "{flags}: {error}");
    }
    let open = Case::open(
        "--authentication-config=FOLDER/file",
        &[("file", &configuration("", ""))],
    )
    .await;
    assert_eq!(
        open.unwrap().get(None, "/version").await,
        200,
        "without a word of it anybody may come"
    );
}
