//! How gardenlets get and keep their kubeconfigs of the garden, and who makes their bootstrap kubeconfigs.

use std::time::Duration;

use gardener_apis::core::v1beta1::Seed;
use gardener_garden_authorizer::bootstrap::{Bootstrapped, token_id, token_secret};
use gardener_gardenlet::bootstrap::{BOOTSTRAP_SECRET, Credentials, GardenAccess, KUBECONFIG_SECRET, token};
use gardener_pki::ClientCertificate;
use gardener_rules::csr_approval::{Request, gardenlets};
use gardener_testkit::garden::Garden;
use gardener_testkit::landscape::Landscape;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::{conditions, decided, read, request};

const USER: &str = "gardener.cloud:system:seed:local";

fn in_seed(landscape: &Landscape) -> Api<Secret> {
    Api::namespaced(landscape.seed("local"), "garden")
}

fn kubeconfig(secret: &Secret) -> GardenAccess {
    GardenAccess::read(&secret.data.as_ref().unwrap()["kubeconfig"].0).unwrap()
}

/// The certificate that the gardenlet of seed `local` lives by.
async fn certificate(landscape: &Landscape) -> ClientCertificate {
    let secret = in_seed(landscape).get(KUBECONFIG_SECRET).await.unwrap();
    kubeconfig(&secret).certificate().unwrap()
}

/// Name and user of each signing request, the oldest first.
async fn requests(landscape: &Landscape) -> Vec<CertificateSigningRequest> {
    let requests: Api<CertificateSigningRequest> = Api::all(landscape.garden());
    let mut all = requests.list(&ListParams::default()).await.unwrap().items;
    all.sort_by_key(|request| {
        let version = request.resource_version().unwrap_or_default();
        (request.creation_timestamp().map(|time| time.0), version)
    });
    all
}

fn user(request: &CertificateSigningRequest) -> &str {
    request.spec.username.as_deref().unwrap_or_default()
}

/// Waits until the Seed tells when a certificate expires.
async fn told(landscape: &Landscape, expires: i64) {
    let seeds: Api<Seed> = Api::all(landscape.garden());
    let look = || async {
        let status = seeds.get("local").await.unwrap().status;
        let told = status.client_certificate_expiration_timestamp;
        let told = told.map(|time| time.0.as_second());
        (told == Some(expires)).then_some(()).ok_or_else(|| format!("{told:?}"))
    };
    landscape.until("the seed tells the certificate's end", look).await;
}

/// Waits until the gardenlet of seed `local` has thrown away the token that it got in by.
pub async fn token_is_gone(landscape: &Landscape) {
    let tokens: Api<Secret> = Api::namespaced(landscape.garden(), "kube-system");
    let gone = || async {
        let found = tokens.get_opt(&token_secret("garden", "local")).await.unwrap();
        found.is_none().then_some(()).ok_or_else(|| "it is there".to_owned())
    };
    landscape.until("the token is deleted", gone).await;
}

/// The certificate by which the gardenlet of seed `local` got in.
async fn first_certificate(landscape: &Landscape) -> ClientCertificate {
    token_is_gone(landscape).await;
    certificate(landscape).await
}

/// Waits until there is another certificate than one of before.
async fn renewed(landscape: &Landscape, old: &ClientCertificate) -> ClientCertificate {
    let look = || async {
        let now = certificate(landscape).await;
        (now.not_after != old.not_after).then_some(now).ok_or_else(String::new)
    };
    landscape.until("the certificate is renewed", look).await
}

