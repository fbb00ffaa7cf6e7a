//! Definitions that upstream ships are accepted as they are.
#![allow(clippy::unwrap_used)] // memory does not refuse

use std::path::Path;

use gardener_testkit::cluster::MemoryClusters;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;

#[tokio::test]
async fn recorded_definitions_are_accepted() {
    let clusters = MemoryClusters::new();
    let definitions: Api<CustomResourceDefinition> = Api::all(clusters.open("seed").await);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apis/recorded/crds");
    let mut accepted = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let definition: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        let created = definitions.create(&PostParams::default(), &definition).await;
        assert!(created.is_ok(), "{}: {}", file.display(), created.unwrap_err());
        accepted += 1;
    }
    assert!(accepted > 5, "{accepted} definitions");
}
