//! [AUTH-1] – [AUTH-5]: the table of the seed authorizer.

use serde_json::json;

use super::*;
use crate::bootstrap;
use crate::identity::{Client, SeedIdentity};
use crate::seeds::authorize;

const UNRELATED: &str = "no relationship found";

fn reference(kind: &str, namespace: &str, name: &str) -> Value {
    let api_version = match kind {
        "WorkloadIdentity" => "security.gardener.cloud/v1alpha1",
        "InternalSecret" => "core.gardener.cloud/v1beta1",
        _ => "v1",
    };
    json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name})
}

/// Two seeds; a shoot of each kind of reference on seed `a`, and one on seed `b`.
fn objects() -> Vec<(Source, Value)> {
    let shoot = |name: &str, seed: &str| {
        json!({
            "metadata": {"namespace": "garden-dev", "name": name, "uid": format!("uid-{name}"),
                "annotations": {"authentication.gardener.cloud/issuer": "managed"}},
            "spec": {
                "seedName": seed,
                "cloudProfile": {"name": format!("profile-{seed}")},
                "credentialsBindingName": format!("binding-{seed}"),
                "secretBindingName": format!("old-{seed}"),
                "exposureClassName": format!("class-{seed}"),
                "kubernetes": {"kubeAPIServer": {
                    "auditConfig": {"auditPolicy": {"configMapRef": {"name": format!("audit-{seed}")}}},
                    "structuredAuthentication": {"configMapName": format!("authn-{seed}")},
                    "structuredAuthorization": {
                        "configMapName": format!("authz-{seed}"),
                        "kubeconfigs": [{"authorizerName": "x", "secretName": format!("authz-kubeconfig-{seed}")}],
                    },
                }},
                "dns": {"providers": [
                    {"credentialsRef": reference("Secret", "", &format!("dns-{seed}"))},
                    {"credentialsRef": reference("WorkloadIdentity", "", &format!("dns-{seed}"))},
                ]},
                "resources": [
                    {"name": "s", "resourceRef": reference("Secret", "", &format!("res-{seed}"))},
                    {"name": "c", "resourceRef": reference("ConfigMap", "", &format!("res-{seed}"))},
                    {"name": "w", "resourceRef": reference("WorkloadIdentity", "", &format!("res-{seed}"))},
                ],
            },
        })
    };
    let mut objects = vec![(
        Source::Project,
        json!({"metadata": named("", "dev"), "spec": {"namespace": "garden-dev"}}),
    )];
    for seed in ["a", "b"] {
        let at = |text: &str| format!("{text}-{seed}");
        objects.extend([
            (
                Source::Seed,
                json!({"metadata": named("", seed), "spec": {
                    "backup": {"credentialsRef": reference("Secret", "garden", &at("backup"))},
                    "dns": {
                        "provider": {"credentialsRef": reference("Secret", "garden", &at("provider"))},
                        "internal": {"credentialsRef": reference("WorkloadIdentity", "garden", &at("internal"))},
                        "defaults": [{"credentialsRef": reference("Secret", "garden", &at("default"))}],
                    },
                    "resources": [{"name": "r", "resourceRef": reference("ConfigMap", "", &at("seed-res"))}],
                }}),
            ),
            (Source::Shoot, shoot(&format!("on-{seed}"), seed)),
            (
                Source::CredentialsBinding,
                json!({"metadata": named("garden-dev", &at("binding")),
                    "credentialsRef": reference("InternalSecret", "garden-dev", &at("internal"))}),
            ),
            (
                Source::SecretBinding,
                json!({"metadata": named("garden-dev", &at("old")),
                    "secretRef": {"namespace": "garden-dev", "name": at("provider")}}),
            ),
            (
                Source::BackupBucket,
                json!({"metadata": named("", &at("bucket")),
                    "spec": {"seedName": seed, "credentialsRef": reference("Secret", "garden", &at("bucket"))},
                    "status": {"generatedSecretRef": {"namespace": "garden", "name": format!("generated-bucket-bucket-{seed}")}}}),
            ),
            (
                Source::BackupEntry,
                json!({"metadata": {"namespace": "garden-dev", "name": at("entry"), "ownerReferences": [{"kind": "Shoot", "name": format!("on-{seed}")}]},
                    "spec": {"seedName": seed, "bucketName": at("bucket")}}),
            ),
            (
                Source::Bastion,
                json!({"metadata": named("garden-dev", &at("bastion")), "spec": {"seedName": seed, "shootRef": {"name": format!("on-{seed}")}}}),
            ),
            (
                Source::ControllerInstallation,
                json!({"metadata": named("", &at("inst")), "spec": {
                    "seedRef": {"name": seed}, "registrationRef": {"name": "reg"}, "deploymentRef": {"name": at("deployment")}}}),
            ),
            (
                Source::ControllerDeployment,
                json!({"metadata": named("", &at("deployment")),
                    "helm": {"ociRepository": {"pullSecretRef": {"name": at("pull")}, "caBundleSecretRef": {"name": at("ca")}}},
                    "resources": [{"name": "x", "resourceRef": reference("ConfigMap", "", &at("chart"))}]}),
            ),
            (
                Source::Gardenlet,
                json!({"metadata": named("garden", seed), "spec": {
                    "deployment": {"helm": {"ociRepository": {"pullSecretRef": {"name": at("gardenlet-pull")}}}}, "config": {}}}),
            ),
        ]);
    }
    objects
}