#[tokio::test(start_paused = true)]
async fn auth_32_a_gardenlet_asks_for_its_own_kubeconfig() {
    let landscape = Landscape::start(1).await;
    let seeds: Api<Seed> = Api::all(landscape.garden());
    let registered = || async {
        let seed = seeds.get("local").await.unwrap();
        let expires = seed.status.client_certificate_expiration_timestamp;
        expires.map(|time| time.0.as_second()).ok_or_else(String::new)
    };
    let expires = landscape.until("the seed is looked after", registered).await;
    let own = certificate(&landscape).await;
    assert_eq!((own.common_name.as_str(), own.not_after), (USER, expires));
    // one request, by the bootstrap token, in the shape of [AUTH-30]
    let all = requests(&landscape).await;
    assert_eq!(all.len(), 1);
    let id = token_id("garden", "local");
    assert_eq!(user(&all[0]), format!("system:bootstrap:{id}"));
    assert!(all[0].name_any().starts_with("seed-csr-"));
    let spec = &all[0].spec;
    assert_eq!(
        (spec.signer_name.as_str(), spec.expiration_seconds),
        ("kubernetes.io/kube-apiserver-client", None)
    );
    let asked = Request::read(&spec.request.0, user(&all[0]), spec.usages.as_deref().unwrap()).unwrap();
    assert_eq!(gardenlets::seed_client(&asked), Ok("local"));
    assert_eq!(conditions(&all[0])[0].1, "AutoApproved");
    // what it got in by is thrown away, in the seed and in the garden
    assert!(in_seed(&landscape).get_opt(BOOTSTRAP_SECRET).await.unwrap().is_none());
    token_is_gone(&landscape).await;
}

#[tokio::test(start_paused = true)]
async fn auth_32_certificates_are_renewed_in_time() {
    let landscape = Landscape::start(1).await;
    let first = first_certificate(&landscape).await;
    // somebody gives the gardenlet a certificate that is good for ten minutes
    let mut short = request("seed-csr-short", USER, "gardener.cloud:system:seeds");
    short.spec.expiration_seconds = Some(600);
    let pair = gardener_pki::request(&gardener_pki::Subject::client(USER, &["gardener.cloud:system:seeds"])).unwrap();
    short.spec.request = k8s_openapi::ByteString(pair.certificate.clone().into_bytes());
    let api: Api<CertificateSigningRequest> = Api::all(landscape.garden());
    api.create(&PostParams::default(), &short).await.unwrap();
    let issued = decided(&landscape, "seed-csr-short")
        .await
        .status
        .unwrap()
        .certificate
        .unwrap();
    let secrets = in_seed(&landscape);
    let mut secret = secrets.get(KUBECONFIG_SECRET).await.unwrap();
    let access = GardenAccess {
        credentials: Credentials::Certificate(gardener_pki::Issued {
            certificate: String::from_utf8(issued.0).unwrap(),
            key: pair.key,
        }),
        ..kubeconfig(&secret)
    };
    secret.data = Some(access.secret_data());
    secrets
        .replace(KUBECONFIG_SECRET, &PostParams::default(), &secret)
        .await
        .unwrap();
    let short = certificate(&landscape).await;
    assert_ne!(short, first);
    told(&landscape, short.not_after).await;
    // it asks for the next one with this one, when 70 to 90 % of its time are over
    let next = renewed(&landscape, &short).await;
    let all = requests(&landscape).await;
    let last = all.last().unwrap();
    assert_eq!((all.len(), user(last)), (3, USER));
    let asked = last.creation_timestamp().unwrap().0.as_second();
    let (whole, passed) = (short.not_after - short.not_before, asked - short.not_before);
    assert!(
        (whole * 70..=whole * 90 + 100).contains(&(passed * 100)),
        "{passed} of {whole} seconds had passed"
    );
    told(&landscape, next.not_after).await;
    // and lives on with it
    let now = landscape.clock().now();
    let seeds: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(landscape.garden(), "gardener-system-seed-lease");
    let alive = || async {
        let lease = seeds.get("local").await.unwrap().spec.and_then(|spec| spec.renew_time);
        let renewed = lease.is_some_and(|time| time.0 > now + SignedDuration::from_secs(60));
        renewed.then_some(()).ok_or_else(String::new)
    };
    landscape.until("the gardenlet renews its lease", alive).await;
}

