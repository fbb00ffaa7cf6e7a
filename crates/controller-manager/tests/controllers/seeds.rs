//! Seeds and registrations [GCM-20]–[GCM-23], [GCM-30]–[GCM-32].

use serde_json::{Value, json};

use crate::harness::*;

const INSTALLATION: (&str, &str) = (CORE, "ControllerInstallation");

fn status_of(conditions: &Value, kind: &str) -> Value {
    let all = conditions.as_array().cloned().unwrap_or_default();
    let own = all.into_iter().find(|own| own["type"] == kind);
    own.map(|own| own["status"].clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn w52_gcm_20_a_silent_gardenlet_is_noticed() {
    let garden = Garden::with_project().await;
    garden
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gardener-system-seed-lease"}}))
        .await
        .unwrap();
    let mut one = seed("one");
    one["status"]["clientCertificateExpirationTimestamp"] = json!("2026-01-01T00:02:00Z");
    let managed_seed = json!({"apiVersion": SEEDMANAGEMENT, "kind": "ManagedSeed", "metadata": {"name": "one", "namespace": "garden", "generation": 1},
        "spec": {"shoot": {"name": "one"}, "gardenlet": {"config": gardenlet("ingress.one.example.com")}}});
    let mut host = shoot("one");
    host["metadata"]["namespace"] = json!("garden");
    host["spec"]["dns"] = json!({"domain": "one.example.com"});
    garden
        .put(vec![
            crate::sets::project_of_garden(),
            host,
            one,
            managed_seed,
            lease("one", START),
        ])
        .await;
    garden.shoot_on("on-it", "one").await;
    let stop = garden.start_manager();
    garden.pass("35s").await;
    let ready = async || {
        status_of(
            &garden.field(SEED, "", "one", "/status/conditions").await,
            "GardenletReady",
        )
    };
    assert_eq!(ready().await, "True");
    garden.pass("25s").await;
    assert_eq!(ready().await, "Unknown");
    let operation = "/metadata/generation";
    let asked = async || {
        garden
            .field((SEEDMANAGEMENT, "ManagedSeed"), "garden", "one", operation)
            .await
    };
    assert_eq!(
        (
            asked().await,
            garden.field(SHOOT, NS, "on-it", "/status/constraints").await
        ),
        (json!(1), Value::Null)
    );
    garden.pass("100s").await;
    assert_ne!(
        asked().await,
        1,
        "the certificate is over: to ask for a reconciliation is a new generation"
    );
    garden.pass("2m").await;
    let status = garden.field(SHOOT, NS, "on-it", "/status").await;
    for kind in [
        "APIServerAvailable",
        "ControlPlaneHealthy",
        "ObservabilityComponentsHealthy",
        "EveryNodeReady",
        "SystemComponentsHealthy",
    ] {
        assert_eq!(status_of(&status["conditions"], kind), "Unknown", "{kind}");
    }
    for kind in ["HibernationPossible", "MaintenancePreconditionsSatisfied"] {
        assert_eq!(status_of(&status["constraints"], kind), "Unknown", "{kind}");
    }
    assert_eq!(
        status["conditions"][0]["message"],
        "Gardenlet stopped sending heartbeats."
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_20_shoots_that_host_themselves_have_gardenlets_too() {
    let garden = Garden::with_project().await;
    let mut one = shoot("one");
    one["metadata"]["labels"] = json!({"shoot.gardener.cloud/self-hosted": "true"});
    one["status"] = json!({"conditions": [condition("GardenletReady", "True")]});
    let mut own = lease("self-hosted-shoot-one", START);
    own["metadata"]["namespace"] = json!(NS);
    garden.put(vec![one, own]).await;
    let stop = garden.start_manager();
    garden.pass("35s").await;
    let status = async |kind: &str| status_of(&garden.field(SHOOT, NS, "one", "/status/conditions").await, kind);
    // what is not a shoot's own condition goes when the controllers start [GCM-45]
    garden
        .merge_status(
            SHOOT,
            NS,
            "one",
            json!({"conditions": [condition("GardenletReady", "True")]}),
        )
        .await;
    assert_eq!(status("GardenletReady").await, "True");
    garden.pass("15s").await;
    assert_eq!(status("GardenletReady").await, "Unknown");
    garden.pass("210s").await;
    assert_eq!(status("APIServerAvailable").await, "Unknown");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_21_23_30_31_32_a_seed_gets_its_extensions_and_secrets() {
    let garden = Garden::open().await;
    let secret = |name: &str, role: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "garden", "labels": {"gardener.cloud/role": role}},
            "stringData": {"a": "b"}})
    };
    garden.create(secret("shared", "alerting")).await.unwrap();
    garden.create(secret("private", "controlplane-cert")).await.unwrap();
    garden
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "garden"}}))
        .await
        .unwrap();
    garden
        .create(
            json!({"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": "d"},
        "helm": {"ociRepository": {"repository": "x.example.com/y", "tag": "1"}},
        "resources": [{"name": "pull", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "pull"}}]}),
        )
        .await
        .unwrap();
    garden
        .create(
            json!({"apiVersion": CORE, "kind": "ControllerRegistration", "metadata": {"name": "always",
        "annotations": {"security.gardener.cloud/pod-security-enforce": "baseline"}},
        "spec": {"deployment": {"policy": "Always", "deploymentRefs": [{"name": "d"}]}}}),
        )
        .await
        .unwrap();
    let stop = garden.start_manager();
    garden.put(vec![seed("one")]).await;
    garden.pass("40s").await;
    assert_eq!(garden.names(("v1", "Secret"), "seed-one").await, ["shared"]);
    let namespace = garden.get("v1", "Namespace", "", "seed-one").await.unwrap();
    assert_eq!(namespace["metadata"]["labels"]["gardener.cloud/role"], "seed");
    let all = garden.names(INSTALLATION, "").await;
    assert_eq!(all.len(), 3, "{all:?}");
    let own = all.iter().find(|name| name.starts_with("always-")).unwrap();
    let installation = garden.get(CORE, "ControllerInstallation", "", own).await.unwrap();
    let spec = &installation["spec"];
    assert_eq!(
        (&spec["seedRef"]["name"], &spec["deploymentRef"]["name"]),
        (&json!("one"), &json!("d"))
    );
    let pull = garden.get("v1", "Secret", "garden", "pull").await.unwrap();
    let expected = json!({"kind": "Secret", "namespace": "garden", "name": "pull", "resourceVersion": pull["metadata"]["resourceVersion"]});
    assert_eq!(spec["resourceRefs"], json!([expected]));
    let labels = installation["metadata"]["labels"].as_object().unwrap();
    for label in ["seed-spec-hash", "registration-spec-hash", "deployment-hash"] {
        assert_eq!(labels[label].as_str().unwrap().len(), 16, "{label}");
    }
    assert_eq!(
        installation["metadata"]["annotations"]["security.gardener.cloud/pod-security-enforce"],
        "baseline"
    );
    let finalizer = "core.gardener.cloud/controllerregistration".to_owned();
    for (kind, name) in [("Seed", "one"), ("ControllerRegistration", "always")] {
        assert!(
            garden.finalizers((CORE, kind), "", name).await.contains(&finalizer),
            "{kind}"
        );
    }
    // [GCM-21]
    let conditions = garden.field(SEED, "", "one", "/status/conditions").await;
    assert_eq!(status_of(&conditions, "ExtensionsReady"), "False");
    let told = ["Valid", "Installed", "Healthy"].map(|kind| condition(kind, "True"));
    let mut told = told.to_vec();
    told.push(condition("Progressing", "False"));
    for name in &all {
        garden
            .merge_status(INSTALLATION, "", name, json!({"conditions": told}))
            .await;
    }
    garden.pass("1s").await;
    let conditions = garden.field(SEED, "", "one", "/status/conditions").await;
    assert_eq!(status_of(&conditions, "ExtensionsReady"), "True");
    // [GCM-31]: what is not wanted goes, and the registration stays until then
    garden
        .api(CORE, "ControllerRegistration", "")
        .delete("always", &Default::default())
        .await
        .unwrap();
    garden.pass("10s").await;
    assert!(garden.get(CORE, "ControllerRegistration", "", "always").await.is_none());
    assert!(garden.get(CORE, "ControllerInstallation", "", own).await.is_none());
    // copies of what is gone go
    garden
        .api("v1", "Secret", "garden")
        .delete("shared", &Default::default())
        .await
        .unwrap();
    garden.pass("10s").await;
    assert!(garden.names(("v1", "Secret"), "seed-one").await.is_empty());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_32_roles_of_extensions_are_bound() {
    let garden = Garden::open().await;
    let account = |name: &str, app: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "seed-one", "labels": {"app": app}}})
    };
    garden
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seed-one"}}))
        .await
        .unwrap();
    garden.create(account("a", "x")).await.unwrap();
    let stop = garden.start_manager();
    garden.create(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "own",
        "labels": {"authorization.gardener.cloud/custom-extensions-permissions": "true"},
        "annotations": {"authorization.gardener.cloud/extensions-serviceaccount-selector": "{\"matchLabels\":{\"app\":\"x\"}}"}},
        "rules": []})).await.unwrap();
    garden.pass("10s").await;
    garden.create(account("b", "x")).await.unwrap();
    garden.create(account("c", "y")).await.unwrap();
    garden.pass("10s").await;
    let binding = garden
        .get("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "own")
        .await
        .unwrap();
    let names: Vec<&Value> = binding["subjects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| &own["name"])
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(binding["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], false);
    stop.cancel();
}

/// Registration, seed, shoot and owner's label of each installation that is not in deletion.
async fn installed(garden: &Garden) -> Vec<(String, Value, Value, Value)> {
    let mut all = Vec::new();
    for name in garden.names(INSTALLATION, "").await {
        let own = garden.get(CORE, "ControllerInstallation", "", &name).await.unwrap();
        if own["metadata"]["deletionTimestamp"].is_null() {
            let registration = own["spec"]["registrationRef"]["name"].as_str().unwrap_or_default();
            all.push((
                registration.to_owned(),
                own["spec"]["seedRef"]["name"].clone(),
                own["spec"]["shootRef"]["name"].clone(),
                own["metadata"]["labels"]["seed-ref-name"].clone(),
            ));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[tokio::test(start_paused = true)]
async fn gcm_31_self_hosted_shoots_have_installations() {
    let garden = Garden::with_project().await;
    let registration = |name: &str, resources: &[(&str, &str)]| {
        let resources: Vec<Value> = resources
            .iter()
            .map(|(kind, own)| json!({"kind": kind, "type": own, "primary": false}))
            .collect();
        json!({"apiVersion": CORE, "kind": "ControllerRegistration", "metadata": {"name": name}, "spec": {"resources": resources}})
    };
    for own in [
        registration("exposure", &[("SelfHostedShootExposure", "local")]),
        registration("extra", &[("Extension", "extra")]),
    ] {
        garden.create(own).await.unwrap();
    }
    let mut own = shoot("one");
    own["metadata"]["namespace"] = json!("garden");
    own["spec"]["provider"]["workers"][0]["controlPlane"] = json!({"exposure": {"extension": {}}});
    own["spec"]["seedName"] = Value::Null;
    garden.put(vec![own]).await;
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let (none, one) = (Value::Null, json!("one"));
    let of = |name: &str, seed: &Value, shoot: &Value, label: &Value| {
        (name.to_owned(), seed.clone(), shoot.clone(), label.clone())
    };
    assert_eq!(
        installed(&garden).await,
        [of("all", &none, &one, &none), of("exposure", &none, &one, &none),]
    );
    let all = garden.names(INSTALLATION, "").await;
    let first = garden.get(CORE, "ControllerInstallation", "", &all[0]).await.unwrap();
    assert_eq!(first["spec"]["shootRef"]["namespace"], "garden");
    assert!(!first["spec"]["shootRef"]["resourceVersion"].is_null());
    assert_eq!(
        first["metadata"]["labels"]["shoot-spec-hash"].as_str().map(str::len),
        Some(16)
    );
    assert!(first["metadata"]["labels"]["seed-spec-hash"].is_null());
    // the shoot becomes a seed: what the seed needs, too, is shown to it, and what only it needs is its own
    let mut seed = seed("one");
    seed["metadata"]["labels"] = json!({"seed.gardener.cloud/self-hosted-shoot-cluster": "true"});
    seed["spec"]["extensions"] = json!([{"type": "extra"}]);
    garden.put(vec![seed]).await;
    garden.pass("10s").await;
    assert_eq!(
        installed(&garden).await,
        [
            of("all", &one, &one, &none),
            of("dns", &one, &one, &one),
            of("exposure", &none, &one, &none),
            of("extra", &one, &one, &one),
        ]
    );
    // the shoot needs it now, and takes it over; the seed no longer does, and does not see it then
    let extend = async |kind: &str, namespace: &str, list: Value| {
        let mut own = garden.get(CORE, kind, namespace, "one").await.unwrap();
        own["spec"]["extensions"] = list;
        garden.put(vec![own]).await;
        garden.pass("10s").await;
    };
    extend("Shoot", "garden", json!([{"type": "extra"}])).await;
    assert_eq!(installed(&garden).await[3], of("extra", &one, &one, &none));
    extend("Seed", "", json!([])).await;
    assert_eq!(installed(&garden).await[3], of("extra", &none, &one, &none));
    // nobody needs it
    extend("Shoot", "garden", json!([])).await;
    assert_eq!(
        installed(&garden).await,
        [
            of("all", &one, &one, &none),
            of("dns", &one, &one, &one),
            of("exposure", &none, &one, &none),
        ]
    );
    stop.cancel();
}