fn ask(belongings: &Belongings, seed: &str, client: Client, text: &str) -> Answer {
    authorize(belongings, SeedIdentity { seed, client }, &question(text))
}

const GRAPH: [&str; 46] = [
    "shoots garden-dev on-a",
    "shootstates garden-dev on-a",
    "cloudprofiles - profile-a",
    "exposureclasses - class-a",
    "security.gardener.cloud:credentialsbindings garden-dev binding-a",
    "secretbindings garden-dev old-a",
    "internalsecrets garden-dev internal-a",
    "internalsecrets garden-dev on-a.ca-client",
    ":secrets garden-dev provider-a",
    ":secrets garden-dev dns-a",
    ":secrets garden-dev res-a",
    ":secrets garden-dev authz-kubeconfig-a",
    ":secrets garden-dev on-a.ca-cluster",
    ":secrets garden-dev on-a.ssh-keypair",
    ":secrets garden-dev on-a.ssh-keypair.old",
    ":secrets garden-dev on-a.monitoring",
    ":secrets gardener-system-shoot-issuer dev--uid-on-a",
    ":configmaps garden-dev audit-a",
    ":configmaps garden-dev authn-a",
    ":configmaps garden-dev authz-a",
    ":configmaps garden-dev res-a",
    ":configmaps garden-dev on-a.ca-cluster",
    ":configmaps garden-dev on-a.ca-kubelet",
    "security.gardener.cloud:workloadidentities garden-dev dns-a",
    "security.gardener.cloud:workloadidentities garden-dev res-a",
    ":namespaces garden-dev garden-dev",
    "projects - dev",
    ":secrets garden backup-a",
    ":secrets garden provider-a",
    ":secrets garden default-a",
    "security.gardener.cloud:workloadidentities garden internal-a",
    ":configmaps garden seed-res-a",
    ":configmaps kube-system cluster-identity",
    ":namespaces seed-a seed-a",
    "coordination.k8s.io:leases gardener-system-seed-lease a",
    "seeds - a",
    ":secrets garden bucket-a",
    ":secrets garden generated-bucket-bucket-a",
    "operations.gardener.cloud:bastions garden-dev bastion-a",
    "controllerinstallations - inst-a",
    "controllerdeployments - deployment-a",
    ":secrets garden pull-a",
    ":secrets garden ca-a",
    ":configmaps garden chart-a",
    "seedmanagement.gardener.cloud:gardenlets garden a",
    ":secrets garden gardenlet-pull-a",
];