#[tokio::test(start_paused = true)]
async fn auth_32_a_seed_may_ask_for_a_new_kubeconfig() {
    let landscape = Landscape::start(1).await;
    let seeds: Api<Seed> = Api::all(landscape.garden());
    let first = first_certificate(&landscape).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let patch = json!({"metadata": {"annotations": {"gardener.cloud/operation": "renew-kubeconfig"}}});
    seeds
        .patch("local", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let next = renewed(&landscape, &first).await;
    told(&landscape, next.not_after).await;
    assert!(
        !seeds
            .get("local")
            .await
            .unwrap()
            .annotations()
            .contains_key("gardener.cloud/operation")
    );
    let secret = in_seed(&landscape).get(KUBECONFIG_SECRET).await.unwrap();
    assert!(!secret.annotations().contains_key("gardener.cloud/operation"));
    let users: Vec<String> = requests(&landscape)
        .await
        .iter()
        .map(|one| user(one).to_owned())
        .collect();
    assert_eq!(users.last().map(String::as_str), Some(USER));
    assert_eq!(users.len(), 2);
}

/// A garden in which somebody deploys gardenlets, and what it deploys for.
async fn deployer() -> (Garden, token::Garden, token::Beneficiary) {
    let garden = Garden::open(1, "2026-01-01T00:00:00Z").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}});
    garden.create(namespace).await.unwrap();
    let own = token::Garden {
        client: garden.client.clone(),
        server: "https://garden".into(),
        authority: Some("authority".into()),
        clock: garden.clock.clone(),
    };
    let beneficiary = token::Beneficiary {
        kind: Bootstrapped::ManagedSeed,
        namespace: "garden".into(),
        name: "managed".into(),
        renews: false,
    };
    (garden, own, beneficiary)
}

async fn prepared(client: &Client) -> GardenAccess {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "garden");
    kubeconfig(&secrets.get(BOOTSTRAP_SECRET).await.unwrap())
}

async fn token_of(client: &Client) -> String {
    let access = prepared(client).await;
    assert_eq!(
        (access.server.as_str(), access.authority.as_deref()),
        ("https://garden", Some("authority"))
    );
    match access.credentials {
        Credentials::Token(token) => token,
        Credentials::Certificate(_) => panic!("a bootstrap kubeconfig has a token"),
    }
}

