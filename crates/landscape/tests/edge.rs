//! The edge between users and seeds: what people write in the garden cannot become more in a seed than it is meant to be. Each of Gardener's published
//! vulnerabilities that touch its API has a test here, named after it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::LogicalCluster;
use gardener_apiserver::webhooks::{Answer, Endpoint, Transport};
use gardener_landscape::apply::Manifest;
use gardener_landscape::manifests;
use gardener_testkit::garden::{self, Garden, NAMESPACE};
use gardener_testkit::landscape::Landscape;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::verbs;
use kube::{Api, Client, Discovery};
use serde_json::{Value, json};

/// The webhook of an extension: refuses credentials with a key `forbidden`.
struct Extension;

#[async_trait]
impl Transport for Extension {
    async fn post(&self, _: &LogicalCluster, _: &Endpoint, _: Duration, body: Bytes) -> Result<Answer, String> {
        let review: Value = serde_json::from_slice(&body).unwrap();
        let request = &review["request"];
        let forbidden = request.at("/object/data/forbidden").is_some();
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": request["uid"], "allowed": !forbidden, "status": {"message": "no such credentials"}},
        });
        Ok(Answer {
            status: 200,
            content_type: "application/json".to_owned(),
            body: answer.to_string().into(),
        })
    }
}

/// A garden with an extension that looks at credentials of provider `local`, as upstream's do: by their label.
async fn watched_garden() -> Garden {
    let garden = Garden::open(1, "2026-01-01T00:00:00Z").await;
    garden.project().await;
    garden.cluster().webhooks().use_transport(Arc::new(Extension));
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let webhooks = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "local"},
        "webhooks": [{
            "name": "credentials.local.io", "clientConfig": {"url": "https://extension"},
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "objectSelector": {"matchLabels": {"provider.shoot.gardener.cloud/local": "true"}},
            "rules": [rule("", "secrets"), rule("core.gardener.cloud", "internalsecrets")],
        }],
    });
    garden.create(webhooks).await.unwrap();
    garden
}

fn credentials(kind: &str, name: &str, key: &str) -> Value {
    let api_version = if kind == "Secret" {
        "v1"
    } else {
        "core.gardener.cloud/v1beta1"
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "data": {key: "QQ=="}})
}

fn secret_binding(name: &str, providers: &str, secret: &str) -> Value {
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": {"name": name, "namespace": NAMESPACE},
        "provider": {"type": providers}, "secretRef": {"name": secret, "namespace": NAMESPACE}})
}

fn credentials_binding(name: &str, kind: &str, credentials: &str) -> Value {
    let api_version = if kind == "Secret" {
        "v1"
    } else {
        "core.gardener.cloud/v1beta1"
    };
    json!({"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding", "metadata": {"name": name, "namespace": NAMESPACE},
        "provider": {"type": "local"},
        "credentialsRef": {"apiVersion": api_version, "kind": kind, "name": credentials, "namespace": NAMESPACE}})
}

/// Code and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    }
}

/// A Secret that nobody looked at, because it has no label, was bound and used: now everybody looks at it when it is bound [ADM-52], and as long as it is,
/// the label stays [ADM-79].
#[tokio::test(start_paused = true)]
async fn cve_2025_47283_credentials_are_looked_at_when_they_are_bound() {
    let garden = watched_garden().await;
    for (kind, name, key) in [
        ("Secret", "bad", "forbidden"),
        ("Secret", "good", "allowed"),
        ("InternalSecret", "bad", "forbidden"),
        ("InternalSecret", "good", "allowed"),
    ] {
        garden.create(credentials(kind, name, key)).await.unwrap();
    }
    let why = "local provider secret sanity check failed: admission webhook \"credentials.local.io\" denied the request: no such credentials";
    let refused = |binding: Value| async { refusal(garden.create(binding).await) };
    let bindings = [
        (
            secret_binding("x", "local", "bad"),
            "secretbindings.core.gardener.cloud",
        ),
        (
            secret_binding("x", "other,local", "bad"),
            "secretbindings.core.gardener.cloud",
        ),
        (
            credentials_binding("x", "Secret", "bad"),
            "credentialsbindings.security.gardener.cloud",
        ),
        (
            credentials_binding("x", "InternalSecret", "bad"),
            "credentialsbindings.security.gardener.cloud",
        ),
    ];
    for (binding, resource) in bindings {
        assert_eq!(
            refused(binding).await,
            (403, format!("{resource} \"x\" is forbidden: {why}"))
        );
    }
    // who is of another provider is nobody's here
    garden
        .create(secret_binding("elsewhere", "other", "bad"))
        .await
        .unwrap();
    for binding in [
        secret_binding("good", "local", "good"),
        credentials_binding("good", "Secret", "good"),
        credentials_binding("good-internal", "InternalSecret", "good"),
    ] {
        garden.create(binding).await.unwrap();
    }
    // what was tried is not there
    let secrets: Api<Secret> = Api::namespaced(garden.client.clone(), NAMESPACE);
    let mut names: Vec<_> = secrets.list(&ListParams::default()).await.unwrap().items;
    names.retain(|secret| secret.metadata.name.as_deref() != Some("key"));
    let mut names: Vec<_> = names.into_iter().filter_map(|secret| secret.metadata.name).collect();
    names.sort();
    assert_eq!(names, ["bad", "good"]);
    // and what is bound can neither become bad nor lose the label
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let label = "provider.shoot.gardener.cloud/local";
    let labelled = |secret: &Secret| {
        secret
            .metadata
            .labels
            .as_ref()
            .is_some_and(|all| all.contains_key(label))
    };
    assert!(labelled(&secrets.get("good").await.unwrap()));
    let patch = |patch: Value| {
        let secrets = secrets.clone();
        async move {
            secrets
                .patch("good", &PatchParams::default(), &Patch::Merge(patch))
                .await
        }
    };
    let bad = json!({"data": {"forbidden": "QQ=="}, "metadata": {"labels": {label: null}}});
    assert_eq!(
        refusal(patch(bad).await).1,
        "admission webhook \"credentials.local.io\" denied the request: no such credentials"
    );
    assert!(labelled(
        &patch(json!({"metadata": {"labels": {label: null}}})).await.unwrap()
    ));
    stop.cancel();
    garden.close().await;
}