#[test]
fn auth_3_what_is_named_by_a_seeds_objects_may_be_read() {
    let belongings = garden(&objects());
    let shared = ["garden-dev garden-dev", "projects - dev", "cluster-identity"];
    for object in GRAPH {
        let text = format!("get {object}");
        for client in [Client::Gardenlet, Client::Extension] {
            // extensions may only use leases in their seed's namespace
            if client == Client::Extension && object.contains("leases") {
                continue;
            }
            assert_eq!(ask(&belongings, "a", client, &text), Answer::Allow, "{text}");
            if shared.iter().any(|own| object.ends_with(own)) {
                continue;
            }
            assert_eq!(ask(&belongings, "b", client, &text), no(UNRELATED), "{text}");
            assert_eq!(ask(&belongings, "c", client, &text), no(UNRELATED), "{text}");
        }
    }
}

#[test]
fn w53_shoots_of_another_seed() {
    let belongings = garden(&objects());
    let get = |seed: &str| ask(&belongings, seed, Client::Gardenlet, "get shoots garden-dev on-b");
    assert_eq!(get("a"), no(UNRELATED));
    assert_eq!(get("b"), Answer::Allow);
}

#[test]
fn w54_seeds_of_another_seed() {
    let mut belongings = garden(&objects());
    let get = |belongings: &Belongings| ask(belongings, "a", Client::Gardenlet, "get seeds - b");
    assert_eq!(get(&belongings), no(UNRELATED));
    let shoot = json!({"metadata": named("garden", "runs-b"), "spec": {"seedName": "a"}});
    put(&mut belongings, Source::Shoot, &shoot);
    let managed = json!({"metadata": named("garden", "b"), "spec": {"shoot": {"name": "runs-b"}}});
    put(&mut belongings, Source::ManagedSeed, &managed);
    assert_eq!(get(&belongings), Answer::Allow);
    // who runs a seed has all that it has
    let shoots = "get shoots garden-dev on-b";
    assert_eq!(ask(&belongings, "a", Client::Gardenlet, shoots), Answer::Allow);
    // not the other way round
    let shoots = "get shoots garden-dev on-a";
    assert_eq!(ask(&belongings, "b", Client::Gardenlet, shoots), no(UNRELATED));
    belongings.set(Source::ManagedSeed, "garden", "b", None);
    assert_eq!(get(&belongings), no(UNRELATED));
}

#[test]
fn auth_3_shoots_belong_to_both_seeds_while_they_move() {
    let mut belongings = garden(&objects());
    let get =
        |belongings: &Belongings, seed: &str| ask(belongings, seed, Client::Gardenlet, "get shoots garden-dev on-a");
    let shoot = |status: &str| json!({"metadata": named("garden-dev", "on-a"), "spec": {"seedName": "b"}, "status": {"seedName": status}});
    put(&mut belongings, Source::Shoot, &shoot("a"));
    assert_eq!(get(&belongings, "a"), Answer::Allow);
    assert_eq!(get(&belongings, "b"), Answer::Allow);
    put(&mut belongings, Source::Shoot, &shoot("b"));
    assert_eq!(get(&belongings, "a"), no(UNRELATED));
    // the entry of the backup still is of seed a, and of the shoot
    for seed in ["a", "b"] {
        let entry = ask(
            &belongings,
            seed,
            Client::Gardenlet,
            "patch backupentries garden-dev entry-a",
        );
        assert_eq!(entry, Answer::Allow, "{seed}");
    }
    belongings.set(Source::Shoot, "garden-dev", "on-a", None);
    assert_eq!(get(&belongings, "b"), no(UNRELATED));
}

