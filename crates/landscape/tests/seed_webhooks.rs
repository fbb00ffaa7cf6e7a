//! What a seed's gardener-resource-manager does not let through: extension objects that are wrong, and deletions that nobody confirmed.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

use gardener_apis::extensions::v1alpha1::Infrastructure;
use gardener_testkit::landscape::Landscape;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

const NAMESPACE: &str = "shoot--elsewhere--a";

/// Code and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn ext_130_ext_131_extension_objects_are_judged_in_their_seed() {
    let landscape = Landscape::start(1).await;
    let seed = landscape.seed("local");
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), "garden");
    landscape
        .until("the seed's resource manager runs", || async {
            let found = deployments.get_opt("gardener-resource-manager").await.unwrap();
            let ready = found.and_then(|one| one.status?.ready_replicas);
            ready
                .filter(|ready| *ready > 0)
                .ok_or_else(|| "no replica is ready".to_owned())
        })
        .await;
    let namespaces: Api<Namespace> = Api::all(seed.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();

    let infrastructures: Api<Infrastructure> = Api::namespaced(seed.clone(), NAMESPACE);
    let mut wanted: Infrastructure = serde_json::from_value(json!({
        "metadata": {"name": "a"}, "spec": {"type": "nobody", "region": "local", "secretRef": {"namespace": NAMESPACE}},
    }))
    .unwrap();
    let (code, why) = refusal(infrastructures.create(&PostParams::default(), &wanted).await);
    assert_eq!(code, 422);
    assert_eq!(
        why,
        "admission webhook \"validation.extensions.infrastructures.resources.gardener.cloud\" denied the request: \
         Infrastructure.extensions.gardener.cloud \"a\" is invalid: spec.secretRef.name: Required value: field is required"
    );
    wanted.spec.secret_ref.name = Some("cloudprovider".to_owned());
    infrastructures.create(&PostParams::default(), &wanted).await.unwrap();

    let unconfirmed = (
        403,
        "admission webhook \"cr-deletion-protection.resources.gardener.cloud\" denied the request: \
         must have a \"confirmation.gardener.cloud/deletion\" annotation to delete"
            .to_owned(),
    );
    let (how, every) = (DeleteParams::default(), ListParams::default());
    assert_eq!(refusal(infrastructures.delete("a", &how).await), unconfirmed);
    assert_eq!(
        refusal(infrastructures.delete_collection(&how, &every).await),
        unconfirmed
    );
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    let patch = Patch::Merge(&confirmed);
    infrastructures
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    infrastructures.delete("a", &how).await.unwrap();

    let definitions: Api<CustomResourceDefinition> = Api::all(seed);
    let (code, why) = refusal(definitions.delete("workers.extensions.gardener.cloud", &how).await);
    assert_eq!(code, 403);
    assert!(
        why.starts_with("admission webhook \"crd-deletion-protection.resources.gardener.cloud\""),
        "{why}"
    );
    landscape.stop().await;
}
