//! What a gardenlet may do in the garden, from its first token to its own certificate, and that a seed's gardenlet asks for nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

#[path = "gardenlet_access/bootstrap.rs"]
mod bootstrapping;

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{BackupBucket, InternalSecret, Project, Seed, Shoot};
use gardener_apiserver::UserInfo;
use gardener_garden_authorizer::bootstrap::{self, Bootstrapped};
use gardener_landscape::manifests;
use gardener_pki::Subject;
use gardener_testkit::landscape::Landscape;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

const TOKEN_SECRET: &str = "0123456789abcdef";

fn read<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// Code and message of a refusal.
fn refusal<T>(result: kube::Result<T>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was allowed"),
    }
}

/// Makes a bootstrap token and answers a client that shows it.
async fn with_token(landscape: &Landscape, id: &str, description: &str) -> Client {
    let text = |text: &str| ByteString(text.as_bytes().to_vec());
    let mut secret: Secret = read(json!({
        "metadata": {"namespace": "kube-system", "name": format!("{}{id}", bootstrap::TOKEN_SECRET_PREFIX)},
        "type": "bootstrap.kubernetes.io/token",
    }));
    secret.data = Some(BTreeMap::from(
        [
            ("token-id", id),
            ("token-secret", TOKEN_SECRET),
            ("usage-bootstrap-authentication", "true"),
            ("usage-bootstrap-signing", "true"),
            ("description", description),
        ]
        .map(|(key, value)| (key.to_owned(), text(value))),
    ));
    let secrets: Api<Secret> = Api::namespaced(landscape.garden(), "kube-system");
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    landscape
        .server()
        .client_with_token("garden", &format!("{id}.{TOKEN_SECRET}"))
}

/// A request for a client certificate.
fn request(name: &str, user: &str, group: &str) -> CertificateSigningRequest {
    let made = gardener_pki::request(&Subject::client(user, &[group])).unwrap();
    let mut request: CertificateSigningRequest = read(json!({
        "metadata": {"name": name},
        "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "key encipherment", "client auth"]},
    }));
    request.spec.request = ByteString(made.certificate.into_bytes());
    request
}

fn conditions(request: &CertificateSigningRequest) -> Vec<(String, String, String)> {
    let status = request.status.as_ref().and_then(|status| status.conditions.as_ref());
    let told = |text: &Option<String>| text.clone().unwrap_or_default();
    status
        .into_iter()
        .flatten()
        .map(|own| (own.type_.clone(), told(&own.reason), told(&own.message)))
        .collect()
}

async fn decided(landscape: &Landscape, name: &str) -> CertificateSigningRequest {
    let requests: Api<CertificateSigningRequest> = Api::all(landscape.garden());
    let look = || async {
        let found = requests.get(name).await.unwrap();
        let denied = conditions(&found).iter().any(|(type_, _, _)| type_ == "Denied");
        let done = denied || found.status.as_ref().is_some_and(|status| status.certificate.is_some());
        done.then(|| found.clone()).ok_or_else(|| format!("{:?}", found.status))
    };
    landscape.until(&format!("{name} is decided"), look).await
}