#[test]
fn auth_4_verbs_and_subresources() {
    let belongings = garden(&objects());
    let verbs = |list: &str| format!("only the following verbs are allowed for this resource type: [{list}]");
    let subresources =
        |list: &str| format!("only the following subresources are allowed for this resource type: [{list}]");
    for (text, expected) in [
        ("create backupbuckets - x", Answer::Allow),
        ("get backupbuckets - bucket-b", Answer::Allow),
        ("list backupbuckets - -", Answer::Allow),
        ("update backupbuckets - bucket-a", Answer::Allow),
        ("update backupbuckets/status - bucket-a", Answer::Allow),
        ("update backupbuckets/finalizers - bucket-a", Answer::Allow),
        ("update backupbuckets - bucket-b", no(UNRELATED)),
        ("delete backupbuckets - bucket-b", no(UNRELATED)),
        ("delete backupbuckets - gone", Answer::Allow),
        (
            "deletecollection backupbuckets - -",
            no(&verbs("create delete get list patch update watch")),
        ),
        (
            "get backupbuckets/foo - bucket-a",
            no(&subresources("finalizers status")),
        ),
        ("get backupentries garden-dev entry-b", Answer::Allow),
        ("patch backupentries/status garden-dev entry-a", Answer::Allow),
        ("patch backupentries garden-dev entry-b", no(UNRELATED)),
        ("create operations.gardener.cloud:bastions garden-dev -", Answer::Allow),
        (
            "delete operations.gardener.cloud:bastions garden-dev bastion-a",
            no(&verbs("create get list patch update watch")),
        ),
        (
            "patch operations.gardener.cloud:bastions/status garden-dev bastion-a",
            Answer::Allow,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests - -",
            Answer::Allow,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests/seedclient - -",
            Answer::Allow,
        ),
        (
            "create certificates.k8s.io:certificatesigningrequests/shootclient - -",
            no(&subresources("seedclient")),
        ),
        ("get certificates.k8s.io:certificatesigningrequests - x", no(UNRELATED)),
        ("update cloudprofiles - profile-a", no(&verbs("get list watch"))),
        ("watch cloudprofiles - profile-a", Answer::Allow),
        (
            "list cloudprofiles - -",
            no("must specify field or label selector for name a"),
        ),
        ("get namespacedcloudprofiles garden-dev x", no(UNRELATED)),
        (
            "create rbac.authorization.k8s.io:clusterrolebindings - x",
            Answer::Allow,
        ),
        (
            "delete rbac.authorization.k8s.io:clusterrolebindings - x",
            no(&verbs("create get patch update")),
        ),
        (
            "delete rbac.authorization.k8s.io:clusterrolebindings - gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a",
            Answer::Allow,
        ),
        (
            "delete rbac.authorization.k8s.io:clusterrolebindings - gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-b",
            no(&verbs("create get patch update")),
        ),
        ("create :configmaps garden-dev x", Answer::Allow),
        ("get :configmaps gardener-system-public gardener-info", Answer::Allow),
        ("list :configmaps gardener-system-public gardener-info", no(UNRELATED)),
        ("delete :configmaps garden-dev on-b.ca-cluster", no(UNRELATED)),
        ("get controllerregistrations - whatever", Answer::Allow),
        ("patch controllerregistrations - reg", no(&verbs("get list watch"))),
        ("patch controllerinstallations/status - inst-a", Answer::Allow),
        (
            "create controllerinstallations - x",
            no(&verbs("get list patch update watch")),
        ),
        ("create :events garden-dev x", Answer::Allow),
        ("patch events.k8s.io:events garden-dev x", Answer::Allow),
        ("get :events garden-dev x", no(&verbs("create patch"))),
        ("create :events/foo garden-dev x", no(&subresources(""))),
        ("create internalsecrets garden-dev x", Answer::Allow),
        ("get internalsecrets garden-dev on-b.ca-client", no(UNRELATED)),
        (
            "create coordination.k8s.io:leases gardener-system-seed-lease a",
            Answer::Allow,
        ),
        (
            "update coordination.k8s.io:leases gardener-system-seed-lease a",
            Answer::Allow,
        ),
        (
            "update coordination.k8s.io:leases gardener-system-seed-lease b",
            no(UNRELATED),
        ),
        (
            "delete coordination.k8s.io:leases gardener-system-seed-lease a",
            no(&verbs("create get list patch update watch")),
        ),
        (
            "create seedmanagement.gardener.cloud:gardenlets garden a",
            Answer::Allow,
        ),
        (
            "get seedmanagement.gardener.cloud:gardenlets garden-dev a",
            no("only the following namespaces are allowed for this resource type: [garden]"),
        ),
        (
            "patch seedmanagement.gardener.cloud:gardenlets/status garden a",
            Answer::Allow,
        ),
        (
            "create seedmanagement.gardener.cloud:managedseeds garden a",
            no(&verbs("get list patch update watch")),
        ),
        ("update :namespaces garden-dev garden-dev", no(&verbs("get list watch"))),
        ("create :secrets garden-dev x", Answer::Allow),
        (
            "list :secrets garden-dev -",
            no(&verbs("create delete get patch update")),
        ),
        ("list :secrets seed-a -", Answer::Allow),
        ("get :secrets seed-a whatever", Answer::Allow),
        ("list :secrets seed-b -", no(&verbs("create delete get patch update"))),
        ("get :secrets seed-b whatever", no(UNRELATED)),
        // upstream allows that
        ("delete :secrets seed-b whatever", no(UNRELATED)),
        ("delete :secrets garden-dev gone", Answer::Allow),
        (
            "create security.gardener.cloud:workloadidentities/token garden-dev res-a",
            Answer::Allow,
        ),
        (
            "create security.gardener.cloud:workloadidentities/token garden-dev res-b",
            no(UNRELATED),
        ),
        (
            "create security.gardener.cloud:workloadidentities garden-dev x",
            no(UNRELATED),
        ),
        ("create seeds - a", Answer::Allow),
        ("patch seeds/status - a", Answer::Allow),
        ("patch seeds - b", no(UNRELATED)),
        ("delete seeds - b", no(UNRELATED)),
        ("create :serviceaccounts garden-dev x", Answer::Allow),
        ("deletecollection :serviceaccounts seed-a -", Answer::Allow),
        ("create :serviceaccounts/token seed-a x", Answer::Allow),
        ("delete :serviceaccounts garden gardenlet-bootstrap-a", Answer::Allow),
        (
            "delete :serviceaccounts garden gardenlet-bootstrap-b",
            no(&verbs("create get patch update")),
        ),
        ("get shoots garden a", Answer::Allow),
        ("get shoots garden b", no(UNRELATED)),
        ("patch shoots/status garden-dev on-a", Answer::Allow),
        ("patch shoots/finalizers garden-dev on-a", Answer::Allow),
        (
            "create shoots/adminkubeconfig garden-dev on-a",
            no(&subresources("finalizers status")),
        ),
        ("patch shoots garden-dev on-b", no(UNRELATED)),
        ("get shoots garden-dev -", no("No Object name found")),
        ("create shootstates garden-dev x", Answer::Allow),
        ("delete shootstates garden-dev on-b", no(UNRELATED)),
        ("get quotas garden-dev x", no("")),
        ("get :pods garden-dev x", no("")),
    ] {
        assert_eq!(ask(&belongings, "a", Client::Gardenlet, text), expected, "{text}");
    }
    let token = bootstrap::token_secret("garden", "a");
    assert_eq!(
        ask(
            &belongings,
            "a",
            Client::Gardenlet,
            &format!("delete :secrets kube-system {token}")
        ),
        Answer::Allow
    );
}

