use gardener_testkit::seed::Seed;
use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "shoot--foo--bar";

async fn webhooks() -> (Seed, Webhooks) {
    let seed = Seed::with_groups(&["extensions.gardener.cloud", "druid.gardener.cloud"]).await;
    seed.namespace(NAMESPACE).await;
    let webhooks = Webhooks::new(seed.client.clone());
    (seed, webhooks)
}

/// The review of a request for an object of a kind.
fn review(operation: &str, kind: &str, plural: &str, fields: Value) -> Value {
    let mut request = json!({
        "uid": "u-1", "operation": operation, "name": "one", "namespace": NAMESPACE,
        "kind": {"group": "extensions.gardener.cloud", "version": "v1alpha1", "kind": kind},
        "resource": {"group": "extensions.gardener.cloud", "version": "v1alpha1", "resource": plural},
    });
    if let (Some(request), Value::Object(fields)) = (request.as_object_mut(), fields) {
        request.extend(fields);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// The response to a review.
async fn response(webhooks: &Webhooks, path: &str, review: &Value) -> Value {
    let answer = webhooks.answer(path, review.to_string().as_bytes()).await;
    assert_eq!((answer.status, answer.content_type), (200, "application/json"));
    let mut answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    answer["response"].take()
}

fn object(kind: &str, annotations: Value, spec: Value) -> Value {
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": kind,
        "metadata": {"name": "one", "namespace": NAMESPACE, "resourceVersion": "1", "annotations": annotations}, "spec": spec,
    })
}

/// W-EXT-14.
#[tokio::test(start_paused = true)]
async fn ext_130_deletion_is_confirmed() {
    let (_seed, webhooks) = webhooks().await;
    let cases = [
        ("Infrastructure", "infrastructures", json!({}), false),
        (
            "Infrastructure",
            "infrastructures",
            json!({"confirmation.gardener.cloud/deletion": "yes"}),
            false,
        ),
        (
            "Infrastructure",
            "infrastructures",
            json!({"confirmation.gardener.cloud/deletion": "True"}),
            true,
        ),
        ("Bastion", "bastions", json!({}), true),
        ("Cluster", "clusters", json!({}), true),
    ];
    for (kind, plural, annotations, allowed) in cases {
        let fields = json!({"oldObject": object(kind, annotations.clone(), json!({}))});
        let response = response(
            &webhooks,
            DELETION_PROTECTION_PATH,
            &review("DELETE", kind, plural, fields),
        )
        .await;
        assert_eq!(response["allowed"], allowed, "{kind} {annotations}: {response}");
        assert_eq!(response["uid"], "u-1");
        if !allowed {
            assert_eq!(response["status"]["code"], 403);
            assert_eq!(
                response["status"]["message"],
                "must have a \"confirmation.gardener.cloud/deletion\" annotation to delete"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ext_130_each_member_of_a_collection_is_confirmed() {
    use gardener_apis::extensions::v1alpha1::Network;
    use kube::Api;
    use kube::api::{Patch, PatchParams, PostParams};

    let (seed, webhooks) = webhooks().await;
    let networks: Api<Network> = Api::namespaced(seed.client.clone(), NAMESPACE);
    for name in ["a", "b"] {
        let network: Network = serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"type": "calico", "podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"},
        }))
        .expect("a network");
        networks
            .create(&PostParams::default(), &network)
            .await
            .expect("created");
    }
    let collection = review("DELETE", "Network", "networks", json!({"name": ""}));
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    for (name, allowed) in [("a", false), ("b", true)] {
        networks
            .patch(name, &PatchParams::default(), &Patch::Merge(&confirmed))
            .await
            .expect("patched");
        let response = response(&webhooks, DELETION_PROTECTION_PATH, &collection).await;
        assert_eq!(response["allowed"], allowed, "{name}: {response}");
    }
}

#[tokio::test(start_paused = true)]
async fn ext_131_objects_are_judged_by_their_kinds_rules() {
    let (_seed, webhooks) = webhooks().await;
    let path = "/validate-extensions-gardener-cloud-v1alpha1-infrastructure";
    let spec = json!({"type": "local", "region": "local", "secretRef": {"name": "s"}});
    let good = object("Infrastructure", json!({}), spec.clone());
    let created = review("CREATE", "Infrastructure", "infrastructures", json!({"object": good}));
    assert_eq!(response(&webhooks, path, &created).await["allowed"], true);

    let empty = object("Infrastructure", json!({}), json!({"type": "local", "region": "local"}));
    let created = review("CREATE", "Infrastructure", "infrastructures", json!({"object": empty}));
    let refused = response(&webhooks, path, &created).await;
    assert_eq!(
        (&refused["allowed"], &refused["status"]["reason"]),
        (&json!(false), &json!("Invalid"))
    );
    assert_eq!(
        refused["status"]["message"],
        "Infrastructure.extensions.gardener.cloud \"one\" is invalid: spec.secretRef.name: Required value: field is required"
    );
    assert_eq!(
        refused["status"]["details"]["causes"][0]["field"],
        "spec.secretRef.name"
    );

    let mut moved = good.clone();
    moved["spec"]["region"] = json!("elsewhere");
    let fields = json!({"object": moved, "oldObject": good});
    let updated = review("UPDATE", "Infrastructure", "infrastructures", fields);
    let refused = response(&webhooks, path, &updated).await;
    assert_eq!(refused["status"]["details"]["causes"][0]["field"], "spec.region");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_review_is_answered_too() {
    let (_seed, webhooks) = webhooks().await;
    let answer = webhooks.answer("/nowhere", b"{}").await;
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (404, b"404 page not found\n".as_slice())
    );
    for body in ["", "[]", "{}", "{\"request\": 1}"] {
        let answer = webhooks.answer(DELETION_PROTECTION_PATH, body.as_bytes()).await;
        let told: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(
            (answer.status, &told["response"]["status"]["code"]),
            (200, &json!(400)),
            "{body}: {told}"
        );
        assert_eq!(told["response"]["allowed"], false);
    }
    // an object that is not there cannot be judged, and versions of before are answered in kind
    let mut older = review("DELETE", "Worker", "workers", json!({}));
    older["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let answer = webhooks
        .answer(DELETION_PROTECTION_PATH, older.to_string().as_bytes())
        .await;
    let told: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(told["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(told["response"]["status"]["code"], 500);
}