#[tokio::test(start_paused = true)]
async fn auth_31_a_gardenlet_gets_in_by_a_token() {
    let landscape = Landscape::start(1).await;
    // the gardenlet that runs has had its own
    bootstrapping::token_is_gone(&landscape).await;
    let description = bootstrap::description(Bootstrapped::ManagedSeed, "garden", "local");
    let bootstrapper = with_token(&landscape, &bootstrap::token_id("garden", "local"), &description).await;
    // a token is good for asking, and for nothing else [AUTH-34]
    let seeds: Api<Shoot> = Api::all(bootstrapper.clone());
    assert_eq!(refusal(seeds.list(&ListParams::default()).await).0, 403);
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrapper);
    let user = "gardener.cloud:system:seed:local";
    let asked = request("seed-csr-a", user, "gardener.cloud:system:seeds");
    requests.create(&PostParams::default(), &asked).await.unwrap();
    let found = decided(&landscape, "seed-csr-a").await;
    let approved = "Auto approving gardenlet client certificate after SubjectAccessReview.";
    assert_eq!(
        conditions(&found),
        [("Approved".into(), "AutoApproved".into(), approved.into())]
    );
    let pem = found.status.unwrap().certificate.unwrap().0;
    let der = pem::parse(pem).unwrap().into_contents();
    let gardenlet = landscape.server().client_with_certificate("garden", &der);
    let seeds: Api<Seed> = Api::all(gardenlet.clone());
    assert!(seeds.get("local").await.is_ok());
    // renewed with the certificate itself
    let requests: Api<CertificateSigningRequest> = Api::all(gardenlet.clone());
    let again = request("seed-csr-b", user, "gardener.cloud:system:seeds");
    requests.create(&PostParams::default(), &again).await.unwrap();
    decided(&landscape, "seed-csr-b").await;
    let other = request(
        "seed-csr-c",
        "gardener.cloud:system:seed:other",
        "gardener.cloud:system:seeds",
    );
    assert_eq!(
        refusal(requests.create(&PostParams::default(), &other).await),
        (
            403,
            "admission webhook \"seed-restriction.gardener.cloud\" denied the request: object does not belong to seed \"local\"".into()
        )
    );
    // the token is thrown away
    let secrets: Api<Secret> = Api::namespaced(gardenlet, "kube-system");
    let token = bootstrap::token_secret("garden", "local");
    assert!(secrets.delete(&token, &DeleteParams::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn auth_31_tokens_of_self_hosted_shoots_are_for_one_shoot() {
    let landscape = Landscape::start(1).await;
    let description = "Used for connecting the self-hosted Shoot garden-local/a with the garden";
    let bootstrapper = with_token(&landscape, "aaaaaa", description).await;
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrapper);
    let group = "gardener.cloud:system:shoots";
    for (name, user) in [
        ("shoot-csr-a", "gardener.cloud:system:shoot:garden-local:a"),
        ("shoot-csr-b", "gardener.cloud:system:shoot:garden-local:b"),
        ("shoot-csr-adm", "gardener.cloud:gardenadm:shoot:garden-local:a"),
    ] {
        let asked = request(name, user, group);
        requests.create(&PostParams::default(), &asked).await.unwrap();
    }
    assert_eq!(conditions(&decided(&landscape, "shoot-csr-a").await)[0].0, "Approved");
    assert_eq!(conditions(&decided(&landscape, "shoot-csr-adm").await)[0].0, "Approved");
    let why = "Denying gardenlet client certificate (Bootstrap token does not fulfill requirements for auto-approval: \
        the common name in the certificate request (gardener.cloud:system:shoot:garden-local:b) does not match the expected format \
        'gardener.cloud:{system,gardenadm}:shoot:<namespace>:<name>')";
    assert_eq!(
        conditions(&decided(&landscape, "shoot-csr-b").await),
        [("Denied".into(), "RequestDenied".into(), why.into())]
    );
    // who has no token may not ask for others, and who may not ask for seeds waits
    let garden = landscape.garden();
    let requests: Api<CertificateSigningRequest> = Api::all(garden.clone());
    let asked = request("shoot-csr-c", "gardener.cloud:system:shoot:garden-local:a", group);
    requests.create(&PostParams::default(), &asked).await.unwrap();
    let denied = conditions(&decided(&landscape, "shoot-csr-c").await);
    assert!(
        denied[0]
            .2
            .contains("CSR does not seem to be requested via a bootstrap token"),
        "{denied:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn auth_4_gardenlets_ask_for_nothing_else() {
    let landscape = Landscape::start(1).await;
    landscape.apply(&manifests::shoot()).await;
    landscape.until_shoot_is_created().await;
    // whatever a component may not do is told as 403
    assert_eq!(refused_requests(&landscape).await, Vec::<String>::new());

    let client = |seed: &str| {
        let user = format!("gardener.cloud:system:seed:{seed}");
        let user = UserInfo::new(&user, &["gardener.cloud:system:seeds"]);
        landscape.server().client("garden", user)
    };
    let (own, other) = (client("local"), client("other"));
    let everybodys = ListParams::default();
    let narrowed = |seed: &str| ListParams::default().labels(&format!("name.seed.gardener.cloud/{seed}=true"));
    let all = |client: &Client| Api::<Shoot>::all(client.clone());
    assert_eq!(all(&own).list(&narrowed("local")).await.unwrap().items.len(), 1);
    assert_eq!(all(&other).list(&narrowed("other")).await.unwrap().items.len(), 0);
    assert_eq!(
        refusal(all(&other).list(&narrowed("local")).await),
        (
            403,
            "shoots.core.gardener.cloud is forbidden: User \"gardener.cloud:system:seed:other\" cannot list resource \"shoots\" in API group \
             \"core.gardener.cloud\" at the cluster scope: must specify field or label selector for name other"
                .into()
        )
    );
    assert_eq!(refusal(all(&own).list(&everybodys).await).0, 403);
    // one object, by its name
    let one = |client: &Client| Api::<Shoot>::namespaced(client.clone(), "garden-local");
    let by_name = ListParams::default().fields("metadata.name=local");
    assert_eq!(one(&own).list(&by_name).await.unwrap().items.len(), 1);
    let by_both = ListParams::default().fields("metadata.namespace=garden-local,metadata.name=local");
    assert_eq!(one(&own).list(&by_both).await.unwrap().items.len(), 1);
    assert_eq!(refusal(one(&other).list(&by_both).await).0, 403);
    assert_eq!(
        refusal(one(&other).list(&by_name).await).1,
        "shoots.core.gardener.cloud \"local\" is forbidden: User \"gardener.cloud:system:seed:other\" cannot list resource \"shoots\" in API group \
         \"core.gardener.cloud\" in the namespace \"garden-local\": no relationship found"
    );
    assert!(one(&own).get("local").await.is_ok());
    assert_eq!(refusal(one(&other).get("local").await).0, 403);
    let projects = |client: &Client| Api::<Project>::all(client.clone());
    assert!(projects(&own).get("local").await.is_ok());
    assert_eq!(refusal(projects(&other).get("local").await).0, 403);
    let leases = |client: &Client| Api::<Lease>::namespaced(client.clone(), "gardener-system-seed-lease");
    assert!(leases(&own).get("local").await.is_ok());
    assert_eq!(refusal(leases(&other).get("local").await).0, 403);
    let maps = |client: &Client| Api::<ConfigMap>::namespaced(client.clone(), "garden-local");
    assert!(maps(&own).get("local.ca-cluster").await.is_ok());
    assert_eq!(refusal(maps(&other).get("local.ca-cluster").await).0, 403);
    // internal secrets: nobody but who runs the shoot, and only by their names [AUTH-4], [AUTH-53]
    let internal = |client: &Client| Api::<InternalSecret>::namespaced(client.clone(), "garden-local");
    let by_roles = |user: &str| landscape.server().client("garden", UserInfo::new(user, &[]));
    let add = json!({"spec": {"members": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admin", "role": "admin"}]}});
    let projects: Api<Project> = Api::all(landscape.garden());
    projects
        .patch("local", &PatchParams::default(), &Patch::Merge(add))
        .await
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let (member, stranger) = (by_roles("admin"), by_roles("stranger"));
    assert!(internal(&own).get("local.ca-client").await.is_ok());
    for client in [&other, &member, &stranger] {
        assert_eq!(refusal(internal(client).get("local.ca-client").await).0, 403);
        assert_eq!(refusal(internal(client).list(&everybodys).await).0, 403);
    }
    assert_eq!(refusal(internal(&own).list(&everybodys).await).0, 403);
    let all_of_them = Api::<InternalSecret>::all(own.clone());
    assert_eq!(refusal(all_of_them.list(&everybodys).await).0, 403);
    // the same member reads secrets of the project
    let project_secrets = Api::<Secret>::namespaced(member, "garden-local");
    assert!(project_secrets.list(&everybodys).await.is_ok());
    let copies = |client: &Client| Api::<Secret>::namespaced(client.clone(), "seed-local");
    assert!(!copies(&own).list(&everybodys).await.unwrap().items.is_empty());
    assert_eq!(refusal(copies(&other).list(&everybodys).await).0, 403);
    // W55
    let buckets: Api<BackupBucket> = Api::all(other);
    let bucket: BackupBucket = read(json!({
        "metadata": {"name": "x"},
        "spec": {"seedName": "local", "provider": {"type": "local", "region": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup-local"}},
    }));
    assert_eq!(
        refusal(buckets.create(&PostParams::default(), &bucket).await),
        (
            403,
            "admission webhook \"seed-restriction.gardener.cloud\" denied the request: object does not belong to seed \"other\"".into()
        )
    );
    // extensions
    let user = UserInfo::service_account("seed-local", "extension-x", "");
    let extension = landscape.server().client("garden", user);
    assert_eq!(all(&extension).list(&narrowed("local")).await.unwrap().items.len(), 1);
    assert_eq!(refusal(all(&extension).list(&everybodys).await).0, 403);
    assert!(!refused_requests(&landscape).await.is_empty(), "refusals are seen");
}

/// The lines of the garden's metrics that tell of requests that were answered with 403.
async fn refused_requests(landscape: &Landscape) -> Vec<String> {
    let path = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = landscape.garden().request_text(path).await.unwrap();
    let refused = metrics.lines().filter(|line| line.contains("code=\"403\""));
    refused.map(str::to_owned).collect()
}