#[test]
fn auth_2_lists_and_watches_are_narrowed() {
    let belongings = garden(&objects());
    let refused = no("must specify field or label selector for name a");
    for (text, expected) in [
        ("list shoots - - label:name.seed.gardener.cloud/a=true", true),
        ("watch shoots - - label:name.seed.gardener.cloud/a=true", true),
        ("list shoots - - label:name.seed.gardener.cloud/a", true),
        ("list shoots - - label:x=y,name.seed.gardener.cloud/a=true", true),
        ("list shoots - - label:name.seed.gardener.cloud/b=true", false),
        ("list shoots - - label:name.seed.gardener.cloud/a=false", false),
        // upstream allows these
        ("list shoots - - label:name.seed.gardener.cloud/a!=false", false),
        ("list shoots - - label:!other", false),
        ("list shoots - - label:other!=x", false),
        ("list shoots - - label:!name.seed.gardener.cloud/a", false),
        ("list shoots - - field:spec.seedName=a", false),
        ("list shoots - -", false),
        ("list seeds - - label:name.seed.gardener.cloud/a=true", true),
        ("list seeds - -", false),
        (
            "list seedmanagement.gardener.cloud:managedseeds garden - label:name.seed.gardener.cloud/a=true",
            true,
        ),
        ("watch controllerinstallations - - field:spec.seedRef.name=a", true),
        ("watch controllerinstallations - - field:spec.seedRef.name==a", true),
        ("watch controllerinstallations - - field:spec.seedRef.name!=a", false),
        ("watch controllerinstallations - - field:spec.seedRef.name=b", false),
        (
            "list operations.gardener.cloud:bastions - - field:spec.seedName=a",
            true,
        ),
        (
            "list seedmanagement.gardener.cloud:gardenlets garden a field:metadata.name=a",
            true,
        ),
        (
            "list seedmanagement.gardener.cloud:gardenlets garden b field:metadata.name=b",
            false,
        ),
    ] {
        let expected = if expected { Answer::Allow } else { refused.clone() };
        assert_eq!(ask(&belongings, "a", Client::Gardenlet, text), expected, "{text}");
    }
    // one object by its name
    let one = "list shoots garden-dev on-a field:metadata.name=on-a";
    assert_eq!(ask(&belongings, "a", Client::Gardenlet, one), Answer::Allow);
    assert_eq!(ask(&belongings, "b", Client::Gardenlet, one), no(UNRELATED));
}