/// Credentials of DNS providers were files that made who read them run programs and read files of the seed. The one file with such powers that the garden
/// knows is the kubeconfig: only credentials that are told in it, member by member, are let through [ADM-71].
#[tokio::test(start_paused = true)]
async fn cve_2025_47282_credential_files_have_no_powers() {
    let garden = Garden::open(1, "2026-01-01T00:00:00Z").await;
    garden.project().await;
    let secret = |name: &str, user: Value| {
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": "a", "user": user}]});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": {"kubeconfig": kubeconfig.to_string()}})
    };
    for user in [
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never"}}),
        json!({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}),
        json!({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}),
        json!({"client-certificate": "/etc/passwd"}),
        json!({"client-key": "/etc/passwd"}),
        json!({"token": "a", "as": "system:masters"}),
    ] {
        let shown = user.to_string();
        let (code, why) = refusal(garden.create(secret("bad", user)).await);
        assert!(code == 422 && why.contains("data.kubeconfig"), "{shown}: {code} {why}");
    }
    let harmless = garden.create(secret("good", json!({"token": "a"}))).await.unwrap();
    // nor can one be slipped in later
    let bad = secret(
        "good",
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}),
    );
    let mut bad: Secret = serde_json::from_value(bad).unwrap();
    bad.metadata.resource_version = harmless["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    let secrets: Api<Secret> = Api::namespaced(garden.client.clone(), NAMESPACE);
    assert_eq!(refusal(secrets.replace("good", &Default::default(), &bad).await).0, 422);
    garden.close().await;
}

/// What users' labels and annotations begin with in these tests.
const MARK: &str = "hostile.example.com/";

/// A change that labels and annotates an object in all ways in which a seed's components take orders.
fn marks() -> Value {
    let orders = json!({
        "hostile.example.com/mark": "true",
        "resources.gardener.cloud/purpose": "token-requestor",
        "resources.gardener.cloud/hostile": "hostile.example.com/value",
        "serviceaccount.resources.gardener.cloud/hostile": "hostile.example.com/value",
    });
    json!({"metadata": {"labels": {"hostile.example.com/mark": "true", "resources.gardener.cloud/hostile": "hostile"}, "annotations": orders}})
}

/// The places in an object where labels or annotations are users'.
fn marked(value: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(members) = value else {
        if let Value::Array(items) = value {
            items.iter().for_each(|item| marked(item, path, found));
        }
        return;
    };
    for (key, member) in members {
        let here = format!("{path}/{key}");
        if matches!(key.as_str(), "labels" | "annotations") {
            let text = member.to_string();
            if text.contains(MARK) || text.contains("hostile") {
                found.push(here.clone());
            }
        }
        marked(member, &here, found);
    }
}

async fn mark(client: &Client, api_version: &str, kind: &str, (namespace, name): (&str, &str)) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(marks())).await.unwrap();
}