#[tokio::test(start_paused = true)]
async fn auth_33_tokens_are_made_when_they_are_needed() {
    let (garden, own, mut beneficiary) = deployer().await;
    let client = &garden.client;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "garden");
    let tokens: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    let prepare = async |beneficiary: &token::Beneficiary, seed: Option<&Seed>| {
        let done = token::prepare(&own, client, "garden", beneficiary, token::By::Token, seed).await;
        done.unwrap()
    };
    assert_eq!(prepare(&beneficiary, None).await, token::Need::Bootstrap);
    let first = token_of(client).await;
    let id = token_id("garden", "managed");
    assert!(first.starts_with(&format!("{id}.")), "{first}");
    let name = token_secret("garden", "managed");
    let expiration = async || {
        let secret = tokens.get(&name).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("bootstrap.kubernetes.io/token"));
        let data = secret.data.unwrap();
        let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
        assert_eq!(
            text("description"),
            "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/managed."
        );
        assert!(!data.contains_key("auth-extra-groups"));
        assert_eq!(
            (text("usage-bootstrap-authentication"), text("usage-bootstrap-signing")),
            ("true".into(), "true".into())
        );
        text("expiration")
    };
    assert_eq!(expiration().await, "2026-01-02T00:00:00Z");
    // a token that is good is used again; one that is not gets more time
    garden.pass("23h").await;
    assert_eq!(prepare(&beneficiary, None).await, token::Need::Bootstrap);
    assert_eq!(
        (token_of(client).await, expiration().await),
        (first.clone(), "2026-01-02T00:00:00Z".into())
    );
    garden.pass("2h").await;
    prepare(&beneficiary, None).await;
    assert_eq!(
        (token_of(client).await, expiration().await),
        (first, "2026-01-03T01:00:00Z".into())
    );
    // who has a kubeconfig needs nothing, until its certificate has expired or it is told to renew
    secrets.delete(BOOTSTRAP_SECRET, &Default::default()).await.unwrap();
    let stored = |name: &str| read::<Secret>(json!({"metadata": {"name": name, "namespace": "garden"}}));
    secrets
        .create(&PostParams::default(), &stored(KUBECONFIG_SECRET))
        .await
        .unwrap();
    let mut seed = Seed::default();
    let expires = |seed: &mut Seed, time: Timestamp| {
        seed.status.client_certificate_expiration_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
    };
    expires(&mut seed, garden.clock.now() + SignedDuration::from_hours(1));
    assert_eq!(prepare(&beneficiary, Some(&seed)).await, token::Need::Nothing);
    assert!(secrets.get_opt(BOOTSTRAP_SECRET).await.unwrap().is_none());
    beneficiary.renews = true;
    assert_eq!(prepare(&beneficiary, Some(&seed)).await, token::Need::BootstrapAnew);
    assert!(secrets.get_opt(KUBECONFIG_SECRET).await.unwrap().is_none());
    assert!(secrets.get_opt(BOOTSTRAP_SECRET).await.unwrap().is_some());
    secrets
        .create(&PostParams::default(), &stored(KUBECONFIG_SECRET))
        .await
        .unwrap();
    beneficiary.renews = false;
    expires(&mut seed, garden.clock.now() - SignedDuration::from_secs(1));
    assert_eq!(prepare(&beneficiary, Some(&seed)).await, token::Need::BootstrapAnew);
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn auth_33_managed_seeds_may_get_in_by_a_service_account() {
    let landscape = Landscape::start(1).await;
    let own = token::Garden {
        client: landscape.garden(),
        server: "https://garden".into(),
        authority: Some("authority".into()),
        clock: landscape.clock().clone(),
    };
    let beneficiary = token::Beneficiary {
        kind: Bootstrapped::ManagedSeed,
        namespace: "garden".into(),
        name: "managed".into(),
        renews: false,
    };
    let target = landscape.seed("local");
    let namespace: k8s_openapi::api::core::v1::Namespace = read(json!({"metadata": {"name": "managed"}}));
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(target.clone());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    for _ in 0..2 {
        let by = token::By::ServiceAccount;
        token::prepare(&own, &target, "managed", &beneficiary, by, None)
            .await
            .unwrap();
    }
    let secrets: Api<Secret> = Api::namespaced(target, "managed");
    let access = kubeconfig(&secrets.get(BOOTSTRAP_SECRET).await.unwrap());
    let Credentials::Token(token) = access.credentials else {
        panic!("a bootstrap kubeconfig has a token");
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(landscape.garden(), "garden");
    assert!(accounts.get("gardenlet-bootstrap-managed").await.is_ok());
    let bindings: Api<ClusterRoleBinding> = Api::all(landscape.garden());
    let binding = bindings
        .get("gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-managed")
        .await
        .unwrap();
    assert_eq!(binding.role_ref.name, "gardener.cloud:system:seed-bootstrapper");
    // it may ask for the certificate, and the certificate is issued
    let requests: Api<CertificateSigningRequest> = Api::all(landscape.server().client_with_token("garden", &token));
    let asked = request(
        "seed-csr-managed",
        "gardener.cloud:system:seed:managed",
        "gardener.cloud:system:seeds",
    );
    requests.create(&PostParams::default(), &asked).await.unwrap();
    let found = decided(&landscape, "seed-csr-managed").await;
    assert_eq!(conditions(&found)[0].1, "AutoApproved");
    assert_eq!(user(&found), "system:serviceaccount:garden:gardenlet-bootstrap-managed");
}