#[test]
fn auth_5_extensions_may_less() {
    let belongings = garden(&objects());
    let verbs = |list: &str| {
        no(&format!(
            "only the following verbs are allowed for this resource type: [{list}]"
        ))
    };
    for (text, expected) in [
        (
            "create certificates.k8s.io:certificatesigningrequests - -",
            verbs("get list watch"),
        ),
        ("create rbac.authorization.k8s.io:clusterrolebindings - x", verbs("get")),
        ("create :serviceaccounts seed-a x", verbs("get")),
        ("get :serviceaccounts seed-a x", no(UNRELATED)),
        ("deletecollection coordination.k8s.io:leases seed-a -", Answer::Allow),
        ("create coordination.k8s.io:leases seed-a x", Answer::Allow),
        (
            "get coordination.k8s.io:leases gardener-system-seed-lease a",
            no("lease object is not in seed namespace"),
        ),
        (
            "get coordination.k8s.io:leases seed-b x",
            no("lease object is not in seed namespace"),
        ),
        (
            "escalate coordination.k8s.io:leases seed-a x",
            verbs("create get list watch update patch delete deletecollection"),
        ),
        ("list shoots - - label:name.seed.gardener.cloud/a=true", Answer::Allow),
        ("get :secrets garden-dev provider-a", Answer::Allow),
    ] {
        assert_eq!(ask(&belongings, "a", Client::Extension, text), expected, "{text}");
    }
}

