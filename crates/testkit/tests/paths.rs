//! The paths of a server that lead to no object.
#![allow(clippy::unwrap_used, clippy::panic)] // memory does not refuse; what is not served is told by its path

use gardener_testkit::cluster::MemoryClusters;
use serde_json::Value;

#[tokio::test]
async fn what_the_root_lists_is_sorted_and_served() {
    let clusters = MemoryClusters::new();
    let client = clusters.open("paths").await;
    let get = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        client.request_text(request).await
    };
    let listed: Value = serde_json::from_str(&get("/").await.unwrap()).unwrap();
    let listed: Vec<String> = serde_json::from_value(listed["paths"].clone()).unwrap();
    assert!(listed.is_sorted(), "{listed:?}");
    for path in &listed {
        match (path.as_str(), get(path).await) {
            // what documents lie under, and the one that kube-apiserver lists and does not serve
            ("/openapi/v3/", Err(kube::Error::Api(status))) if status.code == 404 => {}
            ("/openapi/v3/", other) => panic!("{path} leads to {other:?}, not to 404"),
            (_, Err(error)) => panic!("{path} is listed, and not served: {error}"),
            (_, Ok(_)) => {}
        }
    }
    for path in [
        "/apis/apps/v1",
        "/livez/etcd",
        "/metrics/slis",
        "/openid/v1/jwks",
        "/readyz/shutdown",
    ] {
        assert!(listed.iter().any(|own| own == path), "{path} is not in {listed:?}");
    }
}