/// A project's secrets took orders for a seed's components along in their labels and annotations: none of a user's gets into a seed but within the copy of
/// the Shoot that extensions read.
///
/// And texts became programs in a seed (CVE-2025-59823): texts that nobody checks come to the extension as they are.
#[tokio::test(start_paused = true)]
async fn cve_2025_47284_labels_and_annotations_stay_in_the_garden() {
    let landscape = Landscape::start(1).await;
    let garden = landscape.garden();
    let core = "core.gardener.cloud/v1beta1";
    for (api_version, kind, at) in [
        ("v1", "Namespace", ("", NAMESPACE)),
        (core, "Project", ("", "local")),
        ("v1", "Secret", (NAMESPACE, "local")),
        (
            "security.gardener.cloud/v1alpha1",
            "CredentialsBinding",
            (NAMESPACE, "local"),
        ),
        (core, "SecretBinding", (NAMESPACE, "local")),
    ] {
        mark(&garden, api_version, kind, at).await;
    }
    for kind in ["Secret", "ConfigMap"] {
        let mut referenced = marks();
        referenced["apiVersion"] = "v1".into();
        referenced["kind"] = kind.into();
        referenced["metadata"]["namespace"] = NAMESPACE.into();
        referenced["metadata"]["name"] = "referenced".into();
        let manifest = Manifest {
            origin: "referenced".into(),
            text: referenced.to_string(),
        };
        landscape.apply(&manifest).await;
    }
    let mut shoot: Value = serde_saphyr::from_str(&manifests::shoot().text).unwrap();
    for key in ["labels", "annotations"] {
        let mut all = shoot["metadata"][key].as_object().cloned().unwrap_or_default();
        all.extend(marks()["metadata"][key].as_object().unwrap().clone());
        shoot["metadata"][key] = all.into();
    }
    shoot["spec"]["resources"] = json!([
        {"name": "secret", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "referenced"}},
        {"name": "map", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "referenced"}},
    ]);
    let hostile = json!({
        "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureConfig",
        "text": "\"}\nresource \"null_resource\" \"x\" { provisioner \"local-exec\" { command = \"sh\" } }\n${file(\"/etc/passwd\")}{{ .Values }}$(sh)`sh`",
    });
    shoot["spec"]["provider"]["infrastructureConfig"] = hostile.clone();
    let manifest = Manifest {
        origin: "shoot".into(),
        text: shoot.to_string(),
    };
    landscape.apply(&manifest).await;
    landscape.until_shoot_is_created().await;

    let seed = landscape.seed("local");
    let mut seen = Vec::new();
    for group in Discovery::new(seed.clone()).run().await.unwrap().groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(seed.clone(), &resource);
            for object in api.list(&ListParams::default()).await.unwrap() {
                let name = object.metadata.name.clone().unwrap_or_default();
                let mut value = serde_json::to_value(&object).unwrap();
                if resource.kind == "Infrastructure" {
                    assert_eq!(value["spec"]["providerConfig"], hostile);
                }
                if resource.kind == "Cluster" {
                    value["shoot"] = Value::Null;
                    value["spec"]["shoot"] = Value::Null;
                }
                let mut found = Vec::new();
                marked(&value, &format!("{} {name}: ", resource.kind), &mut found);
                assert_eq!(found, Vec::<String>::new());
                seen.push(resource.kind.clone());
            }
        }
    }
    // it was looked at what there is
    for kind in [
        "Infrastructure",
        "Cluster",
        "Namespace",
        "Secret",
        "Deployment",
        "ManagedResource",
        "Worker",
    ] {
        assert!(seen.iter().any(|own| own == kind), "{kind} in {seen:?}");
    }
    let secrets: Api<Secret> = Api::all(seed);
    let secrets = secrets.list(&ListParams::default()).await.unwrap();
    assert!(
        secrets
            .iter()
            .any(|own| own.metadata.name.as_deref() == Some("cloudprovider"))
    );
    landscape.stop().await;
}

/// Texts of Shoots became programs: those that go into names, paths and programs of a seed are names, and nothing else gets through.
#[tokio::test(start_paused = true)]
async fn cve_2025_59823_texts_are_names_where_names_belong() {
    let garden = Garden::open(1, "2026-01-01T00:00:00Z").await;
    garden.project().await;
    let kubernetes = json!([{"version": "1.33.1"}]);
    let images = json!([{"name": "os", "versions": [{"version": "1.0.0", "cri": [{"name": "containerd"}], "architectures": ["amd64"]}]}]);
    garden.create(garden::cloud_profile(kubernetes, images)).await.unwrap();
    let window = ("030000+0000", "040000+0000");
    let good = || {
        let pools = json!([garden::pool("pool", ("os", "1.0.0"), None)]);
        garden::shoot("good", "1.33.1", window, (false, false), pools)
    };
    let hostile = "x\"}\n${file(\"/etc/passwd\")}";
    for pointer in [
        "/metadata/name",
        "/spec/region",
        "/spec/provider/type",
        "/spec/provider/workers/0/name",
        "/spec/provider/workers/0/machine/type",
        "/spec/provider/workers/0/machine/image/name",
        "/spec/provider/workers/0/machine/image/version",
        "/spec/provider/workers/0/machine/architecture",
        "/spec/provider/workers/0/zones/0",
        "/spec/provider/workers/0/volume/type",
        "/spec/provider/workers/0/volume/name",
        "/spec/provider/workers/0/cri/name",
        "/spec/kubernetes/version",
        "/spec/networking/type",
        "/spec/networking/nodes",
        "/spec/networking/pods",
        "/spec/dns/domain",
        "/spec/systemComponents/coreDNS/rewriting/commonSuffixes/0",
        "/spec/controlPlane/zones/0",
        "/spec/purpose",
        "/spec/extensions/0/type",
        "/spec/maintenance/timeWindow/begin",
    ] {
        let mut shoot = good();
        set(&mut shoot, pointer, hostile);
        let (code, why) = refusal(garden.create(shoot).await);
        assert!(matches!(code, 400 | 403 | 422 | 500), "{pointer}: {code} {why}");
        assert!(
            code != 500 || why.contains("could not find") || why.contains("semantic") || why.contains("version"),
            "{pointer}: {why}"
        );
    }
    garden.create(good()).await.unwrap();
    garden.close().await;
}