#[test]
fn auth_33_bootstrap_tokens_count_while_they_are_needed() {
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let managed = |bootstrap: &str, operation: &str| {
        json!({
            "metadata": {"namespace": "garden", "name": "b", "annotations": {"gardener.cloud/operation": operation}},
            "spec": {"shoot": {"name": "runs-b"}, "gardenlet": {"bootstrap": bootstrap, "config": {
                "kind": "GardenletConfiguration",
                "seedConfig": {"spec": {
                    "backup": {"credentialsRef": reference("Secret", "garden", "backup-b")},
                    "resources": [{"name": "r", "resourceRef": reference("Secret", "", "res-b")}],
                }},
            }}},
        })
    };
    let mut belongings = garden(&[
        (
            Source::Shoot,
            json!({"metadata": named("garden", "runs-b"), "spec": {"seedName": "a"}}),
        ),
        (Source::ManagedSeed, managed("BootstrapToken", "")),
    ]);
    belongings.at(at("2026-01-01T00:00:00Z"));
    let may = |belongings: &Belongings, object: &str| {
        ask(belongings, "a", Client::Gardenlet, &format!("get {object}")) == Answer::Allow
    };
    let token = format!(":secrets kube-system {}", bootstrap::token_secret("garden", "b"));
    let account = ":serviceaccounts garden gardenlet-bootstrap-b";
    let binding = format!(
        "rbac.authorization.k8s.io:clusterrolebindings - {}",
        bootstrap::binding("garden", "b")
    );
    assert!(
        may(&belongings, &token)
            && may(&belongings, ":secrets garden backup-b")
            && may(&belongings, ":secrets garden res-b")
    );
    assert!(!may(&belongings, account) && !may(&belongings, &binding));
    put(&mut belongings, Source::ManagedSeed, &managed("ServiceAccount", ""));
    assert!(!may(&belongings, &token) && may(&belongings, account) && may(&belongings, &binding));
    put(&mut belongings, Source::ManagedSeed, &managed("BootstrapToken", ""));
    // registered: no token any more
    let seed = |expires: &str| json!({"metadata": named("", "b"), "spec": {}, "status": {"clientCertificateExpirationTimestamp": expires}});
    put(&mut belongings, Source::Seed, &seed("2026-02-01T00:00:00Z"));
    assert!(!may(&belongings, &token));
    put(
        &mut belongings,
        Source::ManagedSeed,
        &managed("BootstrapToken", "renew-kubeconfig"),
    );
    assert!(may(&belongings, &token));
    put(&mut belongings, Source::ManagedSeed, &managed("BootstrapToken", ""));
    // time alone brings it back
    belongings.at(at("2026-02-01T00:00:00Z"));
    assert!(!may(&belongings, &token));
    belongings.at(at("2026-02-01T00:00:01Z"));
    assert!(may(&belongings, &token));
    put(&mut belongings, Source::Seed, &seed("2026-03-01T00:00:00Z"));
    assert!(!may(&belongings, &token));
    belongings.set(Source::Seed, "", "b", None);
    assert!(may(&belongings, &token));
    // a Gardenlet's own token needs its Seed
    let gardenlet = json!({"metadata": named("garden", "a"), "spec": {"config": {}}});
    put(&mut belongings, Source::Gardenlet, &gardenlet);
    let own = format!(":secrets kube-system {}", bootstrap::token_secret("garden", "a"));
    assert!(!may(&belongings, &own));
    let seed = json!({"metadata": named("", "a"), "spec": {}, "status": {"clientCertificateExpirationTimestamp": "2026-01-15T00:00:00Z"}});
    put(&mut belongings, Source::Seed, &seed);
    assert!(may(&belongings, &own));
}

#[test]
fn auth_3_signing_requests_belong_to_whom_they_name() {
    use base64::Engine;
    let request = |organization: &str, name: &str| {
        let subject = gardener_pki::Subject::client(name, &[organization]);
        let made = gardener_pki::request(&subject).unwrap();
        json!({"metadata": named("", "csr"), "spec": {
            "request": base64::engine::general_purpose::STANDARD.encode(made.certificate),
            "usages": ["digital signature", "key encipherment", "client auth"],
        }})
    };
    let mut belongings = garden(&[]);
    let get = |belongings: &Belongings, seed: &str| {
        ask(
            belongings,
            seed,
            Client::Gardenlet,
            "get certificates.k8s.io:certificatesigningrequests - csr",
        )
    };
    let seed = request("gardener.cloud:system:seeds", "gardener.cloud:system:seed:a");
    put(&mut belongings, Source::CertificateSigningRequest, &seed);
    assert_eq!(get(&belongings, "a"), Answer::Allow);
    assert_eq!(get(&belongings, "b"), no(UNRELATED));
    let other = request("system:masters", "gardener.cloud:system:seed:a");
    put(&mut belongings, Source::CertificateSigningRequest, &other);
    assert_eq!(get(&belongings, "a"), no(UNRELATED));
}

#[test]
fn what_cannot_be_read_belongs_to_nobody() {
    let mut belongings = garden(&objects());
    belongings.set(Source::Shoot, "garden-dev", "on-a", Some(b"no JSON"));
    let get = ask(&belongings, "a", Client::Gardenlet, "get shoots garden-dev on-a");
    assert_eq!(get, no(UNRELATED));
}
