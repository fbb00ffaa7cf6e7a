//! What others refer to stays [GCM-10]–[GCM-17], [GCM-32].

use serde_json::{Value, json};

use crate::harness::*;

const QUOTA: (&str, &str) = (CORE, "Quota");
const PROFILE: (&str, &str) = (CORE, "CloudProfile");

#[tokio::test(start_paused = true)]
async fn gcm_10_12_13_bound_credentials_and_quotas_are_marked_and_freed() {
    let garden = Garden::with_project().await;
    let quota = json!({"apiVersion": CORE, "kind": "Quota", "metadata": {"name": "q", "namespace": NS},
        "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "metrics": {"cpu": "200"}}});
    let identity = json!({"apiVersion": SECURITY, "kind": "WorkloadIdentity", "metadata": {"name": "w", "namespace": NS},
        "spec": {"audiences": ["a"], "targetSystem": {"type": "local"}}});
    let binding = |name: &str, reference: Value| {
        let mut reference = reference;
        reference["namespace"] = json!(NS);
        json!({"apiVersion": SECURITY, "kind": "CredentialsBinding", "metadata": {"name": name, "namespace": NS},
            "provider": {"type": "local"}, "credentialsRef": reference, "quotas": [{"name": "q", "namespace": NS}]})
    };
    for object in [
        quota,
        identity,
        binding("secret", json!({"apiVersion": "v1", "kind": "Secret", "name": "key"})),
        binding(
            "identity",
            json!({"apiVersion": SECURITY, "kind": "WorkloadIdentity", "name": "w"}),
        ),
    ] {
        garden.create(object).await.unwrap();
    }
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let key = garden.get("v1", "Secret", NS, "key").await.unwrap();
    let finalizers = key["metadata"]["finalizers"].as_array().unwrap();
    assert!(finalizers.contains(&json!("gardener.cloud/secretbinding")), "{key}");
    assert!(
        finalizers.contains(&json!("gardener.cloud/credentialsbinding")),
        "{key}"
    );
    for label in [
        "reference.gardener.cloud/secretbinding",
        "reference.gardener.cloud/credentialsbinding",
        "provider.shoot.gardener.cloud/local",
    ] {
        assert_eq!(key["metadata"]["labels"][label], "true", "{label}");
    }
    let identity = garden.get(SECURITY, "WorkloadIdentity", NS, "w").await.unwrap();
    assert_eq!(
        identity["metadata"]["finalizers"],
        json!(["gardener.cloud/credentialsbinding"])
    );
    assert_eq!(
        identity["metadata"]["labels"]["reference.gardener.cloud/credentialsbinding"],
        "true"
    );
    assert_eq!(
        identity["metadata"]["labels"]["provider.shoot.gardener.cloud/local"],
        Value::Null
    );
    let label = "/metadata/labels/reference.gardener.cloud~1credentialsbinding";
    assert_eq!(garden.field(QUOTA, NS, "q", label).await, "true");

    garden.delete(QUOTA, NS, "q").await;
    garden.pass("10s").await;
    assert!(garden.get(CORE, "Quota", NS, "q").await.is_some());
    assert_eq!(garden.reasons(NS, "q").await, ["ResourceReferenced"]);
    let bindings = garden.api(SECURITY, "CredentialsBinding", NS);
    for name in ["secret", "identity"] {
        bindings.delete(name, &Default::default()).await.unwrap();
    }
    garden.pass("20m").await;
    assert!(garden.get(CORE, "Quota", NS, "q").await.is_none());
    assert!(
        garden
            .finalizers((SECURITY, "WorkloadIdentity"), NS, "w")
            .await
            .is_empty()
    );
    // one CredentialsBinding of the project is left
    let key = garden.get("v1", "Secret", NS, "key").await.unwrap();
    assert!(
        key["metadata"]["finalizers"]
            .as_array()
            .unwrap()
            .contains(&json!("gardener.cloud/credentialsbinding"))
    );
    bindings.delete("key", &Default::default()).await.unwrap();
    garden.pass("10s").await;
    let key = garden.get("v1", "Secret", NS, "key").await.unwrap();
    assert_eq!(key["metadata"]["finalizers"], json!(["gardener.cloud/secretbinding"]));
    assert_eq!(
        key["metadata"]["labels"]["reference.gardener.cloud/credentialsbinding"],
        Value::Null
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_14_15_cloud_profiles_tell_their_stages_and_stay_while_used() {
    let garden = Garden::with_project().await;
    garden.merge(PROFILE, "", "local", json!({"spec": {"kubernetes": {"versions": [
        {"version": "1.34.0"}, {"version": "1.33.1", "classification": "deprecated", "expirationDate": "2026-01-02T00:00:00Z"}]}}})).await;
    garden
        .create(
            json!({"apiVersion": CORE, "kind": "NamespacedCloudProfile", "metadata": {"name": "own", "namespace": NS},
        "spec": {"parent": {"kind": "CloudProfile", "name": "local"}, "kubernetes": {"versions": [
            {"version": "1.33.1", "expirationDate": "2026-06-01T00:00:00Z"}]}}}),
        )
        .await
        .unwrap();
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let stage = async || {
        garden
            .field(PROFILE, "", "local", "/status/kubernetes/versions/1/classification")
            .await
    };
    assert_eq!(stage().await, "deprecated");
    let merged = garden
        .field(
            (CORE, "NamespacedCloudProfile"),
            NS,
            "own",
            "/status/cloudProfileSpec/kubernetes/versions/1",
        )
        .await;
    assert_eq!(merged["expirationDate"], "2026-06-01T00:00:00Z");
    garden.until("2026-01-02T00:00:01Z".parse().unwrap()).await;
    assert_eq!(stage().await, "expired", "its time is its own trigger");
    assert_eq!(
        garden
            .field(
                PROFILE,
                "",
                "local",
                "/status/machineImages/0/versions/0/classification"
            )
            .await,
        "supported"
    );

    garden.delete(PROFILE, "", "local").await;
    garden.pass("10s").await;
    assert_eq!(garden.reasons("default", "local").await, ["ResourceReferenced"]);
    garden.delete((CORE, "NamespacedCloudProfile"), NS, "own").await;
    garden.pass("10s").await;
    assert!(garden.get(CORE, "NamespacedCloudProfile", NS, "own").await.is_none());
    assert!(garden.get(CORE, "CloudProfile", "", "local").await.is_none());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_17_what_is_referred_to_in_a_namespace_stays() {
    let garden = Garden::with_project().await;
    let object = |kind: &str, namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    for (kind, namespace, name) in [
        ("Secret", NS, "a"),
        ("ConfigMap", NS, "b"),
        ("Secret", "garden", "of-seed"),
        ("Secret", "garden", "of-deployment"),
    ] {
        garden.create(object(kind, namespace, name)).await.unwrap();
    }
    let reference =
        |kind: &str, name: &str| json!({"name": name, "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}});
    let mut one = shoot("one");
    one["spec"]["resources"] = json!([reference("Secret", "a"), reference("ConfigMap", "b")]);
    one["metadata"]["finalizers"] = json!(["gardener"]);
    let mut seed = seed("seed");
    seed["spec"]["resources"] = json!([reference("Secret", "of-seed")]);
    let deployment = json!({"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": "d"},
        "helm": {"ociRepository": {"repository": "x", "tag": "1", "pullSecretRef": {"name": "of-deployment"}}}});
    garden.put(vec![one, seed, deployment]).await;
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let protected = async |kind: &str, namespace: &str, name: &str| {
        garden.finalizers(("v1", kind), namespace, name).await == ["gardener.cloud/reference-protection"]
    };
    for (kind, namespace, name) in [
        ("Secret", NS, "a"),
        ("ConfigMap", NS, "b"),
        ("Secret", "garden", "of-seed"),
        ("Secret", "garden", "of-deployment"),
    ] {
        assert!(protected(kind, namespace, name).await, "{namespace}/{name}");
    }
    // a seed that refers to nothing frees what nobody else needs, and nothing else
    garden
        .merge(SEED, "", "seed", json!({"spec": {"resources": null}}))
        .await;
    garden
        .merge(
            SHOOT,
            NS,
            "one",
            json!({"spec": {"resources": [reference("ConfigMap", "b")]}}),
        )
        .await;
    garden.pass("10s").await;
    assert!(!protected("Secret", "garden", "of-seed").await);
    assert!(protected("Secret", "garden", "of-deployment").await);
    assert!(!protected("Secret", NS, "a").await);
    assert!(protected("ConfigMap", NS, "b").await);
    // in deletion it lasts until gardenlet is through
    garden.delete(SHOOT, NS, "one").await;
    garden.pass("10s").await;
    assert!(protected("ConfigMap", NS, "b").await);
    garden
        .merge(
            SHOOT,
            NS,
            "one",
            json!({"metadata": {"finalizers": ["gardener.cloud/reference-protection"]}}),
        )
        .await;
    garden.pass("10s").await;
    assert!(!protected("ConfigMap", NS, "b").await);
    assert!(garden.get(CORE, "Shoot", NS, "one").await.is_none());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_11_classes_and_deployments_stay_while_used() {
    let garden = Garden::with_project().await;
    let stop = garden.start_manager();
    garden
        .create(json!({"apiVersion": CORE, "kind": "ExposureClass", "metadata": {"name": "c"}, "handler": "h"}))
        .await
        .unwrap();
    garden
        .create(
            json!({"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": "d"},
        "helm": {"ociRepository": {"repository": "x.example.com/y", "tag": "1"}}}),
        )
        .await
        .unwrap();
    garden
        .create(
            json!({"apiVersion": CORE, "kind": "ControllerRegistration", "metadata": {"name": "r"},
        "spec": {"deployment": {"deploymentRefs": [{"name": "d"}]}}}),
        )
        .await
        .unwrap();
    let mut one = shoot("one");
    one["spec"]["exposureClassName"] = json!("c");
    garden.put(vec![one]).await;
    garden.pass("10s").await;
    let deployment = ("core.gardener.cloud/v1", "ControllerDeployment");
    let finalizers = garden.field(deployment, "", "d", "/metadata/finalizers").await;
    assert_eq!(finalizers, json!(["core.gardener.cloud/controllerdeployment"]));
    garden.delete((CORE, "ExposureClass"), "", "c").await;
    garden.delete(deployment, "", "d").await;
    garden.pass("10s").await;
    assert_eq!(garden.reasons("default", "c").await, ["ResourceReferenced"]);
    assert!(garden.get(deployment.0, deployment.1, "", "d").await.is_some());
    garden.delete(SHOOT, NS, "one").await;
    garden.delete((CORE, "ControllerRegistration"), "", "r").await;
    garden.pass("20m").await;
    assert!(garden.get(CORE, "ExposureClass", "", "c").await.is_none());
    assert!(garden.get(deployment.0, deployment.1, "", "d").await.is_none());
    stop.cancel();
}
