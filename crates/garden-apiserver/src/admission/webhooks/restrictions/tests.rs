//! [AUTH-20]: the restrictions' tables, with the refusals as clients get them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apiserver::UserInfo;
use gardener_apiserver::definition::{Admission, Attributes, Context, Definition, Operation, Warnings};
use gardener_apiserver::kubernetes;
use gardener_apiserver::webhooks::Reinvocation;
use gardener_garden_authorizer::bootstrap::{self, Bootstrapped};
use serde_json::{Value, json};

use super::{SeedRestriction, ShootRestriction};
use crate::tests::garden::Garden;
use crate::{Options, definitions};

const CORE: &str = "core.gardener.cloud";

/// A question, the object that it brings, and the refusal if it is refused.
type Case<'a> = (&'a str, Value, Option<(i32, &'a str)>);

struct World {
    garden: Garden,
    definitions: Vec<Arc<Definition>>,
}

fn meta(namespace: &str, name: &str) -> Value {
    match namespace {
        "" => json!({"name": name}),
        namespace => json!({"namespace": namespace, "name": name}),
    }
}

impl World {
    /// Seeds `a` and `b`, a shoot and a bucket on each, and seed `m`, which runs as a shoot on `a`.
    fn new() -> Self {
        let mut definitions = definitions(&Options::default()).unwrap();
        definitions.extend(kubernetes::resources().unwrap().0.iter().cloned());
        let mut garden = Garden::new();
        for seed in ["a", "b"] {
            let mut own = json!({"metadata": meta("", seed)});
            own["metadata"]["uid"] = format!("uid-{seed}").into();
            garden.put(CORE, "seeds", own);
            garden.put(
                CORE,
                "shoots",
                json!({"metadata": meta("garden-dev", &format!("on-{seed}")), "spec": {"seedName": seed}}),
            );
            garden.put(
                CORE,
                "backupbuckets",
                json!({"metadata": meta("", &format!("bucket-{seed}")), "spec": {"seedName": seed}}),
            );
        }
        garden.put(
            CORE,
            "shoots",
            json!({"metadata": meta("garden-dev", "moving"), "spec": {"seedName": "b"},
                "status": {"seedName": "a", "lastOperation": {"type": "Restore", "state": "Processing"}}}),
        );
        garden.put(
            CORE,
            "backupentries",
            json!({"metadata": meta("garden-dev", "entry"), "spec": {"bucketName": "bucket-b", "seedName": "b"}}),
        );
        garden.put(
            CORE,
            "shoots",
            json!({"metadata": meta("garden", "runs-m"), "spec": {"seedName": "a"}}),
        );
        garden.put(
            "seedmanagement.gardener.cloud",
            "managedseeds",
            json!({"metadata": meta("garden", "m"), "spec": {"shoot": {"name": "runs-m"}, "gardenlet": {"config": {
                "seedConfig": {"spec": {"backup": {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup-m"}}}}}}}}),
        );
        garden.put(
            "seedmanagement.gardener.cloud",
            "gardenlets",
            json!({"metadata": meta("garden", "a"), "spec": {}}),
        );
        Self { garden, definitions }
    }

    /// What the plugins say to a write of `user`: `<operation> [group:]resource namespace name`.
    async fn ask(&self, user: &UserInfo, question: &str, object: Value) -> Result<(), (i32, String)> {
        let words: Vec<&str> = question
            .split(' ')
            .map(|word| if word == "-" { "" } else { word })
            .collect();
        let [operation, resource, namespace, name] = words.as_slice() else {
            panic!("{question}")
        };
        let (group, resource) = resource.split_once(':').unwrap_or((CORE, resource));
        let definition = self
            .definitions
            .iter()
            .find(|own| own.group == group && own.plural == resource);
        let definition = definition.unwrap_or_else(|| panic!("{question}"));
        let context = Context {
            user,
            cluster: "garden",
            now: "2026-05-01T10:00:00Z".parse().unwrap(),
            chance: 7,
            dry_run: false,
            verb: "",
            lister: &self.garden,
        };
        let mut object = object;
        object["metadata"]["name"] = (*name).into();
        object["metadata"]["namespace"] = (*namespace).into();
        let operation = match *operation {
            "create" => Operation::Create,
            "update" => Operation::Update,
            "delete" => Operation::Delete,
            other => panic!("{other}"),
        };
        let attributes = Attributes {
            operation,
            definition,
            version: &definition.versions[0].name,
            subresource: "",
            namespace,
            name,
            object: (operation != Operation::Delete).then(|| object.into()),
            old: None,
            context: &context,
            options: &Value::Null,
            empties: Arc::default(),
            audited: gardener_apiserver::audit::Audited::default(),
            until: None,
            with_collection: false,
            warnings: Warnings::default(),
            reinvocation: Reinvocation::default(),
        };
        for plugin in [&SeedRestriction as &dyn Admission, &ShootRestriction] {
            if let Err(error) = plugin.validate(&attributes).await {
                assert_eq!(error.status().reason, None, "as webhooks answer");
                return Err((error.code().into(), error.message().to_owned()));
            }
        }
        Ok(())
    }

    async fn table(&self, user: &UserInfo, webhook: &str, cases: Vec<Case<'_>>) {
        for (question, object, refused) in cases {
            let expected = match refused {
                None => Ok(()),
                Some((code, why)) => Err((
                    code,
                    format!("admission webhook \"{webhook}\" denied the request: {why}"),
                )),
            };
            assert_eq!(
                self.ask(user, question, object.clone()).await,
                expected,
                "{question} {object}"
            );
        }
    }
}

fn gardenlet(seed: &str) -> UserInfo {
    UserInfo::new(
        &format!("gardener.cloud:system:seed:{seed}"),
        &["gardener.cloud:system:seeds"],
    )
}

fn extension(seed: &str) -> UserInfo {
    UserInfo::service_account(&format!("seed-{seed}"), "extension-x", "")
}

fn csr(organization: &str, name: &str) -> Value {
    let made = gardener_pki::request(&gardener_pki::Subject::client(name, &[organization])).unwrap();
    json!({"spec": {"request": STANDARD.encode(made.certificate), "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth", "digital signature", "key encipherment"]}})
}

fn token(kind: Bootstrapped, name: &str) -> Value {
    let text = |text: &str| STANDARD.encode(text);
    json!({"type": "bootstrap.kubernetes.io/token", "data": {
        "description": text(&bootstrap::description(kind, "garden", name)),
        "usage-bootstrap-authentication": text("true"), "usage-bootstrap-signing": text("true")}})
}

const SEED: &str = "seed-restriction.gardener.cloud";
const SHOOT: &str = "shoot-restriction.gardener.cloud";
const FOREIGN: Option<(i32, &str)> = Some((403, "object does not belong to seed \"a\""));

fn on(seed: &str) -> Value {
    json!({"spec": {"seedName": seed}})
}

#[tokio::test]
async fn w55_buckets_of_another_seed() {
    let world = World::new();
    let cases = vec![
        ("create backupbuckets - x", on("a"), None),
        ("create backupbuckets - x", on("b"), FOREIGN),
        ("create backupbuckets - x", json!({"spec": {}}), FOREIGN),
        ("delete backupbuckets - uid-a", json!({}), None),
        (
            "delete backupbuckets - uid-b",
            json!({}),
            Some((403, "cannot delete unrelated BackupBucket")),
        ),
    ];
    world.table(&gardenlet("a"), SEED, cases).await;
    // others are none of its business
    let admin = UserInfo::new("admin", &[]);
    world
        .table(&admin, SEED, vec![("create backupbuckets - x", on("b"), None)])
        .await;
}

#[tokio::test]
async fn auth_20_what_seeds_gardenlets_create() {
    let world = World::new();
    let entry = |bucket: &str, seed: &str| json!({"spec": {"bucketName": bucket, "seedName": seed}});
    let source = |bucket: &str, shoot: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": shoot, "uid": "u"}]},
            "spec": {"bucketName": bucket, "seedName": "b"}})
    };
    let nothing = || json!({});
    let missing = Some((403, "Shoot.core.gardener.cloud \"gone\" not found"));
    let bootstrapper =
        |role: &str| json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
    let issuer = |labels: Value| json!({"metadata": {"labels": labels}});
    let binding_m = format!(
        "create rbac.authorization.k8s.io:clusterrolebindings - {}",
        bootstrap::binding("garden", "m")
    );
    let binding_x = format!(
        "create rbac.authorization.k8s.io:clusterrolebindings - {}",
        bootstrap::binding("garden", "x")
    );
    let no_managed_seed = Some((403, "ManagedSeed.seedmanagement.gardener.cloud \"x\" not found"));
    let cases = vec![
        ("create backupentries garden-dev x", entry("bucket-a", "a"), None),
        ("create backupentries garden-dev x", entry("bucket-b", "a"), FOREIGN),
        ("create backupentries garden-dev x", entry("bucket-a", "b"), FOREIGN),
        (
            "create backupentries garden-dev x",
            entry("gone", "a"),
            Some((500, "BackupBucket.core.gardener.cloud \"gone\" not found")),
        ),
        ("create operations.gardener.cloud:bastions garden-dev x", on("a"), None),
        (
            "create operations.gardener.cloud:bastions garden-dev x",
            on("b"),
            FOREIGN,
        ),
        ("update operations.gardener.cloud:bastions garden-dev x", on("b"), None),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr("gardener.cloud:system:seeds", "gardener.cloud:system:seed:a"),
            None,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr("gardener.cloud:system:seeds", "gardener.cloud:system:seed:b"),
            FOREIGN,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr("system:masters", "gardener.cloud:system:seed:a"),
            Some((
                403,
                "can only create CSRs for seed clusters: subject's organization is not set to [gardener.cloud:system:seeds]",
            )),
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            json!({"spec": {"request": "eA==", "signerName": "x"}}),
            Some((400, "PEM block type must be CERTIFICATE REQUEST")),
        ),
        (
            "create rbac.authorization.k8s.io:clusterrolebindings - x",
            bootstrapper("x"),
            FOREIGN,
        ),
        (&binding_m, bootstrapper(bootstrap::BOOTSTRAPPER_ROLE), None),
        (
            &binding_m,
            bootstrapper("cluster-admin"),
            Some((403, "can only bindings referring to the bootstrapper role")),
        ),
        (&binding_x, bootstrapper(bootstrap::BOOTSTRAPPER_ROLE), no_managed_seed),
        ("create :configmaps garden-dev on-a.ca-cluster", nothing(), None),
        ("create :configmaps garden-dev on-a.ca-kubelet", nothing(), None),
        ("create :configmaps garden-dev on-b.ca-cluster", nothing(), FOREIGN),
        ("create :configmaps garden-dev gone.ca-cluster", nothing(), missing),
        ("create :configmaps garden-dev whatever", nothing(), FOREIGN),
        ("create internalsecrets garden-dev on-a.ca-client", nothing(), None),
        ("create internalsecrets garden-dev on-b.ca-client", nothing(), FOREIGN),
        ("create internalsecrets garden-dev on-a.ssh-keypair", nothing(), FOREIGN),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden b",
            nothing(),
            FOREIGN,
        ),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden-dev a",
            nothing(),
            Some((400, "object must be in namespace: \"garden\"")),
        ),
        (
            "create coordination.k8s.io:leases gardener-system-seed-lease a",
            nothing(),
            None,
        ),
        (
            "create coordination.k8s.io:leases gardener-system-seed-lease b",
            nothing(),
            FOREIGN,
        ),
        (
            "create coordination.k8s.io:leases garden gardenlet-leader-election",
            nothing(),
            None,
        ),
        ("create coordination.k8s.io:leases seed-a x", nothing(), FOREIGN),
        ("create :secrets garden-dev on-a.ssh-keypair.old", nothing(), None),
        ("create :secrets garden-dev on-b.monitoring", nothing(), FOREIGN),
        ("create :secrets garden-dev gone.monitoring", nothing(), missing),
        ("create :secrets garden generated-bucket-bucket-a", nothing(), None),
        ("create :secrets garden generated-bucket-bucket-b", nothing(), FOREIGN),
        (
            "create :secrets garden generated-bucket-gone",
            nothing(),
            Some((403, "BackupBucket.core.gardener.cloud \"gone\" not found")),
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            nothing(),
            Some((422, "label \"shoot.gardener.cloud/name\" is missing")),
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            issuer(json!({"shoot.gardener.cloud/name": "on-a"})),
            Some((422, "label \"shoot.gardener.cloud/namespace\" is missing")),
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            issuer(json!({"shoot.gardener.cloud/name": "on-a", "shoot.gardener.cloud/namespace": "garden-dev"})),
            Some((422, "label \"discovery.gardener.cloud/public\" is missing")),
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            issuer(
                json!({"shoot.gardener.cloud/name": "on-a", "shoot.gardener.cloud/namespace": "garden-dev", "discovery.gardener.cloud/public": "x"}),
            ),
            Some((
                422,
                "label \"discovery.gardener.cloud/public\" value must be set to \"serviceaccount\"",
            )),
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            issuer(
                json!({"shoot.gardener.cloud/name": "on-a", "shoot.gardener.cloud/namespace": "garden-dev", "discovery.gardener.cloud/public": "serviceaccount"}),
            ),
            None,
        ),
        (
            "create :secrets gardener-system-shoot-issuer x",
            issuer(
                json!({"shoot.gardener.cloud/name": "on-b", "shoot.gardener.cloud/namespace": "garden-dev", "discovery.gardener.cloud/public": "serviceaccount"}),
            ),
            FOREIGN,
        ),
        ("create :secrets garden backup-m", nothing(), None),
        ("create :secrets garden whatever", nothing(), FOREIGN),
        ("create :serviceaccounts seed-a x", nothing(), None),
        ("create :serviceaccounts seed-b x", nothing(), FOREIGN),
        ("create :serviceaccounts garden gardenlet-bootstrap-m", nothing(), None),
        (
            "create :serviceaccounts garden gardenlet-bootstrap-x",
            nothing(),
            no_managed_seed,
        ),
        ("create shootstates garden-dev on-a", nothing(), None),
        ("create shootstates garden-dev on-b", nothing(), FOREIGN),
        ("create shootstates garden-dev moving", nothing(), None),
        (
            "create shootstates garden-dev gone",
            nothing(),
            Some((500, "Shoot.core.gardener.cloud \"gone\" not found")),
        ),
        ("create seeds - a2", nothing(), FOREIGN),
        ("update seeds - a", nothing(), None),
        ("update seeds - b", nothing(), FOREIGN),
        ("delete seeds - a", nothing(), None),
        ("delete seeds - b", nothing(), FOREIGN),
        (
            "delete seeds - m",
            nothing(),
            Some((
                403,
                "object can only be deleted if corresponding ManagedSeed has a deletion timestamp",
            )),
        ),
        // what is there is answered by the machinery
        ("create seeds - b", nothing(), None),
        ("create shoots garden-dev x", nothing(), None),
    ];
    world.table(&gardenlet("a"), SEED, cases).await;
    let b = vec![
        (
            "create backupentries garden-dev source-entry",
            source("bucket-b", "moving"),
            None,
        ),
        (
            "create backupentries garden-dev source-entry",
            source("bucket-a", "moving"),
            Some((
                403,
                "specification of source BackupEntry must equal specification of original BackupEntry entry",
            )),
        ),
        (
            "create backupentries garden-dev source-gone",
            source("bucket-b", "moving"),
            Some((
                403,
                "could not find original BackupEntry gone: BackupEntry.core.gardener.cloud \"gone\" not found",
            )),
        ),
        (
            "create backupentries garden-dev source-entry",
            source("bucket-b", "on-b"),
            Some((
                403,
                "creation of source BackupEntry is only allowed during shoot Restore operation (shoot: on-b)",
            )),
        ),
        // seed m does not run on b
        (
            &binding_m,
            bootstrapper(bootstrap::BOOTSTRAPPER_ROLE),
            Some((403, "object does not belong to seed \"b\"")),
        ),
    ];
    world.table(&gardenlet("b"), SEED, b).await;
    let extensions = vec![
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr("gardener.cloud:system:seeds", "gardener.cloud:system:seed:a"),
            Some((403, "extension client may not create CertificateSigningRequests")),
        ),
        (
            "create rbac.authorization.k8s.io:clusterrolebindings - x",
            nothing(),
            Some((403, "extension client may not create ClusterRoleBindings")),
        ),
        (
            "create :serviceaccounts seed-a x",
            nothing(),
            Some((403, "extension client may not create ServiceAccounts")),
        ),
        ("create coordination.k8s.io:leases seed-a x", nothing(), None),
        (
            "create coordination.k8s.io:leases gardener-system-seed-lease a",
            nothing(),
            Some((
                403,
                "extension client can only create leases in the namespace for seed \"a\"",
            )),
        ),
        ("create backupbuckets - x", on("b"), FOREIGN),
    ];
    world.table(&extension("a"), SEED, extensions).await;
}

#[tokio::test]
async fn auth_20_bootstrap_tokens_while_they_are_needed() {
    let mut world = World::new();
    let name = |seed: &str| {
        format!(
            "create :secrets kube-system {}",
            bootstrap::token_secret("garden", seed)
        )
    };
    let (m, a, b) = (name("m"), name("a"), name("b"));
    let changed = |change: fn(&mut Value)| {
        let mut token = token(Bootstrapped::ManagedSeed, "m");
        change(&mut token);
        token
    };
    let cases = vec![
        (m.as_str(), changed(|_| {}), None),
        (
            &m,
            changed(|token| token["type"] = "Opaque".into()),
            Some((422, "unexpected secret type: \"Opaque\"")),
        ),
        (
            &m,
            changed(|token| token["data"]["usage-bootstrap-authentication"] = STANDARD.encode("false").into()),
            Some((422, "\"usage-bootstrap-authentication\" must be set to 'true'")),
        ),
        (
            &m,
            changed(|token| drop(token["data"].as_object_mut().unwrap().remove("usage-bootstrap-signing"))),
            Some((422, "\"usage-bootstrap-signing\" must be set to 'true'")),
        ),
        (
            &m,
            changed(|token| token["data"]["auth-extra-groups"] = STANDARD.encode("system:masters").into()),
            Some((422, "\"auth-extra-groups\" must not be set")),
        ),
        (
            &m,
            changed(|token| token["data"]["description"] = STANDARD.encode("x").into()),
            Some((
                400,
                "unknown kind \"\" found in bootstrap token secret description \"x\"",
            )),
        ),
        (
            &a,
            token(Bootstrapped::Gardenlet, "a"),
            Some((400, "gardenlet garden/a is already bootstrapped")),
        ),
        (
            &b,
            token(Bootstrapped::Gardenlet, "b"),
            Some((403, "gardenlet garden/b does not belong to seed \"a\"")),
        ),
    ];
    world.table(&gardenlet("a"), SEED, cases).await;
    let foreign = Some((403, "object does not belong to seed \"b\""));
    world
        .table(&gardenlet("b"), SEED, vec![(&m, changed(|_| {}), foreign)])
        .await;
    let seed =
        |expires: &str| json!({"metadata": meta("", "m"), "status": {"clientCertificateExpirationTimestamp": expires}});
    world.garden.put(CORE, "seeds", seed("2026-05-01T10:00:01Z"));
    let already = Some((400, "managed seed garden/m is already bootstrapped"));
    world
        .table(&gardenlet("a"), SEED, vec![(&m, changed(|_| {}), already)])
        .await;
    world.garden.put(CORE, "seeds", seed("2026-05-01T09:59:59Z"));
    world
        .table(&gardenlet("a"), SEED, vec![(&m, changed(|_| {}), None)])
        .await;
    world.garden.put(CORE, "seeds", seed("2026-06-01T00:00:00Z"));
    let mut managed = json!({"metadata": meta("garden", "m"), "spec": {"shoot": {"name": "runs-m"}}});
    managed["metadata"]["annotations"] = json!({"gardener.cloud/operation": "renew-kubeconfig"});
    world
        .garden
        .put("seedmanagement.gardener.cloud", "managedseeds", managed);
    world
        .table(&gardenlet("a"), SEED, vec![(&m, changed(|_| {}), None)])
        .await;
}

#[tokio::test]
async fn adm_78_what_self_hosted_shoots_create() {
    let mut world = World::new();
    let shoot = |name: &str| json!({"spec": {"shootRef": {"namespace": "garden-dev", "name": name}}});
    for name in ["a", "b"] {
        let mut bucket = shoot(name);
        bucket["metadata"] = meta("", &format!("of-{name}"));
        world.garden.put(CORE, "backupbuckets", bucket);
    }
    let entry = |bucket: &str, name: &str| {
        let mut entry = shoot(name);
        entry["spec"]["bucketName"] = bucket.into();
        entry
    };
    let managed = json!({"metadata": meta("garden-dev", "seed-a"), "spec": {"shoot": {"name": "a"}}});
    world
        .garden
        .put("seedmanagement.gardener.cloud", "managedseeds", managed);
    let nothing = || json!({});
    let user = UserInfo::new(
        "gardener.cloud:system:shoot:garden-dev:a",
        &["gardener.cloud:system:shoots"],
    );
    let foreign = Some((403, "object does not belong to shoot garden-dev/a"));
    let prefix = Some((
        400,
        "the resource for self-hosted shoots must be prefixed with \"self-hosted-shoot-\"",
    ));
    let cases = vec![
        ("create backupbuckets - x", shoot("a"), None),
        ("create backupbuckets - x", shoot("b"), foreign),
        ("create backupbuckets - x", on("a"), foreign),
        ("create backupentries garden-dev x", entry("of-a", "a"), None),
        ("create backupentries garden-dev x", entry("of-b", "a"), foreign),
        ("create backupentries garden-dev x", entry("bucket-a", "a"), foreign),
        (
            "create backupentries garden-dev x",
            entry("gone", "a"),
            Some((403, "BackupBucket.core.gardener.cloud \"gone\" not found")),
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr(
                "gardener.cloud:system:shoots",
                "gardener.cloud:system:shoot:garden-dev:a",
            ),
            None,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr(
                "gardener.cloud:system:shoots",
                "gardener.cloud:system:shoot:garden-dev:b",
            ),
            foreign,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            csr("gardener.cloud:system:seeds", "gardener.cloud:system:seed:a"),
            Some((
                403,
                "can only create CSRs for shoot clusters: subject's organization is not set to [gardener.cloud:system:shoots]",
            )),
        ),
        ("create :configmaps garden-dev a.ca-cluster", nothing(), None),
        ("create :configmaps garden-dev b.ca-cluster", nothing(), foreign),
        ("create :configmaps garden-x a.ca-cluster", nothing(), foreign),
        ("create internalsecrets garden-dev a.ca-client", nothing(), None),
        ("create internalsecrets garden-dev x", nothing(), foreign),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden-dev self-hosted-shoot-a",
            nothing(),
            None,
        ),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden-dev self-hosted-shoot-b",
            nothing(),
            foreign,
        ),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden-dev a",
            nothing(),
            prefix,
        ),
        (
            "create coordination.k8s.io:leases garden-dev self-hosted-shoot-a",
            nothing(),
            None,
        ),
        ("create coordination.k8s.io:leases garden-dev a", nothing(), prefix),
        (
            "update seedmanagement.gardener.cloud:managedseeds garden-dev seed-a",
            nothing(),
            None,
        ),
        (
            "update seedmanagement.gardener.cloud:managedseeds garden m",
            nothing(),
            foreign,
        ),
        ("create :secrets garden-dev a.ssh-keypair", nothing(), None),
        ("create :secrets garden-dev b.ssh-keypair", nothing(), foreign),
        ("create :secrets garden generated-bucket-of-a", nothing(), None),
        ("create :secrets garden generated-bucket-of-b", nothing(), foreign),
        (
            "create :secrets garden generated-bucket-bucket-a",
            nothing(),
            Some((
                403,
                ".spec.shootRef must be set in the BackupBucket resource \"bucket-a\" belonging to this Secret",
            )),
        ),
        (
            "create :secrets kube-system bootstrap-token-x",
            token(Bootstrapped::ManagedSeed, "m"),
            foreign,
        ),
        ("create :secrets garden-dev x", nothing(), foreign),
        (
            "create :serviceaccounts garden-dev extension-shoot--a--x",
            nothing(),
            None,
        ),
        (
            "create :serviceaccounts garden-dev extension-shoot--b--x",
            nothing(),
            foreign,
        ),
        ("create shootstates garden-dev a", nothing(), None),
        ("create shootstates garden-dev b", nothing(), foreign),
        (
            "create shoots garden-dev a",
            nothing(),
            Some((400, "unexpected resource: \"shoots.core.gardener.cloud\"")),
        ),
    ];
    world.table(&user, SHOOT, cases).await;
    let user = UserInfo::service_account("garden-dev", "extension-shoot--a--x", "");
    let cases = vec![
        ("create coordination.k8s.io:leases garden-dev a--x", nothing(), None),
        (
            "create coordination.k8s.io:leases garden-dev b--x",
            nothing(),
            Some((
                403,
                "extension client can only create leases with the shoot name \"a\" as prefix",
            )),
        ),
        (
            "create coordination.k8s.io:leases garden-x a--x",
            nothing(),
            Some((
                403,
                "extension client can only create leases in the namespace for shoot \"garden-dev/a\"",
            )),
        ),
        (
            "create :serviceaccounts garden-dev x",
            nothing(),
            Some((403, "extension client may not create ServiceAccounts")),
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - x",
            nothing(),
            Some((403, "only gardenlet clients may create CertificateSigningRequests")),
        ),
    ];
    world.table(&user, SHOOT, cases).await;
    let user = UserInfo::new(
        "gardener.cloud:gardenadm:shoot:garden-dev:a",
        &["gardener.cloud:system:shoots"],
    );
    let project = |namespace: &str| json!({"spec": {"namespace": namespace}});
    let cases = vec![
        ("create :secrets garden-dev x", nothing(), None),
        ("create :configmaps garden-x x", nothing(), foreign),
        (
            "create security.gardener.cloud:workloadidentities garden-dev x",
            nothing(),
            None,
        ),
        ("create projects - dev", project("garden-dev"), None),
        ("create projects - x", project("garden-x"), foreign),
        ("create shoots garden-dev a", nothing(), None),
        ("create shoots garden-dev b", nothing(), foreign),
        (
            "create backupbuckets - x",
            nothing(),
            Some((400, "unexpected resource: \"backupbuckets.core.gardener.cloud\"")),
        ),
    ];
    world.table(&user, SHOOT, cases).await;
}
