//! [AUTH-40]: gardenlets and extensions of self-hosted shoots, and gardenadm.

use serde_json::json;

use super::*;
use crate::bootstrap;
use crate::identity::{Client, ShootIdentity};
use crate::self_hosted::authorize;

const UNRELATED: &str = "no relationship found";

fn objects() -> Vec<(Source, Value)> {
    let mut objects = vec![(
        Source::Project,
        json!({"metadata": named("", "dev"), "spec": {"namespace": "garden-dev"}}),
    )];
    for shoot in ["a", "b"] {
        let at = |text: &str| format!("{text}-{shoot}");
        let reference = json!({"namespace": "garden-dev", "name": shoot});
        objects.extend([
            (
                Source::Shoot,
                json!({"metadata": named("garden-dev", shoot), "spec": {"credentialsBindingName": at("binding")}}),
            ),
            (
                Source::CredentialsBinding,
                json!({"metadata": named("garden-dev", &at("binding")),
                    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": at("provider")}}),
            ),
            (
                Source::BackupBucket,
                json!({"metadata": named("", &at("bucket")), "spec": {"shootRef": reference,
                    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": at("bucket")}}}),
            ),
            (
                Source::BackupEntry,
                json!({"metadata": named("garden-dev", &at("entry")), "spec": {"bucketName": at("bucket"), "shootRef": reference}}),
            ),
            (
                Source::Bastion,
                json!({"metadata": named("garden-dev", &at("bastion")), "spec": {"shootRef": {"name": shoot}}}),
            ),
            (
                Source::ControllerInstallation,
                json!({"metadata": named("", &at("inst")), "spec": {"shootRef": reference, "registrationRef": {"name": "reg"}, "deploymentRef": {"name": at("deployment")}}}),
            ),
            (
                Source::Gardenlet,
                json!({"metadata": named("garden-dev", &format!("self-hosted-shoot-{shoot}")), "spec": {}}),
            ),
            (
                Source::ServiceAccount,
                json!({"metadata": named("garden-dev", &format!("extension-shoot--{shoot}--x"))}),
            ),
        ]);
    }
    objects
}

fn ask(belongings: &Belongings, client: Client, text: &str) -> Answer {
    let who = ShootIdentity {
        namespace: "garden-dev",
        shoot: "a",
        client,
    };
    let description = |name: &str| match name {
        "bootstrap-token-own" => Some("Used for connecting the self-hosted Shoot garden-dev/a".to_owned()),
        "bootstrap-token-other" => Some("Used for connecting the self-hosted Shoot garden-dev/b".to_owned()),
        "bootstrap-token-broken" => Some("Used for connecting the self-hosted Shoot x".to_owned()),
        _ => None,
    };
    authorize(belongings, who, &question(text), &description)
}

#[test]
fn auth_40_gardenlets_have_what_belongs_to_their_shoot() {
    let belongings = garden(&objects());
    for object in [
        "backupbuckets - bucket-?",
        "backupentries garden-dev entry-?",
        "operations.gardener.cloud:bastions garden-dev bastion-?",
        ":configmaps garden-dev ?.ca-cluster",
        ":secrets garden-dev ?.ssh-keypair",
        ":secrets garden-dev provider-?",
        ":secrets garden-dev bucket-?",
        "internalsecrets garden-dev ?.ca-client",
        "controllerinstallations - inst-?",
        "controllerdeployments - deployment-?",
        "coordination.k8s.io:leases garden-dev self-hosted-shoot-?",
        ":serviceaccounts garden-dev extension-shoot--?--x",
        "shootstates garden-dev ?",
    ] {
        let get = |shoot: &str| {
            ask(
                &belongings,
                Client::Gardenlet,
                &format!("get {}", object.replace('?', shoot)),
            )
        };
        assert_eq!(get("a"), Answer::Allow, "{object}");
        assert_eq!(get("b"), no(UNRELATED), "{object}");
    }
    let verbs = |list: &str| {
        no(&format!(
            "only the following verbs are allowed for this resource type: [{list}]"
        ))
    };
    let selector = no("must specify field or label selector for name a");
    let namespaces = |list: &str| {
        no(&format!(
            "only the following namespaces are allowed for this resource type: [{list}]"
        ))
    };
    for (text, expected) in [
        ("get shoots garden-dev a", Answer::Allow),
        ("watch shoots garden-dev a", Answer::Allow),
        ("get shoots garden-dev b", verbs("patch update")),
        ("patch shoots/status garden-dev a", Answer::Allow),
        ("patch shoots garden-dev b", no(UNRELATED)),
        ("create shoots garden-dev a", verbs("patch update")),
        ("get projects - dev", Answer::Allow),
        ("get :namespaces garden-dev garden-dev", Answer::Allow),
        ("get :configmaps kube-system cluster-identity", Answer::Allow),
        ("list backupbuckets - - field:spec.shootRef.name=a", Answer::Allow),
        ("list backupbuckets - - field:spec.shootRef.name=b", selector.clone()),
        (
            "list operations.gardener.cloud:bastions garden-dev - field:spec.shootRef.name=a",
            Answer::Allow,
        ),
        (
            "list operations.gardener.cloud:bastions garden-x - field:spec.shootRef.name=a",
            namespaces("garden-dev"),
        ),
        (
            "create operations.gardener.cloud:bastions garden-dev -",
            verbs("get list patch update watch"),
        ),
        (
            "list seedmanagement.gardener.cloud:gardenlets garden-dev self-hosted-shoot-a field:metadata.name=self-hosted-shoot-a",
            Answer::Allow,
        ),
        (
            "list seedmanagement.gardener.cloud:gardenlets garden-dev self-hosted-shoot-b field:metadata.name=self-hosted-shoot-b",
            selector.clone(),
        ),
        (
            "get seedmanagement.gardener.cloud:gardenlets garden-dev self-hosted-shoot-b",
            no(UNRELATED),
        ),
        (
            "list seedmanagement.gardener.cloud:managedseeds garden-dev - field:spec.shoot.name=a",
            Answer::Allow,
        ),
        ("get seeds - a", Answer::Allow),
        ("list seeds - -", Answer::Allow),
        ("get seeds - b", no(UNRELATED)),
        (
            "create certificates.k8s.io:certificatesigningrequests/shootclient - -",
            Answer::Allow,
        ),
        (
            "list :secrets garden - label:gardener.cloud/role=shoot-service-account-issuer",
            Answer::Allow,
        ),
        (
            "list :secrets garden - label:gardener.cloud/role=internal-domain",
            selector.clone(),
        ),
        ("list :secrets garden -", selector),
        ("delete :secrets kube-system bootstrap-token-own", Answer::Allow),
        (
            "delete :secrets kube-system bootstrap-token-other",
            no(
                "shoot meta in bootstrap token secret garden-dev/b does not match with identity of requestor garden-dev/a",
            ),
        ),
        (
            "delete :secrets kube-system bootstrap-token-broken",
            no(
                "could not extract shoot namespace and name from bootstrap token description: Used for connecting the self-hosted Shoot x",
            ),
        ),
        (
            "delete :serviceaccounts garden-dev extension-shoot--a--x",
            Answer::Allow,
        ),
        (
            "delete :serviceaccounts garden-dev extension-shoot--b--x",
            verbs("create get patch update"),
        ),
        (
            "delete :serviceaccounts garden-x extension-shoot--a--x",
            verbs("create get patch update"),
        ),
        ("create :events garden-dev x", Answer::Allow),
        ("get cloudprofiles - x", no("")),
    ] {
        assert_eq!(ask(&belongings, Client::Gardenlet, text), expected, "{text}");
    }
    let own = bootstrap::token_secret("garden-dev", "a");
    let get = |name: &str| {
        ask(
            &belongings,
            Client::Gardenlet,
            &format!("get :secrets kube-system {name}"),
        )
    };
    assert_eq!(get(&own), Answer::Allow);
    assert_eq!(
        get("bootstrap-token-x"),
        no(&format!(
            "bootstrap token secret name bootstrap-token-x does not match expected name {own} for shoot garden-dev/a"
        ))
    );
}

#[test]
fn auth_40_extensions_may_less() {
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
        ("delete :serviceaccounts garden-dev extension-shoot--a--x", verbs("get")),
        ("create coordination.k8s.io:leases garden-dev a--x", Answer::Allow),
        ("list coordination.k8s.io:leases garden-dev -", Answer::Allow),
        (
            "get coordination.k8s.io:leases garden-dev b--x",
            no("lease object name does not have the shoot name as prefix"),
        ),
        (
            "get coordination.k8s.io:leases garden-x a--x",
            no("lease object is not in shoot namespace"),
        ),
        (
            "list :secrets garden - label:gardener.cloud/role=shoot-service-account-issuer",
            no("must specify field or label selector for name a"),
        ),
    ] {
        assert_eq!(ask(&belongings, Client::Extension, text), expected, "{text}");
    }
}

#[test]
fn auth_40_extensions_of_a_seed_have_what_seeds_have() {
    let who = ShootIdentity {
        namespace: "garden",
        shoot: "a",
        client: Client::Extension,
    };
    let shoot = |name: &str, seed: &str| json!({"metadata": named("garden-dev", name), "spec": {"seedName": seed}});
    let mut belongings = garden(&[(Source::Shoot, shoot("x", "a")), (Source::Shoot, shoot("y", "b"))]);
    let get = |belongings: &Belongings, who: ShootIdentity<'_>, name: &str| {
        let text = format!("get :secrets garden-dev {name}.ssh-keypair");
        authorize(belongings, who, &question(&text), &|_| None)
    };
    assert_eq!(get(&belongings, who, "x"), Answer::Allow);
    assert_eq!(get(&belongings, who, "y"), no(UNRELATED));
    for (client, namespace) in [(Client::Gardenlet, "garden"), (Client::Extension, "garden-dev")] {
        let other = ShootIdentity {
            namespace,
            client,
            ..who
        };
        assert_eq!(get(&belongings, other, "x"), no(UNRELATED));
    }
    // the shoot is a seed as ManagedSeed: all its seed's objects are of the shoot, too
    let gardenlet = ShootIdentity {
        client: Client::Gardenlet,
        ..who
    };
    let managed = json!({"metadata": named("garden", "a"), "spec": {"shoot": {"name": "a"}}});
    put(&mut belongings, Source::ManagedSeed, &managed);
    assert_eq!(get(&belongings, gardenlet, "x"), Answer::Allow);
    assert_eq!(get(&belongings, gardenlet, "y"), no(UNRELATED));
}

#[test]
fn auth_40_gardenadm_puts_a_shoot_into_the_garden() {
    let belongings = garden(&[]);
    for (text, expected) in [
        ("get cloudprofiles - x", true),
        ("list cloudprofiles - -", false),
        ("get controllerdeployments - x", true),
        ("create projects - dev", true),
        ("get projects - dev", false),
        ("create :secrets garden-dev x", true),
        ("create :secrets garden-x x", false),
        ("get :secrets garden-dev x", false),
        ("create security.gardener.cloud:workloadidentities garden-dev x", true),
        ("create shoots garden-dev a", true),
        ("mark-self-hosted shoots garden-dev a", true),
        ("create shoots garden-x a", false),
        ("patch shoots/status garden-dev a", true),
        ("delete shoots garden-dev a", false),
        ("get shoots garden-dev a", false),
    ] {
        let expected = if expected { Answer::Allow } else { no("") };
        assert_eq!(ask(&belongings, Client::Gardenadm, text), expected, "{text}");
    }
}
