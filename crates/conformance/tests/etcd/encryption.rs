//! Encryption at rest: what kube-apiserver encrypted we read, and the other way round; keys are exchanged by either.

use super::*;

/// A configuration in which every provider writes something, and each has the named keys.
fn configuration(keys: &[&str]) -> String {
    let list = |resources: &str, provider: &str, size: usize| {
        let keys: String = keys
            .iter()
            .map(|name| {
                let secret: Vec<u8> = name.bytes().cycle().take(size).collect();
                let secret = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret);
                format!("        - name: {name}\n          secret: {secret}\n")
            })
            .collect();
        format!("- resources: {resources}\n  providers:\n  - {provider}:\n      keys:\n{keys}  - identity: {{}}\n")
    };
    let lists = [
        list("[secrets]", "secretbox", 32),
        list("[configmaps]", "aescbc", 32),
        list("[deployments.apps, things.example.com]", "aesgcm", 16),
        list("['*.apps']", "aescbc", 24),
        list("['*.']", "aesgcm", 24),
        list("['*.*']", "aesgcm", 32),
    ];
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n{}",
        lists.concat()
    )
}

/// Where some of the objects lie, and what writes them.
const PLACES: [(&str, &str); 6] = [
    ("secrets/default", "secretbox"),
    ("configmaps/default", "aescbc"),
    ("deployments/default", "aesgcm"),
    ("example.com/things/default", "aesgcm"),
    ("statefulsets/default", "aescbc"),
    ("leases/default", "aesgcm"),
];

async fn lie_encrypted(etcd: &Etcd, name: &str, key: &str) {
    for (place, provider) in PLACES {
        let stored = etcd.get_bytes(&format!("/registry/{place}/{name}")).await;
        let expected = format!("k8s:enc:{provider}:v1:{key}:");
        assert!(
            stored.starts_with(expected.as_bytes()),
            "{place}/{name}: {:?} instead of {expected}",
            String::from_utf8_lossy(&stored[..stored.len().min(40)])
        );
    }
}

async fn all(client: &Client, name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for (collection, _) in objects("") {
        found.push(read(client, &format!("{collection}/{name}")).await);
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_objects_go_from_kube_apiserver_to_us_and_back() {
    let Some(programs) = reference::built() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("encryption.yaml");
    let flag = [format!("--encryption-provider-config={}", file.display())];
    let etcd = Etcd::start(&programs.join("etcd")).await.unwrap();
    std::fs::write(&file, configuration(&["one"])).unwrap();

    let theirs = Reference::start_with(&programs, &etcd.url, &flag).await.unwrap();
    create(
        &theirs.client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition(),
    )
    .await;
    served(&theirs.client, &format!("/apis/example.com/v1/{NAMESPACED}/things")).await;
    for (collection, object) in objects("theirs") {
        create(&theirs.client, &collection, &object).await;
    }
    lie_encrypted(&etcd, "theirs", "one").await;
    let by_them = all(&theirs.client, "theirs").await;

    // both at once: what they tell each other is understood, too
    let ours = Ours::start_with(&etcd, &flag).await;
    assert_eq!(all(&ours.client, "theirs").await, by_them);
    drop(theirs);
    for (collection, object) in objects("ours") {
        create(&ours.client, &collection, &object).await;
    }
    lie_encrypted(&etcd, "ours", "one").await;
    let by_us = all(&ours.client, "ours").await;
    ours.end().await;

    // another key writes from now on; what the first one wrote is read, and written anew by a write that changes nothing
    std::fs::write(&file, configuration(&["two", "one"])).unwrap();
    let ours = Ours::start_with(&etcd, &flag).await;
    lie_encrypted(&etcd, "theirs", "one").await;
    for ((collection, _), object) in objects("").into_iter().zip(&by_them) {
        let put = http::Request::put(format!("{collection}/theirs")).header("content-type", "application/json");
        let put = put.body(serde_json::to_vec(object).unwrap()).unwrap();
        let mut written: Value = ours.client.request(put).await.unwrap();
        assert_ne!(
            written["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"],
            "{collection}"
        );
        written["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        assert_eq!(written, *object, "{collection}");
        // and only once
        let written = read(&ours.client, &format!("{collection}/theirs")).await;
        let put = http::Request::put(format!("{collection}/theirs")).header("content-type", "application/json");
        let put = put.body(serde_json::to_vec(&written).unwrap()).unwrap();
        let again: Value = ours.client.request(put).await.unwrap();
        assert_eq!(again, written, "{collection}");
    }
    lie_encrypted(&etcd, "theirs", "two").await;
    let by_us_now = all(&ours.client, "theirs").await;
    ours.end().await;
    let theirs = Reference::start_with(&programs, &etcd.url, &flag).await.unwrap();
    assert_eq!(all(&theirs.client, "theirs").await, by_us_now);
    assert_eq!(all(&theirs.client, "ours").await, by_us);
    drop(theirs);

    // without the keys nothing is served
    std::fs::write(&file, configuration(&["three"])).unwrap();
    let refused = Ours::refused(&etcd, &flag).await;
    assert!(
        refused.contains("k8s:enc:") && refused.contains("/registry/"),
        "{refused}"
    );
    std::fs::write(&file, "kind: Nonsense").unwrap();
    let refused = Ours::refused(&etcd, &flag).await;
    assert!(refused.contains("--encryption-provider-config: "), "{refused}");
}