/// What operators do not want of Shoots they say in policies. Those see what Gardener's own plugins have made of a Shoot, after these had nothing
/// against it.
#[tokio::test(start_paused = true)]
async fn operators_policies_judge_shoots() {
    let garden = Garden::open(1, "2026-01-01T00:00:00Z").await;
    garden.project().await;
    let kubernetes = json!([{"version": "1.33.1", "classification": "supported"}]);
    let images = json!([{"name": "os", "versions": [{"version": "1.0.0", "architectures": ["amd64"]}]}]);
    garden.create(garden::cloud_profile(kubernetes, images)).await.unwrap();
    let shoot = |name: &str, version: &str, maximum: i64| {
        let pools = json!([garden::pool("pool", ("os", "1.0.0"), None)]);
        let window = ("030000+0000", "040000+0000");
        let mut shoot = garden::shoot(name, version, window, (false, false), pools);
        shoot["spec"]["provider"]["workers"][0]["maximum"] = maximum.into();
        shoot
    };
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "small"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["core.gardener.cloud"], "apiVersions": ["v1beta1"], "operations": ["CREATE", "UPDATE"], "resources": ["shoots"],
            }]},
            "matchConditions": [{"name": "not-in-deletion", "expression": "!has(object.metadata.deletionTimestamp)"}],
            "variables": [{"name": "nodes", "expression": "object.spec.provider.workers.map(w, int(w.maximum)).sum()"}],
            "validations": [{
                "expression": "variables.nodes <= int(params.data.nodes)",
                "messageExpression": "'%s of %s wants %d nodes of %s'.format([object.metadata.name, namespaceObject.metadata.name, variables.nodes, object.metadata.annotations['gardener.cloud/created-by']])",
                "reason": "Forbidden",
            }],
        },
    });
    garden.create(policy).await.unwrap();
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "small"},
        "spec": {
            "policyName": "small", "validationActions": ["Deny"],
            "paramRef": {"name": "limits", "parameterNotFoundAction": "Allow"},
        },
    });
    garden.create(binding).await.unwrap();
    // without limits everything goes
    garden.create(shoot("free", "1.33.1", 50)).await.unwrap();
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": NAMESPACE}, "data": {"nodes": "5"}});
    garden.create(limits).await.unwrap();
    let refused = refusal(garden.create(shoot("large", "1.33.1", 6)).await);
    let why = "shoots.core.gardener.cloud \"large\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: large of garden-local wants 6 nodes of ";
    assert!(refused.0 == 403 && refused.1.starts_with(why), "{refused:?}");
    // what Gardener itself refuses it refuses first
    let (_, why) = refusal(garden.create(shoot("large", "1.33.9", 6)).await);
    assert!(!why.contains("ValidatingAdmissionPolicy"), "{why}");
    garden.create(shoot("small", "1.33.1", 5)).await.unwrap();
    let grown = json!({"spec": {"provider": {"workers": shoot("small", "1.33.1", 7)["spec"]["provider"]["workers"]}}});
    let (code, why) = refusal(garden.patch("small", grown).await);
    assert!(
        code == 403 && why.contains("small of garden-local wants 7 nodes"),
        "{why}"
    );
    garden.close().await;
}

/// Puts a text at a place of an object; what is missing on the way is made.
fn set(object: &mut Value, pointer: &str, text: &str) {
    let mut at = object;
    for part in pointer.split('/').skip(1) {
        at = match part.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let items = at.as_array_mut().unwrap();
                while items.len() <= index {
                    items.push(json!({}));
                }
                &mut items[index]
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                at.as_object_mut().unwrap().entry(part).or_insert(Value::Null)
            }
        };
    }
    *at = text.into();
}
